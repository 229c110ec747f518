//! Adds the knobs that tile, order and run the loops of one statement, and makes the steps that
//! follow from the values of these knobs.
//!
//! Every loop is split into three parts. The parts are nested as follows, where each level has its
//! own order:
//!
//! ```text
//! outer     first parts of result loops     spread over threads, the first few of them as one loop
//! block     second parts of result loops,   sized for the caches
//!           first parts of reduced loops
//! reduced   second parts of reduced loops
//! tile      third parts of all loops        unrolled, results in registers; the last is a vector
//! ```
//!
//! A part with one iteration does not become a loop. The vector runs along a result loop or along a
//! reduced loop. In the latter case, each lane has its own partial total.

use tilewright_schedule::analysis::{Stride, iterations};
use tilewright_schedule::{LoopLevel, LoopName, PromoteScope, StatementName, Step};
use tilewright_target::Cpu;

use crate::knob::{Divisors, Knob, Point};
use crate::space::cuts::{Cuts, divisor_count, near_divisors};
use crate::space::names::Names;
use crate::space::rejection::Rejection;
use crate::space::stage::{Stage, StageLoop};
use crate::space::{Builder, KnobId};

/// The largest number of lanes that `vectorize` accepts.
const MAX_LANES: i64 = 64;
/// A reduced loop is cut exactly if it has at least this many divisors to choose from.
const ENOUGH_DIVISORS: usize = 4;
/// The number of parts of each loop.
const PARTS: usize = 3;

/// The knobs of one statement.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(super) cuts: Cuts,
    /// The knob that selects the vectorised loop. Its values are the entries of `vector_loops`,
    /// followed by "none".
    pub(super) vector: KnobId,
    pub(super) vector_loops: Vec<usize>,
    order_outer: KnobId,
    order_block: KnobId,
    order_reduced: KnobId,
    /// The number of outer loops that are fused and spread over threads.
    pub(super) threads: KnobId,
}

/// The loops of a statement after its steps, by level, each level outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// The statement that these loops belong to.
    pub statement: Option<StatementName>,
    pub outer: Vec<LoopName>,
    /// For each loop of `outer`, the indices in the statement of the loops that it is a part of.
    pub outer_of: Vec<Vec<usize>>,
    pub block: Vec<LoopName>,
    pub reduced: Vec<LoopName>,
    /// The index in the statement of the loop that the last loop of `reduced` is a part of.
    pub innermost_reduced: Option<usize>,
    pub tile: Vec<LoopName>,
    pub lane: Option<LoopName>,
    /// The index in the statement of the vectorised loop.
    pub vector_loop: Option<usize>,
    /// For each loop of the statement, the number of its iterations in one tile.
    pub widths: Vec<i64>,
    /// The indices of the statement's loops in the order of the nest, outermost first.
    pub nesting: Vec<usize>,
}

impl Levels {
    /// The innermost loop around the reduction and the tile.
    pub fn around_reduction(&self) -> Option<&LoopName> {
        self.block.last().or(self.outer.last())
    }
}

impl Tile {
    /// Adds the knobs of a statement.
    pub fn new(stage: &Stage, target: &Cpu, builder: &mut Builder) -> Tile {
        let name = |what: &str| format!("{}.{what}", stage.name);
        let cuts = Cuts::new(stage, builder, |at| (PARTS, divisors(&stage.loops[at])));
        let [spatial, reduced] = [&cuts.spatial, &cuts.reduced].map(Vec::len);
        let vector_loops = vector_loops(stage, target);
        let mut along: Vec<String> = vector_loops.iter().map(|at| stage.loops[*at].name.clone()).collect();
        along.push("none".to_string());
        Tile {
            vector: builder.add(Knob::categorical(name("vector"), along)),
            vector_loops,
            order_outer: builder.add(Knob::permutation(name("outer"), spatial)),
            order_block: builder.add(Knob::permutation(name("block"), spatial + reduced)),
            order_reduced: builder.add(Knob::permutation(name("reduced"), reduced)),
            threads: builder.add(Knob::ordinal(name("threads"), 0..=spatial as i64)),
            cuts,
        }
    }

    /// The index of the vectorised loop, if there is one.
    pub fn vector_loop(&self, point: &Point) -> Option<usize> {
        self.vector_loops.get(point.choice(self.vector.0)).copied()
    }

