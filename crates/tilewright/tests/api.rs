//! Tests of the public interface: mistakes and their messages, arrays of any layout, constants,
//! threads, and results that have the same bits every time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;
use std::thread;

use half::f16;
use ndarray::{Array1, Array2, ArrayView2, Axis, array, s};
use tilewright::{
    BoundKernel, Compile, Cpu, Error, Kernel, Module, Number, OpenTarget, Pool, Program, VectorInstructions,
    View, ViewMut, parse_schedule,
};

const MM: &str = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";
const DENSE: &str = "def dense(float(B, I) x, const float(I, O) w) -> (y) { y(b, o) +=! x(b, i) * w(i, o) }";

fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let module = Module::parse(source).unwrap_or_else(|error| panic!("{error}"));
    let name = module.functions().last().unwrap().to_owned();
    module.program(&name, sizes.iter().copied()).unwrap_or_else(|error| panic!("{error}"))
}

fn on_threads(program: &Program, threads: usize, schedule: Option<&str>) -> Kernel {
    let options = schedule.map(|text| Compile::with(parse_schedule(text).unwrap())).unwrap_or_default();
    program.compile_with(&options.threads(threads)).unwrap()
}

fn mm(m: i64, k: i64, n: i64) -> Kernel {
    on_threads(&program(MM, &[("M", m), ("K", k), ("N", n)]), 2, None)
}

/// Numbers whose sums depend on the order.
fn uneven(shape: (usize, usize)) -> Array2<f32> {
    Array2::from_shape_fn(shape, |(i, j)| ((i * 31 + j * 17) % 101) as f32 / 7.0 - 6.5)
}

#[track_caller]
fn message<T>(outcome: Result<T, Error>) -> String {
    match outcome {
        Ok(_) => panic!("it succeeded, but an error was expected"),
        Err(error) => error.to_string(),
    }
}

// Mistakes in texts.

#[test]
fn mistakes_in_a_source_are_drawn_under_it() {
    let error = message(Module::parse("def f(float(N) A) -> (B) {\n  B(i) = A(i\n}\n"));
    assert!(error.contains(" --> source:") && error.contains('^'), "{error}");
    let module =
        Module::parse("def f(float(N) A) -> (B) {\n  B(i) = A(i + 1) + X(i) where i in 0:N\n}\n").unwrap();
    let error = message(module.program("f", [("N", 4)]));
    assert!(error.contains(" --> source:2:") && error.contains("^"), "{error}");
    // All mistakes are reported at once.
    assert!(error.contains('X'), "{error}");
}

#[test]
fn mistakes_in_a_schedule_are_drawn_under_it() {
    let error = message(parse_schedule("split C.j -> jo, ji:8\nvectorise C.ji\n"));
    assert!(error.contains(" --> schedule:2:1") && error.contains("^^^^^^^^^"), "{error}");
    assert!(error.contains("did you mean `vectorize`"), "{error}");
}

#[test]
fn a_step_that_is_not_legal_is_refused_with_its_reason() {
    let schedule = parse_schedule("split C.i -> io, ii:4\nparallel C.k").unwrap();
    let compiled = program(MM, &[("M", 8), ("K", 8), ("N", 8)]).compile_with(&Compile::with(schedule));
    match compiled {
        Err(Error::Schedule(refusal)) => {
            assert_eq!(refusal.step, Some(1));
            assert!(refusal.to_string().contains("`C.k` carries a dependence"), "{refusal}");
        }
        other => panic!("{:?}", other.err()),
    }
}

#[test]
fn functions_and_sizes_that_are_not_there() {
    let module = Module::parse(MM).unwrap();
    assert_eq!(message(module.program("gemm", [])), "there is no function `gemm`; the source has `mm`");
    assert_eq!(
        message(module.program("mm", [("M", 2), ("N", 3)])),
        "the size `K` has no value: give it with the other sizes"
    );
    for bad in [0, -1, i64::MIN] {
        let error = message(module.program("mm", [("M", 2), ("N", 3), ("K", bad)]));
        assert!(error.contains('K'), "{bad}: {error}");
    }
}

