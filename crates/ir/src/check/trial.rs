//! Runs an unchecked program at small sizes, and tracks which elements are defined instead of their
//! values.
//!
//! `definedness` uses such a trial where a comparison of boxes proves nothing. The trial skips
//! reads that depend on data, so every element that it reports as undefined is undefined.

use std::collections::BTreeMap;

use super::Checker;
use super::definedness::Definedness;
use super::finding::{AccessId, Finding};
use super::witness::{Witness, range_ends, size_assignments};
use crate::index::IndexExpr;
use crate::program::{SymbolId, TensorId, Update, VarId};
use crate::unchecked::Source;
use crate::unchecked::tree::{Tree, build_tree};

/// The maximal number of statement points that the whole trial visits.
const BUDGET: usize = 2_000_000;
/// The maximal number of elements of a tensor in a trial.
const MOST_ELEMENTS: i64 = 4_000_000;
/// A quarter of the maximal number of size combinations that are tried.
const MOST_SIZES: usize = 64;

/// The outcome of a trial.
pub(super) enum TrialOutcome {
    /// An element that is needed and not defined.
    Found(Finding),
    /// The only possible sizes were run to the end, and no condition or index depended on data.
    Complete,
    Unknown,
}

/// Runs the function at small sizes, or at the given sizes.
pub(super) fn find_undefined(checker: &Checker<'_>, definedness: &[Definedness]) -> TrialOutcome {
    let unchecked = checker.unchecked;
    let symbols: Vec<SymbolId> = (0..unchecked.symbols.len())
        .filter(|at| unchecked.symbols[*at].value.is_none())
        .map(|at| SymbolId(at as u32))
        .collect();
    let runs: Vec<usize> =
        (0..unchecked.statements.len()).filter(|at| checker.parts(*at).is_some()).collect();
    let program = build_tree(unchecked, &runs);
    let mut budget = BUDGET;
    let mut complete = symbols.is_empty();
    for sizes in size_assignments(unchecked, &symbols).into_iter().take(MOST_SIZES * 4) {
        let Some(mut run) = Run::new(checker, definedness, sizes, &mut budget) else {
            complete = false;
            continue;
        };
        run.run(&program);
        complete &= run.certain && *run.budget > 0;
        if let Some(undefined) = run.found.take().or_else(|| run.undefined_result()) {
            return TrialOutcome::Found(undefined);
        }
    }
    if complete { TrialOutcome::Complete } else { TrialOutcome::Unknown }
}

struct Run<'a> {
    checker: &'a Checker<'a>,
    witness: Witness,
    shapes: Vec<Vec<i64>>,
    defined: Vec<Vec<bool>>,
    budget: &'a mut usize,
    found: Option<Finding>,
    /// Whether every condition and subscript of the reads could be evaluated.
    certain: bool,
}

