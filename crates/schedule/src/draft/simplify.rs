//! Simplifies subscripts by the ranges of the loops around them ([`Ranges`]), and finds or proves
//! bounds of their values.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tilewright_ir::ids::{Ids, InNest};
use tilewright_ir::index::{Atom, Term};
use tilewright_ir::interval::{End, Knowledge, lower_bound, upper_bound};
use tilewright_ir::prove::can_prove_nonnegative_within;
use tilewright_ir::{IndexExpr, Range, SymbolId};

/// The replacements that one proof may take. A schedule asks for thousands of proofs, and a failed
/// proof costs little.
const PROOF_BUDGET: usize = 100;

/// The depth to which nested minima and maxima are split into cases.
const CASE_DEPTH: usize = 3;

/// Splits a minimum or maximum of a subscript and a constant into the subscript and the constant
/// that it is clamped to.
pub(crate) fn split_clamp<I: Ids>(
    pair: &(IndexExpr<I>, IndexExpr<I>),
) -> Option<(&IndexExpr<I>, &IndexExpr<I>)> {
    match (pair.0.as_constant(), pair.1.as_constant()) {
        (Some(_), None) => Some((&pair.1, &pair.0)),
        (None, Some(_)) => Some((&pair.0, &pair.1)),
        _ => None,
    }
}

/// The smaller of two bounds, or the only one that exists.
fn smaller(left: Option<i64>, right: Option<i64>) -> Option<i64> {
    left.into_iter().chain(right).min()
}

/// The larger of two bounds, or the only one that exists.
fn larger(left: Option<i64>, right: Option<i64>) -> Option<i64> {
    left.into_iter().chain(right).max()
}

/// Expressions that are all at least 0 exactly where `expr` is. A minimum that is added to the rest
/// gives one for each of its sides.
pub(crate) fn split_minima<I: Ids>(expr: &IndexExpr<I>) -> Vec<IndexExpr<I>> {
    let minimum = expr.terms().iter().find_map(|term| match term.factors.as_slice() {
        [atom @ Atom::Min(pair)] if term.coefficient == 1 => Some((atom, pair)),
        _ => None,
    });
    match minimum.and_then(|(atom, pair)| Some((expr.split_on(atom)?.1, pair))) {
        Some((rest, pair)) => {
            [&pair.0, &pair.1].into_iter().flat_map(|side| split_minima(&rest.add(side))).collect()
        }
        None => vec![expr.clone()],
    }
}

/// The largest range of every loop that is open at some place.
#[derive(Clone, Debug)]
pub(crate) struct Ranges<I: Ids = InNest> {
    /// The number of values of each variable, counted from 0.
    extents: BTreeMap<I::Var, i64>,
    /// The number of values of some variables, in terms of others. More precise than the largest
    /// number, where a bound is wanted in these terms.
    exact_extents: BTreeMap<I::Var, IndexExpr<I>>,
    /// Further facts: expressions that are at least 0.
    facts: Vec<IndexExpr<I>>,
    answers: Answers<I>,
}

/// The answers of [`Ranges::never_negative`], [`Ranges::simplify`] and [`Ranges::greatest_value`].
/// The statements of a stencil ask the same many times.
#[derive(Debug)]
struct Answers<I: Ids> {
    signs: RefCell<HashMap<IndexExpr<I>, bool>>,
    simplified: RefCell<HashMap<IndexExpr<I>, IndexExpr<I>>>,
    greatest: RefCell<HashMap<IndexExpr<I>, Option<i64>>>,
}

impl<I: Ids> Default for Answers<I> {
    fn default() -> Self {
        Answers { signs: RefCell::default(), simplified: RefCell::default(), greatest: RefCell::default() }
    }
}

/// A copy of ranges is made to change it, and then has other answers.
impl<I: Ids> Clone for Answers<I> {
    fn clone(&self) -> Self {
        Answers::default()
    }
}

impl<I: Ids> Answers<I> {
    fn forget(&mut self) {
        self.signs.get_mut().clear();
        self.simplified.get_mut().clear();
        self.greatest.get_mut().clear();
    }
}

