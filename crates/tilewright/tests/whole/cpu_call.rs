//! Calls machine code for a CPU on tensors in fenced memory (between protected pages), and returns
//! the results.

use tilewright_interp::Inputs;
use tilewright_ir::{DType, Number, Tensor};
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{Executable, Pool, View, ViewMut};

use crate::harness::Results;
use crate::harness::fenced_tensor::{FencedTensor, Placement};

fn lent(parameters: &[Parameter], inputs: &Inputs) -> Vec<FencedTensor> {
    let place = Placement::contiguous();
    parameters.iter().map(|own| FencedTensor::copy_of(&inputs.tensors[&own.name], &place)).collect()
}

/// Allocates a result. A tensor that the program updates holds its old values; other results hold
/// meaningless bytes.
fn allocate_result(own: &Parameter, inputs: &Inputs) -> FencedTensor {
    let place = Placement::contiguous();
    match inputs.tensors.get(&own.name) {
        Some(old) => FencedTensor::copy_of(old, &place),
        // Any byte is valid in a number, but not in a `bool`.
        None if own.layout.dtype() == DType::Bool => {
            FencedTensor::copy_of(&Tensor::zeros(DType::Bool, own.layout.shape()).unwrap(), &place)
        }
        None => FencedTensor::empty(own.layout.dtype(), own.layout.shape(), &place),
    }
}

/// Makes one call on a thread pool.
pub fn on_threads(executable: &Executable, inputs: &Inputs, pool: &Pool) -> Result<Results, String> {
    let signature = executable.signature();
    let (constants, given) = (lent(&signature.constants, inputs), lent(&signature.inputs, inputs));
    let mut results: Vec<FencedTensor> =
        signature.results.iter().map(|own| allocate_result(own, inputs)).collect();
    let scalars: Vec<Number> = signature.scalars.iter().map(|scalar| inputs.scalars[&scalar.name]).collect();
    let constants: Vec<View> = constants.iter().map(FencedTensor::view).collect();
    let bound = executable.bind(pool, &constants).map_err(|error| format!("bind: {error}"))?;
    let views: Vec<View> = given.iter().map(FencedTensor::view).collect();
    let mut targets: Vec<ViewMut> = results.iter_mut().map(FencedTensor::view_mut).collect();
    bound.run(pool, &views, &mut targets, &scalars).map_err(|error| error.to_string())?;
    drop(targets);
    if results.iter().any(|lent| !lent.gaps_are_unchanged()) {
        return Err("a result was written outside of its elements".to_string());
    }
    Ok(signature
        .results
        .iter()
        .map(|own| own.name.clone())
        .zip(results.iter().map(FencedTensor::tensor))
        .collect())
}
