//! Checks that every element is defined before it is used.
//!
//! A result that is read before any statement writes it is in-out: the caller supplies it. For
//! every other tensor, an earlier statement must have written each element that is read, or an
//! earlier iteration of a loop around both statements. A result must be defined in full. Written
//! and read elements are boxes, which `regions` compares. Where the comparison fails to prove
//! coverage, `trial` runs the function at small sizes. If the trial does not decide either, the
//! compiler fills the tensor with 0 first.

use std::collections::BTreeSet;

use tilewright_ir::interval::{Knowledge, lower_bound, upper_bound};
use tilewright_ir::prove::nonnegative;
use tilewright_ir::{Access, Atom, IndexExpr, Range, SymbolId, TensorId, VarId, print};

use super::bounds::is_sound;
use super::facts::alternatives;
use super::model::{LoopId, Model, Read, Source, Statement};
use super::ranges::{larger, smaller};
use super::regions::{Interval, Region, covers, dense_step, whole};
use super::trial::{Trial, Undefined, find_undefined};
use crate::ast::AssignOp;
use crate::diagnostic::{Code, Diagnostic};
use crate::span::Span;

/// How the content of a tensor that the program writes is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Supply {
    /// The program provably defines it.
    Defined,
    /// No undefined element was found, but there is no proof.
    Unproved,
    /// The caller supplies the tensor and the program updates it.
    Caller,
}

/// Determines how every tensor is supplied, and reports undefined elements.
pub(super) fn check(model: &mut Model) -> Vec<Supply> {
    let mut supplies = supplies(model);
    let mut open: Vec<TensorId> =
        (0..model.statements.len()).flat_map(|at| open_reads(model, at, &supplies)).collect();
    for id in (0..model.tensors.len()).map(|at| TensorId(at as u32)) {
        let result = model.tensor(id).source == Source::Result && supplies[id.index()] == Supply::Defined;
        if result && is_sound(model, id) && !is_covered(model, id) {
            open.push(id);
        }
    }
    let broken = model.tensors.iter().any(|tensor| tensor.poisoned);
    if let (Some(first), false, false) = (open.first(), broken, model.incomplete) {
        match find_undefined(model, &supplies) {
            Trial::Found(undefined) => model.report(undefined_problem(model, &undefined)),
            Trial::Complete => {}
            Trial::Unknown => {
                model.report(undecided(model, *first));
                open.iter().for_each(|id| supplies[id.index()] = Supply::Unproved);
            }
        }
    }
    warn_of_unused(model);
    supplies
}

fn undecided(model: &Model, id: TensorId) -> Diagnostic {
    let tensor = model.tensor(id);
    let message =
        format!("could not prove that every element of `{}` is defined before it is used", tensor.name);
    Diagnostic::warning(Code::UndefinedElement, tensor.span, message).note(
        "no size was found at which one is not; kernels read 0 there, and `run --target interp` stops there",
    )
}

