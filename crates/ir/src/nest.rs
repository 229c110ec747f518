//! Defines [`LoopNest`], a program with explicit loops: the only input of code generation.
//!
//! A [`LoopNest`] is a tree of [`Stmt`]s over [`Buffer`]s. It reuses the expressions of programs
//! with its own [`ids`](crate::ids): an [`Access`] names a buffer by its [`BufferId`], and
//! subscripts depend on loop variables by their [`LoopVarId`]. The names [`Expr`], [`IndexExpr`]
//! and so on of this module stand for expressions with these ids. Sizes are numbers here, so no
//! subscript holds a symbol.
//!
//! The meaning of the statements:
//! - a [`For`] runs its body with its variable at 0, 1, … up to its extent. [`LoopKind`] selects
//!   serial execution, distribution over CPU threads, vector lanes or unrolling. On a GPU it also
//!   selects distribution over thread blocks and over the threads of a block. The results of all
//!   kinds but the serial one do not depend on the iteration order, up to the rounding of a
//!   floating-point reduction;
//! - a [`Store`] replaces its element, or reduces a value into it;
//! - an [`Stmt::If`] runs `then` where every one of its conditions is at least 0, otherwise
//!   `otherwise`;
//! - a [`Prefetch`] has no effect on the results;
//! - an [`Stmt::Allocate`] allocates a buffer, with undefined content, for the duration of its
//!   body. Inside a parallel, block or thread loop each iteration has its own copy;
//! - an [`Stmt::Sync`] makes the threads of a block wait, for each other or for their own stores;
//! - a [`Combine`] reduces the values of all threads of a loop to one total.
//!
//! On a GPU the host runs the statements around the first loops over blocks or threads, and starts
//! a kernel for every other statement. The block loops of a kernel are outermost. All threads of
//! the block execute the statements inside the block loops together, one statement after the other.
//! A thread loop gives each thread its share of one of these statements. A loop over tiles of a
//! reduction is therefore around the thread loops, not inside them:
//! ```text
//! block io in 8
//!   shared float32 As[64, 16]
//!   register float32 acc[256, 8]          spread over the threads: each has the 8 of its own `t`
//!   thread t in 256
//!     ...  acc[t, i] = 0.0
//!   for ko in 64
//!     thread t in 256
//!       As[...] = A[...]
//!     barrier
//!     thread t in 256
//!       for k in 16
//!         ...  acc[t, i] += As[...] * ...
//!     barrier
//! ```
//!
//! Without a barrier between them, two statements of a block must not access the same element from
//! different threads, unless both only read it.
//!
//! Threads exchange values without memory in one way: a [`Combine`] over the threads of a loop
//! along `x`. All of these threads take part. Only thread loops and conditions may therefore
//! surround the [`Combine`] inside a block's statement:
//!
//! ```text
//! thread.y row in 8
//!   if 8*io + row <= 99
//!     thread.x lane in 32
//!       s[row] = sum of partial[row, lane] over lane
//! ```
//!
//! If the target of the total is a register buffer, every thread of the row receives the total. If
//! the target is in memory, the first thread writes it.
//!
//! [`crate::verify_nest()`] lists the invariants. `setup` fills the buffers of scope
//! [`Scope::Constant`]: it runs once for given constant inputs, before any number of runs of
//! `body`.

use crate::dtype::DType;
use crate::ids::{InNest, id};
use crate::program::{ReduceOp, Scalar, TensorId};
use crate::{expr, index, program, walk};

id!(BufferId, "a buffer of a loop nest");
id!(LoopVarId, "a loop variable of a loop nest");

/// A buffer with one subscript per dimension.
pub type Access = expr::Access<InNest>;
/// A value.
pub type Expr = expr::Expr<InNest>;
/// The kinds of value.
pub type ExprKind = expr::ExprKind<InNest>;
/// A subscript, condition or extent.
pub type IndexExpr = index::IndexExpr<InNest>;
/// An integer times a product of atoms, in an [`IndexExpr`].
pub type Term = index::Term<InNest>;
/// A factor of the terms of an [`IndexExpr`].
pub type Atom = index::Atom<InNest>;
/// An integer value read or computed from data, in an [`IndexExpr`].
pub type Data = index::Data<InNest>;
/// The values of a loop variable.
pub type Range = program::Range<InNest>;

