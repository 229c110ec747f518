//! Writes the results of a program to the places that `--out` names: all of them as .npy files into
//! a folder, or single results as .npy files, pictures or .raw files.
//!
//! Everything that can be refused without running the program is refused before it runs: unknown
//! names, files that cannot be written, and results that a format does not hold.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tilewright::ir::{DType, Program, Tensor};
use tilewright::syntax::ast::Function;
use tilewright::syntax::diagnostic::most_similar;
use tilewright::syntax::sizes::tensors;

use crate::atomic_file;
use crate::failure::Failure;
use crate::interpret::Results;
use crate::npy;
use crate::output::print_error_line;
use crate::picture::export::Plan;
use crate::picture::layout::{Dimension, inferred_dimensions, written_dimensions};
use crate::picture::{self, EXTENSIONS, unsupported_extension};
use crate::problem::Problem;
use crate::tensor_file::FileFormat;

/// The places where results go.
#[derive(Debug, Default)]
pub struct Destinations {
    folder: Option<PathBuf>,
    files: Vec<ResultFile>,
}

/// A file for one result.
#[derive(Debug)]
struct ResultFile {
    result: String,
    path: PathBuf,
    encoding: Encoding,
}

/// How a result is written.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Npy,
    Raw,
    Picture(Plan),
}

/// A result before it is computed.
struct Declared {
    name: String,
    dtype: DType,
    shape: Vec<usize>,
    dimensions: Vec<Dimension>,
}

impl Destinations {
    /// Reads the values of `--out` for a program.
    pub fn read(values: &[PathBuf], problem: &Problem) -> Result<Destinations, Failure> {
        let results = declared_results(&problem.program, problem.source.function(&problem.program.name));
        let mut all = Destinations::default();
        for value in values {
            match named_file(value) {
                Some((name, path)) => all.add_file(find_result(&results, &problem.program, name)?, path)?,
                None if is_file(value) => all.add_file(only_result(&results, value)?, value)?,
                None => all.add_folder(value)?,
            }
        }
        Ok(all)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), Failure> {
        let shown = folder.display();
        if let Some(first) = &self.folder {
            return Err(Failure::Usage(format!("--out names two folders: {} and {shown}", first.display())));
        }
        if let Some(other) = unsupported_extension(folder) {
            return Err(Failure::Usage(format!(
                "--out {shown}: results are not written as .{other}; write .npy, .raw, or a picture in {EXTENSIONS}"
            )));
        }
        if folder.exists() && !folder.is_dir() {
            return Err(Failure::Input(format!("--out {shown} is a file, not a folder")));
        }
        self.folder = Some(folder.to_owned());
        Ok(())
    }

    fn add_file(&mut self, result: &Declared, path: &Path) -> Result<(), Failure> {
        let shown = path.display();
        let refused = |why: String| Failure::Input(format!("--out {shown}: {why}"));
        if self.files.iter().any(|file| file.path == path) {
            return Err(Failure::Usage(format!("--out names {shown} twice")));
        }
        let encoding = match FileFormat::of(path) {
            Some(FileFormat::Npy) => Encoding::Npy,
            Some(FileFormat::Raw) => Encoding::Raw,
            Some(FileFormat::Picture(format)) => Encoding::Picture(
                Plan::new(format, &result.name, result.dtype, &result.dimensions, &result.shape)
                    .map_err(refused)?,
            ),
            None => {
                return Err(Failure::Usage(format!(
                    "--out {}={shown}: the file's name must end in .npy, .raw, {EXTENSIONS}; a folder takes all results, without a name",
                    result.name
                )));
            }
        };
        atomic_file::expect_writable(path).map_err(|error| refused(error.to_string()))?;
        self.files.push(ResultFile { result: result.name.clone(), path: path.to_owned(), encoding });
        Ok(())
    }

    /// Writes the results. Each file is the old one or the complete new one.
    pub fn write(&self, results: &Results) -> Result<(), Failure> {
        if let Some(folder) = &self.folder {
            fs::create_dir_all(folder)
                .map_err(|error| Failure::Input(format!("--out {}: {error}", folder.display())))?;
            for (name, tensor) in results {
                let path = folder.join(format!("{name}.npy"));
                npy::write(&path, tensor).map_err(|error| failed(folder, error))?;
            }
        }
        for file in &self.files {
            let tensor = results.iter().find(|(name, _)| *name == file.result).map(|(_, tensor)| tensor);
            file.write(tensor.expect("the names of results are checked before the program runs"))?;
        }
        Ok(())
    }

