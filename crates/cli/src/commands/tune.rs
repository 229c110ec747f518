//! `tilewright tune`: searches for a fast schedule, prints the outcome, and writes cache and files.

mod files;
mod prepared;
mod progress;
mod recording;
mod summary;

use std::sync::Arc;
use std::time::Instant;

use tilewright::cache::CacheError;
use tilewright::cache::outcome::Outcome;
use tilewright::driver::TargetName;
use tilewright::target::Machine;
use tilewright::tuner::note::Note;
use tilewright::tuner::roofline::Roofline;
use tilewright::tuner::search::{Found, Search, Workers};
use tilewright::tuner::task::Place;
use tilewright::tuner::tune::{Attempt, Progress, Stop, TuneError, Watcher};

use crate::args::{CompileArgs, TuneArgs};
use crate::failure::Failure;
use crate::machine::{machine, refuse_cpu_options};
use crate::output::{complain, print, printable};
use crate::problem::Problem;
use crate::target::Target;
use crate::worker::{failure as lost, launch, stop_on_signals};
use files::Files;
use prepared::{connect, higher_peaks, prepared, program_args};
use progress::Display;
use recording::{recorded_place, recording};
use summary::Summary;

/// Searches for a fast schedule.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    let started = Instant::now();
    let mut places = places(args)?;
    let place = places.remove(0);
    let mut problem = Problem::read(&program_args(args))?;
    let mut search = prepared(args, &place, &mut problem, started)?;
    let files = Files::new(args)?;
    if args.replay.is_none() {
        connect(args, &mut search)?;
    }
    let mut display = Display::new(args, search.options());
    let found = ran(args, search, places, &mut Watching { display: &mut display });
    display.end();
    tell(args, files, found?)
}

/// Runs the search on worker processes, or replays a recording. A replay takes only a moment and
/// ends where its run ended, so it leaves Ctrl-C alone.
fn ran(
    args: &TuneArgs,
    search: Search,
    others: Vec<Place>,
    watcher: &mut dyn Watcher,
) -> Result<Found, Failure> {
    let is_device = matches!(search.machine(), Machine::Gpu(_));
    let found = match &args.replay {
        Some(path) => {
            let recording = recording(path, search.setting())?;
            search.replay(recording, watcher, &Stop::default())
        }
        None => {
            let workers = Workers { launch: launch()?, others };
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
    let recorded = args.replay.as_deref().and_then(|path| recorded_place(path, target));
    if let (TargetName::Gpu(..), Some(place)) = (target, recorded) {
        return refuse_cpu_options(&compile).map(|()| place);
    }
    Ok(Place::of(target, &machine(target, &compile)?))
}

/// Prints the outcome, and writes the files that the options name.
fn tell(args: &TuneArgs, files: Files, mut found: Found) -> Result<(), Failure> {
    let Found { program, machine, setting, tuned, is_replay, .. } = &mut found;
    let mut roofline = Roofline::new(program, machine.target(), setting.peaks);
    if let Machine::Cpu(cpu) = machine
        && roofline.is_exceeded(tuned.seconds)
        && !*is_replay
    {
        roofline.peaks = higher_peaks(cpu).or(roofline.peaks);
        setting.peaks = roofline.peaks;
    }
    let summary = Summary { found: &found, tuned: &found.tuned, roofline: &roofline };
    print(&if args.json { summary.json() } else { summary.text() })?;
    files.write(&found, &roofline)
}

/// Shows the events of a search.
struct Watching<'a> {
    display: &'a mut Display,
}

impl Watcher for Watching<'_> {
    fn tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        self.display.tried(attempt.trial, progress);
    }

    fn noted(&mut self, note: &Note) {
        complain(&printable(&note.to_string()));
    }

    fn cache_failed(&mut self, error: &CacheError) {
        complain(&format!("warning: {error}; the search goes on, and keeps nothing more"));
    }
}
