//! Prints what each part of the beam search gives: states, seconds of the search, and the predicted
//! time of the schedule that it finds, as a multiple of that of the whole search.
//!
//! ```text
//! cargo run --release -p tilewright-search --example ablation [cpu|h200] [NAME]...
//! ```
//!
//! The programs are the image pipelines of `examples/pipelines`, at the sizes of the benchmarks.

#![allow(clippy::unwrap_used, reason = "an example ends at its first mistake")]

use std::time::Instant;

use tilewright_ir::Program;
use tilewright_search::beam::{BeamOptions, search};
use tilewright_search::kind::cost_model;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Gpu, Target};

const WHOLE: BeamOptions = BeamOptions::DEFAULT;
/// The whole search, and the search without one of its parts.
const VARIANTS: [(&str, BeamOptions); 6] = [
    ("whole search", WHOLE),
    ("no passes that lean", BeamOptions { leans: false, ..WHOLE }),
    ("passes that lean never give up", BeamOptions { gives_up: false, ..WHOLE }),
    ("costs are not kept", BeamOptions { keeps_costs: false, ..WHOLE }),
    ("one state", BeamOptions { widest: 1, kept: 1, ..WHOLE }),
    ("twice as many states (`auto`)", BeamOptions::ONE_SHOT),
];

/// The pipelines and their sizes.
const PIPELINES: [(&str, &[(&str, i64)]); 12] = [
    ("harris", &[("H", 2560), ("W", 1536)]),
    ("unsharp", &[("H", 2560), ("W", 1536)]),
    ("hist", &[("H", 2560), ("W", 1536)]),
    ("iir_blur", &[("H", 2560), ("W", 1536)]),
    ("camera_pipe", &[("H", 1968), ("W", 2592)]),
    ("stencil_chain", &[("H", 2560), ("W", 1536), ("stages", 32)]),
    ("conv_layer", &[("N", 5), ("H", 80), ("W", 100), ("CI", 128), ("CO", 128)]),
    ("depthwise_separable_conv", &[("N", 4), ("H", 112), ("W", 112), ("C", 32), ("K", 16), ("M", 1)]),
    ("nl_means", &[("H", 2560), ("W", 1536), ("patch", 7), ("search", 7)]),
    ("interpolate", &[("H", 2560), ("W", 1536), ("levels", 10)]),
    ("local_laplacian", &[("H", 2560), ("W", 1536), ("intensities", 8), ("levels", 8)]),
    (
        "lens_blur",
        &[("H", 320), ("W", 192), ("slices", 32), ("focus", 13), ("samples", 32), ("R", 9), ("levels", 8)],
    ),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (cpu, gpu) = (Cpu::host(), Gpu::h200());
    let target: Target = if words.iter().any(|word| word == "h200") { (&gpu).into() } else { (&cpu).into() };
    let names: Vec<&String> = words.iter().filter(|word| *word != "h200" && *word != "cpu").collect();
    let chosen =
        PIPELINES.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|own| *own == name));
    let programs: Vec<(&str, Program)> = chosen.map(|(name, sizes)| (*name, program(name, sizes))).collect();
    println!("| search | states | seconds | longest s | predicted time |\n| --- | --: | --: | --: | --: |");
    let mut whole: Vec<f64> = Vec::new();
    for (variant, options) in VARIANTS {
        let found: Vec<(usize, f64, f64)> = programs
            .iter()
            .map(|(_, program)| {
                let begun = Instant::now();
                let found = search(program, target, &*cost_model(target), &options).unwrap();
                (found.states, begun.elapsed().as_secs_f64(), found.ranked[0].1)
            })
            .collect();
        if whole.is_empty() {
            whole = found.iter().map(|own| own.2).collect();
        }
        let states: usize = found.iter().map(|own| own.0).sum();
        let seconds: f64 = found.iter().map(|own| own.1).sum();
        let longest = found.iter().map(|own| own.1).fold(0.0, f64::max);
        let ratios = found.iter().zip(&whole).map(|(own, whole)| (own.2 / whole).ln());
        let mean = (ratios.sum::<f64>() / found.len() as f64).exp();
        println!("| {variant} | {states} | {seconds:.1} | {longest:.1} | {mean:.3} |");
    }
}

fn program(name: &str, sizes: &[(&str, i64)]) -> Program {
    let file = format!("{}/../../examples/pipelines/{name}.tw", env!("CARGO_MANIFEST_DIR"));
    let parsed = parse(&std::fs::read_to_string(file).unwrap());
    let bindings: Bindings = sizes.iter().copied().collect();
    check(&parsed.ast, name, &bindings).program.unwrap()
}
