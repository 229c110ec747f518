//! Writes the prelude, the text before the kernels: first lines for the compiler, and helper
//! functions. A [`Helper`] computes an operation that CUDA C++ or OpenCL C lacks, or defines
//! differently from Tilewright. The text contains only the functions that kernels use.

use tilewright_ir::{DType, ReduceOp};

use super::combine::{self, Group};
use super::dialect::Dialect;
use super::integer;
use super::packed::{self, Operation};

/// A helper function. It is written once for each type that kernels call it with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Helper {
    /// The quotient, rounded toward minus infinity. A division by 0 gives 0.
    FloorDiv,
    /// The remainder, which has the sign of the divisor.
    FloorMod,
    /// The smaller of two values.
    Min,
    /// The larger of two values.
    Max,
    /// The smaller of two `short` or `int` values, which CUDA's assembler merges with no other.
    PairwiseMin,
    /// The larger of two `short` or `int` values, which CUDA's assembler merges with no other.
    PairwiseMax,
    /// The absolute value, which wraps for the least number.
    Abs,
    /// A shift to higher places by a count that may be the width or more.
    ShiftLeft,
    /// A shift to lower places by a count that may be the width or more.
    ShiftRight,
    /// The power of integers, which wraps. A negative exponent gives 0.
    Power,
    /// The quotient of a small integer by a number, given the reciprocal of the number.
    Quotient,
    /// The square of a float.
    Square,
    /// The number of bits that are set.
    Popcount,
    /// The number of zeros before the first bit that is set; the width for 0.
    Clz,
    /// The number of zeros after the last bit that is set; the width for 0.
    Ctz,
    /// The first word of Philox4x32-10.
    Philox,
    /// Whether a value is NaN.
    IsNan,
    /// A `uint64` as a subscript: the largest `int64` where the value does not fit.
    SaturatedIndex,
    /// A float as an integer, saturating; NaN gives 0.
    FromFloat,
    /// A double as an integer, saturating; NaN gives 0.
    FromDouble,
    /// A fused multiply-add where it is fast, for OpenCL.
    MultiplyAdd,
    /// A number as a float, rounded so that it can be rounded once more.
    RoundToOdd,
    /// The value of the bits of a 16-bit float.
    LoadHalf,
    /// The bits of a 16-bit float.
    StoreHalf,
    /// An asynchronous copy of this number of bytes to shared memory, for CUDA.
    CopyAsync(i64),
    /// A subscript that is checked against its extent.
    Checked,
    /// An operation on the narrow lanes of words.
    Packed(Operation),
    /// The total over a group of threads, by this operator.
    Total(ReduceOp, Group),
}

impl Helper {
    /// The name of the function for a type.
    pub(super) fn name(self, dtype: DType) -> String {
        format!("{}_{}", self.base_name(), dtype.name())
    }

    /// Returns true when the function calls another helper, which must stand before it in the text.
    pub(super) fn calls_others(self) -> bool {
        matches!(self, Helper::Total(..))
    }

    /// The name without the type.
    pub(super) fn base_name(self) -> String {
        let fixed = match self {
            Helper::FloorDiv => "tw_floor_div",
            Helper::FloorMod => "tw_floor_mod",
            Helper::Min => "tw_min",
            Helper::Max => "tw_max",
            Helper::PairwiseMin => "tw_pairwise_min",
            Helper::PairwiseMax => "tw_pairwise_max",
            Helper::Abs => "tw_abs",
            Helper::ShiftLeft => "tw_shift_left",
            Helper::ShiftRight => "tw_shift_right",
            Helper::Power => "tw_power",
            Helper::Quotient => "tw_quotient",
            Helper::Square => "tw_square",
            Helper::Popcount => "tw_popcount",
            Helper::Clz => "tw_clz",
            Helper::Ctz => "tw_ctz",
            Helper::Philox => "tw_philox",
            Helper::IsNan => "tw_is_nan",
            Helper::SaturatedIndex => "tw_index",
            Helper::FromFloat => "tw_from_float",
            Helper::FromDouble => "tw_from_double",
            Helper::MultiplyAdd => "tw_multiply_add",
            Helper::RoundToOdd => "tw_to_odd",
            Helper::LoadHalf => "tw_load_half",
            Helper::StoreHalf => "tw_store_half",
            Helper::CopyAsync(bytes) => return format!("tw_copy_async_{bytes}"),
            Helper::Checked => "tw_checked",
            Helper::Packed(operation) => return format!("tw_packed_{}", operation.name()),
            Helper::Total(op, group) => return format!("tw_{}_of_{}", op.result_noun(), group.name()),
        };
        fixed.to_owned()
    }
}

