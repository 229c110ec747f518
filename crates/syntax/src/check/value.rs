//! Defines [`Value`], an expression with every name resolved and function calls inlined, not yet
//! typed.

use tilewright_ir::{BinaryOp, Builtin, DType, ReduceOp, ScalarId, SymbolId, TensorId, UnaryOp, VarId};

use crate::lexer::Suffix;
use crate::span::Span;

/// A resolved expression and its position.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub kind: ValueKind,
    pub span: Span,
    /// Whether the operation is part of a standard function, where nothing wraps by mistake.
    pub is_standard: bool,
}

/// Two values are equal if they compute the same, wherever they stand.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        self.kind == other.kind
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum ValueKind {
    Int(i128, Suffix),
    Float(f64, Suffix),
    Bool(bool),
    Var(VarId),
    /// A size.
    Size(SymbolId),
    Scalar(ScalarId),
    Extent(TensorId, u32),
    Load(TensorId, Vec<Value>),
    Call(Builtin, Vec<Value>),
    Cast(DType, Box<Value>),
    /// A conversion to the element type of a tensor.
    CastLike(TensorId, Box<Value>),
    /// The value that a reduction begins with, in the type of the operands around it.
    Neutral(ReduceOp),
    /// A conversion to an integer type, with the nearest end for numbers beyond its ends.
    Saturate(DType, Box<Value>),
    Unary(UnaryOp, Box<Value>),
    Binary(BinaryOp, Box<[Value; 2]>),
    /// The product of two integers, in a type of twice their width.
    WideningProduct(Box<[Value; 2]>),
    Select(Box<[Value; 3]>),
    /// A value with the bounds that a `where` clause declares for it: the value, the first bound,
    /// and one past the last.
    Bounded(Box<[Value; 3]>),
}

impl Value {
    pub fn new(kind: ValueKind, span: Span) -> Value {
        Value { kind, span, is_standard: false }
    }

    pub fn operands(&self) -> &[Value] {
        match &self.kind {
            ValueKind::Load(_, operands) | ValueKind::Call(_, operands) => operands,
            ValueKind::Cast(_, operand)
            | ValueKind::CastLike(_, operand)
            | ValueKind::Saturate(_, operand)
            | ValueKind::Unary(_, operand) => std::slice::from_ref(operand),
            ValueKind::Binary(_, operands) | ValueKind::WideningProduct(operands) => operands.as_slice(),
            ValueKind::Select(operands) | ValueKind::Bounded(operands) => operands.as_slice(),
            _ => &[],
        }
    }

    /// Calls `visit` on every node, outermost first.
    pub fn walk(&self, visit: &mut dyn FnMut(&Value)) {
        visit(self);
        self.operands().iter().for_each(|operand| operand.walk(visit));
    }

    pub fn count(&self) -> usize {
        1 + self.operands().iter().map(Value::count).sum::<usize>()
    }
}

impl Value {
    /// The height of the tree, counting this node.
    pub fn height(&self) -> usize {
        1 + self.operands().iter().map(Value::height).max().unwrap_or(0)
    }
}
