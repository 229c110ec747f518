//! `scan`: recurrences are computed in parts. Each accepted schedule is run against the program.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{agrees, agrees_on_gpu, program, refused};
use tilewright_ir::print;
use tilewright_polyhedral::{Verdict, prove};

const SUM: &str = "def f(float(N) x) -> (y) {
    y(0) = x(0)
    for t in 1:N { y(t) = y(t - 1) + x(t) }
}";
const DECAY: &str = "def f(float(N, C) x, float(N) a) -> (y) {
    y(0, i) = x(0, i)
    for t in 1:N { y(t, i) = a(t) * y(t - 1, i) + 2 * x(t, i) }
}";

#[track_caller]
fn loops(source: &str, sizes: &[(&str, i64)], steps: &str) -> String {
    let nest = agrees(source, sizes, steps);
    let text = print::nest(&nest);
    let verdict = prove(&program(source, sizes), &nest);
    assert!(!matches!(verdict, Verdict::Refuted(_)), "{verdict:?}\n{steps}\n{text}");
    text
}

#[test]
fn first() {
    for n in [2, 5, 8, 9, 30, 33] {
        let text = loops(SUM, &[("N", n)], "split y[2].t -> part, t:8\nscan y[2].part -> carry");
        println!("{text}");
        loops(SUM, &[("N", n)], "split y[2].t -> part, t:8\nscan y[2].part -> carry\nparallel y[2].part\nparallel carry_parts.part\nsplit carry_parts.t -> t, l:4\nrfactor carry_parts.l -> lanes\nvectorize lanes.l");
        let text = loops(DECAY, &[("N", n), ("C", 5)], "split y[2].t -> part, t:8\nscan y[2].part -> carry\nparallel y[2].part");
        println!("{text}");
    }
}
