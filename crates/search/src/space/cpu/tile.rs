//! The loops of one statement: knobs for how they are cut, ordered and run, and the steps that a choice of them means.
//!
//! Every loop is cut into three parts, and the parts are nested like this, each level in an order of its own:
//!
//! ```text
//! outer     first parts of result loops          spread over threads, the first few of them as one loop
//! block     second parts of result loops,        sized for the caches
//!           first parts of reduced loops
//! reduced   second parts of reduced loops
//! tile      third parts of all loops             written out, results in registers; the last is a vector
//! ```
//!
//! A part of one iteration is no loop. The vector runs along a result loop, or along a reduced one, whose lanes then
//! have totals of their own.

use tilewright_schedule::analysis::Stride;
use tilewright_schedule::{LoopName, Place, PromoteScope, StatementName, Step};
use tilewright_target::Cpu;

use crate::knob::{Divisors, Knob, Point};
use crate::space::names::Names;
use crate::space::rejection::Rejection;
use crate::space::stage::{Stage, StageLoop};
use crate::space::{Builder, KnobId};

/// Lanes of a vector loop, as `vectorize` takes them.
const MOST_LANES: i64 = 64;
/// How much more may be computed than asked for, in percent, for numbers that do not divide: much for short loops,
/// which have few divisors, little for long ones.
const WASTE_SHORT: u32 = 15;
const WASTE_LONG: u32 = 5;
const SHORT: i64 = 64;
/// Divisors up to this are counted, and so many are enough.
const MOST_DIVISORS: i64 = 64;
const ENOUGH: usize = 4;

/// The knobs of one statement.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// Result loops and reduced loops that run more than once, by their place in the statement.
    pub(super) spatial: Vec<usize>,
    pub(super) reduced: Vec<usize>,
    /// How each loop is cut, in the order of `spatial` and then `reduced`.
    pub(super) cuts: Vec<KnobId>,
    /// Which loop the vector runs along: one of these, the last being none.
    pub(super) vector: KnobId,
    pub(super) vector_loops: Vec<usize>,
    order_outer: KnobId,
    order_block: KnobId,
    order_reduced: KnobId,
    /// How many outer loops are spread over threads together.
    pub(super) threads: KnobId,
}

/// The loops of a statement after its steps, by level and outermost first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Levels {
    /// The statement that has these loops.
    pub statement: Option<StatementName>,
    pub outer: Vec<LoopName>,
    /// For each of these, the places in the statement of the loops that it is a part of.
    pub outer_of: Vec<Vec<usize>>,
    pub block: Vec<LoopName>,
    pub reduced: Vec<LoopName>,
    /// The place, in the statement, of the loop that the last of these is a part of.
    pub innermost_reduced: Option<usize>,
    pub tile: Vec<LoopName>,
    pub lane: Option<LoopName>,
    /// The place, in the statement, of the loop that the vector runs along.
    pub along: Option<usize>,
    /// The last part of each of the statement's loops: how many iterations of it are in one tile.
    pub widths: Vec<i64>,
    /// Places of the statement's loops in the order of the nest, from the outside in.
    pub nesting: Vec<usize>,
}

impl Levels {
    /// The innermost loop outside of the reduction and the tile.
    pub fn around_reduction(&self) -> Option<&LoopName> {
        self.block.last().or(self.outer.last())
    }
}

impl Tile {
    /// Adds the knobs of a statement.
    pub fn new(stage: &Stage, target: &Cpu, builder: &mut Builder) -> Tile {
        let (spatial, reduced) = (stage.busy(false), stage.busy(true));
        let name = |what: &str| format!("{}.{what}", stage.name);
        let cuts = spatial
            .iter()
            .chain(&reduced)
            .map(|at| &stage.loops[*at])
            .map(|own| builder.add(Knob::factorisation(name(&own.name), own.trips, 3, divisors(own))))
            .collect();
        let vector_loops = vector_loops(stage, target);
        let mut along: Vec<String> = vector_loops.iter().map(|at| stage.loops[*at].name.clone()).collect();
        along.push("none".to_string());
        Tile {
            cuts,
            vector: builder.add(Knob::categorical(name("vector"), along)),
            vector_loops,
            order_outer: builder.add(Knob::permutation(name("outer"), spatial.len())),
            order_block: builder.add(Knob::permutation(name("block"), spatial.len() + reduced.len())),
            order_reduced: builder.add(Knob::permutation(name("reduced"), reduced.len())),
            threads: builder.add(Knob::ordinal(name("threads"), 0..=spatial.len() as i64)),
            spatial,
            reduced,
        }
    }

