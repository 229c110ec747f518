//! Names to what they mean, and calls to the statements of the function called.
//!
//! Sizes and tensors live apart: `W(f, c)` is the tensor and a bare `W` the size, as the paper's own programs need.
//! A bare name that nothing defines is an index variable of its statement. A call is replaced by the statements of
//! the function, with the argument's tensors in place of its parameters and their extents in place of its sizes.

mod expressions;
mod signature;

use std::collections::{HashMap, HashSet};

use tilewright_ir::{DType, IndexExpr, Symbol, SymbolId, SymbolKind, TensorId, VarId};

use super::lower;
use super::model::{EqualSizes, LoopId, Model, Resolved, Source, Statement, Tensor};
use super::resolved::{Value, ValueKind};
use super::{Bindings, model};
use crate::ast::{Clause, Comprehension, Expr, ExprKind, Function, Module, Name, Stmt, StmtKind, Type};
use crate::diagnostic::{Code, Diagnostic, similar};
use crate::parser::MOST_NESTING;
use crate::span::Span;

pub(super) use signature::builtin_named;

/// Functions that call functions deeper than this are refused.
const MOST_CALLS: usize = 64;
/// More statements than this after calls are inlined are refused.
const MOST_STATEMENTS: usize = 10_000;
/// Larger bindings and arguments are refused, since each use of one is a copy.
const MOST_NODES: usize = 1000;

/// The model of a function with every name resolved.
pub(super) fn resolve(module: &Module, function: &Function, bindings: &Bindings) -> Model {
    let mut resolver = Resolver { module, bindings, model: Model::default(), call_stack: Vec::new() };
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
}

/// What the names of one function mean, at one of its calls.
struct Scope {
    function: String,
    sizes: HashMap<String, Value>,
    scalars: HashMap<String, Value>,
    tensors: HashMap<String, TensorId>,
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
            sizes: HashMap::new(),
            scalars: HashMap::new(),
            tensors: HashMap::new(),
            loops: Vec::new(),
        }
    }
}

impl<'a> Resolver<'a> {
    fn report(&mut self, diagnostic: Diagnostic) {
        self.model.report(diagnostic);
    }

