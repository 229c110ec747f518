//! Computes lower and upper bounds of index expressions over boxes of variables. The bounds are
//! expressions of the sizes.

use super::End;
use crate::ids::{Ids, InProgram};
use crate::index::{Atom, IndexExpr, Term};
use crate::program::{Range, SymbolId};

/// The known ranges of variables and least values of symbols.
pub trait Knowledge<I: Ids = InProgram> {
    /// The range of a variable; with `None` the variable stays in the bounds.
    fn range(&self, var: I::Var) -> Option<Range<I>>;
    /// The least value of a symbol, if it has one.
    fn least(&self, symbol: SymbolId) -> Option<i64>;
    /// Expressions that are never negative, from the preconditions of a program.
    fn facts(&self) -> &[IndexExpr<I>] {
        &[]
    }
}

/// The least value of `expr` over the box, or `None` where no bound can be expressed.
pub fn lower_bound<I: Ids>(expr: &IndexExpr<I>, known: &dyn Knowledge<I>) -> Option<IndexExpr<I>> {
    bound(expr, known, End::Low)
}

/// The greatest value of `expr` over the box, or `None` where no bound can be expressed.
pub fn upper_bound<I: Ids>(expr: &IndexExpr<I>, known: &dyn Knowledge<I>) -> Option<IndexExpr<I>> {
    bound(expr, known, End::High)
}

fn bound<I: Ids>(expr: &IndexExpr<I>, known: &dyn Knowledge<I>, end: End) -> Option<IndexExpr<I>> {
    // A variable in several terms, as in `N*i - i`, is bounded once, with its whole coefficient.
    if let Some((coefficient, rest, range)) = symbolic_coefficient(expr, known) {
        let (from, to) = (coefficient.mul(&range.from), coefficient.mul(&range.to.offset(-1)));
        let value = match (
            end,
            is_nonnegative_by_least_values(&coefficient, known),
            is_nonnegative_by_least_values(&coefficient.scale(-1), known),
        ) {
            (End::High, true, _) | (End::Low, _, true) => to,
            (End::Low, true, _) | (End::High, _, true) => from,
            (End::High, ..) => from.maximum(&to),
            (End::Low, ..) => from.minimum(&to),
        };
        return bound(&rest.add(&value), known, end);
    }
    let mut sum = IndexExpr::constant(expr.constant_part());
    for term in expr.terms() {
        sum = sum.add(&bound_term(term, known, end)?);
    }
    Some(sum)
}

/// Finds a variable of the box with a coefficient that is not a number, such as `N` or `N - 1`. The
/// coefficient is fixed over the box, and the variable occurs nowhere else. Returns the
/// coefficient, the remaining terms and the variable's range.
fn symbolic_coefficient<I: Ids>(
    expr: &IndexExpr<I>,
    known: &dyn Knowledge<I>,
) -> Option<(IndexExpr<I>, IndexExpr<I>, Range<I>)> {
    let vars = expr.terms().iter().flat_map(|term| &term.factors).filter_map(|factor| match factor {
        Atom::Var(var) => Some((*var, known.range(*var)?)),
        _ => None,
    });
    vars.into_iter().find_map(|(var, range)| {
        let (coefficient, rest) = expr.split_on(&Atom::Var(var))?;
        let fixed =
            coefficient.terms().iter().flat_map(|term| &term.factors).all(|factor| !varies(factor, known));
        let plain = coefficient.terms().is_empty();
        (fixed && !plain && !rest.mentions(var)).then_some((coefficient, rest, range))
    })
}

