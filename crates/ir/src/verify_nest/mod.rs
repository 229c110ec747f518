//! Checks the invariants of a [`LoopNest`].
//!
//! Tables:
//! - Every id points into its table. No two buffers stand for the same tensor, and the size of a
//!   buffer in bytes does not overflow.
//! - Expressions satisfy the rules of [`crate::verify()`] for programs: one subscript per
//!   dimension, operands of the types that their operator requires, no [`crate::Atom::Extent`] and
//!   no [`crate::Atom::Overflow`]. Sizes are numbers, so no symbol exists.
//! - The value of a store has the compute type of the buffer.
//!
//! Loops:
//! - A variable is used only inside its loop, and no loop inside that loop has the same variable.
//! - The extent of a vector or unrolled loop is a number; that of a vector loop is at least 1.
//! - No vector loop is inside another, and no parallel loop is inside a parallel, vector or
//!   unrolled one.
//! - The extent of a block or thread loop is a number. Only serial loops and block loops of other
//!   axes may surround a block loop. Only serial loops, block loops and thread loops of other axes
//!   may surround a thread loop. A barrier is inside a block loop and not inside a thread loop.
//! - Threads are combined along x, by the only statement in their loop. Only thread loops and
//!   conditions surround that loop inside the outermost thread loop. The total's subscripts do not
//!   depend on the lane.
//! - A store inside a parallel, block or thread loop to a buffer from outside of that loop has the
//!   loop's variable in a subscript, unless the loop runs at most once or the store is atomic.
//!   Otherwise two threads would write the same element. The rule is necessary to exclude write
//!   conflicts between threads, and not sufficient.
//! - An atomic store reduces integers into memory, and is neither asynchronous nor the store of a
//!   total.
//!
//! Buffers:
//! - A scratch, shared or register buffer is allocated by exactly one
//!   [`crate::nest::Stmt::Allocate`] and used only inside it. Arguments and constants are never
//!   allocated.
//! - Constants are written only in `setup`, and arguments only in `body`.
//! - The subscripts of a register buffer contain only numbers and variables of unrolled loops. The
//!   variable of a vector loop may be added to the last subscript. A subscript may also be the
//!   variable of a thread loop inside the buffer's allocation; all uses of the buffer then have a
//!   variable of the same axis there.
//! - Shared memory is allocated inside a block loop and not inside a thread loop. Scratch memory
//!   inside a block loop is allocated inside a thread loop.
//! - No access certainly leaves its buffer, that is, at a point that the loops and choices around
//!   it reach whatever the data. Subscripts that depend on data, and reads on one side of a `?:`,
//!   `&&` or `||`, are left to the interpreter. The search for such a point, in `bounds.rs`, looks
//!   only at the ends of ranges.
//!
//! A loop nest that fails here is a bug in the code that built it.

mod bounds;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use thiserror::Error;

use self::bounds::{Branch, Path};
use crate::dtype::DType;
use crate::ids::InNest;
use crate::nest::{
    Access, Allocate, Atom, Axis, Buffer, BufferId, Combine, For, If, IndexExpr, LoopKind, LoopNest,
    LoopVarId, Scope, Stmt, Store,
};
use crate::print::{self, Names};
use crate::program::{Scalar, ScalarId, SymbolId};
use crate::verify::{Tables, Verdict, ensure};

/// A violated invariant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("invalid loop nest {nest}: {what}")]
pub struct InvalidNest {
    /// The name of the loop nest.
    pub nest: String,
    /// Which invariant is violated, and where.
    pub what: String,
}

/// A loop nest that [`verify_nest`] has accepted. Code generation takes loop nests in this form
/// only, on every target.
#[derive(Clone, Copy, Debug)]
pub struct VerifiedNest<'n>(&'n LoopNest);

impl<'n> VerifiedNest<'n> {
    /// The loop nest.
    pub fn nest(self) -> &'n LoopNest {
        self.0
    }
}

/// Checks every invariant of a loop nest.
pub fn verify_nest(nest: &LoopNest) -> Result<VerifiedNest<'_>, InvalidNest> {
    let allocations = vec![Allocation::None; nest.buffers.len()];
    let thread_axes = RefCell::new(vec![None; nest.buffers.len()]);
    let check = Check { nest, path: Path::default(), allocations, thread_axes, part: Part::Setup };
    match check.run() {
        Ok(()) => Ok(VerifiedNest(nest)),
        Err(what) => Err(InvalidNest { nest: nest.name.clone(), what }),
    }
}

