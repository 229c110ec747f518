//! A valid program that is broken on purpose is refused.

#![allow(clippy::unwrap_used, reason = "a test that cannot build its program has failed")]

use tilewright_ir::builder::ProgramBuilder;
use tilewright_ir::{
    DType, IndexExpr, Node, Program, ReduceOp, Role, Statement, TensorId, Update, VarId, VarKind, verify,
};

/// Row sums in a temporary, and their reversal, which runs in a loop.
fn program() -> Program {
    let mut p = ProgramBuilder::new("f");
    let (n, m) = (p.size("N"), p.size("M"));
    let x = p.input("x", DType::Float32, (n, m));
    let (t, y) = (p.temporary("t", DType::Float32, n), p.output("y", DType::Float32, n));
    let (i, j) = (p.index("i", 0, n), p.index("j", 0, m));
    p.reduce(ReduceOp::Add, t.at(i), x.at((i, j)));
    p.ordered_loop("s", 0, n, |p, s| p.assign(y.at(s), t.at(n - 1 - s)));
    p.build().unwrap()
}

fn statement(program: &mut Program, stage: usize) -> &mut Statement {
    let mut node = &mut program.stages[stage].body[0];
    while let Node::For(inner) = node {
        node = &mut inner.body[0];
    }
    match node {
        Node::Statement(statement) => statement,
        Node::For(_) => unreachable!("the loop above ended at a statement"),
    }
}

fn refused(change: impl FnOnce(&mut Program)) -> String {
    let mut program = program();
    assert_eq!(verify(&program), Ok(()));
    change(&mut program);
    verify(&program).unwrap_err().what
}

#[test]
fn the_form_of_a_program_is_checked() {
    let says = |what: String, part: &str| assert!(what.contains(part), "{what}");
    says(refused(|p| statement(p, 0).target = TensorId(9)), "the target of a statement does not exist");
    says(refused(|p| p.tensors[1].role = Role::Input { constant: false }), "an input is written");
    says(refused(|p| statement(p, 0).vars[1] = VarId(2)), "belongs to two statements or loops");
    says(refused(|p| statement(p, 0).vars[1] = VarId(77)), "does not exist");
    says(refused(|p| p.symbols[0].value = Some(0)), "below its least value");
    says(refused(|p| p.symbols[0].least = None), "is a size whose least value is below 1");
    says(
        refused(|p| statement(p, 1).indices.push(IndexExpr::constant(0))),
        "the number of subscripts of the target is not its rank",
    );
    says(
        refused(|p| statement(p, 0).value.dtype = DType::Int32),
        "a value of type int32 for a tensor of type float32",
    );
}

#[test]
fn the_meaning_of_a_program_is_checked() {
    let shift = |index: &mut IndexExpr| *index = index.offset(1);
    let bounds = refused(|p| shift(&mut statement(p, 1).indices[0]));
    assert!(bounds.starts_with("`y(s + 1)` leaves its tensor"), "{bounds}");
    let reduction = refused(|p| statement(p, 0).update = Update::Assign);
    assert_eq!(reduction, "the assignment to `t(i)` needs a reduction: its subscripts do not contain `j`");
    let range = refused(|p| p.vars[0].range.from = IndexExpr::constant(1));
    assert!(range.contains("no earlier statement defines"), "{range}");
    let order = refused(|p| p.stages.swap(0, 1));
    assert_eq!(order, "the statement of `y(s)` reads `t` before any statement defines it");
    let empty = refused(|p| p.vars[1].range.to = IndexExpr::constant(0));
    assert_eq!(empty, "the range of `j` is empty: 0:0");
}

#[test]
fn derived_parts_of_a_program_are_checked() {
    let kind = refused(|p| p.vars[1].kind = VarKind::Spatial);
    assert_eq!(kind, "variable `j` has the kind Spatial, but its uses require Reduction");
    let stage = refused(|p| p.stages[0].tensors.clear());
    assert_eq!(stage, "the stages, fillers or variables differ from those that the statements require");
    let order = refused(|p| statement(p, 0).vars.reverse());
    assert_eq!(order, "the stages, fillers or variables differ from those that the statements require");
}

#[test]
fn the_general_program_is_checked() {
    let mut program = rotation().build_at([("N", 4)]).unwrap();
    program.general = Some(self::program().into());
    let refused = verify(&program).unwrap_err();
    assert_eq!(refused.what, "the general program, at the sizes of the program, is a different program");
}

/// A rotation by a reduction, whose target no proof covers for all sizes.
fn rotation() -> ProgramBuilder {
    let mut p = ProgramBuilder::new("rotation");
    let n = p.size("N");
    let (x, y) = (p.input("x", DType::Float32, n), p.output("y", DType::Float32, n));
    let i = p.index("i", 0, n);
    p.reduce(ReduceOp::Add, y.at((i + 1) % n), x.at(i));
    p
}

#[test]
fn a_filler_precedes_an_unproved_tensor() {
    let fillers = |program: &Program| program.statements().iter().filter(|(own, _)| own.is_filler).count();
    let mut program = rotation().build().unwrap();
    assert_eq!((fillers(&program), verify(&program)), (1, Ok(())));
    let decided = rotation().build_at([("N", 4)]).unwrap();
    assert_eq!((fillers(&decided), verify(&decided)), (0, Ok(())));
    program.stages[0].body.remove(0);
    program.vars.pop();
    let refused = verify(&program).unwrap_err();
    assert_eq!(
        refused.what,
        "the stages, fillers or variables differ from those that the statements require"
    );
}
