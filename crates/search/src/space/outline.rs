//! The analysis of a program that the spaces of all targets begin with.

use tilewright_ir::Program;
use tilewright_schedule::{LoopName, Schedule, StatementName, Step, complete};
use tilewright_target::Target;

use super::Builder;
use super::names::Names;
use super::placement::{Choice, Placement};
use super::rejection::Rejection;
use super::stage::{Stage, heavy, stages};
use crate::knob::{Knobs, Point};

/// The statements of a program, and the knobs that place its tensors.
#[derive(Clone, Debug)]
pub(super) struct Outline<'a> {
    pub program: &'a Program,
    target: Target<'a>,
    pub stages: Vec<Stage>,
    /// Which statements have a significant share of the work.
    pub matters: Vec<bool>,
    pub placements: Vec<Placement>,
    pub names: Names,
}

impl<'a> Outline<'a> {
    /// Analyses a program whose sizes are known. `inside` lists the possible positions of a
    /// producer in the loops of its consumer.
    pub fn new(
        program: &'a Program,
        target: impl Into<Target<'a>>,
        inside: &[Choice],
        builder: &mut Builder,
    ) -> Outline<'a> {
        let stages = stages(program);
        let placements = Placement::all(program, &stages, inside, builder);
        let (matters, names) = (heavy(&stages), Names::of(program));
        Outline { program, target: target.into(), stages, matters, placements, names }
    }

    /// The knob that places a tensor.
    pub fn placement(&self, tensor: &str) -> Option<&Placement> {
        self.placements.iter().find(|own| own.tensor == tensor)
    }

    /// The schedule of these steps. The default schedule covers all statements except those in
    /// `done`.
    pub fn schedule(&self, steps: Vec<Step>, done: &[StatementName]) -> Result<Schedule, Rejection> {
        complete(self.program, Schedule { steps }, done, self.target)
            .map_err(|refusal| Rejection::from(&refusal.reason))
    }
}

/// The steps of a point while they are collected.
pub(super) struct Steps<'p> {
    pub point: &'p Point,
    pub steps: Vec<Step>,
    /// The statements that the default schedule must leave alone.
    pub done: Vec<StatementName>,
    /// The tensors that have been placed at a loop.
    moved: Vec<&'p str>,
}

impl<'p> Steps<'p> {
    /// Begins with the steps that inline tensors.
    pub fn new(outline: &Outline<'_>, point: &'p Point) -> Steps<'p> {
        let steps = Placement::inlined(&outline.placements, point).collect();
        Steps { point, steps, done: Vec::new(), moved: Vec::new() }
    }

    /// Places a tensor at a loop, once for all of its statements.
    pub fn place(&mut self, placement: &'p Placement, at: &LoopName) {
        if !self.moved.contains(&placement.tensor.as_str()) {
            self.steps.push(placement.step(at));
            self.moved.push(&placement.tensor);
        }
    }
}

/// Adds a starting point unless it is rejected or repeated. The first point is always added.
pub(super) fn add_beginning(found: &mut Vec<Point>, knobs: &Knobs, point: Point) {
    if found.is_empty() || (knobs.allows(&point) && !found.contains(&point)) {
        found.push(point);
    }
}
