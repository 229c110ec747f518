//! The invariants of every strategy: no point twice, the same run from the same seed, and an end
//! when nothing is left.

use std::collections::{HashSet, VecDeque};

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;
use tilewright_search::knob::{Divisors, Knob, Knobs, Point, Value};
use tilewright_search::strategy::{
    ALL, Start, Strategy, TrialResult, Unsuitable, by_name, gbfs, genetic, guided, opevo,
};

/// A space of 18 · 6 · 3 · 2 points.
fn small() -> Knobs {
    every_kind(12)
}

/// A space with a knob of every kind.
fn every_kind(tiled: i64) -> Knobs {
    Knobs::new(vec![
        Knob::factorisation("tile", tiled, 3, Divisors::Exact),
        Knob::permutation("order", 3),
        Knob::ordinal("unroll", [0, 16, 64]),
        Knob::categorical("layout", ["rows", "packed"]),
    ])
}

/// A synthetic cost, which is invalid for a third of the points.
fn cost(knobs: &Knobs, point: &Point) -> Option<f64> {
    let features = knobs.features(point);
    let sum: f32 = features.iter().enumerate().map(|(at, feature)| feature * (at as f32 + 1.0)).sum();
    (sum as i64 % 3 != 0).then_some(f64::from(sum) + 1.0)
}

fn trial_result(knobs: &Knobs, point: &Point) -> TrialResult {
    TrialResult { point: point.clone(), cost: cost(knobs, point) }
}

fn make(name: &str, knobs: &Knobs, start: Start<'static>) -> Box<dyn Strategy> {
    by_name(name, knobs, start).expect("a strategy of this name")
}

fn seed(seed: u64) -> Start<'static> {
    Start { seed, ..Start::default() }
}

/// Requests batches of `count` points and reports all but the last `late` results at once, until no
/// proposals and results are left.
fn drive(
    strategy: &mut dyn Strategy,
    count: usize,
    late: usize,
    most: usize,
    tell: impl Fn(&Point) -> TrialResult,
) -> Vec<Point> {
    let (mut asked, mut open) = (Vec::new(), VecDeque::new());
    while asked.len() < most {
        let batch = strategy.propose(count);
        assert!(batch.len() <= count);
        if batch.is_empty() && open.is_empty() {
            break;
        }
        open.extend(batch.iter().cloned());
        let keep = if batch.is_empty() { 0 } else { late };
        let ready: Vec<TrialResult> =
            open.drain(..open.len().saturating_sub(keep)).map(|point| tell(&point)).collect();
        strategy.report(&ready);
        asked.extend(batch);
    }
    asked
}

fn assert_all_different_and_inside(knobs: &Knobs, points: &[Point], context: &str) {
    assert_eq!(points.iter().collect::<HashSet<_>>().len(), points.len(), "{context} asks twice");
    assert!(points.iter().all(|point| knobs.contains(point)), "{context} leaves the space");
}

#[test]
fn every_strategy_visits_all_points_and_stops() {
    let spaces = [
        Knobs::default(),
        Knobs::new(vec![Knob::ordinal("one", [7])]),
        Knobs::new(vec![Knob::categorical("two", ["a", "b"]), Knob::permutation("none", 0)]),
        Knobs::new(vec![Knob::factorisation("near", 13, 3, Divisors::Near { most_waste_percent: 10 })]),
        every_kind(4),
    ];
    for (entry, knobs) in ALL.iter().flat_map(|entry| spaces.iter().map(move |knobs| (entry, knobs))) {
        for (count, late) in [(1, 0), (8, 0), (8, 3), (1000, 0)] {
            let mut strategy = make(entry.name, knobs, seed(1));
            let asked = drive(&mut *strategy, count, late, usize::MAX, |point| trial_result(knobs, point));
            assert_all_different_and_inside(knobs, &asked, entry.name);
            assert_eq!(asked.len() as u128, knobs.size(), "{} in batches of {count}", entry.name);
            assert_eq!(strategy.propose(8), [], "{} goes on", entry.name);
        }
    }
}

