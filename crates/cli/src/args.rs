//! Defines the commands and options of the command line as types that `clap` parses.
//!
//! The doc comments on arguments and commands are the text that `--help` prints.

pub mod cache;
pub mod cpu;
pub mod generate;
pub mod strategies;
pub mod train;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};
use tilewright::ir::Program;
use tilewright::strategy::{Entry, find, usual};
use tilewright::target::Machine;
use tilewright::train::model::ModelChoice;
use tilewright::tuner::tune::{DEFAULT_STARTS, ProofScope};

use crate::failure::Failure;
use cpu::CpuArgs;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "tilewright",
    version,
    max_term_width = 110,
    about = "Compiles tensor and image programs, written as mathematics, to fast kernels.",
    long_about = "Compiles tensor and image programs, written as mathematics, to fast kernels.\n\n\
        A program is a file of functions such as\n\n    \
        def mv(float(M,K) A, float(K) x) -> (y) {\n      \
          y(i) +=! A(i,k) * x(k)\n    \
        }\n\n\
        Index variables need no declaration: their ranges follow from the shapes of the tensors that they index. docs/language.md teaches the language, docs/schedules.md teaches how to make programs fast, and examples/ has programs to start from.",
    after_help = "Examples:\n  tilewright check examples/paper/mv.tw\n  tilewright run examples/paper/mv.tw --sizes M=8,K=5\n  \
    tilewright bench examples/paper/mv.tw --sizes M=1024,K=1024\n\n\
    Exit status: 0 success, 1 a mistake in the input, 2 a mistake on the command line, 3 the machine lacks something that the options require, 70 a bug in Tilewright."
)]
pub struct Args {
    /// The command to execute.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check programs: names, types, ranges and bounds. Reports every mistake with its position
    /// in the text.
    Check(CheckArgs),
    /// Show a program at one stage of compilation: ranges, checked program, schedule, loops or
    /// code.
    Show(ShowArgs),
    /// Prove that the loops of a program compute what its text says, for every input.
    Prove(ProveArgs),
    /// Run a program and print or write its results.
    Run(RunArgs),
    /// Measure the time of a call, and print it with GFLOP/s and GB/s.
    Bench(BenchArgs),
    /// Search for a fast schedule by measuring many candidates on this machine.
    Tune(TuneArgs),
    /// List the devices that programs can run on.
    Devices(DevicesArgs),
    /// Train the cost model that searches use, with schedules measured on this machine.
    Train(train::TrainArgs),
    /// Write a random pipeline of images, from a seed.
    Generate(generate::GenerateArgs),
    /// List the search strategies for schedules, or compare them.
    Strategies(strategies::StrategiesArgs),
    /// Compile and measure the candidates that a tuner sends, over standard input and output.
    #[command(hide = true)]
    Worker,
    /// Inspect the cache of tuning results, move it between machines, or clear it.
    Cache(cache::CacheArgs),
}