/// How to compute a program: loops, buffers, and stores.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopNest {
    /// The function's name.
    pub name: String,
    /// Scalar parameters, in the order of the signature.
    pub scalars: Vec<Scalar>,
    /// Every array that the statements load from or store to.
    pub buffers: Vec<Buffer>,
    /// The variables of the loops; each belongs to one loop.
    pub vars: Vec<LoopVar>,
    /// The statements that fill the constant buffers, once.
    pub setup: Vec<Stmt>,
    /// The statements that one call runs.
    pub body: Vec<Stmt>,
    /// Whether a product may be rounded together with the sum that contains it:
    /// [`Program::contract`](crate::Program).
    pub contract: bool,
}

/// The variable of one loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopVar {
    /// The display name, which need not be unique.
    pub name: String,
}

/// An array in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The display name.
    pub name: String,
    /// The element type.
    pub dtype: DType,
    /// The extents.
    pub shape: Vec<i64>,
    /// The memory that holds the buffer.
    pub scope: Scope,
}

/// The memory that holds a buffer, and the buffer's lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Memory of the caller: the tensor of the program with this id.
    Argument(TensorId),
    /// Memory of the kernel, filled by `setup` and read by every call.
    Constant,
    /// Memory that exists for the duration of an [`Stmt::Allocate`].
    Scratch,
    /// Registers that exist for the duration of an [`Stmt::Allocate`]. Subscripts contain numbers
    /// and variables of unrolled loops. The last subscript may also be the variable of a vector
    /// loop, or a sum that ends in it. Where the allocation is outside of thread loops, a subscript
    /// may be the variable of a thread loop: each thread then holds the elements at its own index.
    /// All threads of a block along the axis of a [`Combine`] hold the element that it writes, also
    /// those beyond the loop.
    Register,
    /// Memory that the threads of a block share, for the duration of an [`Stmt::Allocate`] outside
    /// of thread loops.
    Shared,
}

/// One statement of a loop nest.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A loop.
    For(For),
    /// A choice by index conditions.
    If(If),
    /// The allocation of a buffer.
    Allocate(Allocate),
    /// A write of one element.
    Store(Store),
    /// A request for memory ahead of its use.
    Prefetch(Prefetch),
    /// A wait of the threads of a block. Never inside a thread loop.
    Sync(Sync),
    /// A reduction of the values of all threads of a loop to one total.
    Combine(Combine),
}

/// What the threads of a block wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// Every thread waits for all others.
    Barrier,
    /// No thread waits. The deferred stores (`Store::later`) since the last `Commit` become one
    /// group.
    Commit,
    /// Each thread waits for its own deferred stores, except those of the given number of latest
    /// groups.
    Wait(u32),
}

/// A loop from 0 up to, not including, its extent; an extent below 1 runs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// The loop variable.
    pub var: LoopVarId,
    /// The trip count. Where the loop is a vector or unrolled loop, it is a number.
    pub extent: IndexExpr,
    /// How the iterations execute.
    pub kind: LoopKind,
    /// The statements that one iteration runs.
    pub body: Vec<Stmt>,
}

/// How the iterations of a loop execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One iteration after the other.
    Serial,
    /// Iterations spread over threads; never inside another parallel loop.
    Parallel,
    /// All iterations at once, one per lane; never inside another vector loop.
    Vector,
    /// Iterations written out one after the other.
    Unrolled,
    /// Iterations spread over thread blocks, along this dimension of the grid.
    Block(Axis),
    /// Iterations spread over the threads of a block, along this dimension of the block.
    Thread(Axis),
}

/// A dimension of a grid of blocks, or of a block of threads. Neighbours along `X` run side by
/// side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// The first dimension, which varies fastest.
    X,
    /// The second dimension.
    Y,
    /// The third dimension.
    Z,
}

impl Axis {
    /// All axes, in order.
    pub const ALL: [Axis; 3] = [Axis::X, Axis::Y, Axis::Z];

    /// Its name: `x`, `y` or `z`.
    pub fn name(self) -> &'static str {
        match self {
            Axis::X => "x",
            Axis::Y => "y",
            Axis::Z => "z",
        }
    }
}

/// A choice by index conditions.
#[derive(Clone, Debug, PartialEq)]
pub struct If {
    /// The condition of the choice: all of these expressions are at least 0.
    pub conditions: Vec<IndexExpr>,
    /// The statements that run where the condition holds.
    pub then: Vec<Stmt>,
    /// The statements that run where it does not.
    pub otherwise: Vec<Stmt>,
}

/// The allocation of a buffer for the duration of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocate {
    /// The buffer, of scope `Scratch`, `Shared` or `Register`.
    pub buffer: BufferId,
    /// The statements that may use the buffer.
    pub body: Vec<Stmt>,
}

