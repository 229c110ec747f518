//! Tests of `tilewright cache` by its command line.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;
use std::process::Command;

use serde_json::Value;
use support::{CommandOutput, Folder, PRODUCT};
use tilewright::cache::{Cache, Canonical, Outcome, TOOL_VERSION, TargetFingerprint, TuningRecord};
use tilewright::default_schedule;
use tilewright::syntax::{check, parse};
use tilewright::target::{Cpu, host_model};

/// A record of the default schedule of a product on this machine, with one thread.
fn record(source: &str, sizes: [(&str, i64); 3], seconds: f64) -> TuningRecord {
    let parsed = parse(source);
    let function = &parsed.ast.functions[0].name.text;
    let own = check(&parsed.ast, function, &sizes.into_iter().collect()).program.unwrap();
    let cpu = Cpu { cores: 1, ..Cpu::host() };
    let canonical = Canonical::new(&own);
    let schedule = canonical.to_canonical(&default_schedule(&own, &cpu), &cpu);
    TuningRecord {
        program: canonical.key(&TargetFingerprint::of_hardware(&cpu, &host_model()), 1),
        title: canonical.title(),
        schedule: schedule.schedule.to_string(),
        strategy: "genetic".to_owned(),
        outcome: Outcome::Measured,
        samples: vec![seconds],
        resources: String::new(),
        features: Vec::new(),
        tool_version: TOOL_VERSION.to_owned(),
        time: 1_700_000_000,
        seed: Some(3),
        trial: Some(17),
    }
}

fn product(m: i64, seconds: f64) -> TuningRecord {
    record(PRODUCT, [("M", m), ("K", 32), ("N", 48)], seconds)
}

/// A folder with programs and a cache `c.sqlite`, which has three candidates of one size and one of
/// another.
fn tuned() -> Folder {
    let folder = Folder::new();
    let cache = Cache::open(&folder.path("c.sqlite")).unwrap();
    let failed = TuningRecord {
        outcome: Outcome::Illegal("step 2: \u{1b}[31mno".to_owned()),
        samples: Vec::new(),
        ..product(64, 1.0)
    };
    let default = TuningRecord { trial: Some(0), ..product(64, 12.5e-6) };
    for record in [product(64, 25e-6), default, failed, product(128, 1e-3)] {
        cache.insert(&record).unwrap();
    }
    folder
}

#[test]
fn list_is_a_table_of_programs() {
    let folder = tuned();
    let out = folder.succeeds("cache list --cache c.sqlite");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 3, "{out}");
    assert!(lines[0].starts_with("PROGRAM") && lines[0].ends_with("LAST (UTC)"), "{out}");
    let line = lines.iter().find(|line| line.starts_with("mm M=64,K=32,N=48 ")).unwrap();
    let cells: Vec<&str> = line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect();
    assert_eq!(cells[2..], ["1", "3", "2", "12.50 us", "2023-11-14 22:13:20"], "{out}");
    let json: Value = serde_json::from_str(&folder.succeeds("cache list --cache c.sqlite --json")).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2);
    let row = json.as_array().unwrap().iter().find(|row| row["sizes"]["s0"] == 64).unwrap();
    assert_eq!((&row["trials"], &row["measured"], &row["threads"]), (&3.into(), &2.into(), &1.into()));
    assert_eq!((row["best_us"].as_f64(), row["target"]["device"].as_str()), (Some(12.5), Some("cpu")));
}

