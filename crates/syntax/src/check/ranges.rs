//! Infers the ranges of variables and the shapes of tensors, in the rounds of the Tensor
//! Comprehensions paper (section 3.1).
//!
//! A variable starts at 0 unless `where` says otherwise, and its range is as large as the accesses
//! allow. A variable without a range yet is open. Each round solves the subscripts with exactly one
//! open variable for that variable, for all values of the variables that already have ranges.
//! Several solutions are intersected. Variables that stay open are ambiguous and need a `where`.
//!
//! Departures from the paper:
//! - An access under a condition is a constraint only where the condition does not already keep it
//!   in bounds.
//! - Statements are solved in any order in which they can be solved. A statement that leaves a
//!   variable of its left-hand side open (`C(i) = 0`) takes its range from the other statements
//!   that define the tensor.
//! - A variable that no tensor limits takes its range from the views that it indexes (see
//!   `view_ranges`).
//! - The shape of a tensor is the declared shape, or the hull of the elements that its statements
//!   write. If a statement needs the shape before the last of these is solved, the first of them
//!   decide (see `assumed_shapes`).

use tilewright_ir::check::{Facts, fact_alternatives};
use tilewright_ir::prove::{can_prove_nonnegative, smaller};
use tilewright_ir::{IndexExpr, Range, TensorId, VarId, print};

use super::ambiguous_ranges::ambiguous_variables;
use super::assumed_shapes;
use super::inequality::{Direction, Solution, solve};
use super::model::{AccessExtent, MixedSizes, Model};
use super::reason::{Reason, ReasonKind};
use super::shapes::{Shape, Writers, final_shape, hull, set_final_shape, shape_before};
use super::triangles;
use super::view_ranges::limits_from_views;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// Infers the range of every variable and the shape of every tensor, and reports the variables that
/// stay open.
pub(super) fn infer(model: &mut Model) {
    resolve_declared_extents(model);
    let mut writers = Writers::new(model);
    let mut assumed = Vec::new();
    let mut pending: Vec<usize> =
        (0..model.statements.len()).filter(|at| model.statements[*at].lowered.is_some()).collect();
    loop {
        let before = pending.len();
        pending.retain(|at| !solve_from_reads(model, *at, &mut writers, OpenExtents::Wait));
        if pending.is_empty() {
            break;
        }
        if pending.len() == before {
            if let Some(place) = solve_one(model, &pending, &mut writers) {
                pending.remove(place);
            } else if let Some(assumption) = assumed_shapes::assume_next(model, &pending, &writers.statements)
            {
                assumed.push(assumption);
            } else if let Some(place) = solve_one_without_guards(model, &pending, &mut writers) {
                pending.remove(place);
            } else {
                break;
            }
        }
    }
    for at in &pending {
        report_ambiguous(model, *at, &mut writers);
    }
    assumed_shapes::report_wrong(model, &assumed);
    substitute_extents(model);
}

/// Solves one of the statements that reads of known shapes do not determine. Returns its place.
fn solve_one(model: &mut Model, pending: &[usize], writers: &mut Writers) -> Option<usize> {
    let through_views = pending.iter().position(|at| solve_through_views(model, *at, writers));
    let open = OpenExtents::Wait;
    through_views.or_else(|| pending.iter().position(|at| solve_from_target(model, *at, writers, open)))
}

/// Solves one statement as if conditions with open extents guarded nothing. Returns its place.
fn solve_one_without_guards(model: &mut Model, pending: &[usize], writers: &mut Writers) -> Option<usize> {
    let open = OpenExtents::WaitOutsideGuards;
    let from_reads = pending.iter().position(|at| solve_from_reads(model, *at, writers, open));
    from_reads.or_else(|| pending.iter().position(|at| solve_from_target(model, *at, writers, open)))
}

/// Substitutes the inferred extents, so that no statement contains an extent any more.
fn substitute_extents(model: &mut Model) {
    for at in 0..model.statements.len() {
        let Some(mut lowered) = model.statements[at].lowered.take() else { continue };
        let mut known = true;
        lowered.map_indices(&mut |index| {
            let settled = model.with_extents(index);
            known &= settled.is_some();
            settled.unwrap_or_else(|| index.clone())
        });
        if known && model.statements[at].has_ranges {
            model.statements[at].lowered = Some(lowered);
        } else {
            let target = model.statements[at].target;
            model.tensors[target.index()].poisoned = true;
        }
    }
}

/// Settles extents that are declared in terms of other extents (`T.0`), and extents that calls pass
/// on.
fn resolve_declared_extents(model: &mut Model) {
    for at in 0..model.tensors.len() {
        let Some(declared) = model.tensors[at].declared.clone() else { continue };
        let settled: Option<Vec<IndexExpr>> =
            declared.iter().map(|extent| model.with_extents(extent)).collect();
        if settled.is_some() {
            model.tensors[at].shape = settled;
        }
    }
}