/// `tilewright devices`
#[derive(Debug, clap::Args)]
pub struct DevicesArgs {
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

/// `tilewright check`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without --sizes, a program is checked for all sizes of at least 1; with --sizes, for these sizes. \
    FILE checks every function of a file; FILE:NAME checks one function and the functions that it calls.\n\n\
    Examples:\n  tilewright check examples/paper/mv.tw\n  tilewright check examples/*/*.tw\n  \
    tilewright check examples/paper/mv.tw:mv --sizes M=64"
)]
pub struct CheckArgs {
    /// Source files to check. FILE:NAME checks one function.
    #[arg(required = true, value_name = "FILE[:NAME]")]
    pub files: Vec<String>,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// A scalar that a size is computed from, such as sigma=0.1.
    #[arg(long = "in", value_name = "NAME=NUMBER")]
    pub inputs: Vec<String>,
}

/// `tilewright show`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The stages, in the order of the compiler: `ranges` and `program` describe the checked text; `graph` draws which statement reads which; `dependences` lists the statement instances that must keep their order; `space` lists the knobs from which `tune` chooses schedules; `schedule` is a list of steps; \
    `loops` is the program after these steps, and `cost` is its predicted time; `llvm`, `asm`, `cuda` and `opencl` are the generated code. From dependences on, all sizes must be given.\n\n\
    `graph` is a picture in the SVG format, which every browser shows. With --schedule, where `default` is the default schedule, it also has the loop nests or kernels, \
    the inlined statements, and the buffers of each statement.\n\n\
    A printed schedule can be edited and then used with --schedule; docs/schedules.md teaches the steps. --explain prints instead where each statement is computed, its predicted time, \
    and how the predicted time of the program changes if a stage is computed elsewhere: `at root +16 %; inlined +50 %`. --report writes the same with pictures as a page. \
    All these times come from the cost model; nothing is run.\n\n\
    Examples:\n  tilewright show examples/paper/sconv2d.tw --stage ranges\n  \
    tilewright show examples/paper/conv2d.tw --stage program --sizes B=1,IP=3,OP=8,H=32,W=32,KH=3,KW=3\n  \
    tilewright show examples/paper/mv.tw --stage schedule --sizes M=1000,K=1000 > mv.sched\n  \
    tilewright show examples/paper/mv.tw --stage loops --sizes M=1000,K=1000 --schedule mv.sched --threads 1\n  \
    tilewright show examples/benchmarks/mlp3.tw:mlp3 --stage graph > mlp3.svg\n  \
    tilewright show examples/pipelines/harris.tw:harris --stage schedule --explain --sizes H=2560,W=1536\n  \
    tilewright show examples/pipelines/harris.tw:harris --sizes H=2560,W=1536 --report harris.html"
)]
pub struct ShowArgs {
    /// Source file. FILE:NAME picks a function. Without a name, the function with the name of the
    /// file is taken, or else the only one that no other function calls.
    #[arg(value_name = "FILE[:NAME]")]
    pub file: String,
    /// The stage to show.
    #[arg(long, value_enum, required_unless_present = "report")]
    pub stage: Option<Stage>,
    /// Write an HTML page about the scheduled program to this file, such as page.html: the graph,
    /// the loops as pictures, the predicted time of each stage, and where else it could be
    /// computed. Nothing is run; `bench --report` adds measured times. The page needs no network.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// With --stage schedule: print for each statement where it is computed, its predicted time,
    /// and how much longer the program would take with the statement in another place.
    #[arg(long)]
    pub explain: bool,
    /// Sizes and integer scalars, such as M=64,N=32. The stages ranges and program, and graph
    /// without --schedule, keep missing sizes as symbols.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// An input, as for `run`: a=2 for a scalar, or A=a.npy for a tensor, which determines its
    /// sizes.
    #[arg(long = "in", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// How floats are rounded.
    #[command(flatten)]
    pub rounding: RoundingArgs,
    /// The machine to compile for: cpu is this machine, cuda and opencl are GPUs. The stages
    /// ranges, program and dependences, and graph without --schedule, do not depend on it.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// How to compile.
    #[command(flatten)]
    pub compile: CompileArgs,
}

/// The stages that `show` can print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Every statement with the range of each variable and the reason for it, and the shape of
    /// each tensor.
    Ranges,
    /// The checked program: tensors with types and shapes, and stages with their statements.
    Program,
    /// A picture, as SVG: the statements, their tensors, and which statement reads which. With
    /// --schedule also the loop nests, and where each tensor is computed and stored.
    Graph,
    /// The statement instances that must keep their order: flow, anti and output dependences, and
    /// reductions.
    Dependences,
    /// The search space of schedules: every knob with its values, and the number of points.
    Space,
    /// The time that the cost model predicts for the schedule, with its components.
    Cost,
    /// The default schedule, or the one of --schedule as it was parsed.
    Schedule,
    /// The loops after the schedule: which are parallel, vectorised or unrolled, and where buffers
    /// live.
    Loops,
    /// LLVM's intermediate representation.
    Llvm,
    /// Assembly.
    Asm,
    /// CUDA C++: the kernels for an NVIDIA GPU. The machine needs no such GPU.
    Cuda,
    /// OpenCL C: the kernels for an OpenCL device. The machine needs no such device.
    Opencl,
    /// C++ for high-level synthesis.
    #[value(hide = true)]
    Hls,
    /// C.
    #[value(hide = true)]
    C,
}

/// `tilewright prove`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A schedule changes the order in which a program computes, never what it computes: two instances of statements that depend on \
    each other keep their order, and values that are computed again read the same inputs. Steps that break this are refused. This command \
    checks the resulting loops again, by another method: it traces every value of the loops back to the statement instance of the program \
    that computes this value. The proof holds for all data. The terms of a sum may be added in another order, as the language allows.\n\n\
    The schedule is the one of --schedule. Without this option, it is the best schedule that the cache has for the program on this machine, or else the default schedule. `run` and `bench` choose in the same way.\n\n\
    Verdicts, with their exit statuses:\n  \
    proved     0   the loops compute what the program says, for every input of these sizes\n  \
    undecided  0   the prover could show neither, and prints the reason; `tilewright run --check` compares results with the interpreter\n  \
    refuted    70  the loops compute something else: prints a counterexample. This is a bug in Tilewright, which should have refused the schedule\n\n\
    Examples:\n  tilewright prove examples/flextensor/gemm.tw --sizes M=512,N=512,K=512\n  \
    tilewright prove gemm.tw --sizes M=1000,N=1000,K=1000 --schedule gemm.sched\n  \
    tilewright prove gemm.tw --sizes M=512,N=512,K=512 --target cuda --json"
)]
pub struct ProveArgs {
    /// Source file. FILE:NAME picks a function. Without a name, the function with the name of the
    /// file is taken, or else the only one that no other function calls.
    #[arg(value_name = "FILE[:NAME]")]
    pub file: String,
    /// Sizes and integer scalars, such as M=64,N=32. Every size of the program must be given, here
    /// or by an input.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// An input, as for `run`: a=2 for a scalar, or A=a.npy for a tensor, which determines its
    /// sizes.
    #[arg(long = "in", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// How floats are rounded.
    #[command(flatten)]
    pub rounding: RoundingArgs,
    /// The target of the loops: cpu is this machine, cuda and opencl are GPUs. The machine needs no
    /// GPU.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// How to compile.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// The cache of tuned schedules to use.
    #[command(flatten)]
    pub cache: cache::CacheOption,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// A program, its sizes and its data.
#[derive(Debug, clap::Args)]
pub struct ProgramArgs {
    /// Source file. FILE:NAME picks a function. Without a name, the function with the name of the
    /// file is taken, or else the only one that no other function calls.
    #[arg(value_name = "FILE[:NAME]")]
    pub file: String,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// An input: A=a.npy or A=photo.png for a tensor, A=uniform(0.1,1) for a tensor of random
    /// numbers in a range, a=2.5 for a scalar, or inputs.npz for several inputs by name.
    #[arg(long = "in", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Seed of the random numbers for inputs that are not given, or given as uniform(LOW,HIGH).
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// How floats are rounded.
    #[command(flatten)]
    pub rounding: RoundingArgs,
}

/// How floats are rounded.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct RoundingArgs {
    /// Round every operation separately: never fuse a product with the sum that uses it.
    #[arg(long)]
    pub no_contract: bool,
}

/// How to compile a program.
#[derive(Debug, clap::Args)]
pub struct CompileArgs {
    /// Compile with the schedule in this file. `default` means the default schedule, even where a
    /// tuned one exists. `auto` means the schedule that a search finds by predicted times alone,
    /// within seconds.
    #[arg(long, value_name = "FILE|default|auto")]
    pub schedule: Option<PathBuf>,
    /// The cost model of `--schedule auto` and of `show --stage cost`. The default is the learned
    /// one if `tilewright train` has fitted it on this machine, or else the analytical one.
    #[arg(long, value_enum)]
    pub cost_model: Option<ModelName>,
    /// The part of the CPU to use.
    #[command(flatten)]
    pub cpu: CpuArgs,
}

/// The cost models.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ModelName {
    /// Computed from the loops and the machine alone.
    Analytical,
    /// Corrected with measured schedules: by the user's own training, or as Tilewright comes.
    Learned,
}

impl CompileArgs {
    /// The cost model that the option selects.
    pub fn model_choice(&self) -> ModelChoice {
        match self.cost_model {
            None => ModelChoice::Usual,
            Some(ModelName::Analytical) => ModelChoice::Analytical,
            Some(ModelName::Learned) => ModelChoice::Learned,
        }
    }
}

/// `tilewright run`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Sizes that are not given are taken from the inputs in files. Inputs that are not given get random values from the seed: \
    floats between -1 and 1, integers that are used as an index within the bounds of the indexed dimension, uint8 from 0 to 255, other integers from 0 to 9. \
    --in 'A=uniform(LOW,HIGH)' takes numbers from LOW to HIGH instead, both included.\n\n\
    Pictures are .png, .jpg, .tiff, .pfm, .pgm and .ppm files. The program says how it holds one: (H, W) is gray, (3, H, W) planar and \
    (H, W, 3) interleaved; uint8 and uint16 take samples of 8 and 16 bits as they are, and floats take them from 0 to 1. \
    A .raw file has samples without a header, in the shape that --sizes gives. docs/pictures.md has all rules.\n\n\
    --check compares every element with the interpreter's result, within a bound on the rounding error. An element that \
    rounding alone decides, such as one after a division by a number near 0, is not compared; the number of such elements is reported.\n\n\
    The program is compiled with the schedule of --schedule. Without this option, it is compiled with the best schedule that the cache has for it \
    on this machine, or else with its default schedule. A line on standard error names the schedule. --schedule default always selects the default schedule, and --schedule auto searches without measuring anything; files of these names are ./default and ./auto.\n\n\
    Examples:\n  tilewright run examples/paper/mv.tw --sizes M=8,K=5\n  \
    tilewright run examples/paper/mv.tw --in A=a.npy --in x=x.npy --out results\n  \
    tilewright run examples/paper/sgemm.tw --in inputs.npz --in a=2.0 --in b=0.5\n  \
    tilewright run examples/pipelines/iir_blur.tw --in input=photo.png --in alpha=0.2 --out blurred.png\n  \
    tilewright run examples/paper/mv.tw --sizes M=8,K=5 --in 'A=uniform(0.1,1)' --check"
)]
pub struct RunArgs {
    /// The program to run.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Write the results: DIR takes each of them as NAME.npy, and is created if it is missing;
    /// FILE takes the only result, and NAME=FILE one of several, as .npy, .raw or a picture.
    #[arg(long, value_name = "DIR|[NAME=]FILE")]
    pub out: Vec<PathBuf>,
    /// Where to run: cpu compiles for this machine, cuda:0 or opencl:0 is a device that `tilewright
    /// devices` lists, and interp is the slow reference interpreter.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// How to compile.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// The cache of tuned schedules to use.
    #[command(flatten)]
    pub cache: cache::CacheOption,
    /// Compare the results with those of the interpreter, and fail with status 70 if they differ.
    #[arg(long)]
    pub check: bool,
}

/// `tilewright bench`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Calls are first repeated to warm up the machine, then timed one by one, or in batches if they are short. The result is the median; \
    the percentiles p10 and p90 show how much the samples vary. Compiling, and packing the inputs that the program declares const, \
    are not part of the time. GFLOP/s counts the operations of the program's text: 2*M*N*K for a matrix product. \
    GB/s counts every input and result once. A tensor that a program updates in place keeps its values from call to call.\n\n\
    Examples:\n  tilewright bench examples/paper/mv.tw --sizes M=1024,K=1024\n  \
    tilewright bench gemm.tw --sizes M=1000,N=1000,K=1000 --schedule gemm.sched --threads 1\n  \
    tilewright bench gemm.tw --sizes M=64,N=64,K=64 --cold --samples 100 --json\n  \
    tilewright bench examples/pipelines/unsharp.tw:unsharp --sizes H=2560,W=1536 --report unsharp.html"
)]
pub struct BenchArgs {
    /// The program to measure.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Where to run: cpu compiles for this machine, cuda:0 or opencl:0 is a device that `tilewright
    /// devices` lists.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// How to compile.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// The cache of tuned schedules to use.
    #[command(flatten)]
    pub cache: cache::CacheOption,
    /// Minimum time that all samples on a CPU take together, such as 500ms or 2s. A fifth of it is
    /// the minimum time of warming up, on a CPU and on a device.
    #[arg(long, default_value = "500ms", value_parser = duration, allow_hyphen_values = true)]
    pub time: Duration,
    /// Minimum number of samples on a CPU, exact number on a device, at most 1000000, however long
    /// they take. The default is 30, or fewer where 30 samples take longer than several seconds.
    #[arg(long, value_name = "N", value_parser = samples)]
    pub samples: Option<usize>,
    /// Empty the CPU's caches before every sample.
    #[arg(long)]
    pub cold: bool,
    /// Compare the results with those of the interpreter first, and fail with status 70 if they
    /// differ.
    #[arg(long)]
    pub check: bool,
    /// Write an HTML page about the scheduled program to this file, as `show --report` does, with
    /// the measured time of each loop nest beside the predicted one.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// `tilewright tune`
#[derive(Debug, clap::Args)]
#[command(after_help = "Every candidate is compiled and run in a worker process, compared with the \
    reference, and measured. A candidate that crashes, hangs or computes wrong results is counted \
    and discarded. The winner is never slower than the default schedule, and is proved to compute \
    what the program says before it is kept: `tilewright prove --help` says how. If the winner is \
    refuted, the next best candidate takes its place. If the proof is undecided, the winner is \
    kept, because its results agreed with the reference.\n\n\
    The search ends after --time, after --trials candidates, or with Ctrl-C, which keeps the best \
    so far; a second Ctrl-C skips the final comparison of the best candidates. With --trials 0 \
    only the first choice of the cost model is tried.\n\n\
    Give inputs if the time of a program depends on its data, as with lookups and scatters.\n\n\
    Speeds are also printed as a share of the machine's peak rates. Those of a CPU are measured \
    before the first search and kept; those of a device come from its description. On a \
    device, calls are timed by the clock of the device, with an empty cache, as in `bench`.\n\n\
    Examples:\n  tilewright tune examples/flextensor/gemm.tw --sizes M=512,N=512,K=512 --time 20s\n  \
    tilewright tune gemm.tw --sizes M=512,N=512,K=512 --strategy random --trials 200 --seed 7 --json\n  \
    tilewright tune gemm.tw --sizes M=4096,N=4096,K=4096 --target cuda:0 --time 2m\n  \
    tilewright tune gemm.tw --sizes M=512,N=512,K=512 --time 20s --report gemm.html --record gemm.recording\n  \
    tilewright tune gemm.tw --sizes M=512,N=512,K=512 --time 20s --replay gemm.recording")]
pub struct TuneArgs {
    /// Source file. FILE:NAME picks a function. Without a name, the function with the name of the
    /// file is taken, or else the only one that no other function calls.
    #[arg(value_name = "FILE[:NAME]")]
    pub source: String,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// An input, as for `run`: A=a.npy, A=uniform(0.1,1), a=2.5 or inputs.npz. Missing inputs are
    /// generated from the seed.
    #[arg(long = "in", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Where to run: cpu is this machine, cuda:0 or opencl:0 is a device that `tilewright devices`
    /// lists. Several devices of one model, such as cuda:0,cuda:1, share the search.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// The search strategy. `tilewright strategies` lists all strategies and names the default.
    #[arg(long, value_name = "NAME")]
    pub strategy: Option<String>,
    /// Maximum number of starting points that the cost model gives to the search strategy. With 0
    /// the strategy gets none; the first choice of the model is still measured.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STARTS)]
    pub starts: usize,
    /// Search the schedules of this template instead of those that the analysis finds.
    /// docs/strategies.md explains templates.
    #[arg(long, value_name = "FILE")]
    pub template: Option<PathBuf>,
    /// Maximum number of candidates to measure.
    #[arg(long, value_name = "N")]
    pub trials: Option<usize>,
    /// Maximum time of the search, such as 30s or 2m. The default is 30s, unless --trials is given.
    #[arg(long, value_parser = duration)]
    pub time: Option<Duration>,
    /// The part of the CPU to use.
    #[command(flatten)]
    pub cpu: CpuArgs,
    /// Seed for every random choice.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Prove every candidate before it is measured, not only the winner.
    #[arg(long, conflicts_with = "no_prove")]
    pub prove: bool,
    /// Prove nothing. Results are still compared with the reference.
    #[arg(long)]
    pub no_prove: bool,
    /// How floats are rounded.
    #[command(flatten)]
    pub rounding: RoundingArgs,
    /// The cache to read and to write.
    #[command(flatten)]
    pub cache: cache::CacheOption,
    /// Write the winner's schedule to this file.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Write an HTML report of the run to this file, such as run.html: every trial, all failures
    /// with their reasons, how the time was spent, and the winner with its loops. The page needs no
    /// network.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Write every measurement of the run to this file, for --replay.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Repeat a recorded run from this file without measuring. The same options give the same
    /// trials and the same winner.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Print one JSON object per line.
    #[arg(long)]
    pub json: bool,
}

impl TuneArgs {
    /// Returns which schedules are proved.
    pub fn proving(&self) -> ProofScope {
        match (self.prove, self.no_prove) {
            (true, _) => ProofScope::Candidates,
            (false, true) => ProofScope::Never,
            (false, false) => ProofScope::Winners,
        }
    }

    /// Returns the strategy of the option, or the default strategy for a program on a machine.
    pub fn strategy(&self, program: &Program, machine: &Machine) -> Result<Entry, Failure> {
        match &self.strategy {
            Some(name) => find(name).map_err(|error| Failure::Usage(error.to_string())),
            None => Ok(usual(program, machine.target())),
        }
    }
}

/// Parses `NAME=N`.
fn size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=N, such as M=64")?;
    let name = name.trim();
    if name.is_empty() {
        return Err("write NAME=N, such as M=64".to_owned());
    }
    let value = value.trim();
    let number = value.parse::<i64>().map_err(|_| format!("`{value}` is not a 64-bit integer"))?;
    Ok((name.to_owned(), number))
}

/// Parses `NAME=N,NAME=N`.
pub fn parse_sizes(text: &str) -> Result<Vec<(String, i64)>, String> {
    text.split(',').map(size).collect()
}

/// The maximum of `--threads`: larger than the number of cores of any machine.
const MAX_THREADS: usize = 1024;

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(threads @ 1..=MAX_THREADS) => Ok(threads),
        _ => Err(format!("write a number from 1 to {MAX_THREADS}")),
    }
}

/// The maximum of `--samples`: every sample is kept in memory, and more samples add no information.
const MAX_SAMPLES: usize = 1_000_000;

fn samples(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(samples @ 1..=MAX_SAMPLES) => Ok(samples),
        _ => Err(format!("write a number from 1 to {MAX_SAMPLES}")),
    }
}

/// The maximum of a time option.
const MAX_TIME: Duration = Duration::from_secs(24 * 3600);

/// Parses `500ms`, `1.5s` or `2m`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || "write a time such as 500ms, 2s or 1m, at most 24h".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
    let (number, unit) = text.split_at(digits);
    let seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err(wrong()),
    };
    let number: f64 = number.parse().map_err(|_| wrong())?;
    Duration::try_from_secs_f64(number * seconds)
        .ok()
        .filter(|time| *time <= MAX_TIME)
        .ok_or_else(|| "a time is at most 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_a_number_and_a_unit() {
        let times =
            [("500ms", 0.5), ("1.5s", 1.5), ("2m", 120.0), ("20us", 2e-5), ("0s", 0.0), ("24h", 86400.0)];
        for (text, seconds) in times {
            assert_eq!(duration(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        for text in ["", "5", "ms", "1.2.3s", "-1s", "5 s", "5ns", "25h", "1e999s", "999999999999999999999h"]
        {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["NaN", "nans", "-1s", "infs", "1e3s"] {
            assert_eq!(
                duration(text).unwrap_err(),
                "write a time such as 500ms, 2s or 1m, at most 24h",
                "{text}"
            );
        }
        assert_eq!(duration("25h").unwrap_err(), "a time is at most 24h");
    }

    #[test]
    fn samples_have_a_limit() {
        assert_eq!((samples("1"), samples("1000000")), (Ok(1), Ok(1_000_000)));
        for text in ["0", "-1", "", "1.5", "1000001", "1000000000000", "99999999999999999999"] {
            assert_eq!(samples(text).unwrap_err(), "write a number from 1 to 1000000", "{text}");
        }
    }
}
