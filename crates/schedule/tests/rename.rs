//! Schedules translated to the names of another program: they are accepted there and give the same
//! loops.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

#[allow(dead_code, reason = "the other random tests use the rest")]
#[path = "random/mod.rs"]
mod random;

use random::case::checked;
use random::rng::Rng;
use random::schedule::{Counts, schedule as random_schedule};
use support::{cpu, program, schedule};
use tilewright_ir::{LoopNest, Program, VarId};
use tilewright_schedule::{Illegal, NamingScheme, apply, rename};

const PRODUCT: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
const OTHER_PRODUCT: &str = "def f(float(X,io) C, float(io,Y) Bp) -> (io_) { io_(k,i) +=! C(k,j) * Bp(j,i) }";
const SIZES: [(&str, i64); 3] = [("M", 40), ("K", 24), ("N", 48)];
const OTHER_SIZES: [(&str, i64); 3] = [("X", 40), ("io", 24), ("Y", 48)];

/// The loops with all names removed.
fn nameless(mut nest: LoopNest) -> LoopNest {
    nest.name.clear();
    nest.scalars.iter_mut().for_each(|scalar| scalar.name.clear());
    nest.buffers.iter_mut().for_each(|buffer| buffer.name.clear());
    nest.vars.iter_mut().for_each(|var| var.name.clear());
    nest
}

/// The program with other names. The names of variables hide each other wherever they can.
fn with_other_names(program: &Program, case: u64) -> Program {
    let mut renamed = program.clone();
    for (at, tensor) in renamed.tensors.iter_mut().enumerate() {
        tensor.name = if case.is_multiple_of(2) { format!("b{at}") } else { format!("T{at}.o") };
    }
    renamed.scalars.iter_mut().enumerate().for_each(|(at, scalar)| scalar.name = format!("x{at}"));
    let mut places: Vec<(VarId, usize)> = Vec::new();
    for (statement, loops) in program.statements() {
        let vars = loops.iter().chain(&statement.vars).copied();
        places.extend(vars.enumerate().map(|(place, var)| (var, place)));
    }
    for (var, place) in places {
        renamed.vars[var.index()].name = format!("x{place}");
    }
    renamed
}

#[test]
fn steps_speak_of_the_same_loops_in_other_names() {
    let (from, to) = (program(PRODUCT, &SIZES), program(OTHER_PRODUCT, &OTHER_SIZES));
    let steps = schedule(
        "split C.i -> io, ii:12\nsplit C.j -> jo, jt:2, ji:16\nreorder C.io, C.jo, C.k, C.ii, C.jt, C.ji\n\
         fuse C.io, C.jo -> t\n\
         parallel C.t\npromote B at root -> Bp packed (d1/16, d0, d1%16)\npromote C at C.t -> acc registers\n\
         vectorize C.ji\nunroll C.ii\nunroll C.jt\nvectorize Bp.l2\n",
    );
    let renamed = rename(&steps, &from, &to, &cpu(), NamingScheme::Derived);
    assert_eq!(renamed.refusal, None);
    assert_eq!(
        renamed.schedule.to_string(),
        "split io_.k -> ko, ki:12\nsplit io_.i -> i0, i1:2, i2:16\nreorder io_.ko, io_.i0, io_.j, io_.ki, io_.i1, io_.i2\n\
         fuse io_.ko, io_.i0 -> ko_i0\nparallel io_.ko_i0\n\
         promote Bp at root -> Bp_p packed (d1/16, d0, d1%16)\npromote io_ at io_.ko_i0 -> io__r registers\n\
         vectorize io_.i2\nunroll io_.ki\nunroll io_.i1\nvectorize Bp_p.l2\n"
    );
    let loops = |program, steps| nameless(apply(program, steps, &cpu()).unwrap());
    assert_eq!(loops(&from, &steps), loops(&to, &renamed.schedule));
    // Numbered names depend only on the steps.
    let numbered = |steps, program| rename(steps, program, &from, &cpu(), NamingScheme::Numbered).schedule;
    let (one, other) = (numbered(&steps, &from), numbered(&renamed.schedule, &to));
    assert_eq!(one.steps[0].to_string(), "split C.i -> x3, x4:12");
    assert_eq!(one, other);
}

#[test]
fn a_refused_step_is_the_last() {
    let (from, to) = (program(PRODUCT, &SIZES), program(OTHER_PRODUCT, &OTHER_SIZES));
    let renamed =
        rename(&schedule("unroll C.nothing\nparallel C.i\n"), &from, &to, &cpu(), NamingScheme::Derived);
    assert_eq!(renamed.schedule.to_string(), "unroll io_.nothing\n");
    let refusal = renamed.refusal.unwrap();
    assert_eq!(refusal.step, Some(0));
    assert!(matches!(refusal.reason, Illegal::UnknownLoop { .. }), "{refusal}");
}

#[test]
fn random_schedules_give_the_same_loops_under_other_names() {
    let (mut tried, mut steps) = (0, 0);
    random::keep_expected_panics();
    for case in 0..300 {
        let mut rng = Rng::new(7, case);
        let source = random::program::program(&mut rng);
        let Some(from) = checked(&source) else { continue };
        let steps_of = random_schedule(&mut rng, &from, &mut Counts::default());
        let Ok(nest) = apply(&from, &steps_of, &cpu()) else { continue };
        let to = with_other_names(&from, case);
        let renamed = rename(&steps_of, &from, &to, &cpu(), NamingScheme::Derived);
        assert_eq!(renamed.refusal, None, "case {case}\n{source}{steps_of}\n{}", renamed.schedule);
        let other = apply(&to, &renamed.schedule, &cpu());
        let other = other.unwrap_or_else(|refusal| panic!("case {case}: {refusal}\n{}", renamed.schedule));
        assert_eq!(nameless(nest), nameless(other), "case {case}\n{source}{steps_of}\n{}", renamed.schedule);
        // Back again: numbering the schedules of both programs gives the same text.
        let numbered = |steps, program| rename(steps, program, &from, &cpu(), NamingScheme::Numbered);
        assert_eq!(numbered(&steps_of, &from), numbered(&renamed.schedule, &to), "case {case}");
        tried += 1;
        steps += steps_of.steps.len();
    }
    assert!(tried > 100 && 2 * steps > 5 * tried, "only {tried} cases with {steps} steps");
}
