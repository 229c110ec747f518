//! Compiles random programs under random schedules, and compares the results with the interpreter.
//!
//! Each case is compiled for some vector instruction set of this machine and runs on one or two
//! threads. Its tensors are in fenced memory: an access outside of them ends the process with a
//! signal. `TILEWRIGHT_TRACE=1` with `--nocapture` then shows which case it was.
//!
//! `TILEWRIGHT_SEED`, `TILEWRIGHT_CASES` and `TILEWRIGHT_FIRST` choose other cases than those of
//! every run. A failure is printed as the smallest program, sizes and schedule found that fail in
//! the same way, with the loops. `TILEWRIGHT_FAILURES` limits the number of printed failures.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod harness;

#[path = "../../schedule/tests/random/mod.rs"]
#[allow(dead_code, reason = "the interpreter of loops is tried elsewhere")]
mod random;

#[path = "../../schedule/tests/support/mod.rs"]
mod support;

use std::collections::BTreeSet;
use std::env;

use tilewright::{Error, Module, VectorInstructions};
use tilewright_ir::{Program, print};

use harness::fenced_tensor::Placement;
use harness::{Arguments, difference};
use random::case::{Case, checked};
use random::guarded;
use random::rng::Rng;
use random::schedule::{Counts, schedule, with_finishing_steps};
use random::shrink::shrink;

/// The maximum number of points of a program.
const MOST_POINTS: u64 = 4000;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// How a case is compiled and called.
#[derive(Clone, Copy, Debug)]
struct RunConfig {
    vectors: VectorInstructions,
    threads: usize,
    /// Whether to use the default schedule instead of the schedule of the case.
    default_schedule: bool,
    calls: usize,
    /// The seed of the inputs.
    data: u64,
    /// The seed of the tensor layouts; `None` for contiguous tensors.
    placements: Option<u64>,
}

impl RunConfig {
    fn random(rng: &mut Rng) -> RunConfig {
        RunConfig {
            vectors: *rng.pick(&harness::vectors()),
            threads: rng.between(1, 2) as usize,
            default_schedule: rng.chance(12),
            calls: rng.between(1, 2) as usize,
            data: rng.between(1, 1 << 20) as u64,
            placements: rng.chance(30).then(|| rng.between(0, i64::MAX - 1) as u64),
        }
    }
}

fn placement(rng: &mut Rng) -> Placement {
    let mut order: Vec<usize> = (0..4).collect();
    if rng.chance(50) {
        rng.shuffle(&mut order);
    }
    let steps = (0..4).map(|_| (rng.weighted(&[(0, 70), (1, 20), (2, 10)]), rng.chance(15))).collect();
    Placement { order, steps, skew: rng.weighted(&[(0, 85), (1, 15)]), at_end: rng.chance(70) }
}

/// How a case fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The schedule was accepted, and code could not be generated for the loops.
    Build,
    /// The compiler panics.
    Panics,
    /// The call fails, or accesses memory outside of its tensors.
    Run,
    /// The code computes something else.
    Differs,
}

#[derive(Debug)]
struct Failure {
    kind: Kind,
    message: String,
    loops: String,
}

impl Failure {
    /// A key that is equal for failures that most likely have the same cause.
    fn signature(&self) -> String {
        let first = self.message.lines().next().unwrap_or_default();
        match self.kind {
            Kind::Build | Kind::Panics => first.split(' ').filter(|word| !word.contains('`')).collect(),
            // The differing numbers say nothing about the cause.
            Kind::Run | Kind::Differs => self.loops.clone(),
        }
    }
}

