//! Schedules for a GPU. For every statement with a significant share of the work, the knobs say how
//! its loops are spread over blocks and threads (`tile.rs`), and by which way its operands reach
//! the threads (`operand.rs`).
//!
//! A statement is a kernel of its own, or all threads of its consumer's blocks compute it inside
//! these blocks. The earlier statements of a tensor can also be in the blocks of its last
//! statement, so that successive layers become one kernel.

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

/// The possible positions inside the loops of a consumer.
const INSIDE: [Choice; 2] = [Choice::WithConsumer, Choice::AtOuter];

/// The meaning of the knobs of a program on a GPU.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    program: &'a Program,
    gpu: &'a Gpu,
    stages: Vec<Stage>,
    placements: Vec<Placement>,
    /// Where the statements before the last one of a tensor are computed.
    earlier: Vec<Placement>,
    /// Which statements have a significant share of the work.
    matters: Vec<bool>,
    /// The knobs of each statement. `None` for statements that hardly matter, unless other
    /// statements can be in their blocks.
    tiles: Vec<Option<Tile>>,
    names: Names,
}

impl<'a> Plan<'a> {
    /// Creates the knobs of a program whose sizes are known.
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
                // A statement that only hosts others keeps its loops: the hosted statements usually
                // need whole rows.
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

    /// Returns the schedule that a point stands for, if it is worth compiling.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        let mut decoder = Decoder { plan: self, point, steps: Vec::new(), done: Vec::new() };
        decoder.steps.extend(Placement::inlined(&self.placements, point));
        decoder.arrange()?;
        let Decoder { steps, done, .. } = decoder;
        complete(self.program, Schedule { steps }, &done, self.gpu)
            .map_err(|refusal| Rejection::from(&refusal.reason))
    }

    /// Returns the knob that places a statement: the knob of its whole tensor, or the knob for the
    /// statements before the tensor's last one.
    fn placement(&self, at: usize, point: &Point) -> Option<&Placement> {
        let of_tensor = |own: &&Placement| own.tensor == self.stages[at].name.tensor;
        let moves = |own: &&Placement| own.choice(point) != Choice::Root;
        let whole = self.placements.iter().find(of_tensor).filter(moves);
        whole.or_else(|| self.earlier.iter().find(of_tensor).filter(|own| at < own.consumer))
    }

    /// Returns true when earlier statements of the same tensor are in the blocks of this statement.
    fn hosts(&self, at: usize, point: &Point) -> bool {
        self.earlier.iter().any(|own| own.consumer == at && own.choice(point) != Choice::Root)
    }

    /// Returns the starting points of a search: tiles of several shapes, with producers computed
    /// before their consumers and inside the consumers' blocks.
    pub fn beginnings(&self, knobs: &Knobs) -> Vec<Point> {
        let mut found: Vec<Point> = Vec::new();
        for near in [false, true] {
            for shape in initial::SHAPES {
                let mut point = knobs.nth(0).unwrap_or_default();
                self.set_tiles(knobs, &shape, &mut point);
                for placement in &self.placements {
                    initial::place(placement, near, &mut point);
                }
                // The statements that initialise the result of a reduction are computed in the
                // reduction's own blocks.
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

    /// Sets the knobs of all statements to a shape. Statements whose loops are too short for it get
    /// another shape.
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

    /// Returns points with all producers of a statement in its blocks, including the earlier
    /// statements of its tensor. Such producers usually need whole rows.
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

/// Translates a point into steps.
struct Decoder<'s, 'a> {
    plan: &'s Plan<'a>,
    point: &'s Point,
    steps: Vec<Step>,
    /// The statements that the default schedule must leave alone.
    done: Vec<StatementName>,
}

impl Decoder<'_, '_> {
    /// Arranges the statements from the last to the first, so that the blocks of a consumer exist
    /// when its producers are placed in them. `complete` spreads everything inside the blocks of
    /// others over their threads.
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

    /// Adds the steps of a kernel and returns the innermost loop over its blocks.
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
        // Tensors that are computed in the blocks themselves need no copy.
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
