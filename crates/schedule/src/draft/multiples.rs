//! Finds the numbers that a statement requires to be divisible before it reads anything, as in a
//! transposed convolution: `(h - kh) % 2 == 0 ? I((h - kh)/2) * ... : 0`.
//!
//! The quotient of such a number is the same rounded up as rounded down. Rounding up gives the
//! tighter lower bound. Over two rows and two taps the bounds of the quotient are then 0 and 0, not
//! -1 and 0. So the footprint of `I` is as large as the part that is read.

use tilewright_ir::ids::{Ids, InProgram};
use tilewright_ir::index::Term;
use tilewright_ir::interval::{Knowledge, lower_bound, upper_bound};
use tilewright_ir::{Atom, BinaryOp, Expr, ExprKind, IndexExpr, Number};

use super::comparison::conjuncts;

/// A number, and a divisor of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiple<I: Ids = InProgram> {
    /// The number.
    pub number: IndexExpr<I>,
    /// The divisor, at least 2.
    pub divisor: i64,
}

/// The numbers that are checked for divisibility before this value reads anything.
pub(crate) fn multiples<I: Ids>(value: &Expr<I>) -> Vec<Multiple<I>> {
    let ExprKind::Select(arms) = &value.kind else { return Vec::new() };
    let mut always = false;
    [&arms[0], &arms[2]].into_iter().for_each(|arm| arm.visit_reads(&mut |_| always = true));
    match always {
        true => Vec::new(),
        false => conjuncts(&arms[0]).into_iter().filter_map(as_multiple).collect(),
    }
}

/// Matches the condition that a number has no remainder.
fn as_multiple<I: Ids>(condition: &Expr<I>) -> Option<Multiple<I>> {
    let ExprKind::Binary(BinaryOp::Equal, sides) = &condition.kind else { return None };
    let (ExprKind::Index(remainder), ExprKind::Literal(Number::Int(0))) = (&sides[0].kind, &sides[1].kind)
    else {
        return None;
    };
    let ([Term { coefficient: 1, factors }], 0) = (remainder.terms(), remainder.constant_part()) else {
        return None;
    };
    let [Atom::Mod(pair)] = factors.as_slice() else { return None };
    // If the divisor overflowed the type of the comparison, a remainder could be 0 there without
    // being 0.
    let (_, most) = sides[0].dtype.integer_bounds()?;
    let of = pair.1.as_constant().filter(|of| *of > 1 && i128::from(*of) <= most)?;
    Some(Multiple { number: pair.0.clone(), divisor: of })
}

/// Rounds up the quotients of multiples in a subscript, which does not change their values.
pub(crate) fn round_up_quotients<I: Ids>(index: &IndexExpr<I>, multiples: &[Multiple<I>]) -> IndexExpr<I> {
    index.substitute(&mut |atom| {
        let Atom::FloorDiv(pair) = atom else { return None };
        let of = pair.1.as_constant()?;
        let same = |own: &Multiple<I>| own.divisor == of && pair.0.sub(&own.number).is_multiple_of(of);
        multiples.iter().any(same).then(|| pair.0.offset(of - 1).floor_div(&pair.1))
    })
}

/// Replaces the quotients of multiples in a subscript by constants, where they are constant.
pub(crate) fn with_constant_quotients<I: Ids>(
    index: &IndexExpr<I>,
    multiples: &[Multiple<I>],
    known: &dyn Knowledge<I>,
) -> IndexExpr<I> {
    index.substitute(&mut |atom| {
        let Atom::FloorDiv(_) = atom else { return None };
        let own = IndexExpr::atom(atom.clone());
        let low = lower_bound(&round_up_quotients(&own, multiples), known)?;
        (low.as_constant().is_some() && upper_bound(&own, known)? == low).then_some(low)
    })
}
