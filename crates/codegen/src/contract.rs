//! Decides which products are fused with the sum around them into one multiply-add.
//!
//! The language lets one fused multiply-add compute an addition and a product that is its operand.
//! The product is an operand of `+` or `-`, or the value of a `+=` reduction (docs/language.md,
//! "Float arithmetic"). Where both operands are products, each is rounded separately: so `x*x -
//! z*z` is 0 where `x` equals `z`, and `a*b - b*a` is always 0. Nothing else is contracted (fused).
//!
//! Both back ends call this module and write the fused operation themselves; they configure their
//! compilers to fuse nothing. Each back end decides whether its machine has the instruction.
//! [`LoopNest::contract`] says whether the program allows contraction at all.

use tilewright_ir::nest::{Expr, ExprKind, Store};
use tilewright_ir::{BinaryOp, DType, LoopNest, ReduceOp, UnaryOp};

/// Two factors whose product is not rounded before the addition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Product<'e> {
    pub(crate) factors: [&'e Expr; 2],
    /// Whether the product is negated.
    pub(crate) negated: bool,
}

/// A sum or difference that one fused multiply-add computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct FusedSum<'e> {
    pub(crate) product: Product<'e>,
    pub(crate) addend: &'e Expr,
    /// Whether the addend is negated.
    pub(crate) addend_negated: bool,
}

/// Returns the fused multiply-add that computes a binary operation, if there is one and the nest
/// allows contraction.
pub(crate) fn fused_sum<'e>(nest: &LoopNest, op: BinaryOp, operands: &'e [Expr; 2]) -> Option<FusedSum<'e>> {
    nest.contract.then(|| find_fused_sum(op, operands)).flatten()
}

/// Returns the product that a store adds to its target, if the product and the addition are fused.
pub(crate) fn fused_term<'e>(nest: &LoopNest, store: &'e Store) -> Option<Product<'e>> {
    let adds = nest.contract && store.reduce == Some(ReduceOp::Add);
    adds.then(|| as_product(&store.value)).flatten()
}

fn find_fused_sum(op: BinaryOp, operands: &[Expr; 2]) -> Option<FusedSum<'_>> {
    let [left, right] = operands;
    let subtracts = match op {
        BinaryOp::Add => false,
        BinaryOp::Sub => true,
        _ => return None,
    };
    if may_be_product(left) && may_be_product(right) {
        return None;
    }
    if let Some(product) = as_product(left) {
        return Some(FusedSum { product, addend: right, addend_negated: subtracts });
    }
    let Product { factors, negated } = as_product(right)?;
    let product = Product { factors, negated: negated != subtracts };
    Some(FusedSum { product, addend: left, addend_negated: false })
}

/// Matches a value that is a product, with or without a minus sign before it.
fn as_product(value: &Expr) -> Option<Product<'_>> {
    // 16-bit floats are computed in float32, and a value of such a type is rounded after every
    // operation.
    if !matches!(value.dtype, DType::Float32 | DType::Float64) {
        return None;
    }
    match &value.kind {
        ExprKind::Binary(BinaryOp::Mul, factors) => {
            Some(Product { factors: factors.each_ref(), negated: false })
        }
        ExprKind::Unary(UnaryOp::Neg, operand) => {
            as_product(operand).map(|inner| Product { negated: !inner.negated, ..inner })
        }
        _ => None,
    }
}

/// Whether the value is a product, or a `?:` with a product as an arm. Schedules decide conditions
/// where they can, so the rule for two products must not depend on whether a `?:` is still there.
fn may_be_product(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Select(parts) => parts[1..].iter().any(may_be_product),
        ExprKind::Unary(UnaryOp::Neg, operand) => may_be_product(operand),
        _ => as_product(value).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{Number, ScalarId};

    fn scalar(id: u32) -> Expr {
        Expr { dtype: DType::Float32, kind: ExprKind::Scalar(ScalarId(id)) }
    }

    fn times(left: u32, right: u32) -> Expr {
        Expr::binary(BinaryOp::Mul, scalar(left), scalar(right))
    }

    fn negated(value: Expr) -> Expr {
        Expr { dtype: value.dtype, kind: ExprKind::Unary(UnaryOp::Neg, Box::new(value)) }
    }

    fn selected(value: Expr) -> Expr {
        let (yes, zero) =
            (Expr::literal(DType::Bool, Number::Int(1)), Expr::literal(value.dtype, Number::Int(0)));
        Expr { dtype: value.dtype, kind: ExprKind::Select(Box::new([yes, value, zero])) }
    }

    /// Returns whether the product and the addend are negated, if the sum is fused.
    fn signs(op: BinaryOp, left: Expr, right: Expr) -> Option<(bool, bool)> {
        find_fused_sum(op, &[left, right]).map(|sum| (sum.product.negated, sum.addend_negated))
    }

    #[test]
    fn one_product_is_fused_with_its_sign() {
        assert_eq!(signs(BinaryOp::Add, times(0, 1), scalar(2)), Some((false, false)));
        assert_eq!(signs(BinaryOp::Add, scalar(2), times(0, 1)), Some((false, false)));
        assert_eq!(signs(BinaryOp::Sub, times(0, 1), scalar(2)), Some((false, true)));
        assert_eq!(signs(BinaryOp::Sub, scalar(2), times(0, 1)), Some((true, false)));
        assert_eq!(signs(BinaryOp::Sub, scalar(2), negated(times(0, 1))), Some((false, false)));
    }

    #[test]
    fn two_products_are_rounded_by_themselves() {
        for op in [BinaryOp::Add, BinaryOp::Sub] {
            assert_eq!(signs(op, times(0, 0), times(1, 1)), None);
            assert_eq!(signs(op, negated(times(0, 0)), times(1, 1)), None);
            assert_eq!(signs(op, times(0, 0), selected(times(1, 1))), None);
            assert_eq!(signs(op, selected(negated(times(0, 0))), times(1, 1)), None);
        }
    }

    #[test]
    fn nothing_else_is_fused() {
        assert_eq!(signs(BinaryOp::Mul, times(0, 1), scalar(2)), None);
        assert_eq!(signs(BinaryOp::Add, scalar(0), scalar(1)), None);
        assert_eq!(signs(BinaryOp::Add, selected(times(0, 1)), scalar(1)), None);
        let half = |id| Expr { dtype: DType::Float16, ..scalar(id) };
        assert_eq!(signs(BinaryOp::Add, Expr::binary(BinaryOp::Mul, half(0), half(1)), half(2)), None);
        let int = |id| Expr { dtype: DType::Int32, ..scalar(id) };
        assert_eq!(signs(BinaryOp::Add, Expr::binary(BinaryOp::Mul, int(0), int(1)), int(2)), None);
    }
}
