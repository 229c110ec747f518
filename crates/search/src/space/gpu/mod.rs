//! Defines the search space of schedules for a GPU. For every statement with a significant share of
//! the work, the knobs say how its loops are spread over blocks and threads (`tile.rs`), and how
//! its operands reach the threads (`operand.rs`).
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
use tilewright_schedule::{LoopName, Schedule};
use tilewright_target::Gpu;

use super::outline::{DecodedSteps, Outline, add_starting_point};
use super::placement::{Placement, ProducerLocation};
use super::rejection::Rejection;
use super::{Builder, collapse, remainders};
use crate::knob::{Knobs, Point};
use initial::TileShape;
use operand::OperandKnob;
use tile::{Kernel, Tile};

/// The possible positions inside the loops of a consumer.
const INSIDE: [ProducerLocation; 2] = [ProducerLocation::WithConsumer, ProducerLocation::AtOuter];

/// The meaning of the knobs of a program on a GPU.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    gpu: &'a Gpu,
    outline: Outline<'a>,
    /// Where the statements before the last one of a tensor are computed.
    earlier: Vec<Placement>,
    /// The knobs of each statement. `None` for statements that hardly matter, unless other
    /// statements can be in their blocks.
    tiles: Vec<Option<Tile>>,
}

impl<'a> Plan<'a> {
    /// Creates the knobs of a program whose sizes are known.
    pub fn new(program: &'a Program, gpu: &'a Gpu) -> (Knobs, Plan<'a>) {
        let mut builder = Builder::default();
        let mut outline = Outline::new(program, gpu, &INSIDE, &mut builder);
        let Outline { stages, significant: matters, names, .. } = &mut outline;
        let earlier = Placement::earlier(program, stages, ProducerLocation::AtOuter, &mut builder);
        let statements = program.statements();
        let mut tiles = Vec::new();
        for (at, (stage, (statement, _))) in stages.iter_mut().zip(statements).enumerate() {
            let tiled = !stage.repeated_loops(false).is_empty() && !stage.scatters && !stage.is_ordered;
            let hosts = earlier.iter().any(|own| own.consumer == at);
            tiles.push((tiled && (matters[at] || hosts)).then(|| {
                // A statement that only hosts others keeps its loops: the hosted statements usually
                // need whole rows.
                if matters[at] && !remainders::split_remainders(stage, program, statement, names) {
                    collapse::collapse(stage, program, statement, false, names);
                }
                Tile::new(stage, gpu, &mut builder)
            }));
        }
        let mut knobs = Knobs::new(builder.knobs);
        for ((stage, tile), matters) in stages.iter().zip(&tiles).zip(matters.iter()) {
            let Some(tile) = tile else { continue };
            let (own, tile, stage, gpu, matters) =
                (tile.knob_range(), tile.clone(), stage.clone(), gpu.clone(), *matters);
            knobs.add_rule(own, move |point| limits::check(&tile, &stage, matters, &gpu, point).is_ok());
        }
        (knobs, Plan { gpu, outline, earlier, tiles })
    }

    /// Returns the knob that places a statement: the knob of its whole tensor, or the knob for the
    /// statements before the tensor's last one.
    fn placement(&self, at: usize, point: &Point) -> Option<&Placement> {
        let tensor = &self.outline.stages[at].name.tensor;
        let moves = |own: &&Placement| own.choice(point) != ProducerLocation::Root;
        let whole = self.outline.placement(tensor).filter(moves);
        let earlier = || self.earlier.iter().find(|own| own.tensor == *tensor);
        whole.or_else(|| earlier().filter(|own| at < own.consumer))
    }

    /// Returns true when earlier statements of the same tensor are in the blocks of this statement.
    fn hosts(&self, at: usize, point: &Point) -> bool {
        self.earlier.iter().any(|own| own.consumer == at && own.choice(point) != ProducerLocation::Root)
    }

    fn reduces(&self, at: usize) -> bool {
        !self.outline.stages[at].repeated_loops(true).is_empty()
    }

