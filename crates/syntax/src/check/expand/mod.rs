//! Expands the parts of a function that stand for several: loops over stages, lists of tensors, and
//! the types and leading dimensions of generic functions.
//!
//! `for k in 0:n { g[k + 1] = down(g[k]) }` becomes one call for each `k`, with the elements of the
//! list as tensors of their own: `g[1] = down(g[0])`, `g[2] = down(g[1])` and so on. The bounds and
//! the numbers of elements must be known when the program is checked: they consist of numbers,
//! static parameters and the variables of such loops. A `for` whose variable is in no square
//! brackets stays an ordered loop.
//!
//! In a generic function, `T` becomes the type of an argument, and `..` as many dimensions as the
//! argument has more than the parameter names.
//!
//! This file writes a function out; `lists` expands lists in signatures and calls, `statics`
//! evaluates numbers, and `names` finds names.
//!
//! The pass works on the syntax tree, one function at a time, before names are resolved. Its result
//! has no square brackets, no static parameters and no type parameters.

mod lists;
mod names;
mod statics;

use std::collections::{BTreeSet, HashMap, HashSet};

use tilewright_ir::{DType, UnaryOp};

use self::names::{Names, body_mentions_list, is_over_stages, mentions, signature_names, targets_of};
use self::statics::static_value;
use super::resolve::MOST_STATEMENTS;
use crate::ast::{
    Clause, Comprehension, Expr, ExprKind, Function, Module, Name, Param, Requirement, Stmt, StmtKind, Type,
};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;
use crate::span::Span;

pub(super) use self::lists::{is_of_iteration, program_name, signature, written_name};
pub(super) use self::statics::{Statics, call_statics, is_length_of_list};

/// The types, numbers of dimensions and values at which a function is checked.
#[derive(Default)]
pub(super) struct Instance {
    pub statics: Statics,
    /// The types of the type parameters.
    pub types: HashMap<String, DType>,
    /// The number of dimensions that `..` stands for.
    pub leading: usize,
}

/// Returns true when a function has type parameters, or parameters with any number of dimensions.
pub(super) fn is_generic(function: &Function) -> bool {
    let has_dimensions = |param: &Param| param.ty.dims.iter().any(is_dimensions);
    !function.type_params.is_empty() || function.params.iter().any(has_dimensions)
}

/// The mistake of a type parameter that no argument can determine, if the function has one.
pub(super) fn undetermined_type(function: &Function) -> Option<Diagnostic> {
    let has_type = |name: &Name| {
        function.params.iter().any(|param| param.ty.parameter.as_deref() == Some(name.text.as_str()))
    };
    let name = function.type_params.iter().find(|name| !has_type(name))?;
    let message = format!("no parameter has the type `{}`, so no call determines it", name.text);
    let help = format!("give a parameter this type, as in `{}(N) x`, or write the type itself", name.text);
    Some(Diagnostic::error(Code::TypeMismatch, name.span, message).help(help))
}

/// Returns true for `..`.
pub(super) fn is_dimensions(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Dimensions)
}

/// Returns true when a function has parts that this pass expands.
pub(super) fn is_expanded(module: &Module, function: &Function) -> bool {
    is_generic(function)
        || calls_for_a_list(module, &function.body)
        || function.params.iter().any(|param| param.is_static || param.name.element.is_some())
        || function.results.iter().any(|result| result.name.element.is_some())
        || body_mentions_list(&function.body, &mut |_| true)
}

/// Returns true when a call in the statements takes or returns a list.
fn calls_for_a_list(module: &Module, body: &[Stmt]) -> bool {
    body.iter().any(|statement| match &statement.kind {
        StmtKind::Call { callee, .. } => module
            .function(&callee.text)
            .is_some_and(|function| signature_names(function).any(|name| name.element.is_some())),
        StmtKind::For { body, .. } => calls_for_a_list(module, body),
        _ => false,
    })
}

/// The function without loops over stages, lists, static parameters and type parameters.
pub(super) fn expand(
    module: &Module,
    function: &Function,
    instance: &Instance,
) -> (Function, Vec<Diagnostic>) {
    let mut expansion = Expansion::new(module, function, instance);
    let params = function
        .params
        .iter()
        .filter(|param| !param.is_static)
        .flat_map(|param| expansion.parameter(param))
        .collect();
    let results = function.results.iter().flat_map(|result| expansion.result(result)).collect();
    let mut requires = function.requires.clone();
    requires.iter_mut().for_each(|requirement| expansion.requirement(requirement));
    let mut definitions = function.definitions.clone();
    definitions.iter_mut().for_each(|definition| expansion.expression(&mut definition.value));
    let body = expansion.body(&function.body);
    if expansion.diagnostics.is_empty() {
        expansion.refuse_shared_names(function);
    }
    let is_incomplete = function.is_incomplete;
    let expanded = Function {
        name: function.name.clone(),
        type_params: Vec::new(),
        params,
        results,
        requires,
        definitions,
        body,
        is_incomplete,
    };
    (expanded, expansion.diagnostics)
}

