//! Handles ranges whose bounds depend on other variables: `where j in 0:i + 1`.
//!
//! The points of a statement form a box, so the range of such a variable is the hull of its bounds
//! over the ranges of the variables in them. The triangle itself is a condition around the value.
//! Outside of the triangle a reduction gets its neutral element, and an assignment keeps the
//! element that is there. Before → after:
//!
//! ```text
//! s(i) +=! x(j) where j in 0:i + 1    →    s(i) +=! j < i + 1 ? x(j) : 0
//! L(i, j) = v   where j in 0:i + 1    →    L(i, j) = j < i + 1 ? v : L(i, j)
//! ```
//!
//! An assignment needs earlier statements that define the elements outside of the triangle;
//! [`refuse_partial_assignments`] reports those that have none.

use tilewright_ir::interval::{lower_bound, upper_bound};
use tilewright_ir::prove::larger;
use tilewright_ir::unchecked::{Parts, Read};
use tilewright_ir::{
    Access, BinaryOp, DType, Expr, ExprKind, IndexExpr, Range, VarId, arithmetic, precondition, print,
};

use super::model::{Model, Statement};
use super::preconditions;
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// The typed parts of a statement, with the condition of its triangles around the value.
pub(super) fn guarded_parts(model: &Model, at: usize, indices: Vec<IndexExpr>, value: Expr) -> Parts {
    let Some(inside) = condition(model, at) else { return Parts::new(indices, value) };
    let statement = &model.statements[at];
    let dtype = value.dtype;
    let outside = match statement.op {
        AssignOp::Reduce { op, .. } => Expr::literal(dtype, arithmetic::neutral(op, dtype)),
        AssignOp::Assign => {
            let stored = model.tensor(statement.target).dtype.unwrap_or(dtype);
            let origin = statement.target_span.origin();
            let access = Access { tensor: statement.target, indices: indices.clone(), origin };
            Expr { dtype: stored, kind: ExprKind::Load(access) }.cast(dtype)
        }
    };
    let kind = ExprKind::Select(Box::new([inside, value, outside]));
    Parts::new(indices, Expr { dtype, kind })
}

/// The condition that a point is inside of every triangle of a statement, if it has any.
fn condition(model: &Model, at: usize) -> Option<Expr> {
    let index = |index: IndexExpr| Expr { dtype: DType::Int64, kind: ExprKind::Index(Box::new(index)) };
    let mut parts = Vec::new();
    for var in &model.statements[at].vars {
        let Some(Range { from, to }) = &model.var(*var).dependent else { continue };
        let own = || index(IndexExpr::var(*var));
        if !from.vars().is_empty() {
            parts.push(Expr::binary(BinaryOp::GreaterEqual, own(), index(from.clone())));
        }
        if !to.vars().is_empty() {
            parts.push(Expr::binary(BinaryOp::Less, own(), index(to.clone())));
        }
    }
    parts.into_iter().reduce(|left, right| Expr::binary(BinaryOp::And, left, right))
}

/// Gives the variables with dependent bounds their ranges, once those of the other variables are
/// known. Returns false while some extent in a bound is not known.
pub(super) fn settle_ranges(model: &mut Model, at: usize) -> bool {
    let vars = &model.statements[at].vars.clone();
    loop {
        let before = open_triangles(model, vars).len();
        for var in open_triangles(model, vars) {
            let Some(Range { from, to }) = model.var(var).dependent.clone() else { continue };
            let (Some(from), Some(to)) = (model.with_extents(&from), model.with_extents(&to)) else {
                return false;
            };
            let is_known = |other: VarId| model.var(other).range.is_some();
            if from.vars().into_iter().chain(to.vars()).all(is_known) {
                let hull = hull(model, &from, &to);
                let range =
                    if writes_with(model, at, var) { hull } else { hull.map(|hull| nonempty(model, hull)) };
                model.vars[var.index()].range = range;
            }
        }
        if open_triangles(model, vars).len() == before {
            return true;
        }
    }
}

