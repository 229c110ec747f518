//! PFM, the portable float map: a header of text, then 32-bit floats in rows from bottom to top.
//!
//! The sign of the number in the header says the order of the bytes. Its magnitude is a factor that
//! programs disagree about, and samples are read as they are stored.

use super::header::Header;
use super::{Format, Picture, Samples, expect_plausible, no_such_samples};

/// Decodes a file.
pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let channels = if bytes.starts_with(b"PF") { 3 } else { 1 };
    let mut header = Header::new(bytes);
    let (width, height) = (header.number("width")?, header.number("height")?);
    let scale: f64 = header.number("scale")?;
    if scale == 0.0 || !scale.is_finite() {
        return Err(format!("its header has the scale {scale}, which says no order of the bytes"));
    }
    let length = expect_plausible([width, height, channels], 4, bytes)?;
    let from_bytes = if scale < 0.0 { f32::from_le_bytes } else { f32::from_be_bytes };
    let rows = header.samples(length)?.chunks_exact((width * channels * 4).max(1)).rev();
    let samples = rows.flat_map(|row| row.chunks_exact(4));
    let samples = samples.map(|sample| from_bytes(sample.try_into().expect("chunks have 4 bytes")));
    Ok(Picture::new(width, height, channels, Samples::F32(samples.collect())))
}

/// Encodes a picture, with little-endian floats.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let letters = match picture.channels {
        1 => "Pf",
        3 => "PF",
        _ => return Err(no_such_samples(Format::Pfm)),
    };
    let Samples::F32(samples) = &picture.samples else { return Err(no_such_samples(Format::Pfm)) };
    let mut out = format!("{letters}\n{} {}\n-1.0\n", picture.width, picture.height).into_bytes();
    for row in samples.chunks_exact(picture.width * picture.channels).rev() {
        out.extend(row.iter().flat_map(|sample| sample.to_le_bytes()));
    }
    Ok(out)
}
