//! Takes the ranges of variables from accesses through views.
//!
//! An access `f(y - 1)` through a view that repeats its edge is defined for every `y`, and so it
//! limits nothing. Where no tensor limits a variable either, the range is the one that the tensor
//! would allow if the subscript had no offset: `f(y - 1)` and `f(y + 2)` take `y` over the whole
//! dimension, and `f(2*y + 1)` over half of it.

use tilewright_ir::{Atom, IndexExpr, VarId, print};

use super::inequality::{Direction, Solution, solve};
use super::model::Model;
use super::ranges::{Limit, add_limit, only_open};
use super::reason::{Reason, ReasonKind};

/// The limits of every open variable that is the only open one in some subscript of a view.
pub(super) fn limits_from_views(model: &Model, at: usize, open: &[VarId]) -> Vec<Limit> {
    let mut limits: Vec<Limit> = Vec::new();
    for read in &model.statements[at].view_reads {
        for (index, end) in read.indices.iter().zip(&read.ends) {
            let Some(var) = only_open(model, index, open) else { continue };
            let Some(last) = last_inside(model, index, end, var) else { continue };
            let kind = ReasonKind::View {
                access: read.access.clone(),
                variable: model.var(var).name.clone(),
                last: print::index(&last, model),
            };
            let reason = Reason { span: read.span, kind };
            add_limit(&mut limits, var, &last, reason, model);
        }
    }
    limits
}

/// The greatest value of a variable at which the subscript without its offset is below `end`.
fn last_inside(model: &Model, index: &IndexExpr, end: &IndexExpr, var: VarId) -> Option<IndexExpr> {
    let (index, end) = (without_offset(&model.with_extents(index)?, var)?, model.with_extents(end)?);
    match solve(model, &index, var, Direction::AtMost, &end.offset(-1)) {
        Solution::AtMost(last) => Some(last),
        Solution::NoUpperLimit => None,
    }
}

/// The terms of a subscript that mention a variable, and quotients without the offsets inside them:
/// `(y + 1)/2 - k` becomes `y/2`.
fn without_offset(index: &IndexExpr, var: VarId) -> Option<IndexExpr> {
    let mut rest = IndexExpr::constant(0);
    for term in index.terms() {
        if !IndexExpr::from(term).mentions(var) {
            continue;
        }
        let mut product = IndexExpr::constant(term.coefficient);
        for factor in &term.factors {
            let own = IndexExpr::atom(factor.clone());
            product = match factor {
                Atom::FloorDiv(pair) if own.mentions(var) => {
                    product.mul(&without_offset(&pair.0, var)?.floor_div(&pair.1))
                }
                Atom::Var(_) | Atom::Symbol(_) => product.mul(&own),
                _ if own.mentions(var) => return None,
                _ => product.mul(&own),
            };
        }
        rest = rest.add(&product);
    }
    Some(rest)
}
