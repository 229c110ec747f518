//! The same task at smaller sizes, where the interpreter says what the default schedule should compute.
//!
//! The data there is a part of what the user has given: elements at equal distances in each dimension. So positive numbers stay
//! positive, and a program that converges on the user's data does so here. Integers that are used as indices are scaled with
//! what they index.

use tilewright_interp::{Inputs, seed};
use tilewright_ir::{Number, Program, Tensor, TensorId};

use super::{ENOUGH_TO_COMPARE, MOST_INTERPRETED, ONCE, Rig, RigError, Site, suits_interpreter};
use crate::bench::{Runner, Wanted};
use crate::given;
use crate::note::Note;
use crate::task::Task;
use tilewright_cache::outcome::Outcome;

/// What comparing the default schedule at smaller sizes has told.
#[derive(Default)]
pub(super) struct Lesson {
    /// Some elements may be off by more than the tolerance allows that kernels are compared with at the task's own sizes.
    pub is_delicate: bool,
    /// What the user should know.
    pub notes: Vec<Note>,
}

/// Compares the default schedule with the interpreter at sizes that it can manage.
pub(super) fn check_default<S: Site>(task: &Task, builder: &S::Builder) -> Result<Lesson, RigError> {
    let Some(small) = shrunk(task) else { return Ok(Lesson::default()) };
    let (large, program) = (task.program()?, small.program()?);
    let data = part(&large, &program, given::read(&large, task)?);
    let compared = match check::<S>(&program, data.clone(), &small, builder) {
        // Indices that the sizes have made meaningless say nothing about the schedule. Those of a seed fit.
        Err(RigError::Interpreter(_)) => check::<S>(&program, without_integers(data), &small, builder),
        compared => compared,
    };
    match compared {
        Err(RigError::Interpreter(why)) => {
            let text = format!(
                "kernels were not compared with the interpreter, which fails at {}: {why}",
                sizes(&small)
            );
            let note = Note { is_warning: true, text };
            Ok(Lesson { is_delicate: false, notes: vec![note] })
        }
        compared => compared,
    }
}

fn sizes(task: &Task) -> String {
    task.sizes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

fn check<S: Site>(
    program: &Program,
    data: Inputs,
    task: &Task,
    builder: &S::Builder,
) -> Result<Lesson, RigError> {
    let mut rig = Rig::<S>::with(program.clone(), data, task.seed, builder, false)?;
    let is_delicate = rig.wanted.iter().any(|wanted| is_delicate(program, wanted));
    let doubts = rig.wanted.iter().filter_map(|wanted| wanted.expected.doubt(&wanted.name));
    let notes = doubts.map(|doubt| Note::of(&doubt, Some(&sizes(task)))).collect();
    let (forge, mut bench) = rig.parts();
    let executable = forge.built_by_default()?;
    let trial = bench.runner.bind(&executable).and_then(|kernel| bench.measure(&kernel, &ONCE, None));
    match trial.map(|trial| trial.outcome) {
        Ok(Outcome::Measured) => Ok(Lesson { is_delicate, notes }),
        Ok(other) => Err(RigError::Wrong(other.to_string())),
        Err(error) => Err(RigError::Wrong(error.to_string())),
    }
}

fn is_delicate(program: &Program, wanted: &Wanted) -> bool {
    let usual = wanted.expected.usual_limit(program);
    (0..wanted.expected.tensor.len()).any(|at| wanted.expected.limit(at) > usual)
}

/// The task at smaller sizes, if it is too large for the interpreter and there are such. It has no data.
fn shrunk(task: &Task) -> Option<Task> {
    let fits = |task: &Task, most: u64| task.program().is_ok_and(|program| suits_interpreter(&program, most));
    if fits(task, MOST_INTERPRETED) {
        return None;
    }
    let mut small = Task { inputs: Vec::new(), ..task.clone() };
    for _ in 0..64 {
        let largest = small.sizes.iter().enumerate().max_by_key(|(_, (_, value))| *value)?.0;
        let value = small.sizes[largest].1;
        if value < 2 {
            return None;
        }
        // Odd numbers leave remainders, which are where mistakes are.
        small.sizes[largest].1 = (value / 2) | 1;
        if small.program().is_err() {
            return None;
        }
        if fits(&small, ENOUGH_TO_COMPARE) {
            return Some(small);
        }
    }
    None
}

/// The part of the data of a program that the same program takes at smaller sizes.
fn part(large: &Program, small: &Program, data: Inputs) -> Inputs {
    let mut inputs = Inputs::default();
    for (name, tensor) in data.tensors {
        let ids = large.find_tensor(&name).zip(small.find_tensor(&name));
        let taken = ids.and_then(|(large_id, small_id)| {
            let taken = sampled(&tensor, &small.shape(small_id)?)?;
            Some(rescaled(taken, (large, large_id), (small, small_id)))
        });
        inputs.tensors.extend(taken.map(|tensor| (name, tensor)));
    }
    // A scalar that is a size has another value now, which follows from the sizes.
    let is_size = |name: &String| small.symbols.iter().any(|symbol| symbol.name == *name);
    inputs.scalars = data.scalars.into_iter().filter(|(name, _)| !is_size(name)).collect();
    inputs
}

/// A tensor of this shape, of elements at equal distances.
fn sampled(tensor: &Tensor, shape: &[usize]) -> Option<Tensor> {
    let extents = tensor.shape();
    let mut taken = Tensor::zeros(tensor.dtype(), shape).ok()?;
    if extents.len() != shape.len() || tensor.is_empty() {
        return None;
    }
    for at in 0..taken.len() {
        let (mut rest, mut place, mut stride) = (at, 0, 1);
        for (extent, small) in extents.iter().zip(shape).rev() {
            place += (rest % small) * extent / small * stride;
            rest /= small;
            stride *= extent;
        }
        taken.set(at, tensor.get(place));
    }
    Some(taken)
}

/// Indices that fit what they index at smaller sizes, in the same order. Negative ones mean something else, and stay.
fn rescaled(mut tensor: Tensor, large: (&Program, TensorId), small: (&Program, TensorId)) -> Tensor {
    let limit = |(program, id): (&Program, TensorId)| seed::index_limit(program, id);
    if let (true, Some(large), Some(small)) = (tensor.dtype().is_integer(), limit(large), limit(small)) {
        for at in 0..tensor.len() {
            let value = tensor.get(at).as_i128();
            if value > 0 {
                tensor.set(at, Number::Int(value * i128::from(small) / i128::from(large.max(1))));
            }
        }
    }
    tensor
}

fn without_integers(mut data: Inputs) -> Inputs {
    data.tensors.retain(|_, tensor| !tensor.dtype().is_integer());
    data
}

#[cfg(test)]
mod tests;
