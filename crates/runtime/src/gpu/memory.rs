//! Defines [`Memory`], a block of device memory that frees itself on drop, and copies bytes to it,
//! from it, and between blocks.

use super::backend::Address;
use super::device::Device;
use super::error::GpuError;

/// A block of device memory, which is freed on drop if the block owns it.
#[derive(Debug)]
pub(super) struct Memory {
    device: Device,
    address: Address,
    bytes: usize,
    is_owned: bool,
}

impl Memory {
    /// A block with undefined content.
    pub(super) fn new(device: &Device, bytes: usize) -> Result<Memory, GpuError> {
        // Some drivers promise more memory than there is, and fail at the first use.
        if bytes as u64 > device.gpu().memory {
            return Err(GpuError::OutOfMemory { bytes });
        }
        let address = device.backend().allocate(bytes.max(1))?;
        Ok(Memory { device: device.clone(), address, bytes, is_owned: true })
    }

    /// A block that another library owns.
    ///
    /// # Safety
    ///
    /// The device has this many bytes at the address, as long as this block lives and as long as an
    /// operation that uses it is queued.
    pub(super) unsafe fn foreign(device: &Device, address: Address, bytes: usize) -> Memory {
        Memory { device: device.clone(), address, bytes, is_owned: false }
    }

    /// A block of zeros.
    pub(super) fn zeroed(device: &Device, bytes: usize) -> Result<Memory, GpuError> {
        let memory = Memory::new(device, bytes)?;
        memory.clear()?;
        Ok(memory)
    }

    /// The device that the block is on.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// The address of the block.
    pub(super) fn address(&self) -> Address {
        self.address
    }

    /// Fills the block with zeros.
    pub(super) fn clear(&self) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the block has this many bytes.
        unsafe { self.device.backend().clear(self.address, self.bytes) }
    }

    /// Fills the block with bytes of the host.
    ///
    /// # Panics
    ///
    /// If `from` does not have as many bytes as the block.
    pub(super) fn upload(&self, from: &[u8]) -> Result<(), GpuError> {
        assert_eq!(from.len(), self.bytes, "a block is copied as a whole");
        // SAFETY: the block has as many bytes as `from`.
        unsafe { self.device.backend().upload(from, self.address, 0) }
    }

    /// Replaces a part of the block, which begins at byte `offset`.
    ///
    /// # Panics
    ///
    /// If the part ends behind the end of the block.
    pub(super) fn upload_part(&self, offset: usize, from: &[u8]) -> Result<(), GpuError> {
        let end = offset.checked_add(from.len());
        assert!(end.is_some_and(|end| end <= self.bytes), "a part is inside of its block");
        // SAFETY: just checked.
        unsafe { self.device.backend().upload(from, self.address, offset) }
    }

    /// Fills the block with the content of another block of the same device.
    ///
    /// # Panics
    ///
    /// If the blocks do not have the same size.
    pub(super) fn copy_from(&self, from: &Memory) -> Result<(), GpuError> {
        assert_eq!(from.bytes, self.bytes, "a block is copied as a whole");
        if self.bytes == 0 || self.address == from.address {
            return Ok(());
        }
        // SAFETY: both blocks have this many bytes, and their addresses differ.
        unsafe { self.device.backend().copy(from.address, self.address, self.bytes) }
    }

    /// Copies the whole block to the host.
    ///
    /// # Panics
    ///
    /// If `to` does not have as many bytes as the block.
    pub(super) fn download(&self, to: &mut [u8]) -> Result<(), GpuError> {
        assert_eq!(to.len(), self.bytes, "a block is copied as a whole");
        // SAFETY: the block has as many bytes as `to`.
        unsafe { self.device.backend().download(self.address, to) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_owned {
            // SAFETY: the address is from `allocate`, and this block was its only owner.
            unsafe { self.device.backend().free(self.address) };
        }
    }
}
