//! A machine, programs and predicted times for tests of searches.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use tilewright_ir::Program;
use tilewright_schedule::{Schedule, apply};
use tilewright_search::kind::cost_model;
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Cpu, Target, VectorInstructions};

pub fn cpu() -> Cpu {
    Cpu { cores: 2, vectors: VectorInstructions::Avx512, caches: vec![32 << 10, 1 << 20, 32 << 20] }
}

pub fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    let bindings: Bindings = sizes.iter().copied().collect();
    let name = &parsed.ast.functions.last().unwrap().name.text;
    let checked = check(&parsed.ast, name, &bindings);
    checked.program.unwrap_or_else(|| panic!("{source}\nis refused: {:?}", checked.diagnostics))
}

#[allow(dead_code, reason = "not every test of a search compares times")]
pub fn seconds(program: &Program, schedule: &Schedule, target: Target) -> f64 {
    cost_model(target).estimate(&apply(program, schedule, target).unwrap()).seconds
}
