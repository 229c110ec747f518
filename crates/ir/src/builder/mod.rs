//! Builds programs in Rust, without text.
//!
//! A [`ProgramBuilder`] collects sizes, tensors, index variables and statements.
//! [`ProgramBuilder::build`] checks everything that [`verify()`](crate::verify()) checks, and
//! returns a [`Program`] or all the mistakes that it found. Values are written with operators:
//! matrix multiplication is
//!
//! ```
//! use tilewright_ir::builder::ProgramBuilder;
//! use tilewright_ir::{DType, ReduceOp};
//!
//! let mut p = ProgramBuilder::new("mm");
//! let (m, k, n) = (p.size("M"), p.size("K"), p.size("N"));
//! let a = p.input("A", DType::Float32, (m, k));
//! let b = p.input("B", DType::Float32, (k, n));
//! let c = p.output("C", DType::Float32, (m, n));
//! let (i, j, l) = (p.index("i", 0, m), p.index("j", 0, n), p.index("k", 0, k));
//! p.reduce(ReduceOp::Add, c.at((i, j)), a.at((i, l)) * b.at((l, j)));
//! let program = p.build().expect("every access is in bounds");
//! assert_eq!(program.stages.len(), 1);
//! ```
//!
//! Unlike text, a builder infers neither ranges nor shapes, and converts no types implicitly except
//! those of literals and indices. [`Index`] is a subscript or bound, and [`Value`] a value. Handles
//! belong to the builder that made them. Mistakes in handles, names and types are reported by
//! `build`, so that statements need no `?`:
//!
//! ```
//! # use tilewright_ir::builder::ProgramBuilder;
//! # use tilewright_ir::DType;
//! let mut p = ProgramBuilder::new("shift");
//! let n = p.size("N");
//! let (x, y) = (p.input("x", DType::Float32, n), p.output("y", DType::Float32, n));
//! let i = p.index("i", 0, n);
//! p.assign(y.at(i), x.at(i + 1));
//! let mistakes = p.build().expect_err("the last element of x does not exist");
//! assert_eq!(
//!     mistakes[0].to_string(),
//!     "`x(i + 1)` leaves its tensor: the index of dimension 0 is 1 and the extent is 1 at i = 0 \
//!      with N = 1"
//! );
//! ```
//!
//! `finish` turns the collected statements into an
//! [`UncheckedProgram`](crate::unchecked::UncheckedProgram).

mod error;
mod finish;
mod index;
mod value;

pub use error::{BuildError, TypeError};
pub(crate) use finish::{check_unchecked, size_mistakes};
pub use index::{Index, Indices, Size, Var};
pub use value::{Element, Tensor, Value};

use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::operators::BinaryOp;
use crate::program::{
    Program, ReduceOp, Scalar, ScalarId, Symbol, SymbolId, SymbolKind, TensorId, Update, VarId,
};
use crate::unchecked::Source;

/// Collects the parts of a program.
#[derive(Clone, Debug)]
pub struct ProgramBuilder {
    name: String,
    symbols: Vec<Symbol>,
    scalars: Vec<Scalar>,
    preconditions: Vec<DeclaredPrecondition>,
    tensors: Vec<DeclaredTensor>,
    vars: Vec<DeclaredVar>,
    statements: Vec<DeclaredStatement>,
    /// The variables of the ordered loops that are open, outermost first.
    loops: Vec<VarId>,
}

#[derive(Clone, Debug)]
struct DeclaredPrecondition {
    op: BinaryOp,
    left: Index,
    right: Index,
}

#[derive(Clone, Debug)]
struct DeclaredTensor {
    name: String,
    dtype: DType,
    shape: Vec<Index>,
    source: Source,
}

/// A variable as it was declared. Each statement that mentions it gets a copy of its own.
#[derive(Clone, Debug)]
struct DeclaredVar {
    name: String,
    from: Index,
    to: Index,
    is_ordered: bool,
}

#[derive(Clone, Debug)]
struct DeclaredStatement {
    target: Element,
    update: Update,
    value: Value,
    loops: Vec<VarId>,
}

impl ProgramBuilder {
    /// Begins a program of this name.
    pub fn new(name: impl Into<String>) -> ProgramBuilder {
        ProgramBuilder {
            name: name.into(),
            symbols: Vec::new(),
            scalars: Vec::new(),
            preconditions: Vec::new(),
            tensors: Vec::new(),
            vars: Vec::new(),
            statements: Vec::new(),
            loops: Vec::new(),
        }
    }

    /// Adds a size, which is at least 1.
    pub fn size(&mut self, name: impl Into<String>) -> Size {
        self.symbol(name.into(), SymbolKind::Size, Some(1))
    }

    /// Adds a scalar parameter, which the caller passes with every call.
    pub fn scalar(&mut self, name: impl Into<String>, dtype: DType) -> Value {
        let scalar = self.add_scalar(name.into(), dtype);
        let expr = Expr { dtype, kind: ExprKind::Scalar(scalar) };
        Value::typed(expr.cast(dtype.compute_type()))
    }

    /// Adds an integer scalar parameter that shapes, ranges and subscripts may contain. Its value
    /// must be known before a program is compiled, like that of a size. A scalar that multiplies or
    /// divides an index must be positive, so that proofs about the index succeed.
    pub fn index_scalar(&mut self, name: impl Into<String>, dtype: DType, least: Option<i64>) -> Size {
        let name = name.into();
        let scalar = self.add_scalar(name.clone(), dtype);
        self.symbol(name, SymbolKind::Scalar(scalar), least)
    }