    /// The trip counts of the three parts of a loop: outer, block, tile for a result loop; block,
    /// reduced, tile for a reduced loop.
    fn parts(&self, point: &Point, at: usize) -> [i64; 3] {
        match self.cuts.factors(point, at) {
            [outer, block, tile] => [*outer, *block, *tile],
            _ => [1, 1, 1],
        }
    }

    /// Returns the steps that split, order and run the loops. `is_root` says that the statement is
    /// not computed inside the loops of another statement.
    pub fn steps(
        &self,
        stage: &Stage,
        target: &Cpu,
        point: &Point,
        is_root: bool,
        names: &Names,
    ) -> Result<(Vec<Step>, Levels), Rejection> {
        let mut cutter = LoopSplitter {
            stage,
            names,
            is_root,
            lanes: target.lanes(stage.dtype.compute_type().bytes()) as i64,
            steps: Vec::new(),
            pieces: Vec::new(),
        };
        let vector = self.vector_loop(point);
        for at in self.cuts.all() {
            cutter.split(at, self.parts(point, at), vector == Some(at))?;
        }
        let LoopSplitter { mut steps, pieces, .. } = cutter;
        let mut levels = self.arrange_levels(stage, point, &pieces);
        let all = levels.outer.iter().chain(&levels.block).chain(&levels.reduced).chain(&levels.tile);
        let order: Vec<LoopName> = all.chain(&levels.lane).cloned().collect();
        if order.len() > 1 {
            steps.push(Step::Reorder { loops: order });
        }
        if vector.is_some_and(|at| stage.loops[at].is_reduced) {
            add_lane_totals(stage, names, &mut levels, &mut steps);
        }
        steps.extend(levels.tile.iter().cloned().map(Step::Unroll));
        steps.extend(levels.lane.iter().cloned().map(Step::Vectorize));
        if is_root {
            self.parallelise(stage, point, names, &mut levels, &mut steps);
        }
        Ok((steps, levels))
    }

    /// Puts the parts of all loops into their levels.
    fn arrange_levels(&self, stage: &Stage, point: &Point, pieces: &[LoopParts]) -> Levels {
        let of = |at: usize| pieces.iter().find(|own| own.at == at);
        let mut levels = Levels { statement: Some(stage.name.clone()), ..Levels::default() };
        levels.widths = vec![1; stage.loops.len()];
        let mut nesting = Vec::new();
        for place in point.order(self.order_outer.0) {
            let at = self.cuts.spatial[*place];
            let outer = of(at).and_then(|own| own.outer.clone());
            nesting.extend(outer.is_some().then_some(at));
            levels.outer_of.extend(outer.is_some().then(|| vec![at]));
            levels.outer.extend(outer);
        }
        let both: Vec<usize> = self.cuts.all().collect();
        for place in point.order(self.order_block.0) {
            let at = both[*place];
            let block = of(at).and_then(|own| own.block.clone());
            nesting.extend(block.is_some().then_some(at));
            levels.block.extend(block);
        }
        for place in point.order(self.order_reduced.0) {
            let at = self.cuts.reduced[*place];
            let inner = of(at).and_then(|own| own.reduced.clone());
            nesting.push(at);
            levels.innermost_reduced = inner.as_ref().map(|_| at).or(levels.innermost_reduced);
            levels.reduced.extend(inner);
        }
        for own in pieces.iter().filter(|own| stage.loops[own.at].is_reduced) {
            levels.tile.extend(own.tile.clone());
        }
        // The tile loop of the vectorised loop comes last, because its iterations access adjacent
        // vectors in memory.
        let tiled = |with_lane: bool| {
            pieces
                .iter()
                .filter(move |own| !stage.loops[own.at].is_reduced && own.lane.is_some() == with_lane)
        };
        for own in tiled(false).chain(tiled(true)) {
            levels.tile.extend(own.tile.clone());
        }
        levels.lane = pieces.iter().find_map(|own| own.lane.clone());
        levels.vector_loop = self.vector_loop(point);
        for own in pieces {
            levels.widths[own.at] = own.width;
        }
        levels.nesting = nesting;
        levels
    }

