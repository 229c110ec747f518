//! Emits comparisons of index expressions: the conditions of statements, and comparisons in values,
//! such as `x % 2 == 0`.
//!
//! In a vector loop, an expression is often a part that is the same in all lanes plus a constant
//! for each lane. Then the comparison is one of the uniform part with constants. The uniform part
//! is clamped to a little more than the range of the constants, which does not change the result,
//! so that it fits the few bits of a lane.

use inkwell::IntPredicate;
use inkwell::types::VectorType;
use tilewright_ir::nest::{Expr, ExprKind, IndexExpr};
use tilewright_ir::{BinaryOp, DType, Number};

use super::function::{Emit, Emitter};
use super::ops::{Value, integer};

/// The bits of a vector whose lanes are compared.
const VECTOR_BITS: u32 = 512;

impl<'ctx> Emitter<'ctx, '_> {
    /// Emits the condition that a resolved expression is at least 0.
    pub(super) fn condition(&mut self, condition: &IndexExpr) -> Emit<Value<'ctx>> {
        self.compared_to_zero(IntPredicate::SGE, condition)
    }

    /// Emits a comparison of two index expressions inside a value; `None` for other operands.
    pub(super) fn index_comparison(
        &mut self,
        op: BinaryOp,
        operands: &[Expr; 2],
    ) -> Emit<Option<Value<'ctx>>> {
        let predicate = match op {
            BinaryOp::Equal => IntPredicate::EQ,
            BinaryOp::NotEqual => IntPredicate::NE,
            BinaryOp::Less => IntPredicate::SLT,
            BinaryOp::LessEqual => IntPredicate::SLE,
            BinaryOp::Greater => IntPredicate::SGT,
            BinaryOp::GreaterEqual => IntPredicate::SGE,
            _ => return Ok(None),
        };
        let (Some(left), Some(right)) = (exact_index(&operands[0]), exact_index(&operands[1])) else {
            return Ok(None);
        };
        let difference = self.resolve(&left.sub(&right));
        // The operands are compared by their difference, which must not overflow.
        match self.range(&difference).is_some_and(|range| range.is_within(i64::MAX.into())) {
            true => self.compared_to_zero(predicate, &difference).map(Some),
            false => Ok(None),
        }
    }

    fn compared_to_zero(&mut self, predicate: IntPredicate, index: &IndexExpr) -> Emit<Value<'ctx>> {
        if let Some(value) = index.as_constant() {
            return Ok(self.ops.bit(holds(predicate, value)));
        }
        if let Some((uniform, lanes)) = self.uniform_and_lanes(index) {
            return self.compared_to_lanes(predicate, &uniform, &lanes);
        }
        let value = self.index(index)?;
        let zero = self.ops.int_like(value, 0);
        Ok(self.ops.icmp(predicate, value, zero))
    }

    /// Splits an expression into a part that is the same in all lanes and a number for each lane.
    fn uniform_and_lanes(&self, index: &IndexExpr) -> Option<(IndexExpr, Vec<i64>)> {
        let lanes = self.frame.lanes?;
        if index.has_data() || !index.mentions(lanes.var) {
            return None;
        }
        let mut uniform = IndexExpr::constant(index.constant_part());
        let mut differing = IndexExpr::constant(0);
        for term in index.terms() {
            let term = IndexExpr::from(term);
            let part = if term.mentions(lanes.var) { &mut differing } else { &mut uniform };
            *part = part.add(&term);
        }
        Some((uniform, self.constant_offsets(&differing)?))
    }

    /// Emits the comparison of `uniform + lane` with 0, for the number of each lane.
    fn compared_to_lanes(
        &mut self,
        predicate: IntPredicate,
        uniform: &IndexExpr,
        lanes: &[i64],
    ) -> Emit<Value<'ctx>> {
        if let Some(uniform) = uniform.as_constant() {
            let bits: Vec<bool> =
                lanes.iter().map(|lane| holds(predicate, uniform.saturating_add(*lane))).collect();
            if bits.iter().all(|bit| *bit == bits[0]) {
                return Ok(self.ops.bit(bits[0]));
            }
            let bits: Vec<_> = bits.iter().map(|bit| self.ops.bit(*bit).into_int_value()).collect();
            return Ok(VectorType::const_vector(&bits).into());
        }
        let most = lanes.iter().map(|lane| lane.unsigned_abs()).max().unwrap_or(0);
        let fewest = VECTOR_BITS / (lanes.len() as u32).next_power_of_two();
        let fits = |bits: &u32| most < (1 << (bits - 1)) - 1;
        let Some(bits) = [8, 16, 32].into_iter().filter(|bits| *bits >= fewest.min(32)).find(fits) else {
            let value = self.index(uniform)?;
            let wide: Vec<_> = lanes.iter().map(|lane| self.ops.int(-lane)).collect();
            return Ok(self.ops.icmp(predicate, value, VectorType::const_vector(&wide).into()));
        };
        let limit = (1i64 << (bits - 1)) - 1;
        let value = self.index_in_width(uniform, self.ops.i64())?;
        let value = self.ops.elementwise("llvm.smin", &[value, self.ops.int(limit).into()]);
        let value = self.ops.elementwise("llvm.smax", &[value, self.ops.int(-limit).into()]);
        let narrow = self.ops.int_type(bits);
        let value = self.ops.resize(value, narrow, true);
        let limits: Vec<_> = lanes.iter().map(|lane| integer(narrow, -lane)).collect();
        Ok(self.ops.icmp(predicate, value, VectorType::const_vector(&limits).into()))
    }
}

/// Whether a number is as the predicate says in comparison with 0.
fn holds(predicate: IntPredicate, value: i64) -> bool {
    match predicate {
        IntPredicate::EQ => value == 0,
        IntPredicate::NE => value != 0,
        IntPredicate::SLT => value < 0,
        IntPredicate::SLE => value <= 0,
        IntPredicate::SGT => value > 0,
        _ => value >= 0,
    }
}

/// The index expression that a value is, exactly.
fn exact_index(expr: &Expr) -> Option<IndexExpr> {
    match &expr.kind {
        ExprKind::Index(index) if expr.dtype == DType::Int64 => Some(IndexExpr::clone(index)),
        ExprKind::Literal(Number::Int(value)) if expr.dtype == DType::Int64 => {
            i64::try_from(*value).ok().map(IndexExpr::constant)
        }
        _ => None,
    }
}
