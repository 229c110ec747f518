//! Emits `sin`, `cos`, `tan` and `atan`.
//!
//! **sin, cos.** r = x - k·π, with k the nearest integer for the sine and the nearest half-integer
//! for the cosine. Both results are then ±sin r with r from -π/2 to π/2, so one polynomial is
//! enough, and the parity of k gives the sign. The subtraction follows Cody and Waite (1980,
//! chapter 8) with π in four parts, where k times each of the first three is exact. Up to the
//! limits below, the parts extend far enough for r to keep its relative accuracy next to the
//! multiples of π, where the result is as small as r.
//!
//! **tan.** r = x - n·π/2 with |r| ≤ π/4, and the result is sin r / cos r or its negated
//! reciprocal, by the parity of n.
//!
//! **Huge arguments** need some hundred digits of π. They are rare, so if a vector contains one,
//! the code branches to the C library for all lanes. Only this code in this module adds blocks.
//!
//! **atan.** x + x³·P(x²) up to 1, and π/2 - atan(1/x) beyond.

use inkwell::IntPredicate;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, InstructionValue};

use super::exp::unless_tiny;
use super::lanes::{Lanes, Mask, Rounded, lane_index};

/// Above these arguments, k needs more bits than the parts of π leave free.
const LIMIT_F32: f64 = 12_800.0;
const LIMIT_F64: f64 = 4_000_000.0;

/// π in parts of 11, 11, 11 and 24 bits for f32, and of 31, 31, 31 and 53 bits for f64. All parts
/// are positive, so that -0 stays -0.
const PI_F32: [f64; 4] = [3.140625, 0.0009675025939941406, 1.5099067240953445e-07, 5.126688136514179e-12];
const PI_F64: [f64; 4] =
    [3.1415926534682512, 1.215420100718692e-10, 5.8254641096454e-20, 2.5413117520279757e-29];

/// (sin(r) / r - 1) / r² in r² for |r| ≤ π/2. The relative errors of the sine are 2^-27.2 and
/// 2^-61.5.
const SIN_F32: [f64; 4] =
    [-0.16666659712791443, 0.008333067409694195, -0.00019809552759397775, 2.6054588033730397e-06];
const SIN_F64: [f64; 8] = [
    -0.16666666666666666,
    0.008333333333333205,
    -0.00019841269841211481,
    2.7557319211355284e-06,
    -2.5052106881853673e-08,
    1.6058939750013417e-10,
    -7.642984247407783e-13,
    2.7210269571641308e-15,
];

/// The same for |r| ≤ π/4. The relative errors of the sine are 2^-27.8 and 2^-57.8.
const QUARTER_SIN_F32: [f64; 3] = [-0.16666653752326965, 0.008332106284797192, -0.0001950788573594764];
const QUARTER_SIN_F64: [f64; 6] = [
    -0.1666666666666663,
    0.008333333333321787,
    -0.00019841269829290738,
    2.7557313509216444e-06,
    -2.505072913213965e-08,
    1.5895097998576133e-10,
];

/// (cos r - 1 + r²/2) / r⁴ in r² for |r| ≤ π/4. The relative errors of the cosine are 2^-32.9 and
/// 2^-63.8.
const QUARTER_COS_F32: [f64; 3] = [0.04166664555668831, -0.0013887305976822972, 2.4431650672340766e-05];
const QUARTER_COS_F64: [f64; 6] = [
    0.04166666666666659,
    -0.0013888888888872186,
    2.4801587288295427e-05,
    -2.755731401514605e-07,
    2.087567808967588e-09,
    -1.1357337049342357e-11,
];

/// (atan(x) / x - 1) / x² in x² for |x| ≤ 1. The relative errors of the arctangent are 2^-28.2 and
/// 2^-56.6.
const ATAN_F32: [f64; 9] = [
    -0.33333298563957214,
    0.1999852955341339,
    -0.1426401436328888,
    0.10950860381126404,
    -0.08399201929569244,
    0.05787868797779083,
    -0.031093263998627663,
    0.01086607575416565,
    -0.0017820891225710511,
];
const ATAN_F64: [f64; 20] = [
    -0.3333333333333307,
    0.1999999999995175,
    -0.14285714282588158,
    0.11111111007343441,
    -0.0909090700781303,
    0.07692279888975312,
    -0.06666404423186448,
    0.058805298046030345,
    -0.05253526759963509,
    0.047223482879212075,
    -0.04219243413721278,
    0.036643157770982565,
    -0.029905746103292323,
    0.02198707871950208,
    -0.013902579990270187,
    0.0071978864778734965,
    -0.0028856093828063967,
    0.0008315592581076282,
    -0.00015221101900895565,
    1.3229984467873141e-05,
];

