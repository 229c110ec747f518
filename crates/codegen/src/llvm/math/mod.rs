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
//! | f64 | 1.8 | 1.5 | 1.9 | 1.2 | 1.6 | 1.8 | 1.8 | 2.4 | 1.5 | 2.6 | 2.9 | 3.5 | 3.0 | 2.4 | 2.2 | 1.7 |
//!
//! The next table has the same for the functions measured at some hundred thousand random arguments
//! of all sizes, with a reference of 113 bits for both formats.
//!
//! | | asin | acos | asinh | acosh | atanh | cbrt | erfc | lgamma | tgamma | pow | atan2 | hypot | fmod |
//! |---|---|---|---|---|---|---|---|---|---|---|---|---|---|
//! | f32 | 2.3 | 1.2 | 1.8 | 2.5 | 2.0 | 0.94 | 1.5 | 0.6 | 0.6 | 0.6 | 1.4 | 1.2 | 0 |
//! | f64 | 2.2 | 1.3 | 2.1 | 2.4 | 2.4 | 0.95 | 3.5 | | | 1.3 | 1.7 | 1.1 | 0 |
//!
//! f64 has no `lgamma` and `tgamma` here. On machines without fused multiply-add, it has no `pow`
//! and `fmod` either: their exact products would take longer than the C library's code.
//!
//! The emitted code is straight-line, except for sine, cosine, tangent and `fmod`, which add blocks
//! for rare arguments ([`library`]). A caller must therefore query the builder's current block
//! again after a call.
//!
//! The coefficients were computed for this module: minimax fits in relative error, by Remez's
//! exchange algorithm in 50-digit arithmetic. For quotients, Loeb's iteration linearises the
//! problem. Coefficients are rounded to the format one by one, lowest first, and the remaining ones
//! are fitted again each time.

mod cbrt;
mod constant_power;
mod erf;
mod erfc;
mod exp;
mod gamma;
mod hypot;
mod inverse_hyperbolic;
mod inverse_trig;
mod lanes;
mod library;
mod log;
mod pair;
mod pow;
mod remainder;
mod tanh;
mod trig;

use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::Module;
use inkwell::values::BasicValueEnum;
use tilewright_ir::Builtin;

use lanes::{Lanes, Precision};

/// The position for emitted code: at the builder's position, with declarations added to the module.
pub(crate) struct MathContext<'ctx, 'a> {
    pub context: &'ctx Context,
    pub module: &'a Module<'ctx>,
    pub builder: &'a Builder<'ctx>,
    /// Whether the machine has an instruction that multiplies 512 bits at a time by powers of two
    /// (AVX-512).
    pub has_scalef: bool,
    /// Whether the machine has fused multiply-add.
    pub has_fma: bool,
}

/// Emits the function on every lane of `f32` or `f64` scalars or fixed vectors, all of one type.
/// Returns `None` for a function that this module lacks on this machine; the caller then calls the
/// C library lane by lane.
pub(crate) fn call<'ctx>(
    m: &MathContext<'ctx, '_>,
    builtin: Builtin,
    arguments: &[BasicValueEnum<'ctx>],
) -> Option<BasicValueEnum<'ctx>> {
    let first = *arguments.first()?;
    let x = Lanes::new(m, first)?;
    let result = match *arguments {
        [_] => function(builtin, x.precision)?(x),
        [_, y] => function_of_two(builtin, x, Lanes::new(m, y)?)?,
        _ => return None,
    };
    Some(result.into_value_like(first))
}

/// Emits x to the power of a constant, on every lane of an `f32` or `f64` scalar or fixed vector.
/// Returns `None` if products and square roots would not be accurate enough.
pub(crate) fn constant_power<'ctx>(
    m: &MathContext<'ctx, '_>,
    x: BasicValueEnum<'ctx>,
    exponent: f64,
) -> Option<BasicValueEnum<'ctx>> {
    Some(constant_power::constant_power(Lanes::new(m, x)?, exponent)?.into_value_like(x))
}

/// A function that emits an elementary function of one argument.
type MathFunction = for<'ctx, 'm> fn(Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm>;

fn function(builtin: Builtin, precision: Precision) -> Option<MathFunction> {
    Some(match builtin {
        Builtin::Acos => inverse_trig::acos,
        Builtin::Acosh => inverse_hyperbolic::acosh,
        Builtin::Asin => inverse_trig::asin,
        Builtin::Asinh => inverse_hyperbolic::asinh,
        Builtin::Atan => inverse_trig::atan,
        Builtin::Atanh => inverse_hyperbolic::atanh,
        Builtin::Cbrt => cbrt::cbrt,
        Builtin::Cos => trig::cos,
        Builtin::Cosh => exp::cosh,
        Builtin::Erf => erf::erf,
        Builtin::Erfc => erfc::erfc,
        Builtin::Exp => exp::exp,
        Builtin::Exp2 => exp::exp2,
        Builtin::Expm1 => exp::expm1,
        Builtin::Lgamma if precision == Precision::Single => gamma::lgamma,
        Builtin::Log => log::log,
        Builtin::Log10 => log::log10,
        Builtin::Log1p => log::log1p,
        Builtin::Log2 => log::log2,
        Builtin::Sigmoid => exp::sigmoid,
        Builtin::Sin => trig::sin,
        Builtin::Sinh => exp::sinh,
        Builtin::Tan => trig::tan,
        Builtin::Tanh => tanh::tanh,
        Builtin::Tgamma if precision == Precision::Single => gamma::tgamma,
        _ => return None,
    })
}

/// Emits an elementary function of two arguments.
fn function_of_two<'ctx, 'm>(
    builtin: Builtin,
    x: Lanes<'ctx, 'm>,
    y: Lanes<'ctx, 'm>,
) -> Option<Lanes<'ctx, 'm>> {
    match builtin {
        Builtin::Atan2 => Some(inverse_trig::atan2(x, y)),
        Builtin::Fmod => remainder::fmod(x, y),
        Builtin::Hypot => Some(hypot::hypot(x, y)),
        Builtin::Pow => pow::pow(x, y),
        _ => None,
    }
}
