//! Plans the schedule that a program gets on a GPU without search: every statement that is not
//! inlined becomes a kernel, or a part of another statement's kernel.
//!
//! A reduction whose operands are used often gets tiles ([`mod@outer_product`]). In other
//! reductions with few results, threads share each result ([`mod@combined`]). Statements
//! inside the block of another statement are distributed over its threads ([`mod@block`]).
//! Results without a reduction are distributed over threads that have several adjacent results each
//! ([`mod@lanes`]). The statements of an ordered loop become one kernel that runs the whole loop
//! ([`mod@recurrences`]), and few long recurrences are computed in parts ([`mod@scans`]). Scatters
//! with few rows are distributed over all threads ([`mod@scatters`]). All other
//! statements are distributed evenly over threads, with neighbouring threads at neighbours in
//! memory.

mod block;
mod combined;
mod lanes;
mod outer_product;
mod parts;
mod recurrences;
mod scans;
mod scatters;

use tilewright_ir::nest::{Axis, LoopKind, LoopVarId};
use tilewright_target::Gpu;

use crate::default::{Plan, Planner, without_dots};
use crate::draft::{Draft, LoopRole, StatementId};
use crate::step::{LoopLevel, LoopName, ParallelUnit, PromoteScope, Schedule, StatementName, Step};

/// The number of threads in a block.
pub(super) const THREADS: i64 = 256;
/// The numbers of results, in order of preference, for a thread that has no tile.
const ROWS: [i64; 2] = [8, 4];
/// The shortest reduction for which it pays that several results share their operands.
pub(super) const WORTH_TILES: f64 = 8.0;

impl<'a> Plan<'a> for Planner<'a, Gpu> {
    fn schedule(mut self: Box<Self>) -> Schedule {
        self.inline_stages(|_, _, _, _| false);
        let own = self.draft.statements.len();
        self.complete(&[], own).0
    }

    /// Distributes the statements, and the copies that they need, over blocks and threads.
    fn complete(mut self: Box<Self>, done: &[StatementName], _: usize) -> (Schedule, Draft<'a>) {
        for statement in self.draft.statements_in(&self.draft.body) {
            if !done.contains(&self.name_of(statement)) {
                self.spread_statement(statement);
            }
        }
        for statement in self.draft.statements_in(&self.draft.setup) {
            self.try_steps(|planner| planner.spread_evenly(statement));
        }
        (self.schedule, self.draft)
    }

    /// Every schedule for a GPU distributes its statements over threads.
    fn with_threads(self: Box<Self>) -> Schedule {
        self.schedule
    }
}

