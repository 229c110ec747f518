//! Measures schedules of random pipelines and of given programs, for models to learn from.
//!
//! [`Collection::run`] takes one program after the other: it chooses schedules
//! ([`samples`](crate::samples)), has a worker compile, check and measure them in turn with the
//! default schedule, and appends a record. Programs that the file already has are skipped, so a
//! collection can be stopped at any moment and continued later.

use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use thiserror::Error;
use tilewright_cache::outcome::{Outcome, Trial};
use tilewright_pipelines::{Kind, PipelineOptions, Size, generate};
use tilewright_target::Machine;
use tilewright_tuner::bench::{Plan, ReferenceSchedule};
use tilewright_tuner::measure::{Measurer, SupervisedWorker};
use tilewright_tuner::task::{ExecutionTarget, RecordedTask, TaskError};
use tilewright_tuner::tune::Stop;
use tilewright_tuner::worker::{WorkerCommand, WorkerError};

use crate::data::{MeasuredSchedule, ProgramRecord, TrainingFile};
use crate::samples::schedules;

/// The numbers of stages of random pipelines.
const STAGES: (f64, f64) = (3.0, 40.0);
/// A candidate that takes this many times as long as the default schedule is measured by one call.
const SLOW: f64 = 20.0;
/// The longest call of a default schedule that is measured, in seconds.
const LONGEST_CALL: f64 = 2.0;
/// The samples of a candidate, and the seconds of all of them together.
const SAMPLES: usize = 7;
const SAMPLING_SECONDS: f64 = 0.02;
/// The seconds that all schedules of a program may take.
const PROGRAM_SECONDS: f64 = 30.0;
/// The programs that are prepared while one is measured on a device.
const PREPARED: usize = 2;

/// A program to measure.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The kind of a random pipeline, or the name of a group.
    pub kind: String,
    /// The program and its sizes. The target is that of the collection.
    pub task: RecordedTask,
}

/// What to measure, and where.
#[derive(Debug)]
pub struct Collection {
    /// How worker processes are started.
    pub launch: WorkerCommand,
    /// Where kernels run.
    pub target: ExecutionTarget,
    /// The most schedules of a program.
    pub schedules: usize,
    /// When to begin no further program.
    pub until: Instant,
    /// Ends the collection early.
    pub stop: Arc<Stop>,
}

/// What has happened to a program.
#[derive(Clone, Debug)]
pub enum Progress {
    /// This many schedules were measured.
    Measured(usize),
    /// The program was left out, for this reason.
    LeftOut(String),
}

/// Why a collection cannot continue.
#[derive(Debug, Error)]
pub enum CollectError {
    /// The file of records cannot be written.
    #[error("the measurements cannot be stored: {0}")]
    File(#[from] io::Error),
    /// The machine cannot be described.
    #[error(transparent)]
    Machine(#[from] TaskError),
}

/// A program whose schedules are chosen, with the worker that will measure them.
struct Prepared {
    worker: SupervisedWorker,
    /// The schedules as text, the default schedule first.
    steps: Vec<String>,
}

impl Collection {
    /// Measures programs until the time is over, and appends their records to a file. `watch`
    /// learns of each program.
    ///
    /// Where kernels run on a device, the next program is prepared while one is measured. On a CPU
    /// that would disturb the measurements.
    pub fn run(
        &self,
        subjects: impl IntoIterator<Item = Subject, IntoIter: Send>,
        file: &mut TrainingFile,
        watch: &mut dyn FnMut(&Subject, &Progress),
    ) -> Result<(), CollectError> {
        let machine = self.target.machine()?;
        let known = file.names().clone();
        let mut prepared = subjects
            .into_iter()
            .take_while(|_| Instant::now() < self.until && !self.stop.is_requested())
            .filter(|subject| !known.contains(&record_of(subject, &machine).name()))
            .map(|subject| {
                let prepared = self.prepare(&subject, &machine);
                (subject, prepared)
            });
        if self.target.device().is_none() {
            return prepared.try_for_each(|(subject, own)| self.record(subject, own, &machine, file, watch));
        }
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(PREPARED);
            scope.spawn(move || prepared.all(|own| sender.send(own).is_ok()));
            receiver.iter().try_for_each(|(subject, own)| self.record(subject, own, &machine, file, watch))
        })
    }

