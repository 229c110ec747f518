//! Tests whole kernels: threads, scratch memory, constants, scalars, and large numbers of kernels.

#![allow(clippy::unwrap_used, reason = "a test that fails says so by panicking")]

mod harness;

use harness::*;
use tilewright_codegen::{CodegenError, Object, compile, llvm_ir};
use tilewright_ir::nest::{Expr, ExprKind, LoopKind, Stmt};
use tilewright_ir::{BinaryOp, DType, LoopNest, Number, ReduceOp, verify_nest};
use tilewright_target::{Cpu, VectorInstructions};

fn cpu() -> Cpu {
    Cpu { cores: 1, vectors: VectorInstructions::Baseline, caches: vec![32 << 10] }
}

/// Processes rows in parallel. Each row goes through two scratch buffers of the thread and one of
/// the whole kernel.
#[test]
fn threads_have_scratch_of_their_own() {
    let mut b = Builder::new();
    let (input, out) = (b.argument(DType::Float32, &[9, 33]), b.argument(DType::Float32, &[9, 33]));
    let factor = b.scalar(DType::Float32);
    let shared = b.scratch(DType::Float32, &[33]);
    let (first, second) = (b.scratch(DType::Float32, &[33]), b.scratch(DType::Float32, &[33]));
    let (s, i, j, k, l) = (b.var("s"), b.var("i"), b.var("j"), b.var("k"), b.var("l"));
    let one = Stmt::For(tilewright_ir::nest::For {
        var: s,
        extent: c(33),
        kind: LoopKind::Serial,
        body: vec![set(shared, &[v(s)], index(v(s)).cast(DType::Float32))],
    });
    let scaled = binary(BinaryOp::Mul, b.load(input, &[v(i), v(j)]), factor);
    let moved = binary(BinaryOp::Add, b.load(first, &[c(32).sub(&v(k))]), b.load(shared, &[v(k)]));
    let body = vec![
        each(j, 33, LoopKind::Serial, vec![set(first, &[v(j)], scaled)]),
        allocate(
            second,
            vec![
                each(k, 33, LoopKind::Serial, vec![set(second, &[v(k)], moved)]),
                each(l, 33, LoopKind::Vector, vec![set(out, &[v(i), v(l)], b.load(second, &[v(l)]))]),
            ],
        ),
    ];
    let rows = each(i, 9, LoopKind::Parallel, vec![allocate(first, body)]);
    let kernel = b.compile(VectorInstructions::Baseline, vec![allocate(shared, vec![one, rows])]);
    assert_eq!(kernel.kernel.scratch_bytes(), 192);
    let mut input = small(9 * 33, 5);
    let wanted: Vec<f32> =
        (0..9 * 33).map(|at| input[at / 33 * 33 + 32 - at % 33] * 2.5 + (at % 33) as f32).collect();
    for parallel in [serially, on_threads] as [tilewright_codegen::Parallel; 2] {
        let mut out = vec![0.0f32; 9 * 33];
        let scalars = [2.5f32.to_bits() as u64];
        assert_eq!(kernel.run_with(&mut [input.bytes(), out.bytes()], &scalars, parallel), 0);
        assert_eq!(out, wanted);
    }
}

#[test]
fn setup_fills_the_constants() {
    let mut b = Builder::new();
    let (weights, out) = (b.argument(DType::Float32, &[4, 6]), b.argument(DType::Float32, &[6, 4]));
    let packed = b.constant(DType::Float32, &[6, 4]);
    let (i, j) = (b.var("i"), b.var("j"));
    let copy = set(packed, &[v(i), v(j)], b.load(weights, &[v(j), v(i)]));
    b.nest.setup = vec![each(i, 6, LoopKind::Parallel, vec![each(j, 4, LoopKind::Vector, vec![copy])])];
    let (p, q) = (b.var("p"), b.var("q"));
    let body = set(out, &[v(p), v(q)], b.load(packed, &[v(p), v(q)]));
    let body = each(p, 6, LoopKind::Serial, vec![each(q, 4, LoopKind::Vector, vec![body])]);
    let kernel = b.compile(VectorInstructions::Baseline, vec![body]);
    assert_eq!(kernel.kernel.constants(), [96]);
    let mut weights: Vec<f32> = (0..24).map(|at| at as f32).collect();
    let mut out = vec![0.0f32; 24];
    assert_eq!(kernel.run(&mut [weights.bytes(), out.bytes()]), 0);
    assert_eq!(out, (0..24).map(|at| (at % 4 * 6 + at / 4) as f32).collect::<Vec<_>>());
}

#[test]
fn scalars_of_every_kind() {
    let mut b = Builder::new();
    let out = b.argument(DType::Float64, &[5]);
    let kinds = [DType::Int8, DType::UInt64, DType::Float16, DType::Bool, DType::Float64];
    let scalars: Vec<_> = kinds.iter().map(|dtype| b.scalar(*dtype)).collect();
    let store = |(at, value): (usize, &tilewright_ir::nest::Expr)| {
        set(out, &[c(at as i64)], value.clone().cast(DType::Float64))
    };
    let body = scalars.iter().enumerate().map(store).collect();
    let kernel = b.compile(VectorInstructions::Baseline, body);
    let mut out = vec![0.0f64; 5];
    let half = half::f16::from_f32(0.5).to_bits() as u64;
    let slots = [-3i64 as u64, 1 << 63, half, 1, 0.125f64.to_bits()];
    assert_eq!(kernel.run_with(&mut [out.bytes()], &slots, serially), 0);
    assert_eq!(out, [-3.0, 2f64.powi(63), 0.5, 1.0, 0.125]);
}

