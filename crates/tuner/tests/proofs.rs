//! Proofs in the tuning loop: which schedules are proved, and the consequences of a refutation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::Duration;

use support::simulated_measurer::{ReportedTrials, SimulatedMeasurer, options, task, tune_product};
use tilewright_cache::outcome::{Outcome, OutcomeKind};
use tilewright_cache::{Cache, Filter};
use tilewright_ir::{LoopNest, Program, print};
use tilewright_schedule::{apply, text};
use tilewright_search::default_schedule;
use tilewright_tuner::cache_recorder::CacheRecorder;
use tilewright_tuner::recording::{Recorder, Replay};
use tilewright_tuner::tune::{
    Attempt, Options, Progress, Proof, ProofScope, RefutedSchedule, Stop, TrialKind, TuneError, Verdict,
    Watcher, tune,
};

/// The counterexample of the prover stubs.
const COUNTEREXAMPLE: &str = "C(0, 0) is written twice";

/// The options of a run with this many trials and with this prover.
fn options_with_prover(
    trials: usize,
    proving: ProofScope,
    prover: fn(&Program, &LoopNest) -> Verdict,
) -> Options {
    Options { proof_scope: proving, prover, ..options(Some(trials), None) }
}

fn refuted() -> Verdict {
    Verdict::Refuted(COUNTEREXAMPLE.to_owned())
}

fn refutes_all(_: &Program, _: &LoopNest) -> Verdict {
    refuted()
}

fn decides_nothing(_: &Program, _: &LoopNest) -> Verdict {
    Verdict::Undecided("nobody knows".to_owned())
}

/// The loop nest of a schedule, as text.
fn loops(program: &Program, schedule: Option<&str>) -> String {
    let machine = task().machine().unwrap();
    let schedule = match schedule {
        Some(schedule) => text::parse(schedule).schedule,
        None => default_schedule(program, &machine),
    };
    print::nest(&apply(program, &schedule, &machine).unwrap())
}

/// Proves the default schedule and refutes everything else.
fn refutes_all_but_default(program: &Program, nest: &LoopNest) -> Verdict {
    if print::nest(nest) == loops(program, None) { Verdict::Proved } else { refuted() }
}

#[test]
fn the_winner_is_proved_and_the_time_of_that_is_told() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let outcome = tune_product(
        &options_with_prover(6, ProofScope::Winners, tilewright_tuner::tune::prove),
        &mut measurer,
    )
    .0
    .unwrap();
    assert_eq!(outcome.proof, Proof::Proved, "{}", outcome.schedule);
    assert!(outcome.refuted.is_empty());
    assert!(outcome.time_spent.proving > 0.0, "{:?}", outcome.time_spent);
    let none =
        tune_product(&options(Some(6), None), &mut SimulatedMeasurer::new(Duration::ZERO, &stop)).0.unwrap();
    assert_eq!((none.proof, none.time_spent.proving), (Proof::NotRequested, 0.0));
    assert_eq!(none.schedule, outcome.schedule);
}

/// The loop nest that wins when nothing is proved.
static FIRST: OnceLock<String> = OnceLock::new();

fn refutes_the_first(_: &Program, nest: &LoopNest) -> Verdict {
    if FIRST.get() == Some(&print::nest(nest)) { refuted() } else { Verdict::Proved }
}

#[test]
fn where_the_winner_is_refuted_the_next_best_is_taken() {
    let stop = Stop::default();
    let first =
        tune_product(&options(Some(9), None), &mut SimulatedMeasurer::new(Duration::ZERO, &stop)).0.unwrap();
    assert!(!first.is_default);
    FIRST.set(loops(&task().program, Some(&first.schedule))).unwrap();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let next = tune_product(&options_with_prover(9, ProofScope::Winners, refutes_the_first), &mut measurer)
        .0
        .unwrap();
    assert_eq!(
        next.refuted,
        [RefutedSchedule { schedule: first.schedule.clone(), reason: COUNTEREXAMPLE.to_owned() }]
    );
    assert_eq!(next.proof, Proof::Proved);
    assert!(next.seconds >= first.seconds, "{} beside {}", next.seconds, first.seconds);
    let rest: Vec<_> = first.finalists.into_iter().filter(|own| own.schedule != first.schedule).collect();
    assert!(rest.iter().any(|own| own.schedule == next.schedule), "{}", next.schedule);
    assert_eq!(next.finalists, rest);
}

#[test]
fn refuted_winners_are_failures_of_their_own_kind() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let outcome =
        tune_product(&options_with_prover(9, ProofScope::Winners, refutes_all_but_default), &mut measurer)
            .0
            .unwrap();
    assert!(outcome.is_default && outcome.proof == Proof::Proved);
    let counts = |kind: OutcomeKind| outcome.outcomes.get(&kind).copied().unwrap_or_default();
    assert_eq!(counts(OutcomeKind::Measured) + counts(OutcomeKind::Refuted), 9);
    // The first choice of the cost model is no trial.
    let one_shot = usize::from(matches!(outcome.one_shot_failure, Some(Outcome::Refuted(_))));
    assert_eq!(counts(OutcomeKind::Refuted) + one_shot, outcome.refuted.len());
    assert!(!outcome.refuted.is_empty());
}

#[test]
fn a_run_in_which_everything_is_refuted_has_no_winner() {
    let stop = Stop::default();
    for (proves, most) in [(ProofScope::Winners, usize::MAX), (ProofScope::Candidates, 0)] {
        let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
        let outcome = tune_product(&options_with_prover(4, proves, refutes_all), &mut measurer).0;
        let Err(TuneError::Default(Outcome::Refuted(why))) = outcome else { panic!("{proves:?}") };
        assert_eq!(why, COUNTEREXAMPLE);
        assert!(measurer.tried.len() <= most, "{proves:?}: {}", measurer.tried.len());
    }
}

