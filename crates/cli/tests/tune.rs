//! Tests of `tilewright tune`, and of workers that misbehave.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Folder, PRODUCT};
use tilewright::cache::outcome::Outcome;
use tilewright::target::Cpu;
use tilewright::tuner::bench::Plan;
use tilewright::tuner::measure::{Measurer, SupervisedWorker};
use tilewright::tuner::task::{ExecutionTarget, RecordedTask, Task};
use tilewright::tuner::tune::Stop;
use tilewright::tuner::worker::{WorkerCommand, WorkerError};

const WORKER: &str = env!("CARGO_BIN_EXE_tilewright");

fn task() -> Task {
    let task = RecordedTask {
        source: PRODUCT.to_owned(),
        function: "mm".to_owned(),
        sizes: [("M", 24), ("K", 20), ("N", 33)].map(|(name, value)| (name.to_owned(), value)).to_vec(),
        target: ExecutionTarget::cpu(&Cpu { cores: 1, ..Cpu::host() }),
        seed: 3,
        contract: true,
    };
    task.task().unwrap()
}

fn started(launch: WorkerCommand, task: Task) -> Result<SupervisedWorker, WorkerError> {
    SupervisedWorker::start(launch, task, Arc::default())
}

/// A worker whose output goes through a shell pipeline.
fn through(filter: &str) -> WorkerCommand {
    let command = format!("'{WORKER}' worker | {filter}");
    WorkerCommand { program: "sh".into(), arguments: vec!["-c".to_owned(), command], variables: Vec::new() }
}

/// Legal schedules, refused schedules, and texts that are not schedules.
fn schedules() -> Vec<String> {
    let texts = ["", "split C.i -> io, ii:4", "vectorize C.k2", "nonsense", "reorder C.j, C.i", "unroll C.k"];
    texts.map(str::to_owned).to_vec()
}

const PLAN: Plan = Plan {
    reference: None,
    best_seconds: 0.0,
    first_call_limit: 1.0,
    call_limit: 1.0,
    samples: 3,
    time: 0.001,
    batch_limit: None,
};

fn kinds(measurer: &mut SupervisedWorker) -> Vec<&'static str> {
    measurer.try_all(&schedules(), &PLAN).unwrap().iter().map(|(_, trial)| trial.outcome.name()).collect()
}

#[test]
fn a_worker_measures_and_refuses() {
    let launch =
        WorkerCommand { program: WORKER.into(), arguments: vec!["worker".to_owned()], variables: Vec::new() };
    let mut measurer = started(launch, task()).unwrap();
    let wanted = ["measured", "measured", "illegal", "illegal", "measured", "measured"];
    assert_eq!(kinds(&mut measurer), wanted);
    assert_eq!(measurer.lost_workers(), 0);
    let times = measurer.race(&schedules()[..2], 5, 0.02).unwrap();
    assert!(times.iter().all(|own| own.len() >= 5), "{times:?}");
}

#[test]
fn results_are_compared_by_name_and_called_functions_can_be_tuned() {
    let folder = Folder::with_peaks();
    folder.write(
        "two.tw",
        "def centre(float(N,M) A) -> (mean, C) {\n  mean(n) +=! A(n,m)\n  mean(n) = mean(n) / M\n  C(n,m) = A(n,m) - mean(n)\n}\n",
    );
    folder.write(
        "net.tw",
        "def mm(float(M,K) A, float(K,N) B) -> (C) {\n  T(i,j) +=! A(i,k) * B(k,j)\n  C(i,j) = max(T(i,j), 0)\n}\n\
         def net(float(M,K) A, float(K,N) B) -> (y) {\n  y = mm(A, B)\n}\n",
    );
    for (program, sizes) in [("two.tw", "N=12,M=34"), ("net.tw:net", "M=31,K=37,N=41")] {
        let line = format!("tune {program} --sizes {sizes} --trials 3 --threads 1 --json --cache c.sqlite");
        let out = folder.succeeds(&line);
        let done: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
        assert_eq!(done["event"], "done", "{out}");
        assert!(done["failures"].get("wrong-result").is_none(), "{out}");
    }
    folder.fails("tune two.tw --sizes N=12,M=34 --strategy luck", 2, &["there is no strategy `luck`"]);
}

