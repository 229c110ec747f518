//! Room for the compiler: programs may be nested deeply, and the threads of Python have stacks of any size.

/// What is left of a stack that is enough, and what a new one has.
const ENOUGH: usize = 4 << 20;
const NEW: usize = 32 << 20;

/// Runs something that does not call Python, which would not know the stack, with enough of one.
pub fn with_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(ENOUGH, NEW, run)
}