#[test]
fn candidates_that_are_refuted_are_never_measured() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let (outcome, heard) =
        tune_product(&options_with_prover(7, ProofScope::Candidates, refutes_all_but_default), &mut measurer);
    let outcome = outcome.unwrap();
    assert_eq!((measurer.tried.len(), outcome.trials, outcome.outcomes[&OutcomeKind::Refuted]), (1, 7, 7));
    assert!(outcome.is_default && outcome.proof == Proof::Proved && outcome.refuted.is_empty());
    assert_eq!(outcome.one_shot_failure, Some(Outcome::Refuted(COUNTEREXAMPLE.to_owned())));
    let failed = heard.trials.iter().filter(|(_, trial)| trial.outcome.name() == "refuted").count();
    assert_eq!((failed, heard.kinds[0].0), (8, TrialKind::Default));
}

#[test]
fn a_winner_of_which_nothing_can_be_proved_stays() {
    let stop = Stop::default();
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let outcome =
        tune_product(&options_with_prover(5, ProofScope::Candidates, decides_nothing), &mut measurer)
            .0
            .unwrap();
    assert_eq!(outcome.proof, Proof::Undecided("nobody knows".to_owned()));
    assert_eq!((outcome.outcomes[&OutcomeKind::Measured], measurer.races), (5, 1));
}

static BEGUN: AtomicBool = AtomicBool::new(false);

fn takes_forever(_: &Program, _: &LoopNest) -> Verdict {
    BEGUN.store(true, Ordering::Relaxed);
    loop {
        sleep(Duration::from_secs(1));
    }
}

/// A second stop request ends the wait for a proof, and so does the time limit of a run.
#[test]
fn proofs_end_with_the_run() {
    let stop = Stop::default();
    let not_in_time = |proof| matches!(proof, Proof::Undecided(why) if why.contains("had to end"));
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let time = Duration::from_secs(1);
    let timed =
        Options { proof_scope: ProofScope::Winners, prover: takes_forever, ..options(Some(3), Some(time)) };
    let outcome = tune_product(&timed, &mut measurer).0.unwrap();
    assert!((4.0..20.0).contains(&outcome.time_spent.proving), "{:?}", outcome.time_spent);
    assert!(not_in_time(outcome.proof));
    BEGUN.store(false, Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !BEGUN.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(10));
            }
            (0..2).for_each(|_| stop.request());
        });
        let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
        let outcome =
            tune_product(&options_with_prover(3, ProofScope::Winners, takes_forever), &mut measurer)
                .0
                .unwrap();
        assert!(not_in_time(outcome.proof));
    });
}

#[test]
fn a_replay_comes_to_the_same_verdicts() {
    for signals in [0, 1, 2] {
        let stop = Stop::default();
        let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
        measurer.stop_requests = Some((10, signals));
        let options = options_with_prover(30, ProofScope::Winners, refutes_all_but_default);
        let mut recorder = Recorder::new(measurer, options.started);
        let mut heard = ReportedTrials::default();
        let recorded = tune(&task(), &options, &mut recorder, &mut heard, &stop).unwrap();
        let answers = recorder.answers();
        let mut again = ReportedTrials::default();
        let replayed =
            tune(&task(), &options, &mut Replay::new(&answers), &mut again, &Stop::default()).unwrap();
        assert_eq!(again, heard);
        assert_eq!((replayed.proof, replayed.refuted), (recorded.proof, recorded.refuted));
        assert_eq!((replayed.schedule, replayed.outcomes), (recorded.schedule, recorded.outcomes));
    }
}

/// Records all trials in a cache.
struct RecordingWatcher<'a>(&'a mut CacheRecorder);

impl Watcher for RecordingWatcher<'_> {
    fn candidate_tried(&mut self, attempt: &Attempt<'_>, progress: &Progress) {
        self.0.record_trial(attempt, progress.trials).unwrap();
    }
}

/// Tunes with a cache, as the front ends do.
fn tune_with_cache(path: &std::path::Path, options: &Options) -> tilewright_tuner::tune::TuningReport {
    let (task, stop) = (task(), Stop::default());
    let (program, machine) = (task.program.clone(), task.machine().unwrap());
    let mut recorder = CacheRecorder::new(Cache::open(path), &program, &machine, options);
    let mut measurer = SimulatedMeasurer::new(Duration::ZERO, &stop);
    let tuned = tune(&task, options, &mut measurer, &mut RecordingWatcher(&mut recorder), &stop).unwrap();
    recorder.record_finalists(&tuned).unwrap();
    tuned
}

#[test]
fn no_time_of_a_refuted_schedule_stays_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let (program, machine) = (task().program, task().machine().unwrap());
    let best = || {
        let cache = Cache::open(&path).unwrap();
        cache.best_schedule(&program, machine.target()).unwrap().best.unwrap()
    };
    // A run without proofs leaves times of a schedule that the next run refutes.
    let first = tune_with_cache(&path, &options(Some(9), None));
    assert!(!first.is_default && !best().is_default);
    let next = tune_with_cache(&path, &options_with_prover(9, ProofScope::Winners, refutes_all_but_default));
    assert!(next.is_default && next.refuted.iter().any(|own| own.schedule == first.schedule));
    assert!(best().is_default, "{}", best().schedule);
    let cache = Cache::open(&path).unwrap();
    let records = cache.records(&Filter { measured: Some(false), ..Filter::default() }).unwrap();
    assert_eq!(records.len(), next.refuted.len());
    assert!(records.iter().all(|record| record.outcome == Outcome::Refuted(COUNTEREXAMPLE.to_owned())));
}
