//! Defines the results of a comparison of strategies: a [`Comparison`] has programs, a program
//! has strategies, and a strategy has one search for each seed.

use serde::{Deserialize, Serialize};

/// The searches of several strategies on the same programs under one budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The setting of the comparison: names with values, such as the target and the budget.
    #[serde(rename = "about")]
    pub setting: Vec<(String, String)>,
    /// The programs.
    pub programs: Vec<ProgramResult>,
}

/// The searches on one program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProgramResult {
    /// The program with its sizes.
    pub name: String,
    /// The number of points in the space.
    pub size: f64,
    /// The time of one call of the best known kernel, in seconds.
    pub best_known: f64,
    /// Whether every point was tried, so that no kernel can be better than the best known one.
    pub is_optimum: bool,
    /// The time of one call of the default schedule in seconds, if known. Every search that is not
    /// blind begins with this schedule.
    pub default: Option<f64>,
    /// The strategies, in the order in which they were given.
    pub strategies: Vec<StrategyResult>,
}

impl ProgramResult {
    /// The searches of all strategies.
    pub fn searches(&self) -> impl Iterator<Item = &SearchResult> {
        self.strategies.iter().flat_map(|strategy| &strategy.searches)
    }
}

/// The searches of one strategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StrategyResult {
    /// The name of the strategy.
    pub name: String,
    /// One search for each seed.
    pub searches: Vec<SearchResult>,
}

/// One search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchResult {
    /// The seed of all random decisions.
    pub seed: u64,
    /// The candidates that were better than all before them, in order.
    pub bests: Vec<Improvement>,
    /// The candidates that seemed as good as all before them, or nearly so, in order.
    #[serde(skip)]
    pub contenders: Vec<Contender>,
    /// The number of candidates that were measured.
    pub trials: usize,
    /// The number of points that were proposed.
    pub proposals: usize,
    /// The total time of the search, in seconds.
    pub seconds: f64,
    /// The part of that time that the strategy itself took to propose and to learn, in seconds.
    #[serde(rename = "thinking")]
    pub strategy_seconds: f64,
}

/// A candidate that may turn out to be better than all before it when it is measured again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contender {
    /// The number of the trial, from 1; 0 is the default schedule.
    pub trial: usize,
    /// The time when the result was known, in seconds since the start of the search.
    pub after: f64,
    /// The text of the schedule.
    pub schedule: String,
}

/// A candidate that was better than all before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Improvement {
    /// The number of the trial, from 1; 0 is the default schedule.
    pub trial: usize,
    /// The time when the result was known, in seconds since the start of the search.
    pub after: f64,
    /// The time of one call, in seconds.
    pub seconds: f64,
}
