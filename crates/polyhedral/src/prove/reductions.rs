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

use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, Expr, ExprKind, Update, arithmetic};
use tilewright_isl::{Accesses, Answer, Map, Set};

use super::claims::Claimed;
use super::continuity;
use super::direct::Direct;
use super::nest::Nest;
use super::order::before;
use super::scatters::{is_scatter, turns};
use super::sources::{Source, Sources, last_writes};
use super::{Step, refuted, undecided};
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
    parts: RefCell<BTreeSet<usize>>,
}

#[derive(Clone)]
struct Member {
    site: usize,
    runs: Map,
}

impl<'a, 'n> Runs<'a, 'n> {
    /// Records which stores make which results.
    pub fn new(nest: &'a Nest<'n>, claims: &[Option<Claimed>]) -> Runs<'a, 'n> {
        let mut members: BTreeMap<usize, Vec<Member>> = BTreeMap::new();
        for claimed in claims.iter().flatten() {
            let member = Member { site: claimed.site, runs: claimed.runs.clone() };
            members.entry(claimed.claim.computation).or_default().push(member);
        }
        let computation = |claimed: &Option<Claimed>| claimed.as_ref().map(|own| own.claim.computation);
        let computations = claims.iter().map(computation).collect();
        Runs { nest, members, computations, unfinished: RefCell::default(), parts: RefCell::default() }
    }

    /// Checks whether a store makes a partial result, which another computation adds up. A partial
    /// result is no version of its element.
    pub fn is_part(&self, site: usize) -> bool {
        self.computations[site].is_some_and(|own| self.parts.borrow().contains(&own))
    }

    /// The iterations of a store after which another store of the same run follows.
    pub fn unfinished(&self, site: usize) -> Answer<Set> {
        if let Some(known) = self.unfinished.borrow().get(&site) {
            return Ok(known.clone());
        }
        let all = self.computations[site].map(|own| self.members[&own].as_slice()).unwrap_or_default();
        let Some(own) = all.iter().find(|member| member.site == site) else {
            unreachable!("only stores with claims are asked for")
        };
        let here = &self.nest.sites[site];
        let mut found = Set::empty(&self.nest.context, here.coordinates.len());
        for other in all {
            let later = before(self.nest, here, &self.nest.sites[other.site]);
            let same = own.runs.then(&other.runs.reverse());
            found = found.union(&later.intersect(&same).domain());
        }
        let found = found.coalesce();
        self.unfinished.borrow_mut().insert(site, found.clone());
        Ok(found)
    }
}

/// Checks every computation whose results several stores make.
pub fn check(
    model: &Model,
    nest: &Nest,
    sources: &Sources,
    claims: &[Option<Claimed>],
    (runs, direct): (&Runs<'_, '_>, &Direct),
) -> Step<()> {
    let check = Check { model, nest, sources, claims, runs };
    let mut contributions = BTreeMap::new();
    for computation in runs.members.keys() {
        check.contributions(*computation, &mut contributions)?;
    }
    for computation in runs.members.keys() {
        let own = check.members(*computation);
        let Some(first) = own.first() else { continue };
        if !is_scatter(first.statement) && own.iter().any(|claimed| claimed.is_partial()) {
            let again = check.begins_again(&own, first.statement)?;
            if !continuity::holds(nest, direct, &own, again.is_none())? {
                if let Some(store) = again {
                    return undecided(format!("{store} may begin a result again"));
                }
                check.is_continued(*computation)?;
            }
        }
    }
    Ok(())
}

struct Check<'a, 'p, 'n> {
    model: &'a Model<'p>,
    nest: &'a Nest<'n>,
    sources: &'a Sources,
    claims: &'a [Option<Claimed<'a, 'p>>],
    runs: &'a Runs<'a, 'n>,
}

