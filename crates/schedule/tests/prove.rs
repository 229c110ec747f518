//! Proofs for default schedules and for single steps: every nest computes what its program says,
//! whatever the data.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{cpu, program, schedule};
use tilewright_polyhedral::{Verdict, prove, prove_within};
use tilewright_schedule::{apply, schedule_by_rules};

#[track_caller]
fn proves(source: &str, sizes: &[(&str, i64)], steps: &str) {
    let program = program(source, sizes);
    let nest = support::agrees(source, sizes, steps);
    let verdict = prove(&program, &nest);
    assert_eq!(verdict, Verdict::Proved, "{source}\n{steps}\n{}", tilewright_ir::print::nest(&nest));
}

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

#[test]
fn plain_loops_are_proved() {
    proves(GEMM, &[("M", 5), ("N", 6), ("K", 7)], "");
    proves("def f(float(N) x) -> (y) { y(i) = x(i) + 1 }", &[("N", 7)], "");
    proves("def f(float(N) x) -> (y) { t(i) = x(i) * 2\n y(i) = t(i) + t(N - 1 - i) }", &[("N", 7)], "");
}

#[test]
fn variables_that_choose_an_element_together_are_proved() {
    proves(
        "def f(float(G, 3, N) x) -> (y) { y(g*3 + k) +=! x(g, k, n) where k in 0:3 }",
        &[("G", 4), ("N", 8)],
        "",
    );
    proves("def f(float(G, 3) x) -> (y) { y(g*3 + k) +=! x(g, k) where k in 0:3 }", &[("G", 4)], "");
}

#[test]
fn tiles_are_proved() {
    let steps = "split C.i -> io, ii:4\nsplit C.j -> jo, ji:8\nsplit C.k -> ko, ki:4\nreorder C.io, C.jo, C.ko, C.ki, C.ii, C.ji\nvectorize C.ji\nunroll C.ii\npromote C at C.ko -> acc registers\nparallel C.io";
    proves(GEMM, &[("M", 13), ("N", 30), ("K", 17)], steps);
    proves(GEMM, &[("M", 16), ("N", 32), ("K", 16)], steps);
}

/// One loop runs over results and over the terms of each, so that each element is set to the
/// neutral element several times before anything is reduced into it.
#[test]
fn fused_results_and_reductions_are_proved() {
    let rows = "def f(uint8(H, W) a) -> (s) { s(i) +=! a(i, j) }";
    for (h, w) in [(2, 3), (13, 19), (4, 8), (1, 8), (8, 1)] {
        let sizes = [("H", h), ("W", w)];
        for lanes in ["", "split s.t -> to, ti:8", "vectorize s.t", "split s.t -> to, ti:8\nvectorize s.ti"] {
            if h * w <= 64 || lanes != "vectorize s.t" {
                proves(rows, &sizes, &format!("fuse s.i, s.j -> t\n{lanes}"));
            }
        }
        proves(rows, &sizes, "split s.j -> jo, ji:2\nfuse s.i, s.jo -> t");
    }
    let sizes = [("M", 5), ("N", 6), ("K", 7)];
    proves(GEMM, &sizes, "fuse C.i, C.j, C.k -> t");
    proves(GEMM, &sizes, "fuse C.j, C.k -> t\nsplit C.t -> to, ti:6\nvectorize C.ti");
    proves(GEMM, &sizes, "reorder C.k, C.i, C.j\nfuse C.k, C.i -> t");
}

#[test]
fn default_schedules_are_proved() {
    for (m, n, k) in [(5, 6, 7), (64, 64, 64), (100, 130, 70)] {
        let sizes = [("M", m), ("N", n), ("K", k)];
        let program = program(GEMM, &sizes);
        proves(GEMM, &sizes, &schedule_by_rules(&program, &cpu()).to_string());
    }
}

#[test]
fn copies_of_what_data_chooses_are_proved() {
    let source = "def f(float(E, D) t, int32(B, L) q) -> (y) { y(b, d) +=! t(q(b, l), d) }";
    let sizes = &[("E", 9), ("D", 5), ("B", 6), ("L", 4)];
    for order in ["(d0, d1)", "(d1, d0)"] {
        proves(source, sizes, &format!("promote t at root -> p packed {order}"));
    }
}

#[test]
fn squares_of_indices_are_proved() {
    let source = "def f(float(N) x) -> (y) { y(i) = x(i) * (i * i) }";
    proves(source, &[("N", 13)], "split y.i -> o, v:4\nvectorize y.v");
}

/// Nests that are broken on purpose.
mod broken {
    use std::collections::BTreeMap;

