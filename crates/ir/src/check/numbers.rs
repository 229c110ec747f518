//! Reports ranges, extents and index expressions whose numbers overflow 64 bits, or are so large
//! that 64-bit arithmetic on them may overflow.

use super::Checker;
use super::finding::{AccessId, Finding, LargeNumber};
use crate::expr::{Expr, ExprKind};
use crate::index::{Atom, IndexExpr};
use crate::program::{TensorId, VarId};
use crate::unchecked::Parts;

/// Reports numbers that are too large, at most one per range, tensor and statement.
pub(super) fn check(checker: &mut Checker<'_>) {
    let unchecked = checker.unchecked;
    for (at, var) in unchecked.vars.iter().enumerate() {
        // A range from 0 with a very distant end needs more memory than exists, and other checks
        // report that.
        if var.range.iter().any(|range| is_too_large(&range.from) || range.to.is_overflow()) {
            checker.report(Finding::TooLarge(LargeNumber::Range(VarId(at as u32))));
        }
    }
    for (at, tensor) in unchecked.tensors.iter().enumerate() {
        if tensor.shape.iter().flatten().any(IndexExpr::is_overflow) {
            let id = TensorId(at as u32);
            checker.report(Finding::TooLarge(LargeNumber::Extent(id)));
            checker.mark_suspect(id);
        }
    }
    for at in 0..unchecked.statements.len() {
        if let Some(large) = checker.parts(at).and_then(|parts| find_large_number(at, parts)) {
            checker.report(Finding::TooLarge(large));
        }
    }
}

fn find_large_number(statement: usize, parts: &Parts) -> Option<LargeNumber> {
    let read = parts.reads.iter().position(|read| read.access.indices.iter().any(is_too_large));
    let any = || parts.indices.iter().any(is_too_large) || has_too_large_number(&parts.value);
    match read {
        Some(read) => Some(LargeNumber::Subscript(AccessId { statement, read: Some(read) })),
        None => any().then_some(LargeNumber::Statement(statement)),
    }
}

/// Returns true when the expression contains numbers so large that sums of a few of them overflow
/// 64 bits.
fn is_too_large(index: &IndexExpr) -> bool {
    let large = |number: i64| number.unsigned_abs() >= 1 << 62;
    let numbers = |index: &IndexExpr| {
        large(index.constant_part()) || index.terms().iter().any(|term| large(term.coefficient))
    };
    numbers(index)
        || index.any_atom(&mut |atom| match atom {
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                numbers(&pair.0) || numbers(&pair.1)
            }
            Atom::Overflow => true,
            _ => false,
        })
}

fn has_too_large_number(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Index(index) => is_too_large(index),
        ExprKind::Load(access) => access.indices.iter().any(is_too_large),
        _ => value.operands().iter().any(has_too_large_number),
    }
}
