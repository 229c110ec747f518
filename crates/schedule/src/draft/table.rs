//! Implements a growing table whose copies share the entries that neither copy has changed.
//!
//! Planning keeps a copy of the draft before every decision. So a copy is cheap, and a change
//! copies one entry and its chunk instead of the table. The differences between two copies are
//! found without a look at every entry.

use std::ops::{Index, IndexMut};
use std::sync::Arc;

/// The number of entries that are shared together.
const CHUNK: usize = 32;

/// Entries by their index, counted from 0.
#[derive(Debug)]
pub(crate) struct Table<T> {
    /// All chunks but the last are full.
    chunks: Vec<Arc<Vec<Arc<T>>>>,
}

impl<T> Clone for Table<T> {
    fn clone(&self) -> Self {
        Table { chunks: self.chunks.clone() }
    }
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { chunks: Vec::new() }
    }
}

impl<T> Table<T> {
    /// The number of entries.
    pub fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Adds an entry at the end.
    pub fn push(&mut self, entry: T) {
        match self.chunks.last_mut().filter(|last| last.len() < CHUNK) {
            Some(last) => Arc::make_mut(last).push(Arc::new(entry)),
            None => self.chunks.push(Arc::new(vec![Arc::new(entry)])),
        }
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().map(Arc::as_ref))
    }

    /// The indices of entries that are not shared with another table, or that the other table does
    /// not have.
    pub fn changed_since(&self, other: &Table<T>) -> Vec<usize> {
        let mut changed = Vec::new();
        for (at, chunk) in self.chunks.iter().enumerate() {
            let old = other.chunks.get(at);
            if old.is_some_and(|old| Arc::ptr_eq(old, chunk)) {
                continue;
            }
            let is_shared = |place: usize, entry: &Arc<T>| {
                old.and_then(|old| old.get(place)).is_some_and(|old| Arc::ptr_eq(old, entry))
            };
            let own = chunk.iter().enumerate().filter(|(place, entry)| !is_shared(*place, entry));
            changed.extend(own.map(|(place, _)| at * CHUNK + place));
        }
        changed
    }
}

impl<T> Index<usize> for Table<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        &self.chunks[at / CHUNK][at % CHUNK]
    }
}

impl<T: Clone> IndexMut<usize> for Table<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        Arc::make_mut(&mut Arc::make_mut(&mut self.chunks[at / CHUNK])[at % CHUNK])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_differ_in_what_was_changed_and_added() {
        let mut table = Table::default();
        (0..100).for_each(|number| table.push(number));
        let before = table.clone();
        table[40] = 7;
        table.push(8);
        assert_eq!((before.len(), table.len()), (100, 101));
        assert_eq!((before[40], table[40], table[100]), (40, 7, 8));
        assert_eq!(table.changed_since(&before), [40, 100]);
        assert_eq!(before.changed_since(&table), [40]);
        assert!(table.iter().copied().eq((0..40).chain([7]).chain(41..100).chain([8])));
    }
}
