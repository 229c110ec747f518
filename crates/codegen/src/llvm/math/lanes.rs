//! Provides operations on all lanes of a vector at once, with which the code of the elementary
//! functions reads like formulas.
//!
//! [`Lanes`] is a vector of floats, [`Bits`] the same vector as integers, and [`Mask`] a truth
//! value for each lane. Each operation appends one LLVM instruction, or one intrinsic that every
//! backend expands inline. A scalar is a vector of one lane, which LLVM's type legaliser turns back
//! into a scalar. So one code path handles every lane count.
//!
//! The module deliberately avoids `llvm.fma`, `llvm.floor`, `llvm.rint` and `llvm.ldexp`, which
//! become library calls on machines without the instruction. It also avoids conversions between
//! `i64` and `f64`, and 64-bit integer comparisons and arithmetic shifts, which have no vector form
//! before AVX-512 or SSE4.2. No operation has a fast-math flag: the argument reductions rely on
//! IEEE rounding.

use std::ops::{Add, Div, Mul, Neg, Sub};

use inkwell::FloatPredicate;
use inkwell::builder::BuilderError;
use inkwell::intrinsics::Intrinsic;
use inkwell::types::{FloatType, IntType, VectorType};
use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum, FloatValue, IntValue, VectorValue};

use super::MathContext;

/// The two floating-point formats that the functions support.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Precision {
    Single,
    Double,
}

impl Precision {
    /// The format of a scalar type, if it is one of the two.
    fn from_type<'ctx>(m: &MathContext<'ctx, '_>, scalar: FloatType<'ctx>) -> Option<Precision> {
        if scalar == m.context.f32_type() {
            Some(Precision::Single)
        } else if scalar == m.context.f64_type() {
            Some(Precision::Double)
        } else {
            None
        }
    }

    /// Returns the value for this format, mostly a list of coefficients.
    pub(super) fn pick<T>(self, single: T, double: T) -> T {
        match self {
            Precision::Single => single,
            Precision::Double => double,
        }
    }

    /// The number of stored bits of the significand.
    pub(super) fn mantissa_bits(self) -> u32 {
        self.pick(f32::MANTISSA_DIGITS, f64::MANTISSA_DIGITS) - 1
    }

    /// The bias of the stored exponent.
    pub(super) fn bias(self) -> u32 {
        self.pick(127, 1023)
    }

    /// 2^p, where p is the number of stored bits of the significand. From this number up to its
    /// double, one unit in the last place is 1.
    pub(super) fn integer_ulp(self) -> f64 {
        f64::from(self.mantissa_bits()).exp2()
    }

    /// The least normal number; smaller numbers are denormal.
    pub(super) fn min_normal(self) -> f64 {
        self.pick(f64::from(f32::MIN_POSITIVE), f64::MIN_POSITIVE)
    }

    /// The bits of a number of this format.
    pub(super) fn bits_of(self, number: f64) -> u64 {
        match self {
            Precision::Single => u64::from((number as f32).to_bits()),
            Precision::Double => number.to_bits(),
        }
    }

    pub(super) fn float_type<'ctx>(self, m: &MathContext<'ctx, '_>) -> FloatType<'ctx> {
        self.pick(m.context.f32_type(), m.context.f64_type())
    }

    fn int_type<'ctx>(self, m: &MathContext<'ctx, '_>) -> IntType<'ctx> {
        self.pick(m.context.i32_type(), m.context.i64_type())
    }
}

/// A float in each lane.
#[derive(Clone, Copy)]
pub(super) struct Lanes<'ctx, 'm> {
    pub(super) m: &'m MathContext<'ctx, 'm>,
    pub(super) precision: Precision,
    pub(super) value: VectorValue<'ctx>,
}

/// The bits of a float in each lane.
#[derive(Clone, Copy)]
pub(super) struct Bits<'ctx, 'm> {
    m: &'m MathContext<'ctx, 'm>,
    precision: Precision,
    value: VectorValue<'ctx>,
}

/// A truth value in each lane.
#[derive(Clone, Copy)]
pub(super) struct Mask<'ctx, 'm> {
    m: &'m MathContext<'ctx, 'm>,
    pub(super) value: VectorValue<'ctx>,
}