/// A traversal of the nest, with the loops, choices and allocations around the current statement.
struct Check<'a> {
    nest: &'a LoopNest,
    path: Path<'a>,
    /// The allocation state of each buffer.
    allocations: Vec<Allocation>,
    /// For each register buffer in use, the thread axis of each of its subscripts, if it has one.
    thread_axes: RefCell<Vec<Option<Vec<Option<Axis>>>>>,
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Setup,
    Body,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Allocation {
    /// The buffer has not been allocated so far.
    None,
    /// The current statement is inside the allocation, which is inside this many loops.
    Active { loops: usize },
    /// The allocation has ended.
    Ended,
}

impl<'a> Check<'a> {
    fn run(mut self) -> Verdict {
        self.buffers()?;
        self.statements(&self.nest.setup)?;
        self.part = Part::Body;
        self.statements(&self.nest.body)?;
        for (buffer, allocation) in self.nest.buffers.iter().zip(&self.allocations) {
            ensure(!is_allocated(buffer.scope) || *allocation != Allocation::None, || {
                format!("{} is never allocated", buffer.name)
            })?;
        }
        Ok(())
    }

    fn buffers(&self) -> Verdict {
        for (at, buffer) in self.nest.buffers.iter().enumerate() {
            let Buffer { name, shape, dtype, scope } = buffer;
            ensure(shape.iter().all(|extent| *extent >= 0), || format!("{name} has a negative extent"))?;
            let bytes =
                shape.iter().try_fold(dtype.bytes() as i64, |bytes, extent| bytes.checked_mul(*extent));
            ensure(bytes.is_some(), || format!("the size of {name} in bytes overflows"))?;
            let again = |other: &Buffer| matches!(scope, Scope::Argument(_)) && other.scope == *scope;
            ensure(!self.nest.buffers[..at].iter().any(again), || {
                format!("{name} is an argument for a tensor that another buffer already represents")
            })?;
        }
        Ok(())
    }

    fn statements(&mut self, statements: &'a [Stmt]) -> Verdict {
        statements.iter().try_for_each(|statement| match statement {
            Stmt::For(inner) => self.for_loop(inner),
            Stmt::If(inner) => self.choice(inner),
            Stmt::Allocate(inner) => self.allocate(inner),
            Stmt::Store(inner) => self.store(inner),
            Stmt::Prefetch(inner) => self.prefetch(&inner.element),
            Stmt::Sync(_) => self.sync(),
            Stmt::Combine(inner) => self.combine(inner),
        })
    }

    fn for_loop(&mut self, inner: &'a For) -> Verdict {
        ensure(inner.var.index() < self.nest.vars.len(), || {
            format!("loop variable {} does not exist", inner.var.0)
        })?;
        let name = self.nest.var_name(inner.var);
        ensure(!self.in_scope(inner.var), || {
            format!("the loop over {name} is inside another loop over {name}")
        })?;
        self.index_and_reads(&inner.extent)?;
        self.loop_kind(inner)?;
        let first_thread = matches!(inner.kind, LoopKind::Thread(_)) && !self.in_thread();
        let combines = first_thread && inner.body.iter().any(Stmt::has_combine);
        ensure(!combines || inner.combine_nest().is_some(), || {
            format!(
                "loop {name} combines threads, and contains more than thread loops, conditions and \
                 the combination"
            )
        })?;
        self.path.enter_loop(inner);
        self.statements(&inner.body)?;
        self.path.leave_loop();
        Ok(())
    }

