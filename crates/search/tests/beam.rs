//! Beam search: the schedules that it finds are legal, no worse than the default one by the model,
//! and the same each time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::time::Instant;

use support::{cpu, program, seconds};
use tilewright_interp::{Order, run, run_nest, seed};
use tilewright_ir::{LoopNest, Program, print};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_search::beam::{BeamOptions, BeamResult, search};
use tilewright_search::kind::cost_model;
use tilewright_target::{Gpu, Target};

/// Corners of a grey picture, in eleven stages.
const CORNERS: &str = "def corners(float(3, H, W) I) -> (out) {
    gray(y, x) = 0.3 * I(0, y, x) + 0.6 * I(1, y, x) + 0.1 * I(2, y, x)
    dx(y, x) = gray(y, x + 2) - gray(y, x) + 2 * (gray(y + 1, x + 2) - gray(y + 1, x))
             + gray(y + 2, x + 2) - gray(y + 2, x)
    dy(y, x) = gray(y + 2, x) - gray(y, x) + 2 * (gray(y + 2, x + 1) - gray(y, x + 1))
             + gray(y + 2, x + 2) - gray(y, x + 2)
    xx(y, x) = dx(y, x) * dx(y, x)
    yy(y, x) = dy(y, x) * dy(y, x)
    xy(y, x) = dx(y, x) * dy(y, x)
    sx(y, x) = xx(y, x) + xx(y + 1, x) + xx(y + 2, x)
    sy(y, x) = yy(y, x) + yy(y + 1, x) + yy(y + 2, x)
    sz(y, x) = xy(y, x) + xy(y + 1, x) + xy(y + 2, x)
    det(y, x) = sx(y, x) * sy(y, x) - sz(y, x) * sz(y, x)
    out(y, x) = det(y, x) - 0.04 * (sx(y, x) + sy(y, x)) * (sx(y, x) + sy(y, x))
}";

/// Normalised rows, multiplied by weights.
const NORMALISED_PRODUCT: &str = "def f(float(H, W) x, float(H, W) w) -> (y) {
    s(n) +=! x(n, d) * x(n, d)
    h(n, d) = x(n, d) * rsqrt(s(n))
    y(n, f) +=! h(n, d) * w(f, d)
}";

/// Programs that people fuse, and stages of pictures with borders, tables and strides.
const PROGRAMS: [&str; 9] = [
    CORNERS,
    NORMALISED_PRODUCT,
    "def softmax(float(H, W) x) -> (y) {
        m(i) max=! x(i, j)
        e(i, j) = exp(x(i, j) - m(i))
        s(i) +=! e(i, j)
        y(i, j) = e(i, j) / s(i)
    }",
    "def attention(float(H, W) q, float(H, W) k, float(H, W) v) -> (o) {
        p(i, j) +=! q(i, d) * k(j, d)
        m(i) max=! p(i, j)
        e(i, j) = exp(p(i, j) - m(i))
        s(i) +=! e(i, j)
        c(i, d) +=! e(i, j) * v(j, d)
        o(i, d) = c(i, d) / s(i)
    }",
    "def blurred(uint8(3, H, W) x) -> (y) {
        g(i, j) = 0.3 * float(x(0, i, j)) + 0.6 * float(x(1, i, j)) + 0.1 * float(x(2, i, j))
        v(i, j) = g(clamp(i - 2, 0, H - 1), j) + g(i, j) + g(min(i + 2, H - 1), j)
        h(i, j) = v(i, max(j - 2, 0)) + v(i, j) + v(i, min(j + 2, W - 1)) where i in 0:H, j in 0:W
        y(c, i, j) = uint8(clamp(float(x(c, i, j)) * 2 - h(i, j) / 9, 0, 255)) where c in 0:3, i in 0:H, j in 0:W
    }",
    "def levels(uint8(H, W) x) -> (y) {
        rows(i, b) +=! 1 where b = int(x(i, j)) / 16, b in 0:16, i in 0:H, j in 0:W
        h(b) +=! rows(i, b)
        c(0) = h(0)
        for b in 1:16 { c(b) = c(b - 1) + h(b) }
        y(i, j) = c(x(i, j) / 16)
    }",
    "def pyramid(float(H, W) x) -> (y) {
        a(i, j) = x(2 * i, j) + x(2 * i + 1, j) where i in 0:H / 2, j in 0:W
        b(i, j) = a(i, 2 * j) + a(i, 2 * j + 1) where i in 0:H / 2, j in 0:W / 2
        y(i, j) = x(i, j) - 0.25 * b(i / 2, j / 2)
    }",
    "def quantised(float(H, W) x) -> (q) {
        m(i) max=! abs(x(i, j))
        s(i) = m(i) / 127.0
        q(i, j) = int8(round(x(i, j) / s(i)))
    }",
    "def smoothed(float(H, W) x) -> (y) {
        a(0, j) = x(0, j)
        for i in 1:H { a(i, j) = 0.5 * a(i - 1, j) + x(i, j) }
        t(j, i) = 2 * a(i, j)
        b(0, i) = t(0, i)
        for j in 1:W { b(j, i) = 0.5 * b(j - 1, i) + t(j, i) }
        y(i, j) = b(j, i)
    }",
];

fn found(program: &Program, target: Target, width: Option<usize>) -> BeamResult {
    let options = width.map_or(BeamOptions::DEFAULT, |widest| BeamOptions {
        widest,
        kept: usize::MAX,
        ..BeamOptions::DEFAULT
    });
    search(program, target, &*cost_model(target), &options).unwrap()
}

