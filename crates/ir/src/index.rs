//! Defines integer expressions over index variables and sizes, in one normal form.
//!
//! An [`IndexExpr`] is a polynomial: a constant and a sorted list of terms, each an integer times a
//! product of [`Atom`]s. Atoms are the variables, the symbols and the non-polynomial parts: floor
//! division, remainder, minimum, maximum and values read from data. Every constructor brings its
//! result into normal form, so equal subscripts are equal values, and `i + 1 - i` is the constant
//! 1.
//!
//! Arithmetic is exact. A coefficient that overflows 64 bits, or an expression of implausible size,
//! becomes [`Atom::Overflow`], which absorbs everything; the checker turns it into a message.

mod quotient;
mod serial;
mod value_bound;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use crate::expr::{Access, Expr, ExprKind};
use crate::ids::{Ids, InProgram};
use crate::program::SymbolId;
use value_bound::greatest_value;

/// An expression with more terms than this becomes an [`Atom::Overflow`].
const MOST_TERMS: usize = 256;

/// A polynomial with integer coefficients over [`Atom`]s.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(bound = "", into = "serial::Sum<I>", from = "serial::Sum<I>")]
pub struct IndexExpr<I: Ids = InProgram> {
    terms: Vec<Term<I>>,
    constant: i64,
}

/// An integer times a product of atoms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Term<I: Ids = InProgram> {
    /// The factors, sorted; never empty.
    pub factors: SmallVec<[Atom<I>; 1]>,
    /// The coefficient; never zero.
    pub coefficient: i64,
}

/// A factor of a polynomial's terms.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum Atom<I: Ids = InProgram> {
    /// An index variable.
    Var(I::Var),
    /// A size or an integer scalar whose value is not known yet.
    Symbol(SymbolId),
    /// The extent of a dimension of a tensor whose shape is not inferred yet. A checked program
    /// contains none.
    Extent(I::Tensor, u32),
    /// Quotient rounded toward minus infinity.
    FloorDiv(Arc<(IndexExpr<I>, IndexExpr<I>)>),
    /// The remainder that belongs to `FloorDiv`.
    Mod(Arc<(IndexExpr<I>, IndexExpr<I>)>),
    /// The smaller of two expressions.
    Min(Arc<(IndexExpr<I>, IndexExpr<I>)>),
    /// The larger of two expressions.
    Max(Arc<(IndexExpr<I>, IndexExpr<I>)>),
    /// A value that depends on data.
    Data(Arc<Data<I>>),
    /// A number too large to work with.
    Overflow,
}

/// An integer value read or computed from data.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Data<I: Ids = InProgram> {
    /// The value, of an integer type.
    pub value: Expr<I>,
    /// The bounds that a `where` clause declares: the first value, and one past the last.
    pub declared: Option<(IndexExpr<I>, IndexExpr<I>)>,
}

impl<I: Ids> From<&Term<I>> for IndexExpr<I> {
    fn from(term: &Term<I>) -> IndexExpr<I> {
        IndexExpr { terms: vec![term.clone()], constant: 0 }
    }
}

impl<I: Ids> IndexExpr<I> {
    /// A constant expression.
    pub fn constant(constant: i64) -> IndexExpr<I> {
        IndexExpr { terms: Vec::new(), constant }
    }

    /// An expression of one atom.
    pub fn atom(atom: Atom<I>) -> IndexExpr<I> {
        IndexExpr { terms: vec![Term { factors: smallvec![atom], coefficient: 1 }], constant: 0 }
    }

    /// An expression of one variable.
    pub fn var(var: I::Var) -> IndexExpr<I> {
        IndexExpr::atom(Atom::Var(var))
    }

    /// An expression of one size or integer scalar.
    pub fn symbol(symbol: SymbolId) -> IndexExpr<I> {
        IndexExpr::atom(Atom::Symbol(symbol))
    }

    fn overflow() -> IndexExpr<I> {
        IndexExpr::atom(Atom::Overflow)
    }

