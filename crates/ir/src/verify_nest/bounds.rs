//! Searches for a point of the loops at which an access certainly leaves its buffer.
//!
//! The search assigns values to the loops around an access from the outside in. A variable takes
//! only the two ends of its range. The conditions of the surrounding choices first narrow the
//! range, given the values assigned so far. An affine subscript has its least and greatest values
//! at these ends, except under unusual conditions. A point counts only if every loop reaches it and
//! every condition has the required outcome there. An access that the search finds is therefore an
//! error whatever the data. An access that the search does not find may still be an error.

use std::cell::Cell;

use crate::ids::InNest;
use crate::interval::{Knowledge, lower_bound, upper_bound};
use crate::nest::{Access, Atom, Expr, ExprKind, For, IndexExpr, LoopVarId, Range};
use crate::operators::BinaryOp;
use crate::program::SymbolId;
use crate::verify::Verdict;

/// The maximal number of values that one search may assign to variables.
const BUDGET: usize = 1 << 10;

/// One side of a choice.
#[derive(Clone, Copy)]
pub(super) struct Branch<'a> {
    /// The conditions of the choice, which hold where all expressions are at least 0.
    pub(super) conditions: &'a [IndexExpr],
    /// Whether the conditions hold on this side.
    pub(super) holds: bool,
}

/// The loops and choices around a statement, outermost first.
#[derive(Default)]
pub(super) struct Path<'a> {
    loops: Vec<&'a For>,
    branches: Vec<Branch<'a>>,
    /// For each loop, the least and the greatest value of its variable; `None` where the extent
    /// depends on data.
    ranges: Vec<Option<(i64, i64)>>,
}

/// Values of the loop variables, outermost first.
type Point = Vec<(LoopVarId, i64)>;

impl<'a> Path<'a> {
    pub(super) fn enter_loop(&mut self, inner: &'a For) {
        let most = upper_bound(&inner.extent, &Ranges { path: self, point: &[] });
        let most = most.and_then(|most| most.as_constant());
        self.ranges.push(most.map(|most| (0, most.saturating_sub(1))));
        self.loops.push(inner);
    }

    pub(super) fn leave_loop(&mut self) {
        self.loops.pop();
        self.ranges.pop();
    }

    pub(super) fn enter_branch(&mut self, branch: Branch<'a>) {
        self.branches.push(branch);
    }

    pub(super) fn leave_branch(&mut self) {
        self.branches.pop();
    }

    pub(super) fn loops(&self) -> impl Iterator<Item = &'a For> {
        self.loops.iter().copied()
    }

    /// A point that is certainly reached and where the subscript is not in `0..extent`, with the
    /// subscript's value there.
    pub(super) fn find_out_of_bounds_point(
        &self,
        subscript: &IndexExpr,
        extent: i64,
    ) -> Option<(i64, Point)> {
        if subscript.has_data() || self.stays_inside(subscript, extent) {
            return None;
        }
        let search = Search { path: self, subscript, extent, budget: Cell::new(BUDGET) };
        let (value, point) = search.continue_from(&mut Vec::new())?;
        Some((value, point.into_iter().filter(|(var, _)| subscript.mentions(*var)).collect()))
    }

    /// Returns true when interval bounds keep the subscript within the extent. This decides most
    /// accesses.
    fn stays_inside(&self, subscript: &IndexExpr, extent: i64) -> bool {
        let ranges = Ranges { path: self, point: &[] };
        let number = |bound: Option<IndexExpr>| bound.and_then(|bound| bound.as_constant());
        let low = number(lower_bound(subscript, &ranges));
        let high = number(upper_bound(subscript, &ranges));
        low.zip(high).is_some_and(|(low, high)| low >= 0 && high < extent)
    }

    /// Returns true when the surrounding choices leave at most one iteration of the loop at a
    /// depth. They leave none where a remainder is empty.
    pub(super) fn runs_at_most_once(&self, depth: usize) -> bool {
        let Some(range) = self.ranges[depth] else { return false };
        self.narrow_range(self.loops[depth].var, range, &[]).is_none_or(|(low, high)| low == high)
    }

    /// The range without the values that some condition excludes; `None` if no value is left.
    fn narrow_range(
        &self,
        var: LoopVarId,
        (mut low, mut high): (i64, i64),
        point: &[(LoopVarId, i64)],
    ) -> Option<(i64, i64)> {
        for fact in self.facts() {
            let Some((coefficient, rest)) = fact.split_on(&Atom::Var(var)) else { continue };
            let Some(coefficient) = coefficient.as_constant() else { continue };
            if rest.mentions(var) {
                continue;
            }
            let most = upper_bound(&rest, &Ranges { path: self, point });
            let Some(most) = most.and_then(|most| most.as_constant()) else { continue };
            let (Some(least), Some(divisor)) = (most.checked_neg(), coefficient.checked_abs()) else {
                continue;
            };
            // The condition is coefficient * var + rest >= 0, and `most` is an upper bound of rest.
            if coefficient < 0 {
                high = high.min(most.div_euclid(divisor));
            } else {
                low = low.max(least.div_euclid(divisor) + i64::from(most % divisor != 0));
            }
        }
        (low <= high).then_some((low, high))
    }

    /// Expressions that are at least 0 on this path.
    fn facts(&self) -> impl Iterator<Item = IndexExpr> {
        self.branches.iter().flat_map(|guard| match (guard.holds, guard.conditions) {
            (true, conditions) => conditions.to_vec(),
            (false, [condition]) => vec![IndexExpr::constant(-1).sub(condition)],
            (false, _) => Vec::new(),
        })
    }
}