/// π/2 rounded to the format, and the remainder.
const HALF_PI_F32: [f64; 2] = [1.5707963705062866, -4.3711390001862426e-08];
const HALF_PI_F64: [f64; 2] = [std::f64::consts::FRAC_PI_2, 6.123233995736766e-17];

/// sin x.
pub(super) fn sin<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let k = x.round_scaled(std::f64::consts::FRAC_1_PI, 0);
    let near = signed_sin(x.reduce(k.number, x.precision.pick(&PI_F32, &PI_F64)), k);
    or_library_if_huge(x, near, x.precision.pick("sinf", "sin"))
}

/// cos x. With x = r + (n + ½)π, the result is -sin r for even n, so a bias of one inverts the
/// parity of n.
pub(super) fn cos<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let n = x.fma(std::f64::consts::FRAC_1_PI, -0.5).round_scaled(1.0, 1);
    let near = signed_sin(x.reduce(n.number + 0.5, x.precision.pick(&PI_F32, &PI_F64)), n);
    or_library_if_huge(x, near, x.precision.pick("cosf", "cos"))
}

/// sin r for |r| ≤ π/2, negated where the integer is odd. The product with r comes last, which
/// preserves the sign of zero.
fn signed_sin<'ctx, 'm>(r: Lanes<'ctx, 'm>, parity: Rounded<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let square = r * r;
    let ratio = square.polynomial(r.precision.pick(&SIN_F32, &SIN_F64)).fma(square, 1.0);
    (ratio * r).bits().xor(parity.odd_sign()).float()
}

/// tan x.
pub(super) fn tan<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let n = x.round_scaled(std::f64::consts::FRAC_2_PI, 0);
    let half_pi = x.precision.pick(&PI_F32, &PI_F64).map(|part| part / 2.0);
    let r = x.reduce(n.number, &half_pi);
    let square = r * r;
    let sin = square.polynomial(x.precision.pick(&QUARTER_SIN_F32, &QUARTER_SIN_F64)).fma(r * square, r);
    let tail = square.polynomial(x.precision.pick(&QUARTER_COS_F32, &QUARTER_COS_F64)).fma(square, -0.5);
    let cos = tail.fma(square, 1.0);
    let odd = odd(n);
    let near = odd.select(-cos, sin) / odd.select(sin, cos);
    or_library_if_huge(x, unless_tiny(x, near), x.precision.pick("tanf", "tan"))
}

/// The lanes where the integer is odd. This compares ±1 as floats, since not every machine compares
/// vectors of 64-bit integers.
fn odd<'ctx, 'm>(n: Rounded<'ctx, 'm>) -> Mask<'ctx, 'm> {
    n.number.constant(1.0).copysign(n.odd_sign().float()).less(0.0)
}

/// atan x.
pub(super) fn atan<'ctx, 'm>(x: Lanes<'ctx, 'm>) -> Lanes<'ctx, 'm> {
    let magnitude = x.abs();
    let steep = magnitude.greater(1.0);
    let t = steep.select(x.constant(1.0) / magnitude, magnitude);
    let square = t * t;
    let near = (square * square.polynomial(x.precision.pick(&ATAN_F32, &ATAN_F64))).fma(t, t);
    let [half_pi, missing] = x.precision.pick(HALF_PI_F32, HALF_PI_F64);
    let far = (near - missing - half_pi).abs();
    steep.select(far, near).copysign(x)
}

