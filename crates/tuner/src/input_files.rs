//! Hands the user's inputs to a worker: one file for each input, which holds only the bytes of its
//! elements.
//!
//! Types and shapes are those of the program. A scalar is a tensor without dimensions.
//!
//! If possible, the files have no names. Then other users cannot read them, and the system removes
//! them with the process, however it ends. Workers reach them through the process's open files.

use std::borrow::Cow;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempPath};
use tilewright_interp::{Inputs, seed};
use tilewright_ir::{DType, Number, Program, Tensor};
use xxhash_rust::xxh3::Xxh3;

use crate::fixture::FixtureError;
use crate::task::Task;

/// Inputs in files, which live as long as this value.
pub struct InputFiles {
    /// The files by the names of the inputs, for a [`Task`].
    pub files: Vec<(String, PathBuf)>,
    _open: Vec<OpenFile>,
}

impl InputFiles {
    /// Writes the inputs of a program.
    pub fn write(program: &Program, inputs: &Inputs) -> io::Result<InputFiles> {
        let scalars = inputs.scalars.iter().filter_map(|(name, value)| {
            let declared = program.scalars.iter().find(|scalar| scalar.name == *name)?;
            Some((name, scalar(declared.dtype, *value)))
        });
        let scalars = scalars.map(|(name, scalar)| Ok((name, Cow::Owned(scalar?))));
        let tensors = inputs.tensors.iter().map(|(name, tensor)| Ok((name, Cow::Borrowed(tensor))));
        let file = |given: io::Result<(&String, Cow<'_, Tensor>)>| {
            let (name, tensor) = given?;
            let mut open = OpenFile::new()?;
            open.file.write_all(tensor.bytes())?;
            Ok((name.clone(), open))
        };
        let written = scalars.chain(tensors).map(file).collect::<io::Result<Vec<(String, OpenFile)>>>();
        let written = written.map_err(|error| {
            let folder = std::env::temp_dir();
            let what =
                format!("inputs cannot be written for worker processes, in {}: {error}", folder.display());
            io::Error::new(error.kind(), what)
        })?;
        let files = written.iter().map(|(name, open)| (name.clone(), open.path())).collect();
        Ok(InputFiles { files, _open: written.into_iter().map(|(_, open)| open).collect() })
    }
}

/// A temporary file that is removed when this value is dropped.
struct OpenFile {
    file: File,
    /// The name of the file, if other processes cannot reach it without one.
    name: Option<TempPath>,
}

impl OpenFile {
    fn new() -> io::Result<OpenFile> {
        let unnamed = OpenFile { file: tempfile::tempfile()?, name: None };
        if File::open(unnamed.path()).is_ok() {
            return Ok(unnamed);
        }
        let (file, name) = NamedTempFile::new()?.into_parts();
        Ok(OpenFile { file, name: Some(name) })
    }

    fn path(&self) -> PathBuf {
        let own = || format!("/proc/{}/fd/{}", std::process::id(), self.file.as_raw_fd());
        self.name.as_ref().map_or_else(|| own().into(), |name| name.to_path_buf())
    }
}

/// The names of a task's inputs, each with a digest of its elements.
pub fn digests(task: &Task) -> io::Result<Vec<(String, String)>> {
    let named = |(name, path): &(String, PathBuf)| Ok((name.clone(), format!("{:016x}", digest(path)?)));
    task.inputs.iter().map(named).collect()
}

/// A digest of a file, which may be larger than memory.
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

/// The given inputs of a task, and the values of all scalars.
pub(crate) fn read(task: &Task) -> Result<Inputs, FixtureError> {
    let program = &task.program;
    let mut inputs = Inputs::default();
    for (name, path) in &task.inputs {
        let failed =
            |why: &dyn std::fmt::Display| FixtureError::Input { name: name.clone(), why: why.to_string() };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Readers see the written bytes from the beginning, any number of times. After the drop the
    /// file is gone.
    #[test]
    fn files_go_away() {
        let mut open = OpenFile::new().unwrap();
        open.file.write_all(b"elements").unwrap();
        let path = open.path();
        for _ in 0..2 {
            assert_eq!(fs::read(&path).unwrap(), b"elements");
        }
        drop(open);
        assert!(fs::read(&path).is_err());
    }
}
