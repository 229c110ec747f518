//! The operations on words of narrow lanes, with their functions in each language and their costs.
//!
//! CUDA has a function for most of them. OpenCL has vectors of narrow integers, and a word is read
//! as one. Operations on bits are those of C on the whole word and need no function here.

use tilewright_ir::{BinaryOp, DType};

use super::Lanes;
use crate::c_family::dialect::Dialect;
use crate::c_family::prelude::Helper;

/// An operation on the lanes of words, all in the same way. The type of a lane decides between
/// signed and unsigned numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::c_family) enum Operation {
    /// The sum, which wraps.
    Add,
    /// The difference, which wraps.
    Sub,
    /// The product, which wraps; of halfwords only.
    Mul,
    Min,
    Max,
    /// The absolute value; that of the least number wraps.
    Abs,
    /// The distance of two numbers, as an unsigned number.
    Distance,
    /// The average, rounded up.
    AverageUp,
    /// The average, rounded down.
    AverageDown,
    /// The sum, limited to the numbers of the type.
    SaturatedSum,
    /// The difference, limited to the numbers of the type.
    SaturatedDifference,
    /// A comparison. The lane is all ones where it holds, and 0 elsewhere.
    Compare(BinaryOp),
    /// The lanes of the second operand where those of the first are all ones, and of the third
    /// where they are 0.
    Select,
    /// A shift of signed numbers to lower places, by a number.
    ShiftRight,
    /// The first two bytes of a word as two halfwords.
    WidenFirst,
    /// The last two bytes of a word as two halfwords.
    WidenLast,
    /// The lanes of two words with even numbers. Of bytes, these are the low bytes of halfwords.
    Even,
    /// The lanes of two words with odd numbers.
    Odd,
    /// The quotient of unsigned halfwords by a number, of which the second operand is 2**16 parts
    /// rounded up.
    Quotient,
}

impl Operation {
    /// The number of instructions for a word, as seen in the machine code for sm_90 (CUDA 13.4), or
    /// for sm_80, which has no instructions for sums, minima and maxima of halfwords. Lane by lane,
    /// an operation takes one or two instructions for each lane, and each operand one more that
    /// extracts the lane.
    pub(super) fn cost(self, dtype: DType, has_packed_halves: bool) -> u32 {
        let is_signed = dtype.is_signed_integer();
        let of_width = |bytes: u32, halves: u32| if dtype.bits() == 8 { bytes } else { halves };
        let of_sign = |unsigned: u32, signed: u32| if is_signed { signed } else { unsigned };
        let halves = |own: u32, emulated: u32| if has_packed_halves { own } else { emulated };
        match self {
            // VIADD.16x2; bytes are added without their first bits, which an exclusive or adds.
            Operation::Add | Operation::Sub => of_width(5, halves(1, 4)),
            // VIMNMX.U16x2 and VIMNMX.S16x2; bytes compare and select.
            Operation::Min | Operation::Max => of_width(6, halves(1, 5)),
            // Two products, shifts and PRMT. The product with a number needs one shift less.
            Operation::Mul => 4,
            // VIADDMNMX.S16x2.
            Operation::Abs => of_width(4, halves(2, 9)),
            // VABSDIFF4.U8; halfwords subtract the minimum from the maximum.
            Operation::Distance => of_width(of_sign(1, 3), halves(3, 13)),
            Operation::AverageUp => of_sign(4, 5),
            Operation::AverageDown => of_sign(3, 4),
            Operation::SaturatedSum | Operation::SaturatedDifference => {
                of_width(of_sign(7, 10), halves(of_sign(4, 6), of_sign(8, 9)))
            }
            Operation::Compare(_) => 5,
            Operation::ShiftRight => of_width(5, halves(4, 6)),
            // Two products, and LOP3, SHF and PRMT around them.
            Operation::Quotient => 5,
            // LOP3 and PRMT.
            Operation::Select
            | Operation::WidenFirst
            | Operation::WidenLast
            | Operation::Even
            | Operation::Odd => 1,
        }
    }

