//! Tests of `tilewright prove`, of the proofs of `tune`, and of `show --stage dependences`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use serde_json::{Value, json};
use support::Folder;

const SIZES: &str = "--sizes M=40,K=33,N=37";
const TILE: &str = "split C.i -> io, ii:4\nsplit C.j -> jo, jv:8\nreorder C.io, C.jo, C.k, C.ii, C.jv\nunroll C.ii\n\
                    vectorize C.jv\npromote C at C.jo -> acc registers\nparallel C.io\n";

fn object(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn default_schedules_and_schedules_from_files_are_proved() {
    let folder = Folder::new();
    let told = folder.succeeds(&format!("prove mm.tw {SIZES}"));
    assert!(told.starts_with("mm: proved in ") && told.ends_with(" (schedule: default)\n"), "{told}");
    folder.write("tile.sched", TILE);
    let told = folder.succeeds(&format!("prove several.tw:mm {SIZES} --schedule tile.sched --threads 2"));
    assert!(told.starts_with("mm: proved in ") && told.ends_with(" (schedule: tile.sched)\n"), "{told}");
    let line = format!("prove several.tw:mm {SIZES} --schedule tile.sched --no-contract --json");
    let mut object = object(&folder.succeeds(&line));
    assert!(object.as_object_mut().unwrap().remove("seconds").unwrap().as_f64().unwrap() > 0.0);
    let expected = json!({
        "program": "several.tw",
        "function": "mm",
        "sizes": { "M": 40, "K": 33, "N": 37 },
        "target": "cpu",
        "schedule_source": "file",
        "verdict": "proved",
        "reason": null,
    });
    assert_eq!(object, expected);
}

/// The winner depends on the machine, so the prover may be unable to decide. The winner is never
/// refuted.
fn expect_not_refuted(done: &Value) {
    match &done["proof_reason"] {
        Value::Null => assert_eq!(done["proved"], json!(true), "{done}"),
        reason => {
            assert_eq!(done["proved"], json!("undecided"), "{done}");
            assert!(!reason.as_str().unwrap().is_empty(), "{done}");
        }
    }
}

/// No device is needed, and the verdict is never that the loops are wrong.
#[test]
fn loops_for_a_gpu_that_is_not_there() {
    let folder = Folder::new();
    for target in ["cuda", "opencl", "cuda:99"] {
        let object = object(&folder.succeeds(&format!("prove mm.tw {SIZES} --target {target} --json")));
        assert_eq!(object["target"].as_str().unwrap().split(':').next(), target.split(':').next());
        match object["verdict"].as_str().unwrap() {
            "proved" => assert_eq!(object["reason"], Value::Null),
            verdict => {
                assert_eq!(verdict, "undecided", "{object}");
                assert!(!object["reason"].as_str().unwrap().is_empty(), "{object}");
            }
        }
    }
    folder.fails(&format!("prove mm.tw {SIZES} --target cuda --threads 2"), 2, &["is for --target cpu"]);
}

#[test]
fn what_cannot_be_proved_because_of_the_command_line() {
    let folder = Folder::new();
    folder.write("refused.sched", "vectorize C.q\n");
    folder.write("nonsense.sched", "nonsense\n");
    folder.fails("prove", 2, &["<FILE[:NAME]>"]);
    folder.fails(&format!("prove mm.tw {SIZES} --target interp"), 2, &["there are no loops to prove"]);
    folder.fails(&format!("prove mm.tw {SIZES} --target nonsense"), 2, &["there is no target nonsense"]);
    folder.fails(&format!("prove several.tw {SIZES}"), 2, &["several functions"]);
    folder.fails(
        "prove mm.tw --sizes M=4",
        1,
        &["`mm` needs values for K, N (known: M=4): give --sizes K=…,N=…"],
    );
    folder.fails(&format!("prove mm.tw {SIZES},L=2"), 1, &["no size or integer scalar L"]);
    folder.fails("prove bad.tw --sizes N=4", 1, &["error[out-of-bounds]"]);
    folder.fails(&format!("prove mm.tw {SIZES} --schedule missing"), 1, &["cannot read missing"]);
    folder.fails(&format!("prove mm.tw {SIZES} --schedule refused.sched"), 1, &["refused.sched:1"]);
    folder.fails(&format!("prove mm.tw {SIZES} --schedule nonsense.sched"), 1, &["nonsense.sched:1"]);
    let help = folder.succeeds("prove --help");
    for part in ["undecided", "refuted", "70", "tilewright prove examples/flextensor/gemm.tw --sizes"] {
        assert!(help.contains(part), "{part}\n{help}");
    }
}

#[test]
fn inputs_give_the_sizes_of_what_is_shown_and_proved() {
    let folder = Folder::new();
    folder.floats("x.npy", &[10], &[0.5; 10]);
    for inputs in ["--sizes N=10 --in s=2", "--in x=x.npy --in s=2", "--sizes N=10,s=2"] {
        let loops = folder.succeeds(&format!("show strided.tw --stage loops {inputs}"));
        assert!(loops.contains("y[5]"), "{loops}");
        folder.succeeds(&format!("prove strided.tw {inputs}"));
    }
    folder.succeeds("show sgemm.tw --stage loops --sizes N=3,M=4,K=5 --in a=0.5");
    let ranges = folder.succeeds("show strided.tw --stage ranges --in s=2");
    assert!(ranges.contains("N"), "{ranges}");
    folder.fails("show strided.tw --stage loops --in s=2", 1, &["needs a value for N", "--in NAME=FILE.npy"]);
    folder.fails("prove strided.tw --sizes N=10 --in s=x", 1, &["s is int32, but `x` is no int32"]);
    let unknown = "`strided` has no input q. It has: x, s";
    folder.fails("show strided.tw --stage loops --sizes N=10 --in q=2", 1, &[unknown]);
}

#[test]
fn code_for_a_missing_device_says_what_it_is_for() {
    let folder = Folder::new();
    let shown = folder.tilewright(&format!("show mm.tw {SIZES} --stage cuda"));
    assert_eq!(shown.status, 0, "{}", shown.err);
    let has_device = folder.succeeds("devices").contains("cuda:0");
    assert_eq!(shown.err.contains("compiling for NVIDIA H200 (sm_90)"), !has_device, "{}", shown.err);
}

#[test]
fn what_tuning_proves_and_keeps() {
    let folder = Folder::with_peaks();
    let tune = format!("tune mm.tw {SIZES} --threads 1 --trials 4 --cache c.sqlite");
    let done = object(&folder.succeeds(&format!("{tune} --json --record t.tape")));
    expect_not_refuted(&done);
    assert!(done["time_spent"]["proving"].as_f64().unwrap() > 0.0, "{done}");
    // A replay gives the same proofs as the recorded run.
    let replayed = object(&folder.succeeds(&format!("{tune} --json --replay t.tape")));
    assert_eq!((&replayed["proved"], &replayed["schedule"]), (&done["proved"], &done["schedule"]));
    let other = ["this recording has proofs of the winner, and this run has of nothing (--no-prove)"];
    folder.fails(&format!("{tune} --no-prove --replay t.tape"), 1, &other);
    // `prove` proves the schedule that the cache keeps.
    let prove = format!("prove mm.tw {SIZES} --threads 1 --cache c.sqlite");
    assert_eq!(object(&folder.succeeds(&format!("{prove} --json")))["schedule_source"], "cache");
    assert!(folder.succeeds(&format!("{prove} --schedule default")).ends_with("(schedule: default)\n"));
    let text = folder.succeeds(&tune);
    assert!(text.contains("\n  proof      "), "{text}");
    assert!(text.contains(", proving "), "{text}");
}

#[test]
fn proofs_of_everything_and_of_nothing() {
    let folder = Folder::with_peaks();
    let tune = "tune double.tw --sizes N=300 --threads 1 --trials 3 --cache c.sqlite";
    let done = object(&folder.succeeds(&format!("{tune} --json --no-prove")));
    assert_eq!((&done["proved"], &done["time_spent"]["proving"]), (&json!(false), &json!(0.0)), "{done}");
    assert!(!folder.succeeds(&format!("{tune} --no-prove")).contains("\n  proof "));
    let done = object(&folder.succeeds(&format!("{tune} --json --prove")));
    expect_not_refuted(&done);
    assert_eq!(done["failures"], json!({}), "{done}");
    folder.fails(&format!("{tune} --prove --no-prove"), 2, &["--no-prove"]);
}

#[test]
fn dependences_are_shown() {
    let folder = Folder::new();
    assert_eq!(
        folder.succeeds("show mm.tw --stage dependences --sizes M=2,N=3,K=4"),
        "S0  C(i, j) +=! A(i, k) * B(k, j)\n\n\
         reduction S0 -> S0  C  [i: same, j: same, k: later]\n          \
         both are reduced into one element of C: any order, one at a time\n          \
         such as S0(i=0, j=0, k=0) -> S0(i=0, j=0, k=1)\n"
    );
    let alone = folder.succeeds("show double.tw --stage dependences --sizes N=5 --no-contract");
    assert!(alone.ends_with("\nno dependences: the statements may run in any order\n"), "{alone}");
    folder.write(
        "twice.tw",
        "def f(float(N) x) -> (y) {\n  t(i) = 2 * x(i)\n  y(i) = t(i) + t(N - 1 - i)\n}\n",
    );
    let flow = folder.succeeds("show twice.tw --stage dependences --sizes N=5");
    for part in
        ["S1  y(i) = ", "\nflow      S0 -> S1  t", "the second reads t where the first has written it"]
    {
        assert!(flow.contains(part), "{part}\n{flow}");
    }
    folder.fails("show mm.tw --stage dependences", 1, &["`mm` needs values for M, K, N"]);
}
