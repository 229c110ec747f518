//! Checks a parsed function: reports [`Diagnostic`]s, and returns a [`Program`] unless one of them
//! is an error. The passes, in order:
//!
//! | pass | file | finds |
//! |---|---|---|
//! | loops over stages, lists of tensors, generic functions | `expand` | numbers that are not known |
//! | the number of statements after calls are inlined | `inlined_size` | functions that are too large |
//! | names, calls inlined | `resolve` | undefined names, collisions, ranks, recursion |
//! | types | `types`, `lower` | values that do not fit |
//! | bounds that depend on variables | `triangles` | elements that are left undefined |
//! | integer scalars used only as values | `scalars` | |
//! | ranges and shapes | `ranges`, `shapes`, `view_ranges`, `inequality`, `assumed_shapes`, `ambiguous_ranges` | ambiguous ranges |
//! | named integers that scalars determine | `derived` | values that are no sizes |
//! | integers that wrap before they are widened | `narrow` | arithmetic in a type that is too narrow |
//! | clamps of views that change nothing | `view_subscripts` | |
//! | temporaries that begin below 0 | `origins` | |
//! | preconditions of called functions | `preconditions` | preconditions that cannot hold |
//! | an unchecked form of the program | `unchecked` | |
//! | the meaning of the program | `tilewright_ir::check` | accesses out of bounds, repeated writes, undefined elements, … |
//! | words and positions for these findings | `messages` | |
//! | sizes that must be equal | `equal_sizes` | sizes that differ |
//! | temporaries | `unused` | temporaries that nothing reads |
//!
//! Each pass works on the `model` and reports all the mistakes that it finds. A report about a
//! tensor marks the tensor as poisoned: later passes do not report consequences of the same
//! mistake. The rules for the meaning of a program are the same for every front end:
//! `tilewright_ir::check` applies them to the unchecked program, and `messages` adds the words.

mod ambiguous_ranges;
mod assumed_shapes;
mod bits;
mod derived;
mod equal_sizes;
mod expand;
mod inequality;
mod inlined_size;
mod lower;
mod messages;
mod model;
mod narrow;
mod number;
mod origins;
mod preconditions;
mod ranges;
mod reason;
mod resolve;
mod scalars;
mod shapes;
mod triangles;
mod types;
mod unchecked;
mod unused;
mod value;
mod view_ranges;
mod view_subscripts;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tilewright_ir::check::Report;
use tilewright_ir::unchecked::assemble;
use tilewright_ir::{DType, IndexExpr, Number, Program, verify_form};

use crate::ast::{ExprKind, Function, Module, Name, Param, Stmt, StmtKind};
use crate::diagnostic::{Code, Diagnostic};
use crate::parser::Parsed;
use crate::span::Span;
use expand::Instance;
use model::{CALLED_FROM_HERE, Model};
pub use reason::{Reason, ReasonKind};

/// Values of sizes and integer scalars, by name, and of the scalars that sizes are computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bindings {
    values: BTreeMap<String, i64>,
    scalars: BTreeMap<String, Number>,
}

impl Bindings {
    /// Sets the value of a size or integer scalar.
    pub fn set(&mut self, name: impl Into<String>, value: i64) {
        self.values.insert(name.into(), value);
    }

    /// The value of a size or integer scalar, where it is given.
    pub fn get(&self, name: &str) -> Option<i64> {
        self.values.get(name).copied()
    }

    /// Sets the value of a scalar. Only named integers that are computed from it depend on it: a
    /// scalar in a subscript or a range is set like a size.
    pub fn set_scalar(&mut self, name: impl Into<String>, value: Number) {
        self.scalars.insert(name.into(), value);
    }

    /// The value of a scalar, where it is given.
    pub fn scalar(&self, name: &str) -> Option<Number> {
        self.scalars.get(name).copied().or_else(|| self.get(name).map(|value| Number::Int(value.into())))
    }