    /// The terms, sorted by their factors.
    pub fn terms(&self) -> &[Term<I>] {
        &self.terms
    }

    /// The constant part.
    pub fn constant_part(&self) -> i64 {
        self.constant
    }

    /// The value, if the expression is a number.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// The variable, if the expression is a single variable.
    pub fn as_var(&self) -> Option<I::Var> {
        match self.terms.as_slice() {
            [Term { factors, coefficient: 1 }] if self.constant == 0 => match factors.as_slice() {
                [Atom::Var(var)] => Some(*var),
                _ => None,
            },
            _ => None,
        }
    }

    /// Builds the normal form from terms in any order.
    fn from_terms(mut terms: Vec<Term<I>>, constant: i64) -> IndexExpr<I> {
        if terms.iter().any(|term| term.factors.contains(&Atom::Overflow)) {
            return IndexExpr::overflow();
        }
        terms.sort_by(|a, b| a.factors.cmp(&b.factors));
        let mut merged: Vec<Term<I>> = Vec::with_capacity(terms.len());
        for term in terms {
            match merged.last_mut() {
                Some(last) if last.factors == term.factors => {
                    match last.coefficient.checked_add(term.coefficient) {
                        Some(sum) => last.coefficient = sum,
                        None => return IndexExpr::overflow(),
                    }
                }
                _ => merged.push(term),
            }
        }
        merged.retain(|term| term.coefficient != 0);
        if merged.len() > MOST_TERMS {
            return IndexExpr::overflow();
        }
        IndexExpr { terms: merged, constant }
    }

    /// The sum.
    pub fn add(&self, other: &IndexExpr<I>) -> IndexExpr<I> {
        let Some(constant) = self.constant.checked_add(other.constant) else {
            return IndexExpr::overflow();
        };
        if other.terms.is_empty() {
            return IndexExpr { terms: self.terms.clone(), constant };
        }
        IndexExpr::from_terms(self.terms.iter().chain(&other.terms).cloned().collect(), constant)
    }

    /// The sum with a number.
    pub fn offset(&self, by: i64) -> IndexExpr<I> {
        self.add(&IndexExpr::constant(by))
    }

    /// The difference.
    pub fn sub(&self, other: &IndexExpr<I>) -> IndexExpr<I> {
        self.add(&other.scale(-1))
    }

    /// The product with a number.
    pub fn scale(&self, by: i64) -> IndexExpr<I> {
        if by == 0 || self.is_overflow() {
            return self.mul(&IndexExpr::constant(by));
        }
        // Scaling keeps the order of the terms, so they need no sorting.
        let scaled = |term: &Term<I>| {
            Some(Term { factors: term.factors.clone(), coefficient: term.coefficient.checked_mul(by)? })
        };
        let terms: Option<Vec<Term<I>>> = self.terms.iter().map(scaled).collect();
        match (terms, self.constant.checked_mul(by)) {
            (Some(terms), Some(constant)) => IndexExpr { terms, constant },
            _ => IndexExpr::overflow(),
        }
    }

    /// The product.
    pub fn mul(&self, other: &IndexExpr<I>) -> IndexExpr<I> {
        if (self.terms.len() + 1) * (other.terms.len() + 1) > MOST_TERMS {
            return IndexExpr::overflow();
        }
        let Some(constant) = self.constant.checked_mul(other.constant) else {
            return IndexExpr::overflow();
        };
        let mut terms = Vec::new();
        let scaled = |terms: &mut Vec<Term<I>>, from: &[Term<I>], by: i64| {
            for term in from {
                let coefficient = term.coefficient.checked_mul(by)?;
                terms.push(Term { factors: term.factors.clone(), coefficient });
            }
            Some(())
        };
        let fine = scaled(&mut terms, &self.terms, other.constant).is_some()
            && scaled(&mut terms, &other.terms, self.constant).is_some();
        if !fine {
            return IndexExpr::overflow();
        }
        for left in &self.terms {
            for right in &other.terms {
                let Some(coefficient) = left.coefficient.checked_mul(right.coefficient) else {
                    return IndexExpr::overflow();
                };
                let mut factors: SmallVec<[Atom<I>; 1]> =
                    left.factors.iter().chain(&right.factors).cloned().collect();
                factors.sort();
                terms.push(Term { factors, coefficient });
            }
        }
        IndexExpr::from_terms(terms, constant)
    }

