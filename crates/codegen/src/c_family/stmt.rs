//! Writes the statements of a kernel as C text: loops, conditional statements, allocations, loads,
//! stores and barriers. The [`Emitter`] holds the text of one kernel and the state of writing it.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::interval::Interval;
use tilewright_ir::nest::{
    Access, Allocate, Atom, Axis, Buffer, BufferId, CombineNest, Expr, ExprKind, For, If, IndexExpr,
    LoopKind, LoopVarId, Scope, Stmt, Store,
};
use tilewright_ir::walk;
use tilewright_ir::{BinaryOp, DType, ReduceOp, ScalarId};

use super::barriers;
use super::c_expr::CExpr;
use super::expr::StoredValue;
use super::host::Argument;
use super::kernel::Unit;
use super::lanes::LoadedLanes;
use super::prelude::Helper;
use super::range::Ranges;
use crate::{Check, CodegenError};

pub(super) type Emit<T> = Result<T, CodegenError>;

/// Writes the statements of one kernel.
pub(super) struct Emitter<'a> {
    pub(super) unit: &'a Unit<'a>,
    pub(super) text: String,
    depth: usize,
    /// The intervals of the variables of the enclosing loops.
    pub(super) ranges: Ranges,
    /// The number of blocks of the grid along each axis.
    grid: [u32; 3],
    /// The number of threads of a block along each axis. `threads` holds the axes of the enclosing
    /// thread loops.
    pub(super) block: [u32; 3],
    thread_axes: BTreeSet<Axis>,
    /// The offset of each shared buffer in shared memory.
    pub(super) shared: BTreeMap<BufferId, i64>,
    /// The offset of the shared memory for reductions across threads.
    pub(super) reduction_offset: i64,
    /// The arguments that the kernel needs.
    pub(super) arguments: Vec<Argument>,
    /// The prelude functions that the kernel calls, each once.
    pub(super) helpers: Vec<(Helper, DType)>,
    pub(super) checks: &'a mut Vec<Check>,
    /// The elements that the lanes of a vector loop have loaded together.
    pub(super) lanes: LoadedLanes,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(
        unit: &'a Unit<'a>,
        ranges: Ranges,
        (grid, block): ([u32; 3], [u32; 3]),
        (shared, reduction_offset): (BTreeMap<BufferId, i64>, i64),
        checks: &'a mut Vec<Check>,
    ) -> Emitter<'a> {
        Emitter {
            unit,
            text: String::new(),
            depth: 1,
            ranges,
            grid,
            block,
            thread_axes: BTreeSet::new(),
            shared,
            reduction_offset,
            arguments: Vec::new(),
            helpers: Vec::new(),
            checks,
            lanes: LoadedLanes::default(),
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, head: &str) {
        self.line(&format!("{head}{{"));
        self.depth += 1;
    }

    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// Records that a prelude function is used, and returns its name.
    pub(super) fn require_helper(&mut self, helper: Helper, dtype: DType) -> String {
        if !self.helpers.contains(&(helper, dtype)) {
            self.helpers.push((helper, dtype));
        }
        helper.name(dtype)
    }

    pub(super) fn add_argument(&mut self, argument: Argument) {
        if !self.arguments.contains(&argument) {
            self.arguments.push(argument);
        }
    }

    /// The reduction inside a condition that must wait outside the condition.
    fn conditional_reduction<'s>(&self, conditional: &'s If) -> Option<CombineNest<'s>> {
        if self.unit.dialect.has_barriers_in_conditions() {
            None
        } else {
            barriers::conditional_reduction(conditional)
        }
    }

    pub(super) fn stmts(&mut self, stmts: &[Stmt]) -> Emit<()> {
        stmts.iter().try_for_each(|stmt| match stmt {
            Stmt::For(inner) => self.for_loop(inner),
            Stmt::If(conditional) => match self.conditional_reduction(conditional) {
                Some(combining) => self.combine(&combining, &conditional.conditions),
                None => self.conditional(conditional, &mut |this, stmts| this.stmts(stmts)),
            },
            Stmt::Allocate(allocation) => self.allocate(allocation),
            Stmt::Store(store) => self.in_first_threads(|this| this.store(store)),
            // A GPU runs other threads while one waits for memory, so it needs no prefetch.
            Stmt::Prefetch(_) => Ok(()),
            Stmt::Sync(sync) => {
                if let Some(line) = self.unit.dialect.sync(*sync) {
                    self.line(&line);
                }
                Ok(())
            }
            Stmt::Combine(_) => {
                let what = "a reduction across threads whose thread loops contain other statements";
                Err(CodegenError::Unsupported(what.into()))
            }
        })
    }

    // Loops.

    fn for_loop(&mut self, inner: &For) -> Emit<()> {
        if let Some(combining) = inner.combine_nest() {
            return self.combine(&combining, &[]);
        }
        self.ranges.enter(inner.var, &inner.extent);
        let done = match inner.kind {
            LoopKind::Block(axis) => {
                let running = i64::from(self.grid[axis as usize]);
                self.block_or_thread_loop(inner, self.unit.dialect.block_index(axis), running)
            }
            LoopKind::Thread(axis) => self.thread_loop(inner, axis),
            LoopKind::Serial | LoopKind::Parallel => {
                let hint = clamps_quotients(inner).then(|| self.unit.dialect.no_unroll());
                self.counted_loop(inner, hint)
            }
            LoopKind::Unrolled | LoopKind::Vector if self.serpentine(inner)? => Ok(()),
            LoopKind::Unrolled => self.counted_loop(inner, Some(self.unit.dialect.unroll())),
            LoopKind::Vector => match self.vector_loop(inner)? {
                true => Ok(()),
                false => self.counted_loop(inner, Some(self.unit.dialect.unroll())),
            },
        };
        self.ranges.leave(inner.var);
        done
    }

    fn counted_loop(&mut self, inner: &For, hint: Option<&str>) -> Emit<()> {
        let (var, extent) = (self.unit.names.var(inner.var).to_owned(), self.index(&inner.extent)?);
        if let Some(hint) = hint {
            self.line(hint);
        }
        let inside = CExpr::binary(BinaryOp::Less, &CExpr::atom(&var), &extent);
        self.open(&format!("for ({} {var} = 0; {}; ++{var}) ", self.var_type(inner.var), inside.text()));
        self.stmts(&inner.body)?;
        self.close();
        Ok(())
    }

    /// Writes a loop with one iteration for each block or thread. `running` is the number of blocks
    /// or threads that execute the statement.
    fn block_or_thread_loop(&mut self, inner: &For, index: CExpr, running: i64) -> Emit<()> {
        let var = self.unit.names.var(inner.var).to_owned();
        let extent = inner.extent.as_constant().unwrap_or(1);
        self.open("");
        self.line(&format!("const {} {var} = {};", self.var_type(inner.var), index.text()));
        if running == extent {
            self.stmts(&inner.body)?;
        } else {
            self.open(&format!("if ({var} < {extent}) "));
            self.stmts(&inner.body)?;
            self.close();
        }
        self.close();
        Ok(())
    }

    /// Declares the variable of a thread loop. Every thread has the variable, whether or not the
    /// thread is within the loop's extent.
    pub(super) fn thread_variable(&mut self, thread_loop: &For) {
        let Some(axis) = thread_loop.thread_axis() else { return };
        self.ranges.enter(thread_loop.var, &IndexExpr::constant(i64::from(self.block[axis as usize])));
        let (var, index) = (self.unit.names.var(thread_loop.var), self.unit.dialect.thread_index(axis));
        self.line(&format!("const {} {var} = {};", self.var_type(thread_loop.var), index.text()));
    }

    fn thread_loop(&mut self, inner: &For, axis: Axis) -> Emit<()> {
        self.thread_axes.insert(axis);
        let running = i64::from(self.block[axis as usize]);
        let done = self.block_or_thread_loop(inner, self.unit.dialect.thread_index(axis), running);
        self.thread_axes.remove(&axis);
        done
    }

    /// Guards a statement so that only the first thread runs it along each axis with several
    /// threads and no enclosing thread loop.
    pub(super) fn in_first_threads(&mut self, emit: impl FnOnce(&mut Self) -> Emit<()>) -> Emit<()> {
        let guards: Vec<CExpr> = Axis::ALL
            .into_iter()
            .filter(|axis| self.block[*axis as usize] > 1 && !self.thread_axes.contains(axis))
            .map(|axis| self.unit.dialect.is_first_thread(axis))
            .collect();
        if guards.is_empty() {
            return emit(self);
        }
        self.open(&format!("if ({}) ", CExpr::all(&guards).text()));
        emit(self)?;
        self.close();
        Ok(())
    }

    // Choices and buffers.

    /// Writes a conditional statement, with `write_branch` writing its branches.
    pub(super) fn conditional(
        &mut self,
        conditional: &If,
        write_branch: &mut dyn FnMut(&mut Self, &[Stmt]) -> Emit<()>,
    ) -> Emit<()> {
        let all = CExpr::all(&self.conditions(&conditional.conditions)?);
        self.open(&format!("if ({}) ", all.text()));
        write_branch(self, &conditional.then)?;
        self.depth -= 1;
        if !conditional.otherwise.is_empty() {
            self.line("} else {");
            self.depth += 1;
            write_branch(self, &conditional.otherwise)?;
            self.depth -= 1;
        }
        self.line("}");
        Ok(())
    }

    fn allocate(&mut self, allocation: &Allocate) -> Emit<()> {
        let dialect = self.unit.dialect;
        let buffer = self.unit.nest.buffer(allocation.buffer);
        let name = self.unit.names.buffer(allocation.buffer).to_owned();
        match buffer.scope {
            Scope::Shared => {
                let (space, t) = (dialect.shared(), dialect.memory_type(buffer.dtype));
                let offset = self.shared.get(&allocation.buffer).copied().unwrap_or(0);
                self.line(&format!("{space}{t}* const {name} = ({space}{t}*)(tw_shared + {offset});"));
            }
            Scope::Register | Scope::Scratch => {
                let t = match buffer.scope {
                    Scope::Register => dialect.value_type(buffer.dtype),
                    _ => dialect.memory_type(buffer.dtype),
                };
                let elements = self.unit.thread_elements(allocation.buffer);
                self.line(&format!("{t} {name}[{elements}];"));
            }
            Scope::Argument(_) | Scope::Constant => {
                let what = format!("an allocation of argument or constant `{}`", buffer.name);
                return Err(CodegenError::Unsupported(what));
            }
        }
        self.stmts(&allocation.body)
    }

    // Accesses.

    /// Writes the offset of an access in its buffer. Subscripts that depend on data are checked.
    fn element_offset(&mut self, access: &Access) -> Emit<CExpr> {
        let nest = self.unit.nest;
        let buffer = nest.buffer(access.tensor);
        let spread = self.unit.distributed_dimensions(access.tensor);
        let (mut plain, mut parts) = (IndexExpr::constant(0), Vec::new());
        for (dimension, (index, stride)) in
            access.indices.iter().zip(self.unit.thread_strides(access.tensor)).enumerate()
        {
            if spread.contains(&dimension) {
                continue;
            }
            if index.has_data() {
                let at = self.checked_index(access, dimension, index, buffer)?;
                let scaled = || CExpr::binary(BinaryOp::Mul, &at, &self.number(stride));
                parts.push(if stride == 1 { at } else { scaled() });
            } else {
                plain = plain.add(&index.scale(stride));
            }
        }
        let plain = plain.merge_quotients();
        if plain.is_overflow() {
            return Err(CodegenError::Unsupported(format!(
                "subscripts of `{}` that overflow 64 bits",
                buffer.name
            )));
        }
        if plain.as_constant() != Some(0) || parts.is_empty() {
            parts.push(self.index(&plain)?);
        }
        Ok(CExpr::sum(&parts))
    }

    /// Writes a subscript that depends on data. The check happens in the type that holds the
    /// subscript; only then is the subscript converted to the width of offsets. A subscript that is
    /// clamped to its dimension, or whose type has no other values, needs no check.
    fn checked_index(
        &mut self,
        access: &Access,
        dimension: usize,
        index: &IndexExpr,
        buffer: &Buffer,
    ) -> Emit<CExpr> {
        let declared = index.declared_conditions(buffer.shape[dimension]);
        let is_declared = !declared.is_empty();
        let width = self.width(index).max(self.offset_width());
        let wanted = self.offset_width().dtype();
        let in_width_of_offsets = |this: &Self, value: CExpr| match width.dtype() == wanted {
            true => value,
            false => value.cast(this.type_name(wanted)),
        };
        let Interval { low, high } = self.ranges.interval(index);
        if !is_declared && low >= 0 && high < buffer.shape[dimension].into() {
            let at = self.index_in(index, width)?;
            return Ok(in_width_of_offsets(self, at));
        }
        let check = Check { buffer: access.tensor, dimension, is_declared, origin: access.origin };
        let number = self.check_number(check);
        self.add_argument(Argument::Status);
        let function = self.require_helper(Helper::Checked, width.dtype());
        let mut at = self.index_in(index, width)?;
        if is_declared {
            let holds = CExpr::all(&self.conditions(&declared)?);
            at = CExpr::conditional(&holds, &at, &self.number(-1));
        }
        let extent = self.number(buffer.shape[dimension]);
        let arguments = [at, extent, CExpr::atom("&tw_failed"), CExpr::atom(number.to_string())];
        Ok(in_width_of_offsets(self, CExpr::call(&function, &arguments)))
    }

    /// The number of a check, from 1. The same subscript of the same access is one check, however
    /// often it is written.
    fn check_number(&mut self, check: Check) -> usize {
        let same = |other: &Check| {
            (other.buffer, other.dimension) == (check.buffer, check.dimension)
                && (other.origin.start, other.origin.end) == (check.origin.start, check.origin.end)
        };
        let at = self.checks.iter().position(same).unwrap_or_else(|| {
            self.checks.push(check);
            self.checks.len() - 1
        });
        at + 1
    }

    /// `A[...]`.
    pub(super) fn element(&mut self, access: &Access) -> Emit<CExpr> {
        if self.unit.is_parameter(access.tensor) {
            self.add_argument(Argument::Buffer(access.tensor));
        }
        let offset = self.element_offset(access)?;
        Ok(CExpr::element(self.unit.names.buffer(access.tensor), &offset))
    }

    /// Writes the value of an element in memory.
    pub(super) fn load(&mut self, access: &Access) -> Emit<CExpr> {
        let element = match self.lanes.find(access) {
            Some(loaded) => CExpr::atom(loaded),
            None => self.element(access)?,
        };
        Ok(self.decode(element, self.memory_dtype(access.tensor)))
    }

    /// Converts an element as stored in memory to a value. `dtype` is `None` for registers, which
    /// hold values already.
    fn decode(&mut self, stored: CExpr, dtype: Option<DType>) -> CExpr {
        match dtype {
            Some(half @ (DType::Float16 | DType::BFloat16)) => {
                CExpr::call(&self.require_helper(Helper::LoadHalf, half), &[stored])
            }
            Some(DType::Bool) => CExpr::binary(BinaryOp::NotEqual, &stored, &CExpr::atom("0")),
            _ => stored,
        }
    }

    /// The type of a buffer in memory, or `None` for registers, which hold values.
    fn memory_dtype(&self, tensor: BufferId) -> Option<DType> {
        let buffer = self.unit.nest.buffer(tensor);
        (buffer.scope != Scope::Register).then_some(buffer.dtype)
    }

    pub(super) fn scalar(&mut self, id: ScalarId, dtype: DType) -> CExpr {
        self.add_argument(Argument::Scalar(id));
        let name = CExpr::atom(self.unit.names.scalar(id));
        self.decode(name, Some(dtype))
    }

    /// Writes an asynchronous copy to shared memory.
    pub(super) fn copy_async(&mut self, to: &Access, value: &Expr, bytes: i64) -> Emit<()> {
        let target = self.element(to)?;
        let (source, given) = match &value.kind {
            ExprKind::Select(parts) => (&parts[1], Some(self.value(&parts[0])?)),
            _ => (value, None),
        };
        let ExprKind::Load(from) = &source.kind else {
            let what = "an asynchronous store that is not a copy";
            return Err(CodegenError::Unsupported(what.into()));
        };
        let source = self.element(from)?;
        let function = self.require_helper(Helper::CopyAsync(bytes), DType::Bool);
        let first = self.unit.names.buffer(from.tensor);
        let (from, given) = match given {
            // Nothing is read where the condition fails, but the address must be valid.
            Some(given) => (CExpr::conditional(&given, &source.address(), &CExpr::atom(first)), given),
            None => (source.address(), CExpr::atom("true")),
        };
        let copy = CExpr::call(&function, &[target.address(), from, given]);
        self.line(&format!("{};", copy.text()));
        Ok(())
    }

    pub(super) fn store(&mut self, store: &Store) -> Emit<()> {
        if store.is_asynchronous && self.unit.has_async_copies {
            let bytes = self.unit.nest.buffer(store.target.tensor).dtype.bytes() as i64;
            return self.copy_async(&store.target, &store.value, bytes);
        }
        let stored = self.stored_value(store)?;
        self.store_value(store, stored)
    }

    /// Writes a store of a value to the statement's target.
    pub(super) fn store_value(&mut self, store: &Store, stored: StoredValue) -> Emit<()> {
        let target = self.element(&store.target)?;
        self.store_value_at(target, store, stored);
        Ok(())
    }

    /// Writes the same store, with `target` in place of the element.
    pub(super) fn store_value_at(&mut self, target: CExpr, store: &Store, stored: StoredValue) {
        let (dtype, memory) = (store.value.dtype, self.memory_dtype(store.target.tensor));
        if let (true, Some(op), StoredValue::Value(value)) = (store.is_atomic, store.reduce, &stored)
            && let Some(function) = self.unit.dialect.atomic_update(op)
        {
            let update = CExpr::call(function, &[target.address(), value.clone()]);
            self.line(&format!("{};", update.text()));
            return;
        }
        let value = match (stored, store.reduce) {
            (StoredValue::Value(value), None) => value,
            (StoredValue::Product(left, right), _) => {
                let total = self.decode(target.clone(), memory);
                self.multiply_add(&left, &right, &total, dtype)
            }
            (StoredValue::Value(value), Some(op)) => {
                let total = self.decode(target.clone(), memory);
                if op == ReduceOp::Add && dtype.is_float() && total == target {
                    self.line(&format!("{} += {};", target.text(), value.text()));
                    return;
                }
                self.reduce_value(op, &total, &value, dtype)
            }
        };
        let value = match memory {
            Some(half @ (DType::Float16 | DType::BFloat16)) => {
                CExpr::call(&self.require_helper(Helper::StoreHalf, half), &[value])
            }
            _ => value,
        };
        self.line(&format!("{} = {};", target.text(), value.text()));
    }
}

