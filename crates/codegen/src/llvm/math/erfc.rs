//! Emits the complementary error function, `erfc`.
//!
//! From ½ on, erfc x = e^(-x²)·G(q)/(1 + 2x), where q = (x - 3)/(x + 3) maps all arguments to a
//! short interval on which G is smooth. Below ½, erfc x = 1 - x·P(x²), and below -½, erfc x =
//! 2 - erfc|x|.
//!
//! **f32** computes in f64, with the coefficients that f32 needs.

use super::erf::{SMALL_F32, SMALL_F64};
use super::exp::exp_of_negated_square;
use super::lanes::{Lanes, Precision};

/// G for ½ ≤ x ≤ 10.5 (f32) and ½ ≤ x ≤ 28 (f64), with relative errors of 2^-28.2 and 2^-57.8.
const G_F32: [f64; 10] = [
    1.2530080580690977,
    -0.1356210435206921,
    -0.047562270585255514,
    0.12964254078287762,
    -0.11927453166858336,
    0.06833820025432309,
    -0.023758470827147098,
    0.0023933631726223877,
    0.001826293115654655,
    -0.0005367159268329432,
];
const G_F64: [f64; 22] = [
    1.2530080582697296,
    -0.1356211061245813,
    -0.04756229435345,
    0.1296451587027803,
    -0.11927366341536078,
    0.0683080273431913,
    -0.023770514917137043,
    0.002529391830555744,
    0.001888690335385843,
    -0.0007798324189412058,
    -0.00010515957208631143,
    0.00012510024628169104,
    4.9481054055001875e-06,
    -2.0103964654732786e-05,
    -7.261252703159362e-07,
    3.4804735070874812e-06,
    3.433078220795661e-07,
    -6.280498671777177e-07,
    -1.2032829571791943e-07,
    1.1016029040796326e-07,
    2.240241764127233e-08,
    -1.4806655875009938e-08,
];

/// 1 - erf x.
pub(super) fn erfc<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    match x.precision {
        Precision::Single => erfc_in_double(x.widened(), &SMALL_F32, &G_F32, 10.5).narrowed(),
        Precision::Double => erfc_in_double(x, &SMALL_F64, &G_F64, 28.0),
    }
}

/// erfc x in f64, with the coefficients of erf(x)/x and of G. Beyond the limit, the result is 0.
fn erfc_in_double<'ctx, 'm>(x: Lanes<'ctx, 'm>, small: &[f64], g: &[f64], limit: f64) -> Lanes<'ctx, 'm> {
    let magnitude = x.abs().at_most(limit);
    let middle = (-(magnitude * magnitude).polynomial(small)).fma(x, 1.0);
    let q = (magnitude - 3.0) / (magnitude + 3.0);
    let tail = exp_of_negated_square(magnitude) * q.polynomial(g) / magnitude.fma(2.0, 1.0);
    let outer = x.less(0.0).select(-tail + 2.0, tail);
    magnitude.less(0.5).select(middle, outer)
}
