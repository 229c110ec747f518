//! Checks the left-hand sides. Every variable is on the left or is reduced, every element is
//! written once, and no statement reads elements that it overwrites or resets.

use std::collections::HashMap;

use tilewright_ir::index::greatest_common_divisor;
use tilewright_ir::interval::{Knowledge, lower_bound, upper_bound};
use tilewright_ir::prove::nonnegative;
use tilewright_ir::{Atom, IndexExpr, VarId, VarKind, print};

use super::model::{Model, Read, Statement};
use super::regions::magnitude;
use super::witness::{Search, search};
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};

/// Checks the left-hand side of every statement against its right-hand side.
pub(super) fn check(model: &mut Model) {
    for at in 0..model.statements.len() {
        if model.statements[at].lowered.is_none() {
            continue;
        }
        let problem = missing_reduction(model, at)
            .or_else(|| repeated_write(model, at))
            .or_else(|| reset_in_place(model, at))
            .or_else(|| in_place(model, at));
        if let Some(diagnostic) = problem {
            let target = model.statements[at].target;
            model.tensors[target.index()].poisoned = true;
            model.report(diagnostic);
        }
    }
}

/// The role of a variable in a statement.
pub(super) fn var_kind(statement: &Statement, var: VarId) -> VarKind {
    let Some(lowered) = &statement.lowered else { return VarKind::Reduction };
    let separates = |index: &IndexExpr| {
        let own: Vec<VarId> =
            index.vars().into_iter().filter(|other| statement.vars.contains(other)).collect();
        own == [var] && tells_apart(index, var)
    };
    match statement.op {
        AssignOp::Assign => VarKind::Spatial,
        AssignOp::Reduce { .. } if lowered.indices.iter().any(separates) => VarKind::Spatial,
        AssignOp::Reduce { .. } => VarKind::Reduction,
    }
}

/// Returns true when different values of the variable give different indices.
fn tells_apart(index: &IndexExpr, var: VarId) -> bool {
    let split = index.split_on(&Atom::Var(var));
    split.is_some_and(|(coefficient, rest)| {
        coefficient.as_constant().is_some_and(|value| value != 0) && !rest.mentions(var)
    })
}

fn missing_reduction(model: &Model, at: usize) -> Option<Diagnostic> {
    let statement = &model.statements[at];
    let lowered = statement.lowered.as_ref()?;
    if statement.op != AssignOp::Assign {
        return None;
    }
    let on_left = |var: &VarId| lowered.indices.iter().any(|index| index.mentions(*var));
    let missing: Vec<VarId> = statement.vars.iter().copied().filter(|var| !on_left(var)).collect();
    let first = *missing.first()?;
    let name = &model.var(first).name;
    let message = format!("`{name}` is on the right only, and `=` does not say how to combine its values");
    Some(
        Diagnostic::error(Code::MissingReduction, statement.op_span, message)
            .label("no reduction here")
            .also(
                model.var(first).span,
                format!(
                    "`{name}` takes many values for one element of `{}`",
                    model.tensor(statement.target).name
                ),
            )
            .help("to add them up write `+=!`; there are `*=!`, `min=!` and `max=!` too"),
    )
}

fn repeated_write(model: &Model, at: usize) -> Option<Diagnostic> {
    let statement = &model.statements[at];
    let lowered = statement.lowered.as_ref()?;
    if statement.op != AssignOp::Assign {
        return None;
    }
    if let Some(place) = lowered.indices.iter().position(IndexExpr::has_data) {
        let span = statement.resolved.indices.get(place).map_or(statement.target_span, |value| value.span);
        let message = "an index that depends on data may name one element twice";
        return Some(
            Diagnostic::error(Code::RepeatedWrite, span, message)
                .help("scatter with a reduction, which does not depend on the order: `+=`, `max=`, …"),
        );
    }
    if is_injective(model, statement, &lowered.indices) {
        return None;
    }
    let name = &model.tensor(statement.target).name;
    let problem = |message: String| {
        Diagnostic::error(Code::RepeatedWrite, statement.target_span, message)
            .help("use a reduction, or an index that is different for different variables")
    };
    match find_clash(model, statement, &lowered.indices) {
        (Search::Found(witness), Some((element, first))) => {
            let element: Vec<String> = element.iter().map(i64::to_string).collect();
            let (element, second) = (element.join(", "), witness.vars_text(model));
            let label = format!("`{name}({element})` is assigned at {first} and at {second}");
            let problem = problem(format!("this assigns some element of `{name}` more than once"));
            Some(witness.with_sizes(problem.label(label), model))
        }
        (Search::Proved, _) => None,
        _ => Some(
            problem(format!("this may assign some element of `{name}` more than once"))
                .label("could not show that the index is different for different variables"),
        ),
    }
}

