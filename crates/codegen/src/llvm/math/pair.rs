//! Numbers as unevaluated sums of two floats, with about twice the bits of one (Dekker 1971).
//!
//! Products need a fused multiply-add, so only machines that have it use pairs. The low part is at
//! most a few last places of the high part; it is not normalised after every operation.

use super::lanes::Lanes;

/// high + low.
#[derive(Clone, Copy)]
pub(super) struct Pair<'ctx, 'm> {
    pub(super) high: Lanes<'ctx, 'm>,
    pub(super) low: Lanes<'ctx, 'm>,
}

impl<'ctx, 'm> Pair<'ctx, 'm> {
    /// The same pair of numbers in every lane.
    pub(super) fn constant(like: Lanes<'ctx, 'm>, [high, low]: [f64; 2]) -> Self {
        Pair { high: like.constant(high), low: like.constant(low) }
    }

    /// large + small, exactly, where the first is the larger in magnitude, or 0.
    pub(super) fn sum(large: Lanes<'ctx, 'm>, small: Lanes<'ctx, 'm>) -> Self {
        let high = large + small;
        Pair { high, low: small - (high - large) }
    }

    /// a · b, exactly unless the low part underflows.
    pub(super) fn product(a: Lanes<'ctx, 'm>, b: Lanes<'ctx, 'm>) -> Self {
        let high = a * b;
        Pair { high, low: a.fma(b, -high) }
    }

    /// self · factor, without the product of the low parts.
    pub(super) fn times(self, factor: Self) -> Self {
        let Pair { high, low } = Self::product(self.high, factor.high);
        Pair { high, low: self.high.fma(factor.low, self.low.fma(factor.high, low)) }
    }

    /// The pair with more in its low part.
    pub(super) fn plus_low(self, more: Lanes<'ctx, 'm>) -> Self {
        Pair { low: self.low + more, ..self }
    }
}
