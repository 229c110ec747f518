//! Finds points at which all facts of a search hold, and refutes goals with them.
//!
//! A point gives each variable, symbol, extent and value of data a number: a variable one in its
//! range, a symbol at least its least value. Proofs are sound, so a goal that is negative at such a
//! point has none, and the search need not try. The points are few and only filter: a search
//! without any point is slower, and finds the same proofs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use crate::ids::Ids;
use crate::index::{Atom, IndexExpr};
use crate::interval::Knowledge;
use crate::program::Range;

/// What is added to the least value of each symbol, in turn, at one candidate for a point. Large,
/// unequal sizes satisfy most preconditions, and points next to least values refute most goals.
const OFFSETS: [[i64; 3]; 10] = [
    [40, 37, 5],
    [0, 0, 0],
    [2, 1_000_003, 2_000_029],
    [7, 0, 3],
    [0, 9, 1],
    [1, 0, 2],
    [3, 130, 64],
    [997, 11, 499],
    [2_000_029, 1, 1_000_003],
    [1_000_003, 2_000_029, 3],
];
/// The values of what has no least value, in turn, at one candidate.
const UNBOUNDED_VALUES: [[i64; 2]; 5] = [[0, 1], [-2, 2], [100_000, -100_000], [2, 100_000], [-100_000, 3]];
/// How often a candidate is changed so that facts hold.
const ROUNDS: usize = 6;

/// Points at which all facts hold.
pub(super) struct Samples<'a, I: Ids> {
    facts: &'a [IndexExpr<I>],
    leaves: Leaves<I>,
    /// The points so far. The first points refute most goals, so others are made when needed.
    points: RefCell<Vec<Point<I>>>,
    /// The next candidate for a point.
    next: Cell<usize>,
}

/// The values of variables, symbols, extents and data.
type Point<I> = BTreeMap<Atom<I>, i64>;

impl<'a, I: Ids> Samples<'a, I> {
    /// The points for the atoms of a goal and of the facts that its proof may use.
    pub fn new(goal: &IndexExpr<I>, facts: &'a [IndexExpr<I>], known: &dyn Knowledge<I>) -> Samples<'a, I> {
        let leaves = Leaves::new(goal, facts, known);
        Samples { facts, leaves, points: RefCell::default(), next: Cell::new(0) }
    }

    /// Returns true when the goal is negative at a point.
    pub fn refute(&self, goal: &IndexExpr<I>) -> bool {
        let is_negative = |point: &Point<I>| value(goal, point).is_some_and(|value| value < 0);
        if self.points.borrow().iter().any(is_negative) {
            return true;
        }
        while self.next.get() < OFFSETS.len() {
            let candidate = self.leaves.candidate(self.next.get());
            self.next.set(self.next.get() + 1);
            let Some(point) = self.leaves.repair(candidate, self.facts) else { continue };
            let refutes = is_negative(&point);
            self.points.borrow_mut().push(point);
            if refutes {
                return true;
            }
        }
        false
    }
}

fn value<I: Ids>(expr: &IndexExpr<I>, point: &Point<I>) -> Option<i64> {
    expr.eval(&mut |atom| point.get(atom).copied())
}

/// The atoms that need a value.
struct Leaves<I: Ids> {
    /// Symbols and extents with their least values, and variables and data without a range.
    free: Vec<(Atom<I>, Option<i64>)>,
    /// Variables and data with their ranges, each after those in its range.
    bounded: Vec<(Atom<I>, Range<I>)>,
    /// All divisors: the normal form of quotients holds only for positive ones.
    divisors: Vec<IndexExpr<I>>,
}

impl<I: Ids> Leaves<I> {
    fn new(goal: &IndexExpr<I>, facts: &[IndexExpr<I>], known: &dyn Knowledge<I>) -> Leaves<I> {
        let mut leaves = Leaves { free: Vec::new(), bounded: Vec::new(), divisors: Vec::new() };
        facts.iter().chain([goal]).for_each(|expr| leaves.add_all(expr, known, &mut Vec::new()));
        leaves
    }

