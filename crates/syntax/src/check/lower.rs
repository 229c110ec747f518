//! Lowers resolved expressions to the intermediate representation: typed values, and subscripts in
//! normal form.
//!
//! Subscripts are exact 64-bit arithmetic. A value that consists only of variables, sizes and
//! integer literals is one [`ExprKind::Index`] node, so it is exact too and is converted once.
//! 16-bit floats are computed in float32.

use std::sync::Arc;

use tilewright_ir::unchecked::{Parts, Read, collect_reads};
use tilewright_ir::{
    Access, Atom, BinaryOp, Builtin, DType, Data, Expr, ExprKind, IndexExpr, Number, SymbolId, SymbolKind,
    UnaryOp, VarId, print,
};

use super::bits::{
    bits_index, complement, has_bit_operation, index_form, integer_call, operation, widening_product,
};
use super::model::{LoweredViewRead, Model, ViewRead};
use super::number::{chosen, number_of};
use super::reason::{Reason, ReasonKind};
use super::triangles;
use super::types::{NoCommonType, PartialType, check_store, is_growing, promote, type_of};
use super::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;

/// Lowers every statement whose parts have types.
pub(super) fn lower_statements(model: &mut Model) {
    for at in 0..model.statements.len() {
        let lowered = lower_statement(model, at);
        if lowered.is_none() {
            let target = model.statements[at].target;
            model.tensors[target.index()].poisoned = true;
        }
        model.statements[at].lowered = lowered;
    }
}

fn lower_statement(model: &mut Model, at: usize) -> Option<Parts> {
    let wanted = check_store(model, at)?;
    // The resolved parts are restored below, so that messages can use them.
    let resolved = std::mem::replace(
        &mut model.statements[at].resolved,
        super::model::ResolvedStatement {
            indices: Vec::new(),
            value: Value::new(ValueKind::Bool(false), Default::default()),
            exists: Vec::new(),
            ranges: Vec::new(),
            view_reads: Vec::new(),
        },
    );
    let view_reads = resolved.view_reads.iter().filter_map(|read| lower_view_read(read, model)).collect();
    model.statements[at].view_reads = view_reads;
    let indices: Option<Vec<IndexExpr>> = resolved.indices.iter().map(|value| index(value, model)).collect();
    let value = lower_as(&resolved.value, wanted.compute_type(), model);
    let exists: Option<Vec<Expr>> = resolved
        .exists
        .iter()
        .map(|value| {
            let dtype = type_of(value, model).or_default().unwrap_or(DType::Float32).compute_type();
            lower_as(value, dtype, model)
        })
        .collect();
    for (var, from, to) in &resolved.ranges {
        if let (Some(from_index), Some(to_index)) =
            (where_bound(from, *var, model), where_bound(to, *var, model))
        {
            let is_dependent = !from_index.vars().is_empty() || !to_index.vars().is_empty();
            let range = tilewright_ir::Range { from: from_index, to: to_index };
            let declared = &mut model.vars[var.index()];
            *(if is_dependent { &mut declared.dependent } else { &mut declared.range }) = Some(range);
            declared.reasons.push(Reason { span: from.span.to(to.span), kind: ReasonKind::Where });
        } else {
            model.statements[at].resolved = resolved;
            return None;
        }
    }
    model.statements[at].resolved = resolved;
    let (indices, value) = (indices?, value?);
    let mut parts = triangles::guarded_parts(model, at, indices, value);
    let named = exists?.into_iter().flat_map(|expr| collect_reads(&expr, &[]));
    parts.reads.extend(named.map(|read| Read { is_existence_only: true, ..read }));
    Some(parts)
}

fn lower_view_read(read: &ViewRead, model: &mut Model) -> Option<LoweredViewRead> {
    let mut lower_all =
        |values: &[Value]| values.iter().map(|value| index(value, model)).collect::<Option<Vec<_>>>();
    let (indices, ends) = (lower_all(&read.indices)?, lower_all(&read.ends)?);
    let subscripts: Vec<String> = indices.iter().map(|index| print::index(index, model)).collect();
    let access = format!("{}({})", read.name, subscripts.join(", "));
    Some(LoweredViewRead { access, indices, ends, span: read.span })
}

