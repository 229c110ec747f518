//! Lists the blocks of threads in which a stage can be computed, on targets that run grids of them.
//!
//! The first producer of a nest chooses the tile of results that a block of the nest computes: rows
//! of threads with one or several results each, or whole rows of the result. Further producers are
//! computed in the same blocks. In a block, a producer is computed by all threads, in shared
//! memory, or by each thread for itself, in registers.

use tilewright_ir::nest::{Axis, LoopKind, LoopVarId};

use super::PartialSchedule;
use super::placements::{Choice, StageId};
use crate::draft::{LoopRole, Parent, StatementId};
use crate::step::{LoopName, ParallelUnit, Step};

/// The results of a block: rows of threads, each with some rows of results, and the results of a
/// row.
#[derive(Clone, Copy)]
struct Tile {
    thread_rows: i64,
    results: i64,
    columns: i64,
}

/// The tiles that are tried, each with 128 or 256 threads.
const TILES: [Tile; 6] = [
    Tile { thread_rows: 8, results: 1, columns: 32 },
    Tile { thread_rows: 8, results: 4, columns: 32 },
    Tile { thread_rows: 4, results: 1, columns: 64 },
    Tile { thread_rows: 4, results: 4, columns: 64 },
    Tile { thread_rows: 2, results: 8, columns: 64 },
    Tile { thread_rows: 2, results: 2, columns: 128 },
];
/// The most iterations of an inner loop, such as one over colours, that a thread runs alone.
const MOST_PLANES: i64 = 4;
/// The most results of a thread that are written out.
const MOST_WRITTEN_OUT: i64 = 16;
/// The shortest rows that are worth a block each.
const LEAST_ROW: i64 = 64;
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

