//! Reads the tensor of a parameter from a file of any format: NumPy's .npy, a picture, or samples
//! without a header.
//!
//! The end of the file's name says the format. A .npy file says its type and shape itself, and both
//! are compared with the program later. A picture takes the type and the layout that the program
//! declares, and a .raw file takes its shape too.

use std::fs;
use std::path::Path;

use tilewright::ir::tensor::byte_size;
use tilewright::ir::{DType, Tensor};

use crate::npy;
use crate::output::print_error_line;
use crate::picture::import::{self, Parameter};
use crate::picture::layout::{Dimension, Layout};
use crate::picture::{self, EXTENSIONS, Format, extension, unsupported_extension};

/// The formats of files that hold one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// NumPy's format.
    Npy,
    /// Elements in row-major order and with little-endian bytes, without a header.
    Raw,
    /// A picture.
    Picture(Format),
}

impl FileFormat {
    /// The format that the end of a file's name says.
    pub fn of(path: &Path) -> Option<FileFormat> {
        match extension(path)?.as_str() {
            "npy" => Some(FileFormat::Npy),
            "raw" => Some(FileFormat::Raw),
            _ => Format::of(path).map(FileFormat::Picture),
        }
    }
}

/// A parameter as the program declares it.
pub struct Declared<'a> {
    /// The name.
    pub name: &'a str,
    /// The element type and the dimensions. `None` if the program does not write them.
    pub ty: Option<(DType, Vec<Dimension>)>,
}

/// Reads the tensor for a parameter. The error is a sentence without the file's name.
pub fn read(path: &Path, declared: &Declared<'_>) -> Result<Tensor, String> {
    match FileFormat::of(path) {
        Some(FileFormat::Picture(format)) => read_picture(path, format, declared),
        Some(FileFormat::Raw) => read_raw(path, declared),
        Some(FileFormat::Npy) => npy::read(path),
        None => match unsupported_extension(path) {
            Some(other) => Err(format!(
                ".{other} files are not read here; convert it to .npy, or to a picture in {EXTENSIONS}"
            )),
            None => npy::read(path),
        },
    }
}

fn read_picture(path: &Path, format: Format, declared: &Declared<'_>) -> Result<Tensor, String> {
    let (name, (dtype, dimensions)) = (declared.name, written_type(declared)?);
    let layout = Layout::of(name, dimensions)?;
    let picture = picture::read(path, format)?;
    if picture.orientation != 1 {
        print_error_line(&format!(
            "note: viewers turn or mirror {} (its orientation is {}); it is read as it is stored",
            path.display(),
            picture.orientation
        ));
    }
    import::tensor(picture, &Parameter { name, dtype, layout })
}

/// Reads elements without a header. The type and the shape are those of the parameter.
fn read_raw(path: &Path, declared: &Declared<'_>) -> Result<Tensor, String> {
    let (name, (dtype, dimensions)) = (declared.name, written_type(declared)?);
    let held = fs::metadata(path).map_err(|error| error.to_string())?.len();
    let elements = held / dtype.bytes() as u64;
    let unknown: Vec<String> =
        dimensions.iter().filter(|dim| dim.extent.is_none()).map(|dim| dim.text.clone()).collect();
    if !unknown.is_empty() {
        return Err(format!(
            "it has no header, so that the shape of `{name}` must be known: give {} with --sizes. It has {elements} elements of {dtype}",
            unknown.join(" and ")
        ));
    }
    let shape: Vec<usize> = dimensions.iter().filter_map(|dim| dim.extent).collect();
    if byte_size(dtype, &shape).is_none_or(|bytes| bytes as u64 != held) {
        let shape = shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        return Err(format!(
            "it has {elements} elements of {dtype} ({held} bytes), and `{name}` has the shape ({shape})"
        ));
    }
    let mut bytes = fs::read(path).map_err(|error| error.to_string())?;
    if dtype == DType::Bool {
        bytes.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
    }
    Tensor::from_bytes(dtype, &shape, bytes).map_err(|error| error.to_string())
}

fn written_type<'a>(declared: &'a Declared<'_>) -> Result<(DType, &'a [Dimension]), String> {
    let (dtype, dimensions) = declared.ty.as_ref().ok_or_else(|| {
        format!(
            "the program does not write the type of `{0}`, so that a picture has no layout: write it, as in -> (uint8(3, H, W) {0}), or give a .npy file",
            declared.name
        )
    })?;
    Ok((*dtype, dimensions))
}
