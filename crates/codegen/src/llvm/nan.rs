//! Which buffers never hold a NaN.
//!
//! The smaller or larger of two ignores a NaN, which takes three instructions where either operand may be one. A
//! total that starts from a number and only ever takes the smaller or larger of itself and something cannot
//! become a NaN, and then one instruction does it.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Scope, Stmt, Store};
use tilewright_ir::{ExprKind, LoopNest, ReduceOp, TensorId};

use super::walk::bodies;

/// Scratch and register buffers that only hold numbers.
pub(super) fn buffers_of_numbers(nest: &LoopNest) -> BTreeSet<TensorId> {
    let ids = (0..nest.buffers.len()).map(|at| TensorId(at as u32));
    let ours = |id: &TensorId| matches!(nest.buffer(*id).scope, Scope::Scratch | Scope::Register);
    let mut numbers: BTreeSet<TensorId> = ids.filter(ours).collect();
    drop_others(&nest.setup, &mut numbers);
    drop_others(&nest.body, &mut numbers);
    numbers
}

fn drop_others(stmts: &[Stmt], numbers: &mut BTreeSet<TensorId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Store(store) if !keeps_numbers(store) => {
                numbers.remove(&store.target.tensor);
            }
            other => bodies(other).iter().for_each(|body| drop_others(body, numbers)),
        }
    }
}

/// Whether numbers stay numbers through a store.
fn keeps_numbers(store: &Store) -> bool {
    match (store.reduce, &store.value.kind) {
        (Some(ReduceOp::Min | ReduceOp::Max), _) => true,
        (None, ExprKind::Literal(number)) => !number.as_f64().is_nan(),
        _ => false,
    }
}
