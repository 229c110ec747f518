//! Calls on devices: tensors of the host and of the device, constants, scalars, scratch memory,
//! checks, host loops.

use ndarray::{Array1, Array2, s};
use tilewright_codegen::c_family::{Argument, Command, GpuCode, ScratchBlock};
use tilewright_ir::nest::{BufferId, IndexExpr, LoopNest, LoopVarId, Scope};
use tilewright_ir::{DType, Number, Origin, Program, ScalarId, Tensor};
use tilewright_runtime::gpu::{Device, DeviceBuffer, GpuError, GpuExecutable};
use tilewright_runtime::kernel::OutOfBounds;
use tilewright_runtime::{RunError, View, ViewMut};
use tilewright_target::GpuApi;

use crate::case::{
    LENGTH, adding, buffer, buffers, check_of, code, error_message, launch, nest, on_every_device, program,
};

fn numbers(length: usize, seed: usize) -> Array1<f32> {
    Array1::from_iter((0..length).map(|at| ((at * 31 + seed) % 17) as f32 - 8.0))
}

fn build(program: &Program, nest: &LoopNest, code: GpuCode, device: &Device) -> GpuExecutable {
    GpuExecutable::new(program, nest, code, device).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_tensor_is_made_in_parts() {
    let made = |at: usize| (at % 251) as u8;
    on_every_device(|device| {
        // An empty tensor, one partial part, and two whole parts with a partial part at the end.
        for length in [0, 1000, (64 << 20) + 77] {
            let make = |begin: usize, part: &mut [u8]| {
                part.iter_mut().enumerate().for_each(|(at, byte)| *byte = made(begin + at));
            };
            let buffer = DeviceBuffer::from_parts(device, DType::UInt8, &[length], make).unwrap();
            let mut found = vec![0u8; length];
            buffer.download(&mut ViewMut::from_slice(&mut found, &[length]).unwrap()).unwrap();
            assert!((0..length).all(|at| found[at] == made(at)), "of {length}");
        }
    });
}

#[test]
fn vectors_are_added() {
    on_every_device(|device| {
        let add = adding(device).bind(&[]).unwrap();
        for seed in 0..3 {
            let (a, b) = (numbers(LENGTH, seed), numbers(LENGTH, seed + 5));
            let mut c = Array1::<f32>::zeros(LENGTH);
            add.run(&[a.view().into(), b.view().into()], &mut [c.view_mut().into()], &[]).unwrap();
            assert_eq!(c, &a + &b);
        }
    });
}

#[test]
fn tensors_with_strides_are_packed_and_unpacked() {
    on_every_device(|device| {
        let add = adding(device).bind(&[]).unwrap();
        let (a, b) = (numbers(2 * LENGTH, 1), numbers(LENGTH, 2));
        let every_other = a.slice(s![..;2]);
        let mut c = Array1::<f32>::from_elem(3 * LENGTH, -1.0);
        let inputs = [every_other.into(), b.slice(s![..;-1]).into()];
        add.run(&inputs, &mut [c.slice_mut(s![..;3]).into()], &[]).unwrap();
        assert_eq!(c.slice(s![..;3]), &every_other + &b.slice(s![..;-1]));
        assert!(c.slice(s![1..;3]).iter().all(|element| *element == -1.0));
    });
}

#[test]
fn tensors_stay_on_the_device() {
    on_every_device(|device| {
        let add = adding(device).bind(&[]).unwrap();
        let (a, b) = (numbers(LENGTH, 1), numbers(LENGTH, 2));
        let on_device = |array: &Array1<f32>| DeviceBuffer::from_view(device, &array.view().into()).unwrap();
        let (first, second) = (on_device(&a), on_device(&b));
        let mut sum = DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        let mut twice = DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        add.launch(&[&first, &second], &mut [&mut sum], &[]).unwrap();
        add.launch(&[&sum, &sum], &mut [&mut twice], &[]).unwrap();
        add.wait().unwrap();
        let mut result = Array1::<f32>::zeros(LENGTH);
        twice.download(&mut result.view_mut().into()).unwrap();
        assert_eq!(result, 2.0 * (&a + &b));
        let mut spread = Array2::<f32>::zeros((LENGTH, 2));
        twice.download(&mut spread.column_mut(1).into()).unwrap();
        assert_eq!(spread.column(1), result);
        assert!(spread.column(0).iter().all(|element| *element == 0.0));
    });
}

#[test]
fn tensors_of_others_are_used_on_their_stream() {
    on_every_device(|device| {
        let (a, b) = (numbers(LENGTH, 1), numbers(LENGTH, 2));
        let on_device = |array: &Array1<f32>| DeviceBuffer::from_view(device, &array.view().into()).unwrap();
        let (first, second) = (on_device(&a), on_device(&b));
        device.wait().unwrap();
        // SAFETY: the memory belongs to a tensor of this test, which lives longer; 0 is a stream of
        // every device.
        let foreign = |own: &DeviceBuffer, at| unsafe {
            DeviceBuffer::from_foreign(device, DType::Float32, &[LENGTH], own.address() + at)
        };
        if device.gpu().api == GpuApi::OpenCl {
            assert!(matches!(foreign(&first, 0), Err(RunError::Gpu(GpuError::ForeignUnsupported(_)))));
            return;
        }
        assert!(matches!(foreign(&first, 4), Err(RunError::Gpu(GpuError::Misaligned(16)))));
        let sum = DeviceBuffer::undefined(device, DType::Float32, &[LENGTH]).unwrap();
        let add = adding(device).bind(&[]).unwrap();
        let mut written = foreign(&sum, 0).unwrap();
        let inputs = [foreign(&first, 0).unwrap(), foreign(&second, 0).unwrap()];
        // SAFETY: as above.
        unsafe {
            add.launch_on(0, &[&inputs[0], &inputs[1]], &mut [&mut written], &[]).unwrap();
            device.wait_for_stream(0).unwrap();
        }
        let mut result = Array1::<f32>::zeros(LENGTH);
        sum.download(&mut result.view_mut().into()).unwrap();
        assert_eq!(result, &a + &b);
    });
}

/// The index tensor of [`gather`].
fn picks(device: &Device, index: [i32; 6]) -> DeviceBuffer {
    DeviceBuffer::from_view(device, &View::from_slice(&index, &[6]).unwrap()).unwrap()
}

#[test]
fn what_fails_on_a_stream_of_others_is_told_at_once() {
    on_every_device(|device| {
        if device.gpu().api == GpuApi::OpenCl {
            return;
        }
        let bound = gather(device).bind(&[]).unwrap();
        let a = DeviceBuffer::zeros(device, DType::Float32, &[10]).unwrap();
        let (inside, outside) = (picks(device, [1; 6]), picks(device, [0, 0, 11, 0, 0, 0]));
        let mut o = DeviceBuffer::zeros(device, DType::Float32, &[6]).unwrap();
        device.wait().unwrap();
        // SAFETY: 0 is a stream of every device, and all operations that were queued for the
        // tensors are done.
        let mut call = |index| unsafe { bound.launch_on(0, &[&a, index], &mut [&mut o], &[]) };
        assert_eq!(call(&outside), Err(out_of_bounds()));
        assert_eq!(call(&inside), Ok(()));
        assert_eq!(bound.wait(), Ok(()));
    });
}

#[test]
fn large_copies_arrive_whole() {
    on_every_device(|device| {
        // Several staging blocks, and a part of one.
        let array = Array1::from_iter((0..5_300_007u32).map(|at| at.wrapping_mul(2_654_435_761)));
        let buffer = DeviceBuffer::from_view(device, &array.view().into()).unwrap();
        let mut back = Array1::<u32>::zeros(array.len());
        buffer.download(&mut back.view_mut().into()).unwrap();
        assert!(back == array, "the copy differs");
    });
}

const REVERSE: &str = "
KERNEL reverse(const GLOBAL float *a, GLOBAL float *o) {
    SHARED(tile, 64);
    tile[THREAD] = a[64 * BLOCK + THREAD];
    BARRIER;
    o[64 * BLOCK + THREAD] = tile[63 - THREAD];
}";

#[test]
fn tensors_are_copied_on_the_device() {
    on_every_device(|device| {
        let a = numbers(LENGTH, 3);
        let from = DeviceBuffer::from_view(device, &a.view().into()).unwrap();
        let mut to = DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        to.copy_from(&from).unwrap();
        let mut back = Array1::<f32>::zeros(LENGTH);
        to.download(&mut back.view_mut().into()).unwrap();
        assert_eq!(back, a);
        let mut short = DeviceBuffer::zeros(device, DType::Float32, &[LENGTH - 1]).unwrap();
        assert!(matches!(short.copy_from(&from), Err(RunError::Mismatch { .. })));
        let other = Device::open(device.gpu().api, 0).unwrap();
        let mut elsewhere = DeviceBuffer::zeros(&other, DType::Float32, &[LENGTH]).unwrap();
        assert!(matches!(elsewhere.copy_from(&from), Err(RunError::Gpu(GpuError::WrongDevice(_)))));
    });
}

#[test]
fn threads_share_memory() {
    on_every_device(|device| {
        let program = program("def reverse(float(N) a) -> (o) { o(i) = a(i) }", &[("N", 256)]);
        let nest = nest(&program, &["a", "o"], &[]);
        let mut body = vec![launch("reverse", 256, &buffers(&[0, 1]))];
        let Command::Launch(kernel) = &mut body[0] else { unreachable!() };
        kernel.shared_bytes = 64 * 4;
        let reverse = build(&program, &nest, code(device, REVERSE, body), device);
        let resources = &reverse.resources()[0];
        assert!(resources.kernel == "reverse" && resources.threads >= 64, "{resources:?}");
        let a = numbers(256, 3);
        let mut o = Array1::<f32>::zeros(256);
        reverse.bind(&[]).unwrap().run(&[a.view().into()], &mut [o.view_mut().into()], &[]).unwrap();
        let expected = Array1::from_iter((0..256).map(|at| a[at / 64 * 64 + 63 - at % 64]));
        assert_eq!(o, expected);
    });
}

const WIDE: &str = "
KERNEL wide(const GLOBAL float *a, GLOBAL float *o) {
    SHARED(tile, EXTENT);
    for (INT i = THREAD; i < EXTENT; i += 64) tile[i] = a[i];
    BARRIER;
    for (INT i = THREAD; i < EXTENT; i += 64) o[i] = tile[EXTENT - 1 - i];
}";

#[test]
fn a_block_gets_all_the_shared_memory_there_is() {
    on_every_device(|device| {
        // CUDA gives more than 48 KB only to kernels that request it.
        let extent = device.gpu().block_shared.min(227 << 10) / 4;
        let program = program("def wide(float(N) a) -> (o) { o(i) = a(i) }", &[("N", extent as i64)]);
        let nest = nest(&program, &["a", "o"], &[]);
        let mut body = vec![launch("wide", 1, &buffers(&[0, 1]))];
        let Command::Launch(kernel) = &mut body[0] else { unreachable!() };
        kernel.shared_bytes = 4 * extent as u32;
        let text = WIDE.replace("EXTENT", &extent.to_string());
        let wide = build(&program, &nest, code(device, &text, body), device).bind(&[]).unwrap();
        let a = numbers(extent, 3);
        let mut o = Array1::<f32>::zeros(extent);
        wide.run(&[a.view().into()], &mut [o.view_mut().into()], &[]).unwrap();
        assert_eq!(o, a.slice(s![..;-1]));
    });
}

const LAYER: &str = "
KERNEL pack(const GLOBAL float *w, GLOBAL float *backward) {
    INT j = 64 * BLOCK + THREAD;
    if (j < 24) backward[j] = w[23 - j];
}
KERNEL product(const GLOBAL float *x, const GLOBAL float *backward, GLOBAL float *scratch) {
    INT at = 64 * BLOCK + THREAD;
    if (at < 960) scratch[at] = x[at] * backward[23 - at % 24];
}
KERNEL sum(const GLOBAL float *scratch, float s, unsigned char negate, GLOBAL float *y) {
    INT at = 64 * BLOCK + THREAD;
    if (at < 960) y[at] = (negate ? -scratch[at] : scratch[at]) + s;
}";

/// `y(i,j) = ±x(i,j) * w(j) + s`, with `w` stored backward as a constant, and the products stored
/// in scratch memory first.
fn layer(device: &Device) -> GpuExecutable {
    let source = "def layer(float(N,M) x, const float(M) w, float s, bool negate) -> (y) { \
                  y(i,j) = (negate ? -x(i,j) : x(i,j)) * w(j) + s }";
    let program = program(source, &[("N", 40), ("M", 24)]);
    let (x, w, y, backward, products) = (0, 1, 2, 3, 4);
    let others = [buffer("backward", &[24], Scope::Constant), buffer("products", &[40, 24], Scope::Scratch)];
    let nest = nest(&program, &["x", "w", "y"], &others);
    let [s, negate] = [0, 1].map(|at| Argument::Scalar(ScalarId(at)));
    let [from, to] = [products, y].map(|place| Argument::Buffer(BufferId(place)));
    let body = vec![
        launch("product", 960, &buffers(&[x, backward, products])),
        launch("sum", 960, &[from, s, negate, to]),
    ];
    let mut code = code(device, LAYER, body);
    code.setup = vec![launch("pack", 24, &buffers(&[w, backward]))];
    code.scratch = vec![ScratchBlock { bytes: 4 * 960, buffers: vec![BufferId(products)] }];
    build(&program, &nest, code, device)
}

#[test]
fn every_bind_has_its_own_constants() {
    on_every_device(|device| {
        let layer = layer(device);
        let (first, second) = (numbers(24, 1), numbers(24, 2));
        let bounds = [&first, &second].map(|w| (w, layer.bind(&[w.view().into()]).unwrap()));
        let x = numbers(960, 5).into_shape_with_order((40, 24)).unwrap();
        for negate in [false, true] {
            for (w, bound) in &bounds {
                let mut y = Array2::<f32>::zeros((40, 24));
                let scalars = [Number::Float(0.5), Number::Int(negate.into())];
                bound.run(&[x.view().into()], &mut [y.view_mut().into()], &scalars).unwrap();
                let sign = if negate { -1.0 } else { 1.0 };
                assert_eq!(y, sign * (&x * *w) + 0.5);
            }
        }
    });
}

/// From the second call with the same arguments on, a device that can records the launches. Every
/// call must still read what its tensors and scalars are now.
#[test]
fn repeated_calls_read_their_tensors_and_scalars_anew() {
    on_every_device(|device| {
        let w = numbers(24, 1);
        let layer = layer(device).bind(&[w.view().into()]).unwrap();
        let upload = |seed: usize| {
            let x = numbers(960, seed).into_shape_with_order((40, 24)).unwrap();
            (DeviceBuffer::from_view(device, &x.view().into()).unwrap(), x)
        };
        let mut inputs = [upload(3), upload(4)];
        let mut results = [0, 1].map(|_| DeviceBuffer::zeros(device, DType::Float32, &[40, 24]).unwrap());
        // The number of the tensors, and the scalar. Data changes between calls.
        let calls = [(0, 0), (0, 0), (0, 0), (1, 0), (1, 0), (0, 0), (0, 2), (0, 2), (0, 2), (1, 2)];
        for (round, (at, s)) in calls.into_iter().enumerate() {
            let changed = numbers(960, 100 + round).into_shape_with_order((40, 24)).unwrap();
            inputs[at].0.upload(&changed.view().into()).unwrap();
            inputs[at].1 = changed;
            let scalars = [Number::Float(s.into()), Number::Int(0)];
            layer.launch(&[&inputs[at].0], &mut [&mut results[at]], &scalars).unwrap();
            let mut y = Array2::<f32>::zeros((40, 24));
            results[at].download(&mut y.view_mut().into()).unwrap();
            assert_eq!(y, &inputs[at].1 * &w + s as f32, "call {round}");
        }
        layer.wait().unwrap();
    });
}

/// `y(i) = x(i) + w(i)`, where every call reads the constant `w`.
fn shifting(device: &Device) -> GpuExecutable {
    let source = "def shift(float(N) x, const float(N) w) -> (y) { y(i) = x(i) + w(i) }";
    let program = program(source, &[("N", LENGTH as i64)]);
    let nest = nest(&program, &["x", "w", "y"], &[]);
    let body = vec![launch("add", LENGTH, &buffers(&[0, 1, 2]))];
    build(&program, &nest, code(device, crate::case::ADD, body), device)
}

#[test]
fn constants_on_the_device_are_shared_for_as_long_as_calls_read_them() {
    on_every_device(|device| {
        let (w, x) = (numbers(LENGTH, 1), numbers(LENGTH, 2));
        let constant = DeviceBuffer::from_view(device, &w.view().into()).unwrap();
        let shift = shifting(device);
        let bounds = [shift.bind_on(&[&constant]).unwrap(), shift.bind_on(&[&constant]).unwrap()];
        assert!(constant.is_shared());
        for bound in &bounds {
            let mut y = Array1::<f32>::zeros(LENGTH);
            bound.run(&[x.view().into()], &mut [y.view_mut().into()], &[]).unwrap();
            assert_eq!(y, &x + &w);
        }
        let [first, second] = bounds;
        drop(first);
        assert!(constant.is_shared());
        drop(second);
        assert!(!constant.is_shared());
        let w = numbers(24, 1);
        let only_packed = DeviceBuffer::from_view(device, &w.view().into()).unwrap();
        let layer = layer(device).bind_on(&[&only_packed]).unwrap();
        assert!(!only_packed.is_shared());
        drop(only_packed);
        let (x, mut y) = (Array2::<f32>::ones((40, 24)), Array2::<f32>::zeros((40, 24)));
        let scalars = [Number::Int(0), Number::Int(0)];
        layer.run(&[x.view().into()], &mut [y.view_mut().into()], &scalars).unwrap();
        assert_eq!(y, &x * &w);
    });
}

#[test]
fn what_is_written_to_a_shared_constant_changes_no_program() {
    on_every_device(|device| {
        let (w, x) = (numbers(LENGTH, 1), numbers(LENGTH, 2));
        let upload = |from: &Array1<f32>| DeviceBuffer::from_view(device, &View::from(from.view())).unwrap();
        let (mut constant, x_there, mut y) = (upload(&w), upload(&x), upload(&x));
        let shift = shifting(device);
        let bound = shift.bind_on(&[&constant]).unwrap();
        let check = |y: &mut DeviceBuffer| {
            bound.launch(&[&x_there], &mut [y], &[]).unwrap();
            let mut found = Array1::<f32>::zeros(LENGTH);
            y.download(&mut found.view_mut().into()).unwrap();
            assert_eq!(found, &x + &w);
        };
        constant.upload(&x.view().into()).unwrap();
        check(&mut y);
        let mut constant = upload(&w);
        let other = shift.bind_on(&[&constant]).unwrap();
        constant.copy_from(&x_there).unwrap();
        assert_eq!(constant.to_tensor().unwrap(), x_there.to_tensor().unwrap());
        let mut constant = upload(&w);
        let bound = shift.bind_on(&[&constant]).unwrap();
        other.launch(&[&x_there], &mut [&mut constant], &[]).unwrap();
        bound.launch(&[&x_there], &mut [&mut y], &[]).unwrap();
        assert_eq!(constant.to_tensor().unwrap(), y.to_tensor().unwrap());
    });
}

#[test]
fn tensors_of_the_ir_come_back_as_they_were() {
    on_every_device(|device| {
        for dtype in DType::ALL {
            let mut tensor = Tensor::zeros(dtype, &[2, 3]).unwrap();
            (0..6).for_each(|at| tensor.set(at, Number::Int(at as i128)));
            let there = DeviceBuffer::from_tensor(device, &tensor).unwrap();
            assert_eq!(there.to_tensor().unwrap(), tensor, "{dtype}");
        }
        let truths = Tensor::from_bytes(DType::Bool, &[3], vec![0, 1, 7]).unwrap();
        assert_eq!(
            DeviceBuffer::from_tensor(device, &truths).unwrap().to_tensor().unwrap().bytes(),
            [0, 1, 1]
        );
        let none = Tensor::zeros(DType::Int32, &[0, 3]).unwrap();
        assert_eq!(DeviceBuffer::from_tensor(device, &none).unwrap().to_tensor().unwrap(), none);
    });
}

#[test]
fn several_threads_call_one_kernel() {
    on_every_device(|device| {
        let w = numbers(24, 1);
        let bound = layer(device).bind(&[w.view().into()]).unwrap();
        std::thread::scope(|scope| {
            for caller in 0..4 {
                let (bound, w) = (&bound, &w);
                scope.spawn(move || {
                    let x = numbers(960, caller).into_shape_with_order((40, 24)).unwrap();
                    for at in 0..20 {
                        let mut y = Array2::<f32>::zeros((40, 24));
                        let scalars = [Number::Int(at), Number::Int(0)];
                        bound.run(&[x.view().into()], &mut [y.view_mut().into()], &scalars).unwrap();
                        assert_eq!(y, &x * w + at as f32);
                    }
                });
            }
        });
    });
}

const SCALARS: &str = "
KERNEL scalars(signed char a, unsigned short b, INT c, double d, unsigned short h, GLOBAL double *o) {
    if (THREAD == 0) { o[0] = a; o[1] = b; o[2] = c; o[3] = d; o[4] = h; }
}";

#[test]
fn scalars_come_in_their_own_types() {
    on_every_device(|device| {
        let source = "def scalars(int8 a, uint16 b, int64 c, double d, half h) -> (o) { \
                      o(i) = a + b + c + d + h where i in 0:5 }";
        let program = program(source, &[]);
        let nest = nest(&program, &["o"], &[]);
        let mut arguments: Vec<Argument> = (0..5).map(|at| Argument::Scalar(ScalarId(at))).collect();
        arguments.extend(buffers(&[0]));
        let body = vec![launch("scalars", 1, &arguments)];
        let scalars = build(&program, &nest, code(device, SCALARS, body), device).bind(&[]).unwrap();
        let mut o = [0f64; 5];
        let given = [
            Number::Int(-3),
            Number::Int(65535),
            Number::Int(1 << 40),
            Number::Float(0.1),
            Number::Float(1.0),
        ];
        scalars.run(&[], &mut [ViewMut::from_slice(&mut o, &[5]).unwrap()], &given).unwrap();
        assert_eq!(o, [-3.0, 65535.0, (1i64 << 40) as f64, 0.1, f64::from(0x3c00)]);
    });
}

const ACCUMULATE: &str = "
KERNEL accumulate(const GLOBAL float *a, GLOBAL float *o) {
    INT i = 64 * BLOCK + THREAD;
    if (i < 20) o[i] += a[i];
}";

#[test]
fn a_tensor_that_is_updated_keeps_its_old_values() {
    on_every_device(|device| {
        let source = "def accumulate(float(N) a) -> (float(N) o) { o(i) += a(i) }";
        let program = program(source, &[("N", 20)]);
        let body = vec![launch("accumulate", 20, &buffers(&[0, 1]))];
        let nest = nest(&program, &["a", "o"], &[]);
        let bound = build(&program, &nest, code(device, ACCUMULATE, body), device).bind(&[]).unwrap();
        let a = numbers(20, 1);
        let mut o = Array1::from_elem(40, 7.0f32);
        for _ in 0..3 {
            bound.run(&[a.view().into()], &mut [o.slice_mut(s![..;2]).into()], &[]).unwrap();
        }
        assert_eq!(o.slice(s![..;2]), 3.0 * &a + 7.0);
        assert_eq!(o.slice(s![1..;2]), Array1::from_elem(20, 7.0));
    });
}

const STEPS: &str = "
KERNEL clear(GLOBAL float *o) { if (THREAD < 8) o[THREAD] = 0; }
KERNEL advance(GLOBAL float *o, INT s, INT t) { if (THREAD < 8) o[THREAD] = 10 * o[THREAD] + 3 * s + t + THREAD; }
KERNEL halve(GLOBAL float *o) { if (THREAD < 8) o[THREAD] *= 0.5f; }";

/// `o = 0; for s in 0..3 { for t in 0..min(s + 1, 2) { advance } if 1 <= s && s <= 1 { halve } }`
#[test]
fn the_host_loops_and_chooses() {
    on_every_device(|device| {
        let program = program("def steps(float(N) o_in) -> (o) { o(i) = o_in(i) }", &[("N", 8)]);
        let nest = nest(&program, &["o_in", "o"], &[]);
        let [s, t] = [LoopVarId(0), LoopVarId(1)];
        let o = Argument::Buffer(BufferId(1));
        let inner = Command::Repeat {
            var: t,
            extent: IndexExpr::var(s).offset(1).minimum(&IndexExpr::constant(2)),
            body: vec![launch("advance", 8, &[o, Argument::Variable(s), Argument::Variable(t)])],
        };
        let choice = Command::Choose {
            conditions: vec![IndexExpr::var(s).offset(-1), IndexExpr::constant(1).sub(&IndexExpr::var(s))],
            then: vec![launch("halve", 8, &[o])],
            otherwise: Vec::new(),
        };
        let outer = Command::Repeat { var: s, extent: IndexExpr::constant(3), body: vec![inner, choice] };
        let body = vec![launch("clear", 8, &[o]), outer];
        let code = code(device, STEPS, body);
        let bound = build(&program, &nest, code, device).bind(&[]).unwrap();
        let (input, mut o) = (Array1::<f32>::zeros(8), Array1::<f32>::zeros(8));
        bound.run(&[input.view().into()], &mut [o.view_mut().into()], &[]).unwrap();
        let expected = |thread: f32| {
            let mut value = 0.0;
            for s in 0..3 {
                for t in 0..(s + 1).min(2) {
                    value = 10.0 * value + (3 * s + t) as f32 + thread;
                }
                value *= if s == 1 { 0.5 } else { 1.0 };
            }
            value
        };
        assert_eq!(o, Array1::from_iter((0..8).map(|at| expected(at as f32))));
    });
}

const GATHER: &str = "
KERNEL gather(const GLOBAL float *a, const GLOBAL int *index, GLOBAL float *o, GLOBAL INT *status) {
    INT i = 64 * BLOCK + THREAD;
    if (i >= 6) return;
    int at = index[i];
    if (at < 0 || at >= 10) *status = 1; else o[i] = a[at];
}";

fn gather(device: &Device) -> GpuExecutable {
    let source = "def gather(float(N) a, int32(K) index) -> (o) { o(i) = a(index(i)) }";
    let program = program(source, &[("N", 10), ("K", 6)]);
    let nest = nest(&program, &["a", "index", "o"], &[]);
    let mut arguments = buffers(&[0, 1, 2]);
    arguments.push(Argument::Status);
    let mut code = code(device, GATHER, vec![launch("gather", 6, &arguments)]);
    code.checks = vec![check_of(0)];
    build(&program, &nest, code, device)
}

fn out_of_bounds() -> RunError {
    RunError::OutOfBounds(OutOfBounds {
        buffer: "a".into(),
        dimension: 0,
        extent: 10,
        is_declared: false,
        origin: Origin::default(),
    })
}

#[test]
fn an_index_outside_its_tensor_is_an_error_with_its_name() {
    on_every_device(|device| {
        let bound = gather(device).bind(&[]).unwrap();
        let a = Array1::from_iter((0..10).map(|at| at as f32));
        let run = |index: [i32; 6]| {
            let mut o = [-1.0f32; 6];
            let index = View::from_slice(&index, &[6]).unwrap();
            let mut results = [ViewMut::from_slice(&mut o, &[6]).unwrap()];
            bound.run(&[a.view().into(), index], &mut results, &[]).map(|()| o)
        };
        assert_eq!(run([9, 0, 1, 2, 2, 3]).unwrap(), [9.0, 0.0, 1.0, 2.0, 2.0, 3.0]);
        for outside in [10, -1, i32::MAX] {
            assert_eq!(run([0, 1, 2, outside, 4, 5]), Err(out_of_bounds()));
        }
        assert_eq!(run([0; 6]).unwrap(), [0.0; 6]);
    });
}

#[test]
fn a_wait_tells_of_any_launch_since_the_last() {
    on_every_device(|device| {
        let bound = gather(device).bind(&[]).unwrap();
        let a = DeviceBuffer::zeros(device, DType::Float32, &[10]).unwrap();
        let (inside, outside) = (picks(device, [1; 6]), picks(device, [0, 0, 11, 0, 0, 0]));
        let mut o = DeviceBuffer::zeros(device, DType::Float32, &[6]).unwrap();
        for index in [&inside, &outside, &inside] {
            bound.launch(&[&a, index], &mut [&mut o], &[]).unwrap();
        }
        assert_eq!(bound.wait(), Err(out_of_bounds()));
        bound.launch(&[&a, &inside], &mut [&mut o], &[]).unwrap();
        assert_eq!(bound.wait(), Ok(()));
    });
}

#[test]
fn wrong_arguments_are_refused() {
    on_every_device(|device| {
        let layer = layer(device);
        let (short, w) = (numbers(3, 0), numbers(24, 0));
        let wanted = "`w` must be float32(24), and is float32(3)";
        assert_eq!(error_message(layer.bind(&[short.view().into()])), wanted);
        assert_eq!(error_message(layer.bind(&[])), "expected 1 constant inputs, but the call passes 0");
        let short = DeviceBuffer::from_view(device, &short.view().into()).unwrap();
        assert_eq!(error_message(layer.bind_on(&[&short])), wanted);
        let bound = layer.bind(&[w.view().into()]).unwrap();
        let scalars = [Number::Int(0), Number::Int(0)];
        let x = Array2::<f32>::zeros((40, 24));
        let mut y = x.clone();
        let error = bound.run(&[x.t().into()], &mut [y.view_mut().into()], &scalars);
        assert_eq!(error_message(error), "`x` must be float32(40, 24), and is float32(24, 40)");
        let error = bound.run(&[x.view().into()], &mut [], &scalars);
        assert!(matches!(error, Err(RunError::Count { what: "results", wanted: 1, found: 0 })));
        let error = bound.run(&[x.view().into()], &mut [y.view_mut().into()], &[]);
        assert!(matches!(error, Err(RunError::Count { what: "scalars", wanted: 2, found: 0 })));
        let mut small = DeviceBuffer::zeros(device, DType::Float32, &[3]).unwrap();
        let error = small.upload(&x.view().into());
        assert_eq!(error_message(error), "`copied tensor` must be float32(3), and is float32(40, 24)");
    });
}

#[test]
fn tensors_of_another_opening_are_refused() {
    on_every_device(|device| {
        let other = Device::open(device.gpu().api, 0).unwrap();
        let add = adding(device).bind(&[]).unwrap();
        let zeros = |device: &Device| DeviceBuffer::zeros(device, DType::Float32, &[LENGTH]).unwrap();
        let (here, there, mut sum) = (zeros(device), zeros(&other), zeros(device));
        let error = add.launch(&[&here, &there], &mut [&mut sum], &[]);
        assert_eq!(error, Err(RunError::Gpu(GpuError::WrongDevice("b".into()))));
        let error = shifting(device).bind_on(&[&there]).err();
        assert_eq!(error, Some(RunError::Gpu(GpuError::WrongDevice("w".into()))));
    });
}

#[test]
fn memory_that_is_not_there_is_an_error() {
    on_every_device(|device| {
        let too_much = device.gpu().memory as usize / 4 + 1024;
        let error = DeviceBuffer::zeros(device, DType::Float32, &[too_much]).unwrap_err();
        let bytes = 4 * too_much;
        assert_eq!(error, RunError::Gpu(GpuError::OutOfMemory { bytes }));
        let error = DeviceBuffer::zeros(device, DType::Float32, &[usize::MAX, 3]).unwrap_err();
        assert!(matches!(error, RunError::Tensor(_)), "{error}");
        let mut code = code(device, crate::case::ADD, vec![launch("add", LENGTH, &buffers(&[0, 1, 2]))]);
        code.scratch = vec![ScratchBlock { bytes: 1 << 60, buffers: vec![BufferId(3)] }];
        let program =
            program("def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }", &[("N", 1000)]);
        let nest = nest(&program, &["a", "b", "c"], &[buffer("large", &[1 << 58], Scope::Scratch)]);
        let error = build(&program, &nest, code, device).bind(&[]).err().unwrap();
        assert_eq!(error, RunError::Gpu(GpuError::OutOfMemory { bytes: 1 << 60 }));
    });
}
