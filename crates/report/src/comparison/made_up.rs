//! Artificial comparisons, for tests of the drawings and the page.

use tilewright_tuner::compare::{Best, Compared, Comparison, Search, Strategy};

/// A pseudorandom generator (splitmix64).
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1.
    fn part(&mut self) -> f64 {
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
pub fn made_up() -> Comparison {
    let about = [("target", "cpu, 2 threads"), ("budget", "200 trials"), ("seeds", "5")];
    let sizes = [("matmul m=1024, n=1024, k=1024", 3.2e11, 1.9e-3), ("softmax n=4096", 48_216.0, 4.1e-5)];
    let sizes = sizes.into_iter().chain([("conv2d <3x3> c=64, h=56 & w=56", 7.7e8, 6.3e-4)]);
    Comparison {
        about: about.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        programs: sizes.map(|(name, size, best)| program(name, size, best)).collect(),
    }
}

fn program(name: &str, size: f64, best_known: f64) -> Compared {
    let default = best_known * 4.3;
    let strategies = STRATEGIES.iter().zip(1..).map(|((name, rate, thinking), number)| Strategy {
        name: (*name).to_owned(),
        searches: (0..5)
            .map(|seed| found(best_known, default, (*rate, *thinking), seed, 100 * number + seed))
            .collect(),
    });
    let strategies = strategies.collect();
    Compared {
        name: name.to_owned(),
        size,
        best_known,
        is_optimum: size < 1e5,
        default: Some(default),
        strategies,
    }
}

fn found(best_known: f64, default: f64, (rate, thinking): (f64, f64), seed: u64, state: u64) -> Search {
    let mut random = Random(state + (best_known * 1e9) as u64);
    let pace = 0.11 + 0.05 * random.part();
    let mut bests = vec![Best { trial: 0, after: 0.4 + 0.1 * random.part(), seconds: default }];
    let mut best = default;
    for trial in 1..=200 {
        let reach = 1.0 - (-rate * (trial as f64).powf(0.55) * (0.5 + random.part())).exp();
        let seconds = best_known / (0.23 + 0.77 * reach * random.part().powf(0.3));
        let is_one = rate != 0.1 || (trial == 20 + 4 * seed as usize && bests.len() == 1);
        if is_one && seconds < 0.99 * best {
            best = seconds;
            bests.push(Best { trial, after: 0.5 + pace * trial as f64, seconds });
        }
    }
    if rate == 0.0 {
        bests.clear();
    }
    let seconds = 0.5 + pace * 200.0;
    Search {
        seed,
        bests,
        contenders: Vec::new(),
        trials: 200,
        proposals: 900,
        seconds,
        thinking: 900.0 * thinking * (0.8 + 0.4 * random.part()),
    }
}

/// A search that improved at the given trials, with one second per trial.
pub fn search(bests: &[(usize, f64)], trials: usize) -> Search {
    let best = |(trial, seconds): &(usize, f64)| Best {
        trial: *trial,
        after: *trial as f64 + 0.5,
        seconds: *seconds,
    };
    Search {
        bests: bests.iter().map(best).collect(),
        trials,
        seconds: trials as f64 + 1.0,
        ..Search::default()
    }
}

/// Programs with too little data, or with impossible values.
pub fn odd() -> Vec<Compared> {
    let strategies = |searches: Vec<Vec<Search>>| {
        let named = |searches| Strategy { name: "<i>&".repeat(30), searches };
        searches.into_iter().map(named).collect::<Vec<_>>()
    };
    let program =
        |strategies| Compared { name: "<i>".repeat(90), best_known: 1.0, strategies, ..Compared::default() };
    let nothing = Search::default();
    let beyond = Search { trials: 3, seconds: 0.5, ..search(&[(0, 2.0), (9, 0.5)], 9) };
    let unknown = search(&[(0, f64::INFINITY), (1, 0.0), (2, f64::NAN)], 4);
    vec![
        Compared::default(),
        program(strategies(vec![])),
        program(strategies(vec![vec![], vec![]])),
        program(strategies(vec![vec![nothing.clone()], vec![search(&[], 50); 3]])),
        program(strategies(vec![vec![search(&[(0, 3.0)], 0)], vec![search(&[(1, 2.0)], 1)]])),
        program(strategies(vec![vec![search(&[(0, 3.0), (7, 1.0)], 9); 7], vec![beyond, unknown, nothing]])),
        program(strategies((0..25).map(|at| vec![search(&[(0, 3.0), (at, 2.0)], 30)]).collect())),
        Compared { best_known: 0.0, ..program(strategies(vec![vec![search(&[(0, 3.0)], 5)]])) },
    ]
}
