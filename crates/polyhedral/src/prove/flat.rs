//! Merges loops of a GPU that count one flat index together into one loop.
//!
//! Threads often go through elements in rounds whose number is unrelated to the shape of the
//! elements:
//!
//! ```text
//! thread.x i in 256                            parallel t in 768
//!   for turn in 3                                if t <= 575
//!     if 256*turn + i <= 575              →        s[t/9, t/3 % 3, t % 3] = …
//!       s[(256*turn + i)/9, …] = …
//! ```
//!
//! On the right any thread may run any iteration, in any order. Everything that is proved for the
//! right side therefore holds for the left. With one loop, the index can be split into its digits
//! ([`super::digits`]).

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Allocate, Combine, For, If, LoopKind, LoopNest, LoopVar, Scope, Stmt, Store};
use tilewright_ir::{Access, Atom, Expr, ExprKind, IndexExpr, TensorId, VarId};

/// The nest with flat loops, or `None` if no loops can be merged.
pub fn merged(nest: &LoopNest) -> Option<LoopNest> {
    let mut nest = nest.clone();
    let mut claims = BTreeMap::new();
    count_claims(&nest.setup, &mut claims);
    count_claims(&nest.body, &mut claims);
    let body = std::mem::take(&mut nest.body);
    let mut merge = Merge { nest: &mut nest, claims, found: false };
    let body = merge.stmts(body);
    merge.found.then(|| LoopNest { body, ..nest })
}

/// Counts the stores of each computation.
fn count_claims(stmts: &[Stmt], counts: &mut BTreeMap<usize, usize>) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => count_claims(&own.body, counts),
            Stmt::If(own) => {
                count_claims(&own.then, counts);
                count_claims(&own.otherwise, counts);
            }
            Stmt::Allocate(own) => count_claims(&own.body, counts),
            Stmt::Store(store) | Stmt::Combine(Combine { store, .. }) => {
                let own = store.claim.iter().map(|claim| claim.computation);
                own.for_each(|own| *counts.entry(own).or_default() += 1);
            }
            Stmt::Prefetch(_) | Stmt::Sync(_) => {}
        }
    }
}

struct Merge<'n> {
    nest: &'n mut LoopNest,
    /// The number of stores of each computation.
    claims: BTreeMap<usize, usize>,
    found: bool,
}

impl Merge<'_> {
    fn stmts(&mut self, stmts: Vec<Stmt>) -> Vec<Stmt> {
        stmts.into_iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&mut self, stmt: Stmt) -> Stmt {
        match stmt {
            Stmt::For(own) => {
                let own = For { body: self.stmts(own.body), ..own };
                match self.flat(&own) {
                    Some(flat) => {
                        self.found = true;
                        Stmt::For(flat)
                    }
                    None => Stmt::For(own),
                }
            }
            Stmt::If(own) => {
                Stmt::If(If { then: self.stmts(own.then), otherwise: self.stmts(own.otherwise), ..own })
            }
            Stmt::Allocate(own) => Stmt::Allocate(Allocate { body: self.stmts(own.body), ..own }),
            Stmt::Store(_) | Stmt::Combine(_) | Stmt::Prefetch(_) | Stmt::Sync(_) => stmt,
        }
    }

    /// Merges a loop over blocks or threads with the only loop inside it.
    fn flat(&mut self, outer: &For) -> Option<For> {
        let [Stmt::For(inner)] = outer.body.as_slice() else { return None };
        let counts = outer.extent.as_constant().zip(inner.extent.as_constant());
        let (outermost, innermost) = counts.filter(|_| outer.is_spread())?;
        if !self.is_independent(&inner.body) {
            return None;
        }
        let extent = outermost.checked_mul(innermost)?;
        let name = format!("{}.{}", self.nest.var_name(outer.var), self.nest.var_name(inner.var));
        let flat = VarId(self.nest.vars.len() as u32);
        let computations = self.only_in(&inner.body);
        let index = |high: VarId, low: VarId, count: i64| Flat {
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
    fn only_in(&self, stmts: &[Stmt]) -> BTreeSet<usize> {
        let mut here = BTreeMap::new();
        count_claims(stmts, &mut here);
        here.into_iter().filter(|own| self.claims.get(&own.0) == Some(&own.1)).map(|(own, _)| own).collect()
    }

    /// Checks whether threads that run `stmts` neither synchronise nor use registers from outside.
    fn is_independent(&self, stmts: &[Stmt]) -> bool {
        let mut used = Used::default();
        used.stmts(stmts);
        let in_registers = |buffer: &TensorId| self.nest.buffer(*buffer).scope == Scope::Register;
        !used.meets && !used.buffers.difference(&used.own).any(in_registers)
    }
}

/// The buffers and synchronisation that statements use.
#[derive(Default)]
struct Used {
    buffers: BTreeSet<TensorId>,
    /// The buffers that are allocated inside the statements.
    own: BTreeSet<TensorId>,
    /// Whether the statements synchronise or combine threads.
    meets: bool,
}

impl Used {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(own) => self.stmts(&own.body),
                Stmt::If(own) => {
                    self.stmts(&own.then);
                    self.stmts(&own.otherwise);
                }
                Stmt::Allocate(own) => {
                    self.own.insert(own.buffer);
                    self.stmts(&own.body);
                }
                Stmt::Store(own) => {
                    self.access(&own.target);
                    self.expr(&own.value);
                }
                Stmt::Combine(_) | Stmt::Sync(_) => self.meets = true,
                Stmt::Prefetch(_) => {}
            }
        }
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Load(access) => self.access(access),
            ExprKind::Index(index) => self.index(index),
            _ => expr.operands().iter().for_each(|operand| self.expr(operand)),
        }
    }

    fn access(&mut self, access: &Access) {
        self.buffers.insert(access.tensor);
        access.indices.iter().for_each(|index| self.index(index));
    }

    fn index(&mut self, index: &IndexExpr) {
        index.visit(&mut |atom| {
            if let Atom::Data(data) = atom {
                self.expr(&data.value);
            }
        });
    }
}

