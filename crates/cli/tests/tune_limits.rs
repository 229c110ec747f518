//! Tests of `tilewright tune` with obstacles: signals, files that cannot be written, a full disk.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{CommandOutput, Folder};

const TUNE: &str = "tune mm.tw --sizes M=70,K=64,N=67 --threads 1 --json";

/// The last JSON object of a run, which must exist.
#[track_caller]
fn done(out: &str) -> Value {
    let done: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(done["event"], "done", "{out}");
    done
}

#[test]
fn signals_end_the_search_and_keep_the_best() {
    for signals in [1, 2] {
        let folder = Folder::with_peaks();
        let begun = Instant::now();
        let mut command = folder.command(&format!("{TUNE} --time 60s"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let searching = |line: &String| line.contains("\"search\"");
        assert!(lines.by_ref().map(Result::unwrap).any(|line| searching(&line)));
        for _ in 0..signals {
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
            // Signals that arrive together count as one.
            std::thread::sleep(Duration::from_millis(100));
        }
        let last = lines.map(Result::unwrap).last().unwrap();
        assert!(done(&last)["trials"].as_u64().unwrap() > 0);
        assert!(child.wait().unwrap().success());
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        let listed = folder.succeeds("cache list --json");
        assert!(listed.contains("best_us"), "{listed}");
    }
}

#[test]
fn what_cannot_be_written_is_said_before_the_search() {
    let folder = Folder::new();
    fs::create_dir(folder.path("dir")).unwrap();
    for out in ["missing/p.sched", "dir", "mm.tw/p.sched"] {
        let parts = [&format!("--out {out} cannot be written")[..]];
        folder.fails(&format!("{TUNE} --out {out} --cache c.sqlite"), 1, &parts);
    }
    let refusal = "`grid` tries all points of spaces with at most";
    folder.fails(&format!("{TUNE} --strategy grid --cache c.sqlite"), 2, &[refusal]);
    assert!(!folder.path("c.sqlite").exists());
    folder.fails(&format!("{TUNE} --cache mm.tw/c.sqlite"), 1, &["cannot use mm.tw"]);
    folder.fails(&format!("{TUNE} --cache mm.tw"), 1, &["mm.tw is not a cache of Tilewright"]);
}

#[test]
fn the_schedule_takes_the_place_of_an_older_one_as_a_whole() {
    let folder = Folder::with_peaks();
    folder.write("p.sched", "nonsense\n".repeat(1000));
    std::os::unix::fs::symlink("p.sched", folder.path("link.sched")).unwrap();
    let out = folder.succeeds(&format!("{TUNE} --trials 1 --out link.sched"));
    let schedule = fs::read_to_string(folder.path("p.sched")).unwrap();
    assert_eq!(schedule, done(&out)["schedule"].as_str().unwrap());
    assert!(folder.path("link.sched").is_symlink());
    let left = fs::read_dir(folder.0.path()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with(".tilewright-")));
}

#[test]
fn without_a_place_for_the_cache_the_search_goes_on() {
    let folder = Folder::new();
    let line = TUNE.replace(" --json", " --trials 2");
    // A folder below a file cannot be created, even by root.
    let output = folder.command(&line).env("XDG_DATA_HOME", folder.path("mm.tw")).output().unwrap();
    let ended = CommandOutput::new(&line, output);
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(ended.err.matches("warning").count(), 1, "{}", ended.err);
    assert!(ended.err.contains("the search stores no records"), "{}", ended.err);
    assert!(ended.out.contains("cache      no records were stored: cannot use"), "{}", ended.out);
    assert!(ended.out.contains("trials     2 in"), "{}", ended.out);
}

/// A file system of 144 kilobytes, which is unmounted on drop.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns `None` if this machine does not permit mounting.
    fn mount(path: PathBuf) -> Option<SmallDisk> {
        fs::create_dir(&path).unwrap();
        let mounted =
            Command::new("mount").args(["-t", "tmpfs", "-o", "size=144k", "tmpfs"]).arg(&path).output();
        mounted.is_ok_and(|output| output.status.success()).then_some(SmallDisk(path))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).output();
    }
}

#[test]
fn a_full_disk_does_not_end_the_search() {
    let folder = Folder::with_peaks();
    let Some(disk) = SmallDisk::mount(folder.path("disk")) else {
        println!("SKIPPED: no small file system can be mounted here");
        return;
    };
    let ended = folder.tilewright(&format!("{TUNE} --trials 30 --cache disk/c.sqlite"));
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert_eq!(ended.err.matches("warning").count(), 1, "{}", ended.err);
    assert!(ended.err.contains("the disk is full"), "{}", ended.err);
    assert_eq!(done(&ended.out)["trials"], 30);
    // The records from before are intact: opening the file checks it.
    let listed: Value =
        serde_json::from_str(&folder.succeeds("cache list --json --cache disk/c.sqlite")).unwrap();
    assert!((1..30).contains(&listed[0]["trials"].as_u64().unwrap()), "{listed}");
    folder.succeeds("bench mm.tw --sizes M=70,K=64,N=67 --threads 1 --time 1ms --cache disk/c.sqlite");
    drop(disk);
}

/// A template replaces the analysis, also in a replay.
#[test]
fn a_template_is_searched_in_the_place_of_the_analysis() {
    let folder = Folder::with_peaks();
    folder.write("t.template", "knob u = one of 2, 4\nsplit C.i -> io, ii:{u}\nunroll C.ii\n");
    folder.write("other.template", "knob u = one of 2, 8\nsplit C.i -> io, ii:{u}\n");
    let line = format!("{TUNE} --trials 5 --template t.template");
    let measured = done(&folder.succeeds(&format!("{line} --record a.tape")));
    // The template has two points. The first choice of the cost model does not count as a trial.
    assert_eq!(measured["trials"], 1);
    assert_eq!(done(&folder.succeeds(&format!("{line} --replay a.tape")))["schedule"], measured["schedule"]);
    let other = line.replace("t.template", "other.template");
    folder.fails(&format!("{other} --replay a.tape"), 1, &["--template"]);
    folder.write("bad.template", "knob u = one of x\n");
    let bad = line.replace("t.template", "bad.template");
    folder.fails(&bad, 1, &["the template cannot be used: line 1: `one of` takes whole numbers"]);
}
