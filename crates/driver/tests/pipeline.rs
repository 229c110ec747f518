//! Tests of the compilation pipeline, stage by stage.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::Path;

use tilewright_cache::{Cache, CacheError, Canonical, Difference, Outcome, TOOL_VERSION, TuningRecord};
use tilewright_codegen::Object;
use tilewright_driver::source::CheckedFunction;
use tilewright_driver::stage::StageError;
use tilewright_driver::target::{gpu_or_typical, machine};
use tilewright_driver::{
    ChosenSchedule, CompileError, Compiled, OpenTarget, Origin, ProgramError, Source, Stage, TargetName,
    compile, lower,
};
use tilewright_ir::{Program, verify_nest};
use tilewright_runtime::{Pool, View, ViewMut};
use tilewright_schedule::{Schedule, Step, text};
use tilewright_search::default_schedule;
use tilewright_syntax::Bindings;
use tilewright_target::{Cpu, Gpu, GpuApi, Target, VectorInstructions};

const SCALE: &str = "def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }
def product(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }";

fn one_core() -> OpenTarget {
    OpenTarget::Cpu(Cpu { cores: 1, ..Cpu::host() })
}

fn checked(text: &str, function: &str, sizes: &[(&str, i64)]) -> CheckedFunction {
    Source::new(text).program(function, &sizes.iter().copied().collect::<Bindings>(), true)
}

fn scale() -> Program {
    checked(SCALE, "scale", &[("N", 20)]).program.unwrap()
}

fn steps(source: &str) -> Schedule {
    let parsed = text::parse(source);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    parsed.schedule
}

const BY_HAND: &str = "split y.i -> io, ii:4\nvectorize y.ii";

#[test]
fn functions_are_found_by_name_and_need_all_sizes() {
    let names: Vec<String> = Source::new(SCALE).names().map(str::to_owned).collect();
    assert_eq!(names, ["scale", "product"]);
    let failed = |function, sizes: &[_]| checked(SCALE, function, sizes).program.unwrap_err();
    assert_eq!(failed("scala", &[("N", 20)]), ProgramError::NoFunction("scala".to_owned()));
    let open = ["K", "N"].map(str::to_owned).to_vec();
    assert_eq!(failed("product", &[("M", 2)]), ProgramError::UnknownSizes(open));
    assert_eq!(failed("product", &[]).to_string(), "no value is known for the size `M`, `K`, `N`");
}

#[test]
fn mistakes_are_diagnostics() {
    let found = checked("def f(float(N) x) -> (y) { y(i) = z(i) }", "f", &[("N", 4)]);
    assert_eq!(found.program, Err(ProgramError::HasErrors));
    assert!(found.diagnostics.iter().any(|own| own.is_error()), "{:?}", found.diagnostics);
    // Functions that share a name are a defect of the source as a whole.
    let twice =
        Source::new("def f(float(N) x) -> (y) { y(i) = x(i) }\ndef f(float(N) x) -> (y) { y(i) = x(i) }");
    assert!(twice.parsed.diagnostics.is_empty() && !twice.source_diagnostics().is_empty());
    assert!(Source::new(SCALE).source_diagnostics().is_empty());
}

#[test]
fn contraction_is_a_choice_of_the_caller() {
    let sizes: Bindings = [("N", 20)].into_iter().collect();
    let source = Source::new(SCALE);
    for contract in [true, false] {
        assert_eq!(source.program("scale", &sizes, contract).program.unwrap().contract, contract);
    }
}

/// Stores a schedule of a program in a cache, with its time. The default schedule is the first
/// trial of a search.
fn store(cache: &Path, program: &Program, target: Target<'_>, schedule: &str, seconds: f64) {
    let is_default = schedule == default_schedule(program, target).to_string();
    store_trial(cache, program, target, (schedule, is_default.then_some(0)), seconds);
}

fn store_trial(
    cache: &Path,
    program: &Program,
    target: Target<'_>,
    (schedule, trial): (&str, Option<u64>),
    seconds: f64,
) {
    let canonical = Canonical::new(program);
    let record = TuningRecord {
        program: canonical.key_on(target),
        title: canonical.title(),
        schedule: canonical.to_canonical(&steps(schedule), target).schedule.to_string(),
        strategy: "random".to_owned(),
        outcome: Outcome::Measured,
        samples: vec![seconds],
        resources: String::new(),
        features: Vec::new(),
        tool_version: TOOL_VERSION.to_owned(),
        time: 0,
        seed: None,
        trial,
    };
    Cache::open(cache).unwrap().insert(&record).unwrap();
}

