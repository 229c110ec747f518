//! Decides how a tensor holds a picture: which of its dimensions are rows, columns and channels.
//!
//! The rule, in this order, for a tensor of three dimensions:
//!
//! 1. If the program writes the first or the last dimension as the number 1, 3 or 4, that dimension
//!    holds the channels.
//! 2. Otherwise, if the first or the last dimension is a size called `C`, `CH` or `channels`, in
//!    upper or lower case, that dimension does.
//! 3. Otherwise, if the first or the last dimension is known to be 1, 3 or 4, that dimension does.
//!    Inputs know the values of `--sizes`. Results know all their extents.
//!
//! A step that holds for both dimensions, and steps that hold for neither, are errors: a layout is
//! never guessed. Channels first is planar, and channels last is interleaved. A tensor of two
//! dimensions is gray. A tensor of four dimensions is a batch, whose first dimension is 1.

use tilewright::syntax::Bindings;
use tilewright::syntax::ast::{Expr, ExprKind, Type};
use tilewright::syntax::sizes::known_extent;

/// The numbers of channels that pictures have.
const CHANNELS: [usize; 3] = [1, 3, 4];

/// One dimension of a tensor.
#[derive(Clone, Debug)]
pub struct Dimension {
    /// The dimension as the program writes it.
    pub text: String,
    /// How the program writes it.
    pub form: Form,
    /// The extent, if it is known.
    pub extent: Option<usize>,
}

/// The forms of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A number.
    Number,
    /// The name of a size.
    Name,
    /// Anything else, or not written at all.
    Other,
}

/// The dimensions of a written type, as far as sizes are known.
pub fn written_dimensions(ty: &Type, sizes: &Bindings) -> Vec<Dimension> {
    ty.dims.iter().map(|dim| written_dimension(dim, sizes)).collect()
}

fn written_dimension(dim: &Expr, sizes: &Bindings) -> Dimension {
    let extent = known_extent(dim, sizes).and_then(|extent| usize::try_from(extent).ok());
    let (text, form) = match &dim.kind {
        ExprKind::Int(number, _) => (number.to_string(), Form::Number),
        ExprKind::Name(name) => (name.clone(), Form::Name),
        _ => (extent.map_or("…".to_owned(), |extent| extent.to_string()), Form::Other),
    };
    Dimension { text, form, extent }
}

/// The dimensions of a tensor whose type is not written.
pub fn inferred_dimensions(shape: &[usize]) -> Vec<Dimension> {
    let dimension =
        |extent: &usize| Dimension { text: extent.to_string(), form: Form::Other, extent: Some(*extent) };
    shape.iter().map(dimension).collect()
}

/// How a tensor holds a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The order of the dimensions.
    pub order: Order,
    /// Whether a dimension of extent 1 is before all others.
    pub is_batch: bool,
    /// The number of channels, if it is known before a picture is read.
    pub channels: Option<usize>,
}

/// The orders of dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Rows and columns, of one channel.
    Gray,
    /// Channels, rows, columns.
    Planar,
    /// Rows, columns, channels.
    Interleaved,
}

impl Layout {
    /// The layout of a tensor. The error is a sentence that names the tensor.
    pub fn of(tensor: &str, dimensions: &[Dimension]) -> Result<Layout, String> {
        let (is_batch, dimensions) = match dimensions {
            [first, rest @ ..] if rest.len() == 3 => {
                refuse_several(tensor, first)?;
                (true, rest)
            }
            all => (false, all),
        };
        match dimensions {
            [_, _] => Ok(Layout { order: Order::Gray, is_batch, channels: Some(1) }),
            [first, _, last] => {
                let order = channel_order(tensor, first, last)?;
                let channels = if order == Order::Planar { first.extent } else { last.extent };
                Ok(Layout { order, is_batch, channels })
            }
            _ => {
                let rank = dimensions.len();
                let plural = if rank == 1 { "" } else { "s" };
                Err(format!(
                    "`{tensor}` has {rank} dimension{plural}, and a picture has rows and columns, and perhaps channels before or after them"
                ))
            }
        }
    }

    /// The shape of a tensor that holds a picture.
    pub fn shape(&self, width: usize, height: usize, channels: usize) -> Vec<usize> {
        let picture: &[usize] = match self.order {
            Order::Gray => &[height, width],
            Order::Planar => &[channels, height, width],
            Order::Interleaved => &[height, width, channels],
        };
        let batch: &[usize] = if self.is_batch { &[1] } else { &[] };
        [batch, picture].concat()
    }

    /// The width, the height and the channels of the picture in a tensor of this layout.
    pub fn extents(&self, shape: &[usize]) -> Option<[usize; 3]> {
        match (self.order, &shape[self.is_batch as usize..]) {
            (Order::Gray, [height, width]) => Some([*width, *height, 1]),
            (Order::Planar, [channels, height, width]) => Some([*width, *height, *channels]),
            (Order::Interleaved, [height, width, channels]) => Some([*width, *height, *channels]),
            _ => None,
        }
    }
}

/// Refuses a batch of several pictures.
fn refuse_several(tensor: &str, first: &Dimension) -> Result<(), String> {
    match first.extent {
        None | Some(1) => Ok(()),
        Some(extent) => Err(format!(
            "`{tensor}` is a batch of {extent} pictures, and a file holds one: use a .npy file for several"
        )),
    }
}

/// Finds the dimension of the channels. The head of this file has the rule.
fn channel_order(tensor: &str, first: &Dimension, last: &Dimension) -> Result<Order, String> {
    let counts_channels = |dim: &Dimension| dim.extent.is_some_and(|extent| CHANNELS.contains(&extent));
    let steps: [&dyn Fn(&Dimension) -> bool; 3] = [
        &|dim| dim.form == Form::Number && counts_channels(dim),
        &|dim| dim.form == Form::Name && names_channels(&dim.text),
        &counts_channels,
    ];
    for holds in steps {
        match (holds(first), holds(last)) {
            (true, false) => return Ok(Order::Planar),
            (false, true) => return Ok(Order::Interleaved),
            (true, true) => {
                return Err(format!(
                    "both the first and the last dimension of `{tensor}` ({} and {}) can be its channels: use a .npy file",
                    first.text, last.text
                ));
            }
            (false, false) => {}
        }
    }
    Err(unknown_order(tensor, first, last))
}

fn names_channels(name: &str) -> bool {
    ["c", "ch", "channels"].contains(&name.to_ascii_lowercase().as_str())
}

fn unknown_order(tensor: &str, first: &Dimension, last: &Dimension) -> String {
    let (planar, interleaved) = (&first.text, &last.text);
    if first.form == Form::Name && last.form == Form::Name {
        return format!(
            "nothing says which dimension of `{tensor}` holds the channels: write 3 or C for {planar} (planar) or for \
             {interleaved} (interleaved) in the program, or give --sizes {planar}=3 or --sizes {interleaved}=3"
        );
    }
    format!(
        "no dimension of `{tensor}` holds channels: the first is {planar} and the last is {interleaved}, and a picture \
         has 1, 3 or 4 channels, first (planar) or last (interleaved)"
    )
}
