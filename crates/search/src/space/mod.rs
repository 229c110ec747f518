//! The schedules of a program, as a product of knobs.
//!
//! [`Space::new`] looks at a program and a machine and makes the knobs, by analysis alone:
//! - where every temporary is computed (`placement.rs`);
//! - for every statement with a share in the work, how its loops are cut, ordered and run, and what becomes of its
//!   operands: in `cpu/` and `gpu/`.
//!
//! [`Space::of_template`] takes the knobs of a template instead, which a person writes (`template.rs`).
//!
//! [`Space::decode`] turns a choice of all of them into a schedule. What the knobs do not say (the copies of operands,
//! statements that hardly matter) is scheduled as it would be without search. Points that cannot be good are refused
//! before anything is compiled, with a reason that can be counted (`rejection.rs`).

mod collapse;
mod cpu;
mod gpu;
mod names;
mod placement;
mod rejection;
mod remainders;
mod stage;
mod template;

use tilewright_ir::Program;
use tilewright_schedule::Schedule;
use tilewright_target::Target;

pub use rejection::{Rejection, Rejections};
pub use template::TemplateError;

use template::Template;

use crate::knob::{Knob, Knobs, Point};

/// The schedules of a program on a machine.
#[derive(Clone, Debug)]
pub struct Space<'a> {
    knobs: Knobs,
    plan: Plan<'a>,
}

/// What the knobs stand for.
#[derive(Clone, Debug)]
enum Plan<'a> {
    Cpu(cpu::Plan<'a>),
    Gpu(gpu::Plan<'a>),
    /// What a person wrote.
    Template(Template<'a>),
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
    pub fn new(program: &'a Program, target: impl Into<Target<'a>>) -> Space<'a> {
        match target.into() {
            Target::Cpu(cpu) => {
                let (knobs, plan) = cpu::Plan::new(program, cpu);
                Space { knobs, plan: Plan::Cpu(plan) }
            }
            Target::Gpu(gpu) => {
                let (knobs, plan) = gpu::Plan::new(program, gpu);
                Space { knobs, plan: Plan::Gpu(plan) }
            }
        }
    }

    /// The schedules that a template stands for, in the place of those that the analysis finds.
    pub fn of_template(
        text: &str,
        program: &'a Program,
        target: impl Into<Target<'a>>,
    ) -> Result<Space<'a>, TemplateError> {
        let (knobs, template) = Template::read(text, program, target.into())?;
        Ok(Space { knobs, plan: Plan::Template(template) })
    }

    /// The schedules of a template, or those that the analysis finds where there is none.
    pub fn chosen(
        template: Option<&str>,
        program: &'a Program,
        target: impl Into<Target<'a>>,
    ) -> Result<Space<'a>, TemplateError> {
        match template {
            Some(text) => Space::of_template(text, program, target),
            None => Ok(Space::new(program, target)),
        }
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
        match &self.plan {
            Plan::Cpu(plan) => plan.decode(point),
            Plan::Gpu(plan) => plan.decode(point),
            Plan::Template(template) => template.decode(point),
        }
    }

    /// A point near the schedule that a program gets without search.
    pub fn initial(&self) -> Point {
        self.beginnings().into_iter().next().unwrap_or_default()
    }

    /// Points to begin at, the initial one first. What is good for one of them has little in common with what is good
    /// for another, so a search hardly gets from one to the other step by step.
    pub fn beginnings(&self) -> Vec<Point> {
        match &self.plan {
            Plan::Cpu(plan) => plan.beginnings(&self.knobs),
            Plan::Gpu(plan) => plan.beginnings(&self.knobs),
            Plan::Template(template) => template.beginnings(),
        }
    }
}
