//! Defines the [`Model`], the checker's working state for one function: tensors, variables and
//! statements, with calls already inlined.
//!
//! `resolve` builds the model, and each pass fills in more: a tensor's `dtype` after `types`, a
//! statement's `lowered` parts after `lower`, ranges and shapes after `ranges`. A part stays `None`
//! after a reported mistake: the target is then marked as `poisoned`, and later passes skip both.
//! After `ranges`, no lowered statement contains an extent. `unchecked` then moves the lowered
//! parts into an unchecked program, and the model keeps the positions for messages.

use std::cell::OnceCell;
use std::ops::Deref;

use tilewright_ir::interval::Knowledge;
use tilewright_ir::precondition::Consequences;
use tilewright_ir::print::Names;
use tilewright_ir::unchecked::Parts;
use tilewright_ir::{
    Atom, BinaryOp, DType, Derived, IndexExpr, Precondition, Range, Scalar, ScalarId, Symbol, SymbolId,
    TensorId, VarId,
};

use super::preconditions;
use super::reason::Reason;
use super::value::Value;
use crate::ast::{AssignOp, Name};
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::storage_order::StorageOrder;

/// The label of the call that a statement was inlined from.
pub(super) const CALLED_FROM_HERE: &str = "called from here";

/// A function that is being checked.
#[derive(Clone, Default)]
pub(super) struct Model {
    pub name: String,
    pub symbols: Vec<Symbol>,
    pub scalars: Vec<Scalar>,
    /// The symbols that are computed from scalars. Their expressions may contain extents until
    /// `derived` settles them.
    pub derived: Vec<Derived>,
    /// The named integers that are notation, and were given a value by name.
    pub given_names: Vec<GivenName>,
    /// The comparisons of sizes that must hold. Those of called functions may contain extents until
    /// `preconditions` settles them.
    pub preconditions: Preconditions,
    pub tensors: Vec<Tensor>,
    pub vars: Vec<Var>,
    pub loops: Vec<Loop>,
    pub statements: Vec<Statement>,
    /// For each generic function, the subscripts that stand for `..`.
    pub leading: Vec<String>,
    /// The views that the checked function itself defines.
    pub views: Vec<DefinedView>,
    /// The extents that calls require to be equal.
    pub equal_sizes: Vec<EqualSizes>,
    /// The variables that index dimensions of different sizes.
    pub mixed_sizes: Vec<MixedSizes>,
    /// Whether part of the text could not be parsed. Nothing is then reported about missing
    /// definitions.
    pub is_incomplete: bool,
    pub diagnostics: Vec<Diagnostic>,
    /// Whether `lower` is inside a value, not inside a subscript.
    pub in_value: bool,
}

/// A named integer that is notation, with the value that the user gives for it.
#[derive(Clone)]
pub(super) struct GivenName {
    pub name: String,
    pub index: IndexExpr,
    pub given: i64,
    pub span: Span,
}

/// The origin of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    Param { constant: bool },
    Result,
    Local,
}

#[derive(Clone)]
pub(super) struct Tensor {
    /// The name in the program: `g_3` for the element `g[3]` of a list.
    pub name: String,
    /// The name in messages, as it was written.
    pub text: String,
    /// Whether the tensor belongs to one iteration of a loop over stages.
    pub is_of_iteration: bool,
    pub span: Span,
    pub source: Source,
    /// `None` until the type is inferred.
    pub dtype: Option<DType>,
    /// The declared type, for results and locals that have one.
    pub declared_dtype: Option<DType>,
    /// `None` where a mistake hides the rank.
    pub rank: Option<usize>,
    /// The order of the dimensions in memory, if it is not that of the subscripts. All extents and
    /// subscripts of the model are in the order of memory.
    pub stored: Option<StorageOrder>,
    /// The declared extents, which inputs always have.
    pub declared: Option<Vec<IndexExpr>>,
    /// The extents, once they are inferred: one past the last index of each dimension. After
    /// `origins`, they count from the origin.
    pub shape: Option<Vec<IndexExpr>>,
    /// The coordinates of the first element, if one is negative.
    pub origin: Option<Vec<IndexExpr>>,
    /// Whether a mistake about the tensor was reported; consequences of it are not reported.
    pub poisoned: bool,
}

#[derive(Clone)]
pub(super) struct Var {
    pub name: String,
    pub span: Span,
    pub range: Option<Range>,
    /// The declared range, if its bounds depend on other variables. `range` is then its hull.
    pub dependent: Option<Range>,
    /// The reasons for the range.
    pub reasons: Vec<Reason>,
}

/// An ordered loop. Each statement lists the loops around it.
#[derive(Clone)]
pub(super) struct Loop {
    pub var: VarId,
}

/// The index of a loop in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LoopId(pub usize);

