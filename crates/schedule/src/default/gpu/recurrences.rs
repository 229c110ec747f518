//! Distributes the statements of ordered loops, so that one kernel runs a whole loop instead of one
//! kernel for each of its iterations.
//!
//! In a scan down the columns of an image, every column is a recurrence of its own. Its thread runs
//! the ordered loop, and no thread waits for another:
//!
//! ```text
//! for y: for x: O[y, x] = O[y-1, x] + I[y, x]   →   thread x: for y: O[y, x] = …
//! ```
//!
//! Where an iteration needs what other threads have computed before, the loop runs inside a block:
//! the threads of the block share each iteration, with barriers in between. Loops whose iterations
//! are independent recurrences become blocks. Iterations with more work than one block should do
//! stay kernels of their own.

use tilewright_ir::nest::{Axis, LoopVarId};
use tilewright_target::Gpu;

use super::THREADS;
use crate::analysis::operations;
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopName, ParallelUnit, Step};

/// The longest reduction that a thread computes in each iteration of a recurrence.
const LONGEST_REDUCTION: i64 = 32;
/// The numbers of iterations of a recurrence that are unrolled, in order of preference. The loads
/// of these iterations are in flight at the same time, and a GPU with few threads waits for loads.
const UNROLLED: [i64; 3] = [32, 16, 8];
/// The most operations of the unrolled iterations.
const MOST_UNROLLED_OPERATIONS: usize = 400;
/// The most points of one iteration that a block computes. Beyond it, launching a kernel for each
/// iteration takes less time.
const MOST_POINTS_OF_BLOCK: f64 = 2048.0;

