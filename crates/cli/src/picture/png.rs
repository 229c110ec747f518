//! PNG, by the crate `png`.

use std::borrow::Cow;
use std::io::Cursor;

use png::{
    BitDepth, ColorType, Compression, Decoder, DecodingError, Encoder, EncodingError, Transformations,
};

use super::{Format, Picture, Samples, big_endian, expect_plausible, no_such_samples, zeros};

/// Decodes a file. A palette becomes colours, and gray of fewer than 8 bits becomes 8 bits.
pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let mut decoder = Decoder::new(Cursor::new(bytes));
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    decoder.set_ignore_iccp_chunk(true);
    // The decoder itself allocates rows when it reads on.
    let declared = decoder.read_header_info().map_err(damaged)?;
    expect_plausible([declared.width as usize, declared.height as usize, 1], 1, bytes)?;
    let mut reader = decoder.read_info().map_err(damaged)?;
    let (color, depth) = reader.output_color_type();
    let channels = color.samples();
    let wide = depth == BitDepth::Sixteen;
    let (width, height) = (reader.info().width as usize, reader.info().height as usize);
    let length = expect_plausible([width, height, channels], 1 + wide as usize, bytes)?;
    let mut data = zeros(length)?;
    reader.next_frame(&mut data).map_err(damaged)?;
    reader.finish().map_err(damaged)?;
    let samples = if wide { Samples::U16(big_endian(&data)) } else { Samples::U8(data) };
    Ok(Picture::new(width, height, channels, samples))
}

fn damaged(error: DecodingError) -> String {
    match error {
        DecodingError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => {
            "it is cut short".to_owned()
        }
        error => format!("it is damaged: {error}"),
    }
}

/// Encodes a picture.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let (depth, data) = match &picture.samples {
        Samples::U8(samples) => (BitDepth::Eight, Cow::from(samples)),
        Samples::U16(samples) => {
            (BitDepth::Sixteen, samples.iter().flat_map(|sample| sample.to_be_bytes()).collect())
        }
        _ => return Err(no_such_samples(Format::Png)),
    };
    let color = match picture.channels {
        1 => ColorType::Grayscale,
        3 => ColorType::Rgb,
        4 => ColorType::Rgba,
        _ => return Err(no_such_samples(Format::Png)),
    };
    let extent = |extent: usize| u32::try_from(extent).map_err(|_| too_large());
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, extent(picture.width)?, extent(picture.height)?);
    encoder.set_color(color);
    encoder.set_depth(depth);
    // A photo of 12 megapixels takes 0.9 s instead of 2.7 s, and is no larger.
    encoder.set_compression(Compression::Fast);
    let failed = |error: EncodingError| error.to_string();
    let mut writer = encoder.write_header().map_err(failed)?;
    writer.write_image_data(&data).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(out)
}

fn too_large() -> String {
    "a PNG file has at most 4294967295 rows and columns".to_owned()
}
