//! Vectorises scatters, such as histograms: data chooses the element that an iteration updates.
//!
//! The updates are done one by one, since several of them may concern one element. But the
//! elements and the values of many iterations are computed at once:
//!
//! ```text
//! for x: h[bin(I[x])] += 1   →   for xo: vector xv in 64: h[bin(I[64*xo + xv])] += 1
//! ```

use tilewright_ir::nest::{Atom, LoopVarId};
use tilewright_target::Cpu;

use crate::analysis::{Stride, operations};
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopName, Step};

/// The most lanes: several registers for each step of a computation.
const LANES: i64 = 64;
/// The fewest lanes that are worth it.
const LEAST_LANES: i64 = 4;
/// The fewest operations of an update that are worth vectors.
const LEAST_OPERATIONS: usize = 3;
/// The most iterations of a loop over results that are unrolled inside the reduction. They share
/// what they read.
const MOST_UNROLLED: i64 = 4;

impl Planner<'_, Cpu> {
    /// Computes the elements and values of many updates at once.
    pub(super) fn vectorize_scatter(&mut self, statement: StatementId) -> bool {
        if self.operations_of_update(statement) < LEAST_OPERATIONS {
            return false;
        }
        let Some(along) = self.loop_of_updates(statement) else { return false };
        let results = self.loops_with(statement, LoopRole::Spatial);
        let (shared, outer): (Vec<LoopVarId>, Vec<LoopVarId>) =
            results.into_iter().partition(|var| self.trips(*var) <= MOST_UNROLLED);
        let mut reduced = self.loops_with(statement, LoopRole::Reduction);
        reduced.retain(|var| *var != along);
        let names = |loops: &[LoopVarId]| loops.iter().map(|var| self.loop_name(*var)).collect();
        let [outer, reduced, shared]: [Vec<LoopName>; 3] = [names(&outer), names(&reduced), names(&shared)];
        let along_name = self.loop_name(along);
        let order = [outer, reduced, shared.clone(), vec![along_name.clone()]].concat();
        if !self.arrange(statement, order) {
            return false;
        }
        let lane = match self.trips(along) > LANES {
            true => {
                let [outer, lane] = ["o", "v"].map(|part| format!("{}{part}", along_name.name));
                let (target, inner) = (along_name.clone(), vec![(lane.clone(), LANES)]);
                if !self.try_step(Step::Split { target, outer, inner }) {
                    return false;
                }
                along_name.statement.loop_named(lane)
            }
            false => along_name,
        };
        for name in shared {
            self.try_steps(|planner| planner.try_step(Step::Unroll(name)));
        }
        self.try_step(Step::Vectorize(lane))
    }

    /// The loop whose iterations become lanes: one along which neighbours are read, or else the
    /// last one.
    fn loop_of_updates(&self, statement: StatementId) -> Option<LoopVarId> {
        let mut reduced = self.loops_with(statement, LoopRole::Reduction);
        reduced.retain(|var| self.trips(*var) >= LEAST_LANES);
        let reads = self.draft.statement(statement).reads();
        let is_along =
            |var: &&LoopVarId| reads.iter().any(|read| self.stride(read, **var) == Stride::Elements(1));
        reduced.iter().rev().find(is_along).or(reduced.last()).copied()
    }

    fn operations_of_update(&self, statement: StatementId) -> usize {
        let own = self.draft.statement(statement);
        let mut all = operations(&own.value);
        for index in &own.target.indices {
            index.any_atom(&mut |atom| {
                if let Atom::Data(data) = atom {
                    all += operations(&data.value);
                }
                false
            });
        }
        all
    }
}
