//! `unroll`, `vectorize`, `parallel` and `bind`: set how the iterations of a loop run.
//!
//! Binding a reduction loop to threads combines them: each thread runs one iteration, and together
//! they make one total.

use tilewright_ir::VarId;
use tilewright_ir::nest::LoopKind;
use tilewright_target::Capabilities;

use crate::draft::{Draft, Legal, LoopRole, StatementId};
use crate::illegal::Illegal;
use crate::step::{LoopName, Unit};

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
        LoopKind::Block(_) => "spread over blocks",
        LoopKind::Thread(_) => "spread over the threads of a block",
    }
}

/// The kind of loop that a `bind` makes.
pub(super) fn of_unit(unit: Unit) -> LoopKind {
    match unit {
        Unit::Block(axis) => LoopKind::Block(axis),
        Unit::Thread(axis) => LoopKind::Thread(axis),
    }
}

/// Sets how the iterations of a loop run.
pub(super) fn set(draft: &mut Draft, target: &LoopName, kind: LoopKind) -> Legal<()> {
    let var = draft.find_loop(target)?;
    let before = draft.loop_of(var).kind;
    if before != LoopKind::Serial {
        return Err(Illegal::LoopKind(format!("`{target}` is {} already", adjective(before))));
    }
    match kind {
        LoopKind::Serial => {}
        LoopKind::Unrolled => short_enough(draft, var, target, "unrolling", MOST_UNROLLED)?,
        LoopKind::Vector => short_enough(draft, var, target, "a vector", MOST_LANES)?,
        LoopKind::Parallel => parallel(draft, var, target)?,
        LoopKind::Block(_) | LoopKind::Thread(_) => bound(draft, var, target, kind)?,
    }
    draft.loops[var.index()].kind = kind;
    nests_legally(draft, var)?;
    let in_order = matches!(kind, LoopKind::Serial | LoopKind::Unrolled);
    if in_order || !draft.has_order(var) && !draft.has_unsynchronised_order(var) {
        return Ok(());
    }
    let inside = draft.statements_in(draft.body_of(var));
    let why = draft.broken_dependence(&inside).or_else(|| written_alike(draft, var, kind, &inside));
    match why {
        Some(why) => Err(Illegal::CarriedDependence { name: target.to_string(), why }),
        None => Ok(()),
    }
}

/// Returns a reason to refuse a loop all of whose iterations write the same elements. Dependences
/// do not reveal this case where all iterations but one do nothing, but code generation needs
/// separate elements for each thread.
fn written_alike(draft: &Draft, var: VarId, kind: LoopKind, inside: &[StatementId]) -> Option<String> {
    let one = draft.loop_of(var).extent.as_constant().is_some_and(|extent| extent <= 1);
    if one || kind == LoopKind::Vector {
        return None;
    }
    let alike = inside.iter().map(|id| draft.statement(*id)).find(|own| {
        let names_it = own.target.indices.iter().any(|index| index.mentions(var));
        !names_it && draft.buffers[own.target.tensor.index()].room.is_none()
    })?;
    Some(format!("all its iterations write the same elements of `{}`", alike.name))
}

/// Refuses kinds of loops that cannot be nested. Threads start outside vectors and unrolled code,
/// and neither threads nor vectors are nested. Lowering refuses loops that the lanes of a vector
/// would run differently often.
pub(super) fn nests_legally(draft: &Draft, var: VarId) -> Legal<()> {
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
            draft.loop_text(inner),
            adjective(draft.loop_of(inner).kind),
            draft.loop_text(outer),
            adjective(draft.loop_of(outer).kind)
        ))),
    }
}

fn parallel(draft: &Draft, var: VarId, target: &LoopName) -> Legal<()> {
    let Capabilities { kind, pool, grid, .. } = draft.capabilities;
    match (pool, grid) {
        (Some(_), _) => iterations_are_apart(draft, var, target),
        (None, Some(_)) => {
            let why = format!("a {kind} has blocks and threads: `bind {target} -> block.x`");
            Err(Illegal::LoopKind(why))
        }
        (None, None) => Err(Illegal::LoopKind(format!("a {kind} has no threads"))),
    }
}

/// Refuses a binding that the machine does not support, a loop longer than the machine allows, and
/// dependent iterations.
fn bound(draft: &Draft, var: VarId, target: &LoopName, kind: LoopKind) -> Legal<()> {
    let Some(grid) = draft.capabilities.grid else {
        let Capabilities { kind, pool, .. } = draft.capabilities;
        let instead = if pool.is_some() { format!(": `parallel {target}`") } else { String::new() };
        return Err(Illegal::LoopKind(format!("a {kind} has no blocks and threads{instead}")));
    };
    let (what, most) = match kind {
        LoopKind::Block(axis) => ("a dimension of the grid", grid.blocks[axis as usize]),
        LoopKind::Thread(axis) => ("a dimension of a block", grid.block_shape[axis as usize]),
        _ => return Ok(()),
    };
    short_enough(draft, var, target, what, i64::try_from(most).unwrap_or(i64::MAX))?;
    match (draft.loop_of(var).role, kind) {
        (LoopRole::Reduction, LoopKind::Thread(axis)) => {
            let refuse = |why| Illegal::Combine { name: target.to_string(), why };
            draft.check_lanes(var, axis).map_err(refuse)
        }
        _ => iterations_are_apart(draft, var, target),
    }
}

fn iterations_are_apart(draft: &Draft, var: VarId, target: &LoopName) -> Legal<()> {
    match draft.loop_of(var).role {
        // The dependences of an ordered loop are checked when its kind is set.
        LoopRole::Spatial | LoopRole::Ordered => Ok(()),
        LoopRole::Reduction => {
            let why =
                "its iterations are reduced into the same elements; `rfactor` gives each a total of its own";
            Err(Illegal::CarriedDependence { name: target.to_string(), why: why.to_string() })
        }
    }
}

fn short_enough(draft: &Draft, var: VarId, target: &LoopName, what: &'static str, most: i64) -> Legal<()> {
    let ranges = draft.ranges_of(&draft.loops_around(var));
    let extent = ranges.most(&draft.loop_of(var).extent).unwrap_or(i64::MAX);
    if extent > most {
        return Err(Illegal::TooLong { name: target.to_string(), extent, what, most });
    }
    Ok(())
}