struct Expansion<'a> {
    module: &'a Module,
    /// The values of static parameters, and of the variables of the loops around a statement.
    statics: Statics,
    types: &'a HashMap<String, DType>,
    /// The variables that `..` stands for.
    leading: Vec<String>,
    /// For each loop around a statement, the number of its iteration, and the new names of the
    /// tensors that belong to the iteration.
    iterations: Vec<(i64, HashMap<String, String>)>,
    /// The results that are lists, with their numbers of tensors.
    result_lists: Vec<(Name, i64)>,
    /// The numbers of the tensors of each list that parameters and earlier statements define.
    elements: HashMap<String, BTreeSet<i64>>,
    /// The number of a tensor in its list and the length of the list, inside the type of the
    /// tensor.
    place_in_list: Option<(i64, i64)>,
    /// The tensors that are not local to an iteration.
    known: HashSet<String>,
    /// For each name that is local to iterations, with the iterations around its loop, the number
    /// of loops that have defined it so far.
    loops: HashMap<String, usize>,
    statements: usize,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Expansion<'a> {
    fn new(module: &'a Module, function: &Function, instance: &'a Instance) -> Expansion<'a> {
        Expansion {
            module,
            statics: instance.statics.clone(),
            types: &instance.types,
            leading: leading_names(function, instance.leading),
            iterations: Vec::new(),
            result_lists: Vec::new(),
            elements: HashMap::new(),
            place_in_list: None,
            known: signature_names(function).map(|name| name.text.clone()).collect(),
            loops: HashMap::new(),
            statements: 0,
            diagnostics: Vec::new(),
        }
    }
}

