//! The time of a kernel, from what a block does.

use tilewright_target::Gpu;

use super::Parts;
use super::walk::Block;

// Where no data sheet has a number, it is the one with which schedules of 38 programs, measured on
// an H200, were ranked best.

/// Registers of a thread beside its results: operands, addresses, counters.
const OTHER_REGISTERS: f64 = 20.0;
/// Blocks of a multiprocessor at most.
const MOST_BLOCKS: f64 = 32.0;
/// Bytes of shared memory that the system takes of each block.
const OWN_SHARED: f64 = 1024.0;
/// Warps whose instructions a multiprocessor begins in a cycle. It could begin four, but has other
/// instructions to do than the loops show.
const SCHEDULERS: f64 = 1.9;
/// Cycles until memory answers, and for a step of a block's reduction: all threads wait, and begin
/// again.
const MEMORY: f64 = 1000.0;
const BARRIER: f64 = 600.0;
/// Cycles from an instruction to one that needs its result, of which some are begun meanwhile.
const DEPENDENT: f64 = 3.5;
/// Cycles from the start of a kernel until its first block has data, and from its last store to the
/// next kernel, in times that memory takes.
const START: f64 = 4.5;
/// Bytes a cycle that a multiprocessor gets of the cache that all share.
const CACHE_BYTES: f64 = 9.5;
const SECTOR: f64 = 32.0;
/// Cycles of a turn of the banks of shared memory.
const TURN: f64 = 1.3;
/// The share of the bandwidth of memory that kernels get.
const REACHED: f64 = 0.9;
/// A thread that needs more registers than it may have keeps the others in memory: what is done
/// with them takes so many times as long.
const SPILLED: f64 = 70.0;
/// The share of what is not the busiest part that does not overlap with it.
const IN_TURN: f64 = 0.09;

/// What of the time of a kernel goes where.
pub(super) fn parts(block: &Block, gpu: &Gpu) -> Parts {
    let hertz = f64::from(gpu.clock_mhz).max(1.0) * 1e6;
    let (resident, spilled) = resident(block, gpu);
    let processors = gpu.processors.max(1) as f64;
    let busy = |blocks: f64| Busy::new(block, gpu, blocks, spilled);
    // Whole waves, and what is left for the last.
    let waves = (block.blocks / (processors * resident)).floor();
    let left = block.blocks - waves * processors * resident;
    let in_last = (left / processors).ceil();
    let full = busy(resident);
    let last = if in_last > 0.0 { busy(in_last) } else { Busy::default() };
    let sum = |part: &dyn Fn(&Busy) -> f64| (waves * part(&full) + part(&last)) / hertz * block.launches;
    let memory = block.bytes / (gpu.bandwidth_mb as f64 * 1e6 * REACHED) * block.launches;
    let cycles = sum(&Busy::longest);
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
        latency: sum(&|busy| busy.latency),
    }
}

/// Blocks that run on a multiprocessor at a time, and the share of a thread's registers that it has
/// no room for.
fn resident(block: &Block, gpu: &Gpu) -> (f64, f64) {
    // Room is made for all threads of a block together.
    let wanted = block.registers / block.threads.max(1.0) + OTHER_REGISTERS;
    // A block must fit: many threads have few registers each.
    let most = (gpu.thread_registers as f64).min(gpu.processor_registers as f64 / block.threads.max(1.0));
    let registers = wanted.min(most).max(1.0);
    let by_threads = gpu.processor_threads as f64 / block.threads.max(1.0);
    let by_registers = gpu.processor_registers as f64 / (registers * block.threads.max(1.0));
    let by_shared = gpu.processor_shared as f64 / (block.shared_bytes + OWN_SHARED);
    let resident = by_threads.min(by_registers).min(by_shared).min(MOST_BLOCKS).floor().max(1.0);
    (resident, ((wanted - most) / wanted).max(0.0))
}

/// The cycles of a multiprocessor that works on some blocks.
#[derive(Clone, Copy, Debug, Default)]
struct Busy {
    compute: f64,
    issue: f64,
    shared: f64,
    sectors: f64,
    latency: f64,
}

impl Busy {
    fn new(block: &Block, gpu: &Gpu, blocks: f64, spilled: f64) -> Busy {
        let lanes = (gpu.lanes.max(1) as f64 / gpu.warp.max(1) as f64).max(1.0);
        let slower = 1.0 + SPILLED * spilled;
        // What was asked for long before is there, as far as there was enough to do meanwhile.
        let unforeseen = (block.waits - block.foreseen).max(0.0) / 2.0;
        let waiting = unforeseen * MEMORY + block.waits * BARRIER + START * MEMORY;
        Busy {
            compute: blocks * block.arithmetic * slower / lanes,
            issue: blocks * block.instructions * slower / SCHEDULERS,
            shared: blocks * block.turns * TURN,
            sectors: blocks * block.sectors * SECTOR / CACHE_BYTES,
            latency: waiting + block.chain * slower * DEPENDENT,
        }
    }

    /// The parts overlap, but not wholly.
    fn longest(&self) -> f64 {
        let all = [self.compute, self.issue, self.shared, self.sectors, self.latency];
        let most = all.iter().copied().fold(0.0, f64::max);
        most + IN_TURN * (all.iter().sum::<f64>() - most)
    }
}
