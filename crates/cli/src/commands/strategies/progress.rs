//! Shows the progress of a comparison: a bar in a terminal, a line for each search elsewhere.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use tilewright::tuner::compare::{ComparisonOptions, Observer};

use crate::output::print_error_line;
use tilewright::report::time::seconds;

/// The number of steps of the bar per search.
const STEPS: u64 = 1000;

/// The progress display for the searches of a program.
pub struct ProgressDisplay {
    program: String,
    /// A bar for all searches; `None` without a terminal.
    bar: Option<ProgressBar>,
    /// The number of searches that have begun, and the number of all searches.
    searches_begun: u64,
    searches: u64,
}

impl ProgressDisplay {
    /// Chooses a bar or lines, depending on where standard error goes.
    pub fn new(program: &str, contest: &ComparisonOptions) -> ProgressDisplay {
        let all = (contest.strategies.len() * contest.seeds.len()) as u64;
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new(all * STEPS);
            let style = ProgressStyle::with_template("{prefix} {bar:30} {eta} left, {msg}");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_prefix(program.to_owned());
            bar.enable_steady_tick(Duration::from_millis(500));
            bar
        });
        ProgressDisplay { program: program.to_owned(), bar, searches_begun: 0, searches: all }
    }

    /// Removes the bar.
    pub fn end(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Observer for ProgressDisplay {
    fn search_started(&mut self, strategy: &str, seed: u64) {
        self.searches_begun += 1;
        let message = format!("{strategy}, seed {seed}");
        match &self.bar {
            Some(bar) => bar.set_message(message),
            None => print_error_line(&format!(
                "{}: search {} of {}: {message}",
                self.program, self.searches_begun, self.searches
            )),
        }
    }

    fn space_progress(&mut self, done: u128, of: u128) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("trying every point, {done} of {of}"));
        } else if done == of {
            print_error_line(&format!("{}: all {of} points were tried", self.program));
        }
    }

    fn search_progress(&mut self, over: f64, best: Option<f64>) {
        if let Some(bar) = &self.bar {
            bar.set_position((over * STEPS as f64) as u64);
            if let Some(best) = best {
                let before = bar.message();
                let name = before.split(": best").next().unwrap_or_default().to_owned();
                bar.set_message(format!("{name}: best {}", seconds(best)));
            }
        }
    }
}
