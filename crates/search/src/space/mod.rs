//! The schedules of a program, as a product of knobs.
//!
//! [`Space::new`] looks at a program and a machine and makes the knobs, by analysis alone:
//! - where every temporary is computed (`placement.rs`);
//! - for every statement with a share in the work, how its loops are cut, ordered and run (`tile.rs`), and what
//!   becomes of its operands (`pack.rs`, `prefetch.rs`).
//!
//! [`Space::decode`] turns a choice of all of them into a schedule. What the knobs do not say (the copies of operands,
//! statements that hardly matter) is scheduled as it would be without search. Points that cannot be good are refused
//! before anything is compiled, with a reason that can be counted (`limits.rs`).

mod collapse;
mod initial;
mod limits;
mod names;
mod pack;
mod placement;
mod prefetch;
mod stage;
mod tile;

use tilewright_ir::Program;
use tilewright_schedule::{LoopName, Schedule, StatementName, Step, complete};
use tilewright_target::Cpu;

pub use limits::{Rejection, Rejections};

use crate::knob::{Knob, Knobs, Point};
use names::Names;
use pack::Pack;
use placement::{Choice, Placement};
use stage::Stage;
use tile::{Levels, Tile};

/// Statements with less than this share of all operations are left to the default schedule.
const LEAST_SHARE: f64 = 0.005;
/// And so are all but so many.
const MOST_TILED: usize = 16;
/// Points to begin at.
const MOST_BEGINNINGS: usize = 16;

/// The schedules of a program on a machine.
#[derive(Clone, Debug)]
pub struct Space<'a> {
    program: &'a Program,
    target: &'a Cpu,
    knobs: Knobs,
    stages: Vec<Stage>,
    placements: Vec<Placement>,
    /// The knobs of each statement; none for those that hardly matter.
    tiles: Vec<Option<(Tile, Vec<Pack>)>>,
    names: Names,
}

/// A knob by its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnobId(pub usize);

/// The knobs while they are made.
#[derive(Default)]
pub(crate) struct Builder {
    knobs: Vec<Knob>,
}

impl Builder {
    pub fn add(&mut self, knob: Knob) -> KnobId {
        self.knobs.push(knob);
        KnobId(self.knobs.len() - 1)
    }
}

impl<'a> Space<'a> {
    /// The space of a program whose sizes are known.
    pub fn new(program: &'a Program, target: &'a Cpu) -> Space<'a> {
        let mut stages = stage::stages(program);
        let names = Names::of(program);
        let mut builder = Builder::default();
        let placements = Placement::all(program, &stages, &mut builder);
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
        Space { program, target, knobs, stages, placements, tiles, names }
    }

    /// The knobs.
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// The schedule that a point stands for, if it is worth compiling.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        if !self.knobs.contains(point) {
            return Err(Rejection::Illegal("not a point of this space"));
        }
        let mut decoder =
            Decoder { space: self, point, steps: Vec::new(), late: Vec::new(), done: Vec::new() };
        decoder.inline();
        decoder.arrange()?;
        let Decoder { mut steps, late, done, .. } = decoder;
        steps.extend(late);
        let schedule = Schedule { steps };
        complete(self.program, schedule, &done, self.target)
            .map_err(|refusal| Rejection::from(&refusal.reason))
    }

    /// A point near the schedule that a program gets without search.
    pub fn initial(&self) -> Point {
        self.initial_with(None, false)
    }

    /// Points to begin at: the initial one, the same with what statements need computed just before, and for every
    /// statement both with its vector along each loop. What is good for one of them has little in common with what is
    /// good for another, so a search hardly gets from one to the other step by step.
    pub fn beginnings(&self) -> Vec<Point> {
        let vectors = self.tiles.iter().enumerate().flat_map(|(at, tile)| {
            let loops = tile.as_ref().map_or(0, |(tile, _)| tile.vector_loops.len());
            (0..loops).map(move |place| Some((at, place)))
        });
        let ways = std::iter::once(None).chain(vectors);
        let points = ways.flat_map(|vector| [false, true].map(|near| self.initial_with(vector, near)));
        let mut found = Vec::new();
        for point in points {
            if found.is_empty() || (self.knobs.allows(&point) && !found.contains(&point)) {
                found.push(point);
            }
        }
        found.truncate(MOST_BEGINNINGS);
        found
    }

    /// `near`: what a statement needs is computed just before it, where nothing is computed twice.
    fn initial_with(&self, vector: Option<(usize, usize)>, near: bool) -> Point {
        let mut point = self.knobs.nth(0).unwrap_or_default();
        for (at, (stage, tile)) in self.stages.iter().zip(&self.tiles).enumerate() {
            let Some((tile, packs)) = tile else { continue };
            let along = vector.filter(|(statement, _)| *statement == at).map(|(_, place)| place);
            initial::tile(tile, stage, self.target, &self.knobs, along, &mut point);
            let vector = tile.vector_loop(&point);
            packs.iter().for_each(|pack| pack.initial(stage, self.target, vector, &mut point));
        }
        for placement in &self.placements {
            initial::place(placement, self.program, &self.stages, near, &mut point);
        }
        point
    }
}

