//! Tests of the output of `tilewright tune`: its summary, its report page, and recordings that
//! replay.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use serde_json::Value;
use support::Folder;

const TUNE: &str = "tune mm.tw --sizes M=40,K=33,N=37 --threads 1 --cache c.sqlite";

fn done(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn the_summary_tells_peaks_and_where_the_time_went() {
    let folder = Folder::new();
    let object = done(&folder.succeeds(&format!("{TUNE} --trials 6 --json")));
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("{object}"));
    assert!(number(&object["peak_gflops"]) > 0.0 && number(&object["peak_gbs"]) > 0.0);
    assert!(number(&object["share_of_limit"]) > 0.0, "{object}");
    let spent = object["time_spent"].as_object().unwrap();
    let whole: f64 = spent.values().map(number).sum();
    assert!((whole - number(&object["seconds"])).abs() < 1e-6, "{object}");
    for part in ["ranking", "proposing", "proving", "compiling", "measuring", "finals", "other"] {
        assert!(number(&spent[part]) >= 0.0, "{object}");
    }
    assert!(number(&spent["compiling"]) > 0.0 && number(&spent["measuring"]) > 0.0, "{object}");
    // Peaks are measured once, and an invalid file is replaced.
    let path = folder.path("data/tilewright/peaks.json");
    let kept: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    assert_eq!(kept[0]["threads"], 1);
    fs::write(&path, "[{").unwrap();
    let text = folder.succeeds(&format!("{TUNE} --trials 2"));
    for part in ["\n  peak ", "% of ", "\n  time       ranking ", "\n  trials     2 in "] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap();
}

#[test]
fn a_page_is_well_formed_and_stands_alone() {
    let folder = Folder::with_peaks();
    folder.write(
        "odd.tw",
        "# <script>alert('&')</script>\ndef odd(float(N,M) A) -> (C) { C(n) +=! (A(n,m) < 0.5 && 1 > 0) ? A(n,m) : 0.0 }\n",
    );
    let line = "tune odd.tw --sizes N=50,M=60 --threads 1 --cache c.sqlite --trials 8 --seed 11 --json";
    let object = done(&folder.succeeds(&format!("{line} --report run.html")));
    let page = fs::read_to_string(folder.path("run.html")).unwrap();
    expect_well_formed(&page);
    assert!(page.contains("&lt;script&gt;alert(&#39;&amp;&#39;)"), "{page}");
    for elsewhere in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"] {
        assert!(!page.contains(elsewhere), "{elsewhere}");
    }
    // Every trial, the default schedule, and perhaps the first choice of the cost model.
    let drawn = page.matches("class=\"trial\"").count() + page.matches("class=\"failed\"").count();
    assert!(drawn > object["trials"].as_u64().unwrap() as usize, "{drawn}");
    for part in [
        "the default schedule, after ",
        "class=\"best\"",
        "<p>Proof: ",
        "seed</th><td>11<",
        "--report run.html",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    for step in object["schedule"].as_str().unwrap().lines() {
        assert!(page.contains(&step.replace('>', "&gt;")), "{step}");
    }
}

/// Checks that every element is closed in the right order, and that text is escaped.
fn expect_well_formed(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "{}", &rest[..start]);
        let end = start + rest[start..].find('>').unwrap();
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "{tag}");
        match (tag.strip_prefix('/'), tag.ends_with('/')) {
            (Some(name), _) => assert_eq!(open.pop(), Some(name)),
            (None, true) => {}
            (None, false) => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    for entity in page.split('&').skip(1) {
        assert!(["amp;", "lt;", "gt;", "quot;", "#39;"].iter().any(|known| entity.starts_with(known)));
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_the_search() {
    let folder = Folder::new();
    for option in ["--report", "--record"] {
        folder.fails(&format!("{TUNE} {option} nowhere/run"), 1, &["nowhere/run", "cannot be written"]);
        folder.fails(&format!("{TUNE} {option} ."), 1, &[&format!("{option} . cannot be written")]);
    }
    let left = fs::read_dir(folder.path("")).unwrap();
    let left = left.filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with('.'));
    assert_eq!(left.count(), 0);
}

/// The parts of the output that a replay must repeat: the trials without their times of day, and
/// the outcome.
fn essence(out: &str) -> (Vec<Value>, Value) {
    let mut lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let mut done = lines.pop().unwrap();
    for line in lines.iter_mut().chain([&mut done]) {
        line.as_object_mut().unwrap().remove("seconds");
    }
    done.as_object_mut().unwrap().remove("time_spent");
    (lines, done)
}

/// Runs `work` while every core is busy.
fn under_load<T>(work: impl FnOnce() -> T) -> T {
    struct Done<'a>(&'a AtomicBool);
    impl Drop for Done<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        // The other threads end however `work` ends.
        let _done = Done(&done);
        for _ in 0..2 * thread::available_parallelism().unwrap().get() {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    spin_loop();
                }
            });
        }
        work()
    })
}