    fn add_scalar(&mut self, name: String, dtype: DType) -> ScalarId {
        self.scalars.push(Scalar { name, dtype });
        ScalarId(self.scalars.len() as u32 - 1)
    }

    fn symbol(&mut self, name: String, kind: SymbolKind, least: Option<i64>) -> Size {
        self.symbols.push(Symbol { name, kind, least, value: None });
        Size(SymbolId(self.symbols.len() as u32 - 1))
    }

    /// Requires that a comparison of sizes holds, such as `m % 4 == 0`. The proofs assume it, and
    /// the program is refused at other sizes. The sides contain sizes and numbers only.
    pub fn require(&mut self, left: impl Into<Index>, op: BinaryOp, right: impl Into<Index>) {
        self.preconditions.push(DeclaredPrecondition { op, left: left.into(), right: right.into() });
    }

    /// Adds a tensor that the caller supplies.
    pub fn input(&mut self, name: impl Into<String>, dtype: DType, shape: impl Indices) -> Tensor {
        self.tensor(name.into(), dtype, shape, Source::Input { constant: false })
    }

    /// Adds a tensor that the caller supplies, with values that stay the same between calls.
    pub fn constant(&mut self, name: impl Into<String>, dtype: DType, shape: impl Indices) -> Tensor {
        self.tensor(name.into(), dtype, shape, Source::Input { constant: true })
    }

    /// Adds a tensor that the program defines for the caller.
    pub fn output(&mut self, name: impl Into<String>, dtype: DType, shape: impl Indices) -> Tensor {
        self.tensor(name.into(), dtype, shape, Source::Result)
    }

    /// Adds a tensor that the caller supplies and the program updates.
    pub fn in_out(&mut self, name: impl Into<String>, dtype: DType, shape: impl Indices) -> Tensor {
        self.tensor(name.into(), dtype, shape, Source::Updated)
    }

    /// Adds a tensor that exists only inside the program.
    pub fn temporary(&mut self, name: impl Into<String>, dtype: DType, shape: impl Indices) -> Tensor {
        self.tensor(name.into(), dtype, shape, Source::Temporary)
    }

    fn tensor(&mut self, name: String, dtype: DType, shape: impl Indices, source: Source) -> Tensor {
        self.tensors.push(DeclaredTensor { name, dtype, shape: shape.indices(), source });
        Tensor { id: TensorId(self.tensors.len() as u32 - 1), dtype }
    }

    /// Adds an index variable that runs from `from` up to, not including, `to`. Several statements
    /// may use it; each has its own copy.
    pub fn index(&mut self, name: impl Into<String>, from: impl Into<Index>, to: impl Into<Index>) -> Var {
        let (from, to) = (from.into(), to.into());
        self.vars.push(DeclaredVar { name: name.into(), from, to, is_ordered: false });
        Var(VarId(self.vars.len() as u32 - 1))
    }

    /// Adds an ordered loop: the statements that `body` adds run for every value of the variable,
    /// in ascending order.
    pub fn ordered_loop(
        &mut self,
        name: impl Into<String>,
        from: impl Into<Index>,
        to: impl Into<Index>,
        body: impl FnOnce(&mut ProgramBuilder, Var),
    ) {
        let var = self.index(name, from, to);
        self.vars[var.0.index()].is_ordered = true;
        self.loops.push(var.0);
        body(self, var);
        self.loops.pop();
    }

    /// Adds a statement that assigns the value to the element, for all values of the variables in
    /// both.
    pub fn assign(&mut self, target: Element, value: impl Into<Value>) {
        self.statement(target, Update::Assign, value.into());
    }

    /// Adds a statement that sets the elements to the neutral element of the operator and reduces
    /// the values into them. The variables that only the value mentions are reduced.
    pub fn reduce(&mut self, op: ReduceOp, target: Element, value: impl Into<Value>) {
        self.statement(target, Update::Reduce { op, reset: true }, value.into());
    }

    /// Adds a statement that reduces the values into the elements, on top of their old content.
    pub fn accumulate(&mut self, op: ReduceOp, target: Element, value: impl Into<Value>) {
        self.statement(target, Update::Reduce { op, reset: false }, value.into());
    }

    fn statement(&mut self, target: Element, update: Update, value: Value) {
        self.statements.push(DeclaredStatement { target, update, value, loops: self.loops.clone() });
    }

    /// Checks the program, for all sizes.
    pub fn build(self) -> Result<Program, Vec<BuildError>> {
        finish::finish(self)
    }

    /// Checks the program at the given sizes and integer scalars, by name. Other sizes stay open.
    pub fn build_at<'s>(
        mut self,
        sizes: impl IntoIterator<Item = (&'s str, i64)>,
    ) -> Result<Program, Vec<BuildError>> {
        let mut unknown = Vec::new();
        for (name, value) in sizes {
            match self.symbols.iter_mut().find(|symbol| symbol.name == name) {
                Some(symbol) => symbol.value = Some(value),
                None => unknown.push(BuildError::UnknownSize(name.to_owned())),
            }
        }
        if unknown.is_empty() { self.build() } else { Err(unknown) }
    }
}
