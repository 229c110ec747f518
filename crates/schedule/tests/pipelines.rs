//! The schedules that are written by hand for image pipelines on GPUs: they can be applied at the
//! sizes of the benchmarks, they launch no kernel in a loop, and they are proved at small sizes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::path::{Path, PathBuf};

use support::schedule;
use tilewright_ir::nest::{For, Stmt};
use tilewright_ir::{LoopNest, Number, Program, walk};
use tilewright_polyhedral::{Verdict, prove};
use tilewright_schedule::apply;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::Gpu;

type Sizes = &'static [(&'static str, i64)];

/// A pipeline that has a schedule for GPUs. Those of hist and max_filter are not here: one thread
/// adds up the bins of hist, and max_filter launches a kernel for each of five sizes.
struct Pipeline {
    name: &'static str,
    sizes: Sizes,
    /// The most kernels of a call.
    kernels: usize,
    /// Sizes at which the schedule is proved in seconds.
    proved: Option<Sizes>,
}

const PICTURE: Sizes = &[("H", 2560), ("W", 1536)];
const PIPELINES: &[Pipeline] = &[
    Pipeline { name: "harris", sizes: PICTURE, kernels: 1, proved: None },
    Pipeline { name: "unsharp", sizes: PICTURE, kernels: 1, proved: Some(&[("H", 37), ("W", 70)]) },
    Pipeline { name: "iir_blur", sizes: PICTURE, kernels: 8, proved: Some(&[("H", 77), ("W", 131)]) },
    Pipeline {
        name: "nl_means",
        sizes: &[("H", 2560), ("W", 1536), ("patch", 7), ("search", 7)],
        kernels: 2,
        proved: Some(&[("H", 40), ("W", 48), ("patch", 7), ("search", 7)]),
    },
    Pipeline { name: "camera_pipe", sizes: &[("H", 1968), ("W", 2592)], kernels: 3, proved: None },
    Pipeline {
        name: "stencil_chain",
        sizes: &[("H", 2560), ("W", 1536), ("stages", 32)],
        kernels: 33,
        proved: None,
    },
    Pipeline {
        name: "interpolate",
        sizes: &[("H", 2560), ("W", 1536), ("levels", 10)],
        kernels: 18,
        proved: Some(&[("H", 21), ("W", 17), ("levels", 10)]),
    },
    Pipeline {
        name: "bilateral_grid",
        sizes: &[("H", 2560), ("W", 1536), ("s_sigma", 8)],
        kernels: 3,
        proved: Some(&[("H", 40), ("W", 48), ("s_sigma", 8)]),
    },
    Pipeline {
        name: "bgu",
        sizes: &[("H", 2560), ("W", 1536), ("h", 320), ("w", 192), ("cell", 16), ("factor", 8)],
        kernels: 20,
        proved: None,
    },
    Pipeline {
        name: "conv_layer",
        sizes: &[("N", 5), ("H", 80), ("W", 100), ("CI", 128), ("CO", 128)],
        kernels: 3,
        proved: None,
    },
    Pipeline { name: "mat_mul", sizes: &[("M", 1024), ("N", 1024), ("K", 1024)], kernels: 3, proved: None },
    Pipeline {
        name: "depthwise_separable_conv",
        sizes: &[("N", 4), ("H", 112), ("W", 112), ("C", 32), ("K", 16), ("M", 1)],
        kernels: 1,
        proved: Some(&[("N", 2), ("H", 9), ("W", 17), ("C", 5), ("K", 6), ("M", 1)]),
    },
    Pipeline {
        name: "lens_blur",
        sizes: &[("H", 320), ("W", 192), ("slices", 32), ("focus", 13), ("samples", 32), ("R", 9)],
        kernels: 20,
        proved: None,
    },
    Pipeline {
        name: "local_laplacian",
        sizes: &[("H", 2560), ("W", 1536), ("intensities", 8), ("levels", 8)],
        kernels: 24,
        proved: None,
    },
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn program(pipeline: &Pipeline, sizes: Sizes) -> Program {
    let path = repository().join(format!("examples/pipelines/{}.tw", pipeline.name));
    let parsed = parse(&std::fs::read_to_string(path).unwrap());
    let mut bindings: Bindings = sizes.iter().copied().collect();
    bindings.set_scalar("r_sigma", Number::Float(0.125));
    let checked = check(&parsed.ast, pipeline.name, &bindings);
    checked.program.unwrap_or_else(|| panic!("{}: {:?}", pipeline.name, checked.diagnostics))
}

fn nest(pipeline: &Pipeline, sizes: Sizes) -> (Program, LoopNest) {
    let path = repository().join(format!("schedules/pipelines/{}.cuda.sched", pipeline.name));
    let program = program(pipeline, sizes);
    let nest = apply(&program, &schedule(&std::fs::read_to_string(path).unwrap()), &Gpu::h200());
    (program, nest.unwrap_or_else(|refusal| panic!("{}: {refusal}", pipeline.name)))
}

/// The kernels of a call, none of which may be in a loop.
fn kernels(stmts: &[Stmt]) -> usize {
    let of = |stmt: &Stmt| match stmt {
        Stmt::For(own) if own.is_block_or_thread_loop() => 1,
        Stmt::Allocate(own) => kernels(&own.body),
        other => panic!("{other:?} is outside of a kernel"),
    };
    stmts.iter().map(of).sum()
}

#[test]
fn schedules_for_gpus_fit_the_sizes_of_the_benchmarks() {
    for pipeline in PIPELINES {
        let (_, nest) = nest(pipeline, pipeline.sizes);
        assert_eq!(kernels(&nest.body), pipeline.kernels, "{}", pipeline.name);
        let has_threads = |stmt: &&Stmt| {
            walk::any_loop(std::slice::from_ref(*stmt), |own: &For| own.thread_axis().is_some())
        };
        assert!(nest.body.iter().all(|stmt| has_threads(&stmt)), "{}", pipeline.name);
    }
}

#[test]
fn schedules_for_gpus_are_proved() {
    for pipeline in PIPELINES {
        let Some(sizes) = pipeline.proved else { continue };
        let (program, nest) = nest(pipeline, sizes);
        assert_eq!(prove(&program, &nest), Verdict::Proved, "{}", pipeline.name);
    }
}
