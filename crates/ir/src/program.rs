//! The shape of a program: tensors, symbols, and stages of statements in order.
//!
//! A statement means: for every point of the box of its variables, in any order, compute the value and store it
//! at, or reduce it into, the element its left-hand indices name. All reads happen before the first write, which
//! the checker has made sure nobody can tell. Statements run one after the other, and a [`ForLoop`] runs its body
//! once for every value of its variable, in ascending order.

use std::sync::Arc;

use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Origin};
use crate::index::IndexExpr;

macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = concat!("Points at ", $what, ".")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl $name {
            /// The place in its table.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id!(TensorId, "a tensor of a program");
id!(VarId, "an index variable of a program");
id!(SymbolId, "a size or integer scalar of a program");
id!(ScalarId, "a scalar parameter of a program");

/// What to compute.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The function's name.
    pub name: String,
    /// Sizes, and the integer scalars that shapes, ranges or subscripts depend on. Once a value is known, the
    /// expressions hold it in the symbol's place.
    pub symbols: Vec<Symbol>,
    /// Scalar parameters, in the order of the signature.
    pub scalars: Vec<Scalar>,
    /// Tensors: inputs in the order of the signature, then results in theirs, then temporaries.
    pub tensors: Vec<TensorDecl>,
    /// Index variables of all statements.
    pub vars: Vec<Var>,
    /// What is computed, in order.
    pub stages: Vec<Stage>,
    /// Whether a product that is an operand of `+` or `-` may be rounded together with that sum, by a fused
    /// multiply-add. Where both operands are products, each is always rounded by itself.
    pub contract: bool,
    /// The same program with symbols where this one holds their values, if it holds any. Programs that differ in
    /// their sizes alone have this in common.
    pub general: Option<Arc<Program>>,
}

/// A size or an integer scalar.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: SymbolKind,
    /// The least value it may have: 1 for sizes, and for scalars that multiply or divide an index.
    pub least: Option<i64>,
    /// Its value, where it is known.
    pub value: Option<i64>,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// The extent of a dimension.
    Size,
    /// An integer scalar parameter.
    Scalar(ScalarId),
}

/// A scalar parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scalar {
    /// Its name.
    pub name: String,
    /// Its type.
    pub dtype: DType,
}

/// A tensor of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorDecl {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents, of symbols and numbers only.
    pub shape: Vec<IndexExpr>,
    /// Who supplies and who gets it.
    pub role: Role,
}

/// Who supplies a tensor and who gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The caller supplies it.
    Input {
        /// Its values stay the same between calls, so it may be repacked once.
        constant: bool,
    },
    /// The program defines it for the caller.
    Output,
    /// The caller supplies it and the program updates it.
    InOut,
    /// It lives inside the program.
    Temporary,
}

/// An index variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    /// Its name in the program text.
    pub name: String,
    /// Where it ranges; the bounds hold symbols and numbers only.
    pub range: Range,
    /// How it is used.
    pub kind: VarKind,
}

/// How a variable is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VarKind {
    /// Different values write different elements.
    Spatial,
    /// Different values are reduced into one element.
    Reduction,
    /// The variable of an ordered loop.
    Ordered,
}

/// Integers from `from` up to, not including, `to`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first value.
    pub from: IndexExpr,
    /// One past the last value.
    pub to: IndexExpr,
}

impl Range {
    /// How many values there are.
    pub fn extent(&self) -> IndexExpr {
        self.to.sub(&self.from)
    }
}

/// Consecutive statements that define one tensor, or an ordered loop that defines several together.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// The tensors it defines, in the order of their first statement.
    pub tensors: Vec<TensorId>,
    /// Its statements and loops in order.
    pub body: Vec<Node>,
}

/// A statement, or a loop around some.
#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    /// One statement.
    Statement(Statement),
    /// An ordered loop.
    For(ForLoop),
}

/// Runs its body for every value of its variable, in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct ForLoop {
    /// The variable.
    pub var: VarId,
    /// What is run.
    pub body: Vec<Node>,
}

/// One comprehension.
#[derive(Clone, Debug, PartialEq)]
pub struct Statement {
    /// The tensor it writes.
    pub target: TensorId,
    /// The element it writes, one index a dimension.
    pub indices: Vec<IndexExpr>,
    /// The variables of its box: spatial ones in the order of the left-hand side, then reductions. Variables of
    /// the loops around it are not among them.
    pub vars: Vec<VarId>,
    /// How the value gets into the element.
    pub update: Update,
    /// The value; of the target's compute type.
    pub value: Expr,
    /// Whether nobody wrote it: it puts 0 into all elements of a tensor of which it could not be proved that the program
    /// defines what it needs. Kernels so never show what was in memory before; the interpreter leaves it out, and sees what
    /// is not defined.
    pub is_filler: bool,
    /// Where the statement was written.
    pub origin: Origin,
}

/// How a value gets into its element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// It replaces what was there.
    Assign,
    /// It is reduced into what was there.
    Reduce {
        /// The operator.
        op: ReduceOp,
        /// The elements that the statement names are first set to the operator's neutral element; a scatter
        /// whose index depends on data so resets the whole tensor.
        reset: bool,
    },
}

/// Associative and commutative operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum ReduceOp {
    Add,
    Mul,
    Min,
    Max,
}

impl ReduceOp {
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

    /// What its result is called.
    pub fn total(self) -> &'static str {
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

    /// The same program with every operation rounded by itself: see [`Program::contract`].
    pub fn without_contraction(self) -> Program {
        let general = self.general.map(|general| Arc::new((*general).clone().without_contraction()));
        Program { contract: false, general, ..self }
    }

    /// Whether every size is known, so that shapes and ranges are numbers.
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

    /// Tensors whose role satisfies the predicate.
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
    /// Supplied by the caller.
    pub fn is_supplied(self) -> bool {
        matches!(self, Role::Input { .. } | Role::InOut)
    }

    /// Handed back to the caller.
    pub fn is_result(self) -> bool {
        matches!(self, Role::Output | Role::InOut)
    }
}
