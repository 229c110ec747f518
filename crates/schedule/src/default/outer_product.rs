//! Tiles of a reduction on a GPU, of results that make an outer product of what they read.
//!
//! A block computes [`TILES`] by as many results, a thread some of each in registers, and operands come through shared
//! memory, [`DEPTH`] steps of the reduction at a time. Where the pixels of a row are few, columns are those of several rows;
//! where blocks would be few, tiles are smaller, and a long reduction is cut in parts for blocks of their own.

use tilewright_ir::nest::Axis;
use tilewright_ir::{Access, Atom, VarId};
use tilewright_target::Gpu;

use super::gpu::WORTH_TILES;
use super::{Planner, one_word};
use crate::draft::{LoopRole, StatementId};
use crate::lower::stmts::any_index_in;
use crate::step::{LoopName, Place, PromoteScope, StatementName, Step, Unit};

/// Results of a block along each of two loops: along rows the first that keeps the GPU busy, along columns the first of which
/// most are used, in percent.
const TILES: [i64; 2] = [64, 32];
const USED: i64 = 75;
/// Threads of a block along each of them, at most.
const SIDE: i64 = 16;
/// Rows that are worth a tile.
const FEWEST_ROWS: i64 = 8;
/// Reduced loops up to this are windows.
const WINDOW: i64 = 8;
/// Steps of the reduction for which operands are in shared memory at a time.
const DEPTH: i64 = 16;
/// Blocks for each multiprocessor that parts of a reduction should make up, steps that a part should have at least, and parts
/// at most.
const BLOCKS: f64 = 2.0;
const LEAST_STEPS: i64 = 32;
const MOST_PARTS: i64 = 16;

/// What becomes of the loops of a reduction.
struct Tiled {
    row: VarId,
    column: VarId,
    /// The reduced loop that is cut, and by how many iterations.
    depth: Option<(VarId, i64)>,
    others: Vec<VarId>,
    /// Other reduced loops, and short ones that a thread goes through as a whole.
    reduced: Vec<VarId>,
    windows: Vec<VarId>,
}

/// The parts of a loop over results.
struct Cut {
    block: LoopName,
    thread: LoopName,
    own: LoopName,
}