impl<'a, 'p> Check<'a, 'p, '_> {
    fn members(&self, computation: usize) -> Vec<&Claimed<'a, 'p>> {
        let members = &self.runs.members[&computation];
        members.iter().filter_map(|member| self.claims[member.site].as_ref()).collect()
    }

    /// Maps runs to the instances that are reduced into each run, and checks that these are the
    /// right ones.
    fn contributions(&self, computation: usize, known: &mut BTreeMap<usize, Map>) -> Step<Map> {
        if let Some(found) = known.get(&computation) {
            return Ok(found.clone());
        }
        let mut all: Option<Map> = None;
        for claimed in self.members(computation) {
            let (runs, instances) = match claimed.claim.role {
                ClaimRole::Value => (claimed.runs.clone(), claimed.instances.clone()),
                ClaimRole::Total => (claimed.runs.clone(), self.added_up(claimed, known)?),
                ClaimRole::Neutral | ClaimRole::Carry => continue,
            };
            self.is_nothing_else(claimed)?;
            let once = runs.beside(&instances);
            if !once.is_injective()? {
                return self.twice(claimed, &once);
            }
            let own = runs.reverse().then(&instances);
            if let Some(all) = &all
                && let Some((_, instance)) = all.intersect(&own).sample()?
            {
                let text = text::instance(self.model, claimed.statement, &instance);
                return refuted(format!("two stores reduce the instance {text} into one result"));
            }
            all = Some(all.map_or_else(|| own.clone(), |all| all.union(&own)));
        }
        let first = self.members(computation)[0];
        let statement = first.statement;
        let none = || {
            let runs = first.claim.run.len();
            Map::empty(&self.nest.context, runs, statement.coordinates.len())
        };
        let all = all.unwrap_or_else(none).coalesce();
        let is_part = self.members(computation).iter().any(|own| self.is_part(own));
        if is_part {
            self.runs.parts.borrow_mut().insert(computation);
        } else {
            self.is_complete(statement, &all)?;
            self.nothing_is_empty(computation, &all)?;
        }
        known.insert(computation, all.clone());
        Ok(all)
    }

    /// Checks that every value which is reduced into an element that data chooses is an instance of
    /// the program. Any other value could go into any element.
    fn is_nothing_else(&self, claimed: &Claimed) -> Step<()> {
        if !is_scatter(claimed.statement) {
            return Ok(());
        }
        let site = &self.nest.sites[claimed.site];
        match site.domain.subtract(&claimed.domain).sample()? {
            None => Ok(()),
            Some(found) => refuted(format!(
                "{} reduces what is no instance of the program",
                self.nest.describe(site, &found)
            )),
        }
    }

    /// Checks whether another computation of the same statement adds up the results of this one.
    fn is_part(&self, own: &Claimed) -> bool {
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

    fn twice<T>(&self, claimed: &Claimed, once: &Map) -> Step<T> {
        let (iterations, _) = once.dimensions()?;
        let same = once.then(&once.reverse()).intersect(&Map::earlier(once.context(), iterations));
        let at = same.sample()?.map(|(first, _)| first).unwrap_or_default();
        let store = self.nest.describe(&self.nest.sites[claimed.site], &at);
        refuted(format!("{store} reduces an instance that another iteration reduces too"))
    }

    /// Maps iterations of a store that adds up partial results to the instances in the loaded
    /// partial result.
    fn added_up(&self, claimed: &Claimed, known: &mut BTreeMap<usize, Map>) -> Step<Map> {
        let site = &self.nest.sites[claimed.site];
        let Update::Reduce { op, .. } = claimed.statement.statement.update else {
            return undecided("a total of what is not reduced");
        };
        if site.store.reduce != Some(op) {
            return refuted(format!("{} has another operator", self.nest.describe(site, &[])));
        }
        let value = stripped(&site.store.value);
        let (ExprKind::Load(_), [source]) = (&value.kind, self.sources.loads[claimed.site].as_slice()) else {
            return undecided("a total is more than what was added up");
        };
        let mut found: Option<Map> = None;
        for (writer, pairs) in &source.writers {
            let pairs = pairs.reverse().of(&claimed.domain);
            if pairs.is_empty()? {
                continue;
            }
            let Some(part) = &self.claims[*writer] else {
                return undecided("totals go through a copy before they are added up");
            };
            if !source.direct && !pairs.onto(&self.runs.unfinished(*writer)?).is_empty()? {
                return refuted("a total is added up before it is complete".to_string());
            }
            let instances = self.contributions(part.claim.computation, known)?;
            let own = pairs.then(&part.runs).then(&instances);
            found = Some(found.map_or_else(|| own.clone(), |found| found.union(&own)));
        }
        if let Some(unwritten) = &source.unwritten
            && !unwritten.of(&claimed.domain).is_empty()?
        {
            return refuted("a total is added up that nothing has written".to_string());
        }
        found.map_or_else(|| undecided("a total has no parts"), Ok)
    }

    /// Checks that every run has all instances of one version, except those whose value is the
    /// neutral element.
    fn is_complete(&self, statement: &Instances, contributions: &Map) -> Step<()> {
        let version = if is_scatter(statement) { turns(statement) } else { version_of(statement) };
        let versions = contributions.then(&version);
        if !versions.is_single_valued()? {
            return refuted(format!(
                "instances of several elements of {} are reduced into one",
                self.name(statement)
            ));
        }
        let missing = versions.then(&version.reverse()).subtract(contributions);
        let missing = match neutral_instances(statement) {
            Some(neutral) => missing.subtract(&Map::between(&missing.domain(), &neutral)),
            None => missing,
        };
        match missing.sample()? {
            None => Ok(()),
            Some((_, instance)) => refuted(format!(
                "the instance {} of {} is left out",
                text::instance(self.model, statement, &instance),
                self.name(statement)
            )),
        }
    }

    /// Checks that no run has stores but lacks all instances of its version, unless their values
    /// are the neutral element.
    fn nothing_is_empty(&self, computation: usize, contributions: &Map) -> Step<()> {
        let reduced = contributions.domain();
        for claimed in self.members(computation) {
            let empty = claimed.runs.range().subtract(&reduced);
            if empty.is_empty()? {
                continue;
            }
            let instances = claimed.runs.onto(&empty).reverse().then(&claimed.instances);
            let missing = match neutral_instances(claimed.statement) {
                Some(neutral) => instances.range().subtract(&neutral),
                None => instances.range(),
            };
            if let Some(instance) = missing.sample()? {
                return refuted(format!(
                    "the instance {} of {} is left out",
                    text::instance(self.model, claimed.statement, &instance),
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
    fn begins_again(&self, members: &[&Claimed], statement: &Instances) -> Step<Option<String>> {
        let (mut begun, mut again) = (None, None);
        for claimed in members.iter().filter(|claimed| self.continued(claimed).is_none()) {
            if !self.begins(claimed, statement, &mut begun)? {
                again = Some(self.nest.describe(&self.nest.sites[claimed.site], &[]));
            }
        }
        Ok(again)
    }

    /// Checks that every store of a run continues from the run's previous store: its load must see
    /// the value that this store has left.
    fn is_continued(&self, computation: usize) -> Step<()> {
        let members = &self.runs.members[&computation];
        let mut accesses = Accesses::new(&self.nest.context);
        let times = |member: &Member| self.nest.times(&self.nest.sites[member.site]);
        members.iter().for_each(|member| _ = accesses.write(0, &member.runs, &times(member)));
        let mut continuing = Vec::new();
        for member in members {
            let Some(claimed) = &self.claims[member.site] else { continue };
            if let Some(element) = self.continued(claimed) {
                self.is_just_carried(claimed)?;
                accesses.read(0, &member.runs, &times(member).of(&claimed.domain));
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
                    rest = rest.subtract(&pairs.onto(&claimed.domain).intersect(expected).range());
                }
            }
            let first = last.without_source.iter().find(|(read, _)| *read == number);
            self.starts(claimed, source, &rest, first)?;
        }
        Ok(())
    }

    /// Rejects a carrying store whose value is more than the loaded result.
    fn is_just_carried(&self, claimed: &Claimed) -> Step<()> {
        let site = &self.nest.sites[claimed.site];
        let mere =
            matches!(stripped(&site.store.value).kind, ExprKind::Load(_)) && site.store.reduce.is_none();
        match claimed.claim.role == ClaimRole::Carry && !(mere && site.loads.len() == 1) {
            true => undecided("what is carried is more than what was computed so far"),
            false => Ok(()),
        }
    }

    /// The element that a store continues from, or `None` if the store begins a run.
    fn continued(&self, claimed: &Claimed) -> Option<&Access> {
        continuity::continued(self.nest, claimed)
    }

    /// Checks a store that begins a run with the neutral element or with the only value. Returns
    /// whether each run that the store begins has only this beginning.
    fn begins(&self, claimed: &Claimed, statement: &Instances, begun: &mut Option<Set>) -> Step<bool> {
        let site = &self.nest.sites[claimed.site];
        if claimed.claim.role == ClaimRole::Neutral {
            // A partial result begins with the neutral element, because its total continues from
            // the element's previous value.
            let op = match statement.statement.update {
                Update::Reduce { op, reset } if reset || self.runs.is_part(claimed.site) => op,
                _ => {
                    return refuted(format!(
                        "{} forgets what the element was",
                        self.nest.describe(site, &[])
                    ));
                }
            };
            let dtype = site.store.value.dtype;
            if site.store.value != Expr::literal(dtype, arithmetic::neutral(op, dtype)) {
                return refuted(format!("{} is no neutral element", self.nest.describe(site, &[])));
            }
        } else if statement.is_reduction() {
            return refuted(format!("{} replaces what was reduced before", self.nest.describe(site, &[])));
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

    /// Checks the iterations in `rest`, whose load does not see the value of the run's previous
    /// store. They are right only at the beginning of a run, and if the load sees the version that
    /// the program's element had before.
    fn starts(
        &self,
        claimed: &Claimed,
        source: &Source,
        rest: &Set,
        without: Option<&(usize, Map)>,
    ) -> Step<()> {
        let Some(found) = rest.sample()? else { return Ok(()) };
        let site = &self.nest.sites[claimed.site];
        let first = without.map(|(_, runs)| runs.domain());
        let is_first = match &first {
            Some(first) => rest.is_subset(first)?,
            None => false,
        };
        if !is_first || !claimed.statement.updates() {
            return refuted(format!(
                "{} goes on from something else than its result so far",
                self.nest.describe(site, &found)
            ));
        }
        self.goes_on_from_before(claimed, source, rest)
    }

    /// Checks that an update begins with the version that the element had before.
    fn goes_on_from_before(&self, claimed: &Claimed, source: &Source, rest: &Set) -> Step<()> {
        let site = &self.nest.sites[claimed.site];
        let mut covered = rest.clone();
        let flows = self.sources.program.iter();
        for flow in flows.filter(|flow| flow.reader == Reader::Update(claimed.claim.statement)) {
            let expected = claimed.instances.of(rest).then(&flow.versions);
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
                        if other.claim.statement != writer || self.runs.is_part(*store) {
                            continue;
                        }
                        let early = match other.is_partial() {
                            true => self.runs.unfinished(*store)?,
                            false => {
                                Set::empty(&self.nest.context, self.nest.sites[*store].coordinates.len())
                            }
                        };
                        let brought =
                            pairs.of(&other.domain.subtract(&early)).reverse().then(&other.versions);
                        right = right.union(&brought.intersect(&expected).domain());
                    }
                    right
                }
            };
            covered = covered.subtract(&right);
        }
        match covered.sample()? {
            None => Ok(()),
            Some(found) => refuted(format!(
                "{} does not begin with what its element was before",
                self.nest.describe(site, &found)
            )),
        }
    }
}

/// The value without the conversions around it.
fn stripped(expr: &Expr) -> &Expr {
    match &expr.kind {
        ExprKind::Cast(inner) => stripped(inner),
        _ => expr,
    }
}

/// The instances of a reduction whose value is the neutral element because of a condition on
/// indices.
fn neutral_instances(statement: &Instances) -> Option<Set> {
    let Update::Reduce { op, .. } = statement.statement.update else { return None };
    let value = &statement.statement.value;
    let neutral = Expr::literal(value.dtype, arithmetic::neutral(op, value.dtype));
    let ExprKind::Select(parts) = &value.kind else { return None };
    let holds = statement.coordinates.condition(&parts[0])?;
    match (parts[1] == neutral, parts[2] == neutral) {
        (true, _) => Some(statement.domain.intersect(&holds)),
        (_, true) => Some(statement.domain.subtract(&holds)),
        _ => None,
    }
}
