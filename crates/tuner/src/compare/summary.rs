//! Computes the statistics of a comparison's searches: one [`Summary`] for each strategy.
//!
//! Not every search comes near the best kernel before it ends. A mean over the successful searches
//! would flatter strategies that seldom succeed. So the cost of success is given as the *expected
//! running time* of optimiser benchmarks (Hansen et al., "COCO", Optimization Methods and Software
//! 36(1), 2021, section 3.2). This is the total effort of all searches, each up to its success or
//! its end, divided by the number of successes. It estimates the effort of repeating the search
//! with new seeds until the kernel is found.

use super::results::{Comparison, ProgramResult, SearchResult, StrategyResult};

/// The share of the best known kernel's speed at which a kernel counts as found.
pub const SUCCESS_SHARE: f64 = 0.95;

/// A success with the default schedule counts as one trial, and as one millisecond.
const FIRST_TRIAL: f64 = 1.0;
const FIRST_SECONDS: f64 = 1e-3;

/// The results of one strategy on one program.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The name of the strategy.
    pub name: String,
    /// The time of one call of the best kernel of all seeds in seconds, or `None` if nothing was
    /// found.
    pub best: Option<f64>,
    /// The mean final time over the seeds that found anything, in seconds.
    pub mean: f64,
    /// The sample standard deviation over these seeds, in seconds; 0 for a single seed.
    pub deviation: f64,
    /// The number of searches that came near the best known kernel, and the number of all searches.
    pub successes: (usize, usize),
    /// The expected number of trials until a search comes near the best known kernel.
    pub trials: EffortToGoal,
    /// The expected time in seconds until then.
    pub seconds: EffortToGoal,
    /// The mean share of the space that was proposed.
    pub visited_share: f64,
    /// The mean time that the strategy takes for one proposal, in seconds.
    pub seconds_per_proposal: f64,
}

/// The effort to come near the best known kernel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum EffortToGoal {
    /// This effort succeeded.
    Reached(f64),
    /// This effort was spent without success, so the true effort is larger.
    NotReached(f64),
}

/// The results of one strategy on all programs, as geometric means.
#[derive(Clone, Debug, PartialEq)]
pub struct Overall {
    /// The name of the strategy.
    pub name: String,
    /// The number of searches that came near the best known kernel, and the number of all searches.
    pub successes: (usize, usize),
    /// The number of trials until then. It is `NotReached` if it is so for one of the programs.
    pub trials: EffortToGoal,
    /// The time in seconds until then.
    pub seconds: EffortToGoal,
    /// The final speed of searches relative to the best known kernel, 1 being the best.
    pub quality: f64,
}

impl EffortToGoal {
    /// The effort, successful or not.
    pub fn value(self) -> f64 {
        match self {
            EffortToGoal::Reached(number) | EffortToGoal::NotReached(number) => number,
        }
    }
}

/// The summary of each strategy.
pub fn summaries(compared: &ProgramResult) -> Vec<Summary> {
    compared.strategies.iter().map(|strategy| summary(compared, strategy)).collect()
}

fn summary(compared: &ProgramResult, strategy: &StrategyResult) -> Summary {
    let searches = &strategy.searches;
    let finals: Vec<f64> = searches.iter().filter_map(final_seconds).collect();
    let mean = mean(&finals);
    let squares: f64 = finals.iter().map(|own| (own - mean).powi(2)).sum();
    let near = |search: &SearchResult| first_success(search, compared.best_known);
    let trials = |search: &SearchResult| near(search).map_or(search.trials, |(trial, _)| trial) as f64;
    let seconds = |search: &SearchResult| near(search).map_or(search.seconds, |(_, after)| after);
    let reached = searches.iter().filter(|search| near(search).is_some()).count();
    let proposals: usize = searches.iter().map(|search| search.proposals).sum();
    let thinking: f64 = searches.iter().map(|search| search.strategy_seconds).sum();
    Summary {
        name: strategy.name.clone(),
        best: finals.iter().copied().reduce(f64::min),
        mean,
        deviation: (squares / finals.len().saturating_sub(1).max(1) as f64).sqrt(),
        successes: (reached, searches.len()),
        trials: expected_effort(searches.iter().map(trials).sum(), reached),
        seconds: expected_effort(searches.iter().map(seconds).sum(), reached),
        visited_share: proposals as f64 / searches.len().max(1) as f64 / compared.size.max(1.0),
        seconds_per_proposal: thinking / proposals.max(1) as f64,
    }
}

/// The overall result of each strategy that has searched anything. Programs that a strategy has not
/// searched do not count for it.
pub fn overall(comparison: &Comparison) -> Vec<Overall> {
    let Some(first) = comparison.programs.first() else { return Vec::new() };
    first.strategies.iter().filter_map(|strategy| overall_of_strategy(comparison, &strategy.name)).collect()
}

fn overall_of_strategy(comparison: &Comparison, name: &str) -> Option<Overall> {
    let searched = comparison.programs.iter().filter_map(|compared| {
        let own = compared.strategies.iter().find(|own| own.name == name && !own.searches.is_empty())?;
        Some((summary(compared, own), quality(compared, own)))
    });
    let (own, qualities): (Vec<Summary>, Vec<f64>) = searched.unzip();
    (!own.is_empty()).then(|| Overall {
        name: name.to_owned(),
        successes: own.iter().fold((0, 0), |sum, own| (sum.0 + own.successes.0, sum.1 + own.successes.1)),
        trials: combine_efforts(own.iter().map(|own| own.trials), FIRST_TRIAL),
        seconds: combine_efforts(own.iter().map(|own| own.seconds), FIRST_SECONDS),
        quality: geometric_mean(&qualities),
    })
}

