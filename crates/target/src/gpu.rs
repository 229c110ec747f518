//! Describes a GPU as data ([`Gpu`]): its thread and memory limits and its speeds. Also has the
//! descriptions to compile for where no GPU is present.

use serde::{Deserialize, Serialize};

use crate::capabilities::{Capabilities, Grid, Registers};
use crate::hardware::Hardware;

/// The largest number of bytes that a thread loads or stores at once.
const ACCESS_BYTES: usize = 16;
/// The first CUDA architecture that copies to shared memory without going through registers.
const AMPERE: u32 = 80;

/// The programming interface of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GpuApi {
    /// NVIDIA's CUDA.
    Cuda,
    /// OpenCL, the open standard, which CPUs also implement.
    OpenCl,
}

impl GpuApi {
    /// Every API.
    pub const ALL: [GpuApi; 2] = [GpuApi::Cuda, GpuApi::OpenCl];

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
    /// The interface that programs the GPU.
    pub api: GpuApi,
    /// The manufacturer's name for the GPU.
    pub name: String,
    /// The version of the instruction set, such as 90 for 9.0; 0 for devices without one.
    pub architecture: u32,
    /// The number of multiprocessors. Each thread block runs on one multiprocessor.
    pub processors: usize,
    /// The number of threads of a warp, which run in step.
    pub warp: usize,
    /// The maximum number of threads of a block.
    pub block_threads: usize,
    /// The maximum number of threads of a block along each axis.
    pub block_shape: [usize; 3],
    /// The maximum number of blocks of a grid along each axis.
    pub grid: [usize; 3],
    /// The maximum number of threads resident on a multiprocessor.
    pub processor_threads: usize,
    /// The maximum shared memory of a block in bytes.
    pub block_shared: usize,
    /// The shared memory of a multiprocessor in bytes.
    pub processor_shared: usize,
    /// The maximum number of 32-bit registers of a thread.
    pub thread_registers: usize,
    /// The number of 32-bit registers of a multiprocessor.
    pub processor_registers: usize,
    /// The size in bytes of the cache that all multiprocessors share.
    pub cache: usize,
    /// The size of the device memory in bytes.
    pub memory: u64,
    /// The bandwidth of the device memory in MB per second.
    pub bandwidth_mb: u64,
    /// The clock rate in MHz.
    pub clock_mhz: u32,
    /// The number of single-precision multiply-adds that a multiprocessor starts per cycle.
    pub lanes: usize,
}

impl Gpu {
    /// A typical device of an API, to compile for where none is present.
    pub fn typical(api: GpuApi) -> Gpu {
        match api {
            GpuApi::Cuda => Gpu::h200(),
            GpuApi::OpenCl => Gpu::opencl(),
        }
    }

    /// The description of an NVIDIA H200, for compiling where there is no such GPU.
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

    /// The description of a small OpenCL device, for compiling where no device is known.
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

    /// Whether threads can copy to shared memory asynchronously.
    pub fn has_asynchronous_copies(&self) -> bool {
        self.api == GpuApi::Cuda && self.architecture >= AMPERE
    }

    /// The peak number of single-precision floating-point operations per second. A multiply-add
    /// counts as two operations.
    pub fn peak_flops(&self) -> f64 {
        2.0 * (self.lanes * self.processors) as f64 * f64::from(self.clock_mhz) * 1e6
    }
}

impl Hardware for Gpu {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            kind: "GPU",
            pool_threads: None,
            grid: Some(Grid {
                blocks: self.grid,
                block_shape: self.block_shape,
                block_threads: self.block_threads,
            }),
            shared_bytes: Some(self.block_shared),
            registers: Registers::Thread { count: self.thread_registers },
            // A vector loop of a thread is one access to several elements. The thread computes them
            // one after the other.
            vector_bytes: ACCESS_BYTES,
            // CUDA has no atomic operations on fewer bytes, and OpenCL only optional ones on more.
            atomic_bytes: &[4],
            fixed_trip_counts: true,
            predicated: true,
        }
    }

    fn interface(&self) -> &'static str {
        self.api.name()
    }

    fn model(&self) -> String {
        self.name.clone()
    }

    fn instruction_set(&self) -> String {
        match self.architecture {
            0 => String::new(),
            version => format!("sm_{version}"),
        }
    }

    fn memory_sizes(&self) -> Vec<usize> {
        vec![self.processor_shared, self.cache]
    }

    /// The cache of a device is emptied before every measured call.
    fn warm_cache_sizes(&self) -> &[usize] {
        &[]
    }

    fn peak_rates(&self) -> Option<(f64, f64)> {
        Some((self.peak_flops(), self.bandwidth_mb as f64 * 1e6))
    }

    fn parallel_units(&self) -> (usize, &'static str) {
        (self.processors, "multiprocessors")
    }
}
