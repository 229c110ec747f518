//! The loops of one statement on a GPU: the knobs that tile, spread and run them, and the steps
//! that follow from the values of these knobs.
//!
//! Every result loop is split into four parts and every reduced loop into two. The parts are nested
//! as follows:
//!
//! ```text
//! blocks    first parts of result loops                      spread over multiprocessors, as one loop
//! staged    first parts of reduced loops                     operands are brought to shared memory for each iteration
//! threads   third parts of result loops                      spread over the threads of a block, as one loop (`warp.rs`)
//! reduced   second parts of reduced loops                    the last of them written out
//! tile      second and fourth parts of result loops          written out, results in registers
//! ```
//!
//! The results of a thread are adjacent (fourth parts), or their distance is the number of threads
//! (second parts). Hence adjacent threads access adjacent memory. Two or four adjacent results
//! along the contiguous loop form a vector, which is one memory access. A part with one iteration
//! does not become a loop. The longest reduced loop has one more part, which is also spread over
//! blocks: each block computes a partial total, and a second kernel adds the partial totals up.

use tilewright_ir::nest::Axis;
use tilewright_schedule::analysis::Stride;
use tilewright_schedule::{LoopName, Place, PromoteScope, StatementName, Step, Unit};
use tilewright_target::Gpu;

use super::Way;
use super::warp::Warp;
use crate::knob::{Divisors, Knob, Point};
use crate::space::cuts::{Cuts, LONG, choices, near};
use crate::space::names::Names;
use crate::space::stage::{Stage, StageLoop};
use crate::space::{Builder, KnobId};

/// The largest trip count of a reduced loop that counts as a window. Windows have few divisors and
/// are best taken whole.
const WINDOW: i64 = 16;
/// A loop is cut exactly if it has at least this many divisors to choose from.
const ENOUGH: usize = 6;
/// The choices for the largest number of reduction steps that are unrolled.
const UNROLLED: [i64; 5] = [1, 4, 8, 16, 32];
/// The numbers of pipeline stages: iterations whose operands are in shared memory at the same time.
const STAGES: [i64; 4] = [1, 2, 3, 4];
/// The order of a thread's result loops: the second parts of all loops around all fourth parts, or
/// both parts of one loop around those of the next.
const RESULTS: [&str; 2] = ["by part", "by loop"];
/// The dimensions of a grid, innermost first.
const AXES: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];
/// The numbers of results that a thread can store at once.
const WIDE: [i64; 2] = [2, 4];

/// The knobs of one statement.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    pub(super) cuts: Cuts,
    /// The reduced loop, if any, that several blocks can share.
    pub(super) shared_out: Option<usize>,
    order_blocks: KnobId,
    pub(super) order_threads: KnobId,
    pub(super) warp: Warp,
    pub(super) unrolled: KnobId,
    pub(super) stages: KnobId,
    /// The order in which a thread computes its results.
    pub(super) results: KnobId,
    pub(super) ways: Vec<Way>,
}

/// The parts of a result loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parts {
    pub block: i64,
    pub apart: i64,
    pub thread: i64,
    pub inner: i64,
}

/// The parts of a reduced loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steps {
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
    pub stage_at: LoopName,
    /// True if `stage_at` is a loop of the reduction.
    pub staged: bool,
    pub threads: i64,
}

