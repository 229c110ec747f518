//! Checks results that several stores make together: each result is complete, begins with the right
//! value, and has every instance reduced into it exactly once.
//!
//! The stores that make one result form a *run*. A run begins with the neutral element, or with the
//! element's previous value. Values are reduced into the result, which may be carried from one
//! buffer to another. The module shows that
//!
//! - every store of a run continues from the run's previous store: its load sees the value which
//!   that store has left;
//! - every run has at most one beginning;
//! - every instance of the result's version is reduced into the result once, except instances whose
//!   value is the neutral element.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::ids::InNest;
use tilewright_ir::nest::{Access, ClaimRole};
use tilewright_ir::{Expr, ExprKind, Update, arithmetic};
use tilewright_isl::{Accesses, Affine, Answer, Map, Set};

use super::claims::ClaimedStore;
use super::continuity;
use super::nest::{Nest, Site};
use super::neutral::neutral_instances;
use super::order::before;
use super::scatters::{chosen_dimensions, dimensions_by_data, is_scatter, row_of, scatters};
use super::single_valued::SingleValuedBuffers;
use super::sources::{Source, Sources, last_writes};
use super::{ProofResult, refuted, undecided};
use crate::dependence::{Reader, version_of};
use crate::model::{Instances, Model};
use crate::text;

/// The runs of all computations.
pub struct Runs<'a, 'n> {
    nest: &'a Nest<'n>,
    /// The stores of each computation, with their runs.
    members: BTreeMap<usize, Vec<Member>>,
    computations: Vec<Option<usize>>,
    unfinished: RefCell<BTreeMap<usize, Set>>,
    /// The computations of partial results, which another computation adds up.
    partial_computations: RefCell<BTreeSet<usize>>,
}

#[derive(Clone)]
struct Member {
    site: usize,
    runs: Map,
}

impl<'a, 'n> Runs<'a, 'n> {
    /// Records which stores make which results.
    pub fn new(nest: &'a Nest<'n>, claims: &[Option<ClaimedStore>]) -> Runs<'a, 'n> {
        let mut members: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        for claimed in claims.iter().flatten() {
            let member = Member { site: claimed.site, runs: claimed.runs.clone() };
            members.entry(claimed.claim.computation).or_default().push(member);
        }
        let computation = |claimed: &Option<ClaimedStore>| claimed.as_ref().map(|own| own.claim.computation);
        let computations = claims.iter().map(computation).collect();
        Runs {
            nest,
            members,
            computations,
            unfinished: RefCell::default(),
            partial_computations: RefCell::default(),
        }
    }

    /// Checks whether a store makes a partial result, which another computation adds up. A partial
    /// result is no version of its element.
    pub fn is_partial_result(&self, site: usize) -> bool {
        self.computations[site].is_some_and(|own| self.partial_computations.borrow().contains(&own))
    }

    /// The iterations of a store after which another store of the same run follows.
    pub fn unfinished(&self, site: usize) -> Answer<Set> {
        if let Some(known) = self.unfinished.borrow().get(&site) {
            return Ok(known.clone());
        }
        let all = self.computations[site].map(|own| self.members[&own].as_slice()).unwrap_or_default();
        let Some(own) = all.iter().find(|member| member.site == site) else {
            unreachable!("the store has a claim")
        };
        let here = &self.nest.sites[site];
        let mut found = Set::empty(&self.nest.context, here.coordinates.len());
        for other in all {
            let later = before(self.nest, here, &self.nest.sites[other.site]);
            let same = own.runs.apply_range(&other.runs.reverse());
            found = found.union(&later.intersect(&same).domain());
        }
        let found = found.coalesce();
        self.unfinished.borrow_mut().insert(site, found.clone());
        Ok(found)
    }
}

/// Checks every computation whose results several stores make.
pub fn check<'p>(
    model: &Model<'p>,
    nest: &Nest,
    sources: &Sources,
    claims: &[Option<ClaimedStore<'_, 'p>>],
    (runs, single_valued): (&Runs<'_, '_>, &SingleValuedBuffers),
) -> ProofResult<()> {
    let check = Check { model, nest, sources, claims, runs };
    let mut contributions = BTreeMap::new();
    for computation in runs.members.keys() {
        check.contributions(*computation, &mut contributions)?;
    }
    for computation in runs.members.keys() {
        let own = check.members(*computation);
        let Some(first) = own.first() else { continue };
        let scatters = own.iter().any(|claimed| scatters(claimed));
        if !scatters && own.iter().any(|claimed| claimed.is_partial()) {
            let again = check.check_beginnings(&own, first.statement)?;
            if !continuity::runs_are_continuous(nest, single_valued, &own, again.is_none())? {
                if let Some(store) = again {
                    return undecided(format!("{store} may restart a reduction that has begun"));
                }
                check.check_continuation(*computation)?;
            }
        }
    }
    Ok(())
}

