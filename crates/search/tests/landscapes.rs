//! Strategies on synthetic landscapes with a known optimum. Strategies that use results need fewer
//! trials than random search to come close to the optimum.
//!
//! The landscapes resemble those of real kernels. They are smooth in the logarithms of the factors
//! and slightly rough, and points beyond limits on threads, registers and shared memory are
//! invalid.

use tilewright_search::knob::{Divisors, Knob, Knobs, Point, Value};
use tilewright_search::strategy::{ALL as ALL_STRATEGIES, Experience, Features, Start, TrialResult, by_name};

/// A search space with a cost function whose optimum is 1, except for roughness.
struct Landscape {
    knobs: Knobs,
    cost: fn(&Point) -> Option<f64>,
}

fn tile(name: &str, extent: i64, parts: usize) -> Knob {
    Knob::factorisation(name, extent, parts, Divisors::Exact)
}

/// A matrix product of 1024³ on a GPU, 899756 points.
fn gemm() -> Landscape {
    let knobs = Knobs::new(vec![tile("m", 1024, 4), tile("k", 1024, 2), tile("n", 1024, 4)]);
    Landscape { knobs, cost: |point| gemm_cost(point, 0.0) }
}

/// The same with a pseudo-random variation of the costs by 5 %.
fn rough_gemm() -> Landscape {
    Landscape { cost: |point| gemm_cost(point, 0.05), ..gemm() }
}

/// A matrix product whose extents have few divisors, with a loop order, unrolling and a layout,
/// 356539680 points.
fn few_divisors() -> Landscape {
    let near = |name: &str, extent, parts| {
        Knob::factorisation(name, extent, parts, Divisors::Near { most_waste_percent: 5 })
    };
    let knobs = Knobs::new(vec![
        near("m", 509, 3),
        near("n", 1000, 3),
        Knob::permutation("order", 4),
        Knob::ordinal("unroll", [0, 4, 16, 64, 256]),
        Knob::categorical("layout", ["rows", "columns", "packed"]),
    ]);
    Landscape { knobs, cost: few_divisors_cost }
}

fn factors(value: &Value) -> &[i64] {
    match value {
        Value::Factors(factors) => factors,
        other => panic!("{other:?} are no factors"),
    }
}

/// The squared distance of the factors' logarithms from `best`.
fn distance(factors: &[i64], best: &[f64]) -> f64 {
    factors.iter().zip(best).map(|(&factor, best)| ((factor as f64).log2() - best).powi(2)).sum()
}

/// A pseudo-random number from 0 to 1 that depends only on the factors of the point, and is the
/// same in every release of Rust.
fn roughness(point: &Point) -> f64 {
    let factors = point.0.iter().filter_map(|value| match value {
        Value::Factors(factors) => Some(factors),
        _ => None,
    });
    let mix =
        |hash: u64, &factor: &i64| (hash ^ factor as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31);
    factors.flatten().fold(1, mix) as f64 / u64::MAX as f64
}

fn gemm_cost(point: &Point, rough: f64) -> Option<f64> {
    let [m, k, n] = [&point.0[0], &point.0[1], &point.0[2]].map(factors);
    let threads = m[2] * n[2];
    let registers = m[1] * m[3] * n[1] * n[3];
    let shared = (m[1] * m[2] * m[3] + n[1] * n[2] * n[3]) * k[1];
    if threads > 1024 || registers > 256 || shared > 12 * 1024 {
        return None;
    }
    let away =
        distance(m, &[3.0, 1.0, 4.0, 2.0]) + distance(k, &[7.0, 3.0]) + distance(n, &[3.0, 0.0, 5.0, 2.0]);
    Some((1.0 + 0.05 * away) * (1.0 + rough * roughness(point)))
}

fn few_divisors_cost(point: &Point) -> Option<f64> {
    let [
        Value::Factors(m),
        Value::Factors(n),
        Value::Order(order),
        Value::Choice(unroll),
        Value::Choice(layout),
    ] = &point.0[..]
    else {
        panic!("{point:?} is not of this space");
    };
    if m[2] * n[2] > 600 || m[1] * m[2] * n[1] * n[2] > 1 << 16 {
        return None;
    }
    let tiles = distance(&m[1..], &[3.0, 3.5]) + distance(&n[1..], &[2.0, 5.0]);
    let misplaced = order.iter().zip([2, 0, 3, 1]).filter(|(at, best)| **at != *best).count();
    let unrolled = unroll.abs_diff(2);
    let layout = [0.4, 0.8, 0.0][*layout];
    Some(
        (1.0 + 0.04 * tiles + 0.1 * misplaced as f64 + 0.1 * unrolled as f64 + layout)
            * (1.0 + 0.03 * roughness(point)),
    )
}

