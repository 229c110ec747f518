//! Programs from text, and records made of them.

#![allow(dead_code, reason = "each test file uses its part")]

use tilewright_cache::{Canonical, Outcome, TargetFingerprint, TuningRecord};
use tilewright_ir::{LoopNest, Program};
use tilewright_schedule::schedule_by_rules;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, VectorInstructions};

pub const PRODUCT: &str = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
/// The same program with every name changed.
pub const SAME_PRODUCT: &str =
    "# The same.\ndef gemm(float(X,Y) K, float(Y,Z) N)\n  -> (i) {\n  i(a,j) +=! K(a,M) * N(M,j) # sum\n}";

/// A CPU description that does not depend on the machine of the test.
pub fn cpu() -> Cpu {
    Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20] }
}

pub fn target() -> TargetFingerprint {
    TargetFingerprint::of_hardware(&cpu(), "Some Processor 9000")
}

/// A function of a source, by default the last one.
pub fn program(source: &str, name: Option<&str>, sizes: &[(&str, i64)]) -> Option<Program> {
    let parsed = parse(source);
    assert!(parsed.diagnostics.is_empty(), "{source}\n{:?}", parsed.diagnostics);
    let name = name.unwrap_or(&parsed.ast.functions.last().unwrap().name.text);
    check(&parsed.ast, name, &sizes.iter().copied().collect::<Bindings>()).program
}

pub fn product(m: i64, k: i64, n: i64) -> Canonical {
    Canonical::new(&program(PRODUCT, None, &[("M", m), ("K", k), ("N", n)]).unwrap())
}

/// A measured record of the default schedule.
pub fn record(canonical: &Canonical, own: &Program, seconds: f64) -> TuningRecord {
    let schedule = canonical.to_canonical(&schedule_by_rules(own, &cpu()), &cpu());
    assert_eq!(schedule.refusal, None);
    TuningRecord {
        program: canonical.key(&target(), 2),
        title: canonical.title(),
        schedule: schedule.schedule.to_string(),
        strategy: "random".to_owned(),
        outcome: Outcome::Measured,
        samples: vec![seconds, seconds * 1.5, seconds * 0.5],
        resources: String::new(),
        features: Vec::new(),
        tool_version: tilewright_cache::TOOL_VERSION.to_owned(),
        time: 1_700_000_000,
        seed: Some(7),
        trial: Some(1),
    }
}

pub fn product_record(m: i64, k: i64, n: i64, seconds: f64) -> TuningRecord {
    let own = program(PRODUCT, None, &[("M", m), ("K", k), ("N", n)]).unwrap();
    record(&Canonical::new(&own), &own, seconds)
}

/// The loop nest without names.
pub fn nameless(mut nest: LoopNest) -> LoopNest {
    nest.name.clear();
    nest.scalars.iter_mut().for_each(|scalar| scalar.name.clear());
    nest.buffers.iter_mut().for_each(|buffer| buffer.name.clear());
    nest.vars.iter_mut().for_each(|var| var.name.clear());
    nest
}
