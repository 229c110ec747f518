//! Collapses adjacent loops that walk through memory as a single loop would.
//!
//! A layer that treats all pixels of an image alike has two short loops over rows and columns. One
//! long loop does the same: its vectors are full, and its tiles need not stop at the end of a row.

use tilewright_ir::{Program, Statement, VarId};
use tilewright_schedule::Step;
use tilewright_schedule::analysis::{Stride, variables_in_conditions};

use super::names::Names;
use super::stage::Stage;

/// Collapses loops of a stage. `is_movable` says that the stage may be computed for a part of its
/// results at a time; then only its reduced loops can be collapsed.
pub(super) fn collapse(
    stage: &mut Stage,
    program: &Program,
    statement: &Statement,
    is_movable: bool,
    names: &Names,
) {
    let open = variables_in_conditions(program, statement);
    let vars: Vec<VarId> = statement.vars.clone();
    for outer in (0..stage.loops.len().saturating_sub(1)).rev() {
        let apart = [vars[outer], vars[outer + 1]].iter().any(|var| open.contains(var));
        let whole = !is_movable || stage.loops[outer].is_reduced;
        if whole && !apart && walk_memory_as_one(stage, outer) {
            fuse_loops(stage, outer, names);
        }
    }
}

/// Returns true when a loop and the loop directly inside it walk through every tensor as a single
/// loop would.
fn walk_memory_as_one(stage: &Stage, outer: usize) -> bool {
    let (own, inner) = (&stage.loops[outer], &stage.loops[outer + 1]);
    let together = |strides: &[Stride]| match (strides[outer], strides[outer + 1]) {
        (Stride::Elements(far), Stride::Elements(near)) => Some(far) == near.checked_mul(inner.trips),
        _ => false,
    };
    own.is_reduced == inner.is_reduced
        && own.trips > 1
        && inner.trips > 1
        && together(&stage.result)
        && stage.operands.iter().all(|operand| together(&operand.strides))
}

/// Replaces two loops by one loop, at the position of the outer one.
fn fuse_loops(stage: &mut Stage, outer: usize, names: &Names) {
    let inner = stage.loops.remove(outer + 1);
    let own = &mut stage.loops[outer];
    let name = names.part(&own.name, &inner.name);
    let mut loops = vec![stage.name.loop_named(own.name.clone())];
    match stage.creation_steps.pop_if(|step| matches!(step, Step::Fuse { name, .. } if *name == inner.name)) {
        Some(Step::Fuse { loops: all, .. }) => loops.extend(all),
        _ => loops.push(stage.name.loop_named(inner.name)),
    }
    stage.creation_steps.push(Step::Fuse { loops, name: name.clone() });
    own.trips *= inner.trips;
    own.name = name;
    stage.result.remove(outer);
    for operand in &mut stage.operands {
        operand.strides.remove(outer);
        for loops in &mut operand.dimensions {
            let joined = loops.contains(&outer) || loops.contains(&(outer + 1));
            loops.retain(|at| *at != outer && *at != outer + 1);
            loops.iter_mut().filter(|at| **at > outer).for_each(|at| *at -= 1);
            // This dimension corresponds to a part of the fused loop, so tiling the loop does not
            // tile the dimension. The index is entered twice so that the dimension never looks like
            // one that belongs to a single loop.
            loops.extend(if joined { vec![outer, outer] } else { Vec::new() });
        }
    }
}
