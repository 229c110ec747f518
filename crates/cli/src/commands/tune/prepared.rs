//! Prepares a search: options, earlier records, peaks of the machine and workers.

use std::time::{Duration, Instant};

use tilewright_cache::TOOL_VERSION;
use tilewright_ir::Program;
use tilewright_search::strategy::Experience;
use tilewright_target::{Cpu, Machine};
use tilewright_tuner::input_files;
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

/// The time limit if neither `--time` nor `--trials` is given.
const TIME: Duration = Duration::from_secs(30);

/// A search that is ready to start.
pub struct Prepared<'a> {
    /// Everything that determines the course of the search.
    pub setting: Setting,
    /// The options of the tuner for this setting.
    pub options: Options,
    /// The source of measurements.
    pub answers: Answers,
    /// Writes trials to the cache; `None` in a replay, which measures nothing new.
    pub recorder: Option<Recorder<'a>>,
}

impl<'a> Prepared<'a> {
    /// Prepares a search that measures on the device of the task and on those in `others`, or that
    /// replays a recording. Peaks of the CPU that are not known yet are measured here, before any
    /// worker runs.
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
        // The cache may have changed since the recording, so hints come from the recording.
        let Recording { setting, answers } = recording(path, &setting)?;
        options.hints = setting.hints.clone();
        let experience = setting.experience.iter().cloned();
        options.experience = experience.map(|trials| Experience { trials }).collect();
        Ok(Prepared { setting, options, answers: Answers::Replayed(answers), recorder: None })
    }
}

/// Returns the setting and the options of the command line. Hints and peaks are filled in later.
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
        inputs: input_files::digests(task)
            .map_err(|error| Failure::Machine(format!("inputs cannot be read again: {error}")))?,
        caches: machine.target().hardware().warm_caches().to_vec(),
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

/// Returns the peaks of the machine. Those of a CPU are measured once and kept; those of a device
/// come from its description.
fn peaks(machine: &Machine) -> Option<Peaks> {
    match machine {
        Machine::Cpu(cpu) => Kept::of_user().peaks(cpu, spare_memory()).ok(),
        other => Peaks::reported(other.target().hardware()),
    }
}

/// Measures the peaks again, after a kernel was faster than the known peaks allow.
pub fn higher_peaks(cpu: &Cpu) -> Option<Peaks> {
    Kept::of_user().measure(cpu, spare_memory()).ok()
}

/// The number of bytes that the bandwidth measurement may read: a quarter of the free memory.
fn spare_memory() -> usize {
    available().map_or(usize::MAX, |bytes| usize::try_from(bytes / 4).unwrap_or(usize::MAX))
}
