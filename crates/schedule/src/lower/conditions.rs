//! Lifts conditions on indices, such as those of padding, out of the loops in which they are
//! costly.
//!
//! A value `0 <= y && y < H ? I(y, x) : 0` checks in every iteration a condition that holds in most
//! of them. The pass considers each part of such a condition, and each loop from the outside in.
//! The least value of the part over the loops further inside tells whether all their iterations are
//! in the interior. Where that is so in enough iterations of the loop, its body becomes `if
//! interior { body without the condition } else { body }`. A subscript that is clamped to a border,
//! `max(0, min(x - 1, W - 1))`, contains the same kind of condition and is lifted in the same way.
//! So do the subscripts of tensors that begin again at their end, `(x + 1) % W`, or are mirrored.

use tilewright_ir::interval::lower_bound;
use tilewright_ir::nest::{Atom, Buffer, Expr, ExprKind, If, IndexExpr, LoopKind, LoopVarId, Stmt};
use tilewright_ir::{LoopNest, walk};

use super::stmts::{count_stores, duplicate, insert_choice};
use crate::draft::borders::inside_border;
use crate::draft::comparison::{as_condition, as_condition_unchecked, conjuncts};
use crate::draft::simplify::{Ranges, split_minima};

/// The stores that the code may have with versions: this many, or this many times the number
/// before.
const MOST_STORES: usize = 400;
const MOST_TIMES: usize = 5;
/// The percentage of a loop's iterations that must be in the interior to be worth a version.
const LEAST_INTERIOR_PERCENT: i64 = 40;

/// Lifts the conditions that are worth a version.
pub(super) fn lift(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        let budget = MOST_TIMES.saturating_mul(count_stores(stmts)).max(MOST_STORES);
        let mut lifting = Lifting { buffers: &mut nest.buffers, stores: count_stores(stmts), budget };
        for stmt in stmts {
            lifting.inside(stmt, &Ranges::default());
        }
    }
}

struct Lifting<'a> {
    buffers: &'a mut Vec<Buffer>,
    stores: usize,
    budget: usize,
}

impl Lifting<'_> {
    fn inside(&mut self, stmt: &mut Stmt, ranges: &Ranges) {
        match stmt {
            Stmt::For(own) => {
                let mut inside = ranges.clone();
                inside.add_loop(own.var, &own.extent);
                if matches!(own.kind, LoopKind::Serial | LoopKind::Parallel) {
                    own.body = self.body(std::mem::take(&mut own.body), own.var, &inside);
                }
            }
            other => other.bodies_mut().flatten().for_each(|stmt| self.inside(stmt, ranges)),
        }
    }

    /// Adds a version for the interior to the body of a loop, if that is worth it.
    fn body(&mut self, mut stmts: Vec<Stmt>, var: LoopVarId, ranges: &Ranges) -> Vec<Stmt> {
        let count = count_stores(&stmts);
        let mut interior: Vec<Interior> = Vec::new();
        if self.stores + count <= self.budget {
            collect(&stmts, ranges, &mut InnerLoops::default(), &mut |condition, least| {
                let least = least.filter(|least| is_worth_version(least, var, ranges));
                match interior.iter_mut().find(|own| own.condition == *condition) {
                    Some(own) => {
                        own.least = own.least.take().zip(least).map(|(all, one)| [all, vec![one]].concat())
                    }
                    None => interior.push(Interior {
                        condition: condition.clone(),
                        least: least.map(|least| vec![least]),
                    }),
                }
            });
            interior.retain(|own| own.least.is_some());
        }
        if interior.is_empty() {
            stmts.iter_mut().for_each(|stmt| self.inside(stmt, ranges));
            return stmts;
        }
        let holding: Vec<IndexExpr> = interior.iter().map(|own| own.condition.clone()).collect();
        let mut conditions: Vec<IndexExpr> = interior
            .into_iter()
            .filter_map(|own| own.least)
            .flatten()
            .flat_map(|least| split_minima(&least))
            .collect();
        conditions.sort();
        conditions.dedup();
        let concerns = |stmt: &Stmt| depends_on(stmt, &holding);
        stmts = insert_choice(stmts, &concerns, &mut |mut then| {
            let otherwise = duplicate(&then, self.buffers);
            assume(&mut then, &holding);
            Stmt::If(If { conditions: conditions.clone(), then, otherwise })
        });
        self.stores += count_stores(&stmts) - count.min(count_stores(&stmts));
        stmts.iter_mut().for_each(|stmt| self.inside(stmt, ranges));
        stmts
    }
}

/// A condition, and its least value at every place where it is checked; none if one of the places
/// is not worth a version. The whole tiles and the rest of a loop check the same condition over
/// different numbers of iterations.
struct Interior {
    condition: IndexExpr,
    least: Option<Vec<IndexExpr>>,
}

/// Returns true when a value inside depends on one of these conditions.
fn depends_on(stmt: &Stmt, conditions: &[IndexExpr]) -> bool {
    walk::any(std::slice::from_ref(stmt), &mut |stmt| {
        stmt.store().is_some_and(|store| value_depends_on(&store.value, conditions))
    })
}