    fn loop_kind(&self, inner: &For) -> Verdict {
        let name = self.nest.var_name(inner.var);
        let inside = |kind: LoopKind| self.path.loops().any(|around| around.kind == kind);
        let extent = inner.extent.as_constant();
        match inner.kind {
            LoopKind::Serial => Ok(()),
            LoopKind::Unrolled => {
                ensure(extent.is_some(), || format!("unrolled loop {name} has no constant extent"))
            }
            LoopKind::Vector => {
                ensure(extent.is_some(), || format!("vector loop {name} has no constant extent"))?;
                ensure(extent >= Some(1), || format!("vector loop {name} has no lanes"))?;
                ensure(!inside(LoopKind::Vector), || format!("vector loop {name} inside a vector loop"))
            }
            LoopKind::Parallel => {
                ensure(!inside(LoopKind::Parallel), || {
                    format!("parallel loop {name} inside a parallel loop")
                })?;
                ensure(!inside(LoopKind::Vector), || format!("parallel loop {name} inside a vector loop"))?;
                ensure(!inside(LoopKind::Unrolled), || {
                    format!("parallel loop {name} inside an unrolled loop")
                })?;
                ensure(!self.on_gpu(), || format!("parallel loop {name} inside a block or thread loop"))
            }
            LoopKind::Block(_) | LoopKind::Thread(_) => {
                ensure(extent.is_some(), || {
                    format!("loop {name} over blocks or threads has no constant extent")
                })?;
                let fits = |around: &For| match (around.kind, inner.kind) {
                    (LoopKind::Serial, _) => true,
                    (LoopKind::Block(outer), LoopKind::Block(own)) => outer != own,
                    (LoopKind::Block(_), LoopKind::Thread(_)) => true,
                    (LoopKind::Thread(outer), LoopKind::Thread(own)) => outer != own,
                    _ => false,
                };
                let clash = self.path.loops().find(|around| !fits(around));
                ensure(clash.is_none(), || {
                    let around = clash.map_or("", |clash| self.nest.var_name(clash.var));
                    format!("loop {name} over blocks or threads cannot be inside loop {around}")
                })
            }
        }
    }

    fn choice(&mut self, inner: &'a If) -> Verdict {
        // A condition is evaluated only where the conditions before it hold.
        for (at, condition) in inner.conditions.iter().enumerate() {
            self.path.enter_branch(Branch { conditions: &inner.conditions[..at], holds: true });
            self.index_and_reads(condition)
                .map_err(|what| format!("{what}, in if {}", print::condition(condition, self.nest)))?;
            self.path.leave_branch();
        }
        for (holds, side) in [(true, &inner.then), (false, &inner.otherwise)] {
            self.path.enter_branch(Branch { conditions: &inner.conditions, holds });
            self.statements(side)?;
            self.path.leave_branch();
        }
        Ok(())
    }

    fn allocate(&mut self, inner: &'a Allocate) -> Verdict {
        let at = inner.buffer.index();
        let buffer =
            self.nest.buffers.get(at).ok_or_else(|| format!("allocated buffer {at} does not exist"))?;
        let name = &buffer.name;
        ensure(is_allocated(buffer.scope), || {
            format!("{name} is allocated, but not a scratch, shared or register buffer")
        })?;
        let (in_block, in_thread) = (self.on_gpu(), self.in_thread());
        match buffer.scope {
            Scope::Shared => ensure(in_block && !in_thread, || {
                format!(
                    "{name} is shared memory, and must be allocated inside a block loop and outside \
                     of thread loops"
                )
            })?,
            Scope::Scratch => ensure(!in_block || in_thread, || {
                format!(
                    "{name} is scratch memory, and inside a block loop it must be allocated inside a \
                     thread loop"
                )
            })?,
            _ => {}
        }
        ensure(self.allocations[at] == Allocation::None, || format!("{name} is allocated twice"))?;
        self.allocations[at] = Allocation::Active { loops: self.path.loops().count() };
        self.statements(&inner.body)?;
        self.allocations[at] = Allocation::Ended;
        Ok(())
    }

    fn combine(&self, inner: &Combine) -> Verdict {
        let check = || {
            let lanes = self.path.loops().last();
            let along_x =
                lanes.is_some_and(|own| own.var == inner.lane && own.kind == LoopKind::Thread(Axis::X));
            ensure(along_x, || {
                "threads are combined, but not directly inside their thread loop along x".to_owned()
            })?;
            let of_lane = inner.store.target.indices.iter().any(|index| index.mentions(inner.lane));
            ensure(!of_lane && !inner.store.is_asynchronous, || {
                "the target of the total depends on the lane, or its store is asynchronous".to_owned()
            })?;
            self.check_store(&inner.store, Some(inner.lane))
        };
        check().map_err(|what| format!("{what}, in {}", print::combine(inner, self.nest)))
    }

    fn store(&self, store: &Store) -> Verdict {
        self.check_store(store, None).map_err(|what| format!("{what}, in {}", print::store(store, self.nest)))
    }

