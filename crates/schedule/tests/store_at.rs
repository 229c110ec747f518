//! `compute_at … store_at …`: parts of a tensor that later iterations use are kept, not computed
//! again. Each accepted schedule is run against the program; those that are written here are proved
//! too, and random ones are only run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fmt::Write;

use proptest::prelude::*;
use support::{agrees, agrees_on_gpu, cpu, expect_agreement, program, refused, schedule};
use tilewright_ir::print;
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::apply;

/// Three rows of `rows` for each row of the result.
const BLUR: &str = "def blur(float(H, W) I) -> (O) {
    rows(y, x) = I(y, x) + I(y, x + 1) + I(y, x + 2) where x in 0:W-2
    O(y, x) = rows(y, x) + rows(y + 1, x) + rows(y + 2, x) where y in 0:H-2
}";
/// A chain of stages with repeated borders.
const CHAIN: &str = "def chain(float(H, W) image) -> (out) {
    f = repeat(image)
    a(y, x) = f(y, x - 1) + f(y, x) + f(y, x + 1) where y in 0:H, x in 0:W
    g = repeat(a)
    b(y, x) = g(y - 1, x) + g(y, x) + g(y + 1, x) where y in 0:H, x in 0:W
    h = repeat(b)
    out(y, x) = h(y - 1, x) + 2*h(y, x) + h(y + 1, x) where y in 0:H, x in 0:W
}";
const IMAGE: &[(&str, i64)] = &[("H", 19), ("W", 13)];

#[track_caller]
fn loops(source: &str, steps: &str) -> String {
    let nest = agrees(source, IMAGE, steps);
    let text = print::nest(&nest);
    assert_eq!(prove(&program(source, IMAGE), &nest), Verdict::Proved, "{steps}\n{text}");
    text
}

fn reason(source: &str, steps: &str) -> String {
    refused(source, IMAGE, steps).reason.to_string()
}

#[test]
fn later_iterations_compute_only_new_rows() {
    let kept = loops(BLUR, "compute_at rows, O.y store_at root");
    assert!(kept.contains("for y_1 in 3 - 2*min(1, y)"), "{kept}");
    assert!(kept.contains("scratch float32 rows[19, 11]"), "{kept}");
}

#[test]
fn a_ring_holds_the_rows_of_one_iteration() {
    let folded = loops(BLUR, "compute_at rows, O.y store_at root fold 3");
    assert!(folded.contains("rows[3, 11]") && folded.contains("% 3"), "{folded}");
    loops(BLUR, "compute_at rows, O.y store_at root fold 4");
    let short = reason(BLUR, "compute_at rows, O.y store_at root fold 2");
    assert!(short.contains("needs 3 rows at once, and the ring has 2"), "{short}");
}

#[test]
fn strips_keep_their_own_rows() {
    let strips = "split O.y -> yo, yi:4\nparallel O.yo\n";
    let kept = loops(BLUR, &format!("{strips}compute_at rows, O.yi store_at O.yo"));
    assert!(kept.contains("rows[6, 11]"), "{kept}");
    loops(BLUR, &format!("{strips}compute_at rows, O.yi store_at O.yo fold 3\nvectorize rows.x"));
    // The rows that one strip needs are computed anew for each piece of the columns.
    let pieces = "split O.y -> yo, yi:4\nsplit O.x -> xo, xi:3\nreorder O.yo, O.xo, O.yi, O.xi\n";
    loops(BLUR, &format!("{pieces}compute_at rows, O.yi store_at O.yo"));
    loops(BLUR, &format!("{pieces}compute_at rows, O.yi store_at O.xo fold 3\nunroll O.yi"));
}

#[test]
fn windows_of_a_chain_follow_each_other() {
    for (first, second) in [("", ""), (" fold 3", " fold 5"), (" fold 4", ""), ("", " fold 8")] {
        let strips = "split out.y -> yo, yi:4\nparallel out.yo\n";
        loops(
            CHAIN,
            &format!(
                "{strips}compute_at b, out.yi store_at out.yo{first}\ncompute_at a, out.yi store_at out.yo{second}"
            ),
        );
        loops(
            CHAIN,
            &format!("compute_at b, out.y store_at root{first}\ncompute_at a, out.y store_at root{second}"),
        );
    }
    // One stage is kept, and the other is computed for each iteration or for each strip.
    loops(CHAIN, "compute_at b, out.y store_at root\ncompute_at a, out.y");
    loops(CHAIN, "compute_at b, out.y\ncompute_at a, out.y store_at root fold 6");
    loops(CHAIN, "split out.y -> yo, yi:4\ncompute_at b, out.yi store_at out.yo\ncompute_at a, out.yo");
}

