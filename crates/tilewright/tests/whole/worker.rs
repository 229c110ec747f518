//! Examines cases in a worker process of a campaign. The worker reads one case number per line from
//! standard input, prints counts and failures, and writes failing cases to files after making them
//! smaller.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::stdin;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::case::{Case, Failure, Outcome};
use super::examine::{Settings, examine};
use super::shrink::shrink;

/// The maximum number of similar failures that are made smaller. Of further ones, only the numbers
/// are kept.
const MAX_SIMILAR: usize = 15;

/// The state of a worker.
pub struct Worker {
    pub settings: Settings,
    pub folder: PathBuf,
    /// The time limit for making a failure smaller.
    pub shrinking: Duration,
    similar: BTreeMap<String, usize>,
    written: BTreeSet<String>,
}

impl Worker {
    pub fn new(settings: Settings, folder: PathBuf, shrinking: Duration) -> Worker {
        Worker { settings, folder, shrinking, similar: BTreeMap::new(), written: BTreeSet::new() }
    }

    /// Examines the cases whose numbers arrive on standard input.
    pub fn serve(&mut self, current: &Path) {
        for line in stdin().lines().map_while(Result::ok) {
            let Ok(number) = line.trim().parse() else { continue };
            let before = |case: &Case| fs::write(current, case.to_string()).unwrap();
            let report = examine(&self.settings, number, &before);
            for (what, count) in &report.tally {
                println!("@count {what}\t{count}");
            }
            for (case, failure) in report.failures {
                println!("@failed {:?} {:?}", case.place, failure.kind);
                self.keep(number, case, failure);
            }
            println!("@done");
        }
    }

    /// Writes a failure after making it smaller, unless there are many similar ones.
    fn keep(&mut self, number: u64, case: Case, failure: Failure) {
        let alike = self.similar.entry(signature(&case, &failure)).or_default();
        *alike += 1;
        if *alike > MAX_SIMILAR {
            return;
        }
        let small = shrink(case, failure.kind, self.shrinking);
        let failure = match small.outcome() {
            Outcome::Failed(found) => *found,
            _ => failure,
        };
        if self.written.insert(form(&small, &failure)) {
            let name = format!("{:?}-{:?}-{number}.md", failure.kind, small.place);
            fs::write(self.folder.join(name), self.text(number, &small, &failure)).unwrap();
        }
    }

    fn text(&self, number: u64, case: &Case, failure: &Failure) -> String {
        let seed = self.settings.seed;
        let schedule = match &case.schedule {
            None => "The default schedule.".to_string(),
            Some(schedule) if schedule.steps.is_empty() => "A schedule without steps.".to_string(),
            Some(schedule) => format!("```\n{schedule}\n```"),
        };
        format!(
            "# {:?} on {:?}\n\n{}\n\n```\n{}```\n\nSizes: {}. Data: {}. {schedule}\n\nThe whole case: `make fuzz-compile \
             FUZZ_SEED={seed} FUZZ_FIRST={number} FUZZ_CASES=1`\n\n```\n{}\n```\n",
            failure.kind,
            case.place,
            failure.message,
            case.source,
            case.source.size_list(),
            case.data,
            failure.loops
        )
    }
}

/// A key that is equal for failures that may have the same cause.
fn signature(case: &Case, failure: &Failure) -> String {
    let schedule = match &case.schedule {
        None => "default",
        Some(schedule) if schedule.steps.is_empty() => "plain",
        Some(_) => "steps",
    };
    let first = failure.message.lines().next().unwrap_or_default();
    let words: String = first.chars().filter(|letter| !letter.is_ascii_digit()).take(40).collect();
    format!("{:?} {:?} {schedule} {words}", failure.kind, case.place)
}

/// The structure of a case, without its names, numbers and types.
fn form(case: &Case, failure: &Failure) -> String {
    let text = format!("{:?} {case}", failure.kind);
    let mut made = String::new();
    for letter in text.chars() {
        if !letter.is_alphanumeric() {
            made.push(letter);
        } else if !made.ends_with('w') {
            made.push('w');
        }
    }
    made
}
