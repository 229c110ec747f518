//! Converts index expressions to their serialised form and back: a constant and a list of products.
//!
//! Reading goes through the constructors, so that an expression is in normal form whatever the
//! input.

use serde::{Deserialize, Serialize};

use super::{Atom, IndexExpr};
use crate::ids::Ids;

/// A sum of products.
#[derive(Serialize, Deserialize)]
#[serde(bound = "")]
pub(super) struct Sum<I: Ids> {
    constant: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    products: Vec<(i64, Vec<Atom<I>>)>,
}

impl<I: Ids> From<IndexExpr<I>> for Sum<I> {
    fn from(expr: IndexExpr<I>) -> Sum<I> {
        let products = expr.terms.into_iter().map(|term| (term.coefficient, term.factors.into_vec()));
        Sum { constant: expr.constant, products: products.collect() }
    }
}

impl<I: Ids> From<Sum<I>> for IndexExpr<I> {
    fn from(sum: Sum<I>) -> IndexExpr<I> {
        let constant = IndexExpr::constant(sum.constant);
        sum.products.iter().fold(constant, |sum, (coefficient, factors)| {
            let coefficient = IndexExpr::constant(*coefficient);
            sum.add(&factors.iter().fold(coefficient, |product, factor| product.mul(&to_normal_form(factor))))
        })
    }
}

/// The atom as an expression in normal form.
fn to_normal_form<I: Ids>(atom: &Atom<I>) -> IndexExpr<I> {
    match atom {
        Atom::FloorDiv(pair) => pair.0.floor_div(&pair.1),
        Atom::Mod(pair) => pair.0.modulo(&pair.1),
        Atom::Min(pair) => pair.0.minimum(&pair.1),
        Atom::Max(pair) => pair.0.maximum(&pair.1),
        Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Data(_) | Atom::Overflow => {
            IndexExpr::atom(atom.clone())
        }
    }
}
