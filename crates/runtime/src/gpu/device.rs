//! Lists the devices of this machine ([`DeviceInfo`]), and opens one of them ([`Device`]).

use std::fmt;
use std::sync::Arc;

use tilewright_target::{Gpu, GpuApi, TargetName};

use super::backend::{Backend, ForeignStreams, Queue};
use super::error::GpuError;
use super::{cuda, opencl};

/// A device of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// The name on the command line: `cuda:0`, `opencl:1`.
    pub name: TargetName,
    /// The number among the devices of the same API.
    pub ordinal: usize,
    /// The properties of the device.
    pub gpu: Gpu,
}

/// All devices of this machine, those of CUDA first. A machine without a driver has none.
pub fn devices() -> Vec<DeviceInfo> {
    [GpuApi::Cuda, GpuApi::OpenCl].into_iter().flat_map(|api| list(api).unwrap_or_default()).collect()
}

impl DeviceInfo {
    /// Finds a device by its API and number, without opening it.
    pub fn find(api: GpuApi, ordinal: usize) -> Result<DeviceInfo, GpuError> {
        let mut devices = list(api)?;
        match ordinal < devices.len() {
            true => Ok(devices.swap_remove(ordinal)),
            false => Err(GpuError::NoDevice { api, ordinal, devices: devices.len() }),
        }
    }
}

/// The devices of one API.
fn list(api: GpuApi) -> Result<Vec<DeviceInfo>, GpuError> {
    let gpus = match api {
        GpuApi::Cuda => cuda::gpus()?,
        GpuApi::OpenCl => opencl::gpus()?,
    };
    let info = |(ordinal, gpu)| DeviceInfo { name: TargetName::Gpu(api, ordinal), ordinal, gpu };
    Ok(gpus.into_iter().enumerate().map(info).collect())
}

/// An open device. Clones share one opening; another opening has its own queue, and its own memory.
#[derive(Clone)]
pub struct Device {
    info: Arc<DeviceInfo>,
    backend: Arc<dyn Backend>,
}

impl Device {
    /// Opens a device by its API and number.
    pub fn open(api: GpuApi, ordinal: usize) -> Result<Device, GpuError> {
        let info = DeviceInfo::find(api, ordinal)?;
        let backend: Arc<dyn Backend> = match api {
            GpuApi::Cuda => Arc::new(cuda::Cuda::open(ordinal, info.gpu.architecture)?),
            GpuApi::OpenCl => Arc::new(opencl::OpenCl::open(ordinal)?),
        };
        Ok(Device { info: Arc::new(info), backend })
    }

    /// The name on the command line.
    pub fn name(&self) -> TargetName {
        self.info.name
    }

    /// The properties of the device.
    pub fn gpu(&self) -> &Gpu {
        &self.info.gpu
    }

    /// Waits until all queued operations are done. Reports the failure of an operation that was
    /// only queued.
    pub fn wait(&self) -> Result<(), GpuError> {
        self.backend.wait()
    }

    /// Makes all operations that are queued on the CUDA stream `stream` from now on wait for all
    /// operations that were queued on `other`; 0 is the default stream, which all libraries share.
    ///
    /// # Safety
    ///
    /// Both are streams of this device.
    pub unsafe fn make_stream_wait(&self, stream: u64, other: u64) -> Result<(), GpuError> {
        let mut event = self.streams()?.new_event()?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            event.record_on(Queue::Foreign(other))?;
            event.make_queue_wait(Queue::Foreign(stream))
        }
    }

    /// Waits until all operations that were queued on a CUDA stream are done.
    ///
    /// # Safety
    ///
    /// `stream` is a stream of this device.
    pub unsafe fn wait_for_stream(&self, stream: u64) -> Result<(), GpuError> {
        // SAFETY: guaranteed by the caller.
        unsafe { self.streams()?.wait_for_stream(stream) }
    }

    pub(super) fn streams(&self) -> Result<&dyn ForeignStreams, GpuError> {
        self.backend.streams().ok_or_else(|| GpuError::ForeignUnsupported(self.name()))
    }

    pub(super) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }
}

/// Two devices are equal if they are the same opening.
impl PartialEq for Device {
    fn eq(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.backend, &other.backend)
    }
}

impl Eq for Device {}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Device").field(&format_args!("{}", self.info.name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_numbered_and_described() {
        let devices = devices();
        for (at, device) in devices.iter().enumerate() {
            let same = |other: &&DeviceInfo| other.gpu.api == device.gpu.api;
            assert_eq!(device.ordinal, devices[..at].iter().filter(same).count());
            assert_eq!(device.name, TargetName::Gpu(device.gpu.api, device.ordinal));
            let gpu = &device.gpu;
            assert!(
                gpu.processors > 0 && gpu.block_threads > 0 && gpu.memory > 0 && gpu.cache > 0,
                "{gpu:?}"
            );
            assert!(gpu.warp > 0 && gpu.block_shared > 0 && gpu.lanes > 0 && gpu.clock_mhz > 0, "{gpu:?}");
        }
    }

    #[test]
    fn a_device_that_is_not_there_is_an_error() {
        for api in [GpuApi::Cuda, GpuApi::OpenCl] {
            let error = Device::open(api, 1000).unwrap_err();
            match list(api) {
                Ok(devices) => {
                    let devices = devices.len();
                    assert_eq!(error, GpuError::NoDevice { api, ordinal: 1000, devices });
                }
                Err(missing) => assert_eq!(error, missing),
            }
        }
    }
}
