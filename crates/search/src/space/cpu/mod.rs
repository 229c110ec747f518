//! The search space of schedules for a CPU. For every statement with a significant share of the
//! work, the knobs say how its loops are tiled, ordered and run (`tile.rs`) and whether its
//! operands are packed (`pack.rs`) or prefetched (`prefetch.rs`). Other knobs choose the loop at
//! which a producer is computed (`producer_loop.rs`). `limits.rs` rejects slow points, and
//! `initial.rs` chooses starting points.

mod initial;
mod limits;
mod pack;
mod prefetch;
mod producer_loop;
mod tile;

use tilewright_ir::Program;
use tilewright_schedule::{LoopName, Schedule, Step};
use tilewright_target::Cpu;

use super::outline::{DecodedSteps, Outline, add_starting_point};
use super::placement::ProducerLocation;
use super::rejection::Rejection;
use super::stage::Stage;
use super::{Builder, collapse};
use crate::knob::{Knobs, Point};
use pack::Pack;
use tile::{Levels, Tile};

/// The largest number of starting points.
const MAX_STARTING_POINTS: usize = 16;

/// Translates the knobs of a program into schedules for a CPU.
#[derive(Clone, Debug)]
pub(crate) struct Plan<'a> {
    target: &'a Cpu,
    outline: Outline<'a>,
    /// The knobs of each statement; `None` for statements that hardly matter.
    tiles: Vec<Option<(Tile, Vec<Pack>)>>,
}

impl<'a> Plan<'a> {
    /// Creates the knobs of a program whose sizes are known.
    pub fn new(program: &'a Program, target: &'a Cpu) -> (Knobs, Plan<'a>) {
        let mut builder = Builder::default();
        let mut outline = Outline::new(program, target, &producer_loop::INSIDE, &mut builder);
        let Outline { stages, significant: matters, placements, names, .. } = &mut outline;
        let statements = program.statements();
        let tiles: Vec<Option<(Tile, Vec<Pack>)>> = stages
            .iter_mut()
            .zip(matters)
            .zip(statements)
            .map(|((stage, matters), (statement, _))| {
                let busy = !stage.repeated_loops(false).is_empty() || !stage.repeated_loops(true).is_empty();
                (*matters && busy && !stage.scatters).then(|| {
                    let moves = placements.iter().any(|own| own.tensor == stage.name.tensor);
                    collapse::collapse(stage, program, statement, moves, names);
                    let tile = Tile::new(stage, target, &mut builder);
                    (tile, Pack::all(stage, &mut builder))
                })
            })
            .collect();
        let mut knobs = Knobs::new(builder.knobs);
        for (stage, tile) in stages.iter().zip(&tiles) {
            let Some((tile, _)) = tile else { continue };
            let always_alone = placements.iter().all(|own| own.tensor != stage.name.tensor);
            let (tile, stage, target) = (tile.clone(), stage.clone(), target.clone());
            knobs.add_rule(tile.knob_range(), move |point| {
                limits::check(&tile, &stage, &target, point).is_ok()
                    && (!always_alone || limits::check_threads(&tile, &stage, &target, point).is_ok())
            });
        }
        (knobs, Plan { target, outline, tiles })
    }

    /// Returns the point that static analysis would choose. `vector` selects a statement and the
    /// index of its vectorised loop. If `inside_consumers` is set, producers are computed inside
    /// the loops of their consumer, as deep as possible without computing anything twice.
    fn initial(&self, knobs: &Knobs, vector: Option<(usize, usize)>, inside_consumers: bool) -> Point {
        let mut point = knobs.nth(0).unwrap_or_default();
        let Outline { program, stages, placements, .. } = &self.outline;
        for (at, (stage, tile)) in stages.iter().zip(&self.tiles).enumerate() {
            let Some((tile, packs)) = tile else { continue };
            let along = vector.filter(|(statement, _)| *statement == at).map(|(_, place)| place);
            initial::tile(tile, stage, self.target, knobs, along, &mut point);
            let vector = tile.vector_loop(&point);
            packs.iter().for_each(|pack| pack.initial(stage, self.target, vector, &mut point));
        }
        for placement in placements {
            initial::place(placement, program, stages, inside_consumers, &mut point);
        }
        point
    }
}

