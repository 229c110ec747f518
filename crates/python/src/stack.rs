//! Runs the compiler on a deep stack. Programs may be deeply nested, and Python's threads have
//! stacks of any size.

/// The number of free bytes that is enough, and the size of a new stack.
const RED_ZONE: usize = 4 << 20;
const STACK_SIZE: usize = 32 << 20;

/// Runs a function with a deep stack. The function must not call Python, which does not know the
/// new stack.
pub fn with_stack<T>(run: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, STACK_SIZE, run)
}
