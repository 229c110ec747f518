//! Whole searches: a recording of a simulated measurer stands for the workers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use support::simulated_measurer::{ReportedTrials, SimulatedMeasurer, options, recorded_task, task};
use tilewright_cache::{Cache, CacheError, Filter};
use tilewright_interp::Inputs;
use tilewright_tuner::recording::{Recorder, Recording};
use tilewright_tuner::search::{Search, Subject, Workers};
use tilewright_tuner::tune::{Options, Stop, TuneError, TuningReport, tune};
use tilewright_tuner::worker::{WorkerCommand, WorkerError};

/// A search for the small matrix product.
fn search(options: Options) -> Result<Search, TuneError> {
    let task = recorded_task();
    let (program, inputs) = (task.task().unwrap().program, Inputs::default());
    let (source, sizes, place) = (&task.source, &task.sizes, &task.target);
    Search::new(Subject { source, program: &program, sizes, target: place, inputs: &inputs }, options)
}

/// Runs the loop alone, and records it.
fn recorded(options: &Options) -> (TuningReport, ReportedTrials, Recording) {
    let stop = Stop::default();
    let mut recorder = Recorder::new(SimulatedMeasurer::new(Duration::ZERO, &stop), options.started);
    let mut heard = ReportedTrials::default();
    let tuned = tune(&task(), options, &mut recorder, &mut heard, &stop).unwrap();
    let setting = search(options.clone()).unwrap().setting().clone();
    (tuned, heard, Recording { setting, answers: recorder.answers() })
}

#[test]
fn a_replay_has_the_outcome_of_its_recording() {
    let options = options(Some(9), None);
    let (tuned, heard, recording) = recorded(&options);
    let mut again = ReportedTrials::default();
    let search = search(options).unwrap();
    assert_eq!(recording.setting.difference(search.setting()), None);
    let found = search.replay(recording.clone(), &mut again, &Stop::default()).unwrap();
    assert_eq!(again, heard);
    assert_eq!((found.report.schedule.clone(), found.report.trials), (tuned.schedule, tuned.trials));
    assert!(found.is_replay && found.cache_summary.is_none() && found.notes.is_empty());
    assert_eq!(found.recording(), recording);
    let times = heard.trials.iter().filter_map(|(_, trial)| trial.seconds());
    assert_eq!(found.history.times().collect::<Vec<_>>(), times.collect::<Vec<_>>());
    assert_eq!(found.history.trials.len(), heard.trials.len());
}

#[test]
fn every_trial_is_stored_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let (_, heard, recording) = recorded(&options(Some(9), None));
    let mut first = search(options(Some(9), None)).unwrap();
    first.use_cache(Cache::open(&path));
    assert!(first.cache_error().is_none() && first.options().hints.is_empty());
    let found = first.replay(recording, &mut ReportedTrials::default(), &Stop::default()).unwrap();
    let records = Cache::open(&path).unwrap().records(&Filter::default()).unwrap().len();
    assert_eq!(records, heard.trials.len() + found.report.finalists.len());
    assert_eq!(found.cache_summary, Some(format!("{records} records in {}", path.display())));
    // The next search starts from the best schedule.
    let mut next = search(options(Some(9), None)).unwrap();
    next.use_cache(Cache::open(&path));
    assert_eq!(next.options().hints, next.setting().hints);
    assert_eq!(next.options().hints.len(), 1);
}

#[test]
fn a_search_goes_on_without_a_cache_that_cannot_be_used() {
    let (_, heard, recording) = recorded(&options(Some(3), None));
    let mut search = search(options(Some(3), None)).unwrap();
    search.use_cache(Err(CacheError::NoHome));
    assert!(matches!(search.cache_error(), Some(CacheError::NoHome)));
    let found = search.replay(recording, &mut ReportedTrials::default(), &Stop::default()).unwrap();
    assert_eq!(found.history.trials.len(), heard.trials.len());
    assert!(found.cache_summary.unwrap().starts_with("no records were stored: "));
}

#[test]
fn mistakes_are_found_before_a_worker_starts() {
    let template = Some("split C.nowhere -> a, b:4".to_owned());
    let refused = search(Options { template, ..options(Some(1), None) }).map(|_| ());
    assert!(matches!(refused, Err(TuneError::Template(_))), "{refused:?}");
    let launch =
        WorkerCommand { program: "/nowhere/worker".into(), arguments: Vec::new(), variables: Vec::new() };
    let workers = Workers { command: launch, others: Vec::new() };
    let search = search(options(Some(1), None)).unwrap();
    let lost = search.run(workers, &mut ReportedTrials::default(), &Arc::default()).map(|_| ());
    assert!(matches!(lost, Err(TuneError::Worker(WorkerError::Start(_)))), "{lost:?}");
}
