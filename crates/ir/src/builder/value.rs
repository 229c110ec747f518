//! Defines [`Value`], a value that the user of a builder writes with operators.
//!
//! Operands must have the same type. Literals and indices have no type of their own and take the
//! type of the other operand; alone they are int32 or float32. Elements of 16-bit floats are
//! computed in float32.

use std::ops::{Add, BitAnd, BitOr, BitXor, Div, Mul, Neg, Not, Rem, Shl, Shr, Sub};

use super::error::TypeError;
use super::index::{Index, Indices, Size, Var};
use crate::dtype::DType;
use crate::expr::{Access, Expr, ExprKind, Origin};
use crate::index::IndexExpr;
use crate::number::Number;
use crate::operators::{BinaryOp, Builtin, UnaryOp};
use crate::program::TensorId;

/// A tensor of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tensor {
    pub(super) id: TensorId,
    pub(super) dtype: DType,
}

impl Tensor {
    /// The element at these indices.
    pub fn at(self, indices: impl Indices) -> Element {
        Element { tensor: self, indices: indices.indices() }
    }
}

/// One element of a tensor: the target of a statement, or a value.
#[derive(Clone, Debug)]
pub struct Element {
    pub(super) tensor: Tensor,
    pub(super) indices: Vec<Index>,
}

/// A value that a statement computes.
#[derive(Clone, Debug)]
pub struct Value(Result<ValueKind, TypeError>);

#[derive(Clone, Debug)]
enum ValueKind {
    /// A value of a definite type, which is a compute type or bool.
    Typed(Expr),
    /// Arithmetic of integers, sizes and variables, without a type yet.
    Index(IndexExpr),
    /// A float, without a type yet.
    Float(f64),
}

impl From<Element> for Value {
    fn from(element: Element) -> Value {
        let indices: Result<Vec<IndexExpr>, TypeError> =
            element.indices.into_iter().map(|index| index.0).collect();
        let load = |indices| {
            let access = Access { tensor: element.tensor.id, indices, origin: Origin::default() };
            let dtype = element.tensor.dtype;
            ValueKind::Typed(Expr { dtype, kind: ExprKind::Load(access) }.cast(dtype.compute_type()))
        };
        Value(indices.map(load))
    }
}

impl From<Index> for Value {
    fn from(index: Index) -> Value {
        Value(index.0.map(ValueKind::Index))
    }
}

impl From<Var> for Value {
    fn from(var: Var) -> Value {
        Index::from(var).into()
    }
}

impl From<Size> for Value {
    fn from(size: Size) -> Value {
        Index::from(size).into()
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Index::from(number).into()
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Value {
        Value(Ok(ValueKind::Float(number)))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value::typed(Expr::literal(DType::Bool, Number::Int(truth.into())))
    }
}

impl ValueKind {
    fn dtype(&self) -> Option<DType> {
        match self {
            ValueKind::Typed(expr) => Some(expr.dtype),
            ValueKind::Index(_) | ValueKind::Float(_) => None,
        }
    }

    /// The value in a compute type.
    fn typed(self, dtype: DType) -> Result<Expr, TypeError> {
        match self {
            ValueKind::Typed(expr) if expr.dtype == dtype => Ok(expr),
            ValueKind::Typed(expr) => {
                let message = format!("{} where {dtype} is needed: convert it with `cast`", expr.dtype);
                Err(TypeError(message))
            }
            ValueKind::Float(number) if dtype.is_float() => Ok(Expr::literal(dtype, Number::Float(number))),
            ValueKind::Float(number) => Err(TypeError(format!("{number} is not of the type {dtype}"))),
            ValueKind::Index(index) => typed_index(index, dtype),
        }
    }

    /// The value in the type that it has alone.
    fn with_default_type(self) -> Result<Expr, TypeError> {
        let alone = if matches!(self, ValueKind::Float(_)) { DType::Float32 } else { DType::Int32 };
        let dtype = self.dtype().unwrap_or(alone);
        self.typed(dtype)
    }
}

fn typed_index(index: IndexExpr, dtype: DType) -> Result<Expr, TypeError> {
    let fits = |number: i64| match dtype.integer_bounds() {
        Some((low, high)) => dtype != DType::Bool && (low..=high).contains(&i128::from(number)),
        None => true,
    };
    match index.as_constant() {
        Some(number) if fits(number) => Ok(Expr::literal(dtype, Number::Int(number.into()))),
        Some(number) => Err(TypeError(format!("{number} is not of the type {dtype}"))),
        None if dtype.is_float() || matches!(dtype, DType::Int32 | DType::Int64) => {
            Ok(Expr { dtype, kind: ExprKind::Index(Box::new(index)) })
        }
        None => Err(TypeError(format!("an index where {dtype} is needed: convert it with `cast`"))),
    }
}

/// Two values of one type. Without a typed operand, `exact` is the type of two indices.
fn with_common_type(left: ValueKind, right: ValueKind, exact: DType) -> Result<(Expr, Expr), TypeError> {
    let is_float = matches!(left, ValueKind::Float(_)) || matches!(right, ValueKind::Float(_));
    let alone = if is_float { DType::Float32 } else { exact };
    let dtype = left.dtype().or(right.dtype()).unwrap_or(alone);
    Ok((left.typed(dtype)?, right.typed(dtype)?))
}

impl Value {
    pub(super) fn typed(expr: Expr) -> Value {
        Value(Ok(ValueKind::Typed(expr)))
    }

