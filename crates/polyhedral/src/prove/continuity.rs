//! Runs that go on from their last store by the way their buffers are used, without a search for last writes.
//!
//! Two patterns cover nearly all. In both, no other result is ever in the elements concerned ([`Direct`]).
//!
//! - *In place*: all stores of a run are to one element. Then the last store to the element is the last store of the run, and
//!   only the beginning must come first.
//! - *Gathered*: an episode of the run begins in a buffer of its own, is reduced there, and is carried to the outer element at
//!   the end; later episodes begin with what the outer element holds. The buffer's room is made anew for every episode, so
//!   episodes are one after the other.

use tilewright_ir::nest::ClaimRole;
use tilewright_ir::{Access, ExprKind, TensorId};
use tilewright_isl::{Affine, Answer, Map, Set};

use super::claims::Claimed;
use super::direct::Direct;
use super::nest::Nest;
use super::order::before;

/// The element that a store goes on from; none if it begins a run.
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

/// Whether one of the patterns shows that every store of each run goes on from the store before it. A no proves nothing.
pub fn holds(nest: &Nest, direct: &Direct, members: &[&Claimed]) -> Answer<bool> {
    let buffer = |claimed: &Claimed| nest.sites[claimed.site].store.target.tensor;
    let mut buffers: Vec<TensorId> = members.iter().map(|claimed| buffer(claimed)).collect();
    buffers.sort();
    buffers.dedup();
    if buffers.iter().any(|buffer| direct.stores(*buffer).is_none()) {
        return Ok(false);
    }
    let runs = Runs { nest, members: members.iter().map(|own| Event::new(nest, own)).collect() };
    match buffers.as_slice() {
        [_] => runs.are_in_place(),
        [one, other] => Ok(runs.are_gathered(*one, *other)? || runs.are_gathered(*other, *one)?),
        _ => Ok(false),
    }
}

/// A store of a run.
struct Event<'a> {
    site: usize,
    buffer: TensorId,
    role: ClaimRole,
    /// Iterations that count.
    domain: &'a Set,
    runs: &'a Map,
    /// The place that it writes.
    places: Map,
    /// The place that it goes on from, and its buffer.
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
            domain: &claimed.domain,
            runs: &claimed.runs,
            places: places(&site.store.target),
            continued,
        }
    }
}

struct Runs<'a, 'n> {
    nest: &'a Nest<'n>,
    members: Vec<Event<'a>>,
}

impl Runs<'_, '_> {
    fn are_in_place(&self) -> Answer<bool> {
        let keys: Vec<&Map> = self.members.iter().map(|own| own.runs).collect();
        let (starts, others) = self.split(|own| own.continued.is_none());
        Ok(self.have_one_place(&(0..self.members.len()).collect::<Vec<_>>(), &keys)?
            && self.each_follows(&others, &starts, &keys)?)
    }

    /// `inner`: the buffer of an episode; `outer`: where it is carried.
    fn are_gathered(&self, inner: TensorId, outer: TensorId) -> Answer<bool> {
        let (inside, out) = self.split(|own| own.buffer == inner);
        let carries = |own: &usize, from: TensorId| {
            let own = &self.members[*own];
            own.role == ClaimRole::Carry && own.continued.as_ref().is_some_and(|(buffer, _)| *buffer == from)
        };
        let begins = |at: &usize| self.members[*at].continued.is_none() || carries(at, outer);
        let (starts, others): (Vec<usize>, Vec<usize>) = inside.iter().partition(|at| begins(at));
        let keys: Vec<Map> = self.members.iter().map(|own| self.episodes(own, inner)).collect();
        let keys: Vec<&Map> = keys.iter().collect();
        let runs: Vec<&Map> = self.members.iter().map(|own| own.runs).collect();
        let again: Vec<usize> = starts.iter().copied().filter(|at| carries(at, outer)).collect();
        let first: Vec<usize> = starts.iter().copied().filter(|at| !carries(at, outer)).collect();
        let all: Vec<usize> = (0..self.members.len()).collect();
        Ok(out.iter().all(|at| carries(at, inner))
            && self.have_one_place(&inside, &keys)?
            && self.have_one_place(&out, &runs)?
            && self.go_on_from_these(&out, &inside, &keys)?
            && self.go_on_from_these(&again, &out, &runs)?
            && self.are_unique(&starts, &keys)?
            && self.are_unique(&out, &keys)?
            && self.each_follows(&others, &starts, &keys)?
            && self.each_follows(&out, &starts, &keys)?
            && self.none_follows(&inside, &out, &keys)?
            && self.each_has(&inside, &out, &keys)?
            && self.each_follows(&again, &out, &runs)?
            && self.none_follows(&first, &all, &runs)?)
    }

