//! Inputs that the user gives, on their way to a worker: a file for each, with the bytes of its elements and nothing else.
//! Types and shapes are those of the program. A scalar is a tensor without dimensions.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tilewright_interp::{Inputs, seed};
use tilewright_ir::{DType, Number, Program, Tensor};
use xxhash_rust::xxh3::Xxh3;

use crate::rig::RigError;
use crate::task::Task;

/// Writes inputs into a folder. The files are what a [`Task`] takes.
pub fn write(folder: &Path, program: &Program, inputs: &Inputs) -> io::Result<Vec<(String, PathBuf)>> {
    let scalars = inputs.scalars.iter().filter_map(|(name, value)| {
        let declared = program.scalars.iter().find(|scalar| scalar.name == *name)?;
        Some((name, scalar(declared.dtype, *value)))
    });
    let scalars = scalars.map(|(name, scalar)| Ok((name, Cow::Owned(scalar?))));
    let tensors = inputs.tensors.iter().map(|(name, tensor)| Ok((name, Cow::Borrowed(tensor))));
    let file = |(at, given): (usize, io::Result<(&String, Cow<'_, Tensor>)>)| {
        let (name, tensor) = given?;
        let path = folder.join(at.to_string());
        fs::write(&path, tensor.bytes())?;
        Ok((name.clone(), path))
    };
    scalars.chain(tensors).enumerate().map(file).collect()
}

/// The names of the inputs of a task, each with a digest of its elements.
pub fn digests(task: &Task) -> io::Result<Vec<(String, String)>> {
    let named = |(name, path): &(String, PathBuf)| Ok((name.clone(), format!("{:016x}", digest(path)?)));
    task.inputs.iter().map(named).collect()
}

/// A digest of a file, which may be larger than memory has room for.
fn digest(path: &Path) -> io::Result<u64> {
    let mut file = fs::File::open(path)?;
    let mut part = vec![0; 1 << 20];
    let mut digest = Xxh3::new();
    loop {
        match file.read(&mut part)? {
            0 => return Ok(digest.digest()),
            read => digest.update(&part[..read]),
        }
    }
}

fn scalar(dtype: DType, value: Number) -> io::Result<Tensor> {
    let mut tensor = Tensor::zeros(dtype, &[]).map_err(io::Error::other)?;
    tensor.set(0, value);
    Ok(tensor)
}

/// What was given of all that a program takes, and every scalar.
pub(crate) fn read(program: &Program, task: &Task) -> Result<Inputs, RigError> {
    let mut inputs = Inputs::default();
    for (name, path) in &task.inputs {
        let failed =
            |why: &dyn std::fmt::Display| RigError::Input { name: name.clone(), why: why.to_string() };
        let bytes = fs::read(path).map_err(|error| failed(&error))?;
        let tensor =
            |dtype, shape: &[usize]| Tensor::from_bytes(dtype, shape, bytes).map_err(|error| failed(&error));
        let mut supplied = program.tensors_with(|role| role.is_supplied());
        if let Some(declared) = program.scalars.iter().find(|scalar| scalar.name == *name) {
            inputs.scalars.insert(name.clone(), tensor(declared.dtype, &[])?.get(0));
        } else if let Some((id, declared)) = supplied.find(|(_, declared)| declared.name == *name) {
            let shape = program.shape(id).unwrap_or_default();
            inputs.tensors.insert(name.clone(), tensor(declared.dtype, &shape)?);
        }
    }
    seed::complete_scalars(program, &mut inputs, task.seed);
    Ok(inputs)
}
