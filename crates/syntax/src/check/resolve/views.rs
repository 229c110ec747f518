//! Resolves views: `f = repeat(x)` and the other rules for reading a tensor beyond its edges.
//!
//! A view is notation, and is stored nowhere. An access `f(y - 1, x)` becomes an access of the
//! tensor itself, with subscripts that the rule keeps inside: `x(clamp(y - 1, 0, H - 1), …)`. Each
//! access is also recorded as a [`ViewRead`], because the changed subscripts no longer tell the
//! ranges of variables (see `view_ranges`).

use std::rc::Rc;

use tilewright_ir::{BinaryOp, DType, TensorId};

use super::{Resolver, Scope, StatementScope, rank_text};
use crate::ast::{Expr, ExprKind, Name};
use crate::check::model::{DefinedView, Source, ViewRead};
use crate::check::number::number_of;
use crate::check::types;
use crate::check::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;
use crate::span::Span;
use crate::storage_order::StorageOrder;

/// The maximal depth of views that are made of views.
const MOST_VIEWS: usize = 12;

/// The functions that make a view of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ViewFunction {
    /// The element at the edge continues: `aaa|abc|ccc`.
    Repeat,
    /// The tensor is mirrored with its edge, which therefore comes twice: `cba|abc|cba`.
    Mirror,
    /// The tensor is mirrored at the element at the edge, which comes once: `dcb|abcd|cba`.
    Reflect,
    /// The tensor begins again: `abc|abc|abc`.
    Wrap,
    /// A number surrounds the tensor.
    Constant,
    /// The tensor with other coordinates: `shift(x, a)(i)` is `x(i + a)`.
    Shift,
}

/// A tensor, or a way to read one.
#[derive(Clone, Debug)]
pub(super) enum View {
    /// A tensor, and the order of its dimensions in memory if that is not the order of subscripts.
    Tensor(TensorId, Option<StorageOrder>),
    /// A rule for coordinates beyond an edge, in the dimensions that are marked.
    Boundary { below: Rc<View>, rule: ViewFunction, dimensions: Vec<bool> },
    /// A number beyond the edges of the dimensions that are marked.
    Constant { below: Rc<View>, number: Value, dimensions: Vec<bool> },
    /// The argument of a call: a function sees the part from 0 on, with edges of its own.
    Argument(Rc<View>),
    /// Other coordinates: each subscript is moved by a number.
    Shift { below: Rc<View>, by: Vec<Value> },
}

/// The state of a view's definition.
#[derive(Clone, Debug)]
pub(super) enum ViewState {
    /// A later statement defines the view.
    Later,
    /// A mistake in the definition was reported.
    Mistaken,
    Defined(Rc<View>),
}

/// The names of the view functions.
const VIEW_FUNCTIONS: [(&str, ViewFunction); 6] = [
    ("repeat", ViewFunction::Repeat),
    ("mirror", ViewFunction::Mirror),
    ("reflect", ViewFunction::Reflect),
    ("wrap", ViewFunction::Wrap),
    ("constant", ViewFunction::Constant),
    ("shift", ViewFunction::Shift),
];

/// All names of view functions, for suggestions.
pub(super) fn view_function_names() -> [&'static str; VIEW_FUNCTIONS.len()] {
    VIEW_FUNCTIONS.map(|(name, _)| name)
}

impl View {
    /// The tensor that the view reads.
    pub fn tensor(&self) -> TensorId {
        match self {
            View::Tensor(id, _) => *id,
            View::Boundary { below, .. }
            | View::Constant { below, .. }
            | View::Argument(below)
            | View::Shift { below, .. } => below.tensor(),
        }
    }

    /// The number of views that the view is made of. A mirrored one counts several times, because
    /// its subscripts contain that of the next view several times.
    fn depth(&self) -> usize {
        match self {
            View::Tensor(..) => 0,
            View::Boundary { below, rule: ViewFunction::Mirror | ViewFunction::Reflect, .. } => {
                MOST_VIEWS / 3 + below.depth()
            }
            View::Boundary { below, .. }
            | View::Constant { below, .. }
            | View::Argument(below)
            | View::Shift { below, .. } => 1 + below.depth(),
        }
    }