/// The number of trials, in batches of 8, until a cost of at most `quality`. Returns `most` if that
/// many trials were not enough.
fn trials(landscape: &Landscape, name: &str, seed: u64, quality: f64, most: usize) -> usize {
    trials_from(landscape, name, Start { seed, ..Start::default() }, quality, most)
}

fn trials_from(landscape: &Landscape, name: &str, start: Start<'_>, quality: f64, most: usize) -> usize {
    let mut strategy = by_name(name, &landscape.knobs, start).expect("a known name");
    let mut tried = 0;
    while tried < most {
        let points = strategy.propose(8);
        let mut results = Vec::new();
        for point in points {
            tried += 1;
            let cost = (landscape.cost)(&point);
            if cost.is_some_and(|cost| cost <= quality) {
                return tried;
            }
            results.push(TrialResult { point, cost });
        }
        strategy.report(&results);
    }
    most
}

/// The median of the numbers of trials over this number of seeds, which must be odd.
fn median(landscape: &Landscape, name: &str, quality: f64, seeds: u64) -> usize {
    let mut all: Vec<usize> = (0..seeds).map(|seed| trials(landscape, name, seed, quality, 4000)).collect();
    all.sort_unstable();
    let [best, middle, worst] = [0, all.len() / 2, all.len() - 1].map(|at| all[at]);
    println!("{name:8} {best:5} {middle:5} {worst:5} trials at best, in the middle and at worst");
    middle
}

fn assert_all_beat_random(landscape: &Landscape, quality: f64, factors: &[(&str, usize)]) {
    let random = median(landscape, "random", quality, 21);
    for (name, factor) in factors {
        let found = median(landscape, name, quality, 21);
        assert!(found * factor < random, "{name} takes {found} trials, random search {random}");
    }
}

/// Strategies, each with the least factor by which it needs fewer trials than random search.
const ALL: [(&str, usize); 4] = [("opevo", 4), ("gbfs", 4), ("genetic", 2), ("p-method", 2)];

#[test]
fn smooth() {
    assert_all_beat_random(&gemm(), 1.25, &ALL);
}

#[test]
fn rough() {
    assert_all_beat_random(&rough_gemm(), 1.25, &ALL);
}

#[test]
fn all_kinds_of_knobs() {
    assert_all_beat_random(&few_divisors(), 1.25, &ALL);
}

/// Strategies that learn take longer for each proposal, so the test uses fewer seeds and one
/// landscape.
#[test]
fn learning_strategies() {
    let random = median(&few_divisors(), "random", 1.25, 3);
    for (name, factor) in [("na2c", 4), ("q-method", 2), ("trees", 4), ("guided", 4), ("bandit", 4)] {
        let found = median(&few_divisors(), name, 1.25, 3);
        assert!(found * factor < random, "{name} takes {found} trials, random search {random}");
    }
}

/// A landscape without good points near the trivial one and with few elsewhere. A point a little
/// off the optimum costs as much as a distant one.
fn plateau() -> Landscape {
    let knobs =
        Knobs::new(vec![tile("m", 1024, 3), tile("n", 1024, 3), Knob::ordinal("unroll", [1, 2, 4, 8])]);
    let cost = |point: &Point| {
        let [m, n] = [&point.0[0], &point.0[1]].map(factors);
        let Value::Choice(unroll) = point.0[2] else { panic!("{point:?} is not of this space") };
        let unrolled = (unroll as f64 - 2.0).powi(2);
        let away = distance(m, &[3.0, 2.0, 5.0]) + distance(n, &[4.0, 2.0, 4.0]) + unrolled;
        Some(if away > 20.0 { 10.0 + 0.1 * roughness(point) } else { 1.0 + 0.2 * away })
    };
    Landscape { knobs, cost }
}