impl Planner<'_, Gpu> {
    /// Tiles of a reduction, with operands in shared memory.
    pub(super) fn spread_tiles(&mut self, statement: StatementId) -> bool {
        self.widen_columns(statement);
        let Some(tiled) = self.tiled_loops(statement) else { return false };
        let names = |planner: &Self, loops: &[VarId]| -> Vec<LoopName> {
            loops.iter().map(|var| planner.loop_name(*var)).collect()
        };
        let [others, reduced, windows] =
            [&tiled.others, &tiled.reduced, &tiled.windows].map(|loops| names(self, loops));
        let [along_row, along_column] = self.tile_for(&tiled);
        let cuts = [(tiled.row, along_row), (tiled.column, along_column)];
        let cuts = cuts.map(|(of, tile)| self.cut(statement, of, tile));
        let [Some(row), Some(column)] = cuts else { return false };
        let (outer, inner) = match tiled.depth {
            Some((depth, count)) => match self.cut_depth(depth, count) {
                Some((outer, inner)) => (Some(outer), Some(inner)),
                None => return false,
            },
            None => (None, None),
        };
        let blocks: Vec<LoopName> = others.into_iter().chain([row.block, column.block]).collect();
        let staged: Vec<LoopName> = reduced.into_iter().chain(outer).collect();
        let threads = vec![row.thread, column.thread];
        let own = [row.own, column.own];
        let inside = inner.into_iter().chain(windows).chain(own.clone());
        let order = blocks.iter().chain(&staged).chain(&threads).cloned().chain(inside).collect();
        self.take(Step::Reorder { loops: order })
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
        let (block, thread) = (self.new_name("block"), self.new_name("thread"));
        let fused = self.take(Step::Fuse { loops: blocks, name: block.clone() })
            && self.take(Step::Fuse { loops: threads, name: thread.clone() });
        let block = name.at(block);
        let bound = fused
            && self.bind(block.clone(), Unit::Block(Axis::X))
            && self.bind(name.at(thread), Unit::Thread(Axis::X))
            && own.iter().all(|own| self.take(Step::Unroll(own.clone())))
            && self.gather(&name, block.clone());
        if bound {
            self.stage_operands(statement, staged.last().unwrap_or(&block));
        }
        bound
    }

    /// Loops over neighbours that are read alike, such as those of an image's rows and columns, become one, until there are
    /// enough for a tile.
    fn widen_columns(&mut self, statement: StatementId) {
        while let [.., next, column] = self.loops_with(statement, LoopRole::Spatial)[..] {
            let reads = self.draft.statement(statement).reads();
            let alike = reads.iter().all(|read| moves(read, next) == moves(read, column));
            let fuse = |planner: &mut Self| planner.fused(statement, &[next, column], "pixels").is_some();
            if self.trips(column) >= SIDE || !alike || !self.guarded(fuse) {
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
        let column = *spatial.iter().rev().find(|var| self.trips(**var) >= SIDE)?;
        let rows = spatial.iter().filter(|var| **var != column && self.trips(**var) >= FEWEST_ROWS);
        let rows = rows.filter(|var| self.is_outer_product(statement, **var, column));
        let row = *rows.max_by_key(|var| self.trips(**var))?;
        // Windows are taken whole, and of the longest other loop as much as makes up the depth with them.
        let (windows, mut reduced): (Vec<VarId>, Vec<VarId>) =
            reduced.into_iter().partition(|var| self.trips(*var) <= WINDOW);
        let window: i64 = windows.iter().map(|var| self.trips(*var)).product();
        let longest = (0..reduced.len()).max_by_key(|at| self.trips(reduced[*at]));
        let depth = longest.map(|at| (reduced.remove(at), (DEPTH + window - 1) / window));
        let others = spatial.into_iter().filter(|var| *var != column && *var != row).collect();
        Some(Tiled { row, column, depth, others, reduced, windows })
    }

    /// Whether tiles would use operands again.
    pub(super) fn is_worth_tiles(&mut self, statement: StatementId) -> bool {
        let mut found = false;
        self.guarded(|planner| {
            planner.widen_columns(statement);
            found = planner.tiled_loops(statement).is_some();
            false
        });
        found
    }

    /// The results of a block along both loops.
    fn tile_for(&self, tiled: &Tiled) -> [i64; 2] {
        let smallest = TILES[TILES.len() - 1];
        let tiles = |var: VarId, tile: i64| (self.trips(var) + tile - 1) / tile;
        let used = |tile: &i64| 100 * self.trips(tiled.column) >= USED * tile * tiles(tiled.column, *tile);
        let column = TILES.into_iter().find(used).unwrap_or(smallest);
        let busy = |tile: &i64| self.blocks(tiled, [*tile, column]) >= self.machine.processors as f64;
        [TILES.into_iter().find(busy).unwrap_or(smallest), column]
    }

    /// Blocks, with tiles of so many results along both loops.
    fn blocks(&self, tiled: &Tiled, [row, column]: [i64; 2]) -> f64 {
        let others: f64 = tiled.others.iter().map(|var| self.trips(*var) as f64).product();
        let tiles = |var: VarId, tile: i64| ((self.trips(var) + tile - 1) / tile) as f64;
        others * tiles(tiled.row, row) * tiles(tiled.column, column)
    }

    /// Tiles of parts of a reduction, where there are too few of the whole.
    pub(super) fn spread_tiles_of_parts(&mut self, statement: StatementId) -> bool {
        self.widen_columns(statement);
        let Some(tiled) = self.tiled_loops(statement) else { return false };
        let Some((along, _)) = tiled.depth else { return false };
        let blocks = self.blocks(&tiled, self.tile_for(&tiled));
        let wanted = (BLOCKS * self.machine.processors as f64 / blocks) as i64;
        let parts = wanted.min(self.trips(along) / LEAST_STEPS).min(MOST_PARTS);
        if parts < 2 {
            return false;
        }
        let steps = (self.trips(along) + parts - 1) / parts;
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let results: Vec<LoopName> = spatial.iter().map(|var| self.loop_name(*var)).collect();
        let (own, along) = (self.name_of(statement), self.loop_name(along));
        let Some(parts) = self.cut_in_parts(&own, along, &results, steps) else { return false };
        self.spread_tiles(parts.totals) && self.spread_evenly(parts.sum)
    }

    /// Cuts a loop over results: blocks, threads, and what a thread has of its own.
    fn cut(&mut self, statement: StatementId, of: VarId, tile: i64) -> Option<Cut> {
        let own = (tile / SIDE).min(self.trips(of));
        let needed = (self.trips(of) + own - 1) / own;
        let threads = (needed as u64).next_power_of_two().min(SIDE as u64) as i64;
        let name = one_word(&self.draft.loop_of(of).name);
        let [block, thread, inside] =
            ["block", "thread", "own"].map(|what| self.new_name(&format!("{name}_{what}")));
        // All results of a thread leave the same remainder where one is asked for, so that it need not ask for each.
        let parts = match self.asks_remainder(statement, of) {
            true => [(inside.clone(), own), (thread.clone(), threads)],
            false => [(thread.clone(), threads), (inside.clone(), own)],
        };
        let target = self.loop_name(of);
        let at = |name: String| LoopName { name, ..target.clone() };
        let cut = Cut { block: at(block.clone()), thread: at(thread), own: at(inside) };
        self.take(Step::Split { target, outer: block, inner: parts.to_vec() }).then_some(cut)
    }

    /// Cuts a reduced loop, for what is in shared memory at a time.
    fn cut_depth(&mut self, of: VarId, count: i64) -> Option<(LoopName, LoopName)> {
        let name = one_word(&self.draft.loop_of(of).name);
        let [outer, inner] = ["outer", "inner"].map(|what| self.new_name(&format!("{name}_{what}")));
        let target = self.loop_name(of);
        let at = |name: &String| LoopName { name: name.clone(), ..target.clone() };
        let parts = (at(&outer), at(&inner));
        self.take(Step::Split { target, outer, inner: vec![(inner, count)] }).then_some(parts)
    }

    /// Whether the value of a statement depends on what remains of a loop's variable after a division.
    fn asks_remainder(&self, statement: StatementId, var: VarId) -> bool {
        any_index_in(&self.draft.statement(statement).value, &mut |index| {
            index.any(&mut |atom| matches!(atom, Atom::Mod(pair) if pair.0.mentions(var)))
        })
    }

    /// Operands that several threads read go through shared memory.
    fn stage_operands(&mut self, statement: StatementId, at: &LoopName) {
        let target = self.draft.statement(statement).target.tensor;
        let mut tensors: Vec<_> =
            self.draft.statement(statement).reads().iter().map(|read| read.tensor).collect();
        tensors.sort();
        tensors.dedup();
        for tensor in tensors.into_iter().filter(|tensor| *tensor != target) {
            let tensor = self.draft.buffers[tensor.index()].buffer.name.clone();
            let name = self.new_name(&format!("{}_shared", one_word(&tensor)));
            self.guarded(|planner| {
                let promote = Step::Promote {
                    tensor,
                    at: Place::Loop(at.clone()),
                    name: name.clone(),
                    scope: PromoteScope::Shared,
                    gathered: false,
                    layout: Vec::new(),
                    pad: 0,
                };
                let copied = planner.take(promote) && planner.fits_shared_memory(at);
                let copy = planner.draft.find_statement(&StatementName::first(name));
                copied && copy.is_ok_and(|copy| planner.spread_in_block(copy))
            });
        }
    }

    /// Whether what is staged at a loop fits the shared memory of a block.
    fn fits_shared_memory(&self, at: &LoopName) -> bool {
        let Ok(place) = self.draft.find_loop(at) else { return false };
        let staged = self.draft.buffers.iter().filter(|own| own.staged && own.room == Some(place));
        let bytes: i64 = staged.map(|own| own.buffer.bytes()).fold(0, i64::saturating_add);
        bytes <= self.machine.block_shared as i64
    }

    /// Whether some operand moves with one loop and not with the other, and another the other way round: a tile along both
    /// reads few elements for many results.
    pub(super) fn is_outer_product(&self, statement: StatementId, row: VarId, column: VarId) -> bool {
        let reads = self.draft.statement(statement).reads();
        let only =
            |one: VarId, other: VarId| reads.iter().any(|read| moves(read, one) && !moves(read, other));
        only(row, column) && only(column, row)
    }
}

/// Whether an access is of another element in each iteration of a loop.
fn moves(read: &Access, var: VarId) -> bool {
    read.indices.iter().any(|index| index.mentions(var))
}
