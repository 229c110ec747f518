//! The sampler of whole schedules: what it proposes is new and legal, follows from its seed, and
//! gets faster.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{cpu, program, seconds};
use tilewright_ir::Program;
use tilewright_schedule::{Schedule, apply};
use tilewright_search::beam::Sampler;
use tilewright_search::knob::Knobs;
use tilewright_search::strategy::{Start, by_name};
use tilewright_target::{Cpu, Target};

const SHARPENED: &str = "def sharpened(float(3, H, W) I) -> (out) {
    gray(y, x) = 0.3 * I(0, y, x) + 0.6 * I(1, y, x) + 0.1 * I(2, y, x)
    across(y, x) = gray(y, x) + 2 * gray(y, x + 1) + gray(y, x + 2)
    blur(y, x) = across(y, x) + 2 * across(y + 1, x) + across(y + 2, x)
    ratio(y, x) = 2 - blur(y, x) / (16 * gray(y + 1, x + 1) + 0.01)
    out(c, y, x) = ratio(y, x) * I(c, y + 1, x + 1) where c in 0:3
}";

fn sharpened() -> Program {
    program(SHARPENED, &[("H", 1026), ("W", 770)])
}

/// Proposes schedules, and tells the model's times as if they were measured.
fn proposals(program: &Program, target: Target, seed: u64, batches: usize) -> Vec<(Schedule, f64)> {
    let mut sampler = Sampler::new(program, target, seed).unwrap();
    let mut all = Vec::new();
    for _ in 0..batches {
        let batch = sampler.propose(4);
        assert!(!batch.is_empty() && batch.len() <= 4);
        for schedule in batch {
            let time = seconds(program, &schedule, target);
            sampler.report(&schedule, Some(time));
            all.push((schedule, time));
        }
    }
    all
}

#[test]
fn schedules_are_new_and_legal_and_follow_from_the_seed() {
    let (program, cpu) = (sharpened(), cpu());
    let found = proposals(&program, (&cpu).into(), 7, 12);
    for (at, (schedule, _)) in found.iter().enumerate() {
        assert!(found[..at].iter().all(|(other, _)| other != schedule), "{schedule}");
        assert!(apply(&program, schedule, &cpu).is_ok(), "{schedule}");
    }
    assert_eq!(found, proposals(&program, (&cpu).into(), 7, 12));
    assert_ne!(found, proposals(&program, (&cpu).into(), 8, 12));
}

#[test]
fn changes_of_the_fastest_are_faster() {
    let (program, cpu) = (sharpened(), cpu());
    let found = proposals(&program, (&cpu).into(), 1, 30);
    let best = |part: &[(Schedule, f64)]| part.iter().map(|(_, time)| *time).fold(f64::INFINITY, f64::min);
    assert!(best(&found) < 0.99 * best(&found[..8]), "{} {}", best(&found), best(&found[..8]));
}

#[test]
fn programs_without_places_to_choose_have_no_sampler() {
    let alone = program("def f(float(H, W) I) -> (y) { y(i, j) = 2 * I(i, j) }", &[("H", 64), ("W", 64)]);
    assert!(Sampler::new(&alone, (&cpu()).into(), 0).is_none());
}

/// The strategy proposes points and schedules in turn, and goes on where one side fails.
#[test]
fn the_strategy_takes_turns() {
    let (program, cpu): (Program, Cpu) = (sharpened(), cpu());
    let knobs = Knobs::new(vec![tilewright_search::knob::Knob::ordinal("unroll", [0, 16, 64])]);
    let start = Start { program: Some((&program, (&cpu).into())), ..Start::default() };
    let mut strategy = by_name("beam", &knobs, start).unwrap();
    let (mut points, mut schedules) = (0, 0);
    for _ in 0..20 {
        let batch = strategy.propose(2);
        points += batch.len();
        if batch.is_empty() {
            let found = strategy.propose_schedules(2);
            assert!(!found.is_empty());
            schedules += found.len();
            let told: Vec<(Schedule, Option<f64>)> = found
                .into_iter()
                .map(|own| {
                    let time = seconds(&program, &own, (&cpu).into());
                    (own, Some(time))
                })
                .collect();
            strategy.report_schedules(&told);
        }
    }
    assert!(points > 0 && schedules > points, "{points} points, {schedules} schedules");
    // Without a program, there are points alone.
    let mut alone = by_name("beam", &knobs, Start::default()).unwrap();
    assert!(alone.propose_schedules(2).is_empty() && !alone.propose(2).is_empty());
}
