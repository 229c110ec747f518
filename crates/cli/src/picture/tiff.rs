//! TIFF, by the crate `tiff`: integers of 8 or 16 bits, and floats. Of several pictures in a file,
//! the first is read.

use std::io::{Cursor, ErrorKind};

use tiff::decoder::{Decoder, DecodingResult, Limits};
use tiff::encoder::{TiffEncoder, TiffValue, colortype};
use tiff::tags::Tag;
use tiff::{ColorType, TiffError};

use super::{Format, Picture, Samples, expect_plausible, no_such_samples, zeros};

/// Decodes the first picture of a file.
pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = Decoder::new(Cursor::new(bytes)).map_err(damaged)?;
    let (width, height) = decoder.dimensions().map_err(damaged)?;
    let (width, height) = (width as usize, height as usize);
    let color = decoder.colortype().map_err(damaged)?;
    let channels = channels(color)?;
    let length = expect_plausible([width, height, channels], color.bit_depth().div_ceil(8).into(), bytes)?;
    // What is decoded is known by now, and so is that the file can hold it. A strip or a tile may
    // be larger than the picture.
    let most = length.saturating_mul(2).max(1 << 20);
    let mut limits = Limits::default();
    (limits.decoding_buffer_size, limits.intermediate_buffer_size) = (most, most);
    let mut decoder = decoder.with_limits(limits);
    let mut samples = DecodingResult::U8(Vec::new());
    let layout = decoder.read_image_to_buffer(&mut samples).map_err(damaged)?;
    let planes = if layout.planes > 1 { channels } else { 1 };
    let samples = match samples {
        DecodingResult::U8(samples) => Samples::U8(interleaved(samples, planes)?),
        DecodingResult::U16(samples) => Samples::U16(interleaved(samples, planes)?),
        DecodingResult::F16(samples) => {
            let wide = samples.into_iter().map(|sample| sample.to_f32()).collect();
            Samples::F32(interleaved(wide, planes)?)
        }
        DecodingResult::F32(samples) => Samples::F32(interleaved(samples, planes)?),
        DecodingResult::F64(samples) => Samples::F64(interleaved(samples, planes)?),
        _ => return Err(other_samples("signed integers, or integers of more than 16 bits")),
    };
    let orientation = decoder.find_tag_unsigned(Tag::Orientation).map_err(damaged)?;
    let orientation = orientation.filter(|stated| (1..=8).contains(stated)).unwrap_or(1);
    let found = samples.len();
    match found == width * height * channels {
        true => Ok(Picture { orientation, ..Picture::new(width, height, channels, samples) }),
        false => Err(format!("it is damaged: it has {found} samples for {width} x {height} pixels")),
    }
}

/// The number of channels of pictures that are read.
fn channels(color: ColorType) -> Result<usize, String> {
    let (channels, bits) = match color {
        ColorType::Gray(bits) => (1, bits),
        ColorType::GrayA(bits) => (2, bits),
        ColorType::RGB(bits) => (3, bits),
        ColorType::RGBA(bits) => (4, bits),
        ColorType::Multiband { bit_depth, num_samples: num @ 1..=4 } => (num.into(), bit_depth),
        other => {
            return Err(format!(
                "its colours are {other:?}, and only gray and RGB are read; convert it to RGB"
            ));
        }
    };
    match bits {
        8 | 16 | 32 | 64 => Ok(channels),
        bits => Err(other_samples(&format!("integers of {bits} bits"))),
    }
}

fn other_samples(found: &str) -> String {
    format!("its samples are {found}; convert them to uint8, uint16 or float")
}

/// Turns planes that follow each other into pixels.
fn interleaved<T: Copy + Default>(samples: Vec<T>, planes: usize) -> Result<Vec<T>, String> {
    if planes == 1 {
        return Ok(samples);
    }
    let pixels = samples.len() / planes;
    let mut out = zeros(pixels * planes)?;
    for (at, sample) in samples.iter().take(pixels * planes).enumerate() {
        out[at % pixels * planes + at / pixels] = *sample;
    }
    Ok(out)
}

fn damaged(error: TiffError) -> String {
    match error {
        TiffError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => "it is cut short".to_owned(),
        TiffError::UnsupportedError(error) => format!("it uses a part of TIFF that is not read: {error}"),
        error => format!("it is damaged: {error}"),
    }
}

/// Encodes a picture, without compression.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    use colortype::*;
    match (&picture.samples, picture.channels) {
        (Samples::U8(samples), 1) => write::<Gray8>(picture, samples),
        (Samples::U8(samples), 3) => write::<RGB8>(picture, samples),
        (Samples::U8(samples), 4) => write::<RGBA8>(picture, samples),
        (Samples::U16(samples), 1) => write::<Gray16>(picture, samples),
        (Samples::U16(samples), 3) => write::<RGB16>(picture, samples),
        (Samples::U16(samples), 4) => write::<RGBA16>(picture, samples),
        (Samples::F32(samples), 1) => write::<Gray32Float>(picture, samples),
        (Samples::F32(samples), 3) => write::<RGB32Float>(picture, samples),
        (Samples::F32(samples), 4) => write::<RGBA32Float>(picture, samples),
        (Samples::F64(samples), 1) => write::<Gray64Float>(picture, samples),
        (Samples::F64(samples), 3) => write::<RGB64Float>(picture, samples),
        (Samples::F64(samples), 4) => write::<RGBA64Float>(picture, samples),
        _ => Err(no_such_samples(Format::Tiff)),
    }
}

fn write<C: colortype::ColorType>(picture: &Picture, samples: &[C::Inner]) -> Result<Vec<u8>, String>
where
    [C::Inner]: TiffValue,
{
    let extent = |extent: usize| {
        u32::try_from(extent).map_err(|_| "a TIFF file has at most 4294967295 rows and columns".to_owned())
    };
    let (width, height) = (extent(picture.width)?, extent(picture.height)?);
    let mut out = Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut out).map_err(|error| error.to_string())?;
    encoder.write_image::<C>(width, height, samples).map_err(|error| error.to_string())?;
    Ok(out.into_inner())
}
