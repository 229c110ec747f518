//! Copies bytes between host and GPU through pinned memory, which the GPU reads and writes by
//! itself.
//!
//! The operating system may move the caller's memory, so the GPU cannot access it. A large copy
//! goes through two pinned blocks in turn: while the GPU copies one block, the host fills or
//! empties the other.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, PinnedHostSlice, result};

use super::failure::driver_error;
use crate::gpu::error::GpuError;

/// The size of a block in bytes: large enough that the cost of starting a copy does not matter.
const BLOCK_BYTES: usize = 4 << 20;

/// The blocks that copies go through.
#[derive(Debug)]
pub(super) struct Staging {
    blocks: [Block; 2],
}

#[derive(Debug)]
struct Block {
    pinned: PinnedHostSlice<u8>,
    /// The event after the last copy from or to this block.
    copied: CudaEvent,
}

impl Staging {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Staging, GpuError> {
        let block = || Block::new(context).map_err(driver_error("allocating memory for copies"));
        Ok(Staging { blocks: [block()?, block()?] })
    }

    /// Copies to the device, behind all queued operations. The GPU may not have finished when this
    /// returns.
    ///
    /// # Safety
    ///
    /// The memory at `to` has at least as many bytes as `from`.
    pub(super) unsafe fn upload(
        &mut self,
        stream: &CudaStream,
        from: &[u8],
        to: CUdeviceptr,
    ) -> Result<(), DriverError> {
        for (at, part) in from.chunks(BLOCK_BYTES).enumerate() {
            let block = &mut self.blocks[at % 2];
            block.bytes(part.len())?.copy_from_slice(part);
            // SAFETY: this is a part of the memory that the caller guarantees; `copied` keeps the
            // block unchanged until the GPU has read it.
            unsafe { block.send(stream, part.len(), to + (at * BLOCK_BYTES) as u64)? };
        }
        Ok(())
    }

    /// Copies from the device, when all queued operations are done.
    ///
    /// # Safety
    ///
    /// The memory at `from` has at least as many bytes as `to`.
    pub(super) unsafe fn download(
        &mut self,
        stream: &CudaStream,
        from: CUdeviceptr,
        to: &mut [u8],
    ) -> Result<(), DriverError> {
        let [this, other] = &mut self.blocks;
        let (mut this, mut other) = (this, other);
        let mut pending: Option<&mut [u8]> = None;
        for (at, part) in to.chunks_mut(BLOCK_BYTES).enumerate() {
            // SAFETY: this is a part of the memory that the caller guarantees.
            unsafe { this.receive(stream, part.len(), from + (at * BLOCK_BYTES) as u64)? };
            if let Some(part) = pending.replace(part) {
                part.copy_from_slice(other.bytes(part.len())?);
            }
            std::mem::swap(&mut this, &mut other);
        }
        if let Some(part) = pending {
            part.copy_from_slice(other.bytes(part.len())?);
        }
        Ok(())
    }
}

impl Block {
    fn new(context: &Arc<CudaContext>) -> Result<Block, DriverError> {
        // No flags: write-combined memory, which is the default, is very slow to read.
        // SAFETY: the memory is filled below, before anything reads it.
        let mut pinned = unsafe { context.alloc_pinned_with_flags::<u8>(BLOCK_BYTES, 0)? };
        // SAFETY: the block has this many bytes, and is not yet shared.
        unsafe { pinned.as_mut_ptr()?.write_bytes(0, BLOCK_BYTES) };
        Ok(Block { pinned, copied: context.new_event(None)? })
    }

    /// The first bytes of the block, once the GPU does not use them any more.
    fn bytes(&mut self, bytes: usize) -> Result<&mut [u8], DriverError> {
        self.copied.synchronize()?;
        Ok(&mut self.pinned.as_mut_slice()?[..bytes])
    }

    /// Queues a copy to the device.
    ///
    /// # Safety
    ///
    /// The memory at `to` has at least `bytes` bytes.
    unsafe fn send(&mut self, stream: &CudaStream, bytes: usize, to: CUdeviceptr) -> Result<(), DriverError> {
        let from = &self.pinned.as_slice()?[..bytes];
        // SAFETY: guaranteed by the caller; the block stays unchanged until `copied`.
        unsafe { result::memcpy_htod_async(to, from, stream.cu_stream())? };
        self.copied.record(stream)
    }

    /// Queues a copy from the device.
    ///
    /// # Safety
    ///
    /// The memory at `from` has at least `bytes` bytes.
    unsafe fn receive(
        &mut self,
        stream: &CudaStream,
        bytes: usize,
        from: CUdeviceptr,
    ) -> Result<(), DriverError> {
        let to = self.bytes(bytes)?;
        // SAFETY: guaranteed by the caller; nobody uses the block until `copied`.
        unsafe { result::memcpy_dtoh_async(to, from, stream.cu_stream())? };
        self.copied.record(stream)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // The memory must not be freed while the GPU copies. A GPU that failed does not copy any
        // more.
        let _ = self.copied.synchronize();
    }
}