/// Lowers a bound of a range that `where` declares, which may also contain other variables.
fn where_bound(value: &Value, var: VarId, model: &mut Model) -> Option<IndexExpr> {
    let lowered = index(value, model)?;
    if lowered.has_data() {
        return bound(value, model);
    }
    if lowered.mentions(var) {
        let message = format!("the range of `{}` depends on itself", model.var(var).name);
        model.report(Diagnostic::error(Code::InvalidRange, value.span, message));
        return None;
    }
    Some(lowered)
}

/// Lowers a bound of a declared range, which may contain sizes, integer scalars and extents.
pub(super) fn bound(value: &Value, model: &mut Model) -> Option<IndexExpr> {
    let lowered = index(value, model)?;
    if lowered.has_data() || !lowered.vars().is_empty() {
        let what = "the bounds of a range may depend on sizes and integer scalars only";
        model.report(
            Diagnostic::error(Code::InvalidRange, value.span, what)
                .label("this depends on variables or data")
                .help(crate::check::resolve::DEPENDENT_RANGE_HELP),
        );
        return None;
    }
    Some(lowered)
}

// --- subscripts ---

/// Lowers the value to a subscript or bound, or returns `None` after a report.
pub(super) fn index(value: &Value, model: &mut Model) -> Option<IndexExpr> {
    let lowered = index_parts(value, model)?;
    if lowered.is_overflow() {
        model.report(
            Diagnostic::error(Code::TooComplex, value.span, "this index expression is too large")
                .note("indices are 64-bit integers, and polynomials of at most 256 terms"),
        );
        return None;
    }
    Some(lowered)
}

pub(super) fn index_parts(value: &Value, model: &mut Model) -> Option<IndexExpr> {
    Some(match &value.kind {
        ValueKind::Int(number, _) => match i64::try_from(*number) {
            Ok(number) => IndexExpr::constant(number),
            Err(_) => IndexExpr::atom(Atom::Overflow),
        },
        ValueKind::Var(var) => IndexExpr::var(*var),
        ValueKind::Size(symbol) => IndexExpr::symbol(*symbol),
        ValueKind::Scalar(_) => match scalar_symbol(value, model) {
            Some(symbol) => IndexExpr::symbol(symbol),
            None => return data(value, model),
        },
        ValueKind::Extent(tensor, dimension) => IndexExpr::atom(Atom::Extent(*tensor, *dimension)),
        ValueKind::Unary(UnaryOp::Neg, operand) => index_parts(operand, model)?.scale(-1),
        ValueKind::Unary(UnaryOp::Complement, operand)
            if is_pure_subscript(operand, model) || number_of(operand).is_some() =>
        {
            index_parts(operand, model)?.scale(-1).offset(-1)
        }
        ValueKind::Binary(op, operands) if op.is_on_integers() => {
            match bits_index(*op, operands, value, model)? {
                Some(found) => found,
                None => return data(value, model),
            }
        }
        ValueKind::Binary(op, operands) if is_index_operator(*op) => {
            if type_of(value, model).or_default().is_some_and(DType::is_float) {
                return data(value, model);
            }
            let left = index_parts(&operands[0], model)?;
            let right = index_parts(&operands[1], model)?;
            if matches!(op, BinaryOp::Mul) && !model.in_value {
                for (factor, other) in [(&operands[0], &right), (&operands[1], &left)] {
                    if !other.vars().is_empty() {
                        assume_positive(factor, model);
                    }
                }
            }
            if matches!(op, BinaryOp::Div | BinaryOp::Mod) {
                assume_positive(&operands[1], model);
                if right.as_constant() == Some(0) {
                    model.report(Diagnostic::error(Code::InvalidRange, operands[1].span, "division by zero"));
                    return None;
                }
            }
            match op {
                BinaryOp::Add => left.add(&right),
                BinaryOp::Sub => left.sub(&right),
                BinaryOp::Mul => left.mul(&right),
                BinaryOp::Div => left.floor_div(&right),
                BinaryOp::Mod => left.modulo(&right),
                BinaryOp::Min => left.minimum(&right),
                _ => left.maximum(&right),
            }
        }
        ValueKind::Select(operands) if !is_float(value, model) => match chosen(operands) {
            Some(chosen) => return index_parts(chosen, model),
            None => return data(value, model),
        },
        ValueKind::Call(Builtin::Abs, arguments) if !is_float(&arguments[0], model) => {
            let inner = index_parts(&arguments[0], model)?;
            let plain = |atom: &Atom| matches!(atom, Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..));
            if inner.any_atom(&mut |atom| !plain(atom)) {
                // The maximum contains the whole expression twice, so nested `abs` calls would grow
                // exponentially.
                return data(value, model);
            }
            inner.maximum(&inner.scale(-1))
        }
        ValueKind::Cast(dtype, inner) if dtype.is_integer() && is_number(inner) => {
            let number = match inner.kind {
                ValueKind::Int(number, _) => number,
                _ => i128::from(index(inner, model)?.as_constant()?),
            };
            let Number::Int(number) = Number::Int(number).convert(*dtype) else { return None };
            i64::try_from(number).map_or_else(|_| IndexExpr::atom(Atom::Overflow), IndexExpr::constant)
        }
        // Subscripts are exact whatever the types in them, so a cast to int32 or int64 changes
        // nothing.
        ValueKind::Cast(DType::Int32 | DType::Int64, inner) if is_pure_subscript(inner, model) => {
            return index_parts(inner, model);
        }
        _ => return data(value, model),
    })
}

