//! Narrow integers that several lanes compute in one word: all results are right, and the text
//! computes them in words.

use std::collections::BTreeMap;

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::Inputs;
use tilewright_ir::{DType, LoopNest, Number, Program, Tensor, verify_nest};
use tilewright_runtime::gpu::{GpuError, compile_cuda};
use tilewright_schedule::{apply, text};
use tilewright_target::{Gpu, GpuApi};

use crate::case::{on_every_device, program, skip};
use crate::scheduled::{Case, agrees, nest_agrees_on, nest_of};

/// Values of one type, each with the function of words that computes it; none for plain operators.
type Values = &'static [(&'static str, &'static str)];

/// Values of `a(i)` and `b(i)`, of every narrow type.
const EVERY_TYPE: Values = &[
    ("a(i) + b(i)", "add"),
    ("a(i) - b(i)", "sub"),
    ("min(a(i), b(i))", "min"),
    ("max(a(i), b(i))", "max"),
    ("max(a(i), 9)", "max"),
    ("a(i) & b(i)", ""),
    ("a(i) | 5", ""),
    ("a(i) ^ b(i)", ""),
    ("~a(i)", ""),
    ("-a(i)", "sub"),
    ("a(i) << 3", ""),
    ("a(i) % 16", ""),
    ("absd(a(i), b(i))", "distance"),
    ("abs(a(i) | 1)", ""),
    ("avg_up(a(i), b(i))", "average_up"),
    ("avg_down(a(i), b(i))", "average_down"),
    ("a(i) > b(i) ? a(i) : b(i) + 1", "select"),
    ("a(i) <= 7 ? a(i) : 0", "less_equal"),
    ("a(i) == b(i) || a(i) < 3 ? 1 : 2", "equal"),
    ("a(i) != b(i) && !(a(i) >= 3) ? b(i) : 77", "not_equal"),
    ("max(s > 3 ? a(i) : b(i), a(i) ^ b(i))", "max"),
    ("max(a(i), c(2))", "max"),
    ("(a(i) >> 3) + (b(i) / 4)", ""),
];

const BYTES: Values = &[
    ("uint8((int16(a(i)) + b(i) + 1) / 2)", "average_up_uint8"),
    ("uint8((int(a(i)) + b(i)) >> 1)", "average_down_uint8"),
    ("uint8(abs(int16(a(i)) - b(i)))", "distance_uint8"),
    ("uint8(min(int16(a(i)) + b(i), 255))", "saturated_sum_uint8"),
    ("uint8(max(int16(a(i)) - b(i), 0))", "saturated_difference_uint8"),
    ("a(i) > b(i) ? a(i) - b(i) : 0", "saturated_difference_uint8"),
    ("uint8(min(max(int(a(i)) - b(i), 0), 255))", "saturated_difference_uint8"),
    // Sums that wrap are no saturated sums and no averages.
    ("min(a(i) + b(i), 200)", "add_uint8"),
    ("(a(i) + b(i) + 1) / 2", "add_uint8"),
    ("255 - a(i)", ""),
    ("a(i) / 7", "quotient_uint16"),
    ("uint8((uint16(a(i)) + b(i) + 255) / 3)", "quotient_uint16"),
    ("uint8((uint16(a(i)) + 2 * uint16(b(i)) + a(i) + 2) / 4)", "even_uint8"),
    ("uint8(clamp(2 * int16(a(i)) - b(i), 0, 255))", "min_"),
    ("uint8((int16(a(i)) - b(i)) >> 2)", "shift_right_int16"),
    ("uint8(int16(a(i)) * b(i) / 256)", "even_uint8"),
    ("uint8(int(a(i)) * 3 + 7 * int(b(i)))", "even_uint8"),
    ("uint8(abs(2 * int16(a(i)) - 3 * int16(b(i))))", "distance_uint16"),
];

const SIGNED_BYTES: Values = &[
    ("a(i) >> 2", "shift_right_int8"),
    ("a(i) / 2", "shift_right_int8"),
    ("abs(a(i))", "abs_int8"),
    ("int8((int16(a(i)) + b(i) + 1) >> 1)", "average_up_int8"),
    ("int8((int(a(i)) + b(i)) / 2)", "average_down_int8"),
    ("int8(abs(int16(a(i)) - b(i)))", "distance_int8"),
    ("int8(clamp(int16(a(i)) + b(i), -128, 127))", "saturated_sum_int8"),
    ("int8(max(min(int16(a(i)) - b(i), 127), -128))", "saturated_difference_int8"),
    ("int8(clamp(int16(a(i)) + b(i), -100, 127))", "max_int16"),
    ("int8((3 * int16(a(i)) - b(i)) / 8)", "widen_first_int8"),
];

