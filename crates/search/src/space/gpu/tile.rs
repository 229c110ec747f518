//! Adds the knobs that tile, spread and run the loops of one statement on a GPU, and makes the
//! steps that follow from the values of these knobs.
//!
//! Every result loop is split into four parts and every reduced loop into two. The parts are nested
//! as follows:
//!
//! ```text
//! blocks    first parts of result loops       spread over multiprocessors, as one loop
//! staged    first parts of reduced loops      each iteration copies operands to shared memory
//! threads   third parts of result loops       spread over the threads of a block, as one loop
//!                                             (`warp.rs`)
//! reduced   second parts of reduced loops     the last of them unrolled
//! tile      second and fourth parts           unrolled, results in registers
//!           of result loops
//! ```
//!
//! The results of a thread are adjacent (fourth parts), or their distance is the number of threads
//! (second parts). Hence adjacent threads access adjacent memory. Two or four adjacent results
//! along the contiguous loop form a vector, which is one memory access. A part with one iteration
//! does not become a loop. The longest reduced loop has one more part, which is also spread over
//! blocks: each block computes a partial total, and a second kernel adds the partial totals up.

use tilewright_ir::nest::Axis;
use tilewright_schedule::analysis::{Stride, iterations};
use tilewright_schedule::{LoopLevel, LoopName, ParallelUnit, PromoteScope, StatementName, Step};
use tilewright_target::Gpu;

use super::OperandKnob;
use super::warp::Warp;
use crate::knob::{Divisors, Knob, Point};
use crate::space::cuts::{Cuts, LONG_LOOP, divisor_count, near_divisors};
use crate::space::names::Names;
use crate::space::stage::{Stage, StageLoop};
use crate::space::{Builder, KnobId};

/// The largest trip count of a reduced loop that counts as a window. Windows have few divisors and
/// are best taken whole.
const LARGEST_WINDOW: i64 = 16;
/// A loop is cut exactly if it has at least this many divisors to choose from.
const ENOUGH_DIVISORS: usize = 6;
/// The choices for the largest number of reduction steps that are unrolled.
const UNROLLED: [i64; 5] = [1, 4, 8, 16, 32];
/// The numbers of pipeline stages: iterations whose operands are in shared memory at the same time.
const STAGES: [i64; 4] = [1, 2, 3, 4];
/// The order of a thread's result loops: the second parts of all loops around all fourth parts, or
/// both parts of one loop around those of the next.
const RESULT_ORDERS: [&str; 2] = ["by-part", "by-loop"];
/// The dimensions of a grid, innermost first.
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
/// The numbers of results that a thread can store at once.
const STORE_WIDTHS: [i64; 2] = [2, 4];

/// The knobs of one statement.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(super) cuts: Cuts,
    /// The reduced loop, if any, that several blocks can share.
    pub(super) shared_reduction: Option<usize>,
    order_blocks: KnobId,
    pub(super) order_threads: KnobId,
    pub(super) warp: Warp,
    pub(super) unrolled: KnobId,
    pub(super) pipeline_depth: KnobId,
    /// The order in which a thread computes its results.
    pub(super) result_order: KnobId,
    pub(super) operand_knobs: Vec<OperandKnob>,
}

/// The parts of a result loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub block: i64,
    pub strided: i64,
    pub thread: i64,
    pub inner: i64,
}

/// The parts of a reduced loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReducedParts {
    pub share: i64,
    pub outer: i64,
    pub inner: i64,
}

/// The loops of a kernel after its steps.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    /// The statement that these loops belong to.
    pub statement: StatementName,
    pub block: LoopName,
    /// The loop in whose iterations operands are staged.
    pub staging_loop: LoopName,
    /// True if `staging_loop` is a loop of the reduction.
    pub stages_in_reduction: bool,
    pub threads: i64,
}

impl Tile {
    /// Adds the knobs of a statement.
    pub fn new(stage: &Stage, gpu: &Gpu, builder: &mut Builder) -> Tile {
        let name = |what: &str| format!("{}.{what}", stage.name);
        let longest = stage.repeated_loops(true).into_iter().max_by_key(|at| stage.loops[*at].trips);
        let shared_out = longest.filter(|at| stage.loops[*at].trips >= LONG_LOOP);
        let parts = |at: usize| match (stage.loops[at].is_reduced, Some(at) == shared_out) {
            (false, _) => 4,
            (true, true) => 3,
            (true, false) => 2,
        };
        let cuts = Cuts::new(stage, builder, |at| (parts(at), divisors(&stage.loops[at])));
        let (spatial, reduces) = (cuts.spatial.len(), !cuts.reduced.is_empty());
        let orders = if reduces { RESULT_ORDERS.len() } else { 1 };
        let shares_operands = spatial > 1 && reduces;
        let most_stages = if gpu.has_asynchronous_copies() { STAGES.len() } else { 1 };
        Tile {
            cuts,
            order_blocks: builder.add(Knob::permutation(name("blocks"), spatial)),
            order_threads: builder.add(Knob::permutation(name("threads"), spatial)),
            warp: Warp::new(name("lanes"), gpu, shares_operands, builder),
            unrolled: builder.add(Knob::ordinal(name("unroll"), UNROLLED)),
            pipeline_depth: builder.add(Knob::ordinal(name("stages"), STAGES.into_iter().take(most_stages))),
            result_order: builder
                .add(Knob::categorical(name("results"), RESULT_ORDERS.iter().take(orders).copied())),
            operand_knobs: OperandKnob::all(stage, builder),
            shared_reduction: shared_out,
        }
    }