#[test]
fn sizes_that_no_memory_has_are_refused() {
    let huge = Module::parse(MM).unwrap().program("mm", [("M", 1 << 40), ("N", 1 << 40), ("K", 1)]);
    assert!(huge.and_then(|program| program.compile()).is_err());
}

// Mistakes in calls.

#[test]
fn arguments_are_checked() {
    let kernel = mm(2, 3, 4);
    let (a, b, mut c) = (uneven((2, 3)), uneven((3, 4)), Array2::<f32>::zeros((2, 4)));
    let error = message(kernel.call().input("A", &a).unwrap().output("C", &mut c).unwrap().run());
    assert_eq!(error, "`B` was not given");
    let error = message(kernel.call().input("A", &a).unwrap().input("B", &b).unwrap().run());
    assert_eq!(error, "`C` was not given");
    let error = message(kernel.call().input("D", &a));
    assert_eq!(error, "there is no input `D`; the parameters are `A`, `B`, `C`");
    assert!(message(kernel.call().output("A", &mut c)).starts_with("there is no result `A`"));
    assert!(message(kernel.call().scalar("A", 1.0)).starts_with("there is no scalar `A`"));
    let call = kernel.call().input("A", &a).unwrap().input("B", &a).unwrap();
    let error = message(call.output("C", &mut c).unwrap().run());
    assert_eq!(error, "`B` must be float32(3, 4), and is float32(2, 3)");
    let double = b.mapv(f64::from);
    let call = kernel.call().input("A", &a).unwrap().input("B", &double).unwrap();
    let error = message(call.output("C", &mut c).unwrap().run());
    assert_eq!(error, "`B` must be float32(3, 4), and is float64(3, 4)");
    let flat = Array1::<f32>::zeros(12);
    let call = kernel.call().input("A", &a).unwrap().input("B", &flat).unwrap();
    let error = message(call.output("C", &mut c).unwrap().run());
    assert_eq!(error, "`B` must be float32(3, 4), and is float32(12)");
    assert!(c.iter().all(|element| *element == 0.0), "a call that was refused wrote something");
}

#[test]
fn an_argument_is_given_once() {
    let kernel = mm(2, 2, 2);
    let (a, mut c, mut d) = (uneven((2, 2)), uneven((2, 2)), uneven((2, 2)));
    assert!(message(kernel.call().input("A", &a).unwrap().input("A", &a)).contains("`A`"));
    assert!(message(kernel.call().output("C", &mut c).unwrap().output("C", &mut d)).contains("`C`"));
}

#[test]
fn positional_calls_count_their_arguments() {
    let kernel = mm(2, 2, 2);
    let (a, mut c) = (uneven((2, 2)), uneven((2, 2)));
    let bound = kernel.bind(&[]).unwrap();
    let error = message(bound.run(&[View::from(&a)], &mut [ViewMut::from(&mut c)], &[]));
    assert_eq!(error, "expected 2 inputs, but the call passes 1");
    let inputs = [View::from(&a), View::from(&a)];
    let error = message(bound.run(&inputs, &mut [], &[]));
    assert_eq!(error, "expected 1 results, but the call passes 0");
    let error = message(bound.run(&inputs, &mut [ViewMut::from(&mut c)], &[Number::Int(1)]));
    assert_eq!(error, "expected 0 scalars, but the call passes 1");
    let error = message(kernel.bind(&inputs));
    assert_eq!(error, "expected 0 constant inputs, but the call passes 2");
}

