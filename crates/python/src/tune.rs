//! Searches for a faster schedule of a function and uses it from then on: the native part of
//! `Function.tune`.

use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright::cache::Cache;
use tilewright::interp::Inputs;
use tilewright::ir::Program;
use tilewright::runtime::Buffer;
use tilewright::schedule::text::parse as parse_schedule;
use tilewright::strategy::{find, usual};
use tilewright::target::Machine;
use tilewright::tuner::note::Note;
use tilewright::tuner::search::{History, HistoryEntry, Search, SearchOutcome, Subject, Workers};
use tilewright::tuner::task;
use tilewright::tuner::tune::{
    Attempt, DEFAULT_STARTS, Options, Progress, ProofScope, Stop, TuneError, Watcher, prove,
};
use tilewright::tuner::worker::{WorkerCommand, WorkerError};

use crate::arguments::Value;
use crate::compiled::{Compiled, ScheduleChoice};
use crate::error::{self, ProgramError};
use crate::function::{Function, Request};
use crate::place::cache_path;
use crate::tensor::{Memory, Tensor};

/// The time between two checks of a search: short enough for a progress bar, long enough not to
/// disturb measurements.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Tunes a function for tensors like these, and uses the best schedule from then on. `python` with
/// `arguments` starts a worker process. `report` is called regularly with the seconds since the
/// start, the number of trials, and the seconds of the best so far and of the default schedule.
/// Ctrl-C ends the search, not the program.
#[pyfunction]
#[pyo3(signature = (function, args, kwargs, out, target, seconds, trials, strategy, seed, python, arguments, report))]
#[allow(
    clippy::too_many_arguments,
    reason = "they are those of the method in Python, which has names for them"
)]
pub fn search<'py>(
    py: Python<'py>,
    function: &Bound<'py, Function>,
    args: &Bound<'py, PyTuple>,
    kwargs: &Bound<'py, PyDict>,
    out: Option<&Bound<'py, PyAny>>,
    target: Option<&str>,
    seconds: Option<f64>,
    trials: Option<usize>,
    strategy: Option<String>,
    seed: u64,
    python: PathBuf,
    arguments: Vec<String>,
    report: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let started = Instant::now();
    let function = function.get();
    let request = function.request(args, Some(kwargs), out, target)?;
    let program = function.program(&request, out)?;
    let machine = request.place.machine()?;
    let options = options(&program, &machine, started, seconds, trials, strategy, seed)?;
    let inputs = example_inputs(function, &request)?;
    let sizes = function.sizes(&request, out)?;
    let sizes: Vec<_> = sizes.iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let place = task::ExecutionTarget::for_target(request.place.target, &machine);
    let source = &function.source.text;
    let subject = Subject { source, program: &program, sizes: &sizes, target: &place, inputs: &inputs };
    let key = function.key(&request, out)?;
    let command = WorkerCommand { program: python, arguments, variables: Vec::new() };
    let stop = Arc::new(Stop::default());
    let (sender, progress) = channel();
    let search = || {
        let mut search = Search::new(subject, options).map_err(failed)?;
        search.use_cache(cache_path().and_then(|path| Cache::open(&path)));
        let workers = Workers { command, others: Vec::new() };
        search.run(workers, &mut Reporter { sender }, &stop).map_err(failed)
    };
    let found = run_interruptibly(py, search, &progress, &stop, report)?;
    warn(py, &found.notes)?;
    let tuned = &found.report;
    // A search without any trial keeps the schedule that is already known.
    if tuned.trials > 0 {
        let schedule = parse_schedule(&tuned.schedule).schedule;
        let place = request.place;
        let wanted = ScheduleChoice::Given(schedule);
        let mut compiled = Compiled::new(py, &function.source, &function.parameters, program, place, wanted)?;
        compiled.origin = if tuned.is_default { "default schedule" } else { "tuned schedule" }.to_owned();
        function.keep(key, compiled);
    }
    outcome_dict(py, &found)
}

/// The options of the tuning loop.
fn options(
    program: &Program,
    machine: &Machine,
    started: Instant,
    seconds: Option<f64>,
    trials: Option<usize>,
    strategy: Option<String>,
    seed: u64,
) -> PyResult<Options> {
    let time = seconds.map(Duration::try_from_secs_f64).transpose();
    let strategy = strategy.map_or(Ok(usual(program, machine.target())), |name| find(&name));
    Ok(Options {
        strategy: strategy.map_err(|error| PyValueError::new_err(error.to_string()))?,
        seed,
        starts: DEFAULT_STARTS,
        trials,
        started,
        time: time.map_err(|_| PyValueError::new_err("seconds must be a number that is not negative"))?,
        hints: Vec::new(),
        experience: Vec::new(),
        template: None,
        proof_scope: ProofScope::Winners,
        prover: prove,
    })
}