    /// One past the last index of a dimension.
    pub fn end(&self, dimension: usize, span: Span) -> Value {
        match self {
            View::Tensor(id, stored) => {
                let dimension = stored.as_ref().map_or(dimension, |stored| stored.dimension(dimension));
                Value::new(ValueKind::Extent(*id, dimension as u32), span)
            }
            View::Boundary { below, .. } | View::Constant { below, .. } | View::Argument(below) => {
                below.end(dimension, span)
            }
            View::Shift { below, by } => {
                binary(BinaryOp::Sub, below.end(dimension, span), by[dimension].clone())
            }
        }
    }
}

impl Resolver<'_> {
    /// The view function that a call means, unless the program has something else of that name.
    pub(super) fn called_view_function(&self, callee: &Name, scope: &Scope) -> Option<ViewFunction> {
        let name = callee.text.as_str();
        let is_taken = scope.tensors.contains_key(name)
            || self.module.function(name).is_some()
            || self.module.scalar_function(name).is_some();
        let (_, function) = VIEW_FUNCTIONS.iter().find(|(own, _)| *own == name)?;
        (!is_taken).then_some(*function)
    }

    /// Resolves `target = repeat(x)`.
    pub(super) fn define_view(
        &mut self,
        function: ViewFunction,
        targets: &[Name],
        callee: &Name,
        arguments: &[Expr],
        scope: &mut Scope,
    ) {
        let [target] = targets else {
            let message = format!("`{}` makes one view, but {} are wanted", callee.text, targets.len());
            self.report(Diagnostic::error(Code::RankMismatch, callee.span, message));
            return;
        };
        if self.refuse_taken_view_name(target, scope).is_none() {
            return;
        }
        let view = self.view(function, callee, arguments, scope);
        // A called function is checked by itself too.
        if let (Some(view), true) = (&view, self.call_stack.is_empty()) {
            self.defined_views.insert(Rc::as_ptr(view), (view.clone(), self.model.views.len()));
            self.model.views.push(DefinedView { name: target.clone(), is_used: false });
        }
        scope.views.insert(target.text.clone(), view.map_or(ViewState::Mistaken, ViewState::Defined));
    }

    /// Makes the name of a view known before the statement that defines it.
    pub(super) fn declare_view(&mut self, targets: &[Name], scope: &mut Scope) {
        for target in targets.iter().filter(|target| !scope.tensors.contains_key(&target.text)) {
            scope.views.entry(target.text.clone()).or_insert(ViewState::Later);
        }
    }

    /// The view of this name. Reports a name that is used too early.
    pub(super) fn known_view(&mut self, name: &Name, state: &ViewState) -> Option<Rc<View>> {
        match state {
            ViewState::Defined(view) => {
                if let Some((_, at)) = self.defined_views.get(&Rc::as_ptr(view)) {
                    self.model.views[*at].is_used = true;
                }
                Some(view.clone())
            }
            ViewState::Mistaken => None,
            ViewState::Later => {
                let message = format!("the view `{}` is used before it is defined", name.text);
                self.report(
                    Diagnostic::error(Code::UndefinedName, name.span, message)
                        .help("move the statement that defines it to the front"),
                );
                None
            }
        }
    }

    fn refuse_taken_view_name(&mut self, target: &Name, scope: &Scope) -> Option<()> {
        let taken = if matches!(scope.views.get(&target.text), Some(ViewState::Defined(_))) {
            "a view"
        } else if scope.tensors.contains_key(&target.text) {
            "a tensor"
        } else if scope.scalars.contains_key(&target.text) {
            "a scalar parameter"
        } else {
            return Some(());
        };
        let message = format!("`{}` is already {taken}", target.text);
        let is_result = |id: &TensorId| self.model.tensor(*id).source == Source::Result;
        let help = match scope.tensors.get(&target.text).is_some_and(is_result) {
            true => format!("a view is not stored: give it another name, and define `{}(…)`", target.text),
            false => "choose another name".to_owned(),
        };
        self.report(Diagnostic::error(Code::NameCollision, target.span, message).help(help));
        None
    }

    /// The view that a call makes, or `None` after a report.
    fn view(
        &mut self,
        function: ViewFunction,
        callee: &Name,
        arguments: &[Expr],
        scope: &Scope,
    ) -> Option<Rc<View>> {
        let (below, rank, rest) = self.viewed_tensor(callee, arguments, scope)?;
        Some(Rc::new(match function {
            ViewFunction::Shift => {
                if rest.len() != rank {
                    let message = format!(
                        "`shift` takes a number for each dimension: `{}` has {}, but {} given",
                        self.model.tensor(below.tensor()).name,
                        rank_text(rank),
                        if rest.len() == 1 { "1 is".to_owned() } else { format!("{} are", rest.len()) }
                    );
                    self.report(Diagnostic::error(Code::RankMismatch, callee.span, message));
                    return None;
                }
                let by: Option<Vec<Value>> = rest.iter().map(|by| self.shift_distance(by, scope)).collect();
                shifted(below, by?)
            }
            ViewFunction::Constant => {
                let Some((number, rest)) = rest.split_first() else {
                    let message = "`constant` needs the number that surrounds the tensor";
                    self.report(
                        Diagnostic::error(Code::RankMismatch, callee.span, message)
                            .help("write `constant(x, 0)`"),
                    );
                    return None;
                };
                let number = self.expression(number, &mut scope.sizes_only())?;
                self.refuse_wide_number(&number, below.tensor())?;
                let dimensions = self.viewed_dimensions(rest, rank)?;
                under_shift(below, |below| View::Constant { below, number, dimensions })
            }
            rule => {
                let dimensions = self.viewed_dimensions(rest, rank)?;
                under_shift(below, |below| View::Boundary { below, rule, dimensions })
            }
        }))
    }

    /// The tensor or view that a view is made of, its rank, and the other arguments.
    fn viewed_tensor<'e>(
        &mut self,
        callee: &Name,
        arguments: &'e [Expr],
        scope: &Scope,
    ) -> Option<(Rc<View>, usize, &'e [Expr])> {
        let name = arguments.first().and_then(|first| match &first.kind {
            ExprKind::Name(text) => Some(Name::new(text.clone(), first.span)),
            _ => None,
        });
        let (Some(name), [_, rest @ ..]) = (name, arguments) else {
            let message = format!("the first argument of `{}` must be the name of a tensor", callee.text);
            let span = arguments.first().map_or(callee.span, |first| first.span);
            let diagnostic = Diagnostic::error(Code::TypeMismatch, span, message);
            self.report(match arguments.first().map(|first| &first.kind) {
                Some(ExprKind::List(list, _)) => {
                    diagnostic.help(format!("`{list}` is a list: name one of its tensors, `{list}[0]`"))
                }
                Some(ExprKind::Apply(inner, _)) => {
                    diagnostic.help(format!("write `t = {}(…)` first, then use `t` here", inner.text))
                }
                _ => diagnostic,
            });
            return None;
        };
        let below = match scope.views.get(&name.text) {
            Some(state) => self.known_view(&name, state)?,
            None => match scope.tensors.get(&name.text) {
                Some(id) => self.whole(*id),
                None => {
                    let known = scope.tensors.keys().chain(scope.views.keys());
                    self.report_undefined(&name, "tensor", known.map(String::as_str).collect());
                    return None;
                }
            },
        };
        let rank = self.model.tensor(below.tensor()).rank?;
        if below.depth() >= MOST_VIEWS {
            let message = format!("views are made of views more than {MOST_VIEWS} deep");
            self.report(Diagnostic::error(Code::TooComplex, callee.span, message));
            return None;
        }
        if rank == 0 {
            let message = format!("`{}` has no dimension, and so no edge", name.text);
            self.report(Diagnostic::error(Code::RankMismatch, name.span, message));
            return None;
        }
        Some((below, rank, rest))
    }

    /// A tensor as a view of itself.
    pub(super) fn whole(&self, id: TensorId) -> Rc<View> {
        Rc::new(View::Tensor(id, self.model.tensor(id).stored.clone()))
    }

    /// Reports the number of a `constant` view that the type of the tensor does not hold.
    fn refuse_wide_number(&mut self, number: &Value, tensor: TensorId) -> Option<()> {
        let Some(dtype) = types::type_so_far(&mut self.model, tensor) else { return Some(()) };
        let bounds = dtype.integer_bounds().filter(|_| dtype != DType::Bool);
        let (Some(found), Some((low, high))) = (number_of(number), bounds) else { return Some(()) };
        if (low..=high).contains(&found) {
            return Some(());
        }
        let name = &self.model.tensor(tensor).text;
        let message = format!("{found} does not fit {dtype}, the type of `{name}`");
        let help =
            format!("{dtype} holds numbers from {low} to {high}; or make a wider copy of `{name}` first");
        self.report(Diagnostic::error(Code::TypeMismatch, number.span, message).help(help));
        None
    }

    /// The number of elements by which a view is moved in one dimension.
    fn shift_distance(&mut self, by: &Expr, scope: &Scope) -> Option<Value> {
        let before = self.model.diagnostics.len();
        let value = self.size_bound(by, scope).and_then(|_| self.expression(by, &mut scope.sizes_only()));
        let Some(value) = value else {
            let help =
                "the distance of a shift is fixed; one that varies belongs into a subscript: `x(i + k)`";
            for diagnostic in &mut self.model.diagnostics[before..] {
                diagnostic.help = vec![help.to_owned()];
            }
            return None;
        };
        self.refuse_large_argument(&value, by.span)?;
        Some(value)
    }

    /// Marks the dimensions that are listed; all of them if none is.
    fn viewed_dimensions(&mut self, listed: &[Expr], rank: usize) -> Option<Vec<bool>> {
        let mut marked = vec![listed.is_empty(); rank];
        for dimension in listed {
            let number = match dimension.kind {
                ExprKind::Int(number, Suffix::None) => usize::try_from(number).ok(),
                _ => None,
            };
            let Some(mark) = number.and_then(|number| marked.get_mut(number)) else {
                let message = "this must be the number of a dimension of the tensor";
                self.report(
                    Diagnostic::error(Code::RankMismatch, dimension.span, message)
                        .note(format!("the dimensions are 0 to {}", rank - 1))
                        .help("without numbers, the rule holds in every dimension"),
                );
                return None;
            };
            *mark = true;
        }
        Some(marked)
    }

    /// The value of an access through a view.
    pub(super) fn read_view(
        &mut self,
        view: &Rc<View>,
        name: &Name,
        arguments: Vec<Option<Value>>,
        span: Span,
        names: &mut StatementScope<'_>,
    ) -> Option<Value> {
        let rank = self.model.tensor(view.tensor()).rank?;
        self.check_subscript_count(view.tensor(), name, rank, arguments.len(), span)?;
        let indices: Vec<Value> = arguments.into_iter().collect::<Option<_>>()?;
        for index in &indices {
            self.refuse_large_argument(index, index.span)?;
        }
        let ends = (0..rank).map(|dimension| view.end(dimension, span)).collect();
        names.view_reads.push(ViewRead { name: name.text.clone(), indices: indices.clone(), ends, span });
        Some(read(view, indices, span))
    }
}

