//! Shows the progress of `tilewright tune`: a bar in a terminal, lines elsewhere, or JSON objects.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;
use tilewright::cache::outcome::{OutcomeKind, Trial};
use tilewright::tuner::tune::{Options, Progress, TrialKind};

use crate::args::TuneArgs;
use crate::output::{print, print_error_line};
use tilewright::report::time::seconds;

/// Without a terminal, a line is printed for every new best, and at least this often.
const LINE_INTERVAL: Duration = Duration::from_secs(5);

/// A bar in a terminal, lines elsewhere, or JSON objects.
pub enum Display {
    /// A bar on standard error.
    Bar {
        /// The bar, in trials or in milliseconds.
        bar: ProgressBar,
        /// Whether the bar counts trials.
        by_trials: bool,
    },
    /// Lines on standard error.
    Lines {
        /// The best time that was printed.
        best: f64,
        /// The time of the last line.
        printed_at: Duration,
    },
    /// One JSON object per trial, on standard output.
    Json,
}

impl Display {
    /// Chooses the display that fits the options and standard error.
    pub fn new(args: &TuneArgs, options: &Options) -> Display {
        if args.json {
            return Display::Json;
        }
        if !std::io::stderr().is_terminal() {
            return Display::Lines { best: f64::INFINITY, printed_at: Duration::ZERO };
        }
        let by_trials = options.time.is_none();
        let length = match (options.time, options.trials) {
            (Some(time), _) => time.as_millis() as u64,
            (None, trials) => trials.unwrap_or(0) as u64,
        };
        let bar = ProgressBar::new(length);
        let template = "tuning {bar:30} {eta} left, {msg}";
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        Display::Bar { bar, by_trials }
    }

    /// Shows a trial.
    pub fn tried(&mut self, trial: &Trial, progress: &Progress) {
        let is_first = progress.kind == TrialKind::Default;
        match self {
            Display::Bar { bar, by_trials } => {
                if is_first {
                    bar.suspend(|| print_error_line(&expectation(trial, progress)));
                }
                let done =
                    if *by_trials { progress.trials as u64 } else { progress.elapsed.as_millis() as u64 };
                bar.set_position(done.min(bar.length().unwrap_or(done)));
                bar.set_message(summary(progress));
            }
            Display::Lines { best, printed_at: told } => {
                if is_first {
                    print_error_line(&expectation(trial, progress));
                }
                if progress.best_seconds < *best || progress.elapsed >= *told + LINE_INTERVAL {
                    print_error_line(&format!(
                        "{:6.1} s: {}",
                        progress.elapsed.as_secs_f64(),
                        summary(progress)
                    ));
                    *best = progress.best_seconds;
                    *told = progress.elapsed;
                }
            }
            Display::Json => {
                let object = json!({
                    "event": "trial",
                    "kind": progress.kind.name(),
                    "trial": progress.trials,
                    "outcome": trial.outcome.name(),
                    "detail": trial.outcome.detail(),
                    "median_us": trial.seconds().map(|seconds| seconds * 1e6),
                    "best_us": progress.best_seconds * 1e6,
                    "default_us": progress.default_seconds * 1e6,
                    "seconds": progress.elapsed.as_secs_f64(),
                    "compile_ms": trial.effort.compiling * 1e3,
                    "measure_ms": trial.effort.measuring * 1e3,
                    "resources": trial.resources,
                });
                // If nobody reads standard output any more, the search goes on.
                let _ = print(&format!("{object}\n"));
            }
        }
    }

    /// Removes the bar.
    pub fn end(&mut self) {
        if let Display::Bar { bar, .. } = self {
            bar.finish_and_clear();
        }
    }
}

/// How long a trial will take, from the first one.
fn expectation(trial: &Trial, progress: &Progress) -> String {
    let Trial { effort, .. } = trial;
    format!(
        "the default schedule takes {}; after {:.1} s of preparation, a trial takes about {}",
        seconds(progress.default_seconds),
        progress.elapsed.as_secs_f64(),
        seconds(effort.compiling + effort.measuring),
    )
}

/// The best so far, the number of trials, and the number of failures.
fn summary(progress: &Progress) -> String {
    let rate = progress.trials as f64 / progress.elapsed.as_secs_f64().max(1e-3);
    let failed = progress.outcomes.iter().filter(|(outcome, _)| **outcome != OutcomeKind::Measured);
    let failed: Vec<String> = failed.map(|(outcome, count)| format!(", {count} {outcome}")).collect();
    format!(
        "best {} ({:.2} x default), {} trials, {rate:.1}/s{}",
        seconds(progress.best_seconds),
        progress.default_seconds / progress.best_seconds,
        progress.trials,
        failed.concat()
    )
}