#[test]
fn a_schedule_is_given_or_the_best_of_the_cache_or_the_default() {
    let (program, target) = (scale(), one_core());
    let default = default_schedule(&program, &target);
    let given = ChosenSchedule::given(steps(BY_HAND));
    assert_eq!((given.origin, &given.schedule), (Origin::Given, &steps(BY_HAND)));
    let chosen = ChosenSchedule::default(&program, &target);
    assert_eq!((chosen.origin, &chosen.schedule), (Origin::Default, &default));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let best = || ChosenSchedule::from_cache(&program, &target, &path);
    assert!(matches!(best(), Err(CacheError::Missing(_))));
    // A cache without this program has no schedule for it.
    let other = checked(SCALE, "scale", &[("N", 210)]).program.unwrap();
    store(&path, &other, target.target(), BY_HAND, 1e-6);
    assert_eq!(best().unwrap().origin, Origin::Default);
    store(&path, &program, target.target(), BY_HAND, 2e-6);
    store(&path, &program, target.target(), &default.to_string(), 3e-6);
    let chosen = best().unwrap();
    assert_eq!(chosen.origin, Origin::Tuned { seconds: 2e-6, is_default: false });
    assert_eq!(chosen.schedule, steps(BY_HAND));
    assert!(chosen.unusable.is_empty());
}

#[test]
fn schedules_for_near_sizes_and_other_threads_are_adapted() {
    let sized = |rows| checked(SCALE, "product", &[("M", rows), ("N", 256), ("K", 256)]).program.unwrap();
    let (tuned, wanted) = (sized(256), sized(255));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let steps = default_schedule(&tuned, &one_core());
    // Not the default schedule's own trial: for other sizes that says nothing.
    store_trial(&path, &tuned, one_core().target(), (&steps.to_string(), Some(7)), 1e-3);

    let near = ChosenSchedule::from_cache(&wanted, &one_core(), &path).unwrap();
    let rows = Difference::Size { name: "M".to_owned(), wanted: 255, found: 256 };
    assert_eq!(near.origin, Origin::Adapted { differences: vec![rows.clone()] });
    // The cache has names of its own for loops.
    assert_eq!(near.schedule.steps.len(), steps.steps.len());

    let four = OpenTarget::Cpu(Cpu { cores: 4, ..Cpu::host() });
    let chosen = ChosenSchedule::from_cache(&wanted, &four, &path).unwrap();
    let threads = Difference::Threads { wanted: 4, found: 1 };
    assert_eq!(chosen.origin, Origin::Adapted { differences: vec![rows, threads] });
    let (own, added) = chosen.schedule.steps.split_at(steps.steps.len());
    assert_eq!(own, near.schedule.steps);
    assert!(matches!(added, [Step::Parallel(_)]), "{added:?}");
}

#[test]
fn only_the_same_machine_and_near_sizes_are_adapted() {
    let sized = |rows| checked(SCALE, "product", &[("M", rows), ("N", 256), ("K", 256)]).program.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let far = sized(600);
    let steps = default_schedule(&far, &one_core()).to_string();
    store_trial(&path, &far, one_core().target(), (&steps, Some(7)), 1e-3);
    let other = OpenTarget::Cpu(Cpu { cores: 1, vectors: VectorInstructions::Baseline, ..Cpu::host() });
    store_trial(&path, &sized(256), other.target(), ("vectorize C.j", Some(7)), 1e-3);
    // The default schedule that won is that of its own sizes.
    store_trial(&path, &sized(254), one_core().target(), (&steps, Some(0)), 1e-3);
    let chosen = ChosenSchedule::from_cache(&sized(255), &one_core(), &path).unwrap();
    assert_eq!(chosen.origin, Origin::Default);
}

