//! What static analysis tells about expressions, for whoever writes schedules.

use tilewright_ir::{Access, BinaryOp, Builtin, Expr, ExprKind, IndexExpr, VarId, index::Atom};

use crate::draft::simplify::clamped;
use crate::draft::visit_reads;

/// How an access moves through memory when a loop takes one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stride {
    /// So many elements on.
    Elements(i64),
    /// Not by the same distance every time.
    Irregular,
}

/// The distance that an access moves with a variable. `distances`: between neighbours of each dimension.
pub fn stride(indices: &[IndexExpr], distances: &[i64], var: VarId) -> Stride {
    let mut total = 0;
    for (index, distance) in indices.iter().zip(distances) {
        if !index.mentions(var) {
            continue;
        }
        let index = unclamped(index);
        let linear = index.split_on(&Atom::Var(var)).filter(|(_, rest)| !rest.mentions(var));
        match linear.and_then(|(coefficient, _)| coefficient.as_constant()) {
            Some(coefficient) => total += coefficient * distance,
            None => return Stride::Irregular,
        }
    }
    Stride::Elements(total)
}

/// A subscript as it is away from the borders: without the numbers that it is clamped to.
fn unclamped(index: &IndexExpr) -> IndexExpr {
    index.substitute(&mut |atom| match atom {
        Atom::Min(pair) | Atom::Max(pair) => clamped(pair).map(|(free, _)| free.clone()),
        _ => None,
    })
}

/// The accesses in an expression, those inside subscripts included.
pub fn accesses(expr: &Expr) -> Vec<Access> {
    let mut found = Vec::new();
    visit_reads(expr, &mut |access| found.push(access.clone()));
    found
}

/// A rough count of what an expression costs at one point; a function of the C library's counts a lot.
pub fn operations(expr: &Expr) -> usize {
    let own = match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Cast(_) => 0,
        ExprKind::Load(_) | ExprKind::Unary(..) | ExprKind::Select(_) => 1,
        ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, _) => 4,
        ExprKind::Binary(..) => 1,
        ExprKind::Call(Builtin::Abs | Builtin::Floor | Builtin::Ceil | Builtin::Fma, _) => 1,
        ExprKind::Call(..) => 20,
    };
    own + expr.operands().iter().map(operations).sum::<usize>()
}
