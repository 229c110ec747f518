//! Rewrites statements for OpenCL so that no barrier is inside a condition. Only conditions that
//! depend on data stay as they are.
//!
//! OpenCL allows a barrier inside a condition that has the same value for all threads of a block.
//! PoCL, the OpenCL implementation of many machines without a GPU, hangs or crashes on some of
//! these barriers inside loops. So this module puts the condition around the statements between the
//! barriers, and the threads wait whether or not the condition holds. Reductions across threads
//! contain barriers too: all threads run the code of the reduction, and a thread contributes its
//! value only where the condition holds.

use tilewright_ir::nest::{Allocate, CombineNest, For, If, IndexExpr, Stmt};
use tilewright_ir::walk;

/// Returns equivalent statements with no barrier inside a condition, except for conditions that
/// depend on data.
pub(super) fn hoist_from_conditions(stmts: &[Stmt]) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for stmt in stmts {
        match stmt {
            Stmt::For(own) if own.combine_nest().is_some() => out.push(stmt.clone()),
            Stmt::For(own) if has_barrier(&own.body) => {
                out.push(Stmt::For(For { body: hoist_from_conditions(&own.body), ..own.clone() }));
            }
            Stmt::Allocate(own) if has_barrier(&own.body) => {
                out.push(Stmt::Allocate(Allocate { body: hoist_from_conditions(&own.body), ..own.clone() }));
            }
            Stmt::If(own) if can_repeat_condition(own) => {
                out.extend(guard_between_barriers(own, true, hoist_from_conditions(&own.then)));
                out.extend(guard_between_barriers(own, false, hoist_from_conditions(&own.otherwise)));
            }
            other => out.push(other.clone()),
        }
    }
    out
}

/// Whether a condition contains a barrier and may be repeated, because its value stays the same.
fn can_repeat_condition(outer: &If) -> bool {
    let waits = has_barrier(&outer.then) || has_barrier(&outer.otherwise);
    waits && !outer.conditions.iter().any(IndexExpr::has_data)
}

/// One branch of an `if`: each part between two barriers is guarded by the condition.
fn guard_between_barriers(outer: &If, holds: bool, side: Vec<Stmt>) -> Vec<Stmt> {
    let (mut out, mut part) = (Vec::new(), Vec::new());
    for stmt in side {
        if !has_barrier(std::slice::from_ref(&stmt)) {
            part.push(stmt);
            continue;
        }
        out.extend(guarded(outer, holds, std::mem::take(&mut part)));
        match stmt {
            Stmt::For(inner) if inner.combine_nest().is_some() => {
                out.extend(guarded(outer, holds, vec![Stmt::For(inner)]));
            }
            Stmt::For(inner) => out.push(Stmt::For(For {
                body: guard_between_barriers(outer, holds, inner.body.clone()),
                ..inner
            })),
            Stmt::Allocate(inner) => {
                out.push(Stmt::Allocate(Allocate {
                    body: guard_between_barriers(outer, holds, inner.body.clone()),
                    ..inner
                }));
            }
            Stmt::If(inner) => {
                out.extend(merge_guards(guarded(outer, holds, inner.then.clone()), inner, (outer, holds)))
            }
            other => out.push(other),
        }
    }
    out.extend(guarded(outer, holds, part));
    out
}

/// Nests `inner` in a branch of `guard`: as one `if` with all conditions, where that is possible.
fn merge_guards(outer: Option<Stmt>, inner: If, (guard, holds): (&If, bool)) -> Option<Stmt> {
    match outer {
        Some(Stmt::If(mut outer)) if outer.otherwise.is_empty() && inner.otherwise.is_empty() => {
            outer.conditions.extend(inner.conditions);
            Some(Stmt::If(outer))
        }
        _ => guarded(guard, holds, vec![Stmt::If(inner)]),
    }
}

fn guarded(outer: &If, holds: bool, part: Vec<Stmt>) -> Option<Stmt> {
    if part.is_empty() {
        return None;
    }
    let conditions = match (holds, outer.conditions.as_slice()) {
        (true, conditions) => conditions.to_vec(),
        (false, [only]) => vec![only.scale(-1).offset(-1)],
        (false, _) => {
            let conditions = outer.conditions.clone();
            return Some(Stmt::If(If { conditions, then: Vec::new(), otherwise: part }));
        }
    };
    Some(Stmt::If(If { conditions, then: part, otherwise: Vec::new() }))
}

