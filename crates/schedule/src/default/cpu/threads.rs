//! Chooses the loop of a CPU statement that threads run in parallel: the outermost loop of the
//! result with at least two iterations for each core, or else the longest one. In an ordered loop,
//! each iteration runs in parallel if it has enough work.

use tilewright_ir::nest::{LoopKind, LoopVarId};
use tilewright_target::Cpu;

use crate::default::Planner;
use crate::draft::LoopRole;
use crate::step::{StatementName, Step};

/// The fewest points for which threads are worth their cost.
pub(super) const PARALLEL_POINTS: f64 = 30_000.0;

impl Planner<'_, Cpu> {
    /// Runs the outermost loop with enough iterations in parallel.
    pub(super) fn run_in_parallel(&mut self, name: &StatementName) -> bool {
        let Ok(statement) = self.draft.find_statement(name) else { return true };
        let mut path = self.draft.path(statement);
        // Threads start anew in each iteration of the ordered loops around.
        let ordered = path.iter().take_while(|var| self.draft.loop_of(**var).role == LoopRole::Ordered);
        path.drain(..ordered.count());
        let is_serial = |var: &LoopVarId| self.draft.loop_of(*var).kind == LoopKind::Serial;
        if path.is_empty() || path.iter().any(|var| self.draft.loop_of(*var).kind == LoopKind::Parallel) {
            return true;
        }
        let work: f64 = self.work_inside(path[0]);
        if work < PARALLEL_POINTS || self.machine.cores < 2 {
            return true;
        }
        let enough = |var: &LoopVarId| self.trips(*var) >= 2 * self.machine.cores as i64;
        let leading = path.iter().copied().take_while(|var| is_serial(var));
        let spatial: Vec<LoopVarId> =
            leading.take_while(|var| self.draft.loop_of(*var).role == LoopRole::Spatial).collect();
        let chosen = spatial
            .iter()
            .find(|var| enough(var))
            .or_else(|| spatial.iter().max_by_key(|var| self.trips(**var)));
        let Some(chosen) = chosen.copied().filter(|var| self.trips(*var) > 1) else { return true };
        let target = self.loop_name(chosen);
        if Some(&chosen) != spatial.first() {
            let mut order = vec![target.clone()];
            order.extend(spatial.iter().take_while(|var| **var != chosen).map(|var| self.loop_name(*var)));
            self.try_steps(|planner| planner.try_step(Step::Reorder { loops: order }));
        }
        self.try_step(Step::Parallel(target))
    }

    /// The number of points that all statements inside a loop compute.
    pub(super) fn work_inside(&self, var: LoopVarId) -> f64 {
        let inside = self.draft.statements_in(self.draft.body_of(var));
        inside.iter().map(|id| self.points(*id)).sum()
    }
}
