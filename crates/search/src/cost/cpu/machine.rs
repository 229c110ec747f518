//! What the speed of a kernel depends on, beyond what a schedule needs to know of the machine.

use tilewright_target::{Cpu, Vectors};

/// The speeds of a machine. Cycles are those of one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Cycles a second, with vectors in use.
    pub hertz: f64,
    /// Vector or floating-point instructions that begin in a cycle.
    pub vector_ports: f64,
    /// Cycles until the result of a multiply-add can be used.
    pub latency: f64,
    /// Loads in a cycle, of up to a whole vector.
    pub load_ports: f64,
    /// Stores in a cycle, of up to a whole vector.
    pub store_ports: f64,
    /// Integer instructions in a cycle.
    pub scalar_ports: f64,
    /// Instructions of any kind in a cycle.
    pub issue: f64,
    /// Instructions that wait for their operands while later ones go ahead.
    pub window: f64,
    /// Instructions that the processor keeps decoded; of longer code half as many begin in a cycle.
    pub decoded: f64,
    /// Instructions that fit the cache for code; of longer code a quarter as many begin in a cycle.
    pub code: f64,
    /// Cycles of a division of one vector.
    pub divide: f64,
    /// Cycles to gather or scatter one lane.
    pub gather: f64,
    /// Cycles of a jump that was not foreseen.
    pub mispredict: f64,
    /// Places of each set of the caches, first level first. The last counts for all that follow.
    pub ways: Vec<usize>,
    /// Bytes that come in a cycle to each level from the one behind it; the last is what memory
    /// gives to one core.
    pub bandwidth: Vec<f64>,
    /// Bytes in a cycle that memory, or a last level that cores share, gives to all cores together.
    pub shared_bandwidth: f64,
    /// Seconds from reaching a parallel loop until all threads run it, and for finding that all are
    /// done.
    pub start_threads: f64,
    /// Seconds for one thread to take the next piece of a parallel loop.
    pub take_piece: f64,
}

impl Machine {
    /// Usual numbers for processors with these vectors, for as many levels of cache as there are.
    pub fn typical(cpu: &Cpu) -> Machine {
        let width = cpu.vectors.bytes() as f64;
        let (hertz, divide) = match cpu.vectors {
            Vectors::Baseline => (3.0e9, 4.0),
            Vectors::Avx2 => (3.2e9, 5.0),
            Vectors::Avx512 => (2.8e9, 16.0),
        };
        // Each level behind the first gives about a third of the one before.
        let mut bandwidth: Vec<f64> = vec![0.75 * width.max(32.0)];
        while bandwidth.len() < cpu.caches.len().max(1) {
            bandwidth.push(bandwidth[bandwidth.len() - 1] / 3.0);
        }
        let last = bandwidth.len() - 1;
        bandwidth[last] = bandwidth[last].min(5.0);
        Machine {
            hertz,
            vector_ports: 2.0,
            latency: 4.0,
            load_ports: 2.0,
            store_ports: 1.0,
            scalar_ports: 4.0,
            issue: 5.0,
            window: 90.0,
            decoded: 2000.0,
            code: 5000.0,
            divide,
            gather: 0.6,
            mispredict: 15.0,
            ways: vec![12, 16],
            bandwidth,
            shared_bandwidth: 20.0,
            start_threads: 6e-6,
            take_piece: 0.3e-6,
        }
    }

    /// Instructions in a cycle of code of a length.
    pub(super) fn issue(&self, instructions: f64) -> f64 {
        match instructions {
            _ if instructions > self.code => self.issue / 4.0,
            _ if instructions > self.decoded => self.issue / 2.0,
            _ => self.issue,
        }
    }

    /// Places of each set at a level.
    pub(super) fn ways(&self, level: usize) -> usize {
        self.ways.get(level).or(self.ways.last()).copied().unwrap_or(8).max(1)
    }

    /// Bytes in a cycle that one of several busy cores gets at a level.
    pub(super) fn bandwidth(&self, level: usize, last: bool, cores: usize) -> f64 {
        let own = self.bandwidth.get(level).or(self.bandwidth.last()).copied().unwrap_or(8.0);
        if last { own.min(self.shared_bandwidth / cores.max(1) as f64) } else { own }
    }
}
