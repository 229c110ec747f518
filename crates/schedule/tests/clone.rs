//! `clone`: a temporary is computed a second time for some of its readers. Each accepted schedule
//! is run against the program and proved.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, agrees_on_gpu, program, refused};
use tilewright_ir::LoopNest;
use tilewright_ir::print;
use tilewright_polyhedral::{Verdict, prove};

const SIZES: &[(&str, i64)] = &[("H", 11), ("W", 13)];

/// A temporary that a filter reads, and the last stage reads again.
const TWO_READERS: &str = "def sharpen(float(H, W) I) -> (out) {
    gray(y, x) = 2 * I(y, x) + 1
    low(y, x) = gray(y, x) + gray(y + 2, x)
    out(y, x) = low(y, x) - gray(y + 1, x)
}";

#[track_caller]
fn proved(source: &str, nest: LoopNest, steps: &str) -> String {
    let text = print::nest(&nest);
    assert_eq!(prove(&program(source, SIZES), &nest), Verdict::Proved, "{steps}\n{text}");
    text
}

#[track_caller]
fn loops(source: &str, steps: &str) -> String {
    proved(source, agrees(source, SIZES, steps), steps)
}

fn reason(source: &str, steps: &str) -> String {
    refused(source, SIZES, steps).reason.to_string()
}

#[test]
fn one_reader_has_a_temporary_of_its_own() {
    let text = loops(TWO_READERS, "clone gray -> near for out");
    assert_eq!(text.matches("+ 1.0").count(), 2, "{text}");
    for steps in [
        "inline near",
        "compute_at near, out.y",
        "compute_at near, out.y\ncompute_at gray, low.y\nparallel low.y\nparallel out.y",
        "compute_at near, out.y store_at root fold 1\ncompute_at low, out.y\ninline gray",
        "split out.y -> yo, yi:4\ncompute_at low, out.yo\ncompute_at gray, out.yo\ninline near\nvectorize out.x",
    ] {
        loops(TWO_READERS, &format!("clone gray -> near for out\n{steps}"));
    }
    // The first one may be moved, too, once no other nest reads it.
    loops(TWO_READERS, "clone gray -> near for low\ncompute_at near, low.y\ncompute_at gray, out.x");
    let steps = "clone gray -> near for out\nbind out.y -> block.x\nbind out.x -> thread.x\ninline near
        bind low.y -> block.x\ncompute_at gray, low.y";
    proved(TWO_READERS, agrees_on_gpu(TWO_READERS, SIZES, steps), steps);
}

#[test]
fn a_clone_can_be_cloned() {
    let source = "def f(float(H, W) I) -> (a, b, c) {
        t(y, x) = 2 * I(y, x)
        a(y, x) = t(y, x) + 1
        b(y, x) = t(y, x) + 2
        c(y, x) = t(y, x) + 3
    }";
    loops(
        source,
        "clone t -> u for b, c\nclone u -> v for c\ninline v\ncompute_at u, b.y\ncompute_at t, a.x",
    );
}

#[test]
fn reductions_are_cloned() {
    let source = "def f(float(H, W) I) -> (a, b) {
        sum(y) +=! I(y, x)
        a(y, x) = I(y, x) / sum(y)
        b(y) = 2 * sum(y)
    }";
    loops(source, "clone sum -> again for b\ncompute_at again, b.y\ncompute_at sum, a.y\nunroll again.x");
    loops(source, "clone sum -> again for a\nrfactor again.x -> parts\ncompute_at sum, b.y");
}

#[test]
fn the_values_are_those_before_a_change() {
    // `acc` changes between the readers, so the second temporary must be computed before that.
    let source = "def f(float(H, W) I) -> (acc, out) {
        acc(y, x) = I(y, x)
        t(y, x) = 2 * acc(y, x)
        low(y, x) = t(y, x) + 1
        acc(y, x) += low(y, x)
        out(y, x) = t(y, x) + low(y, x)
    }";
    loops(source, "clone t -> u for out");
    for steps in ["inline u", "compute_at u, out.y"] {
        let reason = reason(source, &format!("clone t -> u for out\n{steps}"));
        assert!(reason.contains("must change `acc` after"), "{reason}");
    }
    loops(source, "clone t -> u for out\ninline t");
}

#[test]
fn refusals() {
    for (steps, wanted) in [
        ("clone I -> J for low", "an argument of the program"),
        ("clone out -> again for low", "an argument of the program"),
        ("clone gray -> low for out", "low"),
        ("clone gray -> near for gray", "`gray` does not read it"),
        ("clone gray -> near for low, out", "no statement would be left"),
        ("split gray.y -> yo, yi:2\nclone gray -> near for out", "have changed its own loops"),
        (
            "clone gray -> near for out\ncompute_at gray, low.y\nclone gray -> far for low",
            "inside another loop",
        ),
        ("clone none -> near for out", "none"),
        ("clone gray -> near for none", "none"),
    ] {
        let reason = reason(TWO_READERS, steps);
        assert!(reason.contains(wanted), "{steps}: {reason}");
    }
}
