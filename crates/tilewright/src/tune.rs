//! Searches for fast schedules by measuring kernels on this computer.
//!
//! Candidates are compiled and run in a worker process, since a candidate may crash or hang. By
//! default the program that calls [`Program::tune`] starts itself as the worker. Its `main` must
//! therefore begin with [`serve_if_worker`], which does nothing in any other process.

use std::collections::BTreeMap;
use std::env;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_cache::Cache;
use tilewright_driver::OpenTarget;
use tilewright_interp::Inputs;
use tilewright_ir::{Number, Tensor};
use tilewright_runtime::{Buffer, View};
use tilewright_schedule::{Schedule, text};
use tilewright_search::strategy::{Entry, usual};
use tilewright_target::Machine;
use tilewright_tuner::peak::Peaks;
use tilewright_tuner::roofline::Roofline;
use tilewright_tuner::search::{Search, Subject, Workers};
use tilewright_tuner::task::ExecutionTarget;
use tilewright_tuner::tune::{Attempt, DEFAULT_STARTS, Options, TuneError, Watcher, prove};
use tilewright_tuner::worker::{WorkerCommand, serve};

use crate::error::Error;
use crate::module::Program;

pub use tilewright_tuner::search::{History, HistoryEntry, SearchOutcome};
pub use tilewright_tuner::tune::{Progress, Proof, ProofScope, Stop, TimeSpent, TrialKind};

/// The environment variable that tells a process that it is a worker.
const WORKER_VARIABLE: &str = "TILEWRIGHT_WORKER";

/// The time of a search if neither a time nor a number of trials is given.
const DEFAULT_TIME: Duration = Duration::from_secs(30);

/// Serves as a worker and ends the process, if [`Program::tune`] has started this process as a
/// worker. Otherwise it does nothing. Call it first in `main`.
pub fn serve_if_worker() {
    if env::var_os(WORKER_VARIABLE).is_none() {
        return;
    }
    let served = serve(BufReader::new(io::stdin()), io::stdout().lock());
    std::process::exit(i32::from(served.is_err()));
}

/// Options of a search for a schedule.
#[derive(Clone)]
pub struct Tune<'d> {
    target: OpenTarget,
    strategy: Option<Entry>,
    seed: u64,
    time: Option<Duration>,
    trials: Option<usize>,
    cache: Option<PathBuf>,
    proving: ProofScope,
    template: Option<String>,
    starts: usize,
    peaks: Option<Peaks>,
    worker: Option<(PathBuf, Vec<String>)>,
    tensors: BTreeMap<String, View<'d>>,
    scalars: BTreeMap<String, Number>,
    stop: Arc<Stop>,
}

impl Default for Tune<'_> {
    /// Selects the default strategy of the target, for 30 seconds, on all cores of this computer,
    /// without a cache, on random data.
    fn default() -> Self {
        Tune {
            target: OpenTarget::host(),
            strategy: None,
            seed: 0,
            time: None,
            trials: None,
            cache: None,
            proving: ProofScope::Winners,
            template: None,
            starts: DEFAULT_STARTS,
            peaks: None,
            worker: None,
            tensors: BTreeMap::new(),
            scalars: BTreeMap::new(),
            stop: Arc::default(),
        }
    }
}

impl<'d> Tune<'d> {
    /// Sets the target.
    pub fn on(self, target: OpenTarget) -> Self {
        Tune { target, ..self }
    }

    /// Sets the strategy: one of [`crate::strategy::ALL`], or one of your own.
    pub fn strategy(self, strategy: Entry) -> Self {
        Tune { strategy: Some(strategy), ..self }
    }

    /// Sets the seed of all random choices.
    pub fn seed(self, seed: u64) -> Self {
        Tune { seed, ..self }
    }

    /// Ends the search after this time.
    pub fn time(self, time: Duration) -> Self {
        Tune { time: Some(time), ..self }
    }

    /// Ends the search after this many candidates.
    pub fn trials(self, trials: usize) -> Self {
        Tune { trials: Some(trials), ..self }
    }

    /// Starts from the records of a tuning cache, and stores every trial in it.
    pub fn cache(self, path: impl Into<PathBuf>) -> Self {
        Tune { cache: Some(path.into()), ..self }
    }

