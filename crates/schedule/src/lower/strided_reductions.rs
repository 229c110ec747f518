//! Shortens reduction loops in which only every n-th iteration adds something: the new loop runs
//! just those iterations.
//!
//! A transposed convolution of stride 2 checks `(h + pad - kh) % 2 == 0` in each iteration of `kh`:
//! half of them add 0. Once `h` is known, the other iterations begin at `(h + pad) % 2` and are 2
//! apart, so the loop becomes
//! ```text
//! for kh in 2
//!   ... with (h + pad) % 2 + 2*kh for kh, and nothing to ask
//! ```
//!
//! Only reduction loops have this form. Threads that differ in `h` then run the same number of
//! iterations, each its own ones. The loop of `h` must be around that of `kh`; where it is inside,
//! the condition stays.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Atom, Expr, ExprKind, For, If, IndexExpr, LoopKind, LoopVarId, Stmt, Store, Term};
use tilewright_ir::walk::{map_indices, visit_mut};

use super::tidy::{adds_nothing, truth};
use crate::draft::comparison::{as_condition_unchecked, conjuncts};

/// Removes iterations that add nothing.
pub(super) fn remove_idle_iterations(nest: &mut LoopNest) {
    for stmts in [&mut nest.setup, &mut nest.body] {
        visit_mut(stmts, &mut |stmt| {
            if let Stmt::For(own) = stmt
                && let Some(sieve) = StridedIterations::find(own)
            {
                sieve.apply(own);
            }
        });
    }
}

/// The iterations of a loop that count: `first`, and every `apart`-th after it.
struct StridedIterations {
    /// The condition, at least 0 where the iteration counts.
    condition: IndexExpr,
    first: IndexExpr,
    stride: i64,
}

impl StridedIterations {
    fn find(own: &For) -> Option<StridedIterations> {
        let extent = own.extent.as_constant()?;
        let mut stores = Vec::new();
        let simple = matches!(own.kind, LoopKind::Serial | LoopKind::Unrolled);
        let mut inside = vec![own.var];
        if extent < 2 || !simple || !only_stores(&own.body, &mut stores, &mut inside) {
            return None;
        }
        // If a target mentions the variable, the variable may select a register.
        let reduced = |store: &&Store| !store.target.indices.iter().any(|index| index.mentions(own.var));
        let (first, others) = stores.split_first().filter(|_| stores.iter().all(reduced))?;
        guard_conditions(first)
            .into_iter()
            .filter(|question| others.iter().all(|store| guard_conditions(store).contains(question)))
            .find_map(|question| {
                let (first, apart) = residue_class(&question, own.var)?;
                let known = !inside.iter().any(|var| first.mentions(*var)) && !first.has_data();
                known.then_some(StridedIterations { condition: question, first, stride: apart })
            })
    }

    fn apply(self, own: &mut For) {
        let extent = own.extent.as_constant().unwrap_or(0);
        let at = IndexExpr::var(own.var).scale(self.stride).add(&self.first);
        assume_true(&mut own.body, &self.condition);
        map_indices(&mut own.body, &mut |index| {
            index.substitute(&mut |atom| (*atom == Atom::Var(own.var)).then(|| at.clone()))
        });
        if extent % self.stride != 0 {
            let conditions = vec![IndexExpr::constant(extent - 1).sub(&at)];
            let then = std::mem::take(&mut own.body);
            own.body = vec![Stmt::If(If { conditions, then, otherwise: Vec::new() })];
        }
        own.extent =
            IndexExpr::constant(extent.div_euclid(self.stride) + i64::from(extent % self.stride != 0));
    }
}

/// Returns true when the statements only store. Collects the stores, and the variables of the loops
/// around them.
fn only_stores<'a>(stmts: &'a [Stmt], stores: &mut Vec<&'a Store>, inside: &mut Vec<LoopVarId>) -> bool {
    stmts.iter().all(|stmt| match stmt {
        Stmt::Store(store) => {
            stores.push(store);
            true
        }
        Stmt::For(own) => {
            inside.push(own.var);
            !own.is_block_or_thread_loop() && only_stores(&own.body, stores, inside)
        }
        Stmt::If(own) => {
            only_stores(&own.then, stores, inside) && only_stores(&own.otherwise, stores, inside)
        }
        _ => false,
    })
}

/// The conditions that a store checks before it adds something; none if it always adds something.
fn guard_conditions(store: &Store) -> Vec<IndexExpr> {
    let ExprKind::Select(arms) = &store.value.kind else { return Vec::new() };
    let otherwise = Store { value: arms[2].clone(), ..store.clone() };
    if !adds_nothing(&otherwise) {
        return Vec::new();
    }
    conjuncts(&arms[0]).into_iter().filter_map(as_condition_unchecked).collect()
}

/// The first value of the variable for which a condition `(... + var) % apart <= 0` holds, and the
/// distance between such values.
fn residue_class(condition: &IndexExpr, var: LoopVarId) -> Option<(IndexExpr, i64)> {
    let ([Term { factors, coefficient: -1 }], 0) = (condition.terms(), condition.constant_part()) else {
        return None;
    };
    let [Atom::Mod(pair)] = factors.as_slice() else { return None };
    let apart = pair.1.as_constant().filter(|apart| *apart > 1)?;
    let (step, rest) = pair.0.split_on(&Atom::Var(var))?;
    let first = match step.as_constant()? {
        1 => rest.scale(-1),
        -1 => rest,
        _ => return None,
    };
    Some((first.modulo(&pair.1), apart))
}

/// Replaces a condition by true wherever these stores check it.
fn assume_true(stmts: &mut [Stmt], condition: &IndexExpr) {
    visit_mut(stmts, &mut |stmt| {
        if let Stmt::Store(store) = stmt
            && let ExprKind::Select(arms) = &mut store.value.kind
        {
            assume_true_in(&mut arms[0], condition);
        }
    });
}

fn assume_true_in(condition: &mut Expr, question: &IndexExpr) {
    if as_condition_unchecked(condition).as_ref() == Some(question) {
        *condition = truth(true);
    } else if conjuncts(condition).len() > 1 {
        condition.operands_mut().iter_mut().for_each(|side| assume_true_in(side, question));
    }
}