/// Returns the reduction across threads inside an `if`, if the `if` contains nothing else and its
/// condition is the same for all threads.
pub(super) fn conditional_reduction(outer: &If) -> Option<CombineNest<'_>> {
    match (outer.then.as_slice(), outer.otherwise.as_slice()) {
        ([Stmt::For(inner)], []) if can_repeat_condition(outer) => inner.combine_nest(),
        _ => None,
    }
}

fn has_barrier(stmts: &[Stmt]) -> bool {
    walk::any(stmts, &mut |stmt| matches!(stmt, Stmt::Sync(_) | Stmt::Combine(_)))
}

#[cfg(test)]
mod tests {
    use tilewright_ir::nest::{Access, Axis, BufferId, Combine, Expr, LoopKind, LoopVarId, Store, Sync};
    use tilewright_ir::{DType, Number, Origin, ReduceOp};

    use super::*;

    fn store(place: i64) -> Store {
        let indices = vec![IndexExpr::constant(place)];
        let target = Access { tensor: BufferId(0), indices, origin: Origin::default() };
        let value = Expr::literal(DType::Int32, Number::Int(1));
        Store { target, value, reduce: None, is_asynchronous: false, is_atomic: false, claim: None }
    }

    fn reduction() -> Stmt {
        let lane = LoopVarId(9);
        let combine = Stmt::Combine(Combine { lane, op: ReduceOp::Add, store: store(0) });
        let kind = LoopKind::Thread(Axis::X);
        Stmt::For(For { var: lane, extent: IndexExpr::constant(4), kind, body: vec![combine] })
    }

    fn when(condition: u32, then: Vec<Stmt>, otherwise: Vec<Stmt>) -> Stmt {
        Stmt::If(If { conditions: vec![IndexExpr::var(LoopVarId(condition))], then, otherwise })
    }

    /// Collects the stores that run where these conditions hold, in order, by their subscripts. A
    /// reduction across threads counts as -1.
    fn trace(stmts: &[Stmt], holds: &dyn Fn(u32) -> bool, found: &mut Vec<i64>) {
        for stmt in stmts {
            match stmt {
                Stmt::If(own) => {
                    let all = own.conditions.iter().all(|condition| {
                        let value = |atom: &tilewright_ir::nest::Atom| match atom {
                            tilewright_ir::nest::Atom::Var(var) => Some(if holds(var.0) { 0 } else { -1 }),
                            _ => None,
                        };
                        condition.eval(&mut { value }).is_some_and(|value| value >= 0)
                    });
                    trace(if all { &own.then } else { &own.otherwise }, holds, found);
                }
                Stmt::For(own) if own.combine_nest().is_some() => found.push(-1),
                Stmt::For(own) => trace(&own.body, holds, found),
                Stmt::Store(own) => found.extend(own.target.indices[0].as_constant()),
                _ => {}
            }
        }
    }

    fn has_conditional_barrier(stmts: &[Stmt], inside: bool) -> bool {
        stmts.iter().any(|stmt| match stmt {
            Stmt::Sync(_) => inside,
            Stmt::If(own) => {
                [&own.then, &own.otherwise].iter().any(|side| has_conditional_barrier(side, true))
            }
            Stmt::For(own) => has_conditional_barrier(&own.body, inside),
            _ => false,
        })
    }

    #[test]
    fn hoisting_keeps_the_order_of_stores_and_reductions() {
        let barrier = || Stmt::Sync(Sync::Barrier);
        let set = |place| Stmt::Store(store(place));
        let inner =
            |first| when(1, vec![set(first), barrier(), reduction()], vec![set(first + 1), reduction()]);
        let stmts = vec![
            when(0, vec![set(1), barrier(), set(2), inner(3)], vec![inner(5), barrier(), set(7)]),
            when(
                2,
                vec![when(3, vec![reduction()], vec![])],
                vec![when(3, vec![reduction(), set(8)], vec![])],
            ),
        ];
        let changed = hoist_from_conditions(&stmts);
        assert!(has_conditional_barrier(&stmts, false) && !has_conditional_barrier(&changed, false));
        for combination in 0..16 {
            let holds = |condition: u32| combination >> condition & 1 == 1;
            let [mut before, mut after] = [Vec::new(), Vec::new()];
            trace(&stmts, &holds, &mut before);
            trace(&changed, &holds, &mut after);
            assert_eq!(before, after, "{combination}");
        }
    }
}
