//! Chooses the element types of generated programs, and knows the common type of two types and the
//! range in which the numbers of a type are exact.

use crate::random::rng::Rng;

/// An element type, by its name in the language.
pub type Element = &'static str;

const WEIGHTS: [(Element, usize); 12] = [
    ("float32", 34),
    ("float64", 8),
    ("float16", 5),
    ("bfloat16", 4),
    ("int32", 14),
    ("int64", 9),
    ("int16", 5),
    ("int8", 6),
    ("uint8", 6),
    ("uint16", 4),
    ("uint32", 4),
    ("uint64", 3),
];

/// Returns a random type.
pub fn any(rng: &mut Rng) -> Element {
    rng.weighted(&WEIGHTS)
}

/// Returns a random integer type.
pub fn any_integer(rng: &mut Rng) -> Element {
    let integers: Vec<(Element, usize)> = WEIGHTS.into_iter().filter(|(own, _)| !is_float(own)).collect();
    rng.weighted(&integers)
}

/// Whether the type is a float type.
pub fn is_float(element: Element) -> bool {
    element.contains("float")
}

/// Whether the type has no negative numbers.
pub fn is_unsigned(element: Element) -> bool {
    element.starts_with('u')
}

/// The largest magnitude in a tensor of floats. Integers up to this bound are exact, and so are
/// their products with small integers. Integer types wrap, which is the same in every order.
pub fn most(element: Element) -> f64 {
    match element {
        "bfloat16" => 120.0,
        "float16" => 1000.0,
        _ if is_float(element) => 200_000.0,
        _ => f64::INFINITY,
    }
}

fn bits(element: Element) -> usize {
    let digits: String = element.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

/// The type of an operation on two integer types, if there is one.
pub fn common_integer(left: Element, right: Element) -> Option<Element> {
    if left == right {
        return Some(left);
    }
    let (wide, narrow) = if bits(left) >= bits(right) { (left, right) } else { (right, left) };
    if is_unsigned(wide) == is_unsigned(narrow) || (is_unsigned(narrow) && bits(narrow) < bits(wide)) {
        return Some(wide);
    }
    match bits(if is_unsigned(left) { left } else { right }) {
        8 => Some("int16"),
        16 => Some("int32"),
        32 => Some("int64"),
        _ => None,
    }
}
