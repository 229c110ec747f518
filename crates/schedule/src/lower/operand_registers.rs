//! Checks operands that a step puts into a thread's registers, such as `promote A at O.kk -> a
//! registers`, in the lowered loop nest.
//!
//! Registers belong to one thread and have no addresses. So such a buffer must be inside the loops
//! over threads. Its subscripts must be known when code is generated: constants and variables of
//! unrolled loops. Only the last subscript may also add the variable of a vector loop.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, BufferId, For, IndexExpr, LoopKind, LoopVarId, Scope, Stmt};
use tilewright_target::Registers;

use crate::draft::{Draft, Legal};
use crate::illegal::{Illegal, KernelFault};

/// Refuses operands in registers that are outside thread loops, whose subscripts are not known when
/// code is generated, or that take too many registers.
pub(super) fn check(nest: &LoopNest, draft: &Draft) -> Legal<()> {
    let Registers::Thread { count: available } = draft.capabilities.registers else { return Ok(()) };
    let staged = draft
        .buffers
        .iter()
        .zip(&nest.buffers)
        .map(|(own, buffer)| own.is_staged && buffer.scope == Scope::Register);
    let check = RegisterCheck { nest, staged: staged.collect(), available };
    check.check_stmts(&nest.body, &mut Vec::new())
}

struct RegisterCheck<'a> {
    nest: &'a LoopNest,
    /// For each buffer, whether it is an operand in registers.
    staged: Vec<bool>,
    /// The number of 32-bit registers of a thread.
    available: usize,
}

impl RegisterCheck<'_> {
    fn is_staged(&self, buffer: BufferId) -> bool {
        self.staged.get(buffer.index()) == Some(&true)
    }

    fn check_stmts<'n>(&self, stmts: &'n [Stmt], around: &mut Vec<&'n For>) -> Legal<()> {
        stmts.iter().try_for_each(|stmt| {
            if let Stmt::Allocate(own) = stmt
                && self.is_staged(own.buffer)
            {
                self.check_allocation(own.buffer, around)?;
            }
            self.check_accesses(stmt, around)?;
            let outside = around.len();
            if let Stmt::For(own) = stmt {
                around.push(own);
            }
            stmt.bodies().try_for_each(|body| self.check_stmts(body, around))?;
            around.truncate(outside);
            Ok(())
        })
    }

    /// Checks the accesses of a statement itself, also those inside its bounds and subscripts.
    fn check_accesses(&self, stmt: &Stmt, around: &[&For]) -> Legal<()> {
        let mut found = Ok(());
        stmt.visit_own_accesses(&mut |access| {
            if found.is_ok() {
                found = self.check_access(access, around);
            }
        });
        found
    }

    fn check_allocation(&self, buffer: BufferId, around: &[&For]) -> Legal<()> {
        let own = self.nest.buffer(buffer);
        let in_thread = around.iter().any(|own| matches!(own.kind, LoopKind::Thread(_)));
        if !in_thread {
            return Err(Illegal::Kernel(KernelFault::RegistersOutsideThreads { buffer: own.name.clone() }));
        }
        let needed = own.elements() as usize * own.dtype.bytes().div_ceil(4);
        if needed <= self.available {
            return Ok(());
        }
        Err(Illegal::ThreadRegisters { name: own.name.clone(), needed, available: self.available })
    }

    fn check_access(&self, access: &Access, around: &[&For]) -> Legal<()> {
        if !self.is_staged(access.tensor) {
            return Ok(());
        }
        if access.indices.iter().any(IndexExpr::has_data) {
            return Err(Illegal::RegisterData { name: self.nest.buffer(access.tensor).name.clone() });
        }
        let kind = |var: LoopVarId| around.iter().find(|inner| inner.var == var).map(|inner| inner.kind);
        let vector = around.iter().find(|inner| inner.kind == LoopKind::Vector);
        let subscripts = match vector {
            Some(vector) => access.subscripts_of_first_lane(vector.var),
            None => access.indices.clone(),
        };
        let vars = subscripts.iter().flat_map(|index| index.vars());
        match vars.into_iter().find(|var| kind(*var) != Some(LoopKind::Unrolled)) {
            Some(var) => Err(self.refusal(access, var, kind(var))),
            None => Ok(()),
        }
    }

    /// The refusal of a subscript that mentions `var`, the variable of a loop of this kind.
    fn refusal(&self, access: &Access, var: LoopVarId, kind: Option<LoopKind>) -> Illegal {
        let name = self.nest.buffer(access.tensor).name.clone();
        let loop_name = self.nest.var_name(var).to_owned();
        match kind {
            Some(LoopKind::Vector) => Illegal::RegisterLane { name, loop_name },
            _ => Illegal::RegisterIndex { name, loop_name },
        }
    }
}
