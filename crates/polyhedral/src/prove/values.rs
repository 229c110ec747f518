//! Checks that every store that claims an instance computes the instance's value.
//!
//! The check walks the expressions of the program and the nest side by side. A *scene* is the set
//! of all situations in which the two are compared (`comparison.rs`). A situation is a vector with
//! the iteration of the store, the instance that the store claims, and the coordinates that the
//! walk has added since. If a condition on indices selects between two expressions, the scene is
//! split. If both expressions are loads, the program's read sees a version, and the nest's load
//! sees the value that some store wrote. The walk follows a copy to the copied value, and an
//! inlined tensor to the program's expression for it.

use tilewright_ir::ids::{Ids, InNest, InProgram};
use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, Expr, ExprKind, IndexExpr, TensorId, Update};
use tilewright_isl::Affine;

use super::claims::ClaimedStore;
use super::comparison::{BoundSubscript, Comparison, Frame};
use super::contents::Contents;
use super::nest::{Nest, argument};
use super::reductions::Runs;
use super::scatters::is_scatter;
use super::sources::{Source, Sources};
use super::{ProofResult, Stop, refuted, undecided};
use crate::dependence::{Flow, Reader, version_of};
use crate::model::{Instances, Model};
use crate::text;

/// Checks the value of every store, and the final content of every result.
pub fn check(proof: &Proof) -> ProofResult<()> {
    for claimed in proof.claims.iter().flatten() {
        if claimed.claim.role == ClaimRole::Value {
            proof.check_store(claimed)?;
        }
    }
    proof.sources.results.iter().try_for_each(|(tensor, source)| {
        let flows = proof.sources.program.iter().filter(|flow| flow.reader == Reader::Caller(*tensor));
        flows.into_iter().try_for_each(|flow| {
            let scene = Comparison::of(&source.domain, source.coordinates.len());
            let element = Frame { offset: 0, coordinates: source.coordinates.clone() };
            let scene = scene.extend(&element.positions(), &flow.versions);
            let version = Version { writer: flow.writer, offset: element.coordinates.len(), tensor: *tensor };
            proof.check_result(&scene, &element, &version, source)
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
    pub claims: &'a [Option<ClaimedStore<'a, 'p>>],
    /// The results that several stores make together.
    pub runs: &'a Runs<'a, 'n>,
    /// The contents of buffers.
    pub contents: &'a Contents<'a, 'p, 'n>,
}

/// One side of a comparison: an expression of a statement of the program or of a store of the nest.
#[derive(Clone, Copy)]
pub struct Side<'e, I: Ids = InProgram> {
    /// The number of the statement or the store.
    pub owner: usize,
    /// The position of its coordinates in the vectors of the scene.
    pub frame: &'e Frame<I>,
    /// The expression.
    pub expr: &'e Expr<I>,
}

/// A version of an element. The coordinates that identify the version begin at `offset` in the
/// vectors of a scene.
struct Version {
    writer: Option<usize>,
    offset: usize,
    tensor: TensorId,
}

impl Proof<'_, '_, '_> {
    fn check_store(&self, claimed: &ClaimedStore) -> ProofResult<()> {
        let site = &self.nest.sites[claimed.site];
        let statement = claimed.statement;
        let op = match statement.statement.update {
            Update::Assign => None,
            Update::Reduce { op, .. } => Some(op),
        };
        if site.store.reduce != op {
            return refuted(format!(
                "{} has another reduction operator than the statement",
                self.nest.describe(site, &[])
            ));
        }
        let iteration = Frame { offset: 0, coordinates: site.coordinates.clone() };
        let instance = Frame { offset: site.coordinates.len(), coordinates: statement.coordinates.clone() };
        let all = instance.offset + instance.coordinates.len();
        let scene = Comparison::of(&claimed.instances.pairs(), all);
        let program =
            Side { owner: claimed.claim.statement, frame: &instance, expr: &statement.statement.value };
        let nest = Side { owner: claimed.site, frame: &iteration, expr: &site.store.value };
        if is_scatter(statement) {
            self.check_same_target(&scene, program, nest, statement)?;
        }
        self.check_equal(&scene, program, nest)
    }

    /// Checks that data chooses the same element for a store as in the program.
    fn check_same_target(
        &self,
        scene: &Comparison,
        program: Side,
        nest: Side<InNest>,
        statement: &Instances,
    ) -> ProofResult<()> {
        let (own, other) = (&statement.statement.indices, &self.nest.sites[nest.owner].store.target.indices);
        for (index, stored) in own.iter().zip(other) {
            if own.len() != other.len() || !self.is_same_index(scene, (program, index), (nest, stored))? {
                return undecided(
                    "a data-dependent subscript of a store may differ from that of the program",
                );
            }
        }
        Ok(())
    }

    /// Shows that the two expressions have the same value in all situations of a scene, or fails.
    pub fn check_equal(&self, scene: &Comparison, program: Side, nest: Side<InNest>) -> ProofResult<()> {
        if scene.set.is_empty()? {
            return Ok(());
        }
        if let ExprKind::Select(parts) = &program.expr.kind
            && let Some(holds) = program.frame.in_comparison(scene).condition(&parts[0])
        {
            self.check_equal(&scene.within(&holds), Side { expr: &parts[1], ..program }, nest)?;
            return self.check_equal(&scene.without(&holds), Side { expr: &parts[2], ..program }, nest);
        }
        if let ExprKind::Select(parts) = &nest.expr.kind
            && let Some(holds) = nest.frame.in_comparison(scene).condition(&parts[0])
        {
            self.check_equal(&scene.within(&holds), program, Side { expr: &parts[1], ..nest })?;
            return self.check_equal(&scene.without(&holds), program, Side { expr: &parts[2], ..nest });
        }
        match (&program.expr.kind, &nest.expr.kind) {
            (ExprKind::Load(access), _) => self.compare_read(scene, (program, access), nest),
            (_, ExprKind::Load(access)) => self.compare_copied(scene, program, (nest, access)),
            _ if program.expr.dtype != nest.expr.dtype => self.report_difference(scene, program, nest),
            (ExprKind::Literal(own), ExprKind::Literal(other)) if own == other => Ok(()),
            (ExprKind::Scalar(own), ExprKind::Scalar(other)) if own == other => Ok(()),
            (ExprKind::Index(own), ExprKind::Index(other)) => {
                match self.is_same_index(scene, (program, own), (nest, other))? {
                    true => Ok(()),
                    false => self.report_difference(scene, program, nest),
                }
            }
            (ExprKind::Index(_), ExprKind::Literal(_)) => self.compare_with_literal(scene, program, nest),
            (ExprKind::Unary(own, _), ExprKind::Unary(other, _)) if own == other => {
                self.compare_operands(scene, program, nest)
            }
            (ExprKind::Binary(own, _), ExprKind::Binary(other, _)) if own == other => {
                self.compare_operands(scene, program, nest)
            }
            (ExprKind::Call(own, _), ExprKind::Call(other, _)) if own == other => {
                self.compare_operands(scene, program, nest)
            }
            (ExprKind::Cast(_), ExprKind::Cast(_)) | (ExprKind::Select(_), ExprKind::Select(_)) => {
                self.compare_operands(scene, program, nest)
            }
            _ => self.report_difference(scene, program, nest),
        }
    }

    fn compare_operands(&self, scene: &Comparison, program: Side, nest: Side<InNest>) -> ProofResult<()> {
        let both = program.expr.operands().iter().zip(nest.expr.operands());
        both.into_iter().try_for_each(|(own, other)| {
            self.check_equal(scene, Side { expr: own, ..program }, Side { expr: other, ..nest })
        })
    }

    /// Compares an index of the program with a number of the nest.
    fn compare_with_literal(&self, scene: &Comparison, program: Side, nest: Side<InNest>) -> ProofResult<()> {
        let (ExprKind::Index(index), ExprKind::Literal(number)) = (&program.expr.kind, &nest.expr.kind)
        else {
            return self.report_difference(scene, program, nest);
        };
        let coordinates = program.frame.in_comparison(scene);
        let exact = i64::try_from(number.as_i128()).ok().filter(|_| !program.expr.dtype.is_float());
        let value = coordinates.affine(index).filter(|_| coordinates.fits(index, program.expr.dtype));
        match (value, exact) {
            (Some(value), Some(number)) if scene.set.is_subset(&value.offset(-number).zero_set())? => Ok(()),
            _ => self.report_difference(scene, program, nest),
        }
    }

    /// Compares a read of the program with an expression of the nest.
    fn compare_read(
        &self,
        scene: &Comparison,
        (program, access): (Side, &Access),
        nest: Side<InNest>,
    ) -> ProofResult<()> {
        if self.is_known_content(scene, (program, access), nest)? {
            return Ok(());
        }
        let own = &self.model.statements[program.owner];
        let is_it = |flow: &&Flow| match flow.reader {
            Reader::Read(statement, read) if statement == program.owner => {
                let touch = &own.reads[read];
                touch.tensor == access.tensor && touch.indices == access.indices
            }
            _ => false,
        };
        let mut rest = scene.clone();
        for flow in self.sources.program.iter().filter(is_it) {
            let own = scene.extend(&program.frame.positions(), &flow.versions);
            rest = rest
                .without(&scene.projection(&program.frame.positions()).apply_range(&flow.versions).domain());
            if own.set.is_empty()? {
                continue;
            }
            let version = Version { writer: flow.writer, offset: scene.dimensions, tensor: access.tensor };
            let own = own.with_bound_subscripts(self.data_dependent_coordinates((program, access), &version));
            if own.set.is_empty()? {
                continue;
            }
            match &nest.expr.kind {
                ExprKind::Load(other) => {
                    self.compare_loads(&own, (program, access), (nest, other), &version)?
                }
                _ => self.compare_inlined(&own, program, nest, &version)?,
            }
        }
        match rest.set.is_empty()? {
            true => Ok(()),
            false => undecided("a read of the program may see a version that the analysis does not know"),
        }
    }

    /// Checks whether the buffer's known content shows that the nest loads what the program reads.
    fn is_known_content(
        &self,
        scene: &Comparison,
        (program, access): (Side, &Access),
        nest: Side<InNest>,
    ) -> ProofResult<bool> {
        // After a copy or an inlined tensor, the iteration and the instance differ from those of
        // the claim.
        let (ExprKind::Load(load), Some(claimed), true) =
            (&nest.expr.kind, &self.claims[nest.owner], scene.has_no_steps())
        else {
            return Ok(false);
        };
        Ok(program.owner == claimed.claim.statement
            && self.contents.load_matches_read(scene, claimed, access, load)?)
    }

    /// The coordinates of a version that are data-dependent subscripts.
    fn data_dependent_coordinates(
        &self,
        (program, access): (Side, &Access),
        version: &Version,
    ) -> Vec<BoundSubscript> {
        let first = version.offset + self.version_length(version) - access.indices.len();
        let chosen = access.indices.iter().enumerate();
        let chosen = chosen.filter(|(_, index)| program.frame.coordinates.affine(index).is_none());
        let bound = chosen.map(|(at, index)| BoundSubscript {
            coordinate: first + at,
            statement: program.owner,
            frame: program.frame.clone(),
            index: index.clone(),
        });
        bound.collect()
    }

    /// Compares two loads: the nest's load must bring the version that the program reads.
    fn compare_loads(
        &self,
        scene: &Comparison,
        (program, access): (Side, &Access),
        (nest, other): (Side<InNest>, &Access<InNest>),
        version: &Version,
    ) -> ProofResult<()> {
        let source = self.source_of(nest, other)?;
        let there = self.load_coordinates(scene, (program, access), (nest, other), (source, version));
        let (scene, frame) = match there {
            Ok(found) => found,
            // Data chooses the element. The program may read that element through a tensor that the
            // nest inlines.
            Err(Stop::Undecided(_)) if self.may_be_inlined(version) => {
                return self.compare_inlined(scene, program, nest, version);
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
                    let value = self.copied_value(*writer, nest.expr)?;
                    let copy = Side { owner: *writer, frame: &store, expr: value };
                    self.check_equal(&written.count_step()?, program, copy)?;
                }
                Some(claimed) if version.writer == Some(claimed.claim.statement) => {
                    self.check_version_seen(
                        &written,
                        claimed,
                        (store.offset, source.is_single_valued),
                        version,
                    )?;
                }
                Some(claimed) if self.cannot_be_version(claimed, version) => {
                    let found = written.set.sample()?.unwrap_or_default();
                    return refuted(self.describe_wrong_version(&found, claimed, store.offset, version));
                }
                Some(_) => self.compare_inlined(&written, program, nest, version)?,
            }
        }
        let Some(unwritten) = &source.unwritten else { return Ok(()) };
        let unwritten = scene.within(&scene.projection(&frame).intersect_range(&unwritten.domain()).domain());
        if unwritten.set.is_empty()? {
            return Ok(());
        }
        let is_supplied = |tensor| self.model.program.tensor(tensor).role.is_supplied();
        match version.writer {
            Some(_) if argument(self.nest.nest, other.tensor).is_some_and(is_supplied) => {
                self.compare_inlined(&unwritten, program, nest, version)
            }
            _ => self.check_supplied(&unwritten, (nest, other), version),
        }
    }

    /// Checks whether a store of another statement cannot have left the version's value. This is so
    /// if all of the following hold. The version's statement is a reduction or an operation on
    /// data. The stored value is an operation on data or an element that no statement writes. The
    /// two statements differ in being a reduction, or in their operator.
    fn cannot_be_version(&self, claimed: &ClaimedStore, version: &Version) -> bool {
        let Some(writer) = version.writer else { return false };
        let [own, other] = [&self.model.statements[writer], claimed.statement];
        let [value, stored] = [own, other].map(|statement| &statement.statement.value);
        let is_supplied = |tensor| !self.model.statements.iter().any(|own| own.statement.target == tensor);
        let is_given = match &stored.kind {
            ExprKind::Load(access) => is_supplied(access.tensor),
            _ => is_operation_on_data(stored),
        };
        let are_alike = own.is_reduction() == other.is_reduction() && operator(value) == operator(stored);
        (own.is_reduction() || is_operation_on_data(value)) && is_given && !are_alike
    }

    /// The situations at a load, and the positions of the load's coordinates in them: the
    /// iteration, then the data-dependent subscripts, which must be equal to subscripts of the
    /// program's read.
    fn load_coordinates(
        &self,
        scene: &Comparison,
        (program, access): (Side, &Access),
        (nest, other): (Side<InNest>, &Access<InNest>),
        (source, version): (&Source, &Version),
    ) -> ProofResult<(Comparison, Vec<usize>)> {
        let mut picks = nest.frame.positions();
        if source.coordinates.len() == picks.len() {
            return Ok((scene.clone(), picks));
        }
        let first = version.offset + self.version_length(version) - access.indices.len();
        for index in other.indices.iter().filter(|index| nest.frame.coordinates.affine(index).is_none()) {
            let same = |own: &IndexExpr| self.is_same_index(scene, (program, own), (nest, index));
            // A copy may permute the dimensions.
            let Some(at) = access.indices.iter().position(|own| same(own) == Ok(true)) else {
                return undecided("a data-dependent subscript of a load may differ from that of the program");
            };
            picks.push(first + at);
        }
        Ok((scene.clone(), picks))
    }

    /// Checks that the store that wrote an element made the given version, and that the version was
    /// complete when it was read. A version from a direct source is always complete.
    fn check_version_seen(
        &self,
        scene: &Comparison,
        claimed: &ClaimedStore,
        (store, is_single_valued): (usize, bool),
        version: &Version,
    ) -> ProofResult<()> {
        let site = &self.nest.sites[claimed.site];
        let iteration = store..store + site.coordinates.len();
        let name = version.offset..version.offset + self.version_length(version);
        let both: Vec<usize> = iteration.clone().chain(name).collect();
        let right = scene.projection(&both).intersect_range(&claimed.versions.pairs()).domain();
        let wrong = scene.without(&right);
        if let Some(found) = wrong.set.sample()? {
            return refuted(self.describe_wrong_version(&found, claimed, store, version));
        }
        if self.runs.is_partial_result(claimed.site) {
            return undecided(format!(
                "a load reads the partial result of {}",
                self.nest.describe(site, &[])
            ));
        }
        if is_single_valued || !claimed.is_partial() {
            return Ok(());
        }
        let iteration: Vec<usize> = iteration.collect();
        let early = self.runs.unfinished(claimed.site)?;
        let early = scene.within(&scene.projection(&iteration).intersect_range(&early).domain());
        match early.set.sample()? {
            None => Ok(()),
            Some(found) => {
                let values = &found[store..store + site.coordinates.len()];
                refuted(format!(
                    "the value of {} is read before it is complete",
                    self.nest.describe(site, values)
                ))
            }
        }
    }

    /// Checks a load of an element that the caller has supplied: it must be the element that the
    /// program reads.
    fn check_supplied(
        &self,
        scene: &Comparison,
        (nest, other): (Side<InNest>, &Access<InNest>),
        version: &Version,
    ) -> ProofResult<()> {
        let site = &self.nest.sites[nest.owner];
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
        let coordinates = nest.frame.in_comparison(scene);
        for (at, index) in other.indices.iter().enumerate() {
            let Some(value) = coordinates.affine(index) else { continue };
            let element = Affine::variable(scene.set.context(), scene.dimensions, version.offset + at);
            if !scene.set.is_subset(&value.sub(&element).zero_set())? {
                return refuted(format!(
                    "{} reads another element of `{name}` than the program",
                    self.nest.describe(site, &[])
                ));
            }
        }
        Ok(())
    }

    /// Checks whether the nest may have inlined a version.
    fn may_be_inlined(&self, version: &Version) -> bool {
        version.writer.is_some_and(|writer| !self.model.statements[writer].is_reduction())
    }

    /// The program reads a tensor that the nest inlines: compares the nest's expression with the
    /// value that the program stores in that tensor.
    fn compare_inlined(
        &self,
        scene: &Comparison,
        program: Side,
        nest: Side<InNest>,
        version: &Version,
    ) -> ProofResult<()> {
        let Some(writer) = version.writer else { return self.report_difference(scene, program, nest) };
        let statement = &self.model.statements[writer];
        if statement.is_reduction() {
            return self.report_difference(scene, program, nest);
        }
        let name: Vec<usize> = (version.offset..version.offset + self.version_length(version)).collect();
        let there = scene.extend(&name, &version_of(statement).reverse());
        let frame = Frame { offset: scene.dimensions, coordinates: statement.coordinates.clone() };
        let value = statement.statement.value.clone().cast(program.expr.dtype);
        let program = Side { owner: writer, frame: &frame, expr: &value };
        self.check_equal(&there.count_step()?, program, nest)
    }

    /// The program computes a value that the nest loads: compares it with the values that copies
    /// have stored there.
    fn compare_copied(
        &self,
        scene: &Comparison,
        program: Side,
        (nest, other): (Side<InNest>, &Access<InNest>),
    ) -> ProofResult<()> {
        let source = self.source_of(nest, other)?;
        let picks = nest.frame.positions();
        let unwritten = source
            .unwritten
            .as_ref()
            .map(|unwritten| scene.projection(&picks).intersect_range(&unwritten.domain()));
        if source.coordinates.len() != picks.len() || unwritten.is_some_and(|all| all.is_empty() != Ok(true))
        {
            return self.report_difference(scene, program, nest);
        }
        for (writer, pairs) in &source.writers {
            let written = scene.extend(&picks, &pairs.reverse());
            if self.claims[*writer].is_some() && !written.set.is_empty()? {
                return self.report_difference(scene, program, nest);
            }
            let store = self.frame_of(*writer, scene.dimensions);
            let value = self.copied_value(*writer, nest.expr)?;
            self.check_equal(
                &written.count_step()?,
                program,
                Side { owner: *writer, frame: &store, expr: value },
            )?;
        }
        Ok(())
    }

    /// Checks the last version of every element of a result.
    fn check_result(
        &self,
        scene: &Comparison,
        element: &Frame<InNest>,
        version: &Version,
        source: &Source,
    ) -> ProofResult<()> {
        let name = &self.model.program.tensor(version.tensor).name;
        for (writer, pairs) in &source.writers {
            let written = scene.extend(&element.positions(), &pairs.reverse());
            let Some(found) = written.set.sample()? else { continue };
            match &self.claims[*writer] {
                Some(claimed) if version.writer == Some(claimed.claim.statement) => {
                    self.check_version_seen(
                        &written,
                        claimed,
                        (scene.dimensions, source.is_single_valued),
                        version,
                    )?;
                }
                _ => {
                    let values = &found[scene.dimensions..];
                    let last = self.nest.describe(&self.nest.sites[*writer], values);
                    return refuted(format!(
                        "{last} writes an element of the result `{name}` last, but does not compute its last version"
                    ));
                }
            }
        }
        let Some(unwritten) = &source.unwritten else { return Ok(()) };
        let unwritten = scene
            .within(&scene.projection(&element.positions()).intersect_range(&unwritten.domain()).domain());
        match (version.writer, unwritten.set.sample()?) {
            (Some(_), Some(found)) => {
                let element = &found[..element.coordinates.len()];
                refuted(format!("the element {element:?} of the result `{name}` is never written"))
            }
            _ => Ok(()),
        }
    }

    fn source_of(&self, nest: Side<InNest>, access: &Access<InNest>) -> ProofResult<&Source> {
        let site = &self.nest.sites[nest.owner];
        match site.loads.iter().position(|own| *own == access) {
            Some(at) => Ok(&self.sources.loads[nest.owner][at]),
            None => undecided("the source of a load is not known"),
        }
    }

    fn frame_of(&self, site: usize, offset: usize) -> Frame<InNest> {
        Frame { offset, coordinates: self.nest.sites[site].coordinates.clone() }
    }

    /// The value that a copy stores, in the type in which the value is loaded.
    fn copied_value(&self, site: usize, loaded: &Expr<InNest>) -> ProofResult<&Expr<InNest>> {
        let store = self.nest.sites[site].store;
        if store.reduce.is_some() {
            return undecided("a store without a claim is a reduction, not a copy");
        }
        match &store.value.kind {
            _ if store.value.dtype == loaded.dtype => Ok(&store.value),
            // A conversion to a wider type and back does not change the value.
            ExprKind::Cast(inner) if inner.dtype == loaded.dtype => Ok(inner),
            _ => undecided("a copy changes the type of the copied value"),
        }
    }

    fn version_length(&self, version: &Version) -> usize {
        let loops = version.writer.map_or(0, |writer| self.model.statements[writer].loops.len());
        loops + self.model.program.tensor(version.tensor).shape.len()
    }

    fn describe_wrong_version(
        &self,
        found: &[i64],
        claimed: &ClaimedStore,
        store: usize,
        version: &Version,
    ) -> String {
        let site = &self.nest.sites[claimed.site];
        let values = &found[store..store + site.coordinates.len()];
        let name = &found[version.offset..version.offset + self.version_length(version)];
        let tensor = &self.model.program.tensor(version.tensor).name;
        format!(
            "a load sees {}, but the program reads version {name:?} of `{tensor}`",
            self.nest.describe(site, values)
        )
    }

    fn report_difference(&self, scene: &Comparison, program: Side, nest: Side<InNest>) -> ProofResult<()> {
        let own = &self.model.statements[program.owner];
        let found = scene.set.sample()?.unwrap_or_default();
        let instance =
            found.get(program.frame.positions().first().copied().unwrap_or(0)..).unwrap_or_default();
        let site = &self.nest.sites[nest.owner];
        undecided(format!(
            "{} computes `{}`, which is not recognised as the value of the program at {}",
            self.nest.describe(site, &[]),
            tilewright_ir::print::expr(nest.expr, self.nest.nest),
            text::describe_instance(self.model, own, instance)
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
fn is_operation_on_data(expr: &Expr) -> bool {
    let may_change_nothing = |operand: &Expr| match &operand.kind {
        ExprKind::Literal(number) => [0.0, 1.0].contains(&number.as_f64()) || !number.as_f64().is_finite(),
        _ => false,
    };
    operator(expr).is_some() && !expr.operands().iter().any(may_change_nothing)
}