    use tilewright_interp::{Order, run, run_nest};
    use tilewright_ir::nest::{IndexExpr, LoopKind, Stmt};
    use tilewright_ir::{LoopNest, Program};

    use super::support::inputs;

    /// Calls `change` on every list of statements of a nest.
    fn visit(stmts: &mut Vec<Stmt>, change: &mut dyn FnMut(&mut Vec<Stmt>)) {
        change(stmts);
        for stmt in stmts {
            match stmt {
                Stmt::For(own) => visit(&mut own.body, change),
                Stmt::Allocate(own) => visit(&mut own.body, change),
                Stmt::If(own) => {
                    visit(&mut own.then, change);
                    visit(&mut own.otherwise, change);
                }
                _ => {}
            }
        }
    }

    /// Nests that differ from the given nest in one place each.
    pub fn mutants(nest: &LoopNest) -> Vec<(String, LoopNest)> {
        let mut found = Vec::new();
        for what in ["drop", "swap", "shorten", "lengthen", "shift load", "shift store", "parallel", "begin"]
        {
            for at in 0.. {
                let mut mutant = nest.clone();
                let mut counter = 0;
                let mut hit = false;
                visit(&mut mutant.body, &mut |stmts| {
                    for place in 0..stmts.len() {
                        if counter == at && !hit {
                            hit = mutate(what, stmts, place);
                            counter += 1;
                            return;
                        }
                        counter += 1;
                    }
                });
                if counter <= at {
                    break;
                }
                if hit {
                    found.push((format!("{what} {at}"), mutant));
                }
            }
        }
        found
    }

    fn mutate(what: &str, stmts: &mut Vec<Stmt>, place: usize) -> bool {
        let one = IndexExpr::constant(1);
        let is_last = place + 1 == stmts.len();
        match (what, &mut stmts[place]) {
            ("drop", Stmt::Store(_)) => _ = stmts.remove(place),
            ("lengthen", Stmt::For(own)) if own.kind == LoopKind::Serial => own.extent = own.extent.add(&one),
            ("swap", _) if !is_last => stmts.swap(place, place + 1),
            ("shorten", Stmt::For(own)) if own.kind == LoopKind::Serial => own.extent = own.extent.sub(&one),
            ("shift load", Stmt::Store(own)) => {
                let mut first = true;
                let before = own.value.clone();
                own.value.map_indices(&mut |index| {
                    let moved =
                        if first { index.sub(&one).maximum(&IndexExpr::constant(0)) } else { index.clone() };
                    first = false;
                    moved
                });
                return own.value != before;
            }
            ("shift store", Stmt::Store(own)) if !own.target.indices.is_empty() => {
                let index = &mut own.target.indices[0];
                *index = index.sub(&one).maximum(&IndexExpr::constant(0));
            }
            ("parallel", Stmt::For(own)) if own.kind == LoopKind::Serial => own.kind = LoopKind::Parallel,
            ("begin", Stmt::Store(own)) if own.reduce.is_some() => own.reduce = None,
            _ => return false,
        }
        true
    }

    /// Returns true when a nest and its program compute different results on some data, in some
    /// order of the parallel loops.
    pub fn differs(program: &Program, nest: &LoopNest) -> bool {
        let different = |seed: u64| {
            let supplied = inputs(program, seed);
            let wanted: BTreeMap<_, _> = run(program, supplied.clone()).unwrap();
            [Order::Ascending, Order::Descending].into_iter().any(|order| {
                !matches!(run_nest(nest, program, supplied.clone(), order), Ok(found) if found == wanted)
            })
        };
        (1..5).any(different)
    }
}