/// A landscape with costs from 1 to a million. Seven of a hundred points are valid, and none of
/// them is near the trivial point.
fn steep() -> Landscape {
    let knobs = Knobs::new(vec![tile("m", 2048, 4), tile("n", 2048, 4)]);
    let cost = |point: &Point| {
        let [m, n] = [&point.0[0], &point.0[1]].map(factors);
        let (threads, registers) = (m[2] * n[2], m[3] * n[3]);
        let valid = m[1] * n[1] <= 32 && (16..=64).contains(&threads) && registers >= 16;
        let away = distance(m, &[4.0, 1.0, 3.0, 3.0]) + distance(n, &[3.0, 2.0, 2.0, 4.0]);
        valid.then(|| (0.1 * away).exp())
    };
    Landscape { knobs, cost }
}

/// A landscape of unordered choices, each of which matters independently.
fn choices() -> Landscape {
    let knob = |at: usize| Knob::categorical(format!("choice{at}"), ["a", "b", "c", "d", "e"]);
    let cost = |point: &Point| {
        let each = point.0.iter().enumerate().map(|(at, value)| match value {
            Value::Choice(choice) => (3 * choice + 2 * at) % 5,
            other => panic!("{other:?} is no choice"),
        });
        Some(1.0 + 0.2 * each.sum::<usize>() as f64)
    };
    Landscape { knobs: Knobs::new((0..6).map(knob).collect()), cost }
}

/// The least cost of this number of trials.
fn best_of(landscape: &Landscape, name: &str, seed: u64, trials: usize) -> f64 {
    let mut strategy =
        by_name(name, &landscape.knobs, Start { seed, ..Start::default() }).expect("a known name");
    let (mut tried, mut best) = (0, f64::INFINITY);
    while tried < trials {
        let points = strategy.propose(8.min(trials - tried));
        tried += points.len();
        let tell = |point: Point| TrialResult { cost: (landscape.cost)(&point), point };
        let results: Vec<TrialResult> = points.into_iter().map(tell).collect();
        best = results.iter().filter_map(|told| told.cost).fold(best, f64::min);
        strategy.report(&results);
    }
    best
}

/// With the same number of trials, each strategy is better than random search more often than not,
/// even from bad starting points.
#[test]
fn all_beat_random_with_as_many_trials() {
    for (place, landscape, trials) in
        [("plateau", plateau(), 250), ("steep", steep(), 300), ("choices", choices(), 150)]
    {
        let all =
            |name: &str| (0..4).map(|seed| best_of(&landscape, name, seed, trials)).collect::<Vec<f64>>();
        let random = all("random");
        for entry in ALL_STRATEGIES.iter().filter(|entry| !["random", "grid"].contains(&entry.name)) {
            let pairs =
                all(entry.name).into_iter().flat_map(|own| random.iter().map(move |other| (own, *other)));
            let (won, lost) = pairs.fold((0, 0), |(won, lost), (own, other)| {
                (won + usize::from(own < other), lost + usize::from(own > other))
            });
            println!("{place:8} {:8} {won:2} won, {lost:2} lost", entry.name);
            assert!(won > lost, "{}: {} wins {won} times, random search {lost}", place, entry.name);
        }
    }
}

/// Features of points before they are tried, as a substitute for a cost model: the features of the
/// knobs.
struct KnobFeatures<'a>(&'a Knobs);

impl Features for KnobFeatures<'_> {
    fn compute(&self, points: &[Point]) -> Vec<Option<Vec<f32>>> {
        points.iter().map(|point| Some(self.0.features(point))).collect()
    }
}

/// The trials of one program save trials in the next one. Here, the next one is the same landscape
/// with roughness.
#[test]
fn experience_saves_trials() {
    let (before, after) = (gemm(), rough_gemm());
    let features = KnobFeatures(&before.knobs);
    let mut random = by_name("random", &before.knobs, Start { seed: 99, ..Start::default() }).unwrap();
    let points = random.propose(400);
    let rows = features.compute(&points).into_iter().flatten();
    let trials = rows.zip(&points).map(|(row, point)| (row, (before.cost)(point))).collect();
    let experience = [Experience { trials }];
    for name in ["trees", "guided", "q-method"] {
        let middle = |experience: &[Experience]| {
            let mut all: Vec<usize> = (0..9)
                .map(|seed| Start { seed, features: Some(&features), experience, ..Start::default() })
                .map(|start| trials_from(&after, name, start, 1.25, 2000))
                .collect();
            all.sort_unstable();
            all[4]
        };
        let (alone, taught) = (middle(&[]), middle(&experience));
        println!("{name:8} {alone:5} trials alone, {taught:5} with experience");
        assert!(5 * taught < 4 * alone, "{name} takes {taught} trials with experience and {alone} without");
    }
}