#[derive(Clone)]
pub(super) struct Statement {
    pub target: TensorId,
    pub target_span: Span,
    pub op: AssignOp,
    pub op_span: Span,
    pub span: Span,
    /// The position of the call that the statement was inlined from, if any.
    pub call: Option<Span>,
    pub loops: Vec<LoopId>,
    /// The statement's own variables, in the order of their first mention.
    pub vars: Vec<VarId>,
    /// The parts of the statement without types; `lowered` holds the typed parts.
    pub resolved: ResolvedStatement,
    /// `None` until types are known, or after a mistake.
    pub lowered: Option<Parts>,
    /// The typed accesses through views.
    pub view_reads: Vec<LoweredViewRead>,
    /// Whether the ranges of the statement are inferred.
    pub has_ranges: bool,
}

/// The parts of a statement with names resolved, before types are known.
#[derive(Clone)]
pub(super) struct ResolvedStatement {
    pub indices: Vec<Value>,
    pub value: Value,
    pub exists: Vec<Value>,
    pub ranges: Vec<(VarId, Value, Value)>,
    pub view_reads: Vec<ViewRead>,
}

/// An access through a view, as it was written: its subscripts may lie beyond the tensor.
#[derive(Clone, Debug)]
pub(super) struct ViewRead {
    /// The name of the view.
    pub name: String,
    pub indices: Vec<Value>,
    /// One past the last index of each dimension of the view.
    pub ends: Vec<Value>,
    pub span: Span,
}

/// A [`ViewRead`] with its subscripts in normal form.
#[derive(Clone, Debug)]
pub(super) struct LoweredViewRead {
    /// The access as text.
    pub access: String,
    pub indices: Vec<IndexExpr>,
    pub ends: Vec<IndexExpr>,
    pub span: Span,
}

/// The definition of a view.
#[derive(Clone)]
pub(super) struct DefinedView {
    pub name: Name,
    /// Whether a statement reads the view, passes it to a function or makes another view of it.
    pub is_used: bool,
}

/// The comparisons of sizes that must hold, and what follows from them.
#[derive(Clone, Default)]
pub(super) struct Preconditions {
    all: Vec<ModelPrecondition>,
    consequences: OnceCell<Consequences>,
}

impl Preconditions {
    /// The list, to be changed. The consequences are computed anew when a proof asks for them.
    pub fn edit(&mut self) -> &mut Vec<ModelPrecondition> {
        self.consequences.take();
        &mut self.all
    }
}

impl Deref for Preconditions {
    type Target = [ModelPrecondition];
    fn deref(&self) -> &[ModelPrecondition] {
        &self.all
    }
}

/// A comparison of sizes that must hold.
#[derive(Clone)]
pub(super) struct ModelPrecondition {
    pub op: BinaryOp,
    pub left: IndexExpr,
    pub right: IndexExpr,
    pub span: Span,
    /// The values of the static parameters in the precondition.
    pub statics: Vec<(String, i64)>,
    /// The call whose function has the precondition, unless the checked function itself has it.
    pub call: Option<CallSite>,
}

/// A call of a function with a precondition.
#[derive(Clone)]
pub(super) struct CallSite {
    pub span: Span,
    pub callee: String,
    /// The precondition, with the extents of the arguments in place of the function's sizes.
    pub text: String,
}

impl ModelPrecondition {
    /// The precondition as part of a program.
    pub fn in_program(&self) -> Precondition {
        let (left, right) = (self.left.clone(), self.right.clone());
        Precondition { op: self.op, left, right, origin: self.span.origin() }
    }
}

/// Two extents that a call requires to be equal.
#[derive(Clone)]
pub(super) struct EqualSizes {
    pub left: IndexExpr,
    pub right: IndexExpr,
    pub span: Span,
    pub description: String,
}

/// A variable that alone indexes two dimensions, whose sizes may differ.
#[derive(Clone)]
pub(super) struct MixedSizes {
    pub var: VarId,
    pub left: AccessExtent,
    pub right: AccessExtent,
    /// Whether both sizes are numbers in the program text, so that they differ for all sizes.
    pub certain: bool,
}

/// A size that limits a variable, and the access that it comes from.
#[derive(Clone)]
pub(super) struct AccessExtent {
    pub extent: IndexExpr,
    pub span: Span,
    pub access: String,
}

impl Model {
    pub fn tensor(&self, id: TensorId) -> &Tensor {
        &self.tensors[id.index()]
    }

    pub fn var(&self, id: VarId) -> &Var {
        &self.vars[id.index()]
    }

    pub fn add_var(&mut self, name: &str, span: Span) -> VarId {
        let id = VarId(self.vars.len() as u32);
        let name = name.to_owned();
        self.vars.push(Var { name, span, range: None, dependent: None, reasons: Vec::new() });
        id
    }

