//! Tiles the loops of one CPU statement: makes vectors along the loop that is contiguous in memory
//! and, for a reduction, a tile of results that stays in registers.

use tilewright_ir::nest::{Access, LoopKind, LoopVarId};
use tilewright_target::Cpu;

use super::pack::LEAST_PACKED_USES;
use crate::analysis::{LONGEST_SHUFFLED_STEP, Stride, is_shuffled, operations};
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::lower::effort::operations_per_lane;
use crate::step::{LoopName, Step};
use crate::steps::kind::MOST_LANES;

/// The most vectors of a register tile. More leave too few registers for operands, and gain
/// nothing.
const MOST_TILE_VECTORS: i64 = 24;
/// The most vectors in one iteration for which the loops of a reduction are unrolled.
const MOST_UNROLLED_VECTORS: i64 = 48;
/// The most operations of a register tile. A long value gains little from sharing with its
/// neighbours, and takes long to compile.
const MOST_OPERATIONS: u64 = 2000;

/// The operations that make it worthwhile to use vectors, for each element that data chooses.
const OPERATIONS_OF_LOAD: usize = 3;

impl Planner<'_, Cpu> {
    /// Arranges the loops of a statement. Always succeeds, if only by leaving them as they are.
    pub(super) fn tile_statement(&mut self, statement: StatementId) -> bool {
        let name = self.name_of(statement);
        self.split_into_recurrences(statement);
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let is_scatter = !reduced.is_empty() && self.draft.is_scatter(statement);
        if is_scatter && self.try_steps(|planner| planner.vectorize_scatter(statement)) {
            self.try_steps(|planner| planner.run_in_parallel(&name));
            return true;
        }
        let done = match self.vector_loop(statement) {
            Some(vector) if reduced.is_empty() => self.try_steps(|planner| planner.tile_pointwise(vector)),
            Some(vector) => self.try_steps(|planner| planner.tile_reduction(statement, vector)),
            None if reduced.is_empty() => self.try_steps(|planner| planner.tile_transposition(statement)),
            None => self.try_steps(|planner| planner.vectorize_reduction(statement)),
        };
        if !done {
            self.try_steps(|planner| planner.accumulate(statement));
        }
        self.try_steps(|planner| planner.run_in_parallel(&name));
        true
    }

    /// The number of lanes of a vector of the statement's results.
    pub(super) fn lanes(&self, statement: StatementId) -> i64 {
        let target = self.draft.statement(statement).target.tensor;
        let dtype = self.draft.buffers[target.index()].buffer.dtype.compute_type();
        self.machine.lanes(dtype.bytes()) as i64
    }

    /// The number of vectors of the statement's results that are worth computing together.
    pub(super) fn most_vectors(&self, statement: StatementId) -> i64 {
        let each = operations_per_lane(&self.draft.statement(statement).value);
        ((MOST_OPERATIONS / each) as i64).clamp(1, MOST_TILE_VECTORS)
    }

    /// The spatial loop along which most accesses are contiguous.
    pub(super) fn vector_loop(&self, statement: StatementId) -> Option<LoopVarId> {
        let candidates = self
            .loops_with(statement, LoopRole::Spatial)
            .into_iter()
            .filter(|var| self.trips(*var) >= 4 && self.draft.loop_of(*var).kind == LoopKind::Serial);
        let scored = candidates.map(|var| (self.vector_score(statement, var), var));
        let (score, best) = scored.max_by_key(|(score, _)| *score)?;
        (score > 0 || self.gains_by_arithmetic(statement, best)).then_some(best)
    }

    /// Whether a statement computes so much that it gains by vectors, although data chooses the
    /// elements that it reads. Loading them takes as long with vectors as without.
    fn gains_by_arithmetic(&self, statement: StatementId, var: LoopVarId) -> bool {
        let own = self.draft.statement(statement);
        let chosen = own.reads().iter().filter(|read| self.stride(read, var) == Stride::Irregular).count();
        let is_regular =
            |read: &Access| matches!(self.stride(read, var), Stride::Irregular | Stride::Elements(0 | 1));
        self.stride(&own.target, var) == Stride::Elements(1)
            && self.reduction_trips(statement) == 1
            && own.reads().iter().all(|read| is_regular(read) || is_shuffled(&read.indices, var))
            && operations(&own.value) >= OPERATIONS_OF_LOAD * chosen
    }

    pub(super) fn vector_score(&self, statement: StatementId, var: LoopVarId) -> i64 {
        let own = self.draft.statement(statement);
        let target = match self.stride(&own.target, var) {
            Stride::Elements(1) => 3,
            // Stores that happen only once for each reduction cost little.
            _ if self.reduction_trips(statement) >= LEAST_PACKED_USES => -1,
            Stride::Elements(step) if step.abs() <= LONGEST_SHUFFLED_STEP => -4,
            // Lines far apart are written piece by piece, and often compete for the same places of
            // a cache.
            _ => -8,
        };
        let read = |read: &Access| match self.stride(read, var) {
            Stride::Elements(1) => 2,
            Stride::Elements(0) => 1,
            _ if self.is_worth_packing(statement, read, var) => 1,
            Stride::Elements(step) if step.abs() <= LONGEST_SHUFFLED_STEP => 0,
            _ if is_shuffled(&read.indices, var) => 0,
            _ => -6,
        };
        let vector = self.trips(var) >= self.lanes(statement);
        target + own.reads().iter().map(read).sum::<i64>() + i64::from(vector)
    }

    pub(super) fn reduction_trips(&self, statement: StatementId) -> i64 {
        let trips = self.loops_with(statement, LoopRole::Reduction).into_iter().map(|var| self.trips(var));
        trips.fold(1, i64::saturating_mul)
    }

    /// Splits off the lanes of a vector, with `registers` vectors unrolled together. Returns the
    /// lane loop and the loop left outside.
    pub(super) fn split_vector(
        &mut self,
        vector: LoopVarId,
        lanes: i64,
        registers: i64,
    ) -> Option<(LoopName, Option<LoopName>)> {
        let target = self.loop_name(vector);
        let trips = self.trips(vector);
        let names = ["o", "u", "v"].map(|part| format!("{}{part}", target.name));
        let at = |name: &String| target.statement.loop_named(name.clone());
        let [outer, middle, lane] = &names;
        let mut inner = vec![(lane.clone(), lanes)];
        if registers > 1 {
            inner.insert(0, (middle.clone(), registers));
        }
        if trips <= lanes {
            return self.try_step(Step::Vectorize(target.clone())).then_some((target, None));
        }
        let split = Step::Split { target: target.clone(), outer: outer.clone(), inner };
        if !self.try_step(split) || !self.try_step(Step::Vectorize(at(lane))) {
            return None;
        }
        if registers > 1 && !self.try_step(Step::Unroll(at(middle))) {
            return None;
        }
        Some((at(lane), Some(at(outer))))
    }

    /// Vectorises one loop, which becomes the innermost.
    pub(super) fn tile_pointwise(&mut self, vector: LoopVarId) -> bool {
        let Some(statement) = self.draft.loop_of(vector).owner else { return false };
        let mut order: Vec<LoopName> =
            self.draft.loops_owned_by(statement).into_iter().map(|var| self.loop_name(var)).collect();
        let own = self.loop_name(vector);
        order.retain(|other| *other != own);
        order.push(own);
        self.arrange(statement, order);
        let lanes = self.lanes(statement);
        // Several registers in each iteration keep the overhead of the loop small.
        let several = self.trips(vector) >= 4 * lanes && self.most_vectors(statement) >= 4;
        let wide = if several { (4 * lanes).min(MOST_LANES) } else { lanes };
        self.split_vector(vector, wide, 1).is_some()
    }

    /// Reorders the statement's own loops, if they are not in this order already. Outer loops that
    /// are in their places are not named: other statements may be inside them.
    pub(super) fn arrange(&mut self, statement: StatementId, order: Vec<LoopName>) -> bool {
        let own = self.draft.loops_owned_by(statement).into_iter().map(|var| self.loop_name(var));
        let in_place = own.zip(&order).take_while(|(own, wanted)| own == *wanted).count();
        in_place == order.len() || self.try_step(Step::Reorder { loops: order[in_place..].to_vec() })
    }

    /// Puts the loops that have other statements inside, such as producers that were moved there,
    /// before all others. They can only stay outermost.
    fn shared_first(&self, loops: &mut [LoopName]) {
        let is_shared = |name: &LoopName| {
            self.draft
                .find_loop(name)
                .is_ok_and(|var| self.draft.statements_in(self.draft.body_of(var)).len() > 1)
        };
        loops.sort_by_key(|name| !is_shared(name));
    }

    /// Tiles a reduction whose results lie along a vector: a tile of results stays in registers.
    pub(super) fn tile_reduction(&mut self, statement: StatementId, vector: LoopVarId) -> bool {
        let name = self.name_of(statement);
        let lanes = self.lanes(statement);
        let vectors = self.tile_vectors(statement, vector, lanes);
        let rows = self.row_loop(statement, vector).map(|row| (row, self.tile_rows(statement, row, vectors)));
        let rows = rows.filter(|(_, count)| *count > 1);
        let packed = self.operands_to_pack(statement, vector);
        let reduced: Vec<LoopName> =
            self.reduced_by_stride(statement).into_iter().map(|var| self.loop_name(var)).collect();
        let others: Vec<LoopName> = self
            .loops_with(statement, LoopRole::Spatial)
            .into_iter()
            .filter(|var| *var != vector && rows.is_none_or(|(row, _)| row != *var))
            .map(|var| self.loop_name(var))
            .collect();

        let packed_size = packed.iter().map(|read| self.elements(read)).max().unwrap_or(0);
        let reads = self.draft.statement(statement).reads();
        let along_rows = reads.iter().filter(|read| self.stride(read, vector) == Stride::Elements(0));
        // Constants are packed in the order of their use, because that is done only once.
        let constant_rows: Vec<Access> = match rows {
            Some((row, _)) => along_rows
                .clone()
                .filter(|read| {
                    self.draft.is_constant(read.tensor) && self.stride(read, row) != Stride::Elements(0)
                })
                .cloned()
                .collect(),
            None => Vec::new(),
        };
        let rows_size = along_rows.map(|read| self.elements(read)).max().unwrap_or(0);

        let vector_name = self.loop_name(vector).name;
        let row = rows.map(|(row, count)| (self.loop_name(row), count));
        let Some((lane, vector_outer)) = self.split_vector(vector, lanes, vectors) else { return false };
        let (row_outer, row_inner) = match row {
            Some((row, count)) => self.split_rows(&row, count),
            None => (None, None),
        };
        let middle = name.loop_named(format!("{vector_name}u"));
        let middle = self.draft.find_loop(&middle).is_ok().then_some(middle);
        // The larger operand is traversed once, the smaller one repeatedly.
        let rows_first = packed.is_empty() || packed_size < rows_size;
        let mut outer: Vec<LoopName> = match rows_first {
            true => row_outer.iter().chain(&others).chain(&vector_outer).cloned().collect(),
            false => others.iter().chain(&vector_outer).chain(&row_outer).cloned().collect(),
        };
        self.shared_first(&mut outer);
        let place = match rows_first {
            true => None,
            false => vector_outer.as_ref().or(others.last()),
        };
        let inner = row_inner.iter().chain(&middle).chain([&lane]);
        let order: Vec<LoopName> = outer.iter().chain(&reduced).chain(inner).cloned().collect();
        if !self.arrange(statement, order) {
            return false;
        }
        for read in packed {
            self.pack(&name, &read, &lane, place, lanes * vectors);
        }
        if let (Some(row), Some((_, count))) = (&row_inner, rows) {
            for read in constant_rows {
                self.pack(&name, &read, row, None, count);
            }
        }
        let most = MOST_UNROLLED_VECTORS.min(2 * self.most_vectors(statement));
        self.unroll_short(&reduced, vectors * rows.map_or(1, |(_, count)| count), most);
        self.keep_in_registers(&name, outer.last())
    }

    /// The reduction loops, those with the smallest strides innermost.
    pub(super) fn reduced_by_stride(&self, statement: StatementId) -> Vec<LoopVarId> {
        let reads = self.draft.statement(statement).reads();
        let longest = |var: &LoopVarId| {
            let strides = reads.iter().map(|read| match self.stride(read, *var) {
                Stride::Elements(elements) => elements.abs(),
                Stride::Irregular => i64::MAX,
            });
            strides.max().unwrap_or(0)
        };
        let mut reduced = self.loops_with(statement, LoopRole::Reduction);
        reduced.sort_by_key(|var| std::cmp::Reverse(longest(var)));
        reduced
    }

    /// The number of adjacent vectors of results in the tile.
    pub(super) fn tile_vectors(&self, statement: StatementId, vector: LoopVarId, lanes: i64) -> i64 {
        let most = if self.row_loop(statement, vector).is_some() { 2 } else { 4 };
        (self.trips(vector) / lanes).clamp(1, most.min(self.most_vectors(statement)))
    }

    /// The number of rows for which the registers have room beside the operands.
    pub(super) fn tile_rows(&self, statement: StatementId, row: LoopVarId, vectors: i64) -> i64 {
        let registers = self.machine.vectors.registers() as i64;
        let most = ((registers - vectors - 1) / vectors).clamp(1, self.most_vectors(statement) / vectors);
        let trips = self.trips(row);
        // Tiles of nearly equal size are better than full tiles and a small last one.
        let tiles = (trips + most - 1) / most;
        (trips + tiles - 1) / tiles
    }

    /// The loop of the result that reuses the same vectors: its iterations share the loads along
    /// the vector.
    pub(super) fn row_loop(&self, statement: StatementId, vector: LoopVarId) -> Option<LoopVarId> {
        let reads = self.draft.statement(statement).reads();
        let along = |read: &&Access| self.stride(read, vector) != Stride::Elements(0);
        let shares = |var: &LoopVarId| {
            let mut along = reads.iter().filter(along).peekable();
            along.peek().is_some() && along.all(|read| self.stride(read, *var) == Stride::Elements(0))
        };
        let candidates =
            self.loops_with(statement, LoopRole::Spatial).into_iter().filter(|var| *var != vector);
        candidates.filter(|var| self.trips(*var) > 1 && shares(var)).max_by_key(|var| self.trips(*var))
    }

    pub(super) fn split_rows(&mut self, row: &LoopName, count: i64) -> (Option<LoopName>, Option<LoopName>) {
        let at = |part: &str| row.statement.loop_named(format!("{}{part}", row.name));
        let (outer, inner) = (at("o"), at("i"));
        let split = Step::Split {
            target: row.clone(),
            outer: outer.name.clone(),
            inner: vec![(inner.name.clone(), count)],
        };
        if self.try_step(split) {
            self.try_step(Step::Unroll(inner.clone()));
            (Some(outer), Some(inner))
        } else {
            (Some(row.clone()), None)
        }
    }

    /// Unrolls the innermost loops of a short reduction, up to `most` vectors.
    pub(super) fn unroll_short(&mut self, reduced: &[LoopName], tile: i64, most: i64) {
        let mut written = tile;
        for name in reduced.iter().rev() {
            let Ok(var) = self.draft.find_loop(name) else { return };
            written *= self.trips(var);
            if written > most || !self.try_step(Step::Unroll(name.clone())) {
                return;
            }
        }
    }
}
