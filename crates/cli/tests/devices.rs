//! Tests programs on all devices of this machine: GPUs, or PoCL, which runs OpenCL on the CPU.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::path::Path;

use serde_json::Value;
use support::{CommandOutput, Folder};

/// A few representative programs: tiles in shared memory with and without remainders, padding,
/// data-dependent subscripts, several kernels, scatter, called functions, ordered loops, 16-bit
/// floats.
const PROGRAMS: &[&str] = &[
    "examples/flextensor/gemm.tw --sizes M=70,N=66,K=33",
    "examples/flextensor/conv2d.tw --sizes N=1,C=17,H=18,W=19,K=20,KH=3,KW=3,stride=1,pad=1",
    "examples/benchmarks/1LUT.tw --sizes B=4,D=8,L=5,E=100",
    "examples/benchmarks/layer_norm.tw --sizes N=5,D=33",
    "examples/images/iir_blur.tw --sizes H=9,W=7",
    "bins.tw --sizes N=300",
    "half.tw --sizes N=40,K=9",
];

/// The targets that `tilewright devices` lists, except the CPU.
fn devices(folder: &Folder) -> Vec<String> {
    let lines = folder.succeeds("devices --json");
    let listed = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let targets: Vec<String> = listed.map(|device| device["target"].as_str().unwrap().to_owned()).collect();
    assert_eq!(targets[0], "cpu");
    targets[1..].to_vec()
}

#[test]
fn programs_compute_on_every_device_what_the_interpreter_does() {
    let folder = Folder::new();
    folder.write("bins.tw", "def bins(uint8(N) x) -> (h) { h(b) +=! 1 where b = x(i), b in 0:256 }\n");
    folder.write("half.tw", "def narrow(float16(N, K) A, float16(K) x) -> (y) { y(i) +=! A(i, k) * x(k) }\n");
    let devices = devices(&folder);
    if devices.is_empty() {
        eprintln!("skipped: there is no device; `make setup-opencl` installs one that needs no GPU");
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for device in &devices {
        for program in PROGRAMS {
            let line = format!("run {program} --target {device} --check");
            let mut command = folder.command(&line);
            if program.starts_with("examples/") {
                command.current_dir(&root);
            }
            let ended = CommandOutput::new(&line, command.output().unwrap());
            assert_eq!(ended.status, 0, "{line}: {}", ended.err);
        }
    }
}

#[test]
fn a_device_is_measured() {
    let folder = Folder::new();
    let Some(device) = devices(&folder).into_iter().next() else {
        eprintln!("skipped: there is no device");
        return;
    };
    let line = format!("bench double.tw --sizes N=1000 --target {device} --samples 3 --time 1ms --json");
    let told: Value = serde_json::from_str(&folder.succeeds(&line)).unwrap();
    assert_eq!(told["target"], device.as_str());
    assert!(told["median_us"].as_f64().unwrap() > 0.0, "{told}");
}
