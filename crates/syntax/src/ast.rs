//! Defines the abstract syntax tree: the functions of a file as they were written, with positions.

use tilewright_ir::{BinaryOp, DType, ReduceOp, UnaryOp};

use crate::lexer::Suffix;
use crate::span::Span;
use crate::storage_order::StorageOrder;

/// A name and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    /// The name. After `check::expand`, that of the element of a list has its number: `g[3]`.
    pub text: String,
    /// The position of the name.
    pub span: Span,
    /// The number of an element of a list, `k + 1` in `g[k + 1]`. After `check::expand`, no name
    /// has one.
    pub element: Option<Box<Expr>>,
}

impl Name {
    /// A name that is not an element of a list.
    pub fn new(text: impl Into<String>, span: Span) -> Name {
        Name { text: text.into(), span, element: None }
    }
}

/// A file: a list of functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// The functions on tensors, in the order of the file.
    pub functions: Vec<Function>,
    /// The functions on numbers, in the order of the file.
    pub scalar_functions: Vec<ScalarFunction>,
    /// The text of the file, for messages that show a repaired part of it.
    pub source: String,
}

/// `fn name(params) = value where bindings`
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarFunction {
    /// The name of the function.
    pub name: Name,
    /// The parameters.
    pub params: Vec<ScalarParam>,
    /// The value, in terms of the parameters and the bindings.
    pub value: Expr,
    /// The names after `where`, with their values.
    pub bindings: Vec<(Name, Expr)>,
}

/// `x`, or `float x`
#[derive(Clone, Debug, PartialEq)]
pub struct ScalarParam {
    /// The type that an argument is converted to; without one, it keeps its own.
    pub ty: Option<Type>,
    /// The name of the parameter.
    pub name: Name,
}

/// `def name<T>(params) -> (results) requires conditions { body }`
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// The name of the function.
    pub name: Name,
    /// The names that stand for element types, as in `def twice<T>(T(N) x)`.
    pub type_params: Vec<Name>,
    /// The parameters, which the caller supplies.
    pub params: Vec<Param>,
    /// The results, which the caller receives.
    pub results: Vec<Declaration>,
    /// The conditions on the sizes after `requires`.
    pub requires: Vec<Requirement>,
    /// The named integers at the beginning of the body.
    pub definitions: Vec<Definition>,
    /// The statements of the body.
    pub body: Vec<Stmt>,
    /// Whether part of the body could not be parsed, so that the tensors which it defines are not
    /// known.
    pub is_incomplete: bool,
}

/// A condition on the sizes after `requires`.
#[derive(Clone, Debug, PartialEq)]
pub struct Requirement {
    /// The condition.
    pub condition: Expr,
    /// The static parameters that `check::expand` has replaced in the condition by their values.
    pub statics: Vec<(String, i64)>,
}

/// `int tiles = (N + 15) / 16`
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The type.
    pub ty: Type,
    /// The name.
    pub name: Name,
    /// The value, in terms of sizes and scalars.
    pub value: Expr,
}

/// `const float(M, K) A`, or `static int levels = 8`
#[derive(Clone, Debug, PartialEq)]
pub struct Param {
    /// Whether the parameter is marked `const`.
    pub constant: bool,
    /// Whether the parameter is marked `static`: its value is known when the program is checked.
    pub is_static: bool,
    /// The value of a static parameter that is not given.
    pub default: Option<Expr>,
    /// The type of the parameter.
    pub ty: Type,
    /// The name of the parameter.
    pub name: Name,
    /// The order of the dimensions in memory, if it is not that of the subscripts.
    pub stored: Option<StorageOrder>,
}

/// A result or local tensor, with a type if one is written.
#[derive(Clone, Debug, PartialEq)]
pub struct Declaration {
    /// The type; inferred where none is written.
    pub ty: Option<Type>,
    /// The name of the tensor.
    pub name: Name,
    /// The order of the dimensions in memory, if it is not that of the subscripts.
    pub stored: Option<StorageOrder>,
}

/// `float(M, K)`, or `float` for a scalar.
#[derive(Clone, Debug, PartialEq)]
pub struct Type {
    /// The element type. Where `parameter` names it, `check::expand` sets it.
    pub dtype: DType,
    /// The type parameter that stands for the element type, if one does.
    pub parameter: Option<String>,
    /// The extents, in the order of memory; empty for a scalar.
    pub dims: Vec<Expr>,
    /// The position of the type.
    pub span: Span,
}

/// A statement and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    /// The kind of statement.
    pub kind: StmtKind,
    /// The position of the statement.
    pub span: Span,
}

