//! Emits value expressions ([`Expr`]) as LLVM values.
//!
//! Lazy operators (`&&`, `||` and `?:`) skip an operand that is not needed. In scalar code, they
//! branch, unless that operand is cheap and harmless. In vector code, they evaluate each operand
//! under the mask of its lanes. Loads are masked, so nothing out of bounds is read. Every other
//! operation is harmless in inactive lanes.

use inkwell::basic_block::BasicBlock;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{InstructionOpcode, IntValue};
use tilewright_ir::nest::{Expr, ExprKind, IndexExpr, Store};
use tilewright_ir::{BinaryOp, DType, Number};

use super::arith::{StoredValue, constant_of};
use super::function::{Emit, Emitter};
use super::ops::{BUILT, Value, element_type, lanes_of};
use crate::contract::{self, FusedSum, Product};
use crate::division::Reciprocal;

/// The maximum cost of an operand that is computed even where a branch could skip it.
const MAX_EAGER_COST: usize = 8;

impl<'ctx> Emitter<'ctx, '_> {
    pub(super) fn expr(&mut self, expr: &Expr) -> Emit<Value<'ctx>> {
        Ok(match &expr.kind {
            ExprKind::Literal(number) => self.literal(*number, expr.dtype),
            ExprKind::Index(index) => self.index_value(index, expr.dtype)?,
            ExprKind::Scalar(id) => self.frame.scalars[id.index()],
            ExprKind::Load(access) => self.load(access)?,
            ExprKind::Unary(op, operand) => {
                let value = self.expr(operand)?;
                self.unary(*op, value, expr.dtype)
            }
            ExprKind::Binary(op, operands) if op.is_logical() => self.lazy_operator(*op, operands)?,
            ExprKind::Binary(op, operands) => self.eager_operator(*op, operands)?,
            ExprKind::Select(operands) => {
                let condition = self.expr(&operands[0])?;
                self.lazy_select(
                    condition,
                    &mut |this| this.expr(&operands[1]),
                    &mut |this| this.expr(&operands[2]),
                    is_cheap(&operands[1]) && is_cheap(&operands[2]),
                )?
            }
            ExprKind::Call(builtin, arguments) => {
                let dtype = arguments[0].dtype;
                let arguments: Vec<_> =
                    arguments.iter().map(|argument| self.expr(argument)).collect::<Emit<_>>()?;
                self.builtin(*builtin, &arguments, dtype)
            }
            ExprKind::Cast(operand) => {
                let value = self.expr(operand)?;
                self.convert(value, operand.dtype, expr.dtype)
            }
        })
    }

    /// Emits an operator that evaluates both operands.
    fn eager_operator(&mut self, op: BinaryOp, operands: &[Expr; 2]) -> Emit<Value<'ctx>> {
        if let Some(holds) = self.index_comparison(op, operands)? {
            return Ok(holds);
        }
        if let Some(sum) = contract::fused_sum(self.nest, op, operands) {
            return self.fused_sum(&sum);
        }
        if self.machine.has_fma
            && let Some(by) = Reciprocal::of(op, operands)
        {
            return self.quotient(&operands[0], by);
        }
        let (left, right) = (self.expr(&operands[0])?, self.expr(&operands[1])?);
        Ok(self.binary(op, left, right, operands[0].dtype))
    }

    /// Emits a quotient as products.
    fn quotient(&mut self, dividend: &Expr, by: Reciprocal) -> Emit<Value<'ctx>> {
        let x = self.expr(dividend)?;
        let [divisor, reciprocal] = [by.divisor, by.reciprocal].map(|number| {
            let value = self.literal(Number::Float(f64::from(number)), DType::Float32);
            lanes_of(x).map_or(value, |lanes| self.ops.splat(value, lanes))
        });
        let rough = self.ops.binary(InstructionOpcode::FMul, x, reciprocal);
        let rest = self.ops.elementwise("llvm.fma", &[self.negated(rough), divisor, x]);
        Ok(self.ops.elementwise("llvm.fma", &[rest, reciprocal, rough]))
    }

    fn fused_sum(&mut self, sum: &FusedSum<'_>) -> Emit<Value<'ctx>> {
        let (left, right) = self.factors(&sum.product)?;
        let addend = self.expr(sum.addend)?;
        let addend = if sum.addend_negated { self.negated(addend) } else { addend };
        Ok(self.multiply_add(left, right, addend))
    }

    /// The factors of a product, with the sign of the product on the first.
    fn factors(&mut self, product: &Product<'_>) -> Emit<(Value<'ctx>, Value<'ctx>)> {
        let [left, right] = product.factors;
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        Ok((if product.negated { self.negated(left) } else { left }, right))
    }

    /// Emits the value that a store puts into its target.
    pub(super) fn stored_value(&mut self, store: &Store) -> Emit<StoredValue<'ctx>> {
        match contract::fused_term(self.nest, store) {
            Some(product) => self.factors(&product).map(|(left, right)| StoredValue::Product(left, right)),
            None => self.expr(&store.value).map(StoredValue::Value),
        }
    }

    /// Emits index arithmetic as a value: computed exactly, then converted.
    fn index_value(&mut self, index: &IndexExpr, dtype: DType) -> Emit<Value<'ctx>> {
        let value = self.index(index)?;
        let exact = match element_type(value).into_int_type().get_bit_width() {
            32 => DType::Int32,
            _ => DType::Int64,
        };
        Ok(self.convert(value, exact, dtype))
    }

    /// Emits `left && right` or `left || right`.
    fn lazy_operator(&mut self, op: BinaryOp, operands: &[Expr; 2]) -> Emit<Value<'ctx>> {
        let left = self.expr(&operands[0])?;
        let cheap = is_cheap(&operands[1]);
        let right = &mut |this: &mut Self| this.expr(&operands[1]);
        match op {
            BinaryOp::And => self.lazy_select(left, right, &mut |this| Ok(this.ops.bit(false)), cheap),
            _ => self.lazy_select(left, &mut |this| Ok(this.ops.bit(true)), right, cheap),
        }
    }

    /// Emits one of two values. Only the chosen value is evaluated, unless both are `cheap`.
    fn lazy_select(
        &mut self,
        condition: Value<'ctx>,
        then: &mut dyn FnMut(&mut Self) -> Emit<Value<'ctx>>,
        otherwise: &mut dyn FnMut(&mut Self) -> Emit<Value<'ctx>>,
        cheap: bool,
    ) -> Emit<Value<'ctx>> {
        if let Some(known) = constant_of(condition) {
            return if known != 0 { then(self) } else { otherwise(self) };
        }
        match condition {
            _ if cheap => {
                let (then, otherwise) = (then(self)?, otherwise(self)?);
                Ok(self.ops.select(condition, then, otherwise))
            }
            Value::IntValue(condition) => self.branch(condition, then, otherwise),
            lanes => {
                let then = self.with_mask(lanes, then)?;
                let complement = self.ops.not(lanes);
                let otherwise = self.with_mask(complement, otherwise)?;
                Ok(self.ops.select(lanes, then, otherwise))
            }
        }
    }

    fn branch(
        &mut self,
        condition: IntValue<'ctx>,
        then: &mut dyn FnMut(&mut Self) -> Emit<Value<'ctx>>,
        otherwise: &mut dyn FnMut(&mut Self) -> Emit<Value<'ctx>>,
    ) -> Emit<Value<'ctx>> {
        let (yes, no, after) = (self.new_block(), self.new_block(), self.new_block());
        self.ops.builder.build_conditional_branch(condition, yes, no).expect(BUILT);
        self.ops.builder.position_at_end(yes);
        let then = then(self)?;
        let then_end = self.block();
        self.ops.builder.position_at_end(no);
        let otherwise = otherwise(self)?;
        let otherwise_end = self.block();
        let lanes = lanes_of(then).or(lanes_of(otherwise));
        let kind = self.ops.widen(element_type(then), lanes);
        let then = self.branch_with_value(then, kind, then_end, after);
        let otherwise = self.branch_with_value(otherwise, kind, otherwise_end, after);
        self.ops.builder.position_at_end(after);
        let phi = self.ops.builder.build_phi(kind, "").expect(BUILT);
        phi.add_incoming(&[(&then, then_end), (&otherwise, otherwise_end)]);
        Ok(phi.as_basic_value())
    }

    /// Ends a block with a branch to `after`, and returns its value, broadcast if `kind` is a
    /// vector type.
    fn branch_with_value(
        &self,
        value: Value<'ctx>,
        kind: BasicTypeEnum<'ctx>,
        block: BasicBlock<'ctx>,
        after: BasicBlock<'ctx>,
    ) -> Value<'ctx> {
        self.ops.builder.position_at_end(block);
        let value = match kind {
            BasicTypeEnum::VectorType(kind) => self.ops.splat(value, kind.get_size()),
            _ => value,
        };
        self.ops.builder.build_unconditional_branch(after).expect(BUILT);
        value
    }
}

/// Whether an expression is short, and can safely be computed where its value is not needed.
fn is_cheap(expr: &Expr) -> bool {
    fn cost(expr: &Expr) -> Option<usize> {
        match &expr.kind {
            ExprKind::Load(_) | ExprKind::Call(..) => None,
            ExprKind::Index(index) => (!index.has_data()).then_some(2),
            ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod | BinaryOp::Power, _) => None,
            _ => expr.operands().iter().try_fold(1, |sum, operand| Some(sum + cost(operand)?)),
        }
    }
    cost(expr).is_some_and(|cost| cost <= MAX_EAGER_COST)
}
