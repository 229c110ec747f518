//! Decides whether an access is inside its buffer, so that its load needs no mask or a simpler one.
//!
//! A vector loop computes lanes that its statements exclude, and both operands of `?:`. An access
//! that is inside its buffer in all lanes needs no mask. One that is inside wherever the statement
//! runs needs the mask of the statement, but not that of the operators around it. Two kinds of
//! facts prove this:
//!
//! - The intervals of the loop variables, which the conditions around a statement narrow.
//! - The accesses that the statement certainly performs. They are inside their buffers wherever the
//!   statement runs, or the nest is wrong. In `a(i) < b(i) ? a(i) : b(i)`, the loads of the
//!   condition show that those of the branches are inside too.

use std::collections::BTreeMap;

use tilewright_ir::ids::InNest;
use tilewright_ir::interval::{Interval, Intervals, interval};
use tilewright_ir::nest::{Access, Data, Expr, ExprKind, IndexExpr, LoopVarId, Store};

use super::function::{Emit, Emitter};

/// Where an access is known to be inside its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bounds {
    /// In all lanes, also in those that are not active.
    AllLanes,
    /// In the lanes in which the statement runs.
    StatementLanes,
    /// At most in the lanes in which the access is evaluated.
    Unknown,
}

/// The facts that hold where a statement is emitted.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// Intervals of variables from conditions that the code branches on. They hold in all lanes.
    branched: BTreeMap<LoopVarId, Interval>,
    /// Intervals of variables from conditions that are masks. They hold in the statement's lanes.
    masked: BTreeMap<LoopVarId, Interval>,
    /// Subscripts that are at least 0 and below an extent in the statement's lanes.
    subscripts: Vec<(IndexExpr, i64)>,
}

/// How conditions are emitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guard {
    Branch,
    Mask,
}

/// The intervals of the variables that hold in some of the lanes.
struct Narrowed<'e, 'ctx, 'n> {
    emitter: &'e Emitter<'ctx, 'n>,
    lanes: Guard,
}

impl Intervals<InNest> for Narrowed<'_, '_, '_> {
    fn var(&self, var: LoopVarId) -> Option<Interval> {
        let facts = &self.emitter.frame.facts;
        let masked = facts.masked.get(&var).filter(|_| self.lanes == Guard::Mask);
        let narrower = facts.branched.get(&var).into_iter().chain(masked);
        narrower.fold(self.emitter.var(var), |known, own| Some(known.map_or(*own, |known| both(known, *own))))
    }

    fn data(&self, data: &Data) -> Option<Interval> {
        self.emitter.data(data)
    }
}

/// The values in both intervals.
fn both(left: Interval, right: Interval) -> Interval {
    Interval { low: left.low.max(right.low), high: left.high.min(right.high) }
}

