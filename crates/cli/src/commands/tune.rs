//! `tilewright tune`

mod files;
mod history;
mod page;
mod prepared;
mod progress;
mod record;
mod search;
mod summary;

use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_ir::Program;
use tilewright_search::strategy;
use tilewright_target::Cpu;
use tilewright_tuner::outcome::Trial;
use tilewright_tuner::recording::{Answer, Setting};
use tilewright_tuner::task::Task;
use tilewright_tuner::tune::{Progress, Tuned, Watcher};
use tilewright_tuner::worker::serve;

use crate::args::{CompileArgs, TuneArgs};
use crate::failure::Failure;
use crate::inputs::{bindings, refuse_unknown_sizes};
use crate::kernel::machine;
use crate::output::print;
use crate::problem::concrete_program;
use crate::roofline::Roofline;
use crate::source::Source;
use crate::target::Target;
use files::Files;
use history::History;
use page::Page;
use prepared::{Prepared, higher_peaks};
use progress::Display;
use record::Recorder;
use search::search;
use summary::Summary;

/// Searches for a fast schedule.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    if Target::find(&args.target)? == Target::Interp {
        return Err(Failure::Usage("tune measures kernels, and --target interp has none".to_owned()));
    }
    let (source, function) = Source::read_function(&args.source)?;
    let sizes = bindings(&args.sizes)?;
    refuse_unknown_sizes(&source, &[source.function(&function)], &sizes)?;
    let program = concrete_program(&source, &function, &sizes, "")?;
    let compile = CompileArgs { schedule: None, threads: args.threads, vectors: args.vectors };
    let cpu = machine(&compile, Cpu::host())?;
    let task = Task {
        source: source.file.text.clone(),
        function,
        sizes: args.sizes.clone(),
        threads: cpu.cores,
        vectors: cpu.vectors.name().to_owned(),
        seed: args.seed,
    };
    refuse_unknown_strategy(&args.strategy)?;
    let files = Files::new(args)?;
    let Prepared { setting, options, answers, mut recorder } = Prepared::new(args, task, &program, &cpu)?;
    let stop = stop_on_signals();
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
    tell(args, files, &program, &cpu, Ended { setting, tuned, history, answers, kept })
}

/// A search that is over.
struct Ended {
    setting: Setting,
    tuned: Tuned,
    history: History,
    /// What is to be written down.
    answers: Option<Vec<Answer>>,
    /// What the cache has of it; nothing, if it was replayed.
    kept: Option<String>,
}

/// Says what came out, and writes the files that were asked for.
fn tell(args: &TuneArgs, files: Files, program: &Program, cpu: &Cpu, ended: Ended) -> Result<(), Failure> {
    let Ended { mut setting, tuned, history, answers, kept } = ended;
    let is_replay = kept.is_none();
    let mut roofline = Roofline::new(program, cpu, setting.peaks);
    if roofline.is_exceeded(tuned.seconds) && !is_replay {
        roofline.peaks = higher_peaks(cpu).or(roofline.peaks);
        setting.peaks = roofline.peaks;
    }
    let summary = Summary { tuned: &tuned, roofline: &roofline, kept: kept.as_deref() };
    print(&if args.json { summary.json() } else { summary.text() })?;
    let page = Page {
        setting: &setting,
        program,
        cpu,
        tuned: &tuned,
        history: &history,
        roofline: &roofline,
        is_replay,
    };
    files.write(answers, &page)?;
    let Some(path) = &args.out else { return Ok(()) };
    std::fs::write(path, &tuned.schedule)
        .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
}

/// Says so before anything is measured.
fn refuse_unknown_strategy(name: &str) -> Result<(), Failure> {
    match strategy::ALL.iter().any(|entry| entry.name == name) {
        true => Ok(()),
        false => Err(Failure::Usage(strategy::Unsuitable::Unknown { name: name.to_owned() }.to_string())),
    }
}

/// `tilewright strategies`
pub fn strategies() -> Result<(), Failure> {
    let lines = strategy::ALL.iter().map(|entry| format!("{:<8}  {}\n", entry.name, entry.description));
    print(&lines.collect::<String>())
}

/// What a worker process does.
pub fn worker() -> Result<(), Failure> {
    serve(BufReader::new(io::stdin()), io::stdout().lock())
        .map_err(|error| Failure::Machine(format!("the tuner is gone: {error}")))
}

fn stop_on_signals() -> Arc<AtomicBool> {
    let stop = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&stop);
    // Without the handler, a signal ends the program as it always does.
    let _ = ctrlc::set_handler(move || set.store(true, Ordering::Relaxed));
    stop
}

/// Everybody who hears of a trial.
struct Watchers<'a, 'r> {
    display: Display,
    /// Nobody keeps what is replayed.
    recorder: Option<&'r mut Recorder<'a>>,
    history: History,
}

impl Watcher for Watchers<'_, '_> {
    fn tried(&mut self, schedule: &str, trial: &Trial, progress: &Progress) {
        if let Some(recorder) = &mut self.recorder {
            recorder.keep(schedule, trial, progress.trials);
        }
        self.history.tried(trial, progress);
        self.display.tried(trial, progress);
    }
}
