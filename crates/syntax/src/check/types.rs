//! Infers the types of values and tensors.
//!
//! A literal has no type of its own and takes the type of the other operands; alone it is int32 or
//! float32. A tensor has the type of its first statement with a definite type. Mixed operands take
//! a type that can represent both, and a float type takes precedence over any integer type.

use tilewright_ir::{BinaryOp, Builtin, DType, TensorId};

use super::bits::widened;
use super::model::Model;
use super::value::{Value, ValueKind};
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;
use tilewright_ir::ReduceOp;

/// The type of a value, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PartialType {
    /// The type depends on a tensor whose type is still open.
    Open,
    /// The value consists of integer literals.
    Int,
    /// The value consists of index variables and sizes: int32 where nothing else decides.
    Index,
    /// The value consists of literals, including float literals.
    Float,
    /// The type is definite.
    Definite(DType),
}

impl PartialType {
    /// The definite type, with int32 and float32 for literals.
    pub fn or_default(self) -> Option<DType> {
        match self {
            PartialType::Open => None,
            PartialType::Int | PartialType::Index => Some(DType::Int32),
            PartialType::Float => Some(DType::Float32),
            PartialType::Definite(dtype) => Some(dtype),
        }
    }
}

/// Two types without a common type that can represent both.
#[derive(Clone, Copy, Debug)]
pub(super) struct NoCommonType(pub DType, pub DType);

/// The type of an operation on operands of these types.
pub(super) fn promote(left: PartialType, right: PartialType) -> Result<PartialType, NoCommonType> {
    Ok(match (left, right) {
        (PartialType::Open, other) | (other, PartialType::Open) => other,
        (PartialType::Definite(left), PartialType::Definite(right)) => {
            PartialType::Definite(promote_types(left, right)?)
        }
        (PartialType::Definite(DType::Bool), other) | (other, PartialType::Definite(DType::Bool)) => other,
        (PartialType::Definite(dtype), PartialType::Index)
        | (PartialType::Index, PartialType::Definite(dtype)) => {
            PartialType::Definite(promote_types(dtype, DType::Int32)?)
        }
        (PartialType::Definite(dtype), PartialType::Float)
        | (PartialType::Float, PartialType::Definite(dtype))
            if !dtype.is_float() =>
        {
            PartialType::Definite(DType::Float32)
        }
        (PartialType::Definite(dtype), _) | (_, PartialType::Definite(dtype)) => PartialType::Definite(dtype),
        (PartialType::Float, _) | (_, PartialType::Float) => PartialType::Float,
        (PartialType::Index, _) | (_, PartialType::Index) => PartialType::Index,
        (PartialType::Int, PartialType::Int) => PartialType::Int,
    })
}

fn promote_types(left: DType, right: DType) -> Result<DType, NoCommonType> {
    if left.fits_in(right) {
        return Ok(right);
    }
    if right.fits_in(left) {
        return Ok(left);
    }
    match (left.is_float(), right.is_float()) {
        (true, false) => Ok(left),
        (false, true) => Ok(right),
        // These are float16 and bfloat16.
        (true, true) => Ok(DType::Float32),
        (false, false) => [DType::Int16, DType::Int32, DType::Int64]
            .into_iter()
            .find(|wide| left.fits_in(*wide) && right.fits_in(*wide))
            .ok_or(NoCommonType(left, right)),
    }
}

