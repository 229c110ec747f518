//! Runs independent work on all cores: applies a function to every item of a slice, and returns
//! the results in order or passes on each one as soon as it is made.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// The number of available cores.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// The results of `work` for all items, in their order.
pub(crate) fn map<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..cores().min(items.len()) {
            scope.spawn(|| {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                {
                    let made = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, made));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, made)| made).collect()
}

/// Passes each result of `work` to `take` as soon as it is made. Work begins in the order of the
/// items, and `take` has a core of its own. After `take` breaks, no more work is begun.
pub(crate) fn for_each_completed<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(usize, R) -> ControlFlow<()>,
) {
    let next = AtomicUsize::new(0);
    let (sender, made) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..(cores() - 1).clamp(1, items.len().max(1)) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                    && sender.send((at, work(item))).is_ok()
                {}
            });
        }
        drop(sender);
        let mut made = made.into_iter();
        if made.any(|(at, result)| take(at, result).is_break()) {
            next.store(items.len(), Ordering::Relaxed);
        }
    });
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    #[test]
    fn results_are_taken_once_until_there_are_enough() {
        let items: Vec<u64> = (0..100).collect();
        for enough in [61, 1000] {
            let mut taken = Vec::new();
            super::for_each_completed(
                &items,
                |item| item * item,
                |at, square| {
                    taken.push((at as u64, square));
                    if taken.len() == enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                },
            );
            assert_eq!(taken.len(), enough.min(items.len()));
            assert!(taken.iter().all(|(item, square)| item * item == *square), "{taken:?}");
            taken.sort_unstable();
            taken.dedup();
            assert_eq!(taken.len(), enough.min(items.len()));
        }
        super::for_each_completed(&[] as &[u64], |item| *item, |_, _| panic!("there is nothing to take"));
    }

    #[test]
    fn results_are_in_order() {
        let items: Vec<u64> = (0..100).collect();
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        assert_eq!(super::map(&items, |item| item * item), squares);
        assert!(super::map(&[] as &[u64], |item| *item).is_empty());
    }
}
