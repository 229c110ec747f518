//! Records which instances of the program's statements a statement of the draft executes. An
//! instance is one execution of a statement, at one point of its variables.
//!
//! An instance keeps its identity through every step: a step that rewrites subscripts rewrites the
//! point of each instance in the same way.

use tilewright_ir::Program;
use tilewright_ir::nest::{Access, IndexExpr, LoopVarId};

use super::{Draft, Statement, StatementId, replace_var};

/// Instances of one program statement, in terms of the loops around a statement of the draft.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Instance {
    /// The statement, as its index in [`Program::statements`].
    pub statement: usize,
    /// The values of the statement's variables: first those of the ordered loops around it, then
    /// its own. `None` stands for all values, as in the final sum of an `rfactor`.
    pub point: Vec<Option<IndexExpr>>,
    /// Whether the draft's statement reduces partial totals instead of the values of the program's
    /// statement.
    pub sums_partials: bool,
}

impl Instance {
    /// Rewrites the values of the variables.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        for value in self.point.iter_mut().flatten() {
            *value = map(value);
        }
    }

    /// Returns the instance for a statement that adds up partial totals. `inside` holds the loops
    /// of the old statement that are not around the new one. `copies` pairs some of these loops
    /// with their copies around the new statement. A variable that depends on an uncopied loop of
    /// `inside` takes all values.
    pub fn as_sum_of_partials(&self, copies: &[(LoopVarId, LoopVarId)], inside: &[LoopVarId]) -> Instance {
        let known_value = |value: &IndexExpr| {
            let renamed =
                copies.iter().fold(value.clone(), |value, (from, to)| replace_var(&value, *from, *to));
            let is_known = !renamed.vars().iter().any(|var| inside.contains(var));
            is_known.then_some(renamed)
        };
        let point = self.point.iter().map(|value| value.as_ref().and_then(known_value)).collect();
        Instance { statement: self.statement, point, sums_partials: true }
    }
}

/// For each tensor, the last statement that writes it, if any.
pub(super) fn last_writers(program: &Program) -> Vec<Option<usize>> {
    let mut last = vec![None; program.tensors.len()];
    for (at, (statement, _)) in program.statements().iter().enumerate() {
        last[statement.target.index()] = Some(at);
    }
    last
}

impl Draft<'_> {
    /// Returns true when the program changes a tensor that a statement reads after the first of the
    /// statement's instances, or may do so. A value computed from unchanged tensors is the same
    /// wherever it is computed. Statements that steps move are outside ordered loops, so everything
    /// before them in the text runs before them.
    pub fn reads_tensor_changed_later(&self, id: StatementId) -> bool {
        let statement = self.statement(id);
        let Some(first) = statement.first_instance() else { return false };
        let is_changed = |read: &Access| {
            let last = self.tensor_of(read.tensor).and_then(|tensor| self.last_writers[tensor.index()]);
            last.is_some_and(|last| last > first)
        };
        statement.reads().iter().any(is_changed)
    }
}

impl Statement {
    /// The first program statement that this statement executes instances of; none for a copy.
    pub fn first_instance(&self) -> Option<usize> {
        self.instances.iter().map(|instance| instance.statement).min()
    }
}
