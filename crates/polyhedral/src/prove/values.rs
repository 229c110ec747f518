//! Checks that every store that claims an instance computes the instance's value.
//!
//! The check walks the expressions of the program and the nest side by side. A [`Comparison`] is
//! the set of all situations in which the two are compared. A situation is a vector with the
//! iteration of the store, the instance that the store claims, and the coordinates that the walk
//! has added since. If a condition on indices selects between two expressions, the comparison is
//! split. The file `loads.rs` compares the reads of both sides.

use tilewright_ir::ids::{Ids, InNest, InProgram};
use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Expr, ExprKind, TensorId, Update};

use super::claims::ClaimedStore;
use super::comparison::{Comparison, Frame};
use super::contents::Contents;
use super::nest::Nest;
use super::neutral::keeps_some_element;
use super::reductions::Runs;
use super::scatters::{chosen_dimensions, dimensions_by_data, is_scatter};
use super::sources::{Source, Sources};
use super::{ProofResult, refuted, undecided};
use crate::dependence::Reader;
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
            let comparison = Comparison::of(&source.domain, source.coordinates.len());
            let element = Frame { offset: 0, coordinates: source.coordinates.clone() };
            let comparison = comparison.extend(&element.positions(), &flow.versions);
            let version = Version { writer: flow.writer, offset: element.coordinates.len(), tensor: *tensor };
            proof.check_result(&comparison, &element, &version, source)
        })
    })
}

/// Checks whether a store sets elements of a scatter to the neutral element. In the program, a
/// scatter sets its whole tensor, also rows that none of its instances belongs to.
fn sets_rows_of_scatter(claimed: &ClaimedStore) -> bool {
    claimed.claim.role == ClaimRole::Neutral && is_scatter(claimed.statement)
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
    /// The position of its coordinates in the vectors of the comparison.
    pub frame: &'e Frame<I>,
    /// The expression.
    pub expr: &'e Expr<I>,
}

/// A version of an element. The coordinates that identify the version begin at `offset` in the
/// vectors of a comparison.
pub struct Version {
    /// The statement that writes the version; `None` for the content before the program.
    pub writer: Option<usize>,
    /// The first coordinate.
    pub offset: usize,
    /// The tensor of the element.
    pub tensor: TensorId,
}

