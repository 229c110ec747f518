//! Checks that every element is defined before it is used.
//!
//! A result that is read before any statement writes it is in-out: the caller supplies it. For
//! every other tensor, an earlier statement must have written each element that is read, or an
//! earlier iteration of a loop around both statements. A result must be defined in full. Written
//! and read elements are boxes, which `regions` compares. Where the comparison fails to prove
//! coverage, `trial` runs the function at small sizes. If the trial does not decide either, the
//! compiler fills the tensor with 0 first.

use std::collections::BTreeSet;

use super::Checker;
use super::facts::fact_alternatives;
use super::finding::Finding;
use super::regions::{Region, SteppedInterval, covers, dense_step, whole_tensor};
use super::trial::{TrialOutcome, find_undefined};
use crate::expr::Access;
use crate::index::{Atom, IndexExpr};
use crate::interval::{Knowledge, lower_bound, upper_bound};
use crate::program::{Range, SymbolId, TensorId, Update, VarId};
use crate::prove::{can_prove_nonnegative, larger, smaller};
use crate::unchecked::{Read, Source, Statement};

/// How the content of a tensor that the program writes is defined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Definedness {
    /// The program provably defines it.
    Proved,
    /// No undefined element was found, but there is no proof.
    Unproved,
    /// The caller supplies the tensor and the program updates it.
    Caller,
}

/// Determines how every tensor is supplied, and reports undefined elements.
pub(super) fn check(checker: &mut Checker<'_>) -> Vec<Definedness> {
    let unchecked = checker.unchecked;
    if unchecked.is_incomplete {
        // The missing statements may define these elements.
        return vec![Definedness::Proved; unchecked.tensors.len()];
    }
    let mut definedness = classify_tensors(checker);
    let mut unproved: Vec<TensorId> =
        (0..unchecked.statements.len()).flat_map(|at| unproved_reads(checker, at, &definedness)).collect();
    for id in (0..unchecked.tensors.len()).map(|at| TensorId(at as u32)) {
        let result =
            unchecked.tensor(id).source == Source::Result && definedness[id.index()] == Definedness::Proved;
        if result && checker.is_checkable(id) && !is_covered(checker, id) {
            unproved.push(id);
        }
    }
    if let (Some(first), false) = (unproved.first(), checker.suspect.contains(&true)) {
        match find_undefined(checker, &definedness) {
            TrialOutcome::Found(undefined) => checker.report(undefined),
            TrialOutcome::Complete => {}
            TrialOutcome::Unknown => {
                checker.report(Finding::MaybeUndefined(*first));
                unproved.iter().for_each(|id| definedness[id.index()] = Definedness::Unproved);
            }
        }
    }
    definedness
}

/// Finds the tensors that the caller supplies, because their first use is a read.
fn classify_tensors(checker: &mut Checker<'_>) -> Vec<Definedness> {
    let unchecked = checker.unchecked;
    let updated = |source| if source == Source::Updated { Definedness::Caller } else { Definedness::Proved };
    let mut definedness: Vec<Definedness> =
        unchecked.tensors.iter().map(|tensor| updated(tensor.source)).collect();
    let mut written = vec![false; unchecked.tensors.len()];
    for (at, statement) in unchecked.statements.iter().enumerate() {
        for (tensor, read) in used_tensors(checker, at) {
            let input = matches!(unchecked.tensor(tensor).source, Source::Input { .. });
            let known = input || definedness[tensor.index()] == Definedness::Caller;
            if written[tensor.index()] || known || checker.is_suspect(tensor) {
                continue;
            }
            // A recurrence may read only elements that its earlier iterations have written.
            let has_earlier_iterations =
                !statement.loops.is_empty() && unchecked.tensor(tensor).shape.is_some();
            if has_earlier_iterations && read.is_some_and(|read| is_defined(checker, at, read)) {
                continue;
            }
            definedness[tensor.index()] = Definedness::Caller;
            checker.findings.extend(first_read(checker, tensor, at, read));
        }
        written[statement.target.index()] = true;
    }
    definedness
}

/// The tensors that a statement reads, each with the position of the read, or with `None` for the
/// target that the statement reduces into.
fn used_tensors(checker: &Checker<'_>, at: usize) -> Vec<(TensorId, Option<usize>)> {
    let Some(parts) = checker.parts(at) else { return Vec::new() };
    let statement = &checker.unchecked.statements[at];
    let reads = parts.reads.iter().enumerate().filter(|(_, read)| !read.is_existence_only);
    let reads = reads.map(|(place, read)| (read.access.tensor, Some(place)));
    reads.chain(statement.reads_target().then_some((statement.target, None))).collect()
}

