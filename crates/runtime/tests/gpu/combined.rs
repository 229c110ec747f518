//! Reductions that several threads share: in warps, in blocks and in rows of any length, from
//! schedule to device. Without a device, the generated CUDA is compiled.

use crate::case::on_every_device;
use crate::scheduled::{Case, agrees, compiles_as_cuda};

/// Reduces the rows of a matrix along one of two axes of threads.
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

/// A block of several warps for each row, and rows whose length is no power of two.
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

/// A whole softmax over rows in one kernel, with totals that all threads use.
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

/// Default schedules: a total in two kernels, a reduction of columns, and a reduction over several
/// fused loops.
const BY_DEFAULT: Case = Case {
    source: "def all(float(N, M) A, float(B, M, L) I) -> (s, c, m) { s +=! A(i, j)
        c(j) +=! A(i, j)
        m(j) max=! I(b, j, l) }",
    sizes: &[("N", 90), ("M", 70), ("B", 5), ("L", 17)],
    steps: "",
};

/// Minima and maxima of NaN alone, which are the neutral elements.
const ONLY_NAN: Case = Case {
    source: "def ends(float(N, K) A) -> (low, high) { low(i) min=! sqrt(-1 - A(i, k) * A(i, k))
        high(i) max=! sqrt(-1 - A(i, k) * A(i, k)) }",
    sizes: &[("N", 3), ("K", 32)],
    steps: "bind low.i -> block.x
        bind low.k -> thread.x
        bind high.i -> block.x
        bind high.k -> thread.x",
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

/// The same with rows of 50 threads, which are not whole warps.
const TYPES_IN_MEMORY: Case = Case { sizes: &[("K", 50)], ..TYPES };

#[test]
fn threads_are_combined() {
    on_every_device(|device| {
        for case in [LARGEST, SUMS, SOFTMAX, BY_DEFAULT, ONLY_NAN] {
            agrees(device, &case);
        }
    });
}

#[test]
fn combined_threads_compile_as_cuda() {
    for case in [LARGEST, SUMS, SOFTMAX, BY_DEFAULT, ONLY_NAN, TYPES, TYPES_IN_MEMORY] {
        compiles_as_cuda(&case);
    }
}
