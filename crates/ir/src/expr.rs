//! Defines [`Expr`], the value that a statement computes at one point of the box of its variables,
//! and [`Number`], the value of a literal or an element.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::ids::{Ids, InProgram};
use crate::index::{Atom, IndexExpr};
use crate::program::ScalarId;

/// The byte range of the source text that a piece of the program came from.
///
/// Only messages use origins: two expressions that differ in nothing else are equal.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Origin {}
impl Hash for Origin {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
impl PartialOrd for Origin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Origin {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// One exact number: every integer type fits `Int`, every float type fits `Float`, and `bool` is 0
/// or 1.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(into = "NumberText", try_from = "NumberText")]
pub enum Number {
    /// An integer or a truth value.
    Int(i128),
    /// A float, already rounded to its type.
    Float(f64),
}

/// A number in serialised form. Most formats have neither 128-bit integers nor infinities.
#[derive(Serialize, Deserialize)]
enum NumberText {
    Int(String),
    Float(String),
}

impl From<Number> for NumberText {
    fn from(number: Number) -> NumberText {
        match number {
            Number::Int(value) => NumberText::Int(value.to_string()),
            Number::Float(value) => NumberText::Float(format!("{value:?}")),
        }
    }
}

impl TryFrom<NumberText> for Number {
    type Error = String;

    fn try_from(text: NumberText) -> Result<Number, String> {
        let not_a_number = |text: &str| format!("`{text}` is not a number");
        match &text {
            NumberText::Int(text) => text.parse().map(Number::Int).map_err(|_| not_a_number(text)),
            NumberText::Float(text) => text.parse().map(Number::Float).map_err(|_| not_a_number(text)),
        }
    }
}

impl Number {
    fn key(self) -> (u8, i128) {
        match self {
            Number::Int(value) => (0, value),
            Number::Float(value) => (1, value.to_bits() as i128),
        }
    }

    /// The number as a float.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(value) => value as f64,
            Number::Float(value) => value,
        }
    }

    /// The number as an integer, truncated toward zero; NaN is 0.
    pub fn as_i128(self) -> i128 {
        match self {
            Number::Int(value) => value,
            Number::Float(value) => value as i128,
        }
    }

    /// Returns true when the number is not zero.
    pub fn is_true(self) -> bool {
        match self {
            Number::Int(value) => value != 0,
            Number::Float(value) => value != 0.0,
        }
    }

    /// Converts the number to a value of `dtype`. Integers wrap, floats round, and float to integer
    /// truncates and saturates.
    pub fn convert(self, dtype: DType) -> Number {
        match (dtype, self) {
            (DType::Bool, number) => Number::Int(number.is_true() as i128),
            (DType::Float64, number) => Number::Float(number.as_f64()),
            (DType::Float32, Number::Int(value)) => Number::Float(value as f32 as f64),
            (DType::Float32, Number::Float(value)) => Number::Float(value as f32 as f64),
            (DType::Float16, number) => Number::Float(half::f16::from_f32(number.round_to_odd()).to_f64()),
            (DType::BFloat16, number) => Number::Float(half::bf16::from_f32(number.round_to_odd()).to_f64()),
            (integer, Number::Int(value)) => Number::Int(wrap(value, integer)),
            (integer, Number::Float(value)) => {
                let (low, high) = integer.integer_bounds().expect("the float types were matched above");
                Number::Int((value as i128).clamp(low, high))
            }
        }
    }

    /// Converts the number to single precision, rounded to odd: truncated, with the last bit set if
    /// the truncation was inexact. Rounding the result to 16 bits equals rounding the number
    /// directly to 16 bits; rounding twice to nearest does not.
    fn round_to_odd(self) -> f32 {
        let (nearest, distance) = match self {
            Number::Int(value) => {
                let nearest = value as f32;
                (nearest, (nearest as i128).unsigned_abs().cmp(&value.unsigned_abs()))
            }
            Number::Float(value) => {
                let nearest = value as f32;
                let distance = (nearest as f64).abs().partial_cmp(&value.abs());
                (nearest, distance.unwrap_or(Ordering::Equal))
            }
        };
        match distance {
            Ordering::Equal => nearest,
            Ordering::Greater => f32::from_bits((nearest.to_bits() - 1) | 1),
            Ordering::Less => f32::from_bits(nearest.to_bits() | 1),
        }
    }
}

