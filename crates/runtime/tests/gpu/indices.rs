//! Indices as values, and data as indices: every number is exact until it is converted, and every
//! expression keeps its parentheses. Without a device, the generated CUDA is compiled.

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::{Inputs, seed};
use tilewright_ir::nest::{Axis, LoopKind, Stmt};
use tilewright_ir::{DType, Number, Tensor, verify_nest};
use tilewright_runtime::RunError;
use tilewright_runtime::gpu::{Device, GpuExecutable};
use tilewright_runtime::{View, ViewMut};
use tilewright_target::Gpu;

use crate::case::on_every_device;
use crate::scheduled::{Case, agrees, compiles_as_cuda, nest_agrees_on, nest_of};

/// Indices of several terms beside operators that bind more tightly, and in casts, conditions,
/// selects and subscripts.
const PARENTHESES: Case = Case {
    source: "def f(int(N) x, bool(N) m, int8(N) s) -> (a, b, c, d, e, g) {
        a(i) = x(i) * int32(i) - -(i - 3) * x(i)
        b(i) = x(i) - (i - 2 * x(i)) - abs(-(x(i) - i))
        c(i) = (m(i) ? i > 3 ? x(i) : -x(i) : i < N - 2 && !m(N - 1 - i) ? 2 : 3) - (x(i) > 3 || m(i) ? 1 : i)
        d(i) = m(i) == (x(i) < i) && !(x(i) - 1 < i - 5)
        e(i) = min(x(i), i - 7) * max(-3, clamp(x(i), -i, i) - i) % -5
        g(i) = -(-s(i)) * int8(i - 300) - int8(-128) / (s(i) - int8(i))
      }",
    sizes: &[("N", 300)],
    steps: "",
};

/// The smallest number of each type, which is its own absolute value.
const LEAST: Case = Case {
    source: "def f(int8(N) a, int16(N) b, int(N) c, int64(N) d) -> (w, x, y, z) {
        w(i) = abs(i < N ? int8(-128) + min(a(i), 0) % 1 : a(i)) % 3
        x(i) = abs(i < N ? int16(-32768) + min(b(i), 0) % 1 : b(i)) % 3
        y(i) = abs(int32(-2147483648) + c(i) % 1) % 3
        z(i) = abs(int64(-9223372036854775807 - 1) + d(i) % 1) % 3
      }",
    sizes: &[("N", 40)],
    steps: "",
};

/// Products beyond 32 bits, and their conversions to narrower types.
const CONVERTED: Case = Case {
    source: "def f(int64(N) A, uint64(N) U, float(N) F) -> (a, b, c, d, e, g) {
        a(i) = A(i) + uint32(i * 4294967295) - int32(i * 4294967296 - 2147483649)
        b(i) = A(i) * i - int64(i * 4294967296)
        c(i) = A(i) + uint16(i * 65535 - N) + int8(-i * 100)
        d(i) = U(i) + uint64(N - i * 1099511627776)
        e(i) = F(i) + float(i * 4294967295) - float(-i)
        g(i) = A(i) + int32(N * 4294967296) + int32(i) * i
      }",
    sizes: &[("N", 300)],
    steps: "",
};

/// The variable of a host loop, as a value, in conditions, in subscripts and in extents.
const ORDERED: Case = Case {
    source: "def f(int(N) x, int(T) w, float(N, 9) y) -> (d, e, g, h) {
        d(i) = x(i)
        e(i) = x(i)
        g(i) = x(i)
        h(i) = 0.0 where i in 0:N
        for t in 0:T {
          d(i) = t > 1 ? d(i) * (t - 4) : d(i) - t * i
          e(i) = e(i) + w(T - 1 - t) * (t - i) + (t < 2 && i % 2 == 0 ? 1 : t)
          g(i) = g(i) + x(clamp(i - t, 0, N - 1))
          h(i) += k <= t ? y(i, k) : 0.0 where i in 0:N, k in 0:9
        }
      }",
    sizes: &[("N", 300), ("T", 5)],
    steps: "",
};

