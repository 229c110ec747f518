//! Walks and rewrites the statements of a loop nest.
//!
//! This module knows which statements contain others, and which index expressions and accesses
//! belong to a statement itself. A pass names only the statements that it is about:
//!
//! - [`visit`], [`visit_mut`], [`any`], [`find_map`] and [`try_visit`] go through all statements,
//!   each statement before those inside it;
//! - [`rewrite`] replaces statements, those inside first;
//! - a pass that carries knowledge from a statement to those inside it, such as the ranges of
//!   loops, recurses itself: it matches the statements that add knowledge, and descends into all
//!   others through [`Stmt::bodies`].
//!
//! The walkers take closures by type and allocate nothing: planning a schedule walks a nest dozens
//! of times.

use std::collections::BTreeSet;

use crate::nest::{Access, BufferId, Claim, Combine, For, IndexExpr, Stmt, Store};

impl Stmt {
    /// The statements directly inside, in order: the body of a loop or an allocation, both sides of
    /// a choice.
    pub fn bodies(&self) -> impl Iterator<Item = &[Stmt]> {
        let (first, second): (Option<&[Stmt]>, Option<&[Stmt]>) = match self {
            Stmt::For(own) => (Some(&own.body), None),
            Stmt::If(own) => (Some(&own.then), Some(&own.otherwise)),
            Stmt::Allocate(own) => (Some(&own.body), None),
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The statements directly inside, for modification.
    pub fn bodies_mut(&mut self) -> impl Iterator<Item = &mut Vec<Stmt>> {
        let (first, second) = match self {
            Stmt::For(own) => (Some(&mut own.body), None),
            Stmt::If(own) => (Some(&mut own.then), Some(&mut own.otherwise)),
            Stmt::Allocate(own) => (Some(&mut own.body), None),
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// Returns true when no other statements can be inside.
    pub fn is_leaf(&self) -> bool {
        self.bodies().next().is_none()
    }

    /// The expressions that decide whether and how often the statements inside run: the extent of a
    /// loop, the conditions of a choice.
    pub fn control_exprs(&self) -> &[IndexExpr] {
        match self {
            Stmt::For(own) => std::slice::from_ref(&own.extent),
            Stmt::If(own) => &own.conditions,
            Stmt::Allocate(_) | Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => &[],
        }
    }

    /// The expressions that decide whether and how often the statements inside run, for
    /// modification.
    pub fn control_exprs_mut(&mut self) -> &mut [IndexExpr] {
        match self {
            Stmt::For(own) => std::slice::from_mut(&mut own.extent),
            Stmt::If(own) => &mut own.conditions,
            Stmt::Allocate(_) | Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {
                &mut []
            }
        }
    }

    /// The store that the statement itself executes: a plain store, or the store of a total.
    pub fn store(&self) -> Option<&Store> {
        match self {
            Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => Some(own),
            _ => None,
        }
    }

    /// The store that the statement itself executes, for modification.
    pub fn store_mut(&mut self) -> Option<&mut Store> {
        match self {
            Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => Some(own),
            _ => None,
        }
    }

    /// The element that the statement itself writes or prefetches.
    pub fn element(&self) -> Option<&Access> {
        match self {
            Stmt::Prefetch(own) => Some(&own.element),
            other => other.store().map(|store| &store.target),
        }
    }

    /// The element that the statement itself writes or prefetches, for modification.
    pub fn element_mut(&mut self) -> Option<&mut Access> {
        match self {
            Stmt::Prefetch(own) => Some(&mut own.element),
            other => other.store_mut().map(|store| &mut store.target),
        }
    }

    /// Returns true when some index expression of the statement itself satisfies the predicate:
    /// bounds, subscripts and index values. Claims do not count.
    pub fn any_own_index(&self, test: &mut dyn FnMut(&IndexExpr) -> bool) -> bool {
        self.control_exprs().iter().any(&mut *test)
            || self.element().is_some_and(|element| element.indices.iter().any(&mut *test))
            || self.store().is_some_and(|store| store.value.any_index(test))
    }

    /// Replaces every index expression of the statement itself: bounds, subscripts, index values
    /// and the expressions of claims.
    pub fn map_own_indices(&mut self, map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
        self.control_exprs_mut().iter_mut().for_each(|index| *index = map(index));
        if let Some(element) = self.element_mut() {
            element.indices.iter_mut().for_each(|index| *index = map(index));
        }
        if let Some(store) = self.store_mut() {
            store.value.map_indices(map);
            if let Some(claim) = &mut store.claim {
                claim.indices_mut().for_each(|index| *index = map(index));
            }
        }
    }

    /// Calls `each` on every element that the statement itself reads, also those that its bounds
    /// and subscripts depend on. The old content of a reduction's target does not count.
    pub fn visit_own_reads<'n>(&'n self, each: &mut dyn FnMut(&'n Access)) {
        self.control_exprs().iter().for_each(|index| index.visit_reads(each));
        if let Some(store) = self.store() {
            store.value.visit_reads(each);
        }
        let subscripts = self.element().into_iter().flat_map(|element| &element.indices);
        subscripts.for_each(|index| index.visit_reads(each));
    }

    /// Calls `each` on every access of the statement itself: reads, writes and prefetches.
    pub fn visit_own_accesses<'n>(&'n self, each: &mut dyn FnMut(&'n Access)) {
        self.visit_own_reads(each);
        self.element().into_iter().for_each(each);
    }

    /// Changes every access of the statement itself: reads, writes and prefetches. Accesses inside
    /// subscripts come first.
    pub fn edit_own_accesses(&mut self, edit: &mut dyn FnMut(&mut Access)) {
        self.control_exprs_mut().iter_mut().for_each(|index| index.edit_reads(edit));
        if let Some(store) = self.store_mut() {
            store.value.edit_reads(edit);
        }
        if let Some(element) = self.element_mut() {
            element.indices.iter_mut().for_each(|index| index.edit_reads(edit));
            edit(element);
        }
    }

    /// Returns true when this statement, or a statement inside at any depth, combines threads.
    pub fn has_combine(&self) -> bool {
        any(std::slice::from_ref(self), &mut |stmt| matches!(stmt, Stmt::Combine(_)))
    }
}

impl Claim {
    /// The expressions of the claim, for modification: the known values of the statement's
    /// variables, then those that distinguish runs.
    pub fn indices_mut(&mut self) -> impl Iterator<Item = &mut IndexExpr> {
        self.point.iter_mut().flatten().chain(&mut self.repetition)
    }
}

/// Calls `each` on all statements, outermost first.
pub fn visit<'n>(stmts: &'n [Stmt], each: &mut impl FnMut(&'n Stmt)) {
    for stmt in stmts {
        each(stmt);
        stmt.bodies().for_each(|body| visit(body, each));
    }
}

/// Calls `each` on all statements, outermost first. The statements inside are those that `each` has
/// left there.
pub fn visit_mut(stmts: &mut [Stmt], each: &mut impl FnMut(&mut Stmt)) {
    for stmt in stmts {
        each(stmt);
        stmt.bodies_mut().for_each(|body| visit_mut(body, each));
    }
}

/// The first result of `find` among all statements, outermost first.
pub fn find_map<'n, T>(stmts: &'n [Stmt], find: &mut impl FnMut(&'n Stmt) -> Option<T>) -> Option<T> {
    stmts.iter().find_map(|stmt| find(stmt).or_else(|| stmt.bodies().find_map(|body| find_map(body, find))))
}

/// Returns true when some statement, at any depth, satisfies the predicate.
pub fn any<'n>(stmts: &'n [Stmt], test: &mut impl FnMut(&'n Stmt) -> bool) -> bool {
    stmts.iter().any(|stmt| test(stmt) || stmt.bodies().any(|body| any(body, test)))
}

/// Returns true when some loop in the statements, at any depth, satisfies the predicate.
pub fn any_loop(stmts: &[Stmt], test: impl Fn(&For) -> bool) -> bool {
    any(stmts, &mut |stmt| matches!(stmt, Stmt::For(own) if test(own)))
}

/// The buffers that the statements load from, store to or prefetch.
pub fn buffers(stmts: &[Stmt]) -> BTreeSet<BufferId> {
    let mut found = BTreeSet::new();
    visit(stmts, &mut |stmt| stmt.visit_own_accesses(&mut |access| _ = found.insert(access.tensor)));
    found
}

/// Checks all statements, outermost first, up to the first error.
pub fn try_visit<'n, E>(
    stmts: &'n [Stmt],
    test: &mut impl FnMut(&'n Stmt) -> Result<(), E>,
) -> Result<(), E> {
    stmts.iter().try_for_each(|stmt| {
        test(stmt)?;
        stmt.bodies().try_for_each(|body| try_visit(body, test))
    })
}

/// Replaces every index expression of the statements, those of claims included.
pub fn map_indices(stmts: &mut [Stmt], map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
    visit_mut(stmts, &mut |stmt| stmt.map_own_indices(map));
}

/// Changes every access of the statements: reads, writes and prefetches.
pub fn edit_accesses(stmts: &mut [Stmt], edit: &mut impl FnMut(&mut Access)) {
    visit_mut(stmts, &mut |stmt| stmt.edit_own_accesses(edit));
}

/// Rewrites all statements, innermost first. `each` receives a statement whose own statements are
/// already rewritten, and pushes what replaces it.
pub fn rewrite(stmts: Vec<Stmt>, each: &mut impl FnMut(Stmt, &mut Vec<Stmt>)) -> Vec<Stmt> {
    let mut out = Vec::with_capacity(stmts.len());
    for mut stmt in stmts {
        stmt.bodies_mut().for_each(|body| *body = rewrite(std::mem::take(body), each));
        each(stmt, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Origin;
    use crate::nest::{Allocate, Expr, If, LoopKind, LoopVarId};
    use crate::number::Number;

    fn store(at: i64) -> Stmt {
        let indices = vec![IndexExpr::constant(at)];
        let target = Access { tensor: BufferId(0), indices, origin: Origin::default() };
        let value = Expr::literal(DType::Int32, Number::Int(0));
        Stmt::Store(Store {
            target,
            value,
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        })
    }

    /// A loop around a choice between the stores 0 and 1, and an allocation around the store 2.
    fn nested() -> Vec<Stmt> {
        let choice = If {
            conditions: vec![IndexExpr::var(LoopVarId(0))],
            then: vec![store(0)],
            otherwise: vec![store(1)],
        };
        let extent = IndexExpr::constant(4);
        let body = vec![Stmt::If(choice)];
        vec![
            Stmt::For(For { var: LoopVarId(0), extent, kind: LoopKind::Serial, body }),
            Stmt::Allocate(Allocate { buffer: BufferId(0), body: vec![store(2)] }),
        ]
    }

    fn places(stmts: &[Stmt]) -> Vec<i64> {
        let mut found = Vec::new();
        visit(stmts, &mut |stmt| {
            found.extend(stmt.store().and_then(|store| store.target.indices[0].as_constant()));
        });
        found
    }

    #[test]
    fn a_walk_reaches_the_statements_of_every_body_in_order() {
        let stmts = nested();
        assert_eq!(places(&stmts), [0, 1, 2]);
        let second = |stmt: &Stmt| stmt.any_own_index(&mut |index| index.as_constant() == Some(1));
        assert!(any(&stmts, &mut |stmt| stmt.is_leaf() && second(stmt)));
        assert!(any_loop(&stmts, |own| own.var == LoopVarId(0)));
        let mut seen = 0;
        let stopped = try_visit(&stmts, &mut |stmt| {
            seen += 1;
            if second(stmt) { Err(()) } else { Ok(()) }
        });
        assert_eq!((stopped, seen), (Err(()), 4));
    }

    #[test]
    fn a_rewrite_may_add_and_drop_statements() {
        let twice = rewrite(nested(), &mut |stmt, out| match stmt {
            Stmt::Store(own) => out.extend([Stmt::Store(own.clone()), Stmt::Store(own)]),
            Stmt::Allocate(own) => out.extend(own.body),
            other => out.push(other),
        });
        assert_eq!(places(&twice), [0, 0, 1, 1, 2, 2]);
        assert_eq!(twice.len(), 3);
    }

    #[test]
    fn every_index_of_a_nest_can_be_replaced() {
        let mut stmts = nested();
        map_indices(&mut stmts, &mut |index| index.offset(10));
        assert_eq!(places(&stmts), [10, 11, 12]);
        assert_eq!(stmts[0].control_exprs(), [IndexExpr::constant(14)]);
    }
}