impl<I: Ids> Default for Ranges<I> {
    fn default() -> Self {
        Ranges {
            extents: BTreeMap::new(),
            exact_extents: BTreeMap::new(),
            facts: Vec::new(),
            answers: Answers::default(),
        }
    }
}

impl<I: Ids> Knowledge<I> for Ranges<I> {
    fn range(&self, var: I::Var) -> Option<Range<I>> {
        if let Some(extent) = self.exact_extents.get(&var) {
            return Some(Range { from: IndexExpr::constant(0), to: extent.clone() });
        }
        let extent = self.extents.get(&var)?;
        Some(Range { from: IndexExpr::constant(0), to: IndexExpr::constant((*extent).max(1)) })
    }

    fn least(&self, _: SymbolId) -> Option<i64> {
        None
    }
}

impl<I: Ids> Ranges<I> {
    /// Adds a loop inside the known ones. If no largest extent is known, the variable gets no
    /// range, and nothing is concluded from it.
    pub fn add_loop(&mut self, var: I::Var, extent: &IndexExpr<I>) {
        if let Some(most) = self.greatest_value(extent) {
            self.set_extent(var, most);
        }
        if extent.as_constant().is_none() {
            self.assume_nonnegative(&extent.sub(&IndexExpr::var(var)).offset(-1));
        }
    }

    /// Adds the fact that an expression is at least 0. If a minimum is at least 0, so are both of
    /// its sides.
    pub fn assume_nonnegative(&mut self, expr: &IndexExpr<I>) {
        self.answers.forget();
        self.facts.extend(split_minima(expr));
    }

    /// The knowledge where all conditions are at least 0, and the knowledge where at least one is
    /// negative.
    pub fn under_conditions(&self, conditions: &[IndexExpr<I>]) -> (Ranges<I>, Ranges<I>) {
        let (mut holding, mut failing) = (self.clone(), self.clone());
        conditions.iter().for_each(|condition| holding.assume_nonnegative(condition));
        if let [condition] = conditions {
            failing.assume_nonnegative(&condition.scale(-1).offset(-1));
        }
        (holding, failing)
    }

    /// Fixes the number of values of a variable.
    pub fn set_extent(&mut self, var: I::Var, extent: i64) {
        self.answers.forget();
        self.extents.insert(var, extent);
    }

    /// States the number of values of a variable in terms of others.
    pub fn set_exact_extent(&mut self, var: I::Var, extent: IndexExpr<I>) {
        self.answers.forget();
        self.exact_extents.insert(var, extent);
    }

    /// Removes the range of a variable, so that the variable counts as fixed.
    pub fn remove_range(&mut self, var: I::Var) {
        self.answers.forget();
        self.extents.remove(&var);
    }

    /// Returns true when the variable belongs to an open loop.
    pub fn has_range(&self, var: I::Var) -> bool {
        self.extents.contains_key(&var)
    }

    /// The largest number of values of a variable.
    pub fn extent(&self, var: I::Var) -> Option<i64> {
        self.extents.get(&var).copied()
    }

    /// An upper bound of the expression, as a number.
    pub fn greatest_value(&self, expr: &IndexExpr<I>) -> Option<i64> {
        if is_linear(expr) {
            return self.bound_of_linear(expr, End::High);
        }
        if let Some(known) = self.answers.greatest.borrow().get(expr) {
            return *known;
        }
        let greatest = self.find_greatest_value(expr);
        self.answers.greatest.borrow_mut().insert(expr.clone(), greatest);
        greatest
    }

    fn find_greatest_value(&self, expr: &IndexExpr<I>) -> Option<i64> {
        let plain = upper_bound(expr, self).and_then(|bound| bound.as_constant());
        let with_cases = smaller(plain, self.bound_by_cases(expr, CASE_DEPTH, End::High));
        smaller(
            with_cases,
            self.bound_quotient_difference(expr, End::High).and_then(|simpler| self.greatest_value(&simpler)),
        )
    }

