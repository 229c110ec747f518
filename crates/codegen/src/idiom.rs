//! Recognises what programs write with several operators because the language has no operator for
//! it: averages, distances and saturated sums of integers.
//!
//! An [`Idiom`] is the exact result: sums inside it are recognised only where their intervals show
//! that they do not wrap. So `uint8((int16(a) + b + 1) / 2)` is an average, and the same with `a +
//! b` in `uint8` is not. The functions `avg_up`, `avg_down` and `absd` of the language never wrap,
//! and are recognised in the form that they expand to.
//!
//! A back end decides whether a machine has an instruction, and for which types. LLVM's instruction
//! selection recognises the same forms by itself, so only the back end for GPUs uses this module.

use tilewright_ir::ids::InNest;
use tilewright_ir::interval::{Interval, Intervals, interval_of_value};
use tilewright_ir::nest::{Expr, ExprKind};
use tilewright_ir::{BinaryOp, Builtin, Number};

/// An operation on two integers, in terms of the exact values of its operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Idiom<'e> {
    pub(crate) kind: IdiomKind,
    pub(crate) operands: [&'e Expr; 2],
}

/// The operations that are recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdiomKind {
    /// `(a + b) / 2`
    AverageDown,
    /// `(a + b + 1) / 2`
    AverageUp,
    /// `|a - b|`
    Distance,
    /// `a + b`, limited to an interval.
    LimitedSum(Limits),
    /// `a - b`, limited to an interval.
    LimitedDifference(Limits),
}

/// The least and the greatest result, where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) low: Option<i128>,
    pub(crate) high: Option<i128>,
}

/// The idiom that an expression is, if it is one. `known` has the intervals of variables.
pub(crate) fn idiom<'e>(expr: &'e Expr, known: &impl Intervals<InNest>) -> Option<Idiom<'e>> {
    if !expr.dtype.is_integer() {
        return None;
    }
    average(expr, known)
        .or_else(|| average_of_bits(expr))
        .or_else(|| distance(expr, known))
        .or_else(|| chosen_difference(expr))
        .or_else(|| limited(expr, known))
}

fn binary(expr: &Expr, wanted: BinaryOp) -> Option<&[Expr; 2]> {
    match &expr.kind {
        ExprKind::Binary(op, operands) if *op == wanted => Some(operands),
        _ => None,
    }
}

/// The number that an expression is.
pub(crate) fn number(expr: &Expr) -> Option<i128> {
    match &expr.kind {
        ExprKind::Literal(Number::Int(number)) => Some(*number),
        ExprKind::Index(index) => index.as_constant().map(i128::from),
        ExprKind::Cast(operand) => number(operand).filter(|number| {
            expr.dtype.integer_bounds().is_some_and(|(low, high)| (low..=high).contains(number))
        }),
        _ => None,
    }
}

/// The power of 2 by which an expression is divided, rounded toward minus infinity.
pub(crate) fn halvings(expr: &Expr) -> Option<(&Expr, u32)> {
    if let Some([value, count]) = binary(expr, BinaryOp::ShiftRight) {
        let count = number(count).filter(|count| (0..i128::from(expr.dtype.bits())).contains(count))?;
        return Some((value, count as u32));
    }
    let [value, divisor] = binary(expr, BinaryOp::Div)?;
    let divisor = number(divisor).filter(|divisor| *divisor > 0 && divisor.count_ones() == 1)?;
    Some((value, divisor.trailing_zeros()))
}

/// Whether no sum or difference of an expression wraps, down to operands that are neither.
fn is_exact(expr: &Expr, known: &impl Intervals<InNest>) -> bool {
    let ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), operands) = &expr.kind else { return true };
    let [left, right] = operands.each_ref().map(|operand| interval_of_value(operand, known));
    let (Some(left), Some(right)) = (left, right) else { return false };
    let right = if *op == BinaryOp::Sub { right.negated() } else { right };
    left.plus(right).is_some_and(|sum| fits(sum, expr))
        && operands.iter().all(|operand| is_exact(operand, known))
}

fn fits(interval: Interval, expr: &Expr) -> bool {
    expr.dtype.integer_bounds().is_some_and(|(low, high)| low <= interval.low && interval.high <= high)
}

/// `(a + b + 1) / 2` and `(a + b) >> 1`.
fn average<'e>(expr: &'e Expr, known: &impl Intervals<InNest>) -> Option<Idiom<'e>> {
    let (sum, 1) = halvings(expr)? else { return None };
    let (mut terms, mut constant) = (Vec::new(), 0);
    add_terms(sum, &mut terms, &mut constant);
    let kind = match constant {
        0 => IdiomKind::AverageDown,
        1 => IdiomKind::AverageUp,
        _ => return None,
    };
    let [left, right] = terms[..] else { return None };
    is_exact(sum, known).then_some(Idiom { kind, operands: [left, right] })
}

