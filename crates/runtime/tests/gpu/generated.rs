//! Runs the output of the code generator for loop nests on devices.

use std::sync::Arc;

use ndarray::Array1;
use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::seed;
use tilewright_ir::nest::{
    Access, Atom, Axis, BufferId, Data, Expr, ExprKind, For, If, IndexExpr, LoopKind, LoopNest, LoopVarId,
    Stmt, Store,
};
use tilewright_ir::{BinaryOp, DType, Number, Origin, Program, ScalarId, verify_nest};
use tilewright_runtime::gpu::{Device, GpuBound, GpuExecutable, compile_cuda};
use tilewright_runtime::{RunError, View, ViewMut};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::Gpu;

use crate::case::{nest, on_every_device, program, skip};
use crate::scheduled::{Case, agrees, compiles_as_cuda, nest_agrees_on, nest_of};

fn access(buffer: u32, index: &IndexExpr) -> Access {
    Access { tensor: BufferId(buffer), indices: vec![index.clone()], origin: Origin::default() }
}

fn load(dtype: DType, buffer: u32, index: &IndexExpr) -> Expr {
    Expr { dtype, kind: ExprKind::Load(access(buffer, index)) }
}

/// One store for every element of a vector, in blocks of 64 threads.
fn spread(extent: i64, store: impl Fn(&IndexExpr) -> Store) -> Vec<Stmt> {
    let at = IndexExpr::var(LoopVarId(0)).scale(64).add(&IndexExpr::var(LoopVarId(1)));
    let inside = Stmt::If(If {
        conditions: vec![IndexExpr::constant(extent - 1).sub(&at)],
        then: vec![Stmt::Store(store(&at))],
        otherwise: Vec::new(),
    });
    let spread_over = |var, extent, kind, body| {
        Stmt::For(For { var: LoopVarId(var), extent: IndexExpr::constant(extent), kind, body: vec![body] })
    };
    let threads = spread_over(1, 64, LoopKind::Thread(Axis::X), inside);
    vec![spread_over(0, (extent + 63) / 64, LoopKind::Block(Axis::X), threads)]
}

/// `c(i) = a(i) * s + b(i)`
fn scaled() -> (Program, LoopNest) {
    let source = "def scaled(float(N) a, float(N) b, float s) -> (c) { c(i) = a(i) * s + b(i) }";
    let program = program(source, &[("N", 1000)]);
    let mut nest = nest(&program, &["a", "b", "c"], &[]);
    nest.body = spread(1000, |at| {
        let s = Expr { dtype: DType::Float32, kind: ExprKind::Scalar(ScalarId(0)) };
        let product = Expr::binary(BinaryOp::Mul, load(DType::Float32, 0, at), s);
        let value = Expr::binary(BinaryOp::Add, product, load(DType::Float32, 1, at));
        Store {
            target: access(2, at),
            value,
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        }
    });
    verify_nest(&nest).unwrap();
    (program, nest)
}

/// `o(i) = a(index(i))`, which fails where the index is outside of `a`, or outside of the range
/// declared for it.
fn gather(declared: Option<(i64, i64)>) -> (Program, LoopNest) {
    let source = "def gather(float(N) a, int32(K) index) -> (o) { o(i) = a(index(i)) }";
    let declared = declared.map(|(low, end)| (IndexExpr::constant(low), IndexExpr::constant(end)));
    let program = program(source, &[("N", 10), ("K", 6)]);
    let mut nest = nest(&program, &["a", "index", "o"], &[]);
    nest.body = spread(6, |at| {
        let data = Data { value: load(DType::Int32, 1, at), declared: declared.clone() };
        let gathered = IndexExpr::atom(Atom::Data(Arc::new(data)));
        Store {
            target: access(2, at),
            value: load(DType::Float32, 0, &gathered),
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        }
    });
    verify_nest(&nest).unwrap();
    (program, nest)
}

fn bound(device: &Device, (program, nest): &(Program, LoopNest)) -> GpuBound {
    let code = gpu_code(verify_nest(nest).unwrap(), device.gpu(), "a test").unwrap();
    let text = code.text.clone();
    let built = GpuExecutable::new(program, nest, code, device);
    built.unwrap_or_else(|error| panic!("{error}\n{text}")).bind(&[]).unwrap()
}