#[test]
fn show_gives_the_best_schedule_in_the_programs_own_names() {
    let folder = tuned();
    folder.write("other.tw", "def gemm(float(X,Y) P, float(Y,Z) Q) -> (R) { R(a,b) +=! P(a,c) * Q(c,b) }\n");
    let out = folder.succeeds("cache show other.tw --sizes X=64,Y=32,Z=48 --threads 1 --cache c.sqlite");
    assert!(out.starts_with("gemm X=64,Y=32,Z=48 on cpu "), "{out}");
    assert!(out.contains("trials    3: 1 illegal, 2 measured\n"), "{out}");
    assert!(
        out.contains("12.50 us") && out.contains("genetic") && out.contains("illegal step 2:  [31mno"),
        "{out}"
    );
    // The printed schedule can be used with --schedule.
    let steps = out.split("as --schedule takes it\n").nth(1).unwrap();
    assert!(steps.contains("R.") && !steps.contains("t2."), "{out}");
    folder.write("best.sched", steps);
    folder.succeeds("run other.tw --sizes X=64,Y=32,Z=48 --threads 1 --schedule best.sched --check");
    let json = folder.succeeds("cache show mm.tw --sizes M=64,K=32,N=48 --threads 1 --cache c.sqlite --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["records"].as_array().unwrap().len(), 3);
    assert_eq!(json["records"][0]["median_us"], 12.5);
    assert!(json["records"][0]["schedule"].as_str().unwrap().contains("C."));
    folder.fails(
        "cache show mm.tw --sizes M=65,K=32,N=48 --threads 1 --cache c.sqlite",
        1,
        &["no records of mm M=65,K=32,N=48", "cache explain"],
    );
}

#[test]
fn explain_says_hit_or_what_differs() {
    let folder = tuned();
    let at = |m: i64, threads: usize| {
        folder.succeeds(&format!(
            "cache explain mm.tw --sizes M={m},K=32,N=48 --threads {threads} --cache c.sqlite"
        ))
    };
    let hit = at(64, 1);
    assert!(hit.starts_with("hit: mm M=64,K=32,N=48 on cpu ") && hit.contains("time      12.50 us"), "{hit}");
    let miss = at(96, 2);
    assert!(miss.starts_with("miss: nothing was measured for mm M=96,K=32,N=48 on cpu "), "{miss}");
    for part in [
        "mm M=128,K=32,N=48: 1 trial, best 1.000 ms",
        "mm M=64,K=32,N=48: 3 trials, best 12.50 us",
        "M        96 here, 128 in the record",
        "threads  2 here, 1 in the record",
    ] {
        assert!(miss.contains(part), "{part}\n{miss}");
    }
    folder.write("d.tw", PRODUCT.replace("float", "double"));
    let other = folder.succeeds("cache explain d.tw --sizes M=64,K=32,N=48 --threads 1 --cache c.sqlite");
    assert!(
        other.contains("program  `t0 input float64(s0, s1)` here, `t0 input float32(s0, s1)` in the record"),
        "{other}"
    );
    let json =
        folder.succeeds("cache explain mm.tw --sizes M=96,K=32,N=48 --threads 1 --cache c.sqlite --json");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["hit"], &json["nearest"][0]["differences"][0]["field"]), (&false.into(), &"M".into()));
    folder.fails("cache explain mm.tw --cache c.sqlite", 1, &["needs values for M, K, N"]);
    folder.fails("cache explain mm.tw --sizes Q=1 --cache c.sqlite", 1, &["no size or integer scalar Q"]);
}

/// Schedules that are recorded as the fastest, but cannot be used. One has an unknown loop; the
/// other is refused only after all its steps.
const UNUSABLE: [&str; 2] = [
    "vectorize t2.v9",
    "split t2.v0 -> v0_0, v0_1:40\nsplit t2.v1 -> v1_0, v1_1:4\nreorder t2.v0_0, t2.v1_0, t2.v2, t2.v0_1, t2.v1_1\n\
     unroll t2.v0_1\nvectorize t2.v1_1\npromote t2 at t2.v1_0 -> acc registers",
];

#[test]
fn records_that_cannot_be_used_are_passed_over() {
    let folder = tuned();
    let cache = Cache::open(&folder.path("c.sqlite")).unwrap();
    for (at, schedule) in UNUSABLE.iter().enumerate() {
        // A schedule that was measured twice is reported once.
        for trial in 0..2 {
            let seconds = (at + 1) as f64 * 1e-6;
            let schedule = schedule.to_string();
            cache.insert(&TuningRecord { schedule, trial: Some(trial), ..product(64, seconds) }).unwrap();
        }
    }
    let line = "mm.tw --sizes M=64,K=32,N=48 --threads 1 --cache c.sqlite";
    let ended = folder.tilewright(&format!("run {line} --check"));
    assert_eq!(ended.status, 0, "{}", ended.err);
    // The default schedule is the best usable record.
    assert!(
        ended.err.contains("schedule: default, which was the fastest when tuned: 12.50 us\n"),
        "{}",
        ended.err
    );
    assert_eq!(ended.err.matches("skipped: a record with ").count(), 2, "{}", ended.err);
    assert!(ended.err.contains("skipped: a record with 1.000 us cannot be used: "), "{}", ended.err);
    assert!(ended.err.contains("registers"), "{}", ended.err);
    let bench: Value =
        serde_json::from_str(&folder.succeeds(&format!("bench {line} --time 1ms --json"))).unwrap();
    assert_eq!(bench["schedule_source"], "cache");
    assert_eq!(bench["skipped"].as_array().unwrap().len(), 2);
    assert_eq!(bench["skipped"][1]["median_us"], 2.0);
    let table = folder.succeeds(&format!("bench {line} --time 1ms"));
    assert_eq!(table.matches("\n  skipped   a record with").count(), 2, "{table}");
    let explained = folder.succeeds(&format!("cache explain {line}"));
    assert!(
        explained.contains("time      12.50 us") && explained.contains("skipped   a record with 2.000 us"),
        "{explained}"
    );
    let json: Value =
        serde_json::from_str(&folder.succeeds(&format!("cache explain {line} --json"))).unwrap();
    assert_eq!((&json["hit"], json["skipped"].as_array().unwrap().len()), (&true.into(), 2));
}

