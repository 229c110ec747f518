//! Simplifies quotients and remainders in index expressions. Multiples of a divisor leave the
//! division, and a quotient and a remainder of the same division cancel.

use std::sync::Arc;

use smallvec::smallvec;

use super::{Atom, IndexExpr, Term, floor_div, floor_mod};
use crate::ids::Ids;

impl<I: Ids> IndexExpr<I> {
    /// The quotient rounded toward minus infinity. Multiples of the divisor leave the division:
    /// `(2*i + 3) / 2` is `i + 1`, and `(s*i + j) / s` is `i + j/s`. Division by zero gives 0.
    pub fn floor_div(&self, divisor: &IndexExpr<I>) -> IndexExpr<I> {
        if divisor.is_overflow() || self.is_overflow() {
            return IndexExpr::overflow();
        }
        match divisor.as_constant() {
            Some(0) => return IndexExpr::constant(0),
            Some(1) => return self.clone(),
            _ => {}
        }
        let (whole, rest) = self.split_multiples(divisor);
        let quotient = match (rest.as_constant(), divisor.as_constant()) {
            (Some(value), Some(by)) => match floor_div(value, by) {
                Some(quotient) => IndexExpr::constant(quotient),
                None => IndexExpr::overflow(),
            },
            (Some(0), None) => IndexExpr::constant(0),
            _ => IndexExpr::atom(Atom::FloorDiv(Arc::new((rest, divisor.clone())))),
        };
        whole.add(&quotient)
    }

    /// The remainder that belongs to [`IndexExpr::floor_div`]. A zero divisor gives 0.
    pub fn modulo(&self, divisor: &IndexExpr<I>) -> IndexExpr<I> {
        if divisor.is_overflow() || self.is_overflow() {
            return IndexExpr::overflow();
        }
        if matches!(divisor.as_constant(), Some(0 | 1)) {
            return IndexExpr::constant(0);
        }
        let (_, rest) = self.split_multiples(divisor);
        match (rest.as_constant(), divisor.as_constant()) {
            (Some(value), Some(by)) => IndexExpr::constant(floor_mod(value, by)),
            (Some(0), None) => IndexExpr::constant(0),
            _ => IndexExpr::atom(Atom::Mod(Arc::new((rest, divisor.clone())))),
        }
    }

    /// Returns true when the value is a multiple of `number` for all values of its variables.
    pub fn is_multiple_of(&self, number: i64) -> bool {
        let multiple = |term: &Term<I>| {
            term.coefficient % number == 0
                || term.factors.iter().any(|factor| match factor {
                    // The remainder of a multiple divided by a multiple is a multiple too.
                    Atom::Mod(pair) => {
                        let scaled = pair.0.scale(term.coefficient);
                        let by = pair.1.scale(term.coefficient);
                        scaled.is_multiple_of(number) && by.is_multiple_of(number)
                    }
                    Atom::Min(pair) | Atom::Max(pair) => [&pair.0, &pair.1]
                        .iter()
                        .all(|side| side.scale(term.coefficient).is_multiple_of(number)),
                    _ => false,
                })
        };
        self.constant_part() % number == 0 && self.terms().iter().all(multiple)
    }

    /// Merges quotients and remainders of the same division: `12*(x/12) + x%12` is `x`. Fused loops
    /// have such subscripts, and the parts cancel where the dimensions are adjacent in memory.
    pub fn merge_quotients(&self) -> IndexExpr<I> {
        let mut sum = self.clone();
        while let Some(next) = sum.merge_one_quotient() {
            sum = next;
        }
        sum
    }