/// The number of trials and the seconds after which a search came near the best known kernel.
fn first_success(search: &SearchResult, best_known: f64) -> Option<(usize, f64)> {
    let found = search.bests.iter().find(|best| best_known >= SUCCESS_SHARE * best.seconds)?;
    Some((found.trial, found.after))
}

/// The mean final speed of searches relative to the best known kernel.
fn quality(compared: &ProgramResult, strategy: &StrategyResult) -> f64 {
    let qualities = strategy
        .searches
        .iter()
        .map(|search| final_seconds(search).map_or(0.0, |own| compared.best_known / own));
    mean(&qualities.collect::<Vec<f64>>())
}

fn final_seconds(search: &SearchResult) -> Option<f64> {
    search.bests.last().map(|best| best.seconds)
}

/// The expected effort of one success, from the total effort and the number of successes.
fn expected_effort(spent: f64, finds: usize) -> EffortToGoal {
    match finds {
        0 => EffortToGoal::NotReached(spent),
        finds => EffortToGoal::Reached(spent / finds as f64),
    }
}

/// The geometric mean, in which every effort counts as at least `least`.
fn combine_efforts(all: impl Iterator<Item = EffortToGoal>, least: f64) -> EffortToGoal {
    let all: Vec<EffortToGoal> = all.collect();
    let mean = geometric_mean(&all.iter().map(|own| own.value().max(least)).collect::<Vec<f64>>());
    match all.iter().any(|own| matches!(own, EffortToGoal::NotReached(_))) {
        true => EffortToGoal::NotReached(mean),
        false => EffortToGoal::Reached(mean),
    }
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len().max(1) as f64
}

fn geometric_mean(numbers: &[f64]) -> f64 {
    (numbers.iter().map(|number| number.ln()).sum::<f64>() / numbers.len().max(1) as f64).exp()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::float_cmp, reason = "the numbers are exact")]

    use super::super::results::Improvement;
    use super::*;

    fn search(bests: &[(usize, f64, f64)]) -> SearchResult {
        let bests = bests.iter().map(|(trial, after, seconds)| Improvement {
            trial: *trial,
            after: *after,
            seconds: *seconds,
        });
        SearchResult {
            bests: bests.collect(),
            trials: 100,
            proposals: 200,
            seconds: 50.0,
            strategy_seconds: 1.0,
            ..SearchResult::default()
        }
    }

    fn compared(searches: Vec<SearchResult>) -> ProgramResult {
        let strategies = vec![StrategyResult { name: "any".to_owned(), searches }];
        ProgramResult { size: 1000.0, best_known: 1.0, strategies, ..ProgramResult::default() }
    }

    #[test]
    fn near_is_95_percent_of_the_speed() {
        let found = compared(vec![
            search(&[(0, 1.0, 4.0), (10, 5.0, 1.06), (20, 9.0, 1.04)]),
            search(&[(0, 1.0, 4.0), (30, 10.0, 1.0)]),
            search(&[(0, 1.0, 4.0), (7, 3.0, 2.0)]),
        ]);
        let own = &summaries(&found)[0];
        assert_eq!((own.successes, own.best), ((2, 3), Some(1.0)));
        // 20 and 30 trials succeeded and 100 did not; likewise 9 and 10 seconds, and 50.
        assert_eq!((own.trials, own.seconds), (EffortToGoal::Reached(75.0), EffortToGoal::Reached(34.5)));
        assert_eq!((own.visited_share, own.seconds_per_proposal), (0.2, 0.005));
        assert!((own.mean - 4.04 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn what_nobody_reaches_is_beyond() {
        let far = || search(&[(0, 1.0, 4.0)]);
        let seldom = compared(vec![search(&[(5, 2.0, 1.0)]), far(), far()]);
        assert_eq!(summaries(&seldom)[0].trials, EffortToGoal::Reached(205.0));
        let never = compared(vec![far(), far()]);
        assert_eq!(summaries(&never)[0].trials, EffortToGoal::NotReached(200.0));
        let reached = compared(vec![search(&[(50, 2.0, 1.0)])]);
        let both = overall(&Comparison { setting: Vec::new(), programs: vec![never, reached] });
        assert_eq!(both[0].successes, (1, 3));
        let EffortToGoal::NotReached(trials) = both[0].trials else { panic!("one is beyond") };
        assert!((trials - 100.0).abs() < 1e-9);
    }

    /// This happens when a comparison is stopped.
    #[test]
    fn programs_without_searches_do_not_count() {
        let reached = compared(vec![search(&[(25, 2.0, 1.0)])]);
        let both =
            overall(&Comparison { setting: Vec::new(), programs: vec![reached, compared(Vec::new())] });
        assert_eq!((both[0].successes, both[0].quality), ((1, 1), 1.0));
        let EffortToGoal::Reached(trials) = both[0].trials else { panic!("it was reached") };
        assert!((trials - 25.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_found_is_no_number_of_anything() {
        let own = summaries(&compared(vec![SearchResult::default()])).remove(0);
        assert_eq!((own.best, own.successes, own.seconds_per_proposal), (None, (0, 1), 0.0));
        assert_eq!(overall(&Comparison::default()), []);
        assert_eq!(summaries(&compared(Vec::new()))[0].trials, EffortToGoal::NotReached(0.0));
    }
}