    /// Sets which schedules are proved to compute what the program says. The default is the winner.
    pub fn proving(self, proving: ProofScope) -> Self {
        Tune { proving, ..self }
    }

    /// Sets the command that is started as the worker process, such as `tilewright worker`.
    pub fn worker(self, program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|&own| own.to_owned()).collect();
        Tune { worker: Some((program.into(), arguments)), ..self }
    }

    /// Measures kernels on this tensor instead of random data. The fastest schedule can depend on
    /// the data.
    pub fn input(mut self, name: &str, value: impl Into<View<'d>>) -> Self {
        self.tensors.insert(name.to_owned(), value.into());
        self
    }

    /// Measures kernels with this scalar instead of a random one.
    pub fn scalar(mut self, name: &str, value: Number) -> Self {
        self.scalars.insert(name.to_owned(), value);
        self
    }

    /// Searches the schedules of this template instead of those that analysis finds.
    pub fn template(self, text: &str) -> Self {
        Tune { template: Some(text.to_owned()), ..self }
    }

    /// Sets the largest number of points that the cost model chooses to start from.
    pub fn starts(self, starts: usize) -> Self {
        Tune { starts, ..self }
    }

    /// Sets the peak rates of the target, for the report of the search.
    pub fn peaks(self, peaks: Peaks) -> Self {
        Tune { peaks: Some(peaks), ..self }
    }

    /// Lets another thread end the search, which then returns the best schedule so far.
    pub fn stop(self, stop: Arc<Stop>) -> Self {
        Tune { stop, ..self }
    }

    fn launch(&self) -> Result<WorkerCommand, Error> {
        match &self.worker {
            Some((program, arguments)) => Ok(WorkerCommand {
                program: program.clone(),
                arguments: arguments.clone(),
                variables: Vec::new(),
            }),
            None => {
                let program = env::current_exe().map_err(|why| Error::Worker(why.to_string()))?;
                let variables = vec![(WORKER_VARIABLE.to_owned(), "1".to_owned())];
                Ok(WorkerCommand { program, arguments: Vec::new(), variables })
            }
        }
    }

    fn options(&self, program: &tilewright_ir::Program, machine: &Machine) -> Options {
        Options {
            strategy: self.strategy.unwrap_or_else(|| usual(program, machine.target())),
            seed: self.seed,
            starts: self.starts,
            trials: self.trials,
            started: Instant::now(),
            time: self.time.or(self.trials.is_none().then_some(DEFAULT_TIME)),
            hints: Vec::new(),
            experience: Vec::new(),
            template: self.template.clone(),
            proof_scope: self.proving,
            prover: prove,
        }
    }

    fn inputs(&self) -> Result<Inputs, Error> {
        let copy = |(name, view): (&String, &View<'_>)| -> Result<(String, Tensor), Error> {
            let packed = Buffer::pack(view).and_then(|packed| packed.to_tensor());
            Ok((name.clone(), packed.map_err(|error| Error::Run(error.into()))?))
        };
        let tensors = self.tensors.iter().map(copy).collect::<Result<_, _>>()?;
        Ok(Inputs { tensors, scalars: self.scalars.clone() })
    }
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct Tuned {
    /// The fastest schedule, for [`crate::Compile::with`].
    pub schedule: Schedule,
    /// The time of one call with this schedule, in seconds.
    pub seconds: f64,
    /// The time of one call with the default schedule, in seconds.
    pub default_seconds: f64,
    /// Whether no candidate was faster than the default schedule.
    pub is_default: bool,
    /// The number of candidates that were tried.
    pub trials: usize,
    /// The duration of the search.
    pub elapsed: Duration,
    /// The prover's verdict on the schedule.
    pub proof: Proof,
    /// A sentence about the records stored in the cache; `None` without a cache.
    pub kept: Option<String>,
    /// Notes on how results were compared with the interpreter's.
    pub notes: Vec<String>,
    /// Everything about the search: all trials, the answers of the workers, the setting.
    pub found: SearchOutcome,
}

