//! Reads and writes NumPy's .npy and .npz files.
//!
//! The format is a magic number, a version, and a Python dictionary with three fixed keys before
//! the raw bytes. The dictionary is parsed here by hand, strictly and with limits. No claim of a
//! header is trusted before it is compared with the length of the file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use tilewright::ir::{DType, Tensor};

use crate::atomic_file;

/// The maximum length of a header. NumPy itself stops at 10,000 characters.
const MAX_HEADER_LENGTH: usize = 1 << 16;

/// The type and shape that a header declares.
struct Header {
    dtype: DType,
    shape: Vec<usize>,
}

/// Reads a tensor from a .npy file. The error is a sentence without the file's name.
pub fn read(path: &Path) -> Result<Tensor, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().ok().map(|metadata| metadata.len());
    read_from(BufReader::new(file), length)
}

/// Reads every tensor of a .npz file, with its name.
pub fn read_archive(path: &Path) -> Result<Vec<(String, Tensor)>, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut archive =
        zip::ZipArchive::new(BufReader::new(file)).map_err(|error| format!("not a .npz file: {error}"))?;
    let mut tensors = Vec::new();
    for at in 0..archive.len() {
        let entry = archive.by_index(at).map_err(|error| format!("damaged: {error}"))?;
        let name = entry.name().map(|name| name.to_string()).unwrap_or_default();
        let Some(name) = name.strip_suffix(".npy").map(str::to_owned) else { continue };
        let length = entry.size();
        let tensor = read_from(entry, Some(length)).map_err(|error| format!("{name}: {error}"))?;
        tensors.push((name, tensor));
    }
    Ok(tensors)
}

/// Reads a tensor. `length` is the number of bytes of the whole source, so that a false header
/// cannot make this function allocate memory.
fn read_from(mut source: impl Read, length: Option<u64>) -> Result<Tensor, String> {
    let (header, consumed) = read_header(&mut source)?;
    let bytes = tilewright::ir::tensor::byte_size(header.dtype, &header.shape).ok_or_else(|| {
        format!("its header claims the shape {:?}, which is larger than any memory", header.shape)
    })?;
    if let Some(length) = length {
        let held = length.saturating_sub(consumed as u64);
        if held < bytes as u64 {
            return Err(format!(
                "it is cut short: its header announces {bytes} bytes of data, and it has {held}"
            ));
        }
    }
    let mut data = Vec::new();
    source.take(bytes as u64).read_to_end(&mut data).map_err(|error| format!("cannot be read: {error}"))?;
    if data.len() < bytes {
        return Err(format!(
            "it is cut short: its header announces {bytes} bytes of data, and it has {}",
            data.len()
        ));
    }
    if header.dtype == DType::Bool {
        data.iter_mut().for_each(|byte| *byte = (*byte != 0) as u8);
    }
    Tensor::from_bytes(header.dtype, &header.shape, data).map_err(|error| error.to_string())
}

fn read_header(source: &mut impl Read) -> Result<(Header, usize), String> {
    let not_npy = || "not a .npy file".to_owned();
    let mut start = [0; 8];
    source.read_exact(&mut start).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => not_npy(),
        _ => format!("cannot be read: {error}"),
    })?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(not_npy());
    }
    let width = match start[6] {
        1 => 2,
        2 | 3 => 4,
        version => return Err(format!("version {version} of the .npy format is not known")),
    };
    let mut field = [0; 4];
    source.read_exact(&mut field[..width]).map_err(|_| "its header is cut short".to_owned())?;
    let length = u32::from_le_bytes(field) as usize;
    if length > MAX_HEADER_LENGTH {
        return Err(format!("its header claims to be {length} bytes long, more than {MAX_HEADER_LENGTH}"));
    }
    let mut text = vec![0; length];
    source.read_exact(&mut text).map_err(|_| "its header is cut short".to_owned())?;
    let text = String::from_utf8(text).map_err(|_| "its header is not text".to_owned())?;
    let header = parse_header(&text)?;
    Ok((header, 8 + width + length))
}

/// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`.
fn parse_header(text: &str) -> Result<Header, String> {
    let value = |key: &str| {
        let quoted = [format!("'{key}'"), format!("\"{key}\"")];
        let at = quoted.iter().find_map(|quoted| text.find(quoted.as_str()).map(|at| at + quoted.len()));
        let rest = text[at.ok_or_else(|| format!("its header has no {key}"))?..].trim_start();
        rest.strip_prefix(':').map(str::trim_start).ok_or_else(|| format!("its header has no {key}"))
    };
    let descr = value("descr")?;
    let dtype = match descr.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let name = descr[1..].split(quote).next().unwrap_or_default();
            parse_dtype(name)?
        }
        _ => return Err("it holds records, not numbers".to_owned()),
    };
    if value("fortran_order")?.starts_with("True") {
        return Err("it is in Fortran order; save it row-major: np.save(file, np.ascontiguousarray(array))"
            .to_owned());
    }
    let shape = value("shape")?;
    let inside = shape.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
    let inside = inside.ok_or("its header has no shape")?;
    let extents = inside.split(',').map(str::trim).filter(|extent| !extent.is_empty());
    let shape: Result<Vec<usize>, _> = extents.map(|extent| extent.trim_end_matches('L').parse()).collect();
    let shape = shape.map_err(|_| format!("its header claims the shape ({inside})"))?;
    Ok(Header { dtype, shape })
}