    /// The smaller of the two.
    pub fn minimum(&self, other: &IndexExpr<I>) -> IndexExpr<I> {
        match self.compare(other) {
            Some(std::cmp::Ordering::Greater) => other.clone(),
            Some(_) => self.clone(),
            None if self.is_overflow() || other.is_overflow() => IndexExpr::overflow(),
            None => IndexExpr::atom(Atom::Min(Arc::new(ordered_pair(self, other)))),
        }
    }

    /// The larger of the two.
    pub fn maximum(&self, other: &IndexExpr<I>) -> IndexExpr<I> {
        match self.compare(other) {
            Some(std::cmp::Ordering::Less) => other.clone(),
            Some(_) => self.clone(),
            None if self.is_overflow() || other.is_overflow() => IndexExpr::overflow(),
            None => IndexExpr::atom(Atom::Max(Arc::new(ordered_pair(self, other)))),
        }
    }

    /// The order of two expressions whose difference is a number.
    fn compare(&self, other: &IndexExpr<I>) -> Option<std::cmp::Ordering> {
        self.sub(other).as_constant().map(|difference| difference.cmp(&0))
    }

    /// Returns true when a number in the expression overflowed.
    pub fn is_overflow(&self) -> bool {
        matches!(self.terms.as_slice(), [Term { factors, .. }] if factors.as_slice() == [Atom::Overflow])
    }

    /// Splits the expression into `coefficient * atom + rest`, where neither `coefficient` nor
    /// `rest` has `atom` as a factor. Returns `None` if the atom is squared or does not occur.
    pub fn split_on(&self, atom: &Atom<I>) -> Option<(IndexExpr<I>, IndexExpr<I>)> {
        let mut coefficient = Vec::new();
        let mut coefficient_constant = 0i64;
        let mut rest = Vec::new();
        for term in &self.terms {
            let Some(at) = term.factors.iter().position(|factor| factor == atom) else {
                rest.push(term.clone());
                continue;
            };
            let mut others = term.factors.clone();
            others.remove(at);
            if others.contains(atom) {
                return None;
            }
            if others.is_empty() {
                coefficient_constant = term.coefficient;
            } else {
                coefficient.push(Term { factors: others, coefficient: term.coefficient });
            }
        }
        if coefficient.is_empty() && coefficient_constant == 0 {
            return None;
        }
        let coefficient = IndexExpr::from_terms(coefficient, coefficient_constant);
        Some((coefficient, IndexExpr { terms: rest, constant: self.constant }))
    }

    /// Replaces atoms, from the inside out. `replace` receives every atom after the atoms inside it
    /// were replaced, and returns the replacement, if any.
    pub fn substitute(&self, replace: &mut dyn FnMut(&Atom<I>) -> Option<IndexExpr<I>>) -> IndexExpr<I> {
        self.try_substitute(replace).unwrap_or_else(|| self.clone())
    }

    /// Like `substitute`, but returns `None` where nothing is replaced, as in most terms of most
    /// expressions.
    fn try_substitute(
        &self,
        replace: &mut dyn FnMut(&Atom<I>) -> Option<IndexExpr<I>>,
    ) -> Option<IndexExpr<I>> {
        let mut kept = Vec::new();
        let mut changed: Option<IndexExpr<I>> = None;
        for term in &self.terms {
            match term.try_substitute(replace) {
                None => kept.push(term),
                Some(own) => {
                    changed = Some(match changed {
                        None => own,
                        Some(sum) => sum.add(&own),
                    });
                }
            }
        }
        let kept = || IndexExpr { terms: kept.into_iter().cloned().collect(), constant: self.constant };
        changed.map(|changed| kept().add(&changed))
    }

