//! Finds the store that wrote the value which each load of the nest sees, and the version that each
//! read of the program sees.

use std::collections::BTreeSet;

use tilewright_ir::TensorId;
use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Access, BufferId, ClaimRole, IndexExpr, LoopVarId};
use tilewright_isl::{Accesses, Affine, Context, Map, Set};

use super::claims::ClaimedStore;
use super::nest::{Nest, Site, argument};
use super::single_valued::{SingleValuedBuffers, VisibleStores};
use super::{ProofResult, undecided};
use crate::coordinates::{Coordinates, elements_of};
use crate::dependence::{Flow, flows};
use crate::model::Model;

/// The sources of all loads of a nest, and of all reads of its program.
pub struct Sources {
    /// The versions that the program's reads see.
    pub program: Vec<Flow>,
    /// The sources of each store's loads, in order. The list of a carrying store is empty:
    /// [`last_writes`] finds the source of a carried value.
    pub loads: Vec<Vec<Source>>,
    /// The source of each result's elements after the nest has run.
    pub results: Vec<(TensorId, Source)>,
}

/// The stores whose values a load sees.
pub struct Source {
    /// The variables of a load's instance: the iteration of the store, then the subscripts that
    /// depend on data, which may have any value.
    pub coordinates: Coordinates<InNest>,
    /// The instances that exist.
    pub domain: Set,
    /// The subscripts. A coordinate replaces each subscript that depends on data.
    pub indices: Vec<IndexExpr>,
    /// Stores, each with a map from its iterations to the instances of the load that see their
    /// value.
    pub writers: Vec<(usize, Map)>,
    /// Maps instances whose element nothing has written to the element's memory location.
    pub unwritten: Option<Map>,
    /// If true, the stores are all stores to the elements, and their results are complete. If
    /// false, they are the last stores before the load.
    pub is_single_valued: bool,
}

impl Sources {
    /// Finds the stores that each load sees. No search is needed if each element of the buffer
    /// holds only one value; other loads need a search for the last write.
    pub fn find(
        context: &Context,
        model: &Model,
        nest: &Nest,
        claims: &[Option<ClaimedStore>],
        single_valued: &SingleValuedBuffers,
    ) -> ProofResult<Sources> {
        let program = flows(context, model)?;
        let mut search = Search::new(nest);
        let mut loads: Vec<Vec<PendingSource>> = Vec::new();
        for (at, site) in nest.sites.iter().enumerate() {
            let carries = claims[at].as_ref().is_some_and(|own| own.claim.role == ClaimRole::Carry);
            let own = if carries { &[][..] } else { &site.loads };
            let own = own.iter().map(|access| search.load((claims, single_valued), (at, site), access));
            loads.push(own.collect::<ProofResult<Vec<PendingSource>>>()?);
        }
        let results = model.program.tensors_with(|role| role.is_result());
        let results: Vec<(TensorId, PendingSource)> = results
            .map(|(tensor, _)| Ok((tensor, search.result(model, single_valued, tensor)?)))
            .collect::<ProofResult<_>>()?;
        let mut found = search.run()?;
        let mut settled = |own: PendingSource| match own {
            PendingSource::Known(source) => source,
            PendingSource::Searched(at) => found[at].take().expect("each source is taken once"),
        };
        Ok(Sources {
            program,
            loads: loads.into_iter().map(|own| own.into_iter().map(&mut settled).collect()).collect(),
            results: results.into_iter().map(|(tensor, own)| (tensor, settled(own))).collect(),
        })
    }
}

