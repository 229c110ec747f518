//! Proofs for the default schedules of all examples and of whole image pipelines, at small and at
//! odd sizes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "../../../tests/examples.rs"]
mod examples;

mod support;

use std::path::{Path, PathBuf};
use std::time::Instant;

use examples::examples;
use support::{cpu, programs};
use tilewright_ir::Program;
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::{Gpu, Target};

fn pipelines() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/pipelines");
    let mut found: Vec<PathBuf> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    assert!(found.len() >= 15, "{found:?}");
    found
}

/// Proves the default schedules of programs, and fails with a list of those that are not proved.
fn are_proved(programs: Vec<(String, Program)>, target: Target<'_>) {
    let mut open = Vec::new();
    for (name, program) in &programs {
        let nest = apply(program, &schedule_by_rules(program, target), target).unwrap();
        let start = Instant::now();
        let verdict = prove(program, &nest);
        println!("{:8.1} ms {name}", start.elapsed().as_secs_f64() * 1e3);
        if verdict != Verdict::Proved {
            open.push(format!("{name}: {verdict:?}"));
        }
    }
    assert!(open.is_empty(), "{}", open.join("\n"));
}

/// Sizes that leave remainders everywhere. `camera_pipe` needs a border around its image.
fn odd(path: &Path) -> impl Fn(&str) -> i64 {
    let large = path.ends_with("camera_pipe.tw");
    move |name| match name {
        "H" => {
            if large {
                70
            } else {
                21
            }
        }
        "W" => {
            if large {
                94
            } else {
                27
            }
        }
        _ => {
            if large {
                64
            } else {
                5
            }
        }
    }
}

#[test]
fn pipelines_are_proved() {
    let all = pipelines().into_iter().flat_map(|path| programs(&path, &odd(&path))).collect();
    are_proved(all, Target::Cpu(&cpu()));
}

#[test]
fn examples_are_proved_at_small_sizes() {
    let all = examples().into_iter().flat_map(|path| programs(&path, &|_| 8)).collect();
    are_proved(all, Target::Cpu(&cpu()));
}

#[test]
fn examples_are_proved_at_odd_sizes() {
    let odd = |name: &str| [13, 7, 5, 11, 3][name.bytes().map(usize::from).sum::<usize>() % 5];
    let all = examples().into_iter().flat_map(|path| programs(&path, &odd)).collect();
    are_proved(all, Target::Cpu(&cpu()));
}

/// Kernels take longer to prove: `survey` below proves the remaining ones.
#[test]
fn kernels_of_pipelines_are_proved() {
    let quick = ["harris.tw", "hist.tw", "iir_blur.tw", "unsharp.tw", "depthwise_separable_conv.tw"];
    let some = pipelines().into_iter().filter(|path| quick.iter().any(|name| path.ends_with(name)));
    let all = some.flat_map(|path| programs(&path, &odd(&path))).collect();
    are_proved(all, Target::Gpu(&Gpu::h200()));
}

#[test]
#[ignore = "takes minutes"]
fn survey() {
    let all = pipelines().into_iter().flat_map(|path| programs(&path, &odd(&path))).collect();
    are_proved(all, Target::Gpu(&Gpu::h200()));
    let all = examples().into_iter().flat_map(|path| programs(&path, &|_| 24)).collect();
    are_proved(all, Target::Gpu(&Gpu::h200()));
}