fn bound_term<I: Ids>(term: &Term<I>, known: &dyn Knowledge<I>, end: End) -> Option<IndexExpr<I>> {
    let end = if term.coefficient < 0 { end.flip() } else { end };
    let fixed = |atom: &Atom<I>| !varies(atom, known);
    if term.factors.iter().all(fixed) {
        let mut product = IndexExpr::constant(term.coefficient);
        for factor in &term.factors {
            product = product.mul(&IndexExpr::atom(factor.clone()));
        }
        return Some(product);
    }
    // If every other factor is non-negative, the product of the bounds bounds the product.
    let several = term.factors.len() > 1;
    let mut product = IndexExpr::constant(term.coefficient);
    for factor in &term.factors {
        let value = if fixed(factor) {
            IndexExpr::atom(factor.clone())
        } else {
            if several {
                let low = bound_atom(factor, known, End::Low)?;
                if !is_nonnegative_by_least_values(&low, known)
                    && term.factors.iter().filter(|f| !fixed(f)).count() > 1
                {
                    return None;
                }
            }
            bound_atom(factor, known, end)?
        };
        if several && fixed(factor) && !is_nonnegative_by_least_values(&value, known) {
            return None;
        }
        product = product.mul(&value);
    }
    Some(product)
}

/// Returns true when the atom's value changes over the box, or depends on data.
fn varies<I: Ids>(atom: &Atom<I>, known: &dyn Knowledge<I>) -> bool {
    match atom {
        Atom::Var(var) => known.range(*var).is_some(),
        Atom::Symbol(_) | Atom::Extent(..) => false,
        Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => [&pair.0, &pair.1]
            .iter()
            .any(|side| side.terms().iter().flat_map(|t| &t.factors).any(|f| varies(f, known))),
        Atom::Data(_) | Atom::Overflow => true,
    }
}

fn bound_atom<I: Ids>(atom: &Atom<I>, known: &dyn Knowledge<I>, end: End) -> Option<IndexExpr<I>> {
    match atom {
        Atom::Var(var) => known.range(*var).map(|range| match end {
            End::Low => range.from,
            End::High => range.to.offset(-1),
        }),
        Atom::FloorDiv(pair) => {
            // The quotient is monotone in the dividend where the divisor is positive and fixed.
            let by = fixed_positive(&pair.1, known)?;
            Some(bound(&pair.0, known, end)?.floor_div(&by))
        }
        Atom::Mod(pair) => {
            let by = fixed_positive(&pair.1, known)?;
            Some(match end {
                End::Low => IndexExpr::constant(0),
                End::High => by.offset(-1),
            })
        }
        Atom::Min(pair) => bound_min_or_max(&pair.0, &pair.1, known, end, End::High, IndexExpr::minimum),
        Atom::Max(pair) => bound_min_or_max(&pair.0, &pair.1, known, end, End::Low, IndexExpr::maximum),
        Atom::Data(data) => {
            let (from, to) = data.bounds()?;
            Some(match end {
                End::Low => from,
                End::High => to.offset(-1),
            })
        }
        Atom::Symbol(_) | Atom::Extent(..) => Some(IndexExpr::atom(atom.clone())),
        Atom::Overflow => None,
    }
}

/// The bound of a minimum or maximum. At the end `enough`, the bound of one operand suffices where
/// the other operand has none.
fn bound_min_or_max<I: Ids>(
    left: &IndexExpr<I>,
    right: &IndexExpr<I>,
    known: &dyn Knowledge<I>,
    end: End,
    sufficient_end: End,
    join: fn(&IndexExpr<I>, &IndexExpr<I>) -> IndexExpr<I>,
) -> Option<IndexExpr<I>> {
    match (bound(left, known, end), bound(right, known, end)) {
        (Some(left), Some(right)) => Some(join(&left, &right)),
        (Some(one), None) | (None, Some(one)) if end == sufficient_end => Some(one),
        _ => None,
    }
}

fn fixed_positive<I: Ids>(divisor: &IndexExpr<I>, known: &dyn Knowledge<I>) -> Option<IndexExpr<I>> {
    let fixed = divisor.terms().iter().flat_map(|term| &term.factors).all(|factor| !varies(factor, known));
    (fixed && is_nonnegative_by_least_values(&divisor.offset(-1), known)).then(|| divisor.clone())
}

