//! Counts the requests of the front end to end a run early ([`Stop`]).

use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of requests to end a run. After one, the run ends with the current batch and still
/// compares the fastest again. After two, it ends at once with the best so far.
#[derive(Debug, Default)]
pub struct Stop(AtomicUsize);

impl Stop {
    /// Requests the end once more.
    pub fn request(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if the run should end.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 0
    }

    /// Returns true if the run should end at once.
    pub fn is_urgent(&self) -> bool {
        self.0.load(Ordering::Relaxed) > 1
    }
}
