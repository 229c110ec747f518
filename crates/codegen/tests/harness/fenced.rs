//! Memory whose neighbours are inaccessible, to find accesses outside of a tensor.

/// Memory between two inaccessible pages, so that an access outside of it ends the test.
pub struct Fenced {
    pages: *mut u8,
    /// The bytes between the two inaccessible pages.
    inside: usize,
    bytes: usize,
}

const PAGE: usize = 1 << 16;

unsafe extern "C" {
    fn mmap(at: *mut u8, bytes: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn mprotect(at: *mut u8, bytes: usize, protection: i32) -> i32;
    fn munmap(at: *mut u8, bytes: usize) -> i32;
}

impl Fenced {
    pub fn new(bytes: usize) -> Fenced {
        let (read_write, private_anonymous) = (3, 0x22);
        // SAFETY: fresh pages that we own, of which the first and the last become inaccessible.
        unsafe {
            let inside = bytes.next_multiple_of(PAGE);
            let pages = mmap(std::ptr::null_mut(), inside + 2 * PAGE, read_write, private_anonymous, -1, 0);
            assert_eq!(mprotect(pages, PAGE, 0) + mprotect(pages.add(PAGE + inside), PAGE, 0), 0);
            Fenced { pages, inside, bytes }
        }
    }

    /// The bytes that end where the last page begins.
    pub fn at_the_end(&mut self) -> &mut [u8] {
        // SAFETY: the range is between the pages.
        unsafe { std::slice::from_raw_parts_mut(self.pages.add(PAGE + self.inside - self.bytes), self.bytes) }
    }

    /// The bytes that begin where the first page ends.
    pub fn at_the_start(&mut self) -> &mut [u8] {
        // SAFETY: the range is between the pages.
        unsafe { std::slice::from_raw_parts_mut(self.pages.add(PAGE), self.bytes) }
    }
}

impl Drop for Fenced {
    fn drop(&mut self) {
        // SAFETY: we own the pages, and no reference to them is left.
        unsafe { munmap(self.pages, self.inside + 2 * PAGE) };
    }
}