    /// Adds the atoms of an expression. `within` lists the atoms whose ranges are being added. An
    /// atom in its own range gets no value.
    fn add_all(&mut self, expr: &IndexExpr<I>, known: &dyn Knowledge<I>, within: &mut Vec<Atom<I>>) {
        for atom in expr.terms().iter().flat_map(|term| &term.factors) {
            match atom {
                Atom::FloorDiv(pair) | Atom::Mod(pair) => {
                    self.add_all(&pair.0, known, within);
                    self.add_all(&pair.1, known, within);
                    if pair.1.as_constant().is_none() && !self.divisors.contains(&pair.1) {
                        self.divisors.push(pair.1.clone());
                    }
                }
                Atom::Min(pair) | Atom::Max(pair) => {
                    self.add_all(&pair.0, known, within);
                    self.add_all(&pair.1, known, within);
                }
                Atom::Overflow => {}
                leaf => self.add_leaf(leaf, known, within),
            }
        }
    }

    fn add_leaf(&mut self, leaf: &Atom<I>, known: &dyn Knowledge<I>, within: &mut Vec<Atom<I>>) {
        let is_known = self.free.iter().any(|(own, _)| own == leaf)
            || self.bounded.iter().any(|(own, _)| own == leaf)
            || within.contains(leaf);
        if is_known {
            return;
        }
        let range = match leaf {
            Atom::Var(var) => known.range(*var),
            Atom::Data(data) => data.bounds().map(|(from, to)| Range { from, to }),
            _ => None,
        };
        match (leaf, range) {
            (_, Some(range)) => {
                within.push(leaf.clone());
                self.add_all(&range.from, known, within);
                self.add_all(&range.to, known, within);
                within.pop();
                self.bounded.push((leaf.clone(), range));
            }
            (Atom::Symbol(symbol), None) => self.free.push((leaf.clone(), known.least(*symbol))),
            (Atom::Extent(..), None) => self.free.push((leaf.clone(), Some(1))),
            _ => self.free.push((leaf.clone(), None)),
        }
    }

    /// A point that need not satisfy the facts, nor have values for the variables.
    fn candidate(&self, choice: usize) -> Candidate<I> {
        let (offsets, unbounded) = (&OFFSETS[choice], &UNBOUNDED_VALUES[choice % UNBOUNDED_VALUES.len()]);
        let value = |(at, (atom, least)): (usize, &(Atom<I>, Option<i64>))| {
            let value = match least {
                Some(least) => least.saturating_add(offsets[at % offsets.len()]),
                None => unbounded[at % unbounded.len()],
            };
            (atom.clone(), value)
        };
        let free = self.free.iter().enumerate().map(value).collect();
        // Each variable is at one end of its range or in between.
        Candidate { point: free, place: choice }
    }

    /// Changes the point until all facts hold, or returns `None`.
    fn repair(&self, mut candidate: Candidate<I>, facts: &[IndexExpr<I>]) -> Option<Point<I>> {
        for _ in 0..ROUNDS {
            self.place_bounded(&mut candidate);
            let mut holds = true;
            for fact in facts {
                // A fact without a value may exclude the point.
                if value(fact, &candidate.point)? < 0 {
                    holds = false;
                    self.satisfy(fact, &mut candidate.point);
                }
            }
            if holds {
                let is_positive = |divisor| value(divisor, &candidate.point).is_none_or(|value| value > 0);
                return self.divisors.iter().all(is_positive).then_some(candidate.point);
            }
        }
        None
    }

    /// Gives variables and data values in their ranges. A variable with an empty range has none.
    fn place_bounded(&self, candidate: &mut Candidate<I>) {
        for (at, (atom, range)) in self.bounded.iter().enumerate() {
            candidate.point.remove(atom);
            let ends = (value(&range.from, &candidate.point), value(&range.to, &candidate.point));
            let (Some(from), Some(to)) = ends else { continue };
            if from >= to {
                continue;
            }
            let last = to - 1;
            let place = match (candidate.place + at) % 3 {
                0 => from,
                1 => last,
                _ => from.midpoint(last),
            };
            candidate.point.insert(atom.clone(), place);
        }
    }

