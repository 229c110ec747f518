//! What is to be known about statements before their loops are arranged.

use tilewright_ir::{Access, Builtin, Expr, ExprKind, IndexExpr, VarId, index::Atom};

use super::Planner;
use crate::draft::simplify::clamped;
use crate::draft::{LoopRole, StatementId};

/// How an access moves through memory when a loop takes one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    /// So many elements on.
    Elements(i64),
    /// Not by the same distance every time.
    Irregular,
}

impl Planner<'_> {
    /// How often a loop runs, at most.
    pub fn trips(&self, var: VarId) -> i64 {
        let around = self.draft.loops_around(var);
        self.draft.ranges_of(&around).most(&self.draft.loop_of(var).extent).unwrap_or(1).max(1)
    }

    /// The statement's own loops of one role, outermost first.
    pub fn loops_with(&self, statement: StatementId, role: LoopRole) -> Vec<VarId> {
        let own = self.draft.own_loops(statement);
        own.into_iter().filter(|var| self.draft.loop_of(*var).role == role).collect()
    }

    /// How many points a statement computes.
    pub fn points(&self, statement: StatementId) -> f64 {
        self.draft.path(statement).iter().map(|var| self.trips(*var) as f64).product()
    }

    /// The distance that an access moves with a loop.
    pub fn stride(&self, access: &Access, var: VarId) -> Stride {
        let buffer = &self.draft.buffers[access.tensor.index()].buffer;
        let mut total = 0;
        for (index, stride) in access.indices.iter().zip(buffer.strides()) {
            if !index.mentions(var) {
                continue;
            }
            let index = unclamped(index);
            let linear = index.split_on(&Atom::Var(var)).filter(|(_, rest)| !rest.mentions(var));
            match linear.and_then(|(coefficient, _)| coefficient.as_constant()) {
                Some(coefficient) => total += coefficient * stride,
                None => return Stride::Irregular,
            }
        }
        Stride::Elements(total)
    }
}

/// A subscript as it is away from the borders: without the numbers that it is clamped to.
fn unclamped(index: &IndexExpr) -> IndexExpr {
    index.substitute(&mut |atom| match atom {
        Atom::Min(pair) | Atom::Max(pair) => clamped(pair).map(|(free, _)| free.clone()),
        _ => None,
    })
}

/// A rough count of what an expression costs at one point; a function of the C library's counts a lot.
pub(super) fn cost(expr: &Expr) -> usize {
    let own = match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Cast(_) => 0,
        ExprKind::Load(_) | ExprKind::Unary(..) | ExprKind::Select(_) => 1,
        ExprKind::Binary(tilewright_ir::BinaryOp::Div | tilewright_ir::BinaryOp::Mod, _) => 4,
        ExprKind::Binary(..) => 1,
        ExprKind::Call(Builtin::Abs | Builtin::Floor | Builtin::Ceil | Builtin::Fma, _) => 1,
        ExprKind::Call(..) => 20,
    };
    own + expr.operands().iter().map(cost).sum::<usize>()
}
