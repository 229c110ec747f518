//! Inputs that the user gives, on their way to a worker: a file for each, with the bytes of its elements and nothing else.
//! Types and shapes are those of the program. A scalar is a tensor without dimensions.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tilewright_interp::{Inputs, seed};
use tilewright_ir::{DType, Number, Program, Tensor};
use xxhash_rust::xxh3::xxh3_64;

use crate::rig::RigError;
use crate::task::Task;

/// Writes inputs into a folder. The files are what a [`Task`] takes.
pub fn write(folder: &Path, program: &Program, inputs: &Inputs) -> io::Result<Vec<(String, PathBuf)>> {
    let scalars = inputs.scalars.iter().filter_map(|(name, value)| {
        let declared = program.scalars.iter().find(|scalar| scalar.name == *name)?;
        Some((name, scalar(declared.dtype, *value)))
    });
    let tensors = inputs.tensors.iter().map(|(name, tensor)| (name, Ok(tensor.clone())));
    let file = |(at, (name, tensor)): (usize, (&String, io::Result<Tensor>))| {
        let path = folder.join(at.to_string());
        fs::write(&path, tensor?.bytes())?;
        Ok((name.clone(), path))
    };
    scalars.chain(tensors).enumerate().map(file).collect()
}

/// The names of the inputs of a task, each with a digest of its elements.
pub fn digests(task: &Task) -> io::Result<Vec<(String, String)>> {
    let digest =
        |(name, path): &(String, PathBuf)| Ok((name.clone(), format!("{:016x}", xxh3_64(&fs::read(path)?))));
    task.inputs.iter().map(digest).collect()
}

fn scalar(dtype: DType, value: Number) -> io::Result<Tensor> {
    let mut tensor = Tensor::zeros(dtype, &[]).map_err(io::Error::other)?;
    tensor.set(0, value);
    Ok(tensor)
}

/// Everything that a program takes: what was given, and the rest from the seed.
pub(crate) fn read(program: &Program, task: &Task) -> Result<Inputs, RigError> {
    let mut inputs = seed::inputs(program, task.seed)?;
    for (name, path) in &task.inputs {
        let failed =
            |why: &dyn std::fmt::Display| RigError::Input { name: name.clone(), why: why.to_string() };
        let bytes = fs::read(path).map_err(|error| failed(&error))?;
        if let Some(declared) = program.scalars.iter().find(|scalar| scalar.name == *name) {
            let value =
                Tensor::from_bytes(declared.dtype, &[], bytes).map_err(|error| failed(&error))?.get(0);
            inputs.scalars.insert(name.clone(), value);
        } else if let Some(made) = inputs.tensors.get_mut(name) {
            *made = Tensor::from_bytes(made.dtype(), made.shape(), bytes).map_err(|error| failed(&error))?;
        }
    }
    Ok(inputs)
}
