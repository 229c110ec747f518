//! The loops spelled out: what code generation gets, and nothing else.
//!
//! A [`LoopNest`] is a tree of [`Stmt`]s over [`Buffer`]s. It reuses the expressions of programs with its own
//! tables: in a loop nest a [`TensorId`] points into [`LoopNest::buffers`] and a [`VarId`] into
//! [`LoopNest::vars`]. Sizes are numbers here, so no subscript holds a symbol.
//!
//! What the statements mean:
//! - a [`For`] runs its body for its variable at 0, 1, … up to its extent. [`LoopKind`] says how: one after the
//!   other, spread over threads, all lanes of a vector at once, or written out, or, on a GPU, spread over blocks of
//!   threads and over the threads of a block. The order of all but the first cannot be told from the results, up to the
//!   rounding of a floating-point reduction;
//! - a [`Store`] replaces its element, or reduces a value into it;
//! - an [`Stmt::If`] runs `then` where every one of its conditions is at least 0, otherwise `otherwise`;
//! - a [`Prefetch`] does nothing that can be told from the results;
//! - an [`Stmt::Allocate`] gives a buffer room, with undefined content, for the time of its body. Inside a
//!   parallel, block or thread loop each iteration has its own;
//! - an [`Stmt::Sync`] makes the threads of a block wait, for each other or for what they store;
//! - a [`Combine`] reduces what each thread of a loop has to one total.
//!
//! On a GPU every statement outside of all loops is a kernel. Its block loops are outermost, and what is inside them is
//! done by all threads of the block together, one statement after the other; a thread loop gives each thread its share of
//! one of these statements. So a loop over tiles of a reduction is around the thread loops, not inside them:
//!
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
//! Without a barrier between them, two statements of a block must not touch the same element from different threads,
//! unless both only read it.
//!
//! Threads give each other numbers without memory in one way: the threads of a loop along `x` are combined. All of them
//! take part, so nothing but loops over threads and conditions is around it inside a block's statement:
//!
//! ```text
//! thread.y row in 8
//!   if 8*io + row <= 99
//!     thread.x lane in 32
//!       s[row] = sum of partial[row, lane] over lane
//! ```
//!
//! Where the total goes to registers, every thread of the row has it; memory is written by the first.
//!
//! [`crate::verify_nest()`] says what must hold. `setup` fills the buffers of scope [`Scope::Constant`]: it runs
//! once for given constant inputs, before any number of runs of `body`.

use crate::dtype::DType;
use crate::expr::{Access, Expr};
use crate::index::IndexExpr;
use crate::program::{ReduceOp, Scalar, TensorId, VarId};

/// How to compute a program: loops, buffers, and stores.
#[derive(Clone, Debug, PartialEq)]
pub struct LoopNest {
    /// The function's name.
    pub name: String,
    /// Scalar parameters, in the order of the signature.
    pub scalars: Vec<Scalar>,
    /// Everything that is loaded from or stored to.
    pub buffers: Vec<Buffer>,
    /// The variables of the loops; each belongs to one loop.
    pub vars: Vec<LoopVar>,
    /// Fills the constant buffers, once.
    pub setup: Vec<Stmt>,
    /// What a call does.
    pub body: Vec<Stmt>,
    /// Whether a product may be rounded together with the sum it stands in: [`Program::contract`](crate::Program).
    pub contract: bool,
}

/// The variable of one loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopVar {
    /// Its name, for people; not always the only one of its name.
    pub name: String,
}

/// An array in row-major order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Its name, for people.
    pub name: String,
    /// The type of its elements.
    pub dtype: DType,
    /// Its extents.
    pub shape: Vec<i64>,
    /// Where it lives.
    pub scope: Scope,
}

