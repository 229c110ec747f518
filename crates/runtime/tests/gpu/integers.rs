//! Operators on bits, shifts, powers, functions of bits and random numbers, on every integer type.

use std::collections::BTreeMap;

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::Inputs;
use tilewright_ir::{DType, Number, Tensor, verify_nest};
use tilewright_runtime::gpu::{GpuError, compile_cuda};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::Gpu;

use crate::case::{on_every_device, program, skip};
use crate::scheduled::nest_agrees_on;

fn integer_types() -> impl Iterator<Item = DType> {
    DType::ALL.into_iter().filter(|dtype| dtype.is_integer())
}

/// A program of every operation on a type.
fn source(dtype: DType) -> String {
    format!(
        "def f({dtype}(N) a, {dtype}(N) b, int(N) n) -> (c, d, o, x, l, r, m, p, q, s, t, u, v, w, z, k) {{
           c(i) = ~a(i)         d(i) = a(i) & b(i)    o(i) = a(i) | b(i)    x(i) = a(i) ^ b(i)
           l(i) = a(i) << b(i)  r(i) = a(i) >> b(i)   m(i) = a(i) << n(i)   p(i) = a(i) >> n(i)
           q(i) = a(i) ** b(i)  s(i) = a(i) >> 3      t(i) = a(i) << 5      u(i) = popcount(a(i))
           v(i) = clz(a(i))     w(i) = ctz(a(i))      z(i) = avg_up(a(i), b(i))
           k(i) = random(a(i), b(i), n(i), i) }}"
    )
}

/// All pairs of numbers near the ends of a type and near 0, and counts.
fn inputs(dtype: DType) -> (usize, Inputs) {
    let (low, high) = dtype.integer_bounds().unwrap();
    let mut numbers = vec![0, 1, 2, 3, 7, 8, 31, 64, 100, -1, -2, low, low + 1, high, high - 1, high / 3];
    numbers.dedup();
    let pairs: Vec<(i128, i128)> =
        numbers.iter().flat_map(|a| numbers.iter().map(move |b| (*a, *b))).collect();
    let tensor = |dtype: DType, of: &dyn Fn(usize) -> i128| {
        let mut made = Tensor::zeros(dtype, &[pairs.len()]).unwrap();
        (0..pairs.len()).for_each(|at| made.set(at, Number::Int(of(at)).convert(dtype)));
        made
    };
    let tensors = [
        ("a".to_owned(), tensor(dtype, &|at| pairs[at].0)),
        ("b".to_owned(), tensor(dtype, &|at| pairs[at].1)),
        ("n".to_owned(), tensor(DType::Int32, &|at| at as i128 % 71 - 2)),
    ];
    (pairs.len(), Inputs { tensors: tensors.into(), scalars: BTreeMap::new() })
}

#[test]
fn operations_compile_as_cuda() {
    let gpu = Gpu::h200();
    for dtype in integer_types() {
        let program = program(&source(dtype), &[("N", 1000)]);
        let nest = apply(&program, &schedule_by_rules(&program, &gpu), &gpu).unwrap();
        let code = gpu_code(verify_nest(&nest).unwrap(), &gpu, "a test").unwrap();
        match compile_cuda(&code.text, gpu.architecture) {
            Err(GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
            Err(error) => panic!("{error}\n{}", code.text),
            Ok(cubin) => assert!(cubin.bytes.starts_with(b"\x7fELF")),
        }
    }
}

#[test]
fn operations_agree_with_the_interpreter() {
    on_every_device(|device| {
        for dtype in integer_types() {
            let (count, inputs) = inputs(dtype);
            let program = program(&source(dtype), &[("N", count as i64)]);
            let nest = apply(&program, &schedule_by_rules(&program, device.gpu()), device.gpu()).unwrap();
            nest_agrees_on(device, &program, &nest, inputs);
        }
    });
}