impl Tile {
    /// Adds the knobs of a statement.
    pub fn new(stage: &Stage, gpu: &Gpu, builder: &mut Builder) -> Tile {
        let name = |what: &str| format!("{}.{what}", stage.name);
        let longest = stage.busy(true).into_iter().max_by_key(|at| stage.loops[*at].trips);
        let shared_out = longest.filter(|at| stage.loops[*at].trips >= LONG);
        let parts = |at: usize| match (stage.loops[at].reduced, Some(at) == shared_out) {
            (false, _) => 4,
            (true, true) => 3,
            (true, false) => 2,
        };
        let cuts = Cuts::new(stage, builder, |at| (parts(at), divisors(&stage.loops[at])));
        let (spatial, reduces) = (cuts.spatial.len(), !cuts.reduced.is_empty());
        let orders = if reduces { RESULTS.len() } else { 1 };
        let shares_operands = spatial > 1 && reduces;
        let most_stages = if gpu.has_asynchronous_copies() { STAGES.len() } else { 1 };
        Tile {
            cuts,
            order_blocks: builder.add(Knob::permutation(name("blocks"), spatial)),
            order_threads: builder.add(Knob::permutation(name("threads"), spatial)),
            warp: Warp::new(name("lanes"), gpu, shares_operands, builder),
            unrolled: builder.add(Knob::ordinal(name("unroll"), UNROLLED)),
            stages: builder.add(Knob::ordinal(name("stages"), STAGES.into_iter().take(most_stages))),
            results: builder.add(Knob::categorical(name("results"), RESULTS.iter().take(orders).copied())),
            ways: Way::all(stage, builder),
            shared_out,
        }
    }

    /// The range of the knobs that the limits of a tile depend on.
    pub fn own_knobs(&self) -> std::ops::Range<usize> {
        let first = self.cuts.knobs.first().unwrap_or(&self.order_blocks).0;
        let last = self.ways.last().map_or(self.results, |way| way.knob);
        first..last.0 + 1
    }

    /// The parts of a result loop.
    pub fn parts(&self, point: &Point, at: usize) -> Parts {
        match self.cuts.factors(point, at) {
            [block, apart, thread, inner] => {
                Parts { block: *block, apart: *apart, thread: *thread, inner: *inner }
            }
            _ => Parts { block: 1, apart: 1, thread: 1, inner: 1 },
        }
    }

    /// The parts of a reduced loop.
    pub fn steps_of(&self, point: &Point, at: usize) -> Steps {
        match self.cuts.factors(point, at) {
            [share, outer, inner] => Steps { share: *share, outer: *outer, inner: *inner },
            [outer, inner] => Steps { share: 1, outer: *outer, inner: *inner },
            _ => Steps { share: 1, outer: 1, inner: 1 },
        }
    }

    /// The number of threads of a block.
    pub fn threads(&self, point: &Point) -> i64 {
        self.cuts.spatial.iter().map(|at| self.parts(point, *at).thread).product()
    }

    /// The number of blocks that share one reduction.
    pub fn shares(&self, point: &Point) -> i64 {
        self.cuts.reduced.iter().map(|at| self.steps_of(point, *at).share).product()
    }

    /// The number of blocks.
    pub fn blocks(&self, point: &Point) -> i64 {
        self.cuts.spatial.iter().map(|at| self.parts(point, *at).block).product::<i64>() * self.shares(point)
    }

    /// The number of results of a thread.
    pub fn results(&self, point: &Point) -> i64 {
        let own = self.cuts.spatial.iter().map(|at| self.parts(point, *at));
        own.map(|parts| parts.apart * parts.inner).product()
    }

    /// The number of iterations of a loop whose operands are staged together.
    pub fn width(&self, stage: &Stage, point: &Point, at: usize) -> i64 {
        match stage.loops[at].reduced {
            true => self.steps_of(point, at).inner,
            false => {
                let parts = self.parts(point, at);
                parts.apart * parts.thread * parts.inner
            }
        }
    }

    /// The largest number of reduction steps that are unrolled.
    pub fn most_unrolled(&self, point: &Point) -> i64 {
        UNROLLED[point.choice(self.unrolled.0)]
    }

    /// The number of iterations whose operands are in shared memory at the same time.
    pub fn stage_count(&self, point: &Point) -> i64 {
        STAGES[point.choice(self.stages.0)]
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
        let mut cutter = Cutter { tile: self, stage, names, point, hosts, own: stage.name.clone(), steps };
        cutter.share_out();
        cutter.cut()
    }

