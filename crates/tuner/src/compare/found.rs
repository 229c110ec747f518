//! What a comparison of strategies has found.

use serde::{Deserialize, Serialize};

/// Strategies that searched the same programs under one budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// How it was made: names with values, such as the target and the budget.
    pub about: Vec<(String, String)>,
    /// What was searched.
    pub programs: Vec<Compared>,
}

/// The searches of one program.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// The program with its sizes.
    pub name: String,
    /// How many points the space has.
    pub size: f64,
    /// Seconds of a call of the best kernel known, and whether every point was tried, so that nothing can be better.
    pub best_known: f64,
    /// Whether it is the best there is.
    pub is_optimum: bool,
    /// Seconds of a call of the default schedule, which every search begins with; none where there is none.
    pub default: Option<f64>,
    /// The strategies, in the order in which they were named.
    pub strategies: Vec<Strategy>,
}

impl Compared {
    /// All searches.
    pub fn searches(&self) -> impl Iterator<Item = &Search> {
        self.strategies.iter().flat_map(|strategy| &strategy.searches)
    }
}

/// The searches of one strategy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Strategy {
    /// Its name.
    pub name: String,
    /// One for each seed.
    pub searches: Vec<Search>,
}

/// One search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// What decides all that is random.
    pub seed: u64,
    /// Every candidate that was better than all before, in order.
    pub bests: Vec<Best>,
    /// Every candidate that seemed to be as good as all before, or nearly so, in order.
    #[serde(skip)]
    pub contenders: Vec<Contender>,
    /// Candidates that were measured.
    pub trials: usize,
    /// Points that were proposed.
    pub proposals: usize,
    /// Seconds in all.
    pub seconds: f64,
    /// Those of them that the strategy itself has taken, to propose and to learn.
    pub thinking: f64,
}

/// A candidate that may be better than all before, when it is measured again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contender {
    /// Its number, from 1; 0 is the default schedule.
    pub trial: usize,
    /// When it was known, in seconds since the start of the search.
    pub after: f64,
    /// Its schedule, as text.
    pub schedule: String,
}

/// A candidate that was better than all before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Best {
    /// Its number, from 1; 0 is the default schedule.
    pub trial: usize,
    /// When it was known, in seconds since the start of the search.
    pub after: f64,
    /// Seconds of a call.
    pub seconds: f64,
}
