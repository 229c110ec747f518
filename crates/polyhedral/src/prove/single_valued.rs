//! Finds the buffers in which every element holds only one value for as long as it is allocated.
//!
//! One iteration of a copy writes each such element, or the stores that make one result do. A load
//! of the element needs no search for the last write: if all stores to the element come before the
//! load, the load sees their final value. Most buffers have this property, and the search for last
//! writes takes most of the time.

use std::collections::BTreeMap;

use tilewright_ir::nest::BufferId;
use tilewright_isl::{Answer, Map, Set};

use super::claims::ClaimedStore;
use super::nest::Nest;
use super::order::{TextOrder, not_before, order_in_text};
use super::scatters;

/// The buffers of a nest in which every element holds only one value.
pub struct SingleValuedBuffers {
    buffers: BTreeMap<BufferId, SingleValuedBuffer>,
}

/// A buffer in which every element holds only one value.
pub struct SingleValuedBuffer {
    /// The stores to the buffer, each with a map from its iterations to the memory locations that
    /// it writes.
    pub stores: Vec<(usize, Map)>,
    /// All memory locations that the stores write.
    pub written: Set,
}

/// The stores whose values a load sees.
pub struct VisibleStores {
    /// Stores, each with a map from its iterations to the instances of the load that see their
    /// value.
    pub writers: Vec<(usize, Map)>,
    /// Maps instances whose element nothing writes to the element's memory location.
    pub unwritten: Option<Map>,
}

/// The writer of an element: a computation or a copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Computation(usize),
    Copy(usize),
}

impl SingleValuedBuffers {
    /// Examines every buffer. A buffer is left out if isl gives up on a question about it.
    pub fn find(nest: &Nest, claims: &[Option<ClaimedStore>]) -> SingleValuedBuffers {
        let mut stores: BTreeMap<BufferId, Vec<(usize, Map)>> = BTreeMap::new();
        let (mut inexact, mut combined) = (Vec::new(), Vec::new());
        for (at, site) in nest.sites.iter().enumerate() {
            let (places, exact) = nest.locations(site, &site.store.target);
            if !exact {
                inexact.push(site.store.target.tensor);
            }
            if site.combines {
                combined.push(site.store.target.tensor);
            }
            stores.entry(site.store.target.tensor).or_default().push((at, places));
        }
        let settled = |(buffer, own): (BufferId, Vec<(usize, Map)>)| {
            // The element holds intermediate totals until the last lane has stored.
            if combined.contains(&buffer) {
                return None;
            }
            if inexact.contains(&buffer) {
                let starts = scatters::neutral_stores(nest, claims, &own).unwrap_or(None)?;
                return Some((buffer, SingleValuedBuffer::new(nest, buffer, starts)));
            }
            is_single_valued(claims, &own)
                .unwrap_or(false)
                .then(|| (buffer, SingleValuedBuffer::new(nest, buffer, own)))
        };
        SingleValuedBuffers { buffers: stores.into_iter().filter_map(settled).collect() }
    }

    /// A buffer, if each of its elements holds only one value.
    pub fn buffer(&self, buffer: BufferId) -> Option<&SingleValuedBuffer> {
        self.buffers.get(&buffer)
    }

    /// The stores to a buffer, if each of its elements holds only one value.
    pub fn stores(&self, buffer: BufferId) -> Option<&[(usize, Map)]> {
        self.buffer(buffer).map(|own| own.stores.as_slice())
    }