/// The first lines of the text. `doubles` says whether any value is a double.
pub(super) fn head(dialect: Dialect, doubles: bool) -> String {
    match dialect {
        Dialect::Cuda => "\
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)
"
        .to_owned(),
        Dialect::OpenCl => {
            let doubles = if doubles { "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n" } else { "" };
            format!("{doubles}#pragma OPENCL FP_CONTRACT OFF\n")
        }
    }
}

/// The definition of a helper function for a type.
pub(super) fn function(dialect: Dialect, helper: Helper, dtype: DType) -> String {
    let own = helper.name(dtype);
    let t = dialect.value_type(dtype);
    let (head, f) = (dialect.helper_head(), dialect.function_suffix(dtype));
    match helper {
        Helper::FloorDiv if dtype.is_unsigned_integer() => {
            format!("{head} {t} {own}({t} a, {t} b) {{ return b == 0 ? 0 : a / b; }}\n")
        }
        Helper::FloorMod if dtype.is_unsigned_integer() => {
            format!("{head} {t} {own}({t} a, {t} b) {{ return b == 0 ? 0 : a % b; }}\n")
        }
        Helper::FloorDiv => format!(
            "{head} {t} {own}({t} a, {t} b) {{\n  if (b == 0) return 0;\n  if (b == -1) return ({t})(0 - \
             ({wrap})a);\n  {t} q = a / b;\n  return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;\n}}\n",
            wrap = dialect.wrapping_type(dtype)
        ),
        Helper::FloorMod if dtype.is_float() => format!(
            "{head} {t} {own}({t} a, {t} b) {{\n  {t} r = fmod{f}(a, b);\n  return r != 0 && (r < 0) != (b < 0) ? r + b : \
             r;\n}}\n"
        ),
        Helper::FloorMod => format!(
            "{head} {t} {own}({t} a, {t} b) {{\n  if (b == 0 || b == -1) return 0;\n  {t} r = a % b;\n  return r != 0 && \
             (r < 0) != (b < 0) ? r + b : r;\n}}\n"
        ),
        Helper::Min => format!("{head} {t} {own}({t} a, {t} b) {{ return a < b ? a : b; }}\n"),
        Helper::Max => format!("{head} {t} {own}({t} a, {t} b) {{ return a > b ? a : b; }}\n"),
        Helper::PairwiseMin => pairwise(&own, t, "<", "lt"),
        Helper::PairwiseMax => pairwise(&own, t, ">", "gt"),
        // Narrow types are computed in 32 bits: NVIDIA's compiler wrongly assumes that its 16-bit
        // instruction gives a positive result for the least number.
        Helper::Abs if dtype.bits() < 32 => {
            format!("{head} {t} {own}({t} x) {{ int wide = x; return ({t})(wide < 0 ? -wide : wide); }}\n")
        }
        Helper::Abs => format!(
            "{head} {t} {own}({t} x) {{ return x < 0 ? ({t})(0 - ({wrap})x) : x; }}\n",
            wrap = dialect.wrapping_type(dtype)
        ),
        Helper::ShiftLeft
        | Helper::ShiftRight
        | Helper::Power
        | Helper::Popcount
        | Helper::Clz
        | Helper::Ctz
        | Helper::Philox => integer::function(dialect, helper, dtype),
        Helper::Quotient => format!(
            "{head} {t} {own}({t} x, {t} by, {t} reciprocal) {{\n  {t} rough = x * reciprocal;\n  return fma{f}(fma{f}(-rough, \
             by, x), reciprocal, rough);\n}}\n"
        ),
        Helper::Square => format!("{head} {t} {own}({t} x) {{ return x * x; }}\n"),
        Helper::IsNan => format!("{head} bool {own}({t} x) {{ return x != x; }}\n"),
        Helper::SaturatedIndex => {
            let long = dialect.value_type(DType::Int64);
            format!("{head} {long} {own}({t} x) {{ return x >> 63 ? ({long})(({t})-1 >> 1) : ({long})x; }}\n")
        }
        Helper::FromFloat | Helper::FromDouble => from_float(dialect, helper, dtype, head),
        Helper::MultiplyAdd => multiply_add(dtype, head),
        Helper::RoundToOdd => round_to_odd(dialect, dtype, head),
        Helper::LoadHalf => load_half(dialect, dtype, head),
        Helper::StoreHalf => store_half(dialect, dtype, head),
        Helper::CopyAsync(bytes) => copy_async(&own, bytes),
        // Returns the subscript, or notes the failed check's number and returns 0. Without a branch
        // and without a store to memory, compilers see which checks are the same.
        Helper::Checked => format!(
            "{head} {t} {own}({t} at, {t} extent, int* failed, int check) {{\n  bool fits = at >= 0 && at < extent;\n  \
             *failed = fits ? *failed : check;\n  return fits ? at : 0;\n}}\n"
        ),
        Helper::Packed(operation) => packed::function(dialect, operation, dtype),
        Helper::Total(op, group) => combine::function(dialect, (op, group), dtype, head),
    }
}

