//! Checks that no two iterations of a parallel or vector loop touch one element, unless both only
//! read it.
//!
//! Iterations of a vector loop may be reduced into one element, because the lanes are combined.
//! [`super::threads`] checks the blocks and threads of a GPU.

use tilewright_ir::Access;
use tilewright_ir::nest::LoopKind;
use tilewright_isl::Map;

use super::nest::{Nest, Site};
use super::{Step, refuted, undecided};

/// An access of a site.
#[derive(Clone, Copy)]
struct Touch<'a, 'n> {
    site: &'a Site<'n>,
    access: &'a Access,
    writes: bool,
}

/// Refutes nests in which parallel iterations or vector lanes conflict.
pub fn check(nest: &Nest) -> Step<()> {
    let mut touches: Vec<Touch> = Vec::new();
    for site in &nest.sites {
        if !site.loops.iter().any(|own| at_once(own.kind)) {
            continue;
        }
        touches.extend(site.loads.iter().map(|access| Touch { site, access, writes: false }));
        touches.push(Touch { site, access: &site.store.target, writes: true });
    }
    for first in touches.iter().filter(|touch| touch.writes) {
        for second in &touches {
            if first.access.tensor == second.access.tensor {
                pair(nest, *first, *second)?;
            }
        }
    }
    Ok(())
}

/// Checks whether iterations of a loop run at the same time without synchronisation. Loops over
/// blocks and threads of a GPU do not count here, because barriers order them.
fn at_once(kind: LoopKind) -> bool {
    matches!(kind, LoopKind::Parallel | LoopKind::Vector)
}

fn pair(nest: &Nest, first: Touch, second: Touch) -> Step<()> {
    let common = first.site.common_loops(second.site);
    let room = nest.loops_around_room(first.access.tensor);
    let concerned = |at: &usize| at_once(first.site.loops[*at].kind);
    let Some(outermost) = (room..common).find(concerned) else { return Ok(()) };
    let [(places, known), (others, other_known)] =
        [first, second].map(|touch| nest.places(touch.site, touch.access));
    let known = known && other_known;
    let mut same = places.then(&others.reverse());
    same = (0..outermost).fold(same, |same, at| same.where_equal(at, at));
    for at in outermost..common {
        if concerned(&at) && !combined(first, second, first.site.loops[at].kind) {
            let before = same.where_less(at, at);
            let after = same.reverse().where_less(at, at).reverse();
            meets(nest, (first, second), &before.union(&after), known)?;
        }
        same = same.where_equal(at, at);
    }
    Ok(())
}

/// Checks whether both accesses belong to one reduction of the lanes of a vector.
fn combined(first: Touch, second: Touch, kind: LoopKind) -> bool {
    let same = std::ptr::eq(first.site, second.site) && first.access == second.access;
    kind == LoopKind::Vector && same && first.site.store.reduce.is_some()
}

/// Fails if there is a conflicting pair. `known`: the elements do not depend on data.
fn meets(nest: &Nest, (first, second): (Touch, Touch), pairs: &Map, known: bool) -> Step<()> {
    let Some((one, other)) = pairs.sample()? else { return Ok(()) };
    let name = &nest.nest.buffer(first.access.tensor).name;
    if !known {
        return undecided(format!("data decides whether iterations meet in `{name}`"));
    }
    let what = if second.writes { "write" } else { "read" };
    refuted(format!(
        "{} and a {what} by {} touch one element of `{name}`, and nothing orders them",
        nest.describe(first.site, &one),
        nest.describe(second.site, &other)
    ))
}
