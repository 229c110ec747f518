//! Functions that are called several times: the temporaries of every call have names of their own,
//! which schedules use.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::collections::BTreeSet;

use support::{agrees, cpu, expect_agreement, program};
use tilewright_ir::Program;
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::{Gpu, Target};

const TWICE: &str = "
    def f(float(N) x) -> (y) { t(i) = exp(x(i)) * x(i) + 1\n y(i) = t(i) + t(N - 1 - i) }
    def twice(float(N) x) -> (z) { a = f(x)\n z = f(a) }";

fn names(program: &Program) -> Vec<&str> {
    program.tensors.iter().map(|tensor| tensor.name.as_str()).collect()
}

#[test]
fn every_temporary_has_a_name_of_its_own() {
    assert_eq!(names(&program(TWICE, &[])), ["x", "z", "a", "f.t", "f_2.t"]);
    // Nested calls are numbered in the order in which they stand after all calls are inlined.
    let nested = "
        def g(float(N) x) -> (y) { t(i) = x(i) + 1\n y(i) = t(i) * 2 }
        def h(float(N) x) -> (y) { t = g(x)\n y = g(t) }
        def f(float(N) x) -> (y) { a = h(x)\n b = g(a)\n y = h(b) }";
    assert_eq!(
        names(&program(nested, &[])),
        ["x", "y", "a", "b", "h.t", "g.t", "g_2.t", "g_3.t", "h_2.t", "g_4.t", "g_5.t"]
    );
    // A function may have the name that a call would get, and may be called before or after that
    // call.
    let taken = "
        def g(float(N) x) -> (y) { t(i) = x(i) + 1\n y(i) = t(i) * 2 }
        def g_2(float(N) x) -> (y) { t(i) = x(i) + 2\n y(i) = t(i) * 2 }
        def f(float(N) g_3) -> (y) { a = g(g_3)\n b = g(a)\n c = g_2(b)\n d = g_2(c)\n y = g(d) }";
    let program = program(taken, &[]);
    let names = names(&program);
    assert_eq!(names[6..], ["g.t", "g_3.t", "g_2.t", "g_2_2.t", "g_4.t"]);
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
}

#[test]
fn temporaries_of_both_calls_are_scheduled_by_name() {
    let sizes = [("N", 40)];
    let steps = "split f.t.i -> io, ii:8\nvectorize f.t.ii\nsplit f_2.t.i -> io, ii:4\nvectorize f_2.t.ii\nparallel f_2.t.io";
    let nest = agrees(TWICE, &sizes, steps);
    let text = tilewright_ir::print::nest(&nest).to_string();
    for part in ["f.t", "f_2.t", "parallel"] {
        assert!(text.contains(part), "no {part}\n{text}");
    }
    agrees(TWICE, &sizes, "inline f.t\ninline f_2.t");
    agrees(TWICE, &sizes, "inline a\ncompute_at f_2.t, z.i");
}

#[test]
fn the_default_schedule_treats_both_calls_equally() {
    let (cpu, gpu) = (cpu(), Gpu::h200());
    let targets: [Target<'_>; 2] = [(&cpu).into(), (&gpu).into()];
    let values = "
        def f(float(N) x) -> (y) { t(i) = exp(x(i)) * x(i) + 1\n y(i) = t(i) + t(N - 1 - i) }
        def both(float(N) x, float(N) w) -> (a, b) { a = f(x)\n b = f(w) }";
    // Products that are tiled, promoted and split, and have buffers of their own.
    let products = "
        def f(float(M, K) x, float(K, L) v) -> (y) {
          t(i, j) +=! x(i, k) * v(k, j)\n u(i, j) = max(t(i, j), 0)\n y(i, j) = u(i, j) + u(i, L - 1 - j) }
        def both(float(M, K) x, float(M, K) w, float(K, L) v) -> (a, b) { a = f(x, v)\n b = f(w, v) }";
    for (source, sizes) in [(values, &[("N", 4096)][..]), (products, &[("M", 96), ("K", 96), ("L", 96)])] {
        let program = program(source, sizes);
        for target in targets {
            let schedule = schedule_by_rules(&program, target).to_string();
            let (first, second) = (steps_of("f", "a", &schedule), steps_of("f_2", "b", &schedule));
            assert!(!first.is_empty(), "{schedule}");
            assert_eq!(first, second, "{schedule}");
        }
        let nest = apply(&program, &schedule_by_rules(&program, &cpu), &cpu).unwrap();
        expect_agreement(&program, &nest, 1);
    }
}

/// The steps that name a temporary of a call, with everything removed that distinguishes the call
/// from others: its name, the name of its result, and the numbers that make loop names unique.
fn steps_of(call: &str, result: &str, schedule: &str) -> Vec<String> {
    let (dotted, derived, result) = (format!(" {call}."), format!(" {call}_"), format!(" {result}."));
    let own = schedule.lines().filter(|line| line.contains(&dotted));
    let nameless =
        |line: &str| line.replace(&dotted, " CALL.").replace(&derived, " CALL_").replace(&result, " RESULT.");
    own.map(|line| without_numbers(&nameless(line))).collect()
}

/// Removes the numbers at the ends of names.
fn without_numbers(line: &str) -> String {
    let letters: Vec<char> = line.chars().collect();
    let is_number =
        |at: usize| letters[at].is_ascii_digit() && at > 0 && letters[at - 1].is_ascii_alphabetic();
    (0..letters.len()).filter(|at| !is_number(*at)).map(|at| letters[at]).collect()
}
