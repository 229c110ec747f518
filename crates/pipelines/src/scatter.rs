//! Adds stages that write or read at places that data chooses: histograms and equalisations,
//! tables, means of bins, and displaced images.

use rand::RngExt;

use crate::element::Element;
use crate::pointwise;
use crate::sketch::{Image, Sketch};

/// The number of values of a byte.
const VALUES: i64 = 256;

/// Adds a group of stages.
pub(crate) fn add(sketch: &mut Sketch, left: usize) {
    let image = sketch.choose();
    match sketch.rng.random_range(0..5) {
        0 if left >= 3 => equalised(sketch, &image, left),
        1 if left >= 2 => through_table(sketch, &image),
        2 if left >= 3 => means_of_bins(sketch, &image),
        3 if left >= 2 => of_blocks(sketch, &image),
        _ => displaced(sketch, &image),
    }
}

/// The elements as bytes.
fn byte(image: &Image) -> String {
    image.element.convert(&image.target(), Element::Uint8)
}

/// A histogram, its running sum, and each element's share of it.
fn equalised(sketch: &mut Sketch, image: &Image, left: usize) {
    let histogram = sketch.new_name();
    let byte = byte(image);
    if left >= 4 && sketch.rng.random_bool(0.6) {
        let rows = sketch.new_name();
        sketch.statement(&format!("{rows}(y, {byte})"), "+=!", "1", &image.ranges());
        let ranges = format!("y in 0:{}, b in 0:{VALUES}", image.height);
        sketch.statement(&format!("{histogram}(b)"), "+=!", &format!("{rows}(y, b)"), &ranges);
    } else {
        sketch.statement(&format!("{histogram}({byte})"), "+=!", "1", &image.ranges());
    }
    let sums = sketch.new_name();
    sketch.statement(&format!("{sums}(0)"), "=", &format!("{histogram}(0)"), "");
    sketch.line(&format!("for b in 1:{VALUES} {{ {sums}(b) = {sums}(b - 1) + {histogram}(b) }}"));
    let result = Image { element: Element::Float, ..sketch.like(image) };
    let share = 1.0 / (image.height * image.width * image.planes.unwrap_or(1)) as f64;
    sketch.define(result, "=", &format!("{sums}({byte}) * {share:.9}"), "");
}

/// A function of bytes as a table, and its values for the elements.
fn through_table(sketch: &mut Sketch, image: &Image) {
    let table = sketch.new_name();
    let value = pointwise::value(sketch, Element::Float, &["float(v) * 0.00392".to_owned()]);
    let element = sketch.pick(&[Element::Float, Element::Uint8, Element::Uint16]);
    let value = Element::Float.convert(&format!("({value})"), element);
    sketch.statement(&format!("{table}(v)"), "=", &value, &format!("v in 0:{VALUES}"));
    let result = Image { element, ..sketch.like(image) };
    sketch.define(result, "=", &format!("{table}({})", byte(image)), "");
}

/// The mean of the elements in each of some bins, and how far each element is from it.
fn means_of_bins(sketch: &mut Sketch, image: &Image) {
    let bins = sketch.pick(&[16, 32, 64]);
    let (count, sum) = (sketch.new_name(), sketch.new_name());
    let value = image.element.convert(&image.target(), Element::Float);
    let bin = format!("int({}) / {}", byte(image), VALUES / bins);
    let ranges = format!("{}, b = {bin}, b in 0:{bins}", image.ranges());
    sketch.statement(&format!("{count}(b)"), "+=!", "1", &ranges);
    sketch.statement(&format!("{sum}(b)"), "+=!", &value, &ranges);
    let result = Image { element: Element::Float, ..sketch.like(image) };
    let mean = format!("{sum}({bin}) / max({count}({bin}), 1)");
    sketch.define(result, "=", &format!("{value} - {mean}"), "");
}

/// Histograms of blocks of pixels, and how frequent each element is in its block.
fn of_blocks(sketch: &mut Sketch, image: &Image) {
    let side = sketch.pick(&[8, 16]);
    let (rows, columns) = (image.height / side, image.width / side);
    if rows == 0 || columns == 0 {
        return displaced(sketch, image);
    }
    let histogram = sketch.new_name();
    let value = image
        .element
        .convert(&image.at("0", &format!("{side}*i + dy"), &format!("{side}*j + dx")), Element::Uint8);
    let ranges = format!(
        "i in 0:{rows}, j in 0:{columns}, dy in 0:{side}, dx in 0:{side}, b = int({value}) / 16, b in 0:16"
    );
    sketch.statement(&format!("{histogram}(i, j, b)"), "+=!", "1", &ranges);
    let result = Image { element: Element::Float, ..sketch.like(image) };
    let block = format!("min(y/{side}, {}), min(x/{side}, {})", rows - 1, columns - 1);
    let frequency = format!("{histogram}({block}, int({}) / 16)", byte(image));
    sketch.define(result, "=", &format!("{frequency} * {:.6}", 1.0 / (side * side) as f64), "");
}

/// An image read at places that another one displaces by a few pixels.
fn displaced(sketch: &mut Sketch, image: &Image) {
    let by = sketch.choose();
    let result = sketch.like(image);
    let distance = sketch.element_for(&by, &result);
    let distance = by.element.convert(&distance, Element::Float);
    let source = sketch.view(image);
    let reach = sketch.pick(&[4, 8, 16]);
    let place = |name: &str, value: &str| format!("{name} + int({value} * {reach})");
    let shift = format!("clamp({distance}, -1, 1)");
    let value = match sketch.rng.random_bool(0.5) {
        true => source.at("c", &place("y", &shift), "x"),
        false => source.at("c", "y", &place("x", &shift)),
    };
    sketch.define(result, "=", &value, "");
}