#[test]
fn schedules_that_promise_less_than_the_default_are_not_adapted() {
    let sized = |rows| checked(SCALE, "product", &[("M", rows), ("N", 256), ("K", 256)]).program.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    store(&path, &sized(256), one_core().target(), "unroll C.i", 1e-3);
    store(&path, &sized(254), one_core().target(), "vectorize C.nowhere", 1e-3);
    let program = sized(255);
    let chosen = ChosenSchedule::from_cache(&program, &one_core(), &path).unwrap();
    assert_eq!((chosen.origin, chosen.schedule), (Origin::Default, default_schedule(&program, &one_core())));
}

#[test]
fn records_that_cannot_be_used_are_skipped() {
    let (program, target) = (scale(), one_core());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cache.sqlite");
    let default = default_schedule(&program, &target).to_string();
    store(&path, &program, target.target(), "vectorize y.nowhere", 1e-6);
    store(&path, &program, target.target(), &default, 2e-6);
    let chosen = ChosenSchedule::from_cache(&program, &target, &path).unwrap();
    assert_eq!(chosen.origin, Origin::Tuned { seconds: 2e-6, is_default: true });
    assert_eq!(chosen.unusable.len(), 1, "{:?}", chosen.unusable);
}

#[test]
fn a_refusal_names_the_step_at_fault() {
    let schedule = steps("split y.i -> io, ii:4\nvectorize y.i");
    let refusal = lower(&scale(), &schedule, &one_core()).unwrap_err();
    assert_eq!(refusal.step, Some(1), "{refusal}");
    let failed = compile(&scale(), &schedule, &one_core()).map(|_| ()).unwrap_err();
    assert_eq!(failed, CompileError::Refused(refusal));
}

#[test]
fn compiled_code_computes_the_program() {
    let (program, pool) = (scale(), Pool::new(1));
    for schedule in [steps(BY_HAND), default_schedule(&program, &one_core())] {
        let Compiled { code, nest, .. } = compile(&program, &schedule, &one_core()).unwrap();
        assert!(verify_nest(&nest).is_ok());
        let x: Vec<f32> = (0..20).map(|i| i as f32).collect();
        let mut y = vec![0f32; 20];
        let bound = code.bind(&pool, &[]).unwrap();
        let inputs = [View::from_slice(&x, &[20]).unwrap()];
        let mut results = [ViewMut::from_slice(&mut y, &[20]).unwrap()];
        bound.run(&pool, &inputs, &mut results, &[tilewright_ir::Number::Float(3.0)]).unwrap();
        assert_eq!(y, x.iter().map(|x| 3.0 * x).collect::<Vec<_>>());
    }
}

#[test]
fn lowered_loops_are_emitted_as_an_object_and_linked() {
    let cpu = Cpu { cores: 1, ..Cpu::host() };
    let nest = lower(&scale(), &steps(BY_HAND), &cpu).unwrap();
    let object = Object::emit(verify_nest(&nest).unwrap(), &cpu, "scaled_by_a_test").unwrap();
    assert_eq!(object.symbol(), "scaled_by_a_test");
    let name = object.symbol().as_bytes();
    assert!(object.bytes().windows(name.len()).any(|part| part == name));
    assert!(object.link().is_ok());
}

#[test]
fn a_device_that_is_not_there_can_be_compiled_for_but_not_opened() {
    let name = TargetName::Gpu(GpuApi::Cuda, 1000);
    assert!(machine(name).is_err());
    assert!(OpenTarget::open(name).is_err());
    assert_eq!(gpu_or_typical(GpuApi::Cuda, 1000), Gpu::typical(GpuApi::Cuda));
    assert_eq!((one_core().name(), one_core().machine().target()), (TargetName::Cpu, one_core().target()));
}

#[test]
fn stages_are_those_of_the_target() {
    let (program, cpu, gpu) = (scale(), Cpu::host(), Gpu::typical(GpuApi::OpenCl));
    for target in [Target::Cpu(&cpu), Target::Gpu(&gpu)] {
        let schedule = default_schedule(&program, target);
        let nest = lower(&program, &schedule, target).unwrap();
        for stage in Stage::all_for(target) {
            let text = stage.text(&program, &schedule, &nest, target).unwrap();
            assert!(text.contains("scale") || text.contains('y'), "{}: {text}", stage.name());
        }
        let text = Stage::Cuda.text(&program, &schedule, &nest, target);
        assert!(matches!(text, Err(StageError::NoSuchStage(Stage::Cuda))));
    }
}