/// The type of a value. Operands without a common type count as open here, and lowering reports
/// them.
pub(super) fn type_of(value: &Value, model: &Model) -> PartialType {
    let common = |operands: &[Value]| {
        operands.iter().fold(PartialType::Open, |ty, operand| {
            promote(ty, type_of(operand, model)).unwrap_or(PartialType::Open)
        })
    };
    match &value.kind {
        ValueKind::Int(_, suffix) => match suffix {
            Suffix::Unsigned => PartialType::Definite(DType::UInt32),
            Suffix::Long => PartialType::Definite(DType::Int64),
            Suffix::UnsignedLong => PartialType::Definite(DType::UInt64),
            _ => PartialType::Int,
        },
        ValueKind::Float(_, Suffix::Float) => PartialType::Definite(DType::Float32),
        ValueKind::Float(..) => PartialType::Float,
        ValueKind::Bool(_) => PartialType::Definite(DType::Bool),
        ValueKind::Var(_) | ValueKind::Size(_) | ValueKind::Extent(..) => PartialType::Index,
        ValueKind::Scalar(id) => PartialType::Definite(model.scalars[id.index()].dtype),
        ValueKind::Load(tensor, _) => {
            model.tensor(*tensor).dtype.map_or(PartialType::Open, PartialType::Definite)
        }
        ValueKind::Call(builtin, arguments) => call_type(*builtin, common(arguments)),
        ValueKind::Cast(dtype, _) | ValueKind::Saturate(dtype, _) => PartialType::Definite(*dtype),
        ValueKind::CastLike(tensor, _) => {
            model.tensor(*tensor).dtype.map_or(PartialType::Open, PartialType::Definite)
        }
        ValueKind::Neutral(_) => PartialType::Open,
        ValueKind::Unary(tilewright_ir::UnaryOp::Not, _) => PartialType::Definite(DType::Bool),
        ValueKind::Unary(tilewright_ir::UnaryOp::Complement, operand) => type_of(operand, model),
        ValueKind::Unary(_, operand) => arithmetic(type_of(operand, model)),
        ValueKind::Binary(op, _) if op.is_comparison() || op.is_logical() => {
            PartialType::Definite(DType::Bool)
        }
        // The count of a shift does not decide its type.
        ValueKind::Binary(op, operands) if op.is_shift() => arithmetic(type_of(&operands[0], model)),
        ValueKind::Binary(op, operands) => {
            let ty = common(operands.as_slice());
            let keeps_truth = matches!(
                op,
                BinaryOp::Min | BinaryOp::Max | BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor
            );
            if keeps_truth { ty } else { arithmetic(ty) }
        }
        ValueKind::WideningProduct(operands) => match arithmetic(common(operands.as_slice())) {
            PartialType::Int | PartialType::Index => PartialType::Definite(DType::Int64),
            PartialType::Definite(dtype) => PartialType::Definite(widened(dtype).unwrap_or(dtype)),
            other => other,
        },
        ValueKind::Select(operands) => common(&operands[1..]),
        ValueKind::Bounded(operands) => type_of(&operands[0], model),
    }
}

/// Arithmetic on truth values is done in int32, so that sums count them.
fn arithmetic(ty: PartialType) -> PartialType {
    if ty == PartialType::Definite(DType::Bool) { PartialType::Definite(DType::Int32) } else { ty }
}

fn call_type(builtin: Builtin, argument: PartialType) -> PartialType {
    if builtin.is_predicate() {
        return PartialType::Definite(DType::Bool);
    }
    if builtin == Builtin::Philox {
        return PartialType::Definite(DType::UInt32);
    }
    if builtin.is_on_integers() && matches!(argument, PartialType::Int | PartialType::Index) {
        // The bits of a number without a type are those of an int32.
        return PartialType::Definite(DType::Int32);
    }
    if builtin.is_on_integers() {
        return arithmetic(argument);
    }
    let keeps_integers = matches!(
        builtin,
        Builtin::Abs | Builtin::Floor | Builtin::Ceil | Builtin::Round | Builtin::Rint | Builtin::Trunc
    );
    match argument {
        PartialType::Definite(dtype) if !dtype.is_float() && !keeps_integers => {
            PartialType::Definite(DType::Float32)
        }
        PartialType::Int | PartialType::Index if !keeps_integers => PartialType::Float,
        other => arithmetic(other),
    }
}

/// Infers the type of every tensor.
pub(super) fn infer(model: &mut Model) {
    propagate_poison(model);
    while set_definite_types(model) || set_first_literal_type(model) {}
    for tensor in &mut model.tensors {
        // Only tensors that are defined solely in terms of themselves are left; any type is valid
        // for them.
        tensor.dtype.get_or_insert(DType::Float32);
    }
}

/// The type of a tensor by the statements that are resolved so far.
pub(super) fn type_so_far(model: &mut Model, id: TensorId) -> Option<DType> {
    while model.tensor(id).dtype.is_none() && set_definite_types(model) {}
    let own = (0..model.statements.len()).filter(|at| model.statements[*at].target == id);
    let joined = own.fold(PartialType::Open, |ty, at| promote(ty, stored_type(model, at)).unwrap_or(ty));
    model.tensor(id).dtype.or(joined.or_default())
}

