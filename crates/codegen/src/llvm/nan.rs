//! Which buffers never hold a NaN.
//!
//! The smaller or larger of two ignores a NaN, which takes three instructions where either operand may be one. A
//! total that starts from a number and only ever takes the smaller or larger of itself and something cannot
//! become a NaN, and then one instruction does it.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Scope, Stmt, Store};
use tilewright_ir::{Expr, ExprKind, LoopNest, ReduceOp, TensorId};

use super::walk::bodies;

/// Scratch and register buffers that only hold numbers.
pub(super) fn buffers_of_numbers(nest: &LoopNest) -> BTreeSet<TensorId> {
    let ids = (0..nest.buffers.len()).map(|at| TensorId(at as u32));
    let ours = |id: &TensorId| matches!(nest.buffer(*id).scope, Scope::Scratch | Scope::Register);
    let mut numbers: BTreeSet<TensorId> = ids.filter(ours).collect();
    // What is dropped may be where another's numbers came from.
    loop {
        let before = numbers.len();
        drop_others(&nest.setup, &mut numbers);
        drop_others(&nest.body, &mut numbers);
        if numbers.len() == before {
            return numbers;
        }
    }
}

/// Whether the value of an expression is a number: one read from such a buffer.
pub(super) fn is_number(value: &Expr, numbers: &BTreeSet<TensorId>) -> bool {
    match &value.kind {
        ExprKind::Literal(number) => !number.as_f64().is_nan(),
        ExprKind::Load(access) => numbers.contains(&access.tensor),
        _ => false,
    }
}

fn drop_others(stmts: &[Stmt], numbers: &mut BTreeSet<TensorId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Store(store) if !keeps_numbers(store, numbers) => {
                numbers.remove(&store.target.tensor);
            }
            other => bodies(other).iter().for_each(|body| drop_others(body, numbers)),
        }
    }
}

/// Whether numbers stay numbers through a store.
fn keeps_numbers(store: &Store, numbers: &BTreeSet<TensorId>) -> bool {
    match store.reduce {
        Some(ReduceOp::Min | ReduceOp::Max) => true,
        None => is_number(&store.value, numbers),
        Some(_) => false,
    }
}
