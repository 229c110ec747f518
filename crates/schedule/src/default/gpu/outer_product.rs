//! Tiles a reduction on a GPU whose results form an outer product of its operands, as in a matrix
//! product.
//!
//! A block computes a tile of results with one of the sizes [`TILE_SIZES`] along each of two loops.
//! Each thread computes a part of the tile in registers. Operands pass through shared memory, for
//! [`STAGED_STEPS`] steps of the reduction at a time. Where the rows of an image have few pixels,
//! the columns of the tile come from several rows. Where there would be few blocks, tiles are
//! smaller, and a long reduction is split into parts with blocks of their own.

use tilewright_ir::nest::{Access, Atom, Axis, BufferId, LoopVarId};
use tilewright_target::Gpu;

use super::WORTH_TILES;
use crate::analysis::iterations;
use crate::default::{Planner, without_dots};
use crate::draft::{LoopRole, StatementId};
use crate::step::{LayoutDim, LoopLevel, LoopName, ParallelUnit, PromoteScope, StatementName, Step};

/// The numbers of results of a block along each of two loops. Along rows, the first that keeps the
/// GPU busy is taken. Along columns, the first of which at least `LEAST_USED_PERCENT` percent are
/// real results is taken.
const TILE_SIZES: [i64; 2] = [64, 32];
const LEAST_USED_PERCENT: i64 = 75;
/// The most threads of a block along each loop.
const MOST_THREADS_PER_LOOP: i64 = 16;
/// The fewest rows that are worth a tile.
const FEWEST_ROWS: i64 = 8;
/// The longest reduction loop that counts as a window.
const LONGEST_WINDOW: i64 = 8;
/// The number of reduction steps whose operands are in shared memory at a time.
const STAGED_STEPS: i64 = 16;
/// The number of blocks for each multiprocessor that the parts of a reduction should make up, the
/// fewest steps of a part, and the most parts.
const BLOCKS_PER_MULTIPROCESSOR: f64 = 2.0;
const LEAST_STEPS: i64 = 32;
const MOST_PARTS: i64 = 16;
/// The bytes of the widest access to shared memory. Rows are padded by as many, so that they begin
/// in different banks.
const WIDEST_ACCESS: i64 = 16;

/// The roles of a reduction's loops in the tiling.
struct Tiled {
    row: LoopVarId,
    column: LoopVarId,
    /// The reduction loop that is split, and the number of its iterations in one step.
    depth: Option<(LoopVarId, i64)>,
    others: Vec<LoopVarId>,
    /// Other reduction loops; `windows` are short ones that a thread runs through as a whole.
    reduced: Vec<LoopVarId>,
    windows: Vec<LoopVarId>,
}

/// The parts of a loop over results.
struct ResultLoops {
    block: LoopName,
    thread: LoopName,
    per_thread: LoopName,
}

