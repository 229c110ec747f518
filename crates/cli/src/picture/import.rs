//! Turns a picture into the tensor that a parameter declares.
//!
//! Integer parameters receive the stored integers, of the same width. Float parameters receive
//! integers divided by the largest one, so that they are from 0 to 1, and floats as they are. Gray
//! is repeated for RGB, a missing alpha is opaque, and an alpha that is opaque everywhere may be
//! left out. All else is refused with what to do.

use tilewright::ir::{DType, Number, Tensor};

use super::layout::{Layout, Order};
use super::{Picture, Samples, zeros};

/// A parameter that takes a picture.
pub struct Parameter<'a> {
    /// Its name in the program.
    pub name: &'a str,
    /// The type of its elements.
    pub dtype: DType,
    /// How it holds a picture.
    pub layout: Layout,
}

/// The tensor for a parameter. The error is a sentence without the name of the picture's file.
pub fn tensor(picture: Picture, parameter: &Parameter<'_>) -> Result<Tensor, String> {
    refuse_other_samples(&picture, parameter)?;
    let Picture { width, height, channels: found, maximum, samples, .. } = picture;
    let channels = parameter.layout.channels.unwrap_or(found);
    let pixels = Pixels { width, height, found, wanted: channels, order: parameter.layout.order };
    let samples = match samples {
        Samples::U8(samples) => {
            Samples::U8(pixels.arrange(samples, maximum as u8).map_err(|why| why.explain(parameter))?)
        }
        Samples::U16(samples) => {
            Samples::U16(pixels.arrange(samples, maximum).map_err(|why| why.explain(parameter))?)
        }
        Samples::F32(samples) => {
            Samples::F32(pixels.arrange(samples, 1.0).map_err(|why| why.explain(parameter))?)
        }
        Samples::F64(samples) => {
            Samples::F64(pixels.arrange(samples, 1.0).map_err(|why| why.explain(parameter))?)
        }
    };
    let shape = parameter.layout.shape(width, height, channels);
    elements(samples, maximum, parameter.dtype, &shape)
}

/// Refuses samples that the parameter's type does not hold without a decision of the user.
fn refuse_other_samples(picture: &Picture, parameter: &Parameter<'_>) -> Result<(), String> {
    let Parameter { name, dtype, .. } = parameter;
    let why = match (&picture.samples, *dtype) {
        (Samples::U8(_), DType::UInt8) | (Samples::U16(_), DType::UInt16) => return Ok(()),
        (_, dtype) if dtype.is_float() => return Ok(()),
        (Samples::U8(_), DType::UInt16) => format!(
            "it has samples of 8 bits, and `{name}` is uint16, so that they could be kept (0 to 255) or scaled (0 to 65535): \
             declare `{name}` as uint8, and write uint16({name}(…)) or 257 * uint16({name}(…)) in the program"
        ),
        (Samples::U16(_), DType::UInt8) => format!(
            "it has samples of 16 bits, and `{name}` is uint8, which would lose half of them: declare `{name}` as uint16 \
             and convert in the program, or convert the picture to 8 bits"
        ),
        (Samples::F32(_) | Samples::F64(_), DType::UInt8 | DType::UInt16) => format!(
            "it has float samples, and `{name}` is {dtype}: declare `{name}` as float, and convert in the program"
        ),
        _ => format!(
            "`{name}` is {dtype}, and a picture has samples of uint8, uint16 or float: declare `{name}` as one of them, \
             and convert in the program"
        ),
    };
    Err(why)
}

/// The pixels of a picture, with the channels that they have and the channels that are wanted.
struct Pixels {
    width: usize,
    height: usize,
    found: usize,
    wanted: usize,
    order: Order,
}

/// The reason why samples cannot be arranged.
enum Refusal {
    /// Colours for a single channel.
    Colours(usize),
    /// Pixels that are not opaque, for a parameter without alpha.
    Transparent,
    /// Channels of another number.
    Channels(usize, usize),
    NoMemory(String),
}

impl Refusal {
    fn explain(self, parameter: &Parameter<'_>) -> String {
        let name = parameter.name;
        match self {
            Refusal::Colours(found) => format!(
                "it has {found} channels (RGB{}), and `{name}` has one: declare `{name}` with 3 channels and compute gray in the \
                 program, as in 0.299 * {name}(0, y, x) + 0.587 * {name}(1, y, x) + 0.114 * {name}(2, y, x), or convert the picture to gray",
                if found == 4 { " and alpha" } else { "" }
            ),
            Refusal::Transparent => format!(
                "it has pixels that are not opaque, and `{name}` has no channel for alpha: declare `{name}` with 4 channels, or \
                 remove the transparency from the picture"
            ),
            Refusal::Channels(found, wanted) => {
                format!("it has {found} channels, and `{name}` has {wanted}")
            }
            Refusal::NoMemory(message) => message,
        }
    }
}

