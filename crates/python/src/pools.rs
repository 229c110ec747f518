//! Keeps the threads that kernels run on: one pool for each number of threads in use.
//!
//! A forked process has none of its parent's threads, so the child discards all pools
//! ([`discard_pools`]) and makes its own. Pools are accessed only while the interpreter lock is
//! held. No fork happens then, so no child inherits the mutex locked.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::prelude::*;
use tilewright::runtime::Pool;
use tilewright::target::Cpu;

static POOLS: Mutex<Vec<(usize, Arc<Pool>)>> = Mutex::new(Vec::new());
/// The number of threads; 0 means one per core.
static THREADS: AtomicUsize = AtomicUsize::new(0);

fn pools(_py: Python<'_>) -> MutexGuard<'static, Vec<(usize, Arc<Pool>)>> {
    POOLS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the pool with this number of threads.
pub fn pool(py: Python<'_>, threads: usize) -> Arc<Pool> {
    let mut pools = pools(py);
    if let Some((_, pool)) = pools.iter().find(|(own, _)| *own == threads) {
        return Arc::clone(pool);
    }
    let pool = Arc::new(Pool::new(threads));
    pools.push((threads, Arc::clone(&pool)));
    pool
}

/// The maximum number of threads. Each thread has a stack, and no machine needs more.
pub const MAX_THREADS: usize = 4096;

/// This machine's CPU. It is queried once, because a query takes longer than a small call.
pub fn host() -> &'static Cpu {
    static HOST: OnceLock<Cpu> = OnceLock::new();
    HOST.get_or_init(Cpu::host)
}

/// The number of threads of kernels that are compiled from now on.
pub fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => host().cores,
        threads => threads,
    }
}

/// Sets the number of threads; 0 means one per core.
pub fn set_threads(threads: usize) {
    THREADS.store(threads, Ordering::Relaxed);
}

/// Discards all pools in a forked process, which has none of their threads.
pub fn discard_pools(py: Python<'_>) {
    std::mem::forget(std::mem::take(&mut *pools(py)));
}
