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
use tilewright_driver::{OpenTarget, TargetName};
use tilewright_interp::Inputs;
use tilewright_ir::{Number, Tensor};
use tilewright_runtime::{Buffer, View};
use tilewright_schedule::{Schedule, text};
use tilewright_search::strategy::{Entry, usual};
use tilewright_target::Machine;
use tilewright_tuner::fleet::Fleet;
use tilewright_tuner::input_files::InputFiles;
use tilewright_tuner::keeper::Keeper;
use tilewright_tuner::task::{Place, Task};
use tilewright_tuner::tune::{self, Attempt, Options, STARTS, Watcher};
use tilewright_tuner::worker::{Launch, serve};

use crate::error::Error;
use crate::module::Program;

pub use tilewright_tuner::tune::{Kind, Progress, Proof, Proving, Stop, TimeSpent};

/// The environment variable that tells a process that it is a worker.
const WORKER: &str = "TILEWRIGHT_WORKER";

/// The time of a search if neither a time nor a number of trials is given.
const TIME: Duration = Duration::from_secs(30);

/// Serves as a worker and ends the process, if [`Program::tune`] has started this process as a
/// worker. Otherwise it does nothing. Call it first in `main`.
pub fn serve_if_worker() {
    if env::var_os(WORKER).is_none() {
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
    proving: Proving,
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
            proving: Proving::Winners,
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
    pub fn proving(self, proving: Proving) -> Self {
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

    /// Lets another thread end the search, which then returns the best schedule so far.
    pub fn stop(self, stop: Arc<Stop>) -> Self {
        Tune { stop, ..self }
    }

    fn launch(&self) -> Result<Launch, Error> {
        match &self.worker {
            Some((program, arguments)) => {
                Ok(Launch { program: program.clone(), arguments: arguments.clone(), variables: Vec::new() })
            }
            None => {
                let program = env::current_exe().map_err(|why| Error::Worker(why.to_string()))?;
                let variables = vec![(WORKER.to_owned(), "1".to_owned())];
                Ok(Launch { program, arguments: Vec::new(), variables })
            }
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
        if env::var_os(WORKER).is_some() {
            let why = "this process is a worker: begin `main` with `tilewright::serve_if_worker()`";
            return Err(Error::Worker(why.to_owned()));
        }
        let machine = match &tune.target {
            OpenTarget::Cpu(cpu) => Machine::Cpu(cpu.clone()),
            OpenTarget::Gpu(device) => Machine::Gpu(device.gpu().clone()),
        };
        let given =
            InputFiles::write(&self.ir, &tune.inputs()?).map_err(|why| Error::Worker(why.to_string()))?;
        let task = self.task(tune, &machine, &given)?;
        let mut options = self.search_options(tune, &machine);
        let cache = tune.cache.as_deref().map(Cache::open).transpose()?;
        let mut keeper = cache.map(|cache| Keeper::new(Ok(cache), &self.ir, &machine, &options));
        if let Some(keeper) = &keeper {
            keeper.prepare(&mut options);
        }
        let mut fleet = Fleet::start(&tune.launch()?, task.clone(), Vec::new(), &tune.stop)?;
        let notes = fleet.notes().iter().map(|note| note.to_string()).collect();
        let mut watcher = Watching { keeper: keeper.as_mut(), watch };
        let found = tune::tune(&task, &options, &mut fleet, &mut watcher, &tune.stop)?;
        if let Some(keeper) = &mut keeper {
            // If the cache fails, the records are lost but the search goes on, and `kept` says so.
            let _ = keeper.keep_finalists(&found);
        }
        Ok(Tuned {
            schedule: text::parse(&found.schedule).schedule,
            seconds: found.seconds,
            default_seconds: found.default,
            is_default: found.is_default,
            trials: found.trials,
            elapsed: found.elapsed,
            proof: found.proof,
            kept: keeper.map(|keeper| keeper.describe()),
            notes,
        })
    }

    fn search_options(&self, tune: &Tune<'_>, machine: &Machine) -> Options {
        Options {
            strategy: tune.strategy.unwrap_or_else(|| usual(machine.target())),
            seed: tune.seed,
            starts: STARTS,
            trials: tune.trials,
            started: Instant::now(),
            time: tune.time.or(tune.trials.is_none().then_some(TIME)),
            hints: Vec::new(),
            experience: Vec::new(),
            template: None,
            proving: tune.proving,
            prover: tune::prove,
        }
    }

    fn task(&self, tune: &Tune<'_>, machine: &Machine, given: &InputFiles) -> Result<Task, Error> {
        let no_text =
            || Error::Worker("a search sends the program as text, and this one has none".to_owned());
        let source = self.source.as_ref().ok_or_else(no_text)?;
        let name = match &tune.target {
            OpenTarget::Cpu(_) => TargetName::Cpu,
            OpenTarget::Gpu(device) => device.name().parse().unwrap_or(TargetName::Cpu),
        };
        Ok(Task {
            source: source.to_string(),
            function: self.ir.name.clone(),
            sizes: self.sizes.clone(),
            place: Place::of(name, machine),
            seed: tune.seed,
            contract: self.ir.contract,
            inputs: given.files.clone(),
        })
    }
}

/// Stores trials in the cache, and passes them on.
struct Watching<'a, 'k, F> {
    keeper: Option<&'a mut Keeper<'k>>,
    watch: F,
}

impl<F: FnMut(&Progress)> Watcher for Watching<'_, '_, F> {
    fn tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        if let Some(keeper) = &mut self.keeper {
            // A failing cache does not end the search, as above.
            let _ = keeper.keep(attempt, progress.trials);
        }
        (self.watch)(progress);
    }
}
