//! Finds the buffers that never hold a NaN.
//!
//! The minimum or maximum of two values ignores a NaN, which takes three instructions where either
//! operand may be NaN. A total that starts from a number, and then only takes the minimum or
//! maximum of itself and other values, cannot become NaN. One instruction is enough for such a
//! total.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Scope, Stmt, Store};
use tilewright_ir::{Expr, ExprKind, LoopNest, ReduceOp, TensorId, walk};

/// Returns the scratch and register buffers that hold only numbers, never NaN.
pub(super) fn buffers_of_numbers(nest: &LoopNest) -> BTreeSet<TensorId> {
    let ids = (0..nest.buffers.len()).map(|at| TensorId(at as u32));
    let ours = |id: &TensorId| matches!(nest.buffer(*id).scope, Scope::Scratch | Scope::Register);
    let mut numbers: BTreeSet<TensorId> = ids.filter(ours).collect();
    // Removing a buffer can invalidate other buffers whose values came from it.
    loop {
        let before = numbers.len();
        drop_others(&nest.setup, &mut numbers);
        drop_others(&nest.body, &mut numbers);
        if numbers.len() == before {
            return numbers;
        }
    }
}

/// Whether an expression is known not to be NaN: a literal number, or a load from such a buffer.
pub(super) fn is_number(value: &Expr, numbers: &BTreeSet<TensorId>) -> bool {
    match &value.kind {
        ExprKind::Literal(number) => !number.as_f64().is_nan(),
        ExprKind::Load(access) => numbers.contains(&access.tensor),
        _ => false,
    }
}

fn drop_others(stmts: &[Stmt], numbers: &mut BTreeSet<TensorId>) {
    walk::visit(stmts, &mut |stmt| match stmt {
        Stmt::Store(store) if !keeps_numbers(store, numbers) => {
            numbers.remove(&store.target.tensor);
        }
        _ => {}
    });
}

/// Whether the target of a store still holds only numbers after it.
fn keeps_numbers(store: &Store, numbers: &BTreeSet<TensorId>) -> bool {
    match store.reduce {
        Some(ReduceOp::Min | ReduceOp::Max) => true,
        None => is_number(&store.value, numbers),
        Some(_) => false,
    }
}
