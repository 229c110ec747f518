//! Whether a kernel may promise that its pointers are `restrict`.
//!
//! The promise says more than that buffers do not overlap: compilers take it that no other thread changes what a pointer
//! leads to. They keep a value in a register over a barrier although another thread has written it since; and where a choice
//! is between elements of two buffers, NVIDIA's compiler reads the one that the kernel writes through the cache for what
//! never changes. So a kernel that reads what it writes promises nothing. Reading an element in order to reduce into it is no
//! danger as long as there is no barrier.

use std::collections::BTreeSet;

use tilewright_ir::index::Atom;
use tilewright_ir::nest::{Stmt, Store};
use tilewright_ir::{Access, Expr, ExprKind, IndexExpr, TensorId};

/// Whether the pointers of a kernel may be `restrict`. `reaches`: whether a buffer is memory that several threads reach
/// through a pointer.
pub(super) fn is_restrict(kernel: &Stmt, reaches: &dyn Fn(TensorId) -> bool) -> bool {
    let mut survey = Survey::default();
    survey.stmt(kernel);
    let updated = if survey.waits { survey.updated } else { BTreeSet::new() };
    !survey.written.iter().any(|id| reaches(*id) && (survey.read.contains(id) || updated.contains(id)))
}

/// The buffers of a kernel.
#[derive(Default)]
struct Survey {
    written: BTreeSet<TensorId>,
    read: BTreeSet<TensorId>,
    /// Those that values are reduced into.
    updated: BTreeSet<TensorId>,
    /// Whether threads wait for each other.
    waits: bool,
}

impl Survey {
    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For(own) => {
                self.index(&own.extent);
                own.body.iter().for_each(|stmt| self.stmt(stmt));
            }
            Stmt::If(own) => {
                own.conditions.iter().for_each(|condition| self.index(condition));
                own.then.iter().chain(&own.otherwise).for_each(|stmt| self.stmt(stmt));
            }
            Stmt::Allocate(own) => own.body.iter().for_each(|stmt| self.stmt(stmt)),
            Stmt::Store(own) => self.store(own),
            Stmt::Combine(own) => {
                self.waits = true;
                self.store(&own.store);
            }
            Stmt::Sync(_) => self.waits = true,
            Stmt::Prefetch(_) => {}
        }
    }

    fn store(&mut self, own: &Store) {
        self.written.insert(own.target.tensor);
        if own.reduce.is_some() {
            self.updated.insert(own.target.tensor);
        }
        own.target.indices.iter().for_each(|index| self.index(index));
        self.expr(&own.value);
    }

    fn expr(&mut self, expr: &Expr) {
        match &expr.kind {
            ExprKind::Load(access) => self.access(access),
            ExprKind::Index(index) => self.index(index),
            _ => expr.operands().iter().for_each(|operand| self.expr(operand)),
        }
    }

    fn access(&mut self, access: &Access) {
        self.read.insert(access.tensor);
        access.indices.iter().for_each(|index| self.index(index));
    }

    fn index(&mut self, index: &IndexExpr) {
        // Data inside of data is visited too.
        index.visit(&mut |atom| {
            if let Atom::Data(data) = atom {
                self.expr(&data.value);
            }
        });
    }
}
