//! `tilewright tune`

mod progress;
mod record;

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;
use tilewright_search::space::Space;
use tilewright_search::strategy;
use tilewright_target::Cpu;
use tilewright_tuner::given;
use tilewright_tuner::measure::Supervised;
use tilewright_tuner::outcome::{Outcome, Trial};
use tilewright_tuner::task::Task;
use tilewright_tuner::tune::{Options, Progress, Stop, TuneError, Tuned, Watcher, refuse_unsuitable, tune};
use tilewright_tuner::worker::{Launch, Lost, serve};

use crate::args::{CompileArgs, ProgramArgs, TuneArgs};
use crate::failure::Failure;
use crate::kernel::machine;
use crate::output::{print, printable};
use crate::problem::Problem;
use crate::target::Target;
use crate::time::seconds;
use crate::whole_file;
use crate::work::{Work, work};
use progress::Display;
use record::Recorder;

/// The time that is taken where the user does not say.
const TIME: Duration = Duration::from_secs(30);

/// Searches for a fast schedule.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    let started = Instant::now();
    if Target::find(&args.target)? == Target::Interp {
        return Err(Failure::Usage("tune measures kernels, and --target interp has none".to_owned()));
    }
    let compile = CompileArgs { schedule: None, threads: args.threads, vectors: args.vectors };
    let cpu = machine(&compile, Cpu::host())?;
    let mut problem = Problem::read(&program_args(args))?;
    let folder = InputFolder::new()?;
    let task = task(args, &cpu, &mut problem, &folder)?;
    let program = problem.program;
    refuse_unsuitable(&args.strategy, &Space::new(&program, &cpu))
        .map_err(|error| Failure::Usage(error.to_string()))?;
    refuse_unwritable(args.out.as_deref())?;
    let mut recorder = Recorder::new(args, &program, &cpu)?;
    let options = Options {
        strategy: args.strategy.clone(),
        seed: args.seed,
        trials: args.trials,
        started,
        time: args.time.or(args.trials.is_none().then_some(TIME)),
        hints: recorder.hints(),
    };
    let stop = stop_on_signals();
    let mut measurer = Supervised::start(launch()?, task.clone(), Arc::clone(&stop)).map_err(lost)?;
    let mut watcher = Watchers { display: Display::new(args, &options), recorder: &mut recorder };
    let tuned = tune(&task, &options, &mut measurer, &mut watcher, &stop);
    watcher.display.end();
    let tuned = tuned.map_err(failure)?;
    recorder.finalists(&tuned);
    let work = work(&program);
    print(&if args.json { done(&tuned, work) } else { report(&tuned, work, &recorder) })?;
    let Some(path) = &args.out else { return Ok(()) };
    whole_file::write(path, &[tuned.schedule.as_bytes()]).map_err(|error| unwritable(path, &error))
}

/// The program and its data, as `run` and `bench` take them.
fn program_args(args: &TuneArgs) -> ProgramArgs {
    ProgramArgs {
        file: args.source.clone(),
        sizes: args.sizes.clone(),
        inputs: args.inputs.clone(),
        seed: args.seed,
    }
}

/// What the worker gets.
fn task(args: &TuneArgs, cpu: &Cpu, problem: &mut Problem, folder: &InputFolder) -> Result<Task, Failure> {
    Ok(Task {
        source: problem.source.file.text.clone(),
        function: problem.program.name.clone(),
        sizes: problem.given_sizes(),
        threads: cpu.cores,
        vectors: cpu.vectors.name().to_owned(),
        seed: args.seed,
        inputs: folder.fill(problem)?,
    })
}