/// A triangular loop whose extent is 0 at first, and a loop whose extent is a minimum.
#[test]
fn extents_may_depend_on_outer_loops() {
    let mut b = Builder::new();
    let out = b.argument(DType::Int64, &[7]);
    let (i, j, k) = (b.var("i"), b.var("j"), b.var("k"));
    let body = vec![
        each(j, v(i), LoopKind::Serial, vec![reduce(ReduceOp::Add, out, &[v(i)], index(v(j)))]),
        each(
            k,
            c(5).sub(&v(i)).minimum(&c(2)),
            LoopKind::Serial,
            vec![reduce(ReduceOp::Add, out, &[v(i)], int(100))],
        ),
    ];
    let kernel = b.compile(VectorInstructions::Baseline, vec![each(i, 7, LoopKind::Serial, body)]);
    let mut out = vec![0i64; 7];
    assert_eq!(kernel.run(&mut [out.bytes()]), 0);
    let wanted: Vec<i64> = (0..7i64).map(|i| i * (i - 1) / 2 + 100 * (5 - i).clamp(0, 2)).collect();
    assert_eq!(out, wanted);
}

#[test]
fn a_lane_dependent_extent_is_rejected() {
    let mut b = Builder::new();
    let out = b.argument(DType::Int64, &[4, 4]);
    let (i, j) = (b.var("i"), b.var("j"));
    let body = each(j, v(i), LoopKind::Serial, vec![set(out, &[v(i), v(j)], int(1))]);
    let nest = LoopNest { body: vec![each(i, 4, LoopKind::Vector, vec![body])], ..b.nest };
    assert!(matches!(compile(verify_nest(&nest).unwrap(), &cpu()), Err(CodegenError::Unsupported(_))));
}

fn tiny(size: i64) -> (Builder, Vec<Stmt>) {
    let mut b = Builder::new();
    let out = b.argument(DType::Float32, &[size]);
    let i = b.var("i");
    (b, vec![each(i, size, LoopKind::Vector, vec![set(out, &[v(i)], float(size as f64))])])
}

#[test]
fn an_object_is_emitted_under_a_name_and_linked_later() {
    let (b, body) = tiny(4);
    let nest = LoopNest { body, ..b.nest };
    let object = Object::emit(verify_nest(&nest).unwrap(), &cpu(), "fill_four").unwrap();
    assert_eq!(object.symbol(), "fill_four");
    assert!(object.bytes().windows(9).any(|part| part == b"fill_four"), "the symbol is in the file");
    if cfg!(target_os = "linux") {
        assert!(object.bytes().starts_with(b"\x7fELF"));
    }
    // Objects are data: each copy can be linked, once the kernel of the other is gone.
    for copy in [object.clone(), object] {
        let kernel = copy.link().unwrap();
        assert_eq!(kernel.scratch_bytes(), 0);
    }
}

#[test]
fn the_intermediate_code_is_text() {
    let (b, body) = tiny(4);
    let text = llvm_ir(verify_nest(&LoopNest { body, ..b.nest }).unwrap(), &cpu()).unwrap();
    assert!(text.contains("store <4 x float>"), "{text}");
}

/// The total of an unrolled reduction stays in a register, and memory receives only the result.
#[test]
fn an_unrolled_reduction_is_stored_once() {
    let mut b = Builder::new();
    let (input, out) = (b.argument(DType::UInt16, &[20]), b.argument(DType::UInt16, &[16]));
    let (lane, tap) = (b.var("lane"), b.var("tap"));
    let element = Expr { dtype: DType::UInt16, kind: ExprKind::Load(access(input, &[v(lane).add(&v(tap))])) };
    let zero = Expr::literal(DType::UInt16, Number::Int(0));
    let taps = each(tap, 5, LoopKind::Unrolled, vec![reduce(ReduceOp::Add, out, &[v(lane)], element)]);
    let body = vec![each(lane, 16, LoopKind::Vector, vec![set(out, &[v(lane)], zero), taps])];
    let text = llvm_ir(verify_nest(&LoopNest { body, ..b.nest }).unwrap(), &cpu()).unwrap();
    assert_eq!(text.matches("store <16 x i16>").count(), 1, "{text}");
}

fn resident_bytes() -> usize {
    let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
    pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

fn check_resident_memory(kernels: i64) {
    let run = |count: i64| {
        for at in 0..count {
            let size = 2 + at % 30;
            let (b, body) = tiny(size);
            let kernel = b.compile(VectorInstructions::Baseline, body);
            let mut out = vec![0.0f32; size as usize];
            assert_eq!(kernel.run(&mut [out.bytes()]), 0);
            assert_eq!(out, vec![size as f32; size as usize]);
        }
    };
    run(200);
    let before = resident_bytes();
    run(kernels);
    let grown = resident_bytes().saturating_sub(before);
    println!("{kernels} kernels: {} KiB more", grown >> 10);
    assert!(grown < 8 << 20, "{} KiB more after {kernels} kernels", grown >> 10);
}

#[test]
fn two_thousand_kernels_leave_no_memory_behind() {
    check_resident_memory(2000);
}

#[test]
#[ignore = "takes a minute"]
fn ten_thousand_kernels_leave_no_memory_behind() {
    check_resident_memory(10_000);
}