    /// Spreads the first outer loops over the threads.
    fn parallelise(
        &self,
        stage: &Stage,
        point: &Point,
        names: &Names,
        levels: &mut Levels,
        steps: &mut Vec<Step>,
    ) {
        let count = point.choice(self.threads.0).min(levels.outer.len());
        if count == 0 || stage.is_ordered {
            return;
        }
        let together: Vec<LoopName> = levels.outer.drain(..count).collect();
        let places = levels.outer_of.drain(..count).flatten().collect();
        levels.outer_of.insert(0, places);
        let spread = match together.as_slice() {
            [one] => one.clone(),
            _ => {
                let name = names.part(&stage.name.tensor, "threads");
                let fused = together[0].statement.loop_named(name.clone());
                steps.push(Step::Fuse { loops: together, name });
                fused
            }
        };
        steps.push(Step::Parallel(spread.clone()));
        levels.outer.insert(0, spread);
    }

    /// Promotes the results of a tile to registers while the reduction runs.
    pub fn promote_results(&self, levels: &Levels, stage: &Stage, names: &Names) -> Option<Step> {
        if self.cuts.reduced.is_empty() || stage.scatters {
            return None;
        }
        let statement = levels.statement.as_ref()?;
        let (at, name) = (levels.around_reduction()?, names.buffer(&stage.name, "tile"));
        let at = LoopLevel::Loop(at.clone());
        Some(Step::promote(&statement.tensor, at, name, PromoteScope::Registers, Vec::new()))
    }

    /// Returns the number of vectors that the results of a tile occupy, and the number of copies of
    /// the innermost code.
    pub fn registers(&self, stage: &Stage, target: &Cpu, point: &Point) -> (i64, i64) {
        let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
        let vector = self.vector_loop(point);
        let (mut results, mut copies) = (1i64, 1i64);
        for at in self.cuts.all() {
            let width = self.parts(point, at)[2];
            let registers = if vector == Some(at) { (width + lanes - 1) / lanes } else { width };
            copies = copies.saturating_mul(registers);
            if !stage.loops[at].is_reduced || vector == Some(at) {
                results = results.saturating_mul(registers);
            }
        }
        (results, copies)
    }

    /// Rejects a vector that does not fill whole registers.
    pub fn check_lanes(&self, stage: &Stage, target: &Cpu, point: &Point) -> Result<(), Rejection> {
        let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
        let along = self.vector_loop(point);
        along.map_or(Ok(()), |at| vector_lanes(&stage.loops[at], self.parts(point, at)[2], lanes).map(|_| ()))
    }

    /// The range of the knobs that the limits of a tile depend on.
    pub fn knob_range(&self) -> std::ops::Range<usize> {
        let first = self.cuts.knobs.first().unwrap_or(&self.vector).0;
        first..self.threads.0 + 1
    }

    /// The number of iterations that can run in parallel.
    pub fn parallel_iterations(&self, point: &Point) -> i64 {
        let count = point.choice(self.threads.0);
        let order = point.order(self.order_outer.0).iter();
        // Parts with one iteration are not loops, so they do not count.
        let outer =
            order.map(|place| self.parts(point, self.cuts.spatial[*place])[0]).filter(|outer| *outer > 1);
        iterations(outer.take(count))
    }
}

/// Gives each lane along a reduced loop its own partial total, which a last statement adds up.
fn add_lane_totals(stage: &Stage, names: &Names, levels: &mut Levels, steps: &mut Vec<Step>) {
    let Some(lane) = levels.lane.clone() else { return };
    let partial = StatementName::first(names.buffer(&stage.name, "lanes"));
    steps.push(Step::Rfactor { target: lane.clone(), name: partial.tensor.clone() });
    steps.push(Step::Vectorize(lane.clone()));
    let moved = |own: &LoopName| partial.loop_named(own.name.clone());
    for level in [&mut levels.outer, &mut levels.block, &mut levels.reduced, &mut levels.tile] {
        *level = level.iter().map(moved).collect();
    }
    levels.lane = Some(moved(&lane));
    levels.statement = Some(partial);
}

/// Returns how a loop may be cut. Parts that do not divide a reduced loop need remainder code, and
/// gain nothing if there are enough divisors to choose from.
fn divisors(own: &StageLoop) -> Divisors {
    if own.is_reduced && divisor_count(own) >= ENOUGH_DIVISORS { Divisors::Exact } else { near_divisors(own) }
}

