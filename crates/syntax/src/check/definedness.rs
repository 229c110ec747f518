//! Every element defined before it is used.
//!
//! A result that is read before anything writes it is in-out: the caller supplies it. Of every other tensor, what
//! is read must have been written by an earlier statement, or by an earlier turn of a loop around both; and a
//! result must be defined in full. Written and read regions are boxes; a box is covered if nothing is left of it
//! once the written boxes are taken away. What that cannot show is tried out at small sizes.

use tilewright_ir::interval::{Knowledge, lower_bound, upper_bound};
use tilewright_ir::prove::nonnegative;
use tilewright_ir::{Atom, IndexExpr, Range, SymbolId, TensorId, VarId, print};

use super::bounds::is_sound;
use super::model::{LoopId, Model, Read, Source, Statement};
use super::trial::{Undefined, find_undefined};
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// How a tensor that the program writes is supplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Supply {
    /// The program defines it.
    Defined,
    /// The caller supplies it and the program updates it.
    Caller,
}

/// Says of every tensor who supplies it, and reports what is undefined.
pub(super) fn check(model: &mut Model) -> Vec<Supply> {
    let supplies = supplies(model);
    let mut open = false;
    for at in 0..model.statements.len() {
        open |= !reads_are_defined(model, at, &supplies);
    }
    for id in 0..model.tensors.len() {
        let id = TensorId(id as u32);
        if model.tensor(id).source == Source::Result
            && supplies[id.index()] == Supply::Defined
            && is_sound(model, id)
        {
            open |= !is_covered(model, id);
        }
    }
    let broken = model.tensors.iter().any(|tensor| tensor.poisoned);
    if open && !broken && !model.incomplete {
        let found = find_undefined(model, &supplies);
        if let Some(undefined) = found {
            let diagnostic = undefined_problem(model, &undefined);
            model.report(diagnostic);
        }
    }
    warn_of_unused(model);
    supplies
}

fn supplies(model: &mut Model) -> Vec<Supply> {
    let mut supplies = vec![Supply::Defined; model.tensors.len()];
    let mut written = vec![false; model.tensors.len()];
    let mut reports = Vec::new();
    for statement in &model.statements {
        let Some(lowered) = &statement.lowered else {
            written[statement.target.index()] = true;
            continue;
        };
        let own = statement.reads_target().then_some((statement.target, None));
        let reads =
            lowered.reads.iter().filter(|read| !read.exists).map(|read| (read.access.tensor, Some(read)));
        for (tensor, read) in reads.chain(own) {
            let info = model.tensor(tensor);
            let supplied = matches!(info.source, Source::Param { .. }) || info.poisoned || model.incomplete;
            if written[tensor.index()] || supplied || supplies[tensor.index()] == Supply::Caller {
                continue;
            }
            supplies[tensor.index()] = Supply::Caller;
            reports.extend(first_read(model, statement, tensor, read));
        }
        written[statement.target.index()] = true;
    }
    reports.into_iter().for_each(|diagnostic| model.report(diagnostic));
    supplies
}

/// What to say of a tensor whose first mention reads it.
fn first_read(
    model: &Model,
    statement: &Statement,
    tensor: TensorId,
    read: Option<&Read>,
) -> Option<Diagnostic> {
    let name = &model.tensor(tensor).name;
    let reset = match statement.op {
        AssignOp::Reduce { op, .. } => format!("{}!", op.symbol()),
        AssignOp::Assign => "=".to_owned(),
    };
    match (model.tensor(tensor).source, read) {
        (Source::Result, Some(_)) => None,
        (Source::Result, None) => {
            let message =
                format!("nothing initialises `{name}` before this reduction, so the caller must supply it");
            Some(
                Diagnostic::warning(Code::UninitializedReduction, statement.op_span, message)
                    .help(format!("to start from the neutral element write `{reset}`")),
            )
        }
        (_, Some(read)) => {
            let message = format!("`{name}` is read before anything defines it");
            Some(Diagnostic::error(Code::ReadBeforeWrite, read.access.origin.into(), message).help(
                "define it in an earlier statement, or make it a result, which the caller then supplies",
            ))
        }
        (_, None) => {
            let message = format!("nothing initialises `{name}` before this reduction");
            Some(
                Diagnostic::error(Code::ReadBeforeWrite, statement.op_span, message)
                    .help(format!("to start from the neutral element write `{reset}`")),
            )
        }
    }
}

/// A box: the first and last index in each dimension.
type Region = Vec<(IndexExpr, IndexExpr)>;

/// What is known of a writer's variables, seen from a reader: its own range freely, and of the loops around both
/// the first `equal` have the reader's value, the next one an earlier value, unless all are equal.
struct Writer<'a> {
    model: &'a Model,
    statement: &'a Statement,
    shared: &'a [LoopId],
    equal: usize,
}

