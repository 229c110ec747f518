//! Defines [`Precondition`]: a comparison of sizes that a program requires of its caller.
//!
//! A precondition compares two expressions of sizes, integer scalars and numbers. The program is
//! refused at sizes where the comparison fails, so every proof about the program may assume it.
//! [`Consequences`] turns preconditions into expressions that are never negative, the form that
//! [`crate::prove`] uses. A remainder needs more than its own inequality: `C % G == 0` also means
//! `G*(C/G) == C`, and that `C` is at least `G`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::expr::Origin;
use crate::index::{Atom, IndexExpr, Term};
use crate::interval::{Knowledge, is_nonnegative_by_least_values};
use crate::operators::BinaryOp;
use crate::print::{Names, index};
use crate::program::{Range, SymbolId, VarId};

/// A comparison of sizes that must hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// The comparison: one of `==`, `!=`, `<`, `<=`, `>` and `>=`.
    pub op: BinaryOp,
    /// The left side, of symbols and numbers.
    pub left: IndexExpr,
    /// The right side, of symbols and numbers.
    pub right: IndexExpr,
    /// Where the comparison was written.
    pub origin: Origin,
}

/// The equation `value == divisor * (value / divisor) + remainder`, which a precondition on a
/// remainder gives.
struct Division {
    value: IndexExpr,
    divisor: IndexExpr,
    remainder: IndexExpr,
}

impl Precondition {
    /// Whether the comparison holds, once both sides are numbers.
    pub fn holds(&self) -> Option<bool> {
        let order = self.left.as_constant()?.cmp(&self.right.as_constant()?);
        Some(self.op.holds(Some(order)))
    }

    /// The precondition with other sides.
    pub fn map(&self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) -> Precondition {
        Precondition { left: map(&self.left), right: map(&self.right), ..self.clone() }
    }

    /// A quotient or remainder of the sides whose divisor `map` makes 0, as a quotient without a
    /// value.
    pub(crate) fn quotient_by_zero(
        &self,
        map: &mut impl FnMut(&IndexExpr) -> IndexExpr,
    ) -> Option<IndexExpr> {
        let mut found = None;
        for side in [&self.left, &self.right] {
            side.any_atom(&mut |atom| {
                if let Atom::FloorDiv(pair) | Atom::Mod(pair) = atom
                    && map(&pair.1).as_constant() == Some(0)
                {
                    let quotient = (map(&pair.0), IndexExpr::constant(0));
                    found = Some(IndexExpr::atom(Atom::FloorDiv(Arc::new(quotient))));
                }
                found.is_some()
            });
        }
        found
    }

    /// The comparison as text: `C % G == 0`.
    pub fn text(&self, names: &impl Names) -> String {
        format!("{} {} {}", index(&self.left, names), self.op.symbol(), index(&self.right, names))
    }

    /// Whether the comparison holds for these values of the sides.
    pub(crate) fn holds_for(&self, left: i64, right: i64) -> bool {
        self.op.holds(Some(left.cmp(&right)))
    }

    /// Expressions that are all at least 0 exactly where the comparison holds. A `!=` has none.
    pub fn inequalities(&self) -> Vec<IndexExpr> {
        let difference = self.left.sub(&self.right);
        let opposite = difference.scale(-1);
        match self.op {
            BinaryOp::Equal => vec![difference, opposite],
            BinaryOp::Less => vec![opposite.offset(-1)],
            BinaryOp::LessEqual => vec![opposite],
            BinaryOp::Greater => vec![difference.offset(-1)],
            BinaryOp::GreaterEqual => vec![difference],
            _ => Vec::new(),
        }
    }

    /// The division whose remainder the precondition states: that of `C` by `G` for `C % G == 0`.
    fn division(&self) -> Option<Division> {
        let difference = self.left.sub(&self.right);
        let is_remainder = |term: &&Term| {
            matches!(term.factors.as_slice(), [Atom::Mod(_)]) && term.coefficient.unsigned_abs() == 1
        };
        let term = difference.terms().iter().find(is_remainder).filter(|_| self.op == BinaryOp::Equal)?;
        let [Atom::Mod(pair)] = term.factors.as_slice() else { return None };
        let rest = difference.sub(&IndexExpr::from(term));
        let (value, divisor) = (pair.0.clone(), pair.1.clone());
        Some(Division { value, divisor, remainder: rest.scale(-term.coefficient) })
    }

    /// The symbol to which the precondition alone gives a least value, and the value.
    fn least(&self) -> Option<(SymbolId, i64)> {
        self.inequalities().into_iter().find_map(|fact| {
            let constant = fact.constant_part();
            Some((lone_symbol(&fact.offset(constant.checked_neg()?))?, -constant))
        })
    }
}

