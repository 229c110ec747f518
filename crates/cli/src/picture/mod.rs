//! Reads and writes pictures: PNG, JPEG, TIFF, PFM, PGM and PPM files.
//!
//! A [`Picture`] holds the samples as a file stores them: rows from top to bottom, and the channels
//! of a pixel beside each other. No colour profile, gamma or orientation is applied. `import.rs`
//! turns a picture into the tensor that a parameter of a program declares, and `export.rs` turns a
//! result into a picture. Neither changes a value in a way that the user did not ask for: where a
//! conversion has several plausible meanings, the error explains them.
//!
//! | file | contents |
//! |---|---|
//! | `layout.rs` | which dimension of a tensor holds the channels |
//! | `orientation.rs` | whether viewers turn a photo |
//! | `import.rs`, `export.rs` | pictures to tensors, and tensors to pictures |
//! | `png.rs`, `jpeg.rs`, `tiff.rs` | formats that crates decode and encode |
//! | `pfm.rs`, `pnm.rs`, `header.rs` | formats of a few lines, and their headers of text |
//!
//! No claim of a header is trusted: [`expect_plausible`] compares the size that a header declares
//! with the length of the file before memory is allocated.

pub mod export;
mod header;
pub mod import;
mod jpeg;
pub mod layout;
mod orientation;
mod pfm;
mod png;
mod pnm;
#[cfg(test)]
mod tests;
mod tiff;

use std::fs;
use std::path::Path;

/// A picture as its file stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// The number of columns.
    pub width: usize,
    /// The number of rows.
    pub height: usize,
    /// Samples of a pixel: 1 is gray, 2 gray and alpha, 3 RGB, 4 RGB and alpha.
    pub channels: usize,
    /// The samples, in rows from top to bottom.
    pub samples: Samples,
    /// The integer that means full intensity. It has no meaning for floats.
    pub maximum: u16,
    /// How viewers turn or mirror the picture: 1 is not at all, and 2 to 8 are as in Exif. Nothing
    /// here applies it.
    pub orientation: u16,
}

/// The samples of a picture.
#[derive(Clone, Debug, PartialEq)]
pub enum Samples {
    /// 8-bit integers.
    U8(Vec<u8>),
    /// 16-bit integers.
    U16(Vec<u16>),
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 64-bit floats.
    F64(Vec<f64>),
}

impl Samples {
    /// The number of samples.
    fn len(&self) -> usize {
        match self {
            Samples::U8(samples) => samples.len(),
            Samples::U16(samples) => samples.len(),
            Samples::F32(samples) => samples.len(),
            Samples::F64(samples) => samples.len(),
        }
    }
}

impl Picture {
    /// A picture whose integers use their whole range.
    pub fn new(width: usize, height: usize, channels: usize, samples: Samples) -> Picture {
        let maximum = if matches!(samples, Samples::U8(_)) { u8::MAX.into() } else { u16::MAX };
        Picture { width, height, channels, samples, maximum, orientation: 1 }
    }
}

/// The formats of pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// PNG: integers of 8 or 16 bits, without loss.
    Png,
    /// JPEG: integers of 8 bits, with loss.
    Jpeg,
    /// TIFF: integers of 8 or 16 bits, or floats.
    Tiff,
    /// Portable float map: 32-bit floats.
    Pfm,
    /// Portable gray map: one channel of 8 or 16 bits.
    Pgm,
    /// Portable pixel map: RGB of 8 or 16 bits.
    Ppm,
    /// Either of the two.
    Pnm,
}

/// The ends of the names of pictures, for messages.
pub const EXTENSIONS: &str = ".png, .jpg, .tiff, .pfm, .pgm or .ppm";

/// Ends of the names of pictures and archives that are not supported. A folder for results hardly
/// has such a name.
const UNSUPPORTED: [&str; 12] =
    ["avif", "bmp", "dng", "exr", "gif", "hdr", "heic", "jp2", "jxl", "npz", "tga", "webp"];

impl Format {
    /// The format that the end of a file's name says, if it is that of a picture.
    pub fn of(path: &Path) -> Option<Format> {
        Some(match extension(path)?.as_str() {
            "png" => Format::Png,
            "jpg" | "jpeg" => Format::Jpeg,
            "tif" | "tiff" => Format::Tiff,
            "pfm" => Format::Pfm,
            "pgm" => Format::Pgm,
            "ppm" => Format::Ppm,
            "pnm" => Format::Pnm,
            _ => return None,
        })
    }

