//! Applies the steps `unroll`, `vectorize`, `parallel` and `bind`, which set how the iterations of
//! a loop run.
//!
//! Binding a reduction loop to threads combines them: each thread runs one iteration, and together
//! they make one total. Threads that share a reduction loop of a scatter update elements
//! atomically.

use tilewright_ir::nest::{LoopKind, LoopVarId};
use tilewright_target::Capabilities;

use crate::draft::{Draft, Legal, LoopRole, StatementId};
use crate::illegal::Illegal;
use crate::step::{LoopName, ParallelUnit};

/// The most lanes of one vector. Wide vectors take several registers.
pub(crate) const MOST_LANES: i64 = 64;
/// The most iterations of an unrolled loop.
pub(crate) const MOST_UNROLLED: i64 = 128;

/// The adjective for a loop of this kind, for messages.
pub(crate) fn adjective(kind: LoopKind) -> &'static str {
    match kind {
        LoopKind::Serial => "serial",
        LoopKind::Parallel => "parallel",
        LoopKind::Vector => "vectorised",
        LoopKind::Unrolled => "unrolled",
        LoopKind::Block(_) => "bound to blocks",
        LoopKind::Thread(_) => "bound to threads",
    }
}

/// The kind of loop that a `bind` makes.
pub(super) fn loop_kind(unit: ParallelUnit) -> LoopKind {
    match unit {
        ParallelUnit::Block(axis) => LoopKind::Block(axis),
        ParallelUnit::Thread(axis) => LoopKind::Thread(axis),
    }
}

/// Sets how the iterations of a loop run.
pub(super) fn set_kind(draft: &mut Draft, target: &LoopName, kind: LoopKind) -> Legal<()> {
    let var = draft.find_loop(target)?;
    let before = draft.loop_of(var).kind;
    if before != LoopKind::Serial {
        return Err(Illegal::LoopKind(format!("`{target}` is {} already", adjective(before))));
    }
    match kind {
        LoopKind::Serial => {}
        LoopKind::Unrolled => check_length(draft, var, target, "unrolling", MOST_UNROLLED)?,
        LoopKind::Vector => check_length(draft, var, target, "a vector", MOST_LANES)?,
        LoopKind::Parallel => check_parallel(draft, var, target)?,
        LoopKind::Block(_) | LoopKind::Thread(_) => check_binding(draft, var, target, kind)?,
    }
    draft.loops[var.index()].kind = kind;
    check_nesting(draft, var)?;
    let in_order = matches!(kind, LoopKind::Serial | LoopKind::Unrolled);
    if !in_order && draft.loop_of(var).keeps_order {
        return Err(draft.keeps_order(var));
    }
    if in_order || !draft.may_carry_dependence(var) && !draft.has_unsynchronised_ordered_loop(var) {
        return Ok(());
    }
    draft.check_private_recurrence(&[var])?;
    let inside = draft.statements_in(draft.body_of(var));
    let why = draft.violated_dependence(&inside).or_else(|| same_elements_written(draft, var, kind, &inside));
    match why {
        Some(why) => Err(Illegal::CarriedDependence { name: target.to_string(), why }),
        None => Ok(()),
    }
}

/// Returns a reason to refuse a loop all of whose iterations write the same elements. Dependences
/// do not reveal this case where all iterations but one do nothing, but code generation needs
/// separate elements for each thread.
fn same_elements_written(
    draft: &Draft,
    var: LoopVarId,
    kind: LoopKind,
    inside: &[StatementId],
) -> Option<String> {
    let one = draft.loop_of(var).extent.as_constant().is_some_and(|extent| extent <= 1);
    if one || kind == LoopKind::Vector {
        return None;
    }
    let alike = inside.iter().map(|id| draft.statement(*id)).find(|own| {
        let names_it = own.target.indices.iter().any(|index| index.mentions(var));
        !names_it && draft.buffers[own.target.tensor.index()].allocated_at.is_none()
    })?;
    Some(format!("all its iterations write the same elements of `{}`", alike.name))
}

