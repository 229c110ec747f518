//! Checks the arguments of a call, and replaces the call by the resolved statements of the called
//! function.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use tilewright_ir::{DType, TensorId, UnaryOp};

use super::views::{View, ViewState, view_function_names};
use super::{MOST_CALLS, MOST_NODES, Resolver, Scope, rank_text};
use crate::ast::{AssignOp, Comprehension, Expr, ExprKind, Function, Name, Param, Type};
use crate::check::expand::{self, Instance, Statics};
use crate::check::model::EqualSizes;
use crate::check::value::{Value, ValueKind};
use crate::check::{lower, types};
use crate::diagnostic::{Code, Diagnostic};
use crate::parser::MOST_NESTING;
use crate::span::Span;
use crate::storage_order::StorageOrder;

impl Resolver<'_> {
    /// Resolves `targets = callee(arguments)`: a call of a function of the module, or else the
    /// definition of a scalar by an element of a tensor or by a function on numbers.
    pub(super) fn call_or_definition(
        &mut self,
        targets: &[Name],
        callee: &Name,
        arguments: &[Expr],
        (span, value_span): (Span, Span),
        scope: &mut Scope,
    ) {
        if let Some(function) = self.module.function(&callee.text) {
            return self.call(targets, callee, function, arguments, span, scope);
        }
        if let Some(function) = self.called_view_function(callee, scope) {
            return self.define_view(function, targets, callee, arguments, scope);
        }
        let is_value = scope.tensors.contains_key(&callee.text) || self.is_on_numbers(&callee.text);
        match targets {
            [target] if is_value => {
                let value = Expr::new(ExprKind::Apply(callee.clone(), arguments.to_vec()), value_span);
                let inner = Comprehension {
                    target: target.clone(),
                    indices: Vec::new(),
                    op: AssignOp::Assign,
                    op_span: target.span,
                    value,
                    clauses: Vec::new(),
                };
                self.comprehension(&inner, span, scope);
            }
            _ if is_value => {
                let message = format!("`{}` has one value, but {} are wanted", callee.text, targets.len());
                self.report(Diagnostic::error(Code::RankMismatch, callee.span, message));
                self.poison(targets, scope);
            }
            _ => {
                let own = self.module.functions.iter().map(|function| function.name.text.as_str());
                let candidates = own.chain(view_function_names()).collect();
                self.report_undefined(callee, "function", candidates);
                self.poison(targets, scope);
            }
        }
    }

    /// Marks the targets as wrong, so that later passes report no consequences of the same mistake.
    pub(super) fn poison(&mut self, targets: &[Name], scope: &Scope) {
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
        if self.has_too_many_statements() {
            return;
        }
        let before = self.model.diagnostics.len();
        let instance = match expand::is_expanded(self.module, function) {
            true => self.instance(callee, function, arguments, scope),
            false => Some((Cow::Borrowed(function), Cow::Borrowed(arguments))),
        };
        let entered = instance.and_then(|(function, arguments)| {
            let inner = self.enter_call(targets, callee, &function, &arguments, scope)?;
            Some((function, inner))
        });
        if let Some((function, mut inner)) = entered {
            inner.outer_loops = scope.all_loops().collect();
            inner.prefix = Some(self.next_prefix(&callee.text));
            self.preconditions(&function, Some(callee.span), &inner);
            self.call_stack.push((callee.text.clone(), span));
            self.function_body(&function, &mut inner);
            self.call_stack.pop();
        }
        if self.model.diagnostics.len() > before {
            self.poison(targets, scope);
        }
    }

    /// The types of the arguments that have type parameters.
    fn argument_types(
        &mut self,
        function: &Function,
        arguments: &[Expr],
        scope: &Scope,
    ) -> HashMap<String, DType> {
        let mut found = HashMap::new();
        let pairs = || function.params.iter().zip(arguments);
        // A tensor has a definite type, and a scalar argument may be a mere number.
        let tensors = pairs().filter(|(param, _)| !param.ty.dims.is_empty());
        let scalars = pairs().filter(|(param, _)| param.ty.dims.is_empty());
        for (param, argument) in tensors.chain(scalars) {
            let Some(name) = param.ty.parameter.as_ref().filter(|name| !found.contains_key(*name)) else {
                continue;
            };
            let dtype = match self.argument_tensor(argument, scope) {
                Some(id) => types::type_so_far(&mut self.model, id),
                None => {
                    let value = self.expression(argument, &mut scope.sizes_only());
                    value.and_then(|value| types::type_of(&value, &self.model).or_default())
                }
            };
            found.extend(dtype.map(|dtype| (name.clone(), dtype)));
        }
        found
    }

    /// The tensor that an argument names, or a view of one.
    fn argument_tensor(&self, argument: &Expr, scope: &Scope) -> Option<TensorId> {
        let text = match &argument.kind {
            ExprKind::Name(text) => text,
            // The tensors of a list have the same type and rank.
            ExprKind::List(_, elements) => return self.argument_tensor(elements.first()?, scope),
            _ => return None,
        };
        match scope.views.get(text) {
            Some(ViewState::Defined(view)) => Some(view.tensor()),
            _ => scope.tensors.get(text).copied(),
        }
    }

    /// The number of dimensions that `..` stands for, by the first argument that tells it.
    fn leading_dimensions(
        &mut self,
        function: &Function,
        arguments: &[Expr],
        scope: &Scope,
    ) -> Option<usize> {
        for (param, argument) in function.params.iter().zip(arguments) {
            if !param.ty.dims.iter().any(expand::is_dimensions) {
                continue;
            }
            let Some(id) = self.argument_tensor(argument, scope) else { continue };
            let Some(rank) = self.model.tensor(id).rank else { continue };
            let named = param.ty.dims.len() - 1;
            if rank < named {
                let message = format!(
                    "`{}` has {}, but `{}` has at least {named}",
                    self.model.tensor(id).name,
                    rank_text(rank),
                    param.name.text,
                );
                self.report(
                    Diagnostic::error(Code::RankMismatch, argument.span, message)
                        .secondary_label(param.ty.span, "the parameter"),
                );
                return None;
            }
            return Some(rank - named);
        }
        Some(0)
    }

    /// The function at the types of its arguments and the values of its static parameters, and the
    /// other arguments.
    fn instance<'f>(
        &mut self,
        callee: &Name,
        function: &'f Function,
        arguments: &'f [Expr],
        scope: &Scope,
    ) -> Option<(Cow<'f, Function>, Cow<'f, [Expr]>)> {
        let is_optional = |param: &Param| {
            let is_known = || expand::is_length_of_list(function, &param.name.text);
            param.is_static && (param.default.is_some() || is_known())
        };
        let least = function.params.iter().rposition(|param| !is_optional(param)).map_or(0, |last| last + 1);
        if !(least..=function.params.len()).contains(&arguments.len()) {
            let wanted = if arguments.len() < least { least } else { function.params.len() };
            self.check_arity(callee, "argument", wanted, arguments.len(), function.name.span)?;
        }
        self.require_lists(function, arguments)?;
        let statics = expand::call_statics(function, arguments, &Statics::new());
        for (param, argument) in function.params.iter().zip(arguments).filter(|(param, _)| param.is_static) {
            if !statics.contains_key(&param.name.text) {
                let message = format!(
                    "the argument for the static parameter `{}` must be known when the program is checked",
                    param.name.text
                );
                self.report(
                    Diagnostic::error(Code::InvalidRange, argument.span, message)
                        .secondary_label(param.name.span, "the parameter")
                        .help("it may contain numbers and `static int` parameters"),
                );
                return None;
            }
        }
        if let Some(mistake) = expand::undetermined_type(function) {
            self.report(mistake);
            return None;
        }
        let types = self.argument_types(function, arguments, scope);
        let leading = self.leading_dimensions(function, arguments, scope)?;
        self.model.leading.push(expand::leading_names(function, leading).join(", "));
        let instance = Instance { statics, types, leading };
        let (expanded, mistakes) = expand::expand(self.module, function, &instance);
        let is_fine = mistakes.is_empty();
        mistakes.into_iter().for_each(|mistake| self.report(mistake));
        let arguments = self.tensors_of_lists(function, &expanded, arguments)?;
        is_fine.then_some((Cow::Owned(expanded), Cow::Owned(arguments)))
    }

    /// The arguments that are not static, with the tensors of a list in its place, or `None` after
    /// a report. `expanded` has a parameter for each tensor of a list.
    fn tensors_of_lists(
        &mut self,
        function: &Function,
        expanded: &Function,
        arguments: &[Expr],
    ) -> Option<Vec<Expr>> {
        let mut all = Vec::new();
        for (param, argument) in function.params.iter().zip(arguments).filter(|(param, _)| !param.is_static) {
            if param.name.element.is_none() {
                all.push(argument.clone());
                continue;
            }
            let is_tensor = |own: &&Param| own.name.span == param.name.span;
            let wanted = expanded.params.iter().filter(is_tensor).count();
            let ExprKind::List(list, elements) = &argument.kind else { continue };
            if elements.len() != wanted {
                let (name, found) = (&param.name.text, elements.len());
                let message = format!("`{list}` has {found} tensors, but the list `{name}` has {wanted}");
                self.report(
                    Diagnostic::error(Code::RankMismatch, argument.span, message)
                        .secondary_label(param.name.span, "the parameter"),
                );
                return None;
            }
            all.extend(elements.iter().cloned());
        }
        Some(all)
    }

    /// Refuses an argument for a list that is not the name of a list.
    fn require_lists(&mut self, function: &Function, arguments: &[Expr]) -> Option<()> {
        let is_wrong = |(param, argument): &(&Param, &Expr)| {
            param.name.element.is_some() && !matches!(argument.kind, ExprKind::List(..))
        };
        let Some((param, argument)) = function.params.iter().zip(arguments).find(is_wrong) else {
            return Some(());
        };
        let message =
            format!("`{}` is a list of tensors, so its argument must be the name of a list", param.name.text);
        self.report(
            Diagnostic::error(Code::TypeMismatch, argument.span, message)
                .secondary_label(param.name.span, "the parameter")
                .help("define the tensors of a list before the call, `p[0](…) = …` and so on, and pass `p`"),
        );
        None
    }

    /// The prefix of the names of a call's temporaries: `blur` for the first call of `blur`,
    /// `blur_2` for the second. Schedules use these names for the temporaries. Numbers that would
    /// make the name of a function in the file are skipped.
    fn next_prefix(&mut self, callee: &str) -> String {
        let calls = self.calls.entry(callee.to_owned()).or_default();
        *calls += 1;
        let numbered = (2.max(*calls)..).map(|number| format!("{callee}_{number}"));
        let first = (*calls == 1).then(|| callee.to_owned());
        let is_free = |name: &String| {
            !self.prefixes.contains(name) && (name == callee || self.module.function(name).is_none())
        };
        let prefix = first.into_iter().chain(numbered).find(is_free).expect("some number is always free");
        self.prefixes.insert(prefix.clone());
        prefix
    }

    /// The scope of the called function, which maps its names to tensors and values of the caller.
    fn enter_call(
        &mut self,
        targets: &[Name],
        callee: &Name,
        function: &Function,
        arguments: &[Expr],
        scope: &mut Scope,
    ) -> Option<Scope> {
        self.refuse_endless_call(callee)?;
        self.check_arity(callee, "argument", function.params.len(), arguments.len(), function.name.span)?;
        self.check_arity(callee, "result", function.results.len(), targets.len(), function.name.span)?;
        self.refuse_repeated_target(targets)?;
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
            let view = self.tensor_argument(param, argument, targets, scope)?;
            bind_sizes(param, function, &view, argument.span, &mut inner);
            match view.as_ref() {
                View::Tensor(id, _) => {
                    inner.tensors.insert(param.name.text.clone(), *id);
                }
                _ => {
                    let argument = Rc::new(View::Argument(view.clone()));
                    inner.views.insert(param.name.text.clone(), ViewState::Defined(argument));
                }
            }
            tensors.push((param, view, argument.span));
        }
        self.definitions(function, &mut inner);
        for (param, view, argument) in tensors {
            self.require_sizes(param, &view, argument, &inner);
        }
        for (result, target) in function.results.iter().zip(targets) {
            let id = self.resolve_target(target, scope)?;
            if let Some(ty) = &result.ty {
                self.declare_result(ty, result.stored.as_ref(), id, target, &inner);
            }
            inner.tensors.insert(result.name.text.clone(), id);
        }
        Some(inner)
    }

    pub(super) fn refuse_endless_call(&mut self, callee: &Name) -> Option<()> {
        let recursive =
            callee.text == self.model.name || self.call_stack.iter().any(|(name, _)| *name == callee.text);
        if recursive {
            let message = match self.call_stack.last() {
                Some((caller, _)) => format!("the call of `{}` in `{caller}` is recursive", callee.text),
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
        Some(())
    }

    fn refuse_repeated_target(&mut self, targets: &[Name]) -> Option<()> {
        for (at, target) in targets.iter().enumerate() {
            if let Some(first) = targets[..at].iter().find(|first| first.text == target.text) {
                let first = first.span;
                self.report_collision(target, "a result of this call", Some(first));
                return None;
            }
        }
        Some(())
    }

    /// Gives the caller's target the type and extents that the called function declares for its
    /// result.
    fn declare_result(
        &mut self,
        ty: &Type,
        stored: Option<&StorageOrder>,
        id: TensorId,
        target: &Name,
        inner: &Scope,
    ) {
        let shape = self.declared_shape(ty, inner).map(|extents| {
            let mut shape = extents.clone();
            for (dimension, extent) in extents.into_iter().enumerate() {
                let own = self.argument_dimension(stored, dimension, id);
                if let Some(place) = shape.get_mut(own) {
                    *place = extent;
                }
            }
            shape
        });
        let tensor = &mut self.model.tensors[id.index()];
        if let (None, Some(shape)) = (&tensor.declared, &shape) {
            // Extents of the caller's tensors are not known yet, so the shape stays open until they
            // are.
            tensor.declared = Some(shape.clone());
            tensor.dtype = tensor.dtype.or(Some(ty.dtype));
            tensor.declared_dtype = tensor.dtype;
        } else if let (Some(mine), Some(theirs)) = (tensor.declared.clone(), shape) {
            for (left, right) in mine.into_iter().zip(theirs) {
                let what = format!("an extent of `{}`", target.text);
                self.model.equal_sizes.push(EqualSizes { left, right, span: target.span, description: what });
            }
        }
    }

    fn check_arity(
        &mut self,
        callee: &Name,
        what: &str,
        wanted: usize,
        found: usize,
        defined: Span,
    ) -> Option<()> {
        if wanted == found {
            return Some(());
        }
        let plural = if wanted == 1 { "" } else { "s" };
        let message = format!("`{}` has {wanted} {what}{plural}, but this call has {found}", callee.text);
        self.report(
            Diagnostic::error(Code::RankMismatch, callee.span, message)
                .secondary_label(defined, "it is defined here"),
        );
        None
    }

    fn scalar_argument(&mut self, dtype: DType, argument: &Expr, scope: &Scope) -> Option<Value> {
        let mut names = scope.sizes_only();
        let value = self.expression(argument, &mut names)?;
        self.refuse_large_argument(&value, argument.span)?;
        self.converted_argument(dtype, value)
    }

    /// Reports an argument that would be copied too often to be practical.
    pub(super) fn refuse_large_argument(&mut self, value: &Value, span: Span) -> Option<()> {
        if value.height() <= MOST_NESTING && value.count() <= MOST_NODES {
            return Some(());
        }
        let message = "this argument is too large after calls are inlined";
        self.report(Diagnostic::error(Code::TooComplex, span, message));
        None
    }

    /// An argument as a value of the parameter's type.
    pub(super) fn converted_argument(&mut self, dtype: DType, value: Value) -> Option<Value> {
        let span = value.span;
        let float = types::type_of(&value, &self.model).or_default().is_some_and(DType::is_float);
        if float && !dtype.is_float() {
            let message = format!("a float argument for a parameter of type {dtype}");
            self.report(
                Diagnostic::error(Code::TypeMismatch, span, message)
                    .help(format!("convert it: `{dtype}(…)`")),
            );
            return None;
        }
        if let (Some(number), Some((low, high))) = (literal(&value), dtype.integer_bounds())
            && !(low..=high).contains(&number)
        {
            let message = format!("{number} does not fit {dtype}");
            self.report(Diagnostic::error(Code::TypeMismatch, span, message));
            return None;
        }
        Some(Value::new(ValueKind::Cast(dtype, Box::new(value)), span))
    }

    fn tensor_argument(
        &mut self,
        param: &Param,
        argument: &Expr,
        targets: &[Name],
        scope: &Scope,
    ) -> Option<Rc<View>> {
        let ExprKind::Name(text) = &argument.kind else {
            let wanted =
                format!("`{}` is a tensor, so its argument must be the name of one", param.name.text);
            let diagnostic = Diagnostic::error(Code::TypeMismatch, argument.span, wanted)
                .secondary_label(param.name.span, "the parameter");
            self.report(match &argument.kind {
                ExprKind::Apply(inner, _) if self.module.function(&inner.text).is_some() => {
                    diagnostic.help(format!("write `t = {}(…)` first, then pass `t`", inner.text))
                }
                ExprKind::List(list, _) => diagnostic
                    .help(format!("`{list}` is a list: pass one of its tensors, such as `{list}[0]`")),
                _ => diagnostic,
            });
            return None;
        };
        let view = match (scope.views.get(text), scope.tensors.get(text)) {
            (Some(state), _) => self.known_view(&Name::new(text.clone(), argument.span), state)?,
            (None, Some(id)) => self.whole(*id),
            (None, None) => {
                let name = Name::new(text.clone(), argument.span);
                self.report_undefined(&name, "tensor", scope.tensors.keys().map(String::as_str).collect());
                return None;
            }
        };
        let id = view.tensor();
        let is_it = |target: &&Name| scope.tensors.get(&target.text) == Some(&id);
        if let Some(target) = targets.iter().find(is_it) {
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
                rank_text(rank),
                param.name.text,
                rank_text(param.ty.dims.len())
            );
            self.report(
                Diagnostic::error(Code::RankMismatch, argument.span, message)
                    .secondary_label(param.ty.span, "the parameter"),
            );
            return None;
        }
        self.expect_argument_type(id, param, argument.span);
        Some(view)
    }

    fn expect_argument_type(&mut self, id: TensorId, param: &Param, span: Span) {
        let tensor = &mut self.model.tensors[id.index()];
        match tensor.dtype {
            None => tensor.dtype = Some(param.ty.dtype),
            Some(dtype) if dtype != param.ty.dtype => {
                let message = format!(
                    "`{}` holds {dtype}, but `{}` is {}",
                    tensor.name, param.name.text, param.ty.dtype
                );
                self.report(
                    Diagnostic::error(Code::TypeMismatch, span, message)
                        .secondary_label(param.ty.span, "the parameter"),
                );
            }
            _ => {}
        }
    }

    /// The dimension of the caller's tensor that belongs to a dimension of a parameter or result.
    /// Both may be stored in an order of their own, and are the same tensor by their subscripts.
    fn argument_dimension(&self, stored: Option<&StorageOrder>, dimension: usize, id: TensorId) -> usize {
        let place = stored.map_or(dimension, |stored| stored.place(dimension));
        self.model.tensor(id).dimension(place)
    }

    /// Requires that every extent of an argument equals the extent of the parameter.
    fn require_sizes(&mut self, param: &Param, view: &View, span: Span, inner: &Scope) {
        for (at, dim) in param.ty.dims.iter().enumerate() {
            let Some(wanted) = self.size_expr(dim, inner) else { continue };
            let place = param.stored.as_ref().map_or(at, |stored| stored.place(at));
            let Some(found) = lower::index(&view.end(place, span), &mut self.model) else { continue };
            if wanted != found {
                let what = format!(
                    "extent {place} of `{}`, which is parameter `{}` of `{}`",
                    self.model.tensor(view.tensor()).name,
                    param.name.text,
                    inner.function
                );
                self.model.equal_sizes.push(EqualSizes {
                    left: found,
                    right: wanted,
                    span,
                    description: what,
                });
            }
        }
    }
}

/// Binds each size of the called function to the extent of the first argument that has it.
fn bind_sizes(param: &Param, function: &Function, view: &View, span: Span, inner: &mut Scope) {
    for (at, dim) in param.ty.dims.iter().enumerate() {
        if let ExprKind::Name(text) = &dim.kind
            && !inner.sizes.contains_key(text)
            && !inner.scalars.contains_key(text)
            && !function.defines(text)
        {
            let place = param.stored.as_ref().map_or(at, |stored| stored.place(at));
            inner.sizes.insert(text.clone(), view.end(place, span));
        }
    }
}

/// The number that a literal is, with its sign.
fn literal(value: &Value) -> Option<i128> {
    match &value.kind {
        ValueKind::Int(number, _) => Some(*number),
        ValueKind::Unary(UnaryOp::Neg, operand) => literal(operand).map(|number| -number),
        _ => None,
    }
}
