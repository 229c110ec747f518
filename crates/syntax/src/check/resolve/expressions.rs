//! Resolves the names in an [`Expr`] of the syntax tree to a [`Value`], and reports unknown names.

use tilewright_ir::{BinaryOp, TensorId};

use super::scalar_functions::{standard_named, standard_names};
use super::signature::{Callable, builtin_names};
use super::{
    MOST_DEPTH, Resolver, Scope, StatementScope, UnknownName, builtin_named, rank_text, subscript_count_text,
};
use crate::ast::{Expr, ExprKind, Name};
use crate::check::expand::is_of_iteration;
use crate::check::number::{is_of_numbers, number_of};
use crate::check::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic, most_similar};
use crate::lexer::Suffix;
use crate::span::Span;

impl Resolver<'_> {
    /// The expression with its names resolved, or `None` after a report.
    pub(super) fn expression(&mut self, expr: &Expr, names: &mut StatementScope<'_>) -> Option<Value> {
        if self.depth >= MOST_DEPTH {
            let message = "expressions are nested too deeply with bindings and calls in place";
            self.report(Diagnostic::error(Code::TooComplex, self.call_span.unwrap_or(expr.span), message));
            return None;
        }
        self.depth += 1;
        let value = self.expression_at_depth(expr, names);
        self.depth -= 1;
        value
    }

    fn expression_at_depth(&mut self, expr: &Expr, names: &mut StatementScope<'_>) -> Option<Value> {
        let kind = match &expr.kind {
            ExprKind::Int(value, suffix) => ValueKind::Int(*value, *suffix),
            ExprKind::Float(value, suffix) => ValueKind::Float(*value, *suffix),
            ExprKind::Bool(value) => ValueKind::Bool(*value),
            ExprKind::Name(text) => return self.name(text, expr.span, names),
            ExprKind::Element(name) => return self.name(&name.text, expr.span, names),
            ExprKind::List(name, _) => {
                let message = format!("`{name}` is a list of tensors, and not a value");
                let help = format!("name one of its tensors: `{name}[0]`");
                self.report(Diagnostic::error(Code::TypeMismatch, expr.span, message).help(help));
                return None;
            }
            ExprKind::Dimensions => {
                let message = "`..` is for functions whose parameters have any number of dimensions";
                let help = "write it in a parameter first: `def twice(float(.., N) x) -> (y)`";
                self.report(Diagnostic::error(Code::Syntax, expr.span, message).help(help));
                return None;
            }
            ExprKind::Extent(name, dimension) => self.extent(name, *dimension, expr.span, names)?,
            ExprKind::Apply(name, arguments) => return self.application(name, arguments, expr.span, names),
            ExprKind::Cast(dtype, operand) => {
                ValueKind::Cast(*dtype, Box::new(self.expression(operand, names)?))
            }
            ExprKind::CastLike(name, operand) => {
                let tensor = names.scope.tensors.get(&name.text).copied()?;
                let value = self.expression(operand, names)?;
                self.refuse_inexact_order(&value)?;
                ValueKind::CastLike(tensor, Box::new(value))
            }
            ExprKind::Neutral(op) => ValueKind::Neutral(*op),
            ExprKind::Unary(op, operand) => ValueKind::Unary(*op, Box::new(self.expression(operand, names)?)),
            ExprKind::Binary(op, operands) => {
                let [left, right] = operands.as_ref();
                let (left, right) = (self.expression(left, names), self.expression(right, names));
                self.binary(*op, left?, right?, expr.span)?
            }
            ExprKind::Ternary(operands) => {
                let [condition, then, otherwise] = operands.as_ref();
                let condition = self.expression(condition, names);
                let (then, otherwise) = (self.expression(then, names), self.expression(otherwise, names));
                ValueKind::Select(Box::new([condition?, then?, otherwise?]))
            }
        };
        Some(self.placed(kind, expr.span))
    }

    /// The value of a binary operator. An operator on the bits of numbers, or a power of them, is a
    /// number: `2 ** 10` is 1024 whatever type it takes.
    fn binary(&mut self, op: BinaryOp, left: Value, right: Value, span: Span) -> Option<ValueKind> {
        let operands = Box::new([left, right]);
        if !op.is_on_integers() || !operands.iter().all(is_of_numbers) {
            return Some(ValueKind::Binary(op, operands));
        }
        let whole = Value::new(ValueKind::Binary(op, operands), span);
        if let Some(number) = number_of(&whole) {
            return Some(ValueKind::Int(number, Suffix::None));
        }
        let is_negative = number_of(&whole.operands()[1]).is_some_and(|number| number < 0);
        if (op.is_shift() || op == BinaryOp::Power) && is_negative {
            // Lowering knows the type, and reports it.
            return Some(whole.kind);
        }
        let span = self.call_span.unwrap_or(span);
        self.report(
            Diagnostic::error(Code::TooComplex, span, "this number is too large")
                .help("integers have at most 64 bits"),
        );
        None
    }

    /// A value at a position. Inside a function on numbers, that is the position of its call.
    pub(super) fn placed(&self, kind: ValueKind, span: Span) -> Value {
        Value { kind, span: self.call_span.unwrap_or(span), is_standard: self.in_standard }
    }

    /// The value that a name stands for. The argument of a function on numbers keeps its position.
    fn named(&self, value: &Value, span: Span) -> Value {
        let span = if self.call_span.is_some() { value.span } else { span };
        Value { span, ..value.clone() }
    }

    /// Returns true when a name is that of a function on numbers: one of the file, a builtin, or a
    /// standard function.
    pub(super) fn is_on_numbers(&self, name: &str) -> bool {
        self.module.scalar_function(name).is_some()
            || builtin_named(name).is_some()
            || standard_named(name).is_some()
    }

    fn name(&mut self, text: &str, span: Span, names: &mut StatementScope<'_>) -> Option<Value> {
        if let Some(value) = names.lets.get(text) {
            return Some(self.named(value, span));
        }
        if let Some((_, id)) = names.vars.iter().find(|(name, _)| name == text) {
            return Some(self.placed(ValueKind::Var(*id), span));
        }
        if let Some((_, id)) = names.scope.loops.iter().rev().find(|(name, _)| name == text) {
            return Some(self.placed(ValueKind::Var(self.model.loops[id.0].var), span));
        }
        let known = names.scope.sizes.get(text).or_else(|| names.scope.scalars.get(text));
        if let Some(value) = known {
            return Some(self.named(value, span));
        }
        if let Some(state) = names.scope.views.get(text) {
            let view = self.known_view(&Name::new(text, span), state)?;
            let tensor = self.model.tensor(view.tensor()).name.clone();
            let message = format!("`{text}` is a view of `{tensor}`, but no subscript is given");
            self.report(Diagnostic::error(Code::RankMismatch, span, message));
            return None;
        }
        if let Some(id) = names.scope.tensors.get(text).copied() {
            return match self.model.tensor(id).rank {
                Some(0) => Some(Value::new(ValueKind::Load(id, Vec::new()), span)),
                Some(rank) => {
                    let message =
                        format!("`{text}` is a tensor with {}, but no subscript is given", rank_text(rank));
                    let subscripts =
                        ["i", "j", "k", "l"].get(..rank).map_or("…".to_owned(), |names| names.join(", "));
                    let help =
                        format!("write `{text}({subscripts})`, or choose another name for the variable");
                    self.report(Diagnostic::error(Code::RankMismatch, span, message).help(help));
                    None
                }
                None => None,
            };
        }
        if names.unknown != UnknownName::Variable {
            self.report_unknown_name(text, span, names);
            return None;
        }
        let id = self.model.add_var(text, span);
        names.vars.push((text.to_owned(), id));
        Some(Value::new(ValueKind::Var(id), span))
    }

    fn report_unknown_name(&mut self, text: &str, span: Span, names: &StatementScope<'_>) {
        let name = Name::new(text, span);
        let known = names.scope.sizes.keys().chain(names.scope.scalars.keys()).chain(names.lets.keys());
        let (what, help) = match names.unknown {
            UnknownName::NoParameter => {
                ("parameter", "a function on numbers knows its parameters only: add this one to them")
            }
            _ => (
                "size or integer scalar",
                "bounds and sizes may depend on sizes and integer scalars only; bounds of `where` may also \
                 contain variables of the statement",
            ),
        };
        self.report_undefined(&name, what, known.map(String::as_str).collect());
        if let Some(diagnostic) = self.model.diagnostics.last_mut() {
            diagnostic.help.push(help.to_owned());
        }
    }

    fn extent(
        &mut self,
        name: &Name,
        dimension: u32,
        span: Span,
        names: &StatementScope<'_>,
    ) -> Option<ValueKind> {
        let view = match names.scope.views.get(&name.text) {
            Some(state) => Some(self.known_view(name, state)?),
            None => None,
        };
        let tensor = view.as_ref().map(|view| view.tensor());
        let Some(id) = tensor.or_else(|| names.scope.tensors.get(&name.text).copied()) else {
            self.report_undefined(name, "tensor", names.scope.tensors.keys().map(String::as_str).collect());
            return None;
        };
        let rank = self.model.tensor(id).rank?;
        if dimension as usize >= rank {
            let message =
                format!("`{}` has {}, and there is no dimension {dimension}", name.text, rank_text(rank));
            self.report(
                Diagnostic::error(Code::RankMismatch, span, message).help("dimensions are counted from 0"),
            );
            return None;
        }
        Some(match view {
            Some(view) => view.end(dimension as usize, span).kind,
            None => ValueKind::Extent(id, self.model.tensor(id).dimension(dimension as usize) as u32),
        })
    }

    fn application(
        &mut self,
        name: &Name,
        arguments: &[Expr],
        span: Span,
        names: &mut StatementScope<'_>,
    ) -> Option<Value> {
        let is_function = self.module.function(&name.text).is_some() && builtin_named(&name.text).is_none();
        let known = names.scope.tensors.contains_key(&name.text)
            || names.scope.views.contains_key(&name.text)
            || (self.is_on_numbers(&name.text) && !is_function);
        if !known {
            self.report_unknown_application(name, names);
        }
        if !known && is_function {
            return None;
        }
        let arguments: Vec<Option<Value>> =
            arguments.iter().map(|argument| self.expression(argument, names)).collect();
        if let Some(view) = names.scope.views.get(&name.text) {
            let view = self.known_view(name, view)?;
            return self.read_view(&view, name, arguments, span, names);
        }
        if let Some(id) = names.scope.tensors.get(&name.text).copied() {
            let rank = self.known_rank(id, name)?;
            self.check_subscript_count(id, name, rank, arguments.len(), span)?;
            let indices: Option<Vec<Value>> = arguments.into_iter().collect();
            let indices = self.model.tensor(id).in_memory_order(indices?);
            return Some(self.placed(ValueKind::Load(id, indices), span));
        }
        let module = self.module;
        match (builtin_named(&name.text), module.scalar_function(&name.text)) {
            (Some(builtin), _) => self.builtin(builtin, name, arguments, span),
            (None, Some(function)) => self.expand(function, name, arguments, span),
            (None, None) => self.standard(standard_named(&name.text)?, name, arguments, span),
        }
    }

    /// Reports an access of a tensor, or of a view of it, with fewer or more subscripts than the
    /// tensor has dimensions.
    pub(super) fn check_subscript_count(
        &mut self,
        id: TensorId,
        name: &Name,
        rank: usize,
        found: usize,
        span: Span,
    ) -> Option<()> {
        if rank == found {
            return Some(());
        }
        let message = format!("`{}` has {}, but {}", name.text, rank_text(rank), subscript_count_text(found));
        let first = self.model.tensor(id).span;
        self.report(
            Diagnostic::error(Code::RankMismatch, span, message)
                .secondary_label(first, "its rank comes from here"),
        );
        None
    }

    /// Refuses an ordered value that a function such as `exp` computes. The reduction of the next
    /// value computes it again, and may round it in another way.
    fn refuse_inexact_order(&mut self, value: &Value) -> Option<()> {
        let mut found = None;
        value.walk(&mut |node| {
            if let ValueKind::Call(builtin, _) = &node.kind
                && !builtin.is_exact()
            {
                found = Some(*builtin);
            }
        });
        let Some(builtin) = found else { return Some(()) };
        let message = format!("`{}` may round in two ways, and this value is computed twice", builtin.name());
        self.report(
            Diagnostic::error(Code::TypeMismatch, value.span, message)
                .help("store the value in a tensor first: `t(…) = …`, then reduce `t(…)`"),
        );
        None
    }

    /// The rank of a tensor. A call that is not inlined yet hides it.
    fn known_rank(&mut self, id: TensorId, name: &Name) -> Option<usize> {
        let tensor = self.model.tensor(id);
        let is_silent = !self.model.diagnostics.iter().any(Diagnostic::is_error);
        if tensor.rank.is_none() && !tensor.poisoned && is_silent {
            let message = format!("`{}` is read before a statement defines it", name.text);
            self.report(Diagnostic::error(Code::ReadBeforeWrite, name.span, message));
        }
        self.model.tensor(id).rank
    }

    fn report_unknown_application(&mut self, name: &Name, names: &StatementScope<'_>) {
        if self.module.function(&name.text).is_some() {
            let message = format!("`{}` is a function, and a call must be a statement of its own", name.text);
            self.report(
                Diagnostic::error(Code::UndefinedName, name.span, message)
                    .help(format!("write `T = {}(…)` first, then use `T(…)` here", name.text)),
            );
            return;
        }
        let bare = names.scope.sizes.contains_key(&name.text) || names.scope.scalars.contains_key(&name.text);
        if bare {
            let message = format!("`{}` is not a tensor or function", name.text);
            self.report(
                Diagnostic::error(Code::UndefinedName, name.span, message).help("write `*` for a product"),
            );
            return;
        }
        let own = self.module.scalar_functions.iter().map(|function| &function.name.text);
        let mut candidates: Vec<&str> = names.scope.tensors.keys().chain(own).map(String::as_str).collect();
        for standard in builtin_names().chain(standard_names()) {
            candidates.push(standard);
        }
        let message = format!("there is no tensor or function `{}`", name.text);
        let mut diagnostic = Diagnostic::error(Code::UndefinedName, name.span, message);
        if let Some(help) = self.list_help(&name.text, names.scope) {
            return self.report(diagnostic.help(help));
        }
        if let Some(help) = reduction_help(&name.text) {
            return self.report(diagnostic.help(help));
        }
        if let Some((list, _)) = name.text.split_once('[') {
            self.report(match names.scope.tensors.contains_key(list) {
                true => diagnostic.help(format!("`{list}` is a tensor: its elements are `{list}(…)`")),
                false => diagnostic.note(elements_text(list, names.scope)),
            });
            return;
        }
        if let Some(close) = most_similar(&name.text, candidates) {
            diagnostic = diagnostic.help(format!("did you mean `{close}`?"));
        }
        self.report(diagnostic);
    }

    /// The help for the name of a list, or of the tensor of an iteration, in place of a tensor.
    pub(super) fn list_help(&self, name: &str, scope: &Scope) -> Option<String> {
        let prefix = format!("{name}[");
        let known = scope.tensors.keys().chain(scope.views.keys());
        let own: Vec<&String> = known.filter(|known| known.starts_with(&prefix)).collect();
        if own.iter().any(|own| !is_of_iteration(own)) {
            return Some(format!("`{name}` is a list of tensors: name one of them, as in `{name}[0](…)`"));
        }
        (!own.is_empty()).then(|| {
            format!(
                "`{name}` belongs to one iteration of the loop that defines it: define `{name}` before the \
                 loop, or make it a list, `{name}[k](…) = …`"
            )
        })
    }

    /// Reports a call with fewer or more arguments than the function takes.
    pub(super) fn check_argument_count(
        &mut self,
        name: &Name,
        (least, most): (usize, usize),
        found: usize,
        span: Span,
    ) -> Option<()> {
        if (least..=most).contains(&found) {
            return Some(());
        }
        let wanted = match most {
            most if most == least => least.to_string(),
            usize::MAX => format!("{least} or more"),
            most => format!("{least} to {most}"),
        };
        let plural = if wanted == "1" { "" } else { "s" };
        let message = format!("`{}` takes {wanted} argument{plural}, but this call has {found}", name.text);
        self.report(Diagnostic::error(Code::RankMismatch, span, message));
        None
    }

    fn builtin(
        &mut self,
        callable: Callable,
        name: &Name,
        arguments: Vec<Option<Value>>,
        span: Span,
    ) -> Option<Value> {
        let (least, most) = match callable {
            Callable::Builtin(builtin) => (builtin.arity(), builtin.arity()),
            Callable::Extremum(_) => (2, usize::MAX),
            Callable::Clamp => (3, 3),
        };
        self.check_argument_count(name, (least, most), arguments.len(), span)?;
        let arguments: Option<Vec<Value>> = arguments.into_iter().collect();
        let span = self.call_span.unwrap_or(span);
        let pair = |op: BinaryOp, left: Value, right: Value| {
            Value::new(ValueKind::Binary(op, Box::new([left, right])), span)
        };
        let mut arguments = arguments?.into_iter();
        Some(match callable {
            Callable::Builtin(builtin) => Value::new(ValueKind::Call(builtin, arguments.collect()), span),
            Callable::Extremum(op) => {
                // A balanced tree keeps the height small for many arguments.
                let mut level: Vec<Value> = arguments.collect();
                while level.len() > 1 {
                    let mut rest = level.into_iter();
                    level = Vec::new();
                    while let Some(left) = rest.next() {
                        level.push(match rest.next() {
                            Some(right) => pair(op, left, right),
                            None => left,
                        });
                    }
                }
                level.pop()?
            }
            Callable::Clamp => {
                let (value, low, high) = (arguments.next()?, arguments.next()?, arguments.next()?);
                pair(BinaryOp::Max, pair(BinaryOp::Min, value, high), low)
            }
        })
    }
}

