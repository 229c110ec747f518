//! Checks kernel launches against the limits of a device: threads, blocks and shared memory.
//!
//! Limits of the device are checked before anything is compiled. The limit that a kernel's
//! registers impose is known and checked only after compiling.

use tilewright_codegen::c_family::Launch;
use tilewright_target::Gpu;

use super::backend::KernelResources;
use super::error::{GpuError, LaunchResource};

/// Checks a launch against the limits that hold for every kernel on the device.
pub(super) fn check_launch(launch: &Launch, gpu: &Gpu) -> Result<(), GpuError> {
    let limit = |what, wanted: usize, limit: usize| check_limit(launch, what, wanted, limit);
    limit(LaunchResource::BlockThreads, threads(launch), gpu.block_threads)?;
    for axis in 0..3 {
        limit(LaunchResource::AxisThreads, launch.block[axis] as usize, gpu.block_shape[axis])?;
        limit(LaunchResource::AxisBlocks, launch.grid[axis] as usize, gpu.grid[axis])?;
    }
    limit(LaunchResource::SharedBytes, launch.shared_bytes as usize, gpu.block_shared)
}

/// Checks a launch against the limit of its compiled kernel: many registers leave room for few
/// threads.
pub(super) fn check_threads(launch: &Launch, kernel: &KernelResources) -> Result<(), GpuError> {
    check_limit(launch, LaunchResource::ThreadsByRegisters, threads(launch), kernel.threads)
}

fn threads(launch: &Launch) -> usize {
    launch.block.iter().fold(1, |product, extent| product.saturating_mul(*extent as usize))
}

fn check_limit(launch: &Launch, what: LaunchResource, wanted: usize, limit: usize) -> Result<(), GpuError> {
    if wanted <= limit {
        return Ok(());
    }
    Err(GpuError::LimitExceeded { kernel: launch.kernel.clone(), what, wanted, limit })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_beyond_the_device_are_refused_with_the_limit() {
        let gpu = Gpu::h200();
        let launch = |grid, block, shared_bytes| Launch {
            kernel: "k".to_owned(),
            grid,
            block,
            shared_bytes,
            arguments: Vec::new(),
        };
        let check = |launch: &Launch| check_launch(launch, &gpu).map_err(|error| error.to_string());
        assert_eq!(check(&launch([1 << 20, 65535, 1], [32, 32, 1], 227 << 10)), Ok(()));
        let refused = |grid, block, shared| check(&launch(grid, block, shared)).unwrap_err();
        let says = refused([1; 3], [64, 32, 1], 0);
        assert_eq!(says, "kernel `k` needs 2048 threads per block, but the device allows 1024");
        assert!(refused([1; 3], [1, 1, 65], 0).contains("65 threads along one axis"));
        assert!(refused([1, 65536, 1], [1; 3], 0).contains("65536 blocks along one axis"));
        assert!(refused([1; 3], [1; 3], 228 << 10).contains("bytes of shared memory"));
        assert!(refused([1; 3], [u32::MAX; 3], 0).contains("threads per block"));
    }

    #[test]
    fn registers_limit_the_threads() {
        let launch = Launch {
            kernel: "k".to_owned(),
            grid: [1; 3],
            block: [16, 16, 2],
            shared_bytes: 0,
            arguments: Vec::new(),
        };
        let kernel = |threads| KernelResources {
            kernel: "k".to_owned(),
            registers: Some(255),
            local_bytes: 0,
            shared_bytes: 0,
            threads,
        };
        assert!(check_threads(&launch, &kernel(512)).is_ok());
        let says = check_threads(&launch, &kernel(256)).unwrap_err().to_string();
        assert_eq!(
            says,
            "kernel `k` needs 512 threads per block with its registers, but the device allows 256"
        );
    }
}
