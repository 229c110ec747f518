//! Tests of sizes that scalars determine, on the command line: every command computes them from
//! `--in`, and a kernel belongs to the sizes that it was made for.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use serde_json::Value;
use support::Folder;

/// A histogram whose number of bins follows from their width.
const HISTOGRAM: &str = "def histogram(float(N) x, float width) -> (y) {
  int bins = int(1 / width) + 1
  y(b) +=! 1.0 where b = int(clamp(x(i), 0, 1) / width), b in 0:bins
}
";

fn folder() -> Folder {
    let folder = Folder::with_peaks();
    folder.write("histogram.tw", HISTOGRAM);
    folder.floats("x.npy", &[6], &[0.0, 0.1, 0.3, 0.6, 0.65, 1.0]);
    folder
}

fn object(out: &str) -> Value {
    serde_json::from_str(out.lines().last().unwrap()).unwrap()
}

#[test]
fn run_computes_the_size_from_the_scalar() {
    let folder = folder();
    for target in ["interp", "cpu"] {
        let line = |width: &str| {
            format!("run histogram.tw --in x=x.npy --in width={width} --target {target} --cache c.sqlite")
        };
        let told = folder.succeeds(&line("0.5"));
        assert!(told.contains("[3.000000, 2.000000, 1.000000]"), "{told}");
        // As float32, 0.1 goes ten times into 1.
        let told = folder.succeeds(&line("0.1"));
        assert!(told.contains("y: float32(11)"), "{told}");
        folder.fails(&line("0"), 1, &["`bins` has no value", "with width = 0"]);
        folder.fails(&line("-0.25"), 1, &["must be at least 0, and is -3", "int(1 / width) + 1"]);
        folder.fails(&line("nan"), 1, &["it converts NaN to an integer"]);
        folder.fails(&line("1e-20"), 1, &["does not fit int32"]);
    }
}

#[test]
fn a_missing_scalar_is_named() {
    let folder = folder();
    let wanted = ["computes bins = ", "give --in width=…"];
    folder.fails("run histogram.tw --in x=x.npy", 1, &wanted);
    // The size alone is not enough for a run, which needs the scalar too.
    folder.fails("run histogram.tw --in x=x.npy --sizes bins=3", 1, &wanted);
    folder.fails("tune histogram.tw --sizes N=9,bins=3 --trials 1", 1, &wanted);
    folder.fails("show histogram.tw --stage loops --sizes N=9", 1, &wanted);
    folder.fails("prove histogram.tw --sizes N=9", 1, &wanted);
    folder.fails("run histogram.tw --in width=0.5", 1, &["needs a value for N"]);
}

#[test]
fn commands_that_only_compile_take_the_size_or_the_scalar() {
    let folder = folder();
    let by_size = folder.succeeds("show histogram.tw --stage loops --sizes N=9,bins=5 --threads 1");
    let by_scalar =
        folder.succeeds("show histogram.tw --stage loops --sizes N=9 --in width=0.25 --threads 1");
    assert_eq!(by_size, by_scalar);
    let contradiction = ["`bins` is 5 with width = 0.25, but 4 is given for it"];
    folder.fails("show histogram.tw --stage loops --sizes N=9,bins=4 --in width=0.25", 1, &contradiction);
    folder.fails("check histogram.tw --sizes bins=4 --in width=0.25", 1, &contradiction);
    folder.succeeds("check histogram.tw --sizes bins=5 --in width=0.25");
    folder.succeeds("check histogram.tw");
    folder.fails("check histogram.tw --in width=x", 2, &["takes NAME=NUMBER"]);
    folder.fails("check histogram.tw --in with=0.5", 1, &["has no scalar with"]);
    let told = folder.succeeds("show histogram.tw --stage ranges");
    assert!(told.contains("derived      bins = "), "{told}");
    for line in ["--sizes N=9 --in width=0.25", "--sizes N=9,bins=5"] {
        let told = folder.succeeds(&format!("prove histogram.tw {line} --json"));
        assert_eq!(object(&told)["sizes"]["bins"], 5, "{told}");
    }
}

#[test]
fn a_tuned_schedule_belongs_to_the_size() {
    let folder = folder();
    folder.write(
        "shades.tw",
        "def shades(float(N) x, float width) -> (y) { int bins = int(1 / width) + 1
           y(b, i) = x(i) * b * width where b in 0:bins }",
    );
    let tune = "tune shades.tw --sizes N=64 --in width=0.25 --trials 2 --threads 1 --json --cache c.sqlite";
    let tuned = object(&folder.succeeds(&format!("{tune} --record r.recording")));
    assert_ne!(tuned["trials"], 0, "{tuned}");
    let source = |width: &str| {
        let line = format!(
            "bench shades.tw --sizes N=64 --in width={width} --threads 1 --samples 1 --json --cache c.sqlite"
        );
        object(&folder.succeeds(&line))["schedule_source"].as_str().unwrap().to_owned()
    };
    let tuned_for = source("0.25");
    // 0.24 gives five bins too, and 0.5 three.
    assert_eq!(source("0.24"), tuned_for);
    assert_ne!(source("0.5"), tuned_for);
    folder.succeeds(&format!("{tune} --replay r.recording"));
}

/// The interpreter cannot manage these sizes, so kernels are compared at smaller ones.
#[test]
fn large_programs_are_compared_at_sizes_that_the_scalar_allows() {
    let folder = folder();
    let line = "tune histogram.tw --sizes N=30000000 --in width=0.125 --in 'x=uniform(0,1)' --trials 1 \
                --threads 1 --json --cache c.sqlite";
    let line = line.replace('\'', "");
    let told = folder.tilewright(&line);
    assert_eq!(told.status, 0, "{}", told.err);
    assert!(!told.err.contains("not compared"), "{}", told.err);
}

#[test]
fn sizes_of_zero() {
    let folder = folder();
    folder.floats("empty.npy", &[0], &[]);
    let told = folder.succeeds("run histogram.tw --in x=empty.npy --in width=0.5");
    assert!(told.contains("[0.000000, 0.000000, 0.000000]"), "{told}");
}
