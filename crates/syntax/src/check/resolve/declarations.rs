//! Adds the parameters, results and local tensors of a function to the model and to the function's
//! scope, with their names, types and sizes.

use std::collections::HashMap;

use tilewright_ir::{DType, IndexExpr, Symbol, SymbolId, SymbolKind, TensorId};

use super::{Resolver, Scope, signature, subscript_count_text};
use crate::ast::{Expr, ExprKind, Function, Name, Param, Stmt, StmtKind, Type};
use crate::check::expand::{is_expanded, is_of_iteration, program_name, written_name};
use crate::check::lower;
use crate::check::model::{Source, Tensor};
use crate::check::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

impl Resolver<'_> {
    /// Declares the parameters of the function that is checked; its sizes become symbols.
    pub(super) fn declare_parameters(&mut self, function: &Function, scope: &mut Scope) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for param in &function.params {
            if let Some(first) = seen.insert(&param.name.text, param.name.span) {
                self.report_collision(&param.name, "a parameter", Some(first));
            }
            if param.ty.dims.is_empty() {
                self.scalar_parameter(&param.name, param.ty.dtype, scope);
            }
        }
        let tensors = function.params.iter().filter(|param| !param.ty.dims.is_empty());
        for param in tensors.clone() {
            self.declare_sizes(&param.ty, function, scope);
        }
        for result in &function.results {
            if let Some(ty) = &result.ty {
                self.declare_sizes(ty, function, scope);
            }
        }
        // A named integer may depend on `x.0`, and the shape of another parameter on the integer.
        let is_named = |param: &&Param| names_in(&param.ty).any(|name| function.defines(name));
        for param in tensors.clone() {
            let declared = match is_named(&param) {
                true => None,
                false => self.declared_shape(&param.ty, scope),
            };
            let source = Source::Param { constant: param.constant };
            let id = self.add_tensor(&param.name, source, Some(&param.ty), declared, scope);
            self.model.tensors[id.index()].stored = param.stored.clone();
        }
        self.definitions(function, scope);
        for param in tensors.filter(is_named) {
            let declared = self.declared_shape(&param.ty, scope);
            let Some(id) = scope.tensors.get(&param.name.text) else { continue };
            let tensor = &mut self.model.tensors[id.index()];
            tensor.poisoned = declared.is_none();
            tensor.shape = declared.clone();
            tensor.declared = declared;
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

    /// Declares the names in the extents of a signature as sizes, unless an integer scalar or a
    /// named integer has the name.
    fn declare_sizes(&mut self, ty: &Type, function: &Function, scope: &mut Scope) {
        for dim in &ty.dims {
            let ExprKind::Name(text) = &dim.kind else { continue };
            if scope.sizes.contains_key(text) || function.defines(text) {
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
            let name = self.size_name(text);
            let value = self.bindings.get(&name);
            self.model.symbols.push(Symbol { name, kind: SymbolKind::Size, least: Some(1), value });
            scope.sizes.insert(text.clone(), Value::new(ValueKind::Size(id), dim.span));
        }
    }

    /// The name of a size in the program. A size `H[3]` of a list is called `H_3`, with more
    /// underscores if another size has that name.
    fn size_name(&self, text: &str) -> String {
        let mut name = program_name(text);
        while self.model.symbols.iter().any(|symbol| symbol.name == name) {
            name.push('_');
        }
        name
    }

    /// The extents that a type declares. They may use sizes and integer scalars.
    pub(super) fn declared_shape(&mut self, ty: &Type, scope: &Scope) -> Option<Vec<IndexExpr>> {
        ty.dims.iter().map(|dim| self.size_expr(dim, scope)).collect()
    }

    /// Resolves an expression of sizes, integer scalars and extents.
    pub(super) fn size_expr(&mut self, expr: &Expr, scope: &Scope) -> Option<IndexExpr> {
        let mut names = scope.sizes_only();
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
        let unique = self.unique_name(&name.text, scope);
        let text = written_name(&name.text);
        self.model.tensors.push(Tensor {
            text: match &scope.prefix {
                Some(prefix) => format!("{prefix}.{text}"),
                None => text,
            },
            is_of_iteration: is_of_iteration(&name.text),
            name: unique,
            span: name.span,
            source,
            dtype: ty.map(|ty| ty.dtype),
            declared_dtype: ty.map(|ty| ty.dtype),
            rank: ty.map(|ty| ty.dims.len()),
            stored: None,
            shape: declared.clone(),
            origin: None,
            poisoned: ty.is_some() && declared.is_none(),
            declared,
        });
        scope.tensors.insert(name.text.clone(), id);
        id
    }

    /// The name of a tensor in the program. An element `g[3]` of a list is called `g_3`, with more
    /// underscores if another tensor has that name.
    fn unique_name(&mut self, name: &str, scope: &Scope) -> String {
        let is_element = name.contains('[');
        let name = program_name(name);
        let mut unique = match &scope.prefix {
            Some(prefix) => format!("{prefix}.{name}"),
            None => name,
        };
        // The elements of lists leave the names of parameters and results to them.
        let is_reserved = |unique: &String| is_element && self.reserved_names.contains(unique);
        while self.tensor_names.contains(&unique) || is_reserved(&unique) {
            unique.push('_');
        }
        self.tensor_names.insert(unique.clone());
        unique
    }

    /// Declares the results of the function that is checked.
    pub(super) fn declare_results(&mut self, function: &Function, scope: &mut Scope) {
        let mut seen: HashMap<&str, Span> = HashMap::new();
        for result in &function.results {
            if let Some(first) = seen.insert(&result.name.text, result.name.span) {
                self.report_collision(&result.name, "a result", Some(first));
                continue;
            }
            if let Some(param) = function.params.iter().find(|param| param.name.text == result.name.text) {
                let message = format!("`{}` is both a parameter and a result", result.name.text);
                self.report(
                    Diagnostic::error(Code::NameCollision, result.name.span, message)
                        .secondary_label(param.name.span, "the parameter")
                        .help("to update a tensor in place, leave it out of the parameters: a result that is read before it is written is supplied by the caller"),
                );
                continue;
            }
            let declared = result.ty.as_ref().and_then(|ty| self.declared_shape(ty, scope));
            let id = self.add_tensor(&result.name, Source::Result, result.ty.as_ref(), declared, scope);
            self.model.tensors[id.index()].stored = result.stored.clone();
        }
    }

    /// Declares the tensors that statements define, with their ranks, in the order of the text.
    pub(super) fn declare_targets(&mut self, body: &[Stmt], scope: &mut Scope) {
        for statement in body {
            match &statement.kind {
                StmtKind::Declare(declaration) => self.declare_local(declaration, scope),
                StmtKind::Comprehension(inner) => {
                    let rank = inner.indices.len();
                    self.declare_target(&inner.target, Some(rank), scope);
                }
                StmtKind::Call { targets, callee, .. }
                    if self.called_view_function(callee, scope).is_some() =>
                {
                    self.declare_view(targets, scope);
                }
                StmtKind::Call { targets, callee, .. } => {
                    let ranks = match self.module.function(&callee.text) {
                        // The ranks of such a function are known where it is inlined.
                        Some(function) if is_expanded(self.module, function) => Vec::new(),
                        Some(function) => signature::result_ranks(self.module, function),
                        // The statement looks like a call, but defines a 0-dimensional tensor.
                        None if scope.tensors.contains_key(&callee.text)
                            || self.is_on_numbers(&callee.text) =>
                        {
                            vec![Some(0)]
                        }
                        None => Vec::new(),
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
        self.report_unknown_sizes(ty, scope);
        let declared = self.declared_shape(ty, scope);
        match scope.tensors.get(&declaration.name.text).copied() {
            None => {
                let id = self.add_tensor(&declaration.name, Source::Local, Some(ty), declared, scope);
                self.model.tensors[id.index()].stored = declaration.stored.clone();
            }
            Some(id)
                if self.model.tensor(id).source == Source::Result
                    && self.model.tensor(id).declared.is_none() =>
            {
                let Some(declared) = self.declare_stored(declaration, id, declared) else { return };
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
                self.report_collision(&declaration.name, "a tensor", Some(first));
            }
        }
    }

    /// Joins the storage order of a result with that of its declaration in the body. Returns the
    /// extents in the order of memory, or `None` after a report.
    fn declare_stored(
        &mut self,
        declaration: &crate::ast::Declaration,
        id: TensorId,
        declared: Option<Vec<IndexExpr>>,
    ) -> Option<Option<Vec<IndexExpr>>> {
        let first = self.model.tensor(id).stored.clone();
        if let Some(first) = first {
            let rank = declared.as_ref().map_or(first.rank(), Vec::len);
            if declaration.stored.is_some() || rank != first.rank() {
                self.report_collision(&declaration.name, "stored in an order", None);
                return None;
            }
            return Some(declared.map(|extents| first.to_memory(&extents)));
        }
        self.model.tensors[id.index()].stored = declaration.stored.clone();
        Some(declared)
    }

    /// Reports names in the extents of a local tensor that are not known sizes or scalars.
    fn report_unknown_sizes(&mut self, ty: &Type, scope: &Scope) {
        for dim in &ty.dims {
            if let ExprKind::Name(text) = &dim.kind
                && !scope.sizes.contains_key(text)
                && !scope.scalars.contains_key(text)
            {
                let name = Name::new(text.clone(), dim.span);
                self.report_undefined(&name, "size", scope.sizes.keys().map(String::as_str).collect());
            }
        }
    }

    fn report_stored_rank(&mut self, target: &Name, stored: usize, found: usize) {
        let message = format!(
            "`{}` is stored in the order of {stored} subscripts, but {}",
            target.text,
            subscript_count_text(found)
        );
        self.report(Diagnostic::error(Code::RankMismatch, target.span, message));
    }

    fn declare_target(&mut self, target: &Name, rank: Option<usize>, scope: &mut Scope) {
        match scope.tensors.get(&target.text).copied() {
            Some(id) => {
                let tensor = &mut self.model.tensors[id.index()];
                if tensor.rank.is_some() {
                    return;
                }
                let stored = tensor.stored.as_ref().map(|stored| stored.rank());
                if let (Some(found), Some(stored)) = (rank, stored.filter(|stored| rank != Some(*stored))) {
                    tensor.poisoned = true;
                    self.report_stored_rank(target, stored, found);
                    return;
                }
                tensor.rank = rank;
                tensor.span = target.span;
            }
            None if scope.scalars.contains_key(&target.text) || scope.views.contains_key(&target.text) => {}
            None => {
                let id = self.add_tensor(target, Source::Local, None, None, scope);
                self.model.tensors[id.index()].rank = rank;
            }
        }
    }
}

/// The names that stand in the extents of a type.
fn names_in(ty: &Type) -> impl Iterator<Item = &str> {
    let mut found = Vec::new();
    for dim in &ty.dims {
        dim.walk(&mut |part| {
            if let ExprKind::Name(name) = &part.kind {
                found.push(name.as_str());
            }
        });
    }
    found.into_iter()
}
