//! Schedules for a GPU: for every statement with a share in the work, how its loops are spread over blocks and threads and
//! what a thread does of them (`tile.rs`), and which way its operands take (`operand.rs`).
//!
//! A statement is a kernel of its own, or is computed inside the blocks of the one that uses it, by all of their threads. The
//! first statements of a tensor can also be in the blocks of its last one: so layers one after the other are one kernel.

mod initial;
mod limits;
mod operand;
mod tile;
mod warp;

use tilewright_ir::Program;
use tilewright_schedule::{LoopName, Schedule, StatementName, Step, complete};
use tilewright_target::Gpu;

use super::names::Names;
use super::placement::{Choice, Placement};
use super::rejection::Rejection;
use super::stage::{self, Stage, heavy};
use super::{Builder, collapse, remainders};
use crate::knob::{Knobs, Point};
use initial::Shape;
use operand::Way;
use tile::{Kernel, Tile};

/// The places that there are in the loops of a consumer.
const INSIDE: [Choice; 2] = [Choice::WithConsumer, Choice::AtOuter];

/// What the knobs of a program on a GPU stand for.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    program: &'a Program,
    gpu: &'a Gpu,
    stages: Vec<Stage>,
    placements: Vec<Placement>,
    /// Where the statements before the last of a tensor are computed.
    earlier: Vec<Placement>,
    /// Which statements have a share in the work.
    matters: Vec<bool>,
    /// The knobs of each statement; none for those that hardly matter, unless others can be in their blocks.
    tiles: Vec<Option<Tile>>,
    names: Names,
}

impl<'a> Plan<'a> {
    /// The knobs of a program whose sizes are known.
    pub fn new(program: &'a Program, gpu: &'a Gpu) -> (Knobs, Plan<'a>) {
        let mut stages = stage::stages(program);
        let names = Names::of(program);
        let mut builder = Builder::default();
        let placements = Placement::all(program, &stages, &INSIDE, &mut builder);
        let earlier = Placement::earlier(program, &stages, Choice::AtOuter, &mut builder);
        let matters = heavy(&stages);
        let statements = program.statements();
        let mut tiles = Vec::new();
        for (at, (stage, (statement, _))) in stages.iter_mut().zip(statements).enumerate() {
            let tiled = !stage.busy(false).is_empty() && !stage.scatters && !stage.ordered;
            let hosts = earlier.iter().any(|own| own.consumer == at);
            tiles.push((tiled && (matters[at] || hosts)).then(|| {
                // What others need in their blocks is rows, most often.
                if matters[at] && !remainders::take_apart(stage, program, statement, &names) {
                    collapse::collapse(stage, program, statement, false, &names);
                }
                Tile::new(stage, gpu, &mut builder)
            }));
        }
        let mut knobs = Knobs::new(builder.knobs);
        for ((stage, tile), matters) in stages.iter().zip(&tiles).zip(&matters) {
            let Some(tile) = tile else { continue };
            let (own, tile, stage, gpu, matters) =
                (tile.own_knobs(), tile.clone(), stage.clone(), gpu.clone(), *matters);
            knobs.rule(own, move |point| limits::check(&tile, &stage, matters, &gpu, point).is_ok());
        }
        (knobs, Plan { program, gpu, stages, placements, earlier, matters, tiles, names })
    }