/// `value` modulo two to the width of `dtype`, in the range of `dtype`.
fn wrap(value: i128, dtype: DType) -> i128 {
    let width = 1i128 << dtype.bits();
    let (_, high) = dtype.integer_bounds().expect("only integer types wrap");
    let low_bits = value & (width - 1);
    if low_bits > high { low_bits - width } else { low_bits }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Number {}
impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Number {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// A typed value expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Expr<I: Ids = InProgram> {
    /// The type of the value.
    pub dtype: DType,
    /// How the value is computed.
    pub kind: ExprKind<I>,
}

/// The kinds of value expression. Operands have the type of the result unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum ExprKind<I: Ids = InProgram> {
    /// A constant.
    Literal(Number),
    /// An index expression used as a value: evaluated exactly, then converted to the node's type.
    Index(Box<IndexExpr<I>>),
    /// A scalar parameter.
    Scalar(ScalarId),
    /// One element of a tensor.
    Load(Access<I>),
    /// A unary operation.
    Unary(UnaryOp, Box<Expr<I>>),
    /// A binary operation. Comparisons take two operands of one type and return `bool`; `&&` and
    /// `||` are lazy.
    Binary(BinaryOp, Box<[Expr<I>; 2]>),
    /// `condition ? then : otherwise`; only the chosen side is evaluated.
    Select(Box<[Expr<I>; 3]>),
    /// A mathematical function. Its arguments have the type of the result, except for the
    /// predicates such as `isnan`.
    Call(Builtin, Vec<Expr<I>>),
    /// A conversion to the node's type from another type.
    Cast(Box<Expr<I>>),
}

/// A tensor with one subscript per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Access<I: Ids = InProgram> {
    /// The tensor.
    pub tensor: I::Tensor,
    /// One subscript per dimension.
    pub indices: Vec<IndexExpr<I>>,
    /// Where the access was written.
    pub origin: Origin,
}

impl<I: Ids> Access<I> {
    /// The subscripts in the first lane of a vector loop over `lane`: a last subscript `e + lane`
    /// becomes `e`. All other subscripts stay as they are, also those that mention `lane`.
    pub fn subscripts_of_first_lane(&self, lane: I::Var) -> Vec<IndexExpr<I>> {
        let mut subscripts = self.indices.clone();
        if let Some(last) = subscripts.last_mut()
            && let Some((coefficient, rest)) = last.split_on(&Atom::Var(lane))
            && coefficient.as_constant() == Some(1)
        {
            *last = rest;
        }
        subscripts
    }
}

/// Operators of one operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum UnaryOp {
    Neg,
    Not,
    /// Inverts every bit of an integer.
    Complement,
}

/// Operators of two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum BinaryOp {
    Add,
    Sub,
    Mul,
    /// Rounds toward minus infinity on integers; integer division by zero returns 0.
    Div,
    /// The remainder that belongs to `Div`: it has the sign of the divisor, and for a zero integer
    /// divisor it is 0.
    Mod,
    /// If one operand is NaN, the result is the other operand.
    Min,
    /// If one operand is NaN, the result is the other operand.
    Max,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    And,
    Or,
    /// The bits that both operands have.
    BitAnd,
    /// The bits that either operand has.
    BitOr,
    /// The bits in which the operands differ.
    BitXor,
    /// Shifts the left operand's bits to higher places. The right operand counts the places, and is
    /// read as an unsigned number. A count of the width or more shifts every bit out.
    ShiftLeft,
    /// Shifts the left operand's bits to lower places: with copies of the sign for a signed type,
    /// with zeros for an unsigned one. The count is that of `ShiftLeft`.
    ShiftRight,
    /// The power of integers, which wraps as a product does. A negative exponent gives 0.
    Power,
}