    /// Checks a store. `lane` is the variable of the loop whose threads are combined, if any.
    fn check_store(&self, store: &Store, lane: Option<LoopVarId>) -> Verdict {
        self.access(&store.target)?;
        self.expr(&store.value)?;
        let target = self.nest.buffer(store.target.tensor);
        ensure(store.value.dtype == target.dtype.compute_type(), || {
            format!("a {} value for a {} buffer", store.value.dtype, target.dtype)
        })?;
        match target.scope {
            Scope::Constant => {
                ensure(self.part == Part::Setup, || format!("{} is written outside of setup", target.name))?;
            }
            Scope::Argument(_) => {
                ensure(self.part == Part::Body, || format!("{} is written in setup", target.name))?;
            }
            Scope::Scratch | Scope::Register | Scope::Shared => {}
        }
        let to_shared = target.scope == Scope::Shared && store.reduce.is_none();
        ensure(!store.is_asynchronous || to_shared, || {
            "an asynchronous store reduces, or its target is not shared memory".to_owned()
        })?;
        let may_be_atomic = store.reduce.is_some_and(|op| op.can_be_atomic(target.dtype))
            && target.scope != Scope::Register
            && !store.is_asynchronous
            && lane.is_none();
        ensure(!store.is_atomic || may_be_atomic, || {
            "an atomic store does not reduce integers into memory".to_owned()
        })?;
        if !store.is_atomic {
            self.check_distinct_writes(&store.target, lane)?;
        }
        bounds::visit_certain_accesses(&store.target, &mut |access| self.check_bounds(access))?;
        bounds::visit_certain_reads(&store.value, &mut |access| self.check_bounds(access))
    }

    /// Checks a prefetch. The element may be out of bounds, but its buffer must have an address
    /// here.
    fn prefetch(&self, element: &Access) -> Verdict {
        let check = || {
            self.access(element)?;
            let buffer = self.nest.buffer(element.tensor);
            ensure(buffer.scope != Scope::Register, || format!("{} is a register buffer", buffer.name))?;
            let known = !element.indices.iter().any(IndexExpr::has_data);
            ensure(known, || "a subscript depends on data".to_owned())
        };
        check().map_err(|what| format!("{what}, in prefetch {}", print::access(element, self.nest)))
    }

    /// Checks that different threads can write different elements, as far as the subscripts show.
    fn check_distinct_writes(&self, target: &Access, lane: Option<LoopVarId>) -> Verdict {
        for (depth, around) in self.path.loops().enumerate() {
            let private = matches!(self.allocations[target.tensor.index()], Allocation::Active { loops } if loops > depth);
            let runs_once = around.extent.as_constant().is_some_and(|extent| extent <= 1)
                || lane == Some(around.var)
                || self.path.runs_at_most_once(depth);
            // The subscripts depend on the loop by its variable, or by a loop inside whose trip
            // count depends on the variable.
            let names = |var: LoopVarId| target.indices.iter().any(|index| index.mentions(var));
            let mentions = names(around.var)
                || self
                    .path
                    .loops()
                    .skip(depth + 1)
                    .any(|own| own.extent.mentions(around.var) && names(own.var));
            let is_concurrent =
                matches!(around.kind, LoopKind::Parallel | LoopKind::Block(_) | LoopKind::Thread(_));
            ensure(!is_concurrent || private || runs_once || mentions, || {
                let (name, var) = (self.names().tensor(target.tensor), self.nest.var_name(around.var));
                format!("every iteration of parallel loop {var} writes the same element of {name}")
            })?;
        }
        Ok(())
    }

    fn index_and_reads(&self, expr: &IndexExpr) -> Verdict {
        self.index(expr)?;
        bounds::visit_certain_index_reads(expr, &mut |access| self.check_bounds(access))
    }

    fn check_bounds(&self, access: &Access) -> Verdict {
        let shape = &self.nest.buffer(access.tensor).shape;
        for (dimension, (subscript, extent)) in access.indices.iter().zip(shape).enumerate() {
            if let Some((value, point)) = self.path.find_out_of_bounds_point(subscript, *extent) {
                let element = print::access(access, self.nest);
                let point: Vec<String> =
                    point.iter().map(|(var, at)| format!(" {} = {at}", self.nest.var_name(*var))).collect();
                let at = if point.is_empty() { String::new() } else { format!(" at{}", point.join(",")) };
                return Err(format!(
                    "{element} is out of bounds: index {value} of dimension {dimension}, of extent {extent}{at}"
                ));
            }
        }
        Ok(())
    }