    /// The value, given the values of variables, symbols, extents and data. Returns `None` where a
    /// value is missing or a number overflows 64 bits.
    pub fn eval(&self, leaf: &mut dyn FnMut(&Atom<I>) -> Option<i64>) -> Option<i64> {
        let mut sum = self.constant;
        for term in &self.terms {
            let mut product = term.coefficient;
            for factor in &term.factors {
                product = product.checked_mul(factor.eval(leaf)?)?;
            }
            sum = sum.checked_add(product)?;
        }
        Some(sum)
    }

    /// Calls `visit` on every atom, outermost first, including the atoms inside data and in
    /// declared bounds.
    pub fn visit_atoms<'s>(&'s self, visit: &mut dyn FnMut(&'s Atom<I>)) {
        for term in &self.terms {
            for factor in &term.factors {
                factor.visit(visit);
            }
        }
    }

    /// Calls `each` on every access that the value depends on.
    pub fn visit_reads<'s>(&'s self, each: &mut dyn FnMut(&'s Access<I>)) {
        // `visit` also descends into the subscripts of data, so only the loads of each data value
        // itself are left to find.
        self.visit_atoms(&mut |atom| {
            if let Atom::Data(data) = atom {
                data.value.visit_loads(each);
            }
        });
    }

    /// Changes every access that the value depends on, those inside subscripts first.
    pub fn edit_reads(&mut self, edit: &mut dyn FnMut(&mut Access<I>)) {
        if !self.has_data() {
            return;
        }
        *self = self.substitute(&mut |atom| match atom {
            Atom::Data(data) => {
                let Data { mut value, declared } = Data::clone(data);
                // `substitute` has already changed the loads inside subscripts.
                value.edit_loads(edit);
                Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared }))))
            }
            _ => None,
        });
    }

    /// The variables that occur anywhere in the expression, also inside data.
    pub fn vars(&self) -> BTreeSet<I::Var> {
        let mut vars = BTreeSet::new();
        self.visit_atoms(&mut |atom| {
            if let Atom::Var(var) = atom {
                vars.insert(*var);
            }
        });
        vars
    }

    /// Returns true when the variable occurs anywhere in the expression.
    pub fn mentions(&self, var: I::Var) -> bool {
        self.any_atom(&mut |atom| *atom == Atom::Var(var))
    }

    /// Returns true when the value depends on data.
    pub fn has_data(&self) -> bool {
        self.any_atom(&mut |atom| matches!(atom, Atom::Data(_)))
    }

    /// The conditions that `where` clauses declare for the data in this subscript, as expressions
    /// that are at least 0. Conditions that a check of the subscript against `0..extent` already
    /// implies are left out.
    pub fn declared_conditions(&self, extent: i64) -> Vec<IndexExpr<I>> {
        let mut conditions = Vec::new();
        self.visit_atoms(&mut |atom| {
            let Atom::Data(data) = atom else { return };
            let Some((low, end)) = &data.declared else { return };
            let value = IndexExpr::atom(atom.clone());
            let is_whole = *self == value;
            if !(is_whole && low.as_constant().is_some_and(|low| low <= 0)) {
                conditions.push(value.sub(low));
            }
            if !(is_whole && end.as_constant().is_some_and(|end| end >= extent)) {
                conditions.push(end.sub(&value).sub(&IndexExpr::constant(1)));
            }
        });
        conditions
    }

    /// Returns true when some atom anywhere in the expression satisfies the predicate.
    pub fn any_atom(&self, test: &mut dyn FnMut(&Atom<I>) -> bool) -> bool {
        let mut found = false;
        self.visit_atoms(&mut |atom| found = found || test(atom));
        found
    }
}

