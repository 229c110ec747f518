//! Analyses a program for the search spaces of all targets ([`Outline`]), and collects the steps of
//! a point while it is translated to a schedule ([`DecodedSteps`]).

use tilewright_ir::Program;
use tilewright_schedule::{LoopName, Schedule, StatementName, Step, complete};
use tilewright_target::Target;

use super::Builder;
use super::names::Names;
use super::placement::{Placement, ProducerLocation};
use super::rejection::Rejection;
use super::stage::{Stage, significant_statements, stages};
use crate::knob::{Knobs, Point};

/// The statements of a program, and the knobs that place its tensors.
#[derive(Clone, Debug)]
pub(super) struct Outline<'a> {
    pub program: &'a Program,
    target: Target<'a>,
    pub stages: Vec<Stage>,
    /// Which statements have a significant share of the work.
    pub significant: Vec<bool>,
    pub placements: Vec<Placement>,
    pub names: Names,
}

impl<'a> Outline<'a> {
    /// Analyses a program whose sizes are known. `inside` lists the possible positions of a
    /// producer in the loops of its consumer.
    pub fn new(
        program: &'a Program,
        target: impl Into<Target<'a>>,
        inside: &[ProducerLocation],
        builder: &mut Builder,
    ) -> Outline<'a> {
        let stages = stages(program);
        let placements = Placement::all(program, &stages, inside, builder);
        let (matters, names) = (significant_statements(&stages), Names::for_program(program));
        Outline { program, target: target.into(), stages, significant: matters, placements, names }
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
pub(super) struct DecodedSteps<'p> {
    pub point: &'p Point,
    pub steps: Vec<Step>,
    /// The statements that the default schedule must leave alone.
    pub scheduled: Vec<StatementName>,
    /// The tensors that have been placed at a loop.
    placed: Vec<&'p str>,
}

impl<'p> DecodedSteps<'p> {
    /// Begins with the steps that inline tensors.
    pub fn new(outline: &Outline<'_>, point: &'p Point) -> DecodedSteps<'p> {
        let steps = Placement::inline_steps(&outline.placements, point).collect();
        DecodedSteps { point, steps, scheduled: Vec::new(), placed: Vec::new() }
    }

    /// Places a tensor at a loop, once for all of its statements.
    pub fn place(&mut self, placement: &'p Placement, at: &LoopName) {
        if !self.placed.contains(&placement.tensor.as_str()) {
            self.steps.push(placement.step(at));
            self.placed.push(&placement.tensor);
        }
    }
}

/// Adds a starting point unless it is rejected or repeated. The first point is always added.
pub(super) fn add_starting_point(found: &mut Vec<Point>, knobs: &Knobs, point: Point) {
    if found.is_empty() || (knobs.allows(&point) && !found.contains(&point)) {
        found.push(point);
    }
}