    fn undefined(&mut self, name: &Name, what: &str, candidates: Vec<&str>) {
        let mut diagnostic =
            Diagnostic::error(Code::UndefinedName, name.span, format!("there is no {what} `{}`", name.text));
        if let Some(close) = similar(&name.text, candidates) {
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

    /// The parameters of the function that is checked: its sizes become symbols.
    fn parameters(&mut self, function: &Function, scope: &mut Scope) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for param in &function.params {
            if let Some(first) = seen.insert(&param.name.text, param.name.span) {
                self.collision(&param.name, "a parameter", Some(first));
            }
            if param.ty.dims.is_empty() {
                self.scalar_parameter(&param.name, param.ty.dtype, scope);
            }
        }
        let tensors = function.params.iter().filter(|param| !param.ty.dims.is_empty());
        for param in tensors.clone() {
            self.introduce_sizes(&param.ty, scope);
        }
        for result in &function.results {
            if let Some(ty) = &result.ty {
                self.introduce_sizes(ty, scope);
            }
        }
        for param in tensors {
            let declared = self.declared_shape(&param.ty, scope);
            let source = Source::Param { constant: param.constant };
            self.add_tensor(&param.name, source, Some(&param.ty), declared, scope);
        }
    }

    fn scalar_parameter(&mut self, name: &Name, dtype: DType, scope: &mut Scope) {
        let id = tilewright_ir::ScalarId(self.model.scalars.len() as u32);
        self.model.scalars.push(tilewright_ir::Scalar { name: name.text.clone(), dtype });
        let value = Value::new(ValueKind::Scalar(id), name.span);
        if dtype.is_integer() {
            let value = self.bindings.get(&name.text);
            let kind = SymbolKind::Scalar(id);
            let least = dtype.is_unsigned_integer().then_some(0);
            self.model.symbols.push(Symbol { name: name.text.clone(), kind, least, value });
        }
        scope.scalars.insert(name.text.clone(), value);
    }

    /// Names in the extents of a signature are sizes, unless an integer scalar has the name.
    fn introduce_sizes(&mut self, ty: &Type, scope: &mut Scope) {
        for dim in &ty.dims {
            let ExprKind::Name(text) = &dim.kind else { continue };
            if scope.sizes.contains_key(text) {
                continue;
            }
            if let Some(scalar) = scope.scalars.get(text) {
                let ValueKind::Scalar(id) = scalar.kind else { continue };
                let dtype = self.model.scalars[id.index()].dtype;
                if dtype.is_integer() {
                    // The scalar is the extent of a dimension, so it is positive.
                    if let Some(symbol) = self.model.symbols.iter_mut().find(|symbol| symbol.name == *text) {
                        symbol.least = Some(1);
                    }
                    continue;
                }
                let message = format!("`{text}` is a {dtype} scalar and cannot be a size");
                self.report(
                    Diagnostic::error(Code::TypeMismatch, dim.span, message).help("sizes are integers"),
                );
                continue;
            }
            let id = SymbolId(self.model.symbols.len() as u32);
            let value = self.bindings.get(text);
            self.model.symbols.push(Symbol {
                name: text.clone(),
                kind: SymbolKind::Size,
                least: Some(1),
                value,
            });
            scope.sizes.insert(text.clone(), Value::new(ValueKind::Size(id), dim.span));
        }
    }

    /// The extents that a type states. They may use sizes and integer scalars.
    fn declared_shape(&mut self, ty: &Type, scope: &Scope) -> Option<Vec<IndexExpr>> {
        ty.dims.iter().map(|dim| self.size_expr(dim, scope)).collect()
    }

    /// An expression of sizes, integer scalars and extents.
    fn size_expr(&mut self, expr: &Expr, scope: &Scope) -> Option<IndexExpr> {
        let mut names = StatementScope { scope, vars: Vec::new(), lets: HashMap::new(), allow_new: false };
        let value = self.expression(expr, &mut names)?;
        let index = lower::index(&value, &mut self.model)?;
        if index.has_data() || !index.vars().is_empty() {
            self.report(
                Diagnostic::error(
                    Code::InvalidSize,
                    expr.span,
                    "an extent may depend on sizes and integer scalars only",
                )
                .label("this depends on data"),
            );
            return None;
        }
        if let Some(value) = index.as_constant().filter(|value| *value < 1) {
            let message = format!("an extent must be at least 1, and this is {value}");
            self.report(Diagnostic::error(Code::InvalidSize, expr.span, message));
            return None;
        }
        Some(index)
    }

    fn add_tensor(
        &mut self,
        name: &Name,
        source: Source,
        ty: Option<&Type>,
        declared: Option<Vec<IndexExpr>>,
        scope: &mut Scope,
    ) -> TensorId {
        let id = TensorId(self.model.tensors.len() as u32);
        let inlined = !self.call_stack.is_empty();
        self.model.tensors.push(Tensor {
            name: if inlined { format!("{}.{}", scope.function, name.text) } else { name.text.clone() },
            span: name.span,
            source,
            dtype: ty.map(|ty| ty.dtype),
            declared_dtype: ty.map(|ty| ty.dtype),
            rank: ty.map(|ty| ty.dims.len()),
            shape: declared.clone(),
            poisoned: ty.is_some() && declared.is_none(),
            declared,
        });
        scope.tensors.insert(name.text.clone(), id);
        id
    }

    /// The results of the function that is checked.
    fn results(&mut self, function: &Function, scope: &mut Scope) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for result in &function.results {
            if let Some(first) = seen.insert(&result.name.text, result.name.span) {
                self.collision(&result.name, "a result", Some(first));
                continue;
            }
            if let Some(param) = function.params.iter().find(|param| param.name.text == result.name.text) {
                let message = format!("`{}` is both a parameter and a result", result.name.text);
                self.report(
                    Diagnostic::error(Code::NameCollision, result.name.span, message)
                        .also(param.name.span, "the parameter")
                        .help("to update a tensor in place, leave it out of the parameters: a result that is read before it is written is supplied by the caller"),
                );
                continue;
            }
            let declared = result.ty.as_ref().and_then(|ty| self.declared_shape(ty, scope));
            self.add_tensor(&result.name, Source::Result, result.ty.as_ref(), declared, scope);
        }
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

    /// Adds the tensors that statements define, with their ranks, in the order of the text.
    fn declare_targets(&mut self, body: &[Stmt], scope: &mut Scope) {
        for statement in body {
            match &statement.kind {
                StmtKind::Declare(declaration) => self.declare_local(declaration, scope),
                StmtKind::Comprehension(inner) => {
                    let rank = inner.indices.len();
                    self.declare_target(&inner.target, Some(rank), scope);
                }
                StmtKind::Call { targets, callee, .. } => {
                    let ranks = match self.module.function(&callee.text) {
                        Some(function) => signature::result_ranks(self.module, function),
                        // A 0-dimensional tensor defined by something that looks like a call.
                        None => vec![Some(0)],
                    };
                    for (at, target) in targets.iter().enumerate() {
                        self.declare_target(target, ranks.get(at).copied().flatten(), scope);
                    }
                }
                StmtKind::For { body, .. } => self.declare_targets(body, scope),
            }
        }
    }

    fn declare_local(&mut self, declaration: &crate::ast::Declaration, scope: &mut Scope) {
        let Some(ty) = &declaration.ty else { return };
        self.introduce_known_sizes(ty, scope);
        let declared = self.declared_shape(ty, scope);
        match scope.tensors.get(&declaration.name.text).copied() {
            None => {
                self.add_tensor(&declaration.name, Source::Local, Some(ty), declared, scope);
            }
            Some(id)
                if self.model.tensor(id).source == Source::Result
                    && self.model.tensor(id).declared.is_none() =>
            {
                let tensor = &mut self.model.tensors[id.index()];
                tensor.dtype = Some(ty.dtype);
                tensor.declared_dtype = Some(ty.dtype);
                tensor.rank = Some(ty.dims.len());
                tensor.poisoned = declared.is_none();
                tensor.shape = declared.clone();
                tensor.declared = declared;
            }
            Some(id) => {
                let first = self.model.tensor(id).span;
                self.collision(&declaration.name, "a tensor", Some(first));
            }
        }
    }

    /// Names in the extents of a local must be known already.
    fn introduce_known_sizes(&mut self, ty: &Type, scope: &Scope) {
        for dim in &ty.dims {
            if let ExprKind::Name(text) = &dim.kind
                && !scope.sizes.contains_key(text)
                && !scope.scalars.contains_key(text)
            {
                let name = Name { text: text.clone(), span: dim.span };
                self.undefined(&name, "size", scope.sizes.keys().map(String::as_str).collect());
            }
        }
    }

    fn declare_target(&mut self, target: &Name, rank: Option<usize>, scope: &mut Scope) {
        match scope.tensors.get(&target.text).copied() {
            Some(id) => {
                let tensor = &mut self.model.tensors[id.index()];
                if tensor.rank.is_none() {
                    tensor.rank = rank;
                    tensor.span = target.span;
                }
            }
            None if scope.scalars.contains_key(&target.text) => {}
            None => {
                let id = self.add_tensor(target, Source::Local, None, None, scope);
                self.model.tensors[id.index()].rank = rank;
            }
        }
    }

    fn statements(&mut self, body: &[Stmt], scope: &mut Scope) {
        for statement in body {
            if self.is_full() {
                if !self.model.incomplete {
                    let message = format!("more than {MOST_STATEMENTS} statements once calls are inlined");
                    self.report(Diagnostic::error(Code::TooComplex, statement.span, message));
                    self.model.incomplete = true;
                }
                return;
            }
            match &statement.kind {
                StmtKind::Declare(_) => {}
                StmtKind::Comprehension(inner) => self.comprehension(inner, statement.span, scope),
                StmtKind::For { var, from, to, body } => self.for_loop(var, from, to, body, scope),
                StmtKind::Call { targets, callee, arguments } => {
                    self.call_or_definition(targets, callee, arguments, statement.span, scope);
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.model.statements.len() >= MOST_STATEMENTS
    }

    fn for_loop(&mut self, var: &Name, from: &Expr, to: &Expr, body: &[Stmt], scope: &mut Scope) {
        self.refuse_taken_name(var, "a loop variable", scope);
        let (from_value, to_value) = (self.size_bound(from, scope), self.size_bound(to, scope));
        let id = self.model.add_var(&var.text, var.span);
        if let (Some(from_value), Some(to_value)) = (from_value, to_value) {
            let declared = &mut self.model.vars[id.index()];
            declared.range = Some(tilewright_ir::Range { from: from_value, to: to_value });
            declared.because.push((from.span.to(to.span), "the loop says so".to_owned()));
        }
        let loop_id = LoopId(self.model.loops.len());
        self.model.loops.push(model::Loop { var: id });
        scope.loops.push((var.text.clone(), loop_id));
        self.statements(body, scope);
        scope.loops.pop();
    }

    /// A bound of a range: sizes, integer scalars and extents.
    pub(super) fn size_bound(&mut self, expr: &Expr, scope: &Scope) -> Option<IndexExpr> {
        let mut names = StatementScope { scope, vars: Vec::new(), lets: HashMap::new(), allow_new: false };
        let value = self.expression(expr, &mut names)?;
        self.bound_index(&value)
    }

    fn bound_index(&mut self, value: &Value) -> Option<IndexExpr> {
        let index = lower::index(value, &mut self.model)?;
        if index.has_data() || !index.vars().is_empty() {
            self.report(
                Diagnostic::error(Code::InvalidRange, value.span, "the bounds of a range are of sizes and integer scalars only")
                    .label("this varies inside the program")
                    .help("for a range that depends on another variable, take the whole range and put a condition into the expression: `k <= i ? A(k) : 0`"),
            );
            return None;
        }
        Some(index)
    }

    fn refuse_taken_name(&mut self, name: &Name, what: &str, scope: &Scope) {
        let taken = if scope.sizes.contains_key(&name.text) {
            "a size"
        } else if scope.scalars.contains_key(&name.text) {
            "a scalar parameter"
        } else if scope.tensors.contains_key(&name.text) {
            "a tensor"
        } else if scope.loops.iter().any(|(text, _)| *text == name.text) {
            "a loop variable"
        } else {
            return;
        };
        let message = format!("{what} cannot be called `{}`, which is {taken}", name.text);
        self.report(Diagnostic::error(Code::NameCollision, name.span, message).help("choose another name"));
    }

    /// The tensor on the left, if a statement may define it.
    fn target(&mut self, target: &Name, scope: &Scope) -> Option<TensorId> {
        let function = self.module.function(&scope.function);
        let twice = |function: &Function| {
            let named = |name: &Name| name.text == target.text;
            function.results.iter().any(|result| named(&result.name))
                && function.params.iter().any(|param| named(&param.name))
        };
        if function.is_some_and(twice) {
            // That it is both a parameter and a result has been said.
            return None;
        }
        let Some(id) = scope.tensors.get(&target.text).copied() else {
            let message = format!("`{}` is a scalar parameter and cannot be assigned", target.text);
            self.report(Diagnostic::error(Code::InvalidTarget, target.span, message));
            return None;
        };
        if matches!(self.model.tensor(id).source, Source::Param { .. }) {
            let input = self.model.tensor(id).span;
            let message = format!("`{}` is an input and cannot be assigned", target.text);
            self.report(
                Diagnostic::error(Code::InvalidTarget, target.span, message)
                    .also(input, "it is a parameter")
                    .help("define another tensor, or make it a result instead of a parameter to update it in place"),
            );
            return None;
        }
        Some(id)
    }

    fn comprehension(&mut self, inner: &Comprehension, span: Span, scope: &Scope) {
        let Some(target) = self.target(&inner.target, scope) else { return };
        let before = self.model.diagnostics.len();
        let statement = self.resolve_comprehension(inner, span, target, scope);
        match statement {
            Some(statement) if self.model.diagnostics.len() == before => {
                self.model.statements.push(statement)
            }
            // What the statement would have defined is not known; say nothing that follows from it.
            _ => self.model.tensors[target.index()].poisoned = true,
        }
    }

    fn resolve_comprehension(
        &mut self,
        inner: &Comprehension,
        span: Span,
        target: TensorId,
        scope: &Scope,
    ) -> Option<Statement> {
        let rank = self.model.tensor(target).rank;
        if let Some(rank) = rank.filter(|rank| *rank != inner.indices.len()) {
            let first = self.model.tensor(target).span;
            let message = format!(
                "`{}` has {}, but {}",
                inner.target.text,
                dimensions(rank),
                given(inner.indices.len())
            );
            self.report(
                Diagnostic::error(Code::RankMismatch, inner.target.span, message)
                    .also(first, "its rank comes from here"),
            );
            return None;
        }
        let mut names = StatementScope { scope, vars: Vec::new(), lets: HashMap::new(), allow_new: true };
        let ranges = self.clauses(&inner.clauses, &mut names);
        let indices: Option<Vec<Value>> =
            inner.indices.iter().map(|index| self.expression(index, &mut names)).collect();
        let value = self.expression(&inner.value, &mut names);
        let exists: Option<Vec<Value>> = inner
            .clauses
            .iter()
            .filter_map(|clause| match clause {
                Clause::Exists(expr) => Some(self.expression(expr, &mut names)),
                _ => None,
            })
            .collect();
        let (indices, value, exists) = (indices?, value?, exists?);
        // Bindings and calls put trees into trees.
        if indices.iter().chain([&value]).chain(&exists).any(|part| part.height() > 3 * MOST_NESTING) {
            self.report(Diagnostic::error(
                Code::TooComplex,
                span,
                "this statement is too deep once bindings are put in",
            ));
            return None;
        }
        Some(Statement {
            target,
            target_span: inner.target.span,
            op: inner.op,
            op_span: inner.op_span,
            span,
            call: self.call_stack.first().map(|(_, span)| *span),
            loops: scope.loops.iter().map(|(_, id)| *id).collect(),
            vars: names.vars.iter().map(|(_, id)| *id).collect(),
            resolved: Resolved { indices, value, exists, ranges: ranges? },
            lowered: None,
            ranged: false,
        })
    }

    /// The `where` clauses: names with their values into the scope, and the declared ranges.
    fn clauses(
        &mut self,
        clauses: &[Clause],
        names: &mut StatementScope<'_>,
    ) -> Option<Vec<(VarId, Value, Value)>> {
        let lets: HashSet<&str> = clauses
            .iter()
            .filter_map(|clause| match clause {
                Clause::Let { name, .. } => Some(name.text.as_str()),
                _ => None,
            })
            .collect();
        let mut ranges = Vec::new();
        let mut bounds: HashMap<&str, (Value, Value)> = HashMap::new();
        let mut seen: HashMap<&str, Span> = HashMap::new();
        let mut fine = true;
        for clause in clauses {
            let Clause::In { name, from, to } = clause else { continue };
            self.refuse_taken_name(name, "a variable", names.scope);
            if let Some(first) = seen.insert(&name.text, name.span) {
                self.collision(name, "given a range", Some(first));
                continue;
            }
            let mut sizes = StatementScope {
                scope: names.scope,
                vars: Vec::new(),
                lets: HashMap::new(),
                allow_new: false,
            };
            let (Some(from), Some(to)) = (self.expression(from, &mut sizes), self.expression(to, &mut sizes))
            else {
                fine = false;
                continue;
            };
            if lets.contains(name.text.as_str()) {
                bounds.insert(&name.text, (from, to));
            } else {
                let id = self.model.add_var(&name.text, name.span);
                names.vars.push((name.text.clone(), id));
                ranges.push((id, from, to));
            }
        }
        for clause in clauses {
            let Clause::Let { name, value } = clause else { continue };
            self.refuse_taken_name(name, "a `where` binding", names.scope);
            if names.lets.contains_key(&name.text) {
                self.collision(name, "bound", None);
                continue;
            }
            let Some(mut value) = self.expression(value, names) else {
                fine = false;
                continue;
            };
            if value.height() > MOST_NESTING || value.count() > MOST_NODES {
                self.report(Diagnostic::error(
                    Code::TooComplex,
                    name.span,
                    "this binding is too large once the others are put in",
                ));
                fine = false;
                continue;
            }
            if let Some((from, to)) = bounds.remove(name.text.as_str()) {
                let span = value.span;
                value = Value::new(ValueKind::Bounded(Box::new([value, from, to])), span);
            }
            names.lets.insert(name.text.clone(), value);
        }
        fine.then_some(ranges)
    }

    fn call_or_definition(
        &mut self,
        targets: &[Name],
        callee: &Name,
        arguments: &[Expr],
        span: Span,
        scope: &mut Scope,
    ) {
        if let Some(function) = self.module.function(&callee.text) {
            return self.call(targets, callee, function, arguments, span, scope);
        }
        let is_value = scope.tensors.contains_key(&callee.text) || builtin_named(&callee.text).is_some();
        match targets {
            [target] if is_value => {
                let value = Expr::new(ExprKind::Apply(callee.clone(), arguments.to_vec()), span);
                let inner = Comprehension {
                    target: target.clone(),
                    indices: Vec::new(),
                    op: crate::ast::AssignOp::Assign,
                    op_span: target.span,
                    value,
                    clauses: Vec::new(),
                };
                self.comprehension(&inner, span, scope);
            }
            _ => {
                let candidates =
                    self.module.functions.iter().map(|function| function.name.text.as_str()).collect();
                self.undefined(callee, "function", candidates);
                self.poison(targets, scope);
            }
        }
    }

    fn poison(&mut self, targets: &[Name], scope: &Scope) {
        for target in targets {
            if let Some(id) = scope.tensors.get(&target.text) {
                self.model.tensors[id.index()].poisoned = true;
            }
        }
    }

    /// Inlines a call.
    fn call(
        &mut self,
        targets: &[Name],
        callee: &Name,
        function: &Function,
        arguments: &[Expr],
        span: Span,
        scope: &mut Scope,
    ) {
        if self.is_full() {
            return;
        }
        let before = self.model.diagnostics.len();
        if let Some(inner) = self.enter_call(targets, callee, function, arguments, scope) {
            let mut inner = inner;
            inner.loops = scope.loops.clone();
            self.call_stack.push((callee.text.clone(), span));
            self.function_body(function, &mut inner);
            self.call_stack.pop();
        }
        if self.model.diagnostics.len() > before {
            self.poison(targets, scope);
        }
    }

    /// The scope of the function called: its names as the caller's.
    fn enter_call(
        &mut self,
        targets: &[Name],
        callee: &Name,
        function: &Function,
        arguments: &[Expr],
        scope: &mut Scope,
    ) -> Option<Scope> {
        let recursive =
            callee.text == self.model.name || self.call_stack.iter().any(|(name, _)| *name == callee.text);
        if recursive {
            let message = match self.call_stack.last() {
                Some((caller, _)) => format!("`{caller}` calls `{}`, which is calling it", callee.text),
                None => format!("`{}` calls itself", callee.text),
            };
            self.report(
                Diagnostic::error(Code::Recursion, callee.span, message)
                    .help("for a recurrence use an ordered loop: `for t in 1:T { … }`"),
            );
            return None;
        }
        if self.call_stack.len() >= MOST_CALLS {
            let message = format!("calls are nested more than {MOST_CALLS} deep");
            self.report(Diagnostic::error(Code::TooComplex, callee.span, message));
            return None;
        }
        self.arity(callee, "argument", function.params.len(), arguments.len(), function.name.span)?;
        self.arity(callee, "result", function.results.len(), targets.len(), function.name.span)?;
        for (at, target) in targets.iter().enumerate() {
            if let Some(first) = targets[..at].iter().find(|first| first.text == target.text) {
                let first = first.span;
                self.collision(target, "a result of this call", Some(first));
                return None;
            }
        }
        let mut inner = Scope::new(function);
        for (param, argument) in
            function.params.iter().zip(arguments).filter(|(param, _)| param.ty.dims.is_empty())
        {
            let value = self.scalar_argument(param.ty.dtype, argument, scope)?;
            inner.scalars.insert(param.name.text.clone(), value);
        }
        let mut tensors = Vec::new();
        for (param, argument) in
            function.params.iter().zip(arguments).filter(|(param, _)| !param.ty.dims.is_empty())
        {
            let id = self.tensor_argument(param, argument, targets, scope)?;
            inner.tensors.insert(param.name.text.clone(), id);
            self.bind_sizes(param, id, argument.span, &mut inner);
            tensors.push((param, id, argument.span));
        }
        for (param, id, argument) in tensors {
            self.require_sizes(param, id, argument, &inner);
        }
        for (result, target) in function.results.iter().zip(targets) {
            let id = self.target(target, scope)?;
            if let Some(ty) = &result.ty {
                self.declare_result(ty, id, target, &inner);
            }
            inner.tensors.insert(result.name.text.clone(), id);
        }
        Some(inner)
    }

    /// A result that the function called declares has that type and those extents for the caller too.
    fn declare_result(&mut self, ty: &Type, id: TensorId, target: &Name, inner: &Scope) {
        let shape = self.declared_shape(ty, inner);
        let tensor = &mut self.model.tensors[id.index()];
        if let (None, Some(shape)) = (&tensor.declared, &shape) {
            // Extents of the caller's tensors are not known yet, so the shape stays open until they are.
            tensor.declared = Some(shape.clone());
            tensor.dtype = tensor.dtype.or(Some(ty.dtype));
            tensor.declared_dtype = tensor.dtype;
        } else if let (Some(mine), Some(theirs)) = (tensor.declared.clone(), shape) {
            for (left, right) in mine.into_iter().zip(theirs) {
                let what = format!("an extent of `{}`", target.text);
                self.model.equal_sizes.push(EqualSizes { left, right, span: target.span, what });
            }
        }
    }

    fn arity(&mut self, callee: &Name, what: &str, wanted: usize, found: usize, defined: Span) -> Option<()> {
        if wanted == found {
            return Some(());
        }
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!("`{}` has {wanted} {what}{plural}, and {found} stand here", callee.text);
        self.report(
            Diagnostic::error(Code::RankMismatch, callee.span, message).also(defined, "it is defined here"),
        );
        None
    }

    fn scalar_argument(&mut self, dtype: DType, argument: &Expr, scope: &Scope) -> Option<Value> {
        let mut names = StatementScope { scope, vars: Vec::new(), lets: HashMap::new(), allow_new: false };
        let value = self.expression(argument, &mut names)?;
        if value.height() > MOST_NESTING || value.count() > MOST_NODES {
            self.report(Diagnostic::error(
                Code::TooComplex,
                argument.span,
                "this argument is too large once calls are inlined",
            ));
            return None;
        }
        let span = value.span;
        let float = super::types::type_of(&value, &self.model).settle().is_some_and(DType::is_float);
        if float && !dtype.is_float() {
            let message = format!("a float for a parameter that is {dtype}");
            self.report(
                Diagnostic::error(Code::TypeMismatch, span, message)
                    .help(format!("convert it: `{dtype}(…)`")),
            );
            return None;
        }
        Some(match (&value.kind, dtype.is_integer()) {
            // Integers stay visible to range inference.
            (
                ValueKind::Int(..) | ValueKind::Size(_) | ValueKind::Extent(..) | ValueKind::Scalar(_),
                true,
            ) => value,
            _ => Value::new(ValueKind::Cast(dtype, Box::new(value)), span),
        })
    }

    fn tensor_argument(
        &mut self,
        param: &crate::ast::Param,
        argument: &Expr,
        targets: &[Name],
        scope: &Scope,
    ) -> Option<TensorId> {
        let wanted = format!("`{}` is a tensor, so its argument must be the name of one", param.name.text);
        let ExprKind::Name(text) = &argument.kind else {
            self.report(
                Diagnostic::error(Code::TypeMismatch, argument.span, wanted)
                    .also(param.name.span, "the parameter"),
            );
            return None;
        };
        let Some(id) = scope.tensors.get(text).copied() else {
            let name = Name { text: text.clone(), span: argument.span };
            self.undefined(&name, "tensor", scope.tensors.keys().map(String::as_str).collect());
            return None;
        };
        if let Some(target) = targets.iter().find(|target| target.text == *text) {
            let message = format!("`{text}` is both an argument and a result of this call");
            self.report(
                Diagnostic::error(Code::InPlace, target.span, message).help("give the result another name"),
            );
            return None;
        }
        let rank = self.model.tensor(id).rank;
        if let Some(rank) = rank.filter(|rank| *rank != param.ty.dims.len()) {
            let message = format!(
                "`{text}` has {}, but `{}` has {}",
                dimensions(rank),
                param.name.text,
                dimensions(param.ty.dims.len())
            );
            self.report(
                Diagnostic::error(Code::RankMismatch, argument.span, message)
                    .also(param.ty.span, "the parameter"),
            );
            return None;
        }
        self.expect_argument_type(id, param, argument.span);
        Some(id)
    }

    fn expect_argument_type(&mut self, id: TensorId, param: &crate::ast::Param, span: Span) {
        let tensor = &mut self.model.tensors[id.index()];
        match tensor.dtype {
            None => tensor.dtype = Some(param.ty.dtype),
            Some(dtype) if dtype != param.ty.dtype => {
                let message = format!(
                    "`{}` holds {dtype}, but `{}` is {}",
                    tensor.name, param.name.text, param.ty.dtype
                );
                self.report(
                    Diagnostic::error(Code::TypeMismatch, span, message).also(param.ty.span, "the parameter"),
                );
            }
            _ => {}
        }
    }

    /// A size of the function called is the extent of the first argument that has it.
    fn bind_sizes(&mut self, param: &crate::ast::Param, id: TensorId, span: Span, inner: &mut Scope) {
        for (at, dim) in param.ty.dims.iter().enumerate() {
            if let ExprKind::Name(text) = &dim.kind
                && !inner.sizes.contains_key(text)
                && !inner.scalars.contains_key(text)
            {
                inner.sizes.insert(text.clone(), Value::new(ValueKind::Extent(id, at as u32), span));
            }
        }
    }

    /// Every extent of an argument must be what the parameter says.
    fn require_sizes(&mut self, param: &crate::ast::Param, id: TensorId, span: Span, inner: &Scope) {
        for (at, dim) in param.ty.dims.iter().enumerate() {
            let Some(wanted) = self.size_expr(dim, inner) else { continue };
            let found = IndexExpr::atom(tilewright_ir::Atom::Extent(id, at as u32));
            if wanted != found {
                let what = format!(
                    "extent {at} of `{}`, which is parameter `{}` of `{}`",
                    self.model.tensor(id).name,
                    param.name.text,
                    inner.function
                );
                self.model.equal_sizes.push(EqualSizes { left: found, right: wanted, span, what });
            }
        }
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
