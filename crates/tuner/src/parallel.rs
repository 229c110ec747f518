//! Runs independent work on all cores: applies a function to every item of a slice, and passes on
//! each result as soon as it is made.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

pub(crate) use tilewright_search::parallel::{cores, map};

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
}