/// The help for a word that is a reduction in other languages.
pub(super) fn reduction_help(name: &str) -> Option<&'static str> {
    Some(match name {
        "sum" | "mean" | "dot" | "reduce" => {
            "a reduction is an assignment: `y +=! x(i)` is the sum over all `i`"
        }
        "prod" | "product" => "a reduction is an assignment: `y *=! x(i)` is the product over all `i`",
        "argmin" => "reduce a value and its place together: `(least, at) min=! (x(i), i)`",
        "argmax" => "reduce a value and its place together: `(most, at) max=! (x(i), i)`",
        "if" | "where" | "select" => "a choice is written `condition ? value : other`",
        _ => return None,
    })
}

/// Tells which elements of a list statements define.
fn elements_text(list: &str, scope: &Scope) -> String {
    let prefix = format!("{list}[");
    let is_element = |name: &&String| name.starts_with(&prefix) && !is_of_iteration(name);
    let mut elements: Vec<&String> = scope.tensors.keys().filter(is_element).collect();
    elements.sort_by_key(|name| (name.len(), *name));
    match elements.as_slice() {
        [] => format!("no statement defines an element of `{list}`"),
        [one] => format!("only `{one}` is defined"),
        [first, .., last] => format!("there are `{first}` to `{last}`"),
    }
}
