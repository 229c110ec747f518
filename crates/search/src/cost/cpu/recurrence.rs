//! Counts the dependence chains of recurrences: statements that read what the iteration before has
//! stored, as in `y[t] = y[t-1] + x[t]`.
//!
//! Each iteration waits until the value has gone through the memory and through the operations that
//! need it. Rows that are unrolled inside the loop have chains of their own, which overlap.

use tilewright_ir::BinaryOp;
use tilewright_ir::nest::{Access, BufferId, Expr, ExprKind, IndexExpr, Store};

use super::frames::Frames;
use super::instructions::{Counter, FORWARDING_LATENCY, contains_frame, dependencies, innermost_serial};
use super::operations::is_free;

impl Counter<'_> {
    /// Counts the chain of a statement that reads its own tensor some iterations of the innermost
    /// loop earlier.
    pub(super) fn recurrence(&mut self, frames: &Frames, store: &Store) {
        let own = &store.target;
        let mut longest: Option<(f64, &Access)> = None;
        visit_chained(&store.value, own.tensor, 0.0, &mut |operations, access| {
            let is_earlier = is_carried(frames, own, access);
            if is_earlier && longest.is_none_or(|(most, _)| operations > most) {
                longest = Some((operations, access));
            }
        });
        let Some((operations, access)) = longest else { return };
        let apart: Vec<IndexExpr> = own
            .indices
            .iter()
            .zip(&access.indices)
            .filter(|(written, read)| written == read)
            .map(|(written, _)| written.clone())
            .collect();
        let latency = FORWARDING_LATENCY + operations * self.machine.latency;
        self.chain(frames, own.tensor, dependencies(frames, &apart), latency);
    }
}

/// Whether an access reads what an earlier iteration of the innermost serial loop has stored.
fn is_carried(frames: &Frames, own: &Access, access: &Access) -> bool {
    let inner = innermost_serial(frames);
    let mut pairs = own.indices.iter().zip(&access.indices);
    let distance = |(written, read): (&IndexExpr, &IndexExpr)| written.sub(read).as_constant();
    let is_near = pairs.clone().all(|pair| distance(pair).is_some());
    is_near
        && pairs.any(|(written, read)| {
            written != read && contains_frame(dependencies(frames, std::slice::from_ref(written)), inner)
        })
}

/// Visits the loads of a tensor, each with the number of dependent operations from the load to the
/// value. A product that is added is one operation with the sum.
fn visit_chained<'e>(
    expr: &'e Expr,
    tensor: BufferId,
    operations: f64,
    visit: &mut dyn FnMut(f64, &'e Access),
) {
    if let ExprKind::Load(access) = &expr.kind
        && access.tensor == tensor
    {
        visit(operations, access);
    }
    let own = if is_free(expr) { 0.0 } else { 1.0 };
    let is_sum = matches!(&expr.kind, ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, _));
    for operand in expr.operands() {
        let is_fused =
            is_sum && expr.dtype.is_float() && matches!(&operand.kind, ExprKind::Binary(BinaryOp::Mul, _));
        let before = if is_fused { operations + own - 1.0 } else { operations + own };
        visit_chained(operand, tensor, before, visit);
    }
}