/// Returns how a case fails, if it fails. A refused schedule is no failure, because another machine
/// may accept it.
fn failure(case: &Case, way: RunConfig) -> Option<Failure> {
    let program = checked(&case.source)?;
    let inputs = support::inputs(&program, way.data);
    let wanted = tilewright_interp::run(&program, inputs.clone()).ok()?;
    let fail = |kind, message, loops| Some(Failure { kind, message, loops });
    let schedule = (!way.default_schedule).then(|| case.schedule.clone());
    let module = Module::parse(&case.source.to_string()).expect("it was checked");
    let sizes = case.source.sizes.iter().map(|(name, value)| (name.as_str(), *value));
    let whole = module.program("f", sizes).expect("it was checked");
    let compiled = guarded(|| harness::compile(&whole, schedule, way.vectors, way.threads));
    let kernel = match compiled {
        Ok(Ok(kernel)) => kernel,
        Ok(Err(Error::Schedule(_))) if !way.default_schedule => return None,
        Ok(Err(error)) => return fail(Kind::Build, error.to_string(), loops(&program, case)),
        Err(message) => return fail(Kind::Panics, message, loops(&program, case)),
    };
    let loops = || print::nest(kernel.loops());
    let mut rng = Rng::new(way.placements.unwrap_or_default(), 0);
    let mut place = || match way.placements {
        Some(_) => placement(&mut rng),
        None => Placement::contiguous(),
    };
    let arguments = Arguments::new(&kernel, &inputs, &mut place);
    match arguments.run(&kernel, &inputs, way.calls, &mut place) {
        Err(message) => fail(Kind::Run, message, loops()),
        Ok(found) => {
            difference(&wanted, &found, true).and_then(|message| fail(Kind::Differs, message, loops()))
        }
    }
}

/// The loops that should be compiled.
fn loops(program: &Program, case: &Case) -> String {
    match guarded(|| tilewright_schedule::apply(program, &case.schedule, &support::cpu())) {
        Ok(Ok(nest)) => print::nest(&nest),
        _ => String::new(),
    }
}

/// The statistics of all cases.
#[derive(Default)]
struct Tally {
    programs: u64,
    steps: usize,
    counts: Counts,
    /// The signatures of the failures so far.
    seen: BTreeSet<String>,
    failures: Vec<String>,
}

#[test]
fn compiled_code_computes_what_the_program_does() {
    let (seed, cases) = (setting("TILEWRIGHT_SEED", 1), setting("TILEWRIGHT_CASES", 700));
    let first = setting("TILEWRIGHT_FIRST", 0);
    let most = setting("TILEWRIGHT_FAILURES", 4) as usize;
    let mut tally = Tally::default();
    random::keep_expected_panics();
    for case in first..first + cases {
        if tally.failures.len() < most {
            tally.run(seed, case);
        }
    }
    println!("{} programs, {} steps", tally.programs, tally.steps);
    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n\n"));
    assert!(2 * tally.programs > cases, "only {} programs of {cases} are accepted", tally.programs);
}

impl Tally {
    fn run(&mut self, seed: u64, number: u64) {
        let mut rng = Rng::new(seed, number);
        let source = random::program::program(&mut rng);
        let Some(program) = checked(&source) else { return };
        if tilewright_interp::count_points(&program) > MOST_POINTS {
            return;
        }
        let mut schedule = schedule(&mut rng, &program, &mut self.counts);
        if rng.chance(60) {
            schedule = with_finishing_steps(&mut rng, &program, schedule, &mut self.counts);
        }
        let way = RunConfig::random(&mut rng);
        let case = Case { source, schedule };
        if setting("TILEWRIGHT_TRACE", 0) != 0 {
            eprintln!("=== case {number}: {way:?}\n{case}");
        }
        self.programs += 1;
        self.steps += case.schedule.steps.len();
        if let Some(found) = failure(&case, way)
            && self.seen.insert(found.signature())
        {
            self.failures.push(shrunk(number, case, way, found));
        }
    }
}

/// Formats the smallest case found that fails in the same way.
fn shrunk(number: u64, case: Case, way: RunConfig, found: Failure) -> String {
    let small = shrink(case, |case| failure(case, way).is_some_and(|own| own.kind == found.kind));
    let found = failure(&small, way).unwrap_or(found);
    format!("=== case {number}: {:?} with {way:?}\n{small}{}\n{}", found.kind, found.message, found.loops)
}