    /// The loop that the vector runs along.
    pub fn vector_loop(&self, point: &Point) -> Option<usize> {
        self.vector_loops.get(point.choice(self.vector.0)).copied()
    }

    /// The parts of a loop: outer, block or inner, and tile.
    fn parts(&self, point: &Point, at: usize) -> [i64; 3] {
        let knob = self.spatial.iter().chain(&self.reduced).position(|own| *own == at);
        let factors = knob.map_or(&[] as &[i64], |knob| point.factors(self.cuts[knob].0));
        match factors {
            [outer, block, tile] => [*outer, *block, *tile],
            _ => [1, 1, 1],
        }
    }

    /// The steps that cut, order and run the loops. `alone`: it is computed outside of all others' loops.
    pub fn steps(
        &self,
        stage: &Stage,
        target: &Cpu,
        point: &Point,
        alone: bool,
        names: &Names,
    ) -> Result<(Vec<Step>, Levels), Rejection> {
        let mut cutter = Cutter {
            stage,
            names,
            alone,
            lanes: target.lanes(stage.dtype.compute_type().bytes()) as i64,
            steps: Vec::new(),
            pieces: Vec::new(),
        };
        let vector = self.vector_loop(point);
        for at in self.spatial.iter().chain(&self.reduced) {
            cutter.cut(*at, self.parts(point, *at), vector == Some(*at))?;
        }
        let Cutter { mut steps, pieces, .. } = cutter;
        let mut levels = self.nest(stage, point, &pieces);
        let all = levels.outer.iter().chain(&levels.block).chain(&levels.reduced).chain(&levels.tile);
        let order: Vec<LoopName> = all.chain(&levels.lane).cloned().collect();
        if order.len() > 1 {
            steps.push(Step::Reorder { loops: order });
        }
        if vector.is_some_and(|at| stage.loops[at].reduced) {
            total_lanes(stage, names, &mut levels, &mut steps);
        }
        steps.extend(levels.tile.iter().cloned().map(Step::Unroll));
        steps.extend(levels.lane.iter().cloned().map(Step::Vectorize));
        if alone {
            self.spread(stage, point, names, &mut levels, &mut steps);
        }
        Ok((steps, levels))
    }

    /// The parts of all loops, put into their levels.
    fn nest(&self, stage: &Stage, point: &Point, pieces: &[Pieces]) -> Levels {
        let of = |at: usize| pieces.iter().find(|own| own.at == at);
        let mut levels = Levels { statement: Some(stage.name.clone()), ..Levels::default() };
        levels.widths = vec![1; stage.loops.len()];
        let mut nesting = Vec::new();
        for place in point.order(self.order_outer.0) {
            let at = self.spatial[*place];
            let outer = of(at).and_then(|own| own.outer.clone());
            nesting.extend(outer.is_some().then_some(at));
            levels.outer_of.extend(outer.is_some().then(|| vec![at]));
            levels.outer.extend(outer);
        }
        let both: Vec<usize> = self.spatial.iter().chain(&self.reduced).copied().collect();
        for place in point.order(self.order_block.0) {
            let at = both[*place];
            let block = of(at).and_then(|own| own.block.clone());
            nesting.extend(block.is_some().then_some(at));
            levels.block.extend(block);
        }
        for place in point.order(self.order_reduced.0) {
            let at = self.reduced[*place];
            let inner = of(at).and_then(|own| own.reduced.clone());
            nesting.push(at);
            levels.innermost_reduced = inner.as_ref().map(|_| at).or(levels.innermost_reduced);
            levels.reduced.extend(inner);
        }
        for own in pieces.iter().filter(|own| stage.loops[own.at].reduced) {
            levels.tile.extend(own.tile.clone());
        }
        // The vector's registers are next to each other in memory, so they come last.
        let tiled = |with_lane: bool| {
            pieces.iter().filter(move |own| !stage.loops[own.at].reduced && own.lane.is_some() == with_lane)
        };
        for own in tiled(false).chain(tiled(true)) {
            levels.tile.extend(own.tile.clone());
        }
        levels.lane = pieces.iter().find_map(|own| own.lane.clone());
        levels.along = self.vector_loop(point);
        for own in pieces {
            levels.widths[own.at] = own.width;
        }
        levels.nesting = nesting;
        levels
    }