/// OpenCL's fused multiply-add, which devices without the instruction compute slowly. Not every
/// compiler reports that it is fast, so the runtime defines `TW_HAS_FMA` where the device has the
/// instruction. CUDA always has it.
fn multiply_add(dtype: DType, head: &str) -> String {
    let (own, t) = (Helper::MultiplyAdd.name(dtype), Dialect::OpenCl.value_type(dtype));
    let is_fast = if dtype == DType::Float64 { "FP_FAST_FMA" } else { "FP_FAST_FMAF" };
    format!(
        "#if defined({is_fast}) || defined(TW_HAS_FMA)\n{head} {t} {own}({t} a, {t} b, {t} c) {{ return fma(a, b, c); }}\n#else\n{head} {t} {own}({t} a, {t} b, \
         {t} c) {{ return a * b + c; }}\n#endif\n"
    )
}

/// Copies `bytes` bytes to shared memory asynchronously, or fills them with zeros. Only CUDA has
/// this operation.
fn copy_async(own: &str, bytes: i64) -> String {
    // A copy of 16 bytes can bypass the first-level cache.
    let through = if bytes == 16 { "cg" } else { "ca" };
    format!(
        "static __device__ __forceinline__ void {own}(void* to, const void* from, bool enabled) {{\n  unsigned int address = \
         (unsigned int)__cvta_generic_to_shared(to);\n  asm volatile(\"cp.async.{through}.shared.global [%0], [%1], {bytes}, \
         %2;\" :: \"r\"(address), \"l\"(from), \"r\"(enabled ? {bytes} : 0));\n}}\n"
    )
}

fn from_float(dialect: Dialect, helper: Helper, dtype: DType, head: &str) -> String {
    let own = helper.name(dtype);
    let t = dialect.value_type(dtype);
    let is_single = helper == Helper::FromFloat;
    let source = if is_single { "float" } else { "double" };
    if dialect == Dialect::OpenCl {
        let plain = match dtype {
            DType::UInt8 => "uchar",
            DType::UInt16 => "ushort",
            DType::UInt32 => "uint",
            DType::UInt64 => "ulong",
            _ => t,
        };
        return format!(
            "{head} {t} {own}({source} x) {{ return isnan(x) ? 0 : convert_{plain}_sat_rtz(x); }}\n"
        );
    }
    let (low, high) = dtype.integer_bounds().unwrap_or((0, 1));
    // The conversion of a float to 32 bits saturates, and gives 0 for NaN.
    match (is_single, dtype) {
        (true, DType::Int32) => {
            return format!("{head} {t} {own}(float x) {{ return __float2int_rz(x); }}\n");
        }
        (true, DType::UInt32) => {
            return format!("{head} {t} {own}(float x) {{ return __float2uint_rz(x); }}\n");
        }
        (true, _) if dtype.bits() < 32 => {
            return format!(
                "{head} {t} {own}(float x) {{\n  const int whole = __float2int_rz(x);\n  return ({t})(whole < {low} ? \
                 {low} : whole > {high} ? {high} : whole);\n}}\n"
            );
        }
        _ => {}
    }
    let literal = |value: i128| match dtype.bits() {
        64 if dtype.is_unsigned_integer() => format!("{value}ULL"),
        64 if value < -(i64::MAX as i128) => "(-9223372036854775807LL - 1)".to_owned(),
        64 => format!("{value}LL"),
        32 if dtype.is_unsigned_integer() => format!("{value}u"),
        32 if value < -(i32::MAX as i128) => "(-2147483647 - 1)".to_owned(),
        _ => value.to_string(),
    };
    let bound = |value: i128| {
        let exact = value as f64;
        if is_single { format!("{exact:.1}f") } else { format!("{exact:.1}") }
    };
    format!(
        "{head} {t} {own}({source} x) {{\n  if (x != x) return 0;\n  if (x >= {high_bound}) return {high};\n  if (x <= \
         {low_bound}) return {low};\n  return ({t})x;\n}}\n",
        high_bound = bound(high),
        low_bound = bound(low),
        high = literal(high),
        low = literal(low),
    )
}