/// The stores whose values a load may see. If the element holds only one value, these are all
/// stores to it; otherwise the last one before the load.
pub fn writes_seen(
    nest: &Nest,
    single_valued: &SingleValuedBuffers,
    (site, access): (usize, &Access),
) -> ProofResult<Source> {
    let Some(stores) = single_valued.stores(access.tensor) else {
        let mut found = last_writes(nest, &[(site, access)])?;
        return found.pop().map_or_else(|| undecided("the source of a load is not known"), Ok);
    };
    let load = Load::new(nest, &nest.sites[site], access);
    let same = |(writer, places): &(usize, Map)| (*writer, places.apply_range(&load.locations.reverse()));
    Ok(Source { writers: stores.iter().map(same).collect(), is_single_valued: true, ..load.source })
}

/// The last write before each of these loads, which are pairs of a store and an element.
pub fn last_writes(nest: &Nest, loads: &[(usize, &Access)]) -> ProofResult<Vec<Source>> {
    let mut search = Search::new(nest);
    for (site, access) in loads {
        let load = Load::new(nest, &nest.sites[*site], access);
        let times = load.times(nest, &nest.sites[*site]);
        search.add(access.tensor, load, &times);
    }
    let found = search.run()?;
    Ok(found.into_iter().flatten().collect())
}

/// A source, or its number in a search.
enum PendingSource {
    Known(Source),
    Searched(usize),
}

/// The instances of a load.
struct Load {
    source: Source,
    /// The memory locations that the instances read.
    locations: Map,
    /// Maps instances to the iterations of the store that they belong to.
    iterations: Map,
}

impl Load {
    fn new(nest: &Nest, site: &Site, access: &Access) -> Load {
        let shape = &nest.nest.buffer(access.tensor).shape;
        let mut coordinates = site.coordinates.clone();
        let mut domain = site.domain.clone();
        let mut indices = access.indices.clone();
        for (at, index) in indices.iter_mut().enumerate() {
            if site.coordinates.affine(index).is_none() {
                let var = LoopVarId(u32::MAX - 1 - at as u32);
                coordinates.add(var, Some((0, shape[at] - 1)));
                domain = domain.product(&elements_of(&nest.context, &shape[at..=at]));
                *index = IndexExpr::var(var);
            }
        }
        let loops = nest.loops_around_allocation(access.tensor);
        let all = coordinates.len();
        let places = coordinates
            .elements_after(&nest.outer_iteration(all, loops), &indices, shape)
            .0
            .intersect_domain(&domain);
        let free = all - site.coordinates.len();
        let iterations = domain.identity().project_out_outputs(site.coordinates.len(), free);
        let source = Source {
            coordinates,
            domain,
            indices,
            writers: Vec::new(),
            unwritten: None,
            is_single_valued: false,
        };
        Load { source, locations: places, iterations }
    }

    /// The times at which the instances run.
    fn times(&self, nest: &Nest, site: &Site) -> Map {
        self.iterations.apply_range(&nest.times(site))
    }
}

struct Search<'a, 'n> {
    nest: &'a Nest<'n>,
    accesses: Accesses,
    /// The buffers whose last writes are searched.
    buffers: BTreeSet<BufferId>,
    /// The buffers that any store writes.
    written: BTreeSet<BufferId>,
    found: Vec<Source>,
}

impl<'a, 'n> Search<'a, 'n> {
    fn new(nest: &'a Nest<'n>) -> Search<'a, 'n> {
        let (accesses, buffers) = (Accesses::new(&nest.context), BTreeSet::new());
        let written = nest.sites.iter().map(|site| site.store.target.tensor).collect();
        Search { nest, accesses, buffers, written, found: Vec::new() }
    }

    fn load(
        &mut self,
        (claims, single_valued): (&[Option<ClaimedStore>], &SingleValuedBuffers),
        (at, site): (usize, &Site),
        access: &Access,
    ) -> ProofResult<PendingSource> {
        let load = Load::new(self.nest, site, access);
        if !self.written.contains(&access.tensor) {
            return Ok(PendingSource::Known(Source {
                unwritten: Some(load.locations),
                is_single_valued: true,
                ..load.source
            }));
        }
        let known = single_valued.sources(
            (self.nest, claims),
            (at, access.tensor),
            &load.locations,
            &load.iterations,
        )?;
        Ok(match known {
            Some(VisibleStores { writers, unwritten }) => {
                PendingSource::Known(Source { writers, unwritten, is_single_valued: true, ..load.source })
            }
            None => {
                let times = load.times(self.nest, site);
                PendingSource::Searched(self.add(access.tensor, load, &times))
            }
        })
    }

