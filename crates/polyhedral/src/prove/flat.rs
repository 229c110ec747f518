//! Merges loops of a GPU that count one flat index together into one loop.
//!
//! Threads often go through elements in rounds whose number is unrelated to the shape of the
//! elements:
//!
//! ```text
//! thread.x i in 256                            parallel t in 768
//!   for round in 3                               if t <= 575
//!     if 256*round + i <= 575             →        s[t/9, t/3 % 3, t % 3] = …
//!       s[(256*round + i)/9, …] = …
//! ```
//!
//! On the right any thread may run any iteration, in any order. Everything that is proved for the
//! right side therefore holds for the left. With one loop, the index can be split into its digits
//! ([`super::digits`]).

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{
    Atom, BufferId, For, IndexExpr, LoopKind, LoopNest, LoopVar, LoopVarId, Scope, Stmt,
};
use tilewright_ir::walk;

/// The nest with flat loops, or `None` if no loops can be merged.
pub fn merge_loops(nest: &LoopNest) -> Option<LoopNest> {
    let mut nest = nest.clone();
    let mut claims = BTreeMap::new();
    count_claims(&nest.setup, &mut claims);
    count_claims(&nest.body, &mut claims);
    let body = std::mem::take(&mut nest.body);
    let mut merge = Merge { nest: &mut nest, claims, found: false };
    let body = walk::rewrite(body, &mut |stmt, out| out.push(merge.stmt(stmt)));
    merge.found.then(|| LoopNest { body, ..nest })
}

/// Counts the stores of each computation.
fn count_claims(stmts: &[Stmt], counts: &mut BTreeMap<usize, usize>) {
    walk::visit(stmts, &mut |stmt| {
        if let Some(claim) = stmt.store().and_then(|store| store.claim.as_ref()) {
            *counts.entry(claim.computation).or_default() += 1;
        }
    });
}

struct Merge<'n> {
    nest: &'n mut LoopNest,
    /// The number of stores of each computation.
    claims: BTreeMap<usize, usize>,
    found: bool,
}

impl Merge<'_> {
    fn stmt(&mut self, stmt: Stmt) -> Stmt {
        let flat = match &stmt {
            Stmt::For(own) => self.merge_loop(own),
            _ => None,
        };
        self.found |= flat.is_some();
        flat.map_or(stmt, Stmt::For)
    }

    /// Merges a loop over blocks or threads with the only loop inside it.
    fn merge_loop(&mut self, outer: &For) -> Option<For> {
        let [Stmt::For(inner)] = outer.body.as_slice() else { return None };
        let counts = outer.extent.as_constant().zip(inner.extent.as_constant());
        let (outermost, innermost) = counts.filter(|_| outer.is_block_or_thread_loop())?;
        if !self.is_independent(&inner.body) {
            return None;
        }
        let extent = outermost.checked_mul(innermost)?;
        let name = format!("{}.{}", self.nest.var_name(outer.var), self.nest.var_name(inner.var));
        let flat = LoopVarId(self.nest.vars.len() as u32);
        let computations = self.computations_only_in(&inner.body);
        let index = |high: LoopVarId, low: LoopVarId, count: i64| FlatSubstitution {
            flat,
            high,
            low,
            count,
            computations: &computations,
        };
        let body = index(outer.var, inner.var, innermost)
            .stmts(&inner.body)
            .or_else(|| index(inner.var, outer.var, outermost).stmts(&inner.body))?;
        self.nest.vars.push(LoopVar { name });
        Some(For { var: flat, extent: IndexExpr::constant(extent), kind: LoopKind::Parallel, body })
    }

    /// The computations all of whose stores are in `stmts`.
    fn computations_only_in(&self, stmts: &[Stmt]) -> BTreeSet<usize> {
        let mut here = BTreeMap::new();
        count_claims(stmts, &mut here);
        here.into_iter().filter(|own| self.claims.get(&own.0) == Some(&own.1)).map(|(own, _)| own).collect()
    }

    /// Checks whether threads that run `stmts` neither synchronise nor use registers from outside.
    fn is_independent(&self, stmts: &[Stmt]) -> bool {
        let (mut own, mut synchronises) = (BTreeSet::new(), false);
        walk::visit(stmts, &mut |stmt| match stmt {
            Stmt::Allocate(room) => _ = own.insert(room.buffer),
            Stmt::Combine(_) | Stmt::Sync(_) => synchronises = true,
            _ => {}
        });
        let in_registers = |buffer: &BufferId| self.nest.buffer(*buffer).scope == Scope::Register;
        !synchronises && !walk::buffers(stmts).difference(&own).any(in_registers)
    }
}

/// The substitution of a variable `flat` for `count` times `high` plus `low`.
struct FlatSubstitution<'a> {
    flat: LoopVarId,
    high: LoopVarId,
    low: LoopVarId,
    count: i64,
    /// The computations that have no store elsewhere.
    computations: &'a BTreeSet<usize>,
}

impl FlatSubstitution<'_> {
    /// The statements in terms of the flat variable, or `None` if one of the two variables occurs
    /// in any other form.
    fn stmts(&self, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
        let mut stmts = stmts.to_vec();
        let mut is_flat = true;
        walk::visit_mut(&mut stmts, &mut |stmt| is_flat = is_flat && self.flatten(stmt));
        is_flat.then_some(stmts)
    }

    /// Rewrites the expressions of a statement itself. Returns false if one of them cannot be
    /// expressed by the flat variable.
    fn flatten(&self, stmt: &mut Stmt) -> bool {
        // A proof ignores prefetches.
        if matches!(stmt, Stmt::Prefetch(_)) {
            return true;
        }
        if let Some(claim) = stmt.store_mut().and_then(|store| store.claim.as_mut())
            && self.computations.contains(&claim.computation)
        {
            self.rewrite_run(&mut claim.repetition);
        }
        let mut is_flat = true;
        stmt.map_own_indices(&mut |own| {
            let flat = self.index(own);
            is_flat &= flat.is_some();
            flat.unwrap_or_else(|| own.clone())
        });
        is_flat
    }

    /// If both variables distinguish runs, the flat variable replaces them.
    fn rewrite_run(&self, run: &mut [IndexExpr]) {
        let at = |var: LoopVarId| run.iter().position(|own| own.as_var() == Some(var));
        if let Some((high, low)) = at(self.high).zip(at(self.low)) {
            run[high] = IndexExpr::var(self.flat);
            run[low] = IndexExpr::constant(0);
        }
    }

    fn index(&self, index: &IndexExpr) -> Option<IndexExpr> {
        let low = IndexExpr::var(self.flat).sub(&IndexExpr::var(self.high).scale(self.count));
        let flat = index.substitute(&mut |atom| (*atom == Atom::Var(self.low)).then(|| low.clone()));
        (!flat.mentions(self.high)).then_some(flat)
    }
}
