//! Copies by way of pinned memory, which the GPU reads and writes by itself.
//!
//! The caller's memory may be moved by the operating system, so the GPU cannot reach it. A large copy goes through two
//! pinned blocks in turn: while the GPU copies one, the host fills or empties the other.

use std::sync::Arc;

use cudarc::driver::sys::CUdeviceptr;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, PinnedHostSlice, result};

use super::failure::failed;
use crate::gpu::error::GpuError;

/// Bytes of a block: large enough that starting a copy costs nothing beside it.
const BLOCK: usize = 4 << 20;

/// The blocks that copies go through.
#[derive(Debug)]
pub(super) struct Staging {
    blocks: [Block; 2],
}

#[derive(Debug)]
struct Block {
    pinned: PinnedHostSlice<u8>,
    /// The last copy from or to this block.
    copied: CudaEvent,
}

impl Staging {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Staging, GpuError> {
        let block = || Block::new(context).map_err(failed("allocating memory for copies"));
        Ok(Staging { blocks: [block()?, block()?] })
    }

    /// Copies to the device, behind all that is queued. The GPU may not have finished when this returns.
    ///
    /// # Safety
    ///
    /// The memory has at least as many bytes.
    pub(super) unsafe fn upload(
        &mut self,
        stream: &CudaStream,
        from: &[u8],
        to: CUdeviceptr,
    ) -> Result<(), DriverError> {
        for (at, part) in from.chunks(BLOCK).enumerate() {
            let block = &mut self.blocks[at % 2];
            block.bytes(part.len())?.copy_from_slice(part);
            // SAFETY: part of what the caller promised; `copied` keeps the block as it is until the GPU has read it.
            unsafe { block.send(stream, part.len(), to + (at * BLOCK) as u64)? };
        }
        Ok(())
    }

    /// Copies from the device, when all that is queued is done.
    ///
    /// # Safety
    ///
    /// The memory has at least as many bytes.
    pub(super) unsafe fn download(
        &mut self,
        stream: &CudaStream,
        from: CUdeviceptr,
        to: &mut [u8],
    ) -> Result<(), DriverError> {
        let [this, other] = &mut self.blocks;
        let (mut this, mut other) = (this, other);
        let mut under_way: Option<&mut [u8]> = None;
        for (at, part) in to.chunks_mut(BLOCK).enumerate() {
            // SAFETY: part of what the caller promised.
            unsafe { this.receive(stream, part.len(), from + (at * BLOCK) as u64)? };
            if let Some(part) = under_way.replace(part) {
                part.copy_from_slice(other.bytes(part.len())?);
            }
            std::mem::swap(&mut this, &mut other);
        }
        if let Some(part) = under_way {
            part.copy_from_slice(other.bytes(part.len())?);
        }
        Ok(())
    }
}

impl Block {
    fn new(context: &Arc<CudaContext>) -> Result<Block, DriverError> {
        // Without flags: write-combined memory, which is the default, is very slow to read.
        // SAFETY: it is filled below, before anybody reads it.
        let mut pinned = unsafe { context.alloc_pinned_with_flags::<u8>(BLOCK, 0)? };
        // SAFETY: there are so many bytes, and they are ours alone.
        unsafe { pinned.as_mut_ptr()?.write_bytes(0, BLOCK) };
        Ok(Block { pinned, copied: context.new_event(None)? })
    }

    /// The first bytes of the block, once the GPU is done with them.
    fn bytes(&mut self, bytes: usize) -> Result<&mut [u8], DriverError> {
        self.copied.synchronize()?;
        Ok(&mut self.pinned.as_mut_slice()?[..bytes])
    }

    /// Queues a copy to the device.
    ///
    /// # Safety
    ///
    /// The memory has at least as many bytes.
    unsafe fn send(&mut self, stream: &CudaStream, bytes: usize, to: CUdeviceptr) -> Result<(), DriverError> {
        let from = &self.pinned.as_slice()?[..bytes];
        // SAFETY: the caller's promise; the block stays as it is until `copied`.
        unsafe { result::memcpy_htod_async(to, from, stream.cu_stream())? };
        self.copied.record(stream)
    }

    /// Queues a copy from the device.
    ///
    /// # Safety
    ///
    /// The memory has at least as many bytes.
    unsafe fn receive(
        &mut self,
        stream: &CudaStream,
        bytes: usize,
        from: CUdeviceptr,
    ) -> Result<(), DriverError> {
        let to = self.bytes(bytes)?;
        // SAFETY: the caller's promise; nobody uses the block until `copied`.
        unsafe { result::memcpy_dtoh_async(to, from, stream.cu_stream())? };
        self.copied.record(stream)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // The memory must not go while the GPU copies. If the GPU failed, it does not copy any more.
        let _ = self.copied.synchronize();
    }
}
