//! Tests steps on a made-up target that is neither a CPU nor a GPU: only the target's capabilities
//! decide the effect of a step.

use tilewright_ir::{Program, print, verify_nest};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::{Capabilities, Cpu, Registers, VectorInstructions};

use super::apply;
use crate::draft::{Draft, Legal};
use crate::{lower, text};

/// A target without threads and without memory of its own, whose loops have constant trip counts.
const CIRCUIT: Capabilities = Capabilities {
    kind: "circuit",
    pool_threads: None,
    grid: None,
    shared_bytes: None,
    registers: Registers::Vector { bytes: 16, count: 8 },
    vector_bytes: 16,
    atomic_bytes: &[],
    fixed_trip_counts: true,
    predicated: true,
};

fn program() -> Program {
    let source = "def mm(float(10,10) A, float(10,10) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
    check(&parse(source).ast, "mm", &Bindings::default()).program.unwrap()
}

fn scheduled<'p>(program: &'p Program, capabilities: Capabilities, steps: &str) -> Legal<Draft<'p>> {
    let cpu = Cpu { cores: 1, vectors: VectorInstructions::Baseline, caches: vec![32 << 10] };
    let mut draft = Draft::new(program, (&cpu).into())?;
    draft.capabilities = capabilities;
    text::parse(steps).schedule.steps.iter().try_for_each(|step| apply(&mut draft, step))?;
    Ok(draft)
}

fn refusal(capabilities: Capabilities, steps: &str) -> String {
    scheduled(&program(), capabilities, steps).map(|_| ()).unwrap_err().to_string()
}

fn loops(capabilities: Capabilities, steps: &str) -> String {
    let program = program();
    let nest = lower::lower(&scheduled(&program, capabilities, steps).unwrap()).unwrap();
    verify_nest(&nest).unwrap();
    print::nest(&nest)
}

#[test]
fn units_and_memory_that_the_target_lacks_are_refused() {
    let says = |steps: &str, why: &str| {
        let refusal = refusal(CIRCUIT, steps);
        assert!(refusal.contains(why), "{steps}: {refusal}");
    };
    says("parallel C.i", "a circuit has no threads");
    says("bind C.i -> block.x", "a circuit has no blocks and threads");
    says("promote A at C.i -> a shared", "a circuit has no shared memory");
    says("promote A at C.i -> a registers", "on a circuit only results go into registers");
    says("pipeline C.k stages 2", "a circuit has no shared memory");
}

#[test]
fn a_pool_of_threads_is_all_that_parallel_needs() {
    let pooled = Capabilities { pool_threads: Some(2), ..CIRCUIT };
    assert!(loops(pooled, "parallel C.i").contains("parallel"));
    assert!(refusal(pooled, "bind C.i -> block.x").ends_with("no blocks and threads: use `parallel C.i`"));
}

#[test]
fn fixed_trip_counts_give_guards_and_others_shorter_loops() {
    let steps = "split C.i -> io, ii:4";
    let [fixed, free] = [true, false]
        .map(|fixed_trips| loops(Capabilities { fixed_trip_counts: fixed_trips, ..CIRCUIT }, steps));
    assert!(fixed.contains("for ii in 4\n") && fixed.contains("if "), "{fixed}");
    assert!(!free.contains("if "), "{free}");
}
