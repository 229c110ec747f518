//! Inserts barriers between the statements of a GPU's thread block, only where they are needed.
//!
//! A walk goes through the statements of a block in execution order and remembers the accesses
//! since the last barrier. Two accesses conflict if different threads may touch the same element
//! and at least one of the accesses writes; `access.rs` decides this. If an access of a statement
//! conflicts with a remembered one, the walk inserts a barrier before the statement.
//!
//! The body of a loop around thread loops is walked twice. The first walk begins with the accesses
//! before the loop. The second walk also begins with the accesses at the end of an iteration,
//! because the next iteration follows them.

mod access;

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{For, LoopKind, Scope, Stmt, Sync};
use tilewright_ir::walk::any_loop;

use self::access::{BlockAccess, Iteration};

/// Inserts barriers into all kernels.
pub(super) fn synchronise(nest: &mut LoopNest) {
    let shareable: Vec<bool> = nest.buffers.iter().map(|buffer| buffer.scope != Scope::Register).collect();
    for stmts in [&mut nest.setup, &mut nest.body] {
        each_kernel(stmts, &mut |kernel| {
            let mut walk = Walk { shareable: &shareable };
            kernel.body = walk.body(std::mem::take(&mut kernel.body), &mut RecentAccesses::default());
        });
    }
}

/// Calls `visit` on the outermost block loops.
fn each_kernel(stmts: &mut [Stmt], visit: &mut dyn FnMut(&mut For)) {
    for stmt in stmts {
        match stmt {
            Stmt::For(inner) if matches!(inner.kind, LoopKind::Block(_)) => visit(inner),
            other => other.bodies_mut().for_each(|body| each_kernel(body, visit)),
        }
    }
}

/// The accesses since the last barrier.
#[derive(Clone, Debug, Default)]
struct RecentAccesses(Vec<BlockAccess>);

impl RecentAccesses {
    /// Returns true when one of the later accesses must wait for one of these.
    fn conflict_with(&self, later: &[BlockAccess]) -> bool {
        later.iter().any(|access| self.0.iter().any(|before| before.conflicts_with(access)))
    }

    fn add(&mut self, accesses: &[BlockAccess]) {
        for access in accesses {
            if !self.0.contains(access) {
                self.0.push(access.clone());
            }
        }
    }

    /// Marks every access as one of an earlier iteration of a loop.
    fn leave_iteration(&mut self, inner: &For, iteration: Iteration) {
        let extent = inner.extent.as_constant();
        self.0.iter_mut().for_each(|access| access.leave_iteration(inner.var, extent, iteration));
    }
}

struct Walk<'a> {
    shareable: &'a [bool],
}

impl Walk<'_> {
    fn body(&mut self, stmts: Vec<Stmt>, recent: &mut RecentAccesses) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            match stmt {
                Stmt::Sync(Sync::Barrier) => {
                    recent.0.clear();
                    out.push(stmt);
                }
                // A loop over another dimension of the grid: every block starts without earlier
                // accesses.
                Stmt::For(mut inner) if matches!(inner.kind, LoopKind::Block(_)) => {
                    inner.body = self.body(inner.body, &mut RecentAccesses::default());
                    out.push(Stmt::For(inner));
                }
                Stmt::For(inner)
                    if has_threads(&inner.body) && !matches!(inner.kind, LoopKind::Thread(_)) =>
                {
                    // One barrier before the loop is better than one in every iteration.
                    let first = inner.body.iter().take_while(|stmt| **stmt != Stmt::Sync(Sync::Barrier));
                    let inside: Vec<BlockAccess> = first.flat_map(|stmt| self.accesses(stmt)).collect();
                    if recent.conflict_with(&inside) {
                        recent.0.clear();
                        out.push(Stmt::Sync(Sync::Barrier));
                    }
                    out.push(Stmt::For(self.uniform_loop(inner, recent)));
                }
                Stmt::If(mut inner) if has_threads(&inner.then) || has_threads(&inner.otherwise) => {
                    let mut other = recent.clone();
                    inner.then = self.body(inner.then, recent);
                    inner.otherwise = self.body(inner.otherwise, &mut other);
                    recent.add(&other.0);
                    out.push(Stmt::If(inner));
                }
                Stmt::Allocate(mut inner) => {
                    inner.body = self.body(inner.body, recent);
                    out.push(Stmt::Allocate(inner));
                }
                leaf => {
                    let accesses = self.accesses(&leaf);
                    if recent.conflict_with(&accesses) {
                        recent.0.clear();
                        out.push(Stmt::Sync(Sync::Barrier));
                    }
                    recent.add(&accesses);
                    out.push(leaf);
                }
            }
        }
        out
    }

    /// Inserts barriers into a loop that all threads run together.
    fn uniform_loop(&mut self, mut inner: For, recent: &mut RecentAccesses) -> For {
        let before = recent.clone();
        inner.body = self.body(inner.body, recent);
        // The second walk sees the body as it follows another iteration. A third walk would leave
        // the same accesses.
        let iteration = match always_synchronises(&inner.body) {
            true => Iteration::Previous,
            false => Iteration::Earlier,
        };
        recent.leave_iteration(&inner, iteration);
        recent.add(&before.0);
        inner.body = self.body(inner.body, recent);
        // After the loop, an access may be of any iteration: the next run of the loop has the same
        // iterations again.
        recent.leave_iteration(&inner, Iteration::Any);
        recent.add(&before.0);
        inner
    }

    /// All accesses of a statement to buffers that threads share.
    fn accesses(&self, stmt: &Stmt) -> Vec<BlockAccess> {
        let mut collector = access::Collector::new(self.shareable);
        collector.stmt(stmt);
        collector.found
    }
}

/// Returns true when every run of the statements meets a barrier.
fn always_synchronises(stmts: &[Stmt]) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::Sync(Sync::Barrier) => true,
        Stmt::Allocate(inner) => always_synchronises(&inner.body),
        _ => false,
    })
}

fn has_threads(stmts: &[Stmt]) -> bool {
    any_loop(stmts, |inner| matches!(inner.kind, LoopKind::Thread(_)))
}
