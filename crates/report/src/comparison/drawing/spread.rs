//! Computes the quality of kernels in percent of the best known one, the quartiles of several
//! qualities ([`Spread`]), and the axis to draw them on.

use crate::page::scale::Scale;
use tilewright_tuner::compare::{Improvement, ProgramResult, SearchResult};

/// The quality of a kernel in percent of the best known; 0 where no kernel was found.
pub fn quality(program: &ProgramResult, best: Option<&Improvement>) -> f64 {
    let quality = best.map_or(0.0, |best| 100.0 * program.best_known / best.seconds);
    if quality.is_finite() { quality.max(0.0) } else { 0.0 }
}

/// The quality of the kernel that a search ends with.
pub fn last_quality(program: &ProgramResult, search: &SearchResult) -> f64 {
    quality(program, search.bests.last())
}

/// Returns an axis from a round number below all qualities to 100 %. The axis ends above 100 % if a
/// kernel is better than the best known.
pub fn quality_scale(qualities: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Scale {
    let ends = |(low, high): (f64, f64), at: f64| (low.min(at), high.max(at));
    let (low, high) = qualities.into_iter().fold((90.0, 100.0), ends);
    // The start of the axis is a multiple of its tick distance, so that a tick is there.
    let round = if low < 50.0 { 20.0 } else { 10.0 };
    Scale::between((low / round).floor() * round, high, from, to)
}

/// The quartiles and extremes of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The lowest value.
    pub lowest: f64,
    /// The lower quartile: a quarter of the values is below it.
    pub lower: f64,
    /// The median.
    pub median: f64,
    /// The upper quartile: three quarters of the values are below it.
    pub upper: f64,
    /// The highest value.
    pub highest: f64,
}

impl Spread {
    /// Computes the spread of values in any order, or `None` if there are no values.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let at = |part| quantile(&values, part);
        Some(Spread { lowest, lower: at(0.25), median: at(0.5), upper: at(0.75), highest })
    }
}

/// Returns a quantile of sorted values by linear interpolation. There must be at least one value.
fn quantile(sorted: &[f64], fraction: f64) -> f64 {
    let place = fraction * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + place.fract() * (above - below)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_are_between_values() {
        let four = Spread::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        let expected = Spread { lowest: 1.0, lower: 1.75, median: 2.5, upper: 3.25, highest: 4.0 };
        assert_eq!(four, expected);
        let one = Spread::of(vec![7.0]).unwrap();
        assert_eq!((one.lowest, one.median, one.highest), (7.0, 7.0, 7.0));
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn what_cannot_be_told_is_of_no_quality() {
        let program = ProgramResult { best_known: 1.0, ..ProgramResult::default() };
        let of = |seconds| quality(&program, Some(&Improvement { seconds, ..Improvement::default() }));
        assert_eq!((of(2.0), of(0.0), of(f64::NAN), of(f64::INFINITY)), (50.0, 0.0, 0.0, 0.0));
        assert_eq!(quality(&program, None), 0.0);
    }

    #[test]
    fn an_axis_of_qualities_holds_them_all() {
        assert_eq!(quality_scale([], 0.0, 1.0).ticks().first(), Some(&90.0));
        assert_eq!(quality_scale([63.0, 99.0], 0.0, 1.0).ticks(), [60.0, 70.0, 80.0, 90.0, 100.0]);
        assert_eq!(quality_scale([33.0], 0.0, 1.0).ticks(), [20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(quality_scale([0.0, 110.0], 0.0, 1.0).coordinate(110.0), 1.0);
    }
}