fn parse_dtype(name: &str) -> Result<DType, String> {
    let (order, kind) = match name.strip_prefix(['<', '|', '=', '>']) {
        Some(kind) => (&name[..1], kind),
        None => ("=", name),
    };
    let dtype = match kind {
        "b1" | "?" => DType::Bool,
        "i1" => DType::Int8,
        "i2" => DType::Int16,
        "i4" => DType::Int32,
        "i8" => DType::Int64,
        "u1" => DType::UInt8,
        "u2" => DType::UInt16,
        "u4" => DType::UInt32,
        "u8" => DType::UInt64,
        "f2" => DType::Float16,
        "f4" => DType::Float32,
        "f8" => DType::Float64,
        // NumPy has no bfloat16; ml_dtypes saves it as two opaque bytes.
        "V2" => DType::BFloat16,
        _ => return Err(format!("it holds elements of type {name}, which the language does not have")),
    };
    if order == ">" && dtype.bytes() > 1 {
        return Err(format!(
            "it is big-endian ({name}); save it with array.astype(array.dtype.newbyteorder('<'))"
        ));
    }
    Ok(dtype)
}

/// Writes a tensor. The file is either the old one or the complete new one.
pub fn write(path: &Path, tensor: &Tensor) -> io::Result<()> {
    atomic_file::write(path, &[&header_bytes(tensor), tensor.bytes()])
}

fn header_bytes(tensor: &Tensor) -> Vec<u8> {
    let descr = match tensor.dtype() {
        DType::Bool => "|b1",
        DType::Int8 => "|i1",
        DType::Int16 => "<i2",
        DType::Int32 => "<i4",
        DType::Int64 => "<i8",
        DType::UInt8 => "|u1",
        DType::UInt16 => "<u2",
        DType::UInt32 => "<u4",
        DType::UInt64 => "<u8",
        DType::Float16 => "<f2",
        DType::BFloat16 => "<V2",
        DType::Float32 => "<f4",
        DType::Float64 => "<f8",
    };
    let extents: String = tensor.shape().iter().map(|extent| format!("{extent}, ")).collect();
    let shape = if tensor.shape().len() == 1 {
        extents.trim_end().to_owned()
    } else {
        extents.trim_end_matches(", ").to_owned()
    };
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The data begins at a multiple of 64 bytes.
    let unpadded = 10 + text.len() + 1;
    text.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((text.len() as u16).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(tensor: &Tensor) -> Tensor {
        let mut bytes = header_bytes(tensor);
        bytes.extend(tensor.bytes());
        read_from(bytes.as_slice(), Some(bytes.len() as u64)).unwrap()
    }

    #[test]
    fn every_type_and_rank_survives() {
        for dtype in DType::ALL {
            for shape in [&[][..], &[3], &[2, 1, 4]] {
                let tensor = Tensor::zeros(dtype, shape).unwrap();
                assert_eq!(round_trip(&tensor), tensor);
            }
        }
    }

    #[test]
    fn damaged_files_are_refused_with_a_reason() {
        let tensor = Tensor::zeros(DType::Float32, &[4]).unwrap();
        let mut bytes = header_bytes(&tensor);
        let refusal = |bytes: &[u8]| read_from(bytes, Some(bytes.len() as u64)).unwrap_err();
        assert_eq!(refusal(b"nonsense, not numpy"), "not a .npy file");
        assert_eq!(refusal(&bytes), "it is cut short: its header announces 16 bytes of data, and it has 0");
        assert_eq!(refusal(&bytes[..40]), "its header is cut short");
        bytes[8..10].copy_from_slice(&[255, 255]);
        assert_eq!(refusal(&bytes), "its header is cut short");
    }

    #[test]
    fn lies_about_the_shape_cost_no_memory() {
        for shape in ["(99999999999, 99999999999)", "(18446744073709551615,)", "(-1,)", "(1000000000000,)"] {
            let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}\n");
            let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
            bytes.extend((text.len() as u16).to_le_bytes());
            bytes.extend(text.as_bytes());
            assert!(read_from(bytes.as_slice(), Some(bytes.len() as u64)).is_err(), "{shape}");
        }
    }

    #[test]
    fn other_layouts_are_named() {
        let refusal = |descr: &str, fortran: &str| {
            parse_header(&format!("{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': (2,)}}"))
                .err()
                .unwrap()
        };
        assert!(refusal("'<f4'", "True").contains("Fortran order"));
        assert!(refusal("'>f4'", "False").contains("big-endian"));
        assert!(refusal("'<c8'", "False").contains("<c8"));
        assert!(refusal("[('a', '<f4')]", "False").contains("records"));
    }
}
