//! Adds recurrences along rows or columns: recursive filters, forwards or in both directions, and
//! running sums with the box filters that they give.

use rand::RngExt;

use crate::element::Element;
use crate::pointwise;
use crate::sketch::{Image, Sketch};

/// Adds one or two stages.
pub(crate) fn add(sketch: &mut Sketch, left: usize) {
    let image = sketch.choose();
    let down = sketch.rng.random_bool(0.6);
    match sketch.rng.random_range(0..5) {
        0 | 1 => filtered(sketch, &image, down, false),
        2 | 3 => filtered(sketch, &image, down, true),
        _ if left >= 2 => box_of_running_sums(sketch, &image, down),
        _ => pointwise::join(sketch, &[image]),
    }
}

/// The axis of a recurrence.
struct Axis {
    name: &'static str,
    length: i64,
    /// The ranges of the other variables.
    others: String,
}

impl Axis {
    fn new(image: &Image, down: bool) -> Axis {
        let planes = image.planes.map_or(String::new(), |planes| format!("c in 0:{planes}, "));
        match down {
            true => {
                Axis { name: "y", length: image.height, others: format!("{planes}x in 0:{}", image.width) }
            }
            false => {
                Axis { name: "x", length: image.width, others: format!("{planes}y in 0:{}", image.height) }
            }
        }
    }

    /// An element at a place along the axis.
    fn at(&self, image: &Image, place: &str) -> String {
        match self.name {
            "y" => image.at("c", place, "x"),
            _ => image.at("c", "y", place),
        }
    }
}

/// A recursive filter along an axis, of floats.
fn filtered(sketch: &mut Sketch, image: &Image, down: bool, and_back: bool) {
    let axis = Axis::new(image, down);
    let result = Image { element: Element::Float, ..sketch.like(image) };
    let input = |place: &str| image.element.convert(&axis.at(image, place), Element::Float);
    let old = sketch.pick(&[0.5, 0.7, 0.9]);
    let (name, length) = (axis.name, axis.length);
    sketch.statement(&axis.at(&result, "0"), "=", &input("0"), &axis.others);
    let before = axis.at(&result, &format!("{name} - 1"));
    let step = format!("{old} * {before} + {:.1} * ({})", 1.0 - old, input(name));
    repeat(sketch, &axis, name, &axis.at(&result, name), &step);
    if and_back {
        let own = axis.at(&result, &format!("{} - t", length - 1));
        let after = axis.at(&result, &format!("{length} - t"));
        let step = format!("{old} * {after} + {:.1} * {own}", 1.0 - old);
        repeat(sketch, &axis, "t", &own, &step);
    }
    sketch.images.push(result);
}

/// Writes an ordered loop of one statement.
fn repeat(sketch: &mut Sketch, axis: &Axis, variable: &str, target: &str, value: &str) {
    sketch.line(&format!("for {variable} in 1:{} {{", axis.length));
    sketch.line(&format!("  {target} = {value}"));
    sketch.line(&format!("    where {}", axis.others));
    sketch.line("}");
}

/// Running sums along an axis, and the mean of neighbours by the difference of two of them.
fn box_of_running_sums(sketch: &mut Sketch, image: &Image, down: bool) {
    let axis = Axis::new(image, down);
    // Sums of integers are exact in any order.
    let sums = Image { element: Element::Int32, ..sketch.like(image) };
    let input = |place: &str| match image.element {
        Element::Float => format!("int({} * 4096)", axis.at(image, place)),
        _ => format!("int({})", axis.at(image, place)),
    };
    let name = axis.name;
    sketch.statement(&axis.at(&sums, "0"), "=", &input("0"), &axis.others);
    let step = format!("{} + {}", axis.at(&sums, &format!("{name} - 1")), input(name));
    repeat(sketch, &axis, name, &axis.at(&sums, name), &step);
    let radius = sketch.pick(&[2, 4, 9]);
    let source = sketch.view(&sums);
    let result = sketch.like(&sums);
    let ends =
        [format!("{name} + {radius}"), format!("{name} - {}", radius + 1)].map(|at| axis.at(&source, &at));
    sketch.define(result, "=", &format!("({} - {}) / {}", ends[0], ends[1], 2 * radius + 1), "");
}