/// The right-hand side of an operation: lanes, or one number for all lanes.
pub(super) trait Operand<'ctx, 'm> {
    fn into_lanes(self, like: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm>;
}

impl<'ctx, 'm> Operand<'ctx, 'm> for Lanes<'ctx, 'm> {
    fn into_lanes(self, _like: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
        self
    }
}

impl<'ctx, 'm> Operand<'ctx, 'm> for f64 {
    fn into_lanes(self, like: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
        let number = like.precision.float_type(like.m).const_float(self);
        like.with(VectorType::const_vector(&vec![number; like.count()]))
    }
}

/// Unwraps a built instruction. The message states the invariant of every builder call in this
/// module.
fn expect_built<T>(instruction: Result<T, BuilderError>) -> T {
    instruction.expect("the builder has a position and the operands have one vector type")
}

impl<'ctx, 'm> Lanes<'ctx, 'm> {
    /// Converts a scalar or a fixed vector of `f32` or `f64` to lanes.
    pub(super) fn new(m: &'m MathContext<'ctx, 'm>, x: BasicValueEnum<'ctx>) -> Option<Self> {
        match x {
            BasicValueEnum::FloatValue(scalar) => {
                let precision = Precision::from_type(m, scalar.get_type())?;
                let empty = scalar.get_type().vec_type(1).get_poison();
                let value = expect_built(m.builder.build_insert_element(empty, scalar, lane_index(m, 0), ""));
                Some(Lanes { m, precision, value })
            }
            BasicValueEnum::VectorValue(value) => {
                let element = value.get_type().get_element_type();
                let precision =
                    element.is_float_type().then(|| Precision::from_type(m, element.into_float_type()));
                Some(Lanes { m, precision: precision.flatten()?, value })
            }
            _ => None,
        }
    }

