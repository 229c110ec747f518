//! Defines [`DeviceBuffer`], a tensor in a device's memory, and copies tensors between the host and
//! the device.

use std::sync::Arc;

use tilewright_ir::tensor::TensorError;
use tilewright_ir::{DType, Tensor};
use tilewright_target::GpuApi;

use super::backend::Address;
use super::device::Device;
use super::error::GpuError;
use super::memory::Memory;
use crate::buffer::Buffer;
use crate::kernel::RunError;
use crate::signature::check_layout;
use crate::view::{Layout, View, ViewMut};

/// Bytes that are made at a time: whole elements, and enough work for all cores.
const PART_BYTES: usize = 32 << 20;

/// The alignment of tensors that kernels take, in bytes: kernels read and write this many bytes at
/// a time.
pub const ALIGNMENT: u64 = 16;

/// A tensor in a device's memory, which it owns unless it was made by `from_foreign`. It is
/// row-major without gaps.
///
/// Copies are queued behind all operations that were queued on the device before. A copy into a
/// tensor that a kernel still reads, or out of a tensor that a kernel still writes, is therefore in
/// order.
///
/// Programs that the tensor is bound to as a constant input share its memory. A later write to the
/// tensor goes to new memory, so the programs do not see it.
#[derive(Debug)]
pub struct DeviceBuffer {
    layout: Layout,
    memory: Arc<Memory>,
}

impl DeviceBuffer {
    /// A tensor of zeros.
    pub fn zeros(device: &Device, dtype: DType, shape: &[usize]) -> Result<DeviceBuffer, RunError> {
        let layout = Layout::contiguous(dtype, shape)?;
        let memory = Arc::new(Memory::zeroed(device, layout.bytes())?);
        Ok(DeviceBuffer { layout, memory })
    }

    /// A tensor for a result. Its elements are undefined until something is written.
    pub fn undefined(device: &Device, dtype: DType, shape: &[usize]) -> Result<DeviceBuffer, RunError> {
        let layout = Layout::contiguous(dtype, shape)?;
        let memory = Arc::new(Memory::new(device, layout.bytes())?);
        Ok(DeviceBuffer { layout, memory })
    }

    /// A copy of a tensor of the IR.
    pub fn from_tensor(device: &Device, tensor: &Tensor) -> Result<DeviceBuffer, RunError> {
        if tensor.dtype() == DType::Bool {
            // In a `Tensor` any byte but 0 is true, and on the device only 1 is.
            return DeviceBuffer::from_view(device, &Buffer::from_tensor(tensor)?.view());
        }
        let layout = Layout::contiguous(tensor.dtype(), tensor.shape())?;
        let memory = Memory::new(device, layout.bytes())?;
        memory.upload(tensor.bytes())?;
        Ok(DeviceBuffer { layout, memory: Arc::new(memory) })
    }

    /// A tensor whose bytes `write_part` writes part by part, given the offset of each part.
    /// `write_part` writes the next part while the last one is on its way to the device. A tensor
    /// that is only needed on the device therefore takes little memory of the host.
    pub fn from_parts(
        device: &Device,
        dtype: DType,
        shape: &[usize],
        write_part: impl Fn(usize, &mut [u8]) + Sync,
    ) -> Result<DeviceBuffer, RunError> {
        let layout = Layout::contiguous(dtype, shape)?;
        let bytes = layout.bytes();
        let memory = Memory::new(device, bytes)?;
        let length = |begin: usize| PART_BYTES.min(bytes.saturating_sub(begin));
        let [mut ready, mut next] = [0, PART_BYTES].map(|begin| vec![0; length(begin)]);
        write_part(0, &mut ready);
        for begin in (0..bytes).step_by(PART_BYTES) {
            next.truncate(length(begin + PART_BYTES));
            std::thread::scope(|scope| {
                scope.spawn(|| write_part(begin + PART_BYTES, &mut next));
                memory.upload_part(begin, &ready)
            })?;
            std::mem::swap(&mut ready, &mut next);
        }
        Ok(DeviceBuffer { layout, memory: Arc::new(memory) })
    }