/// Returns true when the value consists only of integer literals. A scalar argument can be such a
/// value after one or several calls.
fn is_number(value: &Value) -> bool {
    let plain = |operand: &Value| {
        is_number(operand) && !matches!(operand.kind, ValueKind::Int(_, suffix) if suffix != Suffix::None)
    };
    match &value.kind {
        ValueKind::Int(..) => true,
        ValueKind::Unary(UnaryOp::Neg, operand) => plain(operand),
        ValueKind::Binary(op, operands) => is_index_operator(*op) && operands.iter().all(plain),
        ValueKind::Select(operands) => chosen(operands).is_some() && operands[1..].iter().all(plain),
        ValueKind::Cast(dtype, operand) => dtype.is_integer() && *dtype != DType::Bool && is_number(operand),
        _ => false,
    }
}

fn is_index_operator(op: BinaryOp) -> bool {
    !op.is_comparison() && !op.is_logical() && !op.is_on_integers()
}

fn is_float(value: &Value, model: &Model) -> bool {
    type_of(value, model).or_default().is_some_and(DType::is_float)
}

/// The symbol of an integer scalar or of a derived size.
fn scalar_symbol(value: &Value, model: &Model) -> Option<SymbolId> {
    if let ValueKind::Size(symbol) = value.kind {
        let is_derived = model.symbols[symbol.index()].kind == SymbolKind::Derived;
        return is_derived.then_some(symbol);
    }
    let ValueKind::Scalar(scalar) = value.kind else { return None };
    let at = model.symbols.iter().position(|symbol| symbol.kind == SymbolKind::Scalar(scalar))?;
    Some(SymbolId(at as u32))
}

/// Records that an integer scalar or a derived size which multiplies or divides an index is
/// positive; the check of sizes refuses other values.
fn assume_positive(factor: &Value, model: &mut Model) {
    if let ValueKind::Binary(BinaryOp::Mul, operands) = &factor.kind {
        operands.iter().for_each(|operand| assume_positive(operand, model));
    }
    if let ValueKind::Cast(_, operand) = &factor.kind {
        assume_positive(operand, model);
    }
    if let Some(symbol) = scalar_symbol(factor, model) {
        let least = &mut model.symbols[symbol.index()].least;
        *least = Some(least.unwrap_or(1).max(1));
        // More may follow from the preconditions now.
        model.preconditions.edit();
    }
}