    /// Converts the lanes back to the type of `original`; the inverse of [`Lanes::new`].
    pub(super) fn into_value_like(self, original: BasicValueEnum<'ctx>) -> BasicValueEnum<'ctx> {
        match original {
            BasicValueEnum::FloatValue(_) => self.lane(lane_index(self.m, 0)).into(),
            _ => self.value.into(),
        }
    }

    /// One lane.
    pub(super) fn lane(self, index: IntValue<'ctx>) -> FloatValue<'ctx> {
        expect_built(self.m.builder.build_extract_element(self.value, index, "")).into_float_value()
    }

    pub(super) fn with_lane(self, index: IntValue<'ctx>, scalar: FloatValue<'ctx>) -> Self {
        self.with(expect_built(self.m.builder.build_insert_element(self.value, scalar, index, "")))
    }

    pub(super) fn count(self) -> usize {
        self.value.get_type().get_size() as usize
    }

    pub(super) fn with(self, value: VectorValue<'ctx>) -> Self {
        Lanes { value, ..self }
    }

    /// The same number in every lane.
    pub(super) fn constant(self, number: f64) -> Self {
        number.into_lanes(self)
    }

    /// `self · b + c`, rounded once where the machine has the instruction, and twice elsewhere.
    pub(super) fn fma(self, b: impl Operand<'ctx, 'm>, c: impl Operand<'ctx, 'm>) -> Self {
        self.intrinsic("llvm.fmuladd", &[b.into_lanes(self), c.into_lanes(self)])
    }

    /// `c[0] + c[1]·x + c[2]·x² + …` by Horner's rule.
    pub(super) fn polynomial(self, coefficients: &[f64]) -> Self {
        let (last, lower) = coefficients.split_last().expect("a polynomial has a coefficient");
        lower.iter().rev().fold(self.constant(*last), |sum, &c| sum.fma(self, c))
    }

    pub(super) fn abs(self) -> Self {
        self.intrinsic("llvm.fabs", &[])
    }

    pub(super) fn sqrt(self) -> Self {
        self.intrinsic("llvm.sqrt", &[])
    }

    /// The same numbers in double precision.
    pub(super) fn widened(self) -> Self {
        let wide = self.m.context.f64_type().vec_type(self.count() as u32);
        let value = expect_built(self.m.builder.build_float_ext(self.value, wide, ""));
        Lanes { m: self.m, precision: Precision::Double, value }
    }

    /// The numbers rounded to single precision.
    pub(super) fn narrowed(self) -> Self {
        let narrow = self.m.context.f32_type().vec_type(self.count() as u32);
        let value = expect_built(self.m.builder.build_float_trunc(self.value, narrow, ""));
        Lanes { m: self.m, precision: Precision::Single, value }
    }

    /// The magnitude of `self` with the sign of `sign`.
    pub(super) fn copysign(self, sign: Self) -> Self {
        self.intrinsic("llvm.copysign", &[sign])
    }

    /// `min(self, limit)`, but NaN stays NaN. The operands are in the order that x86 needs for a
    /// single instruction.
    pub(super) fn at_most(self, limit: f64) -> Self {
        let limit = self.constant(limit);
        limit.less(self).select(limit, self)
    }

    /// `max(self, limit)`, but NaN stays NaN.
    pub(super) fn at_least(self, limit: f64) -> Self {
        let limit = self.constant(limit);
        limit.greater(self).select(limit, self)
    }

    pub(super) fn less(self, rhs: impl Operand<'ctx, 'm>) -> Mask<'ctx, 'm> {
        self.compare(FloatPredicate::OLT, rhs.into_lanes(self))
    }

    pub(super) fn greater(self, rhs: impl Operand<'ctx, 'm>) -> Mask<'ctx, 'm> {
        self.compare(FloatPredicate::OGT, rhs.into_lanes(self))
    }

    pub(super) fn equal(self, rhs: impl Operand<'ctx, 'm>) -> Mask<'ctx, 'm> {
        self.compare(FloatPredicate::OEQ, rhs.into_lanes(self))
    }

    fn compare(self, predicate: FloatPredicate, rhs: Self) -> Mask<'ctx, 'm> {
        let value = expect_built(self.m.builder.build_float_compare(predicate, self.value, rhs.value, ""));
        Mask { m: self.m, value }
    }

    /// The bits of the floats.
    pub(super) fn bits(self) -> Bits<'ctx, 'm> {
        let integers = self.precision.int_type(self.m).vec_type(self.count() as u32);
        let value = expect_built(self.m.builder.build_bit_cast(self.value, integers, "")).into_vector_value();
        Bits { m: self.m, precision: self.precision, value }
    }

    /// `round(self · scale)` without a rounding instruction; see [`Rounded`]. The result is valid
    /// while it is below half of [`Precision::integer_ulp`]. Beyond that, it is an arbitrary
    /// number, but never undefined.
    pub(super) fn round_scaled(self, scale: f64, bias: u32) -> Rounded<'ctx, 'm> {
        let shifter = self.precision.integer_ulp() * 1.5 + f64::from(bias);
        let sum = self.fma(scale, shifter);
        Rounded { number: sum - shifter, biased: sum.bits() }
    }

    /// `self - n · (parts[0] + parts[1] + …)`, largest part first: the reduction of Cody and Waite.
    /// All parts but the last have so few bits that `n · part` is exact, with or without fused
    /// instructions.
    pub(super) fn reduce(self, n: Self, parts: &[f64]) -> Self {
        parts.iter().fold(self, |rest, part| n.fma(-part, rest))
    }

    /// Whether [`Lanes::scaled`] can be used: the machine must have the instruction, and the lanes
    /// must fill its vectors.
    pub(super) fn can_be_scaled(self) -> bool {
        self.m.has_scalef && self.count().is_multiple_of(self.precision.pick(16, 8))
    }

    /// `self · 2ⁿ` for an integer n of any size, rounded once. The result may be denormal, zero or
    /// infinite.
    pub(super) fn scaled(self, n: Self) -> Self {
        let lanes = self.precision.pick(16, 8);
        let parts: Vec<VectorValue<'ctx>> =
            (0..self.count()).step_by(lanes).map(|from| self.scale_part(n, from, lanes)).collect();
        let join = |joined: VectorValue<'ctx>, part: VectorValue<'ctx>| {
            // A shuffle needs operands of equal length, so the shorter one is padded first.
            let (have, more) = (joined.get_type().get_size() as usize, part.get_type().get_size() as usize);
            let longer = self.pick_lanes(part, (0..have).map(|lane| lane.min(more - 1)));
            expect_built(self.m.builder.build_shuffle_vector(
                joined,
                longer,
                self.pattern(0..have + more),
                "",
            ))
        };
        self.with(parts.into_iter().reduce(join).expect("there are lanes"))
    }

    fn scale_part(self, n: Self, from: usize, lanes: usize) -> VectorValue<'ctx> {
        /// Rounds in the machine's current rounding mode.
        const CURRENT_ROUNDING: u64 = 4;
        let part = |whole: Self| self.pick_lanes(whole.value, from..from + lanes);
        let name = self.precision.pick("ps", "pd");
        let intrinsic = Intrinsic::find(&format!("llvm.x86.avx512.mask.scalef.{name}.512"));
        let declaration = intrinsic.expect("an intrinsic of x86").get_declaration(self.m.module, &[]);
        let value = part(self);
        let mask_bits = std::num::NonZeroU32::new(lanes as u32).expect("there are lanes");
        let all = self.m.context.custom_width_int_type(mask_bits).expect("a short integer").const_all_ones();
        let rounding = self.m.context.i32_type().const_int(CURRENT_ROUNDING, false);
        let arguments = [value.into(), part(n).into(), value.into(), all.into(), rounding.into()];
        let call =
            expect_built(self.m.builder.build_call(declaration.expect("it has one type"), &arguments, ""));
        call.try_as_basic_value().expect_basic("the intrinsic gives a value").into_vector_value()
    }

    fn pattern(self, lanes: impl Iterator<Item = usize>) -> VectorValue<'ctx> {
        let index = |lane: usize| self.m.context.i32_type().const_int(lane as u64, false);
        VectorType::const_vector(&lanes.map(index).collect::<Vec<_>>())
    }