    /// The names and values of sizes and integer scalars, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, i64)> {
        self.values.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<S: Into<String>> FromIterator<(S, i64)> for Bindings {
    fn from_iter<I: IntoIterator<Item = (S, i64)>>(values: I) -> Bindings {
        let values = values.into_iter().map(|(name, value)| (name.into(), value)).collect();
        Bindings { values, scalars: BTreeMap::new() }
    }
}

/// The result of checking a function.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The program, unless there is an error.
    pub program: Option<Program>,
    /// Errors and warnings, in the order of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// For each variable of the program, what determined its range.
    pub reasons: Vec<Vec<Reason>>,
    /// Expressions of the sizes that must not be negative. The program is refused at sizes where
    /// one is negative.
    pub requirements: Vec<IndexExpr>,
}

/// Checks one function. Given sizes are substituted, and the proofs hold for their values. For all
/// other sizes the proofs hold for every value.
pub fn check(module: &Module, name: &str, bindings: &Bindings) -> Checked {
    match module.function(name) {
        Some(function) => check_function(module, function, bindings),
        None => {
            let message = format!("there is no function `{name}` in this file");
            refused(vec![Diagnostic::error(Code::UndefinedName, Span::default(), message)])
        }
    }
}

/// Returns all diagnostics of a file, in the order of its text: syntax errors, and mistakes in its
/// functions. A diagnostic that several functions produce is reported once.
pub fn diagnose(parsed: &Parsed, bindings: &Bindings) -> Vec<Diagnostic> {
    let module = &parsed.ast;
    let mut diagnostics = parsed.diagnostics.clone();
    diagnostics.extend(name_collisions(module));
    let mut already_reported: HashSet<(Code, Span)> = HashSet::new();
    let on_numbers =
        module.scalar_functions.iter().map(|function| resolve::diagnose_scalar_function(module, function));
    // A function with an open static parameter is checked where it is called.
    let is_closed = |function: &&Function| open_static(function, bindings).is_none();
    let on_tensors_of = |function: &Function| match expand::is_generic(function) {
        true => diagnose_generic(module, function, bindings),
        false => check_function(module, function, bindings).diagnostics,
    };
    let on_tensors = module.functions.iter().filter(is_closed).map(on_tensors_of);
    let on_types =
        module.functions.iter().map(|function| expand::undetermined_type(function).into_iter().collect());
    let found = on_types.chain(on_numbers).chain(on_tensors).flatten();
    diagnostics
        .extend(found.filter(|diagnostic| already_reported.insert((diagnostic.code, diagnostic.primary.0))));
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.0);
    diagnostics
}

/// Reports functions that share a name, or have the name of a builtin.
pub fn name_collisions(module: &Module) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let mut seen: HashMap<&str, Span> = HashMap::new();
    let mut names: Vec<&Name> = module.functions.iter().map(|function| &function.name).collect();
    names.extend(module.scalar_functions.iter().map(|function| &function.name));
    names.sort_by_key(|name| name.span);
    for name in names {
        if let Some(first) = seen.insert(&name.text, name.span) {
            diagnostics.push(
                Diagnostic::error(
                    Code::NameCollision,
                    name.span,
                    format!("there are two functions called `{}`", name.text),
                )
                .secondary_label(first, "the first is here"),
            );
        } else if resolve::builtin_named(&name.text).is_some() {
            let message = format!("`{}` is a builtin function", name.text);
            diagnostics
                .push(Diagnostic::error(Code::NameCollision, name.span, message).help("choose another name"));
        }
    }
    diagnostics
}

/// Returns true when a function can be run by itself. The types of a generic function, and a static
/// parameter without a default, are known only where it is called.
pub fn runs_alone(function: &Function) -> bool {
    !expand::is_generic(function) && open_static(function, &Bindings::default()).is_none()
}

