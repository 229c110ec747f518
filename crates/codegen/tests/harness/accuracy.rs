//! Runs a builtin function on many numbers, and measures errors in units in the last place (ulp).

use super::*;

/// The guaranteed error bound of the functions.
pub const BOUND_ULP: f64 = 4.0;

/// A multiple of every tested lane count.
pub const BLOCK: usize = 16 * 7;

/// Repeats the last point until whole vectors of every tested lane count hold the points.
pub fn padded<T: Copy>(mut points: Vec<T>) -> Vec<T> {
    let last = *points.last().unwrap();
    points.resize(points.len().next_multiple_of(BLOCK), last);
    points
}

/// The tested lane counts: full vectors, an odd count, and scalars.
pub fn lane_counts(vectors: VectorInstructions, dtype: DType) -> [i64; 3] {
    [(vectors.bytes() / dtype.bytes()) as i64, 7, 1]
}

/// Evaluates `value` of the elements of `inputs`, `lanes` at a time; one lane means scalars.
pub fn elementwise<T: Copy + Default>(
    vectors: VectorInstructions,
    dtype: DType,
    lanes: i64,
    inputs: &[&[T]],
    value: &dyn Fn(Vec<Expr>) -> Expr,
) -> Vec<T> {
    let mut b = Builder::new();
    let count = inputs[0].len() as i64;
    assert_eq!(count % lanes, 0, "whole vectors only");
    let arguments: Vec<_> = inputs.iter().map(|_| b.argument(dtype, &[count])).collect();
    let result = b.argument(dtype, &[count]);
    let (outer, lane) = (b.var("outer"), b.var("lane"));
    let at = v(outer).scale(lanes).add(&v(lane));
    let loads = arguments.iter().map(|argument| b.load(*argument, std::slice::from_ref(&at))).collect();
    let kind = if lanes == 1 { LoopKind::Serial } else { LoopKind::Vector };
    let inner = each(lane, lanes, kind, vec![set(result, &[at], value(loads))]);
    let kernel = b.compile(vectors, vec![each(outer, count / lanes, LoopKind::Serial, vec![inner])]);
    let mut tensors: Vec<Vec<T>> = inputs.iter().map(|input| input.to_vec()).collect();
    tensors.push(vec![T::default(); count as usize]);
    let mut bytes: Vec<&mut [u8]> = tensors.iter_mut().map(|tensor| tensor.bytes()).collect();
    assert_eq!(kernel.run(&mut bytes), 0);
    tensors.pop().unwrap()
}

/// The distance of a result from `exact` in ulp; infinite where NaN, infinity or the sign is wrong.
/// The format has `digits` bits of significand, the least exponent `least` and overflows at
/// `limit`.
fn error_ulp(got: f64, exact: f64, digits: i32, least: i32, limit: f64) -> f64 {
    if exact.is_nan() || got.is_nan() {
        return if exact.is_nan() == got.is_nan() { 0.0 } else { f64::INFINITY };
    }
    let wrong_end = (exact == 0.0 || exact.is_infinite()) && got != exact;
    if wrong_end || exact.is_sign_negative() != got.is_sign_negative() {
        return f64::INFINITY;
    }
    let (got, exact) = (got.clamp(-limit, limit), exact.clamp(-limit, limit));
    let exponent = ((exact.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    // The division takes two steps, since the reciprocal of a small double's ulp overflows.
    let places = (exponent - (digits - 1)).max(least);
    (got - exact).abs() / 2f64.powi(places / 2) / 2f64.powi(places - places / 2)
}

pub fn error_ulp_f32(got: f32, exact: f64) -> f64 {
    error_ulp(got.into(), exact, 24, -149, 2f64.powi(128))
}

/// The reference itself may be off by one ulp. Where it is finite, infinity counts as the largest
/// number.
pub fn error_ulp_f64(got: f64, reference: f64) -> f64 {
    (error_ulp(got, reference, 53, -1074, f64::MAX) - 1.0).max(0.0)
}
