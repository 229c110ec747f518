#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::{DType, LoopNest};
use tilewright_runtime::{BuildError, Executable};
use tilewright_schedule::{Schedule, apply, default_schedule};
use tilewright_target::{Cpu, Target};

use super::*;
use crate::bench::cpu::CpuRunner;
use crate::input_files::InputFiles;
use crate::rig::cpu::{CpuBuilder, CpuSite};
use crate::rig::{Builder, Data};
use crate::task::{Place, RecordedTask};

fn task(source: &str, sizes: &[(&str, i64)]) -> Task {
    let named = |(name, value): &(&str, i64)| ((*name).to_owned(), *value);
    let function = source.rsplit("def ").next().unwrap().split('(').next().unwrap().to_owned();
    let task = RecordedTask {
        source: source.to_owned(),
        function,
        sizes: sizes.iter().map(named).collect(),
        place: Place::cpu(&Cpu { cores: 1, ..Cpu::host() }),
        seed: 0,
        contract: true,
    };
    task.task().unwrap()
}

/// A task that looks up a few rows of a table with `rows` rows.
fn lookup(rows: i64) -> Task {
    let source = "def lookup(float(E, D) T, int(B) I) -> (O) { O(b, d) = T(I(b), d) }";
    task(source, &[("E", rows), ("D", 64), ("B", 100)])
}

fn builder() -> CpuBuilder {
    CpuBuilder(Cpu { cores: 1, ..Cpu::host() })
}

#[test]
fn a_program_with_few_points_and_much_data_is_checked_at_smaller_sizes() {
    assert!(shrunk(&lookup(1_000_000)).is_none(), "the interpreter can have this");
    let small = shrunk(&lookup(10_000_000)).unwrap().program;
    assert!(suits_interpreter(&small, ENOUGH_TO_COMPARE));
}

/// Divides an image by a mean of its neighbourhood, as in unsharp masking. Inputs of either sign
/// make some divisors nearly zero.
const RATIO: &str = "def ratio(float(3, H, W) x) -> (r) {
  gray(i, j) = 0.299 * x(0, i, j) + 0.587 * x(1, i, j) + 0.114 * x(2, i, j)
  blur(i, j) = (gray(i, max(j - 1, 0)) + gray(i, j) + gray(i, min(j + 1, W - 1))) / 3
  r(c, i, j) = (2 * gray(i, j) - blur(i, j)) / gray(i, j) * x(c, i, j)
}";

#[test]
fn a_program_that_divides_by_nearly_nothing_is_right() {
    // At sizes that the interpreter can run, and at larger ones.
    for sizes in [[("H", 90), ("W", 110)], [("H", 1200), ("W", 900)]] {
        let rig = Rig::<CpuSite>::new(&task(RATIO, &sizes), &builder()).unwrap();
        let decided = |wanted: &Wanted| {
            wanted.expected.doubt("r").is_none_or(|doubt| doubt.undecided * 100 < doubt.elements)
        };
        assert!(rig.wanted.iter().all(decided));
    }
}

/// Sinkhorn's iteration: scales the rows and columns of a positive matrix in turn until their sums
/// are 1.
const SINKHORN: &str = "def sinkhorn(float(N, N) K) -> (P) {
  float(11, N) u
  u(0, i) = 1 where i in 0:N
  for t in 0:10 {
    c(t, j) +=! K(i, j) * u(t, i)
    v(t, j) = 1 / c(t, j)
    r(t, i) +=! K(i, j) * v(t, j)
    u(t + 1, i) = 1 / r(t, i)
  }
  P(i, j) = u(10, i) * K(i, j) * v(9, j)
}";

fn positive(shape: &[usize]) -> Tensor {
    let uniform = seed::Uniform { low: Number::Float(0.1), high: Number::Float(1.0) };
    uniform.tensor("K", DType::Float32, shape, 1).unwrap()
}

#[test]
fn the_data_of_a_smaller_problem_is_a_part_of_what_was_given() {
    let size = 1500;
    let mut task = task(SINKHORN, &[("N", size as i64)]);
    let program = task.program.clone();
    let inputs = Inputs { tensors: [("K".to_owned(), positive(&[size, size]))].into(), ..Inputs::default() };
    let given = InputFiles::write(&program, &inputs).unwrap();
    task.inputs = given.files.clone();
    let rig = Rig::<CpuSite>::new(&task, &builder()).unwrap();
    assert_eq!(rig.notes, Vec::new());
    let small = shrunk(&task).unwrap().program;
    let data = part(&program, &small, inputs.clone());
    let (part, whole) = (&data.tensors["K"], &inputs.tensors["K"]);
    let extent = part.shape()[0];
    assert!(extent < size && part.get(extent + 2) == whole.get(size / extent * size + 2 * size / extent));
    assert!((0..part.len()).all(|at| part.get(at).as_f64() >= 0.1));
}