    /// Spreads the first outer loops over the threads.
    fn spread(
        &self,
        stage: &Stage,
        point: &Point,
        names: &Names,
        levels: &mut Levels,
        steps: &mut Vec<Step>,
    ) {
        let count = point.choice(self.threads.0).min(levels.outer.len());
        if count == 0 || stage.ordered {
            return;
        }
        let together: Vec<LoopName> = levels.outer.drain(..count).collect();
        let places = levels.outer_of.drain(..count).flatten().collect();
        levels.outer_of.insert(0, places);
        let spread = match together.as_slice() {
            [one] => one.clone(),
            _ => {
                let name = names.part(&stage.name.tensor, "threads");
                let fused = together[0].statement.at(name.clone());
                steps.push(Step::Fuse { loops: together, name });
                fused
            }
        };
        steps.push(Step::Parallel(spread.clone()));
        levels.outer.insert(0, spread);
    }

    /// Keeps the results of a tile in registers while the reduction runs.
    pub fn gather(&self, levels: &Levels, stage: &Stage, names: &Names) -> Option<Step> {
        if self.reduced.is_empty() || stage.scatters {
            return None;
        }
        let statement = levels.statement.as_ref()?;
        Some(Step::Promote {
            tensor: statement.tensor.clone(),
            at: Place::Loop(levels.around_reduction()?.clone()),
            name: names.buffer(&stage.name, "tile"),
            scope: PromoteScope::Registers,
            gathered: false,
            layout: Vec::new(),
            pad: 0,
        })
    }

    /// The vectors that results and one row of operands take up, and the copies of the innermost code.
    pub fn registers(&self, stage: &Stage, target: &Cpu, point: &Point) -> (i64, i64) {
        let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
        let vector = self.vector_loop(point);
        let (mut results, mut copies) = (1i64, 1i64);
        for at in self.spatial.iter().chain(&self.reduced) {
            let width = self.parts(point, *at)[2];
            let registers = if vector == Some(*at) { (width + lanes - 1) / lanes } else { width };
            copies = copies.saturating_mul(registers);
            if !stage.loops[*at].reduced || vector == Some(*at) {
                results = results.saturating_mul(registers);
            }
        }
        (results, copies)
    }

    /// Refuses a vector that is not made of whole registers.
    pub fn check_lanes(&self, stage: &Stage, target: &Cpu, point: &Point) -> Result<(), Rejection> {
        let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
        let along = self.vector_loop(point);
        along.map_or(Ok(()), |at| lanes_of(&stage.loops[at], self.parts(point, at)[2], lanes).map(|_| ()))
    }

    /// The knobs that these limits are about.
    pub fn own_knobs(&self) -> std::ops::Range<usize> {
        let first = self.cuts.first().unwrap_or(&self.vector).0;
        first..self.threads.0 + 1
    }

    /// Iterations that can run at the same time.
    pub fn spread_over(&self, point: &Point) -> i64 {
        let count = point.choice(self.threads.0);
        let order = point.order(self.order_outer.0).iter();
        // Parts of one iteration are no loops, and are not counted.
        let outer = order.map(|place| self.parts(point, self.spatial[*place])[0]).filter(|outer| *outer > 1);
        outer.take(count).product()
    }
}

/// Lanes along a reduced loop get totals of their own, which a last statement adds up.
fn total_lanes(stage: &Stage, names: &Names, levels: &mut Levels, steps: &mut Vec<Step>) {
    let Some(lane) = levels.lane.clone() else { return };
    let partial = StatementName::first(names.buffer(&stage.name, "lanes"));
    steps.push(Step::Rfactor { target: lane.clone(), name: partial.tensor.clone() });
    steps.push(Step::Vectorize(lane.clone()));
    let moved = |own: &LoopName| partial.at(own.name.clone());
    for level in [&mut levels.outer, &mut levels.block, &mut levels.reduced, &mut levels.tile] {
        *level = level.iter().map(moved).collect();
    }
    levels.lane = Some(moved(&lane));
    levels.statement = Some(partial);
}

