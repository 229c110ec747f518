//! Reductions that threads share: in warps, in blocks and in rows of any length, from schedule to device. Without a device,
//! the CUDA that they become is compiled.

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::seed;
use tilewright_ir::{LoopNest, Number, Program, Tensor, verify_nest};
use tilewright_runtime::gpu::{Device, GpuExecutable, compile_cuda};
use tilewright_runtime::{Element, View, ViewMut};
use tilewright_schedule::{apply, default_schedule, text};
use tilewright_target::Gpu;

use crate::case::{on_every_device, program, skip};

/// A program with a schedule, or with the default one, at its sizes.
struct Case {
    source: &'static str,
    sizes: &'static [(&'static str, i64)],
    steps: &'static str,
}

/// Rows of a matrix over threads of one axis, or two.
const LARGEST: Case = Case {
    source: "def largest(int32(N, K) A) -> (C) { C(i) max=! A(i, k) * 3 - 100 }",
    sizes: &[("N", 13), ("K", 70)],
    steps: "split C.i -> ib, ir:8
        split C.k -> ko, ki:32
        bind C.ib -> block.x
        bind C.ir -> thread.y
        rfactor C.ki -> part
        reorder part.ki, part.ko
        bind part.ki -> thread.x
        bind C.ki -> thread.x",
};

/// A block of some warps for each row, and rows of a length that is no power of two.
const SUMS: Case = Case {
    source: "def sums(float(N, K) A, float(N, L) B) -> (C, D) { C(i) +=! A(i, k)
        D(i) +=! B(i, l) }",
    sizes: &[("N", 3), ("K", 300), ("L", 100)],
    steps: "split C.k -> ko, ki:128
        bind C.i -> block.x
        rfactor C.ki -> part
        bind part.ki -> thread.x
        bind C.ki -> thread.x
        bind D.i -> block.x
        bind D.l -> thread.x",
};

/// A whole pass over rows in one kernel, with totals that all threads use.
const SOFTMAX: Case = Case {
    source: "def softmax(float(N, D) I) -> (O) {
        top(n) max=! I(n, d)
        total(n) +=! exp(I(n, d) - top(n))
        O(n, d) = exp(I(n, d) - top(n)) / total(n)
      }",
    sizes: &[("N", 6), ("D", 70)],
    steps: "split O.n -> nb, nr:4
        split O.d -> do, dt:32
        bind O.nb -> block.x
        bind O.nr -> thread.y
        reorder O.dt, O.do
        bind O.dt -> thread.x
        compute_at total, O.nr
        compute_at top, O.nr
        split total.d -> do, dt:32
        rfactor total.dt -> total_part
        reorder total_part.dt, total_part.do
        bind total_part.dt -> thread.x
        bind total.dt -> thread.x
        split top.d -> do, dt:32
        rfactor top.dt -> top_part
        reorder top_part.dt, top_part.do
        bind top_part.dt -> thread.x
        bind top.dt -> thread.x",
};

/// What no schedule is given for: everything in two kernels, columns, and several loops as one.
const BY_DEFAULT: Case = Case {
    source: "def all(float(N, M) A, float(B, M, L) I) -> (s, c, m) { s +=! A(i, j)
        c(j) +=! A(i, j)
        m(j) max=! I(b, j, l) }",
    sizes: &[("N", 90), ("M", 70), ("B", 5), ("L", 17)],
    steps: "",
};

/// Every operator, and types of every size.
const TYPES: Case = Case {
    source: "def types(uint8(K) A, int64(K) B, double(K) C, half(K) D, int16(K) E) -> (a, b, c, d, e) {
        a max=! A(k)
        b *=! B(k)
        c min=! C(k)
        d +=! D(k)
        e +=! E(k) }",
    sizes: &[("K", 32)],
    steps: "bind a.k -> thread.x
        bind b.k -> thread.x
        bind c.k -> thread.x
        bind d.k -> thread.x
        bind e.k -> thread.x",
};