#[test]
fn generated_code_computes_the_program() {
    on_every_device(|device| {
        let bound = bound(device, &scaled());
        let vector = |seed: usize| Array1::from_iter((0..1000).map(|at| ((at * seed) % 13) as f32));
        let (a, b, mut c) = (vector(3), vector(5), Array1::<f32>::zeros(1000));
        let inputs = [a.view().into(), b.view().into()];
        bound.run(&inputs, &mut [c.view_mut().into()], &[Number::Float(0.5)]).unwrap();
        assert_eq!(c, &a * 0.5 + &b);
    });
}

/// `c(i) = a(i) * a(i) - b(i) * b(i)`
fn squares() -> (Program, LoopNest) {
    let source = "def squares(float(N) a, float(N) b) -> (c) { c(i) = a(i) * a(i) - b(i) * b(i) }";
    let program = program(source, &[("N", 1000)]);
    let mut nest = nest(&program, &["a", "b", "c"], &[]);
    nest.body = spread(1000, |at| {
        let square = |buffer| {
            Expr::binary(BinaryOp::Mul, load(DType::Float32, buffer, at), load(DType::Float32, buffer, at))
        };
        let value = Expr::binary(BinaryOp::Sub, square(0), square(1));
        Store {
            target: access(2, at),
            value,
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        }
    });
    verify_nest(&nest).unwrap();
    (program, nest)
}

/// The compilers of devices fuse no products with sums by themselves.
#[test]
fn products_are_fused_with_sums_by_the_rule_alone() {
    let vector = |seed: usize| Array1::from_iter((0..1000).map(|at| ((at * seed) % 1009) as f32 / 7.0));
    on_every_device(|device| {
        let (a, b, mut c) = (vector(3), vector(5), Array1::<f32>::ones(1000));
        bound(device, &squares())
            .run(&[a.view().into(), a.view().into()], &mut [c.view_mut().into()], &[])
            .unwrap();
        assert_eq!(c, Array1::<f32>::zeros(1000));
        for contract in [true, false] {
            let (program, nest) = scaled();
            let inputs = [a.view().into(), b.view().into()];
            let scale = 1.0f32 / 3.0;
            let bound = bound(device, &(program, LoopNest { contract, ..nest }));
            bound.run(&inputs, &mut [c.view_mut().into()], &[Number::Float(f64::from(scale))]).unwrap();
            let both = a.iter().zip(&b);
            let rounded = Array1::from_iter(both.clone().map(|(a, b)| a * scale + b));
            let fused = Array1::from_iter(both.map(|(a, b)| a.mul_add(scale, *b)));
            assert!(c == rounded || contract && c == fused, "contract: {contract}");
        }
    });
}

#[test]
fn generated_code_checks_its_subscripts() {
    on_every_device(|device| {
        let [plain, declared] = [None, Some((1, 7))].map(|declared| bound(device, &gather(declared)));
        let a = Array1::from_iter((0..10).map(|at| at as f32));
        let run = |bound: &GpuBound, index: [i32; 6]| {
            let mut o = [-1.0f32; 6];
            let index = View::from_slice(&index, &[6]).unwrap();
            let mut results = [ViewMut::from_slice(&mut o, &[6]).unwrap()];
            bound.run(&[a.view().into(), index], &mut results, &[]).map(|()| o)
        };
        assert_eq!(run(&plain, [9, 0, 1, 2, 2, 3]).unwrap(), [9.0, 0.0, 1.0, 2.0, 2.0, 3.0]);
        assert_eq!(run(&declared, [6, 1, 1, 2, 2, 3]).unwrap(), [6.0, 1.0, 1.0, 2.0, 2.0, 3.0]);
        for (bound, index) in [(&plain, 10), (&plain, -1), (&declared, 0), (&declared, 7), (&declared, 10)] {
            let error = run(bound, [1, 1, 2, index, 4, 5]).unwrap_err();
            assert!(matches!(&error, RunError::OutOfBounds(out) if out.buffer == "a"), "{error}");
        }
    });
}

#[test]
fn one_thread_alone_has_registers() {
    let source = "def least(float(K) A) -> (T) { T() = 100
        T() min= A(i) where i in 0:K }";
    let steps = "promote T at T[2].i -> own registers";
    on_every_device(|device| agrees(device, &Case { source, sizes: &[("K", 1)], steps }));
}

