//! A tensor in a device's memory.

use tilewright_ir::DType;

use super::device::Device;
use super::error::GpuError;
use super::memory::Memory;
use crate::buffer::Buffer;
use crate::kernel::RunError;
use crate::signature::check_layout;
use crate::view::{Layout, View, ViewMut};

/// A tensor that owns memory of a device. It is row-major without gaps.
///
/// Copies are queued behind all that the device was asked for before, so one into a tensor that a kernel still reads, or
/// out of one that a kernel still writes, is in order.
#[derive(Debug)]
pub struct DeviceBuffer {
    layout: Layout,
    memory: Memory,
}

impl DeviceBuffer {
    /// A tensor of zeros.
    pub fn zeros(device: &Device, dtype: DType, shape: &[usize]) -> Result<DeviceBuffer, RunError> {
        let layout = Layout::contiguous(dtype, shape)?;
        let memory = Memory::zeroed(device, layout.bytes())?;
        Ok(DeviceBuffer { layout, memory })
    }

    /// A copy of a tensor of the host, with any strides.
    pub fn from_view(device: &Device, view: &View<'_>) -> Result<DeviceBuffer, RunError> {
        let layout = Layout::contiguous(view.layout().dtype(), view.layout().shape())?;
        let memory = Memory::new(device, layout.bytes())?;
        let mut buffer = DeviceBuffer { layout, memory };
        buffer.upload(view)?;
        Ok(buffer)
    }

    /// The device it lies on.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// Its type and shape.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Replaces every element by those of a tensor of the host, with any strides.
    pub fn upload(&mut self, view: &View<'_>) -> Result<(), RunError> {
        self.check(view.layout())?;
        match view.contiguous_bytes() {
            Some(bytes) => self.memory.upload(bytes)?,
            None => self.memory.upload(Buffer::pack(view)?.bytes())?,
        }
        Ok(())
    }

    /// Replaces every element by those of another tensor of the same device. Nothing is waited for.
    pub fn copy_from(&mut self, from: &DeviceBuffer) -> Result<(), RunError> {
        self.check(&from.layout)?;
        if from.device() != self.device() {
            return Err(GpuError::OtherDevice("what is copied".to_owned()).into());
        }
        Ok(self.memory.copy_from(&from.memory)?)
    }

    /// Copies every element out to a tensor of the host, with any strides.
    pub fn download(&self, target: &mut ViewMut<'_>) -> Result<(), RunError> {
        self.check(target.layout())?;
        if let Some(bytes) = target.contiguous_bytes_mut() {
            return Ok(self.memory.download(bytes)?);
        }
        let mut packed = Buffer::zeros(self.layout.dtype(), self.layout.shape())?;
        let mut whole = packed.view_mut();
        let bytes = whole.contiguous_bytes_mut().expect("a buffer has no gaps");
        self.memory.download(bytes)?;
        packed.unpack(target).expect("the copy was made in the shape of the target");
        Ok(())
    }

    pub(super) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(super) fn into_memory(self) -> Memory {
        self.memory
    }

    fn check(&self, found: &Layout) -> Result<(), RunError> {
        check_layout("what is copied", &self.layout, found)
    }
}