    /// The range of the knobs that the limits of a tile depend on.
    pub fn knob_range(&self) -> std::ops::Range<usize> {
        let first = self.cuts.knobs.first().unwrap_or(&self.order_blocks).0;
        let last = self.operand_knobs.last().map_or(self.result_order, |knob| knob.knob);
        first..last.0 + 1
    }

    /// The parts of a result loop.
    pub fn parts(&self, point: &Point, at: usize) -> Parts {
        match self.cuts.factors(point, at) {
            [block, apart, thread, inner] => {
                Parts { block: *block, strided: *apart, thread: *thread, inner: *inner }
            }
            _ => Parts { block: 1, strided: 1, thread: 1, inner: 1 },
        }
    }

    /// The parts of a reduced loop.
    pub fn reduced_parts(&self, point: &Point, at: usize) -> ReducedParts {
        match self.cuts.factors(point, at) {
            [share, outer, inner] => ReducedParts { share: *share, outer: *outer, inner: *inner },
            [outer, inner] => ReducedParts { share: 1, outer: *outer, inner: *inner },
            _ => ReducedParts { share: 1, outer: 1, inner: 1 },
        }
    }

    /// The number of threads of a block.
    pub fn threads(&self, point: &Point) -> i64 {
        iterations(self.cuts.spatial.iter().map(|at| self.parts(point, *at).thread))
    }

    /// The number of blocks that share one reduction.
    pub fn shares(&self, point: &Point) -> i64 {
        iterations(self.cuts.reduced.iter().map(|at| self.reduced_parts(point, *at).share))
    }

    /// The number of blocks.
    pub fn blocks(&self, point: &Point) -> i64 {
        let blocks = self.cuts.spatial.iter().map(|at| self.parts(point, *at).block);
        iterations(blocks.chain([self.shares(point)]))
    }

    /// The number of results of a thread.
    pub fn results(&self, point: &Point) -> i64 {
        let own = self.cuts.spatial.iter().map(|at| self.parts(point, *at));
        iterations(own.flat_map(|parts| [parts.strided, parts.inner]))
    }

    /// The number of iterations of a loop whose operands are staged together.
    pub fn width(&self, stage: &Stage, point: &Point, at: usize) -> i64 {
        match stage.loops[at].is_reduced {
            true => self.reduced_parts(point, at).inner,
            false => {
                let parts = self.parts(point, at);
                parts.strided * parts.thread * parts.inner
            }
        }
    }

    /// The largest number of reduction steps that are unrolled.
    pub fn most_unrolled(&self, point: &Point) -> i64 {
        UNROLLED[point.choice(self.unrolled.0)]
    }

    /// The number of iterations whose operands are in shared memory at the same time.
    pub fn pipeline_stages(&self, point: &Point) -> i64 {
        STAGES[point.choice(self.pipeline_depth.0)]
    }

    /// Adds the steps that split, order and spread the loops. `hosts` says that earlier statements
    /// of the tensor are computed in the blocks. Then each block loop stays separate and gets its
    /// own axis of the grid, if there are enough axes.
    pub fn steps(
        &self,
        stage: &Stage,
        point: &Point,
        names: &Names,
        hosts: bool,
        steps: &mut Vec<Step>,
    ) -> Kernel {
        let mut cutter =
            LoopSplitter { tile: self, stage, names, point, hosts, statement: stage.name.clone(), steps };
        cutter.split_shared_reduction();
        cutter.split()
    }

    /// Returns the step that loads the operands of one iteration of the staged loop while the
    /// threads compute with those of other iterations.
    pub fn pipeline(&self, kernel: &Kernel, point: &Point, copies: bool) -> Option<Step> {
        let stages = self.pipeline_stages(point);
        (copies && kernel.stages_in_reduction && stages > 1)
            .then(|| Step::Pipeline { target: kernel.staging_loop.clone(), stages })
    }
}

