//! The tuning loop with a simulated measurer: its requests, its end, and its report.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::thread::sleep;
use std::time::{Duration, Instant};

use support::simulated_measurer::{ReportedTrials, SimulatedMeasurer, options, seconds, task, tune_product};
use tilewright_cache::outcome::{OutcomeKind, Trial};
use tilewright_search::strategy::find;
use tilewright_tuner::bench::Plan;
use tilewright_tuner::measure::Measurer;
use tilewright_tuner::recording::{Recorder, Replay};
use tilewright_tuner::tune::{Options, Stop, TrialKind, TuneError, tune};
use tilewright_tuner::worker::WorkerError;

/// A replay on a busy machine, where every answer takes a while.
struct SlowReplay<'r>(Replay<'r>, Duration);

impl Measurer for SlowReplay<'_> {
    fn try_all(&mut self, schedules: &[String], plan: &Plan) -> Result<Vec<(usize, Trial)>, WorkerError> {
        sleep(self.1);
        self.0.try_all(schedules, plan)
    }

    fn race(
        &mut self,
        schedules: &[String],
        samples: usize,
        time: f64,
    ) -> Result<Vec<Vec<f64>>, WorkerError> {
        sleep(self.1);
        self.0.race(schedules, samples, time)
    }

    fn decide(&mut self, by_the_clock: usize) -> Result<usize, WorkerError> {
        sleep(self.1);
        self.0.decide(by_the_clock)
    }
}

#[test]
fn the_budget_holds_however_slow_candidates_are() {
    for (each, time) in [(1, 1000), (60, 1500), (400, 2500)] {
        let stop = Stop::default();
        let mut measurer = SimulatedMeasurer::new(Duration::from_millis(each), &stop);
        let time = Duration::from_millis(time);
        let begun = Instant::now();
        let outcome = tune_product(&options(None, Some(time)), &mut measurer).0.unwrap();
        let took = begun.elapsed();
        assert!(took <= time.mul_f64(1.1) + Duration::from_millis(500), "{each} ms each: {took:?}");
        assert!(took >= time.mul_f64(0.5), "{each} ms each: {took:?}");
        assert!(outcome.trials > 0, "{each} ms each");
    }
}

#[test]
fn time_before_the_search_counts_against_the_budget() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::from_millis(1), &stop);
    let started = Instant::now().checked_sub(Duration::from_secs(10)).unwrap();
    let late = Options { started, ..options(None, Some(Duration::from_secs(5))) };
    let outcome = tune_product(&late, &mut measurer).0.unwrap();
    assert_eq!((outcome.trials, measurer.tried.len(), measurer.races), (0, 1, 0));
    assert!(outcome.is_default);
}

#[test]
fn one_signal_ends_the_search_and_two_do_without_the_finals() {
    for (signals, races) in [(1, 1), (2, 0)] {
        let stop = Stop::default();
        let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
        measurer.stop_requests = Some((10, signals));
        let outcome = tune_product(&options(Some(1000), None), &mut measurer).0.unwrap();
        assert_eq!(measurer.races, races);
        assert!(outcome.trials < 40, "{}", outcome.trials);
        // The best so far wins in both cases, or the default schedule if it is as good.
        let best = measurer.tried.iter().map(|schedule| seconds(schedule)).fold(f64::INFINITY, f64::min);
        assert!(outcome.seconds <= 1.0205 * best, "{} beside {best}", outcome.seconds);
        assert_eq!(outcome.finalists.is_empty(), races == 0);
    }
}

#[test]
fn trials_are_those_of_the_search() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let hint = "split C.i -> io, ii:4".to_owned();
    let given = Options { hints: vec![hint.clone()], ..options(Some(9), None) };
    let (outcome, heard) = tune_product(&given, &mut measurer);
    let outcome = outcome.unwrap();
    assert_eq!(heard.kinds[..3], [(TrialKind::Default, 0), (TrialKind::Hint, 1), (TrialKind::OneShot, 1)]);
    assert!(heard.kinds[3..].iter().all(|(kind, _)| *kind == TrialKind::Search));
    assert_eq!(heard.kinds.last().unwrap().1, 9);
    assert_eq!((outcome.trials, outcome.outcomes[&OutcomeKind::Measured]), (9, 9));
    assert_eq!(measurer.tried.len(), 11);
    assert_eq!(measurer.tried[1], hint);
}

#[test]
fn hints_that_are_illegal_here_are_not_measured() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    // Every step is legal by itself, but the accumulator needs more registers than any machine has.
    let tile = "split C.i -> io, ii:40\nsplit C.j -> jo, jv:4\nreorder C.io, C.jo, C.k, C.ii, C.jv\nunroll C.ii\n\
                vectorize C.jv\npromote C at C.jo -> acc registers";
    let hints = vec![tile.to_owned(), "nonsense".to_owned(), "vectorize C.q".to_owned()];
    let outcome = tune_product(&Options { hints, ..options(Some(4), None) }, &mut measurer).0.unwrap();
    assert!(!measurer.tried.iter().any(|tried| tried == tile || tried == "nonsense"));
    assert!(!measurer.tried.contains(&"vectorize C.q".to_owned()));
    assert!(outcome.rejections.values().sum::<usize>() >= 2, "{:?}", outcome.rejections);
}

#[test]
fn a_strategy_that_does_not_suit_is_refused_before_anything_is_measured() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let unsuitable = Options { strategy: find("grid").unwrap(), ..options(Some(4), None) };
    let refused = tune_product(&unsuitable, &mut measurer).0;
    assert!(matches!(refused, Err(TuneError::Strategy(_))));
    assert!(measurer.tried.is_empty());
}

#[test]
fn a_replay_is_the_same_run_however_long_it_takes() {
    let limits = [(None, Some(1000), None), (Some(10), None, Some(1)), (Some(10), None, Some(2))];
    for (after, time, signals) in limits {
        let stop = Stop::default();
        let mut measurer = SimulatedMeasurer::new(Duration::from_millis(10), &stop);
        measurer.stop_requests = after.zip(signals);
        let trials = time.is_none().then_some(1000);
        let opevo = find("opevo").unwrap();
        let options = Options { strategy: opevo, ..options(trials, time.map(Duration::from_millis)) };
        let mut recorder = Recorder::new(measurer, options.started);
        let mut heard = ReportedTrials::default();
        let recorded = tune(&task(), &options, &mut recorder, &mut heard, &stop).unwrap();
        let answers = recorder.answers();
        for delay in [0, 8] {
            let mut again = ReportedTrials::default();
            // The replay's own time limit is over before it begins.
            let mut replay = SlowReplay(Replay::new(&answers), Duration::from_millis(delay));
            let replayed = tune(&task(), &options, &mut replay, &mut again, &Stop::default()).unwrap();
            assert_eq!(again, heard);
            assert_eq!((replayed.schedule, replayed.seconds), (recorded.schedule.clone(), recorded.seconds));
            assert_eq!(replayed.finalists, recorded.finalists);
            assert_eq!(
                (replayed.default_seconds, replayed.one_shot_seconds),
                (recorded.default_seconds, recorded.one_shot_seconds)
            );
            assert_eq!(
                (replayed.rejections, replayed.predicted_too_slow),
                (recorded.rejections.clone(), recorded.predicted_too_slow)
            );
        }
    }
}
