//! Assigns items to ranks, so that every link points from a rank to a later one.
//!
//! The rank of an item is the longest path that leads to it, as in Sugiyama's method. An item that
//! reads at most one other item then moves down to just above its first reader: an input stands
//! near its use, and the chain below an input moves with it.

use super::level::{Item, Link, Pin};

/// The rank of each item. Ranks count from 0, and each has at least one item.
pub fn ranks(items: &[Item], links: &[Link]) -> Vec<usize> {
    let order = topological_order(items.len(), links.iter().map(|link| (link.from, link.to)));
    let mut above = vec![Vec::new(); items.len()];
    let mut below = vec![Vec::new(); items.len()];
    for link in links {
        above[link.to].push(link.from);
        below[link.from].push(link.to);
    }
    let first = usize::from(items.iter().any(|item| item.pin == Pin::First));
    let mut ranks = vec![0; items.len()];
    for &item in &order {
        let lowest = if items[item].pin == Pin::First { 0 } else { first };
        ranks[item] = above[item].iter().map(|from| ranks[*from] + 1).fold(lowest, usize::max);
    }
    let last = ranks.iter().map(|rank| rank + 1).max().unwrap_or(0);
    for &item in order.iter().rev() {
        let may_move = above[item].iter().all(|from| *from == above[item][0]);
        let room = below[item].iter().map(|to| ranks[*to] - 1).min();
        match (items[item].pin, room) {
            (Pin::Last, _) => ranks[item] = last,
            (Pin::None, Some(room)) if may_move => ranks[item] = ranks[item].max(room),
            _ => {}
        }
    }
    without_gaps(ranks)
}

/// Renumbers ranks so that every rank has an item.
fn without_gaps(ranks: Vec<usize>) -> Vec<usize> {
    let mut used = ranks.clone();
    used.sort_unstable();
    used.dedup();
    ranks.into_iter().map(|rank| used.partition_point(|other| *other < rank)).collect()
}

/// Orders items so that links point forwards, with earlier items first where links allow it. Where
/// the links form a cycle, the earliest item of those left comes next, so that at least one link
/// points backwards.
pub fn topological_order(count: usize, links: impl Iterator<Item = (usize, usize)>) -> Vec<usize> {
    use std::cmp::Reverse;
    let mut below = vec![Vec::new(); count];
    let mut waits_for = vec![0usize; count];
    for (from, to) in links {
        below[from].push(to);
        waits_for[to] += 1;
    }
    let ready = (0..count).filter(|item| waits_for[*item] == 0).map(Reverse);
    let mut ready: std::collections::BinaryHeap<_> = ready.collect();
    let (mut placed, mut order, mut earliest) = (vec![false; count], Vec::with_capacity(count), 0);
    while order.len() < count {
        while placed.get(earliest) == Some(&true) {
            earliest += 1;
        }
        let next = ready.pop().map_or(earliest, |Reverse(item)| item);
        if std::mem::replace(&mut placed[next], true) {
            continue;
        }
        order.push(next);
        for &item in &below[next] {
            waits_for[item] -= 1;
            if waits_for[item] == 0 && !placed[item] {
                ready.push(Reverse(item));
            }
        }
    }
    order
}