impl Planner<'_, Gpu> {
    /// Distributes the statements of the ordered loop around a statement, if there is one.
    pub(super) fn spread_recurrence(&mut self, statement: StatementId) -> bool {
        let ordered = self.ordered_loops(statement);
        let Some(outermost) = ordered.first().copied() else { return false };
        self.scan_recurrence(statement)
            || self.try_steps(|planner| planner.run_in_threads(statement, &ordered))
            || self.try_steps(|planner| planner.run_in_block(statement, outermost))
    }

    /// The ordered loops around a statement, outermost first.
    pub(super) fn ordered_loops(&self, statement: StatementId) -> Vec<LoopVarId> {
        let mut path = self.draft.path(statement);
        path.retain(|var| self.draft.loop_of(*var).role == LoopRole::Ordered);
        path
    }

    /// Lets each thread run whole recurrences.
    fn run_in_threads(&mut self, statement: StatementId, ordered: &[LoopVarId]) -> bool {
        let own = self.name_of(statement);
        let [spatial, reduced] =
            [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let trips =
            |loops: &[LoopVarId]| loops.iter().fold(1i64, |all, var| all.saturating_mul(self.trips(*var)));
        let results = trips(&spatial);
        if results < 2 || trips(&reduced) > LONGEST_REDUCTION {
            return false;
        }
        let order = [&spatial, ordered, &reduced].concat();
        let innermost = self.loop_name(ordered[ordered.len() - 1]);
        let innermost = own.loop_named(innermost.name);
        if order != self.draft.path(statement) && !self.move_loops(statement, &order) {
            return false;
        }
        let threads = self.threads_of_recurrences(results);
        if self.spread_over(statement, &spatial, threads).is_none() {
            return false;
        }
        if reduced.is_empty() {
            let operations = operations(&self.draft.statement(statement).value) + 1;
            let iterations = self.trips(ordered[ordered.len() - 1]);
            let fits = |count: &&i64| {
                **count as usize * operations <= MOST_UNROLLED_OPERATIONS && 2 * **count <= iterations
            };
            if let Some(count) = UNROLLED.iter().find(fits) {
                self.try_steps(|planner| planner.unroll_recurrence(&innermost, *count));
            }
        } else {
            self.try_steps(|planner| planner.keep_in_registers(&own, innermost));
        }
        true
    }

    /// Puts all loops around a statement into this order.
    fn move_loops(&mut self, statement: StatementId, order: &[LoopVarId]) -> bool {
        let own = self.name_of(statement);
        let names = order.iter().map(|var| own.loop_named(self.draft.loop_of(*var).name.clone()));
        let loops: Vec<LoopName> = names.collect();
        loops.len() < 2 || self.try_step(Step::Reorder { loops })
    }

    /// The number of threads in a block, so that few recurrences still use all multiprocessors.
    fn threads_of_recurrences(&self, recurrences: i64) -> i64 {
        let warp = (self.machine.warp as i64).max(1);
        let each = recurrences / (self.machine.processors as i64).max(1);
        let most = THREADS.min(self.machine.block_threads as i64);
        (each / warp * warp).max(warp).min(most)
    }

    pub(super) fn unroll_recurrence(&mut self, target: &LoopName, count: i64) -> bool {
        let (outer, inner) = (self.unused_name("steps"), self.unused_name("step"));
        let own = target.statement.clone();
        let split = Step::Split { target: target.clone(), outer, inner: vec![(inner.clone(), count)] };
        self.try_step(split) && self.try_step(Step::Unroll(own.loop_named(inner)))
    }

    /// Runs an ordered loop inside blocks whose threads share each iteration.
    fn run_in_block(&mut self, statement: StatementId, outermost: LoopVarId) -> bool {
        let inside = self.draft.statements_in(self.draft.body_of(outermost));
        let is_single = inside.len() == 1;
        let independent = if is_single { self.independent_loops(statement) } else { Vec::new() };
        let blocks: f64 = independent.iter().map(|var| self.trips(*var) as f64).product();
        let is_small = |id: &StatementId| {
            let inside = self.draft.path(*id).into_iter().filter(|var| !self.is_ordered(*var));
            let points: f64 = inside.map(|var| self.trips(var) as f64).product();
            points / blocks <= MOST_POINTS_OF_BLOCK
        };
        let has_parallel_work = inside
            .iter()
            .any(|id| self.draft.path(*id).iter().any(|var| !self.is_ordered(*var) && self.trips(*var) > 1));
        if !has_parallel_work || !inside.iter().all(is_small) {
            return false;
        }
        let bound = match independent.is_empty() {
            true => self.one_block(outermost),
            false => self.bind_recurrences(statement, &independent),
        };
        bound && inside.into_iter().all(|id| self.spread_in_block(id))
    }

    fn is_ordered(&self, var: LoopVarId) -> bool {
        self.draft.loop_of(var).role == LoopRole::Ordered
    }

    /// The loops of a statement's results whose iterations are recurrences of their own.
    fn independent_loops(&mut self, statement: StatementId) -> Vec<LoopVarId> {
        let mut found = Vec::new();
        for var in self.loops_with(statement, LoopRole::Spatial) {
            let mut moved = found.clone();
            moved.push(var);
            let mut is_independent = false;
            self.try_steps(|planner| {
                is_independent = planner.bind_recurrences(statement, &moved);
                false
            });
            if is_independent {
                found = moved;
            }
        }
        found
    }

    /// Moves loops to the outside, and binds them to blocks.
    fn bind_recurrences(&mut self, statement: StatementId, loops: &[LoopVarId]) -> bool {
        let path = self.draft.path(statement);
        let others = path.iter().filter(|var| !loops.contains(var)).copied();
        let order: Vec<LoopVarId> = loops.iter().copied().chain(others).collect();
        if order != path && !self.move_loops(statement, &order) {
            return false;
        }
        let names: Vec<LoopName> = loops.iter().map(|var| self.loop_name(*var)).collect();
        let own = self.name_of(statement);
        let Some(all) = self.fuse_nested(&own, names, "t") else { return false };
        self.bind(all, ParallelUnit::Block(Axis::X))
    }

    /// Puts a whole ordered loop into one block.
    fn one_block(&mut self, ordered: LoopVarId) -> bool {
        let (trips, target) = (self.trips(ordered), self.loop_name(ordered));
        let (outer, inner) = (self.unused_name("block"), self.unused_name("step"));
        let block = target.statement.loop_named(outer.clone());
        self.try_step(Step::Split { target, outer, inner: vec![(inner, trips)] })
            && self.bind(block, ParallelUnit::Block(Axis::X))
    }
}
