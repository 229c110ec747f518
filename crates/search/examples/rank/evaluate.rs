//! Compares measured times with estimates.

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use tilewright::{Cpu, LoopNest, parse_schedule};
use tilewright_schedule::apply;
use tilewright_search::cost::cpu::{Estimate, Machine, estimate};

use crate::measure::STEPS;
use crate::operators::Operator;

/// The number of best-ranked schedules that a search would measure.
const PICKS: usize = 10;
/// The number of schedules with the largest rank error that are printed.
const OUTLIERS: usize = 4;

/// A schedule with its measured time.
struct Sample {
    seconds: f64,
    steps: String,
    nest: LoopNest,
}

/// Prints a line for every operator and number of threads. With `explain`, it also prints the worst
/// errors.
pub fn evaluate(file: &str, operators: &[&Operator], explain: bool) -> Result<(), Box<dyn Error>> {
    let text = std::fs::read_to_string(file)?;
    println!(
        "| operator | threads | schedules | rank correlation | best pick | best of {PICKS} picks | estimate |"
    );
    println!("|---|---|---|---|---|---|---|");
    for operator in operators {
        for threads in [1, 2] {
            let cpu = Cpu { cores: threads, ..Cpu::host() };
            let samples = samples(&text, operator, &cpu)?;
            if samples.len() > PICKS {
                report(operator, &cpu, &samples, explain);
            }
        }
    }
    Ok(())
}

/// The measured schedules of an operator. If a schedule was measured twice, the shorter time
/// counts.
fn samples(text: &str, operator: &Operator, cpu: &Cpu) -> Result<Vec<Sample>, Box<dyn Error>> {
    let program = operator.program()?;
    let mut times: BTreeMap<&str, f64> = BTreeMap::new();
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(4, ',').collect();
        let [name, threads, seconds, steps] = fields.as_slice() else { continue };
        if *name == operator.name && threads.parse() == Ok(cpu.cores) {
            let seconds: f64 = seconds.parse()?;
            times.entry(steps).and_modify(|own| *own = own.min(seconds)).or_insert(seconds);
        }
    }
    let mut samples = Vec::new();
    for (steps, seconds) in times {
        let schedule = parse_schedule(&steps.replace(STEPS, "\n"))?;
        if let Ok(nest) = apply(program.ir(), &schedule, cpu) {
            samples.push(Sample { seconds, steps: steps.to_string(), nest });
        }
    }
    Ok(samples)
}

fn report(operator: &Operator, cpu: &Cpu, samples: &[Sample], explain: bool) {
    let machine = Machine::typical(cpu);
    let estimates: Vec<Estimate> = samples.iter().map(|own| estimate(&own.nest, cpu, &machine)).collect();
    let times = samples.iter().map(|own| {
        let time = |_| {
            let started = Instant::now();
            estimate(&own.nest, cpu, &machine);
            started.elapsed().as_secs_f64()
        };
        (0..5).map(time).fold(f64::INFINITY, f64::min)
    });
    let each = times.sum::<f64>() / samples.len() as f64;
    let measured: Vec<f64> = samples.iter().map(|own| own.seconds).collect();
    let estimated: Vec<f64> = estimates.iter().map(|own| own.seconds).collect();
    let (ranks, places) = (ranks(&measured), ranks(&estimated));
    let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let mut order: Vec<usize> = (0..samples.len()).collect();
    order.sort_by(|left, right| estimated[*left].total_cmp(&estimated[*right]));
    let regret =
        |picks: usize| order[..picks].iter().map(|at| measured[*at]).fold(f64::INFINITY, f64::min) / best;
    println!(
        "| {} | {} | {} | {:.2} | {:.2} | {:.2} | {:.0} µs |",
        operator.name,
        cpu.cores,
        samples.len(),
        correlation(&ranks, &places),
        regret(1),
        regret(PICKS),
        each * 1e6
    );
    if explain {
        order.sort_by(|left, right| {
            let error = |at: usize| -(ranks[at] - places[at]).abs();
            error(*left).total_cmp(&error(*right))
        });
        let show = |at: usize| {
            println!(
                "  measured {:.3} ms, rank {:.0}; estimated {:.3} ms, rank {:.0}\n  {}\n  {}",
                measured[at] * 1e3,
                ranks[at],
                estimated[at] * 1e3,
                places[at],
                samples[at].steps,
                parts(&estimates[at])
            );
        };
        order.iter().take(OUTLIERS).for_each(|at| show(*at));
        println!("  picked:");
        let picked = (0..samples.len()).min_by(|left, right| estimated[*left].total_cmp(&estimated[*right]));
        picked.into_iter().for_each(show);
        println!("  best:");
        let fastest = (0..samples.len()).min_by(|left, right| measured[*left].total_cmp(&measured[*right]));
        fastest.into_iter().for_each(show);
    }
}

fn parts(estimate: &Estimate) -> String {
    let parts = &estimate.parts;
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    let transfers: Vec<String> = parts.transfers.iter().map(|own| ms(*own)).collect();
    format!(
        "compute {} memory {} transfers {} loops {} threads {} spills {} masked {:.2} idle {:.2}",
        ms(parts.compute),
        ms(parts.memory_instructions),
        transfers.join("/"),
        ms(parts.loops),
        ms(parts.threads),
        ms(parts.spills),
        parts.masked_lanes,
        parts.idle_cores
    )
}

/// The rank of each number among all. Equal numbers share their mean rank.
fn ranks(values: &[f64]) -> Vec<f64> {
    let place = |value: &f64| {
        let (below, equal) = values.iter().fold((0, 0), |(below, equal), own| {
            (below + usize::from(own < value), equal + usize::from(own == value))
        });
        below as f64 + (equal - 1) as f64 / 2.0
    };
    values.iter().map(place).collect()
}

/// Pearson's correlation coefficient. Applied to ranks, it is Spearman's coefficient.
fn correlation(left: &[f64], right: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (left_mean, right_mean) = (mean(left), mean(right));
    let (mut both, mut left_square, mut right_square) = (0.0, 0.0, 0.0);
    for (own, other) in left.iter().zip(right) {
        both += (own - left_mean) * (other - right_mean);
        left_square += (own - left_mean).powi(2);
        right_square += (other - right_mean).powi(2);
    }
    both / (left_square * right_square).sqrt().max(f64::MIN_POSITIVE)
}