/// Refuses kinds of loops that cannot be nested. Threads start outside vectors and unrolled code,
/// and neither threads nor vectors are nested. Lowering refuses loops that the lanes of a vector
/// would run differently often.
pub(super) fn check_nesting(draft: &Draft, var: LoopVarId) -> Legal<()> {
    let own = draft.loop_of(var).kind;
    let clash = |outer: LoopKind, inner: LoopKind| match inner {
        LoopKind::Parallel => outer != LoopKind::Serial,
        LoopKind::Vector => outer == LoopKind::Vector,
        LoopKind::Serial | LoopKind::Unrolled => false,
        LoopKind::Block(own) => match outer {
            LoopKind::Serial => false,
            LoopKind::Block(other) => own == other,
            _ => true,
        },
        LoopKind::Thread(own) => match outer {
            LoopKind::Serial | LoopKind::Block(_) => false,
            LoopKind::Thread(other) => own == other,
            _ => true,
        },
    };
    let around = draft.loops_around(var);
    let outer =
        around.iter().find(|outer| clash(draft.loop_of(**outer).kind, own)).map(|outer| (*outer, var));
    let inside = draft.loops_in(draft.body_of(var));
    let inner =
        inside.iter().find(|inner| clash(own, draft.loop_of(**inner).kind)).map(|inner| (var, *inner));
    match outer.or(inner) {
        None => Ok(()),
        Some((outer, inner)) => Err(Illegal::LoopKind(format!(
            "`{}` cannot be {} inside `{}`, which is {}",
            draft.qualified_loop_name(inner),
            adjective(draft.loop_of(inner).kind),
            draft.qualified_loop_name(outer),
            adjective(draft.loop_of(outer).kind)
        ))),
    }
}

fn check_parallel(draft: &Draft, var: LoopVarId, target: &LoopName) -> Legal<()> {
    let Capabilities { kind, pool_threads: pool, grid, .. } = draft.capabilities;
    match (pool, grid) {
        (Some(_), _) => check_independent(draft, var, target),
        (None, Some(_)) => {
            let why = format!("a {kind} has no thread pool: use `bind {target} -> block.x`");
            Err(Illegal::LoopKind(why))
        }
        (None, None) => Err(Illegal::LoopKind(format!("a {kind} has no threads"))),
    }
}

/// Refuses a binding that the machine does not support, a loop longer than the machine allows, and
/// dependent iterations.
fn check_binding(draft: &Draft, var: LoopVarId, target: &LoopName, kind: LoopKind) -> Legal<()> {
    let Some(grid) = draft.capabilities.grid else {
        let Capabilities { kind, pool_threads: pool, .. } = draft.capabilities;
        let instead = if pool.is_some() { format!(": use `parallel {target}`") } else { String::new() };
        return Err(Illegal::LoopKind(format!("a {kind} has no blocks and threads{instead}")));
    };
    let (what, most) = match kind {
        LoopKind::Block(axis) => ("a dimension of the grid", grid.blocks[axis as usize]),
        LoopKind::Thread(axis) => ("a dimension of a block", grid.block_shape[axis as usize]),
        _ => return Ok(()),
    };
    check_length(draft, var, target, what, i64::try_from(most).unwrap_or(i64::MAX))?;
    let scatters = draft.loop_of(var).owner.is_some_and(|id| draft.is_scatter(id));
    match (draft.loop_of(var).role, kind) {
        (LoopRole::Reduction, LoopKind::Thread(axis)) if !scatters => {
            let refuse = |why| Illegal::Combine { name: target.to_string(), why };
            draft.check_combined_threads(var, axis).map_err(refuse)
        }
        _ => check_independent(draft, var, target),
    }
}

fn check_independent(draft: &Draft, var: LoopVarId, target: &LoopName) -> Legal<()> {
    match draft.loop_of(var).role {
        // The dependences of an ordered loop are checked when its kind is set.
        LoopRole::Spatial | LoopRole::Ordered => Ok(()),
        LoopRole::Reduction => {
            let refuse = |why| Illegal::CarriedDependence { name: target.to_string(), why };
            match draft.loop_of(var).owner.filter(|id| draft.is_scatter(*id)) {
                Some(scatter) => draft.check_atomic_updates(scatter).map_err(refuse),
                None => {
                    let why = "its iterations are reduced into the same elements; `rfactor` gives each its own total";
                    Err(refuse(why.to_string()))
                }
            }
        }
    }
}

fn check_length(
    draft: &Draft,
    var: LoopVarId,
    target: &LoopName,
    what: &'static str,
    most: i64,
) -> Legal<()> {
    let ranges = draft.ranges_of(&draft.loops_around(var));
    let extent = ranges.greatest_value(&draft.loop_of(var).extent).unwrap_or(i64::MAX);
    if extent > most {
        return Err(Illegal::TooLong { name: target.to_string(), extent, what, most });
    }
    Ok(())
}
