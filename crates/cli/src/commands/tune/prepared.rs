//! What a search begins with.

use std::time::{Duration, Instant};

use tilewright_cache::TOOL_VERSION;
use tilewright_ir::Program;
use tilewright_search::strategy::Experience;
use tilewright_target::{Cpu, Machine};
use tilewright_tuner::given;
use tilewright_tuner::peak::{Kept, Peaks};
use tilewright_tuner::recording::{Recording, Setting};
use tilewright_tuner::task::{Place, Task};
use tilewright_tuner::tune::{Options, prove};

use super::record::Recorder;
use super::search::{Answers, Workers, recording};
use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::memory::available;
use crate::template;
use crate::worker::launch;

/// The time that is taken where the user does not say.
const TIME: Duration = Duration::from_secs(30);

/// A search that can begin.
pub struct Prepared<'a> {
    /// All that decides what it does.
    pub setting: Setting,
    /// The same for the tuner.
    pub options: Options,
    /// Who says what becomes of candidates.
    pub answers: Answers,
    /// Who keeps them; nobody, if they come from a recording: they are in the cache already.
    pub recorder: Option<Recorder<'a>>,
}

impl<'a> Prepared<'a> {
    /// Opens what is needed, to measure where the task says and in `others`. Peaks are measured here, while nothing else runs, unless they are known.
    pub fn new(
        args: &TuneArgs,
        task: Task,
        others: Vec<Place>,
        program: &'a Program,
        machine: &'a Machine,
        started: Instant,
    ) -> Result<Prepared<'a>, Failure> {
        let (mut setting, mut options) = asked_for(args, &task, machine, started)?;
        let Some(path) = &args.replay else {
            let recorder = Recorder::new(args, program, machine, &options)?;
            recorder.prepare(&mut options);
            setting.hints = options.hints.clone();
            setting.experience = options.experience.iter().map(|own| own.trials.clone()).collect();
            setting.peaks = peaks(machine);
            let others = others.into_iter().map(|place| Task { place, ..task.clone() }).collect();
            let workers = Workers { launch: launch()?, task, others };
            let answers = match args.record {
                Some(_) => Answers::Recorded(workers),
                None => Answers::Measured(workers),
            };
            return Ok(Prepared { setting, options, answers, recorder: Some(recorder) });
        };
        // The cache has changed since, so hints are those of the recording.
        let Recording { setting, answers } = recording(path, &setting)?;
        options.hints = setting.hints.clone();
        let experience = setting.experience.iter().cloned();
        options.experience = experience.map(|trials| Experience { trials }).collect();
        Ok(Prepared { setting, options, answers: Answers::Replayed(answers), recorder: None })
    }
}

/// What the command line says. Hints and peaks are not known yet.
fn asked_for(
    args: &TuneArgs,
    task: &Task,
    machine: &Machine,
    started: Instant,
) -> Result<(Setting, Options), Failure> {
    let options = Options {
        strategy: args.strategy(machine)?,
        seed: args.seed,
        starts: args.starts,
        trials: args.trials,
        started,
        time: args.time.or(args.trials.is_none().then_some(TIME)),
        hints: Vec::new(),
        experience: Vec::new(),
        template: template::read(args.template.as_deref())?,
        proving: args.proving(),
        prover: prove,
    };
    let setting = Setting {
        tool_version: TOOL_VERSION.to_owned(),
        task: Task { inputs: Vec::new(), ..task.clone() },
        inputs: given::digests(task)
            .map_err(|error| Failure::Machine(format!("inputs cannot be read again: {error}")))?,
        caches: match machine {
            Machine::Cpu(cpu) => cpu.caches.clone(),
            Machine::Gpu(_) => Vec::new(),
        },
        strategy: options.strategy.name.to_owned(),
        seed: options.seed,
        starts: options.starts,
        trials: options.trials,
        time: options.time.map(|time| time.as_secs_f64()),
        hints: Vec::new(),
        experience: Vec::new(),
        template: options.template.clone(),
        proving: options.proving,
        peaks: None,
    };
    Ok((setting, options))
}

/// What the machine can do at most: measured, unless that is known, or what a device says of itself.
fn peaks(machine: &Machine) -> Option<Peaks> {
    match machine {
        Machine::Cpu(cpu) => Kept::of_user().peaks(cpu, spare_memory()).ok(),
        Machine::Gpu(gpu) => Some(Peaks::of_device(gpu)),
    }
}

/// The peaks after a run that went beyond those that were known: they are measured again.
pub fn higher_peaks(cpu: &Cpu) -> Option<Peaks> {
    Kept::of_user().measure(cpu, spare_memory()).ok()
}

/// Memory for an array to read: a part of what is free.
fn spare_memory() -> usize {
    available().map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX))
}