/// A Gauss-Jordan elimination, as in a pipeline, whose kernels test whether a row is the pivot row.
const ELIMINATION: Case = Case {
    source: "def solved(float(B, 4, 7) A) -> (M) {
        M(b, i, j) = A(b, i, j) + (i == j ? 8.0 : 0.0)
        for k in 0:4 {
          pivot(b, j) = M(b, k, j) / M(b, k, k) where j in 0:7
          factor(b, i) = M(b, i, k) where i in 0:4
          M(b, i, j) = i == k ? pivot(b, j) : M(b, i, j) - factor(b, i) * pivot(b, j)
        }
      }",
    sizes: &[("B", 70)],
    steps: "",
};

/// Names that have a meaning in the target languages, and two names that would become the same.
const NAMES: Case = Case {
    source: "def f(float(N) float4, float(N) fmin, int(N) linux, float s, float(N) s_value) -> (nullptr, double2, y) {
        nullptr(i) = min(float4(i), fmin(i)) * s - s_value(i)
        double2(i) = abs(fmin(i)) + linux(i)
        y(bitand) = float4(bitand) > fmin(bitand) || isnan(float4(bitand))
      }",
    sizes: &[("N", 300)],
    steps: "",
};

/// Data beyond 32 bits in subscripts of reads.
const GATHERED: Case = Case {
    source: "def f(float(N) x, int64(M) p, uint64(M) q, uint32(M) r, uint8(M) s) -> (a, b, c, d) {
        a(i) = x(clamp(p(i) + 1, 0, N - 1)) + x(clamp(p(i) / 7 - 3, 0, N - 1)) + x(p(i) % 5)
        b(i) = x(clamp(q(i), 0, N - 1)) + x(min(q(i) / 3, N - 1))
        c(i) = x(clamp(r(i), 0, N - 1)) + x(r(i) % 5) + x(clamp(2147483653 - r(i), 0, N - 1))
        d(i) = x(min(s(i) + 1, N - 1)) * i
      }",
    sizes: &[("N", 5), ("M", 8)],
    steps: "",
};

/// Data beyond 32 bits in subscripts of writes.
const SCATTERED: Case = Case {
    source: "def f(float(M) x, int64(M) p, uint64(M) q, uint32(M) r, uint8(M) s)
        -> (int32(5) h, float(5) least, float(5) most, int64(256) count) {
        h(clamp(p(i), 0, 4)) +=! int32(i) * -1 + 2
        least(clamp(q(i), 0, 4)) min=! x(i)
        most(clamp(r(i), 0, 4)) max=! x(i) * i
        count(s(i)) +=! int64(i * 4294967296)
      }",
    sizes: &[("M", 8)],
    steps: "",
};

const SIGNED: [i128; 8] = [(1 << 32) + 1, 1 - (1 << 32), 1, -1, 1 << 62, -(1 << 62), 3, i32::MIN as i128];
const UNSIGNED: [i128; 8] = [(1 << 32) + 1, (1 << 63) + 1, 1, u64::MAX as i128, 1 << 62, 0, 3, 1 << 31];
const HALF: [i128; 8] = [1 << 31, u32::MAX as i128, 1, (1 << 31) + 1, 2, 0, (1 << 31) + 5, 4];

/// Inputs from a seed, with extreme values for `p`, `q` and `r`.
fn extremes(case: &Case, gpu: &Gpu) -> Inputs {
    let (program, _) = nest_of(case, gpu);
    let mut inputs = seed::inputs(&program, 7).unwrap();
    for (name, dtype, values) in
        [("p", DType::Int64, SIGNED), ("q", DType::UInt64, UNSIGNED), ("r", DType::UInt32, HALF)]
    {
        let mut tensor = Tensor::zeros(dtype, &[values.len()]).unwrap();
        values.into_iter().enumerate().for_each(|(at, value)| tensor.set(at, Number::Int(value)));
        inputs.tensors.insert(name.to_owned(), tensor);
    }
    inputs
}