fn supplies(model: &mut Model) -> Vec<Supply> {
    let mut supplies = vec![Supply::Defined; model.tensors.len()];
    let mut written = vec![false; model.tensors.len()];
    let mut reports = Vec::new();
    for (at, statement) in model.statements.iter().enumerate() {
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
            // A recurrence may read only elements that its earlier iterations have written.
            let earlier_turns = !statement.loops.is_empty() && info.shape.is_some();
            if earlier_turns && read.is_some_and(|read| read_is_defined(model, at, read)) {
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

/// The message about a tensor whose first use is a read.
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

/// The maximal number of values of a variable that is expanded value by value.
const MOST_VALUES: i64 = 16;

/// The ranges of a writer's variables, as seen from a reader. The first `equal` loops around both
/// statements have the same value in the writer as in the reader. The next shared loop has an
/// earlier value in the writer, unless all shared loops are equal. All other variables have their
/// whole range.
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
    /// Boxes of elements that the statement certainly fills.
    fn regions(&self) -> Vec<Region> {
        let Some(lowered) = &self.statement.lowered else { return Vec::new() };
        if !self.certainly_runs(&lowered.indices) {
            return Vec::new();
        }
        if lowered.indices.iter().any(IndexExpr::has_data) {
            let resets = matches!(self.statement.op, AssignOp::Reduce { reset: true, .. });
            let shape = self.model.tensor(self.statement.target).shape.as_ref();
            return shape.filter(|_| resets).map(|shape| whole(shape)).into_iter().collect();
        }
        let mut regions = Vec::new();
        self.add_regions(&lowered.indices, &mut regions);
        regions
    }

    /// Adds the box that the indices fill. If they fill no box, but some variable has few values,
    /// adds the boxes of each of its values.
    fn add_regions(&self, indices: &[IndexExpr], regions: &mut Vec<Region>) {
        if let Some(region) = self.region(indices) {
            regions.push(region);
            return;
        }
        let few = |var: &VarId| {
            let range = self.range(*var)?;
            let (from, to) = (range.from.as_constant()?, range.to.as_constant()?);
            (to - from <= MOST_VALUES).then_some((*var, from, to))
        };
        let vars: BTreeSet<VarId> = indices.iter().flat_map(IndexExpr::vars).collect();
        if let Some((var, from, to)) = vars.iter().find_map(few)
            && regions.len() as i64 <= MOST_VALUES
        {
            for value in from..to {
                let put = |index: &IndexExpr| {
                    index
                        .substitute(&mut |atom| (*atom == Atom::Var(var)).then(|| IndexExpr::constant(value)))
                };
                self.add_regions(&indices.iter().map(put).collect::<Vec<_>>(), regions);
            }
        }
    }

    fn region(&self, indices: &[IndexExpr]) -> Option<Region> {
        // A variable in two dimensions fills a diagonal, not a box.
        let varying = |index: &IndexExpr| index.vars().into_iter().filter(|var| self.range(*var).is_some());
        let mut seen = BTreeSet::new();
        if !indices.iter().flat_map(varying).all(|var| seen.insert(var)) {
            return None;
        }
        let extent = |var: VarId| self.range(var).map(|range| range.extent());
        let interval = |index: &IndexExpr| {
            let step = dense_step(self.model, index, &extent)?;
            Some(Interval { low: lower_bound(index, self)?, high: upper_bound(index, self)?, step })
        };
        indices.iter().map(interval).collect()
    }

    /// Returns true when no other variable varies in the index, so that an empty range of the
    /// variable makes the interval empty.
    fn is_alone(&self, index: &IndexExpr, var: VarId) -> bool {
        index.mentions(var)
            && index.vars().into_iter().all(|other| other == var || self.range(other).is_none())
    }

    /// Returns true when every loop around the statement runs, or when an empty loop makes an empty
    /// box. The box is empty if the loop's variable is alone in an index. Other ordered loops,
    /// which may be empty, must provably run.
    fn certainly_runs(&self, indices: &[IndexExpr]) -> bool {
        self.statement.loops.iter().all(|id| {
            let var = self.model.loops[id.0].var;
            match self.range(var) {
                None => true,
                Some(_) if indices.iter().any(|index| self.is_alone(index, var)) => true,
                Some(range) => nonnegative(&range.extent().offset(-1), &[], self.model),
            }
        })
    }
}

/// Returns true when a statement defines its elements without reading their old content.
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
        // These are earlier iterations of the loops around both, and the same iteration if the
        // writer comes first.
        let turns = if at < reader { common + 1 } else { common };
        (0..turns).flat_map(move |equal| Writer { model, statement, shared, equal }.regions())
    })
}