/// The kinds of statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `C(i, j) += A(i, k) * B(k, j) where …`
    Comprehension(Comprehension),
    /// `(A, B) = f(C, D)`
    Call {
        /// The tensors that receive the results.
        targets: Vec<Name>,
        /// The called function.
        callee: Name,
        /// The arguments.
        arguments: Vec<Expr>,
        /// The position of the call expression.
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
        /// The statements of one iteration; iterations run in order.
        body: Vec<Stmt>,
    },
}

/// One comprehension.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The tensor on the left.
    pub target: Name,
    /// The subscripts of the target.
    pub indices: Vec<Expr>,
    /// `=`, or a reduction.
    pub op: AssignOp,
    /// The position of the operator.
    pub op_span: Span,
    /// The right-hand side.
    pub value: Expr,
    /// The clauses after `where`.
    pub clauses: Vec<Clause>,
}

/// `=`, or a reduction with or without its exclamation mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AssignOp {
    /// `=`
    Assign,
    /// `+=` or another reduction.
    Reduce {
        /// The operator.
        op: ReduceOp,
        /// Whether the operator has a `!`.
        reset: bool,
    },
}

/// One clause after `where`.
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
        /// The value that the name stands for.
        value: Expr,
    },
    /// `exists A(i)`: an expression that takes part in range inference and is not computed.
    Exists(Expr),
}

/// An expression and its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// The kind of expression.
    pub kind: ExprKind,
    /// The position of the expression.
    pub span: Span,
    /// The height of the tree, counting this node.
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
    /// `g[k]`, without subscripts.
    Element(Name),
    /// The name of a list as an argument, and its tensors. Only `check::expand` makes it.
    List(String, Vec<Expr>),
    /// `..`: any number of leading dimensions, or the subscripts for them.
    Dimensions,
    /// `A.1`
    Extent(Name, u32),
    /// `A(i, j)` or `exp(x)`
    Apply(Name, Vec<Expr>),
    /// `float(x)`
    Cast(DType, Box<Expr>),
    /// A value converted to the element type of a tensor. Only a reduction of several values has
    /// this.
    CastLike(Name, Box<Expr>),
    /// The value that a reduction begins with. Only a reduction of several values has this.
    Neutral(ReduceOp),
    /// `-x`
    Unary(UnaryOp, Box<Expr>),
    /// `x + y`
    Binary(BinaryOp, Box<[Expr; 2]>),
    /// `c ? x : y`
    Ternary(Box<[Expr; 3]>),
}

impl Expr {
    /// Creates an expression at a position and computes its height.
    pub fn new(kind: ExprKind, span: Span) -> Expr {
        let tallest = |operands: &[Expr]| operands.iter().map(|operand| operand.height).max().unwrap_or(0);
        let below = match &kind {
            ExprKind::Apply(_, arguments) | ExprKind::List(_, arguments) => tallest(arguments),
            ExprKind::Cast(_, operand) | ExprKind::CastLike(_, operand) | ExprKind::Unary(_, operand) => {
                operand.height
            }
            ExprKind::Binary(_, operands) => tallest(operands.as_slice()),
            ExprKind::Ternary(operands) => tallest(operands.as_slice()),
            _ => 0,
        };
        Expr { kind, span, height: below + 1 }
    }

    /// The operands, arguments or subscripts.
    pub fn operands(&self) -> &[Expr] {
        match &self.kind {
            ExprKind::Apply(_, arguments) | ExprKind::List(_, arguments) => arguments,
            ExprKind::Cast(_, operand) | ExprKind::CastLike(_, operand) | ExprKind::Unary(_, operand) => {
                std::slice::from_ref(operand)
            }
            ExprKind::Binary(_, operands) => operands.as_slice(),
            ExprKind::Ternary(operands) => operands.as_slice(),
            _ => &[],
        }
    }

    /// Calls `visit` on every node, outermost first.
    pub fn walk<'e>(&'e self, visit: &mut dyn FnMut(&'e Expr)) {
        visit(self);
        self.operands().iter().for_each(|operand| operand.walk(visit));
    }
}

impl Function {
    /// Returns true when the body begins with a named integer of this name.
    pub fn defines(&self, name: &str) -> bool {
        self.definitions.iter().any(|definition| definition.name.text == name)
    }
}

impl Module {
    /// The function with this name; the first one where several functions have it.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name.text == name)
    }

    /// The scalar function with this name; the first one where several functions have it.
    pub fn scalar_function(&self, name: &str) -> Option<&ScalarFunction> {
        self.scalar_functions.iter().find(|function| function.name.text == name)
    }
}

/// All words that name a type.
pub fn type_names() -> impl Iterator<Item = &'static str> {
    ["float", "double", "half", "int", "byte"].into_iter().chain(DType::ALL.into_iter().map(DType::name))
}

/// The type that a word names.
pub fn type_named(word: &str) -> Option<DType> {
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