/// Converts a number to a float by truncation, and sets the last bit where truncation lost
/// something. Rounding the result to 16 bits gives the same as rounding the number itself. Rounding
/// twice to nearest does not.
fn round_to_odd(dialect: Dialect, dtype: DType, head: &str) -> String {
    let own = Helper::RoundToOdd.name(dtype);
    let t = dialect.value_type(dtype);
    let cut = match (dialect, dtype) {
        (Dialect::OpenCl, _) => "convert_float_rtz",
        (Dialect::Cuda, DType::Int32) => "__int2float_rz",
        (Dialect::Cuda, DType::UInt32) => "__uint2float_rz",
        (Dialect::Cuda, DType::Int64) => "__ll2float_rz",
        (Dialect::Cuda, DType::UInt64) => "__ull2float_rz",
        (Dialect::Cuda, _) => "__double2float_rz",
    };
    let odd = match dialect {
        Dialect::Cuda => "__uint_as_float(__float_as_uint(cut) | 1u)",
        Dialect::OpenCl => "as_float(as_uint(cut) | 1u)",
    };
    format!(
        "{head} float {own}({t} x) {{\n  float cut = {cut}(x);\n  return ({t})cut == x || x != x ? cut : {odd};\n}}\n"
    )
}

/// Converts the bits of a 16-bit float to a float.
fn load_half(dialect: Dialect, dtype: DType, head: &str) -> String {
    let own = Helper::LoadHalf.name(dtype);
    let body = match (dialect, dtype) {
        (Dialect::Cuda, DType::BFloat16) => "return __uint_as_float((unsigned int)bits << 16);",
        (Dialect::Cuda, _) => "float x; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(x) : \"h\"(bits)); return x;",
        (Dialect::OpenCl, DType::BFloat16) => "return as_float((unsigned int)bits << 16);",
        (Dialect::OpenCl, _) => "return vload_half(0, (const half*)&bits);",
    };
    format!("{head} float {own}(unsigned short bits) {{ {body} }}\n")
}

/// Rounds a float to a 16-bit float and returns its bits.
fn store_half(dialect: Dialect, dtype: DType, head: &str) -> String {
    let own = Helper::StoreHalf.name(dtype);
    let as_bits = if dialect == Dialect::Cuda { "__float_as_uint(x)" } else { "as_uint(x)" };
    let body = match (dialect, dtype) {
        // The compiler joins two of the instruction to one. The operations on bits take seven.
        (Dialect::Cuda, DType::BFloat16) => {
            "unsigned short bits; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x)); return bits;"
                .to_owned()
        }
        (_, DType::BFloat16) => format!(
            "unsigned int u = {as_bits}; return x != x ? (unsigned short)(u >> 16 | 64) : (unsigned short)((u + 0x7fffu + (u \
             >> 16 & 1u)) >> 16);"
        ),
        (Dialect::Cuda, _) => {
            "unsigned short bits; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(bits) : \"f\"(x)); return bits;"
                .to_owned()
        }
        (Dialect::OpenCl, _) => {
            "unsigned short bits; vstore_half_rte(x, 0, (half*)&bits); return bits;".to_owned()
        }
    };
    format!("{head} unsigned short {own}(float x) {{ {body} }}\n")
}

/// The smaller or larger of two `short` or `int` values, for CUDA. Before version 13.4, CUDA's
/// assembler merges two such operations into one instruction with three operands, and forgets that
/// one of them is negated: `max(max(a, -b), c)` becomes `max(a, b, c)`. The assembler does not
/// recognise a maximum in a comparison and a selection.
fn pairwise(name: &str, t: &str, operator: &str, comparison: &str) -> String {
    format!(
        "static __device__ __forceinline__ {t} {name}({t} a, {t} b) {{\n\
         #if __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1304\n  \
         int r;\n  \
         asm(\"{{ .reg .pred p; setp.{comparison}.s32 p, %1, %2; selp.b32 %0, %1, %2, p; }}\" : \"=r\"(r) : \"r\"((int)a), \"r\"((int)b));\n  \
         return ({t})r;\n\
         #else\n  \
         return a {operator} b ? a : b;\n\
         #endif\n}}\n"
    )
}
