//! Ending a run before its time.

use std::sync::atomic::{AtomicUsize, Ordering};

/// How often a run was asked to end. Once, and it ends with the next batch and compares the fastest again; twice, and it
/// ends at once with the best so far.
#[derive(Debug, Default)]
pub struct Stop(AtomicUsize);

impl Stop {
    /// Asks once more.
    pub fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the run should end.
    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Whether it should end at once.
    pub fn is_urgent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}
