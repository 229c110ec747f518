//! Bytes of a device.

use super::backend::Address;
use super::device::Device;
use super::error::GpuError;

/// A block of a device's memory, which goes with this if it is ours.
#[derive(Debug)]
pub(super) struct Memory {
    device: Device,
    address: Address,
    bytes: usize,
    is_ours: bool,
}

impl Memory {
    /// A block with undefined content.
    pub(super) fn new(device: &Device, bytes: usize) -> Result<Memory, GpuError> {
        // Some drivers promise more than there is, and fail at the first use.
        if bytes as u64 > device.gpu().memory {
            return Err(GpuError::OutOfMemory { bytes });
        }
        let address = device.backend().allocate(bytes.max(1))?;
        Ok(Memory { device: device.clone(), address, bytes, is_ours: true })
    }

    /// A block that somebody else owns.
    ///
    /// # Safety
    ///
    /// There are so many bytes at the address on this device, for as long as this lives and anything that uses it is queued.
    pub(super) unsafe fn foreign(device: &Device, address: Address, bytes: usize) -> Memory {
        Memory { device: device.clone(), address, bytes, is_ours: false }
    }

    /// A block of zeros.
    pub(super) fn zeroed(device: &Device, bytes: usize) -> Result<Memory, GpuError> {
        let memory = Memory::new(device, bytes)?;
        memory.clear()?;
        Ok(memory)
    }

    /// The device it lies on.
    pub(super) fn device(&self) -> &Device {
        &self.device
    }

    /// Where it is.
    pub(super) fn address(&self) -> Address {
        self.address
    }

    /// Fills it with zeros.
    pub(super) fn clear(&self) -> Result<(), GpuError> {
        if self.bytes == 0 {
            return Ok(());
        }
        // SAFETY: the block has this many bytes.
        unsafe { self.device.backend().clear(self.address, self.bytes) }
    }

    /// Fills it.
    ///
    /// # Panics
    ///
    /// If there are not as many bytes as it has.
    pub(super) fn upload(&self, from: &[u8]) -> Result<(), GpuError> {
        assert_eq!(from.len(), self.bytes, "a block is copied as a whole");
        // SAFETY: the block has as many bytes.
        unsafe { self.device.backend().upload(from, self.address, 0) }
    }

    /// Replaces a part of it, which begins so many bytes behind its begin.
    ///
    /// # Panics
    ///
    /// If it ends before the part does.
    pub(super) fn upload_part(&self, behind: usize, from: &[u8]) -> Result<(), GpuError> {
        let end = behind.checked_add(from.len());
        assert!(end.is_some_and(|end| end <= self.bytes), "a part is inside of its block");
        // SAFETY: just checked.
        unsafe { self.device.backend().upload(from, self.address, behind) }
    }

    /// Fills it with what another block of the same device holds.
    ///
    /// # Panics
    ///
    /// If they do not have as many bytes.
    pub(super) fn copy_from(&self, from: &Memory) -> Result<(), GpuError> {
        assert_eq!(from.bytes, self.bytes, "a block is copied as a whole");
        if self.bytes == 0 || self.address == from.address {
            return Ok(());
        }
        // SAFETY: both have this many bytes, and they are two.
        unsafe { self.device.backend().copy(from.address, self.address, self.bytes) }
    }

    /// Copies all of it.
    ///
    /// # Panics
    ///
    /// If there is not room for as many bytes as it has.
    pub(super) fn download(&self, to: &mut [u8]) -> Result<(), GpuError> {
        assert_eq!(to.len(), self.bytes, "a block is copied as a whole");
        // SAFETY: the block has as many bytes.
        unsafe { self.device.backend().download(self.address, to) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.is_ours {
            // SAFETY: the address is from `allocate`, and this was its only owner.
            unsafe { self.device.backend().free(self.address) };
        }
    }
}
