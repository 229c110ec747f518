//! `tilewright tune`: searches for a fast schedule, prints the outcome, and writes the cache and
//! the files that the options name.

mod files;
mod preparation;
mod progress;
mod recording;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use tilewright::cache::CacheError;
use tilewright::cache::outcome::Outcome;
use tilewright::driver::TargetName;
use tilewright::target::Machine;
use tilewright::train::{folder, tuned};
use tilewright::tuner::note::Note;
use tilewright::tuner::roofline::Roofline;
use tilewright::tuner::search::{Search, SearchOutcome, Workers};
use tilewright::tuner::task::ExecutionTarget;
use tilewright::tuner::tune::{Attempt, Progress, Stop, TuneError, Watcher};

use crate::args::TuneArgs;
use crate::failure::Failure;
use crate::machine::{machine, refuse_cpu_options};
use crate::output::{print, print_error_line, printable};
use crate::problem::Problem;
use crate::target::Target;
use crate::worker::{failure as lost, launch, stop_on_signals};
use files::Files;
use preparation::{connect, measure_peaks_again, prepare, program_args};
use progress::Display;
use recording::{read_recording, recorded_place};
use summary::Summary;

/// Searches for a fast schedule.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut places = places(args)?;
    let place = places.remove(0);
    let mut problem = Problem::read(&program_args(args))?;
    let mut search = prepare(args, &place, &mut problem, started)?;
    let files = Files::new(args)?;
    if args.replay.is_none() {
        connect(args, &mut search)?;
    }
    let mut display = Display::new(args, search.options());
    let found = run_search(args, search, places, &mut DisplayWatcher { display: &mut display });
    display.end();
    report(args, files, found?)
}

/// Runs the search on worker processes, or replays a recording. A replay takes only a moment and
/// ends where its run ended, so it leaves Ctrl-C alone.
fn run_search(
    args: &TuneArgs,
    search: Search,
    others: Vec<ExecutionTarget>,
    watcher: &mut dyn Watcher,
) -> Result<SearchOutcome, Failure> {
    let is_device = matches!(search.machine(), Machine::Gpu(_));
    let found = match &args.replay {
        Some(path) => {
            let recording = read_recording(path, search.setting())?;
            search.replay(recording, watcher, &Stop::default())
        }
        None => {
            let workers = Workers { command: launch()?, others };
            let stop: Arc<Stop> = stop_on_signals();
            search.run(workers, watcher, &stop)
        }
    };
    found.map_err(|error| failure(is_device, error))
}

/// Converts the error of a search to a failure.
fn failure(is_device: bool, error: TuneError) -> Failure {
    match error {
        // A device's compiler is not a part of Tilewright, so its failure is no bug here.
        TuneError::Default(outcome @ (Outcome::CompileError(_) | Outcome::Crashed(_))) if is_device => {
            Failure::Machine(TuneError::Default(outcome).to_string())
        }
        TuneError::Worker(error) => lost(error),
        TuneError::Strategy(error) => Failure::Usage(error.to_string()),
        TuneError::Inputs(error) => Failure::Machine(error.to_string()),
        error @ TuneError::Template(_) => Failure::Input(error.to_string()),
        TuneError::Task(error) => Failure::Input(error.to_string()),
        TuneError::Default(outcome) => Failure::Bug(outcome.to_string()),
    }
}

/// Returns where kernels run. There is at least one place, and further places must be devices of
/// the same model.
fn places(args: &TuneArgs) -> Result<Vec<ExecutionTarget>, Failure> {
    let names: Vec<&str> = args.target.split(',').collect();
    let places = names.iter().map(|name| place(args, name)).collect::<Result<Vec<_>, _>>()?;
    for (at, place) in places.iter().enumerate().skip(1) {
        let name = place.target_name();
        if places[..at].iter().any(|other| other.target_name() == name) {
            return Err(Failure::Usage(format!("--target has {name} twice")));
        }
        match (&places[0], place) {
            (ExecutionTarget::Device { gpu: first, .. }, ExecutionTarget::Device { gpu, .. })
                if first.name == gpu.name => {}
            (first, _) => {
                let first = first.target_name();
                return Err(Failure::Usage(format!(
                    "{first} and {name} cannot share a search, because they are not devices of one model"
                )));
            }
        }
    }
    Ok(places)
}

fn place(args: &TuneArgs, name: &str) -> Result<ExecutionTarget, Failure> {
    let target = Target::find(name)?.compiled("tune measures kernels, and --target interp has none")?;
    // A replay needs no device, because the recording describes it.
    let recorded = args.replay.as_deref().and_then(|path| recorded_place(path, target));
    if let (TargetName::Gpu(..), Some(place)) = (target, recorded) {
        return refuse_cpu_options(&args.cpu).map(|()| place);
    }
    Ok(ExecutionTarget::for_target(target, &machine(target, &args.cpu)?))
}

/// Adds the measurements to those of `tilewright train`, where a user has some. The search was
/// worth its time in any case, so a file that cannot be written is a warning.
fn add_to_training(found: &SearchOutcome) {
    let Some(file) = folder::training_file(found.machine.target()) else { return };
    if let Err(error) = tuned::add(found, &file) {
        print_error_line(&format!("warning: {}: the measurements are not added: {error}", file.display()));
    }
}

/// Prints the outcome, and writes the files that the options name.
fn report(args: &TuneArgs, files: Files, mut found: SearchOutcome) -> Result<(), Failure> {
    let SearchOutcome { program, machine, setting, report: tuned, is_replay, .. } = &mut found;
    let mut roofline = Roofline::new(program, machine.target(), setting.peaks);
    if let Machine::Cpu(cpu) = machine
        && roofline.is_exceeded(tuned.seconds)
        && !*is_replay
    {
        roofline.peaks = measure_peaks_again(cpu).or(roofline.peaks);
        setting.peaks = roofline.peaks;
    }
    add_to_training(&found);
    let summary = Summary { found: &found, tuned: &found.report, roofline: &roofline };
    print(&if args.json { summary.json() } else { summary.text() })?;
    files.write(&found, &roofline)
}

/// Shows the events of a search.
struct DisplayWatcher<'a> {
    display: &'a mut Display,
}

impl Watcher for DisplayWatcher<'_> {
    fn candidate_tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        self.display.tried(attempt.trial, progress);
    }

    fn note_received(&mut self, note: &Note) {
        print_error_line(&printable(&note.to_string()));
    }

    fn cache_failed(&mut self, error: &CacheError) {
        print_error_line(&format!("warning: {error}; the search continues, but stores no more records"));
    }
}
