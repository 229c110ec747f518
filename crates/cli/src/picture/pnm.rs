//! PGM and PPM, the portable gray map and pixel map, with binary samples.

use super::header::Header;
use super::{Format, Picture, Samples, big_endian, expect_plausible, no_such_samples};

/// Decodes a file. Its largest value may be any number, such as 1023 for a camera of 10 bits.
pub fn decode(bytes: &[u8]) -> Result<Picture, String> {
    let channels = match bytes {
        [b'P', b'5', ..] => 1,
        [b'P', b'6', ..] => 3,
        _ => {
            return Err(
                "its samples are not binary gray or RGB (P5 or P6), the kinds that are read".to_owned()
            );
        }
    };
    let mut header = Header::new(bytes);
    let (width, height) = (header.number("width")?, header.number("height")?);
    let maximum: u16 = header.number("largest value")?;
    if maximum == 0 {
        return Err("its header has the largest value 0".to_owned());
    }
    let wide = maximum > u8::MAX.into();
    let data = header.samples(expect_plausible([width, height, channels], 1 + wide as usize, bytes)?)?;
    let samples = if wide { Samples::U16(big_endian(data)) } else { Samples::U8(data.to_vec()) };
    let largest = match &samples {
        Samples::U16(samples) => samples.iter().copied().max().unwrap_or(0),
        _ => data.iter().copied().max().unwrap_or(0).into(),
    };
    match largest > maximum {
        true => Err(format!("it is damaged: it has the value {largest}, and announces at most {maximum}")),
        false => Ok(Picture { maximum, ..Picture::new(width, height, channels, samples) }),
    }
}

/// Encodes a picture.
pub fn encode(picture: &Picture) -> Result<Vec<u8>, String> {
    let letters = match picture.channels {
        1 => "P5",
        3 => "P6",
        _ => return Err(no_such_samples(Format::Pnm)),
    };
    let header = format!("{letters}\n{} {}\n{}\n", picture.width, picture.height, picture.maximum);
    let mut out = header.into_bytes();
    match &picture.samples {
        Samples::U8(samples) => out.extend(samples),
        Samples::U16(samples) => out.extend(samples.iter().flat_map(|sample| sample.to_be_bytes())),
        _ => return Err(no_such_samples(Format::Pnm)),
    }
    Ok(out)
}