    /// A lower bound of the expression, as a number.
    pub fn least_value(&self, expr: &IndexExpr<I>) -> Option<i64> {
        if is_linear(expr) {
            return self.bound_of_linear(expr, End::Low);
        }
        let plain = lower_bound(expr, self).and_then(|bound| bound.as_constant());
        let with_cases = larger(plain, self.bound_by_cases(expr, CASE_DEPTH, End::Low));
        larger(
            with_cases,
            self.bound_quotient_difference(expr, End::Low).and_then(|simpler| self.least_value(&simpler)),
        )
    }

    /// One end of the values of a sum of multiples of variables that all have ranges. Most queries
    /// have this form, and plain arithmetic answers them quickly.
    fn bound_of_linear(&self, expr: &IndexExpr<I>, end: End) -> Option<i64> {
        expr.terms().iter().try_fold(expr.constant_part(), |sum, term| {
            let [Atom::Var(var)] = term.factors.as_slice() else { return None };
            let last = self.extent(*var)?.max(1) - 1;
            let is_at_last = (term.coefficient > 0) == (end == End::High);
            sum.checked_add(if is_at_last { term.coefficient.checked_mul(last)? } else { 0 })
        })
    }

    /// One end of the values, found by replacing a minimum or maximum by each of its sides: the
    /// rest of the expression often cancels with one of them. `None` if the expression has no
    /// minimum or maximum to split.
    fn bound_by_cases(&self, expr: &IndexExpr<I>, cases: usize, end: End) -> Option<i64> {
        let choice = expr.terms().iter().find_map(|term| match term.factors.as_slice() {
            [atom @ (Atom::Min(pair) | Atom::Max(pair))] if cases > 0 => Some((atom, pair, term.coefficient)),
            _ => None,
        });
        let (atom, pair, coefficient) = choice?;
        let (_, rest) = expr.split_on(atom)?;
        let side = |side: &IndexExpr<I>| {
            let value = rest.add(&side.scale(coefficient));
            let (plain, cases) = match end {
                End::High => (upper_bound(&value, self), self.bound_by_cases(&value, cases - 1, end)),
                End::Low => (lower_bound(&value, self), self.bound_by_cases(&value, cases - 1, end)),
            };
            let plain = plain.and_then(|bound| bound.as_constant());
            if end == End::High { smaller(plain, cases) } else { larger(plain, cases) }
        };
        let (left, right) = (side(&pair.0), side(&pair.1));
        let is_larger_of_both = matches!(atom, Atom::Max(_)) == (coefficient > 0);
        match (end, is_larger_of_both) {
            (End::High, true) => Some(left?.max(right?)),
            (End::High, false) => smaller(left, right),
            (End::Low, true) => larger(left, right),
            (End::Low, false) => Some(left?.min(right?)),
        }
    }

    /// Replaces a difference of two quotients by the same divisor by one end of its values, if the
    /// expression has one. The two quotients may be anything while their distance is almost known:
    /// `(h + 1)/2 - h/2` is 0 or 1.
    fn bound_quotient_difference(&self, expr: &IndexExpr<I>, end: End) -> Option<IndexExpr<I>> {
        let quotients: Vec<_> = expr.terms().iter().filter_map(quotient).collect();
        quotients.iter().filter(|(_, coefficient)| *coefficient > 0).find_map(|(up, coefficient)| {
            let by = up.1.as_constant().filter(|by| *by > 0)?;
            let (down, _) = quotients
                .iter()
                .find(|(down, other)| *other == -coefficient && down.1 == up.1 && down.0 != up.0)?;
            let distance = up.0.sub(&down.0);
            // Only one level of quotients is replaced: the distance inside is bounded by ranges
            // alone.
            let most = match end {
                End::High => upper_bound(&distance, self)?.as_constant()?.checked_add(by - 1)?,
                End::Low => lower_bound(&distance, self)?.as_constant()?,
            };
            let [upper, lower] = [up, down].map(|pair| IndexExpr::atom(Atom::FloorDiv(Arc::clone(pair))));
            let difference = upper.sub(&lower).scale(*coefficient);
            Some(expr.sub(&difference).offset(most.div_euclid(by).checked_mul(*coefficient)?))
        })
    }

