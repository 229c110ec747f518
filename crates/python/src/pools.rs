//! The threads that kernels run on: one pool for every number of threads that somebody has asked for.
//!
//! A process that forks keeps none of its threads, so the child forgets all pools ([`forget`]) and makes its own. Pools are
//! looked for while the interpreter is held: nobody forks then, and no lock is left behind that nobody opens.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use tilewright_runtime::Pool;
use tilewright_target::Cpu;

static POOLS: Mutex<Vec<(usize, Arc<Pool>)>> = Mutex::new(Vec::new());
/// 0 for all cores.
static THREADS: AtomicUsize = AtomicUsize::new(0);

fn pools(_py: Python<'_>) -> MutexGuard<'static, Vec<(usize, Arc<Pool>)>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pool with so many threads.
pub fn pool(py: Python<'_>, threads: usize) -> Arc<Pool> {
    let mut pools = pools(py);
    if let Some((_, pool)) = pools.iter().find(|(own, _)| *own == threads) {
        return Arc::clone(pool);
    }
    let pool = Arc::new(Pool::new(threads));
    pools.push((threads, Arc::clone(&pool)));
    pool
}

/// More than any machine has use for: each has a stack.
pub const MOST_THREADS: usize = 4096;

/// This machine. It is asked once, which takes longer than a small call.
pub fn host() -> &'static Cpu {
    static HOST: OnceLock<Cpu> = OnceLock::new();
    HOST.get_or_init(Cpu::host)
}

/// How many threads kernels have that are compiled from now on.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => host().cores,
        threads => threads,
    }
}

/// Says how many threads; 0 for all cores.
pub fn set_threads(threads: usize) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Forgets all pools, in a process that has none of their threads.
pub fn forget(py: Python<'_>) {
    std::mem::forget(std::mem::take(&mut *pools(py)));
}
