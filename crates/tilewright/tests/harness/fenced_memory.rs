//! Allocates memory between two protected pages.
//!
//! An access outside of a tensor that is adjacent to such a page ends the process, even if it only
//! reads.

use std::ptr;

const PAGE: usize = 4096;

/// The byte that fills gaps, and results before they are written.
pub const GAP: u8 = 0xa5;

/// Some bytes between two protected pages.
pub struct Fenced {
    mapping: *mut u8,
    length: usize,
}

// SAFETY: the value owns its memory.
unsafe impl Send for Fenced {}
// SAFETY: as above.
unsafe impl Sync for Fenced {}

impl Fenced {
    /// Allocates whole pages for a number of bytes, filled with [`GAP`].
    pub fn new(bytes: usize) -> Fenced {
        let inside = bytes.div_ceil(PAGE).max(1) * PAGE;
        let length = inside + 2 * PAGE;
        // SAFETY: the mapping is new, at any address.
        let mapping = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        assert_ne!(mapping, libc::MAP_FAILED);
        let mut fenced = Fenced { mapping: mapping.cast(), length };
        // SAFETY: the pages between the first and the last are part of the mapping.
        let opened =
            unsafe { libc::mprotect(fenced.start().cast(), inside, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(opened, 0);
        fenced.bytes_mut().fill(GAP);
        fenced
    }

    fn start(&self) -> *mut u8 {
        self.mapping.wrapping_add(PAGE)
    }

    /// The accessible bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: these pages are accessible, initialised and owned.
        unsafe { std::slice::from_raw_parts(self.start(), self.length - 2 * PAGE) }
    }

    /// The accessible bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `bytes`, borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start(), self.length - 2 * PAGE) }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned, and nothing borrows it any more.
        let closed = unsafe { libc::munmap(self.mapping.cast(), self.length) };
        assert_eq!(closed, 0);
    }
}
