//! The program as it was written.

use tilewright_ir::{BinaryOp, DType, ReduceOp, UnaryOp};

use crate::lexer::Suffix;
use crate::span::Span;

/// A name and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub span: Span,
}

/// A file: its functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// In the order of the file.
    pub functions: Vec<Function>,
}

/// `def name(params) -> (results) { body }`
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// What the caller supplies.
    pub params: Vec<Param>,
    /// What it gives back.
    pub results: Vec<Declaration>,
    /// What it does.
    pub body: Vec<Stmt>,
    /// Whether some of the body could not be parsed, so that what it defines is not known.
    pub incomplete: bool,
}

/// `const float(M, K) A`
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Whether it is marked `const`.
    pub constant: bool,
    /// Its type.
    pub ty: Type,
    /// Its name.
    pub name: Name,
}

/// A result or local tensor, with a type if one is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// Its type; inferred where there is none.
    pub ty: Option<Type>,
    /// Its name.
    pub name: Name,
}

/// `float(M, K)`, or `float` for a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// The element type.
    pub dtype: DType,
    /// Its extents; none for a scalar.
    pub dims: Vec<Expr>,
    /// Where it stands.
    pub span: Span,
}

/// A statement and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// What it is.
    pub kind: StmtKind,
    /// Where it stands.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `C(i, j) += A(i, k) * B(k, j) where …`
    Comprehension(Comprehension),
    /// `(A, B) = f(C, D)`
    Call {
        /// Who gets the results.
        targets: Vec<Name>,
        /// The function.
        callee: Name,
        /// Its arguments.
        arguments: Vec<Expr>,
        /// Where the call itself stands.
        value: Span,
    },
    /// `int32(256) hist`
    Declare(Declaration),
    /// `for t in 1:T { … }`
    For {
        /// The variable.
        var: Name,
        /// The first value.
        from: Expr,
        /// One past the last value.
        to: Expr,
        /// What is run in order.
        body: Vec<Stmt>,
    },
}

/// One comprehension.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The tensor on the left.
    pub target: Name,
    /// Its subscripts.
    pub indices: Vec<Expr>,
    /// `=`, or a reduction.
    pub op: AssignOp,
    /// Where the operator stands.
    pub op_span: Span,
    /// The right-hand side.
    pub value: Expr,
    /// What stands behind `where`.
    pub clauses: Vec<Clause>,
}

/// `=`, or a reduction with or without its exclamation mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Assign,
    /// `+=` and its kin.
    Reduce {
        /// The operator.
        op: ReduceOp,
        /// With `!`.
        reset: bool,
    },
}

/// One clause behind `where`.
#[derive(Clone, Debug, PartialEq)]
pub enum Clause {
    /// `k in 0:3`
    In {
        /// The variable.
        name: Name,
        /// The first value.
        from: Expr,
        /// One past the last value.
        to: Expr,
    },
    /// `k = I(i)`
    Let {
        /// The name.
        name: Name,
        /// What it stands for.
        value: Expr,
    },
    /// `exists A(i)`: an expression that takes part in the inference of ranges and is not computed.
    Exists(Expr),
}

/// An expression and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// What it is.
    pub kind: ExprKind,
    /// Where it stands.
    pub span: Span,
    /// How many levels there are below, itself included.
    pub height: u32,
}

/// The kinds of expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `12`
    Int(i128, Suffix),
    /// `1.5`
    Float(f64, Suffix),
    /// `true`
    Bool(bool),
    /// A variable, size, scalar or 0-dimensional tensor.
    Name(String),
    /// `A.1`
    Extent(Name, u32),
    /// `A(i, j)` or `exp(x)`
    Apply(Name, Vec<Expr>),
    /// `float(x)`
    Cast(DType, Box<Expr>),
    /// `-x`
    Unary(UnaryOp, Box<Expr>),
    /// `x + y`
    Binary(BinaryOp, Box<[Expr; 2]>),
    /// `c ? x : y`
    Ternary(Box<[Expr; 3]>),
}

impl Expr {
    /// An expression at a place.
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        let tallest = |operands: &[Expr]| operands.iter().map(|operand| operand.height).max().unwrap_or(0);
        let below = match &kind {
            ExprKind::Apply(_, arguments) => tallest(arguments),
            ExprKind::Cast(_, operand) | ExprKind::Unary(_, operand) => operand.height,
            ExprKind::Binary(_, operands) => tallest(operands.as_slice()),
            ExprKind::Ternary(operands) => tallest(operands.as_slice()),
            _ => 0,
        };
        Expr { kind, span, height: below + 1 }
    }
}

impl Module {
    /// The function with this name; the first, where several have it.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name.text == name)
    }
}

/// All words that name a type.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    ["float", "double", "half", "int", "byte"].into_iter().chain(DType::ALL.into_iter().map(DType::name))
}

/// The type that a word names.
pub fn type_name(word: &str) -> Option<DType> {
    let alias = match word {
        "float" => DType::Float32,
        "double" => DType::Float64,
        "half" => DType::Float16,
        "int" => DType::Int32,
        "byte" => DType::UInt8,
        _ => return DType::ALL.into_iter().find(|dtype| dtype.name() == word),
    };
    Some(alias)
}
