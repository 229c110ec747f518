//! How much a program does: its arithmetic, and the bytes that go in and out.
//!
//! Only what the text says counts, whatever a schedule makes of it: every point of every statement, once. So a matrix
//! product of M×K by K×N is 2·M·N·K operations, and rates of different schedules can be compared.

use tilewright_ir::tensor::byte_size;
use tilewright_ir::{BinaryOp, Builtin, Expr, ExprKind, Program, Role, Update, VarId};

/// What a program does in one call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// Floating-point operations; those on integers, if there are none on floats.
    pub operations: f64,
    /// Bytes of all inputs and all results, once; what is updated in place is both.
    pub bytes: f64,
}

/// Operations on numbers of each kind.
#[derive(Clone, Copy, Default)]
struct Count {
    float: f64,
    integer: f64,
}

/// Counts the work of a program whose sizes are all known.
pub fn work(program: &Program) -> Work {
    let mut total = Count::default();
    for (statement, loops) in program.statements() {
        let mut each = count(&statement.value);
        if let Update::Reduce { .. } = statement.update {
            each = each.and(one(statement.value.dtype.is_float()));
        }
        let points: f64 = loops.iter().chain(&statement.vars).map(|var| extent(program, *var)).product();
        total = total.and(Count { float: each.float * points, integer: each.integer * points });
    }
    let operations = if total.float > 0.0 { total.float } else { total.integer };
    Work { operations, bytes: bytes(program) }
}

fn extent(program: &Program, var: VarId) -> f64 {
    program.var(var).range.extent().as_constant().unwrap_or(0).max(0) as f64
}

fn bytes(program: &Program) -> f64 {
    let parameters = program.tensors_with(|role| role != Role::Temporary);
    let moved = parameters.map(|(id, tensor)| {
        let shape = program.shape(id).unwrap_or_default();
        let once = byte_size(tensor.dtype, &shape).unwrap_or(0) as f64;
        if tensor.role == Role::InOut { 2.0 * once } else { once }
    });
    moved.sum()
}

/// The operations of an expression at one point. Subscripts are not arithmetic, and comparisons and selections are
/// not either; of two sides of which one is chosen, the longer counts.
fn count(expr: &Expr) -> Count {
    if let ExprKind::Select(operands) = &expr.kind {
        let [condition, then, otherwise] = &**operands;
        return count(condition).and(count(then).max(count(otherwise)));
    }
    let own = match &expr.kind {
        ExprKind::Binary(op, _) => f64::from(is_arithmetic(*op)),
        ExprKind::Call(Builtin::Fma, _) => 2.0,
        ExprKind::Call(_, _) => 1.0,
        _ => 0.0,
    };
    let own = one(expr.dtype.is_float()).times(own);
    expr.operands().iter().map(count).fold(own, Count::and)
}

fn is_arithmetic(op: BinaryOp) -> bool {
    !op.is_comparison() && !op.is_logical()
}

fn one(float: bool) -> Count {
    if float { Count { float: 1.0, integer: 0.0 } } else { Count { float: 0.0, integer: 1.0 } }
}

impl Count {
    fn and(self, other: Count) -> Count {
        Count { float: self.float + other.float, integer: self.integer + other.integer }
    }

    fn times(self, factor: f64) -> Count {
        Count { float: self.float * factor, integer: self.integer * factor }
    }

    fn max(self, other: Count) -> Count {
        Count { float: self.float.max(other.float), integer: self.integer.max(other.integer) }
    }
}