    /// The name of the format.
    pub fn name(self) -> &'static str {
        match self {
            Format::Png => "PNG",
            Format::Jpeg => "JPEG",
            Format::Tiff => "TIFF",
            Format::Pfm => "PFM",
            Format::Pgm => "PGM",
            Format::Ppm => "PPM",
            Format::Pnm => "PNM",
        }
    }

    /// Whether the first bytes of a file are those of the format.
    fn begins(self, bytes: &[u8]) -> bool {
        let starts: &[&[u8]] = match self {
            Format::Png => &[b"\x89PNG"],
            Format::Jpeg => &[b"\xff\xd8"],
            Format::Tiff => &[b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"],
            Format::Pfm => &[b"PF", b"Pf"],
            Format::Pgm | Format::Ppm | Format::Pnm => &[b"P1", b"P2", b"P3", b"P4", b"P5", b"P6", b"P7"],
        };
        starts.iter().any(|start| bytes.starts_with(start))
    }
}

/// The end of a file's name, in lower case.
pub fn extension(path: &Path) -> Option<String> {
    Some(path.extension()?.to_str()?.to_ascii_lowercase())
}

/// The end of a file's name if it is that of a format which is known but not supported.
pub fn unsupported_extension(path: &Path) -> Option<String> {
    extension(path).filter(|found| UNSUPPORTED.contains(&found.as_str()))
}

/// Reads a picture. The error is a sentence without the file's name.
pub fn read(path: &Path, format: Format) -> Result<Picture, String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    decode(format, &bytes)
}

/// Decodes the contents of a file.
pub fn decode(format: Format, bytes: &[u8]) -> Result<Picture, String> {
    if !format.begins(bytes) {
        return Err(not_of_format(format, bytes));
    }
    let picture = match format {
        Format::Png => png::decode(bytes),
        Format::Jpeg => jpeg::decode(bytes),
        Format::Tiff => tiff::decode(bytes),
        Format::Pfm => pfm::decode(bytes),
        Format::Pgm | Format::Ppm | Format::Pnm => pnm::decode(bytes),
    }?;
    match picture.width.min(picture.height) {
        0 => Err("it has no pixels".to_owned()),
        _ => Ok(picture),
    }
}

/// Encodes a picture, which has samples and channels that the format can hold.
pub fn encode(format: Format, picture: &Picture) -> Result<Vec<u8>, String> {
    match format {
        Format::Png => png::encode(picture),
        Format::Jpeg => jpeg::encode(picture),
        Format::Tiff => tiff::encode(picture),
        Format::Pfm => pfm::encode(picture),
        Format::Pgm | Format::Ppm | Format::Pnm => pnm::encode(picture),
    }
}

fn not_of_format(format: Format, bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "it is empty".to_owned();
    }
    let formats = [Format::Png, Format::Jpeg, Format::Tiff, Format::Pfm, Format::Pnm];
    match formats.into_iter().find(|other| other.begins(bytes)) {
        Some(other) => format!(
            "it is a {} file, though its name says {}; give it the name of its format",
            other.name(),
            format.name()
        ),
        None => format!("not a {} file", format.name()),
    }
}

/// The most decoded bytes for a byte of a file. Deflate reaches about 1030, LZW about 2600 in a
/// TIFF, and Huffman codes of at least one bit for 8 by 32 pixels in a JPEG 2048 pixels.
const MOST_EXPANSION: u64 = 8192;

/// Returns the number of bytes that the samples of a picture take. Refuses a number that a file of
/// this length cannot hold, so that a false header does not cost memory.
fn expect_plausible(extents: [usize; 3], sample_bytes: usize, file: &[u8]) -> Result<usize, String> {
    let [width, height, channels] = extents;
    let needed = width.checked_mul(height).and_then(|pixels| pixels.checked_mul(channels * sample_bytes));
    let most = (file.len() as u64).saturating_mul(MOST_EXPANSION);
    needed.filter(|needed| *needed as u64 <= most).ok_or_else(|| {
        format!(
            "its header declares {width} x {height} pixels, more than a file of {} bytes can hold",
            file.len()
        )
    })
}

/// Zeros for samples. A picture that does not fit into memory is an error, not the end of the
/// process.
fn zeros<T: Clone + Default>(length: usize) -> Result<Vec<T>, String> {
    let mut samples = Vec::new();
    samples.try_reserve_exact(length).map_err(|_| format!("there is no memory for its {length} samples"))?;
    samples.resize(length, T::default());
    Ok(samples)
}

/// 16-bit samples from big-endian bytes.
fn big_endian(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]])).collect()
}

/// The error for samples that a format does not hold. The plan of `export.rs` excludes them.
fn no_such_samples(format: Format) -> String {
    format!("a {} file does not hold such samples", format.name())
}
