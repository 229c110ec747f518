//! Prepares the [`Search`] of `tilewright tune` from its arguments: the program and its data, the
//! options, the cache, and the peak rates of the machine.

use std::path::Path;
use std::time::{Duration, Instant};

use tilewright::cache::{Cache, CacheError};
use tilewright::ir::Program;
use tilewright::target::{Cpu, Machine};
use tilewright::tuner::peak::{PeakFile, Peaks};
use tilewright::tuner::search::{Search, Subject};
use tilewright::tuner::task::ExecutionTarget;
use tilewright::tuner::tune::{Options, prove};

use super::failure;
use crate::args::{ProgramArgs, TuneArgs};
use crate::commands::cache::failure as cache_failure;
use crate::failure::Failure;
use crate::memory::available;
use crate::output::print_error_line;
use crate::problem::Problem;
use crate::template;

/// The time limit if neither `--time` nor `--trials` is given.
const DEFAULT_TIME: Duration = Duration::from_secs(30);

/// The arguments for the program and its data, as `run` and `bench` take them.
pub fn program_args(args: &TuneArgs) -> ProgramArgs {
    ProgramArgs {
        file: args.source.clone(),
        sizes: args.sizes.clone(),
        inputs: args.inputs.clone(),
        seed: args.seed,
        rounding: args.rounding,
    }
}

/// Prepares the search of a program on a place.
pub fn prepare(
    args: &TuneArgs,
    place: &ExecutionTarget,
    problem: &mut Problem,
    started: Instant,
) -> Result<Search, Failure> {
    let machine = place.machine().map_err(|error| Failure::Machine(error.to_string()))?;
    let sizes = problem.given_sizes();
    let inputs = problem.given_inputs()?;
    let (source, program) = (&problem.source.file.text, &problem.program);
    let subject = Subject { source, program, sizes: &sizes, target: place, inputs: &inputs };
    let options = options(args, program, &machine, started)?;
    Search::new(subject, options).map_err(|error| failure(matches!(machine, Machine::Gpu(_)), error))
}

fn options(
    args: &TuneArgs,
    program: &Program,
    machine: &Machine,
    started: Instant,
) -> Result<Options, Failure> {
    Ok(Options {
        strategy: args.strategy(program, machine)?,
        seed: args.seed,
        starts: args.starts,
        trials: args.trials,
        started,
        time: args.time.or(args.trials.is_none().then_some(DEFAULT_TIME)),
        hints: Vec::new(),
        experience: Vec::new(),
        template: template::read(args.template.as_deref())?,
        proof_scope: args.proving(),
        prover: prove,
    })
}

/// Connects a search with the cache and the peaks of the machine. Peaks of the CPU that are not
/// known yet are measured here, before any worker runs. If the default cache cannot be used, prints
/// a warning and continues without it.
pub fn connect(args: &TuneArgs, search: &mut Search) -> Result<(), Failure> {
    search.use_cache(match &args.cache.cache {
        Some(path) => Ok(open_writable(path).map_err(cache_failure)?),
        None => Cache::default_path().and_then(|path| Cache::open(&path)),
    });
    if let Some(why) = search.cache_error() {
        print_error_line(&format!("warning: {why}; the search stores no records"));
    }
    let peaks = peaks(search.machine());
    search.set_peaks(peaks);
    Ok(())
}

fn open_writable(path: &Path) -> Result<Cache, CacheError> {
    let cache = Cache::open(path)?;
    cache.check_writable()?;
    Ok(cache)
}

/// Returns the peaks of the machine. Those of a CPU are measured once and kept; those of a device
/// come from its description.
fn peaks(machine: &Machine) -> Option<Peaks> {
    match machine {
        Machine::Cpu(cpu) => PeakFile::in_user_folder().peaks(cpu, spare_memory()).ok(),
        other => Peaks::reported(other.target().hardware()),
    }
}

/// Measures the peaks again, after a kernel was faster than the known peaks allow.
pub fn measure_peaks_again(cpu: &Cpu) -> Option<Peaks> {
    PeakFile::in_user_folder().measure(cpu, spare_memory()).ok()
}

/// The number of bytes that the bandwidth measurement may read: a quarter of the free memory.
fn spare_memory() -> usize {
    available().map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX))
}