impl Knowledge for Writer<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        let range = self.model.var(var).range.clone();
        let level = self.shared.iter().position(|id| self.model.loops[id.0].var == var);
        match level {
            Some(level) if level < self.equal => None,
            Some(level) if level == self.equal => {
                range.map(|range| Range { to: IndexExpr::var(var), ..range })
            }
            _ => range,
        }
    }
    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.model.least(symbol)
    }
}

impl Writer<'_> {
    /// The box that the statement fills, or `None` if it leaves gaps or they cannot be excluded.
    fn region(&self) -> Option<Region> {
        let lowered = self.statement.lowered.as_ref()?;
        let scatter = lowered.indices.iter().any(IndexExpr::has_data);
        if scatter {
            let resets = matches!(self.statement.op, AssignOp::Reduce { reset: true, .. });
            let shape = self.model.tensor(self.statement.target).shape.as_ref()?;
            return resets.then(|| whole(shape));
        }
        lowered
            .indices
            .iter()
            .map(|index| {
                self.is_dense(index).then_some(())?;
                Some((lower_bound(index, self)?, upper_bound(index, self)?))
            })
            .collect()
    }

    /// Whether the index takes every value between its bounds: each coefficient is within the reach of the smaller.
    fn is_dense(&self, index: &IndexExpr) -> bool {
        let mut steps: Vec<(i64, IndexExpr)> = Vec::new();
        for term in index.terms() {
            let varies = term.factors.iter().any(|factor| {
                IndexExpr::atom(factor.clone()).vars().iter().any(|var| self.range(*var).is_some())
            });
            match term.factors.as_slice() {
                _ if !varies => {}
                [Atom::Var(var)] => match self.range(*var) {
                    Some(range) => steps.push((term.coefficient.abs(), range.extent())),
                    None => return false,
                },
                _ => return false,
            }
        }
        steps.sort_by_key(|(step, _)| *step);
        let mut reach = IndexExpr::constant(1);
        for (step, extent) in steps {
            if !nonnegative(&reach.offset(-step), &[], self.model) {
                return false;
            }
            reach = reach.add(&extent.offset(-1).scale(step));
        }
        true
    }
}

fn whole(shape: &[IndexExpr]) -> Region {
    shape.iter().map(|extent| (IndexExpr::constant(0), extent.offset(-1))).collect()
}

/// Whether a statement fills elements, rather than updating what is there.
fn fills(statement: &Statement) -> bool {
    !statement.reads_target()
}

/// Every box that is written before the statement at `reader` runs.
fn written_before(model: &Model, tensor: TensorId, reader: usize) -> impl Iterator<Item = Region> {
    let reading = &model.statements[reader];
    let writers = model
        .statements
        .iter()
        .enumerate()
        .filter(move |(_, writer)| writer.target == tensor && fills(writer));
    writers.flat_map(move |(at, statement)| {
        let common =
            statement.loops.iter().zip(&reading.loops).take_while(|(left, right)| left == right).count();
        let shared = &reading.loops[..common];
        // Earlier turns of the loops around both, and the same turn if the writer comes first.
        let turns = if at < reader { common + 1 } else { common };
        (0..turns).filter_map(move |equal| Writer { model, statement, shared, equal }.region())
    })
}

/// Whether every element that a statement reads is defined, as far as boxes can show.
fn reads_are_defined(model: &Model, at: usize, supplies: &[Supply]) -> bool {
    let statement = &model.statements[at];
    let Some(lowered) = &statement.lowered else { return true };
    let needs = |tensor: TensorId| {
        !matches!(model.tensor(tensor).source, Source::Param { .. })
            && supplies[tensor.index()] == Supply::Defined
            && is_sound(model, tensor)
    };
    let own = Read {
        access: tilewright_ir::Access {
            tensor: statement.target,
            indices: lowered.indices.clone(),
            origin: Default::default(),
        },
        guards: Vec::new(),
        exists: !statement.reads_target(),
    };
    lowered
        .reads
        .iter()
        .chain([&own])
        .filter(|read| !read.exists && needs(read.access.tensor))
        .all(|read| read_is_defined(model, at, read))
}

