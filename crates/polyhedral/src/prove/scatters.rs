//! Recognises scatters: reductions into elements that data chooses.
//!
//! The element that an instance is reduced into is not known. Its *row* is known: the iteration of
//! the ordered loops around the statement, and the subscripts that neither data nor reduced
//! variables choose ([`Instances::chosen`]). So the proof treats a row as a whole. A run (the
//! stores that make results together) sets all elements of its rows to the neutral element. Then
//! every instance of these rows is reduced once into the element that the program says. No other
//! store ever writes the buffer. A load after the last of these stores sees the version of its
//! element.
//! [`neutral_stores`] checks the order of the stores and that no other store writes the buffer.
//!
//! A reduction in parts has a table for each part: a buffer whose subscripts by data are those of
//! the program, in their order ([`dimensions_by_data`]). A total adds up the elements of several
//! tables that have the same subscripts in these dimensions.

use tilewright_ir::nest::ClaimRole;
use tilewright_isl::{Answer, Map};

use super::claims::ClaimedStore;
use super::nest::{Nest, Site};
use super::order::before;
use crate::dependence::version_of;
use crate::model::Instances;

/// Checks whether data or reduced variables choose the elements that a statement is reduced into.
pub fn is_scatter(statement: &Instances) -> bool {
    statement.is_reduction() && (!statement.write.exact || statement.reduces_into_several)
}

/// Checks whether a store reduces a value into an element that data or reduced variables choose.
pub fn scatters(claimed: &ClaimedStore) -> bool {
    is_scatter(claimed.statement) && claimed.claim.role == ClaimRole::Value
}

/// The stores that set a buffer to neutral elements, with the locations that they write. Returns
/// `None` unless one scatter alone writes the buffer, in the order of the module's description.
/// `stores` are all stores to the buffer.
pub fn neutral_stores(
    nest: &Nest,
    claims: &[Option<ClaimedStore>],
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
    let located: Vec<LocatedStore> = own
        .into_iter()
        .zip(stores)
        .map(|(claimed, (_, places))| LocatedStore::new(nest, claimed, places))
        .collect();
    let (starts, values): (Vec<LocatedStore>, Vec<LocatedStore>) =
        located.into_iter().partition(|own| own.claimed.claim.role == ClaimRole::Neutral);
    // Where data chooses the location of a neutral element, `places` holds every location that it
    // may be, and most of them are not set.
    if !starts.iter().all(|own| nest.locations(own.site, &own.site.store.target).1) {
        return Ok(None);
    }
    let set = starts.iter().map(LocatedStore::locations_of_runs).reduce(|all, own| all.union(&own));
    let Some(set) = set else { return Ok(None) };
    // Only one run may ever write a location.
    if !set.reverse().is_single_valued()? {
        return Ok(None);
    }
    for value in &values {
        if !value.locations_of_runs().is_subset(&set)? {
            return Ok(None);
        }
        for start in &starts {
            if !value.follows(nest, start)? {
                return Ok(None);
            }
        }
    }
    Ok(Some(starts.into_iter().map(|own| (own.claimed.site, own.places.clone())).collect()))
}

/// A store to the buffer of a scatter.
struct LocatedStore<'a, 'p, 'n> {
    claimed: &'a ClaimedStore<'a, 'p>,
    site: &'a Site<'n>,
    /// Maps iterations to the locations that they may write.
    places: &'a Map,
    rows: Map,
}

impl<'a, 'p, 'n> LocatedStore<'a, 'p, 'n> {
    fn new(nest: &'a Nest<'n>, claimed: &'a ClaimedStore<'a, 'p>, places: &'a Map) -> Self {
        let rows = without_chosen(&claimed.versions, claimed.statement);
        LocatedStore { claimed, site: &nest.sites[claimed.site], places, rows }
    }

    fn locations_of_runs(&self) -> Map {
        self.claimed.runs.reverse().apply_range(self.places)
    }

    /// Checks that a value runs after a neutral element of the same run that may be in the same
    /// location, and belongs to the same row.
    fn follows(&self, nest: &Nest, start: &LocatedStore) -> Answer<bool> {
        let same_run = self.claimed.runs.apply_range(&start.claimed.runs.reverse());
        let same = same_run.intersect(&self.places.apply_range(&start.places.reverse()));
        let early = before(nest, self.site, start.site);
        Ok(same.intersect(&early).is_empty()? && same.apply_range(&start.rows).is_subset(&self.rows)?)
    }
}

/// Maps instances of a scatter to their rows.
pub fn row_of(statement: &Instances) -> Map {
    without_chosen(&version_of(statement), statement)
}

/// Drops the subscripts that data or reduced variables choose from versions.
fn without_chosen(versions: &Map, statement: &Instances) -> Map {
    let dimensions = chosen_dimensions(statement).into_iter().rev();
    dimensions.fold(versions.clone(), |map, at| map.project_out_outputs(statement.loops.len() + at, 1))
}

/// The dimensions of the written tensor in which data or reduced variables choose the element.
pub fn chosen_dimensions(statement: &Instances) -> Vec<usize> {
    let dimensions = statement.chosen.iter().enumerate();
    dimensions.filter(|(_, is_chosen)| **is_chosen).map(|(at, _)| at).collect()
}

/// Maps iterations of a store of a scatter, or of its totals, to the versions that it claims.
/// `instances` are the instances that it claims. The claimed instances decide the row, and the
/// location decides the element in it. If the claim leaves the row open, the location decides it
/// too, because such a buffer has the layout of the tensor.
pub fn claimed_versions(site: &Site, shape: &[i64], statement: &Instances, instances: &Map) -> Answer<Map> {
    let by_instance = instances.apply_range(&version_of(statement));
    if shape.len() != statement.chosen.len() {
        return Ok(by_instance);
    }
    let elements = site.coordinates.elements(&site.store.target.indices, shape).0;
    let outer = instances.apply_range(&outer_iterations(statement));
    if !without_chosen(&by_instance, statement).is_single_valued()? {
        return Ok(outer.flat_range_product(&elements));
    }
    let free = statement.chosen.iter().enumerate().filter(|(_, is_chosen)| !**is_chosen);
    let in_row = free.fold(elements, |map, (at, _)| map.project_out_outputs(at, 1).insert_output(at));
    // By data, an instance may be reduced into any element of its row.
    let dimensions = chosen_dimensions(statement);
    let whole_rows = dimensions.iter().fold(without_chosen(&by_instance, statement), |map, at| {
        map.insert_output(statement.loops.len() + at)
    });
    Ok(whole_rows.intersect(&outer.flat_range_product(&in_row)))
}

/// Maps instances of a scatter to the iteration of the loops around it.
fn outer_iterations(statement: &Instances) -> Map {
    let inner = statement.coordinates.len() - statement.loops.len();
    statement.domain.identity().project_out_outputs(statement.loops.len(), inner)
}

/// The dimensions of a store's target in which data chooses the element. In a table of partial
/// results they stand for the program's subscripts that data chooses, in their order.
pub fn dimensions_by_data(site: &Site) -> Vec<usize> {
    let indices = site.store.target.indices.iter().enumerate();
    indices.filter(|(_, index)| site.coordinates.affine(index).is_none()).map(|(at, _)| at).collect()
}
