//! Checks that every access stays within its tensor, and that every range has a value.
//!
//! An access is proved in bounds for all sizes, or refuted by a counterexample. An access that
//! depends on data, or that can neither be proved nor refuted, is checked when the program runs.

use std::collections::BTreeSet;
use std::fmt;
use std::rc::Rc;

use tilewright_ir::prove::nonnegative;
use tilewright_ir::{Atom, Expr, ExprKind, IndexExpr, SymbolKind, TensorId, VarId, print};

use super::facts::{Facts, alternatives};
use super::model::{MixedSizes, Model, Read};
use super::reason::{Reason, ReasonKind};
use super::witness::{Search, Witness, search};
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// Reports ranges that are empty for all sizes.
pub(super) fn check_ranges(model: &mut Model) {
    let ordered: Vec<VarId> = model.loops.iter().map(|inner| inner.var).collect();
    for at in 0..model.vars.len() {
        let var = VarId(at as u32);
        let Some(range) = model.var(var).range.clone() else { continue };
        let missing = range.from.sub(&range.to);
        let empty = match missing.as_constant() {
            Some(value) => value >= 0,
            None => nonnegative(&missing, &[], model),
        };
        // An ordered loop may be empty: a recurrence over one element consists of its first element
        // only.
        if empty && !ordered.contains(&var) && !is_in_empty_loop(model, var) {
            let diagnostic = empty_range(model, var);
            model.report(diagnostic);
            discard_statement_of(model, var);
        }
    }
}

/// Returns true when the statement of a variable is in a loop that does not run.
fn is_in_empty_loop(model: &Model, var: VarId) -> bool {
    let statement = model.statements.iter().find(|statement| statement.vars.contains(&var));
    statement.is_some_and(|statement| {
        statement.loops.iter().any(|id| {
            let range = model.var(model.loops[id.0].var).range.as_ref();
            range.and_then(|range| range.extent().as_constant()).is_some_and(|extent| extent <= 0)
        })
    })
}

/// Discards a statement that never runs, so that later passes report nothing about it.
fn discard_statement_of(model: &mut Model, var: VarId) {
    if let Some(at) = model.statements.iter().position(|statement| statement.vars.contains(&var)) {
        model.statements[at].lowered = None;
        let target = model.statements[at].target;
        model.tensors[target.index()].poisoned = true;
    }
}

fn empty_range(model: &Model, var: VarId) -> Diagnostic {
    let info = model.var(var);
    let range = info.range.as_ref().expect("the caller looked at it");
    let text = print::range(range, model);
    let message = format!("the range of `{}` is empty: {text}", info.name);
    let first = info.because.first();
    let (span, label) =
        first.map_or((info.span, String::new()), |reason| (reason.span, reason.kind.to_string()));
    let mut diagnostic = Diagnostic::error(Code::EmptyRange, span, message).label(label);
    for Reason { span, kind } in info.because.iter().skip(1).take(2) {
        diagnostic = diagnostic.also(*span, kind.to_string());
    }
    diagnostic.note("a range runs up to, not including, its end")
}

/// Reports ranges, shapes, subscripts and index values whose numbers overflow 64 bits.
pub(super) fn check_overflow(model: &mut Model) {
    let mut found = Vec::new();
    let too_large =
        |span: Span, what: String| Diagnostic::error(Code::TooComplex, span, format!("{what} is too large"));
    for var in &model.vars {
        // A range from 0 with a very distant end needs more memory than exists, and other checks
        // report that.
        if var.range.iter().any(|range| is_too_large(&range.from) || range.to.is_overflow()) {
            found.push(too_large(var.span, format!("the range of `{}`", var.name)));
        }
    }
    for tensor in model.tensors.iter_mut() {
        if tensor.shape.iter().flatten().any(IndexExpr::is_overflow) {
            found.push(too_large(tensor.span, format!("`{}`", tensor.name)));
            tensor.poisoned = true;
        }
    }
    for statement in &model.statements {
        let Some(lowered) = &statement.lowered else { continue };
        let read = |read: &Read| {
            let name = &model.tensor(read.access.tensor).name;
            let large = read.access.indices.iter().any(is_too_large);
            large.then(|| (read.access.origin.into(), format!("a subscript of `{name}`")))
        };
        let first = lowered.reads.iter().find_map(read);
        let name = &model.tensor(statement.target).name;
        let whole = || (statement.target_span, format!("an index in the statement of `{name}`"));
        let any = lowered.indices.iter().any(is_too_large) || has_too_large(&lowered.value);
        if let Some((span, what)) = first.or_else(|| any.then(whole)) {
            found.push(too_large(span, what).note("numbers in an index are below 2^62"));
        }
    }
    found.into_iter().for_each(|diagnostic| model.report(diagnostic));
}

