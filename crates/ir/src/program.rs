//! Defines [`Program`]: tensors, symbols, and stages of statements in order.
//!
//! A statement computes its value at every point of the box of its variables, in any order. It
//! stores the value at the element that its left-hand indices name, or reduces the value into that
//! element. All reads of a statement happen before its first write; the checker has proved that no
//! program can observe a different order. Statements run one after the other, and a [`ForLoop`]
//! runs its body once for every value of its variable, in ascending order.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::derived::Derived;
use crate::dtype::DType;
use crate::expr::{Expr, Origin};
use crate::ids::{Ids, InProgram, id};
use crate::index::IndexExpr;
use crate::operators::BinaryOp;
use crate::precondition::Precondition;

id!(TensorId, "a tensor of a program");
id!(VarId, "an index variable of a program");
id!(SymbolId, "a size or integer scalar of a program");
id!(ScalarId, "a scalar parameter of a program");

/// A checked program: what to compute, without how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Program {
    /// The function's name.
    pub name: String,
    /// Sizes, and the integer scalars that shapes, ranges or subscripts depend on. Once the value
    /// of a symbol is known, the expressions hold that value instead of the symbol.
    pub symbols: Vec<Symbol>,
    /// Scalar parameters, in the order of the signature.
    pub scalars: Vec<Scalar>,
    /// The symbols that are computed from scalars, each after those that it depends on.
    #[serde(default)]
    pub derived: Vec<Derived>,
    /// The comparisons of sizes that must hold, which the proofs about the program assume.
    #[serde(default)]
    pub preconditions: Vec<Precondition>,
    /// Tensors: inputs in the order of the signature, then results in signature order, then
    /// temporaries.
    pub tensors: Vec<TensorDecl>,
    /// Index variables of all statements.
    pub vars: Vec<Var>,
    /// The stages, in execution order.
    pub stages: Vec<Stage>,
    /// Whether code generation may fuse a product with the `+` or `-` that it is an operand of, by
    /// a multiply-add that rounds once. Where both operands are products, each product is always
    /// rounded by itself.
    pub contract: bool,
    /// The same program with symbols in place of the values that this program holds, if it holds
    /// any. Programs that differ only in their sizes share it.
    pub general: Option<Arc<Program>>,
}

/// A size or an integer scalar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Symbol {
    /// The name of the symbol.
    pub name: String,
    /// Whether the symbol is a size or a scalar.
    pub kind: SymbolKind,
    /// The least value of the symbol: 1 for sizes, and for scalars that multiply or divide an
    /// index; 0 for other derived sizes.
    pub least: Option<i64>,
    /// The value of the symbol, where it is known.
    pub value: Option<i64>,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SymbolKind {
    /// The extent of a dimension.
    Size,
    /// An integer scalar parameter.
    Scalar(ScalarId),
    /// A size that is computed from scalars: [`Program::derived`] says how.
    Derived,
}

impl SymbolKind {
    /// The noun for messages.
    pub fn noun(self) -> &'static str {
        match self {
            SymbolKind::Size => "size",
            SymbolKind::Scalar(_) => "scalar",
            SymbolKind::Derived => "named integer",
        }
    }
}

/// A scalar parameter.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scalar {
    /// The name of the parameter.
    pub name: String,
    /// The type of the parameter.
    pub dtype: DType,
}

/// A tensor of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorDecl {
    /// The name of the tensor.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents, which contain only symbols and numbers.
    pub shape: Vec<IndexExpr>,
    /// Whether the caller supplies the tensor, receives it, both or neither.
    pub role: Role,
}

/// Whether the caller supplies a tensor, receives it, both or neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// The caller supplies the tensor.
    Input {
        /// The values stay the same between calls, so the tensor may be repacked once.
        constant: bool,
    },
    /// The program defines the tensor for the caller.
    Output,
    /// The caller supplies the tensor and the program updates it.
    InOut,
    /// The tensor exists only inside the program.
    Temporary,
}

/// An index variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Var {
    /// The name in the program text.
    pub name: String,
    /// The range of values; the bounds contain only symbols and numbers.
    pub range: Range,
    /// The role of the variable in its statement or loop.
    pub kind: VarKind,
}

/// The role of a variable in its statement or loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum VarKind {
    /// Different values write different elements.
    Spatial,
    /// Different values are reduced into one element.
    Reduction,
    /// The variable of an ordered loop.
    Ordered,
}

/// Integers from `from` up to, not including, `to`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Range<I: Ids = InProgram> {
    /// The first value.
    pub from: IndexExpr<I>,
    /// One past the last value.
    pub to: IndexExpr<I>,
}

impl<I: Ids> Range<I> {
    /// The number of values in the range.
    pub fn extent(&self) -> IndexExpr<I> {
        self.to.sub(&self.from)
    }
}

/// Consecutive statements that define one tensor, or an ordered loop that defines several tensors
/// together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The tensors that the stage defines, in the order of their first statement.
    pub tensors: Vec<TensorId>,
    /// The statements and loops of the stage, in order.
    pub body: Vec<Node>,
}

/// A statement, or a loop around statements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Node {
    /// One statement.
    Statement(Statement),
    /// An ordered loop.
    For(ForLoop),
}

/// Runs its body for every value of its variable, in ascending order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ForLoop {
    /// The variable.
    pub var: VarId,
    /// The statements and loops that one iteration runs.
    pub body: Vec<Node>,
}