#[test]
fn generated_cuda_compiles_without_a_gpu() {
    for (_, nest) in [scaled(), gather(None), gather(Some((1, 7)))] {
        let code = gpu_code(verify_nest(&nest).unwrap(), &Gpu::h200(), "a test").unwrap();
        match compile_cuda(&code.text, Gpu::h200().architecture) {
            Err(tilewright_runtime::gpu::GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
            Err(error) => panic!("{error}\n{}", code.text),
            Ok(cubin) => assert!(cubin.bytes.starts_with(b"\x7fELF")),
        }
    }
}

#[test]
fn numbers_are_rounded_once_to_16_bits() {
    let case = Case {
        source: "def f(double(N) x, int32(N) n, uint64(N) u) -> (a, b, c, d) {
            a(i) = float(half(x(i)))
            b(i) = float(bfloat16(x(i)))
            c(i) = float(bfloat16(n(i)))
            d(i) = float(bfloat16(u(i))) }",
        sizes: &[("N", 3)],
        steps: "",
    };
    // The values are just above the middle between two neighbouring 16-bit floats, by less than
    // single precision resolves, or double precision for the last integer; just below the middle;
    // and beyond the range of 16-bit floats.
    let (half, brain) = (2f64.powi(-11), 2f64.powi(-8));
    let above = |middle: f64| 1.0 + middle + 2f64.powi(-40);
    let x = [above(half), above(brain), -1e300];
    let n = [(1 << 24) + (1 << 16) + 1, -(1 << 24) - (1 << 16) - 1, (1 << 24) + (1 << 16) - 1];
    let u = [(1u64 << 40) + (1 << 32) + 1, u64::MAX, 0x0101_0000_0000_0001];
    on_every_device(|device| {
        let mut found = [[0.0f32; 3]; 4];
        let inputs = [
            View::from_slice(&x, &[3]).unwrap(),
            View::from_slice(&n, &[3]).unwrap(),
            View::from_slice(&u, &[3]).unwrap(),
        ];
        let mut results: Vec<ViewMut<'_>> =
            found.iter_mut().map(|own| ViewMut::from_slice(own, &[3]).unwrap()).collect();
        bound(device, &nest_of(&case, device.gpu())).run(&inputs, &mut results, &[]).unwrap();
        drop(results);
        let of = |values: [f64; 3]| values.map(|value| value as f32);
        assert_eq!(found[0], of([1.0 + 2.0 * half, 1.0 + brain, f64::NEG_INFINITY]));
        assert_eq!(found[1], [1.0, 1.0 + 2.0 * brain as f32, f32::NEG_INFINITY]);
        let next = f64::from((1 << 24) + (1 << 17));
        assert_eq!(found[2], of([next, -next, f64::from(1 << 24)]));
        assert_eq!(
            found[3],
            of([2f64.powi(40) + 2f64.powi(33), 2f64.powi(64), 2f64.powi(56) + 2f64.powi(49)])
        );
    });
    compiles_as_cuda(&case);
}

/// A chain of stages, each of which needs only the one before.
const CHAIN: Case = Case {
    source: "def chain(float(N) x) -> (y) {
        a(i) = sin(x(i)) + sin(x(N - 1 - i))  b(i) = sin(a(i)) + sin(a(N - 1 - i))
        c(i) = sin(b(i)) + sin(b(N - 1 - i))  d(i) = sin(c(i)) + sin(c(N - 1 - i))
        y(i) = sin(d(i)) + sin(d(N - 1 - i)) }",
    sizes: &[("N", 1000)],
    steps: "",
};

#[test]
fn scratch_buffers_share_memory_when_they_take_turns() {
    let (_, nest) = nest_of(&CHAIN, &Gpu::h200());
    let code = gpu_code(verify_nest(&nest).unwrap(), &Gpu::h200(), "chain").unwrap();
    let shared: Vec<(usize, usize)> =
        code.scratch.iter().map(|block| (block.bytes, block.buffers.len())).collect();
    assert_eq!(shared, [(4000, 2), (4000, 2)]);
    on_every_device(|device| agrees(device, &CHAIN));
}