const HALVES: Values = &[
    ("a(i) * b(i)", "mul_uint16"),
    ("a(i) * 5", "mul_uint16"),
    ("uint16((int(a(i)) + b(i) + 1) / 2)", "average_up_uint16"),
    ("uint16(min(int(a(i)) + b(i), 65535))", "saturated_sum_uint16"),
    ("uint16(max(int(a(i)) - b(i), 0))", "saturated_difference_uint16"),
    ("uint16(abs(int(a(i)) - b(i)))", "distance_uint16"),
    ("uint16((a(i) & 255) * 3 + (b(i) >> 8))", ""),
    ("65535 - a(i)", ""),
    ("(a(i) & 8191) / 9", "quotient_uint16"),
];

const SIGNED_HALVES: Values = &[
    ("a(i) * b(i)", "mul_uint16"),
    ("abs(a(i))", "abs_int16"),
    ("a(i) >> 5", "shift_right_int16"),
    ("int16((int(a(i)) + b(i)) / 2)", "average_down_int16"),
    ("int16(clamp(int(a(i)) + b(i), -32768, 32767))", "saturated_sum_int16"),
    ("int16(clamp(int(a(i)) - b(i), -32768, 32767))", "saturated_difference_int16"),
    ("int16(abs(int(a(i)) - b(i)))", "distance_int16"),
];

/// Random values of a type, from the elements of four tensors and from neighbours.
struct Generator(u64);

impl Generator {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    fn pick<'t>(&mut self, from: &[&'t str]) -> &'t str {
        from[self.below(from.len() as u64) as usize]
    }

    fn value(&mut self, dtype: DType, depth: u64) -> String {
        if depth == 0 {
            let element =
                self.pick(&["a(i)", "a(i + 1)", "b(i)", "b(i + 3)", "c(i)", "c(i + 1)", "d(i)", "s"]);
            return match self.below(4) {
                0 => format!("{dtype}({})", self.below(128)),
                _ => format!("{dtype}({element})"),
            };
        }
        let other = self.pick(&["uint8", "int8", "uint16", "int16", "int32"]);
        let other = DType::ALL.into_iter().find(|dtype| dtype.name() == other).unwrap();
        let part = |own: &mut Self, dtype| {
            let depth = own.below(depth);
            own.value(dtype, depth)
        };
        let (x, y) = (part(self, dtype), self.value(dtype, depth - 1));
        match self.below(9) {
            0 | 1 => format!("({x} {} {y})", self.pick(&["+", "-", "*", "&", "|", "^"])),
            2 => format!("{}({x}, {y})", self.pick(&["min", "max", "avg_up", "avg_down", "absd"])),
            3 => {
                let comparison = self.pick(&["<", "<=", ">", ">=", "==", "!="]);
                let (left, right) = (part(self, other), part(self, other));
                format!("({left} {comparison} {right} ? {x} : {y})")
            }
            4 => format!("({y} {} {})", self.pick(&["<<", ">>"]), self.below(9)),
            5 => format!("({y} {} {})", self.pick(&["/", "%"]), 1 << self.below(6)),
            6 => format!("{dtype}(({other}({x}) + {other}({y}) + {}) / 2)", self.below(3)),
            7 => {
                let (low, high) = self.limits();
                format!("{dtype}(clamp(int32({x}) {} int32({y}), {low}, {high}))", self.pick(&["+", "-"]))
            }
            _ => format!("{dtype}({})", self.value(other, depth - 1)),
        }
    }

    fn limits(&mut self) -> (i64, i64) {
        [(0, 255), (-128, 127), (0, 65535), (-32768, 32767), (-5, 100)][self.below(5) as usize]
    }
}

