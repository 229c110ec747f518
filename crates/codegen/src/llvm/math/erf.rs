//! Emits the error function, `erf`.
//!
//! Below 1, erf x = x·P(x²); from 1 on, erf x = 1 - erfc x. There, erfc x is at most 0.16 and falls
//! fast, so working precision is enough for it:
//!
//! **f32** uses erfc x = e^(x·L(x)), where x·L(x) = log erfc x is smooth enough for a polynomial of
//! low degree.
//!
//! **f64** uses erfc x = e^(-x²)·G(x), where G decays as slowly as 1/x and is a quotient of two
//! polynomials (the idea of Cody 1969, with one interval from 1 to 6). The rounding error of x²
//! needs no correction: erfc x falls faster than the error grows.

use super::exp::exp_in_range;
use super::lanes::{Lanes, Precision};

/// erf(x) / x in x² for x² ≤ 1, with relative errors of 2^-24.1 and 2^-56.0.
pub(super) const SMALL_F32: [f64; 6] = [
    1.1283791065216064,
    -0.3761223554611206,
    0.11279378831386566,
    -0.02668687328696251,
    0.004887467250227928,
    -0.0005502970307134092,
];
pub(super) const SMALL_F64: [f64; 12] = [
    std::f64::consts::FRAC_2_SQRT_PI,
    -0.37612638903183343,
    0.1128379167093695,
    -0.026866170641959296,
    0.005223977596739081,
    -0.0008548325485260378,
    0.00012055280507907772,
    -1.4924465927426833e-05,
    1.6444154988996635e-06,
    -1.6184031569246903e-07,
    1.3616901541218564e-08,
    -7.608239206782974e-10,
];

/// L for 1 ≤ x ≤ 3.95. The relative error of 1 - e^(x·L(x)) is 2^-28.6.
const L_F32: [f64; 6] = [
    -1.1284799575805664,
    -0.6358317732810974,
    -0.10511571913957596,
    0.022798171266913414,
    -0.0031868480145931244,
    0.00021063012536615133,
];

/// G for 1 ≤ x ≤ 6. The relative error of 1 - e^(-x²)·G(x) is 2^-59.4.
const G_NUMERATOR_F64: [f64; 6] = [
    0.9999998890630073,
    1.3901089071122137,
    0.9489384783160841,
    0.37325159442481104,
    0.08423813738432748,
    0.008913674515487682,
];
const G_DENOMINATOR_F64: [f64; 7] = [
    1.0,
    2.5184869038400435,
    2.790752520755801,
    1.7560256020563532,
    0.6695305822682504,
    0.14930428216663133,
    0.015799200054028267,
];

/// erf x.
pub(super) fn erf<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    // Beyond 3.95 (f32) or 6 (f64), the result rounds to 1.
    let magnitude = x.abs().at_most(x.precision.pick(3.95, 6.0));
    let square = magnitude * magnitude;
    let small = square.polynomial(x.precision.pick(&SMALL_F32, &SMALL_F64)) * x;
    let erfc = match x.precision {
        Precision::Single => exp_in_range(magnitude.polynomial(&L_F32) * magnitude),
        Precision::Double => {
            let g = magnitude.polynomial(&G_NUMERATOR_F64) / magnitude.polynomial(&G_DENOMINATOR_F64);
            exp_in_range(-square) * g
        }
    };
    let large = (x.constant(1.0) - erfc).copysign(x);
    magnitude.less(1.0).select(small, large)
}