/// The function of a file that no other function calls, if there is exactly one that can be run by
/// itself.
pub fn uncalled_function(module: &Module) -> Option<&Function> {
    let mut called = HashSet::new();
    module.functions.iter().for_each(|function| collect_callees(&function.body, &mut called));
    let mut uncalled =
        module.functions.iter().filter(|function| !called.contains(function.name.text.as_str()));
    let first = uncalled.next().filter(|function| runs_alone(function));
    first.filter(|_| uncalled.next().is_none())
}

fn collect_callees<'f>(body: &'f [Stmt], called: &mut HashSet<&'f str>) {
    for statement in body {
        match &statement.kind {
            StmtKind::Call { callee, .. } => {
                called.insert(callee.text.as_str());
            }
            StmtKind::For { body, .. } => collect_callees(body, called),
            _ => {}
        }
    }
}

/// The function with a parameter for each tensor of its lists, as its caller supplies them: `g_0`,
/// `g_1` and so on. `bindings` has the values of static parameters; others have their defaults.
pub fn signature<'f>(function: &'f Function, bindings: &Bindings) -> Cow<'f, Function> {
    expand::signature(function, static_values(function, bindings))
}

/// The first static parameter without a value, if there is one.
fn open_static<'f>(function: &'f Function, bindings: &Bindings) -> Option<&'f Name> {
    let is_open = |param: &&Param| {
        param.is_static && param.default.is_none() && bindings.get(&param.name.text).is_none()
    };
    function.params.iter().find(is_open).map(|param| &param.name)
}

/// Checks a generic function by itself, at some types and numbers of leading dimensions. Returns
/// the mistakes if every one of these instances has some.
fn diagnose_generic(module: &Module, function: &Function, bindings: &Bindings) -> Vec<Diagnostic> {
    let mut first = None;
    for dtype in [DType::Float32, DType::Int32, DType::UInt8] {
        let types = function.type_params.iter().map(|name| (name.text.clone(), dtype)).collect();
        let statics = static_values(function, bindings);
        let instance = Instance { statics, types, leading: 1 };
        let diagnostics = check_instance(module, function, &instance, bindings).diagnostics;
        if !diagnostics.iter().any(Diagnostic::is_error) {
            return Vec::new();
        }
        first.get_or_insert(diagnostics);
    }
    first.unwrap_or_default()
}

/// The values of the static parameters: the given ones, else the defaults.
fn static_values(function: &Function, bindings: &Bindings) -> expand::Statics {
    let mut statics = expand::call_statics(function, &[], &expand::Statics::new());
    for param in function.params.iter().filter(|param| param.is_static) {
        statics.extend(bindings.get(&param.name.text).map(|value| (param.name.text.clone(), value)));
    }
    statics
}

fn refused(diagnostics: Vec<Diagnostic>) -> Checked {
    Checked { program: None, diagnostics, reasons: Vec::new(), requirements: Vec::new() }
}

/// Checks a function at the values of its static parameters: the given ones, else the defaults.
fn check_function(module: &Module, function: &Function, bindings: &Bindings) -> Checked {
    if !expand::is_expanded(module, function) {
        return check_expanded(module, function, bindings);
    }
    if let Some(name) = open_static(function, bindings) {
        let message = format!("the static parameter `{}` has no value", name.text);
        let help = format!(
            "give it one like a size, as in `--sizes {}=8`, or a default: `static int {} = 8`",
            name.text, name.text
        );
        return refused(vec![Diagnostic::error(Code::InvalidSize, name.span, message).help(help)]);
    }
    let statics = static_values(function, bindings);
    let is_open = |param: &&Param| param.is_static && !statics.contains_key(&param.name.text);
    if let Some(default) = function.params.iter().find(is_open).and_then(|param| param.default.as_ref()) {
        let message = "the default of a static parameter must be known when the program is checked";
        let help = "it may contain numbers and the static parameters before it";
        return refused(vec![Diagnostic::error(Code::InvalidRange, default.span, message).help(help)]);
    }
    if expand::is_generic(function) {
        let name = &function.name;
        let message = format!("`{}` is generic, and only a call tells its types", name.text);
        let help = "call it from a function whose parameters have types";
        return refused(vec![Diagnostic::error(Code::TypeMismatch, name.span, message).help(help)]);
    }
    let negative: Vec<String> = statics
        .iter()
        .filter(|(_, value)| **value < 0)
        .map(|(name, value)| format!("`{name}` is {value}"))
        .collect();
    let instance = Instance { statics, ..Instance::default() };
    let mut checked = check_instance(module, function, &instance, bindings);
    // A number of stages below 0 is seldom meant, and other messages are consequences of it.
    for diagnostic in checked.diagnostics.iter_mut().filter(|found| found.is_error()) {
        diagnostic.notes.extend(negative.iter().map(|text| format!("the static parameter {text} here")));
    }
    checked
}