#[test]
fn scalars_are_given_or_known() {
    let source = "def scale(float(N) x, float factor, int shift) -> (y) {
        y(i) = factor * x(i + shift) where i in 0:N - shift
    }";
    let kernel = on_threads(&program(source, &[("N", 5), ("shift", 2)]), 1, None);
    let (x, mut y) = (array![1f32, 2., 3., 4., 5.], Array1::<f32>::zeros(3));
    let call = || kernel.call().input("x", &x).unwrap();
    call().scalar("factor", 0.5).unwrap().output("y", &mut y).unwrap().run().unwrap();
    assert_eq!(y, array![1.5, 2.0, 2.5]);
    assert_eq!(message(call().output("y", &mut y).unwrap().run()), "`factor` was not given");
    let other = call().scalar("factor", 1.0).unwrap().number("shift", Number::Int(1)).unwrap();
    let error = message(other.output("y", &mut y).unwrap().run());
    assert_eq!(error, "the kernel is specialised for `shift` = 2, but the call passes 1");
}

/// The ranges that `where` declares for data are checked, also for indices within the tensor.
#[test]
fn declared_ranges_are_checked() {
    let source = "def gather(float(N) x, int(M) at) -> (y) { y(i) = x(j) where j = at(i), j in 1:9 }";
    let kernel = on_threads(&program(source, &[("N", 64), ("M", 3)]), 1, None);
    let x = Array1::from_shape_fn(64, |at| at as f32);
    let run = |at: [i32; 3]| {
        let (at, mut y) = (Array1::from_iter(at), Array1::<f32>::zeros(3));
        let call = kernel.call().input("x", &x).unwrap().input("at", &at).unwrap();
        call.output("y", &mut y).unwrap().run().map(|()| y.to_vec())
    };
    assert_eq!(run([1, 8, 3]).unwrap(), [1.0, 8.0, 3.0]);
    for bad in [0, 9, 63, 64] {
        let error = message(run([1, bad, 3]));
        assert!(error.contains("outside the range of its `where` clause"), "{error}");
    }
}

/// A program never reads old contents of memory: elements that may be undefined are 0.
#[test]
fn what_may_be_undefined_is_zero() {
    let source = "def partial(float(N) x) -> (y) { float(N) t\n t(0) = 1\n y(i) = x(i) > 0 ? t(i) : 0 }";
    let kernel = on_threads(&program(source, &[("N", 400)]), 1, None);
    let (x, mut y) = (Array1::<f32>::ones(400), Array1::<f32>::from_elem(400, 7.0));
    kernel.call().input("x", &x).unwrap().output("y", &mut y).unwrap().run().unwrap();
    assert_eq!((y[0], y.sum()), (1.0, 1.0));
}

#[test]
fn data_that_leads_out_of_a_tensor_is_an_error_and_no_more() {
    let source = "def gather(float(N) x, int(M) at) -> (y) { y(i) = x(at(i)) }";
    let x = Array1::from_shape_fn(64, |at| at as f32);
    for threads in [1, 2] {
        let kernel = on_threads(&program(source, &[("N", 64), ("M", 1000)]), threads, None);
        let mut y = Array1::<f32>::zeros(1000);
        let mut at = Array1::from_shape_fn(1000, |at| (at * 7 % 64) as i32);
        for bad in [64, -1, i32::MAX, i32::MIN] {
            at[777] = bad;
            let call = kernel.call().input("x", &x).unwrap().input("at", &at).unwrap();
            let error = message(call.output("y", &mut y).unwrap().run());
            assert!(error.contains("a subscript of `x` is outside dimension 0"), "{error}");
        }
        at[777] = 63;
        let call = kernel.call().input("x", &x).unwrap().input("at", &at).unwrap();
        call.output("y", &mut y).unwrap().run().unwrap();
        assert!(y.iter().zip(&at).all(|(found, at)| *found == *at as f32));
    }
}

#[test]
fn vectors_that_this_machine_lacks_are_refused() {
    let host = Cpu::host();
    for vectors in VectorInstructions::ALL {
        let options = Compile::default().on(OpenTarget::Cpu(Cpu { vectors, ..host.clone() }));
        let compiled = program(MM, &[("M", 3), ("K", 3), ("N", 3)]).compile_with(&options);
        assert_eq!(compiled.is_ok(), vectors <= host.vectors, "{vectors:?}");
    }
}

// Arrays.