    /// Returns true when the expression is provably at least 0 everywhere.
    pub fn never_negative(&self, expr: &IndexExpr<I>) -> bool {
        if is_linear(expr) && self.least_value(expr).is_some_and(|least| least >= 0) {
            return true;
        }
        if let Some(known) = self.answers.signs.borrow().get(expr) {
            return *known;
        }
        let is_proved = self.least_value(expr).is_some_and(|least| least >= 0)
            || (!self.is_somewhere_negative(expr)
                && can_prove_nonnegative_within(PROOF_BUDGET, expr, &self.facts, self));
        self.answers.signs.borrow_mut().insert(expr.clone(), is_proved);
        is_proved
    }

    /// Returns true when the expression is negative at one of a few sample iterations: the first of
    /// all loops, the last of all loops, the last of one loop, or the last of those loops that make
    /// the expression smaller. A proof that must fail takes its whole budget. This test answers
    /// most such queries at almost no cost.
    fn is_somewhere_negative(&self, expr: &IndexExpr<I>) -> bool {
        let negative_at = |is_last: &dyn Fn(I::Var) -> bool| {
            let mut value = |atom: &Atom<I>| match atom {
                Atom::Var(var) => {
                    self.extent(*var).map(|extent| if is_last(*var) { extent.max(1) - 1 } else { 0 })
                }
                _ => None,
            };
            expr.eval(&mut value).is_some_and(|found| found < 0)
                && self.facts.iter().all(|fact| fact.eval(&mut value).is_some_and(|found| found >= 0))
        };
        let negative = expr.terms().iter().filter(|term| term.coefficient < 0);
        let decreasing: Vec<IndexExpr<I>> = negative.map(IndexExpr::from).collect();
        negative_at(&|_| false)
            || negative_at(&|var| decreasing.iter().any(|term| term.mentions(var)))
            || negative_at(&|_| true)
            || expr.vars().into_iter().any(|last| negative_at(&|var| var == last))
    }

    /// Returns true when the expression is provably negative everywhere.
    pub fn always_negative(&self, expr: &IndexExpr<I>) -> bool {
        self.greatest_value(expr).is_some_and(|most| most < 0) || self.is_fact(&expr.scale(-1).offset(-1))
    }

    /// Returns true when one of the facts says that the expression is at least 0.
    fn is_fact(&self, expr: &IndexExpr<I>) -> bool {
        self.facts.contains(expr)
    }

    /// Resolves the minima, maxima, quotients and remainders of an expression that the ranges
    /// decide.
    pub fn simplify(&self, expr: &IndexExpr<I>) -> IndexExpr<I> {
        if expr.terms().iter().flat_map(|term| &term.factors).all(|atom| matches!(atom, Atom::Var(_))) {
            return expr.clone();
        }
        if let Some(known) = self.answers.simplified.borrow().get(expr) {
            return known.clone();
        }
        let simplified = self.simplify_anew(expr);
        self.answers.simplified.borrow_mut().insert(expr.clone(), simplified.clone());
        simplified
    }

    fn simplify_anew(&self, expr: &IndexExpr<I>) -> IndexExpr<I> {
        expr.substitute(&mut |atom| match atom {
            Atom::Min(pair) => self.sort_pair(&pair.0, &pair.1).map(|(smaller, _)| smaller.clone()),
            Atom::Max(pair) => self.sort_pair(&pair.0, &pair.1).map(|(_, larger)| larger.clone()),
            Atom::FloorDiv(pair) => self.is_remainder(&pair.0, &pair.1).then(|| IndexExpr::constant(0)),
            Atom::Mod(pair) => self.is_remainder(&pair.0, &pair.1).then(|| pair.0.clone()),
            _ => None,
        })
    }