/// A write of one element.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// The element.
    pub target: Access,
    /// The value, of the compute type of the buffer: its own type, or float32 for 16-bit floats.
    pub value: Expr,
    /// The operator that reduces the value into the old content; `None` replaces the old content.
    pub reduce: Option<ReduceOp>,
    /// Whether the store is deferred: the thread continues before the element is written. The
    /// element is available after a [`Sync::Wait`] for the store's group. Only copies from memory
    /// to shared memory may be deferred.
    pub is_asynchronous: bool,
    /// Whether the update of the element is indivisible, so that several threads may reduce values
    /// into one element, in any order. Only a reduction whose result does not depend on the order
    /// may be atomic ([`ReduceOp::can_be_atomic`]), and no element in registers.
    pub is_atomic: bool,
    /// The instances of the program's statements that the store computes, if the producer of the
    /// nest recorded them. Proofs start from the claim but verify all of it; nothing else reads it.
    pub claim: Option<Box<Claim>>,
}

/// The relation of a store to the statements of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The kind of value that is stored.
    pub role: ClaimRole,
    /// The statement, by its position in [`crate::Program::statements`].
    pub statement: usize,
    /// If the statement is a recurrence that the nest computes in parts, and the store does not
    /// compute its result: the value of the part that the store computes.
    pub part: Option<RecurrencePart>,
    /// The values of the statement's variables in terms of the loops around the store. The
    /// variables of the ordered loops around the statement come first, then its own. `None` stands
    /// for all values at once. For the value of a part, the number of the part replaces the
    /// variable of the innermost ordered loop, and the position in the part is added at the end,
    /// except for [`PartValue::Before`].
    pub point: Vec<Option<IndexExpr>>,
    /// The computation of the statement that the store belongs to, as a number within the nest. The
    /// parts of a reduction and their total are different computations.
    pub computation: usize,
    /// Distinguishes repeated computations of the same element. The values of these loop
    /// expressions are equal for all stores that belong to one result, and differ between results.
    pub repetition: Vec<IndexExpr>,
}

/// A value of each part of a recurrence. The parts have the same number of iterations of the
/// innermost ordered loop around the statement, except the last one, which may have fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecurrencePart {
    /// The number of iterations of a part; 0 if the parts are not all of one length.
    pub length: i64,
    /// The number of iterations after which the parts begin anew, with the value of the iteration
    /// before instead of the total of the part before; 0 if only the first part begins so.
    pub within: i64,
    /// The value.
    pub value: PartValue,
}

/// The value of a part of a recurrence that a statement computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartValue {
    /// The value that the iterations of the part would give, if the value before them were neutral.
    Total,
    /// The product of the factors of the value before, over the iterations of the part.
    Factor,
    /// The value of the iteration before the part.
    Before,
}

/// The kind of value that a store with a [`Claim`] stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimRole {
    /// The value of the statement at the point; a reduction reduces it into the old content.
    Value,
    /// The neutral element, which a reduction starts from.
    Neutral,
    /// The partial result of a reduction, copied from one buffer to another.
    Carry,
    /// Totals of a part of the reduction, which are reduced into the old content.
    Total,
}

/// Reduces the values of the threads of a loop along x to one total and stores the total. The
/// statement is alone in its loop. Only loops over other threads and conditions surround it in its
/// block's statement. It may need shared memory for one value per thread of the block.
#[derive(Clone, Debug, PartialEq)]
pub struct Combine {
    /// The variable of the directly enclosing loop.
    pub lane: LoopVarId,
    /// The operator that merges the values of two threads.
    pub op: ReduceOp,
    /// The store of the total. Its target's subscripts do not depend on the lane, its value is the
    /// value of each thread, and `reduce` says whether the total is reduced into the old content.
    pub store: Store,
}

/// Nested thread loops whose only content is a [`Combine`], possibly under conditions.
#[derive(Clone, Debug)]
pub struct CombineNest<'a> {
    /// The loops, outermost first; the last one is the loop over the lanes.
    pub loops: Vec<&'a For>,
    /// The conditions of the [`Combine`], in the order of their evaluation. A thread takes part if
    /// all of them are at least 0.
    pub conditions: Vec<&'a IndexExpr>,
    /// The [`Combine`] statement itself.
    pub combine: &'a Combine,
}

/// Prefetches the cache line of an element. The element may lie outside of its buffer; nothing is
/// read then.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefetch {
    /// The element, of a buffer in memory. Its subscripts do not depend on data.
    pub element: Access,
    /// Whether the prefetch announces a write.
    pub write: bool,
}

