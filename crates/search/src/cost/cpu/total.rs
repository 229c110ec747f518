//! Converts the instructions and the transfers between caches that were counted for a loop nest
//! into an [`Estimate`] of its time.

use tilewright_target::Cpu;

use super::frames::{Frame, FrameKind};
use super::instructions::Counts;
use super::{Estimate, Machine, Parts, Walk};

/// The trip count from which the exit branch of a loop is always mispredicted. The probability is
/// proportional for shorter loops.
const MISPREDICTED_TRIPS: f64 = 32.0;
/// The cycles for counting and branching in an iteration, and for starting a loop.
const ITERATION_CYCLES: f64 = 0.5;
const LOOP_START_CYCLES: f64 = 3.0;

/// The cycles of the instructions of one or several loops.
#[derive(Clone, Copy, Default)]
struct CoreCycles {
    /// The cycles with all data in the first-level cache.
    cycles: f64,
    /// The cycles of the loads and stores alone.
    memory: f64,
    spills: f64,
    loops: f64,
}

impl Walk<'_> {
    /// Computes the time of the recorded work.
    pub(super) fn result(mut self, machine: &Machine) -> Estimate {
        self.counter.counts.resize(self.frames.all.len(), Counts::default());
        let units = self.core_cycles(machine);
        let moving = self.transfers(machine);
        let cycle = 1.0 / machine.hertz;
        let busy = |(core, levels): (&CoreCycles, &Vec<f64>)| {
            cycle * f64::max(core.cycles + core.loops, core.memory + levels.iter().sum::<f64>())
        };
        let busy: Vec<f64> = units.iter().zip(&moving).map(busy).collect();
        let threads = self.thread_seconds(machine);
        let sum = |of: fn(&CoreCycles) -> f64| cycle * units.iter().map(of).sum::<f64>();
        let level = |at: usize| cycle * moving.iter().map(|levels| levels[at]).sum::<f64>();
        let parts = Parts {
            compute: sum(|core| core.cycles),
            memory_instructions: sum(|core| core.memory),
            transfers: (0..self.target.caches.len()).map(level).collect(),
            loops: sum(|core| core.loops),
            threads: threads.iter().sum(),
            spills: sum(|core| core.spills),
            masked_lanes: self.masked_lanes(),
            idle_cores: if self.idle.0 > 0.0 { (1.0 - self.idle.1 / self.idle.0).max(0.0) } else { 0.0 },
        };
        let seconds = (busy.iter().sum::<f64>() + parts.threads).max(cycle);
        // Unit 0 has what is computed once, before all loops.
        let roots = busy.iter().zip(&threads).skip(1).map(|(busy, threads)| busy + threads).collect();
        let of_root = |at: usize| Parts {
            compute: cycle * units[at].cycles,
            memory_instructions: cycle * units[at].memory,
            transfers: moving[at].iter().map(|cycles| cycle * cycles).collect(),
            loops: cycle * units[at].loops,
            threads: threads[at],
            spills: cycle * units[at].spills,
            ..parts
        };
        let root_parts = (1..units.len()).map(of_root).collect();
        Estimate { seconds, roots, root_parts, parts }
    }

    /// The time to wake threads and to hand out pieces of work, for every root-level statement.
    fn thread_seconds(&self, machine: &Machine) -> Vec<f64> {
        let seconds = |(starts, pieces): &(f64, f64)| match self.target.cores {
            0 | 1 => 0.0,
            _ => starts * machine.start_threads + pieces * machine.take_piece,
        };
        self.threads.iter().map(seconds).collect()
    }

    /// The instruction cycles of every root-level statement.
    fn core_cycles(&self, machine: &Machine) -> Vec<CoreCycles> {
        let mut units = vec![CoreCycles::default(); self.frames.root_statement + 1];
        for (frame, counts) in self.frames.all.iter().zip(&self.counter.counts) {
            let own = loop_cycles(counts, frame, self.target, machine);
            let unit = &mut units[frame.root_statement];
            unit.cycles += own.cycles;
            unit.memory += own.memory;
            unit.spills += own.spills;
            unit.loops += own.loops;
        }
        units
    }

    /// The cycles of line transfers into each cache, for every root-level statement.
    fn transfers(&self, machine: &Machine) -> Vec<Vec<f64>> {
        let levels = self.target.caches.len();
        let mut moving = self.traffic.bytes(&self.frames);
        for (level, bytes) in moving.iter_mut().flat_map(|bytes| bytes.iter_mut().enumerate()) {
            *bytes /= machine.bandwidth(level, level + 1 == levels, self.target.cores);
        }
        moving
    }

    fn masked_lanes(&self) -> f64 {
        let counts = self.counter.counts.iter();
        let (all, masked) = counts
            .fold((0.0, 0.0), |(all, masked), own| (all + own.vector + own.stores, masked + own.masked));
        if all > 0.0 { masked / all } else { 0.0 }
    }
}

/// The cycles of one loop: the busiest unit of the processor is the bottleneck.
fn loop_cycles(counts: &Counts, frame: &Frame, target: &Cpu, machine: &Machine) -> CoreCycles {
    let excess = (counts.live - (target.vectors.registers() as f64 - 1.0)).max(0.0);
    let written = excess.min(counts.live_written);
    let loads = counts.loads + frame.runs * excess;
    let stores = counts.stores + frame.runs * written;
    let all = counts.vector + 0.5 * loads + 2.0 * stores + counts.scalar;
    let memory = f64::max(loads / machine.load_ports, stores / machine.store_ports);
    let limits = [
        counts.vector / machine.vector_ports,
        memory,
        counts.scalar / machine.scalar_ports,
        all / machine.issue(all / frame.runs.max(f64::MIN_POSITIVE)),
        counts.divide,
        counts.chain,
    ];
    CoreCycles {
        cycles: limits.into_iter().fold(0.0, f64::max),
        memory,
        spills: frame.runs * (excess / machine.load_ports + written / machine.store_ports),
        loops: loop_overhead(frame, machine),
    }
}

/// The cycles for counting and branching in each iteration, and for the exit branch, which is
/// predicted only in short loops.
fn loop_overhead(frame: &Frame, machine: &Machine) -> f64 {
    if !matches!(frame.kind, FrameKind::Serial | FrameKind::Parallel) {
        return 0.0;
    }
    let reached = frame.runs / frame.trips.max(1.0);
    let surprise = machine.mispredict * (frame.trips / MISPREDICTED_TRIPS).min(1.0);
    ITERATION_CYCLES * frame.runs + reached * (LOOP_START_CYCLES + surprise)
}