/// Which statements have a share in the work.
fn heavy(stages: &[Stage]) -> Vec<bool> {
    let total: f64 = stages.iter().map(|stage| stage.work).sum();
    let mut order: Vec<usize> = (0..stages.len()).collect();
    order.sort_by(|left, right| stages[*right].work.total_cmp(&stages[*left].work));
    let mut matters = vec![false; stages.len()];
    for at in order.into_iter().take(MOST_TILED) {
        matters[at] = stages[at].work >= LEAST_SHARE * total;
    }
    matters
}

/// Turns a point into steps.
struct Decoder<'s, 'a> {
    space: &'s Space<'a>,
    point: &'s Point,
    steps: Vec<Step>,
    /// Promotions, which come once all loops are there.
    late: Vec<Step>,
    /// Statements that need nothing more.
    done: Vec<StatementName>,
}

impl Decoder<'_, '_> {
    fn inline(&mut self) {
        let inlined = self.space.placements.iter().filter(|own| own.choice(self.point) == Choice::Inline);
        self.steps.extend(inlined.map(|own| Step::Inline { tensor: own.tensor.clone() }));
    }

    /// From the last statement back: what a statement needs is placed at loops that are there already.
    fn arrange(&mut self) -> Result<(), Rejection> {
        let stages = &self.space.stages;
        let mut levels: Vec<Levels> = vec![Levels::default(); stages.len()];
        let mut places: Vec<Option<LoopName>> = vec![None; stages.len()];
        let mut moved: Vec<&str> = Vec::new();
        for at in (0..stages.len()).rev() {
            let stage = &stages[at];
            let placement = self.space.placements.iter().find(|own| own.tensor == stage.name.tensor);
            if let Some(placement) = placement {
                if placement.choice(self.point) == Choice::Inline {
                    continue;
                }
                let consumer = placement.consumer;
                places[at] = placement.place(
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
        let Space { stages, tiles, target, names, .. } = self.space;
        let stage = &stages[at];
        let Some((tile, packs)) = &tiles[at] else { return Ok(untiled(stage)) };
        limits::check(tile, stage, target, self.point)?;
        if alone {
            limits::check_threads(tile, stage, target, self.point)?;
        }
        let (steps, levels) = tile.steps(stage, target, self.point, alone, names)?;
        self.steps.extend(collapse::steps(stage));
        self.steps.extend(steps);
        self.late.extend(tile.gather(&levels, stage, names));
        self.late.extend(packs.iter().flat_map(|pack| pack.steps(stage, &levels, self.point, names)));
        self.done.push(stage.name.clone());
        self.done.extend(levels.statement.clone());
        Ok(levels)
    }
}

/// The loops of a statement that the default schedule will take care of: only the first can be relied on.
fn untiled(stage: &Stage) -> Levels {
    let first = stage.busy(false).first().copied();
    let name = first.map(|at| stage.name.at(stage.loops[at].name.clone()));
    Levels {
        outer: name.into_iter().collect(),
        outer_of: first.into_iter().map(|at| vec![at]).collect(),
        ..Levels::default()
    }
}
