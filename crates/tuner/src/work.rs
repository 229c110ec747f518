//! Counts the work of a program: its arithmetic operations, and the bytes of its inputs and
//! results.
//!
//! Only the source text counts, not the schedule: every point of every statement counts once. So a
//! matrix product of M×K by K×N is 2·M·N·K operations, and the rates of different schedules can be
//! compared.

use tilewright_ir::tensor::byte_size;
use tilewright_ir::{BinaryOp, Builtin, Expr, ExprKind, Program, Role, Update, VarId};

/// The work of one call of a program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Work {
    /// The number of floating-point operations, or of integer operations if there are none on
    /// floats.
    pub operations: f64,
    /// The bytes of all inputs and all results, each once. A tensor that is updated in place counts
    /// as both.
    pub bytes: f64,
}

/// The number of operations on floats and on integers.
#[derive(Clone, Copy, Default)]
struct Count {
    float: f64,
    integer: f64,
}

/// Counts the work of a program whose sizes are all known.
pub fn count_work(program: &Program) -> Work {
    let mut total = Count::default();
    for (statement, loops) in program.statements() {
        let mut each = count_operations(&statement.value);
        if let Update::Reduce { .. } = statement.update {
            each = each.plus(one_operation(statement.value.dtype.is_float()));
        }
        let points: f64 = loops.iter().chain(&statement.vars).map(|var| extent(program, *var)).product();
        total = total.plus(Count { float: each.float * points, integer: each.integer * points });
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

/// The operations of an expression at one point. Subscripts, comparisons and selections do not
/// count as arithmetic. Of the two sides of a selection, the longer one counts.
fn count_operations(expr: &Expr) -> Count {
    if let ExprKind::Select(operands) = &expr.kind {
        let [condition, then, otherwise] = &**operands;
        return count_operations(condition).plus(count_operations(then).max(count_operations(otherwise)));
    }
    let own = match &expr.kind {
        ExprKind::Binary(op, _) => f64::from(is_arithmetic(*op)),
        ExprKind::Call(Builtin::Fma, _) => 2.0,
        ExprKind::Call(_, _) => 1.0,
        _ => 0.0,
    };
    let own = one_operation(expr.dtype.is_float()).times(own);
    expr.operands().iter().map(count_operations).fold(own, Count::plus)
}

fn is_arithmetic(op: BinaryOp) -> bool {
    !op.is_comparison() && !op.is_logical()
}

fn one_operation(float: bool) -> Count {
    if float { Count { float: 1.0, integer: 0.0 } } else { Count { float: 0.0, integer: 1.0 } }
}

impl Count {
    fn plus(self, other: Count) -> Count {
        Count { float: self.float + other.float, integer: self.integer + other.integer }
    }

    fn times(self, factor: f64) -> Count {
        Count { float: self.float * factor, integer: self.integer * factor }
    }

    fn max(self, other: Count) -> Count {
        Count { float: self.float.max(other.float), integer: self.integer.max(other.integer) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_syntax::{Bindings, check, parse};

    fn work_of(text: &str, sizes: &[(&str, i64)]) -> (f64, f64) {
        let parsed = parse(text);
        let bindings: Bindings = sizes.iter().copied().collect();
        let name = parsed.ast.functions[0].name.text.clone();
        let checked = check(&parsed.ast, &name, &bindings);
        let Work { operations, bytes } = count_work(&checked.program.unwrap());
        (operations, bytes)
    }

    #[test]
    fn a_matrix_product_is_two_operations_a_point() {
        let text = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
        let bytes = 4 * (3 * 5 + 5 * 7 + 3 * 7);
        assert_eq!(work_of(text, &[("M", 3), ("N", 7), ("K", 5)]), (210.0, bytes as f64));
    }

    #[test]
    fn what_is_updated_counts_as_input_and_as_result() {
        let text = "def scale(float a) -> (float(N) y) { y(i) = a * y(i) }";
        assert_eq!(work_of(text, &[("N", 10)]), (10.0, 80.0));
    }

    #[test]
    fn integers_count_where_there_are_no_floats() {
        assert_eq!(work_of("def f(int(N) x) -> (y) { y(i) = x(i) * x(i) + 1 }", &[("N", 10)]).0, 20.0);
        assert_eq!(
            work_of("def f(float(N) x, int(N) k) -> (y) { y(i) = x(k(i)) * 2 }", &[("N", 10)]).0,
            10.0
        );
        assert_eq!(work_of("def f(float(N) x) -> (y) { y(i) = x(i) }", &[("N", 10)]).0, 0.0);
    }

    #[test]
    fn functions_count_once_fma_twice_and_the_longer_side_of_a_choice() {
        let each =
            |value: &str| work_of(&format!("def f(float(N) x) -> (y) {{ y(i) = {value} }}"), &[("N", 1)]).0;
        assert_eq!(each("exp(x(i))"), 1.0);
        assert_eq!(each("fma(x(i), x(i), x(i))"), 2.0);
        assert_eq!(each("max(x(i), 0.0)"), 1.0);
        assert_eq!(each("x(i) > 0.0 ? x(i) * x(i) + x(i) : -x(i)"), 2.0);
    }

    #[test]
    fn every_loop_around_a_statement_counts() {
        let text = "def f(float(T, N) x) -> (s) {
            s(i) = 0.0
            for t in 0:T { s(i) = s(i) + x(t, i) }
        }";
        assert_eq!(work_of(text, &[("T", 6), ("N", 5)]).0, 30.0);
    }
}
