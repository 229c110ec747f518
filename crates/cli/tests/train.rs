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
