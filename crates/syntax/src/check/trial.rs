//! Runs a function at small sizes and tracks which elements are defined instead of their values.
//!
//! `definedness` uses a trial where boxes cannot decide. The trial skips reads that depend on data,
//! so every element that it reports as undefined really is.

use std::collections::BTreeMap;

use tilewright_ir::{IndexExpr, TensorId, VarId};

use super::definedness::Supply;
use super::model::{Model, Read, Source};
use super::nest::{Nest, nest};
use super::witness::{Witness, assignments, extent};
use crate::ast::AssignOp;

/// The maximal number of statement points that the whole trial visits.
const BUDGET: usize = 2_000_000;
/// The maximal number of elements of a tensor in a trial.
const MOST_ELEMENTS: i64 = 4_000_000;
/// A quarter of the maximal number of size combinations that are tried.
const MOST_SIZES: usize = 64;

/// An element that is needed and not defined.
pub(super) struct Undefined {
    pub tensor: TensorId,
    pub element: Vec<i64>,
    pub witness: Witness,
    /// The reading statement, with the access, or with `None` for its own target. The whole field
    /// is `None` for a result that is undefined at the end.
    pub read: Option<(usize, Option<Read>)>,
}

/// The outcome of a trial.
pub(super) enum Trial {
    /// An element that is needed and not defined.
    Found(Undefined),
    /// The only possible sizes were run to the end, and no condition or index depended on data.
    Complete,
    Unknown,
}

/// Runs the function at small sizes, or at the given sizes.
pub(super) fn find_undefined(model: &Model, supplies: &[Supply]) -> Trial {
    let symbols: Vec<_> = (0..model.symbols.len())
        .filter(|at| model.symbols[*at].value.is_none())
        .map(|at| tilewright_ir::SymbolId(at as u32))
        .collect();
    let program = nest(model);
    let mut budget = BUDGET;
    let mut complete = symbols.is_empty();
    for sizes in assignments(model, &symbols).into_iter().take(MOST_SIZES * 4) {
        let Some(mut run) = Run::new(model, supplies, sizes, &mut budget) else {
            complete = false;
            continue;
        };
        run.run(&program);
        complete &= run.certain && *run.budget > 0;
        if let Some(undefined) = run.found.take().or_else(|| run.undefined_result()) {
            return Trial::Found(undefined);
        }
    }
    if complete { Trial::Complete } else { Trial::Unknown }
}

struct Run<'a> {
    model: &'a Model,
    witness: Witness,
    shapes: Vec<Vec<i64>>,
    defined: Vec<Vec<bool>>,
    budget: &'a mut usize,
    found: Option<Undefined>,
    /// Whether every condition and subscript of the reads could be evaluated.
    certain: bool,
}

impl<'a> Run<'a> {
    /// Prepares a run. Returns `None` for sizes that the program does not accept, or that are too
    /// large to try.
    fn new(
        model: &'a Model,
        supplies: &[Supply],
        sizes: BTreeMap<tilewright_ir::SymbolId, i64>,
        budget: &'a mut usize,
    ) -> Option<Run<'a>> {
        let witness = Witness { sizes, vars: BTreeMap::new() };
        if model.size_facts.iter().any(|fact| witness.eval(fact).is_none_or(|value| value < 0)) {
            return None;
        }
        let mut shapes = Vec::new();
        let mut defined = Vec::new();
        for (at, tensor) in model.tensors.iter().enumerate() {
            let input = matches!(tensor.source, Source::Param { .. }) || supplies[at] == Supply::Caller;
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
        Some(Run { model, witness, shapes, defined, budget, found: None, certain: true })
    }

    fn run(&mut self, nodes: &[Nest]) {
        for node in nodes {
            if self.found.is_some() || *self.budget == 0 {
                return;
            }
            match node {
                Nest::Statement(at) => self.statement(*at),
                Nest::For(id, body) => {
                    let var = self.model.loops[id.0].var;
                    let Some((from, to)) = extent(self.model, &self.witness, var) else { return };
                    for value in from..to {
                        self.witness.vars.insert(var, value);
                        self.run(body);
                    }
                    if self.found.is_none() {
                        self.witness.vars.remove(&var);
                    }
                }
            }
        }
    }

    fn statement(&mut self, at: usize) {
        let vars = self.model.statements[at].vars.clone();
        let mut written = Vec::new();
        self.points(at, &vars, &mut written);
        let target = self.model.statements[at].target.index();
        if let Some(defined) = self.defined.get_mut(target).filter(|defined| !defined.is_empty()) {
            written.into_iter().for_each(|place| defined[place] = true);
        }
    }

    /// Visits every point of a statement: checks the elements that it reads, and collects those
    /// that it writes.
    fn points(&mut self, at: usize, vars: &[VarId], written: &mut Vec<usize>) {
        if self.found.is_some() || *self.budget == 0 {
            return;
        }
        if let Some((var, rest)) = vars.split_first() {
            let Some((from, to)) = extent(self.model, &self.witness, *var) else { return };
            for value in from..to {
                self.witness.vars.insert(*var, value);
                self.points(at, rest, written);
            }
            if self.found.is_none() {
                self.witness.vars.remove(var);
            }
            return;
        }
        *self.budget -= 1;
        let statement = &self.model.statements[at];
        let Some(lowered) = &statement.lowered else { return };
        for read in lowered.reads.iter().filter(|read| !read.exists) {
            let verdicts: Vec<Option<bool>> = read
                .guards
                .iter()
                .map(|(guard, holds)| self.witness.holds(guard).map(|truth| truth == *holds))
                .collect();
            if verdicts.iter().all(|verdict| *verdict == Some(true)) {
                self.need(at, read.access.tensor, &read.access.indices, Some(read));
            } else if !verdicts.contains(&Some(false)) {
                self.certain = false;
            }
        }
        if statement.reads_target() {
            return self.need(at, statement.target, &lowered.indices, None);
        }
        match self.place(statement.target, &lowered.indices) {
            Some(place) => written.push(place),
            None if matches!(statement.op, AssignOp::Reduce { reset: true, .. }) => {
                written.extend(0..self.defined[statement.target.index()].len());
            }
            None => {}
        }
    }

    /// The position of an element in row-major order, if its indices are known and within the
    /// tensor.
    fn place(&self, tensor: TensorId, indices: &[IndexExpr]) -> Option<usize> {
        let mut place = 0i64;
        for (index, extent) in indices.iter().zip(&self.shapes[tensor.index()]) {
            let value = self.witness.eval(index).filter(|value| (0..*extent).contains(value))?;
            place = place * extent + value;
        }
        usize::try_from(place).ok()
    }

    fn need(&mut self, at: usize, tensor: TensorId, indices: &[IndexExpr], read: Option<&Read>) {
        let Some(place) = self.place(tensor, indices) else {
            self.certain = false;
            return;
        };
        if self.defined[tensor.index()].get(place) == Some(&false) && self.found.is_none() {
            let element = indices.iter().filter_map(|index| self.witness.eval(index)).collect();
            let witness = self.witness.clone();
            self.found = Some(Undefined { tensor, element, witness, read: Some((at, read.cloned())) });
        }
    }

    /// A result element that was never defined. Returns `None` if the budget ran out before the
    /// end.
    fn undefined_result(self) -> Option<Undefined> {
        if *self.budget == 0 {
            return None;
        }
        let results =
            self.model.tensors.iter().enumerate().filter(|(_, tensor)| tensor.source == Source::Result);
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
        Some(Undefined { tensor: TensorId(at as u32), element, witness: self.witness, read: None })
    }
}
