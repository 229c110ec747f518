//! Warns of arithmetic on narrow integers that may wrap before its result reaches a wider type.
//!
//! The sum of two uint8 numbers is a uint8, also in `(a + b) / 3.0` and in `float(a + b)`. The pass
//! walks the value of every statement, and passes down to each operand the conversion that its
//! value meets. It reports the outermost operation that may wrap below a conversion. `intervals`
//! decides which operations may wrap, and `repairs` makes the text to write instead.
//!
//! Also reported: a sum or product over narrow integers into a tensor that nothing declares, and
//! `abs` of an unsigned difference. An explicit conversion to the narrow type, a mask and a
//! comparison end the search: the program then says that it wants the narrow number.

mod intervals;
mod repairs;

use tilewright_ir::{BinaryOp, Builtin, DType, ReduceOp, UnaryOp};

use super::lower::is_pure_index;
use super::model::{Model, Statement};
use super::types::{PartialType, promote, type_of};
use super::value::{Value, ValueKind};
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};
use intervals::{Guard, may_wrap};
use repairs::{Conversion, converted_operand, difference, widened_operands};

/// Adds the warnings. The source is the text of the file.
pub(super) fn warn_of_narrow_arithmetic(model: &mut Model, source: &str) {
    let mut found: Vec<(usize, Diagnostic)> = Vec::new();
    for (at, statement) in model.statements.iter().enumerate() {
        if statement.lowered.is_none() || model.tensor(statement.target).poisoned {
            continue;
        }
        let mut search = Search { model, source, found: Vec::new() };
        search.statement(statement);
        found.extend(search.found.into_iter().map(|diagnostic| (at, diagnostic)));
    }
    for (at, diagnostic) in found {
        model.report_in(at, diagnostic);
    }
}

/// A conversion to a type that holds more than the operand's own type.
#[derive(Clone, Copy)]
struct Widening {
    to: DType,
    is_store: bool,
}

impl Widening {
    /// The widening from one type to another, if it is one that the pass reports. Stores are
    /// reported for all integers. Other conversions are reported for 8 and 16 bits: wider integers
    /// seldom wrap in practice.
    fn between(from: PartialType, to: Option<DType>, is_store: bool) -> Option<Widening> {
        let (PartialType::Definite(from), Some(to)) = (from, to) else { return None };
        let is_narrow = from.bits() <= 16;
        let is_lossy = match to.is_float() {
            true => is_narrow,
            false => to.bits() > from.bits() && to != DType::Bool && (is_narrow || is_store),
        };
        (from.is_integer() && from != DType::Bool && is_lossy).then_some(Widening { to, is_store })
    }
}

/// The search for warnings in one statement.
struct Search<'a> {
    model: &'a Model,
    source: &'a str,
    found: Vec<Diagnostic>,
}