#[test]
fn functions_of_constants_are_numbers() {
    let case = Case {
        source: "def f(float(N) x) -> (y) { y(i) = x(i) * (exp(-0.5 * 1.5 * 1.5) / sqrt(2 * 3.14159265)) }",
        sizes: &[("N", 100)],
        steps: "",
    };
    let (_, nest) = nest_of(&case, &Gpu::h200());
    let text = gpu_code(verify_nest(&nest).unwrap(), &Gpu::h200(), "f").unwrap().text;
    assert!(!text.contains("expf") && !text.contains("sqrtf"), "{text}");
    assert!(text.contains(&format!("{:?}f", (-1.125f64).exp() as f32)), "{text}");
    on_every_device(|device| agrees(device, &case));
}

/// Loads of an operand need not wait for stores to the result, although the kernel reads that too.
#[test]
fn operands_of_a_recurrence_are_restrict() {
    let case = Case {
        source: "def scan(float(H, W) I) -> (b) {
            b(0, x) = I(0, x)
            for y in 1:H { b(y, x) = 0.5 * b(y - 1, x) + I(y, x) } }",
        sizes: &[("H", 50), ("W", 70)],
        steps: "",
    };
    let (_, nest) = nest_of(&case, &Gpu::h200());
    let text = gpu_code(verify_nest(&nest).unwrap(), &Gpu::h200(), "scan").unwrap().text;
    let scan = text.lines().find(|line| line.contains("scan_2(")).unwrap();
    assert!(scan.contains("const float* __restrict__ I") && scan.contains("(float* b"), "{scan}");
    on_every_device(|device| agrees(device, &case));
    compiles_as_cuda(&case);
}

#[test]
fn subscripts_that_are_clamped_to_their_dimension_are_not_checked() {
    let case = |source: &'static str| Case { source, sizes: &[("N", 100), ("K", 9)], steps: "" };
    let text_of = |source: &'static str| {
        let (_, nest) = nest_of(&case(source), &Gpu::h200());
        gpu_code(verify_nest(&nest).unwrap(), &Gpu::h200(), "f").unwrap()
    };
    let clamp = "def f(float(N) x, int32(K) i) -> (y) { y(k) = x(clamp(i(k), 0, N - 1)) }";
    on_every_device(|device| agrees(device, &case(clamp)));
    let clamped = text_of(clamp);
    assert!(clamped.checks.is_empty() && !clamped.text.contains("tw_checked"), "{}", clamped.text);
    let narrow = text_of("def f(float(256) x, uint8(K) i) -> (y) { y(k) = x(i(k)) }");
    assert!(narrow.checks.is_empty(), "{}", narrow.text);
    let beyond = text_of("def f(float(N) x, int32(K) i) -> (y) { y(k) = x(min(max(i(k), 0), N)  % N) }");
    assert!(beyond.checks.is_empty(), "{}", beyond.text);
    let open = text_of("def f(float(N) x, int32(K) i) -> (y) { y(k) = x(max(i(k), 0)) }");
    assert_eq!(open.checks.len(), 1, "{}", open.text);
}

#[test]
fn floats_beyond_an_integer_type_saturate() {
    let values = [0.0, -0.9, 1.5, 127.9, 128.0, -128.9, 255.7, 300.0, 65535.9, 7e4, -4e4, 2147483520.0];
    let extremes = [2147483648.0, -2147483904.0, 4294967040.0, 5e9, -1e30, f64::INFINITY, f64::NEG_INFINITY];
    let values: Vec<f64> = values.into_iter().chain(extremes).chain([f64::NAN]).collect();
    for dtype in ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"] {
        let source = format!("def f(float(N) x) -> (y) {{ y(i) = {dtype}(x(i)) }}");
        let program = program(&source, &[("N", values.len() as i64)]);
        let schedule = schedule_by_rules(&program, &Gpu::h200());
        let nest = apply(&program, &schedule, &Gpu::h200()).unwrap();
        let mut inputs = seed::inputs(&program, 1).unwrap();
        let x = inputs.tensors.get_mut("x").unwrap();
        values.iter().enumerate().for_each(|(at, value)| x.set(at, Number::Float(*value)));
        on_every_device(|device| nest_agrees_on(device, &program, &nest, inputs.clone()));
        let text = gpu_code(verify_nest(&nest).unwrap(), &Gpu::h200(), "f").unwrap().text;
        match compile_cuda(&text, Gpu::h200().architecture) {
            Err(tilewright_runtime::gpu::GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
            compiled => assert!(compiled.is_ok(), "{text}"),
        }
    }
}
