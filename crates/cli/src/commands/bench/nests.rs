//! Measures how long each loop nest of a program takes.
//!
//! A nest alone would read what no one has computed. So the program is compiled several times: up
//! to its first nest, up to the second, and so on. The time of a nest is the difference between the
//! program that ends with it and the one that ends before it.

use tilewright::driver::{Code, OpenTarget};

use crate::compiler::Compiled;
use crate::failure::Failure;
use crate::loaded::{Loaded, TimingOptions};
use crate::output::spinner;
use crate::problem::Problem;

/// The seconds of each statement outside of loops, in order.
pub fn measured(
    problem: &Problem,
    compiled: &Compiled,
    target: &OpenTarget,
    loaded: &mut Loaded<'_>,
    clock: &TimingOptions,
) -> Result<Vec<f64>, Failure> {
    let spinner = spinner("measuring each loop nest");
    let nest = compiled.schedule.lower(&problem.program, target.target())?;
    let schedule = &compiled.schedule.chosen.schedule;
    let up_to = |count: usize| Code::new(&problem.program, &nest.up_to_root(count), schedule, target);
    let codes: Result<Vec<Code>, _> = (1..=nest.roots().len()).map(up_to).collect();
    let seconds = loaded.time_steps(&codes.map_err(Failure::from_build)?, &problem.source, clock);
    spinner.finish_and_clear();
    seconds
}