    /// The schedule that a point stands for, if it is worth compiling.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        let mut decoder = Decoder { plan: self, point, steps: Vec::new(), done: Vec::new() };
        decoder.steps.extend(Placement::inlined(&self.placements, point));
        decoder.arrange()?;
        let Decoder { steps, done, .. } = decoder;
        complete(self.program, Schedule { steps }, &done, self.gpu)
            .map_err(|refusal| Rejection::from(&refusal.reason))
    }

    /// The knob that says where a statement is computed: with all of its tensor, or before the last statement of it.
    fn placement(&self, at: usize, point: &Point) -> Option<&Placement> {
        let of_tensor = |own: &&Placement| own.tensor == self.stages[at].name.tensor;
        let moves = |own: &&Placement| own.choice(point) != Choice::Root;
        let whole = self.placements.iter().find(of_tensor).filter(moves);
        whole.or_else(|| self.earlier.iter().find(of_tensor).filter(|own| at < own.consumer))
    }

    /// Whether first statements of its tensor are in the blocks of a statement.
    fn hosts(&self, at: usize, point: &Point) -> bool {
        self.earlier.iter().any(|own| own.consumer == at && own.choice(point) != Choice::Root)
    }

    /// Points to begin at: tiles of several sizes, with what a statement needs computed before it and inside its blocks.
    pub fn beginnings(&self, knobs: &Knobs) -> Vec<Point> {
        let mut found: Vec<Point> = Vec::new();
        for near in [false, true] {
            for shape in initial::SHAPES {
                let mut point = knobs.nth(0).unwrap_or_default();
                self.set_tiles(knobs, &shape, &mut point);
                for placement in &self.placements {
                    initial::place(placement, near, &mut point);
                }
                // What a reduction adds to is set in its own blocks.
                for own in self.earlier.iter().filter(|own| near && self.reduces(own.consumer)) {
                    own.set(Choice::AtOuter, &mut point);
                }
                if found.is_empty() || (knobs.allows(&point) && !found.contains(&point)) {
                    found.push(point);
                }
            }
        }
        found.extend(self.fused_beginnings(knobs).into_iter().filter(|point| knobs.allows(point)));
        found
    }

    fn reduces(&self, at: usize) -> bool {
        !self.stages[at].busy(true).is_empty()
    }

    /// Sets the knobs of all statements to a shape, or to another where a statement's loops are too short for that.
    fn set_tiles(&self, knobs: &Knobs, shape: &Shape, point: &mut Point) {
        for ((stage, tile), matters) in self.stages.iter().zip(&self.tiles).zip(&self.matters) {
            let Some(tile) = tile else { continue };
            let shapes = [shape].into_iter().chain(initial::SHAPES.iter().rev());
            let fits = shapes.into_iter().any(|shape| {
                initial::tile(tile, stage, self.gpu, knobs, shape, point);
                limits::check(tile, stage, *matters, self.gpu, point).is_ok()
            });
            if !fits {
                initial::tile(tile, stage, self.gpu, knobs, shape, point);
            }
        }
    }

    /// Points with all that a statement needs in its blocks, the first statements of its tensor too. These need rows as a
    /// whole, most often.
    fn fused_beginnings(&self, knobs: &Knobs) -> Vec<Point> {
        if self.earlier.iter().all(|own| self.reduces(own.consumer)) {
            return Vec::new();
        }
        let mut found: Vec<Point> = Vec::new();
        for rows in initial::ROWS {
            let mut point = knobs.nth(0).unwrap_or_default();
            self.set_tiles(knobs, &initial::SHAPES[0], &mut point);
            self.placements.iter().for_each(|placement| initial::place(placement, true, &mut point));
            for own in &self.earlier {
                own.set(Choice::AtOuter, &mut point);
                if let Some(tile) = &self.tiles[own.consumer]
                    && !self.reduces(own.consumer)
                {
                    initial::rows(tile, &self.stages[own.consumer], knobs, rows, &mut point);
                }
            }
            if !found.contains(&point) {
                found.push(point);
            }
        }
        found
    }
}

/// Turns a point into steps.
struct Decoder<'s, 'a> {
    plan: &'s Plan<'a>,
    point: &'s Point,
    steps: Vec<Step>,
    /// Statements that need nothing more.
    done: Vec<StatementName>,
}

impl Decoder<'_, '_> {
    /// From the last statement back: what a statement needs is placed in blocks that are there already. All that is inside
    /// others' blocks is spread over their threads by `complete`.
    fn arrange(&mut self) -> Result<(), Rejection> {
        let Plan { stages, .. } = self.plan;
        let mut blocks: Vec<Option<LoopName>> = vec![None; stages.len()];
        let mut moved: Vec<&str> = Vec::new();
        for at in (0..stages.len()).rev() {
            let placement = self.plan.placement(at, self.point);
            let choice = placement.map_or(Choice::Root, |own| own.choice(self.point));
            match (placement, choice) {
                (_, Choice::Inline) => {}
                (Some(placement), Choice::WithConsumer | Choice::AtOuter) => {
                    let block = blocks[placement.consumer].clone().ok_or(Rejection::NoPlace)?;
                    if !moved.contains(&placement.tensor.as_str()) {
                        self.steps.push(placement.step(&block));
                        moved.push(&placement.tensor);
                    }
                    blocks[at] = Some(block);
                }
                _ => blocks[at] = self.kernel(at)?,
            }
        }
        Ok(())
    }

    /// The steps of a kernel; the innermost loop over its blocks.
    fn kernel(&mut self, at: usize) -> Result<Option<LoopName>, Rejection> {
        let Plan { stages, tiles, gpu, names, matters, .. } = self.plan;
        let (stage, Some(tile)) = (&stages[at], &tiles[at]) else { return Ok(None) };
        let hosts = self.plan.hosts(at, self.point);
        if !matters[at] && !hosts {
            return Ok(None);
        }
        limits::check(tile, stage, matters[at], gpu, self.point)?;
        self.steps.extend(stage.made_by.iter().cloned());
        let kernel: Kernel = tile.steps(stage, self.point, names, hosts, &mut self.steps);
        // What is computed in the blocks themselves is there already.
        let in_memory = |tensor: &str| {
            let placement = self.plan.placements.iter().find(|own| own.tensor == tensor);
            let own = tensor == stage.name.tensor && hosts;
            !own && placement.is_none_or(|own| own.choice(self.point) == Choice::Root)
        };
        let copies = operand::steps(tile, stage, &kernel, self.point, names, &in_memory, &mut self.steps)?;
        self.steps.extend(tile.pipeline(&kernel, self.point, !copies.is_empty()));
        self.done.push(kernel.statement.clone());
        self.done.extend(copies);
        Ok(Some(kernel.block))
    }
}