impl BinaryOp {
    /// Returns true for `==` and the other comparisons.
    pub fn is_comparison(self) -> bool {
        matches!(
            self,
            BinaryOp::Equal
                | BinaryOp::NotEqual
                | BinaryOp::Less
                | BinaryOp::LessEqual
                | BinaryOp::Greater
                | BinaryOp::GreaterEqual
        )
    }

    /// Returns true when the comparison holds for operands in this order. The order is `None` where
    /// an operand is NaN.
    pub fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            BinaryOp::Equal => order == Some(Ordering::Equal),
            BinaryOp::NotEqual => order != Some(Ordering::Equal),
            BinaryOp::Less => order == Some(Ordering::Less),
            BinaryOp::LessEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            BinaryOp::Greater => order == Some(Ordering::Greater),
            BinaryOp::GreaterEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            _ => false,
        }
    }

    /// Returns true for `&&` and `||`.
    pub fn is_logical(self) -> bool {
        matches!(self, BinaryOp::And | BinaryOp::Or)
    }

    /// Returns true for the operators that only integers have: `&`, `|`, `^`, the shifts, and the
    /// power of integers.
    pub fn is_on_integers(self) -> bool {
        matches!(self, BinaryOp::BitAnd | BinaryOp::BitOr | BinaryOp::BitXor | BinaryOp::Power)
            || self.is_shift()
    }

    /// Returns true for `<<` and `>>`.
    pub fn is_shift(self) -> bool {
        matches!(self, BinaryOp::ShiftLeft | BinaryOp::ShiftRight)
    }

    /// The operator as a program writes it; `min` and `max` are written as calls.
    pub fn symbol(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::Mod => "%",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::Equal => "==",
            BinaryOp::NotEqual => "!=",
            BinaryOp::Less => "<",
            BinaryOp::LessEqual => "<=",
            BinaryOp::Greater => ">",
            BinaryOp::GreaterEqual => ">=",
            BinaryOp::And => "&&",
            BinaryOp::Or => "||",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::ShiftLeft => "<<",
            BinaryOp::ShiftRight => ">>",
            BinaryOp::Power => "**",
        }
    }
}

macro_rules! builtins {
    ($($variant:ident $name:literal $arity:literal,)*) => {
        /// The mathematical functions that are neither operators nor `min`, `max` and `clamp`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[allow(missing_docs, reason = "the names are those of the C library")]
        pub enum Builtin { $($variant,)* }

        impl Builtin {
            /// Every function.
            pub const ALL: &'static [Builtin] = &[$(Builtin::$variant,)*];

            /// The generic name.
            pub fn name(self) -> &'static str {
                match self { $(Builtin::$variant => $name,)* }
            }

            /// The number of arguments.
            pub fn arity(self) -> usize {
                match self { $(Builtin::$variant => $arity,)* }
            }
        }
    };
}

builtins! {
    Abs "abs" 1,
    Acos "acos" 1,
    Acosh "acosh" 1,
    Asin "asin" 1,
    Asinh "asinh" 1,
    Atan "atan" 1,
    Atan2 "atan2" 2,
    Atanh "atanh" 1,
    Cbrt "cbrt" 1,
    Ceil "ceil" 1,
    Clz "clz" 1,
    Copysign "copysign" 2,
    Cos "cos" 1,
    Cosh "cosh" 1,
    Ctz "ctz" 1,
    Erf "erf" 1,
    Erfc "erfc" 1,
    Exp "exp" 1,
    Exp2 "exp2" 1,
    Expm1 "expm1" 1,
    Floor "floor" 1,
    Fma "fma" 3,
    Fmod "fmod" 2,
    Hypot "hypot" 2,
    IsFinite "isfinite" 1,
    IsInf "isinf" 1,
    IsNan "isnan" 1,
    Lgamma "lgamma" 1,
    Log "log" 1,
    Log10 "log10" 1,
    Log1p "log1p" 1,
    Log2 "log2" 1,
    Philox "philox" 6,
    Popcount "popcount" 1,
    Pow "pow" 2,
    Rint "rint" 1,
    Round "round" 1,
    Rsqrt "rsqrt" 1,
    Sigmoid "sigmoid" 1,
    Sin "sin" 1,
    Sinh "sinh" 1,
    Sqrt "sqrt" 1,
    Tan "tan" 1,
    Tanh "tanh" 1,
    Tgamma "tgamma" 1,
    Trunc "trunc" 1,
}

