//! Independent work on all cores.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};

/// How many things are done at once.
pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get())
}

/// What `work` makes of every item, in their order.
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

/// Hands what `work` makes of every item to `take`, in their order and each as soon as it and those before it are made.
/// Once `take` has had enough, nothing more is begun.
pub(crate) fn in_order<T: Sync, R: Send>(
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
    mut take: impl FnMut(usize, R) -> ControlFlow<()>,
) {
    let next = AtomicUsize::new(0);
    let (sender, made) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..cores().min(items.len()) {
            let (sender, next, work) = (sender.clone(), &next, &work);
            scope.spawn(move || {
                while let at = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(at)
                    && sender.send((at, work(item))).is_ok()
                {}
            });
        }
        drop(sender);
        let mut early = BTreeMap::new();
        let mut wanted = 0;
        for (at, result) in made {
            early.insert(at, result);
            while let Some(result) = early.remove(&wanted) {
                if take(wanted, result).is_break() {
                    next.store(items.len(), Ordering::Relaxed);
                    return;
                }
                wanted += 1;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    #[test]
    fn results_are_taken_in_order_until_there_are_enough() {
        let items: Vec<u64> = (0..100).collect();
        let mut taken = Vec::new();
        super::in_order(
            &items,
            |item| item * item,
            |at, square| {
                taken.push((at as u64, square));
                if at == 60 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            },
        );
        assert_eq!(taken, (0..=60).map(|item| (item, item * item)).collect::<Vec<_>>());
        super::in_order(&[] as &[u64], |item| *item, |_, _| panic!("there is nothing to take"));
    }

    #[test]
    fn results_are_in_order() {
        let items: Vec<u64> = (0..100).collect();
        let squares: Vec<u64> = items.iter().map(|item| item * item).collect();
        assert_eq!(super::map(&items, |item| item * item), squares);
        assert!(super::map(&[] as &[u64], |item| *item).is_empty());
    }
}