/// Returns true when the expression contains numbers so large that sums of a few of them overflow
/// 64 bits.
fn is_too_large(index: &IndexExpr) -> bool {
    let large = |number: i64| number.unsigned_abs() >= 1 << 62;
    let numbers = |index: &IndexExpr| {
        large(index.constant_part()) || index.terms().iter().any(|term| large(term.coefficient))
    };
    numbers(index)
        || index.any(&mut |atom| match atom {
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                numbers(&pair.0) || numbers(&pair.1)
            }
            Atom::Overflow => true,
            _ => false,
        })
}

fn has_too_large(value: &Expr) -> bool {
    match &value.kind {
        ExprKind::Index(index) => is_too_large(index),
        ExprKind::Load(access) => access.indices.iter().any(is_too_large),
        _ => value.operands().iter().any(has_too_large),
    }
}

/// Reports accesses that can leave their tensor.
pub(super) fn check_accesses(model: &mut Model) {
    for at in 0..model.statements.len() {
        let Some(lowered) = &model.statements[at].lowered else { continue };
        let statement = &model.statements[at];
        let write = Read {
            access: tilewright_ir::Access {
                tensor: statement.target,
                indices: lowered.indices.clone(),
                origin: statement.target_span.origin(),
            },
            guards: Vec::new(),
            exists: false,
        };
        let mut found = Vec::new();
        for (read, direction) in
            lowered.reads.iter().map(|read| (read, Direction::Reads)).chain([(&write, Direction::Writes)])
        {
            found.extend(check_access(model, at, read, direction));
        }
        for diagnostic in found {
            let target = model.statements[at].target;
            if diagnostic.is_error() {
                model.tensors[target.index()].poisoned = true;
            }
            model.report(diagnostic);
        }
    }
}

/// Whether an access reads or writes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Reads,
    Writes,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Direction::Reads { "reads" } else { "writes" })
    }
}

/// The claim that one subscript of an access stays between 0 and its extent.
struct Claim<'a> {
    read: &'a Read,
    dimension: usize,
    index: &'a IndexExpr,
    extent: &'a IndexExpr,
}

fn check_access(model: &Model, at: usize, read: &Read, direction: Direction) -> Option<Diagnostic> {
    let tensor = model.tensor(read.access.tensor);
    if tensor.poisoned {
        return None;
    }
    let shape = tensor.shape.as_ref()?;
    let guards = alternatives(&read.guards);
    for (dimension, (index, extent)) in read.access.indices.iter().zip(shape).enumerate() {
        let claim = Claim { read, dimension, index, extent };
        if let Some(diagnostic) = check_claim(model, at, &claim, &guards, direction) {
            return Some(diagnostic);
        }
    }
    None
}

fn check_claim(
    model: &Model,
    at: usize,
    claim: &Claim<'_>,
    guards: &[Facts],
    direction: Direction,
) -> Option<Diagnostic> {
    let statement = &model.statements[at];
    // A tensor's own writes are below its extents, because an undeclared shape is inferred from
    // them.
    let inferred =
        direction == Direction::Writes && model.tensor(claim.read.access.tensor).declared.is_none();
    let slack = if inferred { IndexExpr::constant(0) } else { claim.extent.offset(-1).sub(claim.index) };
    if nonnegative(claim.index, &[], model) && nonnegative(&slack, &[], model) {
        return None;
    }
    let size_facts = model.facts_about(statement, &[claim.index, claim.extent]);
    let in_bounds = guards.iter().all(|facts| {
        let facts: Vec<IndexExpr> =
            facts.iter().chain(&remainder_facts(facts, model)).chain(&size_facts).cloned().collect();
        nonnegative(&IndexExpr::constant(-1), &facts, model)
            || (nonnegative(claim.index, &facts, model) && nonnegative(&slack, &facts, model))
    });
    if in_bounds || reads_data(claim.index) {
        return None;
    }
    // The search also covers the variables and sizes of the guards.
    let guard_indices = guard_indices(claim.read);
    let mentioned: Vec<&IndexExpr> = [claim.index, claim.extent].into_iter().chain(&guard_indices).collect();
    let vars: BTreeSet<VarId> =
        [claim.index].into_iter().chain(&guard_indices).flat_map(IndexExpr::vars).collect();
    let vars: Vec<VarId> = vars.into_iter().collect();
    let mut depends_on_data = false;
    let outcome = search(model, &mentioned, &vars, &size_facts, &mut |witness| {
        let inside = match (witness.eval(claim.index), witness.eval(claim.extent)) {
            (Some(index), Some(extent)) => (0..extent).contains(&index),
            _ => true,
        };
        if inside {
            return false;
        }
        let holds = |(guard, holds): &(Rc<Expr>, bool)| witness.holds(guard).map(|truth| truth == *holds);
        let verdicts: Vec<Option<bool>> = claim.read.guards.iter().map(holds).collect();
        let excluded = verdicts.contains(&Some(false));
        depends_on_data |= !excluded && verdicts.contains(&None);
        !excluded && !verdicts.contains(&None)
    });
    // Where a condition depends on data, the access is checked when the program runs.
    if depends_on_data && !matches!(outcome, Search::Found(_)) {
        return None;
    }
    match outcome {
        Search::Found(witness) => Some(out_of_bounds(model, claim, &witness, direction)),
        Search::Proved => None,
        Search::Unknown => Some(unproved(model, claim)),
    }
}