impl<'a> PartialSchedule<'a> {
    /// The places in blocks of threads where a stage can be computed for these readers.
    pub(super) fn in_blocks(&self, stage: StageId, readers: &[StatementId]) -> Vec<Choice<'a>> {
        let around = self.loops_around_all(readers);
        let Some(host) = around.first().and_then(|outermost| self.draft.loop_of(*outermost).owner) else {
            return Vec::new();
        };
        if around.iter().any(|var| self.is_block_loop(*var)) {
            return self.in_block(stage, &around);
        }
        let tiled = self.tiled(host);
        tiled.iter().flat_map(|next| next.in_block(stage, &next.loops_around_all(readers))).collect()
    }

    /// The places in a block that exists: at the block, or at the loops of one thread.
    fn in_block(&self, stage: StageId, around: &[LoopVarId]) -> Vec<Choice<'a>> {
        let is_thread = |var: &LoopVarId| matches!(self.draft.loop_of(*var).kind, LoopKind::Thread(_));
        let block = around.iter().rposition(|var| self.is_block_loop(*var));
        let thread = around.iter().rposition(is_thread).unwrap_or(around.len());
        let at = |place: usize| self.piece(stage, &self.draft.loop_name(around[place]));
        let in_block = block.and_then(at);
        let in_thread = (thread..around.len()).filter_map(at);
        let in_registers = in_thread.filter_map(|Choice { placement, next }| {
            next.in_registers(stage).map(|next| Choice { placement, next })
        });
        in_block.into_iter().chain(in_registers).collect()
    }

    /// The elements of a stage of one thread as registers: few, in loops that are written out. What
    /// a thread finds by an index that changes would be in memory.
    fn in_registers(self, stage: StageId) -> Option<PartialSchedule<'a>> {
        let mut next = self;
        for id in next.draft.writers(Parent::Body, stage.0) {
            let own = next.draft.loops_owned_by(id);
            let spatial = own.into_iter().filter(|var| next.draft.loop_of(*var).role == LoopRole::Spatial);
            let loops: Vec<LoopVarId> = spatial.filter(|var| next.draft.trips(*var) > 1).collect();
            let elements: i64 = loops.iter().map(|var| next.draft.trips(*var)).product();
            let fixed = loops.iter().all(|var| next.draft.loop_of(*var).extent.as_constant().is_some());
            if !fixed || elements > MOST_WRITTEN_OUT {
                return None;
            }
            let unrolled = loops.iter().map(|var| Step::Unroll(next.draft.loop_name(*var)));
            next = next.with(&unrolled.collect::<Vec<Step>>()).ok()?;
        }
        Some(next)
    }

    /// The nest of a statement with its results divided among blocks, in several ways.
    fn tiled(&self, host: StatementId) -> Vec<PartialSchedule<'a>> {
        let own = self.draft.loops_owned_by(host);
        let is_serial = |var: &LoopVarId| self.draft.loop_of(*var).kind == LoopKind::Serial;
        let is_alone = self.draft.path(host).len() == own.len();
        if !is_alone || !own.iter().all(is_serial) {
            return Vec::new();
        }
        let spatial: Vec<LoopVarId> =
            own.into_iter().filter(|var| self.draft.loop_of(*var).role == LoopRole::Spatial).collect();
        let tiles = TILES.iter().filter_map(|tile| self.with_tile(host, &spatial, *tile));
        tiles.chain(self.with_rows(host, &spatial)).collect()
    }

    /// One block for each row of results, or for each result of a reduction.
    fn with_rows(&self, host: StatementId, spatial: &[LoopVarId]) -> Option<PartialSchedule<'a>> {
        let (last, outer) = spatial.split_last()?;
        let is_reduction = self.draft.loops_owned_by(host).len() > spatial.len();
        let rows = if is_reduction { spatial } else { outer };
        if rows.is_empty() || (!is_reduction && self.draft.trips(*last) < LEAST_ROW) {
            return None;
        }
        let names: Vec<LoopName> = rows.iter().map(|var| self.draft.loop_name(*var)).collect();
        let mut steps = Vec::new();
        self.bind_blocks(&names, &mut steps);
        self.with(&steps).ok()
    }

    /// Tiles of results: the last dimension along the threads of a row, another one down.
    fn with_tile(&self, host: StatementId, spatial: &[LoopVarId], tile: Tile) -> Option<PartialSchedule<'a>> {
        let column = *spatial.iter().find(|var| self.is_along_vectors(**var))?;
        let others: Vec<LoopVarId> = spatial.iter().copied().filter(|var| *var != column).collect();
        let row = *others.iter().rev().find(|var| self.draft.trips(**var) >= tile.rows())?;
        if self.draft.trips(column) < tile.columns {
            return None;
        }
        let own = self.draft.statement(host).name.clone();
        let at = |name: &str| own.loop_named(name.to_owned());
        let others = || others.iter().filter(|var| **var != row);
        let (planes, outside): (Vec<LoopVarId>, Vec<LoopVarId>) =
            others().partition(|var| self.draft.trips(**var) <= MOST_PLANES);
        let names =
            |vars: &[LoopVarId]| vars.iter().map(|var| self.draft.loop_name(*var)).collect::<Vec<_>>();
        let (planes, outside) = (names(&planes), names(&outside));

        let mut of_row = vec![("row_thread", tile.thread_rows)];
        of_row.extend((tile.results > 1).then_some(("row", tile.results)));
        let mut steps = vec![
            split(self.draft.loop_name(row), "row_block", &of_row),
            split(self.draft.loop_name(column), "column_block", &[("column_thread", tile.columns)]),
        ];
        let blocks = [outside, vec![at("row_block"), at("column_block")]].concat();
        let threads = vec![at("row_thread"), at("column_thread")];
        let rows = (tile.results > 1).then(|| at("row"));
        let inside: Vec<LoopName> = rows.into_iter().chain(planes).collect();
        steps.push(Step::Reorder { loops: [blocks.clone(), threads.clone(), inside.clone()].concat() });
        self.bind_blocks(&blocks, &mut steps);
        steps.push(Step::Fuse { loops: threads, name: "thread".to_owned() });
        steps.push(Step::Bind { target: at("thread"), to: ParallelUnit::Thread(Axis::X) });
        let next = self.with(&steps).ok()?;
        Some(next.with_written_out(&inside))
    }

    /// Writes out the innermost loops of a thread, as many as are short.
    fn with_written_out(self, inside: &[LoopName]) -> PartialSchedule<'a> {
        let (mut next, mut results) = (self, 1);
        for name in inside.iter().rev() {
            results *= next.draft.find_loop(name).map_or(i64::MAX, |var| next.draft.trips(var));
            match next.with(&[Step::Unroll(name.clone())]) {
                Ok(unrolled) if results <= MOST_WRITTEN_OUT => next = unrolled,
                _ => break,
            }
        }
        next
    }

    /// Binds loops to the axes of the grid, innermost first. Those that are too many are fused.
    fn bind_blocks(&self, loops: &[LoopName], steps: &mut Vec<Step>) {
        let mut loops = loops.to_vec();
        if let Some(surplus) = loops.len().checked_sub(AXES.len()).filter(|surplus| *surplus > 0) {
            let first: Vec<LoopName> = loops.drain(..=surplus).collect();
            let fused = first[0].statement.loop_named("block".to_owned());
            steps.push(Step::Fuse { loops: first, name: fused.name.clone() });
            loops.insert(0, fused);
        }
        let bound = loops.into_iter().rev().zip(AXES);
        steps.extend(bound.map(|(target, axis)| Step::Bind { target, to: ParallelUnit::Block(axis) }));
    }

    fn is_block_loop(&self, var: LoopVarId) -> bool {
        matches!(self.draft.loop_of(var).kind, LoopKind::Block(_))
    }
}

impl Tile {
    fn rows(&self) -> i64 {
        self.thread_rows * self.results
    }
}

fn split(target: LoopName, outer: &str, inner: &[(&str, i64)]) -> Step {
    let inner = inner.iter().map(|(name, trips)| ((*name).to_owned(), *trips)).collect();
    Step::Split { target, outer: outer.to_owned(), inner }
}
