//! Measures the cost of the strategies themselves: a thousand points, proposed and reported in
//! batches of 8, from the start of a search.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tilewright_search::knob::{Divisors, Knob, Knobs, Point};
use tilewright_search::strategy::{ALL, Start, Strategy, TrialResult, by_name};

const POINTS: usize = 1000;

/// The space of a matrix product of 1024³.
fn gemm() -> Knobs {
    let tile = |name, parts| Knob::factorisation(name, 1024, parts, Divisors::Exact);
    Knobs::new(vec![tile("m", 4), tile("k", 2), tile("n", 4)])
}

/// The space of a convolution with all kinds of knobs, including extents with few divisors.
fn convolution() -> Knobs {
    let tile = |name, extent, parts| Knob::factorisation(name, extent, parts, Divisors::Exact);
    let near = |name, extent, parts| {
        Knob::factorisation(name, extent, parts, Divisors::Near { most_waste_percent: 10 })
    };
    Knobs::new(vec![
        tile("tile_f", 192, 4),
        near("tile_y", 227, 4),
        near("tile_x", 227, 4),
        tile("tile_c", 64, 2),
        tile("tile_ky", 5, 2),
        tile("tile_kx", 5, 2),
        Knob::permutation("order", 8),
        Knob::ordinal("unroll", [0, 4, 16, 64, 256]),
        Knob::categorical("layout", ["rows", "columns", "packed"]),
    ])
}

/// The space of a small matrix product, so that the grid strategy can enumerate all points.
fn small() -> Knobs {
    let tile = |name| Knob::factorisation(name, 64, 3, Divisors::Exact);
    Knobs::new(vec![tile("m"), tile("n"), tile("k")])
}

fn cost(knobs: &Knobs, point: &Point) -> Option<f64> {
    let features = knobs.features(point);
    let sum: f32 = features.iter().enumerate().map(|(at, it)| (it - (at % 4) as f32).powi(2)).sum();
    (sum as i64 % 5 != 0).then_some(1e-3 * (1.0 + f64::from(sum)))
}

fn search(strategy: &mut dyn Strategy, knobs: &Knobs) {
    let mut tried = 0;
    while tried < POINTS {
        let points = strategy.propose(8);
        assert!(!points.is_empty(), "a space of more than {POINTS} points is exhausted");
        tried += points.len();
        let results: Vec<TrialResult> =
            points.into_iter().map(|point| TrialResult { cost: cost(knobs, &point), point }).collect();
        strategy.report(&results);
    }
}

fn proposals(c: &mut Criterion) {
    let mut group = c.benchmark_group("proposals");
    group.sample_size(10).throughput(Throughput::Elements(POINTS as u64));
    for (space, knobs) in [("small", small()), ("gemm", gemm()), ("convolution", convolution())] {
        for entry in ALL {
            let make = || by_name(entry.name, &knobs, Start { seed: 1, ..Start::default() });
            if make().is_ok() {
                group.bench_function(BenchmarkId::new(entry.name, space), |bencher| {
                    bencher.iter(|| search(&mut *make().expect("it was made before"), &knobs));
                });
            }
        }
    }
    group.finish();
}

fn spaces(c: &mut Criterion) {
    let near = |extent| Knob::factorisation("near", extent, 4, Divisors::Near { most_waste_percent: 10 });
    let mut group = c.benchmark_group("near factorisation");
    group.sample_size(10);
    for extent in [227, 4099, 1 << 30] {
        group.bench_function(BenchmarkId::from_parameter(extent), |bencher| bencher.iter(|| near(extent)));
    }
    group.finish();
}

criterion_group!(benches, proposals, spaces);
criterion_main!(benches);
