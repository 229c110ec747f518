//! `tilewright tune`

use std::io::{self, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::json;
use tilewright_syntax::Bindings;
use tilewright_tuner::measure::Supervised;
use tilewright_tuner::outcome::Trial;
use tilewright_tuner::task::Task;
use tilewright_tuner::tune::{Options, Progress, TuneError, Tuned, Watcher, tune};
use tilewright_tuner::worker::{Launch, Lost, serve};

use crate::args::{CompileArgs, TuneArgs};
use crate::failure::Failure;
use crate::kernel::machine;
use crate::output::print;
use crate::problem::concrete_program;
use crate::source::Source;
use crate::target::Target;
use crate::work::{Work, work};

/// The time that is taken where the user does not say.
const TIME: Duration = Duration::from_secs(30);

/// Searches for a fast schedule.
pub fn run(args: &TuneArgs) -> Result<(), Failure> {
    if Target::find(&args.target)? == Target::Interp {
        return Err(Failure::Usage("tune measures kernels, and --target interp has none".to_owned()));
    }
    let (source, function) = Source::read_function(&args.file)?;
    let sizes: Bindings = args.sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
    let program = concrete_program(&source, &function, &sizes, "")?;
    let compile = CompileArgs { schedule: None, threads: args.threads, vectors: args.vectors };
    let cpu = machine(&compile, tilewright_target::Cpu::host())?;
    let task = Task {
        source: source.file.text.clone(),
        function,
        sizes: args.sizes.clone(),
        threads: cpu.cores,
        vectors: cpu.vectors.name().to_owned(),
        seed: args.seed,
    };
    let time = match (args.time, args.trials) {
        (None, None) => Some(TIME),
        (time, _) => time,
    };
    let options = Options {
        strategy: args.strategy.clone(),
        seed: args.seed,
        trials: args.trials,
        time,
        hints: Vec::new(),
    };
    let stop = stop_on_signals();
    let mut measurer = Supervised::start(launch()?, task.clone()).map_err(lost)?;
    let mut watcher = Lines { json: args.json };
    let tuned = tune(&task, &options, &mut measurer, &mut watcher, &stop).map_err(failure)?;
    if let Some(path) = &args.out {
        std::fs::write(path, &tuned.schedule)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))?;
    }
    print(&if args.json { done(&tuned, work(&program)) } else { report(&tuned, work(&program)) })
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

/// Tells of every trial.
struct Lines {
    json: bool,
}

impl Watcher for Lines {
    fn tried(&mut self, _: &str, trial: &Trial, progress: &Progress) {
        let line = if self.json {
            json!({
                "event": "trial",
                "trial": progress.trials,
                "outcome": trial.outcome.name(),
                "median_us": trial.seconds().map(|seconds| seconds * 1e6),
                "best_us": progress.best * 1e6,
                "seconds": progress.elapsed.as_secs_f64(),
            })
            .to_string()
        } else {
            let ratio = progress.default / progress.best;
            format!("{:5} {:8.1} us best, {ratio:.2} x default", progress.trials, progress.best * 1e6)
        };
        let _ = print(&format!("{line}\n"));
    }
}

fn report(tuned: &Tuned, work: Work) -> String {
    format!(
        "{}\ndefault {:.1} us, tuned {:.1} us ({:.2} x, {:.1} GFLOP/s), {} trials in {:.1} s\noutcomes {:?}\nrejected {:?}, too slow {}\n",
        tuned.schedule,
        tuned.default * 1e6,
        tuned.seconds * 1e6,
        tuned.default / tuned.seconds,
        work.operations / tuned.seconds / 1e9,
        tuned.trials,
        tuned.elapsed.as_secs_f64(),
        tuned.outcomes,
        tuned.rejections.iter().map(|(reason, count)| format!("{reason} {count}")).collect::<Vec<_>>(),
        tuned.too_slow,
    )
}

fn done(tuned: &Tuned, work: Work) -> String {
    let object = json!({
        "event": "done",
        "median_us": tuned.seconds * 1e6,
        "default_us": tuned.default * 1e6,
        "gflops": work.operations / tuned.seconds / 1e9,
        "trials": tuned.trials,
        "seconds": tuned.elapsed.as_secs_f64(),
        "failures": tuned.outcomes,
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
