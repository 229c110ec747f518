//! Tests of `tilewright generate` and `tilewright train`: measurements can be continued, and the
//! trained model is the one that searches use.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::fs;

use support::Folder;

#[test]
fn a_generated_pipeline_runs_as_it_is() {
    let folder = Folder::new();
    folder.succeeds("generate --seed 3 --stages 4 --kind scans --small --out p.tw");
    let checked = folder.succeeds("run p.tw --check");
    assert!(checked.contains("checksum"), "{checked}");
    let printed = folder.succeeds("generate --seed 3 --stages 4 --kind scans --small");
    assert_eq!(printed, fs::read_to_string(folder.path("p.tw")).unwrap());
}

#[test]
fn measurements_are_continued_and_a_model_is_trained_and_used() {
    let folder = Folder::new();
    let kinds = ["stencils", "pointwise"];
    for (seed, kind) in kinds.iter().enumerate() {
        folder.succeeds(&format!("generate --seed {seed} --stages 3 --kind {kind} --small --out {kind}.tw"));
    }
    let collect = |kind: &str| {
        format!(
            "train collect --program {kind}.tw --group {kind} --schedules 4 --threads 1 --time 60s --data d.gz"
        )
    };
    folder.succeeds(&collect("stencils"));
    let before = fs::read(folder.path("d.gz")).unwrap();
    // Programs that the file has are not measured again.
    folder.succeeds(&collect("stencils"));
    assert_eq!(fs::read(folder.path("d.gz")).unwrap(), before);
    folder.succeeds(&collect("pointwise"));
    let judged = folder.succeeds("train fit --data d.gz --weights w.json --report page.html");
    for row in ["stencils", "pointwise", "analytical", "w.json"] {
        assert!(judged.contains(row), "{row}: {judged}");
    }
    assert!(fs::read_to_string(folder.path("page.html")).unwrap().contains("<circle"));
    for model in ["analytical", "learned"] {
        folder.succeeds(&format!("show stencils.tw --stage cost --cost-model {model}"));
        folder.succeeds(&format!("run stencils.tw --schedule auto --cost-model {model} --check"));
    }
}

#[test]
fn training_without_measurements_says_what_to_do() {
    let folder = Folder::new();
    fs::write(folder.path("empty.gz"), "").unwrap();
    folder.fails("train judge --data empty.gz", 1, &["train collect"]);
}

/// Only where a user trains models, and once for each program.
#[test]
fn what_tune_measures_is_added() {
    let folder = Folder::new();
    folder.succeeds("generate --seed 5 --stages 3 --kind stencils --small --out p.tw");
    folder.succeeds("generate --seed 6 --stages 3 --kind pointwise --small --out q.tw");
    let tune = "tune q.tw --trials 6 --threads 1";
    folder.succeeds(tune);
    assert!(training_file(&folder).is_none());
    folder.succeeds("train collect --program p.tw --group stencils --schedules 3 --threads 1 --time 60s");
    let size = || fs::metadata(training_file(&folder).unwrap()).unwrap().len();
    let collected = size();
    folder.succeeds(tune);
    let added = size();
    assert!(added > collected);
    folder.succeeds(tune);
    assert_eq!(size(), added);
}

/// The file of the measurements in the user's data folder.
fn training_file(folder: &Folder) -> Option<std::path::PathBuf> {
    let mut open = vec![folder.path("")];
    while let Some(path) = open.pop() {
        for entry in fs::read_dir(path).unwrap() {
            let path = entry.unwrap().path();
            if path.to_string_lossy().ends_with(".training.gz") {
                return Some(path);
            }
            open.extend(path.is_dir().then_some(path));
        }
    }
    None
}
