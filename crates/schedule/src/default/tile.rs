//! The loops of one statement: vectors, a register tile, packed operands, threads.

use tilewright_ir::nest::{LoopKind, Scope};
use tilewright_ir::{Access, Role, VarId};

use super::Planner;
use super::analysis::Stride;
use crate::draft::{LoopRole, StatementId, loops_in};
use crate::step::{LayoutDim, LoopName, Place, PromoteScope, StatementName, Step};

/// A loop over fewer points than this is not worth a thread.
const PARALLEL_POINTS: f64 = 30_000.0;
/// Vectors of a register tile: more than this leaves too little room for operands, and gains nothing.
const MOST_TILE: i64 = 24;
/// Loops of a reduction are written out as long as one iteration has no more vectors than this.
const MOST_WRITTEN_OUT: i64 = 48;
/// How often an element must be used for its packing to pay.
const PACKING_PAYS: i64 = 16;

impl Planner<'_> {
    /// Arranges the loops of a statement. Always succeeds, if only by leaving them as they are.
    pub(super) fn tile_statement(&mut self, statement: StatementId) -> bool {
        let name = self.name_of(statement);
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let done = match self.vector_loop(statement) {
            Some(vector) if reduced.is_empty() => self.guarded(|planner| planner.tile_pointwise(vector)),
            Some(vector) => self.guarded(|planner| planner.tile_reduction(statement, vector)),
            None => self.guarded(|planner| planner.vectorize_reduction(statement)),
        };
        if !done {
            self.guarded(|planner| planner.accumulate(statement));
        }
        self.guarded(|planner| planner.run_in_parallel(&name));
        true
    }

    /// Lanes of a vector of the statement's results.
    fn lanes(&self, statement: StatementId) -> i64 {
        let target = self.draft.statement(statement).target.tensor;
        let dtype = self.draft.buffers[target.index()].buffer.dtype.compute_type();
        self.draft.target.lanes(dtype.bytes()) as i64
    }

    /// The spatial loop along which most accesses are next to each other.
    fn vector_loop(&self, statement: StatementId) -> Option<VarId> {
        let candidates = self
            .loops_with(statement, LoopRole::Spatial)
            .into_iter()
            .filter(|var| self.trips(*var) >= 4 && self.draft.loop_of(*var).kind == LoopKind::Serial);
        let scored = candidates.map(|var| (self.vector_score(statement, var), var));
        scored.filter(|(score, _)| *score > 0).max_by_key(|(score, _)| *score).map(|(_, var)| var)
    }

    fn vector_score(&self, statement: StatementId, var: VarId) -> i64 {
        let own = self.draft.statement(statement);
        let target = match self.stride(&own.target, var) {
            Stride::Elements(1) => 3,
            // Stores that come once a reduction cost little.
            _ if self.reduction_trips(statement) >= PACKING_PAYS => -1,
            _ => -4,
        };
        let read = |read: &Access| match self.stride(read, var) {
            Stride::Elements(1) => 2,
            Stride::Elements(0) => 1,
            _ if self.is_worth_packing(statement, read, var) => 1,
            _ => -6,
        };
        let vector = self.trips(var) >= self.lanes(statement);
        target + own.reads().iter().map(read).sum::<i64>() + i64::from(vector)
    }

    fn reduction_trips(&self, statement: StatementId) -> i64 {
        let trips = self.loops_with(statement, LoopRole::Reduction).into_iter().map(|var| self.trips(var));
        trips.fold(1, i64::saturating_mul)
    }

    /// Whether a read repeats itself over some loop of the result that does not belong to the vector, so that a
    /// packed copy would be used often.
    fn is_worth_packing(&self, statement: StatementId, read: &Access, vector: VarId) -> bool {
        let regular = |var: &VarId| matches!(self.stride(read, *var), Stride::Elements(_));
        let repeats = |var: &VarId| *var != vector && self.stride(read, *var) == Stride::Elements(0);
        let own = self.draft.own_loops(statement);
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let uses: i64 = spatial.iter().filter(|var| repeats(var)).map(|var| self.trips(*var)).product();
        own.iter().all(regular)
            && uses >= PACKING_PAYS
            && self.draft.writers(&self.draft.body, read.tensor).is_empty()
            && self.reduction_trips(statement) >= PACKING_PAYS
    }

    /// Splits off the lanes of a vector, `registers` of them together, and says what is left outside.
    fn split_vector(
        &mut self,
        vector: VarId,
        lanes: i64,
        registers: i64,
    ) -> Option<(LoopName, Option<LoopName>)> {
        let target = self.loop_name(vector);
        let trips = self.trips(vector);
        let names = ["o", "u", "v"].map(|part| format!("{}{part}", target.name));
        let at = |name: &String| target.statement.at(name.clone());
        let [outer, middle, lane] = &names;
        let mut inner = vec![(lane.clone(), lanes)];
        if registers > 1 {
            inner.insert(0, (middle.clone(), registers));
        }
        if trips <= lanes {
            return self.take(Step::Vectorize(target.clone())).then_some((target, None));
        }
        let split = Step::Split { target: target.clone(), outer: outer.clone(), inner };
        if !self.take(split) || !self.take(Step::Vectorize(at(lane))) {
            return None;
        }
        if registers > 1 && !self.take(Step::Unroll(at(middle))) {
            return None;
        }
        Some((at(lane), Some(at(outer))))
    }

    /// Vectors along one loop, which becomes the innermost.
    fn tile_pointwise(&mut self, vector: VarId) -> bool {
        let Some(statement) = self.draft.loop_of(vector).owner else { return false };
        let name = self.name_of(statement);
        let mut order: Vec<LoopName> =
            self.draft.own_loops(statement).into_iter().map(|var| self.loop_name(var)).collect();
        let own = self.loop_name(vector);
        order.retain(|other| *other != own);
        order.push(own);
        self.arrange(statement, order);
        let lanes = self.lanes(statement);
        // Several registers at a time keep the loop's own cost small.
        let wide = if self.trips(vector) >= 4 * lanes { 4 * lanes } else { lanes };
        debug_assert_eq!(self.draft.statement(statement).name, name);
        self.split_vector(vector, wide, 1).is_some()
    }

    /// Brings the statement's own loops into an order, if they are not in it.
    fn arrange(&mut self, statement: StatementId, order: Vec<LoopName>) -> bool {
        let own = self.draft.own_loops(statement).into_iter().map(|var| self.loop_name(var));
        own.eq(order.iter().cloned()) || self.take(Step::Reorder { loops: order })
    }

    /// A reduction whose results lie along a vector: a tile of results stays in registers.
    fn tile_reduction(&mut self, statement: StatementId, vector: VarId) -> bool {
        let name = self.name_of(statement);
        let lanes = self.lanes(statement);
        let vectors = self.tile_vectors(statement, vector, lanes);
        let rows = self.row_loop(statement, vector).map(|row| (row, self.tile_rows(row, vectors)));
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
        // What is constant is put in the order in which it is used, for that is done once.
        let constant_rows: Vec<Access> = match rows {
            Some((row, _)) => along_rows
                .clone()
                .filter(|read| self.is_constant(read) && self.stride(read, row) != Stride::Elements(0))
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
        let middle = name.at(format!("{vector_name}u"));
        let middle = self.draft.find_loop(&middle).is_ok().then_some(middle);
        // The larger operand is gone through once, the smaller one again and again.
        let rows_first = packed.is_empty() || packed_size < rows_size;
        let outer: Vec<LoopName> = match rows_first {
            true => row_outer.iter().chain(&others).chain(&vector_outer).cloned().collect(),
            false => others.iter().chain(&vector_outer).chain(&row_outer).cloned().collect(),
        };
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
        self.unroll_short(&reduced, vectors * rows.map_or(1, |(_, count)| count));
        self.gather_result(&name, outer.last())
    }

    /// The reduced loops, those that walk memory in the smallest steps innermost.
    fn reduced_by_stride(&self, statement: StatementId) -> Vec<VarId> {
        let reads = self.draft.statement(statement).reads();
        let longest = |var: &VarId| {
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

    /// How many vectors of results lie next to each other in the tile.
    fn tile_vectors(&self, statement: StatementId, vector: VarId, lanes: i64) -> i64 {
        let most = if self.row_loop(statement, vector).is_some() { 2 } else { 4 };
        (self.trips(vector) / lanes).clamp(1, most)
    }

    /// How many rows the registers hold beside the operands.
    fn tile_rows(&self, row: VarId, vectors: i64) -> i64 {
        let registers = self.draft.target.vectors.registers() as i64;
        let most = ((registers - vectors - 1) / vectors).clamp(1, MOST_TILE / vectors);
        let trips = self.trips(row);
        // Rows of equal size, rather than many and then few.
        let tiles = (trips + most - 1) / most;
        (trips + tiles - 1) / tiles
    }

    /// The loop of the result that uses the same vectors again: its iterations share the loads along the vector.
    fn row_loop(&self, statement: StatementId, vector: VarId) -> Option<VarId> {
        let reads = self.draft.statement(statement).reads();
        let along = |read: &&Access| self.stride(read, vector) != Stride::Elements(0);
        let shares = |var: &VarId| {
            let mut along = reads.iter().filter(along).peekable();
            along.peek().is_some() && along.all(|read| self.stride(read, *var) == Stride::Elements(0))
        };
        let candidates =
            self.loops_with(statement, LoopRole::Spatial).into_iter().filter(|var| *var != vector);
        candidates.filter(|var| self.trips(*var) > 1 && shares(var)).max_by_key(|var| self.trips(*var))
    }

    fn split_rows(&mut self, row: &LoopName, count: i64) -> (Option<LoopName>, Option<LoopName>) {
        let at = |part: &str| row.statement.at(format!("{}{part}", row.name));
        let (outer, inner) = (at("o"), at("i"));
        let split = Step::Split {
            target: row.clone(),
            outer: outer.name.clone(),
            inner: vec![(inner.name.clone(), count)],
        };
        if self.take(split) {
            self.take(Step::Unroll(inner.clone()));
            (Some(outer), Some(inner))
        } else {
            (Some(row.clone()), None)
        }
    }

    /// Reads along the vector that are used often enough to be copied next to each other first.
    fn operands_to_pack(&self, statement: StatementId, vector: VarId) -> Vec<Access> {
        let reads = self.draft.statement(statement).reads();
        let own = self.draft.own_loops(statement);
        let far = |read: &Access| {
            let reduced = self.loops_with(statement, LoopRole::Reduction);
            reduced.iter().any(|var| !matches!(self.stride(read, *var), Stride::Elements(0)))
                && self.stride(read, vector) != Stride::Elements(0)
        };
        let once = |read: &Access| reads.iter().filter(|other| other.tensor == read.tensor).count() == 1;
        let simple = |read: &Access| {
            own.iter().all(|var| read.indices.iter().filter(|index| index.mentions(*var)).count() <= 1)
        };
        reads
            .iter()
            .filter(|read| {
                far(read) && once(read) && simple(read) && self.is_worth_packing(statement, read, vector)
            })
            .cloned()
            .collect()
    }

    fn is_constant(&self, read: &Access) -> bool {
        let buffer = &self.draft.buffers[read.tensor.index()].buffer;
        let constant = Role::Input { constant: true };
        matches!(buffer.scope, Scope::Argument(id) if self.draft.program.tensor(id).role == constant)
    }

    fn elements(&self, read: &Access) -> i64 {
        self.draft.buffers[read.tensor.index()].buffer.elements()
    }

    /// Packs an operand at a loop, or outside all: the dimension along the vector comes last. Constants are packed
    /// once for all calls.
    fn pack(
        &mut self,
        name: &StatementName,
        read: &Access,
        lane: &LoopName,
        at: Option<&LoopName>,
        width: i64,
    ) -> bool {
        let buffer = self.draft.buffers[read.tensor.index()].buffer.clone();
        let Some((along, tiled)) = self.dimension_along(name, read, lane) else { return false };
        let place = if self.is_constant(read) { None } else { at };
        let part = |dimension, modulo, divide| LayoutDim { dimension, modulo, divide };
        let rest = (0..buffer.shape.len()).filter(|dimension| *dimension != along);
        let mut layout: Vec<LayoutDim> = rest.map(|dimension| part(dimension, None, None)).collect();
        // All of it in tiles, if the vector's tiles are its own.
        if place.is_none() && tiled {
            layout.insert(0, part(along, None, Some(width)));
            layout.push(part(along, Some(width), None));
        } else {
            layout.push(part(along, None, None));
        }
        let staged = StatementName::first(format!("{}_packed", buffer.name));
        let last = staged.at(format!("l{}", layout.len() - 1));
        let step = Step::Promote {
            tensor: buffer.name,
            at: place.map_or(Place::Root, |at| Place::Loop(at.clone())),
            name: staged.tensor.clone(),
            scope: PromoteScope::Packed,
            layout,
        };
        if !self.guarded(|planner| planner.take(step)) {
            return false;
        }
        self.guarded(|planner| planner.vectorize_copy(&last));
        self.guarded(|planner| planner.run_in_parallel(&staged))
    }

    /// Vectors along the last loop of a copy.
    fn vectorize_copy(&mut self, last: &LoopName) -> bool {
        let Ok(var) = self.draft.find_loop(last) else { return false };
        let lanes = self.draft.target.lanes(4) as i64;
        if self.trips(var) <= 3 * lanes {
            return self.take(Step::Vectorize(last.clone()));
        }
        self.split_vector(var, lanes, 1).is_some()
    }

    /// The dimension of an operand along the vector, and whether nothing but the vector's loops is in its subscript.
    fn dimension_along(&self, name: &StatementName, read: &Access, lane: &LoopName) -> Option<(usize, bool)> {
        let statement = self.draft.find_statement(name).ok()?;
        let lane = self.draft.find_loop(lane).ok()?;
        let reads = self.draft.statement(statement).reads();
        let current = reads.iter().find(|own| own.tensor == read.tensor)?;
        let along = current.indices.iter().position(|index| index.mentions(lane))?;
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let tiled = !reduced.iter().any(|var| current.indices[along].mentions(*var));
        Some((along, tiled))
    }

    /// Writes out the innermost loops of a short reduction.
    fn unroll_short(&mut self, reduced: &[LoopName], tile: i64) {
        let mut written = tile;
        for name in reduced.iter().rev() {
            let Ok(var) = self.draft.find_loop(name) else { return };
            written *= self.trips(var);
            if written > MOST_WRITTEN_OUT || !self.take(Step::Unroll(name.clone())) {
                return;
            }
        }
    }

    /// Keeps the results of one iteration of the loop in registers.
    fn gather_result(&mut self, name: &StatementName, at: Option<&LoopName>) -> bool {
        let Some(at) = at else { return true };
        let tensor = name.tensor.clone();
        let buffer = format!(
            "{tensor}_tile{}",
            if name.ordinal > 1 { name.ordinal.to_string() } else { String::new() }
        );
        let step = Step::Promote {
            tensor,
            at: Place::Loop(at.clone()),
            name: buffer,
            scope: PromoteScope::Registers,
            layout: Vec::new(),
        };
        self.guarded(|planner| planner.take(step));
        true
    }

    /// A reduction along memory: a total for each lane, and these added up at the end.
    fn vectorize_reduction(&mut self, statement: StatementId) -> bool {
        let name = self.name_of(statement);
        let reads = self.draft.statement(statement).reads();
        let contiguous = |var: &VarId| {
            !reads.is_empty()
                && reads.iter().all(|read| matches!(self.stride(read, *var), Stride::Elements(0 | 1)))
                && reads.iter().any(|read| self.stride(read, *var) == Stride::Elements(1))
        };
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let lanes = self.lanes(statement);
        let Some(along) = reduced.iter().copied().filter(|var| self.trips(*var) >= lanes).find(contiguous)
        else {
            return false;
        };
        let width = if self.trips(along) >= 4 * lanes { 4 * lanes } else { lanes };
        let old = self.loop_name(along);
        let (outer, lane) = (format!("{}o", old.name), format!("{}v", old.name));
        let partial = format!(
            "{}_lanes{}",
            name.tensor,
            if name.ordinal > 1 { name.ordinal.to_string() } else { String::new() }
        );
        let inside: Vec<LoopName> =
            reduced.iter().map(|var| self.loop_name(*var)).filter(|other| *other != old).collect();
        let split =
            Step::Split { target: old.clone(), outer: outer.clone(), inner: vec![(lane.clone(), width)] };
        let rfactor = Step::Rfactor { target: name.at(lane.clone()), name: partial.clone() };
        let partial_name = StatementName::first(partial.clone());
        if !self.take(split) || !self.take(rfactor) {
            return false;
        }
        let mut order: Vec<LoopName> =
            inside.iter().map(|other| partial_name.at(other.name.clone())).collect();
        order.extend([partial_name.at(outer), partial_name.at(lane.clone())]);
        if !inside.is_empty() {
            self.guarded(|planner| planner.take(Step::Reorder { loops: order }));
        }
        if !self.take(Step::Vectorize(partial_name.at(lane.clone()))) {
            return false;
        }
        self.take(Step::Vectorize(name.at(lane)));
        let around = self.loop_around_reduction(statement);
        self.gather_result(&partial_name, around.as_ref())
    }

    /// The loop just outside of a statement's reduction, as its own statement names it.
    fn loop_around_reduction(&self, statement: StatementId) -> Option<LoopName> {
        let path = self.draft.path(statement);
        let reduced = self.draft.outermost_reduction(statement)?;
        let at = path.iter().position(|var| *var == reduced)?;
        let around = path[..at].last()?;
        Some(self.name_of(statement).at(self.draft.loop_of(*around).name.clone()))
    }

    /// Without vectors: the reduced loops inside, and one total in a register.
    fn accumulate(&mut self, statement: StatementId) -> bool {
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let Some(last) = self.loops_with(statement, LoopRole::Spatial).last().copied() else { return true };
        if reduced.is_empty() {
            return true;
        }
        let name = self.name_of(statement);
        let at = self.loop_name(last);
        self.gather_result(&name, Some(&at))
    }

    /// Spreads the outermost loop with enough iterations over the threads.
    fn run_in_parallel(&mut self, name: &StatementName) -> bool {
        let Ok(statement) = self.draft.find_statement(name) else { return true };
        let path = self.draft.path(statement);
        let is_serial = |var: &VarId| self.draft.loop_of(*var).kind == LoopKind::Serial;
        if path.is_empty() || path.iter().any(|var| self.draft.loop_of(*var).kind == LoopKind::Parallel) {
            return true;
        }
        let work: f64 = self.work_inside(path[0]);
        if work < PARALLEL_POINTS || self.draft.target.cores < 2 {
            return true;
        }
        let enough = |var: &VarId| self.trips(*var) >= 2 * self.draft.target.cores as i64;
        let leading = path.iter().copied().take_while(|var| is_serial(var));
        let spatial: Vec<VarId> =
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
            self.guarded(|planner| planner.take(Step::Reorder { loops: order }));
        }
        self.take(Step::Parallel(target))
    }

    /// The points that all statements inside a loop compute.
    fn work_inside(&self, var: VarId) -> f64 {
        debug_assert!(loops_in(self.draft.body_of(var)).len() < 10_000);
        let inside = crate::draft::statements_in(self.draft.body_of(var));
        inside.iter().map(|id| self.points(*id)).sum()
    }
}