/// The same with rows of threads that no warps are.
const TYPES_IN_MEMORY: Case = Case { sizes: &[("K", 50)], ..TYPES };

fn nest_of(case: &Case, gpu: &Gpu) -> (Program, LoopNest) {
    let program = program(case.source, case.sizes);
    let parsed = text::parse(case.steps);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let schedule = if case.steps.is_empty() { default_schedule(&program, gpu) } else { parsed.schedule };
    let nest = apply(&program, &schedule, gpu).unwrap_or_else(|refusal| panic!("{refusal}"));
    verify_nest(&nest).unwrap();
    (program, nest)
}

/// Runs a program, whose tensors are all of one type, on a device and as the interpreter does.
fn agrees<T: Element>(device: &Device, case: &Case, of: fn(Number) -> T, number: fn(T) -> Number) {
    let (program, nest) = nest_of(case, device.gpu());
    let code = gpu_code(&nest, device.gpu(), "a test").unwrap();
    let text = code.text.clone();
    let executable = GpuExecutable::new(&program, &nest, code, device);
    let bound = executable.unwrap_or_else(|error| panic!("{error}\n{text}")).bind(&[]).unwrap();

    let supplied = seed::inputs(&program, 7).unwrap();
    let wanted = tilewright_interp::run(&program, supplied.clone()).unwrap();
    let elements = |tensor: &Tensor| (0..tensor.len()).map(|at| of(tensor.get(at))).collect::<Vec<T>>();
    let named = |test: fn(tilewright_ir::Role) -> bool| {
        program.tensors_with(test).map(|(_, tensor)| tensor.name.clone()).collect::<Vec<String>>()
    };
    let given: Vec<(Vec<T>, Vec<usize>)> = named(|role| role.is_supplied())
        .iter()
        .map(|name| (elements(&supplied.tensors[name]), supplied.tensors[name].shape().to_vec()))
        .collect();
    let results = named(|role| role.is_result());
    let mut found: Vec<Vec<T>> = results.iter().map(|name| elements(&wanted[name])).collect();
    found.iter_mut().flatten().for_each(|element| *element = of(Number::Int(0)));
    let inputs: Vec<View> =
        given.iter().map(|(data, shape)| View::from_slice(data, shape).unwrap()).collect();
    let mut views: Vec<ViewMut> = found
        .iter_mut()
        .zip(&results)
        .map(|(data, name)| ViewMut::from_slice(data, wanted[name].shape()).unwrap())
        .collect();
    bound.run(&inputs, &mut views, &[]).unwrap();
    drop(views);
    for (name, data) in results.iter().zip(found) {
        let mut tensor = Tensor::zeros(wanted[name].dtype(), wanted[name].shape()).unwrap();
        data.into_iter().enumerate().for_each(|(at, element)| tensor.set(at, number(element)));
        tilewright_interp::compare(&program, name, &tensor, &wanted[name])
            .unwrap_or_else(|difference| panic!("{difference}\n{text}"));
    }
}

#[test]
fn threads_are_combined() {
    let float = |number: Number| number.as_f64() as f32;
    on_every_device(|device| {
        for case in [SUMS, SOFTMAX, BY_DEFAULT] {
            agrees::<f32>(device, &case, float, |element| Number::Float(element.into()));
        }
        let int = |number: Number| number.as_i128() as i32;
        agrees::<i32>(device, &LARGEST, int, |element| Number::Int(element.into()));
    });
}

#[test]
fn combined_threads_compile_as_cuda() {
    let gpu = Gpu::h200();
    for case in [LARGEST, SUMS, SOFTMAX, BY_DEFAULT, TYPES, TYPES_IN_MEMORY] {
        let (_, nest) = nest_of(&case, &gpu);
        let code = gpu_code(&nest, &gpu, "a test").unwrap();
        match compile_cuda(&code.text, gpu.architecture) {
            Err(tilewright_runtime::gpu::GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
            Err(error) => panic!("{error}\n{}", code.text),
            Ok(cubin) => assert!(cubin.bytes.starts_with(b"\x7fELF")),
        }
    }
}
