//! Splits a loop over threads around several statements into one loop for each statement.
//!
//! A loop over threads may contain others: rows over y, and for each row one loop over x that
//! computes partial totals and one that combines them. All threads of a block must take part in
//! combining any of them. Values that threads along x exchange through memory need a barrier, which
//! is for all threads too. So such a loop is distributed over the statements inside it, and a
//! buffer that was allocated in its iterations gets one element for each iteration:
//!
//! ```text
//! thread.y row in 8                       scratch p[8, 32]
//!   scratch p[32]                         thread.y row in 8
//!   thread.x lane in 32                     thread.x lane in 32
//!     p[lane] = ...                 →         p[row, lane] = ...
//!   thread.x lane in 32                   thread.y row in 8
//!     s[row] = sum of p[lane]               thread.x lane in 32
//!                                             s[row] = sum of p[row, lane]
//! ```

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, Allocate, Buffer, For, If, IndexExpr, LoopKind, LoopVarId, Scope, Stmt};
use tilewright_ir::walk::{self, any_loop, edit_accesses};

use crate::draft::Legal;
use crate::draft::simplify::Ranges;
use crate::illegal::{Illegal, KernelFault};

/// Splits all such loops.
pub(super) fn split(nest: &mut LoopNest) -> Legal<()> {
    let names: Vec<String> = nest.vars.iter().map(|var| var.name.clone()).collect();
    for stmts in [&mut nest.setup, &mut nest.body] {
        let mut splitter = Splitter {
            buffers: &mut nest.buffers,
            names: &names,
            around: Vec::new(),
            ranges: Ranges::default(),
        };
        *stmts = splitter.split_outside_threads(std::mem::take(stmts))?;
    }
    Ok(())
}

/// A loop or condition around a statement, of a loop that is split.
#[derive(Clone)]
enum Enclosing {
    Threads(For),
    /// The conditions, and whether they all hold (`true`) or not all hold (`false`).
    Choice(Vec<IndexExpr>, bool),
}

struct Splitter<'a> {
    buffers: &'a mut Vec<Buffer>,
    names: &'a [String],
    /// The loops and conditions around the current statement, outermost first.
    around: Vec<Enclosing>,
    ranges: Ranges,
}

