//! Finds the scratch and register buffers that never hold a NaN.
//!
//! The minimum or maximum of two values ignores a NaN, which takes three instructions where either
//! operand may be NaN. A total that starts from a number, and then only takes the minimum or
//! maximum of itself and other values, cannot become NaN. One instruction is enough for such a
//! total.

use std::collections::BTreeSet;

use tilewright_ir::nest::{BufferId, Expr, ExprKind, Scope, Stmt, Store};
use tilewright_ir::{LoopNest, ReduceOp, walk};

/// Returns the scratch and register buffers that hold only numbers, never NaN.
pub(super) fn nan_free_buffers(nest: &LoopNest) -> BTreeSet<BufferId> {
    let ids = (0..nest.buffers.len()).map(|at| BufferId(at as u32));
    let is_private = |id: &BufferId| matches!(nest.buffer(*id).scope, Scope::Scratch | Scope::Register);
    let mut nan_free: BTreeSet<BufferId> = ids.filter(is_private).collect();
    // Removing a buffer can invalidate other buffers whose values came from it.
    loop {
        let before = nan_free.len();
        remove_possible_nans(&nest.setup, &mut nan_free);
        remove_possible_nans(&nest.body, &mut nan_free);
        if nan_free.len() == before {
            return nan_free;
        }
    }
}

/// Whether an expression is known not to be NaN: a literal number, or a load from such a buffer.
pub(super) fn is_nan_free(value: &Expr, nan_free: &BTreeSet<BufferId>) -> bool {
    match &value.kind {
        ExprKind::Literal(number) => !number.as_f64().is_nan(),
        ExprKind::Load(access) => nan_free.contains(&access.tensor),
        _ => false,
    }
}

fn remove_possible_nans(stmts: &[Stmt], nan_free: &mut BTreeSet<BufferId>) {
    walk::visit(stmts, &mut |stmt| match stmt {
        Stmt::Store(store) if !stays_nan_free(store, nan_free) => {
            nan_free.remove(&store.target.tensor);
        }
        _ => {}
    });
}

/// Whether the target of a store still holds only numbers after it.
fn stays_nan_free(store: &Store, nan_free: &BTreeSet<BufferId>) -> bool {
    match store.reduce {
        Some(ReduceOp::Min | ReduceOp::Max) => true,
        None => is_nan_free(&store.value, nan_free),
        Some(_) => false,
    }
}
