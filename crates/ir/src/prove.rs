//! Proves that an index expression is never negative, for every size.
//!
//! The method is elimination. To show `e >= 0`, the search replaces an atom of `e` by a bound that
//! can only make `e` smaller. It repeats this until only sizes are left, which are at least 1:
//! - a variable becomes one end of its range, selected by the sign of its coefficient;
//! - `floor(n/d)` lies between `(n-d+1)/d` and `n/d`, and a remainder between 0 and `d-1`;
//! - `min` and `max` are proved with both operands, or with either one, depending on the sign;
//! - a known fact `h >= 0` may be subtracted: `e - h >= 0` shows `e >= 0`.
//!
//! Most goals that fail are wrong, and facts make the search for them large. Two rules keep it
//! small without losing a proof. A goal that failed is not tried again with as few facts or fewer.
//! A goal that is negative at a point where all facts hold cannot be proved (`samples`).
//!
//! The search is sound and incomplete: `false` means that no proof was found within the budget, not
//! that the claim is wrong. Callers that need certainty search for a counterexample.

mod samples;

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;

use crate::ids::Ids;
use crate::index::{Atom, IndexExpr, Term, floor_div, greatest_common_divisor};
use crate::interval::{Knowledge, is_nonnegative_by_least_values, lower_bound, upper_bound};
use samples::Samples;

/// The maximal number of replacements that one proof may try.
const BUDGET: usize = 4000;
/// The maximal number of known facts that one proof may combine.
const MOST_FACTS: usize = 3;
/// The number of replacements after which a search is long: it computes sample points and records
/// failed goals. Most searches are shorter, and both would take longer than the rest of them.
const REPLACEMENTS_OF_SHORT_SEARCH: usize = 16;

/// Shows that `goal >= 0` wherever the variables are in their ranges and every fact is
/// non-negative, also those of the preconditions.
pub fn can_prove_nonnegative<I: Ids>(
    goal: &IndexExpr<I>,
    facts: &[IndexExpr<I>],
    known: &dyn Knowledge<I>,
) -> bool {
    can_prove_nonnegative_within(BUDGET, goal, facts, known)
}

/// Like `can_prove_nonnegative`, with a given budget of replacements.
pub fn can_prove_nonnegative_within<I: Ids>(
    budget: usize,
    goal: &IndexExpr<I>,
    facts: &[IndexExpr<I>],
    known: &dyn Knowledge<I>,
) -> bool {
    if has_unlimited_variable(goal, facts, known) {
        return false;
    }
    let can_prove = |facts: &[IndexExpr<I>], has_preconditions: bool| {
        let search = Search::new(goal, facts, known, has_preconditions, budget);
        // Most proofs need at most one fact, and each further fact multiplies the search space, so
        // small numbers of facts come first.
        (0..=MOST_FACTS.min(facts.len())).any(|more| search.prove(goal, more))
    };
    // Most proofs need no precondition.
    if can_prove(facts, false) {
        return true;
    }
    let preconditions = known.facts();
    let all = || facts.iter().chain(preconditions.iter()).cloned().collect::<Vec<_>>();
    !preconditions.is_empty() && can_prove(&all(), true)
}

/// Returns true for a goal such as `N - i` where nothing limits `i` in the direction that makes the
/// goal negative: `i` has no range, and is a plain term of the opposite sign in all facts that
/// mention it. No replacement and no fact removes such a term. Preconditions mention no variable.
fn has_unlimited_variable<I: Ids>(
    goal: &IndexExpr<I>,
    facts: &[IndexExpr<I>],
    known: &dyn Knowledge<I>,
) -> bool {
    goal.terms().iter().any(|term| {
        let [Atom::Var(var)] = term.factors.as_slice() else { return false };
        let is_plain = |expr: &IndexExpr<I>| {
            let rest = expr.terms().iter().filter(|other| other.factors != term.factors);
            !rest.map(IndexExpr::from).any(|other| other.mentions(*var))
        };
        let limits = |fact: &IndexExpr<I>| {
            let own = fact.terms().iter().find(|other| other.factors == term.factors);
            own.is_some_and(|own| own.coefficient.signum() == term.coefficient.signum()) || !is_plain(fact)
        };
        known.range(*var).is_none() && is_plain(goal) && !facts.iter().any(limits)
    })
}