/// Poisons every tensor that is computed from a poisoned tensor.
fn propagate_poison(model: &mut Model) {
    loop {
        let poisoned = |model: &Model, value: &Value| {
            let mut found = false;
            value.walk(&mut |node| {
                found |= matches!(&node.kind, ValueKind::Load(tensor, _) | ValueKind::Extent(tensor, _) if model.tensor(*tensor).poisoned);
            });
            found
        };
        let mut spread = false;
        for at in 0..model.statements.len() {
            let statement = &model.statements[at];
            let target = statement.target.index();
            let mut parts = statement.resolved.indices.iter().chain([&statement.resolved.value]);
            if !model.tensors[target].poisoned && parts.any(|value| poisoned(model, value)) {
                model.tensors[target].poisoned = true;
                spread = true;
            }
        }
        if !spread {
            return;
        }
    }
}

/// Sets the types that follow from statements with a definite type. Returns true if a type was new.
fn set_definite_types(model: &mut Model) -> bool {
    let mut found = false;
    for at in 0..model.statements.len() {
        let target = model.statements[at].target;
        if model.tensor(target).dtype.is_none()
            && let PartialType::Definite(dtype) = stored_type(model, at)
        {
            model.tensors[target.index()].dtype = Some(dtype);
            found = true;
        }
    }
    found
}

/// Sets the type of the first tensor that only literals define. Returns true if there was such a
/// tensor.
fn set_first_literal_type(model: &mut Model) -> bool {
    let open = |model: &Model, target: TensorId| model.tensor(target).dtype.is_none();
    for at in 0..model.statements.len() {
        let target = model.statements[at].target;
        if !open(model, target) {
            continue;
        }
        // Among several literal statements a float decides: `s() = 0` and `s() += 0.5` make a
        // float32.
        let all = (0..model.statements.len()).filter(|other| model.statements[*other].target == target);
        let joined =
            all.fold(PartialType::Open, |ty, other| promote(ty, stored_type(model, other)).unwrap_or(ty));
        if let Some(dtype) = joined.or_default() {
            model.tensors[target.index()].dtype = Some(dtype);
            return true;
        }
    }
    false
}

/// The type that a statement alone would give its target.
fn stored_type(model: &Model, at: usize) -> PartialType {
    let statement = &model.statements[at];
    let ty = type_of(&statement.resolved.value, model);
    match statement.op {
        AssignOp::Reduce { op: ReduceOp::Add | ReduceOp::Mul, .. } => arithmetic(ty),
        _ => ty,
    }
}

/// Refuses a value that its target cannot represent.
pub(super) fn check_store(model: &mut Model, at: usize) -> Option<DType> {
    let statement = &model.statements[at];
    let target = model.tensor(statement.target);
    if target.poisoned {
        return None;
    }
    let wanted = target.dtype?;
    let value = &statement.resolved.value;
    let fits = match type_of(value, model) {
        PartialType::Open | PartialType::Int => true,
        PartialType::Index => wanted.is_float() || DType::Int32.fits_in(wanted),
        PartialType::Float => wanted.is_float(),
        PartialType::Definite(found) => found.fits_in(wanted) || (!found.is_float() && wanted.is_float()),
    };
    if fits {
        return Some(wanted);
    }
    let found = type_of(value, model).or_default()?;
    let message = format!("a {found} value does not fit `{}`, which holds {wanted}", target.text);
    let origin = match target.declared_dtype {
        Some(_) => "its type is declared here",
        None => "its type comes from its first statement",
    };
    let diagnostic = Diagnostic::error(Code::TypeMismatch, value.span, message)
        .label(format!("this is {found}"))
        .secondary_label(target.span, origin)
        .help(format!("convert it: `{wanted}(…)`"));
    model.report(diagnostic);
    None
}

/// Returns true for the operators whose result may be larger than both operands.
pub(super) fn is_growing(op: BinaryOp) -> bool {
    matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::ShiftLeft | BinaryOp::Power)
}
