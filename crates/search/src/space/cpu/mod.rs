//! The search space of schedules for a CPU. For every statement with a significant share of the
//! work, the knobs say how its loops are tiled, ordered and run (`tile.rs`) and whether its
//! operands are packed (`pack.rs`) or prefetched (`prefetch.rs`). Other knobs choose the loop at
//! which a producer is computed (`place.rs`). `limits.rs` rejects slow points, and `initial.rs`
//! chooses starting points.

mod initial;
mod limits;
mod pack;
mod place;
mod prefetch;
mod tile;

use tilewright_ir::Program;
use tilewright_schedule::{LoopName, Schedule, StatementName, Step, complete};
use tilewright_target::Cpu;

use super::names::Names;
use super::placement::{Choice, Placement};
use super::rejection::Rejection;
use super::stage::{self, Stage, heavy};
use super::{Builder, collapse};
use crate::knob::{Knobs, Point};
use pack::Pack;
use tile::{Levels, Tile};

/// The largest number of starting points.
const MOST_BEGINNINGS: usize = 16;

/// Translates the knobs of a program into schedules for a CPU.
#[derive(Clone, Debug)]
pub(super) struct Plan<'a> {
    program: &'a Program,
    target: &'a Cpu,
    stages: Vec<Stage>,
    placements: Vec<Placement>,
    /// The knobs of each statement; `None` for statements that hardly matter.
    tiles: Vec<Option<(Tile, Vec<Pack>)>>,
    names: Names,
}