    /// Returns the step that loads the operands of one iteration of the staged loop while the
    /// threads compute with those of other iterations.
    pub fn pipeline(&self, kernel: &Kernel, point: &Point, copies: bool) -> Option<Step> {
        let stages = self.stage_count(point);
        (copies && kernel.staged && stages > 1)
            .then(|| Step::Pipeline { target: kernel.stage_at.clone(), stages })
    }
}

/// Returns how a loop may be cut.
fn divisors(own: &StageLoop) -> Divisors {
    match (own.trips, choices(own)) {
        // The remainder of a reduction would need code of its own, as long as the main code.
        (trips, count) if own.reduced && (count >= 3 || trips <= WINDOW) => Divisors::Exact,
        (LONG.., ENOUGH..) => Divisors::Exact,
        _ => near(own),
    }
}

/// Writes the steps of a kernel.
struct Cutter<'a> {
    tile: &'a Tile,
    stage: &'a Stage,
    names: &'a Names,
    point: &'a Point,
    hosts: bool,
    /// The statement whose loops are split.
    own: StatementName,
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

impl Cutter<'_> {
    fn name_of(&self, at: usize, part: &str) -> String {
        self.names.part(&self.stage.loops[at].name, part)
    }

    /// Splits a reduced loop so that several blocks share it.
    fn share_out(&mut self) {
        let Some(at) = self.tile.shared_out else { return };
        let parts = self.tile.steps_of(self.point, at);
        if parts.share == 1 {
            return;
        }
        let (share, rest) = (self.name_of(at, "p"), self.name_of(at, "r"));
        let target = self.own.at(self.stage.loops[at].name.clone());
        let inner = vec![(rest, parts.outer * parts.inner)];
        self.steps.push(Step::Split { target, outer: share.clone(), inner });
        let spatial = self.tile.cuts.spatial.iter().map(|at| self.own.at(self.stage.loops[*at].name.clone()));
        let order: Vec<LoopName> = std::iter::once(self.own.at(share.clone())).chain(spatial).collect();
        self.steps.push(Step::Reorder { loops: order });
        let name = self.names.buffer(&self.stage.name, "parts");
        self.steps.push(Step::Rfactor { target: self.own.at(share), name: name.clone() });
        self.own = StatementName::first(name);
    }

    fn cut(mut self) -> Kernel {
        let mut levels = Levels::default();
        for at in self.tile.cuts.reduced.clone() {
            self.cut_reduced(at, &mut levels);
        }
        self.cut_spatial(&mut levels);
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
            false => vec![self.fused(&blocks, "block")],
        };
        let thread = self.fused(&threads, "thread");
        for (target, axis) in blocks.iter().rev().zip(AXES) {
            self.steps.push(Step::Bind { target: target.clone(), to: Unit::Block(axis) });
        }
        self.steps.push(Step::Bind { target: thread, to: Unit::Thread(Axis::X) });
        let block = blocks.last().expect("there are blocks along some loop").clone();
        let written_out = self.written_out(&reduced);
        let side = self.side_by_side(&results);
        let unrolled = written_out.into_iter().chain(results);
        self.steps.extend(unrolled.filter(|own| Some(own) != side.as_ref()).map(Step::Unroll));
        self.steps.extend(side.map(Step::Vectorize));
        if !self.tile.cuts.reduced.is_empty() {
            self.gather(&block);
        }
        Kernel {
            stage_at: staged.last().unwrap_or(&block).clone(),
            staged: !staged.is_empty(),
            threads: self.tile.threads(self.point),
            statement: self.own,
            block,
        }
    }

    fn cut_reduced(&mut self, at: usize, levels: &mut Levels) {
        let Steps { share, outer, inner } = self.tile.steps_of(self.point, at);
        let name = match share {
            1 => self.stage.loops[at].name.clone(),
            _ => self.name_of(at, "r"),
        };
        if share > 1 && levels.blocks.is_empty() {
            let share = self.own.at(self.name_of(at, "p"));
            levels.blocks.push(share);
        }
        match (outer, inner) {
            (1, _) => levels.reduced.push((self.own.at(name), inner)),
            (_, 1) => levels.staged.push(self.own.at(name)),
            _ => {
                let (first, second) = (self.name_of(at, "o"), self.name_of(at, "k"));
                levels.staged.push(self.own.at(first.clone()));
                levels.reduced.push((self.own.at(second.clone()), inner));
                let target = self.own.at(name);
                self.steps.push(Step::Split { target, outer: first, inner: vec![(second, inner)] });
            }
        }
    }

    fn cut_spatial(&mut self, levels: &mut Levels) {
        let (tile, point) = (self.tile, self.point);
        let lanes = tile.warp.lanes(tile, point);
        let lanes_of = |place: usize, threads: i64| lanes.as_ref().map_or(threads, |lanes| lanes[place]);
        for (place, at) in tile.cuts.spatial.iter().enumerate() {
            let Parts { apart, thread, inner, .. } = tile.parts(point, *at);
            let lanes = lanes_of(place, thread);
            // The loop over threads stays even where it has one iteration.
            let wanted =
                [("w", apart, false), ("v", thread / lanes, false), ("t", lanes, true), ("i", inner, false)];
            let inner: Vec<(String, i64)> = wanted
                .into_iter()
                .filter(|(_, count, stays)| *count > 1 || *stays)
                .map(|(part, count, _)| (self.name_of(*at, part), count))
                .collect();
            let target = self.own.at(self.stage.loops[*at].name.clone());
            self.steps.push(Step::Split { target, outer: self.name_of(*at, "b"), inner });
        }
        let part = |place: &usize, part: &str| self.own.at(self.name_of(tile.cuts.spatial[*place], part));
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
            [(parts.apart > 1).then(|| part(place, "w")), (parts.inner > 1).then(|| part(place, "i"))]
        };
        let by_loop: Vec<[Option<LoopName>; 2]> = places.iter().map(results).collect();
        levels.results = match point.choice(tile.results.0) {
            0 => (0..2).flat_map(|level| by_loop.iter().filter_map(move |own| own[level].clone())).collect(),
            _ => by_loop.into_iter().flatten().flatten().collect(),
        };
    }

    /// The innermost loop over a thread's results if these results are adjacent, so that one access
    /// stores them.
    fn side_by_side(&self, results: &[LoopName]) -> Option<LoopName> {
        let last = results.last()?;
        let mut of_last =
            self.tile.cuts.spatial.iter().rev().filter(|at| self.own.at(self.name_of(**at, "i")) == *last);
        let at = *of_last.next()?;
        let wide = WIDE.contains(&self.tile.parts(self.point, at).inner);
        (wide && self.stage.result[at] == Stride::Elements(1)).then(|| last.clone())
    }

    /// Fuses several loops into one.
    fn fused(&mut self, loops: &[LoopName], what: &str) -> LoopName {
        if let [one] = loops {
            return one.clone();
        }
        let name = self.names.part(&self.stage.name.tensor, what);
        let fused = self.own.at(name.clone());
        self.steps.push(Step::Fuse { loops: loops.to_vec(), name });
        fused
    }

    /// The innermost reduced loops that are unrolled, as far as the code does not become too large.
    fn written_out(&self, reduced: &[(LoopName, i64)]) -> Vec<LoopName> {
        let most = self.tile.most_unrolled(self.point);
        let mut copies = 1;
        let inside = reduced.iter().rev().take_while(|(_, count)| {
            copies *= count;
            copies <= most
        });
        inside.map(|(own, _)| own.clone()).collect()
    }

    /// Promotes the results to registers while the reduction runs.
    fn gather(&mut self, block: &LoopName) {
        let (at, name) = (Place::Loop(block.clone()), self.names.buffer(&self.stage.name, "tile"));
        self.steps.push(Step::promote(&self.own.tensor, at, name, PromoteScope::Registers, Vec::new()));
    }
}
