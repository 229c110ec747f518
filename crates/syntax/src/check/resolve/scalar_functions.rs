//! Replaces calls of functions on numbers by their values: those of the file (`fn`), and the
//! standard ones.
//!
//! A call is replaced by the value of the function with the arguments in place of the parameters.
//! So types are inferred as if the user had written the whole expression, and one function serves
//! all types. The nodes of the result have the position of the call: the text of the standard
//! functions is not part of the user's file.

use std::sync::LazyLock;

use tilewright_ir::{BinaryOp, DType};

use super::{Bindings, MOST_DEPTH, Resolver, Scope, StatementScope, UnknownName};
use crate::ast::{Module, Name, ScalarFunction, type_named};
use crate::check::value::{Value, ValueKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::lexer::Suffix;
use crate::parser::parse;
use crate::span::Span;

/// The maximal number of nodes that the value of a call may have: an argument is copied to each use
/// of its parameter.
const MOST_EXPANDED_NODES: usize = 10_000;

/// The maximal number of calls that are replaced in one statement.
const MOST_EXPANSIONS: usize = 10_000;

/// The maximal number of calls that are replaced in a whole function.
const MOST_EXPANSIONS_IN_ALL: usize = 1_000_000;

/// The maximal number of nodes that all replaced calls of a function may have together.
const MOST_EXPANDED_NODES_IN_ALL: usize = 10_000_000;

/// The maximal number of calls that are replaced to check a function itself.
const MOST_EXPANSIONS_TO_DIAGNOSE: usize = 100;

/// The maximal number of values of `mux`, each of which makes the expression deeper.
const MOST_CHOICES: usize = 256;

/// The standard functions that the language itself can express.
static STANDARD: LazyLock<Module> = LazyLock::new(|| parse(include_str!("standard.tw")).ast);

/// A standard function, which a function of the file with the same name replaces.
#[derive(Clone, Copy)]
pub(super) enum Standard {
    Function(&'static ScalarFunction),
    /// `mux(at, a, b, c)` chooses one of the values by its number; the last is the default.
    Mux,
    /// `uint8_sat(x)` is `x` as a number of the type; beyond its ends, the nearest end.
    Saturate(DType),
    /// `widening_mul(a, b)` is the product in a type of twice the width.
    WideningProduct,
    /// `random_bits(seed, x, y)` is a random uint32 for these coordinates.
    RandomBits,
    /// `random(seed, x, y)` is a random float32 from 0 to 1 for these coordinates.
    Random,
}

/// The standard function with this name.
pub(super) fn standard_named(name: &str) -> Option<Standard> {
    match name {
        "mux" => return Some(Standard::Mux),
        "widening_mul" => return Some(Standard::WideningProduct),
        "random_bits" => return Some(Standard::RandomBits),
        "random" => return Some(Standard::Random),
        _ => {}
    }
    let saturated = name
        .strip_suffix("_sat")
        .and_then(type_named)
        .filter(|dtype| dtype.is_integer() && *dtype != DType::Bool);
    match saturated {
        Some(dtype) => Some(Standard::Saturate(dtype)),
        None => STANDARD.scalar_function(name).map(Standard::Function),
    }
}

/// The names of the standard functions, for suggestions.
pub(super) fn standard_names() -> impl Iterator<Item = &'static str> {
    let own = ["mux", "uint8_sat", "widening_mul", "random_bits", "random"];
    STANDARD.scalar_functions.iter().map(|function| function.name.text.as_str()).chain(own)
}

/// Reports the mistakes in a function on numbers itself, whether it is called or not.
pub(in crate::check) fn diagnose(module: &Module, function: &ScalarFunction) -> Vec<Diagnostic> {
    let bindings = Bindings::default();
    let mut resolver = Resolver::new(module, &bindings);
    let mut scope = Scope::named(&function.name.text);
    for param in &function.params {
        // A cast has a type, but no value that could fail to fit another type.
        let dtype = param.ty.as_ref().map_or(DType::Int32, |ty| ty.dtype);
        let one = Box::new(Value::new(ValueKind::Int(1, Suffix::None), param.name.span));
        let unknown = Value::new(ValueKind::Cast(dtype, one), param.name.span);
        scope.scalars.insert(param.name.text.clone(), unknown);
    }
    resolver.call_stack.push((function.name.text.clone(), function.name.span));
    // A file may have many functions that take long to replace. Only those that are called matter.
    resolver.expansions = MOST_EXPANSIONS - MOST_EXPANSIONS_TO_DIAGNOSE;
    resolver.scalar_value(function, &scope);
    resolver.model.diagnostics.retain(|found| found.code != Code::TooComplex);
    resolver.model.diagnostics
}

impl Resolver<'_> {
    /// The value of a call of a standard function.
    pub(super) fn standard(
        &mut self,
        standard: Standard,
        name: &Name,
        arguments: Vec<Option<Value>>,
        span: Span,
    ) -> Option<Value> {
        match standard {
            Standard::Function(function) => {
                let outside = std::mem::replace(&mut self.in_standard, true);
                let value = self.expand(function, name, arguments, span);
                self.in_standard = outside;
                value
            }
            Standard::Mux => self.mux(name, arguments, span),
            Standard::RandomBits => self.random_bits(name, arguments, span),
            Standard::Random => self.random(name, arguments, span),
            Standard::WideningProduct => {
                self.check_argument_count(name, (2, 2), arguments.len(), span)?;
                let arguments = arguments.into_iter().collect::<Option<Vec<Value>>>()?;
                let operands: [Value; 2] = arguments.try_into().ok()?;
                Some(self.placed(ValueKind::WideningProduct(Box::new(operands)), span))
            }
            Standard::Saturate(dtype) => {
                self.check_argument_count(name, (1, 1), arguments.len(), span)?;
                let value = arguments.into_iter().next().flatten()?;
                Some(self.placed(ValueKind::Saturate(dtype, Box::new(value)), span))
            }
        }
    }

    /// The value of a function with arguments in place of its parameters.
    pub(super) fn expand(
        &mut self,
        function: &ScalarFunction,
        name: &Name,
        arguments: Vec<Option<Value>>,
        span: Span,
    ) -> Option<Value> {
        self.expansions += 1;
        self.all_expansions += 1;
        let is_too_many = self.expansions > MOST_EXPANSIONS || self.all_expansions > MOST_EXPANSIONS_IN_ALL;
        if self.has_too_large_value || is_too_many {
            return self.too_large(name);
        }
        self.refuse_endless_call(name)?;
        self.check_argument_count(
            name,
            (function.params.len(), function.params.len()),
            arguments.len(),
            span,
        )?;
        let arguments = arguments.into_iter().collect::<Option<Vec<Value>>>()?;
        let mut scope = Scope::named(&function.name.text);
        for (param, argument) in function.params.iter().zip(arguments) {
            self.refuse_large_argument(&argument, argument.span)?;
            let value = match &param.ty {
                Some(ty) => self.converted_argument(ty.dtype, argument)?,
                None => argument,
            };
            scope.scalars.insert(param.name.text.clone(), value);
        }
        let outside = self.call_span;
        self.call_span = outside.or(Some(span));
        self.call_stack.push((function.name.text.clone(), span));
        let value = self.scalar_value(function, &scope);
        self.call_stack.pop();
        self.call_span = outside;
        self.small_value(value?, name)
    }

    fn scalar_value(&mut self, function: &ScalarFunction, scope: &Scope) -> Option<Value> {
        let mut names = StatementScope::new(scope, UnknownName::NoParameter);
        for (name, value) in &function.bindings {
            self.binding(name, value, None, &mut names)?;
        }
        self.expression(&function.value, &mut names)
    }

    /// The value of a call, unless it is too large.
    fn small_value(&mut self, value: Value, name: &Name) -> Option<Value> {
        let nodes = value.count();
        self.expanded_nodes += nodes;
        let is_small = value.height() <= MOST_DEPTH
            && nodes <= MOST_EXPANDED_NODES
            && self.expanded_nodes <= MOST_EXPANDED_NODES_IN_ALL;
        if is_small { Some(value) } else { self.too_large(name) }
    }

    /// Reports a value that is too large, once.
    fn too_large(&mut self, name: &Name) -> Option<Value> {
        if std::mem::replace(&mut self.has_too_large_value, true) {
            return None;
        }
        let message = format!("the value of `{}` is too large with these arguments in it", name.text);
        self.report(
            Diagnostic::error(Code::TooComplex, name.span, message)
                .help("store an argument in a tensor first"),
        );
        None
    }

    fn mux(&mut self, name: &Name, arguments: Vec<Option<Value>>, span: Span) -> Option<Value> {
        self.check_argument_count(name, (2, 1 + MOST_CHOICES), arguments.len(), span)?;
        let mut arguments = arguments.into_iter().collect::<Option<Vec<Value>>>()?.into_iter();
        let at = arguments.next()?;
        self.refuse_large_argument(&at, at.span)?;
        let mut values: Vec<Value> = arguments.collect();
        let mut chosen = values.pop()?;
        for (number, value) in values.into_iter().enumerate().rev() {
            let number = self.placed(ValueKind::Int(number as i128, Suffix::None), span);
            let is_it = ValueKind::Binary(BinaryOp::Equal, Box::new([at.clone(), number]));
            let operands = Box::new([self.placed(is_it, span), value, chosen]);
            chosen = self.placed(ValueKind::Select(operands), span);
        }
        self.small_value(chosen, name)
    }
}