    /// Sets the knobs of all statements to a shape. Statements whose loops are too short for it get
    /// another shape.
    fn set_tiles(&self, knobs: &Knobs, shape: &TileShape, point: &mut Point) {
        let Outline { stages, significant: matters, .. } = &self.outline;
        for ((stage, tile), matters) in stages.iter().zip(&self.tiles).zip(matters) {
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
    fn fused_starting_points(&self, knobs: &Knobs) -> Vec<Point> {
        if self.earlier.iter().all(|own| self.reduces(own.consumer)) {
            return Vec::new();
        }
        let mut found: Vec<Point> = Vec::new();
        for rows in initial::ROWS {
            let mut point = knobs.nth(0).unwrap_or_default();
            self.set_tiles(knobs, &initial::SHAPES[0], &mut point);
            for placement in &self.outline.placements {
                initial::place(placement, true, &mut point);
            }
            for own in &self.earlier {
                own.set(ProducerLocation::AtOuter, &mut point);
                if let Some(tile) = &self.tiles[own.consumer]
                    && !self.reduces(own.consumer)
                {
                    initial::rows(tile, &self.outline.stages[own.consumer], knobs, rows, &mut point);
                }
            }
            if !found.contains(&point) {
                found.push(point);
            }
        }
        found
    }
}

impl super::Plan for Plan<'_> {
    fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        let mut decoder = Decoder { plan: self, decoded: DecodedSteps::new(&self.outline, point) };
        decoder.arrange()?;
        let Decoder { decoded: DecodedSteps { steps, scheduled: done, .. }, .. } = decoder;
        self.outline.schedule(steps, &done)
    }

    /// Returns the starting points of a search: tiles of several shapes, with producers computed
    /// before their consumers and inside the consumers' blocks.
    fn starting_points(&self, knobs: &Knobs) -> Vec<Point> {
        let mut found: Vec<Point> = Vec::new();
        for near in [false, true] {
            for shape in initial::SHAPES {
                let mut point = knobs.nth(0).unwrap_or_default();
                self.set_tiles(knobs, &shape, &mut point);
                for placement in &self.outline.placements {
                    initial::place(placement, near, &mut point);
                }
                // The statements that initialise the result of a reduction are computed in the
                // reduction's own blocks.
                for own in self.earlier.iter().filter(|own| near && self.reduces(own.consumer)) {
                    own.set(ProducerLocation::AtOuter, &mut point);
                }
                add_starting_point(&mut found, knobs, point);
            }
        }
        found.extend(self.fused_starting_points(knobs).into_iter().filter(|point| knobs.allows(point)));
        found
    }
}

/// Translates a point into steps.
struct Decoder<'s, 'a> {
    plan: &'s Plan<'a>,
    decoded: DecodedSteps<'s>,
}

impl Decoder<'_, '_> {
    /// Arranges the statements from the last to the first, so that the blocks of a consumer exist
    /// when its producers are placed in them. `complete` spreads everything inside the blocks of
    /// others over their threads.
    fn arrange(&mut self) -> Result<(), Rejection> {
        let (plan, point) = (self.plan, self.decoded.point);
        let count = plan.outline.stages.len();
        let mut blocks: Vec<Option<LoopName>> = vec![None; count];
        for at in (0..count).rev() {
            let placement = plan.placement(at, point);
            let choice = placement.map_or(ProducerLocation::Root, |own| own.choice(point));
            match (placement, choice) {
                (_, ProducerLocation::Inline) => {}
                (Some(placement), ProducerLocation::WithConsumer | ProducerLocation::AtOuter) => {
                    let block = blocks[placement.consumer].clone().ok_or(Rejection::NoSuchLoop)?;
                    self.decoded.place(placement, &block);
                    blocks[at] = Some(block);
                }
                _ => blocks[at] = self.kernel(at)?,
            }
        }
        Ok(())
    }

    /// Adds the steps of a kernel and returns the innermost loop over its blocks.
    fn kernel(&mut self, at: usize) -> Result<Option<LoopName>, Rejection> {
        let Plan { outline, tiles, gpu, .. } = self.plan;
        let Outline { stages, significant: matters, names, .. } = outline;
        let (stage, Some(tile)) = (&stages[at], &tiles[at]) else { return Ok(None) };
        let DecodedSteps { point, steps, scheduled: done, .. } = &mut self.decoded;
        let hosts = self.plan.hosts(at, point);
        if !matters[at] && !hosts {
            return Ok(None);
        }
        limits::check(tile, stage, matters[at], gpu, point)?;
        steps.extend(stage.creation_steps.iter().cloned());
        let kernel: Kernel = tile.steps(stage, point, names, hosts, steps);
        // Tensors that are computed in the blocks themselves need no copy.
        let in_memory = |tensor: &str| {
            let own = tensor == stage.name.tensor && hosts;
            !own && outline.placement(tensor).is_none_or(|own| own.choice(point) == ProducerLocation::Root)
        };
        let copies = operand::steps(tile, stage, &kernel, point, names, &in_memory, steps)?;
        steps.extend(tile.pipeline(&kernel, point, !copies.is_empty()));
        done.push(kernel.statement.clone());
        done.extend(copies);
        Ok(Some(kernel.block))
    }
}