/// Lowers a subscript that depends on data.
fn data(value: &Value, model: &mut Model) -> Option<IndexExpr> {
    let (inner, declared) = match &value.kind {
        ValueKind::Bounded(parts) => {
            let (from, to) = (bound(&parts[1], model)?, bound(&parts[2], model)?);
            (&parts[0], Some((from, to)))
        }
        _ => (value, None),
    };
    let dtype = match type_of(inner, model) {
        // Operators on the bits of variables are exact, as all arithmetic of subscripts.
        PartialType::Index => DType::Int64,
        ty => ty.or_default().unwrap_or(DType::Int32),
    };
    if dtype.is_float() {
        model.report(
            Diagnostic::error(
                Code::TypeMismatch,
                inner.span,
                format!("a subscript must be an integer, and this is {dtype}"),
            )
            .help("convert it: `int32(…)`"),
        );
        return None;
    }
    if is_pure_subscript(inner, model) {
        if declared.is_some() {
            model.report(
                Diagnostic::error(
                    Code::InvalidRange,
                    value.span,
                    "a range is given to a name that is computed from variables",
                )
                .help("give the range to the variables themselves"),
            );
            return None;
        }
        return index_parts(inner, model);
    }
    let value = strip_widening(lower_as(inner, dtype, model)?);
    Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared }))))
}

/// Removes casts that preserve every value.
fn strip_widening(value: Expr) -> Expr {
    match value.kind {
        ExprKind::Cast(inner) if inner.dtype.fits_in(value.dtype) && !inner.dtype.is_float() => {
            strip_widening(*inner)
        }
        kind => Expr { dtype: value.dtype, kind },
    }
}

// --- values ---

/// Returns true when the value consists only of variables, sizes, extents, integer scalars and
/// literals, and is not a mere literal. Such a value is an index, and exact. A cast to int64
/// preserves every index; a cast to a narrower type wraps.
pub(super) fn is_pure_index(value: &Value, model: &Model) -> bool {
    is_index_ignoring_casts(&[DType::Int64], false, value, model)
}

/// Returns true when the value consists of the same parts as an index, but with operators on bits
/// or powers that no index has, such as `2 ** i`. It is computed in 64 bits, and converted once.
fn is_bits_of_index(value: &Value, model: &Model) -> bool {
    has_bit_operation(value)
        && type_of(value, model) != PartialType::Int
        && is_index_ignoring_casts(&[DType::Int64], true, value, model)
}

/// Like `is_pure_index`, for a value inside a subscript, where a cast to int32 changes nothing
/// either.
pub(super) fn is_pure_subscript(value: &Value, model: &Model) -> bool {
    is_index_ignoring_casts(&[DType::Int32, DType::Int64], false, value, model)
}

/// Returns true when the value is an index after casts to the given types are ignored. `bits`
/// allows every operator on bits.
fn is_index_ignoring_casts(casts: &[DType], bits: bool, value: &Value, model: &Model) -> bool {
    fn parts(casts: &[DType], bits: bool, value: &Value, model: &Model, any: &mut bool) -> bool {
        let mut part = |operand: &Value| parts(casts, bits, operand, model, any);
        match &value.kind {
            ValueKind::Int(_, Suffix::None) => true,
            ValueKind::Var(_) | ValueKind::Size(_) | ValueKind::Extent(..) => {
                *any = true;
                true
            }
            ValueKind::Scalar(scalar) => {
                *any = true;
                matches!(model.scalars[scalar.index()].dtype, DType::Int32 | DType::Int64)
            }
            ValueKind::Unary(UnaryOp::Neg | UnaryOp::Complement, operand) => part(operand),
            ValueKind::Binary(op, operands) if op.is_on_integers() => match index_form(*op, operands) {
                Some((_, at)) => part(&operands[at]),
                None => bits && operands.iter().all(part),
            },
            ValueKind::Cast(dtype, operand) if casts.contains(dtype) => part(operand),
            ValueKind::Binary(op, operands) if is_index_operator(*op) => operands.iter().all(part),
            _ => false,
        }
    }
    let mut any = false;
    parts(casts, bits, value, model, &mut any) && any
}

