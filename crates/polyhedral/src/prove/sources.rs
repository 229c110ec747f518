//! Which store wrote what a load sees, in the nest; and which version a read sees, in the program.

use tilewright_ir::{Access, IndexExpr, TensorId, VarId};
use tilewright_isl::{Accesses, Affine, Context, Map, Set};

use super::nest::{Nest, Site, argument};
use super::{Step, undecided};
use crate::coordinates::{Coordinates, elements_of};
use crate::dependence::{Flow, flows};
use crate::model::Model;

/// The sources of all loads of a nest, and of all reads of its program.
pub struct Sources {
    /// The program's.
    pub program: Vec<Flow>,
    /// For each store, those of its loads, in order.
    pub loads: Vec<Vec<Source>>,
    /// For each store that reduces, those of the element that it updates.
    pub updates: Vec<Option<Source>>,
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
}

impl Sources {
    /// Looks for the last write before each load.
    pub fn find(context: &Context, model: &Model, nest: &Nest) -> Step<Sources> {
        let program = flows(context, model)?;
        let mut search = Search { nest, accesses: Accesses::new(context), found: Vec::new() };
        for site in &nest.sites {
            search.write(site)?;
        }
        let mut loads = Vec::new();
        let mut updates = Vec::new();
        for site in &nest.sites {
            loads.push(site.loads.iter().map(|access| search.load(site, access)).collect::<Vec<_>>());
            updates.push(site.store.reduce.map(|_| search.load(site, &site.store.target)));
        }
        let results = model.program.tensors_with(|role| role.is_result());
        let results: Vec<(TensorId, usize)> =
            results.map(|(tensor, _)| Ok((tensor, search.result(model, tensor)?))).collect::<Step<_>>()?;
        let mut found = search.run()?;
        let mut take = |at: usize| found[at].take().expect("each is taken once");
        Ok(Sources {
            program,
            loads: loads.into_iter().map(|own| own.into_iter().map(&mut take).collect()).collect(),
            updates: updates.into_iter().map(|own| own.map(&mut take)).collect(),
            results: results.into_iter().map(|(tensor, at)| (tensor, take(at))).collect(),
        })
    }
}

struct Search<'a, 'n> {
    nest: &'a Nest<'n>,
    accesses: Accesses,
    found: Vec<Source>,
}

impl Search<'_, '_> {
    fn write(&mut self, site: &Site) -> Step<()> {
        let target = &site.store.target;
        let (places, exact) = self.nest.places(site, target);
        if !exact {
            let name = &self.nest.nest.buffer(target.tensor).name;
            return undecided(format!("data decides which elements of `{name}` are written"));
        }
        self.accesses.write(target.tensor.index(), &places, &self.nest.times(site));
        Ok(())
    }

    /// Adds a load, and gives its number.
    fn load(&mut self, site: &Site, access: &Access) -> usize {
        let shape = &self.nest.nest.buffer(access.tensor).shape;
        let mut coordinates = site.coordinates.clone();
        let mut domain = site.domain.clone();
        let mut indices = access.indices.clone();
        for (at, index) in indices.iter_mut().enumerate() {
            if site.coordinates.affine(index).is_none() {
                let var = VarId(u32::MAX - 1 - at as u32);
                coordinates.add(var, Some((0, shape[at] - 1)));
                domain = domain.product(&elements_of(&self.nest.context, &shape[at..=at]));
                *index = IndexExpr::var(var);
            }
        }
        let loops = self.nest.loops_around_room(site, access.tensor);
        let all = coordinates.len();
        let rooms: Vec<Affine> = (0..loops).map(|at| Affine::variable(&self.nest.context, all, at)).collect();
        let rooms = Map::from_functions(&self.nest.context, all, &rooms);
        let places = rooms.beside(&coordinates.elements(&indices, shape).0).of(&domain);
        let free = all - site.coordinates.len();
        let iteration = domain.identity().without_results(site.coordinates.len(), free);
        let times = iteration.then(&self.nest.times(site));
        self.accesses.read(access.tensor.index(), &places, &times);
        self.found.push(Source { coordinates, domain, indices, writers: Vec::new(), unwritten: None });
        self.found.len() - 1
    }

    /// Adds the load of a whole result by the caller, and gives its number.
    fn result(&mut self, model: &Model, tensor: TensorId) -> Step<usize> {
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
        let end = Affine::constant(context, shape.len(), i64::from(i32::MAX));
        let zero = Affine::constant(context, shape.len(), 0);
        let times: Vec<Affine> =
            std::iter::once(end).chain(std::iter::repeat_n(zero, self.nest.depth - 1)).collect();
        let times = Map::from_functions(context, shape.len(), &times).of(&domain);
        self.accesses.read(buffer.index(), &domain.identity(), &times);
        let indices = coordinates.vars().iter().map(|var| IndexExpr::var(*var)).collect();
        self.found.push(Source { coordinates, domain, indices, writers: Vec::new(), unwritten: None });
        Ok(self.found.len() - 1)
    }

    fn run(mut self) -> Step<Vec<Option<Source>>> {
        let flow = self.accesses.flow()?;
        for (read, write, pairs) in flow.sources {
            self.found[read].writers.push((write, pairs));
        }
        for (read, places) in flow.without_source {
            if !places.is_empty()? {
                self.found[read].unwritten = Some(places);
            }
        }
        Ok(self.found.into_iter().map(Some).collect())
    }
}