#[test]
fn a_worker_that_ends_is_replaced_and_every_candidate_is_heard_of() {
    // The worker prints Ready, Running, Done, Running, and is killed while the second candidate
    // runs, every time.
    let mut measurer = started(through("(sed -u 4q; kill -9 0)"), task()).unwrap();
    let found = kinds(&mut measurer);
    assert_eq!(found.len(), schedules().len());
    assert!(found.contains(&"measured") && found.contains(&"crashed"), "{found:?}");
    assert!(measurer.lost_workers() >= 2);
}

#[test]
fn what_a_worker_says_before_it_ends_is_told() {
    let ends = through("(sed -u 2q; echo first >&2; echo 'the last words' >&2; kill -9 0)");
    let mut measurer = started(ends, task()).unwrap();
    let trials = measurer.try_all(&schedules()[..1], &PLAN).unwrap();
    let Outcome::Crashed(said) = &trials[0].1.outcome else { panic!("{:?}", trials[0]) };
    assert!(
        said.starts_with("the worker process ended") && said.ends_with(": first\nthe last words"),
        "{said}"
    );
}

#[test]
fn a_worker_does_no_more_than_there_is_time_for() {
    let launch =
        WorkerCommand { program: WORKER.into(), arguments: vec!["worker".to_owned()], variables: Vec::new() };
    let mut measurer = started(launch, task()).unwrap();
    let none = measurer.try_all(&schedules(), &Plan { batch_limit: Some(1e-6), ..PLAN }).unwrap();
    assert!(none.len() < schedules().len(), "{none:?}");
    assert_eq!(kinds(&mut measurer).len(), schedules().len());
    assert_eq!(measurer.lost_workers(), 0);
}