impl Division {
    /// Expressions that are at least 0, because the equation holds.
    fn facts(&self, known: &dyn Knowledge) -> Vec<IndexExpr> {
        let whole = self.divisor.mul(&self.value.floor_div(&self.divisor)).add(&self.remainder);
        let mut facts = vec![whole.sub(&self.value), self.value.sub(&whole)];
        // A positive multiple of a number is at least that number.
        let is_positive = is_nonnegative_by_least_values(&self.value.offset(-1), known);
        if self.remainder.as_constant() == Some(0) && is_positive {
            facts.push(self.value.sub(&self.divisor));
        }
        facts
    }

    /// The expression with `value - remainder` for `divisor * (value / divisor)`.
    fn simplify(&self, expr: &IndexExpr) -> IndexExpr {
        let quotient = self.value.floor_div(&self.divisor);
        let [Term { factors, coefficient: 1 }] = quotient.terms() else { return expr.clone() };
        let [atom @ Atom::FloorDiv(_)] = factors.as_slice() else { return expr.clone() };
        let Some((coefficient, rest)) = expr.split_on(atom) else { return expr.clone() };
        let mut result = rest;
        for part in parts(&coefficient) {
            let times = part.floor_div(&self.divisor);
            let replaced = match times.mul(&self.divisor) == part {
                true => times.mul(&self.value.sub(&self.remainder)),
                false => part.mul(&quotient),
            };
            result = result.add(&replaced);
        }
        result
    }
}

/// The terms and the constant of a sum, one expression each.
fn parts(sum: &IndexExpr) -> Vec<IndexExpr> {
    let constant = IndexExpr::constant(sum.constant_part());
    sum.terms().iter().map(IndexExpr::from).chain([constant]).collect()
}

/// What follows from preconditions, for proofs. Proofs ask for it very often, so it is computed
/// once.
#[derive(Clone, Debug, Default)]
pub struct Consequences {
    least: Vec<Option<i64>>,
    facts: Vec<IndexExpr>,
}

impl Consequences {
    /// The consequences of preconditions. `own_least` has the least value of each symbol without
    /// them.
    pub fn new(preconditions: &[Precondition], own_least: impl Iterator<Item = Option<i64>>) -> Consequences {
        let mut least: Vec<Option<i64>> = own_least.collect();
        for (symbol, value) in preconditions.iter().filter_map(Precondition::least) {
            if let Some(own) = least.get_mut(symbol.index()) {
                *own = (*own).max(Some(value));
            }
        }
        let mut consequences = Consequences { least, facts: Vec::new() };
        consequences.facts = facts(preconditions, &consequences);
        consequences
    }
}

impl Knowledge for Consequences {
    fn range(&self, _: VarId) -> Option<Range> {
        None
    }
    fn least(&self, symbol: SymbolId) -> Option<i64> {
        self.least.get(symbol.index()).copied().flatten()
    }
    fn facts(&self) -> &[IndexExpr] {
        &self.facts
    }
}

/// Expressions that are never negative where the preconditions hold.
fn facts(preconditions: &[Precondition], known: &dyn Knowledge) -> Vec<IndexExpr> {
    let mut facts: Vec<IndexExpr> = Vec::new();
    let mut seen = BTreeSet::new();
    for precondition in preconditions {
        let division = precondition.division().map(|division| division.facts(known));
        for fact in precondition.inequalities().into_iter().chain(division.into_iter().flatten()) {
            if fact.as_constant().is_none() && seen.insert(fact.clone()) {
                facts.push(fact);
            }
        }
    }
    facts
}

/// The expression without the quotients that preconditions make exact: `C` for `G*(C/G)` where
/// `C % G == 0`.
pub fn simplify(expr: &IndexExpr, preconditions: &[Precondition]) -> IndexExpr {
    let divisions = preconditions.iter().filter_map(Precondition::division);
    divisions.fold(expr.clone(), |expr, division| division.simplify(&expr))
}

/// Changes values of symbols, where that makes a precondition hold: the symbol that an equation or
/// a bound states alone gets a value that fits. `evaluate` computes a side from the values.
pub(crate) fn repair(
    preconditions: &[Precondition],
    values: &mut BTreeMap<SymbolId, i64>,
    evaluate: impl Fn(&IndexExpr, &BTreeMap<SymbolId, i64>) -> Option<i64>,
) {
    for precondition in preconditions {
        let fitting = fitting_value(precondition, |side| evaluate(side, values));
        values.extend(fitting);
    }
}