/// Facts that a non-negative number is at least its remainder: where `i % 2 == 1`, `i` is at least
/// 1.
fn remainder_facts(facts: &[IndexExpr], model: &Model) -> Vec<IndexExpr> {
    let mut found = Vec::new();
    for atom in facts.iter().flat_map(|fact| fact.terms()).flat_map(|term| &term.factors) {
        if let Atom::Mod(pair) = atom
            && nonnegative(&pair.0, &[], model)
        {
            found.push(pair.0.sub(&IndexExpr::atom(atom.clone())));
        }
    }
    found
}

/// Returns true when the value of an index depends on tensors, or on scalars that are not symbols.
fn reads_data(index: &IndexExpr) -> bool {
    fn reads(expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Load(_) | ExprKind::Scalar(_) => true,
            ExprKind::Index(index) => reads_data(index),
            _ => expr.operands().iter().any(reads),
        }
    }
    index.any(&mut |atom| matches!(atom, Atom::Data(data) if reads(&data.value)))
}

/// The index expressions in the conditions around an access.
fn guard_indices(read: &Read) -> Vec<IndexExpr> {
    let mut indices = Vec::new();
    for (guard, _) in &read.guards {
        (**guard).clone().map_indices(&mut |index| {
            indices.push(index.clone());
            index.clone()
        });
    }
    indices
}

fn out_of_bounds(model: &Model, claim: &Claim<'_>, witness: &Witness, direction: Direction) -> Diagnostic {
    let tensor = model.tensor(claim.read.access.tensor);
    let span: Span = claim.read.access.origin.into();
    let text = print::access(&claim.read.access, model);
    let index = witness.eval(claim.index).unwrap_or_default();
    let extent = witness.eval(claim.extent).unwrap_or_default();
    let place = match claim.read.access.indices.len() {
        1 => String::new(),
        _ => format!(" in dimension {}", claim.dimension),
    };
    let at = witness.vars_text(model);
    let at = if at.is_empty() { String::new() } else { format!("at {at} ") };
    let label = format!("{at}the index is {index}, but `{}` has 0 to {}{place}", tensor.name, extent - 1);
    let mut diagnostic = Diagnostic::error(
        Code::OutOfBounds,
        span,
        format!("`{text}` {direction} outside of `{}`", tensor.name),
    )
    .label(label);
    diagnostic = witness.with_sizes(diagnostic, model);
    for var in witness.vars.keys() {
        diagnostic = explain_range(diagnostic, model, *var);
    }
    if index < 0 && !witness.vars.is_empty() {
        diagnostic = diagnostic.note("a variable starts at 0 unless `where` says otherwise");
    }
    if let [tilewright_ir::Term { factors, coefficient: 1 }] = claim.index.terms()
        && let [Atom::Symbol(symbol)] = factors.as_slice()
        && claim.index.constant_part() == 0
    {
        let symbol = &model.symbols[symbol.index()];
        let what = if symbol.kind == SymbolKind::Size { "size" } else { "scalar" };
        let name = &symbol.name;
        diagnostic = diagnostic.note(format!("`{name}` is a {what} here, not a variable"));
    }
    diagnostic.help(suggestion(model, claim, index, direction))
}