#[test]
fn a_worker_is_not_waited_for_by_whoever_is_in_a_hurry() {
    let stop = Arc::new(Stop::default());
    let frozen = through("(sed -u 2q; sleep 20)");
    let mut measurer = SupervisedWorker::start(frozen, task(), Arc::clone(&stop)).unwrap();
    (0..2).for_each(|_| stop.request());
    let begun = Instant::now();
    assert_eq!(measurer.try_all(&schedules(), &Plan { first_call_limit: 100.0, ..PLAN }).unwrap(), []);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_worker_that_freezes_is_replaced() {
    let mut measurer = started(through("(sed -u 2q; sleep 10)"), task()).unwrap();
    let plan = Plan { first_call_limit: 0.01, ..PLAN };
    let trials = measurer.try_all(&schedules()[..1], &plan).unwrap();
    assert_eq!(trials[0].1.outcome, Outcome::TimedOut);
    assert_eq!(measurer.lost_workers(), 1);
}

#[test]
fn a_worker_that_says_nonsense_is_replaced() {
    let mut measurer = started(through("sed -u '3s/.*/nonsense/'"), task()).unwrap();
    let found = kinds(&mut measurer);
    assert!(found.contains(&"crashed"), "{found:?}");
    // Negative times are invalid too.
    let negative = through(r#"sed -u 's/"samples":\[[^]]*/"samples":[-1.0/'"#);
    let mut measurer = started(negative, task()).unwrap();
    assert!(!kinds(&mut measurer).contains(&"measured"));
}

#[test]
fn what_cannot_be_started_or_opened_is_said() {
    let missing =
        WorkerCommand { program: "/nonexistent/worker".into(), arguments: Vec::new(), variables: Vec::new() };
    assert!(matches!(started(missing, task()), Err(WorkerError::Start(_))));
    let mut open = task();
    open.program = (**open.program.general.as_ref().unwrap()).clone();
    let launch =
        WorkerCommand { program: WORKER.into(), arguments: vec!["worker".to_owned()], variables: Vec::new() };
    assert!(matches!(started(launch, open), Err(WorkerError::Refused(_))));
    assert!(matches!(started(through("true"), task()), Err(WorkerError::Ended(_))));
}

#[test]
fn tune_keeps_what_it_measures_and_is_never_slower_than_the_default() {
    let folder = Folder::with_peaks();
    let out = folder.succeeds(
        "tune mm.tw --sizes M=70,K=64,N=67 --trials 12 --threads 1 --json --cache c.sqlite --out p.sched",
    );
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let done = lines.last().unwrap();
    assert_eq!(done["event"], "done");
    assert_eq!(done["trials"], 12);
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!((kinds[0], kinds[1]), ("default", "one-shot"));
    assert!(kinds[2..].iter().all(|kind| *kind == "search"), "{kinds:?}");
    assert!(done["median_us"].as_f64().unwrap() <= 1.02 * done["default_us"].as_f64().unwrap(), "{done}");
    let schedule = fs::read_to_string(folder.path("p.sched")).unwrap();
    assert_eq!(schedule, done["schedule"].as_str().unwrap());
    folder.succeeds("run mm.tw --sizes M=70,K=64,N=67 --threads 1 --schedule p.sched --check");
    let listed: Value = serde_json::from_str(&folder.succeeds("cache list --json --cache c.sqlite")).unwrap();
    assert!(listed[0]["trials"].as_u64().unwrap() >= 12, "{listed}");
    // From now on `bench` uses the tuned schedule, and says so.
    let bench = |arguments: &str| {
        let out =
            folder.succeeds(&format!("bench mm.tw --sizes M=70,K=64,N=67 --json --time 1ms {arguments}"));
        let object: Value = serde_json::from_str(&out).unwrap();
        object["schedule_source"].as_str().unwrap().to_owned()
    };
    assert_eq!(bench("--threads 1 --cache c.sqlite"), "cache");
    assert_eq!(bench("--threads 1 --cache c.sqlite --schedule default"), "default");
    let run =
        folder.tilewright("run mm.tw --sizes M=70,K=64,N=67 --threads 1 --cache c.sqlite --schedule default");
    assert!(run.err.ends_with("schedule: default\n"), "{}", run.err);
    assert_eq!(bench("--threads 2 --cache c.sqlite"), "default");
    assert_eq!(bench("--threads 1 --cache c.sqlite --schedule p.sched"), "file");
    assert_eq!(bench("--threads 1"), "default");
    let run = folder.tilewright("run mm.tw --sizes M=70,K=64,N=67 --threads 1 --cache c.sqlite --check");
    // The machine decides which of the two schedules wins.
    let said = ["tuned, from the cache", "default, which was the fastest when tuned"];
    assert!(said.iter().any(|said| run.err.contains(said)), "{}", run.err);
    // The next search starts from the records of the cache.
    let again =
        folder.succeeds("tune mm.tw --sizes M=70,K=64,N=67 --trials 3 --threads 1 --json --cache c.sqlite");
    assert!(again.lines().count() >= 4 && again.contains("\"hint\""), "{again}");
    let text = folder.succeeds("tune mm.tw --sizes M=70,K=64,N=67 --trials 2 --threads 1 --cache c.sqlite");
    let trials = text.lines().find(|line| line.contains("trials ")).unwrap();
    assert!(trials.contains("2 in ") && trials.ends_with(" s, 2 measured"), "{text}");
}

#[test]
fn inputs_are_taken_as_run_takes_them() {
    let folder = Folder::new();
    folder.write("look.tw", "def look(float(N) T, int(M) I, float a) -> (y) { y(i) = a * T(I(i)) }\n");
    folder.floats("t.npy", &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    folder.floats("square.npy", &[2, 2], &[1.0; 4]);
    folder.ints("i.npy", &[6], &[0, 4, 4, 2, 1, 0]);
    folder.ints("far.npy", &[6], &[0, 4, 4, 2, 9, 0]);
    let out = folder
        .succeeds("tune look.tw --in T=t.npy --in I=i.npy --in a=2.5 --trials 3 --json --cache c.sqlite");
    assert!(out.lines().last().unwrap().contains("\"done\""), "{out}");
    let listed = folder.succeeds("cache list --cache c.sqlite");
    assert!(listed.contains("look N=5,M=6"), "{listed}");
    // The worker has received the data: the lookup with index 9 is out of bounds.
    let far = folder.tilewright("tune look.tw --in T=t.npy --in I=far.npy --trials 3");
    assert_eq!((far.status, far.out.as_str()), (1, ""), "{}", far.err);
    assert!(far.err.contains("cannot run the program") && far.err.contains('9'), "{}", far.err);
    for inputs in
        ["--in T=none.npy", "--in T=square.npy", "--in T=i.npy --sizes M=2", "--sizes N=3 --in T=t.npy"]
    {
        let [run, tune] =
            ["run", "tune"].map(|command| folder.tilewright(&format!("{command} look.tw {inputs}")));
        assert_eq!((tune.status, tune.err), (run.status, run.err), "{inputs}");
        assert_eq!(run.status, 1, "{inputs}");
    }
}

#[test]
fn every_seed_is_kept() {
    let folder = Folder::new();
    let seed = u64::MAX;
    let out = folder.tilewright(&format!(
        "tune mm.tw --sizes M=8,K=8,N=8 --threads 1 --trials 1 --seed {seed} --cache c.sqlite"
    ));
    assert!(out.status == 0 && !out.err.contains("warning"), "{}", out.err);
    let shown = folder.succeeds("cache show mm.tw --sizes M=8,K=8,N=8 --threads 1 --json --cache c.sqlite");
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown["records"][0]["seed"].as_u64(), Some(seed));
    folder.succeeds("cache export out.pb --cache c.sqlite");
    assert!(folder.succeeds("cache import out.pb --cache d.sqlite").contains("0 already there"));
}

/// Scales the rows and columns of a positive matrix in turn, by divisions.
const SINKHORN: &str = "def sinkhorn(float(N, N) K) -> (P) {
  float(11, N) u
  u(0, i) = 1 where i in 0:N
  for t in 0:10 {
    c(t, j) +=! K(i, j) * u(t, i)
    v(t, j) = 1 / c(t, j)
    r(t, i) +=! K(i, j) * v(t, j)
    u(t + 1, i) = 1 / r(t, i)
  }
  P(i, j) = u(10, i) * K(i, j) * v(9, j)
}
";

#[test]
fn programs_that_divide_are_tuned_on_data_that_suits_them() {
    let folder = Folder::with_peaks();
    folder.write("sinkhorn.tw", SINKHORN);
    let line = "tune sinkhorn.tw --trials 2 --threads 1 --cache c.sqlite --json";
    // The size is too large for the interpreter. The comparison at smaller sizes uses the given
    // range of inputs.
    let ended = folder.tilewright(&format!("{line} --sizes N=700 --in K=uniform(0.1,1) --record run.tape"));
    assert_eq!((ended.status, ended.err.contains("compared")), (0, false), "{}", ended.err);
    let replay = format!("{line} --sizes N=700 --replay run.tape");
    folder.succeeds(&format!("{replay} --in K=uniform(0.1,1)"));
    folder.fails(&format!("{replay} --in K=uniform(0.1,2)"), 1, &["--in"]);
    // With inputs of both signs no element can be compared, which a warning says.
    for size in [40, 700] {
        let ended = folder.tilewright(&format!("{line} --sizes N={size}"));
        assert_eq!(ended.status, 0, "{}", ended.err);
        assert!(
            ended.err.contains("warning: ") && ended.err.contains("no element of P was compared"),
            "{}",
            ended.err
        );
    }
}