impl Search<'_> {
    fn statement(&mut self, statement: &Statement) {
        let target = self.model.tensor(statement.target);
        let value = &statement.resolved.value;
        let store = Widening::between(type_of(value, self.model), target.dtype, true);
        self.value(value, store, &mut Vec::new());
        for index in &statement.resolved.indices {
            self.subscript(index, &mut Vec::new());
        }
        if target.declared_dtype.is_none() {
            self.reduction(statement);
        }
    }

    /// Warns of `s +=! a(i)`, where the sum has the type of its terms because nothing declares it.
    fn reduction(&mut self, statement: &Statement) {
        let AssignOp::Reduce { op: op @ (ReduceOp::Add | ReduceOp::Mul), .. } = statement.op else { return };
        let target = self.model.tensor(statement.target);
        let Some(dtype) = target.dtype.filter(|dtype| dtype.is_integer() && dtype.bits() <= 16) else {
            return;
        };
        let value = &statement.resolved.value;
        if dtype == DType::Bool
            || self.is_explicit(statement, dtype)
            || !intervals::reduction_may_wrap(self.model, statement, dtype)
        {
            return;
        }
        let what = if op == ReduceOp::Add { "sum" } else { "product" };
        let name = statement.target_span.text(self.source);
        let message = format!("this {what} is computed in {dtype}, the type of its terms, where it may wrap");
        let symbol = if op == ReduceOp::Add { "+=" } else { "*=" };
        let reset = if matches!(statement.op, AssignOp::Reduce { reset: true, .. }) { "!" } else { "" };
        let conversion = Conversion { to: DType::Int32, from: dtype };
        let term = match may_wrap(value, self.model, &[]) {
            true => widened_operands(value, conversion, self.model, self.source),
            false => converted_operand(value, DType::Int32, self.source),
        };
        let term = term.unwrap_or_else(|| "int32(…)".to_owned());
        let wide = format!("`{symbol}{reset} {term}`");
        let dims = if statement.resolved.indices.is_empty() { "()" } else { "(…)" };
        let help =
            format!("to compute in int32, convert the terms: {wide}; or declare it: `int32{dims} {name}`");
        self.found.push(
            Diagnostic::warning(Code::TypeMismatch, value.span, message)
                .label(range_text(dtype))
                .help(help)
                .help(format!("to wrap, convert the terms to their own type: `{symbol}{reset} {dtype}(…)`")),
        );
    }

    /// Returns true when a statement converts its value to the type of a reduction's target, as in
    /// `s = uint8(0)` or `s +=! uint8(…)`.
    fn is_explicit(&self, reduction: &Statement, dtype: DType) -> bool {
        let own = self.model.statements.iter().filter(|statement| statement.target == reduction.target);
        own.map(|statement| &statement.resolved.value.kind)
            .any(|value| matches!(value, ValueKind::Cast(to, _) | ValueKind::Saturate(to, _) if *to == dtype))
    }

    /// Searches a value that meets this conversion, if any. The guards are the comparisons that
    /// hold wherever the value is computed.
    fn value(&mut self, value: &Value, widening: Option<Widening>, guards: &mut Vec<Guard>) {
        if let ValueKind::Call(Builtin::Abs, arguments) = &value.kind
            && self.unsigned_difference(&arguments[0], guards)
        {
            arguments[0].operands().iter().for_each(|operand| self.value(operand, None, guards));
            return;
        }
        let mut inner = widening;
        if let Some(widening) = widening
            && !value.is_standard
            && !is_pure_index(value, self.model)
            && may_wrap(value, self.model, guards)
        {
            self.report(value, widening);
            // The conversion of this operation repairs its operands too.
            inner = None;
        }
        match &value.kind {
            ValueKind::Load(_, subscripts) => {
                subscripts.iter().for_each(|subscript| self.subscript(subscript, guards));
            }
            ValueKind::Cast(dtype, operand) => {
                let widening = Widening::between(type_of(operand, self.model), Some(*dtype), false);
                self.value(operand, widening, guards);
            }
            ValueKind::Select(parts) => self.select(value, parts, inner, guards),
            _ => {
                for (at, operand) in value.operands().iter().enumerate() {
                    let widening = self.operand_widening(value, at, operand, inner);
                    self.value(operand, widening, guards);
                }
            }
        }
    }

    fn select(
        &mut self,
        value: &Value,
        [condition, then, otherwise]: &[Value; 3],
        widening: Option<Widening>,
        guards: &mut Vec<Guard>,
    ) {
        self.value(condition, None, guards);
        for (branch, holds) in [(then, true), (otherwise, false)] {
            let outside = guards.len();
            Guard::add(condition, holds, guards);
            let widening = self.operand_widening(value, 1, branch, widening);
            self.value(branch, widening, guards);
            guards.truncate(outside);
        }
    }

    /// The conversion that the operand of a value meets: that to the type of the operation, or the
    /// one that the value itself meets.
    fn operand_widening(
        &self,
        value: &Value,
        at: usize,
        operand: &Value,
        outer: Option<Widening>,
    ) -> Option<Widening> {
        let own = type_of(operand, self.model);
        let operation = match &value.kind {
            ValueKind::Binary(op, _) if op.is_shift() && at == 1 => return None,
            ValueKind::Binary(op, operands) if op.is_comparison() => {
                let [left, right] = operands.as_ref();
                promote(type_of(left, self.model), type_of(right, self.model)).ok()?.or_default()
            }
            ValueKind::Binary(op, _) if op.is_logical() => return None,
            ValueKind::Call(builtin, _) if builtin.is_predicate() || builtin.is_on_integers() => return None,
            ValueKind::Call(Builtin::Philox, _) | ValueKind::Saturate(..) => return None,
            _ => type_of(value, self.model).or_default(),
        };
        Widening::between(own, operation, false)
            .or_else(|| outer.filter(|_| passes_on(value) && own.or_default() == operation))
    }

    /// Searches a subscript. Sums and products of integers are exact there.
    fn subscript(&mut self, value: &Value, guards: &mut Vec<Guard>) {
        let is_float = type_of(value, self.model).or_default().is_some_and(DType::is_float);
        match &value.kind {
            ValueKind::Binary(..) | ValueKind::Unary(..) if !is_float => {
                value.operands().iter().for_each(|operand| self.subscript(operand, guards));
            }
            ValueKind::Bounded(parts) => self.subscript(&parts[0], guards),
            _ => self.value(value, None, guards),
        }
    }

    fn report(&mut self, value: &Value, Widening { to, is_store }: Widening) {
        let Some(found) = type_of(value, self.model).or_default() else { return };
        let what = if is_store { "stored as" } else { "converted to" };
        let message = format!("this is computed in {found}, where it may wrap, before it is {what} {to}");
        let wide = intervals::wide_enough(value, to, self.model);
        let conversion = Conversion { to: wide, from: found };
        let help = match widened_operands(value, conversion, self.model, self.source) {
            Some(text) => format!(
                "to compute in {wide}, convert an operand: `{text}`; to wrap, convert the result: `{found}(…)`"
            ),
            None => format!(
                "to compute in {wide}, convert an operand: `{wide}(…)`; to wrap, convert the result: `{found}(…)`"
            ),
        };
        self.found.push(
            Diagnostic::warning(Code::TypeMismatch, value.span, message).label(range_text(found)).help(help),
        );
    }

    /// Warns of `abs(a - b)` with unsigned numbers: their difference wraps and is never negative.
    fn unsigned_difference(&mut self, argument: &Value, guards: &[Guard]) -> bool {
        let ValueKind::Binary(BinaryOp::Sub, operands) = &argument.kind else { return false };
        let PartialType::Definite(dtype) = type_of(argument, self.model) else { return false };
        if !dtype.is_unsigned_integer() || dtype == DType::Bool || !may_wrap(argument, self.model, guards) {
            return false;
        }
        let message = format!(
            "the difference of these {dtype} numbers wraps instead of becoming negative, and `abs` does nothing"
        );
        let text = difference(operands, self.source).unwrap_or_else(|| "absd(…, …)".to_owned());
        self.found.push(
            Diagnostic::warning(Code::TypeMismatch, argument.span, message)
                .label(range_text(dtype))
                .help(format!("for the distance of two unsigned numbers write `{text}`")),
        );
        true
    }
}

/// Returns true for operations whose result is wrong if an operand has wrapped. A mask keeps bits
/// that do not depend on the bits above it.
fn passes_on(value: &Value) -> bool {
    use BinaryOp::{Add, BitOr, Div, Max, Min, Mod, Mul, Power, ShiftLeft, ShiftRight, Sub};
    match &value.kind {
        ValueKind::Binary(op, _) => {
            matches!(op, Add | Sub | Mul | Div | Mod | Min | Max | Power | BitOr | ShiftLeft | ShiftRight)
        }
        ValueKind::Unary(UnaryOp::Neg, _) | ValueKind::Select(_) | ValueKind::Bounded(_) => true,
        ValueKind::Call(..) => true,
        _ => false,
    }
}

/// `uint8 holds 0 to 255`
fn range_text(dtype: DType) -> String {
    match dtype.integer_bounds() {
        Some((low, high)) => format!("{dtype} holds {low} to {high}"),
        None => String::new(),
    }
}
