//! `tilewright tune`: searches for a fast schedule, prints the outcome, and writes cache and files.

mod files;
mod history;
mod page;
mod prepared;
mod progress;
mod record;
mod search;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use tilewright_driver::TargetName;
use tilewright_ir::Program;
use tilewright_target::Machine;
use tilewright_tuner::input_files::InputFiles;
use tilewright_tuner::recording::{Answer, Setting};
use tilewright_tuner::task::{Place, Task};
use tilewright_tuner::tune::{Attempt, Progress, Stop, Tuned, Watcher, refuse_unsuitable};

use crate::args::{CompileArgs, ProgramArgs, TuneArgs};
use crate::failure::Failure;
use crate::machine::{machine, refuse_cpu_options};
use crate::output::print;
use crate::problem::Problem;
use crate::target::Target;
use crate::template;
use crate::worker::stop_on_signals;
use files::Files;
use history::History;
use page::Page;
use prepared::{Prepared, higher_peaks};
use progress::Display;
use record::Recorder;
use search::{recorded_place, search};
use summary::Summary;
use tilewright_tuner::roofline::Roofline;

/// Searches for a fast schedule.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut places = places(args)?;
    let place = places.remove(0);
    let machine = place.machine().map_err(|error| Failure::Machine(error.to_string()))?;
    let mut problem = Problem::read(&program_args(args))?;
    let (task, _given) = task(args, place, &mut problem)?;
    let program = problem.program;
    let text = template::read(args.template.as_deref())?;
    refuse_unsuitable(args.strategy(&machine)?, &template::space(text.as_deref(), &program, &machine)?)
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let files = Files::new(args)?;
    let Prepared { setting, options, answers, mut recorder } =
        Prepared::new(args, task, places, &program, &machine, started)?;
    let stop = stop(args);
    let mut watcher = Watchers {
        display: Display::new(args, &options),
        recorder: recorder.as_mut(),
        history: History::default(),
    };
    let found = search(&setting, &options, answers, &mut watcher, &stop);
    watcher.display.end();
    let history = watcher.history;
    let (tuned, answers) = found?;
    if let Some(recorder) = &mut recorder {
        recorder.finalists(&tuned);
    }
    let kept = recorder.map(|recorder| recorder.describe());
    tell(args, files, &program, &machine, Ended { setting, tuned, history, answers, kept })
}

/// Returns where kernels run. There is at least one place, and further places must be devices of
/// the same model.
fn places(args: &TuneArgs) -> Result<Vec<Place>, Failure> {
    let names: Vec<&str> = args.target.split(',').collect();
    let places = names.iter().map(|name| place(args, name)).collect::<Result<Vec<_>, _>>()?;
    for (at, place) in places.iter().enumerate().skip(1) {
        let name = place.name();
        if places[..at].iter().any(|other| other.name() == name) {
            return Err(Failure::Usage(format!("--target has {name} twice")));
        }
        match (&places[0], place) {
            (Place::Device { gpu: first, .. }, Place::Device { gpu, .. }) if first.name == gpu.name => {}
            (first, _) => {
                let first = first.name();
                return Err(Failure::Usage(format!(
                    "{first} and {name} are not two devices of a kind, which alone can share a search"
                )));
            }
        }
    }
    Ok(places)
}

fn place(args: &TuneArgs, name: &str) -> Result<Place, Failure> {
    let compile = CompileArgs { schedule: None, threads: args.threads, vectors: args.vectors };
    let target = Target::find(name)?.compiled("tune measures kernels, and --target interp has none")?;
    // A replay needs no device, because the recording describes it.
    let recorded = args.replay.as_deref().and_then(|path| recorded_place(path, name));
    if let (TargetName::Gpu(..), Some(place)) = (target, recorded) {
        return refuse_cpu_options(&compile).map(|()| place);
    }
    Ok(Place::of(target, &machine(target, &compile)?))
}

/// The outcome of a finished search.
struct Ended {
    setting: Setting,
    tuned: Tuned,
    history: History,
    /// The measurements for `--record`.
    answers: Option<Vec<Answer>>,
    /// Describes what the cache keeps of this run; `None` after a replay.
    kept: Option<String>,
}

/// Prints the outcome, and writes the files that the options name.
fn tell(
    args: &TuneArgs,
    files: Files,
    program: &Program,
    machine: &Machine,
    ended: Ended,
) -> Result<(), Failure> {
    let Ended { mut setting, tuned, history, answers, kept } = ended;
    let is_replay = kept.is_none();
    let mut roofline = Roofline::new(program, machine.target(), setting.peaks);
    if let Machine::Cpu(cpu) = machine
        && roofline.is_exceeded(tuned.seconds)
        && !is_replay
    {
        roofline.peaks = higher_peaks(cpu).or(roofline.peaks);
        setting.peaks = roofline.peaks;
    }
    let summary =
        Summary { place: &setting.task.place, tuned: &tuned, roofline: &roofline, kept: kept.as_deref() };
    print(&if args.json { summary.json() } else { summary.text() })?;
    let page = Page {
        setting: &setting,
        program,
        machine,
        tuned: &tuned,
        history: &history,
        roofline: &roofline,
        is_replay,
    };
    files.write(answers, &page)
}

/// The arguments for the program and its data, as `run` and `bench` take them.
fn program_args(args: &TuneArgs) -> ProgramArgs {
    ProgramArgs {
        file: args.source.clone(),
        sizes: args.sizes.clone(),
        inputs: args.inputs.clone(),
        seed: args.seed,
        rounding: args.rounding,
    }
}

/// Returns the task for the workers, and the input files that they read.
fn task(args: &TuneArgs, place: Place, problem: &mut Problem) -> Result<(Task, InputFiles), Failure> {
    let sizes = problem.given_sizes();
    let inputs = problem.given_inputs()?;
    let given = InputFiles::write(&problem.program, &inputs);
    let given = given.map_err(|error| Failure::Machine(error.to_string()))?;
    let task = Task {
        source: problem.source.file.text.clone(),
        function: problem.program.name.clone(),
        sizes,
        place,
        seed: args.seed,
        contract: problem.program.contract,
        inputs: given.files.clone(),
    };
    Ok((task, given))
}

/// Handles Ctrl-C, except in a replay: it takes only a moment, and ends where its run ended.
fn stop(args: &TuneArgs) -> Arc<Stop> {
    if args.replay.is_some() { Arc::default() } else { stop_on_signals() }
}

/// Receives every trial: the display, the cache and the history.
struct Watchers<'a, 'r> {
    display: Display,
    /// Writes trials to the cache; `None` in a replay.
    recorder: Option<&'r mut Recorder<'a>>,
    history: History,
}

impl Watcher for Watchers<'_, '_> {
    fn tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        if let Some(recorder) = &mut self.recorder {
            recorder.keep(attempt, progress.trials);
        }
        self.history.tried(attempt.trial, progress);
        self.display.tried(attempt.trial, progress);
    }
}