/// The larger of two expressions, without a `max` where one is provably the larger.
pub fn larger<I: Ids>(left: &IndexExpr<I>, right: &IndexExpr<I>, known: &dyn Knowledge<I>) -> IndexExpr<I> {
    if can_prove_nonnegative(&left.sub(right), &[], known) {
        left.clone()
    } else if can_prove_nonnegative(&right.sub(left), &[], known) {
        right.clone()
    } else {
        left.maximum(right)
    }
}

/// The smaller of two expressions, without a `min` where one is provably the smaller.
pub fn smaller<I: Ids>(left: &IndexExpr<I>, right: &IndexExpr<I>, known: &dyn Knowledge<I>) -> IndexExpr<I> {
    if can_prove_nonnegative(&left.sub(right), &[], known) {
        right.clone()
    } else if can_prove_nonnegative(&right.sub(left), &[], known) {
        left.clone()
    } else {
        left.minimum(right)
    }
}

struct Search<'a, I: Ids> {
    goal: &'a IndexExpr<I>,
    facts: &'a [IndexExpr<I>],
    known: &'a dyn Knowledge<I>,
    has_preconditions: bool,
    budget: Cell<usize>,
    /// The budget that is left when the search becomes long.
    budget_of_long_search: usize,
    samples: OnceCell<Samples<'a, I>>,
    /// The goals without a proof, each with the largest number of facts that was allowed.
    failed: RefCell<HashMap<IndexExpr<I>, usize>>,
}

/// The sign of a coefficient, where it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Positive,
    Negative,
}

