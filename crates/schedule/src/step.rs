//! Defines the steps of a schedule ([`Step`]), each of which transforms loops, the list of them
//! ([`Schedule`]), and the names that steps use.
//!
//! Loops are named `STATEMENT.LOOP`. A statement has the name of the tensor that it writes; the
//! second statement that writes the same tensor is `tensor[2]`. A loop at first has the name of its
//! variable in the program. The documentation of each step shows the loops before → after.
//! [`crate::Illegal`] lists the reasons to refuse a step.

use tilewright_ir::nest::Axis;

/// How to compute a program: steps, applied one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Schedule {
    /// The steps in order.
    pub steps: Vec<Step>,
}

/// A statement of the program, or one that a step made, such as the copy of a `promote` or the
/// partial reduction of an `rfactor`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StatementName {
    /// The tensor or buffer that the statement writes.
    pub tensor: String,
    /// The statement's number among those that write the tensor, counted from 1.
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
    /// `split C.i -> io, ii:12`: splits a loop into nested loops, outermost first. Every part but
    /// the first has a given number of iterations. The product of these numbers need not divide the
    /// loop's extent.
    ///
    /// `for i in N` → `for io in ⌈N/12⌉, for ii in min(12, N - 12*io)`
    Split {
        /// The loop.
        target: LoopName,
        /// The name of the outermost part.
        outer: String,
        /// The inner parts: name and number of iterations of each.
        inner: Vec<(String, i64)>,
    },
    /// `fuse C.io, C.jo -> t`: joins perfectly nested loops, named outermost first, into one loop.
    ///
    /// `for io in 4, for jo in 8` → `for t in 32`
    Fuse {
        /// The loops.
        loops: Vec<LoopName>,
        /// The new loop.
        name: String,
    },
    /// `reorder C.jo, C.io, C.k`: permutes these loops so that they are nested in this order. The
    /// loops must be perfectly nested; loops between them that are not named keep their places.
    Reorder {
        /// The loops, outermost first.
        loops: Vec<LoopName>,
    },
    /// `unroll C.ii`: the iterations are written out.
    Unroll(LoopName),
    /// `vectorize C.j`: runs all iterations at once, one in each vector lane.
    Vectorize(LoopName),
    /// `parallel C.jo`: distributes the iterations over the threads of a CPU.
    Parallel(LoopName),
    /// `bind C.io -> block.y`: distributes the iterations over the blocks of a GPU, or over the
    /// threads of a block. Loops over threads are inside loops over blocks. A reduction loop whose
    /// operands are staged in shared memory goes between the two.
    Bind {
        /// The loop.
        target: LoopName,
        /// The blocks or threads that run its iterations.
        to: ParallelUnit,
    },
    /// `inline P`: replaces every use of P by the expression that P's statement computes, and
    /// removes P.
    Inline {
        /// The tensor.
        tensor: String,
    },
    /// `clone P -> Q for C, D`: computes P a second time, in a temporary `Q`, and lets these
    /// statements read Q. Steps can then place Q otherwise than P.
    Clone {
        /// The tensor.
        tensor: String,
        /// The name of the second temporary, and of the statement that computes it.
        name: String,
        /// The statements that read the second temporary.
        readers: Vec<StatementName>,
    },
    /// `compute_at P, C.io`: computes, at the start of each iteration of the loop, the part of P
    /// that this iteration needs.
    ///
    /// `compute_at P, C.yi store_at C.yo fold 4` keeps what the iterations have computed, for the
    /// duration of one iteration of `C.yo`, so that each iteration of `C.yi` computes only the rows
    /// that are new. The buffer holds the last 4 of them.
    ComputeAt {
        /// The tensor; all of its statements move.
        tensor: String,
        /// The loop.
        at: LoopName,
        /// Where the parts are kept, if later iterations use them too.
        storage: Option<Storage>,
    },
    /// `compute_with A.y, B.y`: joins two loops that follow each other, so that an iteration of
    /// `B.y` follows each iteration of `A.y`. With `ahead 2`, the iterations of `A.y` run two
    /// iterations before those of `B.y`. The joined loop has the name of the second.
    ///
    /// `for y in N: A`, `for y in N: B` → `for y in N: { A; B }`
    ComputeWith {
        /// The loop that moves.
        target: LoopName,
        /// The loop that it joins.
        with: LoopName,
        /// How many iterations the moved loop runs ahead.
        ahead: i64,
    },
    /// `promote B at C.ko -> Bp packed (d1/32, d0, d1%32)`: stages in a buffer the part of a tensor
    /// that one iteration of the loop touches. For an operand, a new statement copies the part in
    /// at the start of the iteration. The copy is named after the buffer and has loops `l0`, `l1`,
    /// …, one for each dimension of the layout. For the result of a statement, the buffer
    /// accumulates the result, which is stored to the tensor at the end of the iteration.
    ///
    /// `promote LUT at O.lo -> rows shared gathered` copies `rows[b,l,d] = LUT[I[b,l],d]`, for the
    /// `b` and `l` of one iteration.
    ///
    /// `promote W at root -> Wp packed (…)` stages the whole tensor. If the program declares W
    /// constant, the copy runs only once, before any number of calls.
    Promote {
        /// The tensor, or a buffer.
        tensor: String,
        /// The loop at whose iterations the buffer is filled, or the root.
        at: LoopLevel,
        /// The name of the buffer.
        name: String,
        /// The kind of memory that holds the buffer.
        scope: PromoteScope,
        /// Whether the buffer gathers elements that data chooses. A dimension of the tensor whose
        /// subscript depends on data is then replaced by the variables that the subscript depends
        /// on. The buffer thus holds only the rows that are read, not the whole table.
        gathered: bool,
        /// The buffer's dimensions, outermost first. If empty, the buffer has the tensor's own
        /// dimensions.
        layout: Vec<LayoutDim>,
        /// Unused elements at the end of each row of the buffer (`pad 4`). They let the rows in
        /// shared memory begin in different banks.
        pad: i64,
    },
    /// `rfactor C.ki -> Cp`: gives every iteration of a reduction loop its own partial total, in a
    /// buffer whose first dimension is that loop. A new last statement, `C`, adds up the partial
    /// totals over a loop of the same name. The old statement is renamed `Cp`. Its loop `Cp.ki` can
    /// now be reordered, vectorised and run in parallel.
    ///
    /// `for k.., for ki: C += e` → `for k.., for ki: Cp[ki] += e` then `for ki: C += Cp[ki]`
    Rfactor {
        /// The reduction loop.
        target: LoopName,
        /// The name of the buffer of partial totals.
        name: String,
    },
    /// `scan y[2].part -> carry`: computes a recurrence in parts that do not wait for each other.
    /// The loop is the outer part of an ordered loop that was split. A new statement `carry_parts`
    /// computes the total of each part, and `carry` computes from the totals the value before each
    /// part. If the value before is multiplied by something, `carry_factors` computes the product
    /// of these factors for each part.
    ///
    /// `for part, for t: y[part, t] = y[before] + x` → `for part, for t: carry_parts[part] += x`
    /// then `for part: carry[part] = carry[part - 1] + carry_parts[part - 1]` then `for part, for
    /// t: y[part, t] = (1 <= t ? y[before] : carry[part]) + x`
    Scan {
        /// The loop over the parts.
        target: LoopName,
        /// The name of the buffer of the values before the parts.
        name: String,
    },
    /// `pipeline C.ko stages 3`: copies the operands of an iteration to shared memory two
    /// iterations ahead, while earlier iterations compute.
    Pipeline {
        /// The loop.
        target: LoopName,
        /// The number of iterations whose operands are in shared memory at the same time.
        stages: i64,
    },
    /// `prefetch I at e.do ahead 1 of O.n`: in every iteration of `e.do`, prefetches into the cache
    /// the part of I that the same iteration touches when `O.n` is one iteration further. Without
    /// `of`, the loop itself is the one that is one iteration further.
    Prefetch {
        /// The tensor, or a buffer in memory.
        tensor: String,
        /// The loop whose iterations issue the prefetches.
        at: LoopName,
        /// The number of iterations to look ahead.
        ahead: i64,
        /// The loop that these iterations are counted in: the same loop, or one around it.
        of: LoopName,
    },
}

