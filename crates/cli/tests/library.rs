//! The Rust library tunes a program, with the command as its worker process.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright::strategy::{Entry, find};
use tilewright::tune::SearchOutcome;
use tilewright::{Compile, Error, Module, Origin, ScheduleChoice, Tune};

const WORKER: &str = env!("CARGO_BIN_EXE_tilewright");
const SOURCE: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";

/// A strategy that is none of the library's: random search under another name.
const OWN: Entry = Entry {
    name: "own",
    description: "random search",
    learns_from_others: false,
    make: |knobs, start| (find("random")?.make)(knobs, start),
};

#[test]
fn a_program_is_tuned_and_its_schedule_comes_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache.sqlite");
    let program = Module::parse(SOURCE).unwrap().program("mm", [("M", 24), ("K", 16), ("N", 32)]).unwrap();
    let options = Compile { schedule: ScheduleChoice::Cache(cache.clone()), ..Compile::default() };
    assert_eq!(*program.compile_with(&options).unwrap().origin(), Origin::Default);
    let mut trials = 0;
    let tune = Tune::default().strategy(OWN).trials(3).cache(&cache).worker(WORKER, &["worker"]);
    let tuned = program.tune_watched(&tune, |progress| trials = progress.trials).unwrap();
    assert_eq!((tuned.trials, trials), (3, 3));
    assert!(tuned.seconds > 0.0 && tuned.seconds <= tuned.default_seconds, "{tuned:?}");
    let page = tuned.report().unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("M=24"), "{page}");
    let kernel = program.compile_with(&options).unwrap();
    // The cache may hand out another schedule of the same speed, in names of its own.
    let Origin::Tuned { seconds, .. } = kernel.origin() else { panic!("{:?}", kernel.origin()) };
    assert!(*seconds > 0.0 && !kernel.schedule().steps.is_empty());
}

#[test]
fn a_template_limits_the_search_and_a_recording_repeats_it() {
    let program = Module::parse(SOURCE).unwrap().program("mm", [("M", 24), ("K", 16), ("N", 32)]).unwrap();
    let tune = Tune::default().strategy(OWN).starts(0).worker(WORKER, &["worker"]);
    let wrong = tune.clone().template("split C.nowhere -> a, b:{t}").trials(1);
    assert!(matches!(program.tune(&wrong), Err(Error::Tune(_))));
    let tuned = program.tune(&tune.trials(2)).unwrap();
    let SearchOutcome { setting, answers, history, .. } = &tuned.found;
    assert!(history.trials.len() >= 3 && history.times().count() >= 1, "{history:?}");
    assert_eq!((setting.trials, setting.starts, setting.strategy.as_str()), (Some(2), 0, "own"));
    assert_eq!(tuned.found.recording().answers.len(), answers.len());
}

#[test]
fn a_worker_that_is_none_is_an_error_with_a_hint() {
    let program = Module::parse(SOURCE).unwrap().program("mm", [("M", 4), ("K", 4), ("N", 4)]).unwrap();
    let error = program.tune(&Tune::default().trials(1).worker("true", &[])).unwrap_err().to_string();
    assert!(error.contains("serve_if_worker"), "{error}");
}