/// Adds the range of a variable and its origin to the message.
fn explain_range(diagnostic: Diagnostic, model: &Model, var: VarId) -> Diagnostic {
    let info = model.var(var);
    let Some(range) = &info.range else { return diagnostic };
    let text = format!("{} is in {}", info.name, print::range(range, model));
    match info.because.first() {
        Some(Reason { span, kind: kind @ (ReasonKind::Where | ReasonKind::Loop) }) => {
            diagnostic.also(*span, format!("{text} because {kind}"))
        }
        Some(Reason { kind, .. }) => diagnostic.note(format!("{text}: {kind}")),
        None => diagnostic.note(text),
    }
}

fn suggestion(model: &Model, claim: &Claim<'_>, index: i64, direction: Direction) -> String {
    if direction == Direction::Writes {
        return "shorten the range with `where`, or declare a larger size".to_owned();
    }
    let subscript = print::index(claim.index, model);
    let (extent, last) = (print::index(claim.extent, model), print::index(&claim.extent.offset(-1), model));
    let guard = if index < 0 { format!("{subscript} >= 0") } else { format!("{subscript} < {extent}") };
    let text = print::access(&claim.read.access, model);
    format!(
        "shorten the range with `where`, or guard the access: `({guard}) ? {text} : 0`, or clamp the index: `clamp({subscript}, 0, {last})`"
    )
}

fn unproved(model: &Model, claim: &Claim<'_>) -> Diagnostic {
    let text = print::access(&claim.read.access, model);
    let span: Span = claim.read.access.origin.into();
    Diagnostic::warning(
        Code::OutOfBounds,
        span,
        format!(
            "`{text}` could not be proved to stay within `{}`",
            model.tensor(claim.read.access.tensor).name
        ),
    )
    .note("no size was found at which it does not; it is checked when the program runs")
    .help("a `clamp` or a condition around the access makes it certain")
}

/// Reports extents that a call requires to be equal and that are not.
pub(super) fn check_equal_sizes(model: &mut Model) {
    let mut found = Vec::new();
    for equal in &model.equal_sizes {
        let (Some(left), Some(right)) = (model.with_extents(&equal.left), model.with_extents(&equal.right))
        else {
            continue;
        };
        let difference = left.sub(&right);
        let same = nonnegative(&difference, &model.size_facts, model)
            && nonnegative(&difference.scale(-1), &model.size_facts, model);
        if !same {
            let (left, right) = (print::index(&left, model), print::index(&right, model));
            let message = format!("sizes differ: {left} and {right}");
            found.push(
                Diagnostic::error(Code::SizeMismatch, equal.span, message)
                    .label(format!("{} is {left}, but must be {right}", equal.what)),
            );
        }
    }
    found.into_iter().for_each(|diagnostic| model.report(diagnostic));
}

/// Refuses variables that run over two different numbers. Warns of variables whose range was cut to
/// the smaller of two sizes.
pub(super) fn check_mixed_sizes(model: &mut Model) {
    let mut found: Vec<Diagnostic> = Vec::new();
    for MixedSizes { var, left, right, certain } in &model.mixed_sizes {
        let difference = left.extent.sub(&right.extent);
        let same = nonnegative(&difference, &model.size_facts, model)
            && nonnegative(&difference.scale(-1), &model.size_facts, model);
        if same || found.iter().any(|other| other.primary.0 == right.span) {
            continue;
        }
        let (one, other) = (print::index(&left.extent, model), print::index(&right.extent, model));
        let name = &model.var(*var).name;
        let message = format!(
            "`{name}` runs over two sizes: {one} from `{}`, but {other} from `{}`",
            left.access, right.access
        );
        let diagnostic = match certain {
            true => Diagnostic::error(Code::SizeMismatch, right.span, message),
            false => Diagnostic::warning(Code::SizeMismatch, right.span, message)
                .note("its range ends at the smaller of the two"),
        };
        found.push(diagnostic.label(format!("{other} here")).also(left.span, format!("{one} here")).help(
            "if they are meant to be equal, give both dimensions one name; if not, say so with `where`",
        ));
    }
    found.into_iter().for_each(|diagnostic| model.report(diagnostic));
}

/// Returns true when later passes can check a tensor: no mistake about it was reported, and its
/// shape is known.
pub(super) fn is_sound(model: &Model, tensor: TensorId) -> bool {
    !model.tensor(tensor).poisoned && model.tensor(tensor).shape.is_some()
}
