//! The quality of the best candidate so far as a step function: the median of a strategy's
//! searches, and a band that contains all of them, or the middle half if more than [`FEW`] ran.

use super::spread::{Spread, quality};
use tilewright_tuner::compare::{Best, Compared, Search, Strategy};

/// With more seeds than this, the band leaves out the lowest and the highest quarter.
const FEW: usize = 5;

/// A horizontal axis.
pub struct Across {
    /// The quantity along the axis.
    pub name: &'static str,
    /// Returns the position of a candidate.
    pub place: fn(&Best) -> f64,
    /// The left end.
    pub first: f64,
    /// The right end.
    pub last: f64,
}

/// A constant piece of the step function, up to the start of the next piece.
pub struct Step {
    /// The position where the piece starts.
    pub from: f64,
    /// The lower side of the band.
    pub low: f64,
    /// The height of the line.
    pub median: f64,
    /// The upper side of the band.
    pub high: f64,
}

/// Returns every step from the left end to the right end. There are none if the strategy has no
/// searches.
pub fn steps(program: &Compared, strategy: &Strategy, across: &Across) -> Vec<Step> {
    let bests = strategy.searches.iter().flat_map(|search| &search.bests);
    let changes = bests.map(across.place).filter(|at| *at > across.first && *at <= across.last);
    let mut places: Vec<f64> = changes.chain([across.first]).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places.into_iter().filter_map(|from| step(program, strategy, across.place, from)).collect()
}

fn step(program: &Compared, strategy: &Strategy, place: fn(&Best) -> f64, from: f64) -> Option<Step> {
    let so_far = |search: &Search| {
        let known = search.bests.iter().take_while(|best| place(best) <= from);
        quality(program, known.last())
    };
    let Spread { lowest, lower, median, upper, highest } =
        Spread::of(strategy.searches.iter().map(so_far).collect())?;
    let (low, high) = if strategy.searches.len() > FEW { (lower, upper) } else { (lowest, highest) };
    Some(Step { from, low, median, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::made_up::search;

    #[test]
    fn a_search_that_has_ended_keeps_what_it_has() {
        let strategy = Strategy {
            name: "a".to_owned(),
            searches: vec![
                search(&[(0, 4.0), (2, 1.0)], 4),
                search(&[(0, 4.0), (3, 2.0)], 8),
                search(&[], 8),
            ],
        };
        let program = Compared { best_known: 1.0, strategies: vec![strategy], ..Compared::default() };
        let across = Across { name: "", place: |best| best.trial as f64, first: 1.0, last: 8.0 };
        let steps = steps(&program, &program.strategies[0], &across);
        let told: Vec<_> = steps.iter().map(|at| (at.from, at.low, at.median, at.high)).collect();
        assert_eq!(told, [(1.0, 0.0, 25.0, 25.0), (2.0, 0.0, 25.0, 100.0), (3.0, 0.0, 50.0, 100.0)]);
    }

    #[test]
    fn many_seeds_are_shown_without_the_outer_quarters() {
        let searches = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 20.0, 40.0, 50.0].map(|time| search(&[(0, time)], 1));
        let strategy = Strategy { searches: searches.to_vec(), ..Strategy::default() };
        let program = Compared { best_known: 1.0, ..Compared::default() };
        let only = step(&program, &strategy, |best| best.trial as f64, 1.0).unwrap();
        assert_eq!((only.low, only.median, only.high), (5.0, 12.5, 25.0));
    }
}