fn check_instance(module: &Module, function: &Function, instance: &Instance, bindings: &Bindings) -> Checked {
    let (expanded, mistakes) = expand::expand(module, function, instance);
    if mistakes.is_empty() {
        let mut checked = check_expanded(module, &expanded, bindings);
        let leading = expand::leading_names(function, instance.leading).join(", ");
        checked.diagnostics.iter_mut().for_each(|found| found.map_texts(|text| with_dots(text, &leading)));
        // Each iteration of a loop over stages may have found the same mistake.
        let mut already_reported = HashSet::new();
        checked
            .diagnostics
            .retain(|diagnostic| already_reported.insert((diagnostic.code, diagnostic.primary.0)));
        return checked;
    }
    refused(mistakes)
}

fn check_expanded(module: &Module, function: &Function, bindings: &Bindings) -> Checked {
    if let Some(diagnostic) = inlined_size::too_many_statements(module, function) {
        return refused(vec![diagnostic]);
    }
    let mut model = resolve::resolve(module, function, bindings);
    report_invalid_sizes(&mut model, function);
    let stops_checking = |diagnostic: &Diagnostic| {
        matches!(diagnostic.code, Code::InvalidSize | Code::TooComplex | Code::Precondition)
    };
    if model.diagnostics.iter().any(stops_checking) {
        // No further check is meaningful for invalid sizes, or for a program that was resolved only
        // in part.
        let diagnostics = std::mem::take(&mut model.diagnostics);
        return refused(diagnostics);
    }
    types::infer(&mut model);
    lower::lower_statements(&mut model);
    triangles::refuse_partial_assignments(&mut model);
    report_invalid_sizes(&mut model, function);
    scalars::make_arguments(&mut model);
    ranges::infer(&mut model);
    if !derived::settle(&mut model, bindings) {
        return refused(std::mem::take(&mut model.diagnostics));
    }
    narrow::warn_of_narrow_arithmetic(&mut model, &module.source);
    preconditions::settle_calls(&mut model);
    view_subscripts::simplify(&mut model);
    origins::move_to_zero(&mut model);
    let mut unchecked = unchecked::make_unchecked_program(&mut model);
    let general = unchecked.specialize();
    let Report { findings, definedness, requirements } = tilewright_ir::check::check(&unchecked);
    messages::report(&mut model, &unchecked, &findings);
    equal_sizes::check_calls(&mut model, &unchecked, &requirements);
    equal_sizes::check_variables(&mut model, &unchecked, &requirements);
    unused::warn_of_unused(&mut model, &unchecked);
    let mut diagnostics = std::mem::take(&mut model.diagnostics);
    add_call_sites(&model, &mut diagnostics);
    for leading in &model.leading {
        diagnostics.iter_mut().for_each(|found| found.map_texts(|text| with_dots(text, leading)));
    }
    if model.is_incomplete {
        // The part that could not be parsed may define these names and elements.
        let depends =
            |code| matches!(code, Code::UndefinedName | Code::UndefinedElement | Code::ReadBeforeWrite);
        diagnostics.retain(|diagnostic| !depends(diagnostic.code));
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.primary.0);
    // A function that is called several times may have the same mistake in each call.
    let mut already_reported = HashSet::new();
    diagnostics
        .retain(|found| already_reported.insert((found.code, found.primary.clone(), found.message.clone())));
    let is_refused = model.is_incomplete || diagnostics.iter().any(Diagnostic::is_error);
    let reasons = model.vars.iter().map(|var| var.reasons.clone()).collect();
    let program = if is_refused { None } else { assemble(unchecked, &definedness) };
    let program = program.map(|program| Program {
        general: general.and_then(|unchecked| assemble(unchecked, &definedness)).map(Arc::new),
        ..program
    });
    if !is_refused && program.is_none() {
        debug_assert!(false, "`{}` is refused without a report", function.name.text);
        let name = &function.name.text;
        let message = format!("internal error: `{name}` has no program, and no error was reported");
        diagnostics.push(Diagnostic::error(Code::UndefinedName, function.name.span, message));
    }
    if let Some(program) = &program {
        debug_assert_eq!(verify_form(program), Ok(()));
    }
    Checked { program, diagnostics, reasons, requirements }
}