impl<'a> Run<'a> {
    /// Prepares a run. Returns `None` for sizes that the program does not accept, or that are too
    /// large to try.
    fn new(
        checker: &'a Checker<'a>,
        definedness: &[Definedness],
        sizes: BTreeMap<SymbolId, i64>,
        budget: &'a mut usize,
    ) -> Option<Run<'a>> {
        let witness = Witness { sizes, vars: BTreeMap::new() };
        if checker.size_facts.iter().any(|fact| witness.eval(fact).is_none_or(|value| value < 0)) {
            return None;
        }
        let mut shapes = Vec::new();
        let mut defined = Vec::new();
        for (at, tensor) in checker.unchecked.tensors.iter().enumerate() {
            let input =
                matches!(tensor.source, Source::Input { .. }) || definedness[at] == Definedness::Caller;
            let shape: Vec<i64> =
                tensor.shape.iter().flatten().map(|extent| witness.eval(extent)).collect::<Option<_>>()?;
            let elements = shape.iter().try_fold(1i64, |product, extent| product.checked_mul(*extent))?;
            if input {
                defined.push(Vec::new());
            } else {
                defined
                    .push(vec![false; usize::try_from(elements).ok().filter(|_| elements <= MOST_ELEMENTS)?]);
            }
            shapes.push(shape);
        }
        Some(Run { checker, witness, shapes, defined, budget, found: None, certain: true })
    }

    fn run(&mut self, nodes: &[Tree]) {
        for node in nodes {
            if self.found.is_some() || *self.budget == 0 {
                return;
            }
            match node {
                Tree::Statement(at) => self.run_statement(*at),
                Tree::For(var, body) => {
                    let Some((from, to)) = range_ends(self.checker.unchecked, &self.witness, *var) else {
                        return;
                    };
                    for value in from..to {
                        self.witness.vars.insert(*var, value);
                        self.run(body);
                    }
                    if self.found.is_none() {
                        self.witness.vars.remove(var);
                    }
                }
            }
        }
    }

    fn run_statement(&mut self, at: usize) {
        let vars = self.checker.unchecked.statements[at].vars.clone();
        let mut written = Vec::new();
        self.visit_points(at, &vars, &mut written);
        let target = self.checker.unchecked.statements[at].target.index();
        if let Some(defined) = self.defined.get_mut(target).filter(|defined| !defined.is_empty()) {
            written.into_iter().for_each(|place| defined[place] = true);
        }
    }

    /// Visits every point of a statement: checks the elements that it reads, and collects those
    /// that it writes.
    fn visit_points(&mut self, at: usize, vars: &[VarId], written: &mut Vec<usize>) {
        if self.found.is_some() || *self.budget == 0 {
            return;
        }
        if let Some((var, rest)) = vars.split_first() {
            let Some((from, to)) = range_ends(self.checker.unchecked, &self.witness, *var) else { return };
            for value in from..to {
                self.witness.vars.insert(*var, value);
                self.visit_points(at, rest, written);
            }
            if self.found.is_none() {
                self.witness.vars.remove(var);
            }
            return;
        }
        *self.budget -= 1;
        let statement = &self.checker.unchecked.statements[at];
        let Some(parts) = self.checker.parts(at) else { return };
        for (place, read) in parts.reads.iter().enumerate().filter(|(_, read)| !read.is_existence_only) {
            let verdicts: Vec<Option<bool>> =
                read.guards.iter().map(|guard| self.witness.allows(guard)).collect();
            if verdicts.iter().all(|verdict| *verdict == Some(true)) {
                let access = AccessId { statement: at, read: Some(place) };
                self.require_defined(access, read.access.tensor, &read.access.indices);
            } else if !verdicts.contains(&Some(false)) {
                self.certain = false;
            }
        }
        if statement.reads_target() {
            let access = AccessId { statement: at, read: None };
            return self.require_defined(access, statement.target, &parts.indices);
        }
        match self.element_offset(statement.target, &parts.indices) {
            Some(place) => written.push(place),
            None if matches!(statement.update, Update::Reduce { reset: true, .. }) => {
                written.extend(0..self.defined[statement.target.index()].len());
            }
            None => {}
        }
    }

    /// The position of an element in row-major order, if its indices are known and within the
    /// tensor.
    fn element_offset(&self, tensor: TensorId, indices: &[IndexExpr]) -> Option<usize> {
        let mut place = 0i64;
        for (index, extent) in indices.iter().zip(&self.shapes[tensor.index()]) {
            let value = self.witness.eval(index).filter(|value| (0..*extent).contains(value))?;
            place = place * extent + value;
        }
        usize::try_from(place).ok()
    }

    fn require_defined(&mut self, access: AccessId, tensor: TensorId, indices: &[IndexExpr]) {
        let Some(place) = self.element_offset(tensor, indices) else {
            self.certain = false;
            return;
        };
        if self.defined[tensor.index()].get(place) == Some(&false) && self.found.is_none() {
            let element = indices.iter().filter_map(|index| self.witness.eval(index)).collect();
            let witness = self.witness.clone();
            self.found = Some(Finding::UndefinedRead { tensor, element, access, witness });
        }
    }

    /// A result element that was never defined. Returns `None` if the budget ran out before the
    /// end.
    fn undefined_result(self) -> Option<Finding> {
        if *self.budget == 0 {
            return None;
        }
        let results = self
            .checker
            .unchecked
            .tensors
            .iter()
            .enumerate()
            .filter(|(_, tensor)| tensor.source == Source::Result);
        let (at, place) = results
            .filter_map(|(at, _)| {
                self.defined[at].iter().position(|defined| !defined).map(|place| (at, place))
            })
            .next()?;
        let mut element = Vec::new();
        let mut rest = place as i64;
        for extent in self.shapes[at].iter().rev() {
            element.insert(0, rest % extent);
            rest /= extent;
        }
        Some(Finding::UndefinedResult { tensor: TensorId(at as u32), element, witness: self.witness })
    }
}
