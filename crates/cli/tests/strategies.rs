//! Tests of `tilewright strategies compare`: measuring, recording, replaying and drawing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;

use serde_json::Value;
use support::Folder;

const COMPARE: &str =
    "strategies compare mm.tw --sizes M=70,K=64,N=67 --threads 1 --seeds 2 --strategies random,gbfs,trees";

/// A template with 4 points.
const SMALL: &str = "knob u = one of 2, 4\nknob v = one of 8, 16\nsplit C.i -> io, ii:{u}\nsplit C.j -> jo, ji:{v}\n\
                     reorder C.io, C.jo, C.k, C.ii, C.ji\nvectorize C.ji\nunroll C.ii\n";

/// The outcome without the times of this run.
fn found(out: &str) -> Value {
    let mut found = serde_json::from_str::<Value>(out).unwrap()["found"].take();
    found.as_object_mut().unwrap().remove("about");
    let searches = found["programs"][0]["strategies"].as_array_mut().unwrap();
    for search in searches.iter_mut().flat_map(|own| own["searches"].as_array_mut().unwrap()) {
        search.as_object_mut().unwrap().retain(|name, _| name != "seconds" && name != "thinking");
        for best in search["bests"].as_array_mut().unwrap() {
            best.as_object_mut().unwrap().remove("after");
        }
    }
    found
}

#[test]
fn a_recording_replays_to_the_same_searches() {
    let folder = Folder::new();
    let measured = folder.succeeds(&format!("{COMPARE} --trials 8 --record a.tape --json"));
    let replayed =
        "strategies compare --replay a.tape --seeds 2 --strategies random,gbfs,trees --trials 8 --json";
    let replayed = folder.succeeds(replayed);
    assert_eq!(found(&measured), found(&replayed));
    // Recorded measurements are not repeated: the file changes only by the line that names the
    // program.
    let before = fs::read_to_string(folder.path("a.tape")).unwrap();
    let again = folder.succeeds(&format!("{COMPARE} --trials 8 --record a.tape --json"));
    let after = fs::read_to_string(folder.path("a.tape")).unwrap();
    assert_eq!((after.lines().count(), found(&again)), (before.lines().count() + 1, found(&measured)));
}

#[test]
fn seeds_can_be_chosen() {
    let folder = Folder::new();
    let line = "strategies compare mm.tw@M=8,K=8,N=8 --threads 1 --strategies random --trials 4 --exhaustive 0 --record a.tape --json";
    let one_by_one = ["2-2", "3-3"].map(|seeds| found(&folder.succeeds(&format!("{line} --seeds {seeds}"))));
    let both = found(&folder.succeeds(&format!("{line} --seeds 2-3")));
    // Candidates near the best are measured again in every run, so only the proposals are the same.
    let searches = |found: &Value| {
        let searches = found["programs"][0]["strategies"][0]["searches"].as_array().unwrap().clone();
        let numbers = |own: Value| ["seed", "trials", "proposals"].map(|name| own[name].as_u64().unwrap());
        searches.into_iter().map(numbers).collect::<Vec<_>>()
    };
    let apart = one_by_one.iter().flat_map(searches).collect::<Vec<_>>();
    assert_eq!((apart[0][0], apart[1][0]), (2, 3));
    assert_eq!(apart, searches(&both));
}

#[test]
fn what_a_recording_does_not_have_is_told() {
    let folder = Folder::new();
    folder.succeeds(&format!("{COMPARE} --trials 3 --record a.tape --json"));
    let more =
        folder.tilewright("strategies compare --replay a.tape --seeds 2 --strategies random --trials 30");
    assert_eq!(more.status, 0);
    assert!(more.err.contains("are not in the recording and count as failed"), "{}", more.err);
    folder.fails(
        "strategies compare double.tw@N=5 --replay a.tape",
        1,
        &["the recording has no double_all N=5"],
    );
}

#[test]
fn a_small_space_is_tried_as_a_whole() {
    let folder = Folder::new();
    folder.write("small.template", SMALL);
    let line = format!("{COMPARE} --template small.template --starts 0 --trials 10 --out drawn --json");
    let out: Value = serde_json::from_str(&folder.succeeds(&line)).unwrap();
    let program = &out["found"]["programs"][0];
    assert_eq!((program["size"].as_f64(), program["is_optimum"].as_bool()), (Some(4.0), Some(true)));
    for own in out["programs"][0]["summary"].as_array().unwrap() {
        assert_eq!((own["reached"].as_u64(), own["visited"].as_f64()), (Some(2), Some(1.0)), "{own}");
    }
    for name in ["1-trials.png", "1-seconds.png", "1-quality.png", "overhead.png"] {
        assert!(fs::read(folder.path("drawn").join(name)).unwrap().starts_with(b"\x89PNG"), "{name}");
    }
    let page = fs::read_to_string(folder.path("drawn/comparison.html")).unwrap();
    assert!(page.contains("the optimum: every point was tried"), "{page}");
    let kept: Value =
        serde_json::from_str(&fs::read_to_string(folder.path("drawn/comparison.json")).unwrap()).unwrap();
    assert_eq!(kept["found"], out["found"]);
}

#[test]
fn several_programs_are_summed_up() {
    let folder = Folder::new();
    let line = "strategies compare mm.tw@M=8,K=8,N=8 double.tw@N=64 --threads 1 --seeds 1 --trials 3 --transfer \
                --strategies trees,random --exhaustive 0";
    let out = folder.succeeds(line);
    assert!(out.contains("mm M=8,K=8,N=8") && out.contains("double_all N=64"), "{out}");
    assert!(out.contains("all 2 programs, geometric means"), "{out}");
}

#[test]
fn mistakes_are_said_before_anything_is_measured() {
    let folder = Folder::new();
    folder.write("bad.template", "knob m = factors Q in 4\n");
    folder.write("no.tape", "something else\n");
    for (options, status, said) in [
        ("--strategies hill", 2, "there is no strategy `hill`"),
        ("--strategies random,random", 2, "--strategies has random twice"),
        ("--strategies grid", 2, "`grid` tries all points of spaces with at most"),
        ("--share 0", 2, "a share of the space"),
        ("--seeds 0", 2, "write a number of seeds from 1 to 1000"),
        ("--seeds 7-6", 2, "or a range such as 6-10"),
        ("--target interp", 2, "--target interp has none"),
        ("--template bad.template", 1, "line 1: `Q` is not a size, a loop of this program or a number"),
        ("--template missing", 1, "missing: "),
        ("--record no.tape", 1, "was not written by `tilewright strategies compare --record`"),
        ("--out mm.tw/x", 1, "--out mm.tw/x cannot be written"),
    ] {
        let line =
            format!("strategies compare mm.tw --sizes M=70,K=64,N=67 --threads 1 --trials 1 {options}");
        folder.fails(&line, status, &[said]);
    }
    folder.fails("strategies compare mm.tw@M=1", 1, &["needs values for"]);
    folder.fails("strategies compare mm.tw@M=x", 2, &["`x` is not a 64-bit integer"]);
    folder.fails("strategies compare", 2, &["required"]);
    folder.fails("strategies compare --replay gone.tape", 1, &["gone.tape"]);
    // The file that was not a recording is unchanged.
    assert_eq!(fs::read_to_string(folder.path("no.tape")).unwrap(), "something else\n");
}