    /// The value as it is stored into a tensor of this type. A type that holds every value of the
    /// value's own type needs no cast.
    pub(super) fn stored_as(self, dtype: DType) -> Result<Expr, TypeError> {
        let wanted = dtype.compute_type();
        match self.0? {
            ValueKind::Typed(expr) if expr.dtype.fits_in(wanted) => Ok(expr.cast(wanted)),
            kind => kind.typed(wanted),
        }
    }

    /// The value as an integer of its own type.
    pub(super) fn into_integer(self) -> Result<Expr, TypeError> {
        let expr = self.0?.with_default_type()?;
        match expr.dtype.is_float() {
            true => Err(TypeError(format!("a subscript must be an integer, and this is {}", expr.dtype))),
            false => Ok(expr),
        }
    }

    fn binary(self, op: BinaryOp, other: Value) -> Value {
        let build = || match (self.0?, other.0?, index_operator(op)) {
            (ValueKind::Index(left), ValueKind::Index(right), Some(join)) => {
                Ok(ValueKind::Index(join(&left, &right)))
            }
            (left, right, _) => {
                let (left, right) = with_common_type(left, right, DType::Int64)?;
                refuse_negative_number(op, &right)?;
                match accepts_type(op, left.dtype) {
                    true => Ok(ValueKind::Typed(Expr::binary(op, left, right))),
                    false => {
                        Err(TypeError(format!("`{}` does not take {} operands", op.symbol(), left.dtype)))
                    }
                }
            }
        };
        Value(build())
    }

    /// Converts the value to a type. Integers wrap, and floats are rounded or truncated.
    pub fn cast(self, dtype: DType) -> Value {
        let build = || {
            let own = match self.0? {
                ValueKind::Typed(expr) => expr,
                // The exact value is converted.
                kind @ ValueKind::Index(_) => kind.typed(DType::Int64)?,
                kind @ ValueKind::Float(_) => kind.typed(DType::Float64)?,
            };
            if dtype == DType::Bool && own.dtype != DType::Bool {
                let zero = Expr::literal(own.dtype, Number::Int(0));
                return Ok(ValueKind::Typed(Expr::binary(BinaryOp::NotEqual, own, zero)));
            }
            Ok(ValueKind::Typed(own.cast(dtype).cast(dtype.compute_type())))
        };
        Value(build())
    }

    /// A mathematical function of these arguments.
    pub fn call<const N: usize>(builtin: Builtin, arguments: [Value; N]) -> Value {
        let build = || {
            let kinds: Vec<ValueKind> =
                arguments.into_iter().map(|value| value.0).collect::<Result<_, _>>()?;
            let dtype = kinds.iter().find_map(ValueKind::dtype).unwrap_or(DType::Float32);
            if N != builtin.arity() || !takes_type(builtin, dtype) {
                return Err(TypeError(format!(
                    "`{}` does not take {N} values of type {dtype}",
                    builtin.name()
                )));
            }
            let arguments: Result<Vec<Expr>, TypeError> =
                kinds.into_iter().map(|kind| kind.typed(dtype)).collect();
            let dtype = if builtin.is_predicate() { DType::Bool } else { dtype };
            Ok(ValueKind::Typed(Expr { dtype, kind: ExprKind::Call(builtin, arguments?) }))
        };
        Value(build())
    }

