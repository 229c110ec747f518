//! Defines [`map`], which spreads work over the cores.
//!
//! The threads live as long as one call. A pool of threads would be lost in a process that Python
//! forks, and whoever waited for it would wait forever.

use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

/// The size of a thread's stack in bytes: values may be nested deeply.
const STACK_SIZE: usize = 32 << 20;
/// The most threads of a call. A search has few parts that are worth a thread.
const MOST_THREADS: usize = 16;

/// The number of available cores.
pub fn cores() -> usize {
    available_parallelism().map_or(1, NonZero::get)
}

/// Computes a function of each item, on all cores, and returns the results in order.
pub fn map<T: Sync, R: Send>(items: &[T], compute: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(at) else { return own };
            own.push((at, compute(item)));
        }
    };
    let helpers = cores().min(MOST_THREADS).min(items.len()).saturating_sub(1);
    let mut results = scope(|scope| {
        let start = |_| Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, work).ok();
        // Where no thread can be made, this one does all the work.
        let threads: Vec<_> = (0..helpers).map_while(start).collect();
        let mut results = work();
        for thread in threads {
            results.extend(thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        results
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread;

    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<usize> = (0..1000).collect();
        assert_eq!(map(&items, |item| item * item), items.iter().map(|item| item * item).collect::<Vec<_>>());
        assert!(map(&[] as &[usize], |item| *item).is_empty());
    }

    #[test]
    fn slow_items_do_not_wait_for_each_other() {
        let threads = Mutex::new(Vec::new());
        map(&[(); 8], |()| {
            thread::sleep(std::time::Duration::from_millis(20));
            threads.lock().unwrap().push(thread::current().id());
        });
        let mut threads = threads.into_inner().unwrap();
        threads.sort_by_key(|id| format!("{id:?}"));
        threads.dedup();
        assert_eq!(threads.len(), cores().min(8));
    }
}
