//! Which instances of the program's statements a statement of the draft executes.
//!
//! An instance keeps its identity through every step: what a step does to subscripts, it does to the point of each instance.

use std::collections::BTreeSet;

use tilewright_ir::{IndexExpr, Program, TensorId, VarId};

use super::{rename, visit_index_reads, visit_reads};

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

/// The tensors that a program may change after it has read them: a later statement writes what an earlier one reads, or both
/// are in one ordered loop. What is computed from other tensors only is the same wherever it is computed.
pub(super) fn changing(program: &Program) -> BTreeSet<TensorId> {
    let statements = program.statements();
    let mut found = BTreeSet::new();
    let mut read: BTreeSet<TensorId> = BTreeSet::new();
    for (at, (statement, loops)) in statements.iter().enumerate() {
        let reads = reads_of(statement);
        if read.contains(&statement.target) || reads.contains(&statement.target) {
            found.insert(statement.target);
        }
        read.extend(reads);
        // In an ordered loop, later statements run before earlier ones of the next iteration.
        if let Some(outermost) = loops.first() {
            let together =
                |(_, others): &&(&tilewright_ir::Statement, Vec<VarId>)| others.first() == Some(outermost);
            let later = statements[at..].iter().filter(together);
            read.extend(later.flat_map(|(other, _)| reads_of(other)));
            if read.contains(&statement.target) {
                found.insert(statement.target);
            }
        }
    }
    found
}

fn reads_of(statement: &tilewright_ir::Statement) -> BTreeSet<TensorId> {
    let mut found = BTreeSet::new();
    visit_reads(&statement.value, &mut |access| _ = found.insert(access.tensor));
    for index in &statement.indices {
        visit_index_reads(index, &mut |access| _ = found.insert(access.tensor));
    }
    found
}

impl super::Draft<'_> {
    /// The tensors that the program may change after it has read them.
    pub fn changing_tensors(&self) -> &BTreeSet<TensorId> {
        &self.changing
    }
}
