//! `tilewright tune`

mod progress;
mod record;

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tilewright_search::strategy;
use tilewright_target::Cpu;
use tilewright_tuner::measure::Supervised;
use tilewright_tuner::outcome::{Outcome, Trial};
use tilewright_tuner::task::Task;
use tilewright_tuner::tune::{Options, Progress, TuneError, Tuned, Watcher, tune};
use tilewright_tuner::worker::{Launch, Lost, serve};

use crate::args::{CompileArgs, TuneArgs};
use crate::failure::Failure;
use crate::inputs::{bindings, refuse_unknown_sizes};
use crate::kernel::machine;
use crate::output::print;
use crate::problem::concrete_program;
use crate::source::Source;
use crate::target::Target;
use crate::time::seconds;
use crate::work::{Work, work};
use progress::Display;
use record::Recorder;

/// The time that is taken where the user does not say.
const TIME: Duration = Duration::from_secs(30);

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
    let mut recorder = Recorder::new(args, &program, &cpu)?;
    let options = Options {
        strategy: args.strategy.clone(),
        seed: args.seed,
        trials: args.trials,
        time: args.time.or(args.trials.is_none().then_some(TIME)),
        hints: recorder.hints(),
    };
    let stop = stop_on_signals();
    let mut measurer = Supervised::start(launch()?, task.clone()).map_err(lost)?;
    let mut watcher = Watchers { display: Display::new(args, &options), recorder: &mut recorder };
    let tuned = tune(&task, &options, &mut measurer, &mut watcher, &stop);
    watcher.display.end();
    let tuned = tuned.map_err(failure)?;
    recorder.finalists(&tuned);
    let work = work(&program);
    print(&if args.json { done(&tuned, work) } else { report(&tuned, work, &recorder) })?;
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

/// This program, as a worker.
fn launch() -> Result<Launch, Failure> {
    let program = std::env::current_exe()
        .map_err(|error| Failure::Machine(format!("a worker process cannot be started: {error}")))?;
    Ok(Launch { program, arguments: vec!["worker".to_owned()] })
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
    let gain = tuned.default / tuned.seconds;
    match tuned.is_default {
        true => row("tuned", "nothing faster was found".to_owned()),
        false => row(
            "tuned",
            format!("{}, {}: {gain:.2} times as fast", seconds(tuned.seconds), rate(tuned.seconds)),
        ),
    }
    let outcomes = tuned.outcomes.iter().map(|(outcome, count)| format!("{count} {outcome}"));
    row(
        "trials",
        format!(
            "{} in {:.1} s: {}",
            tuned.trials,
            tuned.elapsed.as_secs_f64(),
            outcomes.collect::<Vec<_>>().join(", ")
        ),
    );
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
