//! Tests of `tilewright tune` on a device. PoCL, which runs OpenCL on the CPU, is sufficient.
//!
//! Without a device the tests print a message and are skipped. TILEWRIGHT_REQUIRE=opencl makes them
//! fail instead.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::sync::Arc;

use serde_json::Value;
use support::{Folder, PRODUCT};
use tilewright::cache::outcome::Trial;
use tilewright::runtime::gpu::DeviceInfo;
use tilewright::target::{Gpu, GpuApi};
use tilewright::tuner::bench::Plan;
use tilewright::tuner::measure::{Measurer, SupervisedWorker};
use tilewright::tuner::task::{ExecutionTarget, RecordedTask, Task};
use tilewright::tuner::worker::{WorkerCommand, WorkerError};

/// The first OpenCL device, if there is one.
fn device() -> Option<Gpu> {
    let found = DeviceInfo::find(GpuApi::OpenCl, 0);
    if let Err(error) = &found {
        let required = std::env::var("TILEWRIGHT_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|name| name == "opencl"), "opencl is required: {error}");
        eprintln!("skipped: {error}; `make setup-opencl` installs a device that needs no GPU");
    }
    found.ok().map(|found| found.gpu)
}

fn last(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn a_product_is_tuned_and_used_and_its_recording_replays() {
    let Some(gpu) = device() else { return };
    let folder = Folder::new();
    let product = "mm.tw --sizes M=20,K=24,N=17 --target opencl:0 --cache c.sqlite";
    let tune = format!("tune {product} --trials 3 --seed 5 --json");
    let out = folder.succeeds(&format!("{tune} --record run.tape --report run.html --out winner.sched"));
    let done = last(&out);
    assert_eq!((&done["event"], &done["trials"]), (&"done".into(), &3.into()), "{done}");
    assert_eq!((&done["target"], &done["device"]), (&"opencl:0".into(), &gpu.name.as_str().into()), "{done}");
    assert!(done["median_us"].as_f64().unwrap() <= 1.02 * done["default_us"].as_f64().unwrap(), "{done}");
    assert!(done["resources"].as_str().unwrap().contains("bytes shared"), "{done}");
    assert!(done["failures"].get("wrong-result").is_none(), "{done}");
    assert_eq!(done["peak_gflops"].as_f64().unwrap(), gpu.peak_flops() / 1e9);
    let page = fs::read_to_string(folder.path("run.html")).unwrap();
    assert!(page.contains("opencl:0") && page.contains("bind"), "{page}");

    let again = last(&folder.succeeds(&format!("{tune} --replay run.tape")));
    for field in ["median_us", "default_us", "one_shot_us", "trials", "failures", "resources", "schedule"] {
        assert_eq!(again[field], done[field], "{field}");
    }
    // A replay needs no device.
    let tape = fs::read_to_string(folder.path("run.tape")).unwrap();
    folder.write("far.tape", tape.replacen("\"ordinal\":0", "\"ordinal\":77", 1));
    let far = folder.succeeds(&format!("{} --replay far.tape", tune.replace("opencl:0", "opencl:77")));
    assert_eq!(last(&far)["schedule"], done["schedule"]);
    let other = tune.replace("--target opencl:0", "--threads 1");
    folder.fails(&format!("{other} --replay run.tape"), 1, &["--target opencl:0", "this run has cpu"]);

    let run = folder.tilewright(&format!("run {product} --check"));
    let said = ["tuned, from the cache", "default, which was the fastest when tuned"];
    assert!(run.status == 0 && said.iter().any(|said| run.err.contains(said)), "{}", run.err);
    let bench =
        |more: &str| last(&folder.succeeds(&format!("bench {product} --samples 1 --time 1ms --json {more}")));
    assert_eq!(bench("")["schedule_source"], "cache");
    assert_eq!(bench("--schedule default")["schedule_source"], "default");
    assert_eq!(bench("--schedule winner.sched")["schedule_source"], "file");
    // The records of the device do not count for the CPU.
    let elsewhere = product.replace("--target opencl:0", "--threads 1");
    assert!(folder.succeeds(&format!("cache explain {elsewhere}")).starts_with("miss: "));
}

#[test]
fn what_was_tuned_is_listed_shown_and_moved() {
    let Some(gpu) = device() else { return };
    let folder = Folder::new();
    let program = "double.tw --sizes N=3000 --target opencl:0";
    let text = folder.succeeds(&format!("tune {program} --trials 2 --cache c.sqlite"));
    for part in ["\n  resources ", "from the description of the device", &format!("opencl:0, {}", gpu.name)] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    folder.succeeds("cache export out.pb --cache c.sqlite");
    folder.succeeds("cache import out.pb --cache d.sqlite");
    let listed: Value = serde_json::from_str(&folder.succeeds("cache list --json --cache d.sqlite")).unwrap();
    assert_eq!(listed[0]["target"]["device"], "opencl", "{listed}");
    assert_eq!(listed[0]["target"]["model"], gpu.name.as_str(), "{listed}");
    let shown = last(&folder.succeeds(&format!("cache show {program} --json --cache d.sqlite")));
    let resources = shown["records"][0]["resources"].as_str().unwrap();
    assert!(resources.contains("bytes shared"), "{shown}");
    let shown = folder.succeeds(&format!("cache show {program} --cache d.sqlite"));
    assert!(shown.contains(resources), "{shown}");
    let explained = folder.succeeds(&format!("cache explain {program} --cache d.sqlite"));
    assert!(explained.starts_with("hit: ") && explained.contains("multiprocessors"), "{explained}");
}

fn task(place: ExecutionTarget) -> Task {
    let task = RecordedTask {
        source: PRODUCT.to_owned(),
        function: "mm".to_owned(),
        sizes: [("M", 24), ("K", 20), ("N", 33)].map(|(name, value)| (name.to_owned(), value)).to_vec(),
        target: place,
        seed: 3,
        contract: true,
    };
    task.task().unwrap()
}

fn started(place: ExecutionTarget) -> Result<SupervisedWorker, WorkerError> {
    let launch = WorkerCommand {
        program: env!("CARGO_BIN_EXE_tilewright").into(),
        arguments: vec!["worker".to_owned()],
        variables: Vec::new(),
    };
    SupervisedWorker::start(launch, task(place), Arc::default())
}

#[test]
fn a_worker_measures_on_a_device_and_refuses_what_it_has_no_room_for() {
    let Some(gpu) = device() else { return };
    let plan = Plan {
        reference: None,
        best_seconds: 0.0,
        first_call_limit: 1.0,
        call_limit: 1.0,
        samples: 2,
        time: 0.0,
        batch_limit: None,
    };
    let mut measurer = started(ExecutionTarget::Device { ordinal: 0, gpu: gpu.clone() }).unwrap();
    let wide = "split C.i -> ib, it:8\nsplit C.j -> jb, jt:8\nreorder C.ib, C.jb, C.it, C.jt, C.k\n\
                bind C.ib -> block.y\nbind C.jb -> block.x\nbind C.it -> thread.y\nbind C.jt -> thread.x";
    let huge = wide.replace(":8", ":100000");
    let schedules = [wide, &huge, "nonsense"].map(str::to_owned);
    let trials: Vec<Trial> =
        measurer.try_all(&schedules, &plan).unwrap().into_iter().map(|(_, trial)| trial).collect();
    let kinds: Vec<&str> = trials.iter().map(|trial| trial.outcome.name()).collect();
    assert_eq!(kinds, ["measured", "illegal", "illegal"], "{trials:?}");
    assert!(trials[0].resources.contains("bytes shared"), "{trials:?}");
    assert!(trials.iter().all(Trial::is_plausible));
    assert!(measurer.race(&schedules[..1], 5, 0.3).unwrap()[0].len() >= 5);
    assert_eq!(measurer.lost_workers(), 0);
    // A device whose properties have changed counts as another device.
    let other = Gpu { processors: gpu.processors + 1, ..gpu };
    assert!(matches!(
        started(ExecutionTarget::Device { ordinal: 0, gpu: other }),
        Err(WorkerError::Refused(_))
    ));
}

#[test]
fn what_makes_no_sense_for_a_device_is_refused() {
    let folder = Folder::new();
    let line = "tune mm.tw --sizes M=8,K=8,N=8 --trials 1 --target";
    folder.fails(&format!("{line} opencl:99"), 3, &["opencl"]);
    folder.fails(&format!("{line} interp"), 2, &["--target interp has none"]);
    folder.fails(&format!("{line} cpu,"), 2, &["there is no target"]);
    folder.fails(&format!("{line} cpu,cpu"), 2, &["cpu twice"]);
    folder.fails("cache show mm.tw --sizes M=8,K=8,N=8 --target interp", 2, &["--target interp"]);
    if device().is_none() {
        return;
    }
    folder.fails(&format!("{line} opencl:0 --threads 1"), 2, &["--threads is for --target cpu"]);
    folder.fails(&format!("{line} opencl:0 --vectors avx2"), 2, &["--vectors is for --target cpu"]);
    folder.fails(&format!("{line} opencl:0,opencl:0"), 2, &["opencl:0 twice"]);
    folder.fails(&format!("{line} cpu,opencl:0"), 2, &["not devices of one model"]);
}