/// Lowers the value to a typed expression of `wanted`, which is a compute type, or returns `None`
/// after a report.
pub(super) fn lower_as(value: &Value, wanted: DType, model: &mut Model) -> Option<Expr> {
    if is_pure_index(value, model) && wanted != DType::Bool {
        // The product of a scalar and a variable is a stride only inside a subscript.
        let outside = std::mem::replace(&mut model.in_value, true);
        let lowered = index(value, model);
        model.in_value = outside;
        let lowered = lowered?;
        return Some(Expr { dtype: wanted, kind: ExprKind::Index(Box::new(lowered)) });
    }
    let own = match type_of(value, model) {
        _ if wanted != DType::Bool && is_bits_of_index(value, model) => DType::Int64,
        PartialType::Definite(dtype) => dtype,
        // A literal condition is not a truth value: it is computed as an int32 and compared with 0.
        _ if wanted == DType::Bool => DType::Int32,
        // Operators on bits are for integers, also where a float is wanted.
        PartialType::Int | PartialType::Index if wanted.is_float() && has_bit_operation(value) => {
            DType::Int64
        }
        _ => wanted,
    };
    let expr = lower_in_own_type(value, own, model)?;
    Some(expr.cast(own.compute_type()).cast(wanted))
}

/// Lowers the value in its own type.
fn lower_in_own_type(value: &Value, own: DType, model: &mut Model) -> Option<Expr> {
    let compute = own.compute_type();
    Some(match &value.kind {
        ValueKind::Int(number, _) => integer_literal(*number, value, own, model)?,
        ValueKind::Float(number, _) => Expr::literal(compute, Number::Float(*number)),
        ValueKind::Bool(truth) => Expr::literal(own, Number::Int(*truth as i128)),
        ValueKind::Var(_) | ValueKind::Size(_) | ValueKind::Extent(..) => {
            let lowered = index(value, model)?;
            Expr { dtype: own, kind: ExprKind::Index(Box::new(lowered)) }
        }
        ValueKind::Scalar(scalar) => Expr { dtype: own, kind: ExprKind::Scalar(*scalar) },
        ValueKind::Load(tensor, subscripts) => {
            let outside = std::mem::replace(&mut model.in_value, false);
            let indices: Option<Vec<IndexExpr>> =
                subscripts.iter().map(|subscript| index(subscript, model)).collect();
            model.in_value = outside;
            let access = Access { tensor: *tensor, indices: indices?, origin: value.span.origin() };
            Expr { dtype: own, kind: ExprKind::Load(access) }
        }
        ValueKind::Call(builtin, arguments) if builtin.is_on_integers() => {
            integer_call(*builtin, arguments, own, model)?
        }
        ValueKind::Call(builtin, arguments) => call(*builtin, arguments, compute, model)?,
        ValueKind::Cast(dtype, operand) => cast(*dtype, operand, model)?,
        ValueKind::CastLike(tensor, operand) => cast(model.tensor(*tensor).dtype?, operand, model)?,
        ValueKind::Neutral(op) => Expr::literal(compute, tilewright_ir::arithmetic::neutral(*op, own)),
        ValueKind::Saturate(dtype, operand) => saturate(*dtype, operand, model)?,
        ValueKind::Unary(UnaryOp::Not, operand) => {
            let operand = condition(operand, model)?;
            Expr { dtype: DType::Bool, kind: ExprKind::Unary(UnaryOp::Not, Box::new(operand)) }
        }
        ValueKind::Unary(UnaryOp::Neg, operand) => match &operand.kind {
            ValueKind::Int(number, _) => integer_literal(-number, value, own, model)?,
            _ => {
                let operand = lower_as(operand, compute, model)?;
                Expr { dtype: compute, kind: ExprKind::Unary(UnaryOp::Neg, Box::new(operand)) }
            }
        },
        ValueKind::Unary(UnaryOp::Complement, operand) => complement(operand, own, model)?,
        ValueKind::Binary(op, operands) if op.is_logical() => {
            let (left, right) = (condition(&operands[0], model), condition(&operands[1], model));
            Expr::binary(*op, left?, right?)
        }
        ValueKind::Binary(op, operands) if op.is_comparison() => comparison(*op, operands, model)?,
        ValueKind::Binary(op, operands) if op.is_on_integers() => {
            if !op.is_shift() {
                common_type(operands.as_slice(), value, model)?;
            }
            operation(*op, operands, value, own, model)?
        }
        ValueKind::WideningProduct(operands) => {
            common_type(operands.as_slice(), value, model)?;
            widening_product(operands, value, own, model)?
        }
        ValueKind::Binary(op, operands) => {
            common_type(operands.as_slice(), value, model)?;
            let (left, right) =
                (lower_as(&operands[0], compute, model), lower_as(&operands[1], compute, model));
            Expr::binary(*op, left?, right?)
        }
        ValueKind::Select(operands) => {
            common_type(&operands[1..], value, model)?;
            let chosen = condition(&operands[0], model);
            let (then, otherwise) =
                (lower_as(&operands[1], compute, model), lower_as(&operands[2], compute, model));
            Expr { dtype: compute, kind: ExprKind::Select(Box::new([chosen?, then?, otherwise?])) }
        }
        ValueKind::Bounded(parts) => lower_in_own_type(&parts[0], own, model)?,
    })
}

