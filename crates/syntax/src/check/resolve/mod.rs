//! Names to what they mean, and calls to the statements of the function called.
//!
//! Sizes and tensors live apart: `W(f, c)` is the tensor and a bare `W` the size, as the paper's own programs need.
//! A bare name that nothing defines is an index variable of its statement. A call is replaced by the statements of
//! the function, with the argument's tensors in place of its parameters and their extents in place of its sizes.

mod calls;
mod declarations;
mod expressions;
mod signature;
mod statements;

use std::collections::{HashMap, HashSet};

use tilewright_ir::{TensorId, VarId};

use super::Bindings;
use super::model::{LoopId, Model};
use super::resolved::Value;
use crate::ast::{Function, Module, Name, Stmt, StmtKind};
use crate::diagnostic::{Code, Diagnostic, similar};
use crate::span::Span;

pub(super) use signature::builtin_named;

/// What to write for a range that depends on a variable.
pub(super) const TRIANGLE_HELP: &str = "for a range that depends on a variable, take the whole range and put a condition into the expression: `k <= i ? A(k) : 0`";
/// Functions that call functions deeper than this are refused.
const MOST_CALLS: usize = 64;
/// More statements than this after calls are inlined are refused.
const MOST_STATEMENTS: usize = 10_000;
/// Larger bindings and arguments are refused, since each use of one is a copy.
const MOST_NODES: usize = 1000;

/// The model of a function with every name resolved.
pub(super) fn resolve(module: &Module, function: &Function, bindings: &Bindings) -> Model {
    let mut resolver = Resolver {
        module,
        bindings,
        model: Model::default(),
        call_stack: Vec::new(),
        calls: HashMap::new(),
        prefixes: HashSet::new(),
    };
    resolver.model.name = function.name.text.clone();
    let mut scope = Scope::new(function);
    resolver.parameters(function, &mut scope);
    resolver.results(function, &mut scope);
    resolver.function_body(function, &mut scope);
    resolver.model
}

struct Resolver<'a> {
    module: &'a Module,
    bindings: &'a Bindings,
    model: Model,
    /// Functions being inlined, outermost first, with the place of the call.
    call_stack: Vec<(String, Span)>,
    /// How many times each function was inlined.
    calls: HashMap<String, usize>,
    /// What stands before the names of temporaries, one for each call.
    prefixes: HashSet<String>,
}

/// What the names of one function mean, at one of its calls.
struct Scope {
    function: String,
    /// What stands before the names of its temporaries: nothing in the function that is checked.
    prefix: Option<String>,
    sizes: HashMap<String, Value>,
    scalars: HashMap<String, Value>,
    tensors: HashMap<String, TensorId>,
    /// Loops around the call, outermost first. Their variables have no names in the function called.
    outer_loops: Vec<LoopId>,
    /// Loops of the function itself.
    loops: Vec<(String, LoopId)>,
}

/// What the names of one statement mean.
struct StatementScope<'a> {
    scope: &'a Scope,
    vars: Vec<(String, VarId)>,
    lets: HashMap<String, Value>,
    /// Whether a name that nothing defines becomes a variable.
    allow_new: bool,
}

impl Scope {
    fn new(function: &Function) -> Scope {
        Scope {
            function: function.name.text.clone(),
            prefix: None,
            sizes: HashMap::new(),
            scalars: HashMap::new(),
            tensors: HashMap::new(),
            outer_loops: Vec::new(),
            loops: Vec::new(),
        }
    }
}

impl Scope {
    /// A scope in which names are sizes and scalars, and nothing becomes a variable.
    fn sizes_only(&self) -> StatementScope<'_> {
        StatementScope { scope: self, vars: Vec::new(), lets: HashMap::new(), allow_new: false }
    }

    /// Every loop around a statement of the function, those around the call included, outermost first.
    fn all_loops(&self) -> impl Iterator<Item = LoopId> {
        self.outer_loops.iter().copied().chain(self.loops.iter().map(|(_, id)| *id))
    }
}

impl Resolver<'_> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.model.report(diagnostic);
    }

    fn undefined(&mut self, name: &Name, what: &str, candidates: Vec<&str>) {
        let mut diagnostic =
            Diagnostic::error(Code::UndefinedName, name.span, format!("there is no {what} `{}`", name.text));
        if ["sum", "mean", "prod", "dot"].contains(&name.text.as_str()) {
            diagnostic =
                diagnostic.help("a reduction is an assignment: `y +=! x(i)` is the sum over all `i`");
        } else if let Some(close) = similar(&name.text, candidates) {
            diagnostic = diagnostic.help(format!("did you mean `{close}`?"));
        }
        self.report(diagnostic);
    }

    fn collision(&mut self, name: &Name, other: &str, first: Option<Span>) {
        let message = format!("`{}` is already {other}", name.text);
        let mut diagnostic =
            Diagnostic::error(Code::NameCollision, name.span, message).help("choose another name");
        if let Some(first) = first {
            diagnostic = diagnostic.also(first, "the other is here");
        }
        self.report(diagnostic);
    }

    /// Finds every tensor that the body defines, then resolves its statements.
    fn function_body(&mut self, function: &Function, scope: &mut Scope) {
        self.model.incomplete |= function.incomplete;
        self.declare_targets(&function.body, scope);
        for result in &function.results {
            let id = scope.tensors.get(&result.name.text);
            let undefined = id.is_some_and(|id| {
                let tensor = self.model.tensor(*id);
                tensor.rank.is_none() && !tensor.poisoned && !is_target(&function.body, &result.name.text)
            });
            if undefined && !function.incomplete {
                let message = format!("nothing defines the result `{}`", result.name.text);
                let candidates = scope.tensors.keys().map(String::as_str).collect::<Vec<_>>();
                let mut diagnostic = Diagnostic::error(Code::UndefinedElement, result.name.span, message);
                if let Some(close) = similar(&result.name.text, candidates) {
                    diagnostic = diagnostic.help(format!("did you mean `{close}`?"));
                }
                self.report(diagnostic);
            }
        }
        self.statements(&function.body, scope);
    }
}

/// Whether some statement defines a tensor of this name.
fn is_target(body: &[Stmt], name: &str) -> bool {
    body.iter().any(|statement| match &statement.kind {
        StmtKind::Comprehension(inner) => inner.target.text == name,
        StmtKind::Call { targets, .. } => targets.iter().any(|target| target.text == name),
        StmtKind::Declare(_) => false,
        StmtKind::For { body, .. } => is_target(body, name),
    })
}

pub(super) fn dimensions(rank: usize) -> String {
    match rank {
        0 => "no dimensions".to_owned(),
        1 => "1 dimension".to_owned(),
        rank => format!("{rank} dimensions"),
    }
}

pub(super) fn given(count: usize) -> String {
    match count {
        0 => "no subscript stands here".to_owned(),
        1 => "1 subscript stands here".to_owned(),
        count => format!("{count} subscripts stand here"),
    }
}