/// A program of random values, and its schedule.
fn random_program(seed: u64) -> (Program, String) {
    let mut generator = Generator(seed);
    let types: Vec<DType> = (0..6).map(|_| TYPES[generator.below(4) as usize]).collect();
    let declared = types.iter().enumerate().map(|(at, dtype)| format!("{dtype}(N) r{at}"));
    let declared = declared.collect::<Vec<_>>().join(", ");
    let statements = types.iter().enumerate().map(|(at, dtype)| {
        let depth = 1 + generator.below(4);
        format!("r{at}(i) = {} where i in 0:N\n", generator.value(*dtype, depth))
    });
    let statements: String = statements.collect();
    let source = format!(
        "def f(uint8(M) a, int8(M) b, uint16(M) c, int16(M) d, uint8 s) -> ({declared}) {{ {statements} }}"
    );
    let steps = (0..types.len()).map(|at| steps(&format!("r{at}"), "i", 4 << (seed % 3))).collect();
    (program(&source, &[("N", 256), ("M", 264)]), steps)
}

/// Neighbours on both sides, in loops over all but the first and the last elements.
const STENCIL: Case = Case {
    source: "def f(uint8(H, N) x, int16(N) y) -> (dilated, smooth, gradient) {
        dilated(r, i) = max(max(x(r, i), x(r, i + 1)), x(r, i + 2)) where r in 0:H, i in 0:(N - 16)
        smooth(r, i) = uint8((int(x(r, i + 3)) + 2 * int(x(r, i + 4)) + x(r, i + 5) + 2) / 4) where r in 0:H, i in 0:(N - 16)
        gradient(i) = y(i + 2) - y(i + 1) where i in 0:(N - 16) }",
    sizes: &[("H", 3), ("N", 144)],
    steps: "split dilated.i -> o, v:16\nbind dilated.r -> block.x\nbind dilated.o -> thread.x\nvectorize dilated.v
        split smooth.i -> o, v:4\nbind smooth.r -> block.x\nbind smooth.o -> thread.x\nvectorize smooth.v
        split gradient.i -> o, v:8\nbind gradient.o -> thread.x\nvectorize gradient.v",
};

/// Conversions between all narrow types, truth values, sums in memory, and two lanes.
const MIXED: Case = Case {
    source: "def f(uint8(N) a, int8(N) b, uint16(N) c, int16(N) d, bool(N) e, uint8(3, N) g) -> (p, q, r, s, t, u, v, w, z, h, l) {
        p(i) = uint16(a(i)) + c(i)
        q(i) = int16(b(i)) * d(i)
        r(i) = uint8(c(i) >> 8) ^ uint8(d(i))
        s(i) = a(i) > 100 && !e(i)
        t(i) = e(i) ? a(i) : uint8(b(i)) + 1
        u(i) = uint8(e(i)) + uint8(c(i) > 30000)
        v(i) max=! g(k, i)
        w(i) +=! g(k, i)
        z(i) = d(i) < 0 ? -d(i) : d(i) + int16(a(i) == 3)
        h(i) = int16(uint8(d(i))) + d(i)
        l(i) = max(d(i) > 9 ? d(i) : 9, 3 - d(i)) }",
    sizes: &[("N", 256)],
    steps: "split p.i -> o, v:16\nbind p.o -> thread.x\nvectorize p.v
        split q.i -> o, v:8\nbind q.o -> thread.x\nvectorize q.v
        split r.i -> o, v:16\nbind r.o -> thread.x\nvectorize r.v
        split s.i -> o, v:8\nbind s.o -> thread.x\nvectorize s.v
        split t.i -> o, v:4\nbind t.o -> thread.x\nvectorize t.v
        split u.i -> o, v:4\nbind u.o -> thread.x\nvectorize u.v
        split v.i -> o, v:16\nreorder v.o, v.k, v.v\nbind v.o -> thread.x\nvectorize v.v
        split w.i -> o, v:16\nreorder w.o, w.k, w.v\nbind w.o -> thread.x\nvectorize w.v
        split z.i -> o, v:4\nbind z.o -> thread.x\nvectorize z.v
        split h.i -> o, v:2\nbind h.o -> thread.x\nvectorize h.v
        split l.i -> o, v:2\nbind l.o -> thread.x\nvectorize l.v",
};

/// Values that are computed lane by lane: elements behind conditions on lanes, subscripts of data,
/// quotients by values, 32-bit sums whose bits are all needed, and words that would
/// end after their tensor.
const APART: Case = Case {
    source: "def f(uint8(N) a, uint8(256) table, uint8(M) m) -> (p, q, r, s, t) {
        p(i) = a(i) + (i > 0 ? a(i - 1) : 0)
        q(i) = a(i) + table(a(i))
        r(i) = a(i) / table(3) + 1
        s(i) = uint8((int(a(i)) * 300 + 1) >> 9)
        t(i) = m(i + 1) + m(i) where i in 0:(M - 3) }",
    sizes: &[("N", 64), ("M", 67)],
    steps: "split p.i -> o, v:4\nbind p.o -> thread.x\nvectorize p.v
        split q.i -> o, v:4\nbind q.o -> thread.x\nvectorize q.v
        split r.i -> o, v:4\nbind r.o -> thread.x\nvectorize r.v
        split s.i -> o, v:4\nbind s.o -> thread.x\nvectorize s.v
        split t.i -> o, v:4\nbind t.o -> thread.x\nvectorize t.v",
};

