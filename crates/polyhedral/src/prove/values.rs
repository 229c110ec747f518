//! Every store that claims an instance computes its value.
//!
//! The program's expression and the nest's are walked side by side. A *scene* is the set of all situations in which the two
//! are compared: vectors that hold the iteration of the store, the instance that it claims, and whatever the walk has come
//! through since. Where a condition on indices decides between two expressions, the scene is split. Where both load, the
//! program's read sees a version and the nest's load sees what a store has written; a copy is walked through to what it has
//! copied, and a tensor that was inlined to what the program computes for it.

use std::sync::Arc;

use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, Atom, Data, Expr, ExprKind, IndexExpr, Update, VarId};
use tilewright_isl::{Affine, Map, Set};

use super::claims::Claimed;
use super::nest::{Nest, argument};
use super::reductions::Runs;
use super::scatters::is_scatter;
use super::sources::{Source, Sources};
use super::{Step, refuted, undecided};
use crate::coordinates::Coordinates;
use crate::dependence::{Flow, Reader, version_of};
use crate::model::{Instances, Model};
use crate::text;

/// Copies that a value may go through, and tensors that may be inlined into each other.
const MOST_STEPS: usize = 64;

/// Checks the value of every store, and what every result holds in the end.
pub fn check(proof: &Proof) -> Step<()> {
    for claimed in proof.claims.iter().flatten() {
        if claimed.claim.role == ClaimRole::Value {
            proof.store(claimed)?;
        }
    }
    proof.sources.results.iter().try_for_each(|(tensor, source)| {
        let flows = proof.sources.program.iter().filter(|flow| flow.reader == Reader::Caller(*tensor));
        flows.into_iter().try_for_each(|flow| {
            let scene = Scene::of(&source.domain, source.coordinates.len());
            let element = Frame { offset: 0, coordinates: source.coordinates.clone() };
            let scene = scene.extend(&element.picks(), &flow.versions);
            let version = Version { writer: flow.writer, offset: element.coordinates.len(), tensor: *tensor };
            proof.result(&scene, &element, &version, source)
        })
    })
}

/// What a proof is about, and what was found out so far.
pub struct Proof<'a, 'p, 'n> {
    /// The program's instances.
    pub model: &'a Model<'p>,
    /// The nest's stores.
    pub nest: &'a Nest<'n>,
    /// Who has written what is read.
    pub sources: &'a Sources,
    /// What stores claim.
    pub claims: &'a [Option<Claimed<'a, 'p>>],
    /// Results that are made in several stores.
    pub runs: &'a Runs,
}

/// All situations in which two expressions are compared.
#[derive(Clone)]
struct Scene {
    set: Set,
    dimensions: usize,
    /// Copies and inlined tensors that the walk has come through.
    steps: usize,
}

impl Scene {
    fn of(set: &Set, dimensions: usize) -> Scene {
        Scene { set: set.clone(), dimensions, steps: 0 }
    }

    fn within(&self, set: &Set) -> Scene {
        Scene { set: self.set.intersect(set), ..self.clone() }
    }

    fn without(&self, set: &Set) -> Scene {
        Scene { set: self.set.subtract(set), ..self.clone() }
    }

    /// The situations, with so many numbers of any value at the end.
    fn with_numbers(&self, count: usize) -> Scene {
        let set = self.set.widened(self.dimensions, count);
        Scene { set, dimensions: self.dimensions + count, steps: self.steps }
    }

    /// From situations to some of their coordinates.
    fn pick(&self, picks: &[usize]) -> Map {
        let context = self.set.context();
        let functions: Vec<Affine> =
            picks.iter().map(|at| Affine::variable(context, self.dimensions, *at)).collect();
        Map::from_functions(context, self.dimensions, &functions).of(&self.set)
    }

    /// The situations, each with what a relation makes of some of its coordinates at the end.
    fn extend(&self, picks: &[usize], relation: &Map) -> Scene {
        let added = relation.dimensions().map_or(0, |(_, results)| results);
        let set = self.pick(picks).then(relation).pairs().coalesce();
        Scene { set, dimensions: self.dimensions + added, steps: self.steps }
    }
}

/// Where in the vectors of a scene the coordinates of an instance or of an iteration are.
#[derive(Clone)]
struct Frame {
    offset: usize,
    coordinates: Coordinates,
}