impl Expansion<'_> {
    /// Refuses a name that is a list and a tensor, or a static parameter and something else.
    fn refuse_shared_names(&mut self, function: &Function) {
        let names = Names::of(function);
        for name in signature_names(function).chain(names.targets.iter().copied()) {
            if name.element.is_none() && names.lists.contains(name.text.as_str()) {
                let message = format!("`{}` is a list and a tensor", name.text);
                let diagnostic = Diagnostic::error(Code::NameCollision, name.span, message);
                let help = format!(
                    "the tensors of a list are `{0}[0]`, `{0}[1]` and so on; choose another name for the tensor",
                    name.text
                );
                self.diagnostics.push(diagnostic.help(help));
            }
            self.refuse_static(name);
        }
    }

    fn requirement(&mut self, requirement: &mut Requirement) {
        let mentioned = self.statics.iter().filter(|(name, _)| mentions(&requirement.condition, name));
        requirement.statics = mentioned.map(|(name, value)| (name.clone(), *value)).collect();
        requirement.statics.sort_unstable();
        self.expression(&mut requirement.condition);
    }

    fn body(&mut self, body: &[Stmt]) -> Vec<Stmt> {
        let mut expanded = Vec::new();
        for statement in body {
            self.statement(statement, &mut expanded);
        }
        expanded
    }

    fn statement(&mut self, statement: &Stmt, expanded: &mut Vec<Stmt>) {
        if self.statements >= MOST_STATEMENTS {
            return;
        }
        let kind = match &statement.kind {
            StmtKind::For { var, from, to, body } if is_over_stages(var, body) => {
                return self.stages(var, (from, to), body, expanded);
            }
            StmtKind::For { var, from, to, body } => {
                self.refuse_static(var);
                let (mut from, mut to) = (from.clone(), to.clone());
                self.expression(&mut from);
                self.expression(&mut to);
                StmtKind::For { var: var.clone(), from, to, body: self.body(body) }
            }
            StmtKind::Comprehension(inner) => StmtKind::Comprehension(self.comprehension(inner)),
            StmtKind::Declare(declaration) => {
                let mut declaration = declaration.clone();
                self.target(&mut declaration.name);
                declaration.ty.iter_mut().for_each(|ty| self.ty(ty));
                StmtKind::Declare(declaration)
            }
            StmtKind::Call { targets, callee, arguments, value } => {
                let mut arguments = arguments.clone();
                self.arguments(&mut arguments);
                let targets = self.targets(targets, callee, &arguments);
                StmtKind::Call { targets, callee: callee.clone(), arguments, value: *value }
            }
        };
        self.count(statement.span);
        if self.iterations.is_empty() {
            self.known.extend(targets_of(std::slice::from_ref(statement)).into_iter().map(str::to_owned));
        }
        expanded.push(Stmt { kind, span: statement.span });
    }

    fn count(&mut self, span: Span) {
        self.statements += 1;
        if self.statements == MOST_STATEMENTS {
            let message = format!(
                "more than {MOST_STATEMENTS} statements and iterations after loops over stages are expanded"
            );
            self.diagnostics.push(Diagnostic::error(Code::TooComplex, span, message));
        }
    }

    /// Expands a loop over stages. Tensors that the loop defines for the first time belong to an
    /// iteration, and have its number in their names.
    fn stages(&mut self, var: &Name, (from, to): (&Expr, &Expr), body: &[Stmt], expanded: &mut Vec<Stmt>) {
        let what = "the bounds of a loop over stages";
        let (Some(from), Some(to)) = (self.number(from, what), self.number(to, what)) else { return };
        if self.statics.contains_key(&var.text) {
            let message = format!("a loop variable cannot be called `{}`, which is taken", var.text);
            self.diagnostics
                .push(Diagnostic::error(Code::NameCollision, var.span, message).help("choose another name"));
            return;
        }
        let is_local = |name: &&str| !self.known.contains(*name) && self.new_name(name).is_none();
        let locals: Vec<String> = targets_of(body).into_iter().filter(is_local).map(str::to_owned).collect();
        let outer: String = self.iterations.iter().map(|(value, _)| format!("[{value}]")).collect();
        let marks = self.marks(&locals, &outer);
        for value in from..to {
            if self.statements >= MOST_STATEMENTS {
                break;
            }
            self.count(var.span);
            self.statics.insert(var.text.clone(), value);
            let renamed = locals
                .iter()
                .zip(&marks)
                .map(|(name, mark)| (name.clone(), format!("{name}{outer}[{value}]{mark}")));
            self.iterations.push((value, renamed.collect()));
            let statements = self.body(body);
            self.iterations.pop();
            expanded.extend(statements);
        }
        self.statics.remove(&var.text);
    }

    /// The marks of the tensors that belong to one iteration. They tell them from lists, and from
    /// those of earlier loops with the same names: `'2` for the second loop that defines a name.
    fn marks(&mut self, locals: &[String], outer: &str) -> Vec<String> {
        let mark = |name: &String| {
            let loops = self.loops.entry(format!("{name}{outer}")).or_default();
            *loops += 1;
            format!("'{loops}")
        };
        locals.iter().map(mark).collect()
    }

    fn new_name(&self, name: &str) -> Option<&String> {
        self.iterations.iter().rev().find_map(|(_, renamed)| renamed.get(name))
    }

    fn comprehension(&mut self, inner: &Comprehension) -> Comprehension {
        let mut inner = inner.clone();
        self.target(&mut inner.target);
        self.expressions(&mut inner.indices);
        self.expression(&mut inner.value);
        for clause in &mut inner.clauses {
            match clause {
                Clause::In { name, from, to } => {
                    self.refuse_static(name);
                    self.expression(from);
                    self.expression(to);
                }
                Clause::Let { name, value } => {
                    self.refuse_static(name);
                    self.expression(value);
                }
                Clause::Exists(expr) => self.expression(expr),
            }
        }
        inner
    }

    fn refuse_static(&mut self, name: &Name) {
        if self.statics.contains_key(&name.text) {
            let message =
                format!("`{}` is a static parameter or the variable of a loop over stages", name.text);
            let diagnostic = Diagnostic::error(Code::NameCollision, name.span, message);
            self.diagnostics.push(diagnostic.help("choose another name"));
        }
    }

    /// Replaces the number of an element by its value, and the name of an iteration's tensor or
    /// list by its new name.
    fn name(&mut self, name: &mut Name) {
        if let Some(renamed) = self.new_name(&name.text) {
            name.text = renamed.clone();
        }
        if let Some(number) = name.element.take() {
            match static_value(&number, &self.statics) {
                Some(number) => name.text = format!("{}[{number}]", name.text),
                None => self.report_open_element(name, &number),
            }
        }
    }

    /// Reports square brackets around something else than a known number, most often those of
    /// another language.
    fn report_open_element(&mut self, name: &Name, number: &Expr) {
        let message =
            "square brackets name a tensor of a list, by a number that is known when the program is checked";
        let text = &name.text;
        self.diagnostics.push(
            Diagnostic::error(Code::InvalidRange, number.span, message)
                .help(format!("subscripts are written in parentheses: `{text}(i)`"))
                .help("the number may contain numbers, `static int` parameters and the variables of loops over stages"),
        );
    }

    /// Replaces static names by their values, and elements of lists by their names.
    fn expression(&mut self, expr: &mut Expr) {
        match &mut expr.kind {
            ExprKind::Name(text) => {
                if let Some(value) = self.statics.get(text) {
                    expr.kind = number(*value, expr.span);
                } else if let Some(renamed) = self.new_name(text) {
                    *text = renamed.clone();
                }
            }
            ExprKind::Element(name) => {
                match self.place_in_list {
                    Some(place) => self.size_in_list(name, place),
                    None => self.name(name),
                }
                expr.kind = ExprKind::Name(std::mem::take(&mut name.text));
            }
            // Only this pass makes lists, after it has expanded their elements.
            ExprKind::List(..) => {}
            ExprKind::Extent(name, _) => self.name(name),
            ExprKind::Apply(name, arguments) => {
                self.name(name);
                self.expressions(arguments);
                if let (Some(dtype), [_]) = (self.types.get(&name.text), arguments.as_slice()) {
                    expr.kind = ExprKind::Cast(*dtype, Box::new(arguments.remove(0)));
                }
            }
            ExprKind::CastLike(name, operand) => {
                self.name(name);
                self.expression(operand);
            }
            ExprKind::Cast(_, operand) | ExprKind::Unary(_, operand) => self.expression(operand),
            ExprKind::Binary(_, operands) => {
                operands.iter_mut().for_each(|operand| self.expression(operand));
            }
            ExprKind::Ternary(operands) => match static_value(&operands[0], &self.statics) {
                // The other branch may name an element that does not exist.
                Some(chosen) => {
                    let mut chosen = operands[if chosen != 0 { 1 } else { 2 }].clone();
                    self.expression(&mut chosen);
                    *expr = chosen;
                }
                None => operands.iter_mut().for_each(|operand| self.expression(operand)),
            },
            ExprKind::Dimensions => {
                let message = "`..` stands for whole subscripts or extents";
                let help = "write it as the first of them: `x(.., i, j)`";
                self.diagnostics.push(Diagnostic::error(Code::Syntax, expr.span, message).help(help));
                expr.kind = ExprKind::Int(0, Suffix::None);
            }
            ExprKind::Int(..) | ExprKind::Float(..) | ExprKind::Bool(_) | ExprKind::Neutral(_) => {}
        }
    }

    /// Expands subscripts or arguments, with a variable for each dimension that `..` stands for.
    fn expressions(&mut self, all: &mut Vec<Expr>) {
        self.leading_dimensions(all, |name| name.to_owned());
        all.iter_mut().for_each(|expr| self.expression(expr));
    }

    fn ty(&mut self, ty: &mut Type) {
        if let Some(parameter) = ty.parameter.take()
            && let Some(dtype) = self.types.get(&parameter)
        {
            ty.dtype = *dtype;
        }
        // No other size has a name with a point.
        self.leading_dimensions(&mut ty.dims, |name| format!("{name}.size"));
        ty.dims.iter_mut().for_each(|dim| self.expression(dim));
    }

    fn leading_dimensions(&self, all: &mut Vec<Expr>, name: fn(&str) -> String) {
        let Some(at) = all.iter().position(is_dimensions) else { return };
        let span = all[at].span;
        let own = self.leading.iter().map(|own| Expr::new(ExprKind::Name(name(own)), span));
        all.splice(at..=at, own.collect::<Vec<_>>());
    }

    /// A value that must be known when the program is checked.
    fn number(&mut self, expr: &Expr, what: &str) -> Option<i64> {
        let value = static_value(expr, &self.statics);
        if value.is_none() {
            let message = format!("{what} must be known when the program is checked");
            let help =
                "it may contain numbers, `static int` parameters and the variables of loops over stages";
            self.diagnostics.push(Diagnostic::error(Code::InvalidRange, expr.span, message).help(help));
        }
        value
    }
}

/// A number as an expression.
fn number(value: i64, span: Span) -> ExprKind {
    let magnitude = ExprKind::Int(i128::from(value).abs(), Suffix::None);
    match value < 0 {
        true => ExprKind::Unary(UnaryOp::Neg, Box::new(Expr::new(magnitude, span))),
        false => magnitude,
    }
}

/// Names for the variables of leading dimensions that the function does not use itself.
pub(super) fn leading_names(function: &Function, count: usize) -> Vec<String> {
    let names = Names::of(function).all;
    let mut letter = "d".to_owned();
    while (0..count).any(|at| names.contains(format!("{letter}{at}").as_str())) {
        letter.push('d');
    }
    (0..count).map(|at| format!("{letter}{at}")).collect()
}