impl Planner<'_, Gpu> {
    fn spread_statement(&mut self, statement: StatementId) {
        let path = self.draft.path(statement);
        let kinds: Vec<LoopKind> = path.iter().map(|var| self.draft.loop_of(*var).kind).collect();
        if kinds.iter().any(|kind| matches!(kind, LoopKind::Thread(_))) {
            return;
        }
        if kinds.iter().any(|kind| matches!(kind, LoopKind::Block(_))) {
            self.try_steps(|planner| planner.spread_in_block(statement));
            return;
        }
        let _ = self.spread_recurrence(statement)
            || self.try_steps(|planner| planner.spread_scatter(statement))
            || self.try_steps(|planner| planner.spread_combined(statement))
            || self.try_steps(|planner| planner.spread_tiles_of_parts(statement))
            || self.try_steps(|planner| planner.spread_tiles(statement))
            || self.try_steps(|planner| planner.spread_with_rows(statement))
            || self.try_steps(|planner| planner.spread_in_lanes(statement))
            || self.try_steps(|planner| planner.spread_evenly(statement));
    }

    /// Fuses all spatial loops into one, whose iterations are the threads of all blocks.
    pub(super) fn spread_evenly(&mut self, statement: StatementId) -> bool {
        self.spread_all(statement, None)
    }

    /// Distributes a statement evenly, but gives each thread several results along one loop, which
    /// share operands.
    pub(super) fn spread_with_rows(&mut self, statement: StatementId) -> bool {
        let Some((row, count)) = self.rows_of_thread(statement) else { return false };
        let (own, outer, inner) =
            (self.name_of(statement), self.unused_name("rows"), self.unused_name("row"));
        let target = self.loop_name(row);
        let split = Step::Split { target, outer, inner: vec![(inner.clone(), count)] };
        if !self.try_step(split) {
            return false;
        }
        let row = own.loop_named(inner);
        let all = [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let others = all.iter().flatten().map(|var| self.loop_name(*var)).filter(|own| *own != row);
        let order = others.chain([row.clone()]).collect();
        self.try_step(Step::Reorder { loops: order })
            && self.try_step(Step::Unroll(row.clone()))
            && self.spread_all(statement, Some(&row))
    }

    /// A loop of which each thread takes several iterations, and their number, if enough threads
    /// remain.
    fn rows_of_thread(&self, statement: StatementId) -> Option<(LoopVarId, i64)> {
        let [spatial, reduced] =
            [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let count = |loops: &[LoopVarId]| loops.iter().map(|var| self.trips(*var) as f64).product::<f64>();
        if count(&reduced) < WORTH_TILES {
            return None;
        }
        let column = *spatial.last()?;
        let rows = spatial.iter().filter(|var| self.is_outer_product(statement, **var, column));
        let row = *rows.max_by_key(|var| self.trips(**var))?;
        let busy = self.enough_threads() as f64;
        let fits = |own: &i64| self.trips(row) >= *own && count(&spatial) / *own as f64 >= busy;
        ROWS.into_iter().find(fits).map(|own| (row, own))
    }

    /// The number of threads that keep the GPU busy.
    pub(super) fn enough_threads(&self) -> i64 {
        (self.machine.processors * self.machine.processor_threads / 2) as i64
    }

    /// Fuses all spatial loops except `inside` into one loop over all threads.
    pub(super) fn spread_all(&mut self, statement: StatementId, inside: Option<&LoopName>) -> bool {
        let mut spatial = self.loops_with(statement, LoopRole::Spatial);
        spatial.retain(|var| inside != Some(&self.loop_name(*var)));
        let threads = THREADS.min(self.machine.block_threads as i64);
        let Some(thread) = self.spread_over(statement, &spatial, threads) else { return spatial.is_empty() };
        let own = self.name_of(statement);
        if !self.loops_with(statement, LoopRole::Reduction).is_empty() {
            self.try_steps(|planner| planner.keep_in_registers(&own, thread));
        }
        true
    }

    /// Fuses loops into one, and splits it into blocks of so many threads. Returns the loop over
    /// the threads.
    pub(super) fn spread_over(
        &mut self,
        statement: StatementId,
        loops: &[LoopVarId],
        threads: i64,
    ) -> Option<LoopName> {
        let all = self.fuse_loops(statement, loops, "t")?;
        let (block, thread) = (self.unused_name("block"), self.unused_name("thread"));
        let own = self.name_of(statement);
        let split = Step::Split { target: all, outer: block.clone(), inner: vec![(thread.clone(), threads)] };
        let thread = own.loop_named(thread);
        let spread = self.try_step(split)
            && self.bind(own.loop_named(block), ParallelUnit::Block(Axis::X))
            && self.bind(thread.clone(), ParallelUnit::Thread(Axis::X));
        spread.then_some(thread)
    }

    /// Keeps the results of a statement in registers.
    pub(super) fn keep_in_registers(&mut self, own: &StatementName, at: LoopName) -> bool {
        let name = self.unused_name(&format!("{}_registers", without_dots(&own.tensor)));
        let at = LoopLevel::Loop(at);
        self.try_step(Step::promote(&own.tensor, at, name, PromoteScope::Registers, Vec::new()))
    }

    pub(super) fn bind(&mut self, target: LoopName, to: ParallelUnit) -> bool {
        self.try_step(Step::Bind { target, to })
    }

    /// Fuses several loops into one. Where they are not directly nested, other spatial loops move
    /// outside first, and reduction loops inside.
    pub(super) fn fuse_loops(
        &mut self,
        statement: StatementId,
        loops: &[LoopVarId],
        name: &str,
    ) -> Option<LoopName> {
        let [first, rest @ ..] = loops else { return None };
        let own = self.name_of(statement);
        if rest.is_empty() {
            return Some(self.loop_name(*first));
        }
        let [spatial, reduced] =
            [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let others = spatial.iter().filter(|var| !loops.contains(var));
        let order: Vec<LoopVarId> = others.chain(loops).chain(&reduced).copied().collect();
        let names =
            |planner: &Self, loops: &[LoopVarId]| loops.iter().map(|var| planner.loop_name(*var)).collect();
        let mut now = self.draft.loops_owned_by(statement);
        now.retain(|var| order.contains(var));
        let are_nested = now.windows(loops.len()).any(|inner| inner == loops);
        if !are_nested && !self.try_step(Step::Reorder { loops: names(self, &order) }) {
            return None;
        }
        let names: Vec<LoopName> = names(self, loops);
        let name = self.unused_name(name);
        self.try_step(Step::Fuse { loops: names, name: name.clone() }).then(|| own.loop_named(name))
    }
}
