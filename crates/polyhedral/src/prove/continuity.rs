//! Shows that every store of a run continues from the run's previous store, without a search for
//! last writes.
//!
//! A run is the set of stores that make one result (`reductions.rs`). The way in which a run uses
//! its buffers suffices here. Two patterns cover nearly all runs. In both, the elements concerned
//! never hold another result ([`SingleValuedBuffers`]).
//!
//! - *In place*: all stores of a run write one element. Then the last store to the element is the
//!   last store of the run, and only the beginning must come first. The beginning may be repeated
//!   as long as nothing has been reduced yet.
//! - *Gathered*: an episode of the run begins in a buffer of its own, is reduced there, and is
//!   carried to the outer element at the end. Later episodes begin with the value of the outer
//!   element. The buffer is allocated anew for every episode, so episodes do not overlap. A run may
//!   have several such buffers with separate allocations, one for each side of a condition.
//!
//! The text of the nest often decides the order: if two stores of one run have the same values of
//! their common loops, the store that is earlier in the text runs first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tilewright_ir::nest::{Access, BufferId, ClaimRole, ExprKind, IndexExpr};
use tilewright_isl::{Affine, Answer, Map, Set};

use super::claims::ClaimedStore;
use super::nest::Nest;
use super::order::{TextOrder, before, order_in_text};
use super::single_valued::SingleValuedBuffers;

/// The element that a store continues from, or `None` if the store begins a run.
pub fn continued_element<'c>(nest: &'c Nest, claimed: &ClaimedStore) -> Option<&'c Access> {
    let site = &nest.sites[claimed.site];
    match claimed.claim.role {
        ClaimRole::Carry => match site.loads.as_slice() {
            [only] => Some(*only),
            _ => Some(&site.store.target),
        },
        ClaimRole::Value | ClaimRole::Total => site.store.reduce.map(|_| &site.store.target),
        ClaimRole::Neutral => None,
    }
}