/// One comprehension.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Statement {
    /// The tensor that the statement writes.
    pub target: TensorId,
    /// The element that the statement writes, one index per dimension.
    pub indices: Vec<IndexExpr>,
    /// The variables of the statement's box: spatial variables in the order of the left-hand side,
    /// then reduction variables. The variables of the loops around the statement are not included.
    pub vars: Vec<VarId>,
    /// How the value is combined with the element.
    pub update: Update,
    /// The value, which has the compute type of the target.
    pub value: Expr,
    /// Whether the compiler inserted the statement to zero-fill its target. It does so when it
    /// cannot prove that the program defines every element that it needs. The fill keeps compiled
    /// kernels from exposing earlier memory contents. The interpreter skips the fill, so that it
    /// can detect reads of undefined elements.
    pub is_filler: bool,
    /// Where the statement was written.
    pub origin: Origin,
}

/// How a value is combined with its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Update {
    /// The value replaces the old content.
    Assign,
    /// The value is reduced into the old content.
    Reduce {
        /// The operator.
        op: ReduceOp,
        /// Whether the elements that the statement names are first set to the operator's neutral
        /// element. A scatter whose index depends on data therefore resets the whole tensor.
        reset: bool,
    },
}

/// Associative and commutative operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ReduceOp {
    Add,
    Mul,
    Min,
    Max,
}

impl ReduceOp {
    /// Returns true when machines can reduce a value of this type into an element at once, with the
    /// same result in every order. Sums of floats are rounded, and the minimum of floats may be a
    /// zero of either sign, so both depend on the order. No machine has atomic products.
    pub fn can_be_atomic(self, dtype: DType) -> bool {
        let is_integer = dtype.is_signed_integer() || dtype.is_unsigned_integer();
        is_integer && self != ReduceOp::Mul
    }

    /// The operator as a program writes it, without the exclamation mark.
    pub fn symbol(self) -> &'static str {
        match self {
            ReduceOp::Add => "+=",
            ReduceOp::Mul => "*=",
            ReduceOp::Min => "min=",
            ReduceOp::Max => "max=",
        }
    }

    /// The operation on two values.
    pub fn operator(self) -> BinaryOp {
        match self {
            ReduceOp::Add => BinaryOp::Add,
            ReduceOp::Mul => BinaryOp::Mul,
            ReduceOp::Min => BinaryOp::Min,
            ReduceOp::Max => BinaryOp::Max,
        }
    }

    /// The noun for the result of the reduction.
    pub fn result_noun(self) -> &'static str {
        match self {
            ReduceOp::Add => "sum",
            ReduceOp::Mul => "product",
            ReduceOp::Min => "minimum",
            ReduceOp::Max => "maximum",
        }
    }
}

impl Program {
    /// The tensor behind an id.
    pub fn tensor(&self, id: TensorId) -> &TensorDecl {
        &self.tensors[id.index()]
    }

    /// The variable behind an id.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    /// The same program with every operation rounded by itself; see [`Program::contract`].
    pub fn without_contraction(self) -> Program {
        let general = self.general.map(|general| Arc::new((*general).clone().without_contraction()));
        Program { contract: false, general, ..self }
    }

    /// Returns true when every size is known, so that shapes and ranges are numbers.
    pub fn is_concrete(&self) -> bool {
        self.symbols.iter().all(|symbol| symbol.value.is_some())
    }

    /// The shape of a tensor in numbers, once every size is known.
    pub fn shape(&self, id: TensorId) -> Option<Vec<usize>> {
        let extent = |expr: &IndexExpr| expr.as_constant().and_then(|value| usize::try_from(value).ok());
        self.tensor(id).shape.iter().map(extent).collect()
    }

    /// The id of the tensor with this name.
    pub fn find_tensor(&self, name: &str) -> Option<TensorId> {
        self.tensors.iter().position(|tensor| tensor.name == name).map(|at| TensorId(at as u32))
    }

    /// The tensors whose role satisfies the predicate.
    pub fn tensors_with(&self, test: impl Fn(Role) -> bool) -> impl Iterator<Item = (TensorId, &TensorDecl)> {
        self.tensors
            .iter()
            .enumerate()
            .filter(move |(_, tensor)| test(tensor.role))
            .map(|(at, tensor)| (TensorId(at as u32), tensor))
    }

    /// Every statement in order, with the variables of the loops around it, outermost first.
    pub fn statements(&self) -> Vec<(&Statement, Vec<VarId>)> {
        fn collect<'a>(
            nodes: &'a [Node],
            loops: &mut Vec<VarId>,
            out: &mut Vec<(&'a Statement, Vec<VarId>)>,
        ) {
            for node in nodes {
                match node {
                    Node::Statement(statement) => out.push((statement, loops.clone())),
                    Node::For(inner) => {
                        loops.push(inner.var);
                        collect(&inner.body, loops, out);
                        loops.pop();
                    }
                }
            }
        }
        let mut out = Vec::new();
        for stage in &self.stages {
            collect(&stage.body, &mut Vec::new(), &mut out);
        }
        out
    }
}

impl Role {
    /// Returns true when the caller supplies the tensor.
    pub fn is_supplied(self) -> bool {
        matches!(self, Role::Input { .. } | Role::InOut)
    }

    /// Returns true when the caller receives the tensor.
    pub fn is_result(self) -> bool {
        matches!(self, Role::Output | Role::InOut)
    }
}
