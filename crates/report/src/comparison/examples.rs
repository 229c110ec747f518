//! Makes artificial comparisons, for tests of the drawings and the page.

use tilewright_tuner::compare::{Comparison, Improvement, ProgramResult, SearchResult, StrategyResult};

/// A pseudorandom generator (splitmix64).
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1.
    fn next_fraction(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The strategies: name, rate of improvement, and seconds per proposal. A strategy with rate 0
/// finds nothing.
const STRATEGIES: [(&str, f64, f64); 7] = [
    ("random", 0.25, 2e-6),
    ("annealing", 0.45, 1.3e-5),
    ("evolution with a learnt model", 0.8, 4.2e-3),
    ("bayesian", 0.7, 0.061),
    ("hill climbing", 0.35, 8e-6),
    ("found nothing", 0.0, 1e-4),
    ("one improvement", 0.1, 3e-5),
];

/// A comparison with three programs.
pub fn example_comparison() -> Comparison {
    let about = [("target", "cpu, 2 threads"), ("budget", "200 trials"), ("seeds", "5")];
    let sizes = [("matmul m=1024, n=1024, k=1024", 3.2e11, 1.9e-3), ("softmax n=4096", 48_216.0, 4.1e-5)];
    let sizes = sizes.into_iter().chain([("conv2d <3x3> c=64, h=56 & w=56", 7.7e8, 6.3e-4)]);
    Comparison {
        setting: about.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        programs: sizes.map(|(name, size, best)| program(name, size, best)).collect(),
    }
}

fn program(name: &str, size: f64, best_known: f64) -> ProgramResult {
    let default = best_known * 4.3;
    let strategies = STRATEGIES.iter().zip(1..).map(|((name, rate, thinking), number)| StrategyResult {
        name: (*name).to_owned(),
        searches: (0..5)
            .map(|seed| example_search(best_known, default, (*rate, *thinking), seed, 100 * number + seed))
            .collect(),
    });
    let strategies = strategies.collect();
    ProgramResult {
        name: name.to_owned(),
        size,
        best_known,
        is_optimum: size < 1e5,
        default: Some(default),
        strategies,
    }
}

fn example_search(
    best_known: f64,
    default: f64,
    (rate, thinking): (f64, f64),
    seed: u64,
    state: u64,
) -> SearchResult {
    let mut random = Random(state + (best_known * 1e9) as u64);
    let pace = 0.11 + 0.05 * random.next_fraction();
    let mut bests =
        vec![Improvement { trial: 0, after: 0.4 + 0.1 * random.next_fraction(), seconds: default }];
    let mut best = default;
    for trial in 1..=200 {
        let reach = 1.0 - (-rate * (trial as f64).powf(0.55) * (0.5 + random.next_fraction())).exp();
        let seconds = best_known / (0.23 + 0.77 * reach * random.next_fraction().powf(0.3));
        let is_one = rate != 0.1 || (trial == 20 + 4 * seed as usize && bests.len() == 1);
        if is_one && seconds < 0.99 * best {
            best = seconds;
            bests.push(Improvement { trial, after: 0.5 + pace * trial as f64, seconds });
        }
    }
    if rate == 0.0 {
        bests.clear();
    }
    let seconds = 0.5 + pace * 200.0;
    SearchResult {
        seed,
        bests,
        contenders: Vec::new(),
        trials: 200,
        proposals: 900,
        seconds,
        strategy_seconds: 900.0 * thinking * (0.8 + 0.4 * random.next_fraction()),
    }
}

/// A search that improved at the given trials, with one second per trial.
pub fn search(bests: &[(usize, f64)], trials: usize) -> SearchResult {
    let best = |(trial, seconds): &(usize, f64)| Improvement {
        trial: *trial,
        after: *trial as f64 + 0.5,
        seconds: *seconds,
    };
    SearchResult {
        bests: bests.iter().map(best).collect(),
        trials,
        seconds: trials as f64 + 1.0,
        ..SearchResult::default()
    }
}

/// Programs with too little data, or with impossible values.
pub fn degenerate_programs() -> Vec<ProgramResult> {
    let strategies = |searches: Vec<Vec<SearchResult>>| {
        let named = |searches| StrategyResult { name: "<i>&".repeat(30), searches };
        searches.into_iter().map(named).collect::<Vec<_>>()
    };
    let program = |strategies| ProgramResult {
        name: "<i>".repeat(90),
        best_known: 1.0,
        strategies,
        ..ProgramResult::default()
    };
    let nothing = SearchResult::default();
    let beyond = SearchResult { trials: 3, seconds: 0.5, ..search(&[(0, 2.0), (9, 0.5)], 9) };
    let unknown = search(&[(0, f64::INFINITY), (1, 0.0), (2, f64::NAN)], 4);
    vec![
        ProgramResult::default(),
        program(strategies(vec![])),
        program(strategies(vec![vec![], vec![]])),
        program(strategies(vec![vec![nothing.clone()], vec![search(&[], 50); 3]])),
        program(strategies(vec![vec![search(&[(0, 3.0)], 0)], vec![search(&[(1, 2.0)], 1)]])),
        program(strategies(vec![vec![search(&[(0, 3.0), (7, 1.0)], 9); 7], vec![beyond, unknown, nothing]])),
        program(strategies((0..25).map(|at| vec![search(&[(0, 3.0), (at, 2.0)], 30)]).collect())),
        ProgramResult { best_known: 0.0, ..program(strategies(vec![vec![search(&[(0, 3.0)], 5)]])) },
    ]
}
