//! Partial schedules: what can be decided about the stages of a program. Whatever is decided, the
//! completed schedule is legal, proved, and gives the program's results.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{cpu, expect_agreement, program};
use tilewright_ir::print;
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::partial::{Choice, Freedom, Place, Placement};
use tilewright_schedule::{PartialSchedule, Step, apply};
use tilewright_target::Gpu;

const SIZES: &[(&str, i64)] = &[("H", 40), ("W", 19)];

/// A stage that two others read, a stencil and a sum.
const PIPELINE: &str = "def f(float(H, W) I) -> (out) {
    gray(y, x) = 2 * I(y, x) + 1
    across(y, x) = gray(y, x) + gray(y, x + 1) + gray(y, x + 2) where x in 0:W - 2
    low(y, x) = across(y, x) + across(y + 1, x) + across(y + 2, x)
    total(y) +=! gray(y, x)
    out(y, x) = low(y, x) - gray(y + 1, x + 1) + total(y)
}";
/// Three colours, with rows inside.
const COLOURS: &str = "def f(float(3, H, W) I) -> (out) {
    gray(y, x) = I(0, y, x) + I(1, y, x) + I(2, y, x)
    low(y, x) = gray(y, x) + gray(y + 1, x) + gray(y + 2, x)
    out(c, y, x) = I(c, y + 1, x) * low(y, x)
}";

#[test]
fn stages_are_decided_after_their_readers() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let partial = PartialSchedule::new(&program, &cpu).unwrap();
    let names: Vec<&str> = partial.stages().into_iter().map(|stage| partial.name(stage)).collect();
    assert_eq!(names, ["out", "total", "low", "across", "gray"]);
    let placements = |at: usize| -> Vec<Placement> {
        partial.choices(partial.stages()[at]).into_iter().map(|choice| choice.placement).collect()
    };
    assert_eq!(placements(0), [Placement::Root]);
    // A sum cannot be inlined, and rows of it do not overlap.
    assert!(!placements(1).contains(&Placement::Inline) && !placements(1).contains(&Placement::Sliding));
    assert!(placements(1).contains(&Placement::Piece));
    // One access reads `low`, at the same points.
    assert_eq!(placements(2), [Placement::Inline]);
    for wanted in [Placement::Root, Placement::Inline, Placement::Piece, Placement::Sliding] {
        assert!(placements(3).contains(&wanted), "{wanted:?}");
    }
    // Nests of their own read `gray`, so there is no loop around all of them.
    assert_eq!(placements(4), [Placement::Root, Placement::Inline]);
}

#[test]
fn a_decision_leaves_the_schedule_before_it_as_it_was() {
    let program = program(COLOURS, SIZES);
    let cpu = cpu();
    let start = PartialSchedule::new(&program, &cpu).unwrap();
    let low = start.stages()[1];
    let choices = start.choices(low);
    assert!(start.steps().is_empty() && start.nests().len() == 3);
    // Rows are put outside of colours, so that the colours share them.
    let is_reordered =
        |choice: &&Choice| choice.next.steps().iter().any(|step| matches!(step, Step::Reorder { .. }));
    let placed = choices.iter().find(is_reordered).unwrap();
    assert_eq!(placed.placement, Placement::Piece);
    assert_eq!(placed.next.nests().len(), 2);
    assert_eq!(placed.next.changed_nests(&start), placed.next.nests()[1..]);
    assert!(placed.next.changed_nests(&placed.next).is_empty());
    let none = Step::Inline { tensor: "none".to_owned() };
    assert!(start.with(&[none]).is_err());
}

#[test]
fn random_decisions_give_the_programs_results() {
    let mut state = 5_u64;
    let mut below = |most: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % most
    };
    let cpu = cpu();
    for source in [PIPELINE, COLOURS] {
        for round in 0..15 {
            let program = program(source, SIZES);
            let mut partial = PartialSchedule::new(&program, &cpu).unwrap();
            for stage in partial.stages() {
                let mut choices = partial.choices(stage);
                partial = choices.swap_remove(below(choices.len())).next;
            }
            partial.nests().into_iter().for_each(|nest| drop(partial.lower_nest(nest).unwrap()));
            let schedule = partial.complete();
            assert_eq!(schedule.steps[..partial.steps().len()], *partial.steps());
            let nest = apply(&program, &schedule, &cpu).unwrap();
            expect_agreement(&program, &nest, round);
            assert_eq!(prove(&program, &nest), Verdict::Proved, "{schedule}\n{}", print::nest(&nest));
        }
    }
}

#[test]
fn on_a_gpu_stages_are_computed_in_blocks_of_their_readers() {
    let gpu = Gpu::h200();
    let program = program(COLOURS, &[("H", 70), ("W", 130)]);
    let mut partial = PartialSchedule::new(&program, &gpu).unwrap();
    let shared = |choice: &Choice| choice.next.complete().to_string().contains("compute_at");
    let mut places = Vec::new();
    for stage in partial.stages() {
        let choices = partial.choices(stage);
        for Choice { placement, next } in &choices {
            let schedule = next.complete();
            let nest = apply(&program, &schedule, &gpu).unwrap();
            expect_agreement(&program, &nest, 1);
            assert_eq!(prove(&program, &nest), Verdict::Proved, "{schedule}");
            places.push((*placement, print::nest(&nest)));
        }
        // The last place is the most fused one.
        partial = choices.into_iter().rev().find(|choice| shared(choice)).map_or(partial, |one| one.next);
    }
    let pieces: Vec<&String> =
        places.iter().filter(|(own, _)| *own == Placement::Piece).map(|(_, text)| text).collect();
    // Blocks of several shapes, whole rows, and stages of one thread.
    assert!(pieces.iter().any(|text| text.contains("shared float32 low[")), "{pieces:?}");
    assert!(pieces.iter().any(|text| text.contains("block.x y in")), "{pieces:?}");
    assert!(pieces.iter().any(|text| !text.contains("shared")), "{pieces:?}");
}

#[test]
fn places_and_freedom_follow_the_steps() {
    let program = program(PIPELINE, SIZES);
    let cpu = cpu();
    let start = PartialSchedule::new(&program, &cpu).unwrap();
    let stages = start.stages();
    let freedom: Vec<Freedom> = stages.iter().map(|stage| start.freedom(*stage)).collect();
    // out, total, low, across, gray.
    let open = Freedom::Open;
    assert_eq!(freedom, [Freedom::NoReaders, open, Freedom::ReadOnce, open, open]);
    assert_eq!(
        (start.place(0), start.place(4), start.place(5)),
        (Some(Place::Root), Some(Place::Root), None)
    );
    let next = start.with(&[start.inline(stages[2])]).unwrap();
    // Statements count in the order of the program: gray, across, low, total, out.
    assert_eq!((next.place(2), next.nest_of(2)), (Some(Place::Inlined), None));
    let placements =
        next.choices(stages[3]).into_iter().map(|choice| (choice.placement, choice.next.place(1)));
    for (placement, place) in placements {
        let is_as_decided = match placement {
            Placement::Root => place == Some(Place::Root),
            Placement::Inline => place == Some(Place::Inlined),
            Placement::Piece => matches!(place, Some(Place::AtLoop { is_sliding: false, .. })),
            Placement::Sliding => matches!(place, Some(Place::AtLoop { is_sliding: true, .. })),
        };
        assert!(is_as_decided, "{placement:?}: {place:?}");
    }
}