impl<I: Ids> Term<I> {
    /// The product with atoms replaced, or `None` where none is replaced.
    fn try_substitute(
        &self,
        replace: &mut dyn FnMut(&Atom<I>) -> Option<IndexExpr<I>>,
    ) -> Option<IndexExpr<I>> {
        let mut kept = SmallVec::new();
        let mut changed: Option<IndexExpr<I>> = None;
        for factor in &self.factors {
            match factor.try_substitute(replace) {
                None => kept.push(factor.clone()),
                Some(own) => {
                    changed = Some(match changed {
                        None => own,
                        Some(product) => product.mul(&own),
                    });
                }
            }
        }
        let changed = changed?;
        if kept.is_empty() {
            return Some(changed.scale(self.coefficient));
        }
        Some(changed.mul(&IndexExpr::from(&Term { factors: kept, coefficient: self.coefficient })))
    }
}

impl<I: Ids> Atom<I> {
    /// The replacement of the atom, or `None` where it stays unchanged.
    fn try_substitute(
        &self,
        replace: &mut dyn FnMut(&Atom<I>) -> Option<IndexExpr<I>>,
    ) -> Option<IndexExpr<I>> {
        let mut both = |pair: &(IndexExpr<I>, IndexExpr<I>)| match (
            pair.0.try_substitute(replace),
            pair.1.try_substitute(replace),
        ) {
            (None, None) => None,
            (left, right) => {
                Some((left.unwrap_or_else(|| pair.0.clone()), right.unwrap_or_else(|| pair.1.clone())))
            }
        };
        let rebuilt = match self {
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => None,
            Atom::FloorDiv(pair) => both(pair).map(|(value, by)| value.floor_div(&by)),
            Atom::Mod(pair) => both(pair).map(|(value, by)| value.modulo(&by)),
            Atom::Min(pair) => both(pair).map(|(left, right)| left.minimum(&right)),
            Atom::Max(pair) => both(pair).map(|(left, right)| left.maximum(&right)),
            Atom::Data(data) => {
                let mut value = data.value.clone();
                value.map_indices(&mut |index| index.substitute(replace));
                let declared = data
                    .declared
                    .as_ref()
                    .map(|(low, high)| (low.substitute(replace), high.substitute(replace)));
                Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared }))))
            }
        };
        let Some(rebuilt) = rebuilt else { return replace(self) };
        Some(match rebuilt.terms.as_slice() {
            [Term { factors, coefficient: 1 }] if rebuilt.constant == 0 && factors.len() == 1 => {
                let atom = &factors[0];
                if matches!(atom, Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..)) {
                    return Some(rebuilt);
                }
                replace(atom).unwrap_or(rebuilt)
            }
            _ => rebuilt,
        })
    }

    fn eval(&self, leaf: &mut dyn FnMut(&Atom<I>) -> Option<i64>) -> Option<i64> {
        Some(match self {
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Data(_) => leaf(self)?,
            Atom::FloorDiv(pair) => floor_div(pair.0.eval(leaf)?, pair.1.eval(leaf)?)?,
            Atom::Mod(pair) => floor_mod(pair.0.eval(leaf)?, pair.1.eval(leaf)?),
            Atom::Min(pair) => pair.0.eval(leaf)?.min(pair.1.eval(leaf)?),
            Atom::Max(pair) => pair.0.eval(leaf)?.max(pair.1.eval(leaf)?),
            Atom::Overflow => return None,
        })
    }

    fn visit<'s>(&'s self, visit: &mut dyn FnMut(&'s Atom<I>)) {
        visit(self);
        match self {
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                pair.0.visit_atoms(visit);
                pair.1.visit_atoms(visit);
            }
            Atom::Data(data) => {
                visit_expr(&data.value, visit);
                for bound in data.declared.iter().flat_map(|(from, to)| [from, to]) {
                    bound.visit_atoms(visit);
                }
            }
            _ => {}
        }
    }
}

fn visit_expr<'s, I: Ids>(expr: &'s Expr<I>, visit: &mut dyn FnMut(&'s Atom<I>)) {
    match &expr.kind {
        ExprKind::Index(index) => index.visit_atoms(visit),
        ExprKind::Load(access) => access.indices.iter().for_each(|index| index.visit_atoms(visit)),
        _ => expr.operands().iter().for_each(|operand| visit_expr(operand, visit)),
    }
}

