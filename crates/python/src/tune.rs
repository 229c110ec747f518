//! Searching for a faster schedule.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tempfile::TempDir;
use tilewright_interp::Inputs;
use tilewright_ir::Program;
use tilewright_runtime::Buffer;
use tilewright_schedule::text::parse as parse_schedule;
use tilewright_search::strategy::usual;
use tilewright_tuner::cache::{Cache, Keeper};
use tilewright_tuner::fleet::Fleet;
use tilewright_tuner::given;
use tilewright_tuner::task::Task;
use tilewright_tuner::tune::{Attempt, Options, Progress, STARTS, Stop, TuneError, Tuned, Watcher, tune};
use tilewright_tuner::worker::{Launch, Lost};

use crate::arguments::Value;
use crate::compiled::{Compiled, Wanted};
use crate::error::{self, ProgramError};
use crate::function::{Function, Request};
use crate::place::cache_path;
use crate::tensor::{Memory, Tensor};

/// Between two reports to Python: often enough for the eye, too seldom to disturb.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

/// Tunes a function for tensors like these, and uses from then on what was found. `report` is called now and then with the seconds
/// since the start, the trials, and the seconds of the best so far and of the default schedule. Ctrl-C ends the search, not the program.
#[pyfunction]
#[pyo3(signature = (function, args, kwargs, out, target, seconds, trials, strategy, seed, python, report))]
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
    report: Py<PyAny>,
) -> PyResult<Bound<'py, PyDict>> {
    let started = Instant::now();
    let function = function.get();
    let request = function.request(args, Some(kwargs), target)?;
    let program = function.program(&request, out)?;
    let machine = request.place.machine()?;
    let time = seconds.map(Duration::try_from_secs_f64).transpose();
    let mut options = Options {
        strategy: strategy.unwrap_or_else(|| usual(machine.target()).to_owned()),
        seed,
        starts: STARTS,
        trials,
        started,
        time: time.map_err(|_| PyValueError::new_err("seconds must be a number that is not negative"))?,
        hints: Vec::new(),
        experience: Vec::new(),
        template: None,
    };
    let folder = tempfile::tempdir().map_err(PyOSError::new_err)?;
    let task = task(function, &request, out, &program, seed, &folder)?;
    let key = function.key(&request, out)?;
    let launch =
        Launch { program: python, arguments: ["-m", "tilewright", "worker"].map(str::to_owned).into() };
    let (tuned, kept, compiled) = py.detach(|| {
        let cache = cache_path().and_then(|path| Cache::open(&path));
        let mut keeper = Keeper::new(cache, &program, &machine, &options);
        keeper.prepare(&mut options);
        let stop = Arc::new(Stop::default());
        let mut watcher = Reporter {
            keeper: &mut keeper,
            report,
            stop: &stop,
            told: None,
            failure: None,
            history: Vec::new(),
        };
        let mut fleet = Fleet::start(&launch, task.clone(), Vec::new(), &stop).map_err(lost)?;
        let tuned = tune(&task, &options, &mut fleet, &mut watcher, &stop).map_err(failed);
        let (failure, history) = (watcher.failure.take(), watcher.history);
        if let Some(failure) = failure {
            return Err(failure);
        }
        let tuned = tuned?;
        let _ = keeper.keep_finalists(&tuned);
        let schedule = parse_schedule(&tuned.schedule).schedule;
        let place = request.place;
        let mut compiled =
            Compiled::new(&function.source, &function.parameters, program, place, Wanted::Given(schedule))?;
        compiled.origin = if tuned.is_default { "default schedule" } else { "tuned schedule" }.to_owned();
        Ok::<_, PyErr>(((tuned, history), keeper.describe(), compiled))
    })?;
    function.keep(key, compiled);
    let (tuned, history) = tuned;
    told(py, &tuned, history, &kept)
}

