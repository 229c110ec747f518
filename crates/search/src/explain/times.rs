//! Divides the predicted time of a loop nest among the statements of its program.
//!
//! The cost model predicts the time of each statement outside of loops. If only one statement of
//! the program is computed inside, the time is that of this statement. Otherwise the cost model
//! also predicts the time of the loops with the stores of each single statement, and the time is
//! divided in these proportions. Copies of operands belong to the statements that read them.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{BufferId, Stmt, Store};
use tilewright_ir::walk;

use crate::cost::CostModel;

/// The predicted seconds of each statement that has stores. `roots` has the predicted seconds of
/// each statement outside of loops.
pub(super) fn statement_seconds(
    nest: &LoopNest,
    roots: &[f64],
    model: &dyn CostModel,
) -> BTreeMap<usize, f64> {
    let mut seconds = BTreeMap::new();
    for (root, whole) in nest.roots().into_iter().zip(roots) {
        let shares = shares(nest, root, model);
        let sum: f64 = shares.iter().map(|(_, share)| share).sum();
        for (statement, share) in &shares {
            let part = if sum > 0.0 { share / sum } else { 1.0 / shares.len() as f64 };
            *seconds.entry(*statement).or_insert(0.0) += part * whole;
        }
    }
    seconds
}

/// The buffers that the stores of a statement write, in order.
pub(super) fn buffers_of(nest: &LoopNest, statement: usize) -> Vec<BufferId> {
    let mut buffers = Vec::new();
    walk::visit(&nest.body, &mut |stmt| {
        let own = stmt.store().filter(|store| computes(store) == Some(statement));
        if let Some(store) = own
            && !buffers.contains(&store.target.tensor)
        {
            buffers.push(store.target.tensor);
        }
    });
    buffers
}

/// The statement of the program that a store belongs to; none for a copy.
fn computes(store: &Store) -> Option<usize> {
    store.claim.as_ref().map(|claim| claim.statement)
}

/// The statements inside a root, each with its time in these loops without the other statements.
fn shares(nest: &LoopNest, root: &Stmt, model: &dyn CostModel) -> Vec<(usize, f64)> {
    let mut inside = BTreeSet::new();
    walk::visit(std::slice::from_ref(root), &mut |stmt| inside.extend(stmt.store().and_then(computes)));
    if inside.len() < 2 {
        return inside.into_iter().map(|statement| (statement, 1.0)).collect();
    }
    let alone = |statement: usize| {
        let nest = LoopNest { body: only(root, statement), ..nest.clone() };
        (statement, model.estimate(&nest).seconds)
    };
    inside.into_iter().map(alone).collect()
}

/// The loops of a root with the stores of one statement, and the copies that it reads.
fn only(root: &Stmt, statement: usize) -> Vec<Stmt> {
    let needed = needed_copies(root, statement);
    let is_kept = |store: &Store| match computes(store) {
        Some(own) => own == statement,
        None => needed.contains(&store.target.tensor),
    };
    walk::rewrite(vec![root.clone()], &mut |stmt, out| {
        let is_empty = !stmt.is_leaf() && stmt.bodies().all(<[Stmt]>::is_empty);
        if !is_empty && stmt.store().is_none_or(is_kept) {
            out.push(stmt);
        }
    })
}

/// The buffers of copies that a statement reads, also through other copies.
fn needed_copies(root: &Stmt, statement: usize) -> BTreeSet<BufferId> {
    let mut needed = BTreeSet::new();
    loop {
        let known = needed.len();
        walk::visit(std::slice::from_ref(root), &mut |stmt| {
            let Some(store) = stmt.store() else { return };
            let is_needed = match computes(store) {
                Some(own) => own == statement,
                None => needed.contains(&store.target.tensor),
            };
            if is_needed {
                stmt.visit_own_reads(&mut |access| _ = needed.insert(access.tensor));
            }
        });
        if needed.len() == known {
            return needed;
        }
    }
}