impl For {
    /// Returns true when the iterations are spread over the blocks of a GPU, or over the threads of
    /// a block.
    pub fn is_block_or_thread_loop(&self) -> bool {
        matches!(self.kind, LoopKind::Block(_) | LoopKind::Thread(_))
    }

    /// The axis of a thread loop.
    pub fn thread_axis(&self) -> Option<Axis> {
        match self.kind {
            LoopKind::Thread(axis) => Some(axis),
            _ => None,
        }
    }

    /// The [`Combine`] of this thread loop with its loops and conditions, if the loop contains
    /// nothing else.
    pub fn combine_nest(&self) -> Option<CombineNest<'_>> {
        let (mut loops, mut conditions) = (vec![self], Vec::new());
        let mut body = self.body.as_slice();
        loop {
            match body {
                [Stmt::For(inner)] => {
                    loops.push(inner);
                    body = &inner.body;
                }
                [Stmt::If(choice)] if choice.otherwise.is_empty() => {
                    conditions.extend(&choice.conditions);
                    body = &choice.then;
                }
                [Stmt::Combine(combine)] => {
                    let over_threads = loops.iter().all(|own| matches!(own.kind, LoopKind::Thread(_)));
                    let lanes = loops.last().filter(|lanes| lanes.var == combine.lane);
                    let is_only_statement =
                        lanes.is_some_and(|lanes| matches!(lanes.body.as_slice(), [Stmt::Combine(_)]));
                    return (over_threads && is_only_statement).then_some(CombineNest {
                        loops,
                        conditions,
                        combine,
                    });
                }
                _ => return None,
            }
        }
    }
}

impl LoopNest {
    /// The buffer behind an id.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// The statements of a call that no loop contains, in order. Those inside the allocation of a
    /// scratch buffer count, and the allocation itself does not.
    pub fn roots(&self) -> Vec<&Stmt> {
        fn collect<'n>(nest: &LoopNest, stmts: &'n [Stmt], found: &mut Vec<&'n Stmt>) {
            for stmt in stmts {
                match stmt {
                    Stmt::Allocate(own) if nest.buffer(own.buffer).scope == Scope::Scratch => {
                        collect(nest, &own.body, found);
                    }
                    _ => found.push(stmt),
                }
            }
        }
        let mut found = Vec::new();
        collect(self, &self.body, &mut found);
        found
    }

    /// The nest without the statements of a call that come after the first `count` of
    /// [`LoopNest::roots`]. Buffers that only those use have one element.
    pub fn up_to_root(&self, count: usize) -> LoopNest {
        let mut kept = LoopNest { body: self.first_roots(&self.body, &mut { count }), ..self.clone() };
        let mut allocated = vec![false; self.buffers.len()];
        walk::visit(&kept.body, &mut |stmt| {
            if let Stmt::Allocate(own) = stmt {
                allocated[own.buffer.index()] = true;
            }
        });
        for (id, buffer) in (0..).map(BufferId).zip(&mut kept.buffers) {
            let is_temporary = matches!(buffer.scope, Scope::Scratch | Scope::Register | Scope::Shared);
            if is_temporary && !allocated[id.index()] {
                buffer.scope = Scope::Scratch;
                buffer.shape.fill(1);
                kept.body = vec![Stmt::Allocate(Allocate { buffer: id, body: kept.body })];
            }
        }
        kept
    }

    /// The first roots among some statements, as many as are left to keep.
    fn first_roots(&self, stmts: &[Stmt], left: &mut usize) -> Vec<Stmt> {
        let mut kept = Vec::new();
        for stmt in stmts {
            match stmt {
                Stmt::Allocate(own) if self.buffer(own.buffer).scope == Scope::Scratch => {
                    let body = self.first_roots(&own.body, left);
                    kept.push(Stmt::Allocate(Allocate { buffer: own.buffer, body }));
                }
                _ if *left == 0 => {}
                _ => {
                    *left -= 1;
                    kept.push(stmt.clone());
                }
            }
        }
        kept
    }

    /// The name of a variable.
    pub fn var_name(&self, id: LoopVarId) -> &str {
        &self.vars[id.index()].name
    }
}

impl Buffer {
    /// The number of elements.
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }

    /// The number of bytes that the elements take.
    pub fn bytes(&self) -> i64 {
        self.elements() * self.dtype.bytes() as i64
    }

    /// The distance in elements between neighbours of each dimension.
    pub fn strides(&self) -> Vec<i64> {
        let mut strides = vec![1; self.shape.len()];
        for at in (1..self.shape.len()).rev() {
            strides[at - 1] = strides[at] * self.shape[at];
        }
        strides
    }
}
