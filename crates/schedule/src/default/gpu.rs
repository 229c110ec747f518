//! The schedule of a GPU without search: every statement is a kernel.
//!
//! A reduction whose operands are used often gets tiles: a block computes [`TILE`] by [`TILE`] results, a thread
//! [`OWN`] by [`OWN`] of them in registers, and operands come through shared memory, [`DEPTH`] steps of the reduction at a
//! time. Threads share the results of other reductions that have few ([`mod@super::combined`]). What is inside the block of
//! another statement is spread over its threads ([`mod@super::block`]). All else is spread evenly over threads, neighbours
//! in memory side by side.

use tilewright_ir::nest::{Axis, LoopKind};
use tilewright_ir::{Access, VarId};
use tilewright_target::Gpu;

use super::{Planner, one_word};
use crate::draft::{Draft, LoopRole, StatementId};
use crate::step::{LoopName, Place, PromoteScope, Schedule, StatementName, Step, Unit};

/// Threads of a block.
pub(super) const THREADS: i64 = 256;
/// Results of a block along each of two loops, and of a thread.
const TILE: i64 = 64;
const OWN: i64 = 4;
/// Reduced loops up to this are windows.
const WINDOW: i64 = 8;
/// Results of a thread that has no tile.
const ROWS: [i64; 2] = [8, 4];
/// Steps of the reduction for which operands are in shared memory at a time.
const DEPTH: i64 = 16;
/// Tiles pay for reductions that are longer than this.
const WORTH_TILES: f64 = 8.0;

/// A schedule for a draft without steps.
pub(super) fn schedule(draft: Draft<'_>, gpu: &Gpu) -> Schedule {
    let mut planner = Planner { draft, schedule: Schedule::default(), lowered: None, machine: gpu };
    planner.inline_stages();
    finish(planner, &[])
}

/// Spreads all statements but those in `done`, and what copies they need, over blocks and threads.
pub(super) fn finish(mut planner: Planner<'_, Gpu>, done: &[StatementName]) -> Schedule {
    for statement in planner.draft.statements_in(&planner.draft.body) {
        if !done.contains(&planner.name_of(statement)) {
            planner.spread_statement(statement);
        }
    }
    for statement in planner.draft.statements_in(&planner.draft.setup) {
        planner.guarded(|planner| planner.spread_evenly(statement));
    }
    planner.schedule
}

