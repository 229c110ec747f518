//! Compiles tensor and image programs, written as mathematics, to fast kernels at run time.
//!
//! ```
//! use ndarray::{array, Array2};
//! use tilewright::Module;
//!
//! # fn main() -> Result<(), tilewright::Error> {
//! let module = Module::parse("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")?;
//! let kernel = module.program("mm", [("M", 2), ("K", 3), ("N", 2)])?.compile()?;
//!
//! let a = array![[1f32, 2., 3.], [4., 5., 6.]];
//! let b = array![[1f32, 0.], [0., 1.], [1., 1.]];
//! let mut c = Array2::<f32>::zeros((2, 2));
//! kernel.call().input("A", &a)?.input("B", &b)?.output("C", &mut c)?.run()?;
//! assert_eq!(c, array![[4., 5.], [10., 11.]]);
//! # Ok(())
//! # }
//! ```
//!
//! A [`Module`] is a parsed source text. A [`Program`] is one of its functions at given sizes. A
//! [`Kernel`] is machine code for a program. Without a schedule, static analysis makes one:
//! [`Program::default_schedule`] shows it, and [`Program::compile_with`] takes another:
//!
//! ```
//! # use tilewright::{Compile, Module, Schedule};
//! # fn main() -> Result<(), tilewright::Error> {
//! # let module = Module::parse("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")?;
//! let program = module.program("mm", [("M", 64), ("K", 64), ("N", 64)])?;
//! let schedule = tilewright::parse_schedule(
//!     "split C.j -> jo, jv:8
//!      reorder C.i, C.jo, C.k, C.jv
//!      vectorize C.jv
//!      promote C at C.jo -> acc registers",
//! )?;
//! let kernel = program.compile_with(&Compile::with(schedule).threads(1))?;
//! # Ok(())
//! # }
//! ```
//!
//! A step that would change the result of a program is refused. [`Program::prove`] checks the
//! resulting loops again, independently of the steps:
//!
//! ```
//! # use tilewright::{Compile, Module, Verdict};
//! # fn main() -> Result<(), tilewright::Error> {
//! # let module = Module::parse("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")?;
//! let program = module.program("mm", [("M", 64), ("K", 64), ("N", 64)])?;
//! match program.prove(&Compile::default())? {
//!     Verdict::Proved => println!("the loops compute what the program says, whatever the data"),
//!     Verdict::Refuted(counterexample) => panic!("a bug in Tilewright: {counterexample}"),
//!     Verdict::Undecided(why) => println!("this is not known: {why}"),
//! }
//! # Ok(())
//! # }
//! ```
//!
//! [`Program::tune`] searches for a fast schedule by measurements, and [`Tuned::report`] shows the
//! search as a page. [`cache`] holds the schedules of earlier searches.
//!
//! The modules are the parts of the compiler, from the source text to the tuner. They offer what
//! the command `tilewright` is made of; the types above need none of them.
//!
//! Mistakes in a source, a schedule or an argument are values of [`Error`]. Mistakes in a text are
//! shown with carets under their place. Weights that a program declares `const` are bound once,
//! with [`Kernel::bind`]. Work that the schedule does on them, such as packing, is not part of the
//! calls.

mod call;
mod compile;
mod error;
mod module;
mod prove;
pub mod tune;

pub use call::{Arguments, BoundKernel};
pub use compile::{Compile, Kernel, ScheduleChoice};
pub use error::Error;
pub use module::{Module, Program, parse_schedule};
pub use tune::{Tune, Tuned, serve_if_worker};

pub use tilewright_driver::{Code, OpenTarget, Origin, Stage, TargetName};
pub use tilewright_ir::{DType, LoopNest, Number};
pub use tilewright_polyhedral::Verdict;
pub use tilewright_runtime::{Buffer, Pool, Signature, Timing, View, ViewMut};
pub use tilewright_schedule::{Refusal, Schedule, Step};
pub use tilewright_target::{Cpu, Gpu, GpuApi, Target, Vectors};
pub use tilewright_tuner::peak::Peaks;
pub use tilewright_tuner::roofline::Roofline;
pub use tilewright_tuner::work::Work;

/// Every candidate that tuning has tried, and the best schedule of a program.
pub use tilewright_cache as cache;
/// Machine code by LLVM, and CUDA C++ and OpenCL C, from loop nests.
pub use tilewright_codegen as codegen;
/// The stages of compilation, one function each: source, target, schedule, code.
pub use tilewright_driver as driver;
/// The reference interpreter of programs and loop nests, and the comparison of results with it.
pub use tilewright_interp as interp;
/// Programs, loop nests, expressions, data types and tensors, as the compiler represents them.
pub use tilewright_ir as ir;
/// The instances of a program and their dependences; proofs about loop nests.
pub use tilewright_polyhedral as polyhedral;
/// Outcomes for people: the HTML page about a search, and times as text.
pub use tilewright_report as report;
/// Memory, threads, devices, calls and timing.
pub use tilewright_runtime as runtime;
/// Steps and schedules, their text, and their effect on loops.
pub use tilewright_schedule as schedule;
/// The space of schedules as knobs, the strategies that search it, and predicted times.
pub use tilewright_search::{cost, knob, space, strategy};
/// Text to checked programs, with diagnostics.
pub use tilewright_syntax as syntax;
/// Hardware as data, and the names of targets.
pub use tilewright_target as target;
/// Searches below [`Tune`]: their parts, recordings, peak rates, comparisons of strategies.
pub use tilewright_tuner as tuner;
