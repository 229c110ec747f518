//! Resolves the names of a function to their definitions, replaces calls by the statements of the
//! called function, and returns the [`Model`].
//!
//! Sizes and tensors have separate name spaces: `W(f, c)` is the tensor and a bare `W` the size, as
//! the paper's own programs need. A bare name without a definition is an index variable of its
//! statement. In an inlined call, the argument tensors replace the parameters, and their extents
//! replace the sizes of the function.

mod calls;
mod declarations;
mod definitions;
mod expressions;
mod preconditions;
mod random;
mod scalar_functions;
mod signature;
mod statements;
mod views;

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tilewright_ir::{TensorId, VarId};

use super::Bindings;
use super::expand::{is_of_iteration, written_name};
use super::model::{LoopId, Model, ViewRead};
use super::value::Value;
use crate::ast::{Function, Module, Name, Stmt, StmtKind};
use crate::diagnostic::{Code, Diagnostic, most_similar};
use crate::parser::MOST_NESTING;
use crate::span::Span;

pub(super) use scalar_functions::diagnose as diagnose_scalar_function;
pub(super) use signature::builtin_named;
use views::{View, ViewState};

/// The help text for a range that depends on data, or for a loop that depends on a variable.
pub(super) const DEPENDENT_RANGE_HELP: &str =
    "take the whole range and put a condition into the expression: `k < n(i) ? A(k) : 0`";
/// The maximal depth of nested calls.
pub(super) const MOST_CALLS: usize = 64;
/// The maximal number of statements after loops over stages are written out, and after inlining.
pub(super) const MOST_STATEMENTS: usize = 10_000;
/// The maximal depth of an expression with bindings and calls in place.
const MOST_DEPTH: usize = 3 * MOST_NESTING;
/// The maximal number of nodes of a binding or argument; each use makes a copy of it.
const MOST_NODES: usize = 1000;

/// Builds the model of a function with every name resolved.
pub(super) fn resolve(module: &Module, function: &Function, bindings: &Bindings) -> Model {
    let mut resolver = Resolver::new(module, bindings);
    resolver.model.name = function.name.text.clone();
    let mut scope = Scope::new(function);
    let params = function.params.iter().map(|param| &param.name);
    let names = params.chain(function.results.iter().map(|result| &result.name));
    resolver.reserved_names = names.map(|name| name.text.clone()).collect();
    resolver.declare_parameters(function, &mut scope);
    resolver.preconditions(function, None, &scope);
    resolver.declare_results(function, &mut scope);
    resolver.function_body(function, &mut scope);
    resolver.model
}

struct Resolver<'a> {
    module: &'a Module,
    bindings: &'a Bindings,
    model: Model,
    /// The functions that are being inlined, outermost first, with the position of each call.
    call_stack: Vec<(String, Span)>,
    /// The number of times that each function was inlined.
    calls: HashMap<String, usize>,
    /// The names of the tensors in the program.
    tensor_names: HashSet<String>,
    /// The names of the parameters and results of the function that is checked.
    reserved_names: HashSet<String>,
    /// The prefixes of the names of temporaries, one per call.
    prefixes: HashSet<String>,
    /// The views in `model.views`, by their addresses. The views stay alive here, so that no
    /// address is used twice.
    defined_views: HashMap<*const View, (Rc<View>, usize)>,
    /// The position of the outermost call of a function on numbers that is being replaced.
    call_span: Option<Span>,
    /// Whether that text is the text of a standard function.
    in_standard: bool,
    /// Whether the value of such a call was too large. No further call is replaced then, because
    /// each may take as long.
    has_too_large_value: bool,
    /// The number of such calls that were replaced in the current statement.
    expansions: usize,
    /// The number of such calls that were replaced in all statements.
    all_expansions: usize,
    /// The number of nodes of their values.
    expanded_nodes: usize,
    /// The number of expressions around the current one, also those of functions around it.
    depth: usize,
}

/// The meaning of the names of one function, at one of its calls.
struct Scope {
    function: String,
    /// The prefix of the names of the function's temporaries; `None` in the function that is
    /// checked.
    prefix: Option<String>,
    sizes: HashMap<String, Value>,
    scalars: HashMap<String, Value>,
    tensors: HashMap<String, TensorId>,
    views: HashMap<String, ViewState>,
    /// The loops around the call, outermost first. The called function has no names for their
    /// variables.
    outer_loops: Vec<LoopId>,
    /// The loops of the function itself.
    loops: Vec<(String, LoopId)>,
}

/// The meaning of the names of one statement.
struct StatementScope<'a> {
    scope: &'a Scope,
    vars: Vec<(String, VarId)>,
    lets: HashMap<String, Value>,
    unknown: UnknownName,
    /// The accesses through views.
    view_reads: Vec<ViewRead>,
}

/// The meaning of a name without a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnknownName {
    /// A new variable of the statement.
    Variable,
    /// A mistake where only sizes and integer scalars have names.
    NoSize,
    /// A mistake in a function on numbers.
    NoParameter,
}

impl Scope {
    fn new(function: &Function) -> Scope {
        Scope::named(&function.name.text)
    }

    /// A scope without names, in the function of this name.
    fn named(function: &str) -> Scope {
        Scope {
            function: function.to_owned(),
            prefix: None,
            sizes: HashMap::new(),
            scalars: HashMap::new(),
            tensors: HashMap::new(),
            views: HashMap::new(),
            outer_loops: Vec::new(),
            loops: Vec::new(),
        }
    }
}