    fn split(&self, test: impl Fn(&Event) -> bool) -> (Vec<usize>, Vec<usize>) {
        (0..self.members.len()).partition(|at| test(&self.members[*at]))
    }

    /// From iterations to runs and episodes: the loops around the room of a buffer.
    fn episodes(&self, own: &Event, inner: TensorId) -> Map {
        let site = &self.nest.sites[own.site];
        let (all, context) = (site.coordinates.len(), &self.nest.context);
        let loops = self.nest.loops_around_room(inner).min(all);
        let room: Vec<Affine> = (0..loops).map(|at| Affine::variable(context, all, at)).collect();
        own.runs.beside(&Map::from_functions(context, all, &room))
    }

    /// Pairs of iterations of two members with the same key.
    fn same(&self, own: usize, other: usize, keys: &[&Map]) -> Map {
        keys[own].then(&keys[other].reverse())
    }

    fn earlier(&self, own: usize, other: usize) -> Map {
        let site = |at: usize| &self.nest.sites[self.members[at].site];
        before(self.nest, site(other), site(own)).reverse()
    }

    /// All stores with one key are to one place.
    fn have_one_place(&self, members: &[usize], keys: &[&Map]) -> Answer<bool> {
        let places = members.iter().map(|at| keys[*at].reverse().then(&self.members[*at].places));
        match places.reduce(|all, own| all.union(&own)) {
            Some(places) => places.is_single_valued(),
            None => Ok(true),
        }
    }

    /// What some members go on from is a place that others, with the same key, write.
    fn go_on_from_these(&self, members: &[usize], others: &[usize], keys: &[&Map]) -> Answer<bool> {
        let places = others.iter().map(|at| keys[*at].reverse().then(&self.members[*at].places));
        let Some(places) = places.reduce(|all, own| all.union(&own)) else { return Ok(members.is_empty()) };
        for at in members {
            let Some((_, continued)) = &self.members[*at].continued else { return Ok(false) };
            if !self.is_mere_load(*at) || !continued.is_subset(&keys[*at].then(&places))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a store stores what it loads, and nothing else.
    fn is_mere_load(&self, member: usize) -> bool {
        let value = &self.nest.sites[self.members[member].site].store.value;
        match &value.kind {
            ExprKind::Load(_) => true,
            ExprKind::Cast(inner) => matches!(inner.kind, ExprKind::Load(_)),
            _ => false,
        }
    }

    /// Each key has one such store at most.
    fn are_unique(&self, members: &[usize], keys: &[&Map]) -> Answer<bool> {
        for (place, at) in members.iter().enumerate() {
            if !keys[*at].is_injective()? {
                return Ok(false);
            }
            for other in &members[..place] {
                if !keys[*at].range().intersect(&keys[*other].range()).is_empty()? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Each of some stores comes after one of others with the same key.
    fn each_follows(&self, members: &[usize], others: &[usize], keys: &[&Map]) -> Answer<bool> {
        self.each(members, others, &|own, other| {
            self.same(own, other, keys).intersect(&self.earlier(own, other))
        })
    }

    /// Each of some stores has one of others with the same key.
    fn each_has(&self, members: &[usize], others: &[usize], keys: &[&Map]) -> Answer<bool> {
        self.each(members, others, &|own, other| self.same(own, other, keys))
    }

    fn each(&self, members: &[usize], others: &[usize], pairs: &dyn Fn(usize, usize) -> Map) -> Answer<bool> {
        for own in members {
            let mut rest = self.members[*own].domain.clone();
            for other in others {
                rest = rest.subtract(&pairs(*own, *other).domain());
            }
            if !rest.is_empty()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// None of some stores comes after one of others with the same key.
    fn none_follows(&self, members: &[usize], others: &[usize], keys: &[&Map]) -> Answer<bool> {
        for own in members {
            for other in others {
                let pairs = self.same(*own, *other, keys).intersect(&self.earlier(*own, *other));
                if !pairs.is_empty()? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