impl Pixels {
    /// Samples in the order of the tensor. `full` is the sample that means opaque.
    fn arrange<T: Copy + Default + PartialEq>(&self, samples: Vec<T>, full: T) -> Result<Vec<T>, Refusal> {
        let sources = self.sources()?;
        self.refuse_lost_alpha(&samples, full)?;
        let is_identity = sources.iter().enumerate().all(|(at, source)| *source == Some(at));
        if is_identity && self.found == self.wanted && (self.order != Order::Planar || self.wanted == 1) {
            return Ok(samples);
        }
        let pixels = self.width * self.height;
        let mut out: Vec<T> = zeros(pixels * self.wanted).map_err(Refusal::NoMemory)?;
        for (channel, source) in sources.iter().enumerate() {
            // The position of the first element of the channel, and the step to the next one.
            let (first, step) = match self.order {
                Order::Planar => (channel * pixels, 1),
                Order::Gray | Order::Interleaved => (channel, self.wanted),
            };
            for pixel in 0..pixels {
                out[first + pixel * step] =
                    source.map_or(full, |source| samples[pixel * self.found + source]);
            }
        }
        Ok(out)
    }

    /// For each wanted channel, the channel of the picture that it comes from. `None` is opaque.
    fn sources(&self) -> Result<Vec<Option<usize>>, Refusal> {
        Ok(match (self.found, self.wanted) {
            (found, wanted) if found == wanted => (0..found).map(Some).collect(),
            (1 | 2, 1) => vec![Some(0)],
            (1 | 2, 3) => vec![Some(0); 3],
            (1, 4) => vec![Some(0), Some(0), Some(0), None],
            (2, 4) => vec![Some(0), Some(0), Some(0), Some(1)],
            (3, 4) => vec![Some(0), Some(1), Some(2), None],
            (4, 3) => vec![Some(0), Some(1), Some(2)],
            (found @ (3 | 4), 1) => return Err(Refusal::Colours(found)),
            (found, wanted) => return Err(Refusal::Channels(found, wanted)),
        })
    }

    /// Refuses to leave out an alpha channel that says something.
    fn refuse_lost_alpha<T: Copy + PartialEq>(&self, samples: &[T], full: T) -> Result<(), Refusal> {
        let is_lost = matches!((self.found, self.wanted), (2, 1 | 3) | (4, 3));
        let mut alphas = samples.iter().skip(self.found - 1).step_by(self.found);
        if is_lost && alphas.any(|alpha| *alpha != full) { Err(Refusal::Transparent) } else { Ok(()) }
    }
}

/// The elements of the tensor, from samples in its order.
fn elements(samples: Samples, maximum: u16, dtype: DType, shape: &[usize]) -> Result<Tensor, String> {
    let full = f64::from(maximum);
    match (samples, dtype.is_float()) {
        (Samples::U8(samples), false) => tensor_of(dtype, shape, samples),
        (Samples::U16(samples), false) => {
            tensor_of(dtype, shape, samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
        }
        (Samples::U8(samples), true) => {
            floats(samples.iter().map(|sample| f64::from(*sample) / full), dtype, shape)
        }
        (Samples::U16(samples), true) => {
            floats(samples.iter().map(|sample| f64::from(*sample) / full), dtype, shape)
        }
        (Samples::F32(samples), _) => floats(samples.iter().map(|sample| f64::from(*sample)), dtype, shape),
        (Samples::F64(samples), _) => floats(samples.iter().copied(), dtype, shape),
    }
}

/// A tensor of floats. Division in double precision and rounding to single precision gives the same
/// number as division in single precision.
fn floats(samples: impl Iterator<Item = f64>, dtype: DType, shape: &[usize]) -> Result<Tensor, String> {
    match dtype {
        DType::Float32 => {
            tensor_of(dtype, shape, samples.flat_map(|sample| (sample as f32).to_le_bytes()).collect())
        }
        DType::Float64 => tensor_of(dtype, shape, samples.flat_map(f64::to_le_bytes).collect()),
        _ => {
            let mut tensor = Tensor::zeros(dtype, shape).map_err(|error| error.to_string())?;
            samples.enumerate().for_each(|(at, sample)| tensor.set(at, Number::Float(sample)));
            Ok(tensor)
        }
    }
}

fn tensor_of(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Result<Tensor, String> {
    Tensor::from_bytes(dtype, shape, bytes).map_err(|error| error.to_string())
}
