//! The cache as a tuner uses it: inserting and reading records, similar programs, and explanations
//! of misses.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{PRODUCT, SAME_PRODUCT, cpu, nameless, product, product_record, program, record, target};
use tilewright_cache::{
    Cache, CacheError, Canonical, Difference, Explanation, Filter, Outcome, TOOL_VERSION, TargetFingerprint,
    TuningRecord,
};
use tilewright_schedule::apply;

fn failed(mut record: TuningRecord, outcome: Outcome) -> TuningRecord {
    record.outcome = outcome;
    record.samples.clear();
    record
}

fn every_outcome() -> Vec<Outcome> {
    vec![
        Outcome::Illegal("step 3: no".to_owned()),
        Outcome::CompileError("too much\ncode".to_owned()),
        Outcome::WrongResult("C[3] is 4, not 5".to_owned()),
        Outcome::Crashed("signal 11".to_owned()),
        Outcome::TimedOut,
    ]
}

#[test]
fn records_come_back_as_they_were() {
    let cache = Cache::in_memory().unwrap();
    let mut kept = vec![product_record(8, 8, 8, 0.25)];
    kept.extend(every_outcome().into_iter().map(|outcome| failed(product_record(8, 8, 8, 1.0), outcome)));
    kept.push(TuningRecord { seed: None, trial: None, ..product_record(8, 9, 8, 1e-9) });
    kept.push(TuningRecord { seed: Some(u64::MAX), ..product_record(8, 9, 8, 1e-9) });
    for record in &kept {
        assert!(cache.insert(record).unwrap());
        assert!(!cache.insert(record).unwrap(), "the same record was kept twice");
    }
    assert_eq!(cache.records(&Filter::default()).unwrap(), kept);
    assert_eq!(cache.count(&Filter::for_key(&kept[0].program)).unwrap(), 6);
    let failures = Filter { measured: Some(false), ..Filter::default() };
    assert_eq!(cache.records(&failures).unwrap(), kept[1..6]);
}

#[test]
fn a_schedule_tuned_under_one_naming_is_found_under_another() {
    let cache = Cache::in_memory().unwrap();
    let own = program(PRODUCT, None, &[("M", 48), ("K", 40), ("N", 32)]).unwrap();
    let tuned = record(&Canonical::new(&own), &own, 0.5);
    cache.insert(&tuned).unwrap();
    cache.insert(&record(&Canonical::new(&own), &own, 0.7)).unwrap();
    cache.insert(&failed(tuned.clone(), Outcome::TimedOut)).unwrap();

    let other = program(SAME_PRODUCT, None, &[("X", 48), ("Y", 40), ("Z", 32)]).unwrap();
    let canonical = Canonical::new(&other);
    let found = cache.best(&canonical.key(&target(), 2)).unwrap().unwrap();
    assert_eq!(found, tuned);
    assert_eq!(found.median(), Some(0.5));
    let schedule = canonical.schedule_of(&found, &cpu());
    assert_eq!(schedule.refusal, None);
    let loops = apply(&other, &schedule.schedule, &cpu()).unwrap();
    let default = tilewright_schedule::schedule_by_rules(&own, &cpu());
    assert_eq!(nameless(loops), nameless(apply(&own, &default, &cpu()).unwrap()));
    assert!(schedule.schedule.to_string().contains("i."), "{}", schedule.schedule);
    // There are no records for other thread counts or sizes.
    assert_eq!(cache.best(&canonical.key(&target(), 1)).unwrap(), None);
    assert_eq!(cache.best(&product(48, 40, 33).key(&target(), 2)).unwrap(), None);
}