impl Step {
    /// The tensor whose statements the step removes, repeats or moves to other loops. None for
    /// steps that change the loops of a statement, or stage what it reads or writes.
    pub fn placed_tensor(&self) -> Option<&str> {
        match self {
            Step::Inline { tensor } | Step::Clone { tensor, .. } | Step::ComputeAt { tensor, .. } => {
                Some(tensor)
            }
            Step::ComputeWith { target, .. } => Some(&target.statement.tensor),
            Step::Split { .. }
            | Step::Fuse { .. }
            | Step::Reorder { .. }
            | Step::Unroll(_)
            | Step::Vectorize(_)
            | Step::Parallel(_)
            | Step::Bind { .. }
            | Step::Promote { .. }
            | Step::Rfactor { .. }
            | Step::Scan { .. }
            | Step::Pipeline { .. }
            | Step::Prefetch { .. } => None,
        }
    }

    /// The tensor that the step stages in a buffer, or fetches into a cache.
    pub fn staged_tensor(&self) -> Option<&str> {
        match self {
            Step::Promote { tensor, .. } | Step::Prefetch { tensor, .. } => Some(tensor),
            _ => None,
        }
    }

    /// The loops that the step names.
    pub fn loops(&self) -> Vec<&LoopName> {
        match self {
            Step::Split { target, .. }
            | Step::Bind { target, .. }
            | Step::Rfactor { target, .. }
            | Step::Scan { target, .. }
            | Step::Pipeline { target, .. }
            | Step::Unroll(target)
            | Step::Vectorize(target)
            | Step::Parallel(target) => vec![target],
            Step::Fuse { loops, .. } | Step::Reorder { loops } => loops.iter().collect(),
            Step::Inline { .. } | Step::Clone { .. } => Vec::new(),
            Step::ComputeAt { at, storage, .. } => {
                let kept = storage.as_ref().and_then(|own| own.at.loop_name());
                [at].into_iter().chain(kept).collect()
            }
            Step::ComputeWith { target, with, .. } => vec![target, with],
            Step::Promote { at, .. } => at.loop_name().into_iter().collect(),
            Step::Prefetch { at, of, .. } => vec![at, of],
        }
    }