/// Returns true when the least values of the symbols alone make the expression non-negative. Each
/// symbol `s` becomes `least + s'`, and no coefficient of the expansion may be negative. A quotient
/// such as `(N + 1)/2` and a maximum are replaced first. Other quotients of sizes are at least 0.
pub fn is_nonnegative_by_least_values<I: Ids>(expr: &IndexExpr<I>, known: &dyn Knowledge<I>) -> bool {
    let mut factors = expr.terms().iter().flat_map(|term| &term.factors);
    match factors.find(|factor| matches!(factor, Atom::FloorDiv(_) | Atom::Max(_))) {
        Some(atom) if is_nonnegative_without(atom, expr, known) => true,
        _ => is_nonnegative_polynomial(expr, known),
    }
}

/// Replaces a quotient or maximum with a positive factor by expressions without it. `floor(v/b) +
/// r` is not negative exactly if `v + r*b` is not, for a positive number `b`; `c*floor(v/b) + r` is
/// not if `c*(v - b + 1) + r*b` is not.
fn is_nonnegative_without<I: Ids>(atom: &Atom<I>, expr: &IndexExpr<I>, known: &dyn Knowledge<I>) -> bool {
    let Some((coefficient, rest)) = expr.split_on(atom) else { return false };
    let Some(times) = coefficient.as_constant().filter(|times| *times > 0) else { return false };
    match atom {
        Atom::FloorDiv(pair) => {
            // The least product of the quotient and the divisor, which is exact for the factor 1.
            let least = if times == 1 { pair.0.clone() } else { pair.0.sub(&pair.1).offset(1) };
            let is_nonnegative = |expr: &IndexExpr<I>| is_nonnegative_by_least_values(expr, known);
            // A quotient of at least 1 bounds small sums better.
            let is_at_least_one = || is_nonnegative(&pair.0.sub(&pair.1));
            pair.1.as_constant().is_some_and(|by| by > 0)
                && (is_nonnegative(&least.scale(times).add(&rest.mul(&pair.1)))
                    || (times > 1 && is_nonnegative(&rest.offset(times)) && is_at_least_one()))
        }
        Atom::Max(pair) => [&pair.0, &pair.1]
            .into_iter()
            .any(|side| is_nonnegative_by_least_values(&side.scale(times).add(&rest), known)),
        _ => false,
    }
}

fn is_nonnegative_polynomial<I: Ids>(expr: &IndexExpr<I>, known: &dyn Knowledge<I>) -> bool {
    let unknown = |atom: &Atom<I>| match atom {
        Atom::Symbol(_) | Atom::Extent(..) => false,
        Atom::FloorDiv(_) | Atom::Mod(_) => !is_nonnegative_quotient(atom, known),
        _ => true,
    };
    if expr.terms().iter().flat_map(|term| &term.factors).any(unknown) {
        return false;
    }
    let mut bounded = true;
    let shifted = expr.substitute(&mut |atom| match atom {
        Atom::Symbol(symbol) => match known.least(*symbol) {
            Some(least) => Some(IndexExpr::symbol(*symbol).offset(least)),
            None => {
                bounded = false;
                None
            }
        },
        Atom::Extent(..) => Some(IndexExpr::atom(atom.clone()).offset(1)),
        Atom::FloorDiv(_) | Atom::Mod(_) => Some(IndexExpr::atom(atom.clone())),
        _ => {
            bounded = false;
            None
        }
    });
    bounded && shifted.constant_part() >= 0 && shifted.terms().iter().all(|term| term.coefficient > 0)
}

/// Returns true for a quotient of a non-negative number, or a remainder, by a positive number.
fn is_nonnegative_quotient<I: Ids>(atom: &Atom<I>, known: &dyn Knowledge<I>) -> bool {
    let is_nonnegative = |expr: &IndexExpr<I>| is_nonnegative_by_least_values(expr, known);
    match atom {
        Atom::FloorDiv(pair) => is_nonnegative(&pair.0) && is_nonnegative(&pair.1.offset(-1)),
        Atom::Mod(pair) => is_nonnegative(&pair.1.offset(-1)),
        _ => false,
    }
}