/// A tile in shared memory, of which each thread reads neighbours.
const TILE: Case = Case {
    source: "def f(uint8(N, N) x) -> (y) {
        y(i, j) = avg_up(x(i, j), x(i + 1, j)) where i in 0:(N - 1), j in 0:N }",
    sizes: &[("N", 64)],
    steps: "split y.i -> ib, it:9\nsplit y.j -> jt, ji:8
        bind y.ib -> block.x\nbind y.it -> thread.y\nbind y.jt -> thread.x\nvectorize y.ji
        promote x at y.ib -> xs shared
        bind xs.l0 -> thread.y\nsplit xs.l1 -> lo, v:8\nbind xs.lo -> thread.x\nvectorize xs.v",
};

/// Every second element, from every place in a word.
const HALVED: Case = Case {
    source: "def f(uint8(H, W) x, int16(W) y) -> (p, q, r, s, t) {
        p(i, j) = avg_up(avg_up(x(2*i, 2*j), x(2*i, 2*j + 1)), avg_up(x(2*i + 1, 2*j), x(2*i + 1, 2*j + 1)))
        q(j) = max(y(2*j), y(2*j + 1)) where j in 0:(W / 2)
        r(j) = x(0, 2*j + 2) ^ x(1, 2*j + 3) where j in 0:(W / 2 - 4)
        s(j) = uint8(y(2*j + 3) >> 4) where j in 0:(W / 2 - 4)
        t(i, j) = uint8((uint16(x(i, 2*j)) + x(i, 2*j + 1) + x(i, 2*j + 2)) / 3) where i in 0:H, j in 0:(W / 2 - 4) }",
    sizes: &[("H", 6), ("W", 136)],
    steps: "split p.j -> o, v:4\nbind p.i -> block.x\nbind p.o -> thread.x\nvectorize p.v
        split q.j -> o, v:4\nbind q.o -> thread.x\nvectorize q.v
        split r.j -> o, v:16\nbind r.o -> thread.x\nvectorize r.v
        split s.j -> o, v:8\nbind s.o -> thread.x\nvectorize s.v
        split t.j -> o, v:8\nbind t.i -> block.x\nbind t.o -> thread.x\nvectorize t.v",
};

const CASES: [&Case; 5] = [&STENCIL, &MIXED, &APART, &TILE, &HALVED];

fn values(dtype: DType) -> Vec<(&'static str, &'static str)> {
    let own = match dtype {
        DType::UInt8 => BYTES,
        DType::Int8 => SIGNED_BYTES,
        DType::UInt16 => HALVES,
        _ => SIGNED_HALVES,
    };
    EVERY_TYPE.iter().chain(own).copied().collect()
}

const TYPES: [DType; 4] = [DType::UInt8, DType::Int8, DType::UInt16, DType::Int16];

/// A vector loop over the last index of a result, in threads and blocks.
fn steps(result: &str, index: &str, lanes: i64) -> String {
    format!(
        "split {result}.{index} -> o, v:{lanes}\nsplit {result}.o -> ob, ot:64\nbind {result}.ob -> block.x
        bind {result}.ot -> thread.x\nvectorize {result}.v\n"
    )
}

fn nest_with(program: &Program, steps: &str, gpu: &Gpu) -> LoopNest {
    let parsed = text::parse(steps);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let nest = apply(program, &parsed.schedule, gpu).unwrap_or_else(|refusal| panic!("{refusal}"));
    verify_nest(&nest).unwrap();
    nest
}