#[test]
fn similar_programs_come_in_the_order_of_closeness() {
    let cache = Cache::in_memory().unwrap();
    let at = |m, threads, model: &str| {
        let mut record = product_record(m, 64, 64, 1.0);
        record.program.threads = threads;
        record.program.target.model = model.to_owned();
        record
    };
    let here = target().model;
    let (far, near, threads, machine) =
        (at(1024, 2, &here), at(96, 2, &here), at(64, 8, &here), at(64, 2, "Other"));
    for record in
        [&far, &machine, &near, &threads, &at(64, 2, &here), &failed(at(65, 2, &here), Outcome::TimedOut)]
    {
        cache.insert(record).unwrap();
    }
    let key = product(64, 64, 64).key(&target(), 2);
    assert_eq!(cache.similar(&key, 10).unwrap(), [near.clone(), threads, far, machine]);
    assert_eq!(cache.similar(&key, 1).unwrap(), [near]);
}

#[test]
fn a_miss_is_explained_field_by_field() {
    let cache = Cache::in_memory().unwrap();
    let key = product(64, 64, 64).key(&target(), 2);
    assert_eq!(cache.explain(&key).unwrap(), Explanation::Miss { nearest: Vec::new() });

    let mut elsewhere = product_record(128, 64, 64, 1.0);
    elsewhere.program.threads = 1;
    elsewhere.program.target =
        TargetFingerprint { caches: vec![1, 2], vectors: "avx2".to_owned(), ..target() };
    cache.insert(&elsewhere).unwrap();
    let size = Difference::Size { name: "s0".to_owned(), wanted: 64, found: 128 };
    let field = |field, wanted: &str, found: &str| Difference::Target {
        field,
        wanted: wanted.to_owned(),
        found: found.to_owned(),
    };
    let Explanation::Miss { nearest } = cache.explain(&key).unwrap() else { panic!("a hit") };
    assert_eq!(
        nearest[0].differences,
        [
            size,
            Difference::Threads { wanted: 2, found: 1 },
            field("vectors", "avx512", "avx2"),
            field("caches", "32768,1048576", "1,2")
        ]
    );
    assert_eq!((nearest[0].summary.trials, nearest[0].summary.best), (1, Some(1.0)));

    let double =
        program(&PRODUCT.replace("float", "double"), None, &[("M", 64), ("K", 64), ("N", 64)]).unwrap();
    let Explanation::Miss { nearest } = cache.explain(&Canonical::new(&double).key(&target(), 2)).unwrap()
    else {
        panic!("a hit")
    };
    let other = Difference::Program {
        wanted: "t0 input float64(s0, s1)".to_owned(),
        found: "t0 input float32(s0, s1)".to_owned(),
    };
    assert_eq!(nearest[0].differences[0], other);

    cache.insert(&failed(product_record(64, 64, 64, 1.0), Outcome::TimedOut)).unwrap();
    let Explanation::Miss { nearest } = cache.explain(&key).unwrap() else { panic!("a hit") };
    assert_eq!(nearest[0].differences, [Difference::NothingMeasured]);

    let old = TuningRecord { tool_version: "0.0.1".to_owned(), ..product_record(64, 64, 64, 2.0) };
    cache.insert(&old).unwrap();
    let hit = Explanation::Hit { record: Box::new(old), measured_by_version: Some("0.0.1".to_owned()) };
    assert_eq!(cache.explain(&key).unwrap(), hit);
}

#[test]
fn long_messages_are_cut_and_kept() {
    let cache = Cache::in_memory().unwrap();
    let long = failed(product_record(8, 8, 8, 1.0), Outcome::CompileError("é".repeat(1 << 20)));
    assert!(cache.insert(&long).unwrap() && !cache.insert(&long).unwrap());
    let kept = cache.records(&Filter::default()).unwrap();
    let detail = kept[0].outcome.detail();
    assert!(detail.len() > 10_000 && detail.len() < 20_000 && detail.ends_with("é …"), "{}", detail.len());
}

