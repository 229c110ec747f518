//! Allocates aligned blocks of memory.
//!
//! A [`Block`] starts at a cache line, so that vectors do not straddle lines. A block of 2 MB or
//! more starts at a huge page, is rounded up to whole huge pages, and asks the operating system for
//! them. Without huge pages, a matrix product that walks a large buffer by columns spends its time
//! in the page tables.

use std::alloc::{Layout, alloc, dealloc};
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use thiserror::Error;

/// The alignment of every block: the size of a cache line, and of the widest vector.
pub const CACHE_LINE: usize = 64;

/// The size of a huge page, and the alignment of blocks of at least this size.
pub const HUGE_PAGE: usize = 2 << 20;

/// The system could not allocate a block of this size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("out of memory: could not allocate {bytes} bytes")]
pub struct OutOfMemory {
    /// The requested size.
    pub bytes: usize,
}

/// An owned, aligned block of bytes that are always initialised.
#[derive(Debug)]
pub struct Block {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a block owns its memory and has no interior mutability, like a `Vec<u8>`.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

impl Block {
    /// A block of zeros.
    pub fn zeroed(bytes: usize) -> Result<Block, OutOfMemory> {
        // Not `alloc_zeroed`: for large alignments it writes zeros too, and would do so before the
        // advice to use huge pages.
        // SAFETY: the closure writes all of the block, which is `bytes` long and not yet shared.
        unsafe { Block::allocate_with(bytes, |start| start.write_bytes(0, bytes)) }
    }

    /// A block with a copy of these bytes.
    pub fn copy_of(from: &[u8]) -> Result<Block, OutOfMemory> {
        // SAFETY: the closure writes all of the block, which is as long as `from` and not yet
        // shared.
        unsafe {
            Block::allocate_with(from.len(), |start| {
                start.as_ptr().copy_from_nonoverlapping(from.as_ptr(), from.len())
            })
        }
    }

    /// A block whose bytes `fill` writes. `fill` returns the bytes as initialised, to show that it
    /// has written all of them.
    pub fn filled(
        bytes: usize,
        fill: impl FnOnce(&mut [MaybeUninit<u8>]) -> &mut [u8],
    ) -> Result<Block, OutOfMemory> {
        let write = |start: NonNull<u8>| {
            // SAFETY: the block is `bytes` long and not yet shared.
            let uninitialised = unsafe { std::slice::from_raw_parts_mut(start.as_ptr().cast(), bytes) };
            let written = fill(uninitialised);
            let all = written.len() == bytes && std::ptr::eq(written.as_ptr(), start.as_ptr());
            assert!(all, "`fill` must return the whole slice that it got");
        };
        // SAFETY: `fill` returned all bytes of the block as initialised, so it has written them.
        unsafe { Block::allocate_with(bytes, write) }
    }

    /// A block that `write` fills, unless `bytes` is 0.
    ///
    /// # Safety
    ///
    /// `write` writes all `bytes` bytes from the address that it gets.
    unsafe fn allocate_with(bytes: usize, write: impl FnOnce(NonNull<u8>)) -> Result<Block, OutOfMemory> {
        if bytes == 0 {
            return Ok(Block::empty());
        }
        let layout = layout(bytes).ok_or(OutOfMemory { bytes })?;
        // SAFETY: the layout is not of size zero.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(OutOfMemory { bytes })?;
        advise_huge_pages(start, layout);
        write(start);
        Ok(Block { start, bytes })
    }

    /// A block of 0 bytes, which takes no memory.
    pub const fn empty() -> Block {
        let start = std::ptr::without_provenance_mut(CACHE_LINE);
        Block { start: NonNull::new(start).expect("a cache line is not at 0"), bytes: 0 }
    }

    /// The number of bytes.
    pub fn len(&self) -> usize {
        self.bytes
    }

    /// Whether the block has no bytes.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// Makes the block at least this long. Growing loses the content.
    pub fn grow(&mut self, bytes: usize) -> Result<(), OutOfMemory> {
        if bytes > self.bytes {
            // Frees the old memory first, so that both blocks need not fit at once.
            *self = Block::empty();
            *self = Block::zeroed(bytes)?;
        }
        Ok(())
    }

    /// The address of the first byte; valid while the block lives.
    pub fn as_ptr(&self) -> *const u8 {
        self.start.as_ptr()
    }

    /// The address of the first byte, for writing; valid while the block lives.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// The bytes of the block.
    pub fn as_bytes(&self) -> &[u8] {
        // SAFETY: the block has `bytes` initialised bytes, borrowed with `self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    /// The bytes of the block, for writing.
    pub fn as_bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_bytes`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        if self.bytes > 0 {
            let layout = layout(self.bytes).expect("the block was allocated with this layout");
            // SAFETY: allocated in `written` with this same layout.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// The size and alignment to allocate; `None` if such a layout cannot exist.
fn layout(bytes: usize) -> Option<Layout> {
    let (alignment, size) = if bytes < HUGE_PAGE {
        (CACHE_LINE, bytes)
    } else {
        (HUGE_PAGE, bytes.checked_next_multiple_of(HUGE_PAGE)?)
    };
    Layout::from_size_align(size, alignment).ok()
}

/// Asks for huge pages. If the system refuses or does not know them, that only costs time.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge_pages(start: NonNull<u8>, layout: Layout) {
    if layout.align() == HUGE_PAGE {
        // SAFETY: the range is whole pages of this allocation, and the advice does not change their
        // content.
        unsafe { libc::madvise(start.as_ptr().cast(), layout.size(), libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge_pages(_: NonNull<u8>, _: Layout) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_and_zero() {
        for bytes in [1, 63, 64, 1000, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE] {
            let mut block = Block::zeroed(bytes).unwrap();
            let alignment = if bytes < HUGE_PAGE { CACHE_LINE } else { HUGE_PAGE };
            assert_eq!(block.as_ptr() as usize % alignment, 0, "{bytes}");
            assert_eq!(block.len(), bytes);
            assert!(block.as_bytes().iter().all(|byte| *byte == 0));
            // Dirties memory that the next block may get.
            block.as_bytes_mut().fill(0xff);
        }
    }

    #[test]
    fn copies_are_aligned_and_whole() {
        for bytes in [0, 1, 1000, HUGE_PAGE + 1] {
            let from: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
            let block = Block::copy_of(&from).unwrap();
            assert!(block.as_bytes() == from, "{bytes}");
            assert_eq!(block.as_ptr() as usize % CACHE_LINE, 0);
        }
    }

    #[test]
    fn an_empty_block_has_no_bytes_and_an_aligned_start() {
        let block = Block::zeroed(0).unwrap();
        assert!(block.is_empty() && block.as_bytes().is_empty());
        assert_eq!(block.as_ptr() as usize % CACHE_LINE, 0);
    }

    #[test]
    fn a_block_that_does_not_fit_is_an_error_with_its_size() {
        for bytes in [1 << 60, isize::MAX as usize, usize::MAX] {
            let error = Block::zeroed(bytes).unwrap_err();
            assert_eq!(error, OutOfMemory { bytes });
            assert!(error.to_string().contains(&bytes.to_string()), "{error}");
        }
    }

    #[test]
    fn growing_keeps_a_block_that_is_large_enough() {
        let mut block = Block::zeroed(100).unwrap();
        let start = block.as_ptr();
        block.grow(40).unwrap();
        assert_eq!((block.as_ptr(), block.len()), (start, 100));
        block.grow(200).unwrap();
        assert_eq!(block.len(), 200);
        assert!(block.grow(usize::MAX).is_err());
        assert!(block.is_empty());
    }
}