/// Returns true when the body bounds a quotient of the loop variable by a minimum or maximum, as in
/// `max(0, t/5 - 1)` after two loops were fused to `t`.
///
/// NVIDIA's assembler, ptxas, miscompiles such an expression for Hopper if the assembler unrolls
/// the loop: it computes `max(0, 1 - t/5)` (seen with the versions 13.0 and 13.4). The compiler
/// before it unrolls such loops only where it is told to, and then folds the expression correctly.
fn clamps_quotients(inner: &For) -> bool {
    let clamps = |index: &IndexExpr| {
        index.any_atom(&mut |atom| match atom {
            Atom::Min(pair) | Atom::Max(pair) => divides(&pair.0, inner.var) || divides(&pair.1, inner.var),
            _ => false,
        })
    };
    walk::any(&inner.body, &mut |stmt| {
        stmt.any_own_index(&mut |index| clamps(index))
            || stmt.store().is_some_and(|store| value_clamps_quotient(&store.value, inner.var, false))
    })
}

/// Returns true when the expression divides the variable.
fn divides(index: &IndexExpr, var: LoopVarId) -> bool {
    index.any_atom(&mut |atom| match atom {
        Atom::FloorDiv(pair) | Atom::Mod(pair) => pair.0.mentions(var),
        _ => false,
    })
}

/// Returns true when the value bounds an index that divides the variable. `is_bounded` says whether
/// a minimum or maximum is around the value.
fn value_clamps_quotient(value: &Expr, var: LoopVarId, is_bounded: bool) -> bool {
    let is_bounded = match &value.kind {
        ExprKind::Index(index) => return is_bounded && divides(index, var),
        ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, _) => true,
        _ => is_bounded,
    };
    value.operands().iter().any(|operand| value_clamps_quotient(operand, var, is_bounded))
}
