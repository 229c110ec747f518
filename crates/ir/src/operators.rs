//! The operators and functions of value expressions: [`UnaryOp`], [`BinaryOp`] and [`Builtin`].

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

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