    pub fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    /// Reports a diagnostic about a statement. If the statement was inlined, the diagnostic also
    /// shows the call.
    pub fn report_in(&mut self, at: usize, mut diagnostic: Diagnostic) {
        let statement = &self.statements[at];
        if let Some(call) = statement.call
            && statement.span.contains(diagnostic.primary.0)
            && call != diagnostic.primary.0
        {
            diagnostic.secondary.push((call, CALLED_FROM_HERE.to_owned()));
        }
        self.diagnostics.push(diagnostic);
    }

    /// What follows from the preconditions.
    fn consequences(&self) -> &Consequences {
        self.preconditions.consequences.get_or_init(|| {
            let own_least = self.symbols.iter().map(|symbol| symbol.least);
            Consequences::new(&preconditions::of_program(self), own_least)
        })
    }

    /// Replaces every bound, extent, subscript and index value.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        for var in &mut self.vars {
            for range in [&mut var.range, &mut var.dependent].into_iter().flatten() {
                *range = Range { from: map(&range.from), to: map(&range.to) };
            }
        }
        for derived in &mut self.derived {
            derived.value.map_indices(map);
        }
        for named in &mut self.given_names {
            named.index = map(&named.index);
        }
        for precondition in self.preconditions.edit() {
            precondition.left = map(&precondition.left);
            precondition.right = map(&precondition.right);
        }
        for tensor in &mut self.tensors {
            for shape in [&mut tensor.shape, &mut tensor.declared].into_iter().flatten() {
                shape.iter_mut().for_each(|extent| *extent = map(extent));
            }
        }
        for lowered in self.statements.iter_mut().filter_map(|statement| statement.lowered.as_mut()) {
            lowered.map_indices(map);
        }
        for read in self.statements.iter_mut().flat_map(|statement| &mut statement.view_reads) {
            read.indices.iter_mut().chain(&mut read.ends).for_each(|index| *index = map(index));
        }
        for equal in &mut self.equal_sizes {
            equal.left = map(&equal.left);
            equal.right = map(&equal.right);
        }
        for mixed in &mut self.mixed_sizes {
            mixed.left.extent = map(&mixed.left.extent);
            mixed.right.extent = map(&mixed.right.extent);
        }
    }

    /// The variables of a statement and of the loops around it.
    pub fn all_vars(&self, statement: &Statement) -> Vec<VarId> {
        statement.loops.iter().map(|id| self.loops[id.0].var).chain(statement.vars.iter().copied()).collect()
    }

    /// The expression with inferred extents substituted, or `None` while an extent is not inferred.
    pub fn with_extents(&self, expr: &IndexExpr) -> Option<IndexExpr> {
        if !expr.any_atom(&mut |atom| matches!(atom, Atom::Extent(..))) {
            return Some(expr.clone());
        }
        let mut known = true;
        let replaced = expr.substitute(&mut |atom| match atom {
            Atom::Extent(tensor, dimension) => {
                let shape = self.tensor(*tensor).shape.as_ref();
                let extent = shape.and_then(|shape| shape.get(*dimension as usize));
                known &= extent.is_some();
                extent.cloned()
            }
            _ => None,
        });
        known.then_some(replaced)
    }
}

impl Tensor {
    /// Takes subscripts to the order of memory.
    pub fn in_memory_order(&self, subscripts: Vec<Value>) -> Vec<Value> {
        match &self.stored {
            Some(stored) => stored.to_memory(&subscripts),
            None => subscripts,
        }
    }

    /// The dimension in memory of the subscript at this place.
    pub fn dimension(&self, place: usize) -> usize {
        self.stored.as_ref().map_or(place, |stored| stored.dimension(place))
    }
}

impl Statement {
    /// Returns true when the statement needs the old content of its elements.
    pub fn reads_target(&self) -> bool {
        matches!(self.op, AssignOp::Reduce { reset: false, .. })
    }
}

impl Knowledge for Model {
    fn range(&self, var: VarId) -> Option<Range> {
        self.vars[var.index()].range.clone()
    }
    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.symbols[symbol.index()].least.max(self.consequences().least(symbol))
    }
    fn facts(&self) -> &[IndexExpr] {
        self.consequences().facts()
    }
}

impl Names for Model {
    fn var(&self, id: VarId) -> &str {
        &self.vars[id.index()].name
    }
    fn symbol(&self, id: SymbolId) -> &str {
        &self.symbols[id.index()].name
    }
    fn tensor(&self, id: TensorId) -> &str {
        &self.tensors[id.index()].text
    }
    fn scalar(&self, id: ScalarId) -> &str {
        &self.scalars[id.index()].name
    }
    fn place_of(&self, id: TensorId, dimension: usize) -> usize {
        self.tensor(id).stored.as_ref().map_or(dimension, |stored| stored.place(dimension))
    }
}
