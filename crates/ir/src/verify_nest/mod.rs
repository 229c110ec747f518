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
//!   loop's variable in a subscript, unless the loop runs at most once. Otherwise two threads would
//!   write the same element. The rule is necessary to exclude write conflicts between threads, and
//!   not sufficient.
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

use self::bounds::{Guard, Path};
use crate::dtype::DType;
use crate::expr::Access;
use crate::index::{Atom, IndexExpr};
use crate::nest::{Allocate, Axis, Buffer, Combine, For, If, LoopKind, LoopNest, Scope, Stmt, Store};
use crate::print::{self, Names};
use crate::program::{Scalar, ScalarId, SymbolId, TensorId, VarId};
use crate::verify::{Tables, Verdict, hold};

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
    let rooms = vec![Room::None; nest.buffers.len()];
    let spread = RefCell::new(vec![None; nest.buffers.len()]);
    let check = Check { nest, path: Path::default(), rooms, spread, part: Part::Setup };
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
    rooms: Vec<Room>,
    /// For each register buffer in use, the thread axis of each of its subscripts, if it has one.
    spread: RefCell<Vec<Option<Vec<Option<Axis>>>>>,
    part: Part,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Setup,
    Body,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Room {
    /// The buffer has not been allocated so far.
    None,
    /// The current statement is inside the allocation, which is inside this many loops.
    Here { loops: usize },
    /// The allocation has ended.
    Elsewhere,
}

impl<'a> Check<'a> {
    fn run(mut self) -> Verdict {
        self.buffers()?;
        self.statements(&self.nest.setup)?;
        self.part = Part::Body;
        self.statements(&self.nest.body)?;
        for (buffer, room) in self.nest.buffers.iter().zip(&self.rooms) {
            hold(!is_allocated(buffer.scope) || *room != Room::None, || {
                format!("{} is never allocated", buffer.name)
            })?;
        }
        Ok(())
    }