/// A subscript that must stay within an extent.
struct Constraint {
    index: IndexExpr,
    extent: IndexExpr,
    /// Whether the extent is that of a tensor without a declared shape.
    is_inferred: bool,
    /// The facts of the conditions around the access.
    guards: Vec<Facts>,
    span: Span,
    access: String,
}

/// Solves a statement with the shapes known so far. Returns true once the statement is solved or
/// poisoned.
fn solve_from_reads(model: &mut Model, at: usize, writers: &mut Writers, open: OpenExtents) -> bool {
    let Some(constraints) = constraints(model, at, writers, None, open) else {
        return false;
    };
    match constraints {
        Ready::Poisoned => {
            let target = model.statements[at].target;
            model.tensors[target.index()].poisoned = true;
            true
        }
        Ready::Constraints(constraints) => {
            let solved = solve_rounds(model, at, &constraints);
            if solved {
                set_final_shape(model, model.statements[at].target, writers);
            }
            solved
        }
    }
}

/// Solves a statement that reads through views without the subscripts whose extents are open. A
/// view of a tensor that a later statement defines again has such subscripts, and they limit
/// nothing.
fn solve_through_views(model: &mut Model, at: usize, writers: &mut Writers) -> bool {
    if model.statements[at].view_reads.is_empty() {
        return false;
    }
    match constraints(model, at, writers, None, OpenExtents::Skip) {
        Some(Ready::Constraints(constraints)) => {
            let solved = solve_rounds(model, at, &constraints);
            if solved {
                set_final_shape(model, model.statements[at].target, writers);
            }
            solved
        }
        _ => false,
    }
}

/// Solves a statement with the shape that the other statements give its target.
fn solve_from_target(model: &mut Model, at: usize, writers: &mut Writers, open: OpenExtents) -> bool {
    let target = model.statements[at].target;
    let others: Vec<usize> = writers
        .writers_of(target)
        .iter()
        .copied()
        .filter(|other| model.statements[*other].has_ranges)
        .collect();
    if others.is_empty() {
        return false;
    }
    let Some(shape) = hull(model, &others) else { return false };
    match constraints(model, at, writers, Some(&shape), open) {
        Some(Ready::Constraints(constraints)) => {
            let solved = solve_rounds(model, at, &constraints);
            if solved {
                set_final_shape(model, target, writers);
            }
            solved
        }
        _ => false,
    }
}

/// The treatment of an access that contains an extent which is not inferred yet, in a subscript or
/// in a condition around it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OpenExtents {
    /// The statement waits for the extent.
    Wait,
    /// The statement waits for an extent in a subscript. A condition with one guards nothing.
    WaitOutsideGuards,
    /// The subscript gives no constraint.
    Skip,
}

enum Ready {
    Constraints(Vec<Constraint>),
    Poisoned,
}

/// Every subscript that constrains a statement's variables, or `None` while a shape is still open.
/// With a shape for the target, the accesses to the target are constraints too.
fn constraints(
    model: &Model,
    at: usize,
    writers: &mut Writers,
    target_shape: Option<&[IndexExpr]>,
    open: OpenExtents,
) -> Option<Ready> {
    let statement = &model.statements[at];
    let lowered = statement.lowered.as_ref()?;
    let mut constraints = Vec::new();
    let mut add =
        |tensor: TensorId, indices: &[IndexExpr], shape: &[IndexExpr], guards, span, access: &str| {
            for (index, extent) in indices.iter().zip(shape) {
                let index = match model.with_extents(index) {
                    None if open == OpenExtents::Skip => continue,
                    known => known?,
                };
                constraints.push(Constraint {
                    index,
                    extent: extent.clone(),
                    is_inferred: model.tensor(tensor).declared.is_none(),
                    guards: Clone::clone(&guards),
                    span,
                    access: access.to_owned(),
                });
            }
            Some(())
        };
    for read in &lowered.reads {
        let tensor = read.access.tensor;
        let shape = match shape_before(model, tensor, at, writers) {
            Shape::Known(shape) => shape,
            Shape::Poisoned => return Some(Ready::Poisoned),
            _ if tensor == statement.target => match target_shape {
                Some(shape) => shape.to_vec(),
                None => continue,
            },
            Shape::Open => return None,
            // Later statements or the caller define the tensor, so its shape does not depend on
            // earlier statements.
            Shape::Undefined => final_shape(model, tensor, writers)?,
        };
        // An access through a view is shown as it was written.
        let span: Span = read.access.origin.into();
        let view = statement.view_reads.iter().find(|view| view.span == span);
        let text = view.map_or_else(|| print::access(&read.access, model), |view| view.access.clone());
        let alternatives = fact_alternatives(&read.guards);
        let has_open_guard = alternatives.iter().flatten().any(|fact| model.with_extents(fact).is_none());
        match open {
            OpenExtents::Wait if has_open_guard => return None,
            OpenExtents::Skip if has_open_guard => continue,
            _ => {}
        }
        let guards = with_known_extents(alternatives, model);
        add(tensor, &read.access.indices, &shape, guards, read.access.origin.into(), &text)?;
    }
    let text = format!("{}(…)", model.tensor(statement.target).text);
    let own_shape = match shape_before(model, statement.target, at, writers) {
        Shape::Known(shape)
            if model.tensor(statement.target).declared.is_some() || statement.reads_target() =>
        {
            Some(shape)
        }
        Shape::Poisoned => return Some(Ready::Poisoned),
        _ => target_shape.map(<[IndexExpr]>::to_vec),
    };
    if let Some(shape) = own_shape {
        add(statement.target, &lowered.indices, &shape, vec![Vec::new()], statement.target_span, &text)?;
    }
    Some(Ready::Constraints(constraints))
}

