//! Defines [`Machine`]: the parameters of a CPU that the cost model needs in addition to [`Cpu`],
//! such as the clock frequency, latencies and bandwidths, with typical values for each kind of
//! vectors.

use tilewright_target::{Cpu, VectorInstructions};

/// The bytes per cycle that a core receives from a cache that it shares, and that such a cache
/// receives from memory for a core. A line from memory takes both times: 6.5 bytes per cycle.
const SHARED_CACHE_BANDWIDTH: f64 = 11.0;
const MEMORY_BANDWIDTH: f64 = 16.0;
/// The bytes of the last of several caches that a core can count on. Servers have hundreds of
/// megabytes for all their cores, some of which belong to other users.
const LAST_CACHE_PER_CORE: usize = 64 << 20;

/// The speeds of a machine. Cycles are those of one core.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The clock frequency in hertz when vectors are in use.
    pub hertz: f64,
    /// The number of vector or floating-point instructions that start in a cycle.
    pub vector_ports: f64,
    /// The latency of a multiply-add in cycles.
    pub latency: f64,
    /// The number of loads in a cycle, each of up to a whole vector.
    pub load_ports: f64,
    /// The number of stores in a cycle, each of up to a whole vector.
    pub store_ports: f64,
    /// The number of integer instructions in a cycle.
    pub scalar_ports: f64,
    /// The number of instructions of any kind in a cycle.
    pub issue: f64,
    /// The size of the out-of-order window: the number of instructions that can wait for operands
    /// while later ones execute.
    pub window: f64,
    /// The capacity of the cache of decoded instructions. Longer code issues at half the rate.
    pub decoded: f64,
    /// The capacity of the instruction cache, in instructions. Longer code issues at a quarter of
    /// the rate.
    pub code: f64,
    /// The cycles of a division of one vector.
    pub divide: f64,
    /// The cycles to gather or scatter one lane.
    pub gather: f64,
    /// The cycles of a mispredicted branch.
    pub mispredict: f64,
    /// The associativity of the caches, first level first. The last entry applies to all further
    /// levels.
    pub ways: Vec<usize>,
    /// The bytes per cycle that each level receives from the next one. The last entry is the memory
    /// bandwidth of one core.
    pub bandwidth: Vec<f64>,
    /// The bytes per cycle that memory, or a shared last-level cache, delivers to all cores
    /// together.
    pub shared_bandwidth: f64,
    /// The seconds from reaching a parallel loop until all threads run it, including the wait for
    /// all threads at the end.
    pub start_threads: f64,
    /// The seconds for one thread to take the next piece of a parallel loop.
    pub take_piece: f64,
}

impl Machine {
    /// Typical numbers for processors with these vectors, for as many cache levels as there are.
    pub fn typical(cpu: &Cpu) -> Machine {
        let width = cpu.vectors.bytes() as f64;
        let (hertz, divide) = match cpu.vectors {
            VectorInstructions::Baseline => (3.0e9, 4.0),
            VectorInstructions::Avx2 => (3.2e9, 5.0),
            VectorInstructions::Avx512 => (2.8e9, 16.0),
        };
        // A shared cache delivers as much to each core, whatever the width of vectors.
        let mut bandwidth: Vec<f64> = vec![0.75 * width.max(32.0)];
        bandwidth.resize(cpu.caches.len().max(1), SHARED_CACHE_BANDWIDTH);
        let last = bandwidth.len() - 1;
        bandwidth[last] = bandwidth[last].min(MEMORY_BANDWIDTH);
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

    /// The number of instructions per cycle for a loop body of this length.
    pub(super) fn issue(&self, instructions: f64) -> f64 {
        match instructions {
            _ if instructions > self.code => self.issue / 4.0,
            _ if instructions > self.decoded => self.issue / 2.0,
            _ => self.issue,
        }
    }

    /// The capacity of a cache level in bytes that the cores of a target can count on.
    pub(super) fn capacity(&self, cpu: &Cpu, level: usize) -> f64 {
        let own = cpu.caches[level].max(1);
        let is_shared = level > 0 && level + 1 == cpu.caches.len();
        let most = if is_shared { LAST_CACHE_PER_CORE * cpu.cores.max(1) } else { usize::MAX };
        own.min(most) as f64
    }

    /// The associativity of a cache level.
    pub(super) fn ways(&self, level: usize) -> usize {
        self.ways.get(level).or(self.ways.last()).copied().unwrap_or(8).max(1)
    }

    /// The bytes per cycle that each of several busy cores receives at a level.
    pub(super) fn bandwidth(&self, level: usize, last: bool, cores: usize) -> f64 {
        let own = self.bandwidth.get(level).or(self.bandwidth.last()).copied().unwrap_or(8.0);
        if last { own.min(self.shared_bandwidth / cores.max(1) as f64) } else { own }
    }
}