impl<'a, I: Ids> Search<'a, I> {
    fn new(
        goal: &'a IndexExpr<I>,
        facts: &'a [IndexExpr<I>],
        known: &'a dyn Knowledge<I>,
        has_preconditions: bool,
        budget: usize,
    ) -> Search<'a, I> {
        Search {
            goal,
            facts,
            known,
            has_preconditions,
            budget: Cell::new(budget),
            budget_of_long_search: budget.saturating_sub(REPLACEMENTS_OF_SHORT_SEARCH),
            samples: OnceCell::new(),
            failed: RefCell::default(),
        }
    }

    /// The whole search for one goal: by elimination, else after subtracting up to `more` facts.
    fn prove(&self, goal: &IndexExpr<I>, more: usize) -> bool {
        if self.is_long() && self.failed.borrow().get(goal).is_some_and(|failed| *failed >= more) {
            return false;
        }
        let is_proved = self.eliminate(goal, more) || self.prove_with_fact(goal, more);
        if !is_proved && self.is_long() {
            self.failed.borrow_mut().insert(goal.clone(), more);
        }
        is_proved
    }

    /// Returns true when a sample point refutes the goal, so that it has no proof.
    fn is_refuted(&self, goal: &IndexExpr<I>) -> bool {
        self.is_long() && self.samples.get_or_init(|| self.start_long_search()).refute(goal)
    }

    /// The samples of a long search. The search ends if they refute its own goal.
    fn start_long_search(&self) -> Samples<'a, I> {
        let samples = Samples::new(self.goal, self.facts, self.known);
        if samples.refute(self.goal) {
            self.budget.set(0);
        }
        samples
    }

    fn is_long(&self) -> bool {
        self.budget.get() <= self.budget_of_long_search
    }

    fn prove_with_fact(&self, goal: &IndexExpr<I>, more: usize) -> bool {
        more > 0
            && !self.is_refuted(goal)
            && self.facts.iter().any(|fact| {
                shares_an_atom(goal, fact) && self.spend() && self.prove(&goal.sub(fact), more - 1)
            })
    }

    fn spend(&self) -> bool {
        let left = self.budget.get();
        self.budget.set(left.saturating_sub(1));
        left > 0
    }

    /// Replaces one atom after the other until only sizes are left.
    fn eliminate(&self, goal: &IndexExpr<I>, more: usize) -> bool {
        if let Some(value) = goal.as_constant() {
            return value >= 0;
        }
        if !self.spend() || goal.is_overflow() || self.is_refuted(goal) {
            return false;
        }
        if let Some(divided) = without_common_factor(goal) {
            return self.eliminate(&divided, more);
        }
        let Some(atom) = self.next_atom(goal) else {
            return is_nonnegative_by_least_values(goal, self.known);
        };
        let Some((coefficient, rest)) = goal.split_on(&atom) else {
            // The atom is squared, for example, so only the bounds of the whole goal remain.
            let low = lower_bound(goal, self.known).filter(|low| low != goal);
            return low.is_some_and(|low| self.eliminate(&low, more));
        };
        let Some(sign) = self.sign(&coefficient) else {
            return false;
        };
        let with = |value: &IndexExpr<I>| rest.add(&coefficient.mul(value));
        match &atom {
            Atom::Var(var) => self.known.range(*var).is_some_and(|range| {
                let end = if sign == Sign::Positive { range.from } else { range.to.offset(-1) };
                self.eliminate(&with(&end), more)
            }),
            Atom::Min(pair) | Atom::Max(pair) => {
                let (left, right) = (with(&pair.0), with(&pair.1));
                // The minimum is below both operands. Where a larger minimum makes the goal
                // smaller, a proof with one operand suffices.
                if matches!(atom, Atom::Min(_)) == (sign == Sign::Negative) {
                    // max(e, -e) is never negative, although each operand can be.
                    let opposite = pair.0.add(&pair.1).as_constant() == Some(0);
                    self.prove(&left, more)
                        || self.prove(&right, more)
                        || (opposite && self.prove(&rest, more))
                } else {
                    self.prove(&left, more) && self.prove(&right, more)
                }
            }
            Atom::FloorDiv(pair) => {
                self.is_positive(&pair.1)
                    && quotient_bounds(&coefficient, &rest, sign, &pair.0, &pair.1, self.known)
                        .iter()
                        .any(|smaller| self.prove(smaller, more))
            }
            Atom::Mod(pair) => {
                let end = if sign == Sign::Positive { IndexExpr::constant(0) } else { pair.1.offset(-1) };
                self.is_positive(&pair.1) && self.eliminate(&with(&end), more)
            }
            Atom::Data(data) => data.bounds().is_some_and(|(from, to)| {
                let end = if sign == Sign::Positive { from } else { to.offset(-1) };
                self.eliminate(&with(&end), more)
            }),
            Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => false,
        }
    }

    /// The atom to replace next. A variable inside a compound atom must stay until that atom is
    /// gone. Any other variable goes first, because the end of its range may cancel a quotient
    /// whose bounds would lose precision.
    fn next_atom(&self, goal: &IndexExpr<I>) -> Option<Atom<I>> {
        let atoms = || goal.terms().iter().flat_map(|term| &term.factors);
        let compound = |atom: &Atom<I>| matches!(atom, Atom::FloorDiv(_) | Atom::Mod(_) | Atom::Data(_));
        let inside =
            |var: I::Var| atoms().any(|atom| compound(atom) && IndexExpr::atom(atom.clone()).mentions(var));
        // A quotient that is a divisor of another atom stays until that atom is gone: their bounds
        // then cancel.
        let is_part = |part: &Atom<I>| {
            atoms().any(|atom| {
                let (Atom::FloorDiv(pair) | Atom::Mod(pair)) = atom else { return false };
                atom != part && [&pair.0, &pair.1].iter().any(|side| side.any_atom(&mut |own| own == part))
            })
        };
        let bounded = |atom: &&Atom<I>| matches!(atom, Atom::Var(var) if self.known.range(*var).is_some());
        let free = |atom: &&Atom<I>| matches!(atom, Atom::Var(var) if self.known.range(*var).is_some() && !inside(*var));
        atoms()
            .find(|atom| matches!(atom, Atom::Min(_) | Atom::Max(_)))
            .or_else(|| atoms().find(free))
            .or_else(|| atoms().find(|atom| compound(atom) && !is_part(atom)))
            .or_else(|| atoms().find(|atom| compound(atom)))
            .or_else(|| atoms().find(bounded))
            .cloned()
    }

    fn sign(&self, coefficient: &IndexExpr<I>) -> Option<Sign> {
        if self.is_never_negative(coefficient) {
            Some(Sign::Positive)
        } else if self.is_never_negative(&coefficient.scale(-1)) {
            Some(Sign::Negative)
        } else {
            None
        }
    }

    fn is_never_negative(&self, expr: &IndexExpr<I>) -> bool {
        match expr.as_constant() {
            Some(value) => value >= 0,
            None => {
                is_nonnegative_by_least_values(expr, self.known)
                    || (self.next_atom(expr).is_some_and(|atom| matches!(atom, Atom::Var(_)))
                        && self.eliminate(expr, 0))
            }
        }
    }

    fn is_positive(&self, expr: &IndexExpr<I>) -> bool {
        let less_one = expr.offset(-1);
        is_nonnegative_by_least_values(&less_one, self.known)
            // A precondition may give a divisor such as `C/G` its least value.
            || (self.has_preconditions && less_one.as_constant().is_none() && self.prove(&less_one, 1))
    }
}