/// The loops that a vector can run along. A result loop qualifies if the statement has a reduction
/// or if an access is contiguous along the loop. A reduced loop qualifies if an access is
/// contiguous along it and the statement does not scatter.
fn vector_loops(stage: &Stage, target: &Cpu) -> Vec<usize> {
    let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
    let long_enough = |at: &usize| 2 * stage.loops[*at].trips >= lanes.min(4);
    let has_reduction = !stage.repeated_loops(true).is_empty();
    let side_by_side = |at: usize| {
        let own = stage.operands.iter().map(|operand| operand.strides[at]);
        own.chain([stage.result[at]]).any(|stride| stride == Stride::Elements(1))
    };
    let spatial = stage.repeated_loops(false).into_iter().filter(|at| has_reduction || side_by_side(*at));
    let reduced = stage.repeated_loops(true).into_iter().filter(|at| side_by_side(*at) && !stage.scatters);
    spatial.chain(reduced).filter(long_enough).collect()
}

/// The parts of one loop.
struct LoopParts {
    at: usize,
    outer: Option<LoopName>,
    block: Option<LoopName>,
    reduced: Option<LoopName>,
    tile: Option<LoopName>,
    lane: Option<LoopName>,
    /// The number of iterations in one tile.
    width: i64,
}

/// Splits the loops of a statement.
struct LoopSplitter<'a> {
    stage: &'a Stage,
    names: &'a Names,
    is_root: bool,
    lanes: i64,
    steps: Vec<Step>,
    pieces: Vec<LoopParts>,
}

impl LoopSplitter<'_> {
    fn split(&mut self, at: usize, [first, second, third]: [i64; 3], vector: bool) -> Result<(), Rejection> {
        let own = &self.stage.loops[at];
        let (lane, tile) = if vector { vector_lanes(own, third, self.lanes)? } else { (1, third) };
        // Inside a consumer's loops, only a part of the tensor may be computed. The trip count of
        // the first part is then unknown, so the first part always becomes a loop.
        let open = !self.is_root;
        let wanted = [("0", first, open), ("1", second, false), ("2", tile, false), ("v", lane, false)];
        let parts: Vec<(&str, i64)> = wanted
            .into_iter()
            .filter(|(_, count, always)| *count > 1 || *always)
            .map(|(part, count, _)| (part, count))
            .collect();
        let target = self.stage.name.loop_named(own.name.clone());
        let name = |part: &str| match parts.len() {
            0 | 1 => own.name.clone(),
            // The loops of the consumer around this one may use the same names for their parts.
            _ if open => self.names.part(&own.name, &format!("{}{part}", self.stage.name.tensor)),
            _ => self.names.part(&own.name, part),
        };
        let loop_of = |part: &str| {
            parts.iter().any(|(own, _)| *own == part).then(|| self.stage.name.loop_named(name(part)))
        };
        self.pieces.push(LoopParts {
            at,
            outer: loop_of("0").filter(|_| !own.is_reduced),
            block: if own.is_reduced { loop_of("0") } else { loop_of("1") },
            reduced: loop_of("1").filter(|_| own.is_reduced),
            tile: loop_of("2"),
            lane: loop_of("v"),
            width: third,
        });
        if let [(outer, _), inner @ ..] = parts.as_slice()
            && !inner.is_empty()
        {
            let inner = inner.iter().map(|(part, count)| (name(part), *count)).collect();
            self.steps.push(Step::Split { target, outer: name(outer), inner });
        }
        Ok(())
    }
}

/// Returns the number of lanes, and the number of vectors in a tile, for a loop with `width`
/// iterations in the tile.
fn vector_lanes(own: &StageLoop, width: i64, lanes: i64) -> Result<(i64, i64), Rejection> {
    if width == own.trips && own.trips <= MAX_LANES && (own.trips <= lanes || own.is_reduced) {
        return Ok((width, 1));
    }
    if width % lanes != 0 {
        return Err(Rejection::VectorWidth);
    }
    // The partial totals of a reduced loop form one wide vector; results form several vectors.
    if own.is_reduced {
        return if width <= MAX_LANES { Ok((width, 1)) } else { Err(Rejection::VectorWidth) };
    }
    Ok((lanes, width / lanes))
}
