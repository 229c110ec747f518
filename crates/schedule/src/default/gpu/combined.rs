//! Distributes GPU reductions with few results: several threads share the work of each result.
//!
//! Where results are few, one thread for each leaves most of a GPU idle. So the threads of a warp,
//! or of a block, run through a reduction together, with neighbouring threads at neighbours in
//! memory, and are combined at its end. Where even that gives too few threads, a reduction is split
//! into parts: one kernel computes the partial totals, and another adds them up. The split is also
//! used where neighbours in memory belong to different results, as in sums of columns. There each
//! thread computes one part of one result.

use tilewright_ir::nest::{Axis, LoopVarId};
use tilewright_target::Gpu;

use super::THREADS;
use super::parts::ReductionParts;
use crate::analysis::Stride;
use crate::default::{Planner, without_dots};
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopName, ParallelUnit, StatementName, Step};

/// The shortest reduction that threads share.
pub(super) const SHORTEST_SHARED: i64 = 32;
/// The fewest iterations of a thread for which a block shares a result, rather than a warp.
const WORTH_BLOCK: i64 = 4;
/// The fewest iterations of a thread within a part.
const WORTH_PARTS: i64 = 8;
/// The factor by which there are more threads where they access memory with large strides.
const STRIDED_THREADS_FACTOR: i64 = 4;
/// The most parts of a reduction.
const MOST_PARTS: i64 = 1024;
/// The number of neighbours in memory that makes contiguous reads worthwhile.
const LEAST_CONTIGUOUS: i64 = 16;

/// A reduction that threads share.
struct SharedReduction {
    own: StatementName,
    /// The results, as one loop; none where there is a single result.
    row: Option<LoopName>,
    /// The reduction, as one loop.
    along: LoopName,
    results: i64,
    length: i64,
    /// Whether neighbouring iterations of the reduction are neighbours in memory.
    contiguous: bool,
}

