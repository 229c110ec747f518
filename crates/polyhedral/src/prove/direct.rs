//! Finds the buffers in which every element holds only one value for as long as it is allocated.
//!
//! One iteration of a copy writes each such element, or the stores of one run of one computation
//! do. A load of the element needs no search for the last write: if all stores to the element come
//! before the load, the load sees their final value. Most buffers have this property, and the
//! search for last writes takes most of the time.

use std::collections::BTreeMap;

use tilewright_ir::TensorId;
use tilewright_isl::{Answer, Map, Set};

use super::claims::Claimed;
use super::nest::Nest;
use super::order::{InText, in_text, not_before};
use super::scatters;

/// The buffers of a nest in which every element holds only one value.
pub struct Direct {
    buffers: BTreeMap<TensorId, Buffer>,
}

/// A buffer in which every element holds only one value.
pub struct Buffer {
    /// The stores to the buffer, each with a map from its iterations to the memory locations that
    /// it writes.
    pub stores: Vec<(usize, Map)>,
    /// All memory locations that the stores write.
    pub written: Set,
}

/// The stores whose values a load sees.
pub struct Seen {
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

impl Direct {
    /// Examines every buffer. A buffer is left out if isl gives up on a question about it.
    pub fn find(nest: &Nest, claims: &[Option<Claimed>]) -> Direct {
        let mut stores: BTreeMap<TensorId, Vec<(usize, Map)>> = BTreeMap::new();
        let (mut inexact, mut combined) = (Vec::new(), Vec::new());
        for (at, site) in nest.sites.iter().enumerate() {
            let (places, exact) = nest.places(site, &site.store.target);
            if !exact {
                inexact.push(site.store.target.tensor);
            }
            if site.combines {
                combined.push(site.store.target.tensor);
            }
            stores.entry(site.store.target.tensor).or_default().push((at, places));
        }
        let settled = |(buffer, own): (TensorId, Vec<(usize, Map)>)| {
            // The element holds intermediate totals until the last lane has stored.
            if combined.contains(&buffer) {
                return None;
            }
            if inexact.contains(&buffer) {
                let starts = scatters::beginnings(nest, claims, buffer, &own).unwrap_or(None)?;
                return Some((buffer, Buffer::new(nest, buffer, starts)));
            }
            is_direct(claims, &own).unwrap_or(false).then(|| (buffer, Buffer::new(nest, buffer, own)))
        };
        Direct { buffers: stores.into_iter().filter_map(settled).collect() }
    }

    /// A buffer, if each of its elements holds only one value.
    pub fn buffer(&self, buffer: TensorId) -> Option<&Buffer> {
        self.buffers.get(&buffer)
    }

    /// The stores to a buffer, if each of its elements holds only one value.
    pub fn stores(&self, buffer: TensorId) -> Option<&[(usize, Map)]> {
        self.buffer(buffer).map(|own| own.stores.as_slice())
    }

    /// Finds the stores whose values a load sees, and the instances of the load whose element
    /// nothing writes. Returns `None` if an element of the buffer holds several values, or if a
    /// store of the same result comes after the load. `iterations` maps instances of the load to
    /// iterations of its store.
    pub fn sources(
        &self,
        (nest, claims): (&Nest, &[Option<Claimed>]),
        (site, buffer): (usize, TensorId),
        places: &Map,
        iterations: &Map,
    ) -> Answer<Option<Seen>> {
        let Some(Buffer { stores, written: all }) = self.buffer(buffer) else { return Ok(None) };
        let mut found = Vec::new();
        for (writer, written) in stores {
            let [first, second] = [*writer, site].map(|at| &nest.sites[at]);
            // Two accesses of one element are in the same iteration of the loops around the
            // allocation.
            let order = in_text(first, second, |at| at < nest.loops_around_room(buffer));
            if order == InText::Never {
                continue;
            }
            let same = written.then(&places.reverse());
            let is_late = match order {
                InText::Before => false,
                _ => {
                    let late = not_before(nest, first, second).then(&iterations.reverse());
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
        let unwritten = if rest.is_empty()? { None } else { Some(places.onto(&rest)) };
        Ok(Some(Seen { writers: found, unwritten }))
    }
}

impl Buffer {
    fn new(nest: &Nest, buffer: TensorId, stores: Vec<(usize, Map)>) -> Buffer {
        let dimensions = nest.loops_around_room(buffer) + nest.nest.buffer(buffer).shape.len();
        let nothing = Set::empty(&nest.context, dimensions);
        let written = stores.iter().fold(nothing, |all, (_, places)| all.union(&places.range())).coalesce();
        Buffer { stores, written }
    }
}

/// Checks whether all stores of the results that a load sees come before the load. `pairs` maps
/// iterations of the writer to instances of the load.
fn is_complete(
    (nest, claims): (&Nest, &[Option<Claimed>]),
    (site, iterations): (usize, &Map),
    (writer, pairs): (usize, &Map),
) -> Answer<bool> {
    let Some(own) = claims[writer].as_ref().filter(|own| own.is_partial()) else { return Ok(true) };
    let seen = pairs.reverse().then(&own.runs);
    let members = claims.iter().flatten().filter(|other| other.claim.computation == own.claim.computation);
    for other in members {
        let same = seen.then(&other.runs.reverse());
        let late = not_before(nest, &nest.sites[other.site], &nest.sites[site]).reverse();
        if !same.intersect(&iterations.then(&late)).is_empty()? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_direct(claims: &[Option<Claimed>], stores: &[(usize, Map)]) -> Answer<bool> {
    let mut images: BTreeMap<Owner, Set> = BTreeMap::new();
    let mut runs: BTreeMap<usize, Map> = BTreeMap::new();
    for (site, places) in stores {
        let owner = match &claims[*site] {
            Some(claimed) => {
                // A store for an instance that does not exist must not write an element of a
                // result.
                let vain = places.range().subtract(&places.of(&claimed.domain).range());
                if !vain.is_empty()? {
                    images.insert(Owner::Copy(*site), vain);
                }
                let clash = places.of(&places.domain().subtract(&claimed.domain)).range();
                if !clash.intersect(&places.of(&claimed.domain).range()).is_empty()? {
                    return Ok(false);
                }
                let own = places.of(&claimed.domain).reverse().then(&claimed.runs);
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
            Some(claimed) => places.of(&claimed.domain).range(),
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
