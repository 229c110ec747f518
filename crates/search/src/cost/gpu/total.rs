//! Computes the time of a kernel and its [`Parts`] from the work of one of its blocks ([`Block`]).

use tilewright_target::Gpu;

use super::Parts;
use super::walk::{Block, Transfer};

// Numbers that no data sheet gives are those that ranked measured schedules of 38 programs on an
// H200 best.

/// The number of registers of a thread beside its results: operands, addresses, counters.
const OTHER_REGISTERS: f64 = 20.0;
/// The largest number of blocks of a multiprocessor.
const MAX_BLOCKS: f64 = 32.0;
/// The bytes of shared memory that the system reserves for each block.
const RESERVED_SHARED_BYTES: f64 = 1024.0;
/// The number of warp instructions that a multiprocessor issues in a cycle. The hardware can issue
/// four, and busy kernels reach three quarters of that.
const SCHEDULERS: f64 = 3.0;
/// The latency of memory in cycles, and the cycles of one step of a block's reduction, in which all
/// threads wait at a barrier and start again.
const MEMORY_LATENCY: f64 = 1000.0;
const BARRIER_CYCLES: f64 = 600.0;
/// The cycles between dependent instructions, less those in which other instructions issue.
const DEPENDENT_CYCLES: f64 = 3.5;
/// The overhead of a kernel launch, as a multiple of the memory latency, and that of each wave of
/// blocks, from its start until it has data.
const LAUNCH_LATENCIES: f64 = 3.5;
const WAVE_LATENCIES: f64 = 1.0;
/// The bytes per cycle that a multiprocessor receives from the shared second-level cache, and the
/// rounds of loads that are under way together: compilers unroll short loops.
const CACHE_BYTES_PER_CYCLE: f64 = 20.0;
const ROUNDS_TOGETHER: f64 = 4.0;
const SECTOR_BYTES: f64 = 32.0;
/// The cycles of one access to the banks of shared memory.
const BANK_ACCESS_CYCLES: f64 = 1.3;
/// The share of the peak memory bandwidth that kernels reach.
const BANDWIDTH_SHARE: f64 = 0.9;
/// The slowdown by spills. If a thread needs more registers than it may have, the rest is in
/// memory, and instructions on that rest take this many times as long.
const SPILL_SLOWDOWN: f64 = 70.0;
/// The share of the other units' time that does not overlap with the busiest unit where there are
/// many warps. A single warp does one thing after the other.
const NOT_OVERLAPPED: f64 = 0.09;

/// Computes the parts of a kernel's time.
pub(super) fn parts(block: &Block, gpu: &Gpu) -> Parts {
    let hertz = f64::from(gpu.clock_mhz).max(1.0) * 1e6;
    let (resident, spilled) = resident(block, gpu);
    let processors = gpu.processors.max(1) as f64;
    let busy = |blocks: f64| UnitCycles::new(block, gpu, blocks, spilled);
    // Whole waves of blocks, and the blocks of the last partial wave.
    let waves = (block.blocks / (processors * resident)).floor();
    let left = block.blocks - waves * processors * resident;
    let in_last = (left / processors).ceil();
    let full = busy(resident);
    let last = if in_last > 0.0 { busy(in_last) } else { UnitCycles::default() };
    let sum =
        |part: &dyn Fn(&UnitCycles) -> f64| (waves * part(&full) + part(&last)) / hertz * block.launches;
    let memory = block.bytes / (gpu.bandwidth_mb as f64 * 1e6 * BANDWIDTH_SHARE) * block.launches;
    let launches = LAUNCH_LATENCIES * MEMORY_LATENCY / hertz * block.launches;
    let cycles = sum(&UnitCycles::total) + launches;
    Parts {
        seconds: cycles.max(memory),
        blocks: block.blocks,
        threads: block.threads,
        resident,
        compute: sum(&|busy| busy.compute),
        issue: sum(&|busy| busy.issue),
        shared: sum(&|busy| busy.shared),
        sectors: sum(&|busy| busy.sectors),
        memory,
        latency: sum(&|busy| busy.latency) + launches,
    }
}

/// The number of blocks that run on a multiprocessor at the same time, and the share of a thread's
/// registers that are spilled.
fn resident(block: &Block, gpu: &Gpu) -> (f64, f64) {
    // The registers are those of all threads of a block together.
    let wanted = block.registers / block.threads.max(1.0) + OTHER_REGISTERS;
    // A block must fit on a multiprocessor, so blocks with many threads have few registers per
    // thread.
    let most = (gpu.thread_registers as f64).min(gpu.processor_registers as f64 / block.threads.max(1.0));
    let registers = wanted.min(most).max(1.0);
    let by_threads = gpu.processor_threads as f64 / block.threads.max(1.0);
    let by_registers = gpu.processor_registers as f64 / (registers * block.threads.max(1.0));
    let by_shared = gpu.processor_shared as f64 / (block.shared_bytes + RESERVED_SHARED_BYTES);
    let resident = by_threads.min(by_registers).min(by_shared).min(MAX_BLOCKS).floor().max(1.0);
    (resident, ((wanted - most) / wanted).max(0.0))
}

/// The cycles of a multiprocessor that runs some blocks, by unit.
#[derive(Clone, Copy, Debug, Default)]
struct UnitCycles {
    compute: f64,
    issue: f64,
    shared: f64,
    sectors: f64,
    latency: f64,
    /// The share of the other parts' cycles that add to those of the longest part.
    not_overlapped: f64,
}

/// The cycles in which some blocks move sectors: as many as the cache delivers, but not fewer than
/// the latency of each round.
fn transfer_cycles(own: &Transfer, blocks: f64) -> f64 {
    let moving = blocks * own.sectors * SECTOR_BYTES / CACHE_BYTES_PER_CYCLE;
    let waiting = own.rounds / ROUNDS_TOGETHER * MEMORY_LATENCY;
    moving.max(waiting)
}

impl UnitCycles {
    fn new(block: &Block, gpu: &Gpu, blocks: f64, spilled: f64) -> UnitCycles {
        let lanes = (gpu.lanes.max(1) as f64 / gpu.warp.max(1) as f64).max(1.0);
        let slower = 1.0 + SPILL_SLOWDOWN * spilled;
        // Prefetched data has arrived if there was enough work in the meantime.
        let exposed_waits = (block.waits - block.prefetched_waits).max(0.0) / 2.0;
        let waiting =
            exposed_waits * MEMORY_LATENCY + block.waits * BARRIER_CYCLES + WAVE_LATENCIES * MEMORY_LATENCY;
        let warps = blocks * (block.threads / gpu.warp.max(1) as f64).ceil();
        UnitCycles {
            not_overlapped: NOT_OVERLAPPED.max(1.0 / warps.max(1.0)),
            compute: blocks * block.arithmetic * slower / lanes,
            issue: blocks * block.instructions * slower / SCHEDULERS,
            shared: blocks * block.bank_accesses * BANK_ACCESS_CYCLES,
            sectors: block.transfers.iter().map(|own| transfer_cycles(own, blocks)).sum(),
            latency: waiting + block.chain * slower * DEPENDENT_CYCLES,
        }
    }

    /// The total cycles. The parts overlap, but not completely.
    fn total(&self) -> f64 {
        let all = [self.compute, self.issue, self.shared, self.sectors, self.latency];
        let most = all.iter().copied().fold(0.0, f64::max);
        most + self.not_overlapped * (all.iter().sum::<f64>() - most)
    }
}