/// What came out, for Python.
fn told<'py>(
    py: Python<'py>,
    tuned: &Tuned,
    history: Vec<(f64, usize, f64, f64)>,
    kept: &str,
) -> PyResult<Bound<'py, PyDict>> {
    let found = PyDict::new(py);
    found.set_item("seconds", tuned.seconds)?;
    found.set_item("default_seconds", tuned.default)?;
    found.set_item("schedule", tuned.schedule.trim_end())?;
    found.set_item("trials", tuned.trials)?;
    found.set_item("elapsed", tuned.elapsed.as_secs_f64())?;
    found.set_item("history", history)?;
    found.set_item("kept", kept)?;
    Ok(found)
}

/// What workers are given.
fn task<'py>(
    function: &Function,
    request: &Request<'py>,
    out: Option<&Bound<'py, PyAny>>,
    program: &Program,
    seed: u64,
    folder: &TempDir,
) -> PyResult<Task> {
    let sizes = function.sizes(request, out)?;
    let inputs =
        given::write(folder.path(), program, &example(function, request)?).map_err(PyOSError::new_err)?;
    Ok(Task {
        source: function.source.text.clone(),
        function: function.name.clone(),
        sizes: sizes.iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        place: request.place.for_tuning()?,
        seed,
        inputs,
    })
}

/// The caller's data, so that what is measured is what will be computed.
fn example(function: &Function, request: &Request<'_>) -> PyResult<Inputs> {
    let mut inputs = Inputs::default();
    for (value, parameter) in request.values.iter().zip(function.parameters.iter()) {
        let name = parameter.name.clone();
        match value {
            Value::Scalar(number) => _ = inputs.scalars.insert(name, *number),
            Value::Tensor(tensor) => {
                let brought;
                let tensor: &Tensor<'_> = match tensor.memory {
                    Memory::Host => tensor,
                    // Others cannot be brought here: their data is made from the seed.
                    Memory::Cuda(_) if !tensor.object.hasattr("cpu")? => continue,
                    Memory::Cuda(_) => {
                        brought = Tensor::read(&tensor.object.call_method0("cpu")?, &name)?;
                        &brought
                    }
                };
                // SAFETY: it is in the host's memory, and nobody writes to it while the interpreter is held.
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

/// Keeps trials, tells Python of them, and hears of Ctrl-C.
struct Reporter<'a, 'k> {
    keeper: &'a mut Keeper<'k>,
    report: Py<PyAny>,
    stop: &'a Stop,
    /// When Python was told last.
    told: Option<Instant>,
    /// What the report itself failed with.
    failure: Option<PyErr>,
    /// Seconds since the start, trials, seconds of this candidate, seconds of the best.
    history: Vec<(f64, usize, f64, f64)>,
}

impl Watcher for Reporter<'_, '_> {
    fn tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        // A cache that fails costs the records, not the search.
        let _ = self.keeper.keep(attempt, progress.trials);
        let elapsed = progress.elapsed.as_secs_f64();
        if let Some(seconds) = attempt.trial.seconds() {
            // The best is measured again now and then, and may turn out slower.
            let best = self.history.last().map_or(progress.best, |(.., best)| best.min(progress.best));
            self.history.push((elapsed, progress.trials, seconds, best));
        }
        if self.told.is_some_and(|told| told.elapsed() < BETWEEN_REPORTS) || self.failure.is_some() {
            return;
        }
        self.told = Some(Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.report.call1(py, (elapsed, progress.trials, progress.best, progress.default))?;
            Ok::<_, PyErr>(())
        });
        if let Err(error) = told {
            self.stop.ask();
            // Ctrl-C asks for what was found so far.
            if !Python::attach(|py| error.is_instance_of::<PyKeyboardInterrupt>(py)) {
                self.failure = Some(error);
            }
        }
    }
}

fn failed(error: TuneError) -> PyErr {
    match error {
        TuneError::Worker(error) => lost(error),
        TuneError::Strategy(error) => PyValueError::new_err(error.to_string()),
        TuneError::Template(_) | TuneError::Task(_) => ProgramError::new_err(error.to_string()),
        TuneError::Default(_) => PyRuntimeError::new_err(error.to_string()),
    }
}

fn lost(error: Lost) -> PyErr {
    match error {
        Lost::Refused(why) => PyValueError::new_err(why),
        other => PyRuntimeError::new_err(other.to_string()),
    }
}
