//! A simulated measurer, and a small program to tune.

use std::thread::sleep;
use std::time::{Duration, Instant};

use tilewright_cache::outcome::Trial;
use tilewright_search::strategy::find;
use tilewright_target::Cpu;
use tilewright_tuner::bench::Plan;
use tilewright_tuner::measure::Measurer;
use tilewright_tuner::task::{ExecutionTarget, RecordedTask, Task};
use tilewright_tuner::tune::{
    Attempt, Options, Progress, ProofScope, Stop, TrialKind, TuneError, TuningReport, Watcher, prove, tune,
};
use tilewright_tuner::worker::WorkerError;

use super::PRODUCT;

/// A simulated measurer. Every candidate takes a fixed time to try, and its measured time follows
/// from its text.
pub struct SimulatedMeasurer<'s> {
    /// The time to build and measure a candidate.
    pub trial_time: Duration,
    /// The schedules that were tried.
    pub tried: Vec<String>,
    pub races: usize,
    pub stop: &'s Stop,
    /// After this many candidates, the run is asked to stop this many times.
    pub stop_requests: Option<(usize, usize)>,
}

impl<'s> SimulatedMeasurer<'s> {
    /// A measurer that takes `each` for every candidate.
    pub fn new(each: Duration, stop: &'s Stop) -> SimulatedMeasurer<'s> {
        SimulatedMeasurer { trial_time: each, tried: Vec::new(), races: 0, stop, stop_requests: None }
    }
}

/// The simulated time of a schedule, in seconds.
pub fn seconds(schedule: &str) -> f64 {
    1e-3 + 1e-6 * schedule.len() as f64
}

impl Measurer for SimulatedMeasurer<'_> {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
        let begun = Instant::now();
        let mut trials = Vec::new();
        for (at, schedule) in schedules.iter().enumerate() {
            let is_late = plan.batch_limit.is_some_and(|within| begun.elapsed().as_secs_f64() > within);
            if is_late || self.stop.is_urgent() {
                break;
            }
            sleep(self.trial_time);
            self.tried.push(schedule.clone());
            trials.push((at, Trial::measured(vec![seconds(schedule); 3])));
            if let Some((after, signals)) = self.stop_requests
                && self.tried.len() == after
            {
                (0..signals).for_each(|_| self.stop.request());
            }
        }
        Ok(trials)
    }

    fn race(
        &mut self,
        schedules: &[String],
        samples: usize,
        time: f64,
    ) -> Result<Vec<Vec<f64>>, WorkerError> {
        self.races += 1;
        // As in the worker, all schedules get as many samples as the fastest needs to fill the
        // time.
        let fastest = schedules.iter().map(|schedule| seconds(schedule)).fold(f64::INFINITY, f64::min);
        let rounds = (time / fastest).max(samples as f64);
        let round: f64 = schedules.iter().map(|schedule| seconds(schedule)).sum();
        sleep(self.trial_time * schedules.len() as u32 + Duration::from_secs_f64(rounds * round));
        Ok(schedules.iter().map(|schedule| vec![seconds(schedule); samples]).collect())
    }
}

/// The reports that a watcher received.
#[derive(Debug, Default, PartialEq)]
pub struct ReportedTrials {
    pub kinds: Vec<(TrialKind, usize)>,
    pub trials: Vec<(String, Trial)>,
}

impl Watcher for ReportedTrials {
    fn candidate_tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        self.kinds.push((progress.kind, progress.trials));
        self.trials.push((attempt.schedule.to_owned(), attempt.trial.clone()));
        assert!(!attempt.features.is_empty(), "the schedule has no features: {}", attempt.schedule);
    }
}

/// A task for a small matrix product.
pub fn task() -> Task {
    recorded_task().task().expect("the program is fine")
}

/// The same task as a recording keeps it.
pub fn recorded_task() -> RecordedTask {
    RecordedTask {
        source: PRODUCT.to_owned(),
        function: "mm".to_owned(),
        sizes: [("M", 48), ("K", 40), ("N", 64)].map(|(name, value)| (name.to_owned(), value)).to_vec(),
        target: ExecutionTarget::cpu(&Cpu { cores: 1, ..Cpu::host() }),
        seed: 3,
        contract: true,
    }
}

/// Options of a run without proofs.
pub fn options(trials: Option<usize>, time: Option<Duration>) -> Options {
    let strategy = find("random").expect("it is one of all");
    Options {
        strategy,
        seed: 1,
        starts: 24,
        trials,
        started: Instant::now(),
        time,
        hints: Vec::new(),
        experience: Vec::new(),
        template: None,
        proof_scope: ProofScope::Never,
        prover: prove,
    }
}

/// Tunes the small matrix product.
pub fn tune_product(
    options: &Options,
    measurer: &mut SimulatedMeasurer,
) -> (Result<TuningReport, TuneError>, ReportedTrials) {
    let (mut heard, stop) = (ReportedTrials::default(), measurer.stop);
    (tune(&task(), options, measurer, &mut heard, stop), heard)
}
