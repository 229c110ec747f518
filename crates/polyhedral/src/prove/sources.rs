//! Which store wrote what a load sees, in the nest; and which version a read sees, in the program.

use std::collections::BTreeSet;

use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, IndexExpr, TensorId, VarId};
use tilewright_isl::{Accesses, Affine, Context, Map, Set};

use super::claims::Claimed;
use super::direct::{Direct, Seen};
use super::nest::{Nest, Site, argument};
use super::{Step, undecided};
use crate::coordinates::{Coordinates, elements_of};
use crate::dependence::{Flow, flows};
use crate::model::Model;

/// The sources of all loads of a nest, and of all reads of its program.
pub struct Sources {
    /// The program's.
    pub program: Vec<Flow>,
    /// For each store, those of its loads, in order. What a store carries is looked for by [`last_writes`] instead.
    pub loads: Vec<Vec<Source>>,
    /// For each result, those of its elements when the nest has run.
    pub results: Vec<(TensorId, Source)>,
}

/// Where what a load sees comes from.
pub struct Source {
    /// The instances of the load: iterations of the store, then the subscripts that depend on data, which may be any.
    pub coordinates: Coordinates,
    /// Those that there are.
    pub domain: Set,
    /// The subscripts, with a coordinate in the place of each that depends on data.
    pub indices: Vec<IndexExpr>,
    /// Stores, each with the iterations that write what instances of the load see.
    pub writers: Vec<(usize, Map)>,
    /// Instances whose element nothing has written, with its place.
    pub unwritten: Option<Map>,
    /// Whether the stores are all that write the elements, and complete; otherwise they are the last before the load.
    pub direct: bool,
}

impl Sources {
    /// Looks for what each load sees: at once where its buffer holds one thing in every element, else by a search for the last
    /// write.
    pub fn find(
        context: &Context,
        model: &Model,
        nest: &Nest,
        claims: &[Option<Claimed>],
        direct: &Direct,
    ) -> Step<Sources> {
        let program = flows(context, model)?;
        let mut search = Search::new(nest);
        let mut loads: Vec<Vec<Found>> = Vec::new();
        for (at, site) in nest.sites.iter().enumerate() {
            let carries = claims[at].as_ref().is_some_and(|own| own.claim.role == ClaimRole::Carry);
            let own = if carries { &[][..] } else { &site.loads };
            let own = own.iter().map(|access| search.load((claims, direct), (at, site), access));
            loads.push(own.collect::<Step<Vec<Found>>>()?);
        }
        let results = model.program.tensors_with(|role| role.is_result());
        let results: Vec<(TensorId, Found)> = results
            .map(|(tensor, _)| Ok((tensor, search.result(model, direct, tensor)?)))
            .collect::<Step<_>>()?;
        let mut found = search.run()?;
        let mut settled = |own: Found| match own {
            Found::Directly(source) => source,
            Found::Searched(at) => found[at].take().expect("each is taken once"),
        };
        Ok(Sources {
            program,
            loads: loads.into_iter().map(|own| own.into_iter().map(&mut settled).collect()).collect(),
            results: results.into_iter().map(|(tensor, own)| (tensor, settled(own))).collect(),
        })
    }
}

/// The writes that a load may see: all writes to its element where that holds one thing only, else the last before it.
pub fn writes_seen(nest: &Nest, direct: &Direct, (site, access): (usize, &Access)) -> Step<Source> {
    let Some(stores) = direct.stores(access.tensor) else {
        let mut found = last_writes(nest, &[(site, access)])?;
        return found.pop().map_or_else(|| undecided("a load that was not looked at"), Ok);
    };
    let load = Load::new(nest, &nest.sites[site], access);
    let same = |(writer, places): &(usize, Map)| (*writer, places.then(&load.places.reverse()));
    Ok(Source { writers: stores.iter().map(same).collect(), direct: true, ..load.source })
}

/// The last write before each of these loads, given by store and element.
pub fn last_writes(nest: &Nest, loads: &[(usize, &Access)]) -> Step<Vec<Source>> {
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
enum Found {
    Directly(Source),
    Searched(usize),
}

/// The instances of a load.
struct Load {
    source: Source,
    /// The places that they read.
    places: Map,
    /// The iterations of the store that they belong to.
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
                let var = VarId(u32::MAX - 1 - at as u32);
                coordinates.add(var, Some((0, shape[at] - 1)));
                domain = domain.product(&elements_of(&nest.context, &shape[at..=at]));
                *index = IndexExpr::var(var);
            }
        }
        let loops = nest.loops_around_room(access.tensor);
        let all = coordinates.len();
        let places = coordinates.elements_after(&nest.turn(all, loops), &indices, shape).0.of(&domain);
        let free = all - site.coordinates.len();
        let iterations = domain.identity().without_results(site.coordinates.len(), free);
        let source =
            Source { coordinates, domain, indices, writers: Vec::new(), unwritten: None, direct: false };
        Load { source, places, iterations }
    }

    /// When they happen.
    fn times(&self, nest: &Nest, site: &Site) -> Map {
        self.iterations.then(&nest.times(site))
    }
}