/// Chains of filters that pay only if all are computed within one value.
#[test]
fn passes_that_lean_find_what_pays_only_together() {
    let harris = include_str!("../../../examples/pipelines/harris.tw");
    let program = program(harris, &[("H", 640), ("W", 1536)]);
    let cpu = cpu();
    let seconds = |leans: bool| {
        let options = BeamOptions { leans, ..BeamOptions::DEFAULT };
        search(&program, &cpu, &*cost_model((&cpu).into()), &options).unwrap().ranked[0].1
    };
    let (with, without) = (seconds(true), seconds(false));
    assert!(with < 0.9 * without, "{with} {without}");
}

#[track_caller]
fn expect_agreement(program: &Program, nest: &LoopNest) {
    let inputs = seed::inputs(program, 1).unwrap();
    let wanted = run(program, inputs.clone()).unwrap();
    for order in [Order::Ascending, Order::Descending] {
        let found = run_nest(nest, program, inputs.clone(), order).unwrap();
        for (name, tensor) in &wanted {
            let difference = |at: usize| {
                let [left, right] = [tensor.get(at), found[name].get(at)].map(|number| number.as_f64());
                (left - right).abs() / (1.0 + left.abs())
            };
            assert!((0..tensor.len()).all(|at| difference(at) < 1e-3), "{name} differs");
        }
    }
}

#[test]
fn stages_of_a_pipeline_are_computed_together() {
    let cpu = cpu();
    let sizes = [("H", 2560), ("W", 1536)];
    let program = program(CORNERS, &sizes);
    let BeamResult { ranked, .. } = found(&program, (&cpu).into(), None);
    let (best, time) = &ranked[0];
    let text = best.to_string();
    assert!(text.contains("compute_at gray, out.") && text.contains("inline det"), "{text}");
    assert!(*time < 0.8 * seconds(&program, &schedule_by_rules(&program, &cpu), (&cpu).into()), "{text}");
    assert_eq!(*time, seconds(&program, best, (&cpu).into()));
    assert!(ranked.is_sorted_by(|one, other| one.1 <= other.1));
}

#[test]
fn no_result_is_worse_than_the_default_schedule_and_all_are_right() {
    let (cpu, gpu) = (cpu(), Gpu::h200());
    for target in [Target::Cpu(&cpu), Target::Gpu(&gpu)] {
        for source in [CORNERS, NORMALISED_PRODUCT] {
            let program = program(source, &[("H", 40), ("W", 24)]);
            for width in [Some(0), Some(1), Some(3), None] {
                let BeamResult { ranked, .. } = found(&program, target, width);
                let default = seconds(&program, &schedule_by_rules(&program, target), target);
                assert!(ranked[0].1 <= default, "{width:?}: {} and {default}", ranked[0].1);
                for (schedule, _) in &ranked {
                    expect_agreement(&program, &apply(&program, schedule, target).unwrap());
                }
            }
        }
    }
}

#[test]
fn all_that_a_search_proposes_is_right_and_proved() {
    let (cpu, gpu) = (cpu(), Gpu::h200());
    let mut fused = [0; 2];
    for (at, target) in [Target::Cpu(&cpu), Target::Gpu(&gpu)].into_iter().enumerate() {
        for source in PROGRAMS {
            let program = program(source, &[("H", 66), ("W", 70)]);
            for (schedule, _) in found(&program, target, Some(2)).ranked {
                let nest = apply(&program, &schedule, target).unwrap();
                expect_agreement(&program, &nest);
                let verdict = prove(&program, &nest);
                assert_eq!(verdict, Verdict::Proved, "{schedule}\n{}", print::nest(&nest));
                fused[at] += usize::from(schedule.to_string().contains("compute_at"));
            }
        }
    }
    assert!(fused.iter().all(|schedules| *schedules > 5), "{fused:?}");
}

#[test]
fn lookups_of_lookups_do_not_explode() {
    let stage = |at: usize| format!("t{at}(i) = L(t{0}(i)) * L(t{0}(i) + 1) % 100\n", at - 1);
    let stages: String = (1..24).map(stage).collect();
    let source = format!("def f(uint8(N) x, int32(300) L) -> (t23) {{ t0(i) = int32(x(i))\n{stages} }}");
    let source = source.replace("* L", "+ L").replace(" % 100", "").replace("L(t", "L(100 & t");
    let program = program(&source, &[("N", 4096)]);
    let begun = Instant::now();
    for target in [Target::Cpu(&cpu()), Target::Gpu(&Gpu::h200())] {
        assert!(!found(&program, target, None).ranked.is_empty());
    }
    assert!(begun.elapsed().as_secs() < 60, "{:?}", begun.elapsed());
}

#[test]
fn the_same_program_gives_the_same_schedules() {
    let cpu = cpu();
    let program = program(CORNERS, &[("H", 256), ("W", 256)]);
    assert_eq!(found(&program, (&cpu).into(), None), found(&program, (&cpu).into(), None));
}

#[test]
fn the_number_of_states_grows_with_the_number_of_stages() {
    let cpu = cpu();
    let chain = |stages: usize| {
        let stage =
            |at: usize| format!("t{at}(y, x) = t{0}(y, x) + t{0}(y, x + 1) where x in 0:W - {at}\n", at - 1);
        let stages: String = (1..stages).map(stage).collect();
        let last = stages.matches(" = ").count();
        program(
            &format!("def f(float(H, W) I) -> (t{last}) {{ t0(y, x) = 2 * I(y, x)\n{stages} }}"),
            &[("H", 500), ("W", 500)],
        )
    };
    let begun = Instant::now();
    let [few, many] = [20, 80].map(|stages| found(&chain(stages), (&cpu).into(), Some(1)).states);
    assert!(many < 8 * few, "{few} and {many} states");
    assert!(begun.elapsed().as_secs() < 120);
}
