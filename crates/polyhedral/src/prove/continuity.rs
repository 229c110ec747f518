//! Shows that runs continue from their last store by the way in which they use their buffers,
//! without a search for last writes.
//!
//! Two patterns cover nearly all runs. In both, the elements concerned never hold another result
//! ([`Direct`]).
//!
//! - *In place*: all stores of a run write one element. Then the last store to the element is the
//!   last store of the run, and only the beginning must come first.
//! - *Gathered*: an episode of the run begins in a buffer of its own, is reduced there, and is
//!   carried to the outer element at the end. Later episodes begin with the value of the outer
//!   element. The buffer is allocated anew for every episode, so episodes do not overlap. A run may
//!   have several such buffers with separate allocations, one for each side of a condition.
//!
//! The text answers many questions: if two stores of one run have the same values of their common
//! loops, the store that is earlier in the text runs first.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, ExprKind, IndexExpr, TensorId};
use tilewright_isl::{Affine, Answer, Map, Set};

use super::claims::Claimed;
use super::direct::Direct;
use super::nest::Nest;
use super::order::{InText, before, in_text};

/// The element that a store continues from, or `None` if the store begins a run.
pub fn continued<'c>(nest: &'c Nest, claimed: &Claimed) -> Option<&'c Access> {
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
/// previous store. A no proves nothing. `begin_once` says that no run has two beginnings. A
/// gathered run may have a redundant beginning: a store that sets the outer element before the
/// first episode, whose value no store of the run reads.
pub fn holds(nest: &Nest, direct: &Direct, members: &[&Claimed], begin_once: bool) -> Answer<bool> {
    let buffer = |claimed: &Claimed| nest.sites[claimed.site].store.target.tensor;
    let buffers: BTreeSet<TensorId> = members.iter().map(|claimed| buffer(claimed)).collect();
    if buffers.iter().any(|buffer| direct.stores(*buffer).is_none()) {
        return Ok(false);
    }
    let members = members.iter().map(|own| Event::new(nest, own)).collect();
    let runs = Runs { nest, members, keys: RefCell::default() };
    if buffers.len() == 1 {
        return Ok(begin_once && runs.are_in_place()?);
    }
    for outer in &buffers {
        let inner: Vec<TensorId> = buffers.iter().copied().filter(|own| own != outer).collect();
        if runs.are_gathered(&inner, *outer)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A store of a run.
struct Event<'a> {
    site: usize,
    buffer: TensorId,
    role: ClaimRole,
    /// The values that distinguish runs.
    run: &'a [IndexExpr],
    runs: &'a Map,
    /// Maps iterations to the memory location that the store writes.
    places: Map,
    /// The buffer that the store continues from, and a map from iterations to the location in it.
    continued: Option<(TensorId, Map)>,
}

impl<'a> Event<'a> {
    fn new(nest: &Nest, claimed: &'a Claimed) -> Event<'a> {
        let site = &nest.sites[claimed.site];
        let places = |access: &Access| nest.places(site, access).0.of(&claimed.domain);
        let continued = continued(nest, claimed).map(|element| (element.tensor, places(element)));
        Event {
            site: claimed.site,
            buffer: site.store.target.tensor,
            role: claimed.claim.role,
            run: &claimed.claim.run,
            runs: &claimed.runs,
            places: places(&site.store.target),
            continued,
        }
    }

    /// Checks whether the store carries a value from a buffer.
    fn carries_from(&self, buffer: TensorId) -> bool {
        self.role == ClaimRole::Carry && self.continued.as_ref().is_some_and(|(own, _)| *own == buffer)
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
    members: Vec<Event<'a>>,
    /// Keys by their number of loops, computed on first use, because many buffers are allocated at
    /// the same depth.
    keys: RefCell<BTreeMap<usize, Rc<Keys>>>,
}

impl Runs<'_, '_> {
    fn are_in_place(&self) -> Answer<bool> {
        let keys = self.keys(0);
        let all: Vec<usize> = (0..self.members.len()).collect();
        let (starts, others) = split(&all, |at| self.members[at].continued.is_none());
        Ok(self.have_one_place(&all, &keys)? && self.each_follows(&others, &starts, &keys)?)
    }

    /// Checks the gathered pattern. `inner` are the buffers of episodes; `outer` is the buffer that
    /// their results are carried to.
    fn are_gathered(&self, inner: &[TensorId], outer: TensorId) -> Answer<bool> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let (out, inside) = split(&all, |at| self.members[at].buffer == outer);
        let (vain, out) = split(&out, |at| self.members[at].continued.is_none());
        let carries = |at: usize| inner.iter().any(|own| self.members[at].carries_from(*own));
        let mut apart =
            inner.iter().enumerate().flat_map(|(at, one)| inner[..at].iter().map(move |two| (one, two)));
        if !out.iter().all(|at| carries(*at))
            || apart.any(|(one, two)| self.nest.have_nested_rooms(*one, *two))
        {
            return Ok(false);
        }
        let runs = self.keys(0);
        let (again, others) = split(&inside, |at| self.members[at].carries_from(outer));
        let (first, _) = split(&others, |at| self.members[at].continued.is_none());
        for buffer in inner {
            if !self.are_episodes(*buffer, outer)? {
                return Ok(false);
            }
        }
        Ok((vain.is_empty() || again.is_empty() && self.none_follows(&vain, &out, &runs)?)
            && self.have_one_place(&out, &runs)?
            && self.go_on_from_these(&again, &out, &runs)?
            && self.each_follows(&again, &out, &runs)?
            && self.none_follows(&first, &[inside.as_slice(), &out].concat(), &runs)?)
    }

    /// Checks that each episode in a buffer has one beginning, continues from it in one location,
    /// and is carried out once at its end.
    fn are_episodes(&self, inner: TensorId, outer: TensorId) -> Answer<bool> {
        let all: Vec<usize> = (0..self.members.len()).collect();
        let keys = self.keys(self.nest.loops_around_room(inner));
        let (inside, _) = split(&all, |at| self.members[at].buffer == inner);
        let (out, _) = split(&all, |at| self.members[at].carries_from(inner));
        let begins = |at: usize| self.members[at].continued.is_none() || self.members[at].carries_from(outer);
        let (starts, others) = split(&inside, begins);
        Ok(self.have_one_place(&inside, &keys)?
            && self.go_on_from_these(&out, &inside, &keys)?
            && self.are_unique(&starts, &keys)?
            && self.are_unique(&out, &keys)?
            && self.each_follows(&others, &starts, &keys)?
            && self.each_follows(&out, &starts, &keys)?
            && self.none_follows(&inside, &out, &keys)?
            && self.each_has(&inside, &out, &keys)?)
    }

    /// The keys that consist of the run and the iteration of the `loops` outermost loops.
    fn keys(&self, loops: usize) -> Rc<Keys> {
        self.keys.borrow_mut().entry(loops).or_insert_with(|| Rc::new(self.new_keys(loops))).clone()
    }

    fn new_keys(&self, loops: usize) -> Keys {
        let context = &self.nest.context;
        let key = |own: &Event| {
            let all = self.nest.sites[own.site].coordinates.len();
            let turn: Vec<Affine> =
                (0..loops.min(all)).map(|at| Affine::variable(context, all, at)).collect();
            match turn.is_empty() {
                true => own.runs.clone(),
                false => own.runs.beside(&Map::from_functions(context, all, &turn)),
            }
        };
        let maps: Vec<Map> = self.members.iter().map(key).collect();
        Keys { ranges: maps.iter().map(Map::range).collect(), maps, loops }
    }

    /// The order of two members with the same key, as far as the text decides it.
    fn in_text(&self, own: usize, other: usize, keys: &Keys) -> InText {
        let [one, two] = [own, other].map(|at| &self.members[at]);
        let mut both = one.run.iter().zip(two.run);
        if both
            .any(|(one, two)| one.as_constant().zip(two.as_constant()).is_some_and(|(one, two)| one != two))
        {
            return InText::Never;
        }
        let [first, second] = [one, two].map(|own| &self.nest.sites[own.site]);
        in_text(first, second, |at| {
            let value = IndexExpr::var(first.loops[at].var);
            at < keys.loops || one.run.iter().zip(two.run).any(|both| both == (&value, &value))
        })
    }

    /// Pairs of iterations of two members with the same key, of which the second runs first.
    fn earlier(&self, own: usize, other: usize, keys: &Keys) -> Map {
        let [first, second] = [own, other].map(|at| &self.nest.sites[self.members[at].site]);
        let same = keys.maps[own].then(&keys.maps[other].reverse());
        same.intersect(&before(self.nest, second, first).reverse())
    }

    /// Checks that all stores with one key write one location.
    fn have_one_place(&self, members: &[usize], keys: &Keys) -> Answer<bool> {
        let places: Vec<Map> =
            members.iter().map(|at| keys.maps[*at].reverse().then(&self.members[*at].places)).collect();
        for (at, own) in places.iter().enumerate() {
            if !own.is_single_valued()? {
                return Ok(false);
            }
            for (other, others) in places[..at].iter().enumerate() {
                if self.in_text(members[at], members[other], keys) == InText::Never {
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
    fn go_on_from_these(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for at in members {
            let Some((_, continued)) = &self.members[*at].continued else { return Ok(false) };
            let others = others.iter().filter(|other| self.in_text(*at, **other, keys) != InText::Never);
            let places = others.map(|at| keys.maps[*at].reverse().then(&self.members[*at].places));
            let Some(places) = places.reduce(|all, own| all.union(&own)) else { return Ok(false) };
            if !self.is_mere_load(*at) || !continued.is_subset(&keys.maps[*at].then(&places))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks whether a store copies a loaded value and does nothing else.
    fn is_mere_load(&self, member: usize) -> bool {
        let value = &self.nest.sites[self.members[member].site].store.value;
        match &value.kind {
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
                if self.in_text(*at, *other, keys) != InText::Never
                    && !keys.ranges[*at].intersect(&keys.ranges[*other]).is_empty()?
                {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Checks that each store of `members` comes after a store of `others` with the same key.
    fn each_follows(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for own in members {
            let (sure, open) = split(others, |other| self.in_text(*own, other, keys) == InText::After);
            let rest =
                sure.iter().fold(keys.ranges[*own].clone(), |rest, at| rest.subtract(&keys.ranges[*at]));
            if rest.is_empty()? {
                continue;
            }
            let rest = keys.maps[*own].onto(&rest).domain();
            let (open, _) = split(&open, |other| self.in_text(*own, other, keys) == InText::Open);
            let rest =
                open.iter().fold(rest, |rest, at| rest.subtract(&self.earlier(*own, *at, keys).domain()));
            if !rest.is_empty()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that each store of `members` has a store of `others` with the same key.
    fn each_has(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for own in members {
            let others = others.iter().filter(|other| self.in_text(*own, **other, keys) != InText::Never);
            let rest = others.fold(keys.ranges[*own].clone(), |rest, at| rest.subtract(&keys.ranges[*at]));
            if !rest.is_empty()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Checks that no store of `members` comes after a store of `others` with the same key.
    fn none_follows(&self, members: &[usize], others: &[usize], keys: &Keys) -> Answer<bool> {
        for own in members {
            for other in others {
                let is_none = match self.in_text(*own, *other, keys) {
                    InText::Before | InText::Never => true,
                    InText::After => keys.ranges[*own].intersect(&keys.ranges[*other]).is_empty()?,
                    InText::Open => self.earlier(*own, *other, keys).is_empty()?,
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
