//! Finds the statements of a draft that it does not share with another draft, where one of the two
//! was made from the other. A statement that was rewritten to an equal one counts as not shared.

use std::collections::BTreeSet;

use tilewright_ir::nest::{BufferId, LoopVarId};

use super::{Draft, Node, StatementId};

impl Draft<'_> {
    /// The statements that differ from those of another draft: by themselves, by the loops around
    /// them, or by the buffer that they write.
    pub fn statements_changed_since(&self, other: &Draft) -> BTreeSet<StatementId> {
        let statements = self.statements.changed_since(&other.statements).into_iter();
        let moved = self.links.statement_parents.changed_since(&other.links.statement_parents);
        let inside = self
            .loops_changed_since(other)
            .into_iter()
            .flat_map(|var| self.statements_in(&[Node::Loop(var)]));
        let buffers = self.buffers.changed_since(&other.buffers).into_iter();
        let writers = buffers.flat_map(|at| {
            let writes = move |id: &StatementId| self.statement(*id).target.tensor == BufferId(at as u32);
            self.buffers[at].users.iter().copied().filter(writes)
        });
        statements.chain(moved).map(StatementId).chain(inside).chain(writers).collect()
    }

    fn loops_changed_since(&self, other: &Draft) -> BTreeSet<LoopVarId> {
        let changed = self.loops.changed_since(&other.loops).into_iter();
        let moved = self.links.loop_parents.changed_since(&other.links.loop_parents);
        changed.chain(moved).map(|at| LoopVarId(at as u32)).collect()
    }
}