/// Says so before anything is measured.
fn refuse_unwritable(out: Option<&Path>) -> Result<(), Failure> {
    let Some(path) = out else { return Ok(()) };
    whole_file::expect_writable(path).map_err(|error| unwritable(path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> Failure {
    Failure::Input(format!("--out {} cannot be written: {error}", path.display()))
}

/// A folder for the inputs that the user gives, for as long as workers need them.
struct InputFolder(TempDir);

impl InputFolder {
    fn new() -> Result<InputFolder, Failure> {
        tempfile::tempdir().map(InputFolder).map_err(no_folder)
    }

    fn fill(&self, problem: &mut Problem) -> Result<Vec<(String, PathBuf)>, Failure> {
        let inputs = problem.given_inputs()?;
        given::write(self.0.path(), &problem.program, &inputs).map_err(no_folder)
    }
}

fn no_folder(error: io::Error) -> Failure {
    Failure::Machine(format!("inputs cannot be written for the worker process: {error}"))
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

/// This program, as a worker.
fn launch() -> Result<Launch, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Machine(format!("a worker process cannot be started: {error}")))?;
    Ok(Launch { program, arguments: vec!["worker".to_owned()] })
}

fn stop_on_signals() -> Arc<Stop> {
    let stop = Arc::new(Stop::default());
    let asked = Arc::clone(&stop);
    // Without the handler, a signal ends the program as it always does.
    let _ = ctrlc::set_handler(move || asked.ask());
    stop
}

/// Everybody who hears of a trial.
struct Watchers<'a, 'r> {
    display: Display,
    recorder: &'r mut Recorder<'a>,
}

impl Watcher for Watchers<'_, '_> {
    fn tried(&mut self, schedule: &str, trial: &Trial, progress: &Progress) {
        self.recorder.keep(schedule, trial, progress.trials);
        self.display.tried(trial, progress);
    }
}

fn report(tuned: &Tuned, work: Work, recorder: &Recorder) -> String {
    let rate = |time: f64| format!("{:.1} GFLOP/s", work.operations / time / 1e9);
    let mut out = String::new();
    let mut row = |name: &str, value: String| out += &format!("  {name:<10} {value}\n");
    row("default", format!("{}, {}", seconds(tuned.default), rate(tuned.default)));
    if let Some(time) = tuned.one_shot {
        row("one shot", format!("{}, {}", seconds(time), rate(time)));
    }
    if let Some(outcome) = &tuned.one_shot_failure {
        row("one shot", printable(&outcome.to_string()));
    }
    let gain = tuned.default / tuned.seconds;
    match tuned.is_default {
        true => row("tuned", "nothing faster was found".to_owned()),
        false => row(
            "tuned",
            format!("{}, {}: {gain:.2} times as fast", seconds(tuned.seconds), rate(tuned.seconds)),
        ),
    }
    let outcomes = tuned.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}"));
    let ended = [format!("{} in {:.1} s", tuned.trials, tuned.elapsed.as_secs_f64())];
    row("trials", ended.into_iter().chain(outcomes).collect::<Vec<_>>().join(", "));
    let refused = tuned.rejections.iter().map(|(reason, count)| format!("{count} {reason}"));
    let slow = (tuned.too_slow > 0).then(|| format!("{} expected to be slow", tuned.too_slow));
    let refused: Vec<String> = refused.chain(slow).collect();
    if !refused.is_empty() {
        row("left out", refused.join(", "));
    }
    if tuned.replaced > 0 {
        row("workers", format!("{} were lost and replaced", tuned.replaced));
    }
    row("cache", recorder.describe());
    out + "\n" + &tuned.schedule
}

fn done(tuned: &Tuned, work: Work) -> String {
    let failures: BTreeMap<_, _> =
        tuned.outcomes.iter().filter(|(outcome, _)| **outcome != Outcome::Measured.name()).collect();
    let object = json!({
        "event": "done",
        "median_us": tuned.seconds * 1e6,
        "default_us": tuned.default * 1e6,
        "one_shot_us": tuned.one_shot.map(|seconds| seconds * 1e6),
        "gflops": work.operations / tuned.seconds / 1e9,
        "trials": tuned.trials,
        "seconds": tuned.elapsed.as_secs_f64(),
        "failures": failures,
        "schedule": tuned.schedule,
    });
    format!("{object}\n")
}

fn lost(lost: Lost) -> Failure {
    match lost {
        Lost::Refused(why) => Failure::Input(why),
        Lost::Hurried => Failure::Input(lost.to_string()),
        other => Failure::Machine(other.to_string()),
    }
}

fn failure(error: TuneError) -> Failure {
    match error {
        TuneError::Worker(error) => lost(error),
        TuneError::Strategy(error) => Failure::Usage(error.to_string()),
        TuneError::Task(error) => Failure::Input(error.to_string()),
        TuneError::Default(outcome) => Failure::Bug(outcome.to_string()),
    }
}
