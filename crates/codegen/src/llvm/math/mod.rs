//! Elementary functions on vectors, written out at the call site.
//!
//! LLVM has intrinsics for most of them, but turns a vector `llvm.exp` into one call of the C library for
//! each lane. Here each function is a few dozen plain instructions for all lanes together: reduce the
//! argument to a small interval, evaluate a polynomial or a quotient of two there, undo the reduction with
//! integer arithmetic on the exponent, and mend the special values with selects.
//!
//! What holds:
//! - any lane count, scalars included, on any x86-64 or AArch64: [`lanes`] says which instructions are
//!   avoided and why;
//! - at most 4 units in the last place (ulp) from the true value for every finite argument, with fused
//!   instructions or without, and the C library's infinities, NaN, signs of zero and denormals.
//!   `tests/math_accuracy.rs` checks it;
//! - the machine rounds to nearest and keeps denormals, and nothing adds fast-math flags afterwards: the
//!   reductions need that.
//!
//! The largest errors seen, in ulp, over machines with fused multiply-add and without. For f32 a reference in
//! f64 at every 97th bit pattern, at all patterns near the special points, and at all patterns up to 12800
//! for `sin`, `cos` and `tan`; for f64 a reference of 113 bits at some millions of points.
//!
//! | | exp | exp2 | expm1 | log | log2 | log10 | log1p | tanh | erf | sin | cos | tan | sigmoid | sinh | cosh | atan |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | f32 | 1.9 | 1.6 | 1.7 | 0.93 | 1.9 | 1.8 | 1.5 | 2.5 | 2.3 | 2.9 | 2.9 | 3.7 | 3.5 | 2.2 | 2.3 | 1.4 |
//! | f64 | 1.8 | 1.4 | 1.9 | 1.2 | 1.6 | 1.8 | 1.8 | 2.4 | 1.5 | 2.6 | 2.9 | 3.5 | 3.0 | 2.4 | 2.1 | 1.7 |
//!
//! The emitted code is straight-line except for sine, cosine and tangent, which add blocks for huge arguments
//! ([`trig`]). A caller must therefore ask the builder for its block again after a call.
//!
//! The coefficients are our own: minimax fits in relative error, by Remez's exchange (for quotients,
//! linearised by Loeb's iteration) in 50-digit arithmetic. Coefficients are rounded to the format one by one,
//! from the lowest on, and the rest fitted again each time.

mod erf;
mod exp;
mod lanes;
mod log;
mod tanh;
mod trig;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::BasicValueEnum;
use tilewright_ir::Builtin;

use lanes::Lanes;

/// Where code is emitted: at the builder's position, with declarations added to the module.
pub(crate) struct MathContext<'ctx, 'a> {
    pub context: &'ctx Context,
    pub module: &'a Module<'ctx>,
    pub builder: &'a Builder<'ctx>,
    /// Whether one instruction multiplies by a power of two, for 512 bits at a time (AVX-512).
    pub scales: bool,
}

/// The function on every lane of an `f32` or `f64` scalar or fixed vector; `None` where it has no version
/// here (then the C library is called lane by lane).
pub(crate) fn call<'ctx>(
    m: &MathContext<'ctx, '_>,
    builtin: Builtin,
    x: BasicValueEnum<'ctx>,
) -> Option<BasicValueEnum<'ctx>> {
    let function = function(builtin)?;
    Some(function(Lanes::new(m, x)?).into_value_like(x))
}

/// Emits a function of one argument.
type Emit = for<'ctx, 'm> fn(Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm>;

fn function(builtin: Builtin) -> Option<Emit> {
    Some(match builtin {
        Builtin::Atan => trig::atan,
        Builtin::Cos => trig::cos,
        Builtin::Cosh => exp::cosh,
        Builtin::Erf => erf::erf,
        Builtin::Exp => exp::exp,
        Builtin::Exp2 => exp::exp2,
        Builtin::Expm1 => exp::expm1,
        Builtin::Log => log::log,
        Builtin::Log10 => log::log10,
        Builtin::Log1p => log::log1p,
        Builtin::Log2 => log::log2,
        Builtin::Sigmoid => exp::sigmoid,
        Builtin::Sin => trig::sin,
        Builtin::Sinh => exp::sinh,
        Builtin::Tan => trig::tan,
        Builtin::Tanh => tanh::tanh,
        _ => return None,
    })
}