/// The ranges of the loop variables, where the outermost variables have the values of `point`.
struct Ranges<'a> {
    path: &'a Path<'a>,
    point: &'a [(LoopVarId, i64)],
}

impl Knowledge<InNest> for Ranges<'_> {
    fn range(&self, var: LoopVarId) -> Option<Range> {
        let at = self.path.loops.iter().position(|around| around.var == var)?;
        let (low, high) = match self.point.get(at) {
            Some((_, value)) => (*value, *value),
            None => self.path.ranges[at]?,
        };
        Some(Range { from: IndexExpr::constant(low), to: IndexExpr::constant(high).offset(1) })
    }
    fn least(&self, _: SymbolId) -> Option<i64> {
        None
    }
}

struct Search<'a> {
    path: &'a Path<'a>,
    subscript: &'a IndexExpr,
    extent: i64,
    budget: Cell<usize>,
}

impl Search<'_> {
    /// Continues the search from a point of the outermost loops.
    fn continue_from(&self, point: &mut Point) -> Option<(i64, Point)> {
        let Some(inner) = self.path.loops.get(point.len()) else { return self.check_point(point) };
        self.budget.set(self.budget.get().checked_sub(1)?);
        let extent = value_at(&inner.extent, point)?;
        let (low, high) = self.path.narrow_range(inner.var, (0, extent.saturating_sub(1)), point)?;
        let ends = if low == high || !self.is_relevant(inner.var) { vec![low] } else { vec![low, high] };
        ends.into_iter().find_map(|end| {
            point.push((inner.var, end));
            let found = self.continue_from(point);
            point.pop();
            found
        })
    }

    /// Returns true when a condition, an extent or the subscript depends on the variable.
    fn is_relevant(&self, var: LoopVarId) -> bool {
        let guards = self.path.branches.iter().flat_map(|guard| guard.conditions);
        let extents = self.path.loops.iter().map(|around| &around.extent);
        guards.chain(extents).chain([self.subscript]).any(|expr| expr.mentions(var))
    }

    fn check_point(&self, point: &Point) -> Option<(i64, Point)> {
        let reached = self.path.branches.iter().all(|guard| {
            let values: Option<Vec<i64>> =
                guard.conditions.iter().map(|expr| value_at(expr, point)).collect();
            values.is_some_and(|values| values.iter().all(|value| *value >= 0) == guard.holds)
        });
        let index = value_at(self.subscript, point)?;
        (reached && !(0..self.extent).contains(&index)).then(|| (index, point.clone()))
    }
}

/// The value at a point, or `None` where it depends on data.
fn value_at(expr: &IndexExpr, point: &Point) -> Option<i64> {
    expr.eval(&mut |atom| match atom {
        Atom::Var(var) => point.iter().find(|(other, _)| other == var).map(|(_, value)| *value),
        _ => None,
    })
}

/// Calls `visit` on an access and on every read that its subscripts certainly perform.
pub(super) fn visit_certain_accesses(access: &Access, visit: &mut dyn FnMut(&Access) -> Verdict) -> Verdict {
    visit(access)?;
    access.indices.iter().try_for_each(|index| visit_certain_index_reads(index, visit))
}

/// Calls `visit` on every read that the evaluation of an index expression certainly performs.
pub(super) fn visit_certain_index_reads(
    expr: &IndexExpr,
    visit: &mut dyn FnMut(&Access) -> Verdict,
) -> Verdict {
    expr.terms().iter().flat_map(|term| &term.factors).try_for_each(|atom| match atom {
        Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
            visit_certain_index_reads(&pair.0, visit)?;
            visit_certain_index_reads(&pair.1, visit)
        }
        Atom::Data(data) => visit_certain_reads(&data.value, visit),
        Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => Ok(()),
    })
}

/// Calls `visit` on every read that the evaluation of a value certainly performs. Operands that
/// `?:`, `&&` and `||` may skip are not included.
pub(super) fn visit_certain_reads(expr: &Expr, visit: &mut dyn FnMut(&Access) -> Verdict) -> Verdict {
    match &expr.kind {
        ExprKind::Load(access) => visit_certain_accesses(access, visit),
        ExprKind::Index(index) => visit_certain_index_reads(index, visit),
        ExprKind::Select(operands) => visit_certain_reads(&operands[0], visit),
        ExprKind::Binary(BinaryOp::And | BinaryOp::Or, operands) => visit_certain_reads(&operands[0], visit),
        _ => expr.operands().iter().try_for_each(|operand| visit_certain_reads(operand, visit)),
    }
}