    /// Merges one quotient with its remainder, if the expression contains such a pair.
    fn merge_one_quotient(&self) -> Option<IndexExpr<I>> {
        let remainders = self.terms.iter().filter_map(|term| match term.factors.as_slice() {
            [Atom::Mod(pair)] => Some((pair, term)),
            _ => None,
        });
        remainders.into_iter().find_map(|(pair, remainder)| {
            let quotient = Term {
                factors: smallvec![Atom::FloorDiv(Arc::clone(pair))],
                coefficient: remainder.coefficient.checked_mul(pair.1.as_constant()?)?,
            };
            let both = IndexExpr::from_terms(vec![quotient.clone(), remainder.clone()], 0);
            self.terms.contains(&quotient).then(|| self.sub(&both).add(&pair.0.scale(remainder.coefficient)))
        })
    }

    /// Splits the expression into `divisor * whole + rest`, moving obvious multiples of the divisor
    /// into `whole`. Variables may be 0, so only numbers, sizes and scalars are cancelled; sizes
    /// and scalars are positive where they divide.
    fn split_multiples(&self, divisor: &IndexExpr<I>) -> (IndexExpr<I>, IndexExpr<I>) {
        let nothing = (IndexExpr::constant(0), self.clone());
        match (divisor.as_constant(), divisor.terms.as_slice()) {
            (Some(by), _) => {
                let (whole, rest) = self.split_number(by).unwrap_or(nothing);
                rest.without_remainders(by)
                    .map_or((whole.clone(), rest), |(more, rest)| (whole.add(&more), rest))
            }
            (None, [Term { factors, coefficient: 1 }]) if divisor.constant == 0 => match factors.as_slice() {
                [by @ (Atom::Symbol(_) | Atom::Extent(..))] => self.split_factor(by),
                _ => nothing,
            },
            _ => nothing,
        }
    }

    fn split_number(&self, by: i64) -> Option<(IndexExpr<I>, IndexExpr<I>)> {
        let mut whole = Vec::new();
        let mut rest = Vec::new();
        for term in &self.terms {
            if term.coefficient.checked_rem(by)? == 0 {
                let coefficient = term.coefficient.checked_div(by)?;
                whole.push(Term { factors: term.factors.clone(), coefficient });
            } else {
                rest.push(term.clone());
            }
        }
        let quotient = floor_div(self.constant, by)?;
        let remainder = floor_mod(self.constant, by);
        Some((IndexExpr::from_terms(whole, quotient), IndexExpr::from_terms(rest, remainder)))
    }

    /// Splits the expression into `by * whole + rest` by the identity `x % by = x - by*(x/by)`,
    /// where that leaves fewer terms: `x - x%2` is twice `x/2`.
    fn without_remainders(&self, by: i64) -> Option<(IndexExpr<I>, IndexExpr<I>)> {
        let (mut whole, mut rest) = (IndexExpr::constant(0), self.clone());
        for term in &self.terms {
            if let [Atom::Mod(pair)] = term.factors.as_slice()
                && pair.1.as_constant() == Some(by)
            {
                let quotient = IndexExpr::atom(Atom::FloorDiv(Arc::clone(pair)));
                whole = whole.sub(&quotient.scale(term.coefficient));
                rest = rest.sub(&IndexExpr::from(term)).add(&pair.0.scale(term.coefficient));
            }
        }
        let (more, rest) = rest.split_number(by)?;
        (rest.terms.len() < self.terms.len()).then(|| (whole.add(&more), rest))
    }

    fn split_factor(&self, by: &Atom<I>) -> (IndexExpr<I>, IndexExpr<I>) {
        let mut whole = IndexExpr::constant(0);
        let mut rest = Vec::new();
        for term in &self.terms {
            match term.factors.iter().position(|factor| factor == by) {
                Some(at) => {
                    let mut others = term.factors.clone();
                    others.remove(at);
                    let quotient = match others.is_empty() {
                        true => IndexExpr::constant(term.coefficient),
                        false => IndexExpr::from_terms(
                            vec![Term { factors: others, coefficient: term.coefficient }],
                            0,
                        ),
                    };
                    whole = whole.add(&quotient);
                }
                None => rest.push(term.clone()),
            }
        }
        (whole, IndexExpr::from_terms(rest, self.constant))
    }
}
