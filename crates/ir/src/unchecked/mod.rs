//! Defines [`UncheckedProgram`], a program before its checks.
//!
//! An [`UncheckedProgram`] has the tables of a [`Program`](crate::Program) and a flat list of
//! statements, each with the loops around it. It lacks the results of the checks: the kinds of
//! variables, the roles of tensors and the stages. Front ends make unchecked programs: the crate
//! `syntax` from text, and [`crate::builder`] from calls in Rust. [`mod@crate::check`] checks an
//! unchecked program. If it finds no mistake, [`assemble`] makes the [`Program`](crate::Program).
//! [`UncheckedProgram::from_program`] turns a program back into its unchecked program, so that
//! [`crate::verify()`] can check it.
//!
//! An unchecked program may have gaps where the front end has already reported a mistake: a
//! statement without [`Parts`], a tensor without a shape, or a tensor that is marked as suspect
//! ([`Tensor::is_suspect`]). The checks skip gaps, so that one mistake is reported once.

mod assemble;
mod from_program;
mod read;
mod specialize;
pub(crate) mod tree;

pub(crate) use assemble::is_injective_in;
pub use assemble::{assemble, var_kind};
pub use read::{Guard, Read, collect_reads};

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::derived::Derived;
use crate::dtype::DType;
use crate::expr::{Expr, Origin};
use crate::index::{Atom, IndexExpr};
use crate::precondition::{Consequences, Precondition};
use crate::print::Names;
use crate::program::{Range, Scalar, ScalarId, Symbol, SymbolId, TensorId, Update, VarId};

/// A program before its checks.
#[derive(Clone, Debug, Default)]
pub struct UncheckedProgram {
    /// The function's name.
    pub name: String,
    /// Sizes, and the integer scalars that shapes, ranges or subscripts depend on.
    pub symbols: Vec<Symbol>,
    /// Scalar parameters, in the order of the signature.
    pub scalars: Vec<Scalar>,
    /// The symbols that are computed from scalars, each after those that it depends on.
    pub derived: Vec<Derived>,
    /// The comparisons of sizes that must hold.
    pub preconditions: Vec<Precondition>,
    /// Tensors: inputs in the order of the signature, then results in signature order, then
    /// temporaries.
    pub tensors: Vec<Tensor>,
    /// Index variables of all statements and loops.
    pub vars: Vec<Var>,
    /// The statements, in execution order.
    pub statements: Vec<Statement>,
    /// Whether statements are missing. Nothing is then found about missing definitions.
    pub is_incomplete: bool,
}

/// A tensor of an unchecked program.
#[derive(Clone, Debug)]
pub struct Tensor {
    /// The name of the tensor.
    pub name: String,
    /// The element type; `None` where a mistake hides it.
    pub dtype: Option<DType>,
    /// The extents; `None` where a mistake hides them.
    pub shape: Option<Vec<IndexExpr>>,
    /// Whether the shape is the hull of the elements that the statements write. Such a tensor needs
    /// no check that its writes stay below its extents.
    pub has_inferred_shape: bool,
    /// Where the content of the tensor comes from.
    pub source: Source,
    /// Whether a mistake about the tensor was found before the checks.
    pub is_suspect: bool,
    /// Where the tensor was declared or first defined.
    pub origin: Origin,
}

/// Where the content of a tensor comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The caller supplies an input.
    Input {
        /// The values stay the same between calls.
        constant: bool,
    },
    /// The program defines a result, or updates it if the program reads it first.
    Result,
    /// The caller supplies a result, and the program updates it.
    Updated,
    /// The program defines a temporary.
    Temporary,
}

/// An index variable of an unchecked program.
#[derive(Clone, Debug)]
pub struct Var {
    /// The name of the variable.
    pub name: String,
    /// The range of values; `None` where a mistake hides it.
    pub range: Option<Range>,
}

/// A statement of an unchecked program.
#[derive(Clone, Debug)]
pub struct Statement {
    /// The tensor that the statement writes.
    pub target: TensorId,
    /// How the value is combined with the element.
    pub update: Update,
    /// The variables of the ordered loops around the statement, outermost first.
    pub loops: Vec<VarId>,
    /// The statement's own variables, in the order of their first mention.
    pub vars: Vec<VarId>,
    /// The typed parts; `None` where a mistake hides them.
    pub parts: Option<Parts>,
    /// Where the statement was written.
    pub origin: Origin,
}

/// The typed parts of a statement.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The element that the statement writes, one index per dimension.
    pub indices: Vec<IndexExpr>,
    /// The value, which has the compute type of the target.
    pub value: Expr,
    /// Every access in the value and in the subscripts, with the conditions around it.
    pub reads: Vec<Read>,
}

impl Parts {
    /// The parts of a statement, with the accesses that they contain.
    pub fn new(indices: Vec<IndexExpr>, value: Expr) -> Parts {
        let reads = collect_reads(&value, &indices);
        Parts { indices, value, reads }
    }

    /// Replaces every subscript, index value and bound.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        self.indices.iter_mut().for_each(|index| *index = map(index));
        self.value.map_indices(map);
        for read in &mut self.reads {
            read.access.indices.iter_mut().for_each(|index| *index = map(index));
            for guard in &mut read.guards {
                Arc::make_mut(&mut guard.condition).map_indices(map);
            }
        }
    }
}

impl Statement {
    /// Returns true when the statement needs the old content of its elements.
    pub fn reads_target(&self) -> bool {
        matches!(self.update, Update::Reduce { reset: false, .. })
    }
}

impl UncheckedProgram {
    /// The tensor behind an id.
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()]
    }

    /// The variable behind an id.
    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    /// What follows from the preconditions.
    pub fn consequences(&self) -> Consequences {
        Consequences::new(&self.preconditions, self.symbols.iter().map(|symbol| symbol.least))
    }

    /// The variables of the loops around a statement, and its own.
    pub fn all_vars(&self, statement: &Statement) -> Vec<VarId> {
        statement.loops.iter().chain(&statement.vars).copied().collect()
    }
}

/// Adds the symbols of an expression to the set.
pub fn add_symbols(expr: &IndexExpr, symbols: &mut BTreeSet<SymbolId>) {
    expr.visit_atoms(&mut |atom| {
        if let Atom::Symbol(symbol) = atom {
            symbols.insert(*symbol);
        }
    });
}

impl Names for UncheckedProgram {
    fn var(&self, id: VarId) -> &str {
        &self.vars[id.index()].name
    }
    fn symbol(&self, id: SymbolId) -> &str {
        &self.symbols[id.index()].name
    }
    fn tensor(&self, id: TensorId) -> &str {
        &self.tensors[id.index()].name
    }
    fn scalar(&self, id: ScalarId) -> &str {
        &self.scalars[id.index()].name
    }
}