impl<'ctx> Emitter<'ctx, '_> {
    /// The interval of an expression where the statement being emitted runs. Code that may be
    /// placed outside the conditions around the statement must not rely on it.
    pub(super) fn narrowed_range(&self, index: &IndexExpr) -> Option<Interval> {
        interval(index, &Narrowed { emitter: self, lanes: Guard::Mask })
    }

    /// Emits code that runs only where the resolved conditions hold, all of them at least 0.
    pub(super) fn assuming<T>(
        &mut self,
        conditions: &[IndexExpr],
        guard: Guard,
        emit: impl FnOnce(&mut Self) -> Emit<T>,
    ) -> Emit<T> {
        let outside = self.frame.facts.clone();
        for condition in conditions {
            self.narrow(condition, guard);
        }
        let done = emit(self);
        self.frame.facts = outside;
        done
    }

    /// Emits code that runs only where the resolved conditions do not all hold.
    pub(super) fn assuming_otherwise<T>(
        &mut self,
        conditions: &[IndexExpr],
        guard: Guard,
        emit: impl FnOnce(&mut Self) -> Emit<T>,
    ) -> Emit<T> {
        match conditions {
            // The negation of `c >= 0` is `-c - 1 >= 0`.
            [condition] => self.assuming(&[condition.scale(-1).offset(-1)], guard, emit),
            _ => emit(self),
        }
    }

    /// Narrows the intervals of the variables in a condition that is at least 0.
    fn narrow(&mut self, condition: &IndexExpr, guard: Guard) {
        for term in condition.terms() {
            let [factor] = term.factors.as_slice() else { continue };
            let Some(var) = IndexExpr::atom(factor.clone()).as_var() else { continue };
            let rest = condition.sub(&IndexExpr::from(term));
            let known = Narrowed { emitter: self, lanes: guard };
            let (Some(range), Some(rest)) = (known.var(var), interval(&rest, &known)) else { continue };
            let by = i128::from(term.coefficient);
            let narrowed = match by > 0 {
                true => Interval { low: range.low.max(-rest.high.div_euclid(by)), ..range },
                false => Interval { high: range.high.min(rest.high.div_euclid(-by)), ..range },
            };
            if narrowed.low > narrowed.high {
                // The code is never reached.
                continue;
            }
            let facts = &mut self.frame.facts;
            let intervals = match guard {
                Guard::Branch => &mut facts.branched,
                Guard::Mask => &mut facts.masked,
            };
            intervals.insert(var, narrowed);
        }
    }

    /// Emits a store whose certain accesses are known to be inside their buffers.
    pub(super) fn with_certain_accesses(
        &mut self,
        store: &Store,
        emit: impl FnOnce(&mut Self) -> Emit<()>,
    ) -> Emit<()> {
        if self.frame.lanes.is_none() || !has_lazy_operator(&store.value) {
            return emit(self);
        }
        let mut certain = vec![&store.target];
        certain_reads(&store.value, &mut certain);
        let mut subscripts = Vec::new();
        for access in certain {
            let extents = &self.nest.buffer(access.tensor).shape;
            for (index, extent) in access.indices.iter().zip(extents) {
                if !index.has_data() {
                    subscripts.push((self.resolve(index), *extent));
                }
            }
        }
        self.frame.facts.subscripts = subscripts;
        let done = emit(self);
        self.frame.facts.subscripts.clear();
        done
    }

    /// Where a resolved subscript without data is inside its dimension.
    pub(super) fn subscript_bounds(&self, index: &IndexExpr, extent: i64) -> Bounds {
        let inside = |guard| {
            let range = interval(index, &Narrowed { emitter: self, lanes: guard });
            range.is_some_and(|range| range.low >= 0 && range.high < extent.into())
        };
        if inside(Guard::Branch) {
            return Bounds::AllLanes;
        }
        let distances = || {
            let known = self.frame.facts.subscripts.iter();
            known.filter_map(|(other, end)| Some((index.sub(other).as_constant()?, *end)))
        };
        let nonnegative = distances().any(|(distance, _)| distance >= 0);
        let below = distances().any(|(distance, end)| distance <= extent - end);
        match inside(Guard::Mask) || nonnegative && below {
            true => Bounds::StatementLanes,
            false => Bounds::Unknown,
        }
    }
}

impl Bounds {
    /// Where two subscripts are both inside.
    pub(super) fn and(self, other: Bounds) -> Bounds {
        match (self, other) {
            (Bounds::Unknown, _) | (_, Bounds::Unknown) => Bounds::Unknown,
            (Bounds::StatementLanes, _) | (_, Bounds::StatementLanes) => Bounds::StatementLanes,
            _ => Bounds::AllLanes,
        }
    }
}

/// Whether the evaluation of a value may skip a part of it.
fn has_lazy_operator(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Select(_) => true,
        ExprKind::Binary(op, _) if op.is_logical() => true,
        _ => expr.operands().iter().any(has_lazy_operator),
    }
}

/// Collects the accesses that the evaluation of a value certainly performs.
pub(super) fn certain_reads<'e>(expr: &'e Expr, found: &mut Vec<&'e Access>) {
    match &expr.kind {
        ExprKind::Load(access) => found.push(access),
        ExprKind::Select(operands) => certain_reads(&operands[0], found),
        ExprKind::Binary(op, operands) if op.is_logical() => certain_reads(&operands[0], found),
        _ => expr.operands().iter().for_each(|operand| certain_reads(operand, found)),
    }
}