#[test]
fn clearing_removes_what_is_meant_and_nothing_else() {
    let cache = Cache::in_memory().unwrap();
    let (one, two) = (product_record(8, 8, 8, 1.0), product_record(16, 8, 8, 1.0));
    let late = TuningRecord { time: 2_000_000_000, ..one.clone() };
    for record in [&one, &two, &late, &failed(two.clone(), Outcome::TimedOut)] {
        cache.insert(record).unwrap();
    }
    assert_eq!(cache.summaries(&Filter::default()).unwrap().len(), 2);
    assert_eq!(cache.clear(&Filter { measured: Some(false), ..Filter::default() }).unwrap(), 1);
    assert_eq!(
        cache.clear(&Filter { before: Some(1_900_000_000), ..Filter::for_key(&one.program) }).unwrap(),
        1
    );
    assert_eq!(cache.records(&Filter::default()).unwrap(), [two, late]);
    assert_eq!(cache.clear(&Filter::default()).unwrap(), 2);
    assert_eq!(cache.clear(&Filter::default()).unwrap(), 0);
}

#[test]
fn records_that_cannot_be_are_refused() {
    let cache = Cache::in_memory().unwrap();
    let good = product_record(8, 8, 8, 1.0);
    type Change = Box<dyn Fn(&mut TuningRecord)>;
    let bad: [(&str, Change); 12] = [
        ("NaN", Box::new(|record| record.samples[1] = f64::NAN)),
        ("-1", Box::new(|record| record.samples[1] = -1.0)),
        ("0 seconds", Box::new(|record| record.samples[1] = 0.0)),
        ("inf", Box::new(|record| record.samples[0] = f64::INFINITY)),
        ("no samples", Box::new(|record| record.samples.clear())),
        ("has samples", Box::new(|record| record.outcome = Outcome::TimedOut)),
        ("100001 samples", Box::new(|record| record.samples = vec![1.0; 100_001])),
        ("schedule cannot be read", Box::new(|record| record.schedule = "rm -rf /".to_owned())),
        ("the schedule has", Box::new(|record| record.schedule = "#".repeat(2 << 20))),
        ("the title has", Box::new(|record| record.title = "x".repeat(1 << 20))),
        ("0 threads", Box::new(|record| record.program.threads = 0)),
        ("sizes are not", Box::new(|record| record.program.sizes[0].0 = "s0=3,s1".to_owned())),
    ];
    for (part, change) in bad {
        let mut record = good.clone();
        change(&mut record);
        let error = cache.insert(&record).unwrap_err();
        assert!(
            matches!(error, CacheError::Invalid(_)) && error.to_string().contains(part),
            "{part}: {error}"
        );
    }
    assert_eq!(cache.count(&Filter::default()).unwrap(), 0);
}

/// Cost models learn from all programs of this machine, each as its own group, and from no other
/// machine or version.
#[test]
fn experience_is_of_one_machine_and_this_version() {
    let cache = Cache::in_memory().unwrap();
    let at = |size: i64, feature: f32| {
        let tool_version = TOOL_VERSION.to_owned();
        TuningRecord { features: vec![feature, 0.5], tool_version, ..product_record(size, 64, 64, 1.0) }
    };
    let own = at(64, 1.0);
    let mut other_machine = at(64, 2.0);
    other_machine.program.target.model = "another".to_owned();
    let other_version = TuningRecord { tool_version: "0.0.1".to_owned(), ..at(64, 3.0) };
    let lost = failed(at(128, 4.0), Outcome::TimedOut);
    let unseen = TuningRecord { features: Vec::new(), trial: Some(77), ..at(64, 5.0) };
    for record in [&own, &other_machine, &other_version, &lost, &unseen] {
        assert!(cache.insert(record).unwrap());
    }
    let found = cache.experience(&own.program.target, 100).unwrap();
    let trials: Vec<_> = found.into_iter().flatten().collect();
    // The groups are ordered by the text of their sizes.
    assert_eq!(trials, [(vec![4.0, 0.5], None), (vec![1.0, 0.5], own.median())]);
    assert_eq!(cache.experience(&own.program.target, 1).unwrap().len(), 1);
}
