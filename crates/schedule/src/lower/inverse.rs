//! Finds the values of loops at an element of a tensor, from the subscripts by which a statement in
//! these loops names the element.
//!
//! Subscripts are loops, or made of fused and split loops: `16*o + t/16, t % 16` names the element
//! `(x, y)` in the iteration `o = x/16`, `t = 16*(x % 16) + y`.

use tilewright_ir::Term;
use tilewright_ir::nest::{Atom, IndexExpr};

use crate::draft::simplify::Ranges;

/// Values of loops, and of parts of subscripts, at an element.
pub(super) struct Inverse {
    known: Vec<(IndexExpr, IndexExpr)>,
}

impl Inverse {
    /// The values that the subscripts of an element determine. `ranges` are those of the loops.
    pub fn of(subscripts: &[IndexExpr], element: &[IndexExpr], ranges: &Ranges) -> Inverse {
        let mut known: Vec<(IndexExpr, IndexExpr)> =
            subscripts.iter().cloned().zip(element.iter().cloned()).collect();
        let mut at = 0;
        while at < known.len() {
            let (subscript, value) = known[at].clone();
            known.extend(parts(&subscript, &value, ranges).into_iter().flatten());
            at += 1;
        }
        Inverse { known }
    }

    /// An expression of the loops as one of the element. Unknown parts stay as they are.
    pub fn rewrite(&self, index: &IndexExpr) -> IndexExpr {
        index.substitute(&mut |atom: &Atom| self.value(&IndexExpr::atom(atom.clone())))
    }

    fn value(&self, wanted: &IndexExpr) -> Option<IndexExpr> {
        if let Some((_, value)) = self.known.iter().find(|(own, _)| own == wanted) {
            return Some(value.clone());
        }
        // From the quotient and the remainder by the same number.
        self.known.iter().find_map(|(own, value)| {
            let [Term { factors, coefficient: 1 }] = own.terms() else { return None };
            let [Atom::Mod(pair)] = factors.as_slice() else { return None };
            if pair.0 != *wanted || own.constant_part() != 0 {
                return None;
            }
            let quotient = self.value(&wanted.floor_div(&pair.1))?;
            Some(quotient.mul(&pair.1).add(value))
        })
    }
}

/// Splits `c*a + rest`, with `rest` in `0..c`, into `a` and `rest`.
fn parts(subscript: &IndexExpr, value: &IndexExpr, ranges: &Ranges) -> Option<[(IndexExpr, IndexExpr); 2]> {
    subscript.terms().iter().find_map(|term| {
        let [factor] = term.factors.as_slice() else { return None };
        let factor = IndexExpr::atom(factor.clone());
        let count = IndexExpr::constant(term.coefficient);
        let rest = subscript.sub(&factor.mul(&count));
        let fits = term.coefficient > 1
            && ranges.never_negative(&rest)
            && ranges.greatest_value(&rest).is_some_and(|most| most < term.coefficient);
        fits.then(|| [(factor, value.floor_div(&count)), (rest, value.modulo(&count))])
    })
}

#[cfg(test)]
mod tests {
    use tilewright_ir::nest::LoopVarId;

    use super::*;

    #[test]
    fn loops_are_found_from_the_subscripts_of_fused_and_split_loops() {
        let [outer, thread] = [0, 1].map(|at| IndexExpr::var(LoopVarId(at)));
        let sixteen = IndexExpr::constant(16);
        let mut ranges = Ranges::default();
        ranges.add_loop(LoopVarId(0), &IndexExpr::constant(5));
        ranges.add_loop(LoopVarId(1), &IndexExpr::constant(256));
        let subscripts = [outer.mul(&sixteen).add(&thread.floor_div(&sixteen)), thread.modulo(&sixteen)];
        for (o, t) in [(0, 0), (2, 37), (4, 255)] {
            let element = [IndexExpr::constant(16 * o + t / 16), IndexExpr::constant(t % 16)];
            let known = Inverse::of(&subscripts, &element, &ranges);
            assert_eq!([&outer, &thread].map(|own| known.rewrite(own).as_constant()), [Some(o), Some(t)]);
        }
        // Nothing tells these loops apart.
        let sum = [outer.add(&thread)];
        let known = Inverse::of(&sum, &[IndexExpr::constant(7)], &ranges);
        assert_eq!(known.rewrite(&outer), outer);
    }
}