    /// Adds a load to the search, and returns its number.
    fn add(&mut self, buffer: BufferId, load: Load, times: &Map) -> usize {
        self.buffers.insert(buffer);
        self.accesses.add_read(buffer.index(), &load.locations, times);
        self.found.push(load.source);
        self.found.len() - 1
    }

    /// The caller's read of a whole result, after the nest has run.
    fn result(
        &mut self,
        model: &Model,
        single_valued: &SingleValuedBuffers,
        tensor: TensorId,
    ) -> ProofResult<PendingSource> {
        let buffers = 0..self.nest.nest.buffers.len();
        let mut buffers = buffers.map(|at| BufferId(at as u32));
        let Some(buffer) = buffers.find(|buffer| argument(self.nest.nest, *buffer) == Some(tensor)) else {
            return undecided(format!(
                "`{}` is not an argument of the nest",
                model.program.tensor(tensor).name
            ));
        };
        let context = &self.nest.context;
        let domain = model.elements(context, tensor);
        let mut coordinates = Coordinates::new(context);
        let shape = &self.nest.nest.buffer(buffer).shape;
        for (at, extent) in shape.iter().enumerate() {
            coordinates.add(LoopVarId(u32::MAX - 1 - at as u32), Some((0, extent - 1)));
        }
        let indices = coordinates.vars().map(IndexExpr::var).collect();
        let places = domain.identity();
        let mut source = Source {
            coordinates,
            domain,
            indices,
            writers: Vec::new(),
            unwritten: None,
            is_single_valued: true,
        };
        if let Some(stores) = single_valued.stores(buffer) {
            let written = stores.iter().map(|(_, places)| places.range());
            let rest = written.fold(source.domain.clone(), |rest, written| rest.subtract(&written));
            source.writers = stores.to_vec();
            source.unwritten = if rest.is_empty()? { None } else { Some(places.intersect_domain(&rest)) };
            return Ok(PendingSource::Known(source));
        }
        source.is_single_valued = false;
        let end = Affine::constant(context, shape.len(), i64::from(i32::MAX));
        let zero = Affine::constant(context, shape.len(), 0);
        let times: Vec<Affine> =
            std::iter::once(end).chain(std::iter::repeat_n(zero, self.nest.depth - 1)).collect();
        let times = Map::from_functions(context, shape.len(), &times).intersect_domain(&source.domain);
        let iterations = places.clone();
        Ok(PendingSource::Searched(self.add(buffer, Load { source, locations: places, iterations }, &times)))
    }

    fn run(mut self) -> ProofResult<Vec<Option<Source>>> {
        let mut writers = Vec::new();
        for (at, site) in self.nest.sites.iter().enumerate() {
            let target = &site.store.target;
            if !self.buffers.contains(&target.tensor) {
                continue;
            }
            let (places, exact) = self.nest.locations(site, target);
            if !exact {
                let name = &self.nest.nest.buffer(target.tensor).name;
                return undecided(format!("data decides which elements of `{name}` are written"));
            }
            self.accesses.add_write(target.tensor.index(), &places, &self.nest.times(site));
            writers.push(at);
        }
        let flow = self.accesses.flow()?;
        for (read, write, pairs) in flow.sources {
            self.found[read].writers.push((writers[write], pairs));
        }
        for (read, places) in flow.without_source {
            if !places.is_empty()? {
                self.found[read].unwritten = Some(places);
            }
        }
        Ok(self.found.into_iter().map(Some).collect())
    }
}