impl<'a> Plan<'a> {
    /// Creates the knobs of a program whose sizes are known.
    pub fn new(program: &'a Program, target: &'a Cpu) -> (Knobs, Plan<'a>) {
        let mut stages = stage::stages(program);
        let names = Names::of(program);
        let mut builder = Builder::default();
        let placements = Placement::all(program, &stages, &place::INSIDE, &mut builder);
        let matters = heavy(&stages);
        let statements = program.statements();
        let tiles: Vec<Option<(Tile, Vec<Pack>)>> = stages
            .iter_mut()
            .zip(matters)
            .zip(statements)
            .map(|((stage, matters), (statement, _))| {
                let busy = !stage.busy(false).is_empty() || !stage.busy(true).is_empty();
                (matters && busy && !stage.scatters).then(|| {
                    let moves = placements.iter().any(|own| own.tensor == stage.name.tensor);
                    collapse::collapse(stage, program, statement, moves, &names);
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
            knobs.rule(tile.own_knobs(), move |point| {
                limits::check(&tile, &stage, &target, point).is_ok()
                    && (!always_alone || limits::check_threads(&tile, &stage, &target, point).is_ok())
            });
        }
        (knobs, Plan { program, target, stages, placements, tiles, names })
    }

    /// Returns the schedule that a point stands for, if it is worth compiling.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        let mut decoder =
            Decoder { plan: self, point, steps: Vec::new(), late: Vec::new(), done: Vec::new() };
        decoder.steps.extend(Placement::inlined(&self.placements, point));
        decoder.arrange()?;
        let Decoder { mut steps, late, done, .. } = decoder;
        steps.extend(late);
        let schedule = Schedule { steps };
        complete(self.program, schedule, &done, self.target)
            .map_err(|refusal| Rejection::from(&refusal.reason))
    }

    /// Returns the starting points of a search, at most `MOST_BEGINNINGS`. The first is the initial
    /// point, followed by its variant with `near` set. The others repeat this pair for every
    /// statement and every loop that it can vectorise. Repeated and rejected points are left out.
    pub fn beginnings(&self, knobs: &Knobs) -> Vec<Point> {
        let vectors = self.tiles.iter().enumerate().flat_map(|(at, tile)| {
            let loops = tile.as_ref().map_or(0, |(tile, _)| tile.vector_loops.len());
            (0..loops).map(move |place| Some((at, place)))
        });
        let ways = std::iter::once(None).chain(vectors);
        let points = ways.flat_map(|vector| [false, true].map(|near| self.initial(knobs, vector, near)));
        let mut found = Vec::new();
        for point in points {
            if found.is_empty() || (knobs.allows(&point) && !found.contains(&point)) {
                found.push(point);
            }
        }
        found.truncate(MOST_BEGINNINGS);
        found
    }

    /// Returns the point that static analysis would choose. `vector` selects a statement and the
    /// index of its vectorised loop. If `near` is set, producers are computed inside the loops of
    /// their consumer, as deep as possible without computing anything twice.
    pub fn initial(&self, knobs: &Knobs, vector: Option<(usize, usize)>, near: bool) -> Point {
        let mut point = knobs.nth(0).unwrap_or_default();
        for (at, (stage, tile)) in self.stages.iter().zip(&self.tiles).enumerate() {
            let Some((tile, packs)) = tile else { continue };
            let along = vector.filter(|(statement, _)| *statement == at).map(|(_, place)| place);
            initial::tile(tile, stage, self.target, knobs, along, &mut point);
            let vector = tile.vector_loop(&point);
            packs.iter().for_each(|pack| pack.initial(stage, self.target, vector, &mut point));
        }
        for placement in &self.placements {
            initial::place(placement, self.program, &self.stages, near, &mut point);
        }
        point
    }
}

/// Translates a point into steps.
struct Decoder<'s, 'a> {
    plan: &'s Plan<'a>,
    point: &'s Point,
    steps: Vec<Step>,
    /// Promotions and prefetches, which must come after all steps that create loops.
    late: Vec<Step>,
    /// The statements that the default schedule must leave alone.
    done: Vec<StatementName>,
}

impl Decoder<'_, '_> {
    /// Arranges the statements from the last to the first, so that the loops of a consumer exist
    /// when its producers are placed at them.
    fn arrange(&mut self) -> Result<(), Rejection> {
        let stages = &self.plan.stages;
        let mut levels: Vec<Levels> = vec![Levels::default(); stages.len()];
        let mut places: Vec<Option<LoopName>> = vec![None; stages.len()];
        let mut moved: Vec<&str> = Vec::new();
        for at in (0..stages.len()).rev() {
            let stage = &stages[at];
            let placement = self.plan.placements.iter().find(|own| own.tensor == stage.name.tensor);
            if let Some(placement) = placement {
                if placement.choice(self.point) == Choice::Inline {
                    continue;
                }
                let consumer = placement.consumer;
                places[at] = place::place(
                    placement,
                    self.point,
                    &stages[consumer],
                    &levels[consumer],
                    places[consumer].as_ref(),
                )?;
                if let Some(place) =
                    places[at].as_ref().filter(|_| !moved.contains(&placement.tensor.as_str()))
                {
                    self.steps.push(placement.step(place));
                    moved.push(&placement.tensor);
                }
            }
            levels[at] = self.tile(at, places[at].is_none())?;
        }
        Ok(())
    }

    fn tile(&mut self, at: usize, alone: bool) -> Result<Levels, Rejection> {
        let Plan { stages, tiles, target, names, .. } = self.plan;
        let stage = &stages[at];
        let Some((tile, packs)) = &tiles[at] else { return Ok(untiled(stage)) };
        limits::check(tile, stage, target, self.point)?;
        if alone {
            limits::check_threads(tile, stage, target, self.point)?;
        }
        let (steps, levels) = tile.steps(stage, target, self.point, alone, names)?;
        self.steps.extend(stage.made_by.iter().cloned());
        self.steps.extend(steps);
        self.late.extend(tile.gather(&levels, stage, names));
        self.late.extend(packs.iter().flat_map(|pack| pack.steps(stage, &levels, self.point, names)));
        self.done.push(stage.name.clone());
        self.done.extend(levels.statement.clone());
        Ok(levels)
    }
}

/// The loops of a statement that the default schedule arranges. Only the first result loop is
/// certain to exist afterwards.
fn untiled(stage: &Stage) -> Levels {
    let first = stage.busy(false).first().copied();
    let name = first.map(|at| stage.name.at(stage.loops[at].name.clone()));
    Levels {
        outer: name.into_iter().collect(),
        outer_of: first.into_iter().map(|at| vec![at]).collect(),
        ..Levels::default()
    }
}
