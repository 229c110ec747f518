//! Finds, for each argument of a loop nest, the constant, input or result of the program's
//! [`Signature`] that the caller passes for it.

use tilewright_ir::nest::Scope;
use tilewright_ir::{LoopNest, TensorId};

use crate::kernel::BuildError;
use crate::signature::{Parameter, Signature};

/// The origin of a kernel argument: an index into one of the lists of the signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Constant(usize),
    Input(usize),
    Result(usize),
}

/// Returns the origin of each argument of the nest. Returns an error if the nest and the program
/// disagree about a tensor's type or shape, or about the scalars.
pub(crate) fn sources(signature: &Signature, nest: &LoopNest) -> Result<Vec<Source>, BuildError> {
    let position_of = |parameters: &[Parameter], tensor: TensorId| {
        parameters.iter().position(|parameter| parameter.tensor == tensor)
    };
    let mut sources = Vec::new();
    for buffer in &nest.buffers {
        let Scope::Argument(tensor) = buffer.scope else { continue };
        let (constants, inputs, results) = (&signature.constants, &signature.inputs, &signature.results);
        let source = position_of(constants, tensor)
            .map(Source::Constant)
            .or_else(|| position_of(inputs, tensor).map(Source::Input))
            .or_else(|| position_of(results, tensor).map(Source::Result))
            .ok_or_else(|| BuildError::NestMismatch(format!("tensor `{}`", buffer.name)))?;
        let parameter = match source {
            Source::Constant(at) => &constants[at],
            Source::Input(at) => &inputs[at],
            Source::Result(at) => &results[at],
        };
        let extents = parameter.layout.shape().iter().map(|extent| *extent as i64);
        if buffer.dtype != parameter.layout.dtype() || !extents.eq(buffer.shape.iter().copied()) {
            return Err(BuildError::NestMismatch(format!("tensor `{}`", buffer.name)));
        }
        sources.push(source);
    }
    let scalars = signature.scalars.iter().map(|scalar| scalar.dtype);
    if !scalars.eq(nest.scalars.iter().map(|scalar| scalar.dtype)) {
        return Err(BuildError::NestMismatch("the scalars".into()));
    }
    Ok(sources)
}