/// Returns how a loop may be cut.
fn divisors(own: &StageLoop) -> Divisors {
    match (own.trips, divisor_count(own)) {
        // The remainder of a reduction would need code of its own, as long as the main code.
        (trips, count) if own.is_reduced && (count >= 3 || trips <= LARGEST_WINDOW) => Divisors::Exact,
        (LONG_LOOP.., ENOUGH_DIVISORS..) => Divisors::Exact,
        _ => near_divisors(own),
    }
}

/// Writes the steps of a kernel.
struct LoopSplitter<'a> {
    tile: &'a Tile,
    stage: &'a Stage,
    names: &'a Names,
    point: &'a Point,
    hosts: bool,
    /// The statement whose loops are split.
    statement: StatementName,
    steps: &'a mut Vec<Step>,
}

/// The parts of all loops, by level.
#[derive(Default)]
struct Levels {
    blocks: Vec<LoopName>,
    staged: Vec<LoopName>,
    threads: Vec<LoopName>,
    reduced: Vec<(LoopName, i64)>,
    results: Vec<LoopName>,
}

impl LoopSplitter<'_> {
    fn name_of(&self, at: usize, part: &str) -> String {
        self.names.part(&self.stage.loops[at].name, part)
    }

    /// Splits a reduced loop so that several blocks share it.
    fn split_shared_reduction(&mut self) {
        let Some(at) = self.tile.shared_reduction else { return };
        let parts = self.tile.reduced_parts(self.point, at);
        if parts.share == 1 {
            return;
        }
        let (share, rest) = (self.name_of(at, "p"), self.name_of(at, "r"));
        let target = self.statement.loop_named(self.stage.loops[at].name.clone());
        let inner = vec![(rest, parts.outer * parts.inner)];
        self.steps.push(Step::Split { target, outer: share.clone(), inner });
        let spatial = self
            .tile
            .cuts
            .spatial
            .iter()
            .map(|at| self.statement.loop_named(self.stage.loops[*at].name.clone()));
        let order: Vec<LoopName> =
            std::iter::once(self.statement.loop_named(share.clone())).chain(spatial).collect();
        self.steps.push(Step::Reorder { loops: order });
        let name = self.names.buffer(&self.stage.name, "parts");
        self.steps.push(Step::Rfactor { target: self.statement.loop_named(share), name: name.clone() });
        self.statement = StatementName::first(name);
    }

    fn split(mut self) -> Kernel {
        let mut levels = Levels::default();
        for at in self.tile.cuts.reduced.clone() {
            self.split_reduced(at, &mut levels);
        }
        self.split_spatial(&mut levels);
        let Levels { blocks, staged, threads, reduced, results } = levels;
        let names = reduced.iter().map(|(own, _)| own);
        let all = blocks.iter().chain(&staged).chain(&threads).chain(names).chain(&results);
        let order: Vec<LoopName> = all.cloned().collect();
        if order.len() > 1 {
            self.steps.push(Step::Reorder { loops: order });
        }
        let several =
            self.tile.cuts.spatial.iter().filter(|at| self.tile.parts(self.point, **at).block > 1).count()
                > 1;
        let blocks = match self.hosts && several && blocks.len() <= AXES.len() {
            true => blocks,
            false => vec![self.fuse(&blocks, "block")],
        };
        let thread = self.fuse(&threads, "thread");
        for (target, axis) in blocks.iter().rev().zip(AXES) {
            self.steps.push(Step::Bind { target: target.clone(), to: ParallelUnit::Block(axis) });
        }
        self.steps.push(Step::Bind { target: thread, to: ParallelUnit::Thread(Axis::X) });
        let block = blocks.last().expect("there are blocks along some loop").clone();
        let written_out = self.unrolled_loops(&reduced);
        let side = self.vector_loop(&results);
        let unrolled = written_out.into_iter().chain(results);
        self.steps.extend(unrolled.filter(|own| Some(own) != side.as_ref()).map(Step::Unroll));
        self.steps.extend(side.map(Step::Vectorize));
        if !self.tile.cuts.reduced.is_empty() {
            self.promote_results(&block);
        }
        Kernel {
            staging_loop: staged.last().unwrap_or(&block).clone(),
            stages_in_reduction: !staged.is_empty(),
            threads: self.tile.threads(self.point),
            statement: self.statement,
            block,
        }
    }

    fn split_reduced(&mut self, at: usize, levels: &mut Levels) {
        let ReducedParts { share, outer, inner } = self.tile.reduced_parts(self.point, at);
        let name = match share {
            1 => self.stage.loops[at].name.clone(),
            _ => self.name_of(at, "r"),
        };
        if share > 1 && levels.blocks.is_empty() {
            let share = self.statement.loop_named(self.name_of(at, "p"));
            levels.blocks.push(share);
        }
        match (outer, inner) {
            (1, _) => levels.reduced.push((self.statement.loop_named(name), inner)),
            (_, 1) => levels.staged.push(self.statement.loop_named(name)),
            _ => {
                let (first, second) = (self.name_of(at, "o"), self.name_of(at, "k"));
                levels.staged.push(self.statement.loop_named(first.clone()));
                levels.reduced.push((self.statement.loop_named(second.clone()), inner));
                let target = self.statement.loop_named(name);
                self.steps.push(Step::Split { target, outer: first, inner: vec![(second, inner)] });
            }
        }
    }

    fn split_spatial(&mut self, levels: &mut Levels) {
        let (tile, point) = (self.tile, self.point);
        let lanes = tile.warp.lanes(tile, point);
        let lanes_of = |place: usize, threads: i64| lanes.as_ref().map_or(threads, |lanes| lanes[place]);
        for (place, at) in tile.cuts.spatial.iter().enumerate() {
            let Parts { strided: apart, thread, inner, .. } = tile.parts(point, *at);
            let lanes = lanes_of(place, thread);
            // The loop over threads stays even where it has one iteration.
            let wanted =
                [("w", apart, false), ("v", thread / lanes, false), ("t", lanes, true), ("i", inner, false)];
            let inner: Vec<(String, i64)> = wanted
                .into_iter()
                .filter(|(_, count, stays)| *count > 1 || *stays)
                .map(|(part, count, _)| (self.name_of(*at, part), count))
                .collect();
            let target = self.statement.loop_named(self.stage.loops[*at].name.clone());
            self.steps.push(Step::Split { target, outer: self.name_of(*at, "b"), inner });
        }
        let part = |place: &usize, part: &str| {
            self.statement.loop_named(self.name_of(tile.cuts.spatial[*place], part))
        };
        levels.blocks.extend(point.order(tile.order_blocks.0).iter().map(|place| part(place, "b")));
        let order = point.order(tile.order_threads.0);
        let has_warps = |place: &&usize| {
            let threads = tile.parts(point, tile.cuts.spatial[**place]).thread;
            lanes_of(**place, threads) < threads
        };
        levels.threads.extend(order.iter().filter(has_warps).map(|place| part(place, "v")));
        levels.threads.extend(order.iter().map(|place| part(place, "t")));
        // Adjacent results come last.
        let mut places: Vec<usize> = (0..tile.cuts.spatial.len()).collect();
        places.sort_by_key(|place| self.stage.result[tile.cuts.spatial[*place]] == Stride::Elements(1));
        let results = |place: &usize| {
            let parts = tile.parts(point, tile.cuts.spatial[*place]);
            [(parts.strided > 1).then(|| part(place, "w")), (parts.inner > 1).then(|| part(place, "i"))]
        };
        let by_loop: Vec<[Option<LoopName>; 2]> = places.iter().map(results).collect();
        levels.results = match point.choice(tile.result_order.0) {
            0 => (0..2).flat_map(|level| by_loop.iter().filter_map(move |own| own[level].clone())).collect(),
            _ => by_loop.into_iter().flatten().flatten().collect(),
        };
    }

    /// The innermost loop over a thread's results if these results are adjacent, so that one access
    /// stores them.
    fn vector_loop(&self, results: &[LoopName]) -> Option<LoopName> {
        let last = results.last()?;
        let mut of_last = self
            .tile
            .cuts
            .spatial
            .iter()
            .rev()
            .filter(|at| self.statement.loop_named(self.name_of(**at, "i")) == *last);
        let at = *of_last.next()?;
        let wide = STORE_WIDTHS.contains(&self.tile.parts(self.point, at).inner);
        (wide && self.stage.result[at] == Stride::Elements(1)).then(|| last.clone())
    }

    /// Fuses several loops into one.
    fn fuse(&mut self, loops: &[LoopName], what: &str) -> LoopName {
        if let [one] = loops {
            return one.clone();
        }
        let name = self.names.part(&self.stage.name.tensor, what);
        let fused = self.statement.loop_named(name.clone());
        self.steps.push(Step::Fuse { loops: loops.to_vec(), name });
        fused
    }

    /// The innermost reduced loops that are unrolled, as far as the code does not become too large.
    fn unrolled_loops(&self, reduced: &[(LoopName, i64)]) -> Vec<LoopName> {
        let most = self.tile.most_unrolled(self.point);
        let mut copies = 1;
        let inside = reduced.iter().rev().take_while(|(_, count)| {
            copies *= count;
            copies <= most
        });
        inside.map(|(own, _)| own.clone()).collect()
    }

    /// Promotes the results to registers while the reduction runs.
    fn promote_results(&mut self, block: &LoopName) {
        let (at, name) = (LoopLevel::Loop(block.clone()), self.names.buffer(&self.stage.name, "tile"));
        self.steps.push(Step::promote(&self.statement.tensor, at, name, PromoteScope::Registers, Vec::new()));
    }
}
