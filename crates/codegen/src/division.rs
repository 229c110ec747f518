//! Finds divisions that products replace with the same result: those of a small integer, converted
//! to a float, by a number.
//!
//! A division takes 10 to 30 times as long as a product. `x / c` is `q + (x - q*c) / c`, where
//! `q` is `x * (1 / c)`, rounded; with fused multiply-adds, the remainder is exact, and so is the
//! sum nearly always. All values of `x` are tried, so there is no "nearly" for the divisions found
//! here. Pictures of 8 or 16 bits that become floats between 0 and 1 are the common case.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use tilewright_ir::nest::{Expr, ExprKind};
use tilewright_ir::{BinaryOp, DType};

/// A division as products: the result is `fma(fma(-q, divisor, x), reciprocal, q)`, where `q` is
/// `x * reciprocal`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reciprocal {
    pub divisor: f32,
    pub reciprocal: f32,
}

impl Reciprocal {
    /// The products for a quotient; `None` where they are not known to be exact.
    pub fn of(op: BinaryOp, [dividend, divisor]: &[Expr; 2]) -> Option<Reciprocal> {
        let (ExprKind::Cast(whole), ExprKind::Literal(number)) = (&dividend.kind, &divisor.kind) else {
            return None;
        };
        let is_small = matches!(whole.dtype, DType::UInt8 | DType::Int8 | DType::UInt16 | DType::Int16);
        if op != BinaryOp::Div || dividend.dtype != DType::Float32 || !is_small {
            return None;
        }
        let divisor = number.as_f64() as f32;
        if !divisor.is_finite() {
            return None;
        }
        let found = Reciprocal { divisor, reciprocal: 1.0 / divisor };
        is_exact(whole.dtype, found).then_some(found)
    }

    fn quotient(self, x: f32) -> f32 {
        let rough = x * self.reciprocal;
        (-rough).mul_add(self.divisor, x).mul_add(self.reciprocal, rough)
    }
}

/// Whether the products equal the quotient for all integers of a type. Programs have few divisors,
/// and schedules are compiled by the thousand, so answers are kept.
fn is_exact(dtype: DType, by: Reciprocal) -> bool {
    static KNOWN: LazyLock<Mutex<HashMap<(DType, u32), bool>>> = LazyLock::new(Mutex::default);
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    *known.entry((dtype, by.divisor.to_bits())).or_insert_with(|| {
        let Some((low, high)) = dtype.integer_bounds() else { return false };
        // Zero keeps its sign, so bits are compared.
        (low..=high).all(|x| by.quotient(x as f32).to_bits() == (x as f32 / by.divisor).to_bits())
    })
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Number;

    use super::*;

    fn quotient(from: DType, divisor: f64) -> Option<Reciprocal> {
        let whole = Expr::literal(from, Number::Int(1));
        let dividend = Expr { dtype: DType::Float32, kind: ExprKind::Cast(Box::new(whole)) };
        Reciprocal::of(BinaryOp::Div, &[dividend, Expr::literal(DType::Float32, Number::Float(divisor))])
    }

    #[test]
    fn pictures_are_scaled_by_products() {
        for divisor in [255.0, 65535.0, 1023.0, 3.0, -7.0, 0.1] {
            for dtype in [DType::UInt8, DType::Int8, DType::UInt16, DType::Int16] {
                assert!(quotient(dtype, divisor).is_some(), "{dtype:?} / {divisor}");
            }
        }
    }

    #[test]
    fn other_divisions_stay() {
        // The reciprocal is no number that a float holds.
        for divisor in [0.0, f64::INFINITY, f64::NAN, 1e-39] {
            assert_eq!(quotient(DType::UInt16, divisor), None, "{divisor}");
        }
        assert_eq!(quotient(DType::Int32, 255.0), None);
        assert_eq!(quotient(DType::Float32, 255.0), None);
    }
}