#[test]
fn a_recorded_run_replays_to_the_same_winner() {
    let folder = Folder::with_peaks();
    // A cache that has records to start from, and more records after the run than before.
    folder.succeeds(&format!("{TUNE} --trials 3"));
    for budget in ["--trials 20 --seed 5", "--time 3s"] {
        let line = format!("{TUNE} --json {budget}");
        let recorded = folder.succeeds(&format!("{line} --record run.tape --out recorded.sched"));
        let cache = fs::read(folder.path("c.sqlite")).unwrap();
        let replayed = folder.succeeds(&format!("{line} --replay run.tape --report replay.html"));
        assert_eq!(essence(&recorded), essence(&replayed), "{budget}");
        let slow = under_load(|| folder.succeeds(&format!("{line} --replay run.tape --out replayed.sched")));
        assert_eq!(slow, replayed, "{budget}");
        let schedule = |name: &str| fs::read(folder.path(name)).unwrap();
        assert_eq!(schedule("recorded.sched"), schedule("replayed.sched"), "{budget}");
        assert_eq!(fs::read(folder.path("c.sqlite")).unwrap(), cache, "{budget}");
        expect_well_formed(&fs::read_to_string(folder.path("replay.html")).unwrap());
    }
}

#[test]
fn a_recording_of_something_else_is_refused() {
    let folder = Folder::with_peaks();
    folder.succeeds(&format!("{TUNE} --trials 3 --record run.tape"));
    let line = format!("{TUNE} --trials 3 --replay");
    let other = |options: &str, parts: &[&str]| folder.fails(&format!("{line} {options}"), 1, parts);
    other("run.tape --seed 1", &["--seed 0", "this run has 1"]);
    other("run.tape --strategy random", &["--strategy gbfs", "this run has random"]);
    other("run.tape --vectors baseline", &["--vectors", "this run has baseline"]);
    other("missing.tape", &["missing.tape"]);
    folder.fails(&format!("{TUNE} --trials 3 --replay run.tape --record again.tape"), 2, &["--record"]);
    let tape = fs::read_to_string(folder.path("run.tape")).unwrap();
    let lines: Vec<&str> = tape.lines().collect();
    folder.write("none.tape", "{}\n");
    other("none.tape", &["this file is not a recording"]);
    folder.write("new.tape", tape.replacen("\"version\":3", "\"version\":7", 1));
    other("new.tape", &["version 7"]);
    folder.write("cut.tape", lines[..lines.len() - 1].join("\n"));
    other("cut.tape", &["the recording is incomplete"]);
    folder.write("torn.tape", &tape[..tape.len() - 20]);
    other("torn.tape", &[&format!("line {} is invalid", lines.len())]);
    folder.write("early.tape", tape.replacen("\"at\":", "\"at\":-", 1));
    other("early.tape", &["line 2 is invalid"]);
    // A schedule that was never measured has no answer.
    folder.write("gap.tape", [&lines[..2], &lines[3..]].concat().join("\n"));
    other("gap.tape", &["the recording has no answer for this schedule"]);
    folder.write("mm.tw", "# Another text.\n".to_owned() + support::PRODUCT);
    other("run.tape", &["another program text"]);
}

#[test]
fn a_recording_with_other_inputs_is_refused() {
    let folder = Folder::with_peaks();
    folder.floats("x.npy", &[3], &[1.0, 2.0, 3.0]);
    folder.floats("other.npy", &[3], &[1.0, 2.0, 4.0]);
    let line = "tune double.tw --threads 1 --cache c.sqlite --trials 1";
    folder.succeeds(&format!("{line} --in x=x.npy --record run.tape"));
    folder.succeeds(&format!("{line} --in x=x.npy --replay run.tape"));
    let refused = |inputs: &str, parts: &[&str]| {
        folder.fails(&format!("{line} {inputs} --replay run.tape"), 1, parts);
    };
    refused("--in x=other.npy", &["this recording has --in x (", "this run has x ("]);
    refused("--sizes N=3", &["this recording has --in x (", "this run has none"]);
    // The recording does not contain the path of the worker's input files.
    let tape = fs::read_to_string(folder.path("run.tape")).unwrap();
    assert!(!tape.contains(&std::env::temp_dir().display().to_string()), "{tape}");
}
