//! Computes the quality of the best candidate so far as a step function: the median of a
//! strategy's searches, and a band that contains all of them, or the middle half if more than
//! [`MOST_FULL_BAND_SEARCHES`] ran.

use super::spread::{Spread, quality};
use tilewright_tuner::compare::{Improvement, ProgramResult, SearchResult, StrategyResult};

/// With more seeds than this, the band leaves out the lowest and the highest quarter.
const MOST_FULL_BAND_SEARCHES: usize = 5;

/// A horizontal axis.
pub struct HorizontalAxis {
    /// The quantity along the axis.
    pub name: &'static str,
    /// Returns the position of a candidate.
    pub position: fn(&Improvement) -> f64,
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
pub fn steps(program: &ProgramResult, strategy: &StrategyResult, across: &HorizontalAxis) -> Vec<Step> {
    let bests = strategy.searches.iter().flat_map(|search| &search.bests);
    let changes = bests.map(across.position).filter(|at| *at > across.first && *at <= across.last);
    let mut places: Vec<f64> = changes.chain([across.first]).collect();
    places.sort_by(f64::total_cmp);
    places.dedup();
    places.into_iter().filter_map(|from| step(program, strategy, across.position, from)).collect()
}

fn step(
    program: &ProgramResult,
    strategy: &StrategyResult,
    position: fn(&Improvement) -> f64,
    from: f64,
) -> Option<Step> {
    let so_far = |search: &SearchResult| {
        let known = search.bests.iter().take_while(|best| position(best) <= from);
        quality(program, known.last())
    };
    let Spread { lowest, lower, median, upper, highest } =
        Spread::of(strategy.searches.iter().map(so_far).collect())?;
    let (low, high) =
        if strategy.searches.len() > MOST_FULL_BAND_SEARCHES { (lower, upper) } else { (lowest, highest) };
    Some(Step { from, low, median, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::examples::search;

    #[test]
    fn a_search_that_has_ended_keeps_what_it_has() {
        let strategy = StrategyResult {
            name: "a".to_owned(),
            searches: vec![
                search(&[(0, 4.0), (2, 1.0)], 4),
                search(&[(0, 4.0), (3, 2.0)], 8),
                search(&[], 8),
            ],
        };
        let program =
            ProgramResult { best_known: 1.0, strategies: vec![strategy], ..ProgramResult::default() };
        let across = HorizontalAxis { name: "", position: |best| best.trial as f64, first: 1.0, last: 8.0 };
        let steps = steps(&program, &program.strategies[0], &across);
        let told: Vec<_> = steps.iter().map(|at| (at.from, at.low, at.median, at.high)).collect();
        assert_eq!(told, [(1.0, 0.0, 25.0, 25.0), (2.0, 0.0, 25.0, 100.0), (3.0, 0.0, 50.0, 100.0)]);
    }

    #[test]
    fn many_seeds_are_shown_without_the_outer_quarters() {
        let searches = [1.0, 2.0, 4.0, 5.0, 8.0, 10.0, 20.0, 40.0, 50.0].map(|time| search(&[(0, time)], 1));
        let strategy = StrategyResult { searches: searches.to_vec(), ..StrategyResult::default() };
        let program = ProgramResult { best_known: 1.0, ..ProgramResult::default() };
        let only = step(&program, &strategy, |best| best.trial as f64, 1.0).unwrap();
        assert_eq!((only.low, only.median, only.high), (5.0, 12.5, 25.0));
    }
}