impl Proof<'_, '_, '_> {
    fn check_store(&self, claimed: &ClaimedStore) -> ProofResult<()> {
        let site = &self.nest.sites[claimed.site];
        let statement = claimed.statement;
        let op = match statement.statement.update {
            Update::Assign => None,
            Update::Reduce { op, .. } => Some(op),
        };
        // The module `reductions` has checked that a store which reduces nothing begins its run.
        let begins = site.store.reduce.is_none() && op.is_some() && !is_scatter(statement);
        if site.store.reduce != op && !begins {
            return refuted(format!(
                "{} has another reduction operator than the statement",
                self.nest.describe(site, &[])
            ));
        }
        let iteration = Frame { offset: 0, coordinates: site.coordinates.clone() };
        let instance = Frame { offset: site.coordinates.len(), coordinates: statement.coordinates.clone() };
        let all = instance.offset + instance.coordinates.len();
        let comparison = Comparison::of(&claimed.instances.pairs(), all);
        let program =
            Side { owner: claimed.claim.statement, frame: &instance, expr: &statement.statement.value };
        let nest = Side { owner: claimed.site, frame: &iteration, expr: &site.store.value };
        if is_scatter(statement) {
            self.check_same_target(&comparison, program, nest, statement)?;
        }
        self.check_equal(&comparison, program, nest)
    }

    /// Checks that data and reduced variables choose the same element for a store as in the
    /// program.
    fn check_same_target(
        &self,
        comparison: &Comparison,
        program: Side,
        nest: Side<InNest>,
        statement: &Instances,
    ) -> ProofResult<()> {
        let site = &self.nest.sites[nest.owner];
        let (own, other) = (&statement.statement.indices, &site.store.target.indices);
        let chosen = chosen_dimensions(statement);
        let stored = match self.runs.is_partial_result(nest.owner) {
            true => dimensions_by_data(site),
            false if own.len() == other.len() => chosen.clone(),
            false => Vec::new(),
        };
        let is_same = |at: &usize, place: &usize| {
            self.is_same_index(comparison, (program, &own[*at]), (nest, &other[*place]))
        };
        let mut are_same = chosen.len() == stored.len();
        for (at, place) in chosen.iter().zip(&stored) {
            are_same = are_same && is_same(at, place)?;
        }
        match are_same {
            true => Ok(()),
            false => undecided("a data-dependent subscript of a store may differ from that of the program"),
        }
    }

    /// Shows that the two expressions have the same value in all situations of a comparison, or
    /// fails.
    pub fn check_equal(&self, comparison: &Comparison, program: Side, nest: Side<InNest>) -> ProofResult<()> {
        if comparison.set.is_empty()? {
            return Ok(());
        }
        if let ExprKind::Select(parts) = &program.expr.kind
            && let Some(holds) = program.frame.in_comparison(comparison).condition(&parts[0])
        {
            self.check_equal(&comparison.within(&holds), Side { expr: &parts[1], ..program }, nest)?;
            return self.check_equal(&comparison.without(&holds), Side { expr: &parts[2], ..program }, nest);
        }
        if let ExprKind::Select(parts) = &nest.expr.kind
            && let Some(holds) = nest.frame.in_comparison(comparison).condition(&parts[0])
        {
            self.check_equal(&comparison.within(&holds), program, Side { expr: &parts[1], ..nest })?;
            return self.check_equal(&comparison.without(&holds), program, Side { expr: &parts[2], ..nest });
        }
        match (&program.expr.kind, &nest.expr.kind) {
            (ExprKind::Load(access), _) => self.compare_read(comparison, (program, access), nest),
            (_, ExprKind::Load(access)) => self.compare_copied(comparison, program, (nest, access)),
            _ if program.expr.dtype != nest.expr.dtype => self.report_difference(comparison, program, nest),
            (ExprKind::Literal(own), ExprKind::Literal(other)) if own == other => Ok(()),
            (ExprKind::Scalar(own), ExprKind::Scalar(other)) if own == other => Ok(()),
            (ExprKind::Index(own), ExprKind::Index(other)) => {
                match self.is_same_index(comparison, (program, own), (nest, other))? {
                    true => Ok(()),
                    false => self.report_difference(comparison, program, nest),
                }
            }
            (ExprKind::Index(_), ExprKind::Literal(_)) => {
                self.compare_with_literal(comparison, program, nest)
            }
            (ExprKind::Unary(own, _), ExprKind::Unary(other, _)) if own == other => {
                self.compare_operands(comparison, program, nest)
            }
            (ExprKind::Binary(own, _), ExprKind::Binary(other, _)) if own == other => {
                self.compare_operands(comparison, program, nest)
            }
            (ExprKind::Call(own, _), ExprKind::Call(other, _)) if own == other => {
                self.compare_operands(comparison, program, nest)
            }
            (ExprKind::Cast(_), ExprKind::Cast(_)) | (ExprKind::Select(_), ExprKind::Select(_)) => {
                self.compare_operands(comparison, program, nest)
            }
            _ => self.report_difference(comparison, program, nest),
        }
    }

    fn compare_operands(
        &self,
        comparison: &Comparison,
        program: Side,
        nest: Side<InNest>,
    ) -> ProofResult<()> {
        let both = program.expr.operands().iter().zip(nest.expr.operands());
        both.into_iter().try_for_each(|(own, other)| {
            self.check_equal(comparison, Side { expr: own, ..program }, Side { expr: other, ..nest })
        })
    }

    /// Compares an index of the program with a number of the nest.
    fn compare_with_literal(
        &self,
        comparison: &Comparison,
        program: Side,
        nest: Side<InNest>,
    ) -> ProofResult<()> {
        let (ExprKind::Index(index), ExprKind::Literal(number)) = (&program.expr.kind, &nest.expr.kind)
        else {
            return self.report_difference(comparison, program, nest);
        };
        let coordinates = program.frame.in_comparison(comparison);
        let exact = i64::try_from(number.as_i128()).ok().filter(|_| !program.expr.dtype.is_float());
        let value = coordinates.affine(index).filter(|_| coordinates.fits(index, program.expr.dtype));
        match (value, exact) {
            (Some(value), Some(number)) if comparison.set.is_subset(&value.offset(-number).zero_set())? => {
                Ok(())
            }
            _ => self.report_difference(comparison, program, nest),
        }
    }

    /// Checks the last version of every element of a result.
    fn check_result(
        &self,
        comparison: &Comparison,
        element: &Frame<InNest>,
        version: &Version,
        source: &Source,
    ) -> ProofResult<()> {
        let name = &self.model.program.tensor(version.tensor).name;
        let keeps = version.writer.is_some_and(|writer| keeps_some_element(&self.model.statements[writer]));
        let kept = format!("an element of the result `{name}` may keep its previous value");
        for (writer, pairs) in &source.writers {
            let written = comparison.extend(&element.positions(), &pairs.reverse());
            let Some(found) = written.set.sample()? else { continue };
            match &self.claims[*writer] {
                Some(claimed) if version.writer == Some(claimed.claim.statement) => {
                    self.check_version_seen(
                        &written,
                        claimed,
                        (comparison.dimensions, source.is_single_valued),
                        version,
                    )?;
                }
                Some(claimed) if version.writer.is_none() && sets_rows_of_scatter(claimed) => {
                    return undecided(format!("a scatter sets elements of `{name}` that no instance writes"));
                }
                _ if keeps => return undecided(kept),
                _ => {
                    let values = &found[comparison.dimensions..];
                    let last = self.nest.describe(&self.nest.sites[*writer], values);
                    return refuted(format!(
                        "{last} writes an element of the result `{name}` last, but does not compute its last version"
                    ));
                }
            }
        }
        let Some(unwritten) = &source.unwritten else { return Ok(()) };
        let unwritten = comparison.within(
            &comparison.projection(&element.positions()).intersect_range(&unwritten.domain()).domain(),
        );
        match (version.writer, unwritten.set.sample()?) {
            (Some(_), Some(_)) if keeps => undecided(kept),
            (Some(_), Some(found)) => {
                let element = &found[..element.coordinates.len()];
                refuted(format!("the element {element:?} of the result `{name}` is never written"))
            }
            _ => Ok(()),
        }
    }

    /// Refutes with the two expressions that differ.
    pub fn report_difference(
        &self,
        comparison: &Comparison,
        program: Side,
        nest: Side<InNest>,
    ) -> ProofResult<()> {
        let own = &self.model.statements[program.owner];
        let found = comparison.set.sample()?.unwrap_or_default();
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