impl Builtin {
    /// Returns true for the functions whose result has one rounding, which is the same everywhere.
    pub fn is_exact(self) -> bool {
        self.is_on_integers()
            || self.is_predicate()
            || matches!(
                self,
                Builtin::Abs
                    | Builtin::Floor
                    | Builtin::Ceil
                    | Builtin::Round
                    | Builtin::Rint
                    | Builtin::Trunc
                    | Builtin::Sqrt
            )
    }

    /// Returns true for the functions on integers alone: `popcount`, `clz` and `ctz` keep the type
    /// of their argument, and `philox` takes and returns uint32.
    pub fn is_on_integers(self) -> bool {
        matches!(self, Builtin::Popcount | Builtin::Clz | Builtin::Ctz | Builtin::Philox)
    }

    /// Returns true for `isnan`, `isinf` and `isfinite`, which take a float and return `bool`.
    pub fn is_predicate(self) -> bool {
        matches!(self, Builtin::IsNan | Builtin::IsInf | Builtin::IsFinite)
    }
}

impl<I: Ids> Expr<I> {
    /// A constant of the given type.
    pub fn literal(dtype: DType, number: Number) -> Expr<I> {
        Expr { dtype, kind: ExprKind::Literal(number.convert(dtype)) }
    }

    /// `lhs op rhs`, with the result type of the operator.
    pub fn binary(op: BinaryOp, lhs: Expr<I>, rhs: Expr<I>) -> Expr<I> {
        let dtype = if op.is_comparison() || op.is_logical() { DType::Bool } else { lhs.dtype };
        Expr { dtype, kind: ExprKind::Binary(op, Box::new([lhs, rhs])) }
    }

    /// Converts the value to `dtype`, unless it already has that type.
    pub fn cast(self, dtype: DType) -> Expr<I> {
        if self.dtype == dtype {
            return self;
        }
        match self.kind {
            ExprKind::Literal(number) => Expr::literal(dtype, number),
            // An index value is an exact int64, so one conversion straight to the wanted type
            // suffices. A narrower type wraps.
            ExprKind::Index(index) if self.dtype == DType::Int64 => {
                Expr { dtype, kind: ExprKind::Index(index) }
            }
            kind => Expr { dtype, kind: ExprKind::Cast(Box::new(Expr { dtype: self.dtype, kind })) },
        }
    }

