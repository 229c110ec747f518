//! Decides whether a kernel may declare its pointers `restrict`.
//!
//! The qualifier promises more than that buffers do not overlap: compilers also assume that no
//! other thread changes the memory behind a pointer. They keep a value in a register across a
//! barrier even though another thread has overwritten it. And where a `?:` selects between elements
//! of two buffers, NVIDIA's compiler reads even the buffer that the kernel writes through the cache
//! for read-only data. So a kernel that reads a buffer that it writes uses no `restrict`. Reading
//! an element in order to reduce into it is safe as long as the kernel has no barrier.

use std::collections::BTreeSet;

use tilewright_ir::nest::{BufferId, Stmt};
use tilewright_ir::walk;

/// Whether the pointers of a kernel may be `restrict`. `is_parameter` says whether a buffer is
/// memory that several threads access through a pointer.
pub(super) fn can_restrict(kernel: &Stmt, is_parameter: &dyn Fn(BufferId) -> bool) -> bool {
    let mut survey = Survey::default();
    walk::visit(std::slice::from_ref(kernel), &mut |stmt| survey.stmt(stmt));
    let reduced_into = if survey.has_barrier { survey.reduced_into } else { BTreeSet::new() };
    !survey
        .written
        .iter()
        .any(|id| is_parameter(*id) && (survey.read.contains(id) || reduced_into.contains(id)))
}

/// The buffers that a kernel writes, reads and reduces into.
#[derive(Default)]
struct Survey {
    written: BTreeSet<BufferId>,
    read: BTreeSet<BufferId>,
    /// The buffers that values are reduced into.
    reduced_into: BTreeSet<BufferId>,
    /// Whether the kernel has a barrier.
    has_barrier: bool,
}

impl Survey {
    fn stmt(&mut self, stmt: &Stmt) {
        self.has_barrier |= matches!(stmt, Stmt::Sync(_) | Stmt::Combine(_));
        if let Some(store) = stmt.store() {
            self.written.insert(store.target.tensor);
            if store.reduce.is_some() {
                self.reduced_into.insert(store.target.tensor);
            }
        }
        stmt.visit_own_reads(&mut |access| _ = self.read.insert(access.tensor));
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::nest::{
        Access, Atom, Axis, Expr, ExprKind, For, IndexExpr, LoopKind, LoopVarId, Store, Sync,
    };
    use tilewright_ir::{DType, Number, Origin, ReduceOp};

    use super::*;

    fn element(buffer: u32) -> Access {
        Access { tensor: BufferId(buffer), indices: vec![IndexExpr::constant(0)], origin: Origin::default() }
    }

    fn store(to: u32, from: u32, reduce: Option<ReduceOp>) -> Stmt {
        let value = Expr { dtype: DType::Int32, kind: ExprKind::Load(element(from)) };
        Stmt::Store(Store { target: element(to), value, reduce, is_asynchronous: false, claim: None })
    }

    fn is_restricted(body: Vec<Stmt>) -> bool {
        let kind = LoopKind::Block(Axis::X);
        let kernel = For { var: LoopVarId(0), extent: IndexExpr::constant(2), kind, body };
        // Buffer 9 is in registers.
        can_restrict(&Stmt::For(kernel), &|id| id != BufferId(9))
    }

    #[test]
    fn a_kernel_that_reads_its_own_results_has_no_restrict() {
        let barrier = || Stmt::Sync(Sync::Barrier);
        assert!(is_restricted(vec![store(1, 0, None), barrier(), store(2, 0, None)]));
        assert!(!is_restricted(vec![store(1, 0, None), barrier(), store(2, 1, None)]));
        assert!(!is_restricted(vec![store(1, 0, None), store(2, 1, None)]));
        assert!(is_restricted(vec![store(9, 0, None), barrier(), store(2, 9, None)]));
        // Only after a barrier does a thread see values that another thread has reduced.
        assert!(is_restricted(vec![store(1, 0, Some(ReduceOp::Add))]));
        assert!(!is_restricted(vec![store(1, 0, Some(ReduceOp::Add)), barrier()]));
        // Data in a subscript is read too.
        let value = Expr { dtype: DType::Int32, kind: ExprKind::Load(element(1)) };
        let data = std::sync::Arc::new(tilewright_ir::nest::Data { value, declared: None });
        let chosen = Access { indices: vec![IndexExpr::atom(Atom::Data(data))], ..element(2) };
        let one = Expr::literal(DType::Int32, Number::Int(1));
        let scatter = Store { target: chosen, value: one, reduce: None, is_asynchronous: false, claim: None };
        assert!(!is_restricted(vec![store(1, 0, None), Stmt::Store(scatter)]));
    }
}