impl Planner<'_, Gpu> {
    /// Tiles a reduction, with operands in shared memory.
    pub(super) fn spread_tiles(&mut self, statement: StatementId) -> bool {
        self.widen_columns(statement);
        let Some(tiled) = self.tiled_loops(statement) else { return false };
        let names = |planner: &Self, loops: &[LoopVarId]| -> Vec<LoopName> {
            loops.iter().map(|var| planner.loop_name(*var)).collect()
        };
        let [others, reduced, windows] =
            [&tiled.others, &tiled.reduced, &tiled.windows].map(|loops| names(self, loops));
        let [along_row, along_column] = self.tile_for(&tiled);
        let result_loops = [(tiled.row, along_row), (tiled.column, along_column)];
        let result_loops = result_loops.map(|(of, tile)| self.split_results(statement, of, tile));
        let [Some(row), Some(column)] = result_loops else { return false };
        let (outer, inner) = match tiled.depth {
            Some((depth, count)) => match self.split_depth(depth, count) {
                Some((outer, inner)) => (Some(outer), Some(inner)),
                None => return false,
            },
            None => (None, None),
        };
        let blocks: Vec<LoopName> = others.into_iter().chain([row.block, column.block]).collect();
        let staged: Vec<LoopName> = reduced.into_iter().chain(outer).collect();
        let threads = vec![row.thread, column.thread];
        let own = [row.per_thread, column.per_thread];
        let inside = inner.into_iter().chain(windows).chain(own.clone());
        let order = blocks.iter().chain(&staged).chain(&threads).cloned().chain(inside).collect();
        self.try_step(Step::Reorder { loops: order })
            && self.bind_tiles(statement, blocks, &staged, threads, &own)
    }

    fn bind_tiles(
        &mut self,
        statement: StatementId,
        blocks: Vec<LoopName>,
        staged: &[LoopName],
        threads: Vec<LoopName>,
        own: &[LoopName; 2],
    ) -> bool {
        let name = self.name_of(statement);
        let (block, thread) = (self.unused_name("block"), self.unused_name("thread"));
        let fused = self.try_step(Step::Fuse { loops: blocks, name: block.clone() })
            && self.try_step(Step::Fuse { loops: threads, name: thread.clone() });
        let block = name.loop_named(block);
        let bound = fused
            && self.bind(block.clone(), ParallelUnit::Block(Axis::X))
            && self.bind(name.loop_named(thread), ParallelUnit::Thread(Axis::X))
            && own.iter().all(|own| self.try_step(Step::Unroll(own.clone())))
            && self.keep_in_registers(&name, block.clone());
        if bound {
            self.stage_operands(statement, staged.last().unwrap_or(&block), own);
        }
        bound
    }

    /// Fuses loops over neighbours that index the operands alike, such as those of an image's rows
    /// and columns, until there are enough iterations for a tile.
    fn widen_columns(&mut self, statement: StatementId) {
        while let [.., next, column] = self.loops_with(statement, LoopRole::Spatial)[..] {
            let reads = self.draft.statement(statement).reads();
            let alike = reads.iter().all(|read| depends_on(read, next) == depends_on(read, column));
            let fuse =
                |planner: &mut Self| planner.fuse_loops(statement, &[next, column], "pixels").is_some();
            if self.trips(column) >= MOST_THREADS_PER_LOOP || !alike || !self.try_steps(fuse) {
                return;
            }
        }
    }

    /// The loops of a reduction that is worth tiles.
    fn tiled_loops(&self, statement: StatementId) -> Option<Tiled> {
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let path = self.draft.path(statement);
        let ordered = path.iter().any(|var| self.draft.loop_of(*var).role == LoopRole::Ordered);
        let length: f64 = reduced.iter().map(|var| self.trips(*var) as f64).product();
        let scatters = self.draft.statement(statement).target.indices.iter().any(|index| index.has_data());
        if ordered || scatters || length < WORTH_TILES {
            return None;
        }
        let column = *spatial.iter().rev().find(|var| self.trips(**var) >= MOST_THREADS_PER_LOOP)?;
        let rows = spatial.iter().filter(|var| **var != column && self.trips(**var) >= FEWEST_ROWS);
        let rows = rows.filter(|var| self.is_outer_product(statement, **var, column));
        let row = *rows.max_by_key(|var| self.trips(**var))?;
        // Windows are taken whole. The longest other loop contributes as many iterations as make up
        // the depth together with them.
        let (windows, mut reduced): (Vec<LoopVarId>, Vec<LoopVarId>) =
            reduced.into_iter().partition(|var| self.trips(*var) <= LONGEST_WINDOW);
        let window = iterations(windows.iter().map(|var| self.trips(*var)));
        let longest = (0..reduced.len()).max_by_key(|at| self.trips(reduced[*at]));
        let depth = longest.map(|at| (reduced.remove(at), (STAGED_STEPS + window - 1) / window));
        let others = spatial.into_iter().filter(|var| *var != column && *var != row).collect();
        Some(Tiled { row, column, depth, others, reduced, windows })
    }

    /// Returns true when tiles would reuse operands.
    pub(super) fn is_worth_tiles(&mut self, statement: StatementId) -> bool {
        let mut found = false;
        self.try_steps(|planner| {
            planner.widen_columns(statement);
            found = planner.tiled_loops(statement).is_some();
            false
        });
        found
    }

    /// The numbers of results of a block along both loops.
    fn tile_for(&self, tiled: &Tiled) -> [i64; 2] {
        let smallest = TILE_SIZES[TILE_SIZES.len() - 1];
        let tiles = |var: LoopVarId, tile: i64| (self.trips(var) + tile - 1) / tile;
        let used = |tile: &i64| {
            100 * self.trips(tiled.column) >= LEAST_USED_PERCENT * tile * tiles(tiled.column, *tile)
        };
        let column = TILE_SIZES.into_iter().find(used).unwrap_or(smallest);
        let busy = |tile: &i64| self.blocks(tiled, [*tile, column]) >= self.machine.processors as f64;
        [TILE_SIZES.into_iter().find(busy).unwrap_or(smallest), column]
    }

    /// The number of blocks, for tiles with these numbers of results along both loops.
    fn blocks(&self, tiled: &Tiled, [row, column]: [i64; 2]) -> f64 {
        let others: f64 = tiled.others.iter().map(|var| self.trips(*var) as f64).product();
        let tiles = |var: LoopVarId, tile: i64| ((self.trips(var) + tile - 1) / tile) as f64;
        others * tiles(tiled.row, row) * tiles(tiled.column, column)
    }

    /// Tiles the parts of a reduction, where the whole reduction has too few tiles.
    pub(super) fn spread_tiles_of_parts(&mut self, statement: StatementId) -> bool {
        self.widen_columns(statement);
        let Some(tiled) = self.tiled_loops(statement) else { return false };
        let Some((along, _)) = tiled.depth else { return false };
        let blocks = self.blocks(&tiled, self.tile_for(&tiled));
        let wanted = (BLOCKS_PER_MULTIPROCESSOR * self.machine.processors as f64 / blocks) as i64;
        let parts = wanted.min(self.trips(along) / LEAST_STEPS).min(MOST_PARTS);
        if parts < 2 {
            return false;
        }
        let steps = (self.trips(along) + parts - 1) / parts;
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let results: Vec<LoopName> = spatial.iter().map(|var| self.loop_name(*var)).collect();
        let (own, along) = (self.name_of(statement), self.loop_name(along));
        let Some(parts) = self.split_into_parts(&own, along, &results, steps) else { return false };
        self.spread_tiles(parts.totals) && self.spread_evenly(parts.sum)
    }

    /// Splits a loop over results into blocks, threads, and the results of each thread.
    fn split_results(&mut self, statement: StatementId, of: LoopVarId, tile: i64) -> Option<ResultLoops> {
        let own = (tile / MOST_THREADS_PER_LOOP).min(self.trips(of));
        let needed = (self.trips(of) + own - 1) / own;
        let threads = (needed as u64).next_power_of_two().min(MOST_THREADS_PER_LOOP as u64) as i64;
        let name = without_dots(&self.draft.loop_of(of).name);
        let [block, thread, inside] =
            ["block", "thread", "result"].map(|what| self.unused_name(&format!("{name}_{what}")));
        // If the value depends on a remainder, all results of a thread get the same remainder, so
        // that one check serves all.
        let parts = match self.depends_on_remainder(statement, of) {
            true => [(inside.clone(), own), (thread.clone(), threads)],
            false => [(thread.clone(), threads), (inside.clone(), own)],
        };
        let target = self.loop_name(of);
        let at = |name: String| LoopName { name, ..target.clone() };
        let cut = ResultLoops { block: at(block.clone()), thread: at(thread), per_thread: at(inside) };
        self.try_step(Step::Split { target, outer: block, inner: parts.to_vec() }).then_some(cut)
    }

    /// Splits a reduction loop by the number of steps that are in shared memory at a time.
    fn split_depth(&mut self, of: LoopVarId, count: i64) -> Option<(LoopName, LoopName)> {
        let name = without_dots(&self.draft.loop_of(of).name);
        let [outer, inner] = ["outer", "inner"].map(|what| self.unused_name(&format!("{name}_{what}")));
        let target = self.loop_name(of);
        let at = |name: &String| LoopName { name: name.clone(), ..target.clone() };
        let parts = (at(&outer), at(&inner));
        self.try_step(Step::Split { target, outer, inner: vec![(inner, count)] }).then_some(parts)
    }

    /// Returns true when the value of a statement depends on a remainder of an expression in the
    /// loop's variable.
    fn depends_on_remainder(&self, statement: StatementId, var: LoopVarId) -> bool {
        self.draft.statement(statement).value.any_index(&mut |index| {
            index.any_atom(&mut |atom| matches!(atom, Atom::Mod(pair) if pair.0.mentions(var)))
        })
    }

    /// Stages operands that several threads read in shared memory. `own` are the loops over the
    /// results of a thread.
    fn stage_operands(&mut self, statement: StatementId, at: &LoopName, own: &[LoopName; 2]) {
        let target = self.draft.statement(statement).target.tensor;
        let mut tensors: Vec<_> =
            self.draft.statement(statement).reads().iter().map(|read| read.tensor).collect();
        tensors.sort();
        tensors.dedup();
        for tensor in tensors.into_iter().filter(|tensor| *tensor != target) {
            let turned = self.results_last(statement, tensor, own);
            let stage = |planner: &mut Self, dims: Option<&[usize]>| {
                planner.try_steps(|planner| planner.stage_operand(tensor, at, dims))
            };
            let _ = turned.is_some_and(|dims| stage(self, Some(&dims))) || stage(self, None);
        }
    }

    /// Stages one operand, with its dimensions in this order where one is given.
    fn stage_operand(&mut self, tensor: BufferId, at: &LoopName, dims: Option<&[usize]>) -> bool {
        let buffer = &self.draft.buffers[tensor.index()].buffer;
        let (bytes, tensor) = (buffer.dtype.bytes() as i64, buffer.name.clone());
        let name = self.unused_name(&format!("{}_shared", without_dots(&tensor)));
        let whole = |dimension: &usize| LayoutDim { dimension: *dimension, modulo: None, divide: None };
        let layout = dims.unwrap_or_default().iter().map(whole).collect();
        let place = LoopLevel::Loop(at.clone());
        let mut promote = Step::promote(tensor, place, &name, PromoteScope::Shared, layout);
        if let (Step::Promote { pad, .. }, Some(_)) = (&mut promote, dims) {
            *pad = WIDEST_ACCESS / bytes;
        }
        let own = StatementName::first(name);
        let copied = self.try_step(promote)
            && self.fits_shared_memory(at)
            && dims.is_none_or(|dims| self.copy_in_order(&own, dims));
        copied && self.draft.find_statement(&own).is_ok_and(|copy| self.spread_in_block(copy))
    }

    /// Reorders the loops of a copy so that they walk the dimensions of the tensor in their order,
    /// which `dims` gives for each loop.
    fn copy_in_order(&mut self, own: &StatementName, dims: &[usize]) -> bool {
        let mut loops: Vec<(usize, LoopName)> =
            dims.iter().enumerate().map(|(at, dim)| (*dim, own.loop_named(format!("l{at}")))).collect();
        loops.sort_by_key(|(dim, _)| *dim);
        self.try_step(Step::Reorder { loops: loops.into_iter().map(|(_, name)| name).collect() })
    }

    /// The dimensions of an operand with the one last along which a thread has several results, if
    /// it is not last anyway. Neighbouring threads then read neighbours in shared memory, and a
    /// thread reads its elements at once.
    fn results_last(
        &self,
        statement: StatementId,
        tensor: BufferId,
        own: &[LoopName; 2],
    ) -> Option<Vec<usize>> {
        let reads = self.draft.statement(statement).reads();
        let mut reads = reads.iter().filter(|read| read.tensor == tensor);
        let (Some(read), None) = (reads.next(), reads.next()) else { return None };
        let results: Vec<LoopVarId> = own.iter().filter_map(|name| self.draft.find_loop(name).ok()).collect();
        let rank = read.indices.len();
        let moves = |at: &usize| results.iter().any(|var| read.indices[*at].mentions(*var));
        let [along] = (0..rank).filter(moves).collect::<Vec<usize>>()[..] else { return None };
        (along + 1 < rank).then(|| (0..rank).filter(|at| *at != along).chain([along]).collect())
    }

    /// Returns true when the buffers that are staged at a loop fit the shared memory of a block.
    fn fits_shared_memory(&self, at: &LoopName) -> bool {
        let Ok(place) = self.draft.find_loop(at) else { return false };
        let staged = self.draft.buffers.iter().filter(|own| own.is_staged && own.allocated_at == Some(place));
        let bytes: i64 = staged.map(|own| own.buffer.bytes()).fold(0, i64::saturating_add);
        bytes <= self.machine.block_shared as i64
    }

    /// Returns true when some operand moves with the first loop only, and another with the second
    /// only. A tile along both then reads few elements for many results.
    pub(super) fn is_outer_product(&self, statement: StatementId, row: LoopVarId, column: LoopVarId) -> bool {
        let reads = self.draft.statement(statement).reads();
        let only = |one: LoopVarId, other: LoopVarId| {
            reads.iter().any(|read| depends_on(read, one) && !depends_on(read, other))
        };
        only(row, column) && only(column, row)
    }
}

/// Returns true when an access depends on a loop.
fn depends_on(read: &Access, var: LoopVarId) -> bool {
    read.indices.iter().any(|index| index.mentions(var))
}