/// A symbol and a value at which the precondition holds, if the precondition fails.
fn fitting_value(
    precondition: &Precondition,
    evaluate: impl Fn(&IndexExpr) -> Option<i64>,
) -> Option<(SymbolId, i64)> {
    let (left, right) = (evaluate(&precondition.left)?, evaluate(&precondition.right)?);
    if precondition.holds_for(left, right) {
        return None;
    }
    let (first, second) = (lone_symbol(&precondition.left), lone_symbol(&precondition.right));
    match (first, second, precondition.op) {
        (Some(symbol), _, BinaryOp::Equal) => Some((symbol, right)),
        (_, Some(symbol), BinaryOp::Equal) => Some((symbol, left)),
        (Some(symbol), _, BinaryOp::Greater | BinaryOp::GreaterEqual) => {
            Some((symbol, right.checked_add(left.max(0))?))
        }
        (_, Some(symbol), BinaryOp::Less | BinaryOp::LessEqual) => {
            Some((symbol, left.checked_add(right.max(0))?))
        }
        _ => {
            let Division { value, divisor, remainder } = precondition.division()?;
            let multiple = evaluate(&value)?.checked_mul(evaluate(&divisor)?)?;
            Some((lone_symbol(&value)?, multiple.checked_add(evaluate(&remainder)?)?))
        }
    }
}

/// The symbol, if the expression is a single symbol.
fn lone_symbol(expr: &IndexExpr) -> Option<SymbolId> {
    match expr.terms() {
        [Term { factors, coefficient: 1 }] if expr.constant_part() == 0 => match factors.as_slice() {
            [Atom::Symbol(symbol)] => Some(*symbol),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::can_prove_nonnegative;

    /// Every symbol is at least 1, and the preconditions hold.
    fn known(preconditions: &[Precondition]) -> Consequences {
        Consequences::new(preconditions, [Some(1); 4].into_iter())
    }

    fn s(id: u32) -> IndexExpr {
        IndexExpr::symbol(SymbolId(id))
    }

    fn compare(left: IndexExpr, op: BinaryOp, right: IndexExpr) -> Precondition {
        Precondition { op, left, right, origin: Origin::default() }
    }

    fn multiple() -> Precondition {
        compare(s(0).modulo(&s(1)), BinaryOp::Equal, IndexExpr::constant(0))
    }

    #[test]
    fn a_multiple_is_its_quotient_times_the_divisor() {
        let whole = s(0).floor_div(&s(1)).mul(&s(1));
        assert_eq!(simplify(&whole, &[multiple()]), s(0));
        assert_eq!(simplify(&whole, &[]), whole);
        let missing = whole.sub(&s(0));
        assert!(can_prove_nonnegative(&missing, &[], &known(&[multiple()])));
        assert!(!can_prove_nonnegative(&missing, &[], &known(&[])));
        // A positive multiple of s1 is at least s1.
        let quotient = s(0).floor_div(&s(1)).offset(-1);
        assert!(can_prove_nonnegative(&quotient, &[], &known(&[multiple()])));
        assert!(!can_prove_nonnegative(&quotient, &[], &known(&[])));
    }

    #[test]
    fn a_remainder_other_than_0_is_subtracted() {
        let odd = compare(s(0).modulo(&IndexExpr::constant(2)), BinaryOp::Equal, IndexExpr::constant(1));
        let whole = s(0).floor_div(&IndexExpr::constant(2)).scale(2);
        assert_eq!(simplify(&whole, &[odd]), s(0).offset(-1));
    }

    #[test]
    fn a_bound_gives_a_least_value() {
        let bounds = [
            compare(s(0), BinaryOp::Greater, IndexExpr::constant(6)),
            compare(IndexExpr::constant(5), BinaryOp::LessEqual, s(0)),
        ];
        let known = Consequences::new(&bounds, [Some(1), None].into_iter());
        assert_eq!(known.least(SymbolId(0)), Some(7));
        assert_eq!(known.least(SymbolId(1)), None);
    }

    #[test]
    fn values_are_changed_until_the_preconditions_hold() {
        let all =
            [multiple(), compare(s(2), BinaryOp::Equal, s(0).offset(1)), compare(s(2), BinaryOp::Less, s(3))];
        let mut values: BTreeMap<SymbolId, i64> = (0..4).map(|at| (SymbolId(at), 3 + at as i64)).collect();
        let evaluate = |side: &IndexExpr, values: &BTreeMap<SymbolId, i64>| {
            side.eval(&mut |atom| match atom {
                Atom::Symbol(symbol) => values.get(symbol).copied(),
                _ => None,
            })
        };
        repair(&all, &mut values, evaluate);
        for own in &all {
            let side = |side| evaluate(side, &values).expect("every symbol has a value");
            assert!(own.holds_for(side(&own.left), side(&own.right)), "{values:?}");
        }
    }
}