/// Searches for an element that two points of the same iteration of the surrounding loops write.
/// Returns the element, and the first of the two points.
fn find_clash(
    model: &Model,
    statement: &Statement,
    indices: &[IndexExpr],
) -> (Search, Option<(Vec<i64>, String)>) {
    let mut seen: HashMap<Vec<i64>, String> = HashMap::new();
    let mut turn = None;
    let mut clash = None;
    let mentioned: Vec<&IndexExpr> = indices.iter().collect();
    let facts = model.facts_about(statement, &mentioned);
    let outcome = search(model, &mentioned, &model.all_vars(statement), &facts, &mut |witness| {
        let loops: Vec<Option<i64>> =
            statement.loops.iter().map(|id| witness.vars.get(&model.loops[id.0].var).copied()).collect();
        let this_turn = Some((witness.sizes.clone(), loops));
        if turn != this_turn {
            seen.clear();
            turn = this_turn;
        }
        let element: Option<Vec<i64>> = indices.iter().map(|index| witness.eval(index)).collect();
        let Some(element) = element else { return false };
        clash = seen.insert(element.clone(), witness.vars_text(model)).map(|first| (element, first));
        clash.is_some()
    });
    (outcome, clash)
}

/// Returns true when different values of the statement's variables name different elements.
fn is_injective(model: &Model, statement: &Statement, indices: &[IndexExpr]) -> bool {
    let alone = |var: VarId| {
        indices.iter().any(|index| {
            let own: Vec<VarId> =
                index.vars().into_iter().filter(|other| statement.vars.contains(other)).collect();
            own == [var] && tells_apart(index, var)
        })
    };
    // An index that is injective in all its variables distinguishes the values of each of them.
    let told = |var: VarId| {
        alone(var) || indices.iter().any(|index| index.mentions(var) && mixed_radix(model, statement, index))
    };
    statement.vars.iter().all(|var| told(*var))
}

/// Returns true for mixed-radix indices: `12*i + 3*j + k` with `j` in 0:4 and `k` in 0:3, or
/// `M*i + j` with `j` in 0:M. In some order of the variables, each coefficient exceeds the largest
/// sum of the terms before it.
fn mixed_radix(model: &Model, statement: &Statement, index: &IndexExpr) -> bool {
    let mut digits: Vec<(IndexExpr, IndexExpr)> = Vec::new();
    for var in index.vars().into_iter().filter(|var| statement.vars.contains(var)) {
        let Some((coefficient, rest)) = index.split_on(&Atom::Var(var)) else { return false };
        let varies = coefficient.vars().iter().any(|other| statement.vars.contains(other));
        let Some(range) = &model.var(var).range else { return false };
        if varies || rest.mentions(var) {
            return false;
        }
        let Some(size) = magnitude(model, coefficient) else { return false };
        digits.push((size, range.extent()));
    }
    digits.len() <= 5 && in_some_order(model, digits, &IndexExpr::constant(0))
}

fn in_some_order(model: &Model, digits: Vec<(IndexExpr, IndexExpr)>, reach: &IndexExpr) -> bool {
    digits.is_empty()
        || (0..digits.len()).any(|at| {
            let mut rest = digits.clone();
            let (size, extent) = rest.remove(at);
            nonnegative(&size.offset(-1).sub(reach), &[], model)
                && in_some_order(model, rest, &reach.add(&size.mul(&extent.offset(-1))))
        })
}

/// Reports a reduction that resets its target and reads the same tensor: the order of the reset and
/// the reads is undefined. An `exists` clause names elements without reading them.
fn reset_in_place(model: &Model, at: usize) -> Option<Diagnostic> {
    let statement = &model.statements[at];
    let AssignOp::Reduce { op, reset: true } = statement.op else { return None };
    let lowered = statement.lowered.as_ref()?;
    // A scatter resets the whole tensor; any other statement resets only the elements that it
    // names.
    let scatters = lowered.indices.iter().any(IndexExpr::has_data);
    let kept = |read: &Read| !scatters && apart(model, statement, &lowered.indices, read);
    let own = |read: &&Read| !read.exists && read.access.tensor == statement.target && !kept(read);
    let read = lowered.reads.iter().find(own)?;
    let name = &model.tensor(statement.target).name;
    let text = print::access(&read.access, model);
    let operator = op.symbol();
    let indices: Vec<String> = lowered.indices.iter().map(|index| print::index(index, model)).collect();
    let element = format!("{name}({})", indices.join(", "));
    let message = format!("`{operator}!` resets `{name}`, and the same statement reads `{text}`");
    let diagnostic = Diagnostic::error(Code::ResetInPlace, read.access.origin.into(), message)
        .label("the target itself is read here")
        .also(statement.op_span, format!("`{element}` is set to the neutral element here"));
    let is_update = read.access.indices == lowered.indices && !reduces(statement);
    Some(if is_update {
        diagnostic.help(format!(
            "to compute the element from its old value write `{element} = …`; to go on from the old value write `{operator}` without `!`"
        ))
    } else {
        diagnostic.help(format!(
            "reduce into another tensor, and assign that: `{element} = …`; or, to go on from the old values, write `{operator}` without `!`"
        ))
    })
}

/// Returns true when the statement reduces some variable.
fn reduces(statement: &Statement) -> bool {
    statement.vars.iter().any(|var| var_kind(statement, *var) == VarKind::Reduction)
}