#[test]
fn arrays_of_any_layout_are_taken() {
    let kernel = mm(4, 6, 5);
    let (a, b) = (uneven((4, 6)), uneven((6, 5)));
    let wanted = a.dot(&b);
    let large = uneven((12, 10));
    let rows = uneven((1, 6));
    let views: [(ArrayView2<f32>, ArrayView2<f32>); 4] = [
        (a.view(), b.view()),
        (large.slice(s![..;3, 2..8]), b.slice(s![..;-1, ..])),
        (rows.broadcast((4, 6)).unwrap(), b.slice(s![.., ..;-1])),
        (large.slice(s![4..8, ..;-1]).slice_move(s![.., ..6]), large.slice(s![..;2, ..;2])),
    ];
    for (a, b) in views {
        let mut whole = Array2::<f32>::from_elem((11, 9), -1.0);
        let part = whole.slice_mut(s![1..9;2, ..;-2]);
        kernel.call().input("A", a).unwrap().input("B", b).unwrap().output("C", part).unwrap().run().unwrap();
        let found = whole.slice(s![1..9;2, ..;-2]);
        assert!((&found - &a.dot(&b)).iter().all(|error| error.abs() < 1e-3), "{found}");
        // Nothing else was written.
        assert_eq!(whole.iter().filter(|element| **element == -1.0).count(), 99 - 20);
    }
    // Column-major order, as in Fortran.
    let mut c = Array2::<f32>::zeros((5, 4));
    let result = c.view_mut().reversed_axes();
    kernel.call().input("A", &a).unwrap().input("B", &b).unwrap().output("C", result).unwrap().run().unwrap();
    assert!((&c.t() - &wanted).iter().all(|error| error.abs() < 1e-3));
}

#[test]
fn elements_of_other_types() {
    let source =
        "def f(half(N) x, uint8(N) n, bool(N) b) -> (y, z) { y(i) = x(i) + half(n(i))  z(i) = !b(i) }";
    let kernel = on_threads(&program(source, &[("N", 3)]), 1, None);
    let x = array![f16::from_f32(0.5), f16::from_f32(-1.0), f16::from_f32(2.0)];
    let (n, b) = (array![1u8, 2, 255], array![true, false, true]);
    let (mut y, mut z) = (Array1::<f16>::from_elem(3, f16::NAN), Array1::from_elem(3, false));
    let call = kernel.call().input("x", &x).unwrap().input("n", &n).unwrap().input("b", &b).unwrap();
    call.output("y", &mut y).unwrap().output("z", &mut z).unwrap().run().unwrap();
    assert_eq!(y.mapv(f32::from), array![1.5, 1.0, 257.0]);
    assert_eq!(z, array![false, true, false]);
}

#[test]
fn what_is_updated_keeps_its_old_values() {
    let source = "def axpy(float a, float(N) x) -> (y) { y(i) += a * x(i) }";
    let kernel = on_threads(&program(source, &[("N", 5)]), 1, None);
    let x = array![1f32, 2., 3., 4., 5.];
    let mut y = Array1::from_elem(10, 1f32);
    for _ in 0..3 {
        let part = y.slice_mut(s![..;-2]);
        kernel
            .call()
            .scalar("a", 2.0)
            .unwrap()
            .input("x", &x)
            .unwrap()
            .output("y", part)
            .unwrap()
            .run()
            .unwrap();
    }
    assert_eq!(y, array![1., 31., 1., 25., 1., 19., 1., 13., 1., 7.]);
}

