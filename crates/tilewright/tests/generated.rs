//! Generated pipelines are accepted without a warning, and compute what the interpreter says with
//! the default schedule. The same options give the same text.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

use harness::Arguments;
use harness::fenced_tensor::Placement;
use tilewright::driver::Source;
use tilewright::pipelines::{Kind, Pipeline, PipelineOptions, Size, generate};
use tilewright::{Cpu, Module};
use tilewright_interp::seed;
use tilewright_syntax::Bindings;

/// The numbers of stages of the pipelines.
const STAGES: [usize; 4] = [3, 5, 9, 14];
/// The number of seeds for each kind and number of stages.
const SEEDS: u64 = 4;

fn pipeline(kind: Kind, seed: u64, stages: usize, size: Size) -> Pipeline {
    generate(&PipelineOptions { seed, stages, kind, size })
}

/// All pipelines of these tests.
fn pipelines(size: Size) -> impl Iterator<Item = Pipeline> {
    let options = Kind::ALL.into_iter().flat_map(|kind| STAGES.map(|stages| (kind, stages)));
    options.flat_map(move |(kind, stages)| (0..SEEDS).map(move |seed| pipeline(kind, seed, stages, size)))
}

/// Compiles and runs a pipeline, and returns how it differs from the interpreter.
fn difference(own: &Pipeline) -> Option<String> {
    let program = Module::parse(&own.source).unwrap().program(&own.name, []).unwrap();
    let inputs = seed::inputs(program.ir(), 1).unwrap();
    let kernel = harness::compile(&program, None, Cpu::host().vectors, 2).unwrap();
    let place = Placement::contiguous;
    let found = Arguments::new(&kernel, &inputs, place).run(&kernel, &inputs, 1, place).unwrap();
    let wanted = tilewright_interp::expect(program.ir(), inputs).unwrap();
    let differs = found.iter().find_map(|(name, tensor)| wanted[name].compare(name, tensor).err());
    differs.map(|difference| difference.to_string())
}

#[test]
fn pipelines_of_all_kinds_compute_what_the_interpreter_says() {
    for own in pipelines(Size::Small) {
        let difference = difference(&own);
        assert!(difference.is_none(), "{}\n{}", difference.unwrap(), own.source);
    }
}

#[test]
fn pipelines_of_full_size_are_accepted_without_a_warning() {
    for own in pipelines(Size::Full) {
        let checked = Source::new(&own.source).program(&own.name, &Bindings::default(), true);
        assert!(checked.diagnostics.is_empty(), "{:?}\n{}", checked.diagnostics, own.source);
        assert!(checked.program.is_ok(), "{}", own.source);
    }
}

#[test]
fn a_pipeline_has_the_stages_that_were_asked_for() {
    for own in pipelines(Size::Full) {
        let wanted: usize = own.name.rsplit('_').next().unwrap().parse().unwrap();
        assert_eq!(own.stages, wanted, "{}", own.source);
    }
}

#[test]
fn the_same_options_give_the_same_text() {
    let of = |seed| pipeline(Kind::Mixed, seed, 20, Size::Full).source;
    assert_eq!(of(3), of(3));
    assert_ne!(of(3), of(4));
}
