//! Checks that every store that claims an instance computes the instance's value.
//!
//! The check walks the expressions of the program and the nest side by side. A *scene* is the set
//! of all situations in which the two are compared (`scene.rs`). A situation is a vector with the
//! iteration of the store, the instance that the store claims, and the coordinates that the walk
//! has added since. If a condition on indices selects between two expressions, the scene is split.
//! If both expressions are loads, the program's read sees a version, and the nest's load sees the
//! value that some store wrote. The walk follows a copy to the copied value, and an inlined tensor
//! to the program's expression for it.

use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, Expr, ExprKind, IndexExpr, TensorId, Update};
use tilewright_isl::Affine;

use super::claims::Claimed;
use super::contents::Contents;
use super::nest::{Nest, argument};
use super::reductions::Runs;
use super::scatters::is_scatter;
use super::scene::{Bound, Frame, Scene};
use super::sources::{Source, Sources};
use super::{Step, Stop, refuted, undecided};
use crate::dependence::{Flow, Reader, version_of};
use crate::model::{Instances, Model};
use crate::text;

/// Checks the value of every store, and the final content of every result.
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

/// The program and the nest that are compared, with all results of the earlier steps of the proof.
pub struct Proof<'a, 'p, 'n> {
    /// The program's instances.
    pub model: &'a Model<'p>,
    /// The nest's stores.
    pub nest: &'a Nest<'n>,
    /// The stores and versions that loads and reads see.
    pub sources: &'a Sources,
    /// The claim of each store.
    pub claims: &'a [Option<Claimed<'a, 'p>>],
    /// The results that several stores make together.
    pub runs: &'a Runs<'a, 'n>,
    /// The contents of buffers.
    pub contents: &'a Contents<'a, 'p, 'n>,
}

/// One side of a comparison: an expression of a statement of the program or of a store of the nest.
#[derive(Clone, Copy)]
pub struct Side<'e> {
    /// The number of the statement or the store.
    pub of: usize,
    /// The position of its coordinates in the vectors of the scene.
    pub frame: &'e Frame,
    /// The expression.
    pub expr: &'e Expr,
}

/// A version of an element. The coordinates that identify the version begin at `offset` in the
/// vectors of a scene.
struct Version {
    writer: Option<usize>,
    offset: usize,
    tensor: TensorId,
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

    /// Checks that data chooses the same element for a store as in the program.
    fn same_target(&self, scene: &Scene, program: Side, nest: Side, statement: &Instances) -> Step<()> {
        let (own, other) = (&statement.statement.indices, &self.nest.sites[nest.of].store.target.indices);
        for (index, stored) in own.iter().zip(other) {
            if own.len() != other.len() || !self.same_index(scene, (program, index), (nest, stored))? {
                return undecided("data chooses elements of a buffer that is arranged in another way");
            }
        }
        Ok(())
    }