fn integer_literal(number: i128, value: &Value, own: DType, model: &mut Model) -> Option<Expr> {
    if let Some((low, high)) = own.integer_bounds()
        && own != DType::Bool
        && !(low..=high).contains(&number)
    {
        let message = format!("{number} does not fit {own}");
        let help = match i64::try_from(number) {
            Ok(_) => "a literal takes the type of the other operand or of the target; use a wider type \
                      there: `int32(…)`"
                .to_owned(),
            Err(_) => format!("this number is a uint64: write `{number}ul`"),
        };
        model.report(Diagnostic::error(Code::TypeMismatch, value.span, message).help(help));
        return None;
    }
    Some(Expr::literal(own.compute_type(), Number::Int(number)))
}

fn cast(dtype: DType, operand: &Value, model: &mut Model) -> Option<Expr> {
    if dtype == DType::Bool {
        return condition(operand, model);
    }
    if let ValueKind::Int(number, Suffix::None) = operand.kind {
        return Some(Expr::literal(dtype, Number::Int(number)));
    }
    let own = exact_type(operand, dtype, model);
    Some(lower_as(operand, own.compute_type(), model)?.cast(dtype))
}

/// The type in which the operand of a conversion to `dtype` is computed.
fn exact_type(operand: &Value, dtype: DType, model: &Model) -> DType {
    match type_of(operand, model) {
        // The exact value of a literal is converted: uint8(300) is 44. The same holds for an index.
        PartialType::Int => DType::Int64,
        _ if is_pure_index(operand, model) => DType::Int64,
        PartialType::Index if has_bit_operation(operand) => DType::Int64,
        PartialType::Float => DType::Float64,
        ty => ty.or_default().unwrap_or(dtype),
    }
}

/// Warns of `uint8_sat(a + b)` with two uint8 numbers: their sum wraps before it is saturated.
fn warn_of_useless_saturation(dtype: DType, operand: &Value, own: DType, model: &mut Model) {
    let grows = matches!(operand.kind, ValueKind::Binary(op, _) if is_growing(op));
    if grows && own.is_integer() && own.fits_in(dtype) && !is_pure_index(operand, model) {
        let message = format!("this is computed in {own}, where it may wrap, before it is saturated");
        let help = "convert an operand to a wider type first: `int32(…)`";
        model.report(Diagnostic::warning(Code::TypeMismatch, operand.span, message).help(help));
    }
}