#[test]
fn windows_move_by_more_or_less_than_one_row() {
    let down = "def down(float(H, W) I) -> (O) {
        rows(y, x) = I(y, x) * 2
        O(y, x) = rows(2*y, x) + rows(2*y + 1, x) + rows(2*y + 2, x) where y in 0:(H-1)/2
    }";
    let kept = loops(down, "compute_at rows, O.y store_at root fold 3");
    assert!(kept.contains("min(1, y)"), "{kept}");
    let up = "def up(float(H, W) I) -> (O) {
        rows(y, x) = I(y, x) * 2
        O(y, x) = rows(y/2, x) + rows((y + 1)/2, x) where y in 0:2*H-1
    }";
    loops(up, "compute_at rows, O.y store_at root");
    loops(up, "compute_at rows, O.y store_at root fold 2");
    loops(up, "split O.y -> yo, yi:6\ncompute_at rows, O.yi store_at O.yo fold 2\nparallel O.yo");
    // Rows in between are never needed.
    let thin = "def thin(float(H, W) I) -> (O) {
        rows(y, x) = I(y, x) * 2
        O(y, x) = rows(3*y, x) + rows(3*y + 1, x) where y in 0:(H-1)/3
    }";
    loops(thin, "compute_at rows, O.y store_at root fold 2");
}

#[test]
fn reductions_start_anew_in_each_new_row() {
    let sums = "def sums(float(H, W) I) -> (O) {
        total(y) +=! I(y, x)
        top(y) max=! I(y, x) * total(y)
        O(y, x) = top(y) + top(y + 1) + total(y + 2) * I(y, x) where y in 0:H-2
    }";
    loops(sums, "compute_at top, O.y store_at root\ncompute_at total, O.y store_at root");
    loops(sums, "compute_at top, O.y store_at root fold 2\ncompute_at total, O.y store_at root fold 4");
}

#[test]
fn the_threads_of_a_block_share_the_kept_rows() {
    // A thread reads the columns of other threads.
    let source = "def f(float(H, W) I) -> (O) {
        rows(y, x) = I(y, x) * 2
        O(y, x) = rows(y, x) + rows(y + 1, x + 1) + rows(y + 2, x + 2) where y in 0:H-2, x in 0:W-2
    }";
    let tile = "split O.y -> yo, yi:8\nsplit O.x -> xo, xi:4\nreorder O.yo, O.xo, O.yi, O.xi\n\
        bind O.yo -> block.y\nbind O.xo -> block.x\n";
    for fold in ["", " fold 3", " fold 4"] {
        let steps = format!(
            "{tile}compute_at rows, O.yi store_at O.xo{fold}\n\
            bind rows.x -> thread.x\nbind O.xi -> thread.x"
        );
        let nest = agrees_on_gpu(source, IMAGE, &steps);
        let text = print::nest(&nest);
        assert!(text.contains("shared float32 rows") && text.contains("barrier"), "{text}");
        assert_eq!(prove(&program(source, IMAGE), &nest), Verdict::Proved, "{steps}\n{text}");
    }
}

#[test]
fn steps_that_change_the_order_are_refused() {
    let kept = "split O.y -> yo, yi:4\ncompute_at rows, O.yi store_at O.yo\n";
    for step in ["parallel O.yi", "vectorize O.yi"] {
        let why = reason(BLUR, &format!("{kept}{step}"));
        assert!(why.contains("must run in order") || why.contains("cannot be"), "{step}: {why}");
    }
    let split = reason(BLUR, &format!("{kept}split O.yi -> a, b:2"));
    assert!(split.contains("put that step first"), "{split}");
    // The loop around the kept rows may still change, and so may the loops of the tensor itself.
    loops(BLUR, &format!("{kept}parallel O.yo"));
    loops(BLUR, &format!("{kept}split O.yo -> a, b:2\nsplit rows.x -> xo, xi:4\nvectorize rows.xi"));
    let whole = reason(BLUR, "parallel O.y\ncompute_at rows, O.y store_at root");
    assert!(whole.contains("must run in order"), "{whole}");
}