fn open_triangles(model: &Model, vars: &[VarId]) -> Vec<VarId> {
    let is_open = |var: &VarId| model.var(*var).dependent.is_some() && model.var(*var).range.is_none();
    vars.iter().copied().filter(is_open).collect()
}

/// Returns true when the variable selects the elements that a statement writes.
fn writes_with(model: &Model, at: usize, var: VarId) -> bool {
    let lowered = model.statements[at].lowered.as_ref();
    lowered.is_some_and(|lowered| lowered.indices.iter().any(|index| index.mentions(var)))
}

/// The range with at least one value: a triangle may be empty, and a box may not. The condition
/// excludes the value that is added.
fn nonempty(model: &Model, range: Range) -> Range {
    Range { to: larger(&range.to, &range.from.offset(1), model), from: range.from }
}

/// The smallest range that contains the bounds for all values of their variables.
fn hull(model: &Model, from: &IndexExpr, to: &IndexExpr) -> Option<Range> {
    let preconditions = preconditions::of_program(model);
    let from = lower_bound(from, model)?;
    let to = upper_bound(&to.offset(-1), model)?.offset(1);
    Some(Range { from, to: precondition::simplify(&to, &preconditions) })
}

/// Reports assignments to triangles of tensors that no earlier statement uses: the other elements
/// would never be defined.
pub(super) fn refuse_partial_assignments(model: &mut Model) {
    for at in 0..model.statements.len() {
        let statement = &model.statements[at];
        let triangle = statement.vars.iter().copied().find(|var| model.var(*var).dependent.is_some());
        let (Some(var), AssignOp::Assign) = (triangle, statement.op) else { continue };
        let target = statement.target;
        let reads_target = |statement: &Statement| {
            // The read that keeps an element has the position of the target.
            let is_written = |read: &&Read| Span::from(read.access.origin) != statement.target_span;
            let mut reads = statement.lowered.iter().flat_map(|lowered| &lowered.reads).filter(is_written);
            reads.any(|read| read.access.tensor == target)
        };
        let uses = |earlier: &Statement| earlier.target == target || reads_target(earlier);
        let is_used = model.statements[..at].iter().any(uses) || reads_target(statement);
        if model.tensor(target).poisoned || is_used {
            continue;
        }
        let diagnostic = partial_assignment(model, at, var);
        model.report(diagnostic);
        model.tensors[target.index()].poisoned = true;
    }
}

fn partial_assignment(model: &Model, at: usize, var: VarId) -> Diagnostic {
    let statement = &model.statements[at];
    let (name, var) = (&model.tensor(statement.target).text, model.var(var));
    let message =
        format!("the elements of `{name}` outside of the range of `{}` are never defined", var.name);
    let diagnostic = Diagnostic::error(Code::UndefinedElement, statement.target_span, message);
    let diagnostic = match (&var.dependent, var.reasons.first()) {
        (Some(range), Some(reason)) => {
            let range = print::range(range, model);
            diagnostic.secondary_label(reason.span, format!("`{}` has the range {range}", var.name))
        }
        _ => diagnostic,
    };
    diagnostic
        .note("the bounds depend on a variable, so the statement leaves elements of its box as they are")
        .help(format!(
            "define all of `{name}` first, or use one statement with a condition: `j <= i ? … : 0`"
        ))
}

/// The message about a variable that has no range because its bounds depend on other such
/// variables.
pub(super) fn open_bounds(model: &Model, open: &[VarId]) -> Option<Diagnostic> {
    let var = model.var(*open.iter().find(|var| model.var(**var).dependent.is_some())?);
    let range = var.dependent.as_ref()?;
    let others = || range.from.vars().into_iter().chain(range.to.vars());
    let reason = var.reasons.first()?;
    let message = match others().find(|other| model.var(*other).range.is_none()) {
        Some(other) => {
            let other = &model.var(other).name;
            format!("the range of `{}` depends on `{other}`, whose range is not known", var.name)
        }
        None => format!("the range of `{}` has no greatest value that is an expression of sizes", var.name),
    };
    let diagnostic = Diagnostic::error(Code::InvalidRange, reason.span, message);
    Some(diagnostic.help("give the other variable a range that depends on sizes only"))
}
