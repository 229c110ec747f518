//! Computes the properties of statements and loops from which the default schedule is planned: trip
//! counts, loops by role, numbers of computed points, and strides in memory.

use tilewright_ir::nest::{Access, LoopVarId};

use super::Planner;
use crate::analysis::{Stride, stride};
use crate::draft::{LoopRole, StatementId};

impl<M> Planner<'_, M> {
    /// The largest number of iterations of a loop.
    pub fn trips(&self, var: LoopVarId) -> i64 {
        self.draft.trips(var)
    }

    /// The statement's own loops of one role, outermost first.
    pub fn loops_with(&self, statement: StatementId, role: LoopRole) -> Vec<LoopVarId> {
        let own = self.draft.loops_owned_by(statement);
        own.into_iter().filter(|var| self.draft.loop_of(*var).role == role).collect()
    }

    /// The number of points that a statement computes.
    pub fn points(&self, statement: StatementId) -> f64 {
        self.draft.points(statement)
    }

    /// The distance in memory that an access moves with a loop.
    pub fn stride(&self, access: &Access, var: LoopVarId) -> Stride {
        let buffer = &self.draft.buffers[access.tensor.index()].buffer;
        stride(&access.indices, &buffer.strides(), var)
    }
}
