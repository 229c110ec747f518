//! Lists the OpenCL devices of this machine, and reads the properties of each ([`Gpu`]) from its
//! driver. Properties that no driver reports are those of [`Gpu::opencl`], a small device.

use std::sync::OnceLock;

use opencl3::device::{CL_DEVICE_TYPE_ALL, CL_DEVICE_TYPE_CPU, Device};
use opencl3::error_codes::{CL_PLATFORM_NOT_FOUND_KHR, ClError, DLOPEN_RUNTIME_LOAD_FAILED};
use opencl3::platform::get_platforms;
use tilewright_target::{Gpu, GpuApi};

use super::failure::driver_error;
use crate::gpu::error::GpuError;

/// Every device of this machine, platform after platform.
pub(in crate::gpu) fn gpus() -> Result<Vec<Gpu>, GpuError> {
    let gpu = |device| gpu(device).map_err(|error| driver_error("describing a device")(error.0));
    devices()?.iter().map(gpu).collect()
}

/// The device with this number.
pub(super) fn device(ordinal: usize) -> Result<Device, GpuError> {
    let devices = devices()?;
    let missing = GpuError::NoDevice { api: GpuApi::OpenCl, ordinal, devices: devices.len() };
    devices.get(ordinal).copied().ok_or(missing)
}

/// All devices. They are listed once: PoCL crashes if two threads make the first query at once.
fn devices() -> Result<&'static [Device], GpuError> {
    static DEVICES: OnceLock<Result<Vec<Device>, GpuError>> = OnceLock::new();
    DEVICES.get_or_init(list_devices).as_deref().map_err(GpuError::clone)
}

fn list_devices() -> Result<Vec<Device>, GpuError> {
    let platforms = match get_platforms() {
        Err(ClError(DLOPEN_RUNTIME_LOAD_FAILED)) => return Err(GpuError::NoDriver(GpuApi::OpenCl)),
        Err(ClError(CL_PLATFORM_NOT_FOUND_KHR)) => Vec::new(),
        platforms => platforms.map_err(|error| driver_error("listing platforms")(error.0))?,
    };
    // A platform without a device returns an error.
    let ids =
        platforms.iter().flat_map(|platform| platform.get_devices(CL_DEVICE_TYPE_ALL).unwrap_or_default());
    Ok(ids.map(Device::new).collect())
}

fn gpu(device: &Device) -> Result<Gpu, ClError> {
    let usual = Gpu::opencl();
    let block_threads = device.max_work_group_size()?;
    let block_shape = device.max_work_item_sizes()?;
    let block_shared = device.local_mem_size()? as usize;
    Ok(Gpu {
        name: device.name()?,
        processors: device.max_compute_units()? as usize,
        warp: warp(device).max(1),
        block_threads,
        block_shape: [0, 1, 2].map(|axis| block_shape.get(axis).copied().unwrap_or(1)),
        processor_threads: block_threads.max(usual.processor_threads),
        block_shared,
        processor_shared: block_shared.max(usual.processor_shared),
        cache: (device.global_mem_cache_size()? as usize).max(usual.cache),
        memory: device.global_mem_size()?,
        clock_mhz: device.max_clock_frequency()?.max(1),
        lanes: lanes(device)?,
        ..usual
    })
}

/// The number of threads that run in lockstep, which is the preferred multiple of the block size.
/// Older devices report it through extensions of their vendors, and CPUs through the width of their
/// vectors.
fn warp(device: &Device) -> usize {
    let reported = device.preferred_work_group_size_multiple();
    let reported = reported.or_else(|_| device.wrap_size_nv().map(|warp| warp as usize));
    let reported = reported.or_else(|_| device.wavefront_width_amd().map(|wave| wave as usize));
    reported.or_else(|_| device.native_vector_width_float().map(|lanes| lanes as usize)).unwrap_or(1)
}

/// The multiply-adds that start per cycle. On a CPU, these are the lanes of two vectors. Other
/// devices do not report the number, and most have 64, half of the 128 of most NVIDIA GPUs.
fn lanes(device: &Device) -> Result<usize, ClError> {
    const USUAL: usize = 64;
    if device.dev_type()? & CL_DEVICE_TYPE_CPU == 0 {
        return Ok(USUAL);
    }
    Ok(2 * device.native_vector_width_float()?.max(1) as usize)
}