impl Planner<'_, Gpu> {
    /// Lets threads share the results of a reduction, if it has few results.
    pub(super) fn spread_combined(&mut self, statement: StatementId) -> bool {
        let Some(shared) = self.shared_reduction(statement) else { return false };
        self.try_steps(|planner| planner.spread_parts(&shared))
            || shared.contiguous && self.combine_rows(&shared)
    }

    /// Fuses the loops of a reduction with few results: one loop for the results and one for the
    /// reduction.
    fn shared_reduction(&mut self, statement: StatementId) -> Option<SharedReduction> {
        let own = self.name_of(statement);
        let target = &self.draft.statement(statement).target;
        let scatters = target.indices.iter().any(|index| index.has_data());
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let mut reduced = self.loops_with(statement, LoopRole::Reduction);
        let trips =
            |loops: &[LoopVarId]| loops.iter().fold(1i64, |all, var| all.saturating_mul(self.trips(*var)));
        let (results, length) = (trips(&spatial), trips(&reduced));
        if scatters
            || length < SHORTEST_SHARED
            || results >= self.enough_threads()
            || self.is_worth_tiles(statement)
        {
            return None;
        }
        let results_walk = spatial.iter().any(|var| self.reads_contiguously(statement, *var));
        let mut contiguous = !results_walk;
        if let Some(along) =
            reduced.iter().copied().rev().find(|var| self.reads_contiguously(statement, *var))
        {
            contiguous |= self.trips(along) >= LEAST_CONTIGUOUS;
            reduced.retain(|var| *var != along);
            reduced.push(along);
        }
        let names = |loops: &[LoopVarId]| loops.iter().map(|var| self.loop_name(*var)).collect::<Vec<_>>();
        let (rows, alongs) = (names(&spatial), names(&reduced));
        let order = [spatial, reduced].concat();
        let reorder = Step::Reorder { loops: [rows.clone(), alongs.clone()].concat() };
        if order != self.draft.loops_owned_by(statement) && !self.try_step(reorder) {
            return None;
        }
        let along = self.fuse_nested(&own, alongs, "along")?;
        let row = if rows.is_empty() { None } else { Some(self.fuse_nested(&own, rows, "row")?) };
        Some(SharedReduction { own, row, along, results, length, contiguous })
    }

    /// Returns true when neighbouring iterations of a loop read neighbours in memory.
    fn reads_contiguously(&self, statement: StatementId, var: LoopVarId) -> bool {
        // Reads inside subscripts cost little compared with the reads that they index.
        let mut reads = Vec::new();
        self.draft.statement(statement).value.visit_loads(&mut |load| reads.push(load));
        self.trips(var) > 1 && reads.iter().any(|read| self.stride(read, var) == Stride::Elements(1))
    }

    /// Fuses several directly nested loops into one.
    pub(super) fn fuse_nested(
        &mut self,
        own: &StatementName,
        loops: Vec<LoopName>,
        like: &str,
    ) -> Option<LoopName> {
        if let [only] = loops.as_slice() {
            return Some(only.clone());
        }
        let name = self.unused_name(like);
        self.try_step(Step::Fuse { loops, name: name.clone() }).then(|| own.loop_named(name))
    }

    /// Splits a long reduction into parts, whose totals a second kernel adds up.
    fn spread_parts(&mut self, shared: &SharedReduction) -> bool {
        let threads = if shared.contiguous { THREADS.saturating_mul(shared.results) } else { shared.results };
        let least = if shared.contiguous { THREADS * WORTH_PARTS } else { WORTH_PARTS };
        // Threads that access memory with large strides wait long, so more threads should run
        // meanwhile.
        let wanted = self.enough_threads() * if shared.contiguous { 1 } else { STRIDED_THREADS_FACTOR };
        let parts = (wanted / threads).min(shared.length / least).min(MOST_PARTS);
        if parts < 2 {
            return false;
        }
        let whole = if shared.contiguous { THREADS } else { 1 };
        let length = (shared.length + parts * whole - 1) / (parts * whole) * whole;
        let rows: Vec<LoopName> = shared.row.iter().cloned().collect();
        let Some(parts) = self.split_into_parts(&shared.own, shared.along.clone(), &rows, length) else {
            return false;
        };
        self.spread_totals(shared, &parts, length) && self.spread_sum(parts.sum)
    }

    /// The first kernel: the partial totals.
    fn spread_totals(&mut self, shared: &SharedReduction, parts: &ReductionParts, length: i64) -> bool {
        if !shared.contiguous {
            return self.try_steps(|planner| planner.spread_with_rows(parts.totals))
                || self.spread_evenly(parts.totals);
        }
        let own = self.name_of(parts.totals);
        let row = shared.row.iter().map(|row| own.loop_named(row.name.clone()));
        let rows = std::iter::once(parts.part.clone()).chain(row).collect();
        let Some(row) = self.fuse_nested(&own, rows, "row") else { return false };
        let results = shared.results.saturating_mul(shared.length / length.max(1));
        let (row, along) = (Some(row), parts.rest.clone());
        self.combine_rows(&SharedReduction { own, row, along, results, length, contiguous: true })
    }

    /// The second kernel, which is itself a small reduction.
    fn spread_sum(&mut self, statement: StatementId) -> bool {
        if let [parts] = self.draft.loops_owned_by(statement).as_slice() {
            let parts = self.loop_name(*parts);
            return self.try_steps(|planner| planner.bind(parts, ParallelUnit::Thread(Axis::X)));
        }
        self.try_steps(|planner| {
            let shared = planner.shared_reduction(statement).filter(|shared| shared.contiguous);
            shared.is_some_and(|shared| planner.combine_rows(&shared))
        }) || self.spread_evenly(statement)
    }

    /// Uses a warp or a block for each result.
    fn combine_rows(&mut self, shared: &SharedReduction) -> bool {
        let own = &shared.own;
        let lanes = self.threads_per_result(shared);
        let rows = (THREADS.min(self.machine.block_threads as i64) / lanes).max(1).min(shared.results);
        let spread = match &shared.row {
            Some(row) => self.spread_rows(own, row, rows),
            None => true,
        };
        if !spread {
            return false;
        }
        self.combine_along(own, shared.along.clone(), shared.length, lanes)
    }

    /// Lets so many threads share a reduction along a loop: each has a partial result, and the
    /// partial results are combined in the end.
    pub(super) fn combine_along(
        &mut self,
        own: &StatementName,
        along: LoopName,
        length: i64,
        lanes: i64,
    ) -> bool {
        if length <= lanes {
            return self.bind(along, ParallelUnit::Thread(Axis::X));
        }
        let (turn, lane) = (self.unused_name("round"), self.unused_name("lane"));
        let totals = StatementName::first(self.unused_name(&format!("{}_lanes", without_dots(&own.tensor))));
        let split = Step::Split { target: along, outer: turn.clone(), inner: vec![(lane.clone(), lanes)] };
        self.try_step(split)
            && self
                .try_step(Step::Rfactor { target: own.loop_named(lane.clone()), name: totals.tensor.clone() })
            && self.try_step(Step::Reorder {
                loops: vec![totals.loop_named(lane.clone()), totals.loop_named(turn)],
            })
            && self.bind(totals.loop_named(lane.clone()), ParallelUnit::Thread(Axis::X))
            && self.bind(own.loop_named(lane), ParallelUnit::Thread(Axis::X))
    }

    /// The number of threads that share a result: a warp, or a block where warps are too few and
    /// each thread has enough work.
    fn threads_per_result(&self, shared: &SharedReduction) -> i64 {
        let most = THREADS.min(self.machine.block_threads as i64).max(1);
        let warp = (self.machine.warp as i64).clamp(1, most);
        let enough = shared.results.saturating_mul(warp) >= self.enough_threads();
        if enough || shared.length < most * WORTH_BLOCK { warp } else { most }
    }

    /// Distributes results over blocks, several of them side by side in one block.
    fn spread_rows(&mut self, own: &StatementName, row: &LoopName, rows: i64) -> bool {
        if rows < 2 {
            return self.bind(row.clone(), ParallelUnit::Block(Axis::X));
        }
        let (block, beside) = (self.unused_name("block"), self.unused_name("row_thread"));
        let split =
            Step::Split { target: row.clone(), outer: block.clone(), inner: vec![(beside.clone(), rows)] };
        self.try_step(split)
            && self.bind(own.loop_named(block), ParallelUnit::Block(Axis::X))
            && self.bind(own.loop_named(beside), ParallelUnit::Thread(Axis::Y))
    }
}