#[test]
fn every_strategy_visits_all_points_if_all_are_invalid() {
    let knobs = every_kind(4);
    for entry in ALL {
        let invalid = |point: &Point| TrialResult { point: point.clone(), cost: None };
        let asked = drive(&mut *make(entry.name, &knobs, seed(2)), 8, 0, usize::MAX, invalid);
        assert_eq!(asked.len() as u128, knobs.size(), "{}", entry.name);
    }
}

#[test]
fn an_empty_space_is_searched_at_once() {
    let empty =
        Knobs::new(vec![Knob::permutation("order", 3), Knob::factorisation("tile", 0, 2, Divisors::Exact)]);
    for entry in ALL {
        assert_eq!(make(entry.name, &empty, seed(1)).propose(8), [], "{}", entry.name);
    }
}

#[test]
fn runs_repeat_with_the_seed() {
    let knobs = small();
    let run = |name: &str, number: u64, late: usize| {
        let tell = |point: &Point| trial_result(&knobs, point);
        drive(&mut *make(name, &knobs, seed(number)), 8, late, 150, tell)
    };
    for entry in ALL {
        for late in [0, 5] {
            assert_eq!(run(entry.name, 3, late), run(entry.name, 3, late), "{}", entry.name);
        }
        if entry.name != "grid" {
            assert_ne!(run(entry.name, 3, 0), run(entry.name, 4, 0), "{}", entry.name);
        }
    }
}

#[test]
fn starting_points_come_first_and_once() {
    let knobs = small();
    let [first, second] = [100, 600].map(|index| knobs.nth(index).unwrap());
    let elsewhere = Point(vec![Value::Choice(0)]);
    let points = vec![first.clone(), elsewhere, first.clone(), second.clone()];
    for entry in ALL {
        let mut strategy =
            make(entry.name, &knobs, Start { seed: 1, points: points.clone(), ..Start::default() });
        let asked = strategy.propose(8);
        assert_eq!(asked[..2], [first.clone(), second.clone()], "{}", entry.name);
        assert_all_different_and_inside(&knobs, &asked, entry.name);
    }
}

/// Results of points that were never proposed: the strategy learns from them, and does not propose
/// them again, even if they are starting points.
#[test]
fn foreign_results_are_learned_from() {
    let knobs = every_kind(4);
    let best = knobs.nth(120).unwrap();
    let foreign: Vec<TrialResult> = (100..150)
        .map(|index| knobs.nth(index).unwrap())
        .map(|point| TrialResult { point, cost: Some(1.0) })
        .collect();
    let outside = TrialResult { point: Point(Vec::new()), cost: Some(0.0) };
    for entry in ALL {
        let mut strategy =
            make(entry.name, &knobs, Start { seed: 1, points: vec![best.clone()], ..Start::default() });
        let early = strategy.propose(1);
        strategy.report(&foreign);
        strategy.report(&[outside.clone(), outside.clone()]);
        let tell = |point: &Point| trial_result(&knobs, point);
        strategy.report(&[tell(&early[0])]);
        let asked = drive(&mut *strategy, 8, 0, usize::MAX, tell);
        assert_all_different_and_inside(&knobs, &asked, entry.name);
        assert!(asked.iter().all(|point| foreign.iter().all(|told| told.point != *point)), "{}", entry.name);
        assert_eq!(asked.len() as u128, knobs.size() - 50, "{}", entry.name);
    }
}

#[test]
fn strange_costs_do_no_harm() {
    let knobs = every_kind(4);
    let strange = [0.0, f64::NAN, f64::INFINITY, -1.0, f64::MIN_POSITIVE, f64::MAX, 1e-3];
    for entry in ALL {
        let tell = |point: &Point| {
            let at = knobs.features(point).iter().sum::<f32>() as usize;
            TrialResult { point: point.clone(), cost: Some(strange[at % strange.len()]) }
        };
        let asked = drive(&mut *make(entry.name, &knobs, seed(5)), 8, 0, usize::MAX, tell);
        assert_eq!(asked.len() as u128, knobs.size(), "{}", entry.name);
    }
}

