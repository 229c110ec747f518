//! JPEG, by the crates `zune-jpeg` and `jpeg-encoder`.

use jpeg_encoder::{ColorType, Encoder, SamplingFactor};
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::{Format, Picture, Samples, expect_plausible, no_such_samples, orientation, zeros};

/// Nearly no visible loss, at a tenth of the size of the samples.
const QUALITY: u8 = 95;

/// Decodes a file to gray or RGB.
pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
    // Without strict mode, a file that is cut short is a picture whose lower part is gray.
    let options = DecoderOptions::default().set_strict_mode(true);
    let options = options.set_max_width(u16::MAX.into()).set_max_height(u16::MAX.into());
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let damaged = |error: zune_jpeg::errors::DecodeErrors| format!("it is damaged: {error}");
    decoder.decode_headers().map_err(damaged)?;
    let (space, channels) = match decoder.input_colorspace() {
        Some(ColorSpace::Luma) => (ColorSpace::Luma, 1),
        Some(ColorSpace::YCbCr | ColorSpace::RGB) => (ColorSpace::RGB, 3),
        other => return Err(not_shown(other)),
    };
    let options = decoder.options().jpeg_set_out_colorspace(space);
    decoder.set_options(options);
    let info = decoder.info().ok_or("it is damaged: it has no header")?;
    let (width, height) = (info.width.into(), info.height.into());
    refuse_cut(bytes)?;
    let mut data = zeros(expect_plausible([width, height, channels], 1, bytes)?)?;
    decoder.decode_into(&mut data).map_err(damaged)?;
    let orientation = decoder.exif().and_then(|exif| orientation::of_exif(exif)).unwrap_or(1);
    Ok(Picture { orientation, ..Picture::new(width, height, channels, Samples::U8(data)) })
}

/// Refuses a file without a mark of its end behind its last scan. The decoder makes up pixels for
/// the last bytes even in strict mode. Neither mark can occur inside a scan.
fn refuse_cut(bytes: &[u8]) -> Result<(), String> {
    let last = |mark: u8| bytes.windows(2).rposition(|pair| pair == [0xff, mark]);
    let (end, scan) = (last(0xd9), last(0xda));
    if end > scan { Ok(()) } else { Err("it is cut short".to_owned()) }
}

fn not_shown(space: Option<ColorSpace>) -> String {
    let space = space.map_or("unknown".to_owned(), |space| format!("{space:?}"));
    format!("its colours are {space}, and only gray and RGB are read; convert it to RGB")
}

/// Encodes gray or RGB, without reducing the resolution of colours.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let Samples::U8(samples) = &picture.samples else { return Err(no_such_samples(Format::Jpeg)) };
    let color = match picture.channels {
        1 => ColorType::Luma,
        3 => ColorType::Rgb,
        _ => return Err(no_such_samples(Format::Jpeg)),
    };
    let extent = |extent: usize| {
        u16::try_from(extent).map_err(|_| "a JPEG file has at most 65535 rows and columns".to_owned())
    };
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, QUALITY);
    encoder.set_sampling_factor(SamplingFactor::R_4_4_4);
    encoder
        .encode(samples, extent(picture.width)?, extent(picture.height)?, color)
        .map_err(|error| error.to_string())?;
    Ok(out)
}
