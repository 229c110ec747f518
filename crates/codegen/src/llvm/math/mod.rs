//! Emits elementary functions on vectors inline.
//!
//! LLVM has intrinsics for most of these functions, but turns a vector `llvm.exp` into one call of
//! the C library for each lane. Here, each function is a few dozen plain instructions for all lanes
//! together. They reduce the argument to a small interval, and evaluate a polynomial or a quotient
//! of two polynomials there. Then they undo the reduction by integer arithmetic on the exponent,
//! and correct the special values by selects.
//!
//! Guarantees and requirements:
//! - The functions work for any lane count, including scalars, on any x86-64 or AArch64. [`lanes`]
//!   says which instructions are avoided and why.
//! - For every finite argument, the result is at most 4 units in the last place (ulp) from the true
//!   value, with or without fused instructions. Infinities, NaN, signs of zero and denormals are
//!   those of the C library. `tests/math_accuracy.rs` checks this.
//! - The argument reductions require that the machine rounds to nearest and keeps denormals, and
//!   that no pass adds fast-math flags afterwards.
//!
//! The table shows the largest errors found, in ulp, over machines with and without fused
//! multiply-add. For f32, the reference is in f64, at every 97th bit pattern and at all patterns
//! near the special points. For `sin`, `cos` and `tan`, it also covers all patterns up to 12800.
//! For f64, the reference has 113 bits, at some millions of points.
//!
//! | | exp | exp2 | expm1 | log | log2 | log10 | log1p | tanh | erf | sin | cos | tan | sigmoid | sinh | cosh | atan |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | f32 | 1.9 | 1.6 | 1.7 | 0.93 | 1.9 | 1.8 | 1.5 | 2.5 | 2.3 | 2.9 | 2.9 | 3.7 | 3.5 | 2.2 | 2.3 | 1.4 |
//! | f64 | 1.8 | 1.4 | 1.9 | 1.2 | 1.6 | 1.8 | 1.8 | 2.4 | 1.5 | 2.6 | 2.9 | 3.5 | 3.0 | 2.4 | 2.1 | 1.7 |
//!
//! The emitted code is straight-line, except for sine, cosine and tangent, which add blocks for
//! huge arguments ([`trig`]). A caller must therefore query the builder's current block again after
//! a call.
//!
//! The coefficients were computed for this module: minimax fits in relative error, by Remez's
//! exchange algorithm in 50-digit arithmetic. For quotients, Loeb's iteration linearises the
//! problem. Coefficients are rounded to the format one by one, lowest first, and the remaining ones
//! are fitted again each time.

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

/// The position for emitted code: at the builder's position, with declarations added to the module.
pub(crate) struct MathContext<'ctx, 'a> {
    pub context: &'ctx Context,
    pub module: &'a Module<'ctx>,
    pub builder: &'a Builder<'ctx>,
    /// Whether the machine has an instruction that multiplies 512 bits at a time by powers of two
    /// (AVX-512).
    pub has_scalef: bool,
}

/// Emits the function on every lane of an `f32` or `f64` scalar or fixed vector. Returns `None` for
/// a function that this module lacks; the caller then calls the C library lane by lane.
pub(crate) fn call<'ctx>(
    m: &MathContext<'ctx, '_>,
    builtin: Builtin,
    x: BasicValueEnum<'ctx>,
) -> Option<BasicValueEnum<'ctx>> {
    let function = function(builtin)?;
    Some(function(Lanes::new(m, x)?).into_value_like(x))
}

/// A function that emits an elementary function of one argument.
type MathFunction = for<'ctx, 'm> fn(Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm>;

fn function(builtin: Builtin) -> Option<MathFunction> {
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
