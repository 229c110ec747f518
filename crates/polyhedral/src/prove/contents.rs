//! Finds which version of which tensor is in each memory location of a buffer, for buffers in which
//! every element holds only one value.
//!
//! Most loads read such a buffer, and most stores use the subscripts of the program. The load of a
//! store is right if its location holds the version that the program's read sees. This is a
//! question about two relations from iterations to versions. If the answer is yes, the walk in
//! [`super::values`] need not follow the load through memory. A no proves nothing.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{self, BufferId};
use tilewright_ir::{Access, ExprKind, IndexExpr, TensorId, VarId};
use tilewright_isl::{Answer, Map, Set};

use super::claims::ClaimedStore;
use super::comparison::Comparison;
use super::nest::{Nest, Site, argument};
use super::reductions::Runs;
use super::single_valued::{SingleValuedBuffer, SingleValuedBuffers};
use super::sources::Sources;
use crate::dependence::{Flow, Reader};
use crate::model::Model;

/// The contents of buffers, computed on first use.
pub struct Contents<'a, 'p, 'n> {
    model: &'a Model<'p>,
    nest: &'a Nest<'n>,
    sources: &'a Sources,
    claims: &'a [Option<ClaimedStore<'a, 'p>>],
    runs: &'a Runs<'a, 'n>,
    single_valued: &'a SingleValuedBuffers,
    known: RefCell<BTreeMap<BufferId, Option<Rc<Content>>>>,
    /// For each statement, the cached answer of [`Contents::sees_versions`] for each of its reads.
    total: Vec<Vec<OnceCell<bool>>>,
}

/// The versions in a buffer: all of one tensor, and all made by one statement.
struct Content {
    /// The statement; `None` for a tensor that the caller supplies.
    writer: Option<usize>,
    tensor: TensorId,
    /// Maps memory locations to versions. A location holds at most one version, or none.
    versions: Map,
    /// Whether every written location holds the element with the same subscripts in the program.
    is_in_place: bool,
}