/// Goals without the quotient that each imply `coefficient * floor(value/by) + rest >= 0`, where
/// `by` is positive.
fn quotient_bounds<I: Ids>(
    coefficient: &IndexExpr<I>,
    rest: &IndexExpr<I>,
    sign: Sign,
    value: &IndexExpr<I>,
    by: &IndexExpr<I>,
    known: &dyn Knowledge<I>,
) -> Vec<IndexExpr<I>> {
    // With coefficient 1 or -1 the bound is exact: floor(v/b) >= -r is v >= -r*b, and floor(v/b) <=
    // r is v <= r*b + b-1.
    match coefficient.as_constant() {
        Some(1) => return vec![value.add(&rest.mul(by))],
        Some(-1) => return vec![rest.mul(by).add(by).offset(-1).sub(value)],
        _ => {}
    }
    // Otherwise by * floor(v/by) lies between v - by + 1 and v.
    let product = if sign == Sign::Positive { value.sub(by).offset(1) } else { value.clone() };
    let times = coefficient.floor_div(by);
    if times.mul(by) == *coefficient {
        return vec![rest.add(&times.mul(&product))];
    }
    // Alternatively, the quotient is bounded by that of the dividend's bound, which is exact where
    // the dividend's bound is.
    let end = match sign {
        Sign::Positive => lower_bound(value, known),
        Sign::Negative => upper_bound(value, known),
    };
    let mut goals = vec![rest.mul(by).add(&coefficient.mul(&product))];
    goals.extend(end.filter(|end| end != value).map(|end| rest.add(&coefficient.mul(&end.floor_div(by)))));
    goals
}

/// The goal divided by the common factor of its coefficients, if there is one: `2*q - 3 >= 0` is
/// `q - 2 >= 0` for an integer `q`, and then a quotient `q` can be replaced without a loss.
fn without_common_factor<I: Ids>(goal: &IndexExpr<I>) -> Option<IndexExpr<I>> {
    let mut coefficients = goal.terms().iter().map(|term| term.coefficient);
    let first = coefficients.next()?;
    let factor = coefficients.fold(first, greatest_common_divisor).saturating_abs();
    let is_plain = |term: &Term<I>| term.factors.iter().all(|atom| !matches!(atom, Atom::FloorDiv(_)));
    if factor <= 1 || goal.terms().iter().all(is_plain) {
        return None;
    }
    let constant = floor_div(goal.constant_part(), factor)?;
    let terms = goal.terms().iter().map(|term| {
        IndexExpr::from(&Term { factors: term.factors.clone(), coefficient: term.coefficient / factor })
    });
    Some(terms.fold(IndexExpr::constant(constant), |sum, term| sum.add(&term)))
}