    /// A copy of a tensor of the host, with any strides.
    pub fn from_view(device: &Device, view: &View<'_>) -> Result<DeviceBuffer, RunError> {
        let layout = Layout::contiguous(view.layout().dtype(), view.layout().shape())?;
        let memory = Arc::new(Memory::new(device, layout.bytes())?);
        let mut buffer = DeviceBuffer { layout, memory };
        buffer.upload(view)?;
        Ok(buffer)
    }

    /// Memory of another library on a CUDA device, as a tensor that is row-major without gaps.
    ///
    /// # Safety
    ///
    /// At the address, the device has as many elements of this type as the shape says. Until all
    /// operations that were queued with this tensor are done, nobody else writes the elements.
    /// Nobody else reads them either, if the tensor is a result.
    pub unsafe fn from_foreign(
        device: &Device,
        dtype: DType,
        shape: &[usize],
        address: u64,
    ) -> Result<DeviceBuffer, RunError> {
        if device.gpu().api != GpuApi::Cuda {
            return Err(GpuError::ForeignUnsupported(device.name()).into());
        }
        if !address.is_multiple_of(ALIGNMENT) {
            return Err(GpuError::Misaligned(ALIGNMENT).into());
        }
        let layout = Layout::contiguous(dtype, shape)?;
        // SAFETY: guaranteed by the caller.
        let memory = unsafe { Memory::foreign(device, Address(address), layout.bytes()) };
        Ok(DeviceBuffer { layout, memory: Arc::new(memory) })
    }

    /// The location of the tensor: an address on a CUDA device, and a handle elsewhere. Valid as
    /// long as the tensor lives, but a write to a tensor whose memory is shared moves the tensor.
    pub fn address(&self) -> u64 {
        self.memory.address().0
    }

    /// The device that the tensor is on.
    pub fn device(&self) -> &Device {
        self.memory.device()
    }

    /// Its type and shape.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Replaces all elements by those of a tensor of the host, with any strides.
    pub fn upload(&mut self, view: &View<'_>) -> Result<(), RunError> {
        self.check(view.layout())?;
        self.copy_if_shared()?;
        match view.contiguous_bytes() {
            Some(bytes) => self.memory.upload(bytes)?,
            None => self.memory.upload(Buffer::pack(view)?.bytes())?,
        }
        Ok(())
    }

    /// Replaces all elements by those of another tensor of the same device, without waiting.
    pub fn copy_from(&mut self, from: &DeviceBuffer) -> Result<(), RunError> {
        self.check(&from.layout)?;
        if from.device() != self.device() {
            return Err(GpuError::WrongDevice("copied tensor".to_owned()).into());
        }
        self.copy_if_shared()?;
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

    /// Copies every element to a tensor of the IR.
    pub fn to_tensor(&self) -> Result<Tensor, RunError> {
        let mut bytes = Vec::new();
        let refused = |_| TensorError::OutOfMemory {
            dtype: self.layout.dtype(),
            shape: self.layout.shape().to_vec(),
            bytes: self.layout.bytes(),
        };
        bytes.try_reserve_exact(self.layout.bytes()).map_err(refused)?;
        bytes.resize(self.layout.bytes(), 0);
        self.memory.download(&mut bytes)?;
        Ok(Tensor::from_bytes(self.layout.dtype(), self.layout.shape(), bytes)?)
    }

    /// Checks whether programs that the tensor is bound to hold its memory as well.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.memory) > 1
    }

    /// The memory of the tensor, which bound programs may share.
    pub(super) fn memory(&self) -> &Arc<Memory> {
        &self.memory
    }

    /// Moves the tensor to a new copy of its memory for writing, if bound programs share the
    /// memory.
    pub(super) fn copy_if_shared(&mut self) -> Result<(), GpuError> {
        if self.is_shared() {
            let copy = Memory::new(self.device(), self.layout.bytes())?;
            copy.copy_from(&self.memory)?;
            self.memory = Arc::new(copy);
        }
        Ok(())
    }

    fn check(&self, found: &Layout) -> Result<(), RunError> {
        check_layout("copied tensor", &self.layout, found)
    }
}