    fn pick_lanes(self, from: VectorValue<'ctx>, lanes: impl Iterator<Item = usize>) -> VectorValue<'ctx> {
        expect_built(self.m.builder.build_shuffle_vector(from, from, self.pattern(lanes), ""))
    }

    fn intrinsic(self, name: &str, rest: &[Self]) -> Self {
        let intrinsic = Intrinsic::find(name).expect("the name of an LLVM intrinsic");
        let declaration = intrinsic.get_declaration(self.m.module, &[self.value.get_type().into()]);
        let declaration = declaration.expect("the intrinsic is overloaded on one float type");
        let first: BasicMetadataValueEnum = self.value.into();
        let arguments: Vec<_> = [first].into_iter().chain(rest.iter().map(|x| x.value.into())).collect();
        let call = expect_built(self.m.builder.build_call(declaration, &arguments, ""));
        self.with(call.try_as_basic_value().expect_basic("the intrinsic gives a value").into_vector_value())
    }
}

/// A number rounded to the nearest integer by adding 1.5 · 2^p, where p is the number of stored
/// bits of the significand. The last place of the sum is one, so the addition itself rounds, and
/// the low bits of the sum are the integer.
#[derive(Clone, Copy)]
pub(super) struct Rounded<'ctx, 'm> {
    /// The integer as a float.
    pub(super) number: Lanes<'ctx, 'm>,
    /// The integer plus the chosen bias, in the low bits. The higher bits are not zero.
    pub(super) biased: Bits<'ctx, 'm>,
}

impl<'ctx, 'm> Rounded<'ctx, 'm> {
    /// `2^(integer + bias - format's bias)`: the low bits shifted to the position of the exponent.
    pub(super) fn power_of_two(self) -> Lanes<'ctx, 'm> {
        self.biased.shift_left(self.biased.precision.mantissa_bits()).float()
    }

    /// A sign bit where the integer plus the bias is odd.
    pub(super) fn odd_sign(self) -> Bits<'ctx, 'm> {
        let precision = self.biased.precision;
        self.biased.shift_left(precision.pick(31, 63))
    }
}

impl<'ctx, 'm> Bits<'ctx, 'm> {
    fn with(self, value: VectorValue<'ctx>) -> Self {
        Bits { value, ..self }
    }

    fn constant(self, number: u64) -> VectorValue<'ctx> {
        let number = self.precision.int_type(self.m).const_int(number, false);
        VectorType::const_vector(&vec![number; self.value.get_type().get_size() as usize])
    }

    /// The floats with these bits.
    pub(super) fn float(self) -> Lanes<'ctx, 'm> {
        let floats = self.precision.float_type(self.m).vec_type(self.value.get_type().get_size());
        let value = expect_built(self.m.builder.build_bit_cast(self.value, floats, "")).into_vector_value();
        Lanes { m: self.m, precision: self.precision, value }
    }

