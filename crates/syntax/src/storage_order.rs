//! Defines [`StorageOrder`]: the order in which memory holds the dimensions of a tensor, where it
//! differs from the order of its subscripts.
//!
//! In `uint8(3, H, W) img(c, y, x) stored (y, x, c)` the subscripts of `img` are a channel, a row
//! and a column, and the array that the caller passes has the shape (H, W, 3). Programs know the
//! order of memory only: the checker permutes subscripts and extents, and messages permute them
//! back.

/// A permutation of the dimensions of a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageOrder {
    /// For each dimension in memory, outermost first, its place among the subscripts.
    places: Vec<usize>,
}

impl StorageOrder {
    /// The order in which `stored` lists the names of `subscripts`. Returns `None` unless `stored`
    /// lists each of them once.
    pub fn new<T: PartialEq>(subscripts: &[T], stored: &[T]) -> Option<StorageOrder> {
        let place = |name: &T| subscripts.iter().position(|own| own == name);
        let places: Vec<usize> = stored.iter().map(place).collect::<Option<_>>()?;
        let mut sorted = places.clone();
        sorted.sort_unstable();
        sorted.iter().copied().eq(0..subscripts.len()).then_some(StorageOrder { places })
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.places.len()
    }

    /// The dimension in memory of the subscript at this place.
    pub fn dimension(&self, place: usize) -> usize {
        self.places.iter().position(|own| *own == place).unwrap_or(place)
    }

    /// The place among the subscripts of a dimension in memory.
    pub fn place(&self, dimension: usize) -> usize {
        self.places.get(dimension).copied().unwrap_or(dimension)
    }

    /// Takes items from the order of subscripts to that of memory. There is one item per dimension.
    pub fn to_memory<T: Clone>(&self, items: &[T]) -> Vec<T> {
        self.places.iter().filter_map(|place| items.get(*place).cloned()).collect()
    }

    /// Takes items from the order of memory to that of subscripts.
    pub fn to_subscripts<T: Clone>(&self, items: &[T]) -> Vec<T> {
        (0..self.rank()).filter_map(|place| items.get(self.dimension(place)).cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_and_its_inverse() {
        let order = StorageOrder::new(&["c", "y", "x"], &["y", "x", "c"]).expect("it is a permutation");
        assert_eq!(order.to_memory(&[3, 10, 20]), [10, 20, 3]);
        assert_eq!(order.to_subscripts(&[10, 20, 3]), [3, 10, 20]);
        assert_eq!((order.dimension(0), order.place(0)), (2, 1));
    }

    #[test]
    fn lists_that_are_no_permutation() {
        for stored in [&["y", "x"][..], &["y", "x", "x"], &["y", "x", "z"], &["y", "x", "c", "c"]] {
            assert_eq!(StorageOrder::new(&["c", "y", "x"], stored), None, "{stored:?}");
        }
        assert_eq!(StorageOrder::new(&["x", "x"], &["x", "x"]), None);
    }
}