    /// The files that hold a result.
    pub fn paths(&self, result: &str) -> Vec<PathBuf> {
        let in_folder = self.folder.iter().map(|folder| folder.join(format!("{result}.npy")));
        let files = self.files.iter().filter(|file| file.result == result).map(|file| file.path.clone());
        in_folder.chain(files).collect()
    }
}

impl ResultFile {
    fn write(&self, tensor: &Tensor) -> Result<(), Failure> {
        let written = match self.encoding {
            Encoding::Npy => npy::write(&self.path, tensor),
            Encoding::Raw => atomic_file::write(&self.path, &[tensor.bytes()]),
            Encoding::Picture(plan) => {
                let refused = |why: String| Failure::Input(format!("--out {}: {why}", self.path.display()));
                let (picture, clamped) = plan.picture(&self.result, tensor).map_err(refused)?;
                self.report_clamped(clamped, tensor);
                let bytes = picture::encode(plan.format(), &picture).map_err(refused)?;
                atomic_file::write(&self.path, &[&bytes])
            }
        };
        written.map_err(|error| failed(&self.path, error))
    }

    fn report_clamped(&self, clamped: usize, tensor: &Tensor) {
        if clamped > 0 {
            print_error_line(&format!(
                "note: {clamped} of the {} elements of `{}` are below 0 or above 1, and were clamped in {}",
                tensor.len(),
                self.result,
                self.path.display()
            ));
        }
    }
}

fn failed(path: &Path, error: io::Error) -> Failure {
    Failure::Machine(format!("cannot write to {}: {error}", path.display()))
}

/// Whether a path without a result's name is a file for a single result.
fn is_file(path: &Path) -> bool {
    FileFormat::of(path).is_some() && !path.is_dir()
}

/// Splits `NAME=FILE`. Anything else before the equals sign is part of a path.
fn named_file(value: &Path) -> Option<(&str, &Path)> {
    let (name, path) = value.to_str()?.split_once('=')?;
    let is_name = name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name.chars().all(|char| char.is_alphanumeric() || char == '_');
    is_name.then_some((name, Path::new(path)))
}

fn declared_results(program: &Program, function: &Function) -> Vec<Declared> {
    let sizes = program.symbols.iter().filter_map(|symbol| Some((symbol.name.clone(), symbol.value?)));
    let sizes = sizes.collect();
    let written = |name: &str| tensors(function).find(|(tensor, _)| tensor.text == name)?.1;
    let declared = |shape: Vec<usize>, name: &str, dtype| Declared {
        name: name.to_owned(),
        dtype,
        dimensions: match written(name) {
            Some(ty) => written_dimensions(ty, &sizes),
            None => inferred_dimensions(&shape),
        },
        shape,
    };
    let results = program.tensors_with(|role| role.is_result());
    results
        .filter_map(|(id, tensor)| Some(declared(program.shape(id)?, &tensor.name, tensor.dtype)))
        .collect()
}

fn find_result<'a>(results: &'a [Declared], program: &Program, name: &str) -> Result<&'a Declared, Failure> {
    results.iter().find(|result| result.name == name).ok_or_else(|| {
        let names = || results.iter().map(|result| result.name.as_str());
        let hint =
            most_similar(name, names()).map(|close| format!(" Did you mean {close}?")).unwrap_or_default();
        Failure::Input(format!(
            "`{}` has no result {name}.{hint} It has: {}",
            program.name,
            names().collect::<Vec<_>>().join(", ")
        ))
    })
}

fn only_result<'a>(results: &'a [Declared], path: &Path) -> Result<&'a Declared, Failure> {
    match results {
        [only] => Ok(only),
        _ => {
            let names: Vec<&str> = results.iter().map(|result| result.name.as_str()).collect();
            Err(Failure::Usage(format!(
                "the program has the results {}: say which one {1} is for, as in --out {2}={1}",
                names.join(", "),
                path.display(),
                names.first().unwrap_or(&"NAME")
            )))
        }
    }
}