#[test]
fn strange_parameters_do_no_harm() {
    let knobs = small();
    let nobody =
        genetic::Parameters { population: 0, elites: 9, crossover_rate: f64::NAN, mutation_rate: 2.0 };
    let alone = opevo::Parameters { parents: 0, offspring: 0, mutation_rate: 1.0 };
    let lost = guided::Parameters {
        batch: 0,
        children_per_trial: 0,
        parents: 0,
        crossover: f64::NAN,
        step_probability: 2.0,
        random_share: f64::NAN,
    };
    let strategies: [Box<dyn Strategy>; 4] = [
        Box::new(guided::Guided::new(&knobs, seed(1), lost)),
        Box::new(genetic::Genetic::new(&knobs, seed(1), nobody)),
        Box::new(opevo::OpEvo::new(&knobs, seed(1), alone)),
        Box::new(gbfs::Gbfs::new(&knobs, seed(1), gbfs::Parameters { neighbours: 0, random_points: 0 })),
    ];
    for mut strategy in strategies {
        let asked = drive(&mut *strategy, 8, 0, 100, |point| trial_result(&knobs, point));
        assert!(asked.len() >= 100);
    }
}

#[test]
fn names_are_known() {
    let knobs = small();
    for entry in ALL {
        assert_eq!(make(entry.name, &knobs, seed(0)).name(), entry.name);
        assert!(!entry.description.is_empty());
    }
    let error = by_name("hill", &knobs, seed(0)).err().unwrap();
    let names: Vec<&str> = ALL.iter().map(|entry| entry.name).collect();
    let wanted = format!("there is no strategy `hill`; the strategies are {}", names.join(", "));
    assert_eq!(error.to_string(), wanted);
    assert!(
        ["random", "grid", "genetic", "opevo", "gbfs", "p-method", "bandit"]
            .iter()
            .all(|own| names.contains(own))
    );
}

#[test]
fn the_grid_rejects_large_spaces() {
    let knobs = Knobs::new(vec![Knob::permutation("order", 10)]);
    let error = by_name("grid", &knobs, seed(0)).err().unwrap();
    assert_eq!(error, Unsuitable::TooLarge { size: 3_628_800, largest: 1_000_000 });
    let wanted = "the space has 3628800 points, but `grid` tries all points of spaces with at most \
                  1000000; choose another strategy";
    assert_eq!(error.to_string(), wanted);
    let asked = make("grid", &small(), seed(0)).propose(3);
    assert_eq!(asked, [0, 1, 2].map(|index| small().nth(index).unwrap()));
}

/// OpEvo as published: λ random points, then nothing until their results are known, then ρ children
/// of valid parents.
#[test]
fn opevo_breeds_from_the_best() {
    let knobs = small();
    let still = opevo::Parameters { mutation_rate: 0.0, ..opevo::Parameters::default() };
    let mut strategy = opevo::OpEvo::new(&knobs, seed(1), still);
    let founders = strategy.propose(100);
    assert_eq!(founders.len(), 8);
    let results: Vec<TrialResult> = founders
        .iter()
        .enumerate()
        .map(|(at, point)| TrialResult { point: point.clone(), cost: (at < 2).then_some(1.0) })
        .collect();
    strategy.report(&results);
    let children = strategy.propose(100);
    assert_eq!(children.len(), 8);
    // Without mutation, the values of the first child come from the two valid points.
    let inherited = children[0].0.iter().enumerate();
    assert!(
        inherited.clone().all(|(knob, value)| founders[..2].iter().any(|parent| parent.0[knob] == *value))
    );
}

/// G-BFS as published, which begins at the trivial point only.
fn published_gbfs(knobs: &Knobs) -> gbfs::Gbfs {
    gbfs::Gbfs::new(knobs, seed(1), gbfs::Parameters { random_points: 0, ..gbfs::Parameters::default() })
}

/// G-BFS tries the trivial point, then five of its neighbours, then five neighbours of the best
/// point.
#[test]
fn gbfs_goes_from_neighbour_to_neighbour() {
    let knobs = small();
    let mut strategy = published_gbfs(&knobs);
    let mut from = knobs.nth(0).unwrap();
    assert_eq!(strategy.propose(8), [from.clone()]);
    strategy.report(&[TrialResult { point: from.clone(), cost: Some(100.0) }]);
    for round in 0..4 {
        let around: HashSet<Point> = knobs.neighbours(&from).into_iter().collect();
        let asked = strategy.propose(5);
        assert_eq!(asked.len(), 5);
        assert!(asked.iter().all(|point| around.contains(point)));
        let results = asked.iter().enumerate().map(|(at, point)| TrialResult {
            point: point.clone(),
            cost: Some(if at == 3 { 50.0 - f64::from(round) } else { 200.0 }),
        });
        strategy.report(&results.collect::<Vec<_>>());
        from = asked[3].clone();
    }
}