/// Substitutes the extents that are known in the facts of conditions.
fn with_known_extents(mut alternatives: Vec<Facts>, model: &Model) -> Vec<Facts> {
    for fact in alternatives.iter_mut().flatten() {
        if let Some(settled) = model.with_extents(fact) {
            *fact = settled;
        }
    }
    alternatives
}

/// One past the greatest value of a variable, and the reasons for it.
pub(super) struct Limit {
    pub var: VarId,
    pub to: IndexExpr,
    pub reasons: Vec<Reason>,
}

/// Runs the rounds of the paper. Returns true once every variable of the statement has a range.
fn solve_rounds(model: &mut Model, at: usize, constraints: &[Constraint]) -> bool {
    let vars = model.statements[at].vars.clone();
    if !model.all_vars(&model.statements[at]).into_iter().all(|var| resolve_declared_range(model, var)) {
        return false;
    }
    loop {
        if !triangles::settle_ranges(model, at) {
            return false;
        }
        let open: Vec<VarId> = vars.iter().copied().filter(|var| model.var(*var).range.is_none()).collect();
        if open.is_empty() {
            model.statements[at].has_ranges = true;
            return true;
        }
        let mut solved = solve_round(model, constraints, &open, None);
        if solved.is_empty() {
            solved = limits_from_views(model, at, &open);
        }
        if solved.is_empty() {
            let left = model.statements[at].lowered.as_ref().map(|lowered| lowered.indices.clone());
            solved = solve_round(model, constraints, &open, left.as_deref());
        }
        if solved.is_empty() {
            return false;
        }
        for Limit { var, to, reasons } in solved {
            let info = &mut model.vars[var.index()];
            info.range = Some(Range { from: IndexExpr::constant(0), to });
            info.reasons = reasons;
        }
    }
}

/// One round: the limits of every open variable that is the only open one in some subscript. A
/// subscript that a condition keeps in bounds gives no limit. The fallback round passes the
/// left-hand indices as `ignore_guards_for`. A guarded subscript then also gives a limit, if it is
/// the variable itself or the variable is reduced: `k <= i ? x(k) : 0` runs over all of `x`.
fn solve_round(
    model: &mut Model,
    constraints: &[Constraint],
    open: &[VarId],
    ignore_guards_for: Option<&[IndexExpr]>,
) -> Vec<Limit> {
    let mut solved: Vec<Limit> = Vec::new();
    for constraint in constraints {
        let Some(var) = only_open(model, &constraint.index, open) else { continue };
        let ignore = ignore_guards_for.is_some_and(|left| {
            constraint.index.as_var() == Some(var) || !left.iter().any(|index| index.mentions(var))
        });
        record_mixed_sizes(model, constraints, constraint, var);
        for last in upper_limits(model, constraint, var, ignore) {
            let kind = ReasonKind::Access {
                access: constraint.access.clone(),
                variable: model.var(var).name.clone(),
                last: print::index(&last, model),
            };
            let reason = Reason { span: constraint.span, kind };
            add_limit(&mut solved, var, &last, reason, model);
        }
    }
    solved
}

/// The open variable of a subscript, if there is exactly one. A variable whose bounds contain other
/// variables waits for those.
pub(super) fn only_open(model: &Model, index: &IndexExpr, open: &[VarId]) -> Option<VarId> {
    let mut inside = open.iter().copied().filter(|var| index.mentions(*var));
    let (var, None) = (inside.next()?, inside.next()) else { return None };
    model.var(var).dependent.is_none().then_some(var)
}

/// Adds the greatest value of a variable. Several limits of one variable are intersected.
pub(super) fn add_limit(
    limits: &mut Vec<Limit>,
    var: VarId,
    last: &IndexExpr,
    reason: Reason,
    model: &Model,
) {
    match limits.iter_mut().find(|limit| limit.var == var) {
        Some(limit) => {
            limit.to = smaller(&limit.to, &last.offset(1), model);
            limit.reasons.push(reason);
        }
        None => limits.push(Limit { var, to: last.offset(1), reasons: vec![reason] }),
    }
}

