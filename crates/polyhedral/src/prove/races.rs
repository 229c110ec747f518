//! Checks that no two iterations of a parallel or vector loop touch one element, unless both only
//! read it.
//!
//! Iterations of a vector loop may be reduced into one element, because the lanes are combined, and
//! one store may write the same number to one element in several lanes. Parallel iterations may
//! reduce values into one element by atomic stores with one operator. [`super::threads`] checks the
//! blocks and threads of a GPU.

use tilewright_ir::nest::{Access, ExprKind, LoopKind};
use tilewright_isl::{Map, Set};

use super::accesses::for_each_access;
use super::nest::{Nest, Site};
use super::{ProofResult, refuted, undecided};

/// An access of a site.
#[derive(Clone, Copy)]
struct SiteAccess<'a, 'n> {
    site: &'a Site<'n>,
    access: &'a Access,
    writes: bool,
}

impl SiteAccess<'_, '_> {
    /// The iterations that make the access, as far as conditions on indices decide that.
    fn iterations(&self) -> ProofResult<Set> {
        if self.writes {
            return Ok(self.site.domain.clone());
        }
        let mut found: Option<Set> = None;
        for_each_access(self.site, &mut |access, at| {
            if access == self.access {
                let all = found.take().map_or_else(|| at.iterations.clone(), |all| all.union(&at.iterations));
                found = Some(all);
            }
            Ok(())
        })?;
        Ok(found.unwrap_or_else(|| self.site.domain.clone()))
    }
}

/// Refutes nests in which parallel iterations or vector lanes conflict.
pub fn check(nest: &Nest) -> ProofResult<()> {
    let mut accesses: Vec<SiteAccess> = Vec::new();
    for site in &nest.sites {
        if !site.loops.iter().any(|own| is_concurrent(own.kind)) {
            continue;
        }
        accesses.extend(site.loads.iter().map(|access| SiteAccess { site, access, writes: false }));
        accesses.push(SiteAccess { site, access: &site.store.target, writes: true });
    }
    for first in accesses.iter().filter(|touch| touch.writes) {
        for second in &accesses {
            if first.access.tensor == second.access.tensor {
                check_pair(nest, *first, *second)?;
            }
        }
    }
    Ok(())
}

/// Checks whether iterations of a loop run at the same time without synchronisation. Loops over
/// blocks and threads of a GPU do not count here, because barriers order them.
fn is_concurrent(kind: LoopKind) -> bool {
    matches!(kind, LoopKind::Parallel | LoopKind::Vector)
}

fn check_pair(nest: &Nest, first: SiteAccess, second: SiteAccess) -> ProofResult<()> {
    let common = first.site.common_loops(second.site);
    let first_inner = nest.loops_around_allocation(first.access.tensor);
    let concerned = |at: &usize| is_concurrent(first.site.loops[*at].kind);
    let Some(outermost) = (first_inner..common).find(concerned) else { return Ok(()) };
    let [(places, known), (others, other_known)] =
        [first, second].map(|touch| nest.locations(touch.site, touch.access));
    let known = known && other_known;
    let mut same = places.apply_range(&others.reverse());
    same = (0..outermost).fold(same, |same, at| same.where_equal(at, at));
    for at in outermost..common {
        let kind = first.site.loops[at].kind;
        let are_atomic = first.writes && second.writes && are_atomic_updates(first.site, second.site);
        let is_allowed =
            are_atomic || is_one_lane_reduction(first, second, kind) || is_one_number(first, second, kind);
        if concerned(&at) && !is_allowed {
            let before = same.where_less(at, at);
            let after = same.reverse().where_less(at, at).reverse();
            refute_conflict(nest, (first, second), &before.union(&after), known)?;
        }
        same = same.where_equal(at, at);
    }
    Ok(())
}

/// Checks whether both accesses belong to one reduction of the lanes of a vector.
fn is_one_lane_reduction(first: SiteAccess, second: SiteAccess, kind: LoopKind) -> bool {
    let same = std::ptr::eq(first.site, second.site) && first.access == second.access;
    kind == LoopKind::Vector && same && first.site.store.reduce.is_some()
}

/// Checks whether both accesses are one store that writes the same number in all lanes of a vector,
/// as the store that begins a reduction does where several lanes have the same result. The order of
/// the lanes does not matter then.
fn is_one_number(first: SiteAccess, second: SiteAccess, kind: LoopKind) -> bool {
    let same = std::ptr::eq(first.site, second.site) && second.writes;
    let store = first.site.store;
    let is_number = store.reduce.is_none() && matches!(store.value.kind, ExprKind::Literal(_));
    kind == LoopKind::Vector && same && is_number
}

/// Checks whether two stores are atomic updates by one operator, which may run in any order.
pub fn are_atomic_updates(first: &Site, second: &Site) -> bool {
    first.store.is_atomic && second.store.is_atomic && first.store.reduce == second.store.reduce
}

/// Fails if there is a conflicting pair. `known`: the elements do not depend on data.
fn refute_conflict(
    nest: &Nest,
    (first, second): (SiteAccess, SiteAccess),
    pairs: &Map,
    known: bool,
) -> ProofResult<()> {
    if pairs.is_empty()? {
        return Ok(());
    }
    // Few sites have such pairs, so only now the conditions inside of values count.
    let pairs = pairs.intersect_domain(&first.iterations()?).intersect_range(&second.iterations()?);
    let Some((one, other)) = pairs.sample()? else { return Ok(()) };
    let name = &nest.nest.buffer(first.access.tensor).name;
    if !known {
        return undecided(format!("data decides whether two iterations access one element of `{name}`"));
    }
    let what = if second.writes { "write" } else { "read" };
    refuted(format!(
        "{} and a {what} by {} access one element of `{name}` in parallel iterations without an order",
        nest.describe(first.site, &one),
        nest.describe(second.site, &other)
    ))
}
