//! Substitutes the given sizes and integer scalars in an [`UncheckedProgram`].
//!
//! Front ends first express ranges and shapes in terms of the sizes, so a program has the same
//! meaning whether its sizes are given or not. Then numbers replace the symbols, and the checks are
//! about these numbers.

use super::UncheckedProgram;
use crate::index::{Atom, IndexExpr};
use crate::program::Range;

impl UncheckedProgram {
    /// Substitutes the values of the symbols that have one. Returns the unchecked program before
    /// the substitution, without the values, if there was any.
    pub fn specialize(&mut self) -> Option<UncheckedProgram> {
        if self.symbols.iter().all(|symbol| symbol.value.is_none()) {
            return None;
        }
        let mut general = self.clone();
        general.symbols.iter_mut().for_each(|symbol| symbol.value = None);
        let values: Vec<Option<i64>> = self.symbols.iter().map(|symbol| symbol.value).collect();
        self.map_indices(&mut |index| substitute_values(index, &values));
        for (own, general) in self.preconditions.iter_mut().zip(&general.preconditions) {
            // Elsewhere a quotient by 0 is 0, which would make the comparison hold or fail by
            // chance.
            let quotient = general.quotient_by_zero(&mut |index| substitute_values(index, &values));
            quotient.into_iter().for_each(|quotient| own.left = quotient);
        }
        Some(general)
    }

    /// The expression with numbers in place of the symbols whose values are known.
    pub fn substitute_given_sizes(&self, expr: &IndexExpr) -> IndexExpr {
        let values: Vec<Option<i64>> = self.symbols.iter().map(|symbol| symbol.value).collect();
        substitute_values(expr, &values)
    }

    /// Replaces every bound, extent, subscript and index value, also those of derived sizes.
    fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        for range in self.vars.iter_mut().filter_map(|var| var.range.as_mut()) {
            *range = Range { from: map(&range.from), to: map(&range.to) };
        }
        for derived in &mut self.derived {
            derived.value.map_indices(map);
        }
        for precondition in &mut self.preconditions {
            *precondition = precondition.map(map);
        }
        for extent in self.tensors.iter_mut().filter_map(|tensor| tensor.shape.as_mut()).flatten() {
            *extent = map(extent);
        }
        for parts in self.statements.iter_mut().filter_map(|statement| statement.parts.as_mut()) {
            parts.map_indices(map);
        }
    }
}

fn substitute_values(expr: &IndexExpr, values: &[Option<i64>]) -> IndexExpr {
    expr.substitute(&mut |atom| match atom {
        Atom::Symbol(symbol) => values[symbol.index()].map(IndexExpr::constant),
        _ => None,
    })
}