fn value_depends_on(expr: &Expr, conditions: &[IndexExpr]) -> bool {
    let mut clamped = false;
    if let ExprKind::Load(access) = &expr.kind {
        for index in &access.indices {
            visit_clamp_conditions(index, &mut |condition| {
                clamped = clamped || conditions.contains(condition)
            });
        }
    }
    clamped
        || as_condition_unchecked(expr).is_some_and(|own| conditions.contains(&own))
        || expr.operands().iter().any(|operand| value_depends_on(operand, conditions))
}

/// The loops between a place and a value, with their largest extents.
#[derive(Default)]
struct InnerLoops {
    loops: Ranges,
    all: Vec<LoopVarId>,
}

/// Calls `visit` on each part of a select's condition that may fail, with its least value over the
/// loops inside if that is known.
fn collect(
    stmts: &[Stmt],
    ranges: &Ranges,
    inside: &mut InnerLoops,
    visit: &mut dyn FnMut(&IndexExpr, Option<IndexExpr>),
) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => {
                let mut ranges = ranges.clone();
                ranges.add_loop(own.var, &own.extent);
                if let Some(most) = ranges.greatest_value(&own.extent) {
                    inside.loops.set_extent(own.var, most);
                }
                inside.all.push(own.var);
                collect(&own.body, &ranges, inside, visit);
                inside.all.pop();
                inside.loops.remove_range(own.var);
            }
            other => {
                if let Some(store) = other.store() {
                    collect_in(&store.value, ranges, inside, visit);
                }
                other.bodies().for_each(|body| collect(body, ranges, inside, visit));
            }
        }
    }
}

fn collect_in(
    expr: &Expr,
    ranges: &Ranges,
    inside: &InnerLoops,
    visit: &mut dyn FnMut(&IndexExpr, Option<IndexExpr>),
) {
    let mut report = |condition: &IndexExpr| {
        if ranges.never_negative(condition) {
            return;
        }
        let least = lower_bound(condition, &inside.loops).filter(|least| !least.has_data());
        visit(condition, least.filter(|least| !inside.all.iter().any(|var| least.mentions(*var))));
    };
    match &expr.kind {
        ExprKind::Select(arms) => {
            let conditions = conjuncts(&arms[0]).into_iter().filter_map(|part| as_condition(part, ranges));
            conditions.for_each(|condition| report(&condition));
        }
        ExprKind::Load(access) => access.indices.iter().for_each(|index| {
            visit_clamp_conditions(index, &mut report);
        }),
        _ => {}
    }
    expr.operands().iter().for_each(|operand| collect_in(operand, ranges, inside, visit));
}

/// Calls `visit` on the conditions under which a subscript is not beyond its border, from the
/// inside out.
fn visit_clamp_conditions(index: &IndexExpr, visit: &mut dyn FnMut(&IndexExpr)) -> IndexExpr {
    index.substitute(&mut |atom| {
        let (free, condition) = inside_border(atom)?;
        visit(&condition);
        Some(free)
    })
}

/// Returns true when the loop decides the condition for enough of its iterations. The iterations
/// are sampled.
fn is_worth_version(least: &IndexExpr, var: LoopVarId, ranges: &Ranges) -> bool {
    if !least.mentions(var) {
        return false;
    }
    let Some(extent) = ranges.extent(var) else { return false };
    const SAMPLES: i64 = 64;
    let samples = extent.min(SAMPLES);
    let middle = |other: LoopVarId| ranges.extent(other).map(|extent| extent / 2);
    let holds = |at: i64| {
        let value = at * extent / samples;
        let found = least.eval(&mut |atom| match atom {
            Atom::Var(own) if *own == var => Some(value),
            Atom::Var(own) => middle(*own),
            _ => None,
        });
        found.is_some_and(|found| found >= 0)
    };
    let inside = (0..samples).filter(|at| holds(*at)).count() as i64;
    100 * inside >= LEAST_INTERIOR_PERCENT * samples
}

/// Drops conditions that are known to hold.
fn assume(stmts: &mut [Stmt], holding: &[IndexExpr]) {
    walk::visit_mut(stmts, &mut |stmt| {
        if let Some(store) = stmt.store_mut() {
            assume_in(&mut store.value, holding);
        }
    });
}

fn assume_in(expr: &mut Expr, holding: &[IndexExpr]) {
    expr.operands_mut().iter_mut().for_each(|operand| assume_in(operand, holding));
    if let ExprKind::Load(access) = &mut expr.kind {
        for index in &mut access.indices {
            *index = index.substitute(&mut |atom| {
                let (free, condition) = inside_border(atom)?;
                holding.contains(&condition).then_some(free)
            });
        }
    }
    // Both sides were checked for overflow when the condition was collected.
    if let Some(condition) = as_condition_unchecked(expr)
        && holding.contains(&condition)
    {
        *expr = super::tidy::truth(true);
    }
}