thread_local! {
    /// The number of bytes that this thread has allocated.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: this allocator forwards to the system's allocator, and counts.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller guarantees it.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller guarantees it.
        unsafe { System.dealloc(block, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn contiguous_arrays_are_not_copied() {
    let source = "def twice(float(N, N) x) -> (y) { y(i, j) = x(i, j) + x(i, j) }";
    let kernel = on_threads(&program(source, &[("N", 256)]), 1, None);
    let bytes = 256 * 256 * 4;
    let (x, mut y) = (uneven((256, 256)), Array2::<f32>::zeros((256, 256)));
    let mut allocated = |x: View<'_>| {
        let before = ALLOCATED.get();
        kernel.call().input("x", x).unwrap().output("y", &mut y).unwrap().run().unwrap();
        ALLOCATED.get() - before
    };
    assert!(allocated(x.view().into()) < 4096);
    let copied = allocated(x.t().into());
    assert!((bytes..bytes + 4096).contains(&copied), "{copied}");
}

// Constants, and several threads.

#[test]
fn a_constant_is_bound_once() {
    let packed = Some("promote w at root -> wp packed (d1, d0)");
    for schedule in [None, packed] {
        let kernel = on_threads(&program(DENSE, &[("B", 3), ("I", 7), ("O", 20)]), 2, schedule);
        let (w, other) = (uneven((7, 20)), uneven((20, 7)));
        let bound = [kernel.bind(&[View::from(&w)]).unwrap(), kernel.bind(&[other.t().into()]).unwrap()];
        drop(kernel);
        for turn in 0..20 {
            let x = uneven((3, 7)) + turn as f32;
            for (bound, w) in bound.iter().zip([w.view(), other.t()]) {
                let mut y = Array2::<f32>::zeros((3, 20));
                bound.call().input("x", &x).unwrap().output("y", &mut y).unwrap().run().unwrap();
                assert!((&y - &x.dot(&w)).iter().all(|error| error.abs() < 1e-2));
            }
        }
        let error = message(bound[0].call().input("w", &w));
        assert_eq!(error, "`w` was bound before");
    }
}

#[test]
fn constants_can_be_given_with_a_call_and_are_checked() {
    let kernel = on_threads(&program(DENSE, &[("B", 3), ("I", 7), ("O", 20)]), 2, None);
    let (x, w, mut y) = (uneven((3, 7)), uneven((7, 20)), Array2::<f32>::zeros((3, 20)));
    kernel.call().input("x", &x).unwrap().input("w", &w).unwrap().output("y", &mut y).unwrap().run().unwrap();
    assert!((&y - &x.dot(&w)).iter().all(|error| error.abs() < 1e-2));
    let error = message(kernel.call().input("x", &x).unwrap().output("y", &mut y).unwrap().run());
    assert_eq!(error, "`w` was not given");
    let error = message(kernel.bind(&[View::from(&x)]));
    assert_eq!(error, "`w` must be float32(7, 20), and is float32(3, 7)");
}

#[test]
fn one_bound_kernel_is_called_from_several_threads() {
    let steps = "promote w at root -> wp packed (d1, d0)\npromote x at y.b -> xp packed\nparallel y.b";
    let kernel = on_threads(&program(DENSE, &[("B", 16), ("I", 33), ("O", 21)]), 2, Some(steps));
    let w = uneven((33, 21));
    let bound = kernel.bind(&[View::from(&w)]).unwrap();
    let call = |x: &Array2<f32>| {
        let mut y = Array2::<f32>::zeros((16, 21));
        bound.call().input("x", x).unwrap().output("y", &mut y).unwrap().run().unwrap();
        y
    };
    let inputs: Vec<Array2<f32>> = (0..4).map(|at| uneven((16, 33)) * (at + 1) as f32).collect();
    let wanted: Vec<Array2<f32>> = inputs.iter().map(call).collect();
    thread::scope(|scope| {
        for (x, wanted) in inputs.iter().zip(&wanted) {
            scope.spawn(|| (0..200).for_each(|_| assert_eq!(call(x), *wanted)));
        }
    });
}

#[test]
fn several_threads_compile_at_once() {
    let module = Module::parse(MM).unwrap();
    let pool = Arc::new(Pool::new(2));
    thread::scope(|scope| {
        for number in 0..4usize {
            let (module, pool) = (&module, &pool);
            scope.spawn(move || {
                for size in 1..8usize {
                    let (m, k) = (size, size + number);
                    let sizes = [("M", m as i64), ("K", k as i64), ("N", 5)];
                    let program = module.program("mm", sizes).unwrap();
                    let kernel = program.compile_on(&Compile::default(), Arc::clone(pool)).unwrap();
                    let (a, b, mut c) = (uneven((m, k)), uneven((k, 5)), Array2::<f32>::zeros((m, 5)));
                    let call = kernel.call().input("A", &a).unwrap().input("B", &b).unwrap();
                    call.output("C", &mut c).unwrap().run().unwrap();
                    assert!((&c - &a.dot(&b)).iter().all(|error| error.abs() < 1e-2));
                }
            });
        }
    });
}

#[test]
fn kernels_live_and_die_on_their_own() {
    let mut kernels: Vec<Kernel> = (1..6).map(|size| mm(size, size, size)).collect();
    while let Some(gone) = kernels.pop() {
        drop(gone);
        for (at, kernel) in kernels.iter().enumerate() {
            let a = Array2::<f32>::eye(at + 1);
            let mut c = Array2::<f32>::zeros((at + 1, at + 1));
            let call = kernel.call().input("A", &a).unwrap().input("B", &a).unwrap();
            call.output("C", &mut c).unwrap().run().unwrap();
            assert_eq!(c, a);
        }
    }
}

#[test]
fn kernels_can_be_sent_and_shared() {
    fn assert_shared<T: Send + Sync>() {}
    assert_shared::<Kernel>();
    assert_shared::<BoundKernel<'static>>();
    assert_shared::<Module>();
    assert_shared::<Error>();
}

// Results with the same bits every time.

/// Computes a product several times on a number of threads. All results must have the same bits.
fn product(steps: Option<&str>, threads: usize, a: &Array2<f32>, b: &Array2<f32>) -> Array2<u32> {
    let ((m, k), n) = (a.dim(), b.len_of(Axis(1)));
    let program = program(MM, &[("M", m as i64), ("K", k as i64), ("N", n as i64)]);
    let kernel = on_threads(&program, threads, steps);
    let call = || {
        let mut c = Array2::<f32>::zeros((m, n));
        kernel
            .call()
            .input("A", a)
            .unwrap()
            .input("B", b)
            .unwrap()
            .output("C", &mut c)
            .unwrap()
            .run()
            .unwrap();
        c.mapv(f32::to_bits)
    };
    let first = call();
    (0..20).for_each(|_| assert_eq!(call(), first));
    first
}

#[test]
fn sums_are_the_same_on_any_number_of_threads() {
    let (a, b) = (uneven((37, 301)), uneven((301, 29)));
    let partial = "split C.k -> ko, ki:16\nrfactor C.ko -> P\nparallel P.ko";
    let lanes = "split C.k -> ko, ki:16\nreorder C.i, C.j, C.ko, C.ki\nvectorize C.ki\nparallel C.i";
    for steps in [None, Some(partial), Some(lanes)] {
        let alone = product(steps, 1, &a, &b);
        for threads in [2, 3] {
            assert_eq!(product(steps, threads, &a, &b), alone, "{steps:?} on {threads}");
        }
    }
}

#[test]
fn a_long_sum_is_the_same_on_any_number_of_threads() {
    let source = "def total(float(N) x) -> (s) { s() +=! x(i) }";
    let program = program(source, &[("N", 100_003)]);
    let x = Array1::from_shape_fn(100_003, |at| ((at * 7919) % 1009) as f32 / 13.0 - 30.0);
    let total = |threads: usize| {
        let kernel = on_threads(&program, threads, None);
        let mut bits = Vec::new();
        for _ in 0..20 {
            let mut s = ndarray::arr0(0f32);
            kernel.call().input("x", &x).unwrap().output("s", &mut s).unwrap().run().unwrap();
            bits.push(s.into_scalar().to_bits());
        }
        bits.dedup();
        bits
    };
    let alone = total(1);
    assert_eq!(alone.len(), 1);
    assert_eq!((total(2), total(3)), (alone.clone(), alone));
}
