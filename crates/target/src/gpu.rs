//! GPUs: how many threads run at once, what they share, and how fast memory is.

use serde::{Deserialize, Serialize};

/// How a GPU is programmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuApi {
    /// NVIDIA's.
    Cuda,
    /// The open one, which CPUs have too.
    OpenCl,
}

impl GpuApi {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            GpuApi::Cuda => "cuda",
            GpuApi::OpenCl => "opencl",
        }
    }
}

/// A GPU, or another device that runs blocks of threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// How it is programmed.
    pub api: GpuApi,
    /// What its maker calls it.
    pub name: String,
    /// The version of its instructions, such as 90 for 9.0; 0 where there is none.
    pub architecture: u32,
    /// Its multiprocessors: a block runs on one of them.
    pub processors: usize,
    /// Threads that run in step.
    pub warp: usize,
    /// Threads of a block at most.
    pub block_threads: usize,
    /// Threads of a block at most, along each axis.
    pub block_shape: [usize; 3],
    /// Blocks at most, along each axis.
    pub grid: [usize; 3],
    /// Threads that a multiprocessor has room for.
    pub processor_threads: usize,
    /// Bytes of shared memory of a block at most.
    pub block_shared: usize,
    /// Bytes of shared memory of a multiprocessor.
    pub processor_shared: usize,
    /// Registers of 32 bits of a thread at most.
    pub thread_registers: usize,
    /// Registers of 32 bits of a multiprocessor.
    pub processor_registers: usize,
    /// Bytes of the cache that all multiprocessors share.
    pub cache: usize,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes a second that memory gives, in MB.
    pub bandwidth_mb: u64,
    /// Cycles a second, in MHz.
    pub clock_mhz: u32,
    /// Multiply-adds of single precision that a multiprocessor begins in a cycle.
    pub lanes: usize,
}

impl Gpu {
    /// An NVIDIA H200, to compile for it where there is none.
    pub fn h200() -> Gpu {
        Gpu {
            api: GpuApi::Cuda,
            name: "NVIDIA H200".to_string(),
            architecture: 90,
            processors: 132,
            warp: 32,
            block_threads: 1024,
            block_shape: [1024, 1024, 64],
            grid: [(1 << 31) - 1, 65535, 65535],
            processor_threads: 2048,
            block_shared: 227 << 10,
            processor_shared: 228 << 10,
            thread_registers: 255,
            processor_registers: 65536,
            cache: 50 << 20,
            memory: 141 << 30,
            bandwidth_mb: 4_800_000,
            clock_mhz: 1980,
            lanes: 128,
        }
    }

    /// A small OpenCL device, to compile for one where none is known.
    pub fn opencl() -> Gpu {
        Gpu {
            api: GpuApi::OpenCl,
            name: "OpenCL device".to_string(),
            architecture: 0,
            processors: 8,
            warp: 16,
            block_threads: 256,
            block_shape: [256, 256, 64],
            grid: [(1 << 31) - 1; 3],
            processor_threads: 1024,
            block_shared: 32 << 10,
            processor_shared: 64 << 10,
            thread_registers: 128,
            processor_registers: 65536,
            cache: 1 << 20,
            memory: 1 << 30,
            bandwidth_mb: 20_000,
            clock_mhz: 1000,
            lanes: 16,
        }
    }

    /// Multiply-adds and additions of single precision in a second, at most.
    pub fn peak_flops(&self) -> f64 {
        2.0 * (self.lanes * self.processors) as f64 * f64::from(self.clock_mhz) * 1e6
    }
}