fn read_is_defined(model: &Model, at: usize, read: &Read) -> bool {
    let statement = &model.statements[at];
    let Some(shape) = &model.tensor(read.access.tensor).shape else { return true };
    let own = Writer { model, statement, shared: &statement.loops, equal: statement.loops.len() };
    let region: Region = read
        .access
        .indices
        .iter()
        .zip(shape)
        .map(|(index, extent)| match index.has_data() {
            true => (IndexExpr::constant(0), extent.offset(-1)),
            false => (
                lower_bound(index, &own).unwrap_or_else(|| IndexExpr::constant(0)),
                upper_bound(index, &own).unwrap_or_else(|| extent.offset(-1)),
            ),
        })
        .collect();
    // Most tensors are written in full by one statement.
    let full = whole(shape);
    let mut written = Vec::new();
    for part in written_before(model, read.access.tensor, at) {
        if part == full || part == region {
            return true;
        }
        written.push(part);
    }
    let ends: Vec<&IndexExpr> = region.iter().flat_map(|(low, high)| [low, high]).collect();
    let facts = model.facts_about(statement, &ends);
    covers(model, region, &written, &facts)
}

fn is_covered(model: &Model, id: TensorId) -> bool {
    let Some(shape) = &model.tensor(id).shape else { return true };
    let mut written = Vec::new();
    for statement in model.statements.iter().filter(|statement| statement.target == id && fills(statement)) {
        written.extend(Writer { model, statement, shared: &[], equal: 0 }.region());
    }
    let full = whole(shape);
    written.contains(&full) || covers(model, full, &written, &model.size_facts)
}

/// Pieces beyond this many are not followed.
const MOST_PIECES: usize = 64;

/// Whether nothing is left of the region once the boxes are taken away.
fn covers(model: &Model, region: Region, boxes: &[Region], facts: &[IndexExpr]) -> bool {
    let empty = |low: &IndexExpr, high: &IndexExpr| nonnegative(&low.sub(high).offset(-1), facts, model);
    let mut pieces = vec![region];
    for taken in boxes {
        let mut left = Vec::new();
        for piece in pieces {
            let mut core = piece.clone();
            for (dimension, (from, to)) in taken.iter().enumerate() {
                let (low, high) = core[dimension].clone();
                for part in [
                    (low.clone(), high.minimum(&from.offset(-1))),
                    (low.maximum(&to.offset(1)), high.clone()),
                ] {
                    if !empty(&part.0, &part.1) {
                        let mut outside = core.clone();
                        outside[dimension] = part;
                        left.push(outside);
                    }
                }
                core[dimension] = (low.maximum(from), high.minimum(to));
            }
        }
        pieces = left;
        if pieces.len() > MOST_PIECES {
            return false;
        }
    }
    pieces.is_empty() || pieces.iter().all(|piece| piece.iter().any(|(low, high)| empty(low, high)))
}

fn undefined_problem(model: &Model, undefined: &Undefined) -> Diagnostic {
    let tensor = model.tensor(undefined.tensor);
    let element: Vec<String> = undefined.element.iter().map(i64::to_string).collect();
    let element = format!("{}({})", tensor.name, element.join(", "));
    let sizes = undefined.witness.sizes_text(model);
    let diagnostic = match &undefined.read {
        Some((statement, read)) => {
            let statement = &model.statements[*statement];
            let (span, text): (Span, String) = match read {
                Some(read) => (read.access.origin.into(), print::access(&read.access, model)),
                None => (statement.target_span, tensor.name.clone()),
            };
            let message = format!("`{text}` needs elements that no earlier statement defines");
            Diagnostic::error(Code::ReadBeforeWrite, span, message)
                .label(format!("`{element}` is not defined yet"))
        }
        None => {
            let message = format!("no statement defines every element of the result `{}`", tensor.name);
            let shape: Vec<String> =
                tensor.shape.iter().flatten().map(|extent| print::index(extent, model)).collect();
            Diagnostic::error(Code::UndefinedElement, tensor.span, message)
                .label(format!("`{element}` is never defined"))
                .note(format!("`{}` has the shape ({})", tensor.name, shape.join(", ")))
                .help("add a statement that defines the rest, or begin the range at 0")
        }
    };
    if sizes.is_empty() { diagnostic } else { diagnostic.note(format!("this happens {sizes}, for one")) }
}

/// A temporary that nothing reads is most likely a slip.
fn warn_of_unused(model: &mut Model) {
    if model.incomplete || model.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let mut used = vec![false; model.tensors.len()];
    for statement in &model.statements {
        for read in statement.lowered.iter().flat_map(|lowered| &lowered.reads) {
            used[read.access.tensor.index()] = true;
        }
        // Results of a call that nobody needs are the caller's choice.
        used[statement.target.index()] |= statement.call.is_some();
    }
    let unused: Vec<usize> =
        (0..used.len()).filter(|at| !used[*at] && model.tensors[*at].source == Source::Local).collect();
    for at in unused {
        let tensor = &model.tensors[at];
        let message = format!("nothing uses `{}`", tensor.name);
        let diagnostic = Diagnostic::warning(Code::UnusedTensor, tensor.span, message)
            .label("a tensor that is not a result is a temporary")
            .help("name it among the results, or leave it out");
        model.report(diagnostic);
    }
}