/// Splits a sum into its terms and the sum of its numbers.
fn add_terms<'e>(sum: &'e Expr, terms: &mut Vec<&'e Expr>, constant: &mut i128) {
    match (binary(sum, BinaryOp::Add), number(sum)) {
        (Some(operands), _) => operands.iter().for_each(|operand| add_terms(operand, terms, constant)),
        (None, Some(number)) => *constant += number,
        (None, None) => terms.push(sum),
    }
}

/// `(a | b) - ((a ^ b) >> 1)` and `(a & b) + ((a ^ b) >> 1)`, which cannot wrap.
fn average_of_bits(expr: &Expr) -> Option<Idiom<'_>> {
    let (kind, outer, common) = match &expr.kind {
        ExprKind::Binary(BinaryOp::Sub, outer) => (IdiomKind::AverageUp, outer, BinaryOp::BitOr),
        ExprKind::Binary(BinaryOp::Add, outer) => (IdiomKind::AverageDown, outer, BinaryOp::BitAnd),
        _ => return None,
    };
    let both = binary(&outer[0], common)?;
    let (difference, 1) = halvings(&outer[1])? else { return None };
    let same = binary(difference, BinaryOp::BitXor)? == both;
    same.then_some(Idiom { kind, operands: [&both[0], &both[1]] })
}

/// `abs(a - b)`.
fn distance<'e>(expr: &'e Expr, known: &impl Intervals<InNest>) -> Option<Idiom<'e>> {
    let ExprKind::Call(Builtin::Abs, arguments) = &expr.kind else { return None };
    let [left, right] = binary(&arguments[0], BinaryOp::Sub)?;
    is_exact(&arguments[0], known).then_some(Idiom { kind: IdiomKind::Distance, operands: [left, right] })
}

/// `a < b ? b - a : a - b`, and `a < b ? b - a : 0`. A distance wraps as its type does; the other
/// difference is never negative.
fn chosen_difference(expr: &Expr) -> Option<Idiom<'_>> {
    let ExprKind::Select(parts) = &expr.kind else { return None };
    let [condition, then, otherwise] = &**parts;
    let ExprKind::Binary(op, compared) = &condition.kind else { return None };
    let [more, less] = match op {
        BinaryOp::Less | BinaryOp::LessEqual => [&compared[1], &compared[0]],
        BinaryOp::Greater | BinaryOp::GreaterEqual => [&compared[0], &compared[1]],
        _ => return None,
    };
    let is_difference = |expr: &Expr, of: [&Expr; 2]| {
        binary(expr, BinaryOp::Sub).is_some_and(|[left, right]| [left, right] == of)
    };
    if !is_difference(then, [more, less]) {
        return None;
    }
    if is_difference(otherwise, [less, more]) {
        return Some(Idiom { kind: IdiomKind::Distance, operands: [more, less] });
    }
    let limits = Limits { low: Some(0), high: None };
    let is_limited = number(otherwise) == Some(0) && expr.dtype.is_unsigned_integer();
    is_limited.then_some(Idiom { kind: IdiomKind::LimitedDifference(limits), operands: [more, less] })
}

/// A sum or difference inside a minimum with a number, a maximum with a number, or both.
fn limited<'e>(expr: &'e Expr, known: &impl Intervals<InNest>) -> Option<Idiom<'e>> {
    let (mut core, mut limits) = (expr, Limits::default());
    loop {
        let ExprKind::Binary(op, operands) = &core.kind else { return None };
        let side = match op {
            BinaryOp::Min if limits.high.is_none() => &mut limits.high,
            BinaryOp::Max if limits.low.is_none() => &mut limits.low,
            _ => break,
        };
        let (limit, inside) = match operands.each_ref().map(number) {
            [None, Some(limit)] => (limit, &operands[0]),
            [Some(limit), None] => (limit, &operands[1]),
            _ => return None,
        };
        (*side, core) = (Some(limit), inside);
    }
    let ordered = limits.low.zip(limits.high).is_none_or(|(low, high)| low <= high);
    if limits == Limits::default() || !ordered || !is_exact(core, known) {
        return None;
    }
    let ExprKind::Binary(op, operands) = &core.kind else { return None };
    let kind = match op {
        BinaryOp::Add => IdiomKind::LimitedSum(limits),
        BinaryOp::Sub => IdiomKind::LimitedDifference(limits),
        _ => return None,
    };
    Some(Idiom { kind, operands: [&operands[0], &operands[1]] })
}
