//! Calls machine code on tensors in fenced memory.

use tilewright_interp::Inputs;
use tilewright_ir::{DType, Number, Tensor};
use tilewright_runtime::signature::Parameter;
use tilewright_runtime::{Executable, Pool, View, ViewMut};

use crate::harness::Results;
use crate::harness::lent::{Lent, Placement};

fn lent(parameters: &[Parameter], inputs: &Inputs) -> Vec<Lent> {
    let place = Placement::contiguous();
    parameters.iter().map(|own| Lent::of(&inputs.tensors[&own.name], &place)).collect()
}

/// Allocates a result. A tensor that the program updates holds its old values; other results hold
/// meaningless bytes.
fn room(own: &Parameter, inputs: &Inputs) -> Lent {
    let place = Placement::contiguous();
    match inputs.tensors.get(&own.name) {
        Some(old) => Lent::of(old, &place),
        // Any byte is valid in a number, but not in a `bool`.
        None if own.layout.dtype() == DType::Bool => {
            Lent::of(&Tensor::zeros(DType::Bool, own.layout.shape()).unwrap(), &place)
        }
        None => Lent::empty(own.layout.dtype(), own.layout.shape(), &place),
    }
}

/// Makes one call on a thread pool.
pub fn on_threads(executable: &Executable, inputs: &Inputs, pool: &Pool) -> Result<Results, String> {
    let signature = executable.signature();
    let (constants, given) = (lent(&signature.constants, inputs), lent(&signature.inputs, inputs));
    let mut results: Vec<Lent> = signature.results.iter().map(|own| room(own, inputs)).collect();
    let scalars: Vec<Number> = signature.scalars.iter().map(|scalar| inputs.scalars[&scalar.name]).collect();
    let constants: Vec<View> = constants.iter().map(Lent::view).collect();
    let bound = executable.bind(pool, &constants).map_err(|error| format!("bind: {error}"))?;
    let views: Vec<View> = given.iter().map(Lent::view).collect();
    let mut targets: Vec<ViewMut> = results.iter_mut().map(Lent::view_mut).collect();
    bound.run(pool, &views, &mut targets, &scalars).map_err(|error| error.to_string())?;
    drop(targets);
    if results.iter().any(|lent| !lent.gaps_are_whole()) {
        return Err("a result was written beside its elements".to_string());
    }
    Ok(signature.results.iter().map(|own| own.name.clone()).zip(results.iter().map(Lent::tensor)).collect())
}
