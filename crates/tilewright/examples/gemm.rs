//! Compiles a matrix product with the default schedule and with one written by hand, and prints
//! GFLOP/s.
//!
//! ```text
//! cargo run --release -p tilewright --example gemm
//! ```

use std::time::Instant;

use ndarray::Array2;
use tilewright::{Compile, Cpu, Error, Kernel, Module, Program, parse_schedule};

/// The computation: `C` is the product of `A` and `B`. The ranges of `i`, `j` and `k` follow from
/// the shapes, and `+=!` starts each sum from zero.
const SOURCE: &str = "
def mm(float(M, K) A, float(K, N) B) -> (C) {
  C(i, j) +=! A(i, k) * B(k, j)
}";

/// The schedule: it changes the order of the loops and the place of data, never the result. The
/// loops of statement `C` have the names of its variables.
const STEPS: &str = "
# A tile of 6 rows and 2 vectors of columns, which stays in registers while k runs.
split C.j -> jo, j1:2, jv:8
split C.i -> io, ii:6
reorder C.jo, C.io, C.k, C.ii, C.j1, C.jv
promote C at C.io -> tile registers
vectorize C.jv
unroll C.ii
unroll C.j1
# The columns of B that a tile needs lie next to each other, and are copied once for all rows.
promote B at C.jo -> columns packed
# Each thread takes some of the columns.
parallel C.jo";

const SIZE: usize = 768;

fn main() -> Result<(), Error> {
    // A source is parsed once. Each of its functions becomes a program at given sizes.
    let module = Module::parse(SOURCE)?;
    let size = SIZE as i64;
    let program = module.program("mm", [("M", size), ("K", size), ("N", size)])?;

    // The elements are small integers, so sums are exact in any order.
    let a = Array2::from_shape_fn((SIZE, SIZE), |(i, k)| ((3 * i + 5 * k) % 7) as f32 - 3.0);
    let b = Array2::from_shape_fn((SIZE, SIZE), |(k, j)| ((2 * k + 7 * j) % 5) as f32 - 2.0);
    let wanted = a.dot(&b);

    println!("{SIZE} x {SIZE} x {SIZE} on {} cores", Cpu::host().cores);
    // The default schedule comes from static analysis of the program and the machine.
    report("default", &program.compile()?, &a, &b, &wanted)?;
    report("by hand", &by_hand(&program)?, &a, &b, &wanted)?;
    Ok(())
}

/// Compiles the program with our own schedule. A step that would change the result is refused with
/// a reason.
fn by_hand(program: &Program) -> Result<Kernel, Error> {
    let schedule = parse_schedule(STEPS)?;
    program.compile_with(&Compile::with(schedule))
}

/// Checks a kernel against ndarray's product, and prints how fast it is.
fn report(
    name: &str,
    kernel: &Kernel,
    a: &Array2<f32>,
    b: &Array2<f32>,
    wanted: &Array2<f32>,
) -> Result<(), Error> {
    let mut c = Array2::<f32>::zeros(wanted.dim());
    // The first call starts the threads and warms the caches. The fastest call shows what the
    // kernel can do.
    let mut fastest = f64::INFINITY;
    for _ in 0..20 {
        let start = Instant::now();
        // Arguments are given by name. Contiguous arrays are used in place, other arrays are
        // copied.
        kernel.call().input("A", a)?.input("B", b)?.output("C", &mut c)?.run()?;
        fastest = fastest.min(start.elapsed().as_secs_f64());
    }
    assert_eq!(c, wanted, "the {name} kernel is wrong");
    let operations = 2.0 * (SIZE * SIZE * SIZE) as f64;
    println!("{name:8} {:8.3} ms {:8.1} GFLOP/s", fastest * 1e3, operations / fastest / 1e9);
    Ok(())
}