fn shares_an_atom<I: Ids>(goal: &IndexExpr<I>, fact: &IndexExpr<I>) -> bool {
    let mut atoms = goal.terms().iter().flat_map(|term| &term.factors);
    atoms.any(|atom| fact.terms().iter().any(|term| term.factors.contains(atom)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Range, SymbolId, VarId};

    /// Variable 0 is in 0:N and variable 1 in 0:K. N is symbol 0, K is symbol 1, and symbol 2 is
    /// any positive scalar.
    struct Boxed;

    impl Knowledge for Boxed {
        fn range(&self, var: VarId) -> Option<Range> {
            let size = IndexExpr::symbol(SymbolId(var.0));
            (var.0 < 2).then(|| Range { from: IndexExpr::constant(0), to: size })
        }
        fn least(&self, _: SymbolId) -> Option<i64> {
            Some(1)
        }
    }

    fn v(id: u32) -> IndexExpr {
        IndexExpr::var(VarId(id))
    }
    fn s(id: u32) -> IndexExpr {
        IndexExpr::symbol(SymbolId(id))
    }
    fn c(value: i64) -> IndexExpr {
        IndexExpr::constant(value)
    }
    fn shown(goal: IndexExpr) -> bool {
        can_prove_nonnegative(&goal, &[], &Boxed)
    }

    #[test]
    fn a_variable_stays_in_its_range() {
        assert!(shown(v(0)));
        assert!(shown(s(0).offset(-1).sub(&v(0))));
        assert!(!shown(s(0).offset(-2).sub(&v(0))));
        assert!(!shown(s(1).offset(-1).sub(&v(0))));
    }

    #[test]
    fn halves_fit_into_the_whole() {
        // 2*(N/2) - 1 is at most N - 1, and x/2 is at most N/2 for x in 0:N.
        let half = s(0).floor_div(&c(2));
        assert!(shown(s(0).offset(-1).sub(&half.scale(2).offset(-1))));
        assert!(shown(half.sub(&v(0).floor_div(&c(2)))));
        assert!(!shown(half.offset(-1).sub(&v(0).floor_div(&c(2)))));
    }

    #[test]
    fn a_common_factor_does_not_cost_precision() {
        // 2*((N + 1)/2) is at least 2, and not always at least 3.
        let twice = s(0).offset(1).floor_div(&c(2)).scale(2);
        assert!(shown(twice.offset(-2)));
        assert!(!shown(twice.offset(-3)));
        assert!(shown(twice.offset(-2).sub(&c(0).minimum(&v(0)))));
    }

    #[test]
    fn a_stride_that_is_a_symbol_cancels() {
        // floor((N-K)/S) * S + K - 1 <= N - 1
        let quotient = s(0).sub(&s(1)).floor_div(&s(2));
        assert!(shown(s(0).offset(-1).sub(&quotient.mul(&s(2))).sub(&s(1)).offset(1)));
    }

    #[test]
    fn minimum_and_maximum_split() {
        let clamped = v(0).add(&v(1)).minimum(&s(0).offset(-1)).maximum(&c(0));
        assert!(shown(clamped.clone()));
        assert!(shown(s(0).offset(-1).sub(&clamped)));
    }

    #[test]
    fn a_fact_is_used() {
        let shifted = v(0).sub(&v(1));
        assert!(!shown(shifted.clone()));
        assert!(can_prove_nonnegative(&shifted, std::slice::from_ref(&shifted), &Boxed));
        assert!(can_prove_nonnegative(&shifted.floor_div(&s(2)), std::slice::from_ref(&shifted), &Boxed));
    }

    #[test]
    fn useless_facts_do_not_hide_a_proof() {
        // 60 facts s0 >= s10 >= s100, s0 >= s11 >= s101 and so on come before the chain that is
        // needed.
        let at_least = |left: u32, right: u32| s(left).sub(&s(right));
        let useless = (0..60).flat_map(|at| [at_least(0, 10 + at), at_least(10 + at, 100 + at)]);
        let needed = [at_least(0, 1), at_least(1, 2), at_least(2, 3)];
        let facts: Vec<IndexExpr> = useless.chain(needed).collect();
        assert!(can_prove_nonnegative(&at_least(0, 3), &facts, &Boxed));
        assert!(!can_prove_nonnegative(&at_least(0, 3), &facts[..facts.len() - 1], &Boxed));
    }

    #[test]
    fn a_variable_without_a_range_needs_a_fact() {
        // Variable 2 has no range.
        let below = s(0).sub(&v(2));
        assert!(!can_prove_nonnegative(&below, &[v(2)], &Boxed));
        assert!(can_prove_nonnegative(&below, &[v(2), s(0).offset(-1).sub(&v(2))], &Boxed));
        assert!(can_prove_nonnegative(&below, &[s(0).sub(&v(2).scale(2)), v(2)], &Boxed));
    }
}
