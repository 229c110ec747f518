//! Runs the compiler on a deep stack. Programs may be deeply nested, and Python's threads have
//! stacks of any size.

use std::panic::resume_unwind;
use std::thread::{Builder, scope};

/// The size of the compiler's stack in bytes.
const STACK_SIZE: usize = 32 << 20;

/// Runs a function on a thread with a deep stack, and waits for it. The function must not call
/// Python, which does not know the thread.
pub fn with_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    // The function stays here if no thread can be made. The stack of this thread must do then.
    let mut run = Some(run);
    let mut result = None;
    let spawned = scope(|scope| {
        let (run, result) = (&mut run, &mut result);
        let task = move || *result = run.take().map(|run| run());
        let thread = Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, task);
        thread.map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)))
    });
    match (spawned, run) {
        (Err(_), Some(run)) => run(),
        _ => result.expect("the thread has ended, and its panic went on here"),
    }
}
