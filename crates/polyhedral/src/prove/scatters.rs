//! Recognises scatters: reductions into elements that data chooses.
//!
//! The element that an instance is reduced into is not known, so the proof treats the tensor as a
//! whole. A run (the stores that make one result) sets all elements to the neutral element. Then
//! every instance is reduced once into the element that the program says. No other store ever
//! writes the buffer. A load after the last of these stores sees the version of its element.
//! [`neutral_stores`] checks the order of the stores and that no other store writes the buffer.

use tilewright_ir::nest::{BufferId, ClaimRole};
use tilewright_isl::{Answer, Map};

use super::claims::ClaimedStore;
use super::nest::Nest;
use super::order::before;
use crate::coordinates::elements_of;
use crate::model::Instances;

/// Checks whether data or reduced variables choose the elements that a statement is reduced into.
pub fn is_scatter(statement: &Instances) -> bool {
    statement.is_reduction() && (!statement.write.exact || statement.reduces_into_several)
}

/// The stores that set a buffer to neutral elements, with the locations that they write. Returns
/// `None` unless one scatter alone writes the buffer, in the order of the module's description.
/// `stores` are all stores to the buffer.
pub fn neutral_stores(
    nest: &Nest,
    claims: &[Option<ClaimedStore>],
    buffer: BufferId,
    stores: &[(usize, Map)],
) -> Answer<Option<Vec<(usize, Map)>>> {
    let own: Option<Vec<&ClaimedStore>> = stores.iter().map(|(site, _)| claims[*site].as_ref()).collect();
    let Some(own) = own else { return Ok(None) };
    let alike = |claimed: &&ClaimedStore| {
        claimed.claim.computation == own[0].claim.computation
            && matches!(claimed.claim.role, ClaimRole::Value | ClaimRole::Neutral)
    };
    if !own.iter().all(alike) || !is_scatter(own[0].statement) || own[0].statement.needs_previous_value() {
        return Ok(None);
    }
    let (starts, values): (Vec<&ClaimedStore>, Vec<&ClaimedStore>) =
        own.into_iter().partition(|claimed| claimed.claim.role == ClaimRole::Neutral);
    let places =
        |claimed: &ClaimedStore| stores.iter().find(|(site, _)| *site == claimed.site).map(|(_, own)| own);
    // Where data chooses the location of a neutral element, `places` holds every location that it
    // may be, and most of them are not set.
    let is_exact = |own: &&ClaimedStore| {
        let site = &nest.sites[own.site];
        nest.locations(site, &site.store.target).1
    };
    if !starts.iter().all(is_exact) {
        return Ok(None);
    }
    let set = starts.iter().filter_map(|own| Some(own.runs.reverse().apply_range(places(own)?)));
    let Some(set) = set.reduce(|all, own| all.union(&own)) else { return Ok(None) };
    // Only one run may ever write a location.
    if !set.reverse().is_single_valued()? {
        return Ok(None);
    }
    let whole = elements_of(&nest.context, &nest.nest.buffer(buffer).shape);
    for value in &values {
        let allocation =
            value.runs.reverse().apply_range(&nest.allocation_of(&nest.sites[value.site], buffer));
        let wanted = allocation.flat_range_product(&Map::from_domain_and_range(&value.runs.range(), &whole));
        if !wanted.is_subset(&set)? {
            return Ok(None);
        }
        for start in &starts {
            let same = value.runs.apply_range(&start.runs.reverse());
            let early = before(nest, &nest.sites[value.site], &nest.sites[start.site]);
            if !same.intersect(&early).is_empty()? {
                return Ok(None);
            }
        }
    }
    Ok(Some(starts.iter().filter_map(|own| Some((own.site, places(own)?.clone()))).collect()))
}

/// Maps instances of a scatter to the iteration of the loops around it.
pub fn outer_iterations(statement: &Instances) -> Map {
    let inner = statement.coordinates.len() - statement.loops.len();
    statement.domain.identity().project_out_outputs(statement.loops.len(), inner)
}
