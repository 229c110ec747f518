//! Compares a read of the program with a load of the nest: the version that the read sees with the
//! value that some store wrote. Follows a copy to the copied value, and an inlined tensor to the
//! program's expression for it.

use tilewright_ir::ids::InNest;
use tilewright_ir::{Access, Expr, ExprKind, IndexExpr};
use tilewright_isl::Affine;

use super::claims::ClaimedStore;
use super::comparison::{BoundSubscript, Comparison, Frame};
use super::nest::argument;
use super::neutral::keeps_some_element;
use super::scatters::is_scatter;
use super::sources::Source;
use super::values::{Proof, Side, Version};
use super::{ProofResult, Stop, refuted, undecided};
use crate::dependence::{Flow, Reader, version_of};

impl Proof<'_, '_, '_> {
    /// Compares a read of the program with an expression of the nest.
    pub fn compare_read(
        &self,
        comparison: &Comparison,
        (program, access): (Side, &Access),
        nest: Side<InNest>,
    ) -> ProofResult<()> {
        if self.is_known_content(comparison, (program, access), nest)? {
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
        let mut rest = comparison.clone();
        for flow in self.sources.program.iter().filter(is_it) {
            let own = comparison.extend(&program.frame.positions(), &flow.versions);
            rest = rest.without(
                &comparison.projection(&program.frame.positions()).apply_range(&flow.versions).domain(),
            );
            if own.set.is_empty()? {
                continue;
            }
            let version =
                Version { writer: flow.writer, offset: comparison.dimensions, tensor: access.tensor };
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
        comparison: &Comparison,
        (program, access): (Side, &Access),
        nest: Side<InNest>,
    ) -> ProofResult<bool> {
        // After a copy or an inlined tensor, the iteration and the instance differ from those of
        // the claim.
        let (ExprKind::Load(load), Some(claimed), true) =
            (&nest.expr.kind, &self.claims[nest.owner], comparison.has_no_steps())
        else {
            return Ok(false);
        };
        Ok(program.owner == claimed.claim.statement
            && self.contents.load_matches_read(comparison, claimed, access, load)?)
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
        comparison: &Comparison,
        (program, access): (Side, &Access),
        (nest, other): (Side<InNest>, &Access<InNest>),
        version: &Version,
    ) -> ProofResult<()> {
        let source = self.source_of(nest, other)?;
        let there = self.load_coordinates(comparison, (program, access), (nest, other), (source, version));
        let (comparison, frame) = match there {
            Ok(found) => found,
            // Data chooses the element. The program may read that element through a tensor that the
            // nest inlines.
            Err(Stop::Undecided(_)) if self.may_be_inlined(version) => {
                return self.compare_inlined(comparison, program, nest, version);
            }
            Err(stop) => return Err(stop),
        };
        for (writer, pairs) in &source.writers {
            let written = comparison.extend(&frame, &pairs.reverse());
            if written.set.is_empty()? {
                continue;
            }
            let store = self.frame_of(*writer, comparison.dimensions);
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
        let unwritten =
            comparison.within(&comparison.projection(&frame).intersect_range(&unwritten.domain()).domain());
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
    /// two statements differ in being a reduction, or in their operator. A reduction that adds
    /// nothing to an element leaves it as it was.
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
        (own.is_reduction() || is_operation_on_data(value))
            && is_given
            && !are_alike
            && !keeps_some_element(own)
    }

    /// The situations at a load, and the positions of the load's coordinates in them: the
    /// iteration, then the data-dependent subscripts, which must be equal to subscripts of the
    /// program's read.
    fn load_coordinates(
        &self,
        comparison: &Comparison,
        (program, access): (Side, &Access),
        (nest, other): (Side<InNest>, &Access<InNest>),
        (source, version): (&Source, &Version),
    ) -> ProofResult<(Comparison, Vec<usize>)> {
        let mut picks = nest.frame.positions();
        if source.coordinates.len() == picks.len() {
            return Ok((comparison.clone(), picks));
        }
        let first = version.offset + self.version_length(version) - access.indices.len();
        for index in other.indices.iter().filter(|index| nest.frame.coordinates.affine(index).is_none()) {
            let same = |own: &IndexExpr| self.is_same_index(comparison, (program, own), (nest, index));
            // A copy may permute the dimensions.
            let Some(at) = access.indices.iter().position(|own| same(own) == Ok(true)) else {
                return undecided("a data-dependent subscript of a load may differ from that of the program");
            };
            picks.push(first + at);
        }
        Ok((comparison.clone(), picks))
    }

    /// Checks that the store that wrote an element made the given version, and that the version was
    /// complete when it was read. A version from a direct source is always complete.
    pub fn check_version_seen(
        &self,
        comparison: &Comparison,
        claimed: &ClaimedStore,
        (store, is_single_valued): (usize, bool),
        version: &Version,
    ) -> ProofResult<()> {
        let site = &self.nest.sites[claimed.site];
        let iteration = store..store + site.coordinates.len();
        let name = version.offset..version.offset + self.version_length(version);
        let both: Vec<usize> = iteration.clone().chain(name).collect();
        let right = comparison.projection(&both).intersect_range(&claimed.versions.pairs()).domain();
        let wrong = comparison.without(&right);
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
        let early = comparison.within(&comparison.projection(&iteration).intersect_range(&early).domain());
        match early.set.sample()? {
            None => Ok(()),
            // The run of a scatter has many elements, and later stores may be to others.
            Some(_) if is_scatter(claimed.statement) => undecided(format!(
                "a scatter shares the elements of `{}` with other values",
                self.nest.nest.buffer(site.store.target.tensor).name
            )),
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
        comparison: &Comparison,
        (nest, other): (Side<InNest>, &Access<InNest>),
        version: &Version,
    ) -> ProofResult<()> {
        let site = &self.nest.sites[nest.owner];
        let name = &self.nest.nest.buffer(other.tensor).name;
        let is_argument = argument(self.nest.nest, other.tensor) == Some(version.tensor)
            && self.model.program.tensor(version.tensor).role.is_supplied();
        if !is_argument {
            let found = comparison.set.sample()?.unwrap_or_default();
            let values = found.get(nest.frame.offset..nest.frame.offset + site.coordinates.len());
            return refuted(format!(
                "{} reads an element of `{name}` that nothing has written",
                self.nest.describe(site, values.unwrap_or_default())
            ));
        }
        let coordinates = nest.frame.in_comparison(comparison);
        for (at, index) in other.indices.iter().enumerate() {
            let Some(value) = coordinates.affine(index) else { continue };
            let element =
                Affine::variable(comparison.set.context(), comparison.dimensions, version.offset + at);
            if !comparison.set.is_subset(&value.sub(&element).zero_set())? {
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
        comparison: &Comparison,
        program: Side,
        nest: Side<InNest>,
        version: &Version,
    ) -> ProofResult<()> {
        let Some(writer) = version.writer else { return self.report_difference(comparison, program, nest) };
        let statement = &self.model.statements[writer];
        if statement.is_reduction() {
            return self.report_difference(comparison, program, nest);
        }
        let name: Vec<usize> = (version.offset..version.offset + self.version_length(version)).collect();
        let there = comparison.extend(&name, &version_of(statement).reverse());
        let frame = Frame { offset: comparison.dimensions, coordinates: statement.coordinates.clone() };
        let value = statement.statement.value.clone().cast(program.expr.dtype);
        let program = Side { owner: writer, frame: &frame, expr: &value };
        self.check_equal(&there.count_step()?, program, nest)
    }

    /// The program computes a value that the nest loads: compares it with the values that copies
    /// have stored there.
    pub fn compare_copied(
        &self,
        comparison: &Comparison,
        program: Side,
        (nest, other): (Side<InNest>, &Access<InNest>),
    ) -> ProofResult<()> {
        let source = self.source_of(nest, other)?;
        let picks = nest.frame.positions();
        let unwritten = source
            .unwritten
            .as_ref()
            .map(|unwritten| comparison.projection(&picks).intersect_range(&unwritten.domain()));
        if source.coordinates.len() != picks.len() || unwritten.is_some_and(|all| all.is_empty() != Ok(true))
        {
            return self.report_difference(comparison, program, nest);
        }
        for (writer, pairs) in &source.writers {
            let written = comparison.extend(&picks, &pairs.reverse());
            if self.claims[*writer].is_some() && !written.set.is_empty()? {
                return self.report_difference(comparison, program, nest);
            }
            let store = self.frame_of(*writer, comparison.dimensions);
            let value = self.copied_value(*writer, nest.expr)?;
            self.check_equal(
                &written.count_step()?,
                program,
                Side { owner: *writer, frame: &store, expr: value },
            )?;
        }
        Ok(())
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