/// The tensors that the statement reads or accumulates into without a proof that the elements are
/// defined.
fn open_reads(model: &Model, at: usize, supplies: &[Supply]) -> Vec<TensorId> {
    let statement = &model.statements[at];
    let Some(lowered) = &statement.lowered else { return Vec::new() };
    let needs = |tensor: TensorId| {
        !matches!(model.tensor(tensor).source, Source::Param { .. })
            && supplies[tensor.index()] == Supply::Defined
            && is_sound(model, tensor)
    };
    let access =
        Access { tensor: statement.target, indices: lowered.indices.clone(), origin: Default::default() };
    let own = Read { access, guards: Vec::new(), exists: !statement.reads_target() };
    let reads = lowered.reads.iter().chain([&own]).filter(|read| !read.exists && needs(read.access.tensor));
    reads.filter(|read| !read_is_defined(model, at, read)).map(|read| read.access.tensor).collect()
}

fn read_is_defined(model: &Model, at: usize, read: &Read) -> bool {
    let statement = &model.statements[at];
    let Some(shape) = &model.tensor(read.access.tensor).shape else { return true };
    let own = Writer { model, statement, shared: &statement.loops, equal: statement.loops.len() };
    let interval = |(index, extent): (&IndexExpr, &IndexExpr)| {
        let known = |bound: Option<IndexExpr>| bound.filter(|_| !index.has_data());
        // Conditions keep the access within the tensor, so the read region is clamped to the
        // tensor.
        let (first, last) = (IndexExpr::constant(0), extent.offset(-1));
        Interval {
            low: known(lower_bound(index, &own)).map_or(first.clone(), |low| larger(&low, &first, model)),
            high: known(upper_bound(index, &own)).map_or(last.clone(), |high| smaller(&high, &last, model)),
            step: 1,
        }
    };
    let region: Region = read.access.indices.iter().zip(shape).map(interval).collect();
    // Most tensors are written in full by one statement.
    let full = whole(shape);
    let mut written = Vec::new();
    for part in written_before(model, read.access.tensor, at) {
        if part == full || part == region {
            return true;
        }
        written.push(part);
    }
    let ends: Vec<&IndexExpr> = region.iter().flat_map(|interval| [&interval.low, &interval.high]).collect();
    let sizes = model.facts_about(statement, &ends);
    alternatives(&read.guards).iter().all(|guards| {
        // A condition on only the variables of outer loops holds for the whole region.
        let outer = |fact: &&IndexExpr| fact.vars().iter().all(|var| !statement.vars.contains(var));
        let facts: Vec<IndexExpr> = guards.iter().filter(outer).chain(&sizes).cloned().collect();
        covers(model, &region, &written, &facts)
    })
}

fn is_covered(model: &Model, id: TensorId) -> bool {
    let Some(shape) = &model.tensor(id).shape else { return true };
    let full = whole(shape);
    let mut written = Vec::new();
    for statement in model.statements.iter().filter(|statement| statement.target == id && fills(statement)) {
        let parts = Writer { model, statement, shared: &[], equal: 0 }.regions();
        if parts.contains(&full) {
            return true;
        }
        written.extend(parts);
    }
    covers(model, &full, &written, &model.size_facts)
}

fn undefined_problem(model: &Model, undefined: &Undefined) -> Diagnostic {
    let tensor = model.tensor(undefined.tensor);
    let element: Vec<String> = undefined.element.iter().map(i64::to_string).collect();
    let element = format!("{}({})", tensor.name, element.join(", "));
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
    undefined.witness.with_sizes(diagnostic, model)
}

/// Warns of temporaries that nothing reads, which are most likely mistakes.
fn warn_of_unused(model: &mut Model) {
    if model.incomplete || model.diagnostics.iter().any(Diagnostic::is_error) {
        return;
    }
    let mut used = vec![false; model.tensors.len()];
    for statement in &model.statements {
        for read in statement.lowered.iter().flat_map(|lowered| &lowered.reads) {
            used[read.access.tensor.index()] = true;
        }
        // A caller may ignore results of a call.
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
