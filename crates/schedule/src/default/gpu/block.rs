//! Distributes statements over the threads of a GPU block that another statement has created. Such
//! statements are copies of operands, and producers that are computed inside the block of their
//! consumer.
//!
//! All threads of the block share the work, and neighbouring threads handle neighbours in memory. A
//! reduction keeps its total in a register and has several loads in flight at a time. Constants
//! that neighbouring threads would read from different rows are transposed once, before any call.

use tilewright_ir::nest::{Access, Axis, LoopKind, LoopVarId};
use tilewright_target::Gpu;

use super::THREADS;
use super::combined::SHORTEST_SHARED;
use crate::analysis::{Stride, iterations};
use crate::default::{Planner, without_dots};
use crate::draft::{LoopRole, Parent, StatementId};
use crate::step::{LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, Step};

/// The most threads that share a reduction inside a block, and the fewest steps that each thread
/// should have.
const PART_THREADS: i64 = 512;
const LEAST_STEPS: i64 = 4;
/// The most steps of a reduction that are unrolled.
const MOST_UNROLLED_STEPS: i64 = 64;
/// The number of warps of a block that is enough for statements beside the block's own.
const ENOUGH_WARPS: i64 = 2;

impl Planner<'_, Gpu> {
    /// Distributes a statement over the threads of its block. Returns false if a step was refused.
    pub(super) fn spread_in_block(&mut self, statement: StatementId) -> bool {
        let own = self.name_of(statement);
        let reduces = !self.loops_with(statement, LoopRole::Reduction).is_empty();
        let loops = self.loops_to_spread(statement);
        let trips = iterations(loops.iter().map(|var| self.trips(*var)));
        if let (true, Some(last)) = (reduces, loops.last()) {
            self.transpose_constants(statement, *last);
            if self.try_steps(|planner| planner.combine_in_block(statement, trips))
                || self.try_steps(|planner| planner.spread_parts_in_block(statement, &loops))
            {
                return true;
            }
        }
        let fixed = loops.iter().all(|var| {
            let own = self.draft.loop_of(*var);
            own.extent.as_constant().is_some() && own.guards.is_empty()
        });
        let Some(all) = self.fuse_loops(statement, &loops, "t") else { return loops.is_empty() };
        let threads = self.threads_in_block(statement, trips);
        if fixed && trips <= threads {
            return self.bind(all.clone(), ParallelUnit::Thread(Axis::X))
                && self.keep_total_in_register(statement, all);
        }
        let (outer, thread) = (self.unused_name("round"), self.unused_name("thread"));
        let split = Step::Split { target: all, outer: outer.clone(), inner: vec![(thread.clone(), threads)] };
        self.try_step(split)
            && self.try_step(Step::Reorder {
                loops: vec![own.loop_named(thread.clone()), own.loop_named(outer.clone())],
            })
            && self.bind(own.loop_named(thread), ParallelUnit::Thread(Axis::X))
            && self.keep_total_in_register(statement, own.loop_named(outer))
    }

    /// Lets all threads of the block share a reduction with a single result in the block.
    fn combine_in_block(&mut self, statement: StatementId, results: i64) -> bool {
        let own = self.name_of(statement);
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let length = iterations(reduced.iter().map(|var| self.trips(*var)));
        if results != 1 || length < SHORTEST_SHARED {
            return false;
        }
        let names = reduced.iter().map(|var| self.loop_name(*var)).collect();
        let Some(along) = self.fuse_nested(&own, names, "along") else { return false };
        let threads = self.threads_in_block(statement, length);
        self.combine_along(&own, along, length, threads)
    }

    /// Splits a reduction with few results into parts, one for each thread of the block, and adds
    /// the parts up. A single thread for each result would wait for memory again and again.
    fn spread_parts_in_block(&mut self, statement: StatementId, loops: &[LoopVarId]) -> bool {
        let own = self.name_of(statement);
        let [along] = self.loops_with(statement, LoopRole::Reduction)[..] else { return false };
        let results = iterations(loops.iter().map(|var| self.trips(*var)));
        let (length, threads) = (self.trips(along), PART_THREADS.min(self.machine.block_threads as i64));
        let steps = (LEAST_STEPS..=MOST_UNROLLED_STEPS)
            .find(|steps| length % steps == 0 && results.saturating_mul(length / steps) <= threads);
        let Some(steps) = steps.filter(|steps| *steps < length) else { return false };
        let names: Vec<LoopName> = loops.iter().map(|var| self.loop_name(*var)).collect();
        let along = self.loop_name(along);
        let Some(parts) = self.split_into_parts(&own, along, &names, steps) else { return false };
        self.try_step(Step::Unroll(parts.rest))
            && self.spread_whole(parts.totals).is_some()
            && self.spread_whole(parts.sum).is_some_and(|thread| self.sum_parts(parts.sum, thread))
    }

    /// Adds up the parts of a result in a register.
    fn sum_parts(&mut self, statement: StatementId, thread: LoopName) -> bool {
        let own = self.name_of(statement);
        let [part] = self.loops_with(statement, LoopRole::Reduction)[..] else { return false };
        self.try_step(Step::Unroll(self.loop_name(part))) && self.keep_in_registers(&own, thread)
    }

    /// Binds one thread to each result of a statement, and returns the loop over threads.
    fn spread_whole(&mut self, statement: StatementId) -> Option<LoopName> {
        let loops = self.loops_to_spread(statement);
        let all = self.fuse_loops(statement, &loops, "t")?;
        self.bind(all.clone(), ParallelUnit::Thread(Axis::X)).then_some(all)
    }

    /// The loops of a statement's results inside the block, without those that run only once.
    fn loops_to_spread(&self, statement: StatementId) -> Vec<LoopVarId> {
        let mut loops = self.loops_with(statement, LoopRole::Spatial);
        loops.retain(|var| self.draft.loop_of(*var).kind == LoopKind::Serial);
        if loops.iter().any(|var| self.trips(*var) > 1) {
            loops.retain(|var| self.trips(*var) > 1);
        }
        loops
    }

    /// The number of threads for a statement in a block: as many as its neighbours have, or as many
    /// as it needs where these are few.
    fn threads_in_block(&self, statement: StatementId, results: i64) -> i64 {
        let path = self.draft.path(statement);
        let block = path.iter().find(|var| matches!(self.draft.loop_of(**var).kind, LoopKind::Block(_)));
        let inside = block.map(|block| self.draft.loops_in(self.draft.body_of(*block))).unwrap_or_default();
        let threads = inside.iter().filter(|var| self.draft.loop_of(**var).kind == LoopKind::Thread(Axis::X));
        let beside = threads.map(|var| self.trips(*var)).max();
        let most = THREADS.min(self.machine.block_threads as i64);
        let target = self.draft.statement(statement).target.tensor;
        match beside {
            None => most,
            Some(beside) if self.draft.buffers[target.index()].is_staged => beside,
            Some(beside) if beside >= ENOUGH_WARPS * self.machine.warp as i64 => beside,
            Some(beside) => beside.max(results.min(most)),
        }
    }

    /// Keeps the total of a reduction in a register, and unrolls some of its steps.
    fn keep_total_in_register(&mut self, statement: StatementId, at: LoopName) -> bool {
        let own = self.name_of(statement);
        let Some(last) = self.loops_with(statement, LoopRole::Reduction).last().copied() else { return true };
        self.try_steps(|planner| planner.keep_in_registers(&own, at));
        self.try_steps(|planner| planner.unroll_some(last));
        true
    }

    /// Unrolls some iterations of a loop.
    fn unroll_some(&mut self, var: LoopVarId) -> bool {
        let (target, trips) = (self.loop_name(var), self.trips(var));
        if trips <= MOST_UNROLLED_STEPS {
            return self.try_step(Step::Unroll(target));
        }
        let step = (2..=MOST_UNROLLED_STEPS).rev().find(|step| trips % step == 0);
        let Some(step) = step else { return false };
        let (outer, inner) = (self.unused_name("steps"), self.unused_name("step"));
        let own = target.statement.clone();
        self.try_step(Step::Split { target, outer, inner: vec![(inner.clone(), step)] })
            && self.try_step(Step::Unroll(own.loop_named(inner)))
    }

    /// Transposes constants that neighbouring threads along a loop read from different rows: the
    /// dimension of that loop becomes the last.
    fn transpose_constants(&mut self, statement: StatementId, along: LoopVarId) {
        for read in self.draft.statement(statement).reads() {
            if let Some(layout) = self.transposed_layout(statement, &read, along) {
                let tensor = self.draft.buffers[read.tensor.index()].buffer.name.clone();
                let name = self.unused_name(&format!("{}_transposed", without_dots(&tensor)));
                let step = Step::promote(tensor, LoopLevel::Root, name, PromoteScope::Packed, layout);
                self.try_steps(|planner| planner.try_step(step));
            }
        }
    }

    /// The dimensions of a constant with the one that the loop walks last. None if the constant is
    /// already contiguous along the loop, or if another statement uses it too.
    fn transposed_layout(
        &self,
        statement: StatementId,
        read: &Access,
        along: LoopVarId,
    ) -> Option<Vec<LayoutDim>> {
        if !self.draft.is_constant(read.tensor) || matches!(self.stride(read, along), Stride::Elements(0 | 1))
        {
            return None;
        }
        let readers = self.draft.readers(Parent::Body, read.tensor);
        let walked = (0..read.indices.len()).filter(|at| read.indices[*at].mentions(along));
        let [walked] = walked.collect::<Vec<usize>>()[..] else { return None };
        let others = (0..read.indices.len()).filter(|at| *at != walked);
        let whole = |dimension: usize| LayoutDim { dimension, modulo: None, divide: None };
        let alone = readers.iter().all(|(reader, _)| *reader == statement);
        alone.then(|| others.chain([walked]).map(whole).collect())
    }
}
