//! Emits the buffers in which results are accumulated: those of steps such as `promote C at C.io ->
//! acc registers`, and those of reductions of 16-bit floats.
//!
//! The buffer lives around the part of the loop's body that belongs to the statement. Code before
//! and after it in the same iteration sees the tensor. Inside one iteration of the loop, the
//! statement's loops further in index its elements, so these loops are the dimensions of the
//! buffer. The buffer is first filled with the neutral element. Where loops of the reduction are
//! outside, that happens only in their first iteration, and in all others the buffer is loaded from
//! the tensor. At the end the buffer is stored to the tensor.
//!
//! A reduction of 16-bit floats accumulates in float32 outside its outermost reduction loop, so
//! that it rounds once and not after every addition.

use tilewright_ir::nest::{
    Access, Allocate, Buffer, BufferId, ClaimRole, Expr, ExprKind, If, IndexExpr, LoopKind, LoopVarId, Scope,
    Stmt, Store,
};
use tilewright_ir::{ReduceOp, arithmetic};

use tilewright_target::Registers;

use super::claim::claim_in_copy;
use super::emit::Emitter;
use crate::draft::{Accumulator, Legal, LoopRole, StatementId, access};
use crate::illegal::Illegal;
use crate::steps::promote::USED_AGAIN;

/// An open accumulator: statements inside store to its buffer.
pub(super) struct OpenAccumulator {
    statement: StatementId,
    buffer: BufferId,
    /// The loops that index the buffer, outermost first.
    loops: Vec<LoopVarId>,
    /// The statement's reduction loops around the buffer.
    reduced_outside: Vec<LoopVarId>,
}