impl<'a, 'p, 'n> Contents<'a, 'p, 'n> {
    /// The contents of a nest's buffers, none of which is computed yet.
    pub fn new(
        (model, nest): (&'a Model<'p>, &'a Nest<'n>),
        (sources, single_valued): (&'a Sources, &'a SingleValuedBuffers),
        claims: &'a [Option<ClaimedStore<'a, 'p>>],
        runs: &'a Runs<'a, 'n>,
    ) -> Contents<'a, 'p, 'n> {
        let total = model.statements.iter().map(|own| vec![OnceCell::new(); own.reads.len()]).collect();
        Contents { model, nest, sources, claims, runs, single_valued, known: RefCell::default(), total }
    }

    /// Checks whether a load brings what the program reads at the instance that the store claims,
    /// in all iterations of the store. `comparison` holds the situations that count; they begin
    /// with the iteration and the instance.
    pub fn load_matches_read(
        &self,
        comparison: &Comparison,
        claimed: &ClaimedStore,
        read: &Access,
        load: &Access<InNest>,
    ) -> Answer<bool> {
        let reads = &self.model.statements[claimed.claim.statement].reads;
        let is_it =
            |own: &crate::model::AccessRelation| own.tensor == read.tensor && own.indices == read.indices;
        let Some(number) = reads.iter().position(is_it).filter(|number| reads[*number].exact) else {
            return Ok(false);
        };
        let Some(content) = self.content(load.tensor)? else { return Ok(false) };
        if content.tensor != read.tensor || !self.is_written_before(claimed.site, load) {
            return Ok(false);
        }
        let reader = Reader::Read(claimed.claim.statement, number);
        let flows: Vec<&Flow> = self.sources.program.iter().filter(|flow| flow.reader == reader).collect();
        if flows.iter().any(|flow| flow.writer != content.writer)
            || !self.sees_versions(comparison, (claimed, number), &flows)?
        {
            return Ok(false);
        }
        if content.is_in_place && self.has_same_subscripts(claimed, read, load) {
            return Ok(true);
        }
        let brought =
            self.nest.locations(&self.nest.sites[claimed.site], load).0.apply_range(&content.versions);
        for flow in flows {
            if !claimed.instances.apply_range(&flow.versions).is_subset(&brought)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks whether all values that a load sees are complete and written before it, or supplied.
    fn is_written_before(&self, site: usize, load: &Access<InNest>) -> bool {
        let at = self.nest.sites[site].loads.iter().position(|own| *own == load);
        let Some(source) = at.and_then(|at| self.sources.loads[site].get(at)) else { return false };
        let is_supplied = self.single_valued.stores(load.tensor).is_none();
        source.coordinates.len() == self.nest.sites[site].coordinates.len()
            && (is_supplied || source.is_single_valued && source.unwritten.is_none())
    }

    /// Checks whether a read of the program sees a known version, in every instance or at least in
    /// those of a comparison.
    fn sees_versions(
        &self,
        comparison: &Comparison,
        (claimed, read): (&ClaimedStore, usize),
        flows: &[&Flow],
    ) -> Answer<bool> {
        let known = &self.total[claimed.claim.statement][read];
        let without_version =
            |from: Set| flows.iter().fold(from, |rest, flow| rest.subtract(&flow.versions.domain()));
        let is_total = match known.get() {
            Some(known) => *known,
            None => without_version(claimed.statement.domain.clone()).is_empty()?,
        };
        known.get_or_init(|| is_total);
        let first = self.nest.sites[claimed.site].coordinates.len();
        let instance: Vec<usize> = (first..first + claimed.statement.coordinates.len()).collect();
        Ok(is_total || without_version(comparison.projection(&instance).range()).is_empty()?)
    }

    /// Checks whether the read's subscripts, with the claimed instance substituted, are literally
    /// those of the load.
    fn has_same_subscripts(&self, claimed: &ClaimedStore, read: &Access, load: &Access<InNest>) -> bool {
        let coordinates = &claimed.statement.coordinates;
        let value = |var: VarId| claimed.claim.point[coordinates.position(var)?].clone();
        // Data in a subscript has no counterpart: a tensor of the program is in no certain buffer.
        let same = |(own, other): (&IndexExpr, &nest::IndexExpr)| {
            own.map_ids(&|_| None, &value).is_some_and(|own| own == *other)
        };
        read.indices.len() == load.indices.len() && read.indices.iter().zip(&load.indices).all(same)
    }

    fn content(&self, buffer: BufferId) -> Answer<Option<Rc<Content>>> {
        if let Some(known) = self.known.borrow().get(&buffer) {
            return Ok(known.clone());
        }
        let found = self.find(buffer)?.map(Rc::new);
        self.known.borrow_mut().insert(buffer, found.clone());
        Ok(found)
    }

    fn find(&self, buffer: BufferId) -> Answer<Option<Content>> {
        let context = &self.nest.context;
        let Some(SingleValuedBuffer { stores, written }) = self.single_valued.buffer(buffer) else {
            let is_changed = self.nest.sites.iter().any(|site| site.store.target.tensor == buffer);
            let supplied = argument(self.nest.nest, buffer)
                .filter(|tensor| !is_changed && self.model.program.tensor(*tensor).role.is_supplied());
            return Ok(supplied.map(|tensor| Content {
                writer: None,
                tensor,
                versions: self.model.elements(context, tensor).identity(),
                is_in_place: true,
            }));
        };
        let mut all: Option<Content> = None;
        for (site, places) in stores {
            let Some(own) = self.content_of_store(*site, places)? else { return Ok(None) };
            all = match all {
                None => Some(own),
                Some(all) if (all.writer, all.tensor) == (own.writer, own.tensor) => {
                    Some(Content { versions: all.versions.union(&own.versions), ..all })
                }
                Some(_) => return Ok(None),
            };
        }
        let Some(mut all) = all else { return Ok(None) };
        if !all.versions.is_single_valued()? {
            return Ok(None);
        }
        let (place, version) = all.versions.dimensions()?;
        all.is_in_place = place == version
            && all.versions.is_subset(&written.identity())?
            && written.is_subset(&all.versions.domain())?;
        Ok(Some(all))
    }

    /// The content that a store leaves in the locations that it writes.
    fn content_of_store(&self, site: usize, places: &Map) -> Answer<Option<Content>> {
        if let Some(claimed) = &self.claims[site] {
            let is_whole = claimed.domain.is_equal(&places.domain())? && !self.runs.is_partial_result(site);
            let (writer, tensor) = (Some(claimed.claim.statement), claimed.statement.statement.target);
            let versions = places.reverse().apply_range(&claimed.versions);
            return Ok(is_whole.then_some(Content { writer, tensor, versions, is_in_place: false }));
        }
        let own = &self.nest.sites[site];
        let Some((access, domain)) = copied_access(own) else { return Ok(None) };
        let is_copy = own.store.reduce.is_none()
            && own.store.value.dtype == self.nest.nest.buffer(own.store.target.tensor).dtype
            && access.tensor != own.store.target.tensor;
        if !is_copy || !self.is_written_before(site, access) {
            return Ok(None);
        }
        let Some(copied) = self.content(access.tensor)? else { return Ok(None) };
        let read = self.nest.locations(own, access).0.intersect_domain(&domain);
        let versions = places.reverse().apply_range(&read).apply_range(&copied.versions);
        Ok(Some(Content { versions, writer: copied.writer, tensor: copied.tensor, is_in_place: false }))
    }
}

/// The element that a store copies, and the iterations in which the store copies it. In other
/// iterations a condition on indices may select a literal instead.
fn copied_access<'n>(site: &Site<'n>) -> Option<(&'n Access<InNest>, Set)> {
    match &site.store.value.kind {
        ExprKind::Load(access) => Some((access, site.domain.clone())),
        ExprKind::Select(parts) => {
            let holds = site.coordinates.condition(&parts[0])?;
            match (&parts[1].kind, &parts[2].kind) {
                (ExprKind::Load(access), ExprKind::Literal(_)) => {
                    Some((access, site.domain.intersect(&holds)))
                }
                (ExprKind::Literal(_), ExprKind::Load(access)) => {
                    Some((access, site.domain.subtract(&holds)))
                }
                _ => None,
            }
        }
        _ => None,
    }
}