    /// Returns both expressions, smaller first, if one of them is provably never larger.
    fn sort_pair<'e>(
        &self,
        left: &'e IndexExpr<I>,
        right: &'e IndexExpr<I>,
    ) -> Option<(&'e IndexExpr<I>, &'e IndexExpr<I>)> {
        if self.never_negative(&right.sub(left)) {
            Some((left, right))
        } else if self.never_negative(&left.sub(right)) {
            Some((right, left))
        } else {
            None
        }
    }

    fn is_remainder(&self, value: &IndexExpr<I>, by: &IndexExpr<I>) -> bool {
        let Some(by) = by.as_constant() else { return false };
        self.least_value(value).is_some_and(|least| least >= 0)
            && self.greatest_value(value).is_some_and(|most| most < by)
    }
}

/// Returns true when the expression is a sum of multiples of variables.
fn is_linear<I: Ids>(expr: &IndexExpr<I>) -> bool {
    expr.terms().iter().all(|term| matches!(term.factors.as_slice(), [Atom::Var(_)]))
}

/// The dividend and the divisor of a quotient.
type IndexPair<I> = Arc<(IndexExpr<I>, IndexExpr<I>)>;

/// The quotient that a term is a multiple of, and its coefficient.
fn quotient<I: Ids>(term: &Term<I>) -> Option<(&IndexPair<I>, i64)> {
    match term.factors.as_slice() {
        [Atom::FloorDiv(pair)] => Some((pair, term.coefficient)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use tilewright_ir::nest::{IndexExpr, LoopVarId};

    use super::*;

    /// `2*x - 3*y/2 + …`: a sum over three variables, perhaps with a quotient of one.
    fn sum(coefficients: &[i64], constant: i64, divided: Option<usize>) -> IndexExpr {
        let term = |(at, coefficient): (usize, &i64)| {
            let var = IndexExpr::var(LoopVarId(at as u32));
            let var =
                if divided == Some(at) { var.offset(1).floor_div(&IndexExpr::constant(2)) } else { var };
            var.scale(*coefficient)
        };
        let terms = coefficients.iter().enumerate().map(term);
        terms.fold(IndexExpr::constant(constant), |sum, term| sum.add(&term))
    }

    fn points(extents: &[i64]) -> Vec<Vec<i64>> {
        extents.iter().fold(vec![Vec::new()], |points, extent| {
            let longer = |point: &Vec<i64>| (0..*extent).map(|last| [&point[..], &[last]].concat()).collect();
            points.iter().flat_map::<Vec<Vec<i64>>, _>(longer).collect()
        })
    }

    fn at(expr: &IndexExpr, point: &[i64]) -> i64 {
        let value = expr.eval(&mut |atom| match atom {
            Atom::Var(var) => Some(point[var.0 as usize]),
            _ => None,
        });
        value.expect("all variables have values")
    }

    proptest! {
        #[test]
        fn ends_and_signs_are_those_of_the_box(
            extents in prop::collection::vec(1i64..5, 3),
            coefficients in prop::collection::vec(-3i64..4, 3),
            constant in -6i64..7,
            divided in prop::option::of(0usize..3),
            fact in prop::option::of((prop::collection::vec(-2i64..3, 3), -2i64..3)),
        ) {
            let mut ranges = Ranges::default();
            extents.iter().enumerate().for_each(|(at, extent)| ranges.set_extent(LoopVarId(at as u32), *extent));
            let expr = sum(&coefficients, constant, divided);
            let values: Vec<i64> = points(&extents).iter().map(|point| at(&expr, point)).collect();
            prop_assert_eq!(ranges.least_value(&expr), values.iter().copied().min());
            prop_assert_eq!(ranges.greatest_value(&expr), values.iter().copied().max());
            // The points of the box at which the fact holds decide. If no point is left, any answer
            // is right.
            let fact = fact.map(|(coefficients, constant)| sum(&coefficients, constant, None));
            fact.iter().for_each(|fact| ranges.assume_nonnegative(fact));
            let left: Vec<Vec<i64>> = points(&extents);
            let holds = |point: &&Vec<i64>| fact.as_ref().is_none_or(|fact| at(fact, point) >= 0);
            let is_never = left.iter().filter(holds).all(|point| at(&expr, point) >= 0);
            prop_assert!(is_never || !ranges.never_negative(&expr));
            prop_assert!(!is_never || fact.is_some() || ranges.never_negative(&expr));
        }
    }
}
