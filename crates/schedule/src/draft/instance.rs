//! Which instances of the program's statements a statement of the draft executes.
//!
//! An instance keeps its identity through every step: what a step does to subscripts, it does to the point of each instance.

use tilewright_ir::{Access, IndexExpr, Program, VarId};

use super::{Draft, Statement, StatementId, rename};

/// Instances of one statement of the program, in terms of the loops around a statement of the draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// The statement, by its place in [`Program::statements`].
    pub statement: usize,
    /// The values of its variables: those of the ordered loops around it, then its own. None stands for all values, as in the
    /// last sum of an `rfactor`.
    pub point: Vec<Option<IndexExpr>>,
    /// Whether totals of parts are reduced, and not the values of the statement.
    pub is_total: bool,
}

impl Instance {
    /// Rewrites the values of its variables.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        for value in self.point.iter_mut().flatten() {
            *value = map(value);
        }
    }

    /// The same of a statement that adds up totals. `inside`: the loops of the old statement that are not around the new one;
    /// `copies`: those of them that it has copies of. Variables that the others decide have all values.
    pub fn of_total(&self, copies: &[(VarId, VarId)], inside: &[VarId]) -> Instance {
        let told = |value: &IndexExpr| {
            let renamed = copies.iter().fold(value.clone(), |value, (from, to)| rename(&value, *from, *to));
            let is_known = !renamed.vars().iter().any(|var| inside.contains(var));
            is_known.then_some(renamed)
        };
        let point = self.point.iter().map(|value| value.as_ref().and_then(told)).collect();
        Instance { statement: self.statement, point, is_total: true }
    }
}

/// For each tensor, the last statement that writes it, if any does.
pub(super) fn last_writers(program: &Program) -> Vec<Option<usize>> {
    let mut last = vec![None; program.tensors.len()];
    for (at, (statement, _)) in program.statements().iter().enumerate() {
        last[statement.target.index()] = Some(at);
    }
    last
}

impl Draft<'_> {
    /// Whether the program changes a tensor that a statement reads, or may do so, after the first of its instances. What is
    /// computed from other tensors only is the same wherever it is computed. Statements that are moved are outside of
    /// ordered loops, so whatever comes before them in the text runs before them.
    pub fn reads_changing(&self, id: StatementId) -> bool {
        let statement = self.statement(id);
        let Some(first) = statement.first_instance() else { return false };
        let is_changed = |read: &Access| {
            self.last_writers.get(read.tensor.index()).copied().flatten().is_some_and(|last| last > first)
        };
        statement.reads().iter().any(is_changed)
    }
}

impl Statement {
    /// The first statement of the program of which it executes instances; none for a copy.
    pub fn first_instance(&self) -> Option<usize> {
        self.instances.iter().map(|instance| instance.statement).min()
    }
}
