//! Writes value expressions ([`Expr`]) as C expressions ([`CExpr`]): literals, operators,
//! conversions and calls of functions. The results are those that Tilewright's language defines. A
//! helper function ([`Helper`]) takes the place of a C operation that gives another result.

use tilewright_ir::arithmetic as numbers;
use tilewright_ir::nest::{Expr, ExprKind, Store};
use tilewright_ir::{BinaryOp, Builtin, DType, Number, ReduceOp, UnaryOp};

use super::c_expr::CExpr;
use super::dialect::Dialect;
use super::integer::{power_of_two, shift_count};
use super::prelude::Helper;
use super::stmt::{Emit, Emitter};
use crate::contract::{self, Product};
use crate::division::Reciprocal;

/// The value that a store puts into its target.
pub(super) enum StoredValue {
    Value(CExpr),
    /// A product that is added to the target without being rounded first.
    Product(CExpr, CExpr),
}

impl Emitter<'_> {
    /// Writes an expression, in the value type of its element type.
    pub(super) fn value(&mut self, expr: &Expr) -> Emit<CExpr> {
        match &expr.kind {
            ExprKind::Literal(number) => Ok(self.literal(*number, expr.dtype)),
            ExprKind::Index(index) => {
                let (exact, width) = (self.index(index)?, self.width(index));
                Ok(self.convert(exact, width.dtype(), expr.dtype))
            }
            ExprKind::Scalar(id) => Ok(self.scalar(*id, expr.dtype)),
            ExprKind::Load(access) => self.load(access),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, expr.dtype),
            ExprKind::Binary(op, pair) => self.binary_expr(*op, pair, expr.dtype),
            ExprKind::Select(parts) => {
                let [condition, then, otherwise] = parts.each_ref().map(|part| self.value(part));
                Ok(CExpr::conditional(&condition?, &then?, &otherwise?))
            }
            ExprKind::Call(builtin, arguments) => match constant(expr) {
                Some(number) => Ok(self.literal(number, expr.dtype)),
                None => self.call(*builtin, arguments, expr.dtype),
            },
            ExprKind::Cast(operand) => {
                let value = self.value(operand)?;
                Ok(self.convert(value, operand.dtype, expr.dtype))
            }
        }
    }

    pub(super) fn literal(&self, number: Number, dtype: DType) -> CExpr {
        if dtype == DType::Bool {
            return CExpr::atom(number.is_true().to_string());
        }
        match dtype.is_float() {
            true => self.float_literal(number.as_f64(), dtype),
            false => self.integer_literal(number.as_i128(), dtype),
        }
    }

    fn float_literal(&self, value: f64, dtype: DType) -> CExpr {
        let double = dtype == DType::Float64;
        let widened = |constant: &str| {
            let constant = CExpr::atom(constant);
            if double { constant.cast("double") } else { constant }
        };
        if value.is_nan() {
            return widened("NAN");
        }
        if value.is_infinite() {
            let infinity = widened("INFINITY");
            return if value < 0.0 { infinity.negated() } else { infinity };
        }
        // The shortest digits that denote this number.
        CExpr::literal(if double { format!("{value:?}") } else { format!("{:?}f", value as f32) })
    }

    fn integer_literal(&self, value: i128, dtype: DType) -> CExpr {
        let long = self.unit.dialect.long_suffix();
        let suffix = match (dtype.bits(), dtype.is_unsigned_integer()) {
            (64, true) => format!("U{long}"),
            (64, false) => long.to_owned(),
            (32, true) => "u".to_owned(),
            _ => String::new(),
        };
        let least = dtype.integer_bounds().is_some_and(|(low, _)| value == low) && value < 0;
        match dtype {
            // C has no literal for the least number: a minus sign would stand before a number that
            // overflows.
            DType::Int32 | DType::Int64 if least => CExpr::atom(format!("({}{suffix} - 1)", value + 1)),
            DType::Int32 | DType::Int64 | DType::UInt32 | DType::UInt64 => {
                CExpr::literal(format!("{value}{suffix}"))
            }
            _ => CExpr::literal(value.to_string()).cast(self.type_name(dtype)),
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, dtype: DType) -> Emit<CExpr> {
        let value = self.value(operand)?;
        Ok(match op {
            UnaryOp::Not => value.complement(),
            UnaryOp::Complement => {
                let ones = CExpr::literal("-1".to_owned());
                wrapping(self.unit.dialect, BinaryOp::BitXor, value, ones, dtype)
            }
            UnaryOp::Neg if dtype.is_float() => value.negated(),
            UnaryOp::Neg => wrapping(self.unit.dialect, BinaryOp::Sub, CExpr::atom("0"), value, dtype),
        })
    }

    fn binary_expr(&mut self, op: BinaryOp, pair: &[Expr; 2], dtype: DType) -> Emit<CExpr> {
        if let Some(sum) = contract::fused_sum(self.unit.nest, op, pair) {
            let (left, right) = self.factors(&sum.product)?;
            let addend = self.value(sum.addend)?;
            let addend = if sum.addend_negated { addend.negated() } else { addend };
            return Ok(self.multiply_add(&left, &right, &addend, dtype));
        }
        let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
        if let Some(count) = shift_count(op, &pair[1]) {
            return Ok(self.shift_by_number(op, left, count, dtype));
        }
        if let Some(shift) = power_of_two(op, &pair[1]) {
            return Ok(self.divide_by_power_of_two(op, left, shift, dtype));
        }
        if self.unit.dialect.has_fast_multiply_add()
            && let Some(by) = Reciprocal::of(op, pair)
        {
            let numbers = [by.divisor, by.reciprocal];
            let [divisor, reciprocal] =
                numbers.map(|number| self.float_literal(f64::from(number), DType::Float32));
            let function = self.require_helper(Helper::Quotient, DType::Float32);
            return Ok(CExpr::call(&function, &[left, divisor, reciprocal]));
        }
        Ok(self.binary(op, &left, &right, dtype))
    }

    /// The factors of a product, with the sign of the product on the first.
    fn factors(&mut self, product: &Product<'_>) -> Emit<(CExpr, CExpr)> {
        let [left, right] = product.factors;
        let (left, right) = (self.value(left)?, self.value(right)?);
        Ok((if product.negated { left.negated() } else { left }, right))
    }

    /// Writes the value that a store puts into its target.
    pub(super) fn stored_value(&mut self, store: &Store) -> Emit<StoredValue> {
        match contract::fused_term(self.unit.nest, store) {
            Some(product) => self.factors(&product).map(|(left, right)| StoredValue::Product(left, right)),
            None => self.value(&store.value).map(StoredValue::Value),
        }
    }

    /// `left * right + addend`, rounded once where the device has a fast fused multiply-add.
    pub(super) fn multiply_add(
        &mut self,
        left: &CExpr,
        right: &CExpr,
        addend: &CExpr,
        dtype: DType,
    ) -> CExpr {
        let function = match self.unit.dialect.has_fast_multiply_add() {
            true => format!("fma{}", self.unit.dialect.function_suffix(dtype.compute_type())),
            false => self.require_helper(Helper::MultiplyAdd, dtype),
        };
        CExpr::call(&function, &[left.clone(), right.clone(), addend.clone()])
    }

    /// Writes a binary operation; `dtype` is the type of its result.
    pub(super) fn binary(&mut self, op: BinaryOp, left: &CExpr, right: &CExpr, dtype: DType) -> CExpr {
        let both = || [left.clone(), right.clone()];
        match op {
            BinaryOp::Mod => {
                CExpr::call(&self.require_helper(Helper::FloorMod, dtype.compute_type()), &both())
            }
            BinaryOp::Div if !dtype.is_float() => {
                CExpr::call(&self.require_helper(Helper::FloorDiv, dtype), &both())
            }
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight | BinaryOp::Power => {
                let helper = match op {
                    BinaryOp::ShiftLeft => Helper::ShiftLeft,
                    BinaryOp::ShiftRight => Helper::ShiftRight,
                    _ => Helper::Power,
                };
                CExpr::call(&self.require_helper(helper, dtype), &both())
            }
            _ if op.is_logical() || op.is_comparison() => CExpr::binary(op, left, right),
            _ => {
                self.require_min_max_helper(op, dtype);
                arithmetic(self.unit.dialect, op, left, right, dtype)
            }
        }
    }

    /// Records the prelude function for an integer minimum or maximum, if the operation is one.
    pub(super) fn require_min_max_helper(&mut self, op: BinaryOp, dtype: DType) {
        if let Some(helper) = integer_min_max(self.unit.dialect, op, dtype) {
            self.require_helper(helper, dtype);
        }
    }

    /// Reduces one more value into a total.
    pub(super) fn reduce_value(&mut self, op: ReduceOp, total: &CExpr, value: &CExpr, dtype: DType) -> CExpr {
        self.binary(op.operator(), total, value, dtype)
    }

    /// Converts a value to another type: integers wrap, floats round, and a float saturates to an
    /// integer.
    pub(super) fn convert(&mut self, value: CExpr, from: DType, to: DType) -> CExpr {
        if from == to {
            return value;
        }
        match (from, to) {
            (_, DType::Bool) => CExpr::binary(BinaryOp::NotEqual, &value, &CExpr::atom("0")),
            (_, DType::Float16 | DType::BFloat16) => {
                let single = match from {
                    DType::Float32 => value,
                    // A value with more digits than float32 has must not be rounded twice on the
                    // way to 16 bits.
                    _ if from.bits() > 16 => {
                        CExpr::call(&self.require_helper(Helper::RoundToOdd, from), &[value])
                    }
                    _ => value.cast("float"),
                };
                let (load, store) =
                    (self.require_helper(Helper::LoadHalf, to), self.require_helper(Helper::StoreHalf, to));
                CExpr::call(&load, &[CExpr::call(&store, &[single])])
            }
            (DType::Float16 | DType::BFloat16, DType::Float32) => value,
            _ if from.is_float() && to.is_integer() => {
                let is_double = from == DType::Float64;
                let helper = if is_double { Helper::FromDouble } else { Helper::FromFloat };
                CExpr::call(&self.require_helper(helper, to), &[value])
            }
            _ => value.cast(self.type_name(to)),
        }
    }

    fn call(&mut self, builtin: Builtin, arguments: &[Expr], dtype: DType) -> Emit<CExpr> {
        let operand = arguments.first().map_or(dtype, |argument| argument.dtype);
        let values = arguments.iter().map(|argument| self.value(argument)).collect::<Emit<Vec<_>>>()?;
        let f = self.unit.dialect.function_suffix(operand.compute_type());
        let named = |name: &str, values: &[CExpr]| CExpr::call(&format!("{name}{f}"), values);
        let infinity = CExpr::atom("INFINITY");
        Ok(match (builtin, values.as_slice()) {
            (Builtin::Abs, [own]) if !operand.is_float() => match operand.is_signed_integer() {
                true => CExpr::call(&self.require_helper(Helper::Abs, operand), &values),
                false => own.clone(),
            },
            (Builtin::Popcount, _) => CExpr::call(&self.require_helper(Helper::Popcount, operand), &values),
            (Builtin::Clz, _) => CExpr::call(&self.require_helper(Helper::Clz, operand), &values),
            (Builtin::Ctz, _) => CExpr::call(&self.require_helper(Helper::Ctz, operand), &values),
            (Builtin::Philox, _) => CExpr::call(&self.require_helper(Helper::Philox, operand), &values),
            (Builtin::Pow, _) if is_two(&arguments[1]) => {
                CExpr::call(&self.require_helper(Helper::Square, operand.compute_type()), &values[..1])
            }
            (Builtin::Abs, _) => named("fabs", &values),
            (Builtin::IsNan, _) => {
                CExpr::call(&self.require_helper(Helper::IsNan, operand.compute_type()), &values)
            }
            (Builtin::IsInf, _) => CExpr::binary(BinaryOp::Equal, &named("fabs", &values), &infinity),
            (Builtin::IsFinite, _) => CExpr::binary(BinaryOp::Less, &named("fabs", &values), &infinity),
            (Builtin::Sigmoid, [own]) => {
                let one = self.float_literal(1.0, dtype);
                let power = named("exp", &[own.clone().negated()]);
                CExpr::binary(BinaryOp::Div, &one, &CExpr::binary(BinaryOp::Add, &one, &power))
            }
            _ => named(builtin.name(), &values),
        })
    }
}