/// A shifted view; two shifts are one.
fn shifted(below: Rc<View>, by: Vec<Value>) -> View {
    match below.as_ref() {
        View::Shift { below, by: first } => {
            let both = by.into_iter().zip(first).map(|(by, first)| binary(BinaryOp::Add, by, first.clone()));
            View::Shift { below: below.clone(), by: both.collect() }
        }
        _ => View::Shift { below, by },
    }
}

/// A rule for the edges of a shifted tensor is the same rule for the tensor, shifted: the edges
/// move with it.
fn under_shift(below: Rc<View>, rule: impl FnOnce(Rc<View>) -> View) -> View {
    match below.as_ref() {
        View::Shift { below, by } => View::Shift { below: Rc::new(rule(below.clone())), by: by.clone() },
        _ => rule(below),
    }
}

/// The value of a view at the given subscripts.
fn read(view: &View, mut indices: Vec<Value>, span: Span) -> Value {
    match view {
        View::Tensor(id, stored) => {
            let indices = match stored {
                Some(stored) => stored.to_memory(&indices),
                None => indices,
            };
            Value::new(ValueKind::Load(*id, indices), span)
        }
        View::Argument(below) => read(below, indices, span),
        View::Shift { below, by } => {
            for (index, by) in indices.iter_mut().zip(by) {
                replace(index, |index| binary(BinaryOp::Add, index, by.clone()));
            }
            read(below, indices, span)
        }
        View::Boundary { below, rule, dimensions } => {
            for (dimension, index) in marked(dimensions, &mut indices) {
                let end = below.end(dimension, index.span);
                replace(index, |index| inside(*rule, index, end));
            }
            read(below, indices, span)
        }
        View::Constant { below, number, dimensions } => {
            let mut conditions = Vec::new();
            for (dimension, index) in marked(dimensions, &mut indices) {
                let end = below.end(dimension, index.span);
                conditions.push(binary(BinaryOp::LessEqual, int(0, index.span), index.clone()));
                conditions.push(binary(BinaryOp::Less, index.clone(), end));
            }
            let all = conditions.into_iter().reduce(|left, right| binary(BinaryOp::And, left, right));
            let element = read(below, indices, span);
            match all {
                Some(all) => {
                    let number = Value { span, ..number.clone() };
                    Value::new(ValueKind::Select(Box::new([all, element, number])), span)
                }
                None => element,
            }
        }
    }
}

