//! Writes out unrolled loops whose iterations are not all alike.
//!
//! Code generation can write out an unrolled loop by itself. But a condition that holds in some of
//! its iterations and not in others, as at the edge of an image, is better decided before. Once the
//! variable is a number, the ranges of the other loops often decide the condition. An unrolled loop
//! that ends early is just made shorter.

use tilewright_ir::nest::{Combine, For, LoopKind, Stmt};
use tilewright_ir::{Atom, Expr, ExprKind, IndexExpr, LoopNest, VarId};

use super::stmts::{map_indices, stores};

/// The most stores that the code may have after this pass.
const MOST_STORES: usize = 2000;

/// Writes out the unrolled loops for which this decides a condition.
pub(super) fn expand(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        let mut left = MOST_STORES.saturating_sub(stores(stmts));
        *stmts = expanded(std::mem::take(stmts), &mut left);
    }
}

fn expanded(stmts: Vec<Stmt>, left: &mut usize) -> Vec<Stmt> {
    stmts.into_iter().flat_map(|stmt| expand_one(stmt, left)).collect()
}

fn expand_one(stmt: Stmt, left: &mut usize) -> Vec<Stmt> {
    match stmt {
        Stmt::For(own) => expand_for(own, left),
        Stmt::If(mut own) => {
            own.then = expanded(own.then, left);
            own.otherwise = expanded(own.otherwise, left);
            vec![Stmt::If(own)]
        }
        Stmt::Allocate(mut own) => {
            own.body = expanded(own.body, left);
            vec![Stmt::Allocate(own)]
        }
        Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => vec![stmt],
    }
}

fn expand_for(own: For, left: &mut usize) -> Vec<Stmt> {
    let mut own = shortened(own);
    own.body = expanded(own.body, left);
    let extent = own.extent.as_constant().filter(|_| own.kind == LoopKind::Unrolled);
    let Some(extent) = extent.filter(|_| depends_on(&own.body, own.var)) else { return vec![Stmt::For(own)] };
    let added = stores(&own.body) * extent.max(0) as usize;
    if added > *left || allocates(&own.body) {
        return vec![Stmt::For(own)];
    }
    *left -= added;
    (0..extent).flat_map(|at| at_iteration(&own.body, own.var, at)).collect()
}

fn at_iteration(body: &[Stmt], var: VarId, at: i64) -> Vec<Stmt> {
    let mut copy = body.to_vec();
    let value = IndexExpr::constant(at);
    map_indices(&mut copy, &mut |index| {
        index.substitute(&mut |atom| (*atom == Atom::Var(var)).then(|| value.clone()))
    });
    copy
}

/// Turns `unroll i in 12: if i <= 3` into `unroll i in 4`.
fn shortened(mut own: For) -> For {
    let (LoopKind::Unrolled, [Stmt::If(guard)]) = (own.kind, own.body.as_slice()) else { return own };
    let ([condition], true) = (guard.conditions.as_slice(), guard.otherwise.is_empty()) else { return own };
    let last = condition.add(&IndexExpr::var(own.var)).as_constant();
    let (Some(last), Some(extent)) = (last, own.extent.as_constant()) else { return own };
    own.extent = IndexExpr::constant(extent.min(last + 1));
    own.body = guard.then.clone();
    shortened(own)
}

/// Returns true when a condition inside depends on the variable.
fn depends_on(stmts: &[Stmt], var: VarId) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::For(own) => depends_on(&own.body, var),
        Stmt::Allocate(own) => depends_on(&own.body, var),
        Stmt::If(own) => {
            own.conditions.iter().any(|condition| condition.mentions(var))
                || depends_on(&own.then, var)
                || depends_on(&own.otherwise, var)
        }
        Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => chooses_by(&own.value, var),
        Stmt::Prefetch(_) | Stmt::Sync(_) => false,
    })
}

/// Returns true when a select in the value depends on the variable.
fn chooses_by(expr: &Expr, var: VarId) -> bool {
    match &expr.kind {
        ExprKind::Select(arms) if mentions(&arms[0], var) => true,
        _ => expr.operands().iter().any(|operand| chooses_by(operand, var)),
    }
}

fn mentions(expr: &Expr, var: VarId) -> bool {
    match &expr.kind {
        ExprKind::Index(index) => index.mentions(var),
        _ => expr.operands().iter().any(|operand| mentions(operand, var)),
    }
}

fn allocates(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Allocate(_) => true,
        Stmt::For(own) => allocates(&own.body),
        Stmt::If(own) => allocates(&own.then) || allocates(&own.otherwise),
        Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => false,
    })
}