    fn register_subscripts(&self, access: &Access) -> Verdict {
        let vector = self.path.loops().find(|around| around.kind == LoopKind::Vector);
        let subscripts = match vector {
            Some(vector) => access.subscripts_of_first_lane(vector.var),
            None => access.indices.clone(),
        };
        let own = self.allocations[access.tensor.index()];
        let axes: Vec<Option<Axis>> =
            subscripts.iter().map(|index| self.subscript_thread_axis(index, own)).collect();
        let mut known = subscripts.iter().zip(&axes);
        let is_constant =
            known.all(|(index, axis)| axis.is_some() || self.is_constant_after_unrolling(index));
        ensure(is_constant, || {
            let element = print::access(access, self.nest);
            format!("{element} is in registers, and a subscript is not constant after unrolling")
        })?;
        let mut thread_axes = self.thread_axes.borrow_mut();
        let same = thread_axes[access.tensor.index()].get_or_insert_with(|| axes.clone()) == &axes;
        ensure(same, || {
            let element = print::access(access, self.nest);
            format!("{element} has thread axes in other subscripts than earlier uses of the buffer")
        })
    }

    /// The axis of the subscript, if it is the variable of a thread loop inside the buffer's
    /// allocation.
    fn subscript_thread_axis(&self, index: &IndexExpr, allocation: Allocation) -> Option<Axis> {
        let (Allocation::Active { loops }, Some(var)) = (allocation, index.as_var()) else { return None };
        let own = self.path.loops().skip(loops).find(|around| around.var == var)?;
        match own.kind {
            LoopKind::Thread(axis) => Some(axis),
            _ => None,
        }
    }

    fn on_gpu(&self) -> bool {
        self.path.loops().any(|around| matches!(around.kind, LoopKind::Block(_) | LoopKind::Thread(_)))
    }

    fn in_thread(&self) -> bool {
        self.path.loops().any(|around| matches!(around.kind, LoopKind::Thread(_)))
    }

    fn sync(&self) -> Verdict {
        let fits = self.on_gpu() && !self.in_thread();
        ensure(fits, || {
            "a barrier, commit or wait is outside of a block loop, or inside a thread loop".to_owned()
        })
    }

    /// Returns true when the expression is a number after unrolling.
    fn is_constant_after_unrolling(&self, expr: &IndexExpr) -> bool {
        let unrolled = |var: LoopVarId| {
            self.path.loops().any(|around| around.var == var && around.kind == LoopKind::Unrolled)
        };
        !expr.any_atom(&mut |atom| match atom {
            Atom::Var(var) => !unrolled(*var),
            Atom::Data(_) => true,
            _ => false,
        })
    }
}

/// Returns true for the scopes of buffers that exist only inside an `Allocate`.
fn is_allocated(scope: Scope) -> bool {
    matches!(scope, Scope::Scratch | Scope::Register | Scope::Shared)
}

impl Tables<InNest> for Check<'_> {
    fn names(&self) -> &dyn Names<InNest> {
        self.nest
    }
    fn in_scope(&self, var: LoopVarId) -> bool {
        self.path.loops().any(|around| around.var == var)
    }
    fn has_symbol(&self, _: SymbolId) -> bool {
        false
    }
    fn scalar(&self, id: ScalarId) -> Option<&Scalar> {
        self.nest.scalars.get(id.index())
    }
    fn tensor(&self, id: BufferId) -> Option<(DType, usize)> {
        self.nest.buffers.get(id.index()).map(|buffer| (buffer.dtype, buffer.shape.len()))
    }
    fn check_access_rules(&self, access: &Access) -> Verdict {
        let buffer = self.nest.buffer(access.tensor);
        let here = matches!(self.allocations[access.tensor.index()], Allocation::Active { .. });
        ensure(!is_allocated(buffer.scope) || here, || {
            format!("{} is used where it is not allocated", buffer.name)
        })?;
        if buffer.scope == Scope::Register { self.register_subscripts(access) } else { Ok(()) }
    }
}