    fn buffers(&self) -> Verdict {
        for (at, buffer) in self.nest.buffers.iter().enumerate() {
            let Buffer { name, shape, dtype, scope } = buffer;
            hold(shape.iter().all(|extent| *extent >= 0), || format!("{name} has a negative extent"))?;
            let bytes =
                shape.iter().try_fold(dtype.bytes() as i64, |bytes, extent| bytes.checked_mul(*extent));
            hold(bytes.is_some(), || format!("{name} is too large"))?;
            let again = |other: &Buffer| matches!(scope, Scope::Argument(_)) && other.scope == *scope;
            hold(!self.nest.buffers[..at].iter().any(again), || {
                format!("{name} stands for a tensor that another buffer stands for")
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
        hold(inner.var.index() < self.nest.vars.len(), || {
            format!("loop variable {} does not exist", inner.var.0)
        })?;
        let name = self.nest.var_name(inner.var);
        hold(!self.in_scope(inner.var), || format!("a loop over {name} inside a loop over it"))?;
        self.index_and_reads(&inner.extent)?;
        self.loop_kind(inner)?;
        let first_thread = matches!(inner.kind, LoopKind::Thread(_)) && !self.in_thread();
        let combines = first_thread && inner.body.iter().any(Stmt::combines);
        hold(!combines || inner.combining().is_some(), || {
            format!("threads of {name} are combined beside something else")
        })?;
        self.path.enter(inner);
        self.statements(&inner.body)?;
        self.path.leave();
        Ok(())
    }

    fn loop_kind(&self, inner: &For) -> Verdict {
        let name = self.nest.var_name(inner.var);
        let inside = |kind: LoopKind| self.path.loops().any(|around| around.kind == kind);
        let extent = inner.extent.as_constant();
        match inner.kind {
            LoopKind::Serial => Ok(()),
            LoopKind::Unrolled => {
                hold(extent.is_some(), || format!("unrolled loop {name} has no constant extent"))
            }
            LoopKind::Vector => {
                hold(extent.is_some(), || format!("vector loop {name} has no constant extent"))?;
                hold(extent >= Some(1), || format!("vector loop {name} has no lanes"))?;
                hold(!inside(LoopKind::Vector), || format!("vector loop {name} inside a vector loop"))
            }
            LoopKind::Parallel => {
                hold(!inside(LoopKind::Parallel), || format!("parallel loop {name} inside a parallel loop"))?;
                hold(!inside(LoopKind::Vector), || format!("parallel loop {name} inside a vector loop"))?;
                hold(!inside(LoopKind::Unrolled), || {
                    format!("parallel loop {name} inside an unrolled loop")
                })?;
                hold(!self.on_gpu(), || format!("parallel loop {name} inside a block or thread loop"))
            }
            LoopKind::Block(_) | LoopKind::Thread(_) => {
                hold(extent.is_some(), || {
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
                hold(clash.is_none(), || {
                    let around = clash.map_or("", |clash| self.nest.var_name(clash.var));
                    format!("loop {name} over blocks or threads cannot be inside {around}")
                })
            }
        }
    }

    fn choice(&mut self, inner: &'a If) -> Verdict {
        // A condition is evaluated only where the conditions before it hold.
        for (at, condition) in inner.conditions.iter().enumerate() {
            self.path.choose(Guard { conditions: &inner.conditions[..at], holds: true });
            self.index_and_reads(condition)
                .map_err(|what| format!("{what}, in if {}", print::condition(condition, self.nest)))?;
            self.path.rejoin();
        }
        for (holds, side) in [(true, &inner.then), (false, &inner.otherwise)] {
            self.path.choose(Guard { conditions: &inner.conditions, holds });
            self.statements(side)?;
            self.path.rejoin();
        }
        Ok(())
    }

    fn allocate(&mut self, inner: &'a Allocate) -> Verdict {
        let at = inner.buffer.index();
        let buffer =
            self.nest.buffers.get(at).ok_or_else(|| format!("allocated buffer {at} does not exist"))?;
        let name = &buffer.name;
        hold(is_allocated(buffer.scope), || {
            format!("{name} is allocated, but not a scratch, shared or register buffer")
        })?;
        let (in_block, in_thread) = (self.on_gpu(), self.in_thread());
        match buffer.scope {
            Scope::Shared => hold(in_block && !in_thread, || {
                format!("{name} is shared by the threads of a block, and its room is not just inside one")
            })?,
            Scope::Scratch => hold(!in_block || in_thread, || {
                format!("{name} is scratch memory of a block, which is shared memory")
            })?,
            _ => {}
        }
        hold(self.rooms[at] == Room::None, || format!("{name} is allocated twice"))?;
        self.rooms[at] = Room::Here { loops: self.path.loops().count() };
        self.statements(&inner.body)?;
        self.rooms[at] = Room::Elsewhere;
        Ok(())
    }

    fn combine(&self, inner: &Combine) -> Verdict {
        let check = || {
            let lanes = self.path.loops().last();
            let along_x =
                lanes.is_some_and(|own| own.var == inner.lane && own.kind == LoopKind::Thread(Axis::X));
            hold(along_x, || "threads are combined outside of their loop along x".to_owned())?;
            let of_lane = inner.store.target.indices.iter().any(|index| index.mentions(inner.lane));
            hold(!of_lane && !inner.store.later, || "the total is not one for all lanes".to_owned())?;
            self.stored(&inner.store, Some(inner.lane))
        };
        check().map_err(|what| format!("{what}, in {}", print::combine(inner, self.nest)))
    }

    fn store(&self, store: &Store) -> Verdict {
        self.stored(store, None).map_err(|what| format!("{what}, in {}", print::store(store, self.nest)))
    }

    /// Checks a store. `lane` is the variable of the loop whose threads are combined, if any.
    fn stored(&self, store: &Store, lane: Option<VarId>) -> Verdict {
        self.access(&store.target)?;
        self.expr(&store.value)?;
        let target = self.nest.buffer(store.target.tensor);
        hold(store.value.dtype == target.dtype.compute_type(), || {
            format!("a {} value for a {} buffer", store.value.dtype, target.dtype)
        })?;
        match target.scope {
            Scope::Constant => {
                hold(self.part == Part::Setup, || format!("{} is written outside of setup", target.name))?;
            }
            Scope::Argument(_) => {
                hold(self.part == Part::Body, || format!("{} is written in setup", target.name))?;
            }
            Scope::Scratch | Scope::Register | Scope::Shared => {}
        }
        let to_shared = target.scope == Scope::Shared && store.reduce.is_none();
        hold(!store.later || to_shared, || {
            "a store that is done later, and not to shared memory".to_owned()
        })?;
        self.apart(&store.target, lane)?;
        bounds::certain_accesses(&store.target, &mut |access| self.in_bounds(access))?;
        bounds::certain_reads(&store.value, &mut |access| self.in_bounds(access))
    }

    /// Checks a prefetch. The element may be out of bounds, but its buffer must have an address
    /// here.
    fn prefetch(&self, element: &Access) -> Verdict {
        let check = || {
            self.access(element)?;
            let buffer = self.nest.buffer(element.tensor);
            hold(buffer.scope != Scope::Register, || format!("{} has no address", buffer.name))?;
            let known = !element.indices.iter().any(IndexExpr::has_data);
            hold(known, || "which element it is depends on data".to_owned())
        };
        check().map_err(|what| format!("{what}, in prefetch {}", print::access(element, self.nest)))
    }

    /// Checks that different threads can write different elements, as far as the subscripts show.
    fn apart(&self, target: &Access, lane: Option<VarId>) -> Verdict {
        for (depth, around) in self.path.loops().enumerate() {
            let private = matches!(self.rooms[target.tensor.index()], Room::Here { loops } if loops > depth);
            let alone = around.extent.as_constant().is_some_and(|extent| extent <= 1)
                || lane == Some(around.var)
                || self.path.leaves_one(depth);
            // The subscripts depend on the loop by its variable, or by a loop inside whose trip
            // count depends on the variable.
            let names = |var: VarId| target.indices.iter().any(|index| index.mentions(var));
            let mentions = names(around.var)
                || self
                    .path
                    .loops()
                    .skip(depth + 1)
                    .any(|own| own.extent.mentions(around.var) && names(own.var));
            let together =
                matches!(around.kind, LoopKind::Parallel | LoopKind::Block(_) | LoopKind::Thread(_));
            hold(!together || private || alone || mentions, || {
                let (name, var) = (self.names().tensor(target.tensor), self.nest.var_name(around.var));
                format!("every iteration of parallel loop {var} writes the same element of {name}")
            })?;
        }
        Ok(())
    }

    fn index_and_reads(&self, expr: &IndexExpr) -> Verdict {
        self.index(expr)?;
        bounds::certain_data(expr, &mut |access| self.in_bounds(access))
    }

    fn in_bounds(&self, access: &Access) -> Verdict {
        let shape = &self.nest.buffer(access.tensor).shape;
        for (dimension, (subscript, extent)) in access.indices.iter().zip(shape).enumerate() {
            if let Some((value, point)) = self.path.outside(subscript, *extent) {
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
        let own = self.rooms[access.tensor.index()];
        let axes: Vec<Option<Axis>> = subscripts.iter().map(|index| self.thread_inside(index, own)).collect();
        let mut known = subscripts.iter().zip(&axes);
        let written_out = known.all(|(index, axis)| axis.is_some() || self.is_written_out(index));
        hold(written_out, || {
            format!("{} has a subscript that is not known in registers", print::access(access, self.nest))
        })?;
        let mut spread = self.spread.borrow_mut();
        let same = spread[access.tensor.index()].get_or_insert_with(|| axes.clone()) == &axes;
        hold(same, || {
            let element = print::access(access, self.nest);
            format!("{element} names the threads that have it otherwise than other uses of the buffer")
        })
    }

    /// The axis of the subscript, if it is the variable of a thread loop inside the buffer's
    /// allocation.
    fn thread_inside(&self, index: &IndexExpr, room: Room) -> Option<Axis> {
        let (Room::Here { loops }, Some(var)) = (room, index.as_var()) else { return None };
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
        hold(fits, || "a barrier that is not between thread loops of a block".to_owned())
    }

    /// Returns true when the expression is a number after unrolling.
    fn is_written_out(&self, expr: &IndexExpr) -> bool {
        let unrolled = |var: VarId| {
            self.path.loops().any(|around| around.var == var && around.kind == LoopKind::Unrolled)
        };
        !expr.any(&mut |atom| match atom {
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

impl Tables for Check<'_> {
    fn names(&self) -> &dyn Names {
        self.nest
    }
    fn in_scope(&self, var: VarId) -> bool {
        self.path.loops().any(|around| around.var == var)
    }
    fn has_symbol(&self, _: SymbolId) -> bool {
        false
    }
    fn scalar(&self, id: ScalarId) -> Option<&Scalar> {
        self.nest.scalars.get(id.index())
    }
    fn tensor(&self, id: TensorId) -> Option<(DType, usize)> {
        self.nest.buffers.get(id.index()).map(|buffer| (buffer.dtype, buffer.shape.len()))
    }
    fn accessible(&self, access: &Access) -> Verdict {
        let buffer = self.nest.buffer(access.tensor);
        let here = matches!(self.rooms[access.tensor.index()], Room::Here { .. });
        hold(!is_allocated(buffer.scope) || here, || {
            format!("{} is used where it is not allocated", buffer.name)
        })?;
        if buffer.scope == Scope::Register { self.register_subscripts(access) } else { Ok(()) }
    }
}
