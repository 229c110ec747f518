//! Explanations of schedules: where stages are, the predicted times of the parts, and the predicted
//! times with stages in other places.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{cpu, program, seconds};
use tilewright_ir::Program;
use tilewright_schedule::partial::{Freedom, PartialSchedule, Place, Placement};
use tilewright_schedule::{Schedule, apply, schedule_by_rules, text};
use tilewright_search::default_schedule;
use tilewright_search::explain::{Decision, Explanation, StageExplanation, explain};
use tilewright_search::kind::cost_model;
use tilewright_target::{Gpu, Target};

/// A chain of stages: pointwise, two stencils, a sum and a result.
const PIPELINE: &str = "def f(float(H, W) I) -> (out) {
    bright(y, x) = 2 * I(y, x) + 1
    across(y, x) = bright(y, x) + bright(y, x + 1) + bright(y, x + 2) where x in 0:W - 2
    low(y, x) = sqrt(across(y, x) + across(y + 1, x) + across(y + 2, x))
    total(y) +=! bright(y, x)
    mean(y, x) = 0.5 * low(y, x)
    out(y, x) = mean(y, x) - total(y) * low(y, x)
}";
const SIZES: &[(&str, i64)] = &[("H", 1026), ("W", 1026)];

fn explained(program: &Program, schedule: &Schedule, target: Target) -> Explanation {
    let nest = apply(program, schedule, target).unwrap();
    explain(program, schedule, &nest, target, &*cost_model(target)).unwrap()
}

fn given(steps: &str) -> Schedule {
    let parsed = text::parse(steps);
    assert!(!parsed.has_errors(), "{:?}", parsed.diagnostics);
    parsed.schedule
}

fn stage<'e>(explanation: &'e Explanation, tensor: &str) -> &'e StageExplanation {
    explanation.stages.iter().find(|stage| stage.tensor == tensor).unwrap()
}

/// The places of the alternatives of a stage, each with the time relative to the schedule.
fn alternatives(explanation: &Explanation, tensor: &str) -> Vec<(String, f64)> {
    match &stage(explanation, tensor).decision {
        Decision::Compared { alternatives, .. } => {
            alternatives.iter().map(|own| (own.in_short(), own.seconds / explanation.seconds)).collect()
        }
        Decision::Forced(why) => panic!("{tensor} is forced: {why:?}"),
    }
}

#[test]
fn every_place_is_named() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let steps = "inline bright\ninline mean\nsplit out.y -> yo, yi:16\ncompute_at low, out.yi\n\
                 compute_at across, out.yi store_at out.yo fold 4\nparallel out.yo\nvectorize total.y";
    let found = explained(&program, &given(&steps.replace("\nvectorize total.y", "")), (&cpu).into());
    let place = |tensor: &str| stage(&found, tensor).statements[0].place.to_string();
    assert_eq!(place("bright"), "inlined");
    assert_eq!(place("low"), "at out.yi");
    assert_eq!(place("across"), "at out.yi, sliding");
    assert_eq!((place("total").as_str(), place("out").as_str()), ("at root", "at root"));
    // A loop is named as the last step leaves it.
    let fused = format!("{}\nsplit out.x -> xo, xv:16", &steps[..steps.find("\ncompute_at across").unwrap()]);
    let found = explained(&program, &given(&format!("{fused}\nreorder out.xo, out.xv")), (&cpu).into());
    assert_eq!(stage(&found, "low").statements[0].place.to_string(), "at out.yi");
    assert_eq!(stage(&found, "mean").decision, Decision::Forced(Freedom::ReadOnce));
    assert_eq!(stage(&found, "out").decision, Decision::Forced(Freedom::NoReaders));
}

/// With any place for a stage, the explanation predicts for each other place about what the model
/// predicts for the schedule that has this place from the beginning.
#[test]
fn alternatives_are_as_fast_as_schedules_made_so() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let target = Target::from(&cpu);
    let open = PartialSchedule::new(&program, target).unwrap();
    let inlined = open.with(&given("inline mean").steps).unwrap();
    let low = open.stages().into_iter().find(|stage| open.name(*stage) == "low").unwrap();
    let choices: Vec<(Place, Schedule)> = inlined
        .choices(low)
        .into_iter()
        .map(|choice| (choice.next.place(2).unwrap(), choice.next.complete()))
        .collect();
    let mut compared = 0;
    for (from, schedule) in &choices {
        let found = explained(&program, schedule, target);
        assert_eq!(stage(&found, "low").statements[0].place, *from);
        let Decision::Compared { alternatives, .. } = &stage(&found, "low").decision else { panic!() };
        assert!(alternatives.is_sorted_by(|one, other| one.seconds <= other.seconds));
        for own in alternatives {
            let other = choices.iter().find(|(place, schedule)| {
                *place == own.place && own.steps.iter().all(|step| schedule.steps.contains(step))
            });
            let Some((_, wanted)) = other else { continue };
            let ratio = own.seconds / seconds(&program, wanted, target);
            assert!((0.8..1.25).contains(&ratio), "from {from} to {own}: {ratio}");
            compared += 1;
        }
    }
    assert!(compared > 12, "only {compared} compared");
    assert!(choices.iter().any(|(place, _)| matches!(place, Place::AtLoop { .. })));
}