/// How a loop may be cut. A reduction whose parts do not divide needs code for what is left, and gains nothing by it as
/// long as there are divisors to choose from.
fn divisors(own: &StageLoop) -> Divisors {
    let count = (1..=own.trips.min(MOST_DIVISORS)).filter(|by| own.trips % by == 0).count();
    match own.trips {
        _ if own.reduced && count >= ENOUGH => Divisors::Exact,
        trips if trips < SHORT => Divisors::Near { most_waste_percent: WASTE_SHORT },
        _ => Divisors::Near { most_waste_percent: WASTE_LONG },
    }
}

/// The loops that a vector can run along: the result is written side by side or once a reduction, or reduced.
fn vector_loops(stage: &Stage, target: &Cpu) -> Vec<usize> {
    let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
    let long_enough = |at: &usize| 2 * stage.loops[*at].trips >= lanes.min(4);
    let has_reduction = !stage.busy(true).is_empty();
    let side_by_side = |at: usize| {
        let own = stage.operands.iter().map(|operand| operand.strides[at]);
        own.chain([stage.result[at]]).any(|stride| stride == Stride::Elements(1))
    };
    let spatial = stage.busy(false).into_iter().filter(|at| has_reduction || side_by_side(*at));
    let reduced = stage.busy(true).into_iter().filter(|at| side_by_side(*at) && !stage.scatters);
    spatial.chain(reduced).filter(long_enough).collect()
}

/// One loop's parts.
struct Pieces {
    at: usize,
    outer: Option<LoopName>,
    block: Option<LoopName>,
    reduced: Option<LoopName>,
    tile: Option<LoopName>,
    lane: Option<LoopName>,
    /// Iterations in one tile.
    width: i64,
}

/// Writes the splits of a statement's loops.
struct Cutter<'a> {
    stage: &'a Stage,
    names: &'a Names,
    alone: bool,
    lanes: i64,
    steps: Vec<Step>,
    pieces: Vec<Pieces>,
}

impl Cutter<'_> {
    fn cut(&mut self, at: usize, [first, second, third]: [i64; 3], vector: bool) -> Result<(), Rejection> {
        let own = &self.stage.loops[at];
        let (lane, tile) = if vector { lanes_of(own, third, self.lanes)? } else { (1, third) };
        // What a consumer needs may be less than the whole: then the first part is what is left.
        let open = !self.alone;
        let wanted = [("0", first, open), ("1", second, false), ("2", tile, false), ("v", lane, false)];
        let parts: Vec<(&str, i64)> = wanted
            .into_iter()
            .filter(|(_, count, always)| *count > 1 || *always)
            .map(|(part, count, _)| (part, count))
            .collect();
        let target = self.stage.name.at(own.name.clone());
        let name = |part: &str| match parts.len() {
            0 | 1 => own.name.clone(),
            // Inside a consumer's loops, whose parts may be named alike.
            _ if open => self.names.part(&own.name, &format!("{}{part}", self.stage.name.tensor)),
            _ => self.names.part(&own.name, part),
        };
        let loop_of =
            |part: &str| parts.iter().any(|(own, _)| *own == part).then(|| self.stage.name.at(name(part)));
        self.pieces.push(Pieces {
            at,
            outer: loop_of("0").filter(|_| !own.reduced),
            block: if own.reduced { loop_of("0") } else { loop_of("1") },
            reduced: loop_of("1").filter(|_| own.reduced),
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

/// Lanes, and vectors of them in a tile, for the part of a loop that is in the tile.
fn lanes_of(own: &StageLoop, width: i64, lanes: i64) -> Result<(i64, i64), Rejection> {
    if width == own.trips && own.trips <= MOST_LANES && (own.trips <= lanes || own.reduced) {
        return Ok((width, 1));
    }
    if width % lanes != 0 {
        return Err(Rejection::VectorWidth);
    }
    // Totals of a reduced loop are one wide vector; results are several.
    if own.reduced {
        return if width <= MOST_LANES { Ok((width, 1)) } else { Err(Rejection::VectorWidth) };
    }
    Ok((lanes, width / lanes))
}
