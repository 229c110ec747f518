//! Runs a whole search: writes the inputs for the workers, reads the cache, runs the tuning
//! loop, and records the trials.
//!
//! Every front end searches through this module. A [`Search`] is made of a [`Subject`] and the
//! [`Options`] of the tuning loop. [`Search::use_cache`] connects it with a cache.
//! [`Search::run`] runs it on [`Workers`], and [`Search::replay`] repeats a [`Recording`]. A
//! [`Watcher`] receives the events of the search while it runs, and a [`Stop`] ends it early. The
//! result is a [`SearchOutcome`].
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | the search, from its subject to its outcome |
//! | `history.rs` | all trials of a search, in order |

mod history;

use std::io;
use std::sync::Arc;

use tilewright_cache::{Cache, CacheError, TOOL_VERSION};
use tilewright_interp::Inputs;
use tilewright_ir::Program;
use tilewright_search::space::Space;
use tilewright_search::strategy::Experience;
use tilewright_target::Machine;

pub use history::{History, HistoryEntry};

use crate::cache_recorder::CacheRecorder;
use crate::fleet::Fleet;
use crate::input_files::{InputFiles, digests};
use crate::measure::Measurer;
use crate::note::Note;
use crate::peak::Peaks;
use crate::recording::{Answer, Recorder, Recording, Replay, Setting};
use crate::task::{ExecutionTarget, RecordedTask, Task};
use crate::tune::{
    Attempt, Options, Progress, Stop, TuneError, TuningReport, Watcher, refuse_unsuitable, tune,
};
use crate::worker::WorkerCommand;

/// The program that a search tunes, the place where its kernels run, and its data.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The source text of the program.
    pub source: &'a str,
    /// The program, all of whose sizes are known.
    pub program: &'a Program,
    /// The sizes that were given, and the integer scalars that sizes depend on.
    pub sizes: &'a [(String, i64)],
    /// The place where kernels run.
    pub target: &'a ExecutionTarget,
    /// The inputs that kernels are measured on. Workers generate the others from the seed.
    pub inputs: &'a Inputs,
}

/// The worker processes of a search, which are not started yet.
#[derive(Clone, Debug)]
pub struct Workers {
    /// How to start a worker.
    pub command: WorkerCommand,
    /// Further devices of the kind of the subject's device. Each one gets its own worker.
    pub others: Vec<ExecutionTarget>,
}

/// A search that is ready to start.
pub struct Search {
    task: Task,
    machine: Machine,
    options: Options,
    setting: Setting,
    recorder: Option<CacheRecorder>,
    /// Workers read these files, so they live as long as the search.
    _inputs: InputFiles,
}

/// The outcome of a search.
#[derive(Clone, Debug)]
pub struct SearchOutcome {
    /// The program.
    pub program: Program,
    /// The hardware that the program was tuned for.
    pub machine: Machine,
    /// Everything that determined the search, apart from the measurements.
    pub setting: Setting,
    /// The report of the tuning loop.
    pub report: TuningReport,
    /// All trials.
    pub history: History,
    /// The answers of the workers, or of the recording.
    pub answers: Vec<Answer>,
    /// Notes on how the workers compared results. A replay has none.
    pub notes: Vec<Note>,
    /// A sentence about the records that the cache keeps of the search; `None` without a cache.
    pub cache_summary: Option<String>,
    /// Whether the measurements come from a recording.
    pub is_replay: bool,
}

impl Search {
    /// Prepares a search. Writes the inputs for the workers, and refuses a template or a strategy
    /// that cannot be used.
    pub fn new(subject: Subject<'_>, options: Options) -> Result<Search, TuneError> {
        let machine = subject.target.machine()?;
        let inputs = InputFiles::write(subject.program, subject.inputs).map_err(TuneError::Inputs)?;
        let task = subject.task(options.seed, &inputs);
        let template = options.template.as_deref();
        refuse_unsuitable(options.strategy, &Space::with_template(template, subject.program, &machine)?)?;
        let setting = subject.setting(&task, &machine, &options)?;
        Ok(Search { task, machine, options, setting, recorder: None, _inputs: inputs })
    }

    /// Starts from the records of a cache, and stores every trial in it. A cache that cannot be
    /// opened or written does not end the search: [`Search::cache_error`] has its error.
    pub fn use_cache(&mut self, cache: Result<Cache, CacheError>) {
        let recorder = CacheRecorder::new(cache, &self.task.program, &self.machine, &self.options);
        recorder.add_cache_knowledge(&mut self.options);
        self.setting.hints = self.options.hints.clone();
        self.setting.experience = self.options.experience.iter().map(|own| own.trials.clone()).collect();
        self.recorder = Some(recorder);
    }

    /// The error that keeps trials from being stored in the cache.
    pub fn cache_error(&self) -> Option<&CacheError> {
        self.recorder.as_ref().and_then(CacheRecorder::cache_error)
    }

    /// Sets the peak rates of the hardware, for the report of the search.
    pub fn set_peaks(&mut self, peaks: Option<Peaks>) {
        self.setting.peaks = peaks;
    }