/// Lowers a conversion that gives numbers beyond the ends of an integer type the nearest end.
/// Conversions of floats do so anyway. Integers are bounded in their own type, by the bounds that
/// they can exceed.
fn saturate(dtype: DType, operand: &Value, model: &mut Model) -> Option<Expr> {
    let own = exact_type(operand, dtype, model).compute_type();
    warn_of_useless_saturation(dtype, operand, own, model);
    let value = lower_as(operand, own, model)?;
    let (Some((low, high)), Some((least, most))) = (dtype.integer_bounds(), own.integer_bounds()) else {
        return Some(value.cast(dtype));
    };
    let bound = |number| Expr::literal(own, Number::Int(number));
    let value = if least < low { Expr::binary(BinaryOp::Max, value, bound(low)) } else { value };
    let value = if most > high { Expr::binary(BinaryOp::Min, value, bound(high)) } else { value };
    Some(value.cast(dtype))
}

fn condition(value: &Value, model: &mut Model) -> Option<Expr> {
    let dtype = type_of(value, model).or_default().unwrap_or(DType::Int32);
    if dtype == DType::Bool {
        return lower_as(value, DType::Bool, model);
    }
    // The exact value of an index is compared.
    let exact = is_pure_index(value, model) || is_bits_of_index(value, model);
    let compute = if exact { DType::Int64 } else { dtype.compute_type() };
    let number = lower_as(value, compute, model)?;
    Some(Expr::binary(BinaryOp::NotEqual, number, Expr::literal(compute, Number::Int(0))))
}

fn comparison(op: BinaryOp, operands: &[Value; 2], model: &mut Model) -> Option<Expr> {
    let ty = common_type(operands.as_slice(), &operands[0], model)?;
    let exact = operands.iter().all(|operand| {
        is_pure_index(operand, model)
            || is_bits_of_index(operand, model)
            || matches!(type_of(operand, model), PartialType::Int)
    });
    let ordering = !matches!(op, BinaryOp::Equal | BinaryOp::NotEqual);
    let truth = operands.iter().find(|operand| type_of(operand, model) == PartialType::Definite(DType::Bool));
    if let (true, Some(truth)) = (ordering, truth) {
        let message = "this is a truth value, and truth values have no order";
        model.report(
            Diagnostic::error(Code::TypeMismatch, truth.span, message)
                .help("comparisons do not chain: write `0 <= i && i < N`"),
        );
        return None;
    }
    let dtype = if exact { DType::Int64 } else { ty.or_default().unwrap_or(DType::Int32).compute_type() };
    let (left, right) = (lower_as(&operands[0], dtype, model), lower_as(&operands[1], dtype, model));
    Some(Expr::binary(op, left?, right?))
}

fn common_type(operands: &[Value], whole: &Value, model: &mut Model) -> Option<PartialType> {
    let mut common = PartialType::Open;
    for operand in operands {
        match promote(common, type_of(operand, model)) {
            Ok(ty) => common = ty,
            Err(NoCommonType(left, right)) => {
                let message = format!("no type holds both {left} and {right}");
                model.report(
                    Diagnostic::error(Code::TypeMismatch, whole.span, message)
                        .help("convert one of them: `int64(…)`"),
                );
                return None;
            }
        }
    }
    Some(common)
}

fn call(builtin: Builtin, arguments: &[Value], compute: DType, model: &mut Model) -> Option<Expr> {
    let dtype = if builtin.is_predicate() {
        let own = type_of(&arguments[0], model).or_default().unwrap_or(DType::Float32);
        if own.is_float() { own.compute_type() } else { DType::Float32 }
    } else {
        compute
    };
    let lowered: Option<Vec<Expr>> =
        arguments.iter().map(|argument| lower_as(argument, dtype, model)).collect();
    let mut lowered = lowered?;
    let rounds =
        matches!(builtin, Builtin::Floor | Builtin::Ceil | Builtin::Round | Builtin::Rint | Builtin::Trunc);
    if rounds && !dtype.is_float() {
        return lowered.pop();
    }
    let dtype = if builtin.is_predicate() { DType::Bool } else { dtype };
    Some(Expr { dtype, kind: ExprKind::Call(builtin, lowered) })
}
