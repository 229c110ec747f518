//! Compares the default schedule with the interpreter at smaller sizes.
//!
//! The data at the smaller sizes is a sample of the user's data: elements at equal distances in
//! each dimension. So positive numbers stay positive, and a program that converges on the user's
//! data converges here too. Integers that serve as indices are scaled with the extent that they
//! index.

use tilewright_interp::{Inputs, seed};
use tilewright_ir::{Number, Program, Tensor, TensorId};

use super::{ENOUGH_TO_COMPARE, MOST_INTERPRETED, ONCE, Rig, RigError, Site, suits_interpreter};
use crate::bench::{Runner, Wanted};
use crate::input_files;
use crate::note::Note;
use crate::task::Task;
use tilewright_cache::outcome::Outcome;

/// The findings of the comparison at smaller sizes.
#[derive(Default)]
pub(super) struct Lesson {
    /// Whether some elements may be off by more than the common tolerance for kernels at the task's
    /// own sizes.
    pub is_delicate: bool,
    /// Notes for the user.
    pub notes: Vec<Note>,
}

/// Compares the default schedule with the interpreter, at sizes that the interpreter can manage.
pub(super) fn check_default<S: Site>(task: &Task, builder: &S::Builder) -> Result<Lesson, RigError> {
    let Some(small) = shrunk(task) else { return Ok(Lesson::default()) };
    let data = part(&task.program, &small.program, input_files::read(task)?);
    let compared = match check::<S>(data.clone(), &small, builder) {
        // Indices that the smaller sizes make invalid say nothing about the schedule. Indices from
        // a seed are valid.
        Err(RigError::Interpreter(_)) => check::<S>(without_integers(data), &small, builder),
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
    task.sizes().iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

fn check<S: Site>(data: Inputs, task: &Task, builder: &S::Builder) -> Result<Lesson, RigError> {
    let program = &task.program;
    let mut rig = Rig::<S>::with(program.clone(), data, task.seed, builder, false)?;
    let is_delicate = rig.wanted.iter().any(|wanted| is_delicate(program, wanted));
    let doubts = rig.wanted.iter().filter_map(|wanted| wanted.expected.doubt(&wanted.name));
    let notes = doubts.map(|doubt| Note::of(&doubt, Some(&sizes(task)))).collect();
    let (kernel_builder, mut bench) = rig.parts();
    let executable = kernel_builder.built_by_default()?;
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

/// The task at smaller sizes, without data. `None` if the interpreter can run the task itself, or
/// no such sizes exist.
fn shrunk(task: &Task) -> Option<Task> {
    if suits_interpreter(&task.program, MOST_INTERPRETED) {
        return None;
    }
    let mut sizes = task.sizes();
    for _ in 0..64 {
        let largest = sizes.iter_mut().max_by_key(|(_, value)| *value)?;
        if largest.1 < 2 {
            return None;
        }
        // Odd sizes leave remainders, where mistakes are likely.
        largest.1 = (largest.1 / 2) | 1;
        let small = task.at_sizes(&sizes).ok()?;
        if suits_interpreter(&small.program, ENOUGH_TO_COMPARE) {
            return Some(small);
        }
    }
    None
}

/// The sample of a program's data that the same program takes at smaller sizes.
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
    // A scalar that is a size follows from the smaller sizes.
    let is_size = |name: &String| small.symbols.iter().any(|symbol| symbol.name == *name);
    inputs.scalars = data.scalars.into_iter().filter(|(name, _)| !is_size(name)).collect();
    inputs
}

/// A tensor of this shape, with elements at equal distances of the given tensor.
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

/// Scales indices to the smaller extent that they index, and keeps their order. Negative values
/// have another meaning and stay.
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