    /// Everything that determines the search, apart from the measurements.
    pub fn setting(&self) -> &Setting {
        &self.setting
    }

    /// The options of the tuning loop.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The hardware that the program is tuned for.
    pub fn machine(&self) -> &Machine {
        &self.machine
    }

    /// Starts the workers, and searches.
    pub fn run(
        self,
        workers: Workers,
        watcher: &mut dyn Watcher,
        stop: &Arc<Stop>,
    ) -> Result<SearchOutcome, TuneError> {
        let task = self.task.clone();
        let others = workers.others.into_iter().map(|place| Task { target: place, ..task.clone() }).collect();
        let fleet = Fleet::start(&workers.command, task, others, stop)?;
        let notes = fleet.notes().to_vec();
        notes.iter().for_each(|note| watcher.note_received(note));
        let mut recorder = Recorder::new(fleet, self.options.started);
        let found = self.search(&mut recorder, watcher, stop)?;
        Ok(SearchOutcome { answers: recorder.answers(), notes, ..found })
    }

    /// Repeats a recorded search, which measures nothing. The recording must be of this setting:
    /// [`Setting::difference`]. Hints come from the recording, since the cache may have changed.
    pub fn replay(
        mut self,
        recording: Recording,
        watcher: &mut dyn Watcher,
        stop: &Stop,
    ) -> Result<SearchOutcome, TuneError> {
        let Recording { setting, answers } = recording;
        self.options.hints = setting.hints.clone();
        let experience = setting.experience.iter().cloned();
        self.options.experience = experience.map(|trials| Experience { trials }).collect();
        self.setting = setting;
        let found = self.search(&mut Replay::new(&answers), watcher, stop)?;
        Ok(SearchOutcome { answers, is_replay: true, ..found })
    }

    /// Searches with these measurements.
    fn search(
        mut self,
        measurer: &mut dyn Measurer,
        watcher: &mut dyn Watcher,
        stop: &Stop,
    ) -> Result<SearchOutcome, TuneError> {
        let mut watching =
            RecordingWatcher { recorder: self.recorder.as_mut(), history: History::default(), watcher };
        let tuned = tune(&self.task, &self.options, measurer, &mut watching, stop)?;
        watching.record_finalists(&tuned);
        let history = watching.history;
        Ok(SearchOutcome {
            program: self.task.program,
            machine: self.machine,
            setting: self.setting,
            report: tuned,
            history,
            answers: Vec::new(),
            notes: Vec::new(),
            cache_summary: self.recorder.map(|recorder| recorder.describe()),
            is_replay: false,
        })
    }
}

impl SearchOutcome {
    /// The search as a recording, for [`Search::replay`].
    pub fn recording(&self) -> Recording {
        Recording { setting: self.setting.clone(), answers: self.answers.clone() }
    }
}

impl Subject<'_> {
    fn task(&self, seed: u64, inputs: &InputFiles) -> Task {
        let (program, place) = (self.program.clone(), self.target.clone());
        Task { program, target: place, seed, inputs: inputs.files.clone() }
    }

    fn recorded_task(&self, seed: u64) -> RecordedTask {
        RecordedTask {
            source: self.source.to_owned(),
            function: self.program.name.clone(),
            sizes: self.sizes.to_vec(),
            target: self.target.clone(),
            seed,
            contract: self.program.contract,
        }
    }

    /// The setting of a search without a cache.
    fn setting(&self, task: &Task, machine: &Machine, options: &Options) -> Result<Setting, TuneError> {
        Ok(Setting {
            tool_version: TOOL_VERSION.to_owned(),
            task: self.recorded_task(task.seed),
            inputs: digests(task).map_err(unreadable_inputs)?,
            caches: machine.target().hardware().warm_cache_sizes().to_vec(),
            strategy: options.strategy.name.to_owned(),
            seed: options.seed,
            starts: options.starts,
            trials: options.trials,
            time: options.time.map(|time| time.as_secs_f64()),
            hints: Vec::new(),
            experience: Vec::new(),
            template: options.template.clone(),
            proof_scope: options.proof_scope,
            peaks: None,
        })
    }
}

fn unreadable_inputs(error: io::Error) -> TuneError {
    TuneError::Inputs(io::Error::new(error.kind(), format!("inputs cannot be read again: {error}")))
}

/// Stores every trial in the cache and in the history, and passes it on.
struct RecordingWatcher<'a> {
    recorder: Option<&'a mut CacheRecorder>,
    history: History,
    watcher: &'a mut dyn Watcher,
}

impl RecordingWatcher<'_> {
    /// Stores the samples of the final comparison.
    fn record_finalists(&mut self, tuned: &TuningReport) {
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.record_finalists(tuned)
        {
            self.watcher.cache_failed(error);
        }
    }
}

impl Watcher for RecordingWatcher<'_> {
    fn candidate_tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        if let Some(recorder) = &mut self.recorder
            && let Err(error) = recorder.record_trial(attempt, progress.trials)
        {
            self.watcher.cache_failed(error);
        }
        self.history.add(attempt.schedule, attempt.trial, progress);
        self.watcher.candidate_tried(attempt, progress);
    }
}
