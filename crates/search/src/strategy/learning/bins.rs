//! Sorts the values of each feature into bins, for the histograms from which trees are grown.
//!
//! A feature with few different values has a bin for each of them. A feature with many has bins
//! with equal shares of the rows.

use std::ops::Range;

/// The largest number of bins of a feature, so that a bin fits in a byte.
const MAX_BINS: usize = 256;

/// The binned features of all rows. Features with the same value in all rows are left out.
pub(super) struct Bins {
    pub rows: usize,
    pub columns: Vec<Column>,
    /// The number of bins of all columns together.
    pub count: usize,
}

/// A feature of all rows.
pub(super) struct Column {
    /// The index of the feature in a row.
    pub feature: usize,
    /// The least value of each bin except the first, in ascending order.
    pub cuts: Vec<f32>,
    /// The index of the first bin among the bins of all columns.
    pub start: usize,
    /// The bin of each row: the number of cuts that do not exceed the value.
    pub bins: Vec<u8>,
}

impl Bins {
    /// Bins rows with `width` features each.
    pub fn new(rows: &[&[f32]], width: usize) -> Bins {
        let mut bins = Bins { rows: rows.len(), columns: Vec::new(), count: 0 };
        for feature in 0..width {
            let values: Vec<f32> = rows.iter().map(|row| row[feature]).collect();
            let column = Column::new(feature, bins.count, &values);
            if !column.cuts.is_empty() {
                bins.count += column.cuts.len() + 1;
                bins.columns.push(column);
            }
        }
        bins
    }
}

impl Column {
    fn new(feature: usize, start: usize, values: &[f32]) -> Column {
        let cuts = cuts(values);
        let bin = |value: &f32| cuts.partition_point(|cut| cut <= value) as u8;
        Column { feature, start, bins: values.iter().map(bin).collect(), cuts }
    }

    /// The bins of this column among those of all columns.
    pub fn range(&self) -> Range<usize> {
        self.start..self.start + self.cuts.len() + 1
    }
}

/// The least value of each bin except the first. A value that is not a number is in the first bin.
fn cuts(values: &[f32]) -> Vec<f32> {
    let mut sorted: Vec<f32> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    sorted.sort_unstable_by(f32::total_cmp);
    let mut different = sorted.clone();
    different.dedup();
    if different.len() > MAX_BINS {
        different = (0..MAX_BINS).map(|bin| sorted[bin * sorted.len() / MAX_BINS]).collect();
        different.dedup();
    }
    // The least value of all is in the first bin in any case.
    different.drain(..different.len().min(1));
    different
}

#[cfg(test)]
mod tests {
    use super::*;

    fn column(values: &[f32]) -> Column {
        Column::new(0, 0, values)
    }

    #[test]
    fn few_values_have_a_bin_each() {
        let own = column(&[2.0, 1.0, 4.0, 2.0]);
        assert_eq!((own.cuts, own.bins), (vec![2.0, 4.0], vec![1, 0, 2, 1]));
    }

    #[test]
    fn many_values_share_bins_evenly() {
        let values: Vec<f32> = (0..10_000).map(|at| ((at * 7919) % 10_007) as f32).collect();
        let own = column(&values);
        assert_eq!(own.cuts.len(), MAX_BINS - 1);
        let mut sizes = [0; MAX_BINS];
        own.bins.iter().for_each(|bin| sizes[usize::from(*bin)] += 1);
        assert!(sizes.iter().all(|size| (38..=41).contains(size)), "{sizes:?}");
    }

    #[test]
    fn strange_values_do_no_harm() {
        let own = column(&[f32::NAN, f32::INFINITY, 0.0, -0.0, f32::NEG_INFINITY]);
        assert_eq!((own.cuts, own.bins), (vec![-0.0, f32::INFINITY], vec![0, 2, 1, 1, 0]));
        assert!(column(&[f32::NAN; 3]).cuts.is_empty());
    }

    #[test]
    fn constant_features_are_left_out() {
        let bins = Bins::new(&[&[1.0, 5.0, 2.0], &[1.0, 6.0, 3.0]], 3);
        let features: Vec<usize> = bins.columns.iter().map(|column| column.feature).collect();
        assert_eq!((features, bins.count), (vec![1, 2], 4));
        assert_eq!(bins.columns[1].range(), 2..4);
    }
}