/// The value of an expression of constants, as the language defines it. Functions of constants are
/// computed here, because device compilers evaluate most of them in every thread.
fn constant(expr: &Expr) -> Option<Number> {
    if !expr.dtype.is_float() {
        return None;
    }
    match &expr.kind {
        ExprKind::Literal(number) => Some(*number),
        ExprKind::Index(index) => Some(Number::Int(index.as_constant()?.into()).convert(expr.dtype)),
        ExprKind::Unary(op, operand) => Some(numbers::unary(*op, constant(operand)?, expr.dtype)),
        ExprKind::Binary(op, pair) => {
            Some(numbers::binary(*op, constant(&pair[0])?, constant(&pair[1])?, expr.dtype))
        }
        ExprKind::Call(builtin, arguments) => {
            let arguments: Vec<Number> = arguments.iter().map(constant).collect::<Option<_>>()?;
            Some(numbers::call(*builtin, &arguments, expr.dtype))
        }
        ExprKind::Cast(operand) => Some(constant(operand)?.convert(expr.dtype)),
        ExprKind::Scalar(_) | ExprKind::Load(_) | ExprKind::Select(_) => None,
    }
}

/// Returns true for the number 2, as the exponent of a square.
fn is_two(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Literal(number) if number.as_f64() == 2.0)
}