/// A program, its sizes, and a schedule.
type Case = (&'static str, &'static [(&'static str, i64)], &'static str);

const MUTATED: &[Case] = &[
    (GEMM, &[("M", 5), ("N", 6), ("K", 7)], ""),
    (
        GEMM,
        &[("M", 5), ("N", 9), ("K", 6)],
        "split C.i -> io, ii:4\nsplit C.j -> jo, ji:8\nsplit C.k -> ko, ki:4\nreorder C.io, C.jo, C.ko, C.ki, C.ii, C.ji\npromote C at C.ko -> acc registers\nunroll C.ii\nvectorize C.ji\npromote B at C.ko -> Bp packed (d1/8, d0, d1%8)",
    ),
    (
        "def f(float(N) x) -> (y) { t(i) = x(i) * 2\n u(i) = t(i) + t(min(i + 1, N - 1))\n y(i) = u(i) * u(N - 1 - i) }",
        &[("N", 9)],
        "",
    ),
    (
        "def f(float(N) x) -> (y) { t(i) = x(i) * 2\n y(i) = t(i) + t(min(i + 1, N - 1)) + t(min(i + 2, N - 1)) }",
        &[("N", 13)],
        "split y.i -> o, v:4\ncompute_at t, y.o",
    ),
    (
        "def f(float(N, M) I) -> (O) { O(0, m) = I(0, m)\n for n in 1:N { O(n, m) = O(n - 1, m) + I(n, m) } }",
        &[("N", 4), ("M", 6)],
        "",
    ),
    (
        "def f(float(N, M) x) -> (s) { s(i) +=! x(i, k)\n s(i) = s(i) / 2 }",
        &[("N", 3), ("M", 8)],
        "split s.k -> ko, ki:4\nrfactor s.ki -> p",
    ),
];

/// Every nest that computes a different result must be refuted.
#[test]
fn broken_nests_are_refuted() {
    let (mut broken, mut refuted, mut left) = (0, 0, Vec::new());
    for (source, sizes, steps) in MUTATED {
        let program = program(source, sizes);
        let nest = apply(&program, &schedule(steps), &cpu()).unwrap();
        for (what, mutant) in broken::mutants(&nest) {
            if !broken::differs(&program, &mutant) {
                continue;
            }
            broken += 1;
            match prove(&program, &mutant) {
                Verdict::Refuted(_) => refuted += 1,
                Verdict::Undecided(why) => left.push(format!("{what}: {why}\n{steps}")),
                Verdict::Proved => {
                    panic!("{what} is proved\n{source}\n{}", tilewright_ir::print::nest(&mutant))
                }
            }
        }
    }
    assert!(broken >= 50, "{broken} are enough to tell");
    assert!(left.is_empty(), "{refuted} of {broken} are refuted; left open:\n{}", left.join("\n"));
}

/// A beginning may be repeated only before the first value is reduced, and only with one number.
#[test]
fn broken_beginnings_are_not_proved() {
    use tilewright_ir::nest::{Atom, IndexExpr, Stmt};
    use tilewright_ir::walk;

    let source = "def f(int32(H, W) x) -> (s) { s(i) +=! x(i, j) }";
    let program = program(source, &[("H", 3), ("W", 4)]);
    let mut count = 0;
    for lanes in ["", "\nvectorize s.t"] {
        let steps = format!("fuse s.i, s.j -> t{lanes}");
        let nest = apply(&program, &schedule(&steps), &cpu()).unwrap();
        let mut mutants = broken::mutants(&nest);
        let mut joined = nest.clone();
        let [Stmt::For(begin), Stmt::For(reduce)] = joined.body.as_mut_slice() else { panic!("{steps}") };
        let (old, new) = (Atom::Var(begin.var), IndexExpr::var(reduce.var));
        let renamed = |index: &IndexExpr| index.substitute(&mut |atom| (*atom == old).then(|| new.clone()));
        walk::visit_mut(&mut begin.body, &mut |stmt| {
            stmt.map_own_indices(&mut |index| renamed(index));
            let claim = stmt.store_mut().and_then(|store| store.claim.as_mut());
            claim.into_iter().flat_map(|own| own.indices_mut()).for_each(|index| *index = renamed(index));
        });
        reduce.body.splice(0..0, begin.body.drain(..));
        joined.body.remove(0);
        mutants.push(("join".to_string(), joined));
        for (what, mutant) in mutants {
            if broken::differs(&program, &mutant) {
                count += 1;
                let verdict = prove(&program, &mutant);
                assert_ne!(verdict, Verdict::Proved, "{what}\n{}", tilewright_ir::print::nest(&mutant));
            }
        }
    }
    assert!(count >= 10, "{count} are enough to tell");
}

/// The program is rewritten to one that computes recurrences in parts, too.
#[test]
fn broken_scans_are_not_proved() {
    let source = "def f(int32(N) x) -> (y) { y(0) = x(0)\n for t in 1:N { y(t) = 3*y(t - 1) + x(t) } }";
    let program = program(source, &[("N", 11)]);
    let mut count = 0;
    for steps in [
        "split y[2].t -> part, t:3\nscan y[2].part -> carry\ncompute_with carry_parts.part, carry.part",
        "split y[2].t -> p, q:2, t:2\nscan y[2].q -> inner",
        "split y[2].t -> p, q:2, r:2, t:2\nscan y[2].p -> outer\nscan y[2].r -> inner",
    ] {
        let nest = apply(&program, &schedule(steps), &cpu()).unwrap();
        assert_eq!(prove(&program, &nest), Verdict::Proved, "{steps}");
        for (what, mutant) in broken::mutants(&nest) {
            if broken::differs(&program, &mutant) {
                count += 1;
                let verdict = prove_within(&program, &mutant, 4_000_000);
                assert_ne!(verdict, Verdict::Proved, "{what}\n{}", tilewright_ir::print::nest(&mutant));
            }
        }
    }
    assert!(count >= 60, "{count} are enough to tell");
}

/// The element that a scatter changes is not known, so not all broken nests can be refuted. But
/// none may be proved.
#[test]
fn broken_scatters_are_not_proved() {
    let mut count = 0;
    for (source, sizes, steps) in SCATTERS {
        let program = program(source, sizes);
        let nest = apply(&program, &schedule(steps), &cpu()).unwrap();
        for (what, mutant) in broken::mutants(&nest) {
            if !broken::differs(&program, &mutant) {
                continue;
            }
            count += 1;
            let verdict = prove(&program, &mutant);
            let is_right = match what.starts_with("lengthen") && steps.is_empty() {
                true => matches!(verdict, Verdict::Refuted(_)),
                false => verdict != Verdict::Proved,
            };
            assert!(is_right, "{what}: {verdict:?}\n{}", tilewright_ir::print::nest(&mutant));
        }
    }
    assert!(count >= 60, "{count} are enough to tell");
}

const SCATTERS: &[Case] = &[
    (
        "def f(uint8(N, M) x) -> (h) { h(x(i, k) % 4) +=! k < 4 ? 2 : 3 where i in 0:N, k in 0:5, j in 0:M }",
        &[("N", 6), ("M", 5)],
        "",
    ),
    (
        "def f(uint8(N, M) x) -> (h) { h(x(i, j) % 4) +=! j + 1 }",
        &[("N", 6), ("M", 5)],
        "split h.i -> io, ii:2\nrfactor h.io -> part\nparallel part.io",
    ),
    (
        "def f(uint8(N, M) x) -> (h) { t(x(i, j) % 4, i) +=! j + 1\n h(b) +=! t(b, i) }",
        &[("N", 6), ("M", 5)],
        "reorder h.i, h.b\ncompute_at t, h.i",
    ),
    (
        "def f(uint8(N, M) x) -> (h) { h(i, x(i, j) % 4, c) +=! j + c + 1 where c in 0:2 }",
        &[("N", 6), ("M", 5)],
        "reorder h.j, h.c\nrfactor h.j -> part\nparallel part.i",
    ),
];

/// Where data chooses the elements that are set to zero, not all of them are.
#[test]
fn a_scatter_that_begins_only_where_data_says_is_not_proved() {
    use tilewright_ir::nest::{BufferId, ClaimRole, IndexExpr, LoopVarId, Scope, Stmt};

    /// Sets the target of each store to a neutral element, in the loop `around`.
    fn set_starts(
        stmts: &mut [Stmt],
        around: Option<LoopVarId>,
        target: &dyn Fn(LoopVarId) -> IndexExpr,
    ) -> usize {
        let change = |stmt: &mut Stmt| match stmt {
            Stmt::For(own) => set_starts(&mut own.body, Some(own.var), target),
            Stmt::Allocate(own) => set_starts(&mut own.body, around, target),
            Stmt::Store(own) if own.claim.as_ref().is_some_and(|own| own.role == ClaimRole::Neutral) => {
                own.target.indices = vec![target(around.unwrap())];
                1
            }
            _ => 0,
        };
        stmts.iter_mut().map(change).sum()
    }

    let source = "def f(uint8(N) x) -> (h) { h(x(i) % 4) +=! 2 where i in 0:N }";
    let program = program(source, &[("N", 4)]);
    let mut nest = apply(&program, &schedule(""), &cpu()).unwrap();
    assert_eq!(prove(&program, &nest), Verdict::Proved);
    let statement = program.statements()[0].0;
    let (chosen, own) = (statement.indices[0].clone(), statement.vars[0]);
    let tensors: Vec<_> = nest.buffers.iter().map(|buffer| buffer.scope).collect();
    let argument = |tensor| {
        let at = tensors.iter().position(|scope| *scope == Scope::Argument(tensor));
        at.map(|at| BufferId(at as u32))
    };
    let target = |around| {
        let value = |var| (var == own).then(|| IndexExpr::var(around));
        chosen.map_ids(&argument, &value).unwrap()
    };
    assert_eq!(set_starts(&mut nest.body, None, &target), 1);
    assert!(broken::differs(&program, &nest), "{}", tilewright_ir::print::nest(&nest));
    let verdict = prove(&program, &nest);
    assert_ne!(verdict, Verdict::Proved, "{}", tilewright_ir::print::nest(&nest));
}