impl<I: Ids> Data<I> {
    /// The bounds that are known without reading the data: the declared ones, those of a narrow
    /// unsigned type, or those that operators such as `&` give. The pair is the first value, and
    /// one past the last.
    pub fn bounds(&self) -> Option<(IndexExpr<I>, IndexExpr<I>)> {
        if self.declared.is_some() {
            return self.declared.clone();
        }
        let greatest = greatest_value(&self.value)?;
        Some((IndexExpr::constant(0), IndexExpr::constant(greatest + 1)))
    }
}

fn ordered_pair<I: Ids>(left: &IndexExpr<I>, right: &IndexExpr<I>) -> (IndexExpr<I>, IndexExpr<I>) {
    if left <= right { (left.clone(), right.clone()) } else { (right.clone(), left.clone()) }
}

/// The quotient rounded toward minus infinity. Division by zero returns 0; `None` means that the
/// quotient overflows 64 bits.
pub fn floor_div(value: i64, by: i64) -> Option<i64> {
    if by == 0 {
        return Some(0);
    }
    let quotient = value.checked_div(by)?;
    Some(if value % by != 0 && (value < 0) != (by < 0) { quotient - 1 } else { quotient })
}

/// The remainder with the sign of the divisor. A zero divisor returns 0.
pub fn floor_mod(value: i64, by: i64) -> i64 {
    if by == 0 {
        return 0;
    }
    let remainder = value.checked_rem(by).unwrap_or(0);
    if remainder != 0 && (remainder < 0) != (by < 0) { remainder + by } else { remainder }
}

