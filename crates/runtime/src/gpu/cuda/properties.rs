//! Lists the NVIDIA GPUs of this machine, and reads the properties of each ([`Gpu`]) from the
//! driver.

use cudarc::driver::sys::{CUdevice, CUdevice_attribute as Attribute};
use cudarc::driver::{DriverError, result};
use tilewright_target::{Gpu, GpuApi};

use super::failure::driver_error;
use super::load;
use crate::gpu::error::GpuError;

/// The maximum number of registers per thread: the instructions of every GPU that is still
/// supported can name this many.
const THREAD_REGISTERS: usize = 255;

/// Every GPU of this machine, in the driver's order.
pub(in crate::gpu) fn gpus() -> Result<Vec<Gpu>, GpuError> {
    load()?;
    let count = match result::device::get_count() {
        // The driver did not start, because it finds no device.
        Err(DriverError(cudarc::driver::sys::CUresult::CUDA_ERROR_NOT_INITIALIZED)) => 0,
        count => count.map_err(driver_error("counting devices"))?,
    };
    let gpu =
        |ordinal| result::device::get(ordinal).and_then(gpu).map_err(driver_error("describing a device"));
    (0..count).map(gpu).collect()
}

fn gpu(device: CUdevice) -> Result<Gpu, DriverError> {
    // SAFETY: the device comes from the driver.
    let memory = unsafe { result::device::total_mem(device) }?;
    let ask = |attribute| number(device, attribute);
    let architecture = 10 * ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?
        + ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
    Ok(Gpu {
        api: GpuApi::Cuda,
        name: result::device::get_name(device)?,
        architecture: architecture as u32,
        processors: ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        warp: ask(Attribute::CU_DEVICE_ATTRIBUTE_WARP_SIZE)?,
        block_threads: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
        block_shape: [
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)?,
        ],
        grid: [
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)?,
        ],
        processor_threads: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?,
        block_shared: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        processor_shared: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?,
        thread_registers: THREAD_REGISTERS,
        processor_registers: ask(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?,
        cache: ask(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?,
        memory: memory as u64,
        bandwidth_mb: bandwidth_mb(device)?,
        clock_mhz: (ask(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000) as u32,
        lanes: lanes(architecture),
    })
}

fn number(device: CUdevice, attribute: Attribute) -> Result<usize, DriverError> {
    // SAFETY: the device comes from the driver.
    let value = unsafe { result::device::get_attribute(device, attribute) }?;
    Ok(usize::try_from(value).unwrap_or(0))
}

/// The memory bandwidth in MB per second. The driver gives the memory clock in kHz, and the width
/// of the bus in bits; data moves at both edges of the clock.
fn bandwidth_mb(device: CUdevice) -> Result<u64, DriverError> {
    let khz = number(device, Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)? as u64;
    let bits = number(device, Attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)? as u64;
    Ok(2 * khz * (bits / 8) / 1000)
}

/// The single-precision multiply-adds that a multiprocessor starts per cycle. The driver does not
/// report them: the numbers are from the table of throughputs in the programming guide.
fn lanes(architecture: usize) -> usize {
    match architecture {
        60 | 70..=80 => 64,
        _ => 128,
    }
}
