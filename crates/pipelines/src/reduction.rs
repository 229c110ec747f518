//! Adds reductions of rows, columns and whole images, and products: normalisations, matrix products
//! and convolutions over planes.

use rand::RngExt;

use crate::element::Element;
use crate::pointwise;
use crate::sketch::{Image, Sketch};

/// The longest sides of the matrices of a product.
const LONGEST_OF_PRODUCT: i64 = 192;

/// Adds a group of reductions.
pub(crate) fn add(sketch: &mut Sketch, left: usize) {
    let image = sketch.choose();
    match sketch.rng.random_range(0..7) {
        0 if left >= 4 => softmax(sketch, &image),
        1 if left >= 3 => standardised(sketch, &image),
        2 if left >= 2 => less_total(sketch, &image, left),
        3 => product(sketch, &image),
        4 if image.planes.is_some() => convolution(sketch, &image),
        _ if left >= 2 => less_line(sketch, &image),
        _ => pointwise::join(sketch, &[image]),
    }
}

/// The subscripts and ranges of the rows of an image, or of its columns.
struct Lines {
    subscripts: String,
    ranges: String,
    /// The range of the variable along a line, and the number of its values.
    along: String,
    length: i64,
}

impl Lines {
    fn new(image: &Image, are_rows: bool) -> Lines {
        let (across, across_length) = if are_rows { ("y", image.height) } else { ("x", image.width) };
        let (along, length) = if are_rows { ("x", image.width) } else { ("y", image.height) };
        let (plane, plane_range) = match image.planes {
            Some(planes) => ("c, ", format!("c in 0:{planes}, ")),
            None => ("", String::new()),
        };
        Lines {
            subscripts: format!("{plane}{across}"),
            ranges: format!("{plane_range}{across} in 0:{across_length}"),
            along: format!("{along} in 0:{length}"),
            length,
        }
    }

    /// Defines a tensor with a number for each line. Returns the access of the number.
    fn reduce(&self, sketch: &mut Sketch, operator: &str, value: &str) -> String {
        let name = format!("{}({})", sketch.new_name(), self.subscripts);
        sketch.statement(&name, operator, value, &format!("{}, {}", self.ranges, self.along));
        name
    }
}

/// An image of floats, of the same shape.
fn floats(sketch: &mut Sketch, image: &Image) -> (Image, String) {
    let value = image.element.convert(&image.target(), Element::Float);
    (Image { element: Element::Float, ..sketch.like(image) }, value)
}

/// Rows or columns less their maximum, to the power of e, divided by their sum.
fn softmax(sketch: &mut Sketch, image: &Image) {
    let (exponential, value) = floats(sketch, image);
    let are_rows = sketch.rng.random_bool(0.8);
    let lines = Lines::new(image, are_rows);
    let largest = lines.reduce(sketch, "max=!", &value);
    sketch.statement(&exponential.target(), "=", &format!("exp({value} - {largest})"), &exponential.ranges());
    let sum = lines.reduce(sketch, "+=!", &exponential.target());
    let result = sketch.like(&exponential);
    sketch.define(result, "=", &format!("{} / {sum}", exponential.target()), "");
}

/// Rows or columns with the mean 0 and the variance 1.
fn standardised(sketch: &mut Sketch, image: &Image) {
    let (result, value) = floats(sketch, image);
    let are_rows = sketch.rng.random_bool(0.7);
    let lines = Lines::new(image, are_rows);
    let sum = lines.reduce(sketch, "+=!", &value);
    let mean = format!("{sum} * {:.6}", 1.0 / lines.length as f64);
    let squares = lines.reduce(sketch, "+=!", &format!("({value} - {mean}) ** 2"));
    let deviation = format!("rsqrt({squares} * {:.6} + 0.01)", 1.0 / lines.length as f64);
    sketch.define(result, "=", &format!("({value} - {mean}) * {deviation}"), "");
}

/// Each element compared with a number of its row or column.
fn less_line(sketch: &mut Sketch, image: &Image) {
    let (result, value) = floats(sketch, image);
    let are_rows = sketch.rng.random_bool(0.5);
    let lines = Lines::new(image, are_rows);
    let (operator, scale) = match sketch.rng.random_range(0..3) {
        0 => ("max=!", 1.0),
        1 => ("min=!", 1.0),
        _ => ("+=!", 1.0 / lines.length as f64),
    };
    let number = lines.reduce(sketch, operator, &value);
    let value = pointwise::value(sketch, Element::Float, &[value, format!("{number} * {scale:.6}")]);
    sketch.define(result, "=", &value, "");
}

/// Each element compared with a number of the whole image, which is reduced in one or two steps.
fn less_total(sketch: &mut Sketch, image: &Image, left: usize) {
    let (result, value) = floats(sketch, image);
    let total = sketch.new_name();
    let (operator, scale) = match sketch.rng.random_bool(0.5) {
        true => ("max=!", 1.0),
        false => ("+=!", 1.0 / (image.height * image.width) as f64),
    };
    if left >= 3 && sketch.rng.random_bool(0.5) {
        let lines = Lines::new(image, true);
        let number = lines.reduce(sketch, operator, &value);
        sketch.statement(&total, operator, &number, &lines.ranges);
    } else {
        sketch.statement(&total, operator, &value, &image.ranges());
    }
    let value = pointwise::value(sketch, Element::Float, &[value, format!("{total} * {scale:.9}")]);
    sketch.define(result, "=", &value, "");
}

/// A product of matrices: an image by its own rows, or by weights.
fn product(sketch: &mut Sketch, image: &Image) {
    let plane = if image.planes.is_some() { "0" } else { "" };
    let element =
        |row: &str, column: &str| image.element.convert(&image.at(plane, row, column), Element::Float);
    let mut result = Image { planes: None, element: Element::Float, ..sketch.like(image) };
    result.height = image.height.min(LONGEST_OF_PRODUCT);
    result.width = image.height.min(LONGEST_OF_PRODUCT);
    let scale = format!("{:.6}", 1.0 / image.width as f64);
    let value = match sketch.rng.random_bool(0.5) {
        true => format!("{} * {} * {scale}", element("y", "k"), element("x", "k")),
        false => {
            result.width = sketch.pick(&[32, 64, 100]);
            let weights = sketch.add_parameter(Element::Float, &format!("{}, {}", image.width, result.width));
            format!("{} * {weights}(k, x)", element("y", "k"))
        }
    };
    sketch.define(result, "+=!", &value, &format!(", k in 0:{}", image.width));
}

/// A convolution from planes to planes.
fn convolution(sketch: &mut Sketch, image: &Image) {
    let source = sketch.view(image);
    let planes = image.planes.unwrap_or(1);
    let to = sketch.pick(&[4, 8]);
    let weights = sketch.add_parameter(Element::Float, &format!("{to}, {planes}, 3, 3"));
    let value = image.element.convert(&source.at("k", "y + dy - 1", "x + dx - 1"), Element::Float);
    let result = Image { planes: Some(to), element: Element::Float, ..sketch.like(image) };
    let further = format!(", k in 0:{planes}, dy in 0:3, dx in 0:3");
    sketch.define(result, "+=!", &format!("{weights}(c, k, dy, dx) * {value} * 0.05"), &further);
}
