//! How well the cost model of GPUs ranks schedules that were measured.
//!
//! ```text
//! cargo run -p tilewright-tuner --example rank_gpu -- CACHE FILE SIZES [--explain] [FILE SIZES …]
//! ```
//!
//! Takes all records of a program from a cache, which `tilewright tune --target cuda:0 --cache CACHE` has filled, and
//! compares their times with estimates. The device need not be there.

use std::error::Error;
use std::path::Path;

use tilewright_schedule::apply;
use tilewright_search::cost::gpu::{Estimate, estimate};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::Gpu;
use tilewright_tuner::cache::{Cache, Canonical, Filter};

/// Picks of the model that would be measured.
const PICKS: usize = 10;
/// Schedules shown whose place is most wrong.
const OUTLIERS: usize = 4;

/// A schedule with its measured and estimated time.
struct Sample {
    seconds: f64,
    steps: String,
    estimate: Estimate,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let explain = arguments.iter().any(|own| own == "--explain");
    arguments.retain(|own| own != "--explain");
    let [cache, programs @ ..] = arguments.as_slice() else {
        return Err("usage: rank_gpu CACHE FILE SIZES [FILE SIZES …] [--explain]".into());
    };
    let cache = Cache::open_existing(Path::new(cache))?;
    println!("| program | schedules | rank correlation | best pick | best of {PICKS} picks |");
    println!("|---|---|---|---|---|");
    for program in programs.chunks(2) {
        let [file, sizes] = program else { return Err("every FILE needs SIZES".into()) };
        report(&format!("{file} {sizes}"), &samples(&cache, file, sizes)?, explain);
    }
    Ok(())
}

fn samples(cache: &Cache, file: &str, sizes: &str) -> Result<Vec<Sample>, Box<dyn Error>> {
    let parsed = parse(&std::fs::read_to_string(file)?);
    let mut bindings = Bindings::default();
    for size in sizes.split(',') {
        let (name, value) = size.split_once('=').ok_or("sizes are like M=64,N=32")?;
        bindings.set(name, value.parse()?);
    }
    let function = parsed.ast.functions.first().ok_or("there is no function")?;
    let program =
        check(&parsed.ast, &function.name.text, &bindings).program.ok_or("the program has errors")?;
    let (canonical, gpu) = (Canonical::new(&program), Gpu::h200());
    let filter = Filter {
        program: Some(canonical.text().to_owned()),
        sizes: Some(canonical.sizes()),
        measured: Some(true),
        ..Filter::default()
    };
    let mut samples = Vec::new();
    for record in cache.records(&filter)? {
        let (schedule, Some(seconds)) = (canonical.schedule_of(&record, &gpu).schedule, record.median())
        else {
            continue;
        };
        if let Ok(nest) = apply(&program, &schedule, &gpu) {
            samples.push(Sample { seconds, steps: schedule.to_string(), estimate: estimate(&nest, &gpu) });
        }
    }
    Ok(samples)
}

fn report(name: &str, samples: &[Sample], explain: bool) {
    let measured: Vec<f64> = samples.iter().map(|own| own.seconds).collect();
    let estimated: Vec<f64> = samples.iter().map(|own| own.estimate.seconds).collect();
    let (ranks, places) = (ranks(&measured), ranks(&estimated));
    let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|left, right| estimated[*left].total_cmp(&estimated[*right]));
    let regret = |picks: usize| {
        let picked = order.iter().take(picks).map(|at| measured[*at]);
        picked.fold(f64::INFINITY, f64::min) / best
    };
    println!(
        "| {name} | {} | {:.2} | {:.2} | {:.2} |",
        samples.len(),
        correlation(&ranks, &places),
        regret(1),
        regret(PICKS)
    );
    if !explain {
        return;
    }
    order.sort_by(|left, right| {
        let error = |at: usize| -(ranks[at] - places[at]).abs();
        error(*left).total_cmp(&error(*right))
    });
    let fastest = (0..samples.len()).min_by(|left, right| measured[*left].total_cmp(&measured[*right]));
    for at in order.into_iter().take(OUTLIERS).chain(fastest) {
        let own = &samples[at];
        println!(
            "measured {:.1} us, place {:.0}; estimated {:.1} us, place {:.0}\n{}{:#?}\n",
            measured[at] * 1e6,
            ranks[at],
            estimated[at] * 1e6,
            places[at],
            own.steps,
            own.estimate.kernels
        );
    }
}

/// The place of each number among all, equal ones in the middle of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let place = |value: &f64| {
        let below = values.iter().filter(|own| *own < value).count();
        let equal = values.iter().filter(|own| *own == value).count();
        below as f64 + (equal.max(1) - 1) as f64 / 2.0
    };
    values.iter().map(place).collect()
}

/// Pearson's correlation; of ranks, it is Spearman's.
fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len().max(1) as f64;
    let (left_mean, right_mean) = (mean(left), mean(right));
    let (mut both, mut left_square, mut right_square) = (0.0, 0.0, 0.0);
    for (own, other) in left.iter().zip(right) {
        both += (own - left_mean) * (other - right_mean);
        left_square += (own - left_mean).powi(2);
        right_square += (other - right_mean).powi(2);
    }
    both / (left_square * right_square).sqrt().max(f64::MIN_POSITIVE)
}