struct Check<'a, 'p, 'n> {
    model: &'a Model<'p>,
    nest: &'a Nest<'n>,
    sources: &'a Sources,
    claims: &'a [Option<ClaimedStore<'a, 'p>>],
    runs: &'a Runs<'a, 'n>,
}

impl<'a, 'p> Check<'a, 'p, '_> {
    fn members(&self, computation: usize) -> Vec<&ClaimedStore<'a, 'p>> {
        let members = &self.runs.members[&computation];
        members.iter().filter_map(|member| self.claims[member.site].as_ref()).collect()
    }

    /// Maps runs to the instances that are reduced into each run, and checks that these are the
    /// right ones.
    fn contributions(&self, computation: usize, known: &mut BTreeMap<usize, Map>) -> ProofResult<Map> {
        if let Some(found) = known.get(&computation) {
            return Ok(found.clone());
        }
        let mut all: Option<Map> = None;
        for claimed in self.members(computation) {
            let (runs, instances) = match claimed.claim.role {
                ClaimRole::Value => (claimed.runs.clone(), claimed.instances.clone()),
                ClaimRole::Total => (claimed.runs.clone(), self.instances_of_total(claimed, known)?),
                ClaimRole::Neutral | ClaimRole::Carry => continue,
            };
            self.check_scatter_instances(claimed)?;
            let once = runs.flat_range_product(&instances);
            if !once.is_injective()? {
                return self.refute_duplicate(claimed, &once);
            }
            let own = runs.reverse().apply_range(&instances);
            if let Some(all) = &all
                && let Some((_, instance)) = all.intersect(&own).sample()?
            {
                let text = text::describe_instance(self.model, claimed.statement, &instance);
                return refuted(format!("two stores reduce the instance {text} into one result"));
            }
            all = Some(all.map_or_else(|| own.clone(), |all| all.union(&own)));
        }
        let first = self.members(computation)[0];
        let statement = first.statement;
        let none = || {
            let runs = first.claim.repetition.len();
            Map::empty(&self.nest.context, runs, statement.coordinates.len())
        };
        let all = all.unwrap_or_else(none).coalesce();
        let is_part = self.members(computation).iter().any(|own| self.is_partial_result(own));
        if is_part {
            self.runs.partial_computations.borrow_mut().insert(computation);
        } else {
            self.check_complete(computation, &all)?;
            self.check_no_empty_run(computation, &all)?;
        }
        known.insert(computation, all.clone());
        Ok(all)
    }

    /// Checks that every value which is reduced into an element that data chooses is an instance of
    /// the program. Any other value could go into any element.
    fn check_scatter_instances(&self, claimed: &ClaimedStore) -> ProofResult<()> {
        if !scatters(claimed) {
            return Ok(());
        }
        let site = &self.nest.sites[claimed.site];
        match site.domain.subtract(&claimed.domain).sample()? {
            None => Ok(()),
            Some(found) => refuted(format!(
                "{} reduces a value that is no instance of the program",
                self.nest.describe(site, &found)
            )),
        }
    }

    /// Checks whether another computation of the same statement adds up the results of this one.
    fn is_partial_result(&self, own: &ClaimedStore) -> bool {
        let others = self.claims.iter().flatten();
        let mut totals = others.filter(|other| other.claim.role == ClaimRole::Total);
        totals.any(|other| {
            other.claim.statement == own.claim.statement
                && other.claim.computation != own.claim.computation
                && self.sources.loads[other.site].iter().any(|source| {
                    source.writers.iter().any(|(writer, _)| {
                        self.claims[*writer]
                            .as_ref()
                            .is_some_and(|writer| writer.claim.computation == own.claim.computation)
                    })
                })
        })
    }

    fn refute_duplicate<T>(&self, claimed: &ClaimedStore, once: &Map) -> ProofResult<T> {
        let (iterations, _) = once.dimensions()?;
        let same = once.apply_range(&once.reverse()).intersect(&Map::lex_less(once.context(), iterations));
        let at = same.sample()?.map(|(first, _)| first).unwrap_or_default();
        let store = self.nest.describe(&self.nest.sites[claimed.site], &at);
        refuted(format!("{store} reduces an instance that another iteration reduces too"))
    }

    /// Maps iterations of a store that adds up partial results to the instances in the loaded
    /// partial result.
    fn instances_of_total(
        &self,
        claimed: &ClaimedStore,
        known: &mut BTreeMap<usize, Map>,
    ) -> ProofResult<Map> {
        let site = &self.nest.sites[claimed.site];
        let Update::Reduce { op, .. } = claimed.statement.statement.update else {
            return undecided("a store adds up partial results of a statement that is no reduction");
        };
        if site.store.reduce != Some(op) {
            return refuted(format!(
                "{} has another reduction operator than the statement",
                self.nest.describe(site, &[])
            ));
        }
        let value = without_casts(&site.store.value);
        let (ExprKind::Load(_), [source]) = (&value.kind, self.sources.loads[claimed.site].as_slice()) else {
            return undecided("a store of a total computes more than the sum of partial results");
        };
        let mut found: Option<Map> = None;
        for (writer, pairs) in &source.writers {
            let pairs = pairs.reverse().intersect_domain(&claimed.domain);
            if pairs.is_empty()? {
                continue;
            }
            let Some(part) = &self.claims[*writer] else {
                return undecided("partial results are copied before they are added up");
            };
            if !source.is_single_valued
                && !pairs.intersect_range(&self.runs.unfinished(*writer)?).is_empty()?
            {
                return refuted("a partial result is added up before it is complete".to_string());
            }
            let instances = self.contributions(part.claim.computation, known)?;
            let own = pairs.apply_range(&part.runs).apply_range(&instances);
            found = Some(found.map_or_else(|| own.clone(), |found| found.union(&own)));
        }
        if let Some(unwritten) = &source.unwritten
            && !unwritten.intersect_domain(&claimed.domain).is_empty()?
        {
            return refuted("a partial result is added up that no store has written".to_string());
        }
        let found = match found {
            Some(found) => found,
            None if claimed.domain.is_empty()? => claimed.instances.clone(),
            None => return undecided("a total adds up no partial results"),
        };
        if is_scatter(claimed.statement) {
            self.check_total_of_tables(claimed, source, &found)?;
        }
        Ok(found)
    }

    /// Checks that a total of tables is of the row that it claims, and adds up the elements that
    /// data chooses for the total's element. `found` maps iterations to the instances in the
    /// tables.
    fn check_total_of_tables(&self, claimed: &ClaimedStore, source: &Source, found: &Map) -> ProofResult<()> {
        let rows = row_of(claimed.statement);
        if !found.apply_range(&rows).is_subset(&claimed.instances.apply_range(&rows))? {
            return refuted("partial results of another row are added up".to_string());
        }
        if self.is_partial_result(claimed) {
            return Ok(());
        }
        let site = &self.nest.sites[claimed.site];
        let own = subscripts_at(site, &site.store.target, &chosen_dimensions(claimed.statement));
        match (self.elements_in_tables(claimed, source)?, own) {
            (Some(elements), Some(own)) if elements.is_subset(&own)? => Ok(()),
            _ => undecided("a total may add up partial results of other elements"),
        }
    }

    /// Maps iterations of a total to the chosen subscripts of the tables' elements that it adds up.
    fn elements_in_tables(&self, claimed: &ClaimedStore, source: &Source) -> ProofResult<Option<Map>> {
        let site = &self.nest.sites[claimed.site];
        let [load] = site.loads.as_slice() else { return Ok(None) };
        let mut all: Option<Map> = None;
        for (writer, pairs) in &source.writers {
            let Some(part) = &self.claims[*writer] else { return Ok(None) };
            let pairs = pairs.reverse().intersect_domain(&claimed.domain);
            let own = match self.dimensions_of_table(part.claim.computation) {
                Some(table) => {
                    subscripts_at(site, load, &table).map(|own| own.intersect_domain(&pairs.domain()))
                }
                None => {
                    let totals = self.elements_of_totals(part.claim.computation)?;
                    totals.map(|totals| pairs.apply_range(&part.runs).apply_range(&totals))
                }
            };
            let Some(own) = own else { return Ok(None) };
            all = Some(all.map_or_else(|| own.clone(), |all| all.union(&own)));
        }
        Ok(all)
    }

    /// Maps the runs of partial totals to the chosen subscripts of the tables' elements in them.
    fn elements_of_totals(&self, computation: usize) -> ProofResult<Option<Map>> {
        let mut all: Option<Map> = None;
        for total in self.members(computation).into_iter().filter(|own| own.claim.role == ClaimRole::Total) {
            let Some(source) = self.sources.loads[total.site].first() else { return Ok(None) };
            let Some(elements) = self.elements_in_tables(total, source)? else { return Ok(None) };
            let own = total.runs.reverse().apply_range(&elements);
            all = Some(all.map_or_else(|| own.clone(), |all| all.union(&own)));
        }
        Ok(all)
    }

    /// The dimensions of a table in which data chooses the element; none if the computation makes
    /// no table, or its stores differ.
    fn dimensions_of_table(&self, computation: usize) -> Option<Vec<usize>> {
        let members = self.members(computation);
        let values = members.iter().filter(|own| scatters(own));
        let mut found = values.map(|own| dimensions_by_data(&self.nest.sites[own.site]));
        let first = found.next()?;
        let has_all = first.len() == chosen_dimensions(members[0].statement).len();
        (has_all && found.all(|other| other == first)).then_some(first)
    }

    /// Checks that every run has all instances of one version, or of all rows of a scatter that it
    /// has stores for, except those whose value is the neutral element.
    fn check_complete(&self, computation: usize, contributions: &Map) -> ProofResult<()> {
        let members = self.members(computation);
        let statement = members[0].statement;
        let version = if is_scatter(statement) { row_of(statement) } else { version_of(statement) };
        let mut versions = contributions.apply_range(&version);
        if members.iter().any(|own| scatters(own)) {
            for own in &members {
                let rows = own.runs.reverse().apply_range(&own.instances).apply_range(&version);
                versions = versions.union(&rows);
            }
        } else if !versions.is_single_valued()? {
            return refuted(format!(
                "instances of several elements of {} are reduced into one element",
                self.name(statement)
            ));
        }
        let missing = versions.apply_range(&version.reverse()).subtract(contributions);
        let missing = match neutral_instances(statement) {
            Some(neutral) => missing.subtract(&Map::from_domain_and_range(&missing.domain(), &neutral)),
            None => missing,
        };
        match missing.sample()? {
            None => Ok(()),
            // A loop may compute a scatter for one value of a variable that no data replaces, such
            // as one channel of a histogram.
            Some(_) if is_scatter(statement) => {
                undecided(format!("a store computes a part of the scatter into {}", self.name(statement)))
            }
            Some((_, instance)) => refuted(format!(
                "the instance {} of {} is never reduced",
                text::describe_instance(self.model, statement, &instance),
                self.name(statement)
            )),
        }
    }

    /// Checks that no run has stores but lacks all instances of its version, unless their values
    /// are the neutral element.
    fn check_no_empty_run(&self, computation: usize, contributions: &Map) -> ProofResult<()> {
        let reduced = contributions.domain();
        for claimed in self.members(computation) {
            let empty = claimed.runs.range().subtract(&reduced);
            if empty.is_empty()? {
                continue;
            }
            let instances = claimed.runs.intersect_range(&empty).reverse().apply_range(&claimed.instances);
            let missing = match neutral_instances(claimed.statement) {
                Some(neutral) => instances.range().subtract(&neutral),
                None => instances.range(),
            };
            if let Some(instance) = missing.sample()? {
                return refuted(format!(
                    "the instance {} of {} is never reduced",
                    text::describe_instance(self.model, claimed.statement, &instance),
                    self.name(claimed.statement)
                ));
            }
        }
        Ok(())
    }

    fn name(&self, statement: &Instances) -> String {
        format!("`{}`", self.model.program.tensor(statement.statement.target).name)
    }

    /// Checks that every run begins with the value that the statement begins with. Returns a
    /// description of a store whose runs may have two beginnings, if there is one.
    fn check_beginnings(
        &self,
        members: &[&ClaimedStore],
        statement: &Instances,
    ) -> ProofResult<Option<String>> {
        let (mut begun, mut again) = (None, None);
        for claimed in members.iter().filter(|claimed| self.continued_element(claimed).is_none()) {
            if !self.check_beginning(claimed, statement, &mut begun)? {
                again = Some(self.nest.describe(&self.nest.sites[claimed.site], &[]));
            }
        }
        Ok(again)
    }

    /// Checks that every store of a run continues from the run's previous store: its load must see
    /// the value that this store has left.
    fn check_continuation(&self, computation: usize) -> ProofResult<()> {
        let members = &self.runs.members[&computation];
        let mut accesses = Accesses::new(&self.nest.context);
        let times = |member: &Member| self.nest.times(&self.nest.sites[member.site]);
        members.iter().for_each(|member| _ = accesses.add_write(0, &member.runs, &times(member)));
        let mut continuing = Vec::new();
        for member in members {
            let Some(claimed) = &self.claims[member.site] else { continue };
            if let Some(element) = self.continued_element(claimed) {
                self.check_plain_carry(claimed)?;
                accesses.add_read(0, &member.runs, &times(member).intersect_domain(&claimed.domain));
                continuing.push((claimed, element));
            }
        }
        let loads: Vec<(usize, &Access)> =
            continuing.iter().map(|(claimed, element)| (claimed.site, *element)).collect();
        let (last, sources) = (accesses.flow()?, last_writes(self.nest, &loads)?);
        for (number, ((claimed, _), source)) in continuing.iter().zip(&sources).enumerate() {
            let mut rest = claimed.domain.clone();
            for (writer, pairs) in &source.writers {
                let expected = last
                    .sources
                    .iter()
                    .find(|(read, write, _)| *read == number && members[*write].site == *writer);
                if let Some((_, _, expected)) = expected {
                    rest = rest.subtract(&pairs.intersect_range(&claimed.domain).intersect(expected).range());
                }
            }
            let first = last.without_source.iter().find(|(read, _)| *read == number);
            self.check_first_load(claimed, source, &rest, first)?;
        }
        Ok(())
    }

    /// Rejects a carrying store whose value is more than the loaded result.
    fn check_plain_carry(&self, claimed: &ClaimedStore) -> ProofResult<()> {
        let site = &self.nest.sites[claimed.site];
        let mere =
            matches!(without_casts(&site.store.value).kind, ExprKind::Load(_)) && site.store.reduce.is_none();
        match claimed.claim.role == ClaimRole::Carry && !(mere && site.loads.len() == 1) {
            true => undecided("a store that carries a partial result changes its value"),
            false => Ok(()),
        }
    }

    /// The element that a store continues from, or `None` if the store begins a run.
    fn continued_element(&self, claimed: &ClaimedStore) -> Option<&Access> {
        continuity::continued_element(self.nest, claimed)
    }

    /// Checks a store that begins a run with the neutral element or with the only value. Returns
    /// whether each run that the store begins has only this beginning.
    fn check_beginning(
        &self,
        claimed: &ClaimedStore,
        statement: &Instances,
        begun: &mut Option<Set>,
    ) -> ProofResult<bool> {
        let site = &self.nest.sites[claimed.site];
        if claimed.claim.role == ClaimRole::Neutral {
            // A partial result begins with the neutral element, because its total continues from
            // the element's previous value.
            let op = match statement.statement.update {
                Update::Reduce { op, reset } if reset || self.runs.is_partial_result(claimed.site) => op,
                _ => {
                    return refuted(format!(
                        "{} begins with the neutral element, but the statement continues from the previous value",
                        self.nest.describe(site, &[])
                    ));
                }
            };
            let dtype = site.store.value.dtype;
            if site.store.reduce.is_some()
                || site.store.value != Expr::literal(dtype, arithmetic::neutral(op, dtype))
            {
                return refuted(format!(
                    "{} does not store the neutral element of its reduction",
                    self.nest.describe(site, &[])
                ));
            }
        } else if statement.is_reduction() && !self.begins_with_value(statement, claimed)? {
            return refuted(format!(
                "{} replaces the values that were reduced before",
                self.nest.describe(site, &[])
            ));
        }
        let runs = claimed.runs.range();
        let again = match begun {
            Some(begun) => !begun.intersect(&runs).is_empty()?,
            None => false,
        };
        let once = !again && claimed.runs.is_injective()?;
        *begun = Some(begun.take().map_or_else(|| runs.clone(), |begun| begun.union(&runs)));
        Ok(once)
    }

    /// Checks whether a store begins each of its runs with the run's first value, in place of the
    /// neutral element into which that value would be reduced.
    fn begins_with_value(&self, statement: &Instances, claimed: &ClaimedStore) -> ProofResult<bool> {
        let starts_anew = !statement.needs_previous_value() || self.runs.is_partial_result(claimed.site);
        Ok(starts_anew && claimed.claim.role == ClaimRole::Value && claimed.runs.is_injective()?)
    }

    /// Checks the iterations in `rest`, whose load does not see the value of the run's previous
    /// store. They are right only at the beginning of a run, and if the load sees the version that
    /// the program's element had before.
    fn check_first_load(
        &self,
        claimed: &ClaimedStore,
        source: &Source,
        rest: &Set,
        without: Option<&(usize, Map)>,
    ) -> ProofResult<()> {
        let Some(found) = rest.sample()? else { return Ok(()) };
        let site = &self.nest.sites[claimed.site];
        let first = without.map(|(_, runs)| runs.domain());
        let is_first = match &first {
            Some(first) => rest.is_subset(first)?,
            None => false,
        };
        if !is_first || !claimed.statement.needs_previous_value() {
            return refuted(format!(
                "{} does not continue from the previous store of its reduction",
                self.nest.describe(site, &found)
            ));
        }
        self.check_previous_version(claimed, source, rest)
    }

    /// Checks that an update begins with the version that the element had before.
    fn check_previous_version(&self, claimed: &ClaimedStore, source: &Source, rest: &Set) -> ProofResult<()> {
        let site = &self.nest.sites[claimed.site];
        let mut covered = rest.clone();
        let reader = Reader::Update(claimed.claim.statement);
        let mut after_scatter = false;
        for flow in self.sources.program.iter().filter(|flow| flow.reader == reader) {
            after_scatter |= flow.writer.is_some_and(|writer| is_scatter(&self.model.statements[writer]));
            let expected = claimed.instances.intersect_domain(rest).apply_range(&flow.versions);
            let right = match flow.writer {
                None => match &source.unwritten {
                    // A supplied version consists of the element only, which is also its memory
                    // location.
                    Some(unwritten) => unwritten.intersect(&expected).domain(),
                    None => continue,
                },
                Some(writer) => {
                    let mut right = Set::empty(&self.nest.context, site.coordinates.len());
                    for (store, pairs) in &source.writers {
                        let Some(other) = &self.claims[*store] else { continue };
                        if other.claim.statement != writer || self.runs.is_partial_result(*store) {
                            continue;
                        }
                        let early = match other.is_partial() {
                            true => self.runs.unfinished(*store)?,
                            false => {
                                Set::empty(&self.nest.context, self.nest.sites[*store].coordinates.len())
                            }
                        };
                        let brought = pairs
                            .intersect_domain(&other.domain.subtract(&early))
                            .reverse()
                            .apply_range(&other.versions);
                        right = right.union(&brought.intersect(&expected).domain());
                    }
                    right
                }
            };
            covered = covered.subtract(&right);
        }
        match covered.sample()? {
            None => Ok(()),
            // The run of a scatter has many elements, so its last store to an element is not known.
            Some(_) if after_scatter => {
                undecided(format!("{} continues from an element of a scatter", self.nest.describe(site, &[])))
            }
            Some(found) => refuted(format!(
                "{} does not begin with the previous value of its element",
                self.nest.describe(site, &found)
            )),
        }
    }
}

/// Maps iterations of a store to some subscripts of an access. Returns `None` if data decides them,
/// or if the access has fewer dimensions.
fn subscripts_at(site: &Site, access: &Access, dimensions: &[usize]) -> Option<Map> {
    let index = |at: &usize| site.coordinates.affine(access.indices.get(*at)?);
    let values = dimensions.iter().map(index).collect::<Option<Vec<Affine>>>()?;
    Some(Map::from_functions(site.domain.context(), site.coordinates.len(), &values))
}

/// The value without the conversions around it.
fn without_casts(expr: &Expr<InNest>) -> &Expr<InNest> {
    match &expr.kind {
        ExprKind::Cast(inner) => without_casts(inner),
        _ => expr,
    }
}