/// Checks whether one of the patterns shows that every store of each run continues from the run's
/// previous store. A no proves nothing. `begin_once` says that no run has two beginnings; a run in
/// place with several must have them all before it continues. A gathered run may have a redundant
/// beginning: a store that sets the outer element before the first episode, whose value no store of
/// the run reads. Beginnings that are repeated or redundant must be the neutral element.
pub fn runs_are_continuous(
    nest: &Nest,
    single_valued: &SingleValuedBuffers,
    members: &[&ClaimedStore],
    begin_once: bool,
) -> Answer<bool> {
    let buffer = |claimed: &ClaimedStore| nest.sites[claimed.site].store.target.tensor;
    let buffers: BTreeSet<BufferId> = members.iter().map(|claimed| buffer(claimed)).collect();
    if buffers.iter().any(|buffer| single_valued.stores(*buffer).is_none()) {
        return Ok(false);
    }
    let members = members.iter().map(|own| RunStore::new(nest, own)).collect();
    let runs = Runs { nest, members, keys: RefCell::default() };
    if buffers.len() == 1 {
        return runs.are_in_place(begin_once);
    }
    for outer in &buffers {
        let inner: Vec<BufferId> = buffers.iter().copied().filter(|own| own != outer).collect();
        if runs.are_gathered(&inner, *outer)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A store of a run.
struct RunStore<'a> {
    site: usize,
    buffer: BufferId,
    role: ClaimRole,
    /// The values that distinguish runs.
    run: &'a [IndexExpr],
    runs: &'a Map,
    /// Maps iterations to the memory location that the store writes.
    locations: Map,
    /// The buffer that the store continues from, and a map from iterations to the location in it.
    continued_from: Option<(BufferId, Map)>,
}

impl<'a> RunStore<'a> {
    fn new(nest: &Nest, claimed: &'a ClaimedStore) -> RunStore<'a> {
        let site = &nest.sites[claimed.site];
        let places = |access: &Access| nest.locations(site, access).0.intersect_domain(&claimed.domain);
        let continued_from =
            continued_element(nest, claimed).map(|element| (element.tensor, places(element)));
        RunStore {
            site: claimed.site,
            buffer: site.store.target.tensor,
            role: claimed.claim.role,
            run: &claimed.claim.repetition,
            runs: &claimed.runs,
            locations: places(&site.store.target),
            continued_from,
        }
    }

    /// Checks whether the store carries a value from a buffer.
    fn carries_from(&self, buffer: BufferId) -> bool {
        self.role == ClaimRole::Carry && self.continued_from.as_ref().is_some_and(|(own, _)| *own == buffer)
    }
}

/// The keys of a run's stores: the run, and the iteration of some outer loops. Stores with the same
/// key belong together.
struct Keys {
    /// For each member, a map from its iterations to its key.
    maps: Vec<Map>,
    /// The keys of each member.
    ranges: Vec<Set>,
    /// The number of outermost loops whose values are in the key.
    loops: usize,
}

struct Runs<'a, 'n> {
    nest: &'a Nest<'n>,
    members: Vec<RunStore<'a>>,
    /// Keys by their number of loops, computed on first use, because many buffers are allocated at
    /// the same depth.
    keys: RefCell<BTreeMap<usize, Rc<Keys>>>,
}

impl Runs<'_, '_> {
    fn are_in_place(&self, begin_once: bool) -> Answer<bool> {
        let keys = self.keys(0);
        let all: Vec<usize> = (0..self.members.len()).collect();
        let (starts, others) = split(&all, |at| self.members[at].continued_from.is_none());
        Ok(self.have_one_location(&all, &keys)?
            && self.each_comes_after(&others, &starts, &keys)?
            && (begin_once || self.are_neutral(&starts) && self.none_comes_after(&starts, &others, &keys)?))
    }

    /// Checks the gathered pattern. `inner` are the buffers of episodes; `outer` is the buffer that
    /// their results are carried to.
    fn are_gathered(&self, inner: &[BufferId], outer: BufferId) -> Answer<bool> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let (out, inside) = split(&all, |at| self.members[at].buffer == outer);
        let (redundant, out) = split(&out, |at| self.members[at].continued_from.is_none());
        let carries = |at: usize| inner.iter().any(|own| self.members[at].carries_from(*own));
        let mut pairs =
            inner.iter().enumerate().flat_map(|(at, one)| inner[..at].iter().map(move |two| (one, two)));
        if !out.iter().all(|at| carries(*at))
            || pairs.any(|(one, two)| self.nest.have_nested_allocations(*one, *two))
        {
            return Ok(false);
        }
        let runs = self.keys(0);
        let (again, others) = split(&inside, |at| self.members[at].carries_from(outer));
        let (first, _) = split(&others, |at| self.members[at].continued_from.is_none());
        for buffer in inner {
            if !self.are_episodes(*buffer, outer)? {
                return Ok(false);
            }
        }
        Ok(self.are_neutral(&redundant)
            && (redundant.is_empty()
                || again.is_empty() && self.none_comes_after(&redundant, &out, &runs)?)
            && self.have_one_location(&out, &runs)?
            && self.continue_from_locations_of(&again, &out, &runs)?
            && self.each_comes_after(&again, &out, &runs)?
            && self.none_comes_after(&first, &[inside.as_slice(), &out].concat(), &runs)?)
    }

    /// Checks that all members store the neutral element.
    fn are_neutral(&self, members: &[usize]) -> bool {
        members.iter().all(|at| self.members[*at].role == ClaimRole::Neutral)
    }

    /// Checks that each episode in a buffer has one beginning, continues from it in one location,
    /// and is carried out once at its end.
    fn are_episodes(&self, inner: BufferId, outer: BufferId) -> Answer<bool> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let keys = self.keys(self.nest.loops_around_allocation(inner));
        let (inside, _) = split(&all, |at| self.members[at].buffer == inner);
        let (out, _) = split(&all, |at| self.members[at].carries_from(inner));
        let begins =
            |at: usize| self.members[at].continued_from.is_none() || self.members[at].carries_from(outer);
        let (starts, others) = split(&inside, begins);
        Ok(self.have_one_location(&inside, &keys)?
            && self.continue_from_locations_of(&out, &inside, &keys)?
            && self.are_unique(&starts, &keys)?
            && self.are_unique(&out, &keys)?
            && self.each_comes_after(&others, &starts, &keys)?
            && self.each_comes_after(&out, &starts, &keys)?
            && self.none_comes_after(&inside, &out, &keys)?
            && self.each_has_partner(&inside, &out, &keys)?)
    }

    /// The keys that consist of the run and the iteration of the `loops` outermost loops.
    fn keys(&self, loops: usize) -> Rc<Keys> {
        self.keys.borrow_mut().entry(loops).or_insert_with(|| Rc::new(self.new_keys(loops))).clone()
    }

    fn new_keys(&self, loops: usize) -> Keys {
        let context = &self.nest.context;
        let key = |own: &RunStore| {
            let all = self.nest.sites[own.site].coordinates.len();
            let outer: Vec<Affine> =
                (0..loops.min(all)).map(|at| Affine::variable(context, all, at)).collect();
            match outer.is_empty() {
                true => own.runs.clone(),
                false => own.runs.flat_range_product(&Map::from_functions(context, all, &outer)),
            }
        };
        let maps: Vec<Map> = self.members.iter().map(key).collect();
        Keys { ranges: maps.iter().map(Map::range).collect(), maps, loops }
    }

    /// The order of two members with the same key, as far as the text decides it.
    fn order_in_text(&self, own: usize, other: usize, keys: &Keys) -> TextOrder {
        let [one, two] = [own, other].map(|at| &self.members[at]);
        let mut both = one.run.iter().zip(two.run);
        if both
            .any(|(one, two)| one.as_constant().zip(two.as_constant()).is_some_and(|(one, two)| one != two))
        {
            return TextOrder::Never;
        }
        let [first, second] = [one, two].map(|own| &self.nest.sites[own.site]);
        order_in_text(first, second, |at| {
            let value = IndexExpr::var(first.loops[at].var);
            at < keys.loops || one.run.iter().zip(two.run).any(|both| both == (&value, &value))
        })
    }

    /// Pairs of iterations of two members with the same key, of which the second runs first.
    fn earlier(&self, own: usize, other: usize, keys: &Keys) -> Map {
        let [first, second] = [own, other].map(|at| &self.nest.sites[self.members[at].site]);
        let same = keys.maps[own].apply_range(&keys.maps[other].reverse());
        same.intersect(&before(self.nest, second, first).reverse())
    }

    /// Checks that all stores with one key write one location.
    fn have_one_location(&self, members: &[usize], keys: &Keys) -> Answer<bool> {
        let places: Vec<Map> = members
            .iter()
            .map(|at| keys.maps[*at].reverse().apply_range(&self.members[*at].locations))
            .collect();
        for (at, own) in places.iter().enumerate() {
            if !own.is_single_valued()? {
                return Ok(false);
            }
            for (other, others) in places[..at].iter().enumerate() {
                if self.order_in_text(members[at], members[other], keys) == TextOrder::Never {
                    continue;
                }
                if !own.union(others).is_single_valued()? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Checks that each of `members` continues from a location that `others` with the same key
    /// write.
    fn continue_from_locations_of(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for at in members {
            let Some((_, continued)) = &self.members[*at].continued_from else { return Ok(false) };
            let others =
                others.iter().filter(|other| self.order_in_text(*at, **other, keys) != TextOrder::Never);
            let places = others.map(|at| keys.maps[*at].reverse().apply_range(&self.members[*at].locations));
            let Some(places) = places.reduce(|all, own| all.union(&own)) else { return Ok(false) };
            if !self.is_plain_copy(*at) || !continued.is_subset(&keys.maps[*at].apply_range(&places))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks whether a store copies a loaded value and does nothing else.
    fn is_plain_copy(&self, member: usize) -> bool {
        let store = self.nest.sites[self.members[member].site].store;
        match &store.value.kind {
            _ if store.reduce.is_some() => false,
            ExprKind::Load(_) => true,
            ExprKind::Cast(inner) => matches!(inner.kind, ExprKind::Load(_)),
            _ => false,
        }
    }

    /// Checks that each key has at most one store of `members`.
    fn are_unique(&self, members: &[usize], keys: &Keys) -> Answer<bool> {
        for (place, at) in members.iter().enumerate() {
            if !keys.maps[*at].is_injective()? {
                return Ok(false);
            }
            for other in &members[..place] {
                if self.order_in_text(*at, *other, keys) != TextOrder::Never
                    && !keys.ranges[*at].intersect(&keys.ranges[*other]).is_empty()?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Checks that each store of `members` comes after a store of `others` with the same key.
    fn each_comes_after(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for own in members {
            let (sure, open) =
                split(others, |other| self.order_in_text(*own, other, keys) == TextOrder::After);
            let rest =
                sure.iter().fold(keys.ranges[*own].clone(), |rest, at| rest.subtract(&keys.ranges[*at]));
            if rest.is_empty()? {
                continue;
            }
            let rest = keys.maps[*own].intersect_range(&rest).domain();
            let (open, _) =
                split(&open, |other| self.order_in_text(*own, other, keys) == TextOrder::DependsOnLoops);
            let rest =
                open.iter().fold(rest, |rest, at| rest.subtract(&self.earlier(*own, *at, keys).domain()));
            if !rest.is_empty()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that each store of `members` has a store of `others` with the same key.
    fn each_has_partner(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for own in members {
            let others =
                others.iter().filter(|other| self.order_in_text(*own, **other, keys) != TextOrder::Never);
            let rest = others.fold(keys.ranges[*own].clone(), |rest, at| rest.subtract(&keys.ranges[*at]));
            if !rest.is_empty()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that no store of `members` comes after a store of `others` with the same key.
    fn none_comes_after(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for own in members {
            for other in others {
                let is_none = match self.order_in_text(*own, *other, keys) {
                    TextOrder::Before | TextOrder::Never => true,
                    TextOrder::After => keys.ranges[*own].intersect(&keys.ranges[*other]).is_empty()?,
                    TextOrder::DependsOnLoops => self.earlier(*own, *other, keys).is_empty()?,
                };
                if !is_none {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// Splits members into those that pass a test and the remaining ones.
fn split(members: &[usize], test: impl Fn(usize) -> bool) -> (Vec<usize>, Vec<usize>) {
    members.iter().partition(|at| test(**at))
}