#[test]
fn nothing_usable_leaves_the_default_schedule() {
    let folder = Folder::new();
    let cache = Cache::open(&folder.path("c.sqlite")).unwrap();
    cache.insert(&TuningRecord { schedule: UNUSABLE[0].to_owned(), ..product(64, 1e-6) }).unwrap();
    let line = "mm.tw --sizes M=64,K=32,N=48 --threads 1";
    let ended = folder.tilewright(&format!("run {line} --cache c.sqlite"));
    assert!(ended.err.contains("schedule: default\nskipped: a record with 1.000 us"), "{}", ended.err);
    let miss = folder.succeeds(&format!("cache explain {line} --cache c.sqlite"));
    assert!(miss.starts_with("miss: ") && miss.contains("none of these records can be used"), "{miss}");
    assert!(miss.contains("skipped   a record with 1.000 us cannot be used"), "{miss}");
    // A missing cache has no records, and is not created.
    let bench: Value =
        serde_json::from_str(&folder.succeeds(&format!("bench {line} --time 1ms --json --cache new.sqlite")))
            .unwrap();
    assert_eq!(bench["schedule_source"], "default");
    assert_eq!(bench["schedule"], "default: there is no cache at new.sqlite");
    assert!(!folder.path("new.sqlite").exists());
}

#[test]
fn records_move_between_caches() {
    let folder = tuned();
    assert_eq!(folder.succeeds("cache export out.pb --cache c.sqlite"), "4 records written to out.pb\n");
    let import = "cache import out.pb --cache new/d.sqlite";
    assert_eq!(folder.succeeds(import), "out.pb: 4 records added to new/d.sqlite, 0 already there\n");
    assert_eq!(folder.succeeds(import), "out.pb: 0 records added to new/d.sqlite, 4 already there\n");
    let merged = folder.succeeds("cache merge c.sqlite new/d.sqlite --cache e.sqlite");
    assert_eq!(
        merged,
        "c.sqlite: 4 records added to e.sqlite, 0 already there\nnew/d.sqlite: 0 records added to e.sqlite, 4 already there\n"
    );
    let whole = fs::read(folder.path("out.pb")).unwrap();
    folder.write("cut.pb", &whole[..whole.len() - 3]);
    folder.fails(
        "cache import cut.pb --cache f.sqlite",
        1,
        &["cut.pb cannot be imported", "nothing was imported"],
    );
    folder.fails(
        "cache import mm.tw --cache f.sqlite",
        1,
        &["mm.tw cannot be imported: it is not an export"],
    );
    folder.fails("cache import nowhere.pb --cache f.sqlite", 1, &["cannot use nowhere.pb"]);
    folder.fails("cache merge mm.tw --cache f.sqlite", 1, &["mm.tw is not a cache of Tilewright"]);
    folder.fails("cache import --cache f.sqlite", 2, &["<FILE>"]);
}

#[test]
fn clear_wants_a_condition_or_a_yes() {
    let folder = tuned();
    let left = || folder.succeeds("cache list --cache c.sqlite --json").matches("best_us").count();
    folder.fails(
        "cache clear --cache c.sqlite",
        2,
        &["all 4 records of c.sqlite: give --yes, or a condition"],
    );
    folder.fails("cache clear --sizes M=3 --cache c.sqlite", 2, &["FILE[:NAME]"]);
    assert_eq!(folder.succeeds("cache clear --failed --cache c.sqlite"), "1 record removed from c.sqlite\n");
    assert_eq!(
        folder.succeeds("cache clear --threads 9 --cache c.sqlite"),
        "0 records removed from c.sqlite\n"
    );
    assert_eq!(
        folder.succeeds("cache clear --damaged --cache c.sqlite"),
        "0 records removed from c.sqlite\n"
    );
    let one = "cache clear mm.tw --sizes M=128,K=32,N=48 --cache c.sqlite";
    assert_eq!((folder.succeeds(one).as_str(), left()), ("1 record removed from c.sqlite\n", 1));
    assert_eq!(
        folder.succeeds("cache clear double.tw --cache c.sqlite"),
        "0 records removed from c.sqlite\n"
    );
    assert_eq!(
        folder.succeeds("cache clear mm.tw --older-than 1d --cache c.sqlite"),
        "2 records removed from c.sqlite\n"
    );
    assert_eq!(left(), 0);
    assert_eq!(folder.succeeds("cache clear --yes --cache c.sqlite"), "0 records removed from c.sqlite\n");
    folder.fails("cache clear --older-than soon --cache c.sqlite", 2, &["--older-than"]);
}