fn marked<'a>(
    dimensions: &'a [bool],
    indices: &'a mut [Value],
) -> impl Iterator<Item = (usize, &'a mut Value)> {
    indices.iter_mut().enumerate().filter(|(dimension, _)| dimensions[*dimension])
}

/// The subscript between 0 and `end` that a rule gives for any subscript.
fn inside(rule: ViewFunction, index: Value, end: Value) -> Value {
    let span = index.span;
    let last = binary(BinaryOp::Sub, end.clone(), int(1, span));
    match rule {
        ViewFunction::Wrap => binary(BinaryOp::Mod, index, end),
        ViewFunction::Mirror => {
            let twice = binary(BinaryOp::Mul, int(2, span), end);
            fold_back(index, twice.clone(), binary(BinaryOp::Sub, twice, int(1, span)), last)
        }
        ViewFunction::Reflect => {
            let twice = binary(BinaryOp::Mul, int(2, span), last.clone());
            // A dimension of one element has no period.
            let period = binary(BinaryOp::Max, twice.clone(), int(1, span));
            fold_back(index, period, twice, last)
        }
        _ => binary(BinaryOp::Max, binary(BinaryOp::Min, index, last), int(0, span)),
    }
}

/// The subscript of a mirrored tensor: `index` modulo the period, counted from the other end in the
/// second half of the period. The last minimum changes nothing, and tells the proofs the bound.
fn fold_back(index: Value, period: Value, other_end: Value, last: Value) -> Value {
    let forth = binary(BinaryOp::Mod, index, period);
    let back = binary(BinaryOp::Sub, other_end, forth.clone());
    binary(BinaryOp::Min, binary(BinaryOp::Min, forth, back), last)
}

fn replace(value: &mut Value, with: impl FnOnce(Value) -> Value) {
    let span = value.span;
    *value = with(std::mem::replace(value, int(0, span)));
}

fn int(number: i128, span: Span) -> Value {
    Value::new(ValueKind::Int(number, Suffix::None), span)
}

fn binary(op: BinaryOp, left: Value, right: Value) -> Value {
    let span = left.span;
    Value::new(ValueKind::Binary(op, Box::new([left, right])), span)
}