/// The trivial point may be as slow as all points around it, so other points are tried too.
#[test]
fn blind_searches_begin_in_several_places() {
    let knobs = small();
    let plain = knobs.nth(0).unwrap();
    for name in ["gbfs", "na2c"] {
        let asked = make(name, &knobs, seed(1)).propose(100);
        assert_eq!((asked.len(), &asked[0]), (17, &plain), "{name}");
        let given = Start { seed: 1, points: vec![asked[3].clone()], ..Start::default() };
        assert_eq!(make(name, &knobs, given).propose(100), asked[3..4], "{name}");
    }
}

/// If all drawn neighbours are invalid, other neighbours of the known points follow, before random
/// points.
#[test]
fn gbfs_goes_back_to_neighbours_left() {
    let knobs = small();
    let plain = knobs.nth(0).unwrap();
    let around: HashSet<Point> = knobs.neighbours(&plain).into_iter().collect();
    let mut strategy = published_gbfs(&knobs);
    strategy.report(&[TrialResult { point: plain, cost: Some(1.0) }]);
    let mut left = around.len();
    while left > 0 {
        let asked = strategy.propose(8);
        assert_eq!(asked.len(), left.min(5));
        assert!(asked.iter().all(|point| around.contains(point)));
        left -= asked.len();
        strategy
            .report(&asked.into_iter().map(|point| TrialResult { point, cost: None }).collect::<Vec<_>>());
    }
    assert!(strategy.propose(8).iter().all(|point| !around.contains(point)));
}

/// Without mutation, the values of a child come from its parents, often from three. The few
/// children that equal a parent are replaced.
#[test]
fn genetic_children_have_three_parents() {
    let knobs = Knobs::new((0..6).map(|at| Knob::ordinal(format!("gene{at}"), 0..4)).collect());
    let points: Vec<Point> = (0..3).map(|parent| Point(vec![Value::Choice(parent); 6])).collect();
    let parameters =
        genetic::Parameters { population: 40, elites: 0, crossover_rate: 1.0, mutation_rate: 0.0 };
    let mut strategy =
        genetic::Genetic::new(&knobs, Start { seed: 1, points, ..Start::default() }, parameters);
    let first = strategy.propose(40).into_iter().enumerate();
    let results = first.map(|(at, point)| TrialResult { point, cost: (at < 3).then_some(1.0) });
    strategy.report(&results.collect::<Vec<_>>());
    let children = strategy.propose(40);
    assert_eq!(children.len(), 40);
    let inherited: Vec<HashSet<&Value>> = children
        .iter()
        .map(|child| child.0.iter().collect())
        .filter(|values: &HashSet<&Value>| !values.contains(&Value::Choice(3)))
        .collect();
    assert!(inherited.len() >= 30, "only {} are of valid parents", inherited.len());
    assert!(inherited.iter().filter(|values| values.len() == 3).count() >= 6);
}

/// A generation has 24 points. The next ones have 18 new points beside the 6 best, once all results
/// are known.
#[test]
fn genetic_breeds_whole_generations() {
    let knobs = small();
    let mut strategy = make("genetic", &knobs, seed(1));
    for expected in [24, 18, 18] {
        let generation = strategy.propose(1000);
        assert_eq!(generation.len(), expected);
        let results: Vec<TrialResult> = generation.iter().map(|point| trial_result(&knobs, point)).collect();
        strategy.report(&results[1..]);
        assert_eq!(strategy.propose(10), []);
        strategy.report(&results[..1]);
    }
}

#[test]
fn random_points_differ_from_the_order() {
    let mut rng = Pcg64Mcg::seed_from_u64(9);
    let knobs = small();
    let any = knobs.sample(&mut rng).unwrap();
    let asked =
        make("random", &knobs, Start { seed: 9, points: vec![any.clone()], ..Start::default() }).propose(50);
    assert_eq!(asked.len(), 50);
    assert_eq!(asked.iter().filter(|point| **point == any).count(), 1);
}