impl Planner<'_, Gpu> {
    fn spread_statement(&mut self, statement: StatementId) {
        let path = self.draft.path(statement);
        let kinds: Vec<LoopKind> = path.iter().map(|var| self.draft.loop_of(*var).kind).collect();
        if kinds.iter().any(|kind| matches!(kind, LoopKind::Thread(_))) {
            return;
        }
        if kinds.iter().any(|kind| matches!(kind, LoopKind::Block(_))) {
            self.guarded(|planner| planner.spread_in_block(statement));
            return;
        }
        let _ = self.guarded(|planner| planner.spread_combined(statement))
            || self.guarded(|planner| planner.spread_tiles(statement))
            || self.guarded(|planner| planner.spread_with_rows(statement))
            || self.guarded(|planner| planner.spread_evenly(statement));
    }

    /// All spatial loops become one, whose iterations are the threads of all blocks.
    pub(super) fn spread_evenly(&mut self, statement: StatementId) -> bool {
        self.spread_all(statement, None)
    }

    /// The same, where a thread has several results along a loop, which share what they read.
    pub(super) fn spread_with_rows(&mut self, statement: StatementId) -> bool {
        let Some((row, count)) = self.rows_of_thread(statement) else { return false };
        let (own, outer, inner) = (self.name_of(statement), self.new_name("rows"), self.new_name("row"));
        let target = self.loop_name(row);
        let split = Step::Split { target, outer, inner: vec![(inner.clone(), count)] };
        if !self.take(split) {
            return false;
        }
        let row = own.at(inner);
        let all = [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let others = all.iter().flatten().map(|var| self.loop_name(*var)).filter(|own| *own != row);
        let order = others.chain([row.clone()]).collect();
        self.take(Step::Reorder { loops: order })
            && self.take(Step::Unroll(row.clone()))
            && self.spread_all(statement, Some(&row))
    }

    /// A loop of which each thread has several iterations, and how many, as long as there are enough threads.
    fn rows_of_thread(&self, statement: StatementId) -> Option<(VarId, i64)> {
        let [spatial, reduced] =
            [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let count = |loops: &[VarId]| loops.iter().map(|var| self.trips(*var) as f64).product::<f64>();
        if count(&reduced) < WORTH_TILES {
            return None;
        }
        let column = *spatial.last()?;
        let rows = spatial.iter().filter(|var| self.is_outer_product(statement, **var, column));
        let row = *rows.max_by_key(|var| self.trips(**var))?;
        let busy = (self.machine.processors * self.machine.processor_threads) as f64 / 2.0;
        let fits = |own: &i64| self.trips(row) >= *own && count(&spatial) / *own as f64 >= busy;
        ROWS.into_iter().find(fits).map(|own| (row, own))
    }

    /// All spatial loops but one that stays inside become one over all threads.
    fn spread_all(&mut self, statement: StatementId, inside: Option<&LoopName>) -> bool {
        let mut spatial = self.loops_with(statement, LoopRole::Spatial);
        spatial.retain(|var| inside != Some(&self.loop_name(*var)));
        let Some(all) = self.fused(statement, &spatial, "t") else { return spatial.is_empty() };
        let threads = THREADS.min(self.machine.block_threads as i64);
        let (block, thread) = (self.new_name("block"), self.new_name("thread"));
        let own = self.name_of(statement);
        let split = Step::Split { target: all, outer: block.clone(), inner: vec![(thread.clone(), threads)] };
        let spread = self.take(split)
            && self.bind(own.at(block), Unit::Block(Axis::X))
            && self.bind(own.at(thread.clone()), Unit::Thread(Axis::X));
        if spread && !self.loops_with(statement, LoopRole::Reduction).is_empty() {
            self.guarded(|planner| planner.gather(&own, own.at(thread)));
        }
        spread
    }

    /// Tiles of a reduction, with operands in shared memory.
    fn spread_tiles(&mut self, statement: StatementId) -> bool {
        let Some(tiled) = self.tiled_loops(statement) else { return false };
        let own = self.name_of(statement);
        let at = |name: &str| own.at(name);
        let part = |planner: &Self, of: VarId, what: &str| {
            format!("{}_{what}", one_word(&planner.draft.loop_of(of).name))
        };
        let [row, column] = [tiled.row, tiled.column];
        let names =
            |planner: &Self, of: VarId| ["block", "thread", "own"].map(|what| part(planner, of, what));
        let ([row_block, row_thread, row_own], [column_block, column_thread, column_own]) =
            (names(self, row), names(self, column));
        let cut = |target: LoopName, outer: &String, inner: &[(&String, i64)]| Step::Split {
            target,
            outer: outer.clone(),
            inner: inner.iter().map(|(name, count)| ((*name).clone(), *count)).collect(),
        };
        let depth = tiled.depth.map(|(depth, count)| {
            let (outer, inner) = (part(self, depth, "outer"), part(self, depth, "inner"));
            (cut(self.loop_name(depth), &outer, &[(&inner, count)]), at(&outer), at(&inner))
        });
        let side = TILE / OWN;
        let cuts = [
            cut(self.loop_name(row), &row_block, &[(&row_thread, side), (&row_own, OWN)]),
            cut(self.loop_name(column), &column_block, &[(&column_thread, side), (&column_own, OWN)]),
        ];
        let others: Vec<LoopName> = tiled.others.iter().map(|var| self.loop_name(*var)).collect();
        let [reduced, windows] =
            [&tiled.reduced, &tiled.windows].map(|loops| loops.iter().map(|var| self.loop_name(*var)));
        let (reduced, windows): (Vec<LoopName>, Vec<LoopName>) = (reduced.collect(), windows.collect());
        let (cut_depth, outer, inner) = match depth {
            Some((cut, outer, inner)) => (Some(cut), Some(outer), Some(inner)),
            None => (None, None, None),
        };
        if !cuts.into_iter().chain(cut_depth).all(|step| self.take(step)) {
            return false;
        }
        let blocks: Vec<LoopName> = others.into_iter().chain([at(&row_block), at(&column_block)]).collect();
        let staged: Vec<LoopName> = reduced.into_iter().chain(outer).collect();
        let threads = [at(&row_thread), at(&column_thread)];
        let innermost: Vec<LoopName> =
            inner.into_iter().chain(windows).chain([at(&row_own), at(&column_own)]).collect();
        let order =
            blocks.iter().chain(&staged).chain(&threads).chain(&innermost).cloned().collect::<Vec<_>>();
        let (block, thread) = (self.new_name("block"), self.new_name("thread"));
        let stage_at = staged.last().cloned().unwrap_or_else(|| at(&block));
        let fused = self.take(Step::Reorder { loops: order })
            && self.take(Step::Fuse { loops: blocks, name: block.clone() })
            && self.take(Step::Fuse { loops: threads.to_vec(), name: thread.clone() });
        let bound = fused
            && self.bind(at(&block), Unit::Block(Axis::X))
            && self.bind(at(&thread), Unit::Thread(Axis::X))
            && self.take(Step::Unroll(at(&row_own)))
            && self.take(Step::Unroll(at(&column_own)))
            && self.gather(&own, at(&block));
        if bound {
            self.stage_operands(statement, &stage_at);
        }
        bound
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
    fn is_outer_product(&self, statement: StatementId, row: VarId, column: VarId) -> bool {
        let reads = self.draft.statement(statement).reads();
        let moves = |read: &Access, var: VarId| read.indices.iter().any(|index| index.mentions(var));
        let only =
            |one: VarId, other: VarId| reads.iter().any(|read| moves(read, one) && !moves(read, other));
        only(row, column) && only(column, row)
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
        let long = |var: &&VarId| self.trips(**var) >= TILE / OWN;
        let column = *spatial.iter().rev().find(long)?;
        let rows = spatial.iter().filter(|var| **var != column);
        let rows = rows.filter(|var| self.is_outer_product(statement, **var, column));
        let row = *rows.filter(long).max_by_key(|var| self.trips(**var))?;
        // Windows are taken whole, and of the longest other loop as much as makes up the depth with them.
        let (windows, mut reduced): (Vec<VarId>, Vec<VarId>) =
            reduced.into_iter().partition(|var| self.trips(*var) <= WINDOW);
        let window: i64 = windows.iter().map(|var| self.trips(*var)).product();
        let longest = (0..reduced.len()).max_by_key(|at| self.trips(reduced[*at]));
        let depth = longest.map(|at| (reduced.remove(at), (DEPTH / window).max(1)));
        let others = spatial.into_iter().filter(|var| *var != column && *var != row).collect();
        Some(Tiled { row, column, depth, others, reduced, windows })
    }

    /// The rows and columns of tiles of a reduction that is worth them.
    pub(super) fn tile_of(&self, statement: StatementId) -> Option<[VarId; 2]> {
        self.tiled_loops(statement).map(|tiled| [tiled.row, tiled.column])
    }

    /// The results of a statement stay in registers.
    pub(super) fn gather(&mut self, own: &StatementName, at: LoopName) -> bool {
        let name = self.new_name(&format!("{}_own", one_word(&own.tensor)));
        self.take(Step::Promote {
            tensor: own.tensor.clone(),
            at: Place::Loop(at),
            name,
            scope: PromoteScope::Registers,
            gathered: false,
            layout: Vec::new(),
            pad: 0,
        })
    }

    pub(super) fn bind(&mut self, target: LoopName, to: Unit) -> bool {
        self.take(Step::Bind { target, to })
    }

    /// Makes one loop of several; the reduced ones go inside first.
    pub(super) fn fused(&mut self, statement: StatementId, loops: &[VarId], name: &str) -> Option<LoopName> {
        let [first, rest @ ..] = loops else { return None };
        let own = self.name_of(statement);
        if rest.is_empty() {
            return Some(self.loop_name(*first));
        }
        let names: Vec<LoopName> = loops.iter().map(|var| self.loop_name(*var)).collect();
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        if !reduced.is_empty() {
            let order = names.iter().cloned().chain(reduced.iter().map(|var| self.loop_name(*var)));
            let order = Step::Reorder { loops: order.collect() };
            if !self.take(order) {
                return None;
            }
        }
        let name = self.new_name(name);
        self.take(Step::Fuse { loops: names, name: name.clone() }).then(|| own.at(name))
    }

    /// A name that nothing has yet.
    pub(super) fn new_name(&self, like: &str) -> String {
        let taken = |name: &String| {
            self.draft.loops.iter().any(|own| own.name == *name) || self.draft.expect_free(name).is_err()
        };
        let numbered = (2..).map(|number| format!("{like}{number}"));
        let mut names = std::iter::once(like.to_string()).chain(numbered);
        names.find(|name| !taken(name)).expect("there are more names than loops")
    }
}

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
