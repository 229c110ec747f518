//! The vocabulary: one transformation of loops, and a list of them.
//!
//! Loops are named `STATEMENT.LOOP`. A statement is named as the tensor it writes; the second statement that
//! writes it is `tensor[2]`. A loop begins with the name of its variable in the program. Each step's meaning is
//! given as before → after; when it is refused is said by [`crate::Illegal`].

use tilewright_ir::nest::Axis;

/// How to compute a program: steps, applied one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A statement of the program, or one that a step made: the copy of a `promote`, the partial of an `rfactor`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementName {
    /// The tensor or buffer that it writes.
    pub tensor: String,
    /// Which of the statements that write it, counted from 1.
    pub ordinal: usize,
}

/// A loop around a statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LoopName {
    /// The statement.
    pub statement: StatementName,
    /// The loop's own name.
    pub name: String,
}

/// One transformation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// `split C.i -> io, ii:12`: the loop becomes nested loops, outermost first. Every part but the first has a
    /// number of iterations; they need not divide the loop's.
    ///
    /// `for i in N` → `for io in ⌈N/12⌉, for ii in min(12, N - 12*io)`
    Split {
        /// The loop.
        target: LoopName,
        /// The name of the outermost part.
        outer: String,
        /// The parts inside it: name and iterations.
        inner: Vec<(String, i64)>,
    },
    /// `fuse C.io, C.jo -> t`: perfectly nested loops, outermost first, become one.
    ///
    /// `for io in 4, for jo in 8` → `for t in 32`
    Fuse {
        /// The loops.
        loops: Vec<LoopName>,
        /// The new loop.
        name: String,
    },
    /// `reorder C.jo, C.io, C.k`: these loops, perfectly nested apart from others between them, take each
    /// other's places so that they come in this order.
    Reorder {
        /// The loops, outermost first.
        loops: Vec<LoopName>,
    },
    /// `unroll C.ii`: the iterations are written out.
    Unroll(LoopName),
    /// `vectorize C.j`: all iterations at once, one a lane.
    Vectorize(LoopName),
    /// `parallel C.jo`: iterations are spread over threads.
    Parallel(LoopName),
    /// `bind C.io -> block.y`: iterations are spread over the blocks of a GPU, or over the threads of a block. Loops over
    /// threads are inside of those over blocks, and a loop of the reduction whose operands are staged in shared memory
    /// goes between the two.
    Bind {
        /// The loop.
        target: LoopName,
        /// What its iterations become.
        to: Unit,
    },
    /// `inline P`: what P's statement computes takes the place of every use of P, and P is gone.
    Inline {
        /// The tensor.
        tensor: String,
    },
    /// `compute_at P, C.io`: what one iteration of the loop needs of P is computed at its start.
    ComputeAt {
        /// The tensor; all of its statements move.
        tensor: String,
        /// The loop.
        at: LoopName,
    },
    /// `promote B at C.ko -> Bp packed (d1/32, d0, d1%32)`: the part of a tensor that one iteration of the loop
    /// touches is staged in a buffer. What is read is copied in at the iteration's start, by a new statement named
    /// as the buffer with loops `l0`, `l1`, …, one for each dimension of the layout. The result of a statement is
    /// accumulated in the buffer and stored at the iteration's end.
    ///
    /// `promote LUT at O.lo -> rows shared gathered` copies `rows[b,l,d] = LUT[I[b,l],d]`, for the `b` and `l` of one
    /// iteration.
    ///
    /// `promote W at root -> Wp packed (…)` stages all of it; if the program says that W is constant, then only
    /// once, before any number of calls.
    Promote {
        /// The tensor, or a buffer.
        tensor: String,
        /// Where.
        at: Place,
        /// The name of the buffer.
        name: String,
        /// Where the buffer lives.
        scope: PromoteScope,
        /// What data chooses is gathered: a dimension of the tensor whose subscript depends on data is replaced by the
        /// variables that the subscript depends on, so the buffer holds the rows that are read and not the whole table.
        gathered: bool,
        /// The buffer's dimensions, outermost first; as the tensor's if empty.
        layout: Vec<LayoutDim>,
        /// Elements that are left free behind each row of the buffer, so that the rows of shared memory begin in
        /// different banks: `pad 4`.
        pad: i64,
    },
    /// `rfactor C.ki -> Cp`: every iteration of the reduction's loop gets a total of its own, in a buffer whose
    /// first dimension is that loop; a new last statement, `C`, adds the totals up over a loop of the same name.
    /// The old statement is now `Cp`, and its loop `Cp.ki` can be reordered, vectorised and run in parallel.
    ///
    /// `for k.., for ki: C += e` → `for k.., for ki: Cp[ki] += e` then `for ki: C += Cp[ki]`
    Rfactor {
        /// The loop, of a reduction.
        target: LoopName,
        /// The name of the partial totals.
        name: String,
    },
    /// `pipeline C.ko stages 3`: what an iteration of the loop copies to shared memory is copied two iterations ahead,
    /// while others are computed with.
    Pipeline {
        /// The loop.
        target: LoopName,
        /// How many iterations have their operands in shared memory at a time.
        stages: i64,
    },
    /// `prefetch I at e.do ahead 1 of O.n`: in every iteration of `e.do`, the part of I that the same iteration
    /// touches when `O.n` is one further is asked for, so that it is in the cache by then. Without `of`, the loop
    /// itself is one further.
    Prefetch {
        /// The tensor, or a buffer in memory.
        tensor: String,
        /// The loop that asks.
        at: LoopName,
        /// By how many iterations.
        ahead: i64,
        /// Of this loop: the same, or one around it.
        of: LoopName,
    },
}

/// What the iterations of a loop become on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Blocks of threads, along a dimension of the grid.
    Block(Axis),
    /// Threads, along a dimension of their block.
    Thread(Axis),
}

impl Unit {
    /// Every one.
    pub const ALL: [Unit; 6] = [
        Unit::Block(Axis::X),
        Unit::Block(Axis::Y),
        Unit::Block(Axis::Z),
        Unit::Thread(Axis::X),
        Unit::Thread(Axis::Y),
        Unit::Thread(Axis::Z),
    ];
}

/// Where a promotion takes place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Outside all loops.
    Root,
    /// In every iteration of a loop.
    Loop(LoopName),
}

/// Where a promoted buffer lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromoteScope {
    /// Memory that is close together.
    Packed,
    /// Memory that the threads of a GPU's block share.
    Shared,
    /// Registers.
    Registers,
}

/// One dimension of a layout: `d1`, `d1/32` or `d1%32`, or `d1%64/8`: the remainder is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayoutDim {
    /// A dimension of the tensor, counted from 0.
    pub dimension: usize,
    /// Take the remainder by this.
    pub modulo: Option<i64>,
    /// Then the quotient by this.
    pub divide: Option<i64>,
}

impl StatementName {
    /// The first statement that writes the tensor.
    pub fn first(tensor: impl Into<String>) -> StatementName {
        StatementName { tensor: tensor.into(), ordinal: 1 }
    }

    /// One of its loops.
    pub fn at(&self, name: impl Into<String>) -> LoopName {
        LoopName { statement: self.clone(), name: name.into() }
    }
}
