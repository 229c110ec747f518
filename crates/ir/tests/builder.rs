//! Programs that a builder accepts, and mistakes that it reports.

#![allow(clippy::unwrap_used, reason = "a test that cannot build its program has failed")]

use tilewright_ir::builder::{BuildError, Index, ProgramBuilder, Value};
use tilewright_ir::check::Finding;
use tilewright_ir::{BinaryOp, Builtin, DType, Program, ReduceOp, Role, VarKind, print, verify};

const FLOAT: DType = DType::Float32;

/// Builds `y(i) = value` from `x`, both of `N` elements.
fn pointwise(value: impl FnOnce(&mut ProgramBuilder, Part) -> Value) -> Result<Program, Vec<BuildError>> {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let (x, y) = (p.input("x", FLOAT, n), p.output("y", FLOAT, n));
    let i = p.index("i", 0, n);
    let value = value(&mut p, Part { n, x, i });
    p.assign(y.at(i), value);
    p.build()
}

#[derive(Clone, Copy)]
struct Part {
    n: tilewright_ir::builder::Size,
    x: tilewright_ir::builder::Tensor,
    i: tilewright_ir::builder::Var,
}

fn texts(built: Result<Program, Vec<BuildError>>) -> Vec<String> {
    built.unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn a_matrix_product_has_its_kinds_and_roles() {
    let mut p = ProgramBuilder::new("mm");
    let (m, k, n) = (p.size("M"), p.size("K"), p.size("N"));
    let c = p.output("C", FLOAT, (m, n));
    let (a, b) = (p.input("A", FLOAT, (m, k)), p.input("B", FLOAT, (k, n)));
    let (i, j, l) = (p.index("i", 0, m), p.index("j", 0, n), p.index("k", 0, k));
    p.reduce(ReduceOp::Add, c.at((i, j)), a.at((i, l)) * b.at((l, j)));
    let program = p.build().unwrap();
    assert_eq!(verify(&program), Ok(()));
    let roles: Vec<Role> = program.tensors.iter().map(|tensor| tensor.role).collect();
    let input = Role::Input { constant: false };
    assert_eq!(roles, [input, input, Role::Output], "inputs come first, whenever they are declared");
    let kinds: Vec<VarKind> = program.vars.iter().map(|var| var.kind).collect();
    assert_eq!(kinds, [VarKind::Spatial, VarKind::Spatial, VarKind::Reduction]);
    let (statement, _) = program.statements()[0];
    assert_eq!(print::statement(statement, &program), "C(i, j) +=! A(i, k) * B(k, j)");
}

#[test]
fn statements_share_no_variables() {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let (x, t, y) = (p.input("x", FLOAT, n), p.temporary("t", FLOAT, n), p.output("y", FLOAT, n));
    let i = p.index("i", 0, n);
    p.assign(t.at(i), Value::call(Builtin::Exp, [x.at(i).into()]));
    p.assign(y.at(i), -t.at(i) + 2 * t.at(i) - 0.5);
    let program = p.build().unwrap();
    assert_eq!((program.vars.len(), program.stages.len()), (2, 2));
    assert_eq!(verify(&program), Ok(()));
}

#[test]
fn an_ordered_loop_defines_a_recurrence() {
    let mut p = ProgramBuilder::new("scan");
    let n = p.size("N");
    let (x, y) = (p.input("x", FLOAT, n), p.output("y", FLOAT, n));
    p.assign(y.at(0), x.at(0));
    p.ordered_loop("t", 1, n, |p, t| p.assign(y.at(t), y.at(t - 1) + x.at(t)));
    let program = p.build().unwrap();
    assert_eq!(program.vars[0].kind, VarKind::Ordered);
    assert_eq!(verify(&program), Ok(()));
}

#[test]
fn sizes_are_substituted() {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let (x, y) = (p.input("x", FLOAT, n * 2), p.output("y", FLOAT, n));
    let i = p.index("i", 0, n);
    p.assign(y.at(i), x.at(2 * i + 1));
    let at = |value| p.clone().build_at([("N", value)]);
    let program = at(4).unwrap();
    assert!(program.is_concrete());
    assert_eq!(program.general.as_deref(), Some(&p.clone().build().unwrap()));
    assert_eq!(verify(&program), Ok(()));
    assert_eq!(texts(at(0)), ["`N` must be at least 1, and is 0"]);
    assert_eq!(texts(p.build_at([("K", 1)])), ["there is no size or index scalar `K`"]);
}

#[test]
fn a_scatter_resets_its_target_and_checks_when_it_runs() {
    let mut p = ProgramBuilder::new("histogram");
    let n = p.size("N");
    let (x, h) = (p.input("x", DType::UInt8, n), p.output("h", DType::Int32, 256));
    let i = p.index("i", 0, n);
    p.reduce(ReduceOp::Add, h.at(Index::data(x.at(i))), 1);
    let program = p.build().unwrap();
    assert_eq!(program.vars[0].kind, VarKind::Reduction);
    assert_eq!(verify(&program), Ok(()));
}

#[test]
fn a_condition_keeps_an_access_in_bounds() {
    let guarded = |least: i64| {
        pointwise(|_, Part { n, x, i }| {
            let inside = Value::from(i).at_least(least).and(Value::from(i).less(n));
            Value::select(inside, x.at(i - 1), 0.0)
        })
    };
    assert!(guarded(1).is_ok());
    let mistakes = guarded(0).unwrap_err();
    let [BuildError::CheckFailed { finding, .. }] = &mistakes[..] else { panic!("{mistakes:?}") };
    assert!(matches!(**finding, Finding::OutOfBounds { index: -1, .. }));
}

#[test]
fn types_are_not_mixed() {
    let mixed = pointwise(|p, Part { x, i, .. }| x.at(i) + p.scalar("s", DType::Int32));
    assert_eq!(
        texts(mixed),
        ["in a statement of `y`: int32 where float32 is needed: convert it with `cast`"]
    );
    assert!(pointwise(|p, Part { x, i, .. }| x.at(i) + p.scalar("s", DType::Int32).cast(FLOAT)).is_ok());
    let truth = pointwise(|_, Part { x, i, .. }| Value::from(x.at(i)).less(0.0) + 1);
    assert_eq!(texts(truth), ["in a statement of `y`: 1 is not of the type bool"]);
    let subscript = pointwise(|_, Part { x, i, .. }| x.at(Index::data(x.at(i))).into());
    assert_eq!(
        texts(subscript),
        ["in a statement of `y`: a subscript must be an integer, and this is float32"]
    );
}

#[test]
fn names_ranks_and_handles_must_fit() {
    let mut p = ProgramBuilder::new("f");
    let (n, again) = (p.size("N"), p.size("N"));
    let (x, y) = (p.input("3x", FLOAT, n), p.output("y", FLOAT, again));
    let i = p.index("i", 0, n);
    p.assign(y.at((i, 0)), x.at(i));
    let mut other = ProgramBuilder::new("g");
    let far = (0..9).map(|_| other.index("far", 0, 1)).last().unwrap();
    p.assign(y.at(far), 1);
    let t = p.index("t", 0, n);
    p.ordered_loop("u", 0, n, |_, _| {});
    let _ = t;
    assert_eq!(
        texts(p.build()),
        [
            "`3x` is not a valid name: use letters, digits and `_`, and no digit first",
            "two sizes, scalars, tensors or variables are called `N`",
            "`y` has 1 dimensions, but 2 subscripts are given",
            "a size, tensor, scalar or variable belongs to another builder",
        ]
    );
}

#[test]
fn a_loop_variable_ends_with_its_loop() {
    let mut p = ProgramBuilder::new("f");
    let n = p.size("N");
    let y = p.output("y", FLOAT, n);
    let mut kept = None;
    p.ordered_loop("t", 0, n, |p, t| {
        p.assign(y.at(t), 1);
        kept = Some(t);
    });
    p.assign(y.at(kept.unwrap()), 2);
    assert_eq!(texts(p.build()), ["`t` is the variable of an ordered loop that ends before this statement"]);
}

#[test]
fn an_output_is_not_read_first() {
    let sum = |in_out: bool| {
        let mut p = ProgramBuilder::new("f");
        let n = p.size("N");
        let x = p.input("x", FLOAT, n);
        let s = if in_out { p.in_out("s", FLOAT, ()) } else { p.output("s", FLOAT, ()) };
        let i = p.index("i", 0, n);
        p.accumulate(ReduceOp::Add, s.at(()), x.at(i));
        p.build()
    };
    assert_eq!(texts(sum(false)), ["`s` is read before the program defines it: declare it with `in_out`"]);
    assert_eq!(verify(&sum(true).unwrap()), Ok(()));
}

/// Each mistake, and the sentence about it.
#[test]
fn failed_checks_are_described() {
    let refused = |write: fn(&mut ProgramBuilder)| {
        let mut p = ProgramBuilder::new("f");
        write(&mut p);
        texts(p.build())
    };
    let missing = refused(|p| {
        let (n, m) = (p.size("N"), p.size("M"));
        let (x, y) = (p.input("x", FLOAT, (n, m)), p.output("y", FLOAT, n));
        let (i, j) = (p.index("i", 0, n), p.index("j", 0, m));
        p.assign(y.at(i), x.at((i, j)));
    });
    assert_eq!(missing, ["the assignment to `y(i)` needs a reduction: its subscripts do not contain `j`"]);
    let twice = refused(|p| {
        let y = p.output("y", FLOAT, 3);
        let (i, j) = (p.index("i", 0, 2), p.index("j", 0, 2));
        p.assign(y.at(i + j), 1);
    });
    assert_eq!(
        twice,
        ["the assignment to `y(i + j)` writes the element [1] twice: at i = 0, j = 1 and at i = 1, j = 0"]
    );
    let undefined = refused(|p| {
        let n = p.size("N");
        let y = p.output("y", FLOAT, n);
        let i = p.index("i", 1, n);
        p.assign(y.at(i), 1);
    });
    assert_eq!(undefined, ["no statement defines the element [0] of the result `y` with N = 2"]);
    let in_place = refused(|p| {
        let n = p.size("N");
        let y = p.in_out("y", FLOAT, n);
        let i = p.index("i", 0, n);
        p.assign(y.at(i), y.at(n - 1 - i));
    });
    assert_eq!(in_place, ["the statement of `y(i)` reads `y(N - i - 1)` while it overwrites the tensor"]);
    let early = refused(|p| {
        let n = p.size("N");
        let (t, y) = (p.temporary("t", FLOAT, n), p.output("y", FLOAT, n));
        let i = p.index("i", 0, n);
        p.assign(y.at(i), t.at(i));
        p.assign(t.at(i), 1);
    });
    assert_eq!(early, ["the statement of `y(i)` reads `t` before any statement defines it"]);
    let input = refused(|p| {
        let x = p.input("x", FLOAT, 3);
        let i = p.index("i", 0, 3);
        p.assign(x.at(i), 1);
    });
    assert_eq!(input, ["invalid program f: an input is written in x(i) = 1.0"]);
    let empty = refused(|p| {
        let y = p.output("y", FLOAT, 3);
        let i = p.index("i", 3, 3);
        p.assign(y.at(i), 1);
    });
    assert_eq!(empty, ["the range of `i` is empty: 3:3"]);
}

#[test]
fn a_precondition_is_assumed_and_checked() {
    let halves = |condition: Option<(i64, BinaryOp)>| {
        let mut p = ProgramBuilder::new("f");
        let n = p.size("N");
        let (x, y) = (p.input("x", FLOAT, n), p.output("y", FLOAT, n));
        let (i, j) = (p.index("i", 0, Index::from(n) / 2), p.index("j", 0, 2));
        p.assign(y.at(2 * Index::from(i) + j), x.at(i));
        condition.into_iter().for_each(|(divisor, op)| p.require(Index::from(n) % divisor, op, 0));
        p
    };
    assert!(halves(None).build_at([("N", 7)]).is_err());
    let even = halves(Some((2, BinaryOp::Equal)));
    assert!(even.clone().build().unwrap().statements().iter().all(|(own, _)| !own.is_filler));
    assert!(even.clone().build_at([("N", 8)]).is_ok());
    assert_eq!(texts(even.build_at([("N", 7)])), ["the precondition N % 2 == 0 fails with N = 7"]);
    let wrong = halves(Some((2, BinaryOp::Add)));
    assert!(texts(wrong.build())[0].contains("a precondition is not a comparison"));
}