/// Returns `near`, or the C library's results for all lanes if any lane's argument is beyond the
/// limit.
fn or_library_if_huge<'ctx, 'm>(x: Lanes<'ctx, 'm>, near: Lanes<'ctx, 'm>, name: &str) -> Lanes<'ctx, 'm> {
    let any_huge = x.abs().greater(x.precision.pick(LIMIT_F32, LIMIT_F64)).any();
    let (builder, context) = (x.m.builder, x.m.context);
    let start = builder.get_insert_block().expect("code is emitted into a block");
    let huge = context.insert_basic_block_after(start, "huge");
    let done = context.insert_basic_block_after(huge, "near");
    let branch = builder.build_conditional_branch(any_huge, huge, done).expect(IN_BLOCK);
    mark_unlikely(x, branch);

    builder.position_at_end(huge);
    let far = library_lane_by_lane(x, name);
    let end = builder.get_insert_block().expect("the loop leaves the builder in a block");
    builder.build_unconditional_branch(done).expect(IN_BLOCK);

    builder.position_at_end(done);
    let result = builder.build_phi(x.value.get_type(), "").expect(IN_BLOCK);
    result.add_incoming(&[(&near.value, start), (&far.value, end)]);
    x.with(result.as_basic_value().into_vector_value())
}

const IN_BLOCK: &str = "the builder has a position";

/// Emits a loop over the lanes that calls a C library function for each, and leaves the builder in
/// the block after the loop. Separate calls for each lane would be long for wide vectors, and the
/// code hardly ever runs.
fn library_lane_by_lane<'ctx, 'm>(x: Lanes<'ctx, 'm>, name: &str) -> Lanes<'ctx, 'm> {
    let (builder, context) = (x.m.builder, x.m.context);
    let before = builder.get_insert_block().expect("code is emitted into a block");
    let body = context.insert_basic_block_after(before, "huge.lane");
    let after = context.insert_basic_block_after(body, "huge.done");
    builder.build_unconditional_branch(body).expect(IN_BLOCK);

    builder.position_at_end(body);
    let index = builder.build_phi(context.i32_type(), "").expect(IN_BLOCK);
    let results = builder.build_phi(x.value.get_type(), "").expect(IN_BLOCK);
    let lane = index.as_basic_value().into_int_value();
    let so_far = x.with(results.as_basic_value().into_vector_value());
    let call = builder.build_call(library_function(x, name), &[x.lane(lane).into()], "").expect(IN_BLOCK);
    let scalar = call.try_as_basic_value().expect_basic("the function gives a float").into_float_value();
    let next_results = so_far.with_lane(lane, scalar);
    let next = builder.build_int_add(lane, lane_index(x.m, 1), "").expect(IN_BLOCK);
    index.add_incoming(&[(&lane_index(x.m, 0), before), (&next, body)]);
    results.add_incoming(&[(&x.value, before), (&next_results.value, body)]);
    let count = lane_index(x.m, x.count() as u64);
    let finished = builder.build_int_compare(IntPredicate::EQ, next, count, "").expect(IN_BLOCK);
    builder.build_conditional_branch(finished, after, body).expect(IN_BLOCK);

    builder.position_at_end(after);
    next_results
}

/// A function of the C library from float to float, declared once in each module.
fn library_function<'ctx>(x: Lanes<'ctx, '_>, name: &str) -> FunctionValue<'ctx> {
    if let Some(function) = x.m.module.get_function(name) {
        return function;
    }
    let scalar = x.precision.float_type(x.m);
    let function = x.m.module.add_function(name, scalar.fn_type(&[scalar.into()], false), None);
    // The code never reads `errno`, so the call neither changes memory (value 0 of `memory`) nor
    // ends the kernel.
    for attribute in ["nounwind", "willreturn", "memory"] {
        let kind = Attribute::get_named_enum_kind_id(attribute);
        function.add_attribute(AttributeLoc::Function, x.m.context.create_enum_attribute(kind, 0));
    }
    function
}

/// Marks the taken side of a branch as unlikely, so that the backend moves it out of the way.
fn mark_unlikely<'ctx>(x: Lanes<'ctx, '_>, branch: InstructionValue<'ctx>) {
    let context = x.m.context;
    let weight = |w| BasicMetadataValueEnum::from(context.i32_type().const_int(w, false));
    let weights = [context.metadata_string("branch_weights").into(), weight(1), weight(2000)];
    let kind = context.get_kind_id("prof");
    branch.set_metadata(context.metadata_node(&weights), kind).expect("a branch takes metadata");
}
