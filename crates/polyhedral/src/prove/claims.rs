//! Converts the claims of a nest's stores to isl relations.
//!
//! A [`Claim`] says which instance of the program a store computes. The relations lead from the
//! iterations of a store to the claimed instances, to the versions of elements that these are part
//! of (see `mod.rs`), and to *runs*. A run is the set of stores that make one result together.

use tilewright_ir::nest::{Claim, ClaimRole, IndexExpr};
use tilewright_isl::{Affine, Map, Set};

use super::nest::{Nest, Site};
use super::scatters::{claimed_versions, is_scatter};
use super::{ProofResult, undecided};
use crate::dependence::version_of;
use crate::model::{Instances, Model};

/// A store with a claim, and the instances, versions and runs that it claims.
pub struct ClaimedStore<'a, 'p> {
    /// The number of the store.
    pub site: usize,
    /// The claim.
    pub claim: &'a Claim,
    /// The claimed statement of the program.
    pub statement: &'a Instances<'p>,
    /// Maps iterations to the claimed instances that exist. Threads that compute redundantly also
    /// claim instances that do not exist; these claims have no effect.
    pub instances: Map,
    /// Maps iterations to versions.
    pub versions: Map,
    /// Maps iterations to runs.
    pub runs: Map,
    /// The iterations that claim an instance.
    pub domain: Set,
}

impl ClaimedStore<'_, '_> {
    /// Checks whether the store begins, continues or ends a result that several stores make.
    pub fn is_partial(&self) -> bool {
        self.statement.is_reduction() || self.claim.role == ClaimRole::Carry
    }
}

/// The claim of each store, or `None` for a store without a claim.
pub fn claims<'a, 'p>(
    model: &'a Model<'p>,
    nest: &'a Nest,
) -> ProofResult<Vec<Option<ClaimedStore<'a, 'p>>>> {
    let all = nest.sites.iter().enumerate();
    all.map(|(at, site)| {
        site.store.claim.as_ref().map(|claim| read_claim(model, nest, (at, site), claim)).transpose()
    })
    .collect()
}

fn read_claim<'a, 'p>(
    model: &'a Model<'p>,
    nest: &'a Nest,
    (at, site): (usize, &'a Site),
    claim: &'a Claim,
) -> ProofResult<ClaimedStore<'a, 'p>> {
    let Some(statement) = model.statements.get(claim.statement) else {
        return undecided("a store claims a statement that the program does not have");
    };
    let Some(instances) = value_map(site, &claim.point) else {
        return undecided("a store claims instances that depend on data");
    };
    let instances = instances.intersect_domain(&site.domain).intersect_range(&statement.domain);
    let run: Vec<Option<IndexExpr>> = claim.repetition.iter().cloned().map(Some).collect();
    let Some(runs) = value_map(site, &run) else {
        return undecided("the values that distinguish the runs of a computation depend on data");
    };
    let domain = instances.domain();
    let versions = match is_scatter(statement) {
        true => {
            let shape = &nest.nest.buffer(site.store.target.tensor).shape;
            claimed_versions(site, shape, statement, &instances)?
        }
        false => instances.apply_range(&version_of(statement)),
    };
    let versions = versions.coalesce();
    let runs = runs.intersect_domain(&domain);
    Ok(ClaimedStore { site: at, claim, statement, instances, versions, runs, domain })
}

/// Maps iterations of a store to the values of expressions. A missing expression may have any
/// value. Returns `None` if an expression depends on data.
fn value_map(site: &Site, values: &[Option<IndexExpr>]) -> Option<Map> {
    let (context, all) = (site.coordinates.context(), site.coordinates.len());
    let known: Vec<Affine> =
        values.iter().flatten().map(|value| site.coordinates.affine(value)).collect::<Option<_>>()?;
    let free = values.iter().enumerate().filter(|(_, value)| value.is_none()).map(|(at, _)| at);
    Some(free.fold(Map::from_functions(context, all, &known), |map, at| map.insert_output(at)))
}
