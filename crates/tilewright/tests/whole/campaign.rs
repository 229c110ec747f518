//! Runs many cases in worker processes, so that a crash costs one process and counts as a failure.
//!
//! [`Campaign::run`] starts workers, which run this test binary again, sends each worker one case
//! number after the other, and sums their answers. A worker answers with lines that begin with `@`.
//! Before each schedule it writes the case to a file, which remains if the case ends the process.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, Instant};

use super::examine::{Settings, Tally};

/// The time limit of a case.
const LONGEST: Duration = Duration::from_secs(120);

/// The settings of a campaign.
pub struct Campaign {
    pub settings: Settings,
    /// The number of the first case, and the number of cases.
    pub first: u64,
    pub cases: u64,
    /// The time after which no more cases are started.
    pub time: Duration,
    pub workers: usize,
    /// The folder for failures.
    pub folder: PathBuf,
    /// The time between two progress messages.
    pub every: Duration,
}

/// The outcome of a campaign.
#[derive(Default)]
pub struct Summary {
    pub cases: u64,
    pub tally: Tally,
    /// The numbers of the cases that failed, and how.
    pub failures: Vec<(u64, String)>,
}

impl Campaign {
    /// Runs all cases.
    pub fn run(&self) -> Summary {
        fs::create_dir_all(&self.folder).unwrap();
        let (summary, next, begin) =
            (Mutex::new(Summary::default()), AtomicU64::new(self.first), Instant::now());
        let said = Mutex::new(begin);
        thread::scope(|scope| {
            for worker in 0..self.workers {
                let (summary, next, said) = (&summary, &next, &said);
                scope.spawn(move || self.serve(worker, next, begin, summary, said));
            }
        });
        summary.into_inner().unwrap()
    }

    /// Sends cases to one worker until there are no more.
    fn serve(
        &self,
        number: usize,
        next: &AtomicU64,
        begin: Instant,
        summary: &Mutex<Summary>,
        said: &Mutex<Instant>,
    ) {
        let mut worker = Worker::start(self, number);
        while begin.elapsed() < self.time {
            let case = next.fetch_add(1, Ordering::Relaxed);
            if case >= self.first + self.cases {
                break;
            }
            let answer = worker.examine(case);
            if let Some(why) = &answer.crash {
                worker.keep_crash(case, why, &self.folder);
                worker = Worker::start(self, number);
            }
            answer.add_to(case, &mut summary.lock().unwrap());
            let mut said = said.lock().unwrap();
            if said.elapsed() >= self.every {
                *said = Instant::now();
                println!("{}", line(&summary.lock().unwrap(), begin));
            }
        }
        worker.end();
    }
}

/// Formats the progress as one line.
fn line(summary: &MutexGuard<Summary>, begin: Instant) -> String {
    let agree: u64 =
        summary.tally.iter().filter(|(what, _)| what.ends_with(": agrees")).map(|(_, count)| count).sum();
    format!(
        "{} s: {} programs, {agree} schedules agree, {} failures",
        begin.elapsed().as_secs(),
        summary.cases,
        summary.failures.len()
    )
}

impl Summary {
    /// Prints all counts, one per line.
    pub fn print(&self) {
        for (what, count) in &self.tally {
            println!("{count:8} {what}");
        }
        let mut seeds: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        for (case, how) in &self.failures {
            seeds.entry(how).or_default().push(*case);
        }
        for (how, cases) in seeds {
            println!("failed, {how}: cases {cases:?}");
        }
        println!("{} programs, {} failures", self.cases, self.failures.len());
    }
}

/// The answer of a worker about one case.
#[derive(Default)]
struct Answer {
    tally: Tally,
    failures: Vec<String>,
    crash: Option<String>,
}

impl Answer {
    fn add_to(self, case: u64, summary: &mut Summary) {
        summary.cases += 1;
        for (what, count) in self.tally {
            *summary.tally.entry(what).or_default() += count;
        }
        let failures = self.failures.into_iter().chain(self.crash.map(|why| format!("Crash: {why}")));
        summary.failures.extend(failures.map(|how| (case, how)));
    }
}

/// A process that examines cases.
struct Worker {
    child: Child,
    lines: Receiver<String>,
    /// The file with the case that the worker currently tries.
    current: PathBuf,
}

impl Worker {
    fn start(campaign: &Campaign, number: usize) -> Worker {
        let current = campaign.folder.join(format!("current-{number}.txt"));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "--nocapture", "worker_of_a_campaign"])
            .env("FUZZ_WORKER", &current)
            .env("FUZZ_SEED", campaign.settings.seed.to_string())
            .env("FUZZ_COMPILED", campaign.settings.compiled.to_string())
            .env("FUZZ_ONLY", &campaign.settings.only)
            .env("FUZZ_DEVICE", campaign.settings.on_device.to_string())
            .env("FUZZ_FOLDER", &campaign.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (say, lines) = channel();
        thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| say.send(line)));
        Worker { child, lines, current }
    }

    fn examine(&mut self, case: u64) -> Answer {
        let mut answer = Answer::default();
        let asked = writeln!(self.child.stdin.as_mut().unwrap(), "{case}");
        if asked.is_err() {
            answer.crash = Some("the process is gone".to_string());
            return answer;
        }
        loop {
            match self.lines.recv_timeout(LONGEST) {
                Ok(line) => {
                    if line == "@done" {
                        return answer;
                    }
                    if let Some((what, count)) =
                        line.strip_prefix("@count ").and_then(|own| own.rsplit_once('\t'))
                    {
                        answer.tally.insert(what.to_string(), count.parse().unwrap());
                    }
                    if let Some(how) = line.strip_prefix("@failed ") {
                        answer.failures.push(how.to_string());
                    }
                }
                Err(why) => {
                    answer.crash = Some(self.ended(why));
                    return answer;
                }
            }
        }
    }

    /// Returns the reason why there is no answer.
    fn ended(&mut self, why: RecvTimeoutError) -> String {
        if why == RecvTimeoutError::Timeout {
            let _ = self.child.kill();
        }
        let status = self.child.wait().map_or_else(|error| error.to_string(), |status| status.to_string());
        match why {
            RecvTimeoutError::Timeout => "no answer in 120 s".to_string(),
            RecvTimeoutError::Disconnected => status,
        }
    }

    fn keep_crash(&self, case: u64, why: &str, folder: &Path) {
        let tried = fs::read_to_string(&self.current).unwrap_or_default();
        let text = format!("# The process ended: {why}\n\nCase {case}.\n\n```\n{tried}\n```\n");
        fs::write(folder.join(format!("Crash-{case}.md")), text).unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.current);
    }
}