#[test]
fn indices_are_values_like_others() {
    on_every_device(|device| {
        for case in [&PARENTHESES, &LEAST, &CONVERTED, &ORDERED, &ELIMINATION, &NAMES] {
            agrees(device, case);
        }
    });
}

#[test]
fn data_beyond_32_bits_chooses_elements() {
    on_every_device(|device| {
        for case in [&GATHERED, &SCATTERED] {
            let (program, nest) = nest_of(case, device.gpu());
            nest_agrees_on(device, &program, &nest, extremes(case, device.gpu()));
        }
    });
}

#[test]
fn all_of_it_compiles_as_cuda() {
    for case in [&PARENTHESES, &LEAST, &CONVERTED, &ORDERED, &ELIMINATION, &NAMES, &GATHERED, &SCATTERED] {
        compiles_as_cuda(case);
    }
}

/// The element that the 64-bit `index` chooses, or the error.
fn chosen(device: &Device, source: &'static str, index: i64) -> Result<f32, RunError> {
    let (program, nest) = nest_of(&Case { source, sizes: &[("N", 5), ("M", 2)], steps: "" }, device.gpu());
    let code = gpu_code(verify_nest(&nest).unwrap(), device.gpu(), "a test").unwrap();
    let bound = GpuExecutable::new(&program, &nest, code, device).unwrap().bind(&[]).unwrap();
    let (x, p, mut y) = ([1.0f32, 2.0, 4.0, 8.0, 16.0], [index, 2], [0.0f32; 2]);
    let inputs = [View::from_slice(&x, &[5]).unwrap(), View::from_slice(&p, &[2]).unwrap()];
    bound.run(&inputs, &mut [ViewMut::from_slice(&mut y, &[2]).unwrap()], &[])?;
    Ok(y[0])
}

#[test]
fn data_is_checked_before_it_is_cut() {
    let plain = "def f(float(N) x, int64(M) p) -> (y) { y(i) = x(p(i)) }";
    let scaled = "def f(float(N) x, int64(M) p) -> (y) { y(i) = x(2 * p(i) - 1) }";
    let declared = "def f(float(N) x, int64(M) p) -> (y) { y(i) = x(at - 1) where at = p(i), at in 1:4 }";
    on_every_device(|device| {
        assert_eq!(chosen(device, plain, 4), Ok(16.0));
        assert_eq!(chosen(device, scaled, 2), Ok(8.0));
        assert_eq!(chosen(device, declared, 3), Ok(4.0));
        // Each value would be a valid subscript if some of its bits were cut off.
        let far = [1 << 32, (1 << 32) + 3, -(1 << 32), i64::MAX, (1 << 62) + 1, i64::MIN + 2];
        // Twice the last two values would be beyond 64 bits.
        for (source, far) in [(plain, &far[..]), (declared, &far), (scaled, &far[..4])] {
            for index in far {
                let found = chosen(device, source, *index);
                assert!(matches!(found, Err(RunError::OutOfBounds(_))), "{source}: {index} gives {found:?}");
            }
        }
    });
}

#[test]
fn an_invalid_nest_is_refused() {
    let (gpu, case) = (Gpu::h200(), &PARENTHESES);
    let (_, mut nest) = nest_of(case, &gpu);
    let Some(Stmt::For(outer)) = nest.body.first_mut() else { panic!("a kernel is a loop") };
    let Some(Stmt::For(inner)) = outer.body.first_mut() else { panic!("threads are inside blocks") };
    (outer.kind, inner.kind) = (LoopKind::Thread(Axis::X), LoopKind::Block(Axis::X));
    assert!(verify_nest(&nest).is_err());
}
