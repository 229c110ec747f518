//! Defines the search space of a program: its schedules as the points of a product of knobs.
//!
//! [`Space::new`] analyses a program (`outline.rs`) and a machine, and creates the knobs:
//!
//! - where every temporary is computed (`placement.rs`);
//! - for every statement with a significant share of the work, how its loops are tiled, ordered and
//!   run, and how its operands are read (`cpu/` and `gpu/`).
//!
//! [`Space::from_template`] instead takes the knobs of a hand-written template (`template.rs`).
//!
//! [`Space::decode`] turns one value for each knob into a schedule. The default schedule covers
//! whatever the knobs leave open: the copies of operands and statements that hardly matter. Points
//! that cannot be good are rejected before anything is compiled, with a reason that can be counted
//! (`rejection.rs`).

mod collapse;
pub(crate) mod cpu;
mod cuts;
pub(crate) mod gpu;
mod names;
mod outline;
mod placement;
mod rejection;
mod remainders;
mod stage;
mod template;

use std::fmt::Debug;
use std::sync::Arc;

use tilewright_ir::Program;
use tilewright_schedule::Schedule;
use tilewright_target::Target;

pub use rejection::{Rejection, Rejections};
pub use template::TemplateError;

use template::Template;

use crate::kind;
use crate::knob::{Knob, Knobs, Point};

/// The space of schedules of a program on a machine.
#[derive(Clone, Debug)]
pub struct Space<'a> {
    knobs: Knobs,
    plan: Arc<dyn Plan + 'a>,
}

/// The meaning of the knobs.
pub(crate) trait Plan: Debug + Send + Sync {
    /// Returns the schedule that a point stands for, if it is worth compiling.
    fn decode(&self, point: &Point) -> Result<Schedule, Rejection>;

    /// Returns the starting points of a search, the initial point first.
    fn starting_points(&self, knobs: &Knobs) -> Vec<Point>;
}

/// The index of a knob.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KnobId(pub usize);

/// Collects the knobs during construction.
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
    /// Creates the space of a program whose sizes are known.
    pub fn new(program: &'a Program, target: impl Into<Target<'a>>) -> Space<'a> {
        let (knobs, plan) = kind::plan(program, target.into());
        Space { knobs, plan }
    }

    /// Creates the space of the schedules that a template describes, instead of those that the
    /// analysis finds.
    pub fn from_template(
        text: &str,
        program: &'a Program,
        target: impl Into<Target<'a>>,
    ) -> Result<Space<'a>, TemplateError> {
        let (knobs, template) = Template::parse(text, program, target.into())?;
        Ok(Space { knobs, plan: Arc::new(template) })
    }

    /// Creates the space of a template if there is one, and the space that the analysis finds
    /// otherwise.
    pub fn with_template(
        template: Option<&str>,
        program: &'a Program,
        target: impl Into<Target<'a>>,
    ) -> Result<Space<'a>, TemplateError> {
        match template {
            Some(text) => Space::from_template(text, program, target),
            None => Ok(Space::new(program, target)),
        }
    }

    /// The knobs.
    pub fn knobs(&self) -> &Knobs {
        &self.knobs
    }

    /// Returns the schedule that a point stands for, if it is worth compiling.
    pub fn decode(&self, point: &Point) -> Result<Schedule, Rejection> {
        if !self.knobs.contains(point) {
            return Err(Rejection::Illegal("not a point of this space"));
        }
        self.plan.decode(point)
    }

    /// Returns a point near the schedule that a program gets without search.
    pub fn initial_point(&self) -> Point {
        self.starting_points().into_iter().next().unwrap_or_default()
    }

    /// Returns the starting points of a search, the initial point first. Good points near one of
    /// them have little in common with good points near another. Hence a search that goes step by
    /// step hardly gets from one to another.
    pub fn starting_points(&self) -> Vec<Point> {
        self.plan.starting_points(&self.knobs)
    }
}