#[test]
fn slower_places_are_slower_and_the_own_place_is_none_of_them() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let schedule = default_schedule(&program, &cpu);
    let found = explained(&program, &schedule, (&cpu).into());
    assert_eq!(found.seconds, seconds(&program, &schedule, (&cpu).into()));
    assert_eq!(found.is_by_rules, schedule == schedule_by_rules(&program, &cpu));
    // The square root of a sum is computed once for each of the three rows that need it.
    let other = given("inline mean\ninline low\nsplit out.x -> xo, xv:16\nvectorize out.xv\nparallel out.y");
    let places = alternatives(&explained(&program, &other, (&cpu).into()), "low");
    assert!(places.iter().any(|(place, ratio)| place == "at root" && *ratio > 1.0), "{places:?}");
    assert!(places.iter().all(|(place, _)| place != "inlined"), "{places:?}");
}

#[test]
fn stages_that_cannot_stay_are_named() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let steps = "inline mean\nsplit out.y -> yo, yi:16\ncompute_at low, out.yo\ncompute_at across, out.yo\nparallel out.yo";
    let found = explained(&program, &given(steps), (&cpu).into());
    let places = alternatives(&found, "low");
    assert!(places.iter().any(|(place, _)| place == "at root with across"), "{places:?}");
    // A sum cannot be inlined, and the reason is the one of the step.
    let Decision::Compared { refused, .. } = &stage(&found, "total").decision else { panic!() };
    assert!(refused[0].why.to_string().contains("`total` cannot be inlined"), "{refused:?}");
}

#[test]
fn times_of_parts_add_up() {
    let program = program(PIPELINE, SIZES);
    let (cpu, gpu) = (cpu(), Gpu::h200());
    for target in [Target::Cpu(&cpu), Target::Gpu(&gpu)] {
        let fused = PartialSchedule::new(&program, target).unwrap();
        let stages = fused.stages();
        let placed = |partial: &PartialSchedule| {
            let choices = partial.choices(stages[2]).into_iter();
            choices
                .filter(|choice| choice.placement == Placement::Piece)
                .map(|choice| choice.next.complete())
                .next()
        };
        let inlined = fused.with(&given("inline mean").steps).unwrap();
        let schedules = [Schedule::default(), default_schedule(&program, target), placed(&inlined).unwrap()];
        for schedule in &schedules[if target.hardware().capabilities().grid.is_some() { 1 } else { 0 }..] {
            let found = explained(&program, schedule, target);
            let statements = found.stages.iter().flat_map(|stage| &stage.statements);
            let sum: f64 = statements.filter_map(|own| own.seconds).sum();
            let roots: f64 = found.roots.iter().sum();
            assert!((sum / roots - 1.0).abs() < 1e-9, "{sum} and {roots}\n{schedule}");
            assert!((roots / found.seconds - 1.0).abs() < 1e-3, "{roots} of {}\n{schedule}", found.seconds);
            for own in found.stages.iter().flat_map(|stage| &stage.statements) {
                assert_eq!(own.seconds.is_none(), own.place == Place::Inlined, "{own:?}");
            }
        }
    }
}

#[test]
fn a_heavier_stage_of_a_nest_takes_more_of_its_time() {
    let source = "def f(float(H, W) I) -> (out) {
        light(y, x) = I(y, x) + 1
        heavy(y, x) = sin(I(y, x)) * cos(I(y, x)) + exp(I(y, x))
        out(y, x) = light(y, x) * light(y, x) + heavy(y, x) * heavy(y, x)
    }";
    let program = program(source, SIZES);
    let steps = "compute_at light, out.y\ncompute_at heavy, out.y\nparallel out.y\nvectorize light.x\nvectorize heavy.x";
    let steps = steps.replace("vectorize light.x", "split light.x -> xo, xv:16\nvectorize light.xv");
    let steps = steps.replace("vectorize heavy.x", "split heavy.x -> xo, xv:16\nvectorize heavy.xv");
    let found = explained(&program, &given(&steps), (&cpu()).into());
    let time = |tensor: &str| stage(&found, tensor).statements[0].seconds.unwrap();
    assert!(time("heavy") > 3.0 * time("light"), "{found:?}");
}

/// A stage without vectors is slower than with them: the explanation says so, where it is.
#[test]
fn loops_of_the_own_place_are_judged_too() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let steps = "inline mean\nsplit out.y -> yo, yi:16\ncompute_at low, out.yo\nparallel out.yo";
    let vectors = "\nsplit low.x -> xo, xv:16\nvectorize low.xv";
    let [slow, fast] = ["", vectors].map(|more| {
        let found = explained(&program, &given(&format!("{steps}{more}")), (&cpu).into());
        alternatives(&found, "low").into_iter().find(|(place, _)| place == "here with default loops")
    });
    assert!(slow.is_some_and(|(_, ratio)| ratio < 0.95) && fast.is_none());
}