#[test]
fn indices_fit_what_they_index_at_smaller_sizes() {
    let (large, small) = (lookup(10_000_000).program, lookup(1000).program);
    let mut indices = Tensor::zeros(DType::Int32, &[100]).unwrap();
    for at in 0..100 {
        indices.set(at, Number::Int(99_999 * at as i128));
    }
    indices.set(0, Number::Int(-1));
    let data = Inputs { tensors: [("I".to_owned(), indices)].into(), ..Inputs::default() };
    let data = part(&large, &small, data);
    let found: Vec<i128> = (0..100).map(|at| data.tensors["I"].get(at).as_i128()).collect();
    assert_eq!((found[0], found[1], found[99]), (-1, 9, 989));
    assert!(found.is_sorted());
}

/// Compiles another program than the requested one.
#[derive(Clone)]
struct WrongBuilder(CpuBuilder, &'static str);

struct WrongSite(WrongBuilder, CpuSite);

impl Builder for WrongBuilder {
    type Executable = Executable;

    fn target(&self) -> Target<'_> {
        self.0.target()
    }

    fn compile(&self, program: &Program, _: &LoopNest, _: &Schedule) -> Result<Executable, BuildError> {
        let sizes: Vec<(&str, i64)> =
            program.symbols.iter().map(|symbol| (symbol.name.as_str(), symbol.value.unwrap())).collect();
        let other = task(self.1, &sizes).program;
        let schedule = default_schedule(&other, self.target());
        let nest = apply(&other, &schedule, self.target()).unwrap();
        self.0.compile(&other, &nest, &schedule)
    }
}

impl Site for WrongSite {
    type Builder = WrongBuilder;
    type Runner<'s> = CpuRunner<'s>;

    fn new(builder: &WrongBuilder, data: Data<'_>) -> Result<WrongSite, RigError> {
        Ok(WrongSite(builder.clone(), CpuSite::new(&builder.0, data)?))
    }

    fn parts(&mut self) -> (&WrongBuilder, CpuRunner<'_>) {
        (&self.0, self.1.parts().1)
    }
}

const GEMM: &str = "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

#[test]
fn a_default_schedule_that_computes_something_else_is_found() {
    let shifted =
        "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, max(j - 1, 0)) }";
    let short =
        "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! k < K - 1 ? A(i, k) * B(k, j) : 0 }";
    let sum = "def ratio(float(3, H, W) x) -> (r) {
      gray(i, j) = 0.299 * x(0, i, j) + 0.587 * x(1, i, j) + 0.114 * x(2, i, j)
      r(c, i, j) = (2 * gray(i, j) - gray(i, max(j - 1, 0))) / gray(i, j) * x(c, i, j)
    }";
    let sizes = [("M", 200), ("N", 200), ("K", 300)];
    let large = [("H", 1200), ("W", 900)];
    let cases = [(GEMM, shifted, &sizes[..]), (GEMM, short, &sizes[..]), (RATIO, sum, &large[..])];
    for (right, wrong, sizes) in cases {
        let task = task(right, sizes);
        let made = Rig::<WrongSite>::new(&task, &WrongBuilder(builder(), wrong));
        assert!(matches!(made.err(), Some(RigError::Wrong(_))), "{wrong}");
        assert!(Rig::<WrongSite>::new(&task, &WrongBuilder(builder(), right)).is_ok());
    }
}

/// The sizes are so large that kernels are compared with another kernel.
#[test]
fn a_candidate_that_computes_something_else_is_found_at_full_size() {
    for (source, wrong) in [
        (
            GEMM,
            "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! k < K - 1 ? A(i, k) * B(k, j) : 0 }",
        ),
        (
            RATIO,
            "def ratio(float(3, H, W) x) -> (r) {
          gray(i, j) = 0.299 * x(0, i, j) + 0.587 * x(1, i, j) + 0.114 * x(2, i, j)
          blur(i, j) = (gray(i, max(j - 1, 0)) + gray(i, j) + gray(i, min(j + 1, W - 2))) / 3
          r(c, i, j) = (2 * gray(i, j) - blur(i, j)) / gray(i, j) * x(c, i, j)
        }",
        ),
    ] {
        let sizes: &[(&str, i64)] =
            if source == GEMM { &[("M", 200), ("N", 200), ("K", 300)] } else { &[("H", 1200), ("W", 900)] };
        let task = task(source, sizes);
        let mut rig = Rig::<CpuSite>::new(&task, &builder()).unwrap();
        let program = task.program;
        let nest = apply(&program, &Schedule::default(), builder().target()).unwrap();
        let plain = builder().compile(&program, &nest, &Schedule::default()).unwrap();
        let other = WrongBuilder(builder(), wrong).compile(&program, &nest, &Schedule::default()).unwrap();
        let (_, mut bench) = rig.parts();
        for (executable, is_right) in [(plain, true), (other, false)] {
            let kernel = bench.runner.bind(&executable).unwrap();
            let outcome = bench.measure(&kernel, &ONCE, None).unwrap().outcome;
            assert_eq!(outcome == Outcome::Measured, is_right, "{outcome}");
        }
    }
}