/// A program with one result for each value, and its schedule.
fn of_values(dtype: DType, values: &[String], lanes: i64, count: usize) -> (Program, String) {
    let results: Vec<String> = (0..values.len()).map(|at| format!("r{at}")).collect();
    let statements =
        results.iter().zip(values).map(|(result, value)| format!("{result}(i) = {value} where i in 0:N\n"));
    let source = format!(
        "def f({dtype}(N) a, {dtype}(N) b, {dtype}(4) c, float s) -> ({}) {{ {} }}",
        results.iter().map(|result| format!("{dtype}(N) {result}")).collect::<Vec<_>>().join(", "),
        statements.collect::<String>()
    );
    let steps = results.iter().map(|result| steps(result, "i", lanes)).collect();
    (program(&source, &[("N", count as i64)]), steps)
}

/// All pairs of bytes, or all pairs of some halfwords.
fn inputs(dtype: DType) -> (usize, Inputs) {
    let (low, high) = dtype.integer_bounds().unwrap();
    let numbers: Vec<i128> = match dtype.bits() {
        8 => (low..=high).collect(),
        _ => {
            let around = |center: i128| (center - 4).max(low)..=(center + 4).min(high);
            let ends = [low, low / 2, -256, 0, 128, 255, high / 3, high / 2, high];
            let mut numbers: Vec<i128> = ends.into_iter().flat_map(around).collect();
            numbers.truncate(numbers.len() / 4 * 4);
            numbers
        }
    };
    let pairs: Vec<[i128; 2]> = numbers.iter().flat_map(|a| numbers.iter().map(move |b| [*a, *b])).collect();
    let tensor = |numbers: &[i128]| {
        let mut made = Tensor::zeros(dtype, &[numbers.len()]).unwrap();
        numbers.iter().enumerate().for_each(|(at, number)| made.set(at, Number::Int(*number).convert(dtype)));
        made
    };
    let side = |side: usize| tensor(&pairs.iter().map(|pair| pair[side]).collect::<Vec<_>>());
    let tensors =
        [("a".to_owned(), side(0)), ("b".to_owned(), side(1)), ("c".to_owned(), tensor(&[1, 7, 100, 3]))];
    let scalars = [("s".to_owned(), Number::Float(5.0))];
    (
        pairs.len(),
        Inputs { tensors: tensors.into(), scalars: scalars.into_iter().collect::<BTreeMap<_, _>>() },
    )
}

fn text_of(nest: &LoopNest, gpu: &Gpu) -> String {
    let code = gpu_code(verify_nest(nest).unwrap(), gpu, "").unwrap();
    code.text.split_whitespace().collect::<Vec<&str>>().join(" ")
}

fn opencl() -> Gpu {
    Gpu { api: GpuApi::OpenCl, ..Gpu::h200() }
}

/// Checks that the compiler for CUDA accepts a nest, for devices with and without packed
/// instructions.
fn compiles(nest: &LoopNest) {
    for architecture in [80, 90] {
        let gpu = Gpu { architecture, ..Gpu::h200() };
        let code = gpu_code(verify_nest(nest).unwrap(), &gpu, "a test").unwrap();
        match compile_cuda(&code.text, architecture) {
            Err(GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
            Err(error) => panic!("{error}\n{}", code.text),
            Ok(cubin) => assert!(cubin.bytes.starts_with(b"\x7fELF")),
        }
    }
}

#[test]
fn every_value_is_computed_in_words() {
    for dtype in TYPES {
        for (value, function) in values(dtype) {
            let (program, steps) = of_values(dtype, &[value.to_owned()], 8, 256);
            for gpu in [Gpu::h200(), opencl()] {
                let text = text_of(&nest_with(&program, &steps, &gpu), &gpu);
                assert!(!text.contains(".at["), "{dtype} {value}:\n{text}");
                let name = format!("tw_packed_{function}");
                assert!(function.is_empty() || text.contains(&name), "{dtype} {value}: no {name}\n{text}");
            }
        }
    }
}

#[test]
fn every_value_is_right() {
    on_every_device(|device| {
        for dtype in TYPES {
            let (count, inputs) = inputs(dtype);
            let values: Vec<String> = values(dtype).iter().map(|(value, _)| (*value).to_owned()).collect();
            let (program, steps) = of_values(dtype, &values, 16, count);
            nest_agrees_on(device, &program, &nest_with(&program, &steps, device.gpu()), inputs);
        }
    });
}

#[test]
fn every_value_compiles_as_cuda() {
    for dtype in TYPES {
        let values: Vec<String> = values(dtype).iter().map(|(value, _)| (*value).to_owned()).collect();
        let (program, steps) = of_values(dtype, &values, 8, 1024);
        compiles(&nest_with(&program, &steps, &Gpu::h200()));
    }
}

#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part}:\n{text}");
    }
}

