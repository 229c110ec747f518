//! Collects the accesses in a statement's value and subscripts, each with the conditions around it.

use std::sync::Arc;

use crate::expr::{Access, Expr, ExprKind};
use crate::index::{Atom, IndexExpr};
use crate::operators::BinaryOp;

/// An access that happens where its guards allow it.
#[derive(Clone, Debug)]
pub struct Read {
    /// The access.
    pub access: Access,
    /// The conditions around the access.
    pub guards: Vec<Guard>,
    /// Whether the element must only exist, and is not read. Such an access must be in bounds.
    pub is_existence_only: bool,
}

/// A condition around an access.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The condition.
    pub condition: Arc<Expr>,
    /// Whether the condition holds at the access, or fails there.
    pub holds: bool,
}

/// Every access in a value, then every access inside the data-dependent parts of subscripts.
pub fn collect_reads(value: &Expr, indices: &[IndexExpr]) -> Vec<Read> {
    let mut reads = Vec::new();
    add_reads(value, &mut Vec::new(), &mut reads);
    indices.iter().for_each(|index| add_index_reads(index, &[], &mut reads));
    reads
}

fn add_reads(expr: &Expr, guards: &mut Vec<Guard>, reads: &mut Vec<Read>) {
    match &expr.kind {
        ExprKind::Load(access) => {
            access.indices.iter().for_each(|index| add_index_reads(index, guards, reads));
            reads.push(Read { access: access.clone(), guards: guards.clone(), is_existence_only: false });
        }
        ExprKind::Index(index) => add_index_reads(index, guards, reads),
        ExprKind::Select(operands) => {
            let [condition, then, otherwise] = operands.as_ref();
            add_reads(condition, guards, reads);
            add_guarded(condition, true, then, guards, reads);
            add_guarded(condition, false, otherwise, guards, reads);
        }
        ExprKind::Binary(op @ (BinaryOp::And | BinaryOp::Or), operands) => {
            let [left, right] = operands.as_ref();
            add_reads(left, guards, reads);
            add_guarded(left, *op == BinaryOp::And, right, guards, reads);
        }
        _ => expr.operands().iter().for_each(|operand| add_reads(operand, guards, reads)),
    }
}

fn add_guarded(condition: &Expr, holds: bool, inner: &Expr, guards: &mut Vec<Guard>, reads: &mut Vec<Read>) {
    guards.push(Guard { condition: Arc::new(condition.clone()), holds });
    add_reads(inner, guards, reads);
    guards.pop();
}

fn add_index_reads(index: &IndexExpr, guards: &[Guard], reads: &mut Vec<Read>) {
    for factor in index.terms().iter().flat_map(|term| &term.factors) {
        match factor {
            Atom::Data(data) => add_reads(&data.value, &mut guards.to_vec(), reads),
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                add_index_reads(&pair.0, guards, reads);
                add_index_reads(&pair.1, guards, reads);
            }
            _ => {}
        }
    }
}