    /// Changes one atom, so that a fact that is negative at the point becomes non-negative: the
    /// first that can be raised, else the first that can be lowered.
    fn satisfy(&self, fact: &IndexExpr<I>, point: &mut Point<I>) {
        for sign in [1, -1] {
            for (atom, least) in &self.free {
                let Some(old) = point.get(atom).copied() else { continue };
                if !fact.any_atom(&mut |own| own == atom) {
                    continue;
                }
                let mut holds_at = |distance: i64| {
                    let new = old.checked_add(sign * distance)?;
                    point.insert(atom.clone(), new);
                    let is_allowed = least.is_none_or(|least| new >= least);
                    (is_allowed && value(fact, point)? >= 0).then_some(())
                };
                let found = least_distance(|distance| holds_at(distance).is_some());
                point.insert(atom.clone(), old + sign * found.unwrap_or(0));
                if found.is_some() {
                    return;
                }
            }
        }
    }
}

/// The least distance at which a fact holds, if it holds from there on. Points at which facts just
/// hold refute most goals.
fn least_distance(mut holds_at: impl FnMut(i64) -> bool) -> Option<i64> {
    let mut enough = (0..8).map(|power| 8_i64.pow(power)).find(|distance| holds_at(*distance))?;
    let mut too_small = enough / 8;
    while enough - too_small > 1 {
        let middle = too_small.midpoint(enough);
        match holds_at(middle) {
            true => enough = middle,
            false => too_small = middle,
        }
    }
    Some(enough)
}

/// A point that is being made.
struct Candidate<I: Ids> {
    point: Point<I>,
    /// Selects the places of variables in their ranges.
    place: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{SymbolId, VarId};

    /// Variable `n` is in `0:symbol n`, and variable 9 in `0:variable 9`. Symbols are at least 1.
    struct Boxed;

    impl Knowledge for Boxed {
        fn range(&self, var: VarId) -> Option<Range> {
            let to = if var.0 == 9 { IndexExpr::var(var) } else { s(var.0) };
            Some(Range { from: IndexExpr::constant(0), to })
        }
        fn least(&self, _: SymbolId) -> Option<i64> {
            Some(1)
        }
    }

    fn s(id: u32) -> IndexExpr {
        IndexExpr::symbol(SymbolId(id))
    }
    fn is_refuted(goal: &IndexExpr, facts: &[IndexExpr]) -> bool {
        Samples::new(goal, facts, &Boxed).refute(goal)
    }

    #[test]
    fn only_points_at_which_the_facts_hold_refute() {
        let larger = s(0).sub(&s(1));
        assert!(is_refuted(&larger, &[]));
        assert!(!is_refuted(&larger, std::slice::from_ref(&larger)));
        // s0 is 2 times s1, s1 is at least 3, and s2 a quotient of s0.
        let equal = |left: &IndexExpr, right: &IndexExpr| [left.sub(right), right.sub(left)];
        let quarter = s(0).floor_div(&IndexExpr::constant(4));
        let facts: Vec<IndexExpr> = [equal(&s(0), &s(1).scale(2)), equal(&s(2), &quarter)]
            .concat()
            .into_iter()
            .chain([s(1).offset(-3)])
            .collect();
        assert!(!is_refuted(&s(0).offset(-6), &facts));
        assert!(is_refuted(&s(0).offset(-7), &facts));
        assert!(is_refuted(&s(2).offset(-2), &facts));
    }

    #[test]
    fn variables_are_in_their_ranges() {
        let var = |id| IndexExpr::var(VarId(id));
        assert!(!is_refuted(&var(0), &[]));
        assert!(!is_refuted(&s(0).offset(-1).sub(&var(0)), &[]));
        assert!(is_refuted(&s(0).offset(-2).sub(&var(0)), &[]));
        // A variable in its own range has no value.
        assert!(!is_refuted(&var(9).scale(-1).offset(-1), &[]));
    }

    #[test]
    fn contradictory_facts_have_no_point() {
        assert!(!is_refuted(&IndexExpr::constant(-1), &[s(0).sub(&s(1)).offset(-1), s(1).sub(&s(0))]));
    }
}