    /// `then` where the condition holds, else `otherwise`. Only the chosen value is computed, so a
    /// condition can keep an access in bounds.
    pub fn select(condition: Value, then: impl Into<Value>, otherwise: impl Into<Value>) -> Value {
        let build = || {
            let condition = condition.0?.typed(DType::Bool)?;
            let (then, otherwise) = with_common_type(then.into().0?, otherwise.into().0?, DType::Int32)?;
            let dtype = then.dtype;
            let operands = Box::new([condition, then, otherwise]);
            Ok(ValueKind::Typed(Expr { dtype, kind: ExprKind::Select(operands) }))
        };
        Value(build())
    }
}

/// Returns true when the operator has a meaning for operands of this type.
fn accepts_type(op: BinaryOp, dtype: DType) -> bool {
    match op {
        BinaryOp::Equal | BinaryOp::NotEqual => true,
        _ if op.is_on_integers() => dtype.is_integer(),
        _ => op.is_logical() == (dtype == DType::Bool),
    }
}

/// Returns true when a function takes arguments of this type.
fn takes_type(builtin: Builtin, dtype: DType) -> bool {
    match builtin {
        Builtin::Abs => true,
        Builtin::Philox => dtype == DType::UInt32,
        _ if builtin.is_on_integers() => dtype.is_integer(),
        _ => dtype.is_float(),
    }
}

/// Refuses a count of a shift and an exponent that are negative numbers.
fn refuse_negative_number(op: BinaryOp, right: &Expr) -> Result<(), TypeError> {
    let takes_count = op.is_shift() || op == BinaryOp::Power;
    match &right.kind {
        ExprKind::Literal(Number::Int(number @ ..0)) if takes_count => {
            Err(TypeError(format!("`{}` does not take the negative number {number}", op.symbol())))
        }
        _ => Ok(()),
    }
}

/// The operator on indices, where indices have it.
fn index_operator(op: BinaryOp) -> Option<fn(&IndexExpr, &IndexExpr) -> IndexExpr> {
    Some(match op {
        BinaryOp::Add => IndexExpr::add,
        BinaryOp::Sub => IndexExpr::sub,
        BinaryOp::Mul => IndexExpr::mul,
        BinaryOp::Div => IndexExpr::floor_div,
        BinaryOp::Mod => IndexExpr::modulo,
        BinaryOp::Min => IndexExpr::minimum,
        BinaryOp::Max => IndexExpr::maximum,
        _ => return None,
    })
}

macro_rules! methods {
    ($($(#[$doc:meta])* $method:ident $op:ident;)*) => {
        impl Value {
            $($(#[$doc])*
            pub fn $method(self, other: impl Into<Value>) -> Value {
                self.binary(BinaryOp::$op, other.into())
            })*
        }
    };
}

methods! {
    /// The smaller of two values; the other one where one is NaN.
    min Min;
    /// The larger of two values; the other one where one is NaN.
    max Max;
    /// Whether the values are equal.
    equal Equal;
    /// Whether the values differ.
    not_equal NotEqual;
    /// Whether this value is less than the other.
    less Less;
    /// Whether this value is at most the other.
    at_most LessEqual;
    /// Whether this value is greater than the other.
    greater Greater;
    /// Whether this value is at least the other.
    at_least GreaterEqual;
    /// The power of integers, which wraps. A negative exponent gives 0. For floats there is
    /// [`Builtin::Pow`].
    power Power;
    /// Whether both conditions hold. The second is computed only if the first holds.
    and And;
    /// Whether one of the conditions holds. The second is computed only if the first fails.
    or Or;
}

macro_rules! operator {
    ($trait:ident $method:ident $op:ident: $($left:ty, $right:ty;)*) => {
        $(impl $trait<$right> for $left {
            type Output = Value;
            fn $method(self, other: $right) -> Value {
                Value::from(self).binary(BinaryOp::$op, Value::from(other))
            }
        })*
    };
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:ident;)*) => {
        $(operator! { $trait $method $op:
            Value, Value; Value, Element; Value, i64; Value, f64;
            Element, Value; Element, Element; Element, i64; Element, f64;
            i64, Value; i64, Element; f64, Value; f64, Element;
        })*
    };
}

operators! {
    Add add Add;
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Mod;
    BitAnd bitand BitAnd;
    BitOr bitor BitOr;
    BitXor bitxor BitXor;
    Shl shl ShiftLeft;
    Shr shr ShiftRight;
}

impl Neg for Value {
    type Output = Value;
    fn neg(self) -> Value {
        let build = || match self.0? {
            ValueKind::Index(index) => Ok(ValueKind::Index(index.scale(-1))),
            ValueKind::Float(number) => Ok(ValueKind::Float(-number)),
            ValueKind::Typed(expr) if expr.dtype == DType::Bool => {
                Err(TypeError("`-` does not take bool operands".to_owned()))
            }
            ValueKind::Typed(expr) => Ok(ValueKind::Typed(unary(UnaryOp::Neg, expr))),
        };
        Value(build())
    }
}

impl Neg for Element {
    type Output = Value;
    fn neg(self) -> Value {
        -Value::from(self)
    }
}

impl Not for Value {
    type Output = Value;
    /// Whether a condition does not hold, or the complement of an integer's bits.
    fn not(self) -> Value {
        let build = || match self.0? {
            ValueKind::Index(index) => Ok(ValueKind::Index(index.scale(-1).offset(-1))),
            ValueKind::Typed(expr) if expr.dtype.is_integer() => {
                Ok(ValueKind::Typed(unary(UnaryOp::Complement, expr)))
            }
            kind => Ok(ValueKind::Typed(unary(UnaryOp::Not, kind.typed(DType::Bool)?))),
        };
        Value(build())
    }
}

fn unary(op: UnaryOp, operand: Expr) -> Expr {
    Expr { dtype: operand.dtype, kind: ExprKind::Unary(op, Box::new(operand)) }
}