impl Emitter<'_> {
    /// Returns true when the statement must accumulate its 16-bit result in a wider buffer around
    /// this loop.
    pub fn needs_wide_accumulator(&self, id: StatementId, var: LoopVarId) -> bool {
        let statement = self.draft.statement(id);
        let dtype = self.buffer(statement.target.tensor).dtype;
        statement.reduction().is_some()
            && statement.accumulator.is_none()
            && self.draft.combined_thread_loop(id).is_none()
            && dtype.compute_type() != dtype
            && self.draft.outermost_reduction(id) == Some(var)
            && !self.draft.is_scatter(id)
            && !self
                .draft
                .loops_in_subscripts(id, var)
                .iter()
                .any(|var| self.draft.loop_of(*var).role == LoopRole::Reduction)
    }

    /// Refuses the wider buffer of a 16-bit reduction in a vector loop. The message names loops,
    /// because no step has made the buffer.
    pub fn refuse_wide_in_vector(&self, id: StatementId, vector: LoopVarId) -> Option<Illegal> {
        let inside = self.draft.loops_in(self.draft.body_of(vector));
        let reduced = inside.into_iter().find(|var| self.needs_wide_accumulator(id, *var))?;
        Some(Illegal::WideAccumulatorInVector {
            tensor: self.draft.statement(id).name.tensor.clone(),
            reduced: self.draft.qualified_loop_name(reduced),
            loop_name: self.draft.qualified_loop_name(vector),
        })
    }

    /// Opens the wider buffer of a 16-bit reduction around its outermost reduction loop.
    pub fn open_wide_accumulator(&mut self, id: StatementId, var: LoopVarId) -> Legal<OpenAccumulator> {
        let loops = self.draft.loops_in_subscripts(id, var);
        let name = format!("{}_wide", self.draft.statement(id).name.tensor);
        self.open_accumulator(id, loops, Vec::new(), name, false)
    }

    /// Opens the buffer that a step asked for, in an iteration of the loop.
    pub fn open_promoted_accumulator(&mut self, id: StatementId) -> Legal<OpenAccumulator> {
        let accumulator = self.draft.statement(id).accumulator.clone();
        let accumulator = accumulator.expect("the caller passes a statement with an accumulator");
        let path = self.draft.path(id);
        self.check_fused_loops(id, &accumulator)?;
        self.check_lifetime(id, &accumulator)?;
        self.check_ordered_loops(id, &accumulator)?;
        self.check_other_uses(id, &accumulator)?;
        let at =
            path.iter().position(|own| *own == accumulator.at).expect("the loop is around the statement");
        let indices = &self.draft.statement(id).target.indices;
        let named = |var: &&LoopVarId| indices.iter().any(|index| index.mentions(**var));
        let loops = path[at + 1..].iter().filter(named).copied().collect();
        let reduced = |var: &&LoopVarId| {
            let own = self.draft.loop_of(**var);
            own.owner == Some(id) && own.role == LoopRole::Reduction
        };
        let outside = path[..=at].iter().filter(reduced).copied().collect();
        self.open_accumulator(id, loops, outside, accumulator.name, accumulator.in_registers)
    }

    /// Refuses a result if one loop both reduces it and indexes it: a reduction loop was fused with
    /// a loop of the result.
    fn check_fused_loops(&self, id: StatementId, accumulator: &Accumulator) -> Legal<()> {
        let indices = &self.draft.statement(id).target.indices;
        let shared = self.draft.loops_owned_by(id).into_iter().find(|var| {
            self.draft.loop_of(*var).role == LoopRole::Reduction
                && indices.iter().any(|index| index.mentions(*var))
        });
        let Some(shared) = shared else { return Ok(()) };
        Err(Illegal::Promote {
            tensor: self.draft.statement(id).name.tensor.clone(),
            at: self.draft.qualified_loop_name(accumulator.at),
            why: format!(
                "`{}` is both a reduction loop and a loop of the result",
                self.draft.qualified_loop_name(shared)
            ),
        })
    }

    /// Refuses a result whose tensor is allocated in a loop further in, so that it does not exist
    /// where the result is stored.
    fn check_lifetime(&self, id: StatementId, accumulator: &Accumulator) -> Legal<()> {
        let target = self.draft.statement(id).target.tensor;
        let Some(allocated_at) = self.draft.buffers[target.index()].allocated_at else { return Ok(()) };
        if !self.draft.loops_around(allocated_at).contains(&accumulator.at) {
            return Ok(());
        }
        Err(Illegal::Promote {
            tensor: self.draft.statement(id).name.tensor.clone(),
            at: self.draft.qualified_loop_name(accumulator.at),
            why: format!(
                "it is allocated in each iteration of `{}`, which is inside that loop",
                self.draft.qualified_loop_name(allocated_at)
            ),
        })
    }

    /// Refuses a result that several iterations of an ordered loop would share, since each writes
    /// it anew.
    fn check_ordered_loops(&self, id: StatementId, accumulator: &Accumulator) -> Legal<()> {
        let path = self.draft.path(id);
        let mut inside = path.iter().skip_while(|var| **var != accumulator.at).skip(1);
        let Some(ordered) = inside.find(|var| self.draft.loop_of(**var).role == LoopRole::Ordered) else {
            return Ok(());
        };
        Err(Illegal::Promote {
            tensor: self.draft.statement(id).name.tensor.clone(),
            at: self.draft.qualified_loop_name(accumulator.at),
            why: format!(
                "the ordered loop `{}` is inside that loop, and writes the result again",
                self.draft.qualified_loop_name(*ordered)
            ),
        })
    }

    /// Refuses a result that other statements use while its buffer holds it: steps after the
    /// promotion have moved them there.
    fn check_other_uses(&self, id: StatementId, accumulator: &Accumulator) -> Legal<()> {
        if !self.draft.is_used_in_same_branch(id, accumulator.at) {
            return Ok(());
        }
        Err(Illegal::Promote {
            tensor: self.draft.statement(id).name.tensor.clone(),
            at: self.draft.qualified_loop_name(accumulator.at),
            why: USED_AGAIN.to_string(),
        })
    }

    fn open_accumulator(
        &mut self,
        id: StatementId,
        loops: Vec<LoopVarId>,
        reduced_outside: Vec<LoopVarId>,
        name: String,
        in_registers: bool,
    ) -> Legal<OpenAccumulator> {
        let statement = self.draft.statement(id);
        let ranges = self.draft.ranges(id);
        // The lanes of a vector must be adjacent, so the vector loop is the last dimension.
        let is_vector = |var: &LoopVarId| self.draft.loop_of(*var).kind == LoopKind::Vector;
        let most = |var: &LoopVarId| ranges.greatest_value(&self.draft.loop_of(*var).extent);
        if let Some(unknown) = loops.iter().find(|var| most(var).is_none()) {
            let loop_name = self.draft.qualified_loop_name(*unknown);
            return Err(Illegal::Promote {
                tensor: statement.name.tensor.clone(),
                at: statement
                    .accumulator
                    .as_ref()
                    .map_or(loop_name.clone(), |own| self.draft.qualified_loop_name(own.at)),
                why: format!("the largest number of iterations of `{loop_name}` is not known"),
            });
        }
        let extent = |var: &LoopVarId| most(var).unwrap_or(1).max(1);
        // A loop that runs at most once needs no dimension.
        let mut dimensions: Vec<LoopVarId> = loops.iter().copied().filter(|var| extent(var) > 1).collect();
        dimensions.sort_by_key(is_vector);
        let dtype = self.buffer(statement.target.tensor).dtype.compute_type();
        let scope = if in_registers { Scope::Register } else { Scope::Scratch };
        let buffer = Buffer { name, dtype, shape: dimensions.iter().map(extent).collect(), scope };
        if in_registers {
            self.check_threads(&buffer, &loops)?;
            self.check_registers(&buffer, &dimensions)?;
        }
        let buffer = self.add_buffer(buffer);
        let indices = dimensions.iter().map(|var| IndexExpr::var(*var)).collect();
        self.redirected.push((id, access(buffer, indices)));
        Ok(OpenAccumulator { statement: id, buffer, loops, reduced_outside })
    }

    /// Refuses registers that the threads of a loop would share, even if that loop has at most one
    /// iteration.
    fn check_threads(&self, buffer: &Buffer, loops: &[LoopVarId]) -> Legal<()> {
        let starts = |var: &&LoopVarId| {
            matches!(self.draft.loop_of(**var).kind, LoopKind::Parallel | LoopKind::Block(_))
        };
        match loops.iter().find(starts) {
            Some(var) => {
                let loop_name = self.draft.qualified_loop_name(*var);
                Err(Illegal::RegisterIndex { name: buffer.name.clone(), loop_name })
            }
            None => Ok(()),
        }
    }

    fn check_registers(&self, buffer: &Buffer, dimensions: &[LoopVarId]) -> Legal<()> {
        let mut registers = 1;
        let mut lanes = 1;
        for (var, extent) in dimensions.iter().zip(&buffer.shape) {
            match self.draft.loop_of(*var).kind {
                LoopKind::Vector => lanes = *extent as usize,
                LoopKind::Unrolled => registers *= *extent as usize,
                // Each thread has its own registers.
                LoopKind::Thread(_) => {}
                LoopKind::Serial | LoopKind::Parallel | LoopKind::Block(_) => {
                    let loop_name = self.draft.qualified_loop_name(*var);
                    return Err(Illegal::RegisterIndex { name: buffer.name.clone(), loop_name });
                }
            }
        }
        let (name, element) = (buffer.name.clone(), buffer.dtype.bytes());
        match self.draft.capabilities.registers {
            Registers::Vector { bytes, count: available } => {
                let needed = registers * (lanes * element).div_ceil(bytes);
                let lanes = lanes.min(bytes / element);
                let refusal = Illegal::RegisterTile { name, needed, lanes, available };
                if needed > available { Err(refusal) } else { Ok(()) }
            }
            Registers::Thread { count: available } => {
                let needed = registers * lanes * element.div_ceil(4);
                let refusal = Illegal::ThreadRegisters { name, needed, available };
                if needed > available { Err(refusal) } else { Ok(()) }
            }
        }
    }

    /// Fills the buffer before the statements, and stores it after them.
    pub fn close_accumulator(&mut self, accumulator: OpenAccumulator, inner: Vec<Stmt>) -> Vec<Stmt> {
        let at = self.redirected.iter().position(|(id, _)| *id == accumulator.statement);
        let at = at.expect("an open accumulator redirects its statement");
        let (_, buffer) = self.redirected.remove(at);
        let mut body = self.initialise_buffer(&accumulator, &buffer);
        body.extend(inner);
        let target = self.draft.statement(accumulator.statement).target.clone();
        body.extend(self.move_elements(&accumulator, &buffer, &target));
        vec![Stmt::Allocate(Allocate { buffer: accumulator.buffer, body })]
    }

    fn initialise_buffer(&mut self, accumulator: &OpenAccumulator, buffer: &Access) -> Vec<Stmt> {
        let statement = self.draft.statement(accumulator.statement);
        let Some((op, reset)) = statement.reduction() else { return Vec::new() };
        let target = statement.target.clone();
        if !reset {
            return self.move_elements(accumulator, &target, buffer);
        }
        let neutral = self.set_neutral(accumulator, op, buffer);
        if accumulator.reduced_outside.is_empty() {
            return neutral;
        }
        // The condition that all of these loops are in their first iteration.
        let conditions =
            accumulator.reduced_outside.iter().map(|var| IndexExpr::var(*var).scale(-1)).collect();
        let otherwise = self.move_elements(accumulator, &target, buffer);
        vec![Stmt::If(If { conditions, then: neutral, otherwise })]
    }

    fn set_neutral(&mut self, accumulator: &OpenAccumulator, op: ReduceOp, buffer: &Access) -> Vec<Stmt> {
        let dtype = self.buffer(buffer.tensor).dtype;
        let value = Expr::literal(dtype, arithmetic::neutral(op, dtype));
        let claim = self.claim(accumulator.statement, ClaimRole::Neutral);
        // Setting the buffer elements of a thread without an element is harmless.
        self.replicate(&accumulator.loops, &[], &mut |renamed| {
            let target = Access { indices: buffer.indices.iter().map(renamed).collect(), ..buffer.clone() };
            let claim = claim_in_copy(&claim, renamed);
            vec![Stmt::Store(Store {
                target,
                value: value.clone(),
                reduce: None,
                is_asynchronous: false,
                is_atomic: false,
                claim,
            })]
        })
    }

    /// Copies elements from one access to the other, over copies of the buffer's loops.
    fn move_elements(&mut self, accumulator: &OpenAccumulator, from: &Access, to: &Access) -> Vec<Stmt> {
        let dtype = self.buffer(from.tensor).dtype;
        let compute = self.buffer(to.tensor).dtype.compute_type();
        let guards = self.guards_of_elements(accumulator.statement, &accumulator.loops);
        let claim = self.claim(accumulator.statement, ClaimRole::Carry);
        self.replicate(&accumulator.loops, &guards, &mut |renamed| {
            let at = |access: &Access| Access {
                indices: access.indices.iter().map(renamed).collect(),
                ..access.clone()
            };
            let value = Expr { dtype, kind: ExprKind::Load(at(from)) }.cast(compute);
            let claim = claim_in_copy(&claim, renamed);
            vec![Stmt::Store(Store {
                target: at(to),
                value,
                reduce: None,
                is_asynchronous: false,
                is_atomic: false,
                claim,
            })]
        })
    }
}