    /// A promotion that gathers nothing and has no padding. An empty layout is the tensor's own.
    pub fn promote(
        tensor: impl Into<String>,
        at: LoopLevel,
        name: impl Into<String>,
        scope: PromoteScope,
        layout: Vec<LayoutDim>,
    ) -> Step {
        let (tensor, name) = (tensor.into(), name.into());
        Step::Promote { tensor, at, name, scope, gathered: false, layout, pad: 0 }
    }
}

/// The blocks or threads that the iterations of a loop become on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParallelUnit {
    /// Thread blocks, along a dimension of the grid.
    Block(Axis),
    /// Threads, along a dimension of their thread block.
    Thread(Axis),
}

impl ParallelUnit {
    /// All units.
    pub const ALL: [ParallelUnit; 6] = [
        ParallelUnit::Block(Axis::X),
        ParallelUnit::Block(Axis::Y),
        ParallelUnit::Block(Axis::Z),
        ParallelUnit::Thread(Axis::X),
        ParallelUnit::Thread(Axis::Y),
        ParallelUnit::Thread(Axis::Z),
    ];
}

/// How long a tensor that is computed at a loop is kept.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Storage {
    /// The buffer exists for one iteration of this loop.
    pub at: LoopLevel,
    /// The number of rows that the buffer has, which new rows replace in turn. None if it has room
    /// for all rows.
    pub fold: Option<i64>,
}

/// The place of a promotion or of a buffer.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LoopLevel {
    /// Outside all loops.
    Root,
    /// In every iteration of a loop.
    Loop(LoopName),
}

impl LoopLevel {
    /// The loop; none for the root.
    pub fn loop_name(&self) -> Option<&LoopName> {
        match self {
            LoopLevel::Root => None,
            LoopLevel::Loop(name) => Some(name),
        }
    }
}

/// The kind of memory that holds a promoted buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromoteScope {
    /// Contiguous main memory.
    Packed,
    /// Shared memory of a GPU's thread block.
    Shared,
    /// Registers.
    Registers,
}

/// One dimension of a layout: `d1`, `d1/32`, `d1%32` or `d1%64/8`. The remainder is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LayoutDim {
    /// A dimension of the tensor, counted from 0.
    pub dimension: usize,
    /// The divisor of the remainder, which is taken first.
    pub modulo: Option<i64>,
    /// The divisor of the quotient, which is taken of that remainder.
    pub divide: Option<i64>,
}

impl StatementName {
    /// The first statement that writes the tensor.
    pub fn first(tensor: impl Into<String>) -> StatementName {
        StatementName { tensor: tensor.into(), ordinal: 1 }
    }

    /// The name of one of this statement's loops.
    pub fn loop_named(&self, name: impl Into<String>) -> LoopName {
        LoopName { statement: self.clone(), name: name.into() }
    }
}
