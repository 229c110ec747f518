//! Decides which pointers of a kernel are `restrict` and `const`.
//!
//! `restrict` promises more than that buffers do not overlap: compilers also assume that no other
//! thread changes the memory behind a pointer. They keep a value in a register across a barrier
//! even though another thread has overwritten it. So if a kernel reads a buffer that it writes, the
//! buffers that it writes are not `restrict`. Reading an element in order to reduce into it is safe
//! as long as the kernel has no barrier.
//!
//! Buffers that a kernel only reads stay `restrict`, so that loads of later iterations need not
//! wait for the stores of earlier ones. There is one exception: where a `?:` selects between
//! elements of two buffers, NVIDIA's compiler reads both through the cache for read-only data, even
//! the one that the kernel writes. If a `?:` chooses elements of a buffer that the kernel also
//! writes, no pointer is `restrict`.

use std::collections::BTreeSet;

use tilewright_ir::nest::{BufferId, Expr, ExprKind, Stmt};
use tilewright_ir::walk;

/// What a kernel does with the buffers that it gets pointers to.
pub(super) struct Pointers {
    written: BTreeSet<BufferId>,
    restricts_written: bool,
    restricts_read: bool,
}

impl Pointers {
    /// The pointers of a kernel. `is_parameter` says whether a buffer is memory that several
    /// threads access through a pointer.
    pub(super) fn of(kernel: &Stmt, is_parameter: &dyn Fn(BufferId) -> bool) -> Pointers {
        let mut survey = Survey::default();
        walk::visit(std::slice::from_ref(kernel), &mut |stmt| survey.stmt(stmt));
        let reduced_into = if survey.has_barrier { survey.reduced_into } else { BTreeSet::new() };
        let is_read_back =
            |id: &&BufferId| is_parameter(**id) && (survey.read.contains(*id) || reduced_into.contains(*id));
        let read_back: BTreeSet<BufferId> = survey.written.iter().filter(is_read_back).copied().collect();
        let is_chosen = survey.chosen.iter().any(|id| read_back.contains(id));
        Pointers {
            restricts_written: read_back.is_empty(),
            restricts_read: !is_chosen,
            written: survey.written,
        }
    }

    /// Whether no other pointer or thread changes the memory behind the pointer to a buffer.
    pub(super) fn is_restrict(&self, buffer: BufferId) -> bool {
        if self.written.contains(&buffer) { self.restricts_written } else { self.restricts_read }
    }

    /// Whether the kernel only reads a buffer.
    pub(super) fn is_const(&self, buffer: BufferId) -> bool {
        !self.written.contains(&buffer)
    }
}

/// The buffers that a kernel writes, reads and reduces into.
#[derive(Default)]
struct Survey {
    written: BTreeSet<BufferId>,
    read: BTreeSet<BufferId>,
    /// The buffers that values are reduced into.
    reduced_into: BTreeSet<BufferId>,
    /// The buffers that are read in a `?:`.
    chosen: BTreeSet<BufferId>,
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
            self.choices(&store.value);
        }
        stmt.visit_own_reads(&mut |access| _ = self.read.insert(access.tensor));
    }

    fn choices(&mut self, value: &Expr) {
        match &value.kind {
            ExprKind::Select(_) => value.visit_reads(&mut |access| _ = self.chosen.insert(access.tensor)),
            _ => value.operands().iter().for_each(|operand| self.choices(operand)),
        }
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
        Stmt::Store(Store {
            target: element(to),
            value,
            reduce,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        })
    }

    fn pointers(body: Vec<Stmt>) -> Pointers {
        let kind = LoopKind::Block(Axis::X);
        let kernel = For { var: LoopVarId(0), extent: IndexExpr::constant(2), kind, body };
        // Buffer 9 is in registers.
        Pointers::of(&Stmt::For(kernel), &|id| id != BufferId(9))
    }

    /// Whether the written buffer 1 is `restrict`.
    fn is_restricted(body: Vec<Stmt>) -> bool {
        pointers(body).is_restrict(BufferId(1))
    }

    #[test]
    fn buffers_that_are_only_read_are_const_and_restrict() {
        let value = |from: u32| Expr { dtype: DType::Int32, kind: ExprKind::Load(element(from)) };
        let recurrence = pointers(vec![store(1, 0, None), store(1, 1, None)]);
        assert!(recurrence.is_const(BufferId(0)) && recurrence.is_restrict(BufferId(0)));
        assert!(!recurrence.is_const(BufferId(1)) && !recurrence.is_restrict(BufferId(1)));
        let choose = |then: u32, otherwise: u32| {
            let parts = [Expr::literal(DType::Bool, Number::Int(1)), value(then), value(otherwise)];
            let value = Expr { dtype: DType::Int32, kind: ExprKind::Select(Box::new(parts)) };
            Stmt::Store(Store {
                target: element(1),
                value,
                reduce: None,
                is_atomic: false,
                is_asynchronous: false,
                claim: None,
            })
        };
        assert!(!pointers(vec![choose(0, 1)]).is_restrict(BufferId(0)));
        assert!(pointers(vec![choose(0, 2)]).is_restrict(BufferId(0)));
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
        let scatter = Store {
            target: chosen,
            value: one,
            reduce: None,
            is_asynchronous: false,
            is_atomic: false,
            claim: None,
        };
        assert!(!is_restricted(vec![store(1, 0, None), Stmt::Store(scatter)]));
    }
}