/// Reports an update that reads elements which the same statement overwrites.
fn in_place(model: &Model, at: usize) -> Option<Diagnostic> {
    let statement = &model.statements[at];
    let lowered = statement.lowered.as_ref()?;
    let reductions = reduces(statement);
    let own_reads = lowered.reads.iter().filter(|read| read.access.tensor == statement.target);
    for read in own_reads {
        let same = read.access.indices == lowered.indices;
        if same && !reductions {
            continue;
        }
        if single_instance(model, statement) || apart(model, statement, &lowered.indices, read) {
            continue;
        }
        return Some(in_place_problem(model, statement, read, same));
    }
    None
}

fn single_instance(model: &Model, statement: &Statement) -> bool {
    statement.vars.iter().all(|var| {
        let range = model.var(*var).range.as_ref();
        range.is_some_and(|range| range.extent().as_constant() == Some(1))
    })
}

/// Returns true when no instance of the statement reads an element that another instance writes.
/// This holds if the indices of some dimension are never equal, whatever the variables of the two
/// instances are.
fn apart(model: &Model, statement: &Statement, written: &[IndexExpr], read: &Read) -> bool {
    let own = OwnVars { model, vars: &statement.vars };
    written.iter().zip(&read.access.indices).any(|(write, read)| {
        // The bounds are over the statement's own variables; the variables of the surrounding loops
        // are equal for both.
        let bounds = (
            lower_bound(write, &own),
            upper_bound(write, &own),
            lower_bound(read, &own),
            upper_bound(read, &own),
        );
        let (Some(write_low), Some(write_high), Some(read_low), Some(read_high)) = bounds else {
            return false;
        };
        let facts = model.facts_about(statement, &[write, read]);
        nonnegative(&read_low.sub(&write_high).offset(-1), &facts, model)
            || nonnegative(&write_low.sub(&read_high).offset(-1), &facts, model)
            || different_residues(write, read)
            || different_remainders(write, read, &statement.vars)
    })
}

/// Returns true for indices such as `(t + 1) % 2` and `t % 2`, which are never equal in one
/// iteration of a loop over `t`. `own` lists the statement's variables, which may differ between
/// the writing and the reading instance.
fn different_remainders(write: &IndexExpr, read: &IndexExpr, own: &[VarId]) -> bool {
    let (Some((write, by)), Some((read, other))) = (remainder(write), remainder(read)) else { return false };
    if by != other {
        return false;
    }
    let shared = |expr: &IndexExpr| {
        let mut shared = IndexExpr::constant(expr.constant_part());
        for term in expr.terms() {
            let term_alone = IndexExpr::from(term);
            match term_alone.vars().iter().any(|var| own.contains(var)) || term_alone.has_data() {
                true if term.coefficient % by != 0 => return None,
                true => {}
                false => shared = shared.add(&term_alone),
            }
        }
        Some(shared)
    };
    let difference =
        shared(&write).zip(shared(&read)).and_then(|(write, read)| write.sub(&read).as_constant());
    difference.is_some_and(|difference| difference % by != 0)
}

/// The dividend and the divisor, if the index is exactly one remainder by a positive number.
fn remainder(index: &IndexExpr) -> Option<(IndexExpr, i64)> {
    match index.terms() {
        [term] if term.coefficient == 1 && index.constant_part() == 0 => match term.factors.as_slice() {
            [Atom::Mod(pair)] => Some((pair.0.clone(), pair.1.as_constant()?)).filter(|(_, by)| *by > 0),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true for indices such as `2*i` and `2*j + 1`, which are never equal.
fn different_residues(write: &IndexExpr, read: &IndexExpr) -> bool {
    let coefficients =
        |expr: &IndexExpr| expr.terms().iter().map(|term| term.coefficient).collect::<Vec<_>>();
    let divisor =
        coefficients(write).into_iter().chain(coefficients(read)).fold(0i64, greatest_common_divisor);
    divisor > 1 && (write.constant_part() - read.constant_part()) % divisor != 0
}

struct OwnVars<'a> {
    model: &'a Model,
    vars: &'a [VarId],
}

impl Knowledge for OwnVars<'_> {
    fn range(&self, var: VarId) -> Option<tilewright_ir::Range> {
        self.vars.contains(&var).then(|| self.model.var(var).range.clone()).flatten()
    }
    fn least(&self, symbol: tilewright_ir::SymbolId) -> Option<i64> {
        self.model.least(symbol)
    }
}

fn in_place_problem(model: &Model, statement: &Statement, read: &Read, same: bool) -> Diagnostic {
    let name = &model.tensor(statement.target).name;
    let text = print::access(&read.access, model);
    let message = format!("this statement reads `{text}` while it overwrites `{name}`");
    let diagnostic = Diagnostic::error(Code::InPlace, read.access.origin.into(), message)
        .also(statement.target_span, "written here");
    if same {
        return diagnostic
            .label("the element changes while values are reduced into it")
            .help("compute the right-hand side into another tensor first");
    }
    diagnostic.label("the value may already be overwritten").help(
        "write into another tensor; or, if the order matters, use an ordered loop: `for t in 1:T { … }`",
    )
}