impl Frame {
    fn picks(&self) -> Vec<usize> {
        (self.offset..self.offset + self.coordinates.len()).collect()
    }

    fn in_scene(&self, scene: &Scene) -> Coordinates {
        self.coordinates.placed(self.offset, scene.dimensions)
    }
}

/// One side of a comparison: an expression of a statement of the program, or of a store of the nest.
#[derive(Clone, Copy)]
struct Side<'e> {
    /// The statement or the store.
    of: usize,
    frame: &'e Frame,
    expr: &'e Expr,
}

/// The version of an element, whose name begins at `offset` in the vectors of a scene.
struct Version {
    writer: Option<usize>,
    offset: usize,
    tensor: tilewright_ir::TensorId,
}

impl Proof<'_, '_, '_> {
    fn store(&self, claimed: &Claimed) -> Step<()> {
        let site = &self.nest.sites[claimed.site];
        let statement = claimed.statement;
        let op = match statement.statement.update {
            Update::Assign => None,
            Update::Reduce { op, .. } => Some(op),
        };
        if site.store.reduce != op {
            return refuted(format!("{} has another operator", self.nest.describe(site, &[])));
        }
        let iteration = Frame { offset: 0, coordinates: site.coordinates.clone() };
        let instance = Frame { offset: site.coordinates.len(), coordinates: statement.coordinates.clone() };
        let all = instance.offset + instance.coordinates.len();
        let scene = Scene::of(&claimed.instances.pairs(), all);
        let program =
            Side { of: claimed.claim.statement, frame: &instance, expr: &statement.statement.value };
        let nest = Side { of: claimed.site, frame: &iteration, expr: &site.store.value };
        if is_scatter(statement) {
            self.same_target(&scene, program, nest, statement)?;
        }
        self.equal(&scene, program, nest)
    }

    /// What data chooses for a store is the element that it chooses for the program.
    fn same_target(&self, scene: &Scene, program: Side, nest: Side, statement: &Instances) -> Step<()> {
        let (own, other) = (&statement.statement.indices, &self.nest.sites[nest.of].store.target.indices);
        for (index, stored) in own.iter().zip(other) {
            if own.len() != other.len() || !self.same_index(scene, (program, index), (nest, stored))? {
                return undecided("data chooses elements of a buffer that is arranged in another way");
            }
        }
        Ok(())
    }

    /// Refutes that the two expressions have the same value in all situations of a scene, or shows it.
    fn equal(&self, scene: &Scene, program: Side, nest: Side) -> Step<()> {
        if scene.set.is_empty()? {
            return Ok(());
        }
        if let ExprKind::Select(parts) = &program.expr.kind
            && let Some(holds) = program.frame.in_scene(scene).condition(&parts[0])
        {
            self.equal(&scene.within(&holds), Side { expr: &parts[1], ..program }, nest)?;
            return self.equal(&scene.without(&holds), Side { expr: &parts[2], ..program }, nest);
        }
        if let ExprKind::Select(parts) = &nest.expr.kind
            && let Some(holds) = nest.frame.in_scene(scene).condition(&parts[0])
        {
            self.equal(&scene.within(&holds), program, Side { expr: &parts[1], ..nest })?;
            return self.equal(&scene.without(&holds), program, Side { expr: &parts[2], ..nest });
        }
        match (&program.expr.kind, &nest.expr.kind) {
            (ExprKind::Load(access), _) => self.load(scene, (program, access), nest),
            (_, ExprKind::Load(access)) => self.through_copies(scene, program, (nest, access)),
            _ if program.expr.dtype != nest.expr.dtype => self.differ(scene, program, nest),
            (ExprKind::Literal(own), ExprKind::Literal(other)) if own == other => Ok(()),
            (ExprKind::Scalar(own), ExprKind::Scalar(other)) if own == other => Ok(()),
            (ExprKind::Index(own), ExprKind::Index(other)) => {
                match self.same_index(scene, (program, own), (nest, other))? {
                    true => Ok(()),
                    false => self.differ(scene, program, nest),
                }
            }
            (ExprKind::Index(_), ExprKind::Literal(_)) => self.same_number(scene, program, nest),
            (ExprKind::Unary(own, _), ExprKind::Unary(other, _)) if own == other => {
                self.operands(scene, program, nest)
            }
            (ExprKind::Binary(own, _), ExprKind::Binary(other, _)) if own == other => {
                self.operands(scene, program, nest)
            }
            (ExprKind::Call(own, _), ExprKind::Call(other, _)) if own == other => {
                self.operands(scene, program, nest)
            }
            (ExprKind::Cast(_), ExprKind::Cast(_)) | (ExprKind::Select(_), ExprKind::Select(_)) => {
                self.operands(scene, program, nest)
            }
            _ => self.differ(scene, program, nest),
        }
    }

    fn operands(&self, scene: &Scene, program: Side, nest: Side) -> Step<()> {
        let both = program.expr.operands().iter().zip(nest.expr.operands());
        both.into_iter().try_for_each(|(own, other)| {
            self.equal(scene, Side { expr: own, ..program }, Side { expr: other, ..nest })
        })
    }

    /// An index that is the same number everywhere.
    fn same_number(&self, scene: &Scene, program: Side, nest: Side) -> Step<()> {
        let (ExprKind::Index(index), ExprKind::Literal(number)) = (&program.expr.kind, &nest.expr.kind)
        else {
            return self.differ(scene, program, nest);
        };
        let coordinates = program.frame.in_scene(scene);
        let exact = i64::try_from(number.as_i128()).ok().filter(|_| !program.expr.dtype.is_float());
        let value = coordinates.affine(index).filter(|_| coordinates.fits(index, program.expr.dtype));
        match (value, exact) {
            (Some(value), Some(number)) if scene.set.is_subset(&value.offset(-number).zero())? => Ok(()),
            _ => self.differ(scene, program, nest),
        }
    }

    /// Whether two subscripts have the same value in all situations. Data in them is compared as any other value.
    fn same_index(
        &self,
        scene: &Scene,
        (program, own): (Side, &IndexExpr),
        (nest, other): (Side, &IndexExpr),
    ) -> Step<bool> {
        let (left, right) = (program.frame.in_scene(scene), nest.frame.in_scene(scene));
        if let (Some(left), Some(right)) = (left.affine(own), right.affine(other)) {
            return Ok(scene.set.is_subset(&left.sub(&right).zero())?);
        }
        self.same_with_data(scene, (program, own), (nest, other))
    }

    /// The same where data is in the subscripts: each datum of the nest is found among the program's, and then both are
    /// compared with a number of their own in the place of each datum.
    fn same_with_data(
        &self,
        scene: &Scene,
        (program, own): (Side, &IndexExpr),
        (nest, other): (Side, &IndexExpr),
    ) -> Step<bool> {
        let (data, others) = (data_in(own), data_in(other));
        let mut named: Vec<(Atom, VarId)> = Vec::new();
        for datum in &others {
            let value = Side { expr: &datum.value, ..nest };
            let same =
                |own: &&Arc<Data>| self.equal(scene, Side { expr: &own.value, ..program }, value).is_ok();
            let Some(at) = data.iter().position(|own| same(&own)) else {
                return undecided("data in a subscript is not what the program has there");
            };
            named.push((Atom::Data(datum.clone()), number_of(at)));
        }
        let own_names: Vec<(Atom, VarId)> =
            data.iter().enumerate().map(|(at, own)| (Atom::Data(own.clone()), number_of(at))).collect();
        let wide = scene.with_numbers(data.len());
        let place = |frame: &Frame| {
            let mut coordinates = frame.in_scene(&wide);
            (0..data.len()).for_each(|at| coordinates.name(scene.dimensions + at, number_of(at)));
            coordinates
        };
        let left = place(program.frame).affine(&renamed(own, &own_names));
        let right = place(nest.frame).affine(&renamed(other, &named));
        match (left, right) {
            (Some(left), Some(right)) => Ok(wide.set.is_subset(&left.sub(&right).zero())?),
            _ => undecided("a subscript multiplies what it computes with"),
        }
    }

    /// The program reads an element.
    fn load(&self, scene: &Scene, (program, access): (Side, &Access), nest: Side) -> Step<()> {
        let own = &self.model.statements[program.of];
        let is_it = |flow: &&Flow| match flow.reader {
            Reader::Read(statement, read) if statement == program.of => {
                let touch = &own.reads[read];
                touch.tensor == access.tensor && touch.indices == access.indices
            }
            _ => false,
        };
        let mut rest = scene.clone();
        for flow in self.sources.program.iter().filter(is_it) {
            let own = scene.extend(&program.frame.picks(), &flow.versions);
            rest = rest.without(&scene.pick(&program.frame.picks()).then(&flow.versions).domain());
            if own.set.is_empty()? {
                continue;
            }
            let version = Version { writer: flow.writer, offset: scene.dimensions, tensor: access.tensor };
            match &nest.expr.kind {
                ExprKind::Load(other) => self.loads(&own, (program, access), (nest, other), &version)?,
                _ => self.inlined(&own, program, nest, &version)?,
            }
        }
        match rest.set.is_empty()? {
            true => Ok(()),
            false => undecided("a read of the program sees no version that is known"),
        }
    }

    /// Both read an element: the program's version is what the nest's load brings.
    fn loads(
        &self,
        scene: &Scene,
        (program, access): (Side, &Access),
        (nest, other): (Side, &Access),
        version: &Version,
    ) -> Step<()> {
        let source = self.source_of(nest, other)?;
        let (scene, frame) = self.at_load(scene, (program, access), (nest, other), (source, version))?;
        for (writer, pairs) in &source.writers {
            let written = scene.extend(&frame, &pairs.reverse());
            if written.set.is_empty()? {
                continue;
            }
            let store = self.frame_of(*writer, scene.dimensions);
            match &self.claims[*writer] {
                None => {
                    let value = self.copied(*writer, nest.expr)?;
                    let copy = Side { of: *writer, frame: &store, expr: value };
                    self.equal(&written.deeper()?, program, copy)?;
                }
                Some(claimed) if version.writer == Some(claimed.claim.statement) => {
                    self.brings(&written, claimed, (store.offset, source.direct), version)?;
                }
                Some(_) => self.inlined(&written, program, nest, version)?,
            }
        }
        let Some(unwritten) = &source.unwritten else { return Ok(()) };
        let unwritten = scene.within(&scene.pick(&frame).onto(&unwritten.domain()).domain());
        if unwritten.set.is_empty()? {
            return Ok(());
        }
        let is_supplied = |tensor| self.model.program.tensor(tensor).role.is_supplied();
        match version.writer {
            Some(_) if argument(self.nest.nest, other.tensor).is_some_and(is_supplied) => {
                self.inlined(&unwritten, program, nest, version)
            }
            _ => self.supplied(&unwritten, (nest, other), version),
        }
    }

    /// The situations with the instance of a load, and where its coordinates are: the iteration, then subscripts that data
    /// decides, which are the program's.
    fn at_load(
        &self,
        scene: &Scene,
        (program, access): (Side, &Access),
        (nest, other): (Side, &Access),
        (source, version): (&Source, &Version),
    ) -> Step<(Scene, Vec<usize>)> {
        let mut picks = nest.frame.picks();
        if source.coordinates.len() == picks.len() {
            return Ok((scene.clone(), picks));
        }
        if other.indices.len() != access.indices.len() {
            return undecided("data chooses elements of a buffer that is arranged in another way");
        }
        let loops = version.writer.map_or(0, |writer| self.model.statements[writer].loops.len());
        for (at, index) in other.indices.iter().enumerate() {
            if nest.frame.coordinates.affine(index).is_none() {
                if !self.same_index(scene, (program, &access.indices[at]), (nest, index))? {
                    return undecided("data chooses another element than in the program");
                }
                picks.push(version.offset + loops + at);
            }
        }
        Ok((scene.clone(), picks))
    }

    /// The store that wrote an element has made the version in question, and it is complete, which a direct source is anyway.
    fn brings(
        &self,
        scene: &Scene,
        claimed: &Claimed,
        (store, direct): (usize, bool),
        version: &Version,
    ) -> Step<()> {
        let site = &self.nest.sites[claimed.site];
        let iteration = store..store + site.coordinates.len();
        let name = version.offset..version.offset + self.version_length(version);
        let both: Vec<usize> = iteration.clone().chain(name).collect();
        let right = scene.pick(&both).onto(&claimed.versions.pairs()).domain();
        let wrong = scene.without(&right);
        if let Some(found) = wrong.set.sample()? {
            return refuted(self.stale(&found, claimed, store, version));
        }
        if self.runs.is_part(claimed.site) {
            return undecided(format!("{} is a part of what is read", self.nest.describe(site, &[])));
        }
        if direct || !claimed.is_partial() {
            return Ok(());
        }
        let iteration: Vec<usize> = iteration.collect();
        let early = self.runs.unfinished(claimed.site)?;
        let early = scene.within(&scene.pick(&iteration).onto(&early).domain());
        match early.set.sample()? {
            None => Ok(()),
            Some(found) => {
                let values = &found[store..store + site.coordinates.len()];
                refuted(format!(
                    "what {} leaves is read before it is complete",
                    self.nest.describe(site, values)
                ))
            }
        }
    }

    /// An element that the caller has supplied is read where it is.
    fn supplied(&self, scene: &Scene, (nest, other): (Side, &Access), version: &Version) -> Step<()> {
        let site = &self.nest.sites[nest.of];
        let name = &self.nest.nest.buffer(other.tensor).name;
        let is_argument = argument(self.nest.nest, other.tensor) == Some(version.tensor)
            && self.model.program.tensor(version.tensor).role.is_supplied();
        if !is_argument {
            let found = scene.set.sample()?.unwrap_or_default();
            let values = found.get(nest.frame.offset..nest.frame.offset + site.coordinates.len());
            return refuted(format!(
                "{} reads an element of `{name}` that nothing has written",
                self.nest.describe(site, values.unwrap_or_default())
            ));
        }
        let coordinates = nest.frame.in_scene(scene);
        for (at, index) in other.indices.iter().enumerate() {
            let Some(value) = coordinates.affine(index) else { continue };
            let element = Affine::variable(scene.set.context(), scene.dimensions, version.offset + at);
            if !scene.set.is_subset(&value.sub(&element).zero())? {
                return refuted(format!(
                    "{} reads another element of `{name}`",
                    self.nest.describe(site, &[])
                ));
            }
        }
        Ok(())
    }

    /// What the program reads was computed on the spot.
    fn inlined(&self, scene: &Scene, program: Side, nest: Side, version: &Version) -> Step<()> {
        let Some(writer) = version.writer else { return self.differ(scene, program, nest) };
        let statement = &self.model.statements[writer];
        if statement.is_reduction() {
            return self.differ(scene, program, nest);
        }
        let name: Vec<usize> = (version.offset..version.offset + self.version_length(version)).collect();
        let there = scene.extend(&name, &version_of(statement).reverse());
        let frame = Frame { offset: scene.dimensions, coordinates: statement.coordinates.clone() };
        let value = statement.statement.value.clone().cast(program.expr.dtype);
        let program = Side { of: writer, frame: &frame, expr: &value };
        self.equal(&there.deeper()?, program, nest)
    }

    /// The nest loads what the program computes: a copy has computed it.
    fn through_copies(&self, scene: &Scene, program: Side, (nest, other): (Side, &Access)) -> Step<()> {
        let source = self.source_of(nest, other)?;
        let picks = nest.frame.picks();
        let unwritten =
            source.unwritten.as_ref().map(|unwritten| scene.pick(&picks).onto(&unwritten.domain()));
        if source.coordinates.len() != picks.len() || unwritten.is_some_and(|all| all.is_empty() != Ok(true))
        {
            return self.differ(scene, program, nest);
        }
        for (writer, pairs) in &source.writers {
            let written = scene.extend(&picks, &pairs.reverse());
            if self.claims[*writer].is_some() && !written.set.is_empty()? {
                return self.differ(scene, program, nest);
            }
            let store = self.frame_of(*writer, scene.dimensions);
            let value = self.copied(*writer, nest.expr)?;
            self.equal(&written.deeper()?, program, Side { of: *writer, frame: &store, expr: value })?;
        }
        Ok(())
    }

    /// What a result holds in the end.
    fn result(&self, scene: &Scene, element: &Frame, version: &Version, source: &Source) -> Step<()> {
        let name = &self.model.program.tensor(version.tensor).name;
        for (writer, pairs) in &source.writers {
            let written = scene.extend(&element.picks(), &pairs.reverse());
            let Some(found) = written.set.sample()? else { continue };
            match &self.claims[*writer] {
                Some(claimed) if version.writer == Some(claimed.claim.statement) => {
                    self.brings(&written, claimed, (scene.dimensions, source.direct), version)?;
                }
                _ => {
                    let values = &found[scene.dimensions..];
                    let last = self.nest.describe(&self.nest.sites[*writer], values);
                    return refuted(format!("{last} writes an element of the result `{name}` last"));
                }
            }
        }
        let Some(unwritten) = &source.unwritten else { return Ok(()) };
        let unwritten = scene.within(&scene.pick(&element.picks()).onto(&unwritten.domain()).domain());
        match (version.writer, unwritten.set.sample()?) {
            (Some(_), Some(found)) => {
                let element = &found[..element.coordinates.len()];
                refuted(format!("the element {element:?} of the result `{name}` is never written"))
            }
            _ => Ok(()),
        }
    }

    fn source_of(&self, nest: Side, access: &Access) -> Step<&Source> {
        let site = &self.nest.sites[nest.of];
        match site.loads.iter().position(|own| *own == access) {
            Some(at) => Ok(&self.sources.loads[nest.of][at]),
            None => undecided("a load that was not looked at"),
        }
    }

    fn frame_of(&self, site: usize, offset: usize) -> Frame {
        Frame { offset, coordinates: self.nest.sites[site].coordinates.clone() }
    }

    /// What a copy stores, as somebody sees it who loads it.
    fn copied(&self, site: usize, loaded: &Expr) -> Step<&Expr> {
        let store = self.nest.sites[site].store;
        if store.reduce.is_some() {
            return undecided("a store without a claim reduces something");
        }
        match &store.value.kind {
            _ if store.value.dtype == loaded.dtype => Ok(&store.value),
            // A wider type on the way changes nothing.
            ExprKind::Cast(inner) if inner.dtype == loaded.dtype => Ok(inner),
            _ => undecided("a copy changes the type of what it copies"),
        }
    }

    fn version_length(&self, version: &Version) -> usize {
        let loops = version.writer.map_or(0, |writer| self.model.statements[writer].loops.len());
        loops + self.model.program.tensor(version.tensor).shape.len()
    }

    fn stale(&self, found: &[i64], claimed: &Claimed, store: usize, version: &Version) -> String {
        let site = &self.nest.sites[claimed.site];
        let values = &found[store..store + site.coordinates.len()];
        let name = &found[version.offset..version.offset + self.version_length(version)];
        let tensor = &self.model.program.tensor(version.tensor).name;
        format!(
            "{} is seen where the program reads version {name:?} of `{tensor}`",
            self.nest.describe(site, values)
        )
    }

    fn differ(&self, scene: &Scene, program: Side, nest: Side) -> Step<()> {
        let own = &self.model.statements[program.of];
        let found = scene.set.sample()?.unwrap_or_default();
        let instance = found.get(program.frame.picks().first().copied().unwrap_or(0)..).unwrap_or_default();
        let site = &self.nest.sites[nest.of];
        undecided(format!(
            "{} computes `{}` for what the program computes at {}",
            self.nest.describe(site, &[]),
            tilewright_ir::print::expr(nest.expr, self.nest.nest),
            text::instance(self.model, own, instance)
        ))
    }
}

impl Scene {
    fn deeper(mut self) -> Step<Scene> {
        self.steps += 1;
        match self.steps <= MOST_STEPS {
            true => Ok(self),
            false => undecided("a value goes through too many copies"),
        }
    }
}

/// The data in a subscript, without the data inside of it.
fn data_in(index: &IndexExpr) -> Vec<Arc<Data>> {
    let mut found: Vec<Arc<Data>> = Vec::new();
    for factor in index.terms().iter().flat_map(|term| &term.factors) {
        let own = match factor {
            Atom::Data(data) => vec![data.clone()],
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                [&pair.0, &pair.1].into_iter().flat_map(data_in).collect()
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => Vec::new(),
        };
        for datum in own {
            if !found.contains(&datum) {
                found.push(datum);
            }
        }
    }
    found
}

/// The variable that stands for a datum.
fn number_of(datum: usize) -> VarId {
    VarId(u32::MAX / 2 + datum as u32)
}

/// A subscript with variables in the place of data.
fn renamed(index: &IndexExpr, names: &[(Atom, VarId)]) -> IndexExpr {
    index.substitute(&mut |atom| {
        names.iter().find(|(datum, _)| datum == atom).map(|(_, var)| IndexExpr::var(*var))
    })
}
