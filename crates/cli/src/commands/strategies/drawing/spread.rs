//! How good kernels are, and how far the searches of a strategy lie apart.

use crate::page::scale::Scale;
use tilewright_tuner::compare::{Best, Compared, Search};

/// How good a kernel is, in percent of the best known; 0 where none was found.
pub fn quality(program: &Compared, best: Option<&Best>) -> f64 {
    let quality = best.map_or(0.0, |best| 100.0 * program.best_known / best.seconds);
    if quality.is_finite() { quality.max(0.0) } else { 0.0 }
}

/// How good the kernel is that a search ends with.
pub fn last(program: &Compared, search: &Search) -> f64 {
    quality(program, search.bests.last())
}

/// An axis from a round quality below all to 100 %, or to more where the best known is not the best.
pub fn scale(qualities: impl IntoIterator<Item = f64>, from: f64, to: f64) -> Scale {
    let ends = |(low, high): (f64, f64), at: f64| (low.min(at), high.max(at));
    let (low, high) = qualities.into_iter().fold((90.0, 100.0), ends);
    // What the steps of the axis are multiples of, so that one of them is at its beginning.
    let round = if low < 50.0 { 20.0 } else { 10.0 };
    Scale::between((low / round).floor() * round, high, from, to)
}

/// Where values lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The lowest.
    pub lowest: f64,
    /// A quarter is below.
    pub lower: f64,
    /// Half is below.
    pub median: f64,
    /// Three quarters are below.
    pub upper: f64,
    /// The highest.
    pub highest: f64,
}

impl Spread {
    /// Of values, in any order; none where there are none.
    pub fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let (lowest, highest) = (*values.first()?, *values.last()?);
        let at = |part| quantile(&values, part);
        Some(Spread { lowest, lower: at(0.25), median: at(0.5), upper: at(0.75), highest })
    }
}

/// The value at a part of the way through sorted ones, of which there is one at least.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let place = part * (sorted.len() - 1) as f64;
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
        let program = Compared { best_known: 1.0, ..Compared::default() };
        let of = |seconds| quality(&program, Some(&Best { seconds, ..Best::default() }));
        assert_eq!((of(2.0), of(0.0), of(f64::NAN), of(f64::INFINITY)), (50.0, 0.0, 0.0, 0.0));
        assert_eq!(quality(&program, None), 0.0);
    }

    #[test]
    fn an_axis_of_qualities_holds_them_all() {
        assert_eq!(scale([], 0.0, 1.0).ticks().first(), Some(&90.0));
        assert_eq!(scale([63.0, 99.0], 0.0, 1.0).ticks(), [60.0, 70.0, 80.0, 90.0, 100.0]);
        assert_eq!(scale([33.0], 0.0, 1.0).ticks(), [20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(scale([0.0, 110.0], 0.0, 1.0).at(110.0), 1.0);
    }
}