    /// The operands, in order.
    pub fn operands(&self) -> &[Expr<I>] {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Load(_) => &[],
            ExprKind::Unary(_, operand) | ExprKind::Cast(operand) => std::slice::from_ref(operand),
            ExprKind::Binary(_, operands) => operands.as_slice(),
            ExprKind::Select(operands) => operands.as_slice(),
            ExprKind::Call(_, operands) => operands,
        }
    }

    /// The operands, in order, for modification.
    pub fn operands_mut(&mut self) -> &mut [Expr<I>] {
        match &mut self.kind {
            ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Load(_) => &mut [],
            ExprKind::Unary(_, operand) | ExprKind::Cast(operand) => std::slice::from_mut(operand),
            ExprKind::Binary(_, operands) => operands.as_mut_slice(),
            ExprKind::Select(operands) => operands.as_mut_slice(),
            ExprKind::Call(_, operands) => operands,
        }
    }

    /// The elements that every evaluation loads, whichever way the conditions inside evaluate, each
    /// once. Loads inside subscripts are not included.
    pub fn certain_loads(&self) -> Vec<&Access<I>> {
        let mut found = Vec::new();
        self.add_certain_loads(&mut found);
        found
    }

    fn add_certain_loads<'e>(&'e self, found: &mut Vec<&'e Access<I>>) {
        match &self.kind {
            ExprKind::Load(access) if !found.contains(&access) => found.push(access),
            ExprKind::Select(parts) => parts[0].add_certain_loads(found),
            // The right operand is evaluated only where the left operand does not decide the
            // result.
            ExprKind::Binary(op, pair) if op.is_logical() => pair[0].add_certain_loads(found),
            _ => self.operands().iter().for_each(|operand| operand.add_certain_loads(found)),
        }
    }

    /// Calls `each` on the loads of the value, without those inside subscripts.
    pub fn visit_loads<'e>(&'e self, each: &mut dyn FnMut(&'e Access<I>)) {
        match &self.kind {
            ExprKind::Load(access) => each(access),
            _ => self.operands().iter().for_each(|operand| operand.visit_loads(each)),
        }
    }

    /// Changes the loads of the value, but none inside subscripts.
    pub fn edit_loads(&mut self, edit: &mut dyn FnMut(&mut Access<I>)) {
        match &mut self.kind {
            ExprKind::Load(access) => edit(access),
            _ => self.operands_mut().iter_mut().for_each(|operand| operand.edit_loads(edit)),
        }
    }

    /// Calls `each` on every access that the value depends on, those inside a load's subscripts
    /// before the load.
    pub fn visit_reads<'e>(&'e self, each: &mut dyn FnMut(&'e Access<I>)) {
        match &self.kind {
            ExprKind::Load(access) => {
                access.indices.iter().for_each(|index| index.visit_reads(each));
                each(access);
            }
            ExprKind::Index(index) => index.visit_reads(each),
            _ => self.operands().iter().for_each(|operand| operand.visit_reads(each)),
        }
    }

    /// Changes every access that the value depends on, those inside a load's subscripts before the
    /// load.
    pub fn edit_reads(&mut self, edit: &mut dyn FnMut(&mut Access<I>)) {
        match &mut self.kind {
            ExprKind::Load(access) => {
                access.indices.iter_mut().for_each(|index| index.edit_reads(edit));
                edit(access);
            }
            ExprKind::Index(index) => index.edit_reads(edit),
            _ => self.operands_mut().iter_mut().for_each(|operand| operand.edit_reads(edit)),
        }
    }

    /// Calls `each` on every subscript and index value. The method does not descend into the
    /// data-dependent parts of subscripts.
    pub fn visit_indices<'e>(&'e self, each: &mut dyn FnMut(&'e IndexExpr<I>)) {
        match &self.kind {
            ExprKind::Index(index) => each(index),
            ExprKind::Load(access) => access.indices.iter().for_each(each),
            _ => self.operands().iter().for_each(|operand| operand.visit_indices(each)),
        }
    }

    /// Returns true when some subscript or index value satisfies the predicate.
    pub fn any_index(&self, test: &mut dyn FnMut(&IndexExpr<I>) -> bool) -> bool {
        match &self.kind {
            ExprKind::Index(index) => test(index),
            ExprKind::Load(access) => access.indices.iter().any(test),
            _ => self.operands().iter().any(|operand| operand.any_index(test)),
        }
    }

    /// Returns true when the variable occurs in any subscript or index value.
    pub fn mentions(&self, var: I::Var) -> bool {
        self.any_index(&mut |index| index.mentions(var))
    }

    /// Replaces every subscript and index value by the result of `map`. The method does not descend
    /// into the data-dependent parts of subscripts.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr<I>) -> IndexExpr<I>) {
        match &mut self.kind {
            ExprKind::Index(index) => **index = map(index),
            ExprKind::Load(access) => {
                for index in &mut access.indices {
                    *index = map(index);
                }
            }
            _ => {
                for operand in self.operands_mut() {
                    operand.map_indices(map);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::TensorId;

    #[test]
    fn guarded_loads_are_not_certain() {
        let access =
            |tensor| Access { tensor: TensorId(tensor), indices: Vec::new(), origin: Origin::default() };
        let load = |tensor| -> Expr { Expr { dtype: DType::Bool, kind: ExprKind::Load(access(tensor)) } };
        let both = |op, left, right| Expr::binary(op, left, right);
        let chosen = Expr {
            dtype: DType::Bool,
            kind: ExprKind::Select(Box::new([both(BinaryOp::And, load(0), load(1)), load(2), load(3)])),
        };
        let all = both(
            BinaryOp::Equal,
            both(BinaryOp::Or, load(4), load(5)),
            both(BinaryOp::Equal, chosen, load(4)),
        );
        let tensors: Vec<u32> = all.certain_loads().iter().map(|load| load.tensor.0).collect();
        assert_eq!(tensors, [4, 0]);
    }

    #[test]
    fn a_narrow_index_stays_narrow() {
        let large = Box::new(<IndexExpr>::constant(1 << 40));
        let index = |dtype| Expr { dtype, kind: ExprKind::Index(large.clone()) };
        assert_eq!(index(DType::Int64).cast(DType::Float32), index(DType::Float32));
        let widened = index(DType::Int32).cast(DType::Int64);
        assert_eq!(widened.kind, ExprKind::Cast(Box::new(index(DType::Int32))));
    }

    #[test]
    fn conversion_wraps_rounds_and_saturates() {
        assert_eq!(Number::Int(300).convert(DType::UInt8), Number::Int(44));
        assert_eq!(Number::Int(-1).convert(DType::UInt64), Number::Int(u64::MAX as i128));
        assert_eq!(Number::Float(-1e30).convert(DType::Int16), Number::Int(-32768));
        assert_eq!(Number::Float(f64::NAN).convert(DType::Int32), Number::Int(0));
        assert_eq!(Number::Float(0.1).convert(DType::Float32), Number::Float(0.1f32 as f64));
        assert_eq!(Number::Float(-0.5).convert(DType::Bool), Number::Int(1));
        // Just above the midpoint between two 16-bit floats, by less than the precision of float32.
        let (half, brain) = (1.0 + 2f64.powi(-11) + 2f64.powi(-30), 1.0 + 2f64.powi(-8) + 2f64.powi(-40));
        assert_eq!(Number::Float(half).convert(DType::Float16), Number::Float(1.0 + 2f64.powi(-10)));
        assert_eq!(Number::Float(brain).convert(DType::BFloat16), Number::Float(1.0 + 2f64.powi(-7)));
        assert_eq!(Number::Float(1e300).convert(DType::Float16), Number::Float(f64::INFINITY));
    }

    /// The multiple of a power of two that is nearest to a number, and even where two are. The
    /// power leaves `digits` binary digits.
    fn nearest(value: i128, digits: u32) -> f64 {
        let magnitude = value.unsigned_abs();
        let unit = 1u128 << (128 - magnitude.leading_zeros()).saturating_sub(digits);
        let (below, rest) = (magnitude / unit, magnitude % unit);
        let is_up = rest * 2 > unit || rest * 2 == unit && below % 2 == 1;
        let rounded = ((below + u128::from(is_up)) * unit) as f64;
        if value < 0 { -rounded } else { rounded }
    }

    #[test]
    fn long_integers_are_rounded_once() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state
        };
        let mut values: Vec<i128> =
            vec![0x0101_0000_0000_0001, (1 << 53) + 1, (1 << 25) + 1, u64::MAX as i128, i64::MIN as i128];
        for _ in 0..1000 {
            // Midpoints between two numbers of 8 digits, and their neighbours, are hard to round.
            let (digits, shift) = (random() >> 56, random() % 55);
            let middle = i128::from(2 * digits + 1) << shift;
            values.extend([middle - 1, middle, middle + 1, i128::from(random() >> (random() % 64))]);
        }
        for value in values.iter().flat_map(|value| [*value, -value]) {
            let found = Number::Int(value).convert(DType::BFloat16);
            assert_eq!(found, Number::Float(nearest(value, 8)), "{value:#x}");
            let wanted = nearest(value, 11);
            let wanted = if wanted.abs() > 65504.0 { wanted.signum() * f64::INFINITY } else { wanted };
            assert_eq!(Number::Int(value).convert(DType::Float16), Number::Float(wanted), "{value:#x}");
        }
    }
}