/// The finding about a tensor whose first use is a read.
fn first_read(
    checker: &Checker<'_>,
    tensor: TensorId,
    statement: usize,
    read: Option<usize>,
) -> Option<Finding> {
    match (checker.unchecked.tensor(tensor).source, read) {
        (Source::Result, Some(_)) => None,
        (Source::Result, None) => Some(Finding::UninitializedReduction { tensor, statement }),
        _ => Some(Finding::ReadBeforeWrite { tensor, statement, read }),
    }
}

/// Returns true when the elements of a read, by its position, are provably defined.
fn is_defined(checker: &Checker<'_>, at: usize, read: usize) -> bool {
    checker.parts(at).is_some_and(|parts| read_is_defined(checker, at, &parts.reads[read]))
}

/// The maximal number of values of a variable that is expanded value by value.
const MOST_VALUES: i64 = 16;

/// The ranges of a writer's variables, as seen from a reader. The first `equal` loops around both
/// statements have the same value in the writer as in the reader. The next shared loop has an
/// earlier value in the writer, unless all shared loops are equal. All other variables have their
/// whole range.
struct WriterRanges<'a> {
    checker: &'a Checker<'a>,
    at: usize,
    shared: &'a [VarId],
    equal_loops: usize,
}

impl Knowledge for WriterRanges<'_> {
    fn range(&self, var: VarId) -> Option<Range> {
        let range = self.checker.range(var);
        let level = self.shared.iter().position(|shared| *shared == var);
        match level {
            Some(level) if level < self.equal_loops => None,
            Some(level) if level == self.equal_loops => {
                range.map(|range| Range { to: IndexExpr::var(var), ..range })
            }
            _ => range,
        }
    }
    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.checker.least(symbol)
    }
    fn facts(&self) -> &[IndexExpr] {
        self.checker.facts()
    }
}

impl WriterRanges<'_> {
    fn statement(&self) -> &Statement {
        &self.checker.unchecked.statements[self.at]
    }

    /// Boxes of elements that the statement certainly fills.
    fn regions(&self) -> Vec<Region> {
        let Some(parts) = self.checker.parts(self.at) else { return Vec::new() };
        if !self.certainly_runs(&parts.indices) {
            return Vec::new();
        }
        if parts.indices.iter().any(IndexExpr::has_data) {
            let resets = matches!(self.statement().update, Update::Reduce { reset: true, .. });
            let shape = self.checker.unchecked.tensor(self.statement().target).shape.as_ref();
            return shape.filter(|_| resets).map(|shape| whole_tensor(shape)).into_iter().collect();
        }
        let mut regions = Vec::new();
        self.add_regions(&parts.indices, &mut regions);
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
            let step = dense_step(self.checker, index, &extent)?;
            Some(SteppedInterval { low: lower_bound(index, self)?, high: upper_bound(index, self)?, step })
        };
        indices.iter().map(interval).collect()
    }

    /// Returns true when no other variable varies in the index, so that an empty range of the
    /// variable makes the interval empty.
    fn is_only_varying_var(&self, index: &IndexExpr, var: VarId) -> bool {
        index.mentions(var)
            && index.vars().into_iter().all(|other| other == var || self.range(other).is_none())
    }

    /// Returns true when every loop around the statement runs, or when an empty loop makes an empty
    /// box. The box is empty if the loop's variable is alone in an index. Other ordered loops,
    /// which may be empty, must provably run.
    fn certainly_runs(&self, indices: &[IndexExpr]) -> bool {
        self.statement().loops.iter().all(|var| match self.range(*var) {
            None => true,
            Some(_) if indices.iter().any(|index| self.is_only_varying_var(index, *var)) => true,
            Some(range) => can_prove_nonnegative(&range.extent().offset(-1), &[], self.checker),
        })
    }
}

/// Returns true when a statement defines its elements without reading their old content.
fn defines_target(statement: &Statement) -> bool {
    !statement.reads_target()
}