/// The prelude function for the minimum or maximum of integers or truth values.
fn integer_min_max(dialect: Dialect, op: BinaryOp, dtype: DType) -> Option<Helper> {
    match (op, dialect, dtype) {
        (BinaryOp::Min, Dialect::Cuda, DType::Int16 | DType::Int32) => Some(Helper::PairwiseMin),
        (BinaryOp::Max, Dialect::Cuda, DType::Int16 | DType::Int32) => Some(Helper::PairwiseMax),
        (BinaryOp::Min, ..) if !dtype.is_float() => Some(Helper::Min),
        (BinaryOp::Max, ..) if !dtype.is_float() => Some(Helper::Max),
        _ => None,
    }
}

/// Writes minima, maxima, sums, differences, products, operators on bits, and quotients of floats.
pub(super) fn arithmetic(dialect: Dialect, op: BinaryOp, left: &CExpr, right: &CExpr, dtype: DType) -> CExpr {
    let both = [left.clone(), right.clone()];
    match (op, integer_min_max(dialect, op, dtype)) {
        (_, Some(helper)) => CExpr::call(&helper.name(dtype), &both),
        (BinaryOp::Min | BinaryOp::Max, None) => {
            let name = if op == BinaryOp::Min { "fmin" } else { "fmax" };
            CExpr::call(&format!("{name}{}", dialect.function_suffix(dtype.compute_type())), &both)
        }
        _ if dtype.is_float() => CExpr::binary(op, left, right),
        _ => wrapping(dialect, op, left.clone(), right.clone(), dtype),
    }
}

/// Writes a sum, difference, product or operation on bits of integers that wraps. Signed overflow
/// in C is undefined, so the operation is unsigned.
pub(super) fn wrapping(dialect: Dialect, op: BinaryOp, left: CExpr, right: CExpr, dtype: DType) -> CExpr {
    let wide_type = dialect.wrapping_type(dtype);
    CExpr::binary(op, &left.cast(wide_type), &right.cast(wide_type)).cast(dialect.value_type(dtype))
}