/// The largest number that divides both; 0 only where both are 0.
pub fn greatest_common_divisor(left: i64, right: i64) -> i64 {
    match right {
        0 => left.saturating_abs(),
        _ => greatest_common_divisor(right, left.wrapping_rem(right)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::VarId;

    fn i() -> IndexExpr {
        IndexExpr::var(VarId(0))
    }
    fn n() -> IndexExpr {
        IndexExpr::symbol(SymbolId(0))
    }
    fn c(value: i64) -> IndexExpr {
        IndexExpr::constant(value)
    }

    #[test]
    fn a_number_less_its_remainder_is_a_multiple() {
        let (x, two) = (i().offset(1), c(2));
        let even = x.sub(&x.modulo(&two));
        assert_eq!(even.floor_div(&two), x.floor_div(&two));
        assert_eq!(even.modulo(&two), c(0));
        // An expression in which nothing cancels does not change.
        let sum = n().add(&x.modulo(&two));
        assert_eq!(sum.floor_div(&two), IndexExpr::atom(Atom::FloorDiv(Arc::new((sum, two)))));
    }

    #[test]
    fn multiples_are_recognised() {
        let multiple = |expr: &IndexExpr| expr.is_multiple_of(4);
        let eights = i().scale(8).offset(4);
        assert!(multiple(&eights) && !multiple(&i()) && !multiple(&eights.offset(2)));
        // The remainder, the minimum and the maximum of multiples are multiples.
        assert!(multiple(&eights.modulo(&c(12))) && !multiple(&eights.modulo(&c(10))));
        assert!(multiple(&eights.minimum(&n().scale(4)).sub(&i().scale(4))));
        assert!(!multiple(&eights.minimum(&n())) && !multiple(&n().maximum(&eights)));
        // The coefficient alone can make the whole expression a multiple.
        assert!(multiple(&i().maximum(&n()).scale(4)) && !multiple(&i().maximum(&n()).scale(2)));
        assert_eq!((greatest_common_divisor(12, -8), greatest_common_divisor(0, -5)), (4, 5));
    }

    #[test]
    fn quotients_and_remainders_that_belong_together_cancel() {
        let (x, by) = (i().scale(16).add(&n()), c(12));
        let (quotient, remainder) = (x.floor_div(&by), x.modulo(&by));
        assert_eq!(quotient.scale(12).add(&remainder).merge_quotients(), x);
        // Three dimensions, 5 x 12 x 12, and the same expression with all strides doubled.
        let (plane, row) = (quotient.floor_div(&by), quotient.modulo(&by));
        let place = plane.scale(144).add(&row.scale(12)).add(&remainder);
        assert_eq!(place.scale(2).offset(7).merge_quotients(), x.scale(2).offset(7));
        // This quotient and this remainder do not belong together.
        let other = quotient.scale(13).add(&remainder);
        assert_eq!(other.merge_quotients(), other);
    }

    #[test]
    fn equal_expressions_have_one_form() {
        assert_eq!(i().add(&c(1)).sub(&i()), c(1));
        assert_eq!(i().add(&n()), n().add(&i()));
        assert_eq!(i().add(&n()).mul(&c(2)), i().scale(2).add(&n().scale(2)));
    }

    #[test]
    fn multiples_leave_a_division() {
        assert_eq!(i().scale(2).offset(3).floor_div(&c(2)), i().offset(1));
        assert_eq!(i().scale(2).offset(3).modulo(&c(2)), c(1));
        assert_eq!(n().mul(&i()).floor_div(&n()), i());
        // A variable may be 0, and then the quotient is 0.
        assert_eq!(i().floor_div(&i()).eval(&mut |_| Some(0)), Some(0));
        assert_eq!(n().mul(&i()).floor_div(&i()).eval(&mut |_| Some(0)), Some(0));
        assert!(i().mul(&c(i64::MIN)).floor_div(&c(-1)).eval(&mut |_| Some(1)).is_none());
        assert_eq!(c(-7).floor_div(&c(2)), c(-4));
        assert_eq!(c(-7).modulo(&c(2)), c(1));
        assert_eq!(i().offset(-1).floor_div(&c(2)).eval(&mut |_| Some(0)), Some(-1));
    }

    #[test]
    fn min_and_max_fold_when_the_difference_is_known() {
        assert_eq!(n().minimum(&n().offset(-1)), n().offset(-1));
        assert_eq!(n().maximum(&n().offset(-1)), n());
        assert_eq!(n().minimum(&i()), i().minimum(&n()));
    }

    #[test]
    fn overflow_absorbs() {
        let huge = c(i64::MAX).mul(&i()).mul(&c(3));
        assert!(huge.is_overflow());
        assert!(huge.add(&n()).floor_div(&c(2)).is_overflow());
        assert!(huge.minimum(&n()).is_overflow() && n().maximum(&huge).is_overflow());
        assert_eq!(n().mul(&n()).eval(&mut |_| Some(1 << 40)), None);
    }

    #[test]
    fn substitution_reaches_inside_divisions() {
        let half = i().floor_div(&c(2)).add(&n());
        let at_five = half.substitute(&mut |atom| (*atom == Atom::Var(VarId(0))).then(|| c(5)));
        assert_eq!(at_five, n().offset(2));
    }

    #[test]
    fn substitution_preserves_the_value() {
        let j = IndexExpr::var(VarId(1));
        // n*i + 3*(i + j)/4 - min(i, n*j) + 2*j + 1, with i = 2*j + 1.
        let expr = n().mul(&i()).add(&i().add(&j).floor_div(&c(4)).scale(3));
        let expr = expr.sub(&i().minimum(&n().mul(&j))).add(&j.scale(2)).offset(1);
        assert_eq!(expr.substitute(&mut |_| None), expr);
        let other = j.scale(2).offset(1);
        let replaced = expr.substitute(&mut |atom| (*atom == Atom::Var(VarId(0))).then(|| other.clone()));
        assert!(!replaced.mentions(VarId(0)));
        for (at_j, at_n) in [(0, 1), (3, 7), (-2, 5)] {
            let value = |at_i: i64| {
                move |atom: &Atom| match atom {
                    Atom::Var(VarId(0)) => Some(at_i),
                    Atom::Var(_) => Some(at_j),
                    _ => Some(at_n),
                }
            };
            let meant = expr.eval(&mut value(2 * at_j + 1));
            assert!(meant.is_some());
            assert_eq!(replaced.eval(&mut value(99)), meant);
        }
    }
}