    /// The sum, modulo the width.
    pub(super) fn plus(self, number: u64) -> Self {
        self.with(expect_built(self.m.builder.build_int_add(self.value, self.constant(number), "")))
    }

    /// `number - self`, modulo the width.
    pub(super) fn subtracted_from(self, number: u64) -> Self {
        self.with(expect_built(self.m.builder.build_int_sub(self.constant(number), self.value, "")))
    }

    /// The difference, modulo the width.
    pub(super) fn minus(self, rhs: Self) -> Self {
        self.with(expect_built(self.m.builder.build_int_sub(self.value, rhs.value, "")))
    }

    pub(super) fn and(self, number: u64) -> Self {
        self.with(expect_built(self.m.builder.build_and(self.value, self.constant(number), "")))
    }

    pub(super) fn or(self, number: u64) -> Self {
        self.with(expect_built(self.m.builder.build_or(self.value, self.constant(number), "")))
    }

    pub(super) fn xor(self, rhs: Self) -> Self {
        self.with(expect_built(self.m.builder.build_xor(self.value, rhs.value, "")))
    }

    pub(super) fn shift_left(self, places: u32) -> Self {
        self.with(expect_built(self.m.builder.build_left_shift(self.value, self.constant(places.into()), "")))
    }

    /// The logical shift: zeros enter from above.
    pub(super) fn shift_right(self, places: u32) -> Self {
        self.with(expect_built(self.m.builder.build_right_shift(
            self.value,
            self.constant(places.into()),
            false,
            "",
        )))
    }
}

impl<'ctx, 'm> Mask<'ctx, 'm> {
    /// `then` where the mask holds and `otherwise` elsewhere, lane by lane.
    pub(super) fn select(self, then: Lanes<'ctx, 'm>, otherwise: impl Operand<'ctx, 'm>) -> Lanes<'ctx, 'm> {
        let otherwise = otherwise.into_lanes(then);
        let value = expect_built(self.m.builder.build_select(self.value, then.value, otherwise.value, ""));
        then.with(value.into_vector_value())
    }

    pub(super) fn and(self, rhs: Self) -> Self {
        Mask { value: expect_built(self.m.builder.build_and(self.value, rhs.value, "")), ..self }
    }

    pub(super) fn or(self, rhs: Self) -> Self {
        Mask { value: expect_built(self.m.builder.build_or(self.value, rhs.value, "")), ..self }
    }

    pub(super) fn not(self) -> Self {
        Mask { value: expect_built(self.m.builder.build_not(self.value, "")), ..self }
    }

    /// Whether the mask holds in any lane, as one `i1`.
    pub(super) fn any(self) -> IntValue<'ctx> {
        let reduce = Intrinsic::find("llvm.vector.reduce.or").expect("the name of an LLVM intrinsic");
        let declaration = reduce.get_declaration(self.m.module, &[self.value.get_type().into()]);
        let declaration = declaration.expect("the intrinsic is overloaded on one vector type");
        let call = expect_built(self.m.builder.build_call(declaration, &[self.value.into()], ""));
        call.try_as_basic_value().expect_basic("the intrinsic gives a value").into_int_value()
    }
}

/// The index of a lane as an LLVM constant.
pub(super) fn lane_index<'ctx>(m: &MathContext<'ctx, '_>, index: u64) -> IntValue<'ctx> {
    m.context.i32_type().const_int(index, false)
}

macro_rules! operator {
    ($trait:ident, $method:ident, $build:ident) => {
        impl<'ctx, 'm, R: Operand<'ctx, 'm>> $trait<R> for Lanes<'ctx, 'm> {
            type Output = Self;

            fn $method(self, rhs: R) -> Self {
                self.with(expect_built(self.m.builder.$build(self.value, rhs.into_lanes(self).value, "")))
            }
        }
    };
}

operator!(Add, add, build_float_add);
operator!(Sub, sub, build_float_sub);
operator!(Mul, mul, build_float_mul);
operator!(Div, div, build_float_div);

impl Neg for Lanes<'_, '_> {
    type Output = Self;

    fn neg(self) -> Self {
        self.with(expect_built(self.m.builder.build_float_neg(self.value, "")))
    }
}