    /// Chooses the schedules of a program, and starts its worker.
    fn prepare(&self, subject: &Subject, machine: &Machine) -> Result<Prepared, String> {
        let task = subject.task.task().map_err(|error| error.to_string())?;
        let name = subject.task.function.bytes();
        let seed = name.fold(7, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into()));
        let found = schedules(&task.program, machine.target(), self.schedules, seed);
        let steps = found.iter().map(ToString::to_string).collect();
        let worker = SupervisedWorker::start(self.launch.clone(), task, Arc::clone(&self.stop));
        let worker = worker.map_err(|error: WorkerError| error.to_string())?;
        Ok(Prepared { worker, steps })
    }

    /// Measures a program and appends its record.
    fn record(
        &self,
        subject: Subject,
        prepared: Result<Prepared, String>,
        machine: &Machine,
        file: &mut TrainingFile,
        watch: &mut dyn FnMut(&Subject, &Progress),
    ) -> Result<(), CollectError> {
        let progress = match prepared.and_then(measure) {
            Ok(measured) if measured.len() > 1 => {
                let count = measured.len();
                file.append(&ProgramRecord { schedules: measured, ..record_of(&subject, machine) })?;
                Progress::Measured(count)
            }
            Ok(_) => Progress::LeftOut("it has only one schedule".to_owned()),
            Err(why) => Progress::LeftOut(why),
        };
        watch(&subject, &progress);
        Ok(())
    }
}

/// The record of a program, without its schedules.
fn record_of(subject: &Subject, machine: &Machine) -> ProgramRecord {
    ProgramRecord {
        kind: subject.kind.clone(),
        task: subject.task.clone(),
        caches: machine.target().hardware().memory_sizes(),
        schedules: Vec::new(),
    }
}

/// Measures schedules of a program, the default schedule first.
fn measure(prepared: Prepared) -> Result<Vec<MeasuredSchedule>, String> {
    let Prepared { mut worker, steps } = prepared;
    let (default, others) = steps.split_first().ok_or("it has no schedule")?;
    let plan = Plan {
        reference: None,
        best_seconds: 0.0,
        first_call_limit: LONGEST_CALL,
        call_limit: LONGEST_CALL,
        samples: SAMPLES,
        time: SAMPLING_SECONDS,
        batch_limit: Some(PROGRAM_SECONDS),
    };
    let first = worker.try_all(std::slice::from_ref(default), &plan).map_err(|error| error.to_string())?;
    let (_, first) = first.first().ok_or("its default schedule took too long")?;
    let usual = seconds(first).ok_or_else(|| format!("its default schedule: {}", first.outcome))?;
    let plan = Plan {
        reference: Some(ReferenceSchedule { schedule: default.clone(), seconds: usual }),
        first_call_limit: SLOW * usual,
        call_limit: SLOW * usual,
        ..plan
    };
    let trials = worker.try_all(others, &plan).map_err(|error| error.to_string())?;
    let measured = trials.iter().filter_map(|(at, trial)| Some((*at, seconds(trial)?)));
    let others = measured.map(|(at, seconds)| MeasuredSchedule { steps: others[at].clone(), seconds });
    let default = MeasuredSchedule { steps: default.clone(), seconds: usual };
    Ok([default].into_iter().chain(others).collect())
}

/// The seconds of a measured candidate, at the usual speed of the machine.
fn seconds(trial: &Trial) -> Option<f64> {
    match trial.outcome {
        Outcome::Measured => trial.seconds(),
        _ => None,
    }
}

/// The random pipelines from a seed on, of all kinds in turn, without an end.
pub fn random_subjects(target: &ExecutionTarget, first_seed: u64) -> impl Iterator<Item = Subject> + use<> {
    let target = target.clone();
    (first_seed..).map(move |seed| {
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let kind = Kind::ALL[(seed % Kind::ALL.len() as u64) as usize];
        // As many pipelines of 3 to 10 stages as of 11 to 40.
        let stages = STAGES.0 * (STAGES.1 / STAGES.0).powf(rng.random_range(0.0..1.0));
        let options = PipelineOptions { seed, stages: stages.round() as usize, kind, size: Size::Full };
        let pipeline = generate(&options);
        let task = RecordedTask {
            source: pipeline.source,
            function: pipeline.name,
            sizes: Vec::new(),
            target: target.clone(),
            seed,
            contract: true,
        };
        Subject { kind: kind.name().to_owned(), task }
    })
}