impl super::Plan for Plan<'_> {
    fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        let mut decoder =
            Decoder { plan: self, decoded: DecodedSteps::new(&self.outline, point), late_steps: Vec::new() };
        decoder.arrange()?;
        let Decoder { decoded: DecodedSteps { mut steps, scheduled: done, .. }, late_steps: late, .. } =
            decoder;
        steps.extend(late);
        self.outline.schedule(steps, &done)
    }

    /// Returns the starting points of a search, at most `MAX_STARTING_POINTS`. The first is the
    /// initial point, followed by its variant with `inside_consumers` set. The others repeat this
    /// pair for every statement and every loop that it can vectorise. Repeated and rejected points
    /// are left out.
    fn starting_points(&self, knobs: &Knobs) -> Vec<Point> {
        let vectors = self.tiles.iter().enumerate().flat_map(|(at, tile)| {
            let loops = tile.as_ref().map_or(0, |(tile, _)| tile.vector_loops.len());
            (0..loops).map(move |place| Some((at, place)))
        });
        let ways = std::iter::once(None).chain(vectors);
        let points = ways.flat_map(|vector| [false, true].map(|near| self.initial(knobs, vector, near)));
        let mut found = Vec::new();
        points.for_each(|point| add_starting_point(&mut found, knobs, point));
        found.truncate(MAX_STARTING_POINTS);
        found
    }
}

/// Translates a point into steps.
struct Decoder<'s, 'a> {
    plan: &'s Plan<'a>,
    decoded: DecodedSteps<'s>,
    /// Promotions and prefetches, which must come after all steps that create loops.
    late_steps: Vec<Step>,
}

impl Decoder<'_, '_> {
    /// Arranges the statements from the last to the first, so that the loops of a consumer exist
    /// when its producers are placed at them.
    fn arrange(&mut self) -> Result<(), Rejection> {
        let (outline, point) = (&self.plan.outline, self.decoded.point);
        let stages = &outline.stages;
        let mut levels: Vec<Levels> = vec![Levels::default(); stages.len()];
        let mut places: Vec<Option<LoopName>> = vec![None; stages.len()];
        for at in (0..stages.len()).rev() {
            if let Some(placement) = outline.placement(&stages[at].name.tensor) {
                if placement.choice(point) == ProducerLocation::Inline {
                    continue;
                }
                let consumer = placement.consumer;
                let around = places[consumer].as_ref();
                places[at] = producer_loop::producer_loop(
                    placement,
                    point,
                    &stages[consumer],
                    &levels[consumer],
                    around,
                )?;
                if let Some(place) = &places[at] {
                    self.decoded.place(placement, place);
                }
            }
            levels[at] = self.tile(at, places[at].is_none())?;
        }
        Ok(())
    }

    fn tile(&mut self, at: usize, is_root: bool) -> Result<Levels, Rejection> {
        let Plan { outline, tiles, target } = self.plan;
        let (stage, names, point) = (&outline.stages[at], &outline.names, self.decoded.point);
        let Some((tile, packs)) = &tiles[at] else { return Ok(default_levels(stage)) };
        limits::check(tile, stage, target, point)?;
        if is_root {
            limits::check_threads(tile, stage, target, point)?;
        }
        let (steps, levels) = tile.steps(stage, target, point, is_root, names)?;
        self.decoded.steps.extend(stage.creation_steps.iter().cloned());
        self.decoded.steps.extend(steps);
        self.late_steps.extend(tile.promote_results(&levels, stage, names));
        self.late_steps.extend(packs.iter().flat_map(|pack| pack.steps(stage, &levels, point, names)));
        self.decoded.scheduled.push(stage.name.clone());
        self.decoded.scheduled.extend(levels.statement.clone());
        Ok(levels)
    }
}

/// The loops of a statement that the default schedule arranges. Only the first result loop is
/// certain to exist afterwards.
fn default_levels(stage: &Stage) -> Levels {
    let first = stage.repeated_loops(false).first().copied();
    let name = first.map(|at| stage.name.loop_named(stage.loops[at].name.clone()));
    Levels {
        outer: name.into_iter().collect(),
        outer_of: first.into_iter().map(|at| vec![at]).collect(),
        ..Levels::default()
    }
}