impl Splitter<'_> {
    /// Handles statements outside thread loops.
    fn split_outside_threads(&mut self, stmts: Vec<Stmt>) -> Legal<Vec<Stmt>> {
        let mut out = Vec::new();
        for stmt in stmts {
            match stmt {
                Stmt::For(own) if is_over_threads(&own) => match self.must_split(&own) {
                    true => out.extend(self.split_inside_threads(vec![Stmt::For(own)])?),
                    false => out.push(Stmt::For(own)),
                },
                Stmt::For(mut own) => {
                    let body = std::mem::take(&mut own.body);
                    own.body =
                        self.in_range(own.var, &own.extent, |this| this.split_outside_threads(body))?;
                    out.push(Stmt::For(own));
                }
                mut other => {
                    for body in other.bodies_mut() {
                        *body = self.split_outside_threads(std::mem::take(body))?;
                    }
                    out.push(other);
                }
            }
        }
        Ok(out)
    }

    /// Returns true when a loop over threads contains something that all threads of a block do
    /// together.
    fn must_split(&self, own: &For) -> bool {
        let combines = own.body.iter().any(Stmt::has_combine) && own.combine_nest().is_none();
        combines || self.allocates_for_threads(&own.body) || thread_loop_has_siblings(&own.body)
    }

    /// Returns true when scratch memory is allocated outside other thread loops, which use it.
    fn allocates_for_threads(&self, stmts: &[Stmt]) -> bool {
        walk::any(stmts, &mut |stmt| match stmt {
            Stmt::Allocate(own) => {
                let is_memory = self.buffers[own.buffer.index()].scope == Scope::Scratch;
                is_memory && has_threads(&own.body)
            }
            _ => false,
        })
    }

    /// Handles statements inside the loops that are split.
    fn split_inside_threads(&mut self, stmts: Vec<Stmt>) -> Legal<Vec<Stmt>> {
        let mut out = Vec::new();
        for stmt in stmts {
            match stmt {
                Stmt::For(own) if is_over_threads(&own) && self.must_split(&own) => {
                    let header =
                        Enclosing::Threads(For { body: Vec::new(), extent: own.extent.clone(), ..own });
                    out.extend(
                        self.in_range(own.var, &own.extent, |this| this.split_enclosed(header, own.body))?,
                    );
                }
                Stmt::For(own) if !is_over_threads(&own) && has_threads(&own.body) => {
                    out.push(self.uniform_loop(own)?);
                }
                Stmt::If(own) if has_threads(&own.then) || has_threads(&own.otherwise) => {
                    self.expect_no_data(&own.conditions)?;
                    let holds = Enclosing::Choice(own.conditions.clone(), true);
                    out.extend(self.split_enclosed(holds, own.then)?);
                    out.extend(self.split_enclosed(Enclosing::Choice(own.conditions, false), own.otherwise)?);
                }
                Stmt::Allocate(own) if has_threads(&own.body) => out.push(self.enlarge_allocation(own)?),
                leaf => out.push(self.wrap(leaf)),
            }
        }
        Ok(out)
    }

    fn split_enclosed(&mut self, around: Enclosing, body: Vec<Stmt>) -> Legal<Vec<Stmt>> {
        self.around.push(around);
        let out = self.split_inside_threads(body);
        self.around.pop();
        out
    }

    /// Enlarges an allocation to hold the iterations of all split loops.
    fn enlarge_allocation(&mut self, own: Allocate) -> Legal<Stmt> {
        let Allocate { buffer, mut body } = own;
        let (vars, extents): (Vec<LoopVarId>, Vec<i64>) =
            self.loops().map(|own| (own.var, own.extent.as_constant().unwrap_or(1))).unzip();
        self.buffers[buffer.index()].shape.splice(0..0, extents);
        let indices: Vec<IndexExpr> = vars.into_iter().map(IndexExpr::var).collect();
        edit_accesses(&mut body, &mut |access: &mut Access| {
            if access.tensor == buffer {
                access.indices.splice(0..0, indices.iter().cloned());
            }
        });
        Ok(Stmt::Allocate(Allocate { buffer, body: self.split_inside_threads(body)? }))
    }

    /// Wraps a statement in copies of all loops and conditions around it.
    fn wrap(&self, leaf: Stmt) -> Stmt {
        self.around.iter().rev().fold(leaf, |inner, around| match around {
            Enclosing::Threads(own) => Stmt::For(For { body: vec![inner], ..own.clone() }),
            Enclosing::Choice(conditions, holds) => {
                let (then, otherwise) = if *holds { (vec![inner], vec![]) } else { (vec![], vec![inner]) };
                Stmt::If(If { conditions: conditions.clone(), then, otherwise })
            }
        })
    }

    fn loops(&self) -> impl Iterator<Item = &For> {
        self.around.iter().filter_map(|around| match around {
            Enclosing::Threads(own) => Some(own),
            Enclosing::Choice(..) => None,
        })
    }

    /// A loop that all threads run together. Threads with fewer iterations skip the rest.
    fn uniform_loop(&mut self, own: For) -> Legal<Stmt> {
        let Some(threads) = self.loops().find(|threads| own.extent.mentions(threads.var)) else {
            let body = self.in_range(own.var, &own.extent, |this| this.split_inside_threads(own.body))?;
            return Ok(Stmt::For(For { body, ..own }));
        };
        let names = [own.var, threads.var].map(|var| &self.names[var.index()]);
        let most = self.ranges.greatest_value(&own.extent).ok_or_else(|| {
            let [loop_name, threads] = names.map(String::clone);
            Illegal::Kernel(KernelFault::UnevenBarrier { loop_name, threads })
        })?;
        let extent = IndexExpr::constant(most);
        let runs = own.extent.sub(&IndexExpr::var(own.var)).offset(-1);
        self.expect_no_data(std::slice::from_ref(&runs))?;
        let runs = Enclosing::Choice(vec![runs], true);
        let body = self.in_range(own.var, &extent, |this| this.split_enclosed(runs, own.body))?;
        Ok(Stmt::For(For { extent, body, ..own }))
    }

    /// Runs `inside` with the range of a loop added.
    fn in_range<T>(&mut self, var: LoopVarId, extent: &IndexExpr, inside: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.ranges.clone();
        self.ranges.add_loop(var, extent);
        let result = inside(self);
        self.ranges = before;
        result
    }

    /// Refuses conditions that depend on data, which the statements under them may change.
    fn expect_no_data(&self, conditions: &[IndexExpr]) -> Legal<()> {
        match conditions.iter().any(IndexExpr::has_data) {
            true => Err(Illegal::Kernel(KernelFault::BarrierDependsOnData)),
            false => Ok(()),
        }
    }
}

fn is_over_threads(own: &For) -> bool {
    matches!(own.kind, LoopKind::Thread(_))
}

/// Returns true when some loop over threads has sibling statements, with which its threads may
/// exchange values.
fn thread_loop_has_siblings(stmts: &[Stmt]) -> bool {
    let alone = stmts.len() == 1 || !has_threads(stmts);
    !alone || stmts.iter().flat_map(Stmt::bodies).any(thread_loop_has_siblings)
}

fn has_threads(stmts: &[Stmt]) -> bool {
    any_loop(stmts, is_over_threads)
}