/// Records a variable that alone indexes two dimensions whose extents are not the same expression.
fn record_mixed_sizes(model: &mut Model, constraints: &[Constraint], constraint: &Constraint, var: VarId) {
    let alone =
        |other: &&Constraint| other.index.as_var() == Some(var) && other.guards.iter().all(Vec::is_empty);
    let size = |of: &Constraint| AccessExtent {
        extent: of.extent.clone(),
        span: of.span,
        access: of.access.clone(),
    };
    let Some(first) = constraints.iter().find(alone) else { return };
    // Inferred shapes that differ by a number are those of stencils, and no mistake.
    let is_margin = first.is_inferred
        && constraint.is_inferred
        && first.extent.sub(&constraint.extent).as_constant().is_some();
    if alone(&constraint)
        && first.extent != constraint.extent
        && !is_margin
        && !has_other_end(model, constraints, var, [&first.extent, &constraint.extent])
    {
        let certain = first.extent.as_constant().is_some() && constraint.extent.as_constant().is_some();
        model.mixed_sizes.push(MixedSizes { var, left: size(first), right: size(constraint), certain });
    }
}

/// Returns true when a subscript with an offset ends a variable at one of two sizes anyway. So
/// `s(y + n)` of a tensor with `H + n` elements ends `y` at `H`, and `s(y)` beside it is right.
fn has_other_end(model: &Model, constraints: &[Constraint], var: VarId, sizes: [&IndexExpr; 2]) -> bool {
    let mut offset = constraints.iter().filter(|other| {
        other.index.as_var() != Some(var)
            && other.index.vars() == [var].into()
            && other.guards.iter().all(Vec::is_empty)
    });
    offset.any(|other| {
        let limits = upper_limits(model, other, var, false);
        limits.iter().any(|last| sizes.contains(&&last.offset(1)))
    })
}

/// Substitutes the extents that a declared range uses. Returns false while an extent is not known.
fn resolve_declared_range(model: &mut Model, var: VarId) -> bool {
    let Some(range) = model.var(var).range.clone() else { return true };
    match (model.with_extents(&range.from), model.with_extents(&range.to)) {
        (Some(from), Some(to)) => {
            model.vars[var.index()].range = Some(Range { from, to });
            true
        }
        _ => false,
    }
}

/// The greatest values of `var` that the constraint allows.
fn upper_limits(model: &Model, constraint: &Constraint, var: VarId, ignore_guards: bool) -> Vec<IndexExpr> {
    let sides = [
        (Direction::AtLeast, IndexExpr::constant(0), constraint.index.clone()),
        (
            Direction::AtMost,
            constraint.extent.offset(-1),
            constraint.extent.offset(-1).sub(&constraint.index),
        ),
    ];
    let mut limits = Vec::new();
    for (end, limit, slack) in sides {
        let guarded = constraint.guards.iter().all(|facts| {
            let mut facts = facts.clone();
            facts.push(IndexExpr::var(var));
            can_prove_nonnegative(&slack, &facts, model)
        });
        if guarded && !ignore_guards {
            continue;
        }
        if let Solution::AtMost(last) = solve(model, &constraint.index, var, end, &limit) {
            limits.push(last);
        }
    }
    limits
}

/// Reports the variables of a statement that stay open, with the reason.
fn report_ambiguous(model: &mut Model, at: usize, writers: &mut Writers) {
    let statement = &model.statements[at];
    let target = statement.target;
    let open: Vec<VarId> =
        statement.vars.iter().copied().filter(|var| model.var(*var).range.is_none()).collect();
    let waiting = statement.lowered.iter().flat_map(|lowered| &lowered.reads).any(|read| {
        let tensor = read.access.tensor;
        let known = match shape_before(model, tensor, at, writers) {
            Shape::Known(_) => true,
            Shape::Undefined => writers.writers_of(tensor).is_empty(),
            Shape::Open | Shape::Poisoned => false,
        };
        tensor != target && !known
    });
    let silent = !model.diagnostics.iter().any(Diagnostic::is_error);
    if !open.is_empty() && !model.tensor(target).poisoned && (!waiting || silent) {
        let diagnostic = ambiguous_variables(model, at, &open);
        model.report(diagnostic);
    }
    if open.is_empty() && silent {
        let span = model.statements[at].span;
        model.report(
            Diagnostic::error(
                Code::AmbiguousRange,
                span,
                "the ranges of this statement depend on its own result",
            )
            .help("state the ranges with `where`, or declare the size of the result"),
        );
    }
    model.tensors[target.index()].poisoned = true;
}