#[test]
fn refusals_say_what_is_wrong() {
    let inner = reason(BLUR, "compute_at rows, O.y store_at O.x");
    assert!(inner.contains("not around `O.y`"), "{inner}");
    let itself = reason(BLUR, "compute_at rows, O.y store_at O.y");
    assert!(itself.contains("not around `O.y`"), "{itself}");
    let same = "def same(float(H) I) -> (O) { t(i) = I(i) * 2  O(k, i) = t(i) where k in 0:4 }";
    let why = reason(same, "compute_at t, O.k store_at root");
    assert!(why.contains("every iteration of `O.k` needs the same part"), "{why}");
    let back = "def back(float(H) I) -> (O) { t(i) = I(i) * 2  O(i) = t(H - 1 - i) + t(H - 2 - i) where i in 0:H-1 }";
    let why = reason(back, "compute_at t, O.i store_at root");
    assert!(why.contains("do not move forward"), "{why}");
    let result = "def result(float(H, W) I) -> (t, O) { t(y, x) = I(y, x) * 2  O(y, x) = t(y, x) + 1 }";
    let why = reason(result, "compute_at t, O.y store_at root");
    assert!(why.contains("stays whole in memory"), "{why}");
}

/// A chain of stages, each of which reads a few rows and columns of the one before.
fn stencils() -> impl Strategy<Value = String> {
    let tap = (0i64..4, 0i64..2);
    let view = prop_oneof![Just("repeat(_)"), Just("reflect(_)"), Just("constant(_, 0)")];
    let row = prop_oneof![4 => Just("y"), 1 => Just("2*y"), 1 => Just("y/2")];
    let stage = (view, row, prop::collection::vec(tap, 1..4));
    prop::collection::vec(stage, 2..4).prop_map(|stages| {
        let mut text = "def f(float(H, W) s0) -> (out) {\n".to_string();
        let last = stages.len();
        for (at, (view, row, taps)) in stages.iter().enumerate() {
            let name = if at + 1 == last { "out".to_string() } else { format!("s{}", at + 1) };
            let read = |(dy, dx): &(i64, i64)| format!("v{at}({row} + {dy} - 1, x + {dx})");
            let sum = taps.iter().map(read).collect::<Vec<_>>().join(" + ");
            let view = view.replace('_', &format!("s{at}"));
            writeln!(text, "  v{at} = {view}\n  {name}(y, x) = {sum} where y in 0:H, x in 0:W").unwrap();
        }
        text + "}\n"
    })
}

/// Where a stage is kept: at the root or at the strip, perhaps in a ring.
fn storages() -> impl Strategy<Value = Vec<(usize, Option<i64>)>> {
    prop::collection::vec((0usize..4, prop::option::of(1i64..9)), 3)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    /// Each accepted schedule computes what the program does.
    #[test]
    fn random_stencils_agree(
        source in stencils(),
        (strip, columns, order) in (2i64..8, 2i64..6, 0usize..3),
        storages in storages(),
        (height, width) in (3i64..14, 3i64..9),
        finish in 0usize..4,
    ) {
        let sizes = [("H", height), ("W", width)];
        let program = program(&source, &sizes);
        let mut steps = format!("split out.y -> yo, yi:{strip}\n");
        if order > 0 {
            let order = if order == 1 { "out.yo, out.xo, out.yi, out.xi" } else { "out.xo, out.yo, out.yi, out.xi" };
            steps += &format!("split out.x -> xo, xi:{columns}\nreorder {order}\n");
        }
        let stages = source.matches("where").count() - 1;
        for stage in (1..=stages).rev() {
            let (kept, fold) = storages[stage];
            let fold = fold.map_or(String::new(), |rows| format!(" fold {rows}"));
            let storage = match kept {
                0 => String::new(),
                1 => format!(" store_at root{fold}"),
                _ => format!(" store_at out.yo{fold}"),
            };
            let more = format!("{steps}compute_at s{stage}, out.yi{storage}\n");
            if apply(&program, &schedule(&more), &cpu()).is_ok() {
                steps = more;
            }
        }
        let finish = ["parallel out.yo", "unroll out.yi", "vectorize s1.x", ""][finish];
        for step in [finish, "split s1.y -> a, b:2", "vectorize out.xi"] {
            let more = format!("{steps}{step}\n");
            if apply(&program, &schedule(&more), &cpu()).is_ok() {
                steps = more;
            }
        }
        let nest = apply(&program, &schedule(&steps), &cpu()).unwrap();
        expect_agreement(&program, &nest, 1);
    }
}