    /// The part of the function's name that names the operation.
    pub(in crate::c_family) fn name(self) -> &'static str {
        match self {
            Operation::Add => "add",
            Operation::Sub => "sub",
            Operation::Mul => "mul",
            Operation::Min => "min",
            Operation::Max => "max",
            Operation::Abs => "abs",
            Operation::Distance => "distance",
            Operation::AverageUp => "average_up",
            Operation::AverageDown => "average_down",
            Operation::SaturatedSum => "saturated_sum",
            Operation::SaturatedDifference => "saturated_difference",
            Operation::Compare(op) => match op {
                BinaryOp::Equal => "equal",
                BinaryOp::NotEqual => "not_equal",
                BinaryOp::Less => "less",
                BinaryOp::LessEqual => "less_equal",
                BinaryOp::Greater => "greater",
                _ => "greater_equal",
            },
            Operation::Select => "select",
            Operation::ShiftRight => "shift_right",
            Operation::WidenFirst => "widen_first",
            Operation::WidenLast => "widen_last",
            Operation::Even => "even",
            Operation::Odd => "odd",
            Operation::Quotient => "quotient",
        }
    }

    fn parameters(self) -> &'static str {
        match self {
            Operation::Abs | Operation::WidenFirst | Operation::WidenLast => "unsigned int a",
            Operation::Select => "unsigned int mask, unsigned int a, unsigned int b",
            Operation::ShiftRight => "unsigned int a, int n",
            Operation::Quotient => "unsigned int a, unsigned int m",
            _ => "unsigned int a, unsigned int b",
        }
    }
}

/// The definition of the function of an operation on lanes of a type.
pub(in crate::c_family) fn function(dialect: Dialect, operation: Operation, dtype: DType) -> String {
    let (head, name) = (dialect.helper_head(), Helper::Packed(operation).name(dtype));
    let lanes = if dtype.bits() == 8 { Lanes::Bytes } else { Lanes::Halves };
    let body = match (operation, dialect) {
        (Operation::Quotient, _) => {
            "return ((a & 0xffffu) * m >> 16) | ((a >> 16) * m & 0xffff0000u);".to_owned()
        }
        (Operation::Select, _) => "return (mask & a) | (~mask & b);".to_owned(),
        (_, Dialect::Cuda) => cuda(operation, lanes, dtype.is_signed_integer()),
        (_, Dialect::OpenCl) => {
            format!("return as_uint({});", opencl(operation, lanes, dtype.is_signed_integer()))
        }
    };
    format!("{head} unsigned int {name}({}) {{ {body} }}\n", operation.parameters())
}

fn cuda(operation: Operation, lanes: Lanes, is_signed: bool) -> String {
    let count = lanes.per_word();
    let sign = if is_signed { "s" } else { "u" };
    let of_both = |name: &str| format!("return __v{name}{count}(a, b);");
    match operation {
        Operation::Add => of_both("add"),
        Operation::Sub => of_both("sub"),
        Operation::Mul => "return __byte_perm(a * b, (a >> 16) * (b >> 16), 0x5410);".to_owned(),
        Operation::Min => of_both(&format!("min{sign}")),
        Operation::Max => of_both(&format!("max{sign}")),
        Operation::Abs if lanes == Lanes::Bytes => "return __vabs4(a);".to_owned(),
        Operation::Abs => "return __vmaxs2(a, __vadd2(~a, 0x00010001u));".to_owned(),
        Operation::Distance if lanes == Lanes::Bytes => of_both(&format!("absdiff{sign}")),
        Operation::Distance => format!("return __vsub2(__vmax{sign}2(a, b), __vmin{sign}2(a, b));"),
        // CUDA's average of signed numbers rounds away from 0.
        Operation::AverageUp => average("avgu", lanes, is_signed),
        Operation::AverageDown => average("haddu", lanes, is_signed),
        Operation::SaturatedSum => of_both(&format!("add{sign}s")),
        Operation::SaturatedDifference => of_both(&format!("sub{sign}s")),
        Operation::Compare(op) => {
            let (comparison, sign) = match op {
                BinaryOp::Equal => ("eq", ""),
                BinaryOp::NotEqual => ("ne", ""),
                BinaryOp::Less => ("lt", sign),
                BinaryOp::LessEqual => ("le", sign),
                BinaryOp::Greater => ("gt", sign),
                _ => ("ge", sign),
            };
            of_both(&format!("cmp{comparison}{sign}"))
        }
        // The sign is the greatest bit that is left, and is extended by a subtraction.
        Operation::ShiftRight => {
            let (ones, all) = (lanes.ones(), u32::MAX >> (u32::BITS - lanes.bits()));
            let sign = all / 2 + 1;
            format!(
                "const unsigned int sign = ({sign}u >> n) * {ones}u; return __vsub{count}((a >> n & ({all}u >> n) * {ones}u) ^ \
                 sign, sign);"
            )
        }
        Operation::WidenFirst if is_signed => permute("0x9180"),
        Operation::WidenLast if is_signed => permute("0xb3a2"),
        Operation::WidenFirst => "return __byte_perm(a, 0, 0x4140);".to_owned(),
        Operation::WidenLast => "return __byte_perm(a, 0, 0x4342);".to_owned(),
        Operation::Even | Operation::Odd => {
            let selector = match (lanes, operation == Operation::Even) {
                (Lanes::Bytes, true) => "0x6420",
                (Lanes::Bytes, false) => "0x7531",
                (Lanes::Halves, true) => "0x5410",
                (Lanes::Halves, false) => "0x7632",
            };
            format!("return __byte_perm(a, b, {selector});")
        }
        Operation::Select | Operation::Quotient => unreachable!("both languages have the same text"),
    }
}