#[test]
fn neighbours_share_the_words_of_memory() {
    let gpu = Gpu::h200();
    let cuda = text_of(&nest_of(&STENCIL, &gpu).1, &gpu);
    has(
        &cuda,
        &[
            "const uint4 x_words = *(const uint4*)&x[144 * r + 16 * o]; \
             const unsigned int x_words_1 = *(const unsigned int*)&x[144 * r + 16 * o + 16];",
            "tw_packed_widen_first_uint8(x_words.x >> 8 | x_words.y << 24)",
            "x_words.w >> 16 | x_words_1 << 16",
            "const uint4 y_words = *(const uint4*)&y[8 * o_2]; \
             const unsigned int y_words_1 = *(const unsigned int*)&y[8 * o_2 + 8];",
            "tw_packed_sub_uint16(y_words.y, y_words.x >> 16 | y_words.y << 16)",
        ],
    );
    assert!(!cuda.contains(".at["), "{cuda}");
}

#[test]
fn narrow_types_are_converted_in_words() {
    for gpu in [Gpu::h200(), opencl()] {
        let text = text_of(&nest_of(&MIXED, &gpu).1, &gpu);
        assert!(!text.contains(".at["), "{text}");
        has(
            &text,
            &["tw_packed_add_uint16(tw_packed_widen_first_uint8(a_words.x), c_words.x)", "& 0x01010101u"],
        );
    }
}

#[test]
fn other_values_are_computed_lane_by_lane() {
    let gpu = Gpu::h200();
    let cuda = text_of(&nest_of(&APART, &gpu).1, &gpu);
    assert!(!cuda.contains("tw_packed"), "{cuda}");
}

#[test]
fn tiles_in_shared_memory_are_read_in_words() {
    let gpu = Gpu::h200();
    let cuda = text_of(&nest_of(&TILE, &gpu).1, &gpu);
    has(
        &cuda,
        &[
            "const uint2 xs_words = *(const uint2*)&xs[",
            "tw_packed_average_up_uint8(xs_words.x, xs_words_1.x)",
        ],
    );
}

#[test]
fn every_second_element_is_taken_from_words() {
    for gpu in [Gpu::h200(), opencl()] {
        let text = text_of(&nest_of(&HALVED, &gpu).1, &gpu);
        assert!(!text.contains(".at["), "{text}");
        has(
            &text,
            &[
                "tw_packed_average_up_uint8(tw_packed_even_uint8(x_words.x, x_words.y), \
                 tw_packed_odd_uint8(x_words.x, x_words.y))",
                "tw_packed_max_int16(tw_packed_even_uint16(y_words.x, y_words.y), tw_packed_odd_uint16(",
                "tw_packed_odd_uint8(x_words_3.x >> 16 | x_words_3.y << 16,",
            ],
        );
    }
}

#[test]
fn long_values_are_planned_once() {
    let chain = (0..40).fold("a(i)".to_owned(), |inner, at| format!("min(max({inner}, b(i) - {at}), {at})"));
    let (program, steps) = of_values(DType::UInt8, &[chain], 16, 1024);
    let gpu = Gpu::h200();
    has(&text_of(&nest_with(&program, &steps, &gpu), &gpu), &["tw_packed_max_uint16"]);
}

#[test]
fn words_come_out_right() {
    on_every_device(|device| {
        for case in CASES {
            agrees(device, case);
        }
    });
}

#[test]
fn words_compile_as_cuda() {
    for case in CASES {
        compiles(&nest_of(case, &Gpu::h200()).1);
    }
}

#[test]
fn random_values_come_out_right() {
    on_every_device(|device| {
        for seed in 0..12 {
            let (program, steps) = random_program(seed);
            let inputs = tilewright_interp::seed::inputs(&program, seed).unwrap();
            nest_agrees_on(device, &program, &nest_with(&program, &steps, device.gpu()), inputs);
        }
    });
}

#[test]
fn most_random_values_are_computed_in_words() {
    let gpu = Gpu::h200();
    let (mut packed, mut apart) = (0, 0);
    for seed in 0..60 {
        let (program, steps) = random_program(seed);
        let text = text_of(&nest_with(&program, &steps, &gpu), &gpu);
        for kernel in text.split("__global__").skip(1) {
            if kernel.contains("_words") { packed += 1 } else { apart += 1 }
        }
    }
    assert!(packed > apart, "{packed} in words, {apart} lane by lane");
}