    /// Finds the stores whose values a load sees, and the instances of the load whose element
    /// nothing writes. Returns `None` if an element of the buffer holds several values, or if a
    /// store of the same result comes after the load. `iterations` maps instances of the load to
    /// iterations of its store.
    pub fn sources(
        &self,
        (nest, claims): (&Nest, &[Option<ClaimedStore>]),
        (site, buffer): (usize, BufferId),
        places: &Map,
        iterations: &Map,
    ) -> Answer<Option<VisibleStores>> {
        let Some(SingleValuedBuffer { stores, written: all }) = self.buffer(buffer) else { return Ok(None) };
        let mut found = Vec::new();
        for (writer, written) in stores {
            let [first, second] = [*writer, site].map(|at| &nest.sites[at]);
            // Two accesses of one element are in the same iteration of the loops around the
            // allocation.
            let order = order_in_text(first, second, |at| at < nest.loops_around_allocation(buffer));
            if order == TextOrder::Never {
                continue;
            }
            let same = written.apply_range(&places.reverse());
            let is_late = match order {
                TextOrder::Before => false,
                _ => {
                    let late = not_before(nest, first, second).apply_range(&iterations.reverse());
                    !same.intersect(&late).is_empty()?
                }
            };
            if is_late {
                return Ok(None);
            }
            if !same.is_empty()? {
                if !is_complete((nest, claims), (site, iterations), (*writer, &same))? {
                    return Ok(None);
                }
                found.push((*writer, same));
            }
        }
        let rest = places.range().subtract(all);
        let unwritten = if rest.is_empty()? { None } else { Some(places.intersect_range(&rest)) };
        Ok(Some(VisibleStores { writers: found, unwritten }))
    }
}

impl SingleValuedBuffer {
    fn new(nest: &Nest, buffer: BufferId, stores: Vec<(usize, Map)>) -> SingleValuedBuffer {
        let dimensions = nest.loops_around_allocation(buffer) + nest.nest.buffer(buffer).shape.len();
        let nothing = Set::empty(&nest.context, dimensions);
        let written = stores.iter().fold(nothing, |all, (_, places)| all.union(&places.range())).coalesce();
        SingleValuedBuffer { stores, written }
    }
}

/// Checks whether all stores of the results that a load sees come before the load. `pairs` maps
/// iterations of the writer to instances of the load.
fn is_complete(
    (nest, claims): (&Nest, &[Option<ClaimedStore>]),
    (site, iterations): (usize, &Map),
    (writer, pairs): (usize, &Map),
) -> Answer<bool> {
    let Some(own) = claims[writer].as_ref().filter(|own| own.is_partial()) else { return Ok(true) };
    let seen = pairs.reverse().apply_range(&own.runs);
    let members = claims.iter().flatten().filter(|other| other.claim.computation == own.claim.computation);
    for other in members {
        let same = seen.apply_range(&other.runs.reverse());
        let late = not_before(nest, &nest.sites[other.site], &nest.sites[site]).reverse();
        if !same.intersect(&iterations.apply_range(&late)).is_empty()? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_single_valued(claims: &[Option<ClaimedStore>], stores: &[(usize, Map)]) -> Answer<bool> {
    let mut images: BTreeMap<Owner, Set> = BTreeMap::new();
    let mut runs: BTreeMap<usize, Map> = BTreeMap::new();
    for (site, places) in stores {
        let owner = match &claims[*site] {
            Some(claimed) => {
                // A store for an instance that does not exist must not write an element of a
                // result.
                let vain = places.range().subtract(&places.intersect_domain(&claimed.domain).range());
                if !vain.is_empty()? {
                    images.insert(Owner::Copy(*site), vain);
                }
                let clash = places.intersect_domain(&places.domain().subtract(&claimed.domain)).range();
                if !clash.intersect(&places.intersect_domain(&claimed.domain).range()).is_empty()? {
                    return Ok(false);
                }
                let own = places.intersect_domain(&claimed.domain).reverse().apply_range(&claimed.runs);
                let computation = claimed.claim.computation;
                let all = match runs.remove(&computation) {
                    Some(all) => all.union(&own),
                    None => own,
                };
                runs.insert(computation, all);
                Owner::Computation(computation)
            }
            None if !places.is_injective()? => return Ok(false),
            None => Owner::Copy(*site),
        };
        let own = match &claims[*site] {
            Some(claimed) => places.intersect_domain(&claimed.domain).range(),
            None => places.range(),
        };
        let image = match images.remove(&owner) {
            Some(image) => image.union(&own),
            None => own,
        };
        images.insert(owner, image);
    }
    for runs in runs.values() {
        if !runs.is_single_valued()? {
            return Ok(false);
        }
    }
    let images: Vec<&Set> = images.values().collect();
    for (at, image) in images.iter().enumerate() {
        for other in &images[..at] {
            if !image.intersect(other).is_empty()? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}