struct Search<'a, 'n> {
    nest: &'a Nest<'n>,
    accesses: Accesses,
    /// The buffers that are searched.
    buffers: BTreeSet<TensorId>,
    /// The buffers that are written anywhere.
    written: BTreeSet<TensorId>,
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
        (claims, direct): (&[Option<Claimed>], &Direct),
        (at, site): (usize, &Site),
        access: &Access,
    ) -> Step<Found> {
        let load = Load::new(self.nest, site, access);
        if !self.written.contains(&access.tensor) {
            return Ok(Found::Directly(Source { unwritten: Some(load.places), direct: true, ..load.source }));
        }
        let known =
            direct.sources((self.nest, claims), (at, access.tensor), &load.places, &load.iterations)?;
        Ok(match known {
            Some(Seen { writers, unwritten }) => {
                Found::Directly(Source { writers, unwritten, direct: true, ..load.source })
            }
            None => {
                let times = load.times(self.nest, site);
                Found::Searched(self.add(access.tensor, load, &times))
            }
        })
    }

    /// Adds a load to the search, and gives its number.
    fn add(&mut self, buffer: TensorId, load: Load, times: &Map) -> usize {
        self.buffers.insert(buffer);
        self.accesses.read(buffer.index(), &load.places, times);
        self.found.push(load.source);
        self.found.len() - 1
    }

    /// The load of a whole result by the caller.
    fn result(&mut self, model: &Model, direct: &Direct, tensor: TensorId) -> Step<Found> {
        let buffers = 0..self.nest.nest.buffers.len();
        let mut buffers = buffers.map(|at| TensorId(at as u32));
        let Some(buffer) = buffers.find(|buffer| argument(self.nest.nest, *buffer) == Some(tensor)) else {
            return undecided(format!("`{}` is no argument of the nest", model.program.tensor(tensor).name));
        };
        let context = &self.nest.context;
        let domain = model.elements(context, tensor);
        let mut coordinates = Coordinates::new(context);
        let shape = &self.nest.nest.buffer(buffer).shape;
        for (at, extent) in shape.iter().enumerate() {
            coordinates.add(VarId(u32::MAX - 1 - at as u32), Some((0, extent - 1)));
        }
        let indices = coordinates.vars().iter().map(|var| IndexExpr::var(*var)).collect();
        let places = domain.identity();
        let mut source =
            Source { coordinates, domain, indices, writers: Vec::new(), unwritten: None, direct: true };
        if let Some(stores) = direct.stores(buffer) {
            let written = stores.iter().map(|(_, places)| places.range());
            let rest = written.fold(source.domain.clone(), |rest, written| rest.subtract(&written));
            source.writers = stores.to_vec();
            source.unwritten = if rest.is_empty()? { None } else { Some(places.of(&rest)) };
            return Ok(Found::Directly(source));
        }
        source.direct = false;
        let end = Affine::constant(context, shape.len(), i64::from(i32::MAX));
        let zero = Affine::constant(context, shape.len(), 0);
        let times: Vec<Affine> =
            std::iter::once(end).chain(std::iter::repeat_n(zero, self.nest.depth - 1)).collect();
        let times = Map::from_functions(context, shape.len(), &times).of(&source.domain);
        let iterations = places.clone();
        Ok(Found::Searched(self.add(buffer, Load { source, places, iterations }, &times)))
    }

    fn run(mut self) -> Step<Vec<Option<Source>>> {
        let mut writers = Vec::new();
        for (at, site) in self.nest.sites.iter().enumerate() {
            let target = &site.store.target;
            if !self.buffers.contains(&target.tensor) {
                continue;
            }
            let (places, exact) = self.nest.places(site, target);
            if !exact {
                let name = &self.nest.nest.buffer(target.tensor).name;
                return undecided(format!("data decides which elements of `{name}` are written"));
            }
            self.accesses.write(target.tensor.index(), &places, &self.nest.times(site));
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