/// The substitution of a variable `flat` for `count` times `high` plus `low`.
struct Flat<'a> {
    flat: VarId,
    high: VarId,
    low: VarId,
    count: i64,
    /// The computations that have no store elsewhere.
    computations: &'a BTreeSet<usize>,
}

impl Flat<'_> {
    /// The statements in terms of the flat variable, or `None` if one of the two variables occurs
    /// in any other form.
    fn stmts(&self, stmts: &[Stmt]) -> Option<Vec<Stmt>> {
        stmts.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    fn stmt(&self, stmt: &Stmt) -> Option<Stmt> {
        Some(match stmt {
            Stmt::For(own) => Stmt::For(For {
                extent: self.index(&own.extent)?,
                body: self.stmts(&own.body)?,
                ..own.clone()
            }),
            Stmt::If(own) => Stmt::If(If {
                conditions: own.conditions.iter().map(|own| self.index(own)).collect::<Option<_>>()?,
                then: self.stmts(&own.then)?,
                otherwise: self.stmts(&own.otherwise)?,
            }),
            Stmt::Allocate(own) => Stmt::Allocate(Allocate { body: self.stmts(&own.body)?, ..own.clone() }),
            Stmt::Store(own) => Stmt::Store(self.store(own.clone())?),
            Stmt::Combine(_) | Stmt::Sync(_) => return None,
            // A proof ignores prefetches.
            Stmt::Prefetch(_) => stmt.clone(),
        })
    }

    fn store(&self, mut store: Store) -> Option<Store> {
        let mut is_flat = true;
        let mut index = |own: &IndexExpr| {
            let flat = self.index(own);
            is_flat &= flat.is_some();
            flat.unwrap_or_else(|| own.clone())
        };
        store.target.indices.iter_mut().for_each(|own| *own = index(own));
        store.value.map_indices(&mut index);
        if let Some(claim) = &mut store.claim {
            if self.computations.contains(&claim.computation) {
                self.tell_apart(&mut claim.run);
            }
            let values = claim.point.iter_mut().flatten().chain(&mut claim.run);
            values.for_each(|own| *own = index(own));
        }
        is_flat.then_some(store)
    }

    /// If both variables distinguish runs, the flat variable replaces them.
    fn tell_apart(&self, run: &mut [IndexExpr]) {
        let at = |var: VarId| run.iter().position(|own| own.as_var() == Some(var));
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