/// Runs a search on its own thread while this thread, which receives Python's signals, checks it.
/// So Ctrl-C takes effect at once, whatever the search waits for, and ends the search with the best
/// so far. Any other exception also ends the search, and is raised.
fn run_interruptibly<T: Send>(
    py: Python<'_>,
    search: impl FnOnce() -> PyResult<T> + Send,
    progress: &Receiver<Progress>,
    stop: &Stop,
    report: &Bound<'_, PyAny>,
) -> PyResult<T> {
    thread::scope(|scope| {
        let searching =
            thread::Builder::new().name("tilewright-search".to_owned()).spawn_scoped(scope, search);
        let searching = searching.map_err(PyOSError::new_err)?;
        let mut failure = None;
        while !searching.is_finished() {
            py.detach(|| thread::sleep(POLL_INTERVAL));
            let polled = py.check_signals().and_then(|()| match progress.try_iter().last() {
                Some(Progress { elapsed, trials, best_seconds: best, default_seconds: default, .. })
                    if failure.is_none() =>
                {
                    report.call1((elapsed.as_secs_f64(), trials, best, default)).map(|_| ())
                }
                _ => Ok(()),
            });
            if let Err(error) = polled {
                // The second request skips the final comparison.
                stop.request();
                stop.request();
                if !error.is_instance_of::<PyKeyboardInterrupt>(py) {
                    failure = Some(error);
                }
            }
        }
        let found = py.detach(|| searching.join()).map_err(|_| error::bug(&"the search has panicked"))?;
        failure.map_or(found, Err)
    })
}

/// The outcome as a dict for Python.
fn outcome_dict<'py>(py: Python<'py>, outcome: &SearchOutcome) -> PyResult<Bound<'py, PyDict>> {
    let tuned = &outcome.report;
    let found = PyDict::new(py);
    found.set_item("seconds", tuned.seconds)?;
    found.set_item("default_seconds", tuned.default_seconds)?;
    found.set_item("schedule", tuned.schedule.trim_end())?;
    found.set_item("trials", tuned.trials)?;
    found.set_item("elapsed", tuned.elapsed.as_secs_f64())?;
    found.set_item("history", history(&outcome.history))?;
    found.set_item("kept", error::in_python(outcome.cache_summary.as_deref().unwrap_or_default()))?;
    Ok(found)
}

/// For each measured trial: seconds since the start, number of trials, seconds of this candidate,
/// seconds of the best so far.
fn history(history: &History) -> Vec<(f64, usize, f64, f64)> {
    let mut best = f64::INFINITY;
    let measured = history.trials.iter().filter_map(|tried| Some((tried, tried.seconds?)));
    let row = |(tried, seconds): (&HistoryEntry, f64)| {
        best = best.min(tried.best);
        (tried.after, tried.trials, seconds, best)
    };
    measured.map(row).collect()
}

/// Warns of results that could not be compared with the reference.
fn warn(py: Python<'_>, notes: &[Note]) -> PyResult<()> {
    for warning in notes.iter().filter(|note| note.is_warning) {
        let text = CString::new(warning.text.as_str())?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 2)?;
    }
    Ok(())
}

/// The caller's data, so that the search measures the real computation.
pub fn example_inputs(function: &Function, request: &Request<'_>) -> PyResult<Inputs> {
    let mut inputs = Inputs::default();
    for (value, parameter) in request.values.iter().zip(function.parameters.iter()) {
        let name = parameter.name.clone();
        match value {
            Value::Scalar(number) => _ = inputs.scalars.insert(name, *number),
            Value::Tensor(tensor) => {
                let brought;
                let tensor: &Tensor<'_> = match tensor.memory {
                    Memory::Host => tensor,
                    Memory::Cuda(_) => match on_host(&tensor.object)? {
                        Some(array) => {
                            brought = Tensor::read(&array, &name)?;
                            &brought
                        }
                        // The worker generates this input from the seed.
                        None => continue,
                    },
                };
                // SAFETY: the tensor is in the host's memory, and nothing writes to it while the
                // interpreter lock is held.
                let packed = Buffer::pack(&unsafe { tensor.view() });
                let copied = packed.and_then(|packed| packed.to_tensor());
                inputs
                    .tensors
                    .insert(name, copied.map_err(|error| error::run(&function.source, error.into()))?);
            }
        }
    }
    Ok(inputs)
}

/// Copies a tensor to the host's memory, if its library can do that.
fn on_host<'py>(tensor: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    if tensor.hasattr("cpu")? {
        return tensor.call_method0("cpu").map(Some);
    }
    if tensor.hasattr("__array__")? {
        return tensor.py().import("numpy")?.call_method1("asarray", (tensor,)).map(Some);
    }
    Ok(None)
}

/// Sends the progress to the thread that reports it.
struct Reporter {
    sender: Sender<Progress>,
}

impl Watcher for Reporter {
    fn candidate_tried(&mut self, _: &Attempt<'_>, progress: &Progress) {
        // The receiver may be gone.
        let _ = self.sender.send(progress.clone());
    }
}

fn failed(error: TuneError) -> PyErr {
    match error {
        TuneError::Worker(error) => lost(error),
        TuneError::Inputs(error) => error.into(),
        TuneError::Strategy(error) => PyValueError::new_err(error.to_string()),
        TuneError::Template(_) | TuneError::Task(_) => ProgramError::new_err(error.to_string()),
        TuneError::Default(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

fn lost(error: WorkerError) -> PyErr {
    match error {
        WorkerError::Refused(why) => PyValueError::new_err(why),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}