#[test]
fn files_that_are_no_caches_are_refused() {
    let folder = tuned();
    fs::create_dir(folder.path("dir")).unwrap();
    for command in ["list", "clear --yes", "explain mm.tw --sizes M=1,K=1,N=1", "export out.pb"] {
        folder.fails(&format!("cache {command} --cache mm.tw"), 1, &["mm.tw is not a cache of Tilewright"]);
        folder.fails(&format!("cache {command} --cache dir"), 1, &["dir is a folder"]);
        folder.fails(
            &format!("cache {command} --cache missing.sqlite"),
            1,
            &["there is no cache at missing.sqlite"],
        );
    }
    assert!(!folder.path("missing.sqlite").exists());
    assert_eq!(fs::read_to_string(folder.path("mm.tw")).unwrap(), PRODUCT);
}

#[test]
fn without_a_cache_nothing_is_made() {
    let folder = Folder::new();
    let run = |line: &str| {
        let output = folder.command(line).env("XDG_DATA_HOME", folder.path("data")).output().unwrap();
        CommandOutput::new(line, output)
    };
    let listed = run("cache list");
    assert_eq!(listed.status, 0, "{}", listed.err);
    assert!(
        listed.out.contains("no program was tuned yet")
            && listed.out.contains("data/tilewright/cache.sqlite")
    );
    assert_eq!(run("cache list --json").out, "[]\n");
    assert!(
        run("cache explain mm.tw --sizes M=1,K=1,N=1")
            .out
            .contains("miss: nothing was measured for mm M=1,K=1,N=1")
    );
    assert_eq!(run("cache clear --yes").status, 0);
    assert_eq!(run("cache export out.pb").status, 1);
    assert!(!folder.path("data").exists());
    Cache::open(&folder.path("c.sqlite")).unwrap().insert(&product(64, 1.0)).unwrap();
    assert_eq!(run("cache merge c.sqlite").status, 0);
    assert!(folder.path("data/tilewright/cache.sqlite").exists());
    assert!(run("cache list").out.contains("mm M=64"));
}

/// Runs the command as a user without write permission in the folder. `None` if this machine cannot
/// switch users.
fn as_reader(folder: &Folder, line: &str) -> Option<CommandOutput> {
    let binary = env!("CARGO_BIN_EXE_tilewright");
    let drop = ["--reuid=65534", "--regid=65534", "--clear-groups", binary];
    let reader = || {
        let mut command = Command::new("setpriv");
        command.args(drop).current_dir(folder.0.path());
        command
    };
    let works = reader().arg("--version").output().is_ok_and(|output| output.status.success());
    works.then(|| CommandOutput::new(line, reader().args(line.split_whitespace()).output().unwrap()))
}

#[cfg(unix)]
#[test]
fn a_cache_that_may_only_be_read_can_be_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tuned();
    fs::set_permissions(folder.0.path(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(folder.path("c.sqlite"), fs::Permissions::from_mode(0o644)).unwrap();
    let before = fs::read(folder.path("c.sqlite")).unwrap();
    let Some(listed) = as_reader(&folder, "cache list --cache c.sqlite") else {
        println!("SKIPPED: there is no other user to run as here");
        return;
    };
    assert_eq!(listed.status, 0, "{}", listed.err);
    assert!(listed.out.contains("mm M=64,K=32,N=48"), "{}", listed.out);
    for line in ["cache clear --yes --cache c.sqlite", "cache merge c.sqlite --cache new.sqlite"] {
        let ended = as_reader(&folder, line).unwrap();
        assert_eq!(ended.status, 3, "{line}: {}", ended.err);
        assert!(ended.err.contains("is read-only"), "{line}: {}", ended.err);
    }
    // A cache that the user names must be usable.
    let tune = "tune mm.tw --sizes M=64,K=32,N=48 --threads 1 --trials 1 --json --cache c.sqlite";
    let ended = as_reader(&folder, tune).unwrap();
    assert_eq!((ended.status, ended.out.as_str()), (3, ""), "{}", ended.err);
    assert!(ended.err.contains("is read-only"), "{}", ended.err);
    assert!(fs::read(folder.path("c.sqlite")).unwrap() == before);
}