impl Tuned {
    fn new(found: SearchOutcome) -> Tuned {
        let tuned = &found.report;
        Tuned {
            schedule: text::parse(&tuned.schedule).schedule,
            seconds: tuned.seconds,
            default_seconds: tuned.default_seconds,
            is_default: tuned.is_default,
            trials: tuned.trials,
            elapsed: tuned.elapsed,
            proof: tuned.proof.clone(),
            kept: found.cache_summary.clone(),
            notes: found.notes.iter().map(|note| note.to_string()).collect(),
            found,
        }
    }

    /// The report of the search as an HTML page: one file that refers to nothing outside itself.
    /// It compares times with the peak rates of the hardware if [`Tune::peaks`] gives them.
    ///
    /// ```no_run
    /// # use tilewright::{Cpu, Module, Peaks, Tune};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # tilewright::serve_if_worker();
    /// # let module = Module::parse("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }")?;
    /// # let program = module.program("twice", [("N", 1 << 20)])?;
    /// let peaks = Peaks::measure(&Cpu::host(), 1 << 28)?;
    /// let tuned = program.tune(&Tune::default().peaks(peaks))?;
    /// std::fs::write("twice.html", tuned.report()?)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn report(&self) -> Result<String, Error> {
        let SearchOutcome { program, machine, setting, .. } = &self.found;
        let roofline = Roofline::new(program, machine.target(), setting.peaks);
        Ok(tilewright_report::tuning_page(&self.found, &roofline)?)
    }
}

impl Program {
    /// Searches for a fast schedule.
    ///
    /// ```no_run
    /// use std::time::Duration;
    /// use tilewright::{Compile, Module, Tune};
    ///
    /// fn main() -> Result<(), tilewright::Error> {
    ///     tilewright::serve_if_worker();
    ///     let module = Module::parse("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")?;
    ///     let program = module.program("mm", [("M", 512), ("K", 512), ("N", 512)])?;
    ///     let tuned = program.tune(&Tune::default().time(Duration::from_secs(10)))?;
    ///     println!("{:.2} times as fast as the default", tuned.default_seconds / tuned.seconds);
    ///     let kernel = program.compile_with(&Compile::with(tuned.schedule))?;
    ///     Ok(())
    /// }
    /// ```
    pub fn tune(&self, options: &Tune<'_>) -> Result<Tuned, Error> {
        self.tune_watched(options, |_| {})
    }

    /// Searches for a fast schedule, and calls a function after every candidate.
    pub fn tune_watched(&self, tune: &Tune<'_>, watch: impl FnMut(&Progress)) -> Result<Tuned, Error> {
        if env::var_os(WORKER_VARIABLE).is_some() {
            let why = "this process is a worker: begin `main` with `tilewright::serve_if_worker()`";
            return Err(Error::Worker(why.to_owned()));
        }
        let workers = Workers { command: tune.launch()?, others: Vec::new() };
        let mut watcher = ProgressWatcher { watch, has_tried: false };
        let found = self.search(tune)?.run(workers, &mut watcher, &tune.stop);
        found.map(Tuned::new).map_err(|error| match error {
            TuneError::Worker(lost) if !watcher.has_tried => lost.into(),
            error => error.into(),
        })
    }

    /// Prepares a search.
    fn search(&self, tune: &Tune<'_>) -> Result<Search, Error> {
        let machine = tune.target.machine();
        let place = ExecutionTarget::for_target(tune.target.name(), &machine);
        let subject = Subject {
            source: &self.source,
            program: &self.ir,
            sizes: &self.sizes,
            target: &place,
            inputs: &tune.inputs()?,
        };
        let mut search = Search::new(subject, tune.options(&self.ir, &machine))?;
        if let Some(path) = &tune.cache {
            search.use_cache(Ok(Cache::open(path)?));
        }
        search.set_peaks(tune.peaks);
        Ok(search)
    }
}

/// Passes the progress on.
struct ProgressWatcher<F> {
    watch: F,
    /// Whether a worker has answered.
    has_tried: bool,
}

impl<F: FnMut(&Progress)> Watcher for ProgressWatcher<F> {
    fn candidate_tried(&mut self, _: &Attempt<'_>, progress: &Progress) {
        self.has_tried = true;
        (self.watch)(progress);
    }
}
