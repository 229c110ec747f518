//! Rewrites every [`Combine`] that replaces its target to one that reduces into its target.
//!
//! A [`Combine`] reduces the values of the threads of a loop, its lanes, to a total. If it reduces
//! the total into its target, it is equivalent to a loop in which each lane reduces its own value
//! into the target. If it replaces the content of its target, the rewrite first stores the neutral
//! element in the target and then reduces into it:
//!
//! ```text
//! thread.x lane in 32                             thread.x lane in 32
//!   s[row] = sum of partial[row, lane]     →        if lane <= 0
//!                                                     s[row] = 0.0
//!                                                   s[row] += sum of partial[row, lane]
//! ```
//!
//! After this rewrite, a proof needs to handle only a [`Combine`] that reduces into its target.

use std::borrow::Cow;

use tilewright_ir::nest::{Claim, ClaimRole, Combine, Expr, If, IndexExpr, LoopNest, LoopVarId, Stmt, Store};
use tilewright_ir::{arithmetic, walk};

/// The nest, with a store of the neutral element before every combination that replaces its target.
pub fn with_neutral_stores(nest: &LoopNest) -> Cow<'_, LoopNest> {
    if !nest.setup.iter().chain(&nest.body).any(Stmt::has_combine) {
        return Cow::Borrowed(nest);
    }
    let mut nest = nest.clone();
    for stmts in [&mut nest.setup, &mut nest.body] {
        *stmts = walk::rewrite(std::mem::take(stmts), &mut add_neutral_store);
    }
    Cow::Owned(nest)
}

/// Adds the store of the neutral element before a combination that replaces its target.
fn add_neutral_store(mut stmt: Stmt, out: &mut Vec<Stmt>) {
    if let Stmt::Combine(own) = &mut stmt
        && own.store.reduce.is_none()
    {
        out.push(neutral_store(own));
        own.store.reduce = Some(own.op);
    }
    out.push(stmt);
}

/// The store of the neutral element by the first lane.
fn neutral_store(own: &Combine) -> Stmt {
    let dtype = own.store.value.dtype;
    let claim = own.store.claim.as_deref().map(|claim| Box::new(claim_of_all_lanes(claim, own.lane)));
    let value = Expr::literal(dtype, arithmetic::neutral(own.op, dtype));
    let store = Store { value, claim, ..own.store.clone() };
    let first = IndexExpr::var(own.lane).scale(-1);
    Stmt::If(If { conditions: vec![first], then: vec![Stmt::Store(store)], otherwise: Vec::new() })
}

fn claim_of_all_lanes(claim: &Claim, lane: LoopVarId) -> Claim {
    let without_lane = |value: &Option<IndexExpr>| value.clone().filter(|value| !value.mentions(lane));
    let point = claim.point.iter().map(without_lane).collect();
    Claim { role: ClaimRole::Neutral, point, ..claim.clone() }
}