/// Where a buffer lives, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Memory of the caller: the tensor of the program with this id.
    Argument(TensorId),
    /// Memory of the kernel, filled by `setup` and read by every call.
    Constant,
    /// Memory for the time of an [`Stmt::Allocate`].
    Scratch,
    /// Registers, for the time of an [`Stmt::Allocate`]. Subscripts hold numbers and variables of unrolled loops,
    /// and the last one may be, or end in, the variable of a vector loop. Where room is made outside of thread loops, a
    /// subscript may be the variable of one: each thread has the elements of its own. What a [`Combine`] writes, all
    /// threads along its loop have.
    Register,
    /// Memory that the threads of a block share, for the time of an [`Stmt::Allocate`] outside of thread loops.
    Shared,
}

/// One statement of a loop nest.
#[derive(Clone, Debug, PartialEq)]
pub enum Stmt {
    /// A loop.
    For(For),
    /// A choice.
    If(If),
    /// Room for a buffer.
    Allocate(Allocate),
    /// One element written.
    Store(Store),
    /// Memory asked for ahead of its use.
    Prefetch(Prefetch),
    /// The threads of a block wait. Never inside a thread loop.
    Sync(Sync),
    /// What each thread of a loop has becomes one total.
    Combine(Combine),
}

/// What the threads of a block wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// For each other.
    Barrier,
    /// For nothing: the stores that are done later, and came since the last of these, are a group.
    Commit,
    /// Each thread for its own stores that are done later, but for those of the last so many groups.
    Wait(u32),
}

/// A loop from 0 up to, not including, its extent; an extent below 1 runs nothing.
#[derive(Clone, Debug, PartialEq)]
pub struct For {
    /// Its variable.
    pub var: VarId,
    /// How many times it runs. A number where the loop is a vector or unrolled.
    pub extent: IndexExpr,
    /// How it runs.
    pub kind: LoopKind,
    /// What it runs.
    pub body: Vec<Stmt>,
}

/// How a loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One iteration after the other.
    Serial,
    /// Iterations spread over threads; never inside another parallel loop.
    Parallel,
    /// All iterations at once, one a lane; never inside another vector loop.
    Vector,
    /// Iterations written out one after the other.
    Unrolled,
    /// Iterations spread over blocks of threads, along this dimension of the grid.
    Block(Axis),
    /// Iterations spread over the threads of a block, along this dimension of it.
    Thread(Axis),
}

/// A dimension of a grid of blocks, or of a block of threads. Neighbours along `X` run side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Axis {
    /// The first, and fastest.
    X,
    /// The second.
    Y,
    /// The third.
    Z,
}

impl Axis {
    /// All of them, in order.
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
    /// All of these at least 0 is what is asked for.
    pub conditions: Vec<IndexExpr>,
    /// What runs where that holds.
    pub then: Vec<Stmt>,
    /// What runs where it does not.
    pub otherwise: Vec<Stmt>,
}

/// Room for a buffer for the time of a body.
#[derive(Clone, Debug, PartialEq)]
pub struct Allocate {
    /// The buffer, of scope `Scratch` or `Register`.
    pub buffer: TensorId,
    /// The statements that may use it.
    pub body: Vec<Stmt>,
}

/// One element written.
#[derive(Clone, Debug, PartialEq)]
pub struct Store {
    /// The element.
    pub target: Access,
    /// The value, of the compute type of the buffer: its own, or float32 for 16-bit floats.
    pub value: Expr,
    /// Reduce the value into what is there by this operator, instead of replacing it.
    pub reduce: Option<ReduceOp>,
    /// The thread need not wait until the element is there: that is so after a [`Sync::Wait`] for its group. Only for
    /// copies from memory to shared memory.
    pub later: bool,
    /// Which instances of the program it is about, if whoever made the nest says so. Proofs start from it, and believe
    /// none of it; nothing else looks at it.
    pub claim: Option<Box<Claim>>,
}

/// What a store has to do with the program's statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// What is stored.
    pub role: ClaimRole,
    /// The statement, by its place in [`crate::Program::statements`].
    pub statement: usize,
    /// The values of its variables, in terms of the loops around the store: those of the ordered loops around the statement,
    /// then its own. None stands for all values at once.
    pub point: Vec<Option<IndexExpr>>,
    /// Which of the nest's computations of the statement it belongs to: the parts of a reduction and their total are
    /// different ones.
    pub computation: usize,
    /// Tells computations of the same element apart, which may be done several times: values of loops that are the same for
    /// all stores that belong to one result, and differ between results.
    pub run: Vec<IndexExpr>,
}

