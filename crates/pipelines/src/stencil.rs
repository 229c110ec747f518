//! Adds stages that read windows of neighbours: weighted means and extremes along one axis, along
//! both axes one after the other, and in two dimensions.

use rand::RngExt;

use crate::element::Element;
use crate::sketch::{Image, Sketch};

/// An image as a stencil reads it, and the image that it gives.
pub(crate) struct Window {
    source: Image,
    /// The rows and columns that are added to the offsets, which begin at 0.
    shift: (i64, i64),
    pub result: Image,
}

impl Window {
    /// A window of some rows and columns. Either edges are repeated, or the result is smaller.
    pub fn new(sketch: &mut Sketch, image: &Image, rows: i64, columns: i64) -> Window {
        let mut result = sketch.like(image);
        let has_room = image.height > 4 * rows + 12 && image.width > 4 * columns + 12;
        if has_room && sketch.rng.random_bool(0.4) {
            result.height -= rows - 1;
            result.width -= columns - 1;
            return Window { source: image.clone(), shift: (0, 0), result };
        }
        let source = sketch.view(image);
        Window { source, shift: (-(rows / 2), -(columns / 2)), result }
    }

    /// The element at an offset.
    fn at(&self, row: i64, column: i64) -> String {
        self.source.at("c", &offset("y", row + self.shift.0), &offset("x", column + self.shift.1))
    }

    /// The element at the offset `(dy, dx)`, variables that begin at 0.
    fn at_variables(&self) -> String {
        let (y, x) = (offset("y + dy", self.shift.0), offset("x + dx", self.shift.1));
        self.source.at("c", &y, &x)
    }
}

/// A subscript with an offset.
fn offset(name: &str, by: i64) -> String {
    match by {
        0 => name.to_owned(),
        1.. => format!("{name} + {by}"),
        _ => format!("{name} - {}", -by),
    }
}

/// Adds one or two stages.
pub(crate) fn add(sketch: &mut Sketch, left: usize) {
    let image = sketch.choose();
    match sketch.rng.random_range(0..6) {
        0 => along(sketch, &image, true),
        1 => along(sketch, &image, false),
        2 if left >= 2 => {
            let rows_first = sketch.rng.random_bool(0.5);
            along(sketch, &image, rows_first);
            let last = sketch.images.len() - 1;
            let first = sketch.read(last);
            along(sketch, &first, !rows_first);
        }
        3 => written_out(sketch, &image),
        4 => difference(sketch, &image),
        _ => reduced(sketch, &image),
    }
}

/// Weights that add up to a power of two.
fn weights(taps: i64) -> Vec<i64> {
    match taps {
        3 => vec![1, 2, 1],
        5 => vec![1, 4, 6, 4, 1],
        7 => vec![1, 6, 15, 20, 15, 6, 1],
        _ => vec![1; taps as usize],
    }
}

/// A weighted mean or an extreme of neighbours in a column or in a row.
fn along(sketch: &mut Sketch, image: &Image, is_column: bool) {
    let taps = sketch.pick(&[2, 3, 3, 5, 7]);
    let (rows, columns) = if is_column { (taps, 1) } else { (1, taps) };
    let window = Window::new(sketch, image, rows, columns);
    let at = |tap: i64| if is_column { window.at(tap, 0) } else { window.at(0, tap) };
    let values: Vec<String> = (0..taps).map(at).collect();
    let value = match sketch.rng.random_bool(0.25) {
        true => format!("{}({})", sketch.pick(&["max", "min"]), values.join(", ")),
        false => image.element.mean(&values, &weights(taps)),
    };
    sketch.define(window.result, "=", &value, "");
}

/// A mean of some of the neighbours in two dimensions.
fn written_out(sketch: &mut Sketch, image: &Image) {
    let window = Window::new(sketch, image, 3, 3);
    let shapes: [&[(i64, i64)]; 3] = [
        &[(0, 1), (1, 0), (1, 1), (1, 2), (2, 1)],
        &[(0, 0), (0, 2), (2, 0), (2, 2)],
        &[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0), (2, 1), (2, 2)],
    ];
    let (shape, weights): (_, &[i64]) = match sketch.rng.random_range(0..3) {
        0 => (shapes[0], &[1, 1, 4, 1, 1]),
        1 => (shapes[1], &[1, 1, 1, 1]),
        _ => (shapes[2], &[1, 2, 1, 2, 4, 2, 1, 2, 1]),
    };
    let values: Vec<String> = shape.iter().map(|(row, column)| window.at(*row, *column)).collect();
    let value = image.element.mean(&values, weights);
    sketch.define(window.result, "=", &value, "");
}

/// A gradient along one axis, or an image less its neighbours.
fn difference(sketch: &mut Sketch, image: &Image) {
    let window = Window::new(sketch, image, 3, 3);
    let (one, other) = match sketch.rng.random_range(0..3) {
        0 => (window.at(1, 0), window.at(1, 2)),
        1 => (window.at(0, 1), window.at(2, 1)),
        _ => (window.at(0, 0), window.at(2, 2)),
    };
    let value = match image.element {
        Element::Float => format!("0.5 + 0.5 * ({other} - {one}) + 0.1 * ({} - {one})", window.at(1, 1)),
        Element::Int32 => format!("{other} - {one}"),
        _ => format!("absd({one}, {other})"),
    };
    sketch.define(window.result, "=", &value, "");
}

/// A sum or an extreme over a window, as a reduction.
fn reduced(sketch: &mut Sketch, image: &Image) {
    let (rows, columns) = sketch.pick(&[(3, 3), (5, 5), (1, 9), (9, 1), (3, 5), (7, 7)]);
    let mut window = Window::new(sketch, image, rows, columns);
    let at = window.at_variables();
    let count = rows * columns;
    let further = format!(", dy in 0:{rows}, dx in 0:{columns}");
    let extreme = sketch.pick(&["max=!", "min=!"]);
    let (operator, value) = match image.element {
        _ if sketch.rng.random_bool(0.3) => (extreme, at),
        Element::Float => ("+=!", format!("{at} * {:.5}", 1.0 / count as f64)),
        Element::Int32 => ("+=!", format!("{at} / {count}")),
        Element::Uint16 => ("+=!", format!("{at} / {count}")),
        Element::Uint8 => {
            window.result.element = Element::Uint16;
            ("+=!", format!("uint16({at})"))
        }
    };
    sketch.define(window.result, operator, &value, &further);
}
