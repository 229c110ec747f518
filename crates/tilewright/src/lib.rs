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
//! Without text, a [`ProgramBuilder`] makes the same program, or reports the mistakes in it:
//!
//! ```
//! # use tilewright::{DType, Error, Program, ProgramBuilder, ReduceOp};
//! # fn main() -> Result<(), Error> {
//! let mut p = ProgramBuilder::new("mm");
//! let (m, k, n) = (p.size("M"), p.size("K"), p.size("N"));
//! let a = p.input("A", DType::Float32, (m, k));
//! let b = p.input("B", DType::Float32, (k, n));
//! let c = p.output("C", DType::Float32, (m, n));
//! let (i, j, l) = (p.index("i", 0, m), p.index("j", 0, n), p.index("k", 0, k));
//! p.reduce(ReduceOp::Add, c.at((i, j)), a.at((i, l)) * b.at((l, j)));
//! let program = Program::try_from(p.build_at([("M", 2), ("K", 3), ("N", 2)])?)?;
//! let kernel = program.compile()?;
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
//! Mistakes in a source, a schedule or an argument are values of [`Error`]. Mistakes in a text are
//! shown with carets under their place. Weights that a program declares `const` are bound once,
//! with [`Kernel::bind`]. Work that the schedule does on them, such as packing, is not part of the
//! calls.
//!
//! # The parts of the compiler
//!
//! The types above suffice to compile, call, tune and prove. The command `tilewright` and the
//! Python package are made of these modules:
//!
//! | module | contents |
//! |---|---|
//! | [`syntax`] | text to checked programs, with diagnostics |
//! | [`ir`] | programs, loop nests, expressions, data types and tensors |
//! | [`interp`] | the reference interpreter, and comparisons of results with it |
//! | [`polyhedral`] | dependences of programs, and proofs about loop nests |
//! | [`target`] | hardware as data, and the names of targets |
//! | [`schedule`] | steps and schedules, their text, and their effect on loops |
//! | [`codegen`] | loop nests to machine code, CUDA C++ and OpenCL C |
//! | [`runtime`] | memory, threads, devices, calls and timing |
//! | [`driver`] | the stages of compilation, from source text to code |
//! | [`space`], [`knob`] | the schedules of a program as a space of knobs |
//! | [`strategy`], [`cost`] | searches of that space, and predicted times |
//! | [`pipelines`] | random pipelines as source text, from a seed |
//! | [`train`] | training cost models with schedules that were measured on a machine |
//! | [`cache`] | every candidate that tuning has tried, and the best schedule of a program |
//! | [`tuner`] | whole searches and their workers, recordings, peak rates, comparisons of strategies |
//! | [`report`] | searches and comparisons as pages, and times as text |

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
pub use tilewright_ir::builder::{self, ProgramBuilder};
pub use tilewright_ir::{Builtin, DType, LoopNest, Number, ReduceOp};
pub use tilewright_polyhedral::Verdict;
pub use tilewright_runtime::{Buffer, Pool, Signature, Timing, View, ViewMut};
pub use tilewright_schedule::{Refusal, Schedule, Step};
pub use tilewright_target::{Cpu, Gpu, GpuApi, Target, VectorInstructions};
pub use tilewright_tuner::peak::Peaks;
pub use tilewright_tuner::roofline::Roofline;
pub use tilewright_tuner::work::Work;

pub use tilewright_cache as cache;
pub use tilewright_codegen as codegen;
pub use tilewright_driver as driver;
pub use tilewright_interp as interp;
pub use tilewright_ir as ir;
pub use tilewright_pipelines as pipelines;
pub use tilewright_polyhedral as polyhedral;
pub use tilewright_report as report;
pub use tilewright_runtime as runtime;
pub use tilewright_schedule as schedule;
pub use tilewright_search::{cost, default_schedule, explain, kind, knob, space, strategy};
pub use tilewright_syntax as syntax;
pub use tilewright_target as target;
pub use tilewright_train as train;
pub use tilewright_tuner as tuner;
