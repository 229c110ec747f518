//! Values: every operation as the language defines it.

use tilewright_ir::nest::Store;
use tilewright_ir::{BinaryOp, Builtin, DType, Expr, ExprKind, Number, ReduceOp, UnaryOp};
use tilewright_target::GpuApi;

use super::dialect::{value_type, wrapping_type};
use super::stmt::{Emit, Emitter};
use crate::contract::{self, Product};

/// What a store puts into its target, as text.
pub(super) enum Stored {
    Value(String),
    /// A product that is not rounded before it is added.
    Product(String, String),
}

impl Emitter<'_> {
    /// A value as text: an expression that can stand anywhere.
    pub(super) fn value(&mut self, expr: &Expr) -> Emit<String> {
        match &expr.kind {
            ExprKind::Literal(number) => Ok(self.literal(*number, expr.dtype)),
            ExprKind::Index(index) => {
                let text = self.index(index)?;
                Ok(self.converted(text, self.index_dtype(), expr.dtype))
            }
            ExprKind::Scalar(id) => Ok(self.scalar(*id, expr.dtype)),
            ExprKind::Load(access) => self.load(access),
            ExprKind::Unary(op, operand) => self.unary(*op, operand, expr.dtype),
            ExprKind::Binary(op, pair) => self.binary_expr(*op, pair, expr.dtype),
            ExprKind::Select(parts) => {
                let [condition, then, otherwise] = parts.each_ref().map(|part| self.value(part));
                Ok(format!("({} ? {} : {})", condition?, then?, otherwise?))
            }
            ExprKind::Call(builtin, arguments) => self.call(*builtin, arguments, expr.dtype),
            ExprKind::Cast(operand) => {
                let text = self.value(operand)?;
                Ok(self.converted(text, operand.dtype, expr.dtype))
            }
        }
    }

    pub(super) fn literal(&self, number: Number, dtype: DType) -> String {
        if dtype == DType::Bool {
            return number.is_true().to_string();
        }
        match (number, dtype.is_float()) {
            (number, true) => self.float_literal(number.as_f64(), dtype),
            (number, false) => self.integer_literal(number.as_i128(), dtype),
        }
    }

    fn float_literal(&self, value: f64, dtype: DType) -> String {
        let double = dtype == DType::Float64;
        if value.is_nan() {
            return if double { "(double)NAN".into() } else { "NAN".into() };
        }
        if value.is_infinite() {
            let sign = if value < 0.0 { "-" } else { "" };
            return if double { format!("({sign}(double)INFINITY)") } else { format!("({sign}INFINITY)") };
        }
        // The shortest digits that mean this number.
        let digits = if double { format!("{value:?}") } else { format!("{:?}", value as f32) };
        let text = if double { digits } else { format!("{digits}f") };
        if value.is_sign_negative() { format!("({text})") } else { text }
    }

    fn integer_literal(&self, value: i128, dtype: DType) -> String {
        let t = value_type(self.unit.api, dtype);
        let suffix = match (dtype.bits(), dtype.is_unsigned_integer(), self.unit.api) {
            (64, true, GpuApi::Cuda) => "ULL",
            (64, true, GpuApi::OpenCl) => "UL",
            (64, false, GpuApi::Cuda) => "LL",
            (64, false, GpuApi::OpenCl) => "L",
            (32, true, _) => "u",
            _ => "",
        };
        let least = dtype.integer_bounds().is_some_and(|(low, _)| value == low) && value < 0;
        match dtype {
            // The text of the least number is a minus before one that does not fit.
            DType::Int32 | DType::Int64 if least => format!("({}{suffix} - 1)", value + 1),
            DType::Int32 | DType::Int64 if value < 0 => format!("({value}{suffix})"),
            DType::Int32 | DType::Int64 | DType::UInt32 | DType::UInt64 => format!("{value}{suffix}"),
            _ => format!("(({t}){value})"),
        }
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, dtype: DType) -> Emit<String> {
        let text = self.value(operand)?;
        Ok(match op {
            UnaryOp::Not => format!("(!{text})"),
            UnaryOp::Neg if dtype.is_float() => format!("(-{text})"),
            UnaryOp::Neg => {
                let (t, wrapping) = (value_type(self.unit.api, dtype), wrapping_type(self.unit.api, dtype));
                format!("({t})(0 - ({wrapping}){text})")
            }
        })
    }

    fn binary_expr(&mut self, op: BinaryOp, pair: &[Expr; 2], dtype: DType) -> Emit<String> {
        if let Some(sum) = contract::fused_sum(self.unit.nest, op, pair) {
            let (left, right) = self.factors(&sum.product)?;
            let addend = self.value(sum.addend)?;
            let addend = if sum.addend_negated { format!("(-{addend})") } else { addend };
            return Ok(self.multiply_add(&left, &right, &addend, dtype));
        }
        let (left, right) = (self.value(&pair[0])?, self.value(&pair[1])?);
        Ok(self.binary(op, &left, &right, dtype))
    }

    /// The factors of a product, the first with the sign of the product.
    fn factors(&mut self, product: &Product<'_>) -> Emit<(String, String)> {
        let [left, right] = product.factors;
        let (left, right) = (self.value(left)?, self.value(right)?);
        Ok((if product.negated { format!("(-{left})") } else { left }, right))
    }

    /// What a store puts into its target.
    pub(super) fn stored(&mut self, store: &Store) -> Emit<Stored> {
        match contract::fused_term(self.unit.nest, store) {
            Some(product) => self.factors(&product).map(|(left, right)| Stored::Product(left, right)),
            None => self.value(&store.value).map(Stored::Value),
        }
    }

    /// `left * right + addend`, rounded once where the device does that fast.
    pub(super) fn multiply_add(&mut self, left: &str, right: &str, addend: &str, dtype: DType) -> String {
        let function = match (self.unit.api, dtype) {
            (GpuApi::Cuda, DType::Float64) => "fma".to_owned(),
            (GpuApi::Cuda, _) => "fmaf".to_owned(),
            (GpuApi::OpenCl, _) => self.needs("tw_multiply_add", dtype),
        };
        format!("{function}({left}, {right}, {addend})")
    }

    /// An operation on two values as text.
    pub(super) fn binary(&mut self, op: BinaryOp, left: &str, right: &str, dtype: DType) -> String {
        match op {
            BinaryOp::And => format!("({left} && {right})"),
            BinaryOp::Or => format!("({left} || {right})"),
            _ if op.is_comparison() => format!("({left} {} {right})", op.symbol()),
            BinaryOp::Mod => format!("{}({left}, {right})", self.needs("tw_floor_mod", dtype.compute_type())),
            BinaryOp::Div if !dtype.is_float() => {
                format!("{}({left}, {right})", self.needs("tw_floor_div", dtype))
            }
            _ => arithmetic_text(self.unit.api, op, left, right, dtype),
        }
    }

    /// One more value reduced into a total.
    pub(super) fn reduced(&mut self, op: ReduceOp, total: &str, value: &str, dtype: DType) -> String {
        self.binary(op.operator(), total, value, dtype)
    }

    /// A value of one type as a value of another: integers wrap, floats round, a float saturates to an integer.
    pub(super) fn converted(&mut self, text: String, from: DType, to: DType) -> String {
        let t = value_type(self.unit.api, to);
        if from == to {
            return text;
        }
        match (from, to) {
            (_, DType::Bool) => format!("({text} != 0)"),
            (_, DType::Float16 | DType::BFloat16) => {
                let single = if from == DType::Float32 { text } else { format!("(float)({text})") };
                let (load, store) = (self.needs("tw_load_half", to), self.needs("tw_store_half", to));
                format!("{load}({store}({single}))")
            }
            (DType::Float16 | DType::BFloat16, DType::Float32) => text,
            _ if from.is_float() && to.is_integer() => {
                let base = if from == DType::Float64 { "tw_from_double" } else { "tw_from_float" };
                format!("{}({text})", self.needs(base, to))
            }
            _ => format!("({t})({text})"),
        }
    }

    fn call(&mut self, builtin: Builtin, arguments: &[Expr], dtype: DType) -> Emit<String> {
        let operand = arguments.first().map_or(dtype, |argument| argument.dtype);
        let texts = arguments.iter().map(|argument| self.value(argument)).collect::<Emit<Vec<_>>>()?;
        let single = self.unit.api == GpuApi::Cuda && operand.compute_type() == DType::Float32;
        let f = if single { "f" } else { "" };
        let all = texts.join(", ");
        Ok(match builtin {
            Builtin::Abs if !operand.is_float() => match operand.is_signed_integer() {
                true => {
                    let (t, wrapping) =
                        (value_type(self.unit.api, operand), wrapping_type(self.unit.api, operand));
                    format!("({all} < 0 ? ({t})(0 - ({wrapping}){all}) : {all})")
                }
                false => all,
            },
            Builtin::Abs => format!("fabs{f}({all})"),
            Builtin::IsNan => format!("({all} != {all})"),
            Builtin::IsInf => format!("(fabs{f}({all}) == INFINITY)"),
            Builtin::IsFinite => format!("(fabs{f}({all}) < INFINITY)"),
            Builtin::Sigmoid => {
                let one = self.float_literal(1.0, dtype);
                format!("({one} / ({one} + exp{f}(-{all})))")
            }
            _ => format!("{}{f}({all})", builtin.name()),
        })
    }
}

/// Minima, maxima, sums, differences, products, and quotients of floats, as text.
pub(super) fn arithmetic_text(api: GpuApi, op: BinaryOp, left: &str, right: &str, dtype: DType) -> String {
    match op {
        BinaryOp::Min | BinaryOp::Max if dtype.is_float() => {
            let single = api == GpuApi::Cuda && dtype != DType::Float64;
            let name = if op == BinaryOp::Min { "fmin" } else { "fmax" };
            format!("{name}{}({left}, {right})", if single { "f" } else { "" })
        }
        BinaryOp::Min => format!("({left} < {right} ? {left} : {right})"),
        BinaryOp::Max => format!("({left} > {right} ? {left} : {right})"),
        _ if dtype.is_float() => format!("({left} {} {right})", op.symbol()),
        // Sums and products of integers wrap, which signed ones do not in C.
        _ => {
            let (t, wrapping) = (value_type(api, dtype), wrapping_type(api, dtype));
            format!("({t})(({wrapping}){left} {} ({wrapping}){right})", op.symbol())
        }
    }
}
