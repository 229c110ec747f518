//! Gives each GPU thread adjacent results, so that it loads and stores several elements with one
//! access.
//!
//! All loops of the result are fused, and each thread takes as many iterations as one access
//! covers. That pays only where every access moves along with the result. Operands that are
//! shifted, behind a condition or in another row would be read one by one, and the accesses of
//! neighbouring threads would not be adjacent.

use tilewright_ir::nest::{Access, Atom, IndexExpr, LoopVarId};
use tilewright_target::Gpu;

use crate::analysis::iterations;
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::step::Step;

/// The most bytes of one access; below, the numbers of elements in order of preference.
const WIDEST_ACCESS: i64 = 16;
const LANES: [i64; 2] = [4, 2];

impl Planner<'_, Gpu> {
    /// Distributes a statement without a reduction over threads, each of which has several adjacent
    /// results.
    pub(super) fn spread_in_lanes(&mut self, statement: StatementId) -> bool {
        let Some(lanes) = self.lanes_of_thread(statement) else { return false };
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let Some(all) = self.fuse_loops(statement, &spatial, "t") else { return false };
        let (own, outer, lane) =
            (self.name_of(statement), self.unused_name("lanes"), self.unused_name("lane"));
        let split = Step::Split { target: all, outer, inner: vec![(lane.clone(), lanes)] };
        let lane = own.loop_named(lane);
        self.try_step(split)
            && self.try_step(Step::Vectorize(lane.clone()))
            && self.spread_all(statement, Some(&lane))
    }

    /// The number of a thread's results that one access covers, if enough threads remain.
    fn lanes_of_thread(&self, statement: StatementId) -> Option<i64> {
        if !self.loops_with(statement, LoopRole::Reduction).is_empty() {
            return None;
        }
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let results = iterations(spatial.iter().map(|var| self.trips(*var)));
        let target = self.draft.statement(statement).target.tensor;
        let bytes = self.draft.buffers[target.index()].buffer.dtype.bytes() as i64;
        let fits = |lanes: &i64| {
            let divides = lanes * bytes <= WIDEST_ACCESS && results % lanes == 0;
            divides
                && results / lanes >= self.enough_threads()
                && self.moves_along(statement, &spatial, *lanes)
        };
        LANES.into_iter().find(fits)
    }

    /// Returns true when the result, and all operands that depend on the last loop, are contiguous
    /// from a multiple of `lanes` on.
    fn moves_along(&self, statement: StatementId, loops: &[LoopVarId], lanes: i64) -> bool {
        let Some(last) = loops.last() else { return false };
        let own = self.draft.statement(statement);
        let certain = own.value.certain_loads();
        let moves = |access: &Access| access.indices.iter().any(|index| index.mentions(*last));
        self.is_aligned(&own.target, loops, lanes)
            && own
                .reads()
                .iter()
                .all(|read| !moves(read) || (certain.contains(&read) && self.is_aligned(read, loops, lanes)))
    }

    fn is_aligned(&self, access: &Access, loops: &[LoopVarId], lanes: i64) -> bool {
        let Some(last) = loops.last() else { return false };
        let strides = self.draft.buffers[access.tensor.index()].buffer.strides();
        let parts = access.indices.iter().zip(strides).map(|(index, stride)| index.scale(stride));
        let place = parts.fold(IndexExpr::constant(0), |sum, part| sum.add(&part)).merge_quotients();
        // The offset counts one element after the other, however long the rows are.
        let whole = loops
            .iter()
            .fold(IndexExpr::constant(0), |row, var| row.scale(self.trips(*var)).add(&IndexExpr::var(*var)));
        let in_rows = place.split_on(&Atom::Var(*last)).is_some_and(|(step, row)| {
            let is_multiple = row.constant_part() % lanes == 0
                && row.terms().iter().all(|term| term.coefficient % lanes == 0);
            step.as_constant() == Some(1) && !row.mentions(*last) && is_multiple
        });
        place == whole || (in_rows && self.trips(*last) % lanes == 0)
    }
}