/// What a store with a [`Claim`] stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimRole {
    /// The value of the statement at the point; a reduction reduces it into what is there.
    Value,
    /// The neutral element, with which a reduction begins.
    Neutral,
    /// What a reduction has made so far, on its way from one buffer to another.
    Carry,
    /// Totals of a part of the reduction, which are reduced into what is there.
    Total,
}

/// What the threads of a loop along x have, reduced to one total that is stored. It is alone in its loop, and all that is
/// around it in its block's statement are loops over other threads and conditions. It may take shared memory of one value
/// for each thread of the block.
#[derive(Clone, Debug, PartialEq)]
pub struct Combine {
    /// The variable of the loop directly around.
    pub lane: VarId,
    /// How two threads' values become one.
    pub op: ReduceOp,
    /// The element that gets the total, whose subscripts do not depend on the lane; the value that each thread has; and
    /// whether the total is reduced into what is there.
    pub store: Store,
}

/// Loops over threads, with what is around a [`Combine`] at their end.
#[derive(Clone, Debug)]
pub struct Combining<'a> {
    /// The loops, outermost first; the last is that of the lanes.
    pub loops: Vec<&'a For>,
    /// All of these at least 0 is what a thread takes part for, in the order in which they are asked.
    pub conditions: Vec<&'a IndexExpr>,
    /// The statement itself.
    pub combine: &'a Combine,
}

/// Asks for the cache line of an element, which may lie outside of its buffer: nothing is read then.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefetch {
    /// The element, of a buffer in memory. Its subscripts do not depend on data.
    pub element: Access,
    /// It will be written.
    pub write: bool,
}

impl For {
    /// Whether its iterations are spread over the blocks of a GPU, or over the threads of one.
    pub fn is_spread(&self) -> bool {
        matches!(self.kind, LoopKind::Block(_) | LoopKind::Thread(_))
    }

    /// The axis of the threads that it is over.
    pub fn thread_axis(&self) -> Option<Axis> {
        match self.kind {
            LoopKind::Thread(axis) => Some(axis),
            _ => None,
        }
    }

    /// The combination of threads that this loop over threads is for, if it is for one and nothing else.
    pub fn combining(&self) -> Option<Combining<'_>> {
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
                    let alone =
                        lanes.is_some_and(|lanes| matches!(lanes.body.as_slice(), [Stmt::Combine(_)]));
                    return (over_threads && alone).then_some(Combining { loops, conditions, combine });
                }
                _ => return None,
            }
        }
    }
}

impl Stmt {
    /// Whether it, or a statement inside at any depth, combines threads.
    pub fn combines(&self) -> bool {
        match self {
            Stmt::For(own) => own.body.iter().any(Stmt::combines),
            Stmt::If(own) => own.then.iter().chain(&own.otherwise).any(Stmt::combines),
            Stmt::Allocate(own) => own.body.iter().any(Stmt::combines),
            Stmt::Combine(_) => true,
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) => false,
        }
    }
}

/// Whether some loop in the statements, at any depth, satisfies the predicate.
pub fn any_loop(stmts: &[Stmt], test: &dyn Fn(&For) -> bool) -> bool {
    stmts.iter().any(|stmt| match stmt {
        Stmt::For(own) => test(own) || any_loop(&own.body, test),
        Stmt::If(own) => any_loop(&own.then, test) || any_loop(&own.otherwise, test),
        Stmt::Allocate(own) => any_loop(&own.body, test),
        Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => false,
    })
}

impl LoopNest {
    /// The buffer behind an id.
    pub fn buffer(&self, id: TensorId) -> &Buffer {
        &self.buffers[id.index()]
    }

    /// The name of a variable.
    pub fn var_name(&self, id: VarId) -> &str {
        &self.vars[id.index()].name
    }
}

impl Buffer {
    /// How many elements it has.
    pub fn elements(&self) -> i64 {
        self.shape.iter().product()
    }

    /// How many bytes its elements take.
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
