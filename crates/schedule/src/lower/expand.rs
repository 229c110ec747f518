//! Writes out the unrolled loops of a loop nest in which a condition depends on the iteration.
//!
//! Code generation can write out an unrolled loop by itself. But a condition that holds in some of
//! its iterations and not in others, as at the edge of an image, is better decided before. Once the
//! variable is a number, the ranges of the other loops often decide the condition. An unrolled loop
//! that ends early is just made shorter.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Atom, Expr, ExprKind, For, IndexExpr, LoopKind, LoopVarId, Stmt};
use tilewright_ir::walk::{self, map_indices};

use super::stmts::count_stores;

/// The most stores that the code may have after this pass.
const MOST_STORES: usize = 2000;

/// Writes out the unrolled loops for which this decides a condition.
pub(super) fn expand(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        let mut left = MOST_STORES.saturating_sub(count_stores(stmts));
        walk::visit_mut(stmts, &mut |stmt| {
            if let Stmt::For(own) = stmt {
                shorten(own);
            }
        });
        *stmts = walk::rewrite(std::mem::take(stmts), &mut |stmt, out| match copies(&stmt, &mut left) {
            Some(copies) => out.extend(copies),
            None => out.push(stmt),
        });
    }
}

/// The iterations of an unrolled loop one after the other, if that decides a condition.
fn copies(stmt: &Stmt, left: &mut usize) -> Option<Vec<Stmt>> {
    let Stmt::For(own) = stmt else { return None };
    let extent = own.extent.as_constant().filter(|_| own.kind == LoopKind::Unrolled)?;
    if !depends_on(&own.body, own.var) {
        return None;
    }
    let added = count_stores(&own.body) * extent.max(0) as usize;
    if added > *left || allocates(&own.body) {
        return None;
    }
    *left -= added;
    Some((0..extent).flat_map(|at| at_iteration(&own.body, own.var, at)).collect())
}

fn at_iteration(body: &[Stmt], var: LoopVarId, at: i64) -> Vec<Stmt> {
    let mut copy = body.to_vec();
    let value = IndexExpr::constant(at);
    map_indices(&mut copy, &mut |index| {
        index.substitute(&mut |atom| (*atom == Atom::Var(var)).then(|| value.clone()))
    });
    copy
}

/// Turns `unroll i in 12: if i <= 3` into `unroll i in 4`.
fn shorten(own: &mut For) {
    while let (LoopKind::Unrolled, [Stmt::If(guard)]) = (own.kind, own.body.as_mut_slice()) {
        let ([condition], true) = (guard.conditions.as_slice(), guard.otherwise.is_empty()) else { return };
        let last = condition.add(&IndexExpr::var(own.var)).as_constant();
        let (Some(last), Some(extent)) = (last, own.extent.as_constant()) else { return };
        own.extent = IndexExpr::constant(extent.min(last + 1));
        own.body = std::mem::take(&mut guard.then);
    }
}

/// Returns true when a condition inside depends on the variable.
fn depends_on(stmts: &[Stmt], var: LoopVarId) -> bool {
    walk::any(stmts, &mut |stmt| match stmt {
        Stmt::If(own) => own.conditions.iter().any(|condition| condition.mentions(var)),
        other => other.store().is_some_and(|store| selects_by(&store.value, var)),
    })
}

/// Returns true when a select in the value depends on the variable.
fn selects_by(expr: &Expr, var: LoopVarId) -> bool {
    match &expr.kind {
        ExprKind::Select(arms) if mentions(&arms[0], var) => true,
        _ => expr.operands().iter().any(|operand| selects_by(operand, var)),
    }
}

fn mentions(expr: &Expr, var: LoopVarId) -> bool {
    match &expr.kind {
        ExprKind::Index(index) => index.mentions(var),
        _ => expr.operands().iter().any(|operand| mentions(operand, var)),
    }
}

fn allocates(stmts: &[Stmt]) -> bool {
    walk::any(stmts, &mut |stmt| matches!(stmt, Stmt::Allocate(_)))
}