/// A function for averages of unsigned numbers; signed ones are moved to unsigned ones and back.
fn average(name: &str, lanes: Lanes, is_signed: bool) -> String {
    let count = lanes.per_word();
    match is_signed {
        false => format!("return __v{name}{count}(a, b);"),
        true => {
            let least = lanes.replicated(1 << (lanes.bits() - 1));
            format!("return __v{name}{count}(a ^ {least}u, b ^ {least}u) ^ {least}u;")
        }
    }
}

/// A permutation that copies signs, which `__byte_perm` does not.
fn permute(selector: &str) -> String {
    format!("unsigned int r; asm(\"prmt.b32 %0, %1, 0, {selector};\" : \"=r\"(r) : \"r\"(a)); return r;")
}

fn opencl(operation: Operation, lanes: Lanes, is_signed: bool) -> String {
    let unsigned = if lanes == Lanes::Bytes { "uchar4" } else { "ushort2" };
    let vector = if is_signed { &unsigned[1..] } else { unsigned };
    let call = |function: &str| format!("{function}(as_{vector}(a), as_{vector}(b))");
    // Sums and products of signed vectors must not overflow.
    let wrapping = |operator: &str| format!("as_{unsigned}(a) {operator} as_{unsigned}(b)");
    match operation {
        Operation::Add => wrapping("+"),
        Operation::Sub => wrapping("-"),
        Operation::Mul => wrapping("*"),
        Operation::Min => call("min"),
        Operation::Max => call("max"),
        Operation::Abs => format!("abs(as_{vector}(a))"),
        Operation::Distance => call("abs_diff"),
        Operation::AverageUp => call("rhadd"),
        Operation::AverageDown => call("hadd"),
        Operation::SaturatedSum => call("add_sat"),
        Operation::SaturatedDifference => call("sub_sat"),
        Operation::Compare(op) => format!("as_{vector}(a) {} as_{vector}(b)", op.symbol()),
        // As in CUDA. NVIDIA's compiler for OpenCL shifts bits of the next lane into the sign of a
        // `char4` that is shifted again.
        Operation::ShiftRight => {
            let (ones, all) = (lanes.ones(), u32::MAX >> (u32::BITS - lanes.bits()));
            let sign = format!("({}u >> n) * {ones}u", all / 2 + 1);
            let shifted = format!("(a >> n & ({all}u >> n) * {ones}u) ^ {sign}");
            format!("as_{unsigned}({shifted}) - as_{unsigned}({sign})")
        }
        Operation::WidenFirst | Operation::WidenLast => {
            let half = if operation == Operation::WidenFirst { "lo" } else { "hi" };
            format!("convert_{}short2(as_{vector}(a).{half})", if is_signed { "" } else { "u" })
        }
        Operation::Even | Operation::Odd => {
            let half = if operation == Operation::Even { "even" } else { "odd" };
            format!("({unsigned})(as_{unsigned}(a).{half}, as_{unsigned}(b).{half})")
        }
        Operation::Select | Operation::Quotient => unreachable!("both languages have the same text"),
    }
}