    /// Shows that the two expressions have the same value in all situations of a scene, or fails.
    pub fn equal(&self, scene: &Scene, program: Side, nest: Side) -> Step<()> {
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

    /// Compares an index of the program with a number of the nest.
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

    /// Compares a read of the program with an expression of the nest.
    fn load(&self, scene: &Scene, (program, access): (Side, &Access), nest: Side) -> Step<()> {
        if self.is_known_content(scene, (program, access), nest)? {
            return Ok(());
        }
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
            let own = own.binding(self.chosen_by_data((program, access), &version));
            if own.set.is_empty()? {
                continue;
            }
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

    /// Checks whether the buffer's known content shows that the nest loads what the program reads.
    fn is_known_content(&self, scene: &Scene, (program, access): (Side, &Access), nest: Side) -> Step<bool> {
        // After a copy or an inlined tensor, the iteration and the instance differ from those of
        // the claim.
        let (ExprKind::Load(load), Some(claimed), true) =
            (&nest.expr.kind, &self.claims[nest.of], scene.is_direct())
        else {
            return Ok(false);
        };
        Ok(program.of == claimed.claim.statement && self.contents.are_read(scene, claimed, access, load)?)
    }

    /// The coordinates of a version that are data-dependent subscripts.
    fn chosen_by_data(&self, (program, access): (Side, &Access), version: &Version) -> Vec<Bound> {
        let first = version.offset + self.version_length(version) - access.indices.len();
        let chosen = access.indices.iter().enumerate();
        let chosen = chosen.filter(|(_, index)| program.frame.coordinates.affine(index).is_none());
        let bound = chosen.map(|(at, index)| Bound {
            coordinate: first + at,
            of: program.of,
            frame: program.frame.clone(),
            index: index.clone(),
        });
        bound.collect()
    }

    /// Compares two loads: the nest's load must bring the version that the program reads.
    fn loads(
        &self,
        scene: &Scene,
        (program, access): (Side, &Access),
        (nest, other): (Side, &Access),
        version: &Version,
    ) -> Step<()> {
        let source = self.source_of(nest, other)?;
        let there = self.at_load(scene, (program, access), (nest, other), (source, version));
        let (scene, frame) = match there {
            Ok(found) => found,
            // Data chooses the element. The program may read that element through a tensor that the
            // nest inlines.
            Err(Stop::Undecided(_)) if self.is_computed_on_the_spot(version) => {
                return self.inlined(scene, program, nest, version);
            }
            Err(stop) => return Err(stop),
        };
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
                Some(claimed) if self.is_another_value(claimed, version) => {
                    let found = written.set.sample()?.unwrap_or_default();
                    return refuted(self.stale(&found, claimed, store.offset, version));
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

    /// Checks whether a store of another statement cannot have left the version's value. This is so
    /// if all of the following hold. The version's statement is a reduction or an operation on
    /// data. The stored value is an operation on data or an element that no statement writes. The
    /// two statements differ in being a reduction, or in their operator.
    fn is_another_value(&self, claimed: &Claimed, version: &Version) -> bool {
        let Some(writer) = version.writer else { return false };
        let [own, other] = [&self.model.statements[writer], claimed.statement];
        let [value, stored] = [own, other].map(|statement| &statement.statement.value);
        let is_supplied = |tensor| !self.model.statements.iter().any(|own| own.statement.target == tensor);
        let is_given = match &stored.kind {
            ExprKind::Load(access) => is_supplied(access.tensor),
            _ => computes(stored),
        };
        let are_alike = own.is_reduction() == other.is_reduction() && operator(value) == operator(stored);
        (own.is_reduction() || computes(value)) && is_given && !are_alike
    }

    /// The situations at a load, and the positions of the load's coordinates in them: the
    /// iteration, then the data-dependent subscripts, which must be equal to subscripts of the
    /// program's read.
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
        let first = version.offset + self.version_length(version) - access.indices.len();
        for index in other.indices.iter().filter(|index| nest.frame.coordinates.affine(index).is_none()) {
            let same = |own: &IndexExpr| self.same_index(scene, (program, own), (nest, index));
            // A copy may permute the dimensions.
            let Some(at) = access.indices.iter().position(|own| same(own) == Ok(true)) else {
                return undecided("data chooses another element than in the program");
            };
            picks.push(first + at);
        }
        Ok((scene.clone(), picks))
    }

    /// Checks that the store that wrote an element made the given version, and that the version was
    /// complete when it was read. A version from a direct source is always complete.
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

    /// Checks a load of an element that the caller has supplied: it must be the element that the
    /// program reads.
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

    /// Checks whether the nest may have inlined a version.
    fn is_computed_on_the_spot(&self, version: &Version) -> bool {
        version.writer.is_some_and(|writer| !self.model.statements[writer].is_reduction())
    }

    /// The program reads a tensor that the nest inlines: compares the nest's expression with the
    /// value that the program stores in that tensor.
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

    /// The program computes a value that the nest loads: compares it with the values that copies
    /// have stored there.
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

    /// Checks the last version of every element of a result.
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

    /// The value that a copy stores, in the type in which the value is loaded.
    fn copied(&self, site: usize, loaded: &Expr) -> Step<&Expr> {
        let store = self.nest.sites[site].store;
        if store.reduce.is_some() {
            return undecided("a store without a claim reduces something");
        }
        match &store.value.kind {
            _ if store.value.dtype == loaded.dtype => Ok(&store.value),
            // A conversion to a wider type and back does not change the value.
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

/// The operator of an expression, as text.
fn operator(expr: &Expr) -> Option<String> {
    match &expr.kind {
        ExprKind::Unary(op, _) => Some(format!("{op:?}")),
        ExprKind::Binary(op, _) => Some(format!("{op:?}")),
        ExprKind::Call(function, _) => Some(format!("{function:?}")),
        _ => None,
    }
}

/// Checks whether an expression is an operation on data, such that its value differs from all
/// operands for some data.
fn computes(expr: &Expr) -> bool {
    let may_change_nothing = |operand: &Expr| match &operand.kind {
        ExprKind::Literal(number) => [0.0, 1.0].contains(&number.as_f64()) || !number.as_f64().is_finite(),
        _ => false,
    };
    operator(expr).is_some() && !expr.operands().iter().any(may_change_nothing)
}
