//! Adds stages whose elements depend on elements at the same place: of one image or of several.

use rand::RngExt;

use crate::element::Element;
use crate::sketch::{Image, Sketch};

/// The most images that a join reads.
const MOST_OPERANDS: usize = 3;

const FLOAT_UNARY: [&str; 12] = [
    "sqrt(abs(A))",
    "A * A * (3 - 2 * A)",
    "exp(-A * A)",
    "clamp(A, 0, 1)",
    "A / (1 + abs(A))",
    "tanh(A)",
    "sigmoid(4 * A - 2)",
    "0.8 * A + 0.1",
    "(A > 0.5 ? 1 - A : A)",
    "abs(A - 0.5)",
    "pow(abs(A), 0.4545)",
    "log(1 + abs(A))",
];
const FLOAT_BINARY: [&str; 10] = [
    "A * B",
    "0.5 * (A + B)",
    "0.5 + 0.5 * (A - B)",
    "max(A, B)",
    "min(A, B)",
    "abs(A - B)",
    "A / (1 + abs(B))",
    "(A < B ? A : 0.5 * B)",
    "0.7 * sqrt(A * A + B * B)",
    "lerp(A, B, 0.3)",
];
const FLOAT_TERNARY: [&str; 6] = [
    "lerp(A, B, clamp(C, 0, 1))",
    "0.5 * (A * B + C)",
    "(C > 0.5 ? A : B)",
    "clamp(A, min(B, C), max(B, C))",
    "0.25 * A + 0.5 * B + 0.25 * C",
    "A * (1 - C) + B * C",
];
const NARROW_UNARY: [&str; 4] = ["A / 2 + 9", "max(A, 16)", "A - A / 4", "min(A, 200)"];
const NARROW_BINARY: [&str; 5] = ["avg_up(A, B)", "absd(A, B)", "min(A, B)", "max(A, B)", "A / 2 + B / 2"];
const NARROW_TERNARY: [&str; 3] =
    ["(absd(A, C) < absd(B, C) ? A : B)", "avg_up(avg_up(A, B), C)", "clamp(A, min(B, C), max(B, C))"];
const INT_UNARY: [&str; 4] = ["(3 * A + 7) / 4", "abs(A)", "(A & 4095)", "max(A, 20)"];
const INT_BINARY: [&str; 4] = ["(A + B) / 2", "abs(A - B)", "max(A, B)", "(A < B ? A + 1 : B)"];
const INT_TERNARY: [&str; 3] = ["(A + 2 * B + C) / 4", "(A > C ? A : B)", "min(A, max(B, C))"];

/// A random value of one to three operands, all of the same type.
pub(crate) fn value(sketch: &mut Sketch, element: Element, operands: &[String]) -> String {
    let forms: &[&str] = match (element, operands.len()) {
        (Element::Float, 1) => &FLOAT_UNARY,
        (Element::Float, 2) => &FLOAT_BINARY,
        (Element::Float, _) => &FLOAT_TERNARY,
        (Element::Int32, 1) => &INT_UNARY,
        (Element::Int32, 2) => &INT_BINARY,
        (Element::Int32, _) => &INT_TERNARY,
        (_, 1) => &NARROW_UNARY,
        (_, 2) => &NARROW_BINARY,
        _ => &NARROW_TERNARY,
    };
    let form = sketch.pick(forms);
    let names = ["A", "B", "C"];
    // Functions of the language have names of small letters.
    form.chars()
        .map(|letter| match names.iter().position(|name| name.starts_with(letter)) {
            Some(at) => parenthesised(&operands[at]),
            None => letter.to_string(),
        })
        .collect()
}

/// An operand in parentheses, unless it is a single access or call.
fn parenthesised(operand: &str) -> String {
    let mut depth = 0;
    let is_one = operand.char_indices().all(|(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth > 0 || letter.is_alphanumeric() || letter == '_' || at + 1 == operand.len()
    });
    if is_one { operand.to_owned() } else { format!("({operand})") }
}

/// Adds one stage: a value of some images, or a mixture of colours.
pub(crate) fn add(sketch: &mut Sketch) {
    let first = sketch.choose();
    if first.planes.is_some() && sketch.rng.random_bool(0.2) {
        return mix_planes(sketch, &first);
    }
    let others = sketch.rng.random_range(0..MOST_OPERANDS);
    let others: Vec<Image> = (0..others).map(|_| sketch.choose()).collect();
    join(sketch, &[vec![first], others].concat());
}

/// Adds one stage, and leaves as many images that nobody has read as there were.
pub(crate) fn add_to_unread(sketch: &mut Sketch) {
    let unread = sketch.unread();
    let first = sketch.pick(&unread);
    let first = sketch.read(first);
    join(sketch, &[first]);
}

/// Defines an image of some others, with the shape of the first.
pub(crate) fn join(sketch: &mut Sketch, operands: &[Image]) {
    let mut image = sketch.like(&operands[0]);
    if sketch.rng.random_bool(0.15) {
        image.element = sketch.pick(&[Element::Float, Element::Uint8, Element::Int32]);
    }
    let values: Vec<String> = operands
        .iter()
        .map(|own| {
            let at = sketch.element_for(own, &image);
            own.element.convert(&at, image.element)
        })
        .collect();
    let mut value = value(sketch, image.element, &values);
    // Some stages compute much for each element.
    while image.element == Element::Float && sketch.rng.random_bool(0.25) {
        value = self::value(sketch, image.element, &[value]);
        if value.len() > 300 {
            break;
        }
    }
    sketch.define(image, "=", &value, "");
}

/// Defines an image of one plane from those of another one.
fn mix_planes(sketch: &mut Sketch, of: &Image) {
    let image = Image { planes: None, ..sketch.like(of) };
    let values: Vec<String> = (0..3).map(|plane| of.at(&plane.to_string(), "y", "x")).collect();
    let value = of.element.mean(&values, &[5, 9, 2]);
    sketch.define(image, "=", &value, "");
}

/// Joins the images that nobody has read, until one is left: the result.
pub(crate) fn join_unread(sketch: &mut Sketch) {
    loop {
        let unread = sketch.unread();
        if unread.len() < 2 {
            return;
        }
        let mut operands: Vec<Image> = unread.iter().take(MOST_OPERANDS).map(|at| sketch.read(*at)).collect();
        // The largest one gives the shape.
        operands.sort_by_key(|image| -image.height * image.width * image.planes.unwrap_or(1));
        join(sketch, &operands);
    }
}
