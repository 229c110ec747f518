//! Turns a result into a picture.
//!
//! A [`Plan`] is made before the program runs, from the type and the shape of the result, so that a
//! result which the format cannot hold is refused early. TIFF and PFM hold floats as they are. In
//! other formats, floats from 0 to 1 become integers of 8 bits, rounded to the nearest. Floats
//! beyond these bounds are clamped and counted. NaN is refused.

use tilewright::ir::{DType, Tensor};

use super::layout::{Dimension, Layout, Order};
use super::{Format, Picture, Samples, zeros};

/// How a result becomes a picture.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    format: Format,
    layout: Layout,
    storage: Storage,
    extents: [usize; 3],
}

/// The samples of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Storage {
    U8,
    U16,
    /// 8-bit integers from floats between 0 and 1.
    ScaledToU8,
    F32,
    F64,
}

impl Plan {
    /// The plan for a result. The error is a sentence that names the result.
    pub fn new(
        format: Format,
        result: &str,
        dtype: DType,
        dimensions: &[Dimension],
        shape: &[usize],
    ) -> Result<Plan, String> {
        let layout = Layout::of(result, dimensions)?;
        let extents = layout.extents(shape).filter(|extents| !extents.contains(&0));
        let extents = extents.ok_or_else(|| format!("`{result}` has no pixels"))?;
        refuse_other_channels(format, result, extents[2])?;
        Ok(Plan { format, layout, storage: storage(format, result, dtype)?, extents })
    }

    /// The format of the picture.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The picture of a result, and how many of its elements were clamped.
    pub fn picture(&self, result: &str, tensor: &Tensor) -> Result<(Picture, usize), String> {
        let mut clamped = 0;
        let samples = match self.storage {
            Storage::U8 => Samples::U8(self.arrange(tensor.bytes().to_vec())?),
            Storage::U16 => {
                let pairs = tensor.bytes().chunks_exact(2);
                Samples::U16(
                    self.arrange(pairs.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect())?,
                )
            }
            Storage::ScaledToU8 => {
                let values = floats(tensor);
                refuse_nan(result, self.format, &values)?;
                clamped = values.iter().filter(|value| !(0.0..=1.0).contains(*value)).count();
                let scaled = values.iter().map(|value| (value.clamp(0.0, 1.0) * 255.0).round() as u8);
                Samples::U8(self.arrange(scaled.collect())?)
            }
            Storage::F32 => {
                Samples::F32(self.arrange(floats(tensor).iter().map(|value| *value as f32).collect())?)
            }
            Storage::F64 => Samples::F64(self.arrange(floats(tensor))?),
        };
        let [width, height, channels] = self.extents;
        Ok((Picture::new(width, height, channels, samples), clamped))
    }

    /// Elements in the order of the picture.
    fn arrange<T: Copy + Default>(&self, elements: Vec<T>) -> Result<Vec<T>, String> {
        let [width, height, channels] = self.extents;
        if self.layout.order != Order::Planar || channels == 1 {
            return Ok(elements);
        }
        let mut out = zeros(elements.len())?;
        for (channel, plane) in elements.chunks_exact(width * height).enumerate() {
            let samples = out.iter_mut().skip(channel).step_by(channels);
            samples.zip(plane).for_each(|(sample, element)| *sample = *element);
        }
        Ok(out)
    }
}

fn storage(format: Format, result: &str, dtype: DType) -> Result<Storage, String> {
    let name = format.name();
    Ok(match (format, dtype) {
        (Format::Pfm, dtype) if dtype.is_float() => Storage::F32,
        (Format::Pfm, DType::UInt8 | DType::UInt16) => {
            return Err(format!("`{result}` is {dtype}, and a PFM file holds floats: write .png or .tiff"));
        }
        (Format::Tiff, DType::Float64) => Storage::F64,
        (Format::Tiff, dtype) if dtype.is_float() => Storage::F32,
        (_, dtype) if dtype.is_float() => Storage::ScaledToU8,
        (_, DType::UInt8) => Storage::U8,
        (Format::Jpeg, DType::UInt16) => {
            return Err(format!(
                "`{result}` is uint16, and a JPEG file holds 8 bits: write .png or .tiff, or convert to uint8 in the program"
            ));
        }
        (_, DType::UInt16) => Storage::U16,
        _ => {
            return Err(format!(
                "`{result}` is {dtype}, and a {name} file does not hold that: convert it to uint8, uint16 or float in the program, \
                 or write .npy"
            ));
        }
    })
}

fn refuse_other_channels(format: Format, result: &str, channels: usize) -> Result<(), String> {
    let (held, instead): (&[usize], _) = match format {
        Format::Png | Format::Tiff => (&[1, 3, 4], ".npy"),
        Format::Jpeg | Format::Pfm | Format::Pnm => (&[1, 3], ".png or .tiff"),
        Format::Pgm => (&[1], ".ppm, .png or .tiff"),
        Format::Ppm => (&[3], ".pgm, .png or .tiff"),
    };
    if held.contains(&channels) {
        return Ok(());
    }
    let held: Vec<String> = held.iter().map(usize::to_string).collect();
    Err(format!(
        "`{result}` has {channels} channel{}, and a {} file holds {}: write {instead}",
        if channels == 1 { "" } else { "s" },
        format.name(),
        held.join(" or ")
    ))
}

/// The elements of a tensor of floats.
fn floats(tensor: &Tensor) -> Vec<f64> {
    match tensor.dtype() {
        DType::Float32 => {
            let elements = tensor.bytes().chunks_exact(4);
            elements
                .map(|bytes| f32::from_le_bytes(bytes.try_into().expect("chunks have 4 bytes")).into())
                .collect()
        }
        _ => (0..tensor.len()).map(|at| tensor.get(at).as_f64()).collect(),
    }
}

fn refuse_nan(result: &str, format: Format, values: &[f64]) -> Result<(), String> {
    match values.iter().filter(|value| value.is_nan()).count() {
        0 => Ok(()),
        number => Err(format!(
            "{number} of the {} elements of `{result}` are NaN, which a {} file does not hold: write .tiff, .pfm or .npy",
            values.len(),
            format.name()
        )),
    }
}