impl Scope {
    /// A scope in which names are sizes and scalars, and no name becomes a variable.
    fn sizes_only(&self) -> StatementScope<'_> {
        StatementScope::new(self, UnknownName::NoSize)
    }

    /// Every loop around a statement of the function, including those around the call, outermost
    /// first.
    fn all_loops(&self) -> impl Iterator<Item = LoopId> {
        self.outer_loops.iter().copied().chain(self.loops.iter().map(|(_, id)| *id))
    }
}

impl<'a> StatementScope<'a> {
    fn new(scope: &'a Scope, unknown: UnknownName) -> StatementScope<'a> {
        StatementScope { scope, vars: Vec::new(), lets: HashMap::new(), unknown, view_reads: Vec::new() }
    }
}

impl<'a> Resolver<'a> {
    fn new(module: &'a Module, bindings: &'a Bindings) -> Resolver<'a> {
        Resolver {
            module,
            bindings,
            model: Model::default(),
            call_stack: Vec::new(),
            calls: HashMap::new(),
            tensor_names: HashSet::new(),
            reserved_names: HashSet::new(),
            prefixes: HashSet::new(),
            defined_views: HashMap::new(),
            call_span: None,
            in_standard: false,
            has_too_large_value: false,
            expansions: 0,
            all_expansions: 0,
            expanded_nodes: 0,
            depth: 0,
        }
    }
}

impl Resolver<'_> {
    /// Reports a mistake, with names as they are written in the program.
    fn report(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.map_texts(written_name);
        self.model.report(diagnostic);
    }

    fn report_undefined(&mut self, name: &Name, what: &str, candidates: Vec<&str>) {
        let mut diagnostic =
            Diagnostic::error(Code::UndefinedName, name.span, format!("there is no {what} `{}`", name.text));
        if let Some(help) = expressions::reduction_help(&name.text) {
            diagnostic = diagnostic.help(help);
        } else if let Some(close) = most_similar(&name.text, candidates) {
            diagnostic = diagnostic.help(format!("did you mean `{close}`?"));
        }
        self.report(diagnostic);
    }

    fn report_collision(&mut self, name: &Name, other: &str, first: Option<Span>) {
        let message = format!("`{}` is already {other}", name.text);
        let mut diagnostic =
            Diagnostic::error(Code::NameCollision, name.span, message).help("choose another name");
        if let Some(first) = first {
            diagnostic = diagnostic.secondary_label(first, "the other is here");
        }
        self.report(diagnostic);
    }

    /// Declares every tensor that the body defines, then resolves its statements.
    fn function_body(&mut self, function: &Function, scope: &mut Scope) {
        self.model.is_incomplete |= function.is_incomplete;
        self.declare_targets(&function.body, scope);
        for result in &function.results {
            let id = scope.tensors.get(&result.name.text);
            let undefined = id.is_some_and(|id| {
                let tensor = self.model.tensor(*id);
                tensor.rank.is_none() && !tensor.poisoned && !is_target(&function.body, &result.name.text)
            });
            if undefined && !function.is_incomplete {
                let message = format!("nothing defines the result `{}`", result.name.text);
                let is_other =
                    |name: &&str| !is_of_iteration(name) && !is_in_list_of(name, &result.name.text);
                let candidates = scope.tensors.keys().map(String::as_str).filter(is_other);
                let candidates = candidates.collect::<Vec<_>>();
                let mut diagnostic = Diagnostic::error(Code::UndefinedElement, result.name.span, message);
                if let Some(note) = defined_elements(function, &result.name.text) {
                    diagnostic = diagnostic.note(note).help("define every tensor of a list that is a result");
                } else if let Some(close) = most_similar(&result.name.text, candidates) {
                    diagnostic = diagnostic.help(format!("did you mean `{close}`?"));
                }
                self.report(diagnostic);
            }
        }
        self.statements(&function.body, scope);
    }
}

/// Returns true for two tensors of one list.
fn is_in_list_of(name: &str, other: &str) -> bool {
    let list = |name: &str| name.split_once('[').map(|(list, _)| list.to_owned());
    list(name).is_some() && list(name) == list(other)
}

/// Tells which tensors of a result's list statements define.
fn defined_elements(function: &Function, result: &str) -> Option<String> {
    let (list, _) = result.split_once('[')?;
    let own = function.results.iter().map(|own| own.name.text.as_str());
    let own = own.filter(|own| is_in_list_of(own, result) && is_target(&function.body, own));
    let names: Vec<String> = own.map(|own| format!("`{own}`")).collect();
    Some(match names.as_slice() {
        [] => format!("no statement defines a tensor of the list `{list}`"),
        _ => format!("statements define {}", names.join(", ")),
    })
}

/// Returns true when some statement defines a tensor of this name.
fn is_target(body: &[Stmt], name: &str) -> bool {
    body.iter().any(|statement| match &statement.kind {
        StmtKind::Comprehension(inner) => inner.target.text == name,
        StmtKind::Call { targets, .. } => targets.iter().any(|target| target.text == name),
        StmtKind::Declare(_) => false,
        StmtKind::For { body, .. } => is_target(body, name),
    })
}

pub(super) fn rank_text(rank: usize) -> String {
    match rank {
        0 => "no dimensions".to_owned(),
        1 => "1 dimension".to_owned(),
        rank => format!("{rank} dimensions"),
    }
}

pub(super) fn subscript_count_text(count: usize) -> String {
    match count {
        0 => "no subscript is given".to_owned(),
        1 => "1 subscript is given".to_owned(),
        count => format!("{count} subscripts are given"),
    }
}