/// Every box that is written before the statement at `reader` runs.
fn regions_written_before<'a>(
    checker: &'a Checker<'a>,
    tensor: TensorId,
    reader: usize,
) -> impl Iterator<Item = Region> + 'a {
    let reading = &checker.unchecked.statements[reader];
    let statements = checker.unchecked.statements.iter().enumerate();
    let writers = statements.filter(move |(_, writer)| writer.target == tensor && defines_target(writer));
    writers.flat_map(move |(at, statement)| {
        let common =
            statement.loops.iter().zip(&reading.loops).take_while(|(left, right)| left == right).count();
        let shared = &reading.loops[..common];
        // These are earlier iterations of the loops around both, and the same iteration if the
        // writer comes first.
        let levels = if at < reader { common + 1 } else { common };
        (0..levels).flat_map(move |equal| WriterRanges { checker, at, shared, equal_loops: equal }.regions())
    })
}

/// The tensors that the statement reads or accumulates into without a proof that the elements are
/// defined.
fn unproved_reads(checker: &Checker<'_>, at: usize, definedness: &[Definedness]) -> Vec<TensorId> {
    let statement = &checker.unchecked.statements[at];
    let Some(parts) = checker.parts(at) else { return Vec::new() };
    let needs = |tensor: TensorId| {
        !matches!(checker.unchecked.tensor(tensor).source, Source::Input { .. })
            && definedness[tensor.index()] == Definedness::Proved
            && checker.is_checkable(tensor)
    };
    let access =
        Access { tensor: statement.target, indices: parts.indices.clone(), origin: Default::default() };
    let own = Read { access, guards: Vec::new(), is_existence_only: !statement.reads_target() };
    let reads =
        parts.reads.iter().chain([&own]).filter(|read| !read.is_existence_only && needs(read.access.tensor));
    reads.filter(|read| !read_is_defined(checker, at, read)).map(|read| read.access.tensor).collect()
}

fn read_is_defined(checker: &Checker<'_>, at: usize, read: &Read) -> bool {
    let statement = &checker.unchecked.statements[at];
    let Some(shape) = &checker.unchecked.tensor(read.access.tensor).shape else { return true };
    // Most tensors are written in full by one statement, and the region that is read needs proofs.
    // The search ends at this statement: there may be hundreds of updates after it.
    let full = whole_tensor(shape);
    let mut written = Vec::new();
    for region in regions_written_before(checker, read.access.tensor, at) {
        if region == full {
            return true;
        }
        written.push(region);
    }
    let own = WriterRanges { checker, at, shared: &statement.loops, equal_loops: statement.loops.len() };
    let interval = |(index, extent): (&IndexExpr, &IndexExpr)| {
        let known = |bound: Option<IndexExpr>| bound.filter(|_| !index.has_data());
        // Conditions keep the access within the tensor, so the read region is clamped to the
        // tensor.
        let (first, last) = (IndexExpr::constant(0), extent.offset(-1));
        SteppedInterval {
            low: known(lower_bound(index, &own)).map_or(first.clone(), |low| larger(&low, &first, checker)),
            high: known(upper_bound(index, &own)).map_or(last.clone(), |high| smaller(&high, &last, checker)),
            step: 1,
        }
    };
    let region: Region = read.access.indices.iter().zip(shape).map(interval).collect();
    if written.contains(&region) {
        return true;
    }
    let ends: Vec<&IndexExpr> = region.iter().flat_map(|interval| [&interval.low, &interval.high]).collect();
    let sizes = checker.relevant_facts(statement, &ends);
    fact_alternatives(&read.guards).iter().all(|guards| {
        // A condition on only the variables of outer loops holds for the whole region.
        let outer = |fact: &&IndexExpr| fact.vars().iter().all(|var| !statement.vars.contains(var));
        let facts: Vec<IndexExpr> = guards.iter().filter(outer).chain(&sizes).cloned().collect();
        covers(checker, &region, &written, &facts)
    })
}

fn is_covered(checker: &Checker<'_>, id: TensorId) -> bool {
    let Some(shape) = &checker.unchecked.tensor(id).shape else { return true };
    let full = whole_tensor(shape);
    let mut written = Vec::new();
    let writes = |statement: &Statement| statement.target == id && defines_target(statement);
    for (at, _) in checker.unchecked.statements.iter().enumerate().filter(|(_, statement)| writes(statement))
    {
        let parts = WriterRanges { checker, at, shared: &[], equal_loops: 0 }.regions();
        if parts.contains(&full) {
            return true;
        }
        written.extend(parts);
    }
    covers(checker, &full, &written, &checker.size_facts)
}