/// A text with `..` for the subscripts that stand for it: `x(.., i)` for `x(d0, d1, i)`.
fn with_dots(text: &str, leading: &str) -> String {
    match leading.is_empty() {
        true => text.to_owned(),
        false => text.replace(&format!("({leading}, "), "(.., ").replace(&format!("({leading})"), "(..)"),
    }
}

/// Reports sizes that are not positive. Scalars that multiply or divide an index must be positive
/// too, and named integers must not be negative.
fn report_invalid_sizes(model: &mut Model, function: &Function) {
    let mut found = Vec::new();
    for symbol in &model.symbols {
        let (Some(value), Some(least)) = (symbol.value, symbol.least) else { continue };
        if value >= least {
            continue;
        }
        let what = symbol.kind.noun();
        let message = format!("the {what} `{}` must be at least {least}, and is {value}", symbol.name);
        found.push(Diagnostic::error(Code::InvalidSize, position_of(function, &symbol.name), message));
    }
    if !found.is_empty() {
        // Messages about the extents that contain such a size would repeat the same mistake.
        model.diagnostics.retain(|diagnostic| diagnostic.code != Code::InvalidSize);
    }
    found.into_iter().for_each(|diagnostic| model.report(diagnostic));
}

/// The position of a size or scalar in the signature, or of a named integer.
fn position_of(function: &Function, name: &str) -> Span {
    let types = function
        .params
        .iter()
        .map(|param| &param.ty)
        .chain(function.results.iter().filter_map(|result| result.ty.as_ref()));
    let mut dims = types.flat_map(|ty| &ty.dims);
    let scalar = function.params.iter().find(|param| param.ty.dims.is_empty() && param.name.text == name);
    let is_size = |text: &str| text == name || expand::program_name(text) == name;
    let dim = dims.find(|dim| matches!(&dim.kind, ExprKind::Name(text) if is_size(text)));
    let named = function.definitions.iter().find(|definition| definition.name.text == name);
    let declared = scalar.map(|param| &param.name).or(named.map(|definition| &definition.name));
    declared.map(|name| name.span).or(dim.map(|dim| dim.span)).unwrap_or(function.name.span)
}

/// Adds the position of the call to each message about an inlined statement that does not have it.
/// Where a function is called several times, the first call counts.
fn add_call_sites(model: &Model, diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics {
        if diagnostic.secondary.iter().any(|(_, label)| label == CALLED_FROM_HERE) {
            continue;
        }
        let at = diagnostic.primary.0;
        let statement = model.statements.iter().find(|statement| statement.span.contains(at));
        if let Some(call) = statement.and_then(|statement| statement.call)
            && call != at
        {
            diagnostic.secondary.push((call, CALLED_FROM_HERE.to_owned()));
        }
    }
}
