//! Emits powers with a constant exponent as products and square roots.
//!
//! Each product and root adds a relative error of at most 2^-p for p bits, which is at most one
//! unit in the last place, and the errors of factors add up. So x⁵, with four, is within the bound
//! of 4. Longer chains are not, and the general power ([`super::pow`]) takes their place.
//!
//! A negative exponent inverts the base first: x² can overflow where x⁻² is a denormal number.

use super::lanes::{Lanes, Precision};

/// x to the power of a constant, if products and roots give it within the bound.
pub(super) fn constant_power<'ctx, 'm>(x: Lanes<'ctx, 'm>, exponent: f64) -> Option<Lanes<'ctx, 'm>> {
    let reciprocal = || x.constant(1.0) / x;
    Some(match exponent {
        0.0 => x.constant(1.0),
        1.0 => x,
        2.0 => x * x,
        3.0 => x * x * x,
        4.0 => square(x * x),
        5.0 => square(x * x) * x,
        // Five errors add up. Of all significands of f32, none gives more than 3.5 units.
        6.0 if x.precision == Precision::Single => square(x * x * x),
        -1.0 => reciprocal(),
        -2.0 => square(reciprocal()),
        0.25 => root(x).sqrt(),
        0.5 => root(x),
        1.5 => root(x) * x.abs(),
        -0.5 => x.constant(1.0) / root(x),
        _ => return None,
    })
}

fn square<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    x * x
}

/// √x with the special cases of a power: √-0 is 0, and √-∞ is ∞.
fn root<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let positive = x.equal(f64::NEG_INFINITY).select(-x, x + 0.0);
    positive.sqrt()
}
