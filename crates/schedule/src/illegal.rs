//! Defines the reasons for refusing a step or a schedule: [`Illegal`], its GPU cases in
//! [`KernelFault`], and the [`Refusal`] that adds the number of the step.
//!
//! Refusals are ordinary results, not failures: a search gets many of them and counts them by
//! reason. `Display` gives the message for people.

use std::fmt;

use thiserror::Error;

/// The refusal of a schedule: the step at fault, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.describe())]
pub struct Refusal {
    /// The step at fault, counted from 0. None where the refusal appears only after all steps;
    /// [`blame`](crate::blame()) then finds the step that caused it.
    pub step: Option<usize>,
    /// The reason.
    pub reason: Illegal,
}

impl Refusal {
    fn describe(&self) -> String {
        match self.step {
            Some(step) => format!("step {}: {}", step + 1, self.reason),
            None => self.reason.to_string(),
        }
    }
}

/// Why a step, or a schedule, is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Illegal {
    /// A size has no value.
    #[error("the size `{0}` is not known")]
    UnknownSize(String),
    /// A buffer larger than the memory of any machine.
    #[error("`{name}` would take {bytes} bytes, more than a machine can address")]
    TooLarge {
        /// The buffer.
        name: String,
        /// Its size in bytes.
        bytes: u128,
    },
    /// No statement has this name.
    #[error("there is no statement `{name}`; there {are}", are = list(known))]
    UnknownStatement {
        /// The name that was looked up.
        name: String,
        /// The names of the statements that exist.
        known: Vec<String>,
    },
    /// A loop that does not exist around the statement and was not replaced by an earlier step.
    #[error("`{statement}` has no loop `{name}`; around it there {are}", are = list(known))]
    UnknownLoop {
        /// The statement.
        statement: String,
        /// The name that was looked up.
        name: String,
        /// The loops around the statement, outermost first.
        known: Vec<String>,
    },
    /// A loop that an earlier step has replaced.
    #[error("the loop `{name}` no longer exists: the step `{by}` replaced it")]
    ReplacedLoop {
        /// The name that was looked up.
        name: String,
        /// The step that replaced it.
        by: String,
    },
    /// No tensor or buffer has this name.
    #[error("there is no tensor `{name}`; there {are}", are = list(known))]
    UnknownTensor {
        /// The name that was looked up.
        name: String,
        /// The names of the tensors that exist.
        known: Vec<String>,
    },
    /// A name that is in use already.
    #[error("the name `{0}` is taken: choose another name")]
    NameTaken(String),
    /// A split into a part whose number of iterations is not positive.
    #[error("the part `{name}` needs a positive number of iterations, not {factor}")]
    BadFactor {
        /// The loop.
        name: String,
        /// The number.
        factor: i64,
    },
    /// A list of loops that is unusable: a loop is named twice, too few are named, or there would
    /// be too many.
    #[error("{0}")]
    BadLoopList(String),
    /// Two loops that are not directly nested.
    #[error("`{outer}` and `{inner}` are not directly nested: {between}")]
    NotNested {
        /// The outer loop.
        outer: String,
        /// The inner loop.
        inner: String,
        /// The reason: a loop or statement between them, or that neither is inside the other.
        between: String,
    },
    /// The number of iterations of one loop depends on the other, so the two cannot be reordered or
    /// fused.
    #[error("the number of iterations of `{inner}` depends on `{outer}`: {problem}")]
    DependentExtent {
        /// The outer loop.
        outer: String,
        /// The inner loop.
        inner: String,
        /// The operation that is not possible.
        problem: String,
    },
    /// The iterations of the loop depend on each other.
    #[error("`{name}` carries a dependence: {why}")]
    CarriedDependence {
        /// The loop.
        name: String,
        /// The dependence, and what to do about it.
        why: String,
    },
    /// The kind of the loop was set before, or does not fit the kinds of the loops around or inside
    /// it.
    #[error("{0}")]
    LoopKind(String),
    /// A loop with more iterations than a vector, an unrolled loop or a GPU dimension may have.
    #[error("`{name}` has {extent} iterations, and {what} takes at most {most}: split it first")]
    TooLong {
        /// The loop.
        name: String,
        /// How often it runs.
        extent: i64,
        /// The use that the loop was meant for.
        what: &'static str,
        /// The largest number of iterations for that use.
        most: i64,
    },
    /// Unrolled loops nested in each other, and versions of loops, make too much code.
    #[error(
        "with unrolled loops written out, the code would have {operations} operations and take \
         too long to compile: unroll fewer loops, or use shorter vectors"
    )]
    TooMuchCode {
        /// The number of operations on vector registers that the code would have.
        operations: u64,
    },
    /// The register tile does not fit.
    #[error(
        "`{name}` needs {needed} vector registers of {lanes} lanes, and the target has {available}: make the tile smaller"
    )]
    RegisterTile {
        /// The buffer.
        name: String,
        /// The number of registers that the tile takes.
        needed: usize,
        /// The number of lanes of each register.
        lanes: usize,
        /// The number of registers of the target.
        available: usize,
    },
    /// The results of one GPU thread do not fit into its registers.
    #[error(
        "`{name}` needs {needed} registers of each thread, and a thread has {available}: \
         make the tile smaller"
    )]
    ThreadRegisters {
        /// The buffer.
        name: String,
        /// The number of registers that the buffer takes.
        needed: usize,
        /// The number of registers that a thread can have.
        available: usize,
    },
    /// A kernel needs more of a resource than a thread block or the grid has.
    #[error("the kernel of `{statement}` needs {needed} {what}, and the limit is {available}")]
    GpuLimit {
        /// A statement of the kernel.
        statement: String,
        /// The resource.
        what: GpuResource,
        /// The amount that the kernel takes.
        needed: i64,
        /// The amount that the GPU has.
        available: i64,
    },
    /// Loops over blocks and threads that do not form a valid kernel.
    #[error("{0}")]
    Kernel(KernelFault),
    /// A buffer in registers is indexed by a loop that is neither unrolled nor vectorised.
    /// Registers cannot be indexed at run time.
    #[error(
        "`{name}` is in registers, so `{loop_name}` must be unrolled or vectorised: \
         registers cannot be indexed at run time"
    )]
    RegisterIndex {
        /// The buffer.
        name: String,
        /// The loop.
        loop_name: String,
    },
    /// A vector loop must run along the last dimension of a buffer in registers.
    #[error(
        "`{name}` is in registers, and a subscript mentions the vector loop `{loop_name}`: only the last \
         subscript may do so, as in `{name}(…, e + {loop_name})`; unroll `{loop_name}` instead"
    )]
    RegisterLane {
        /// The buffer.
        name: String,
        /// The vector loop.
        loop_name: String,
    },
    /// A buffer in registers is indexed by data. Registers cannot be indexed at run time.
    #[error(
        "`{name}` is in registers, and its subscripts depend on data: \
         registers cannot be indexed at run time"
    )]
    RegisterData {
        /// The buffer.
        name: String,
    },
    /// Every lane of a vector would need a buffer of its own.
    #[error(
        "`{loop_name}` is vectorised, and `{name}` would be allocated inside it: \
         allocate it at an outer loop, or vectorise an inner loop"
    )]
    BufferInVectorLoop {
        /// The buffer.
        name: String,
        /// The loop.
        loop_name: String,
    },
    /// Every lane of a vector would need its own wider accumulator for the total of a 16-bit
    /// reduction.
    #[error(
        "`{loop_name}` is vectorised outside of the reduced loop `{reduced}`, so each lane would \
         need its own wider total for the 16-bit elements of `{tensor}`: \
         `reorder` `{loop_name}` inside of `{reduced}`"
    )]
    WideAccumulatorInVector {
        /// The tensor that the reduction writes.
        tensor: String,
        /// The outermost reduced loop.
        reduced: String,
        /// The vector loop.
        loop_name: String,
    },
    /// A tensor cannot be inlined.
    #[error("`{tensor}` cannot be inlined: {why}")]
    Inline {
        /// The tensor.
        tensor: String,
        /// Why.
        why: String,
    },
    /// A tensor cannot be computed a second time.
    #[error("`{tensor}` cannot be cloned: {why}")]
    Clone {
        /// The tensor.
        tensor: String,
        /// Why.
        why: String,
    },
    /// A tensor cannot be computed at the loop.
    #[error("`{tensor}` cannot be computed at `{at}`: {why}")]
    ComputeAt {
        /// The tensor.
        tensor: String,
        /// The loop.
        at: String,
        /// Why.
        why: String,
    },
    /// A tensor cannot be kept for the duration of an iteration of the loop.
    #[error("`{tensor}` cannot be stored at `{at}`: {why}")]
    StoreAt {
        /// The tensor.
        tensor: String,
        /// The loop.
        at: String,
        /// Why.
        why: String,
    },
    /// A tensor cannot be promoted at this place.
    #[error("`{tensor}` cannot be promoted at `{at}`: {why}")]
    Promote {
        /// The tensor.
        tensor: String,
        /// The place.
        at: String,
        /// Why.
        why: String,
    },
    /// Two loops cannot be joined.
    #[error("`{target}` cannot be computed with `{with}`: {why}")]
    ComputeWith {
        /// The loop that moves.
        target: String,
        /// The loop that it joins.
        with: String,
        /// Why.
        why: String,
    },
    /// A tensor cannot be prefetched at this loop.
    #[error("`{tensor}` cannot be prefetched at `{at}`: {why}")]
    Prefetch {
        /// The tensor.
        tensor: String,
        /// The loop.
        at: String,
        /// Why.
        why: String,
    },
    /// A buffer cannot have this layout.
    #[error("`{tensor}` cannot be promoted at `{at}`: {why}")]
    Layout {
        /// The tensor.
        tensor: String,
        /// The place.
        at: String,
        /// The part of the layout at fault, counted from 0. None if the layout as a whole is at
        /// fault.
        part: Option<usize>,
        /// Why.
        why: String,
    },
    /// The threads of a reduced loop cannot be combined.
    #[error("the threads of `{name}` cannot be combined: {why}")]
    Combine {
        /// The loop.
        name: String,
        /// Why.
        why: String,
    },
    /// A reduction cannot be factored at this loop.
    #[error("`{name}` cannot be factored out: {why}")]
    Rfactor {
        /// The loop.
        name: String,
        /// Why.
        why: String,
    },
    /// A recurrence cannot be computed in parts at this loop.
    #[error("`{name}` cannot be scanned: {why}")]
    Scan {
        /// The loop.
        name: String,
        /// Why.
        why: String,
    },
}

/// Why loops over blocks and threads do not form a valid kernel.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum KernelFault {
    /// Registers that would have to outlive a kernel.
    #[error(
        "`{buffer}` is in registers outside of the loops over blocks and threads, but registers \
         last only as long as a kernel: promote at a loop inside of them"
    )]
    RegistersOutsideKernel {
        /// The buffer.
        buffer: String,
    },
    /// Registers that no thread would own.
    #[error(
        "`{buffer}` is in registers, which belong to one thread, but it is allocated outside of \
         the loops over threads: promote at a loop inside of them, or use `shared`"
    )]
    RegistersOutsideThreads {
        /// The buffer.
        buffer: String,
    },
    /// Statements between two nested loops over blocks.
    #[error(
        "statements beside or around `{beside}` are between two loops over blocks, so each block \
         of the inner loop would repeat them"
    )]
    BetweenBlocks {
        /// A tensor that the statements write.
        beside: String,
    },
    /// A loop around a barrier that threads run differently often.
    #[error(
        "the loop `{loop_name}` contains a barrier, but the threads of `{threads}` run different \
         numbers of its iterations"
    )]
    UnevenBarrier {
        /// The loop.
        loop_name: String,
        /// The loop over the threads.
        threads: String,
    },
    /// Data decides whether threads reach a barrier.
    #[error("a condition that depends on data decides whether threads reach a barrier")]
    BarrierDependsOnData,
    /// A loop that cannot be pipelined.
    #[error("`{loop_name}` cannot be pipelined: {why}")]
    Pipeline {
        /// The loop.
        loop_name: String,
        /// Why.
        why: String,
    },
}

impl KernelFault {
    /// Returns true when two faults differ at most in names of loops, which later steps replace.
    pub(crate) fn is_same_fault(&self, other: &KernelFault) -> bool {
        let of_loops = matches!(self, KernelFault::UnevenBarrier { .. } | KernelFault::Pipeline { .. });
        let same_kind = std::mem::discriminant(self) == std::mem::discriminant(other);
        self == other || of_loops && same_kind
    }
}

/// Formats names as "are `a`, `b` and `c`", or "is `a`".
fn list(names: &[String]) -> String {
    const MOST: usize = 12;
    let quoted: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => "are none".to_string(),
        [one] => format!("is {one}"),
        _ if names.len() > MOST => format!("are {} and {} more", quoted.join(", "), names.len() - MOST),
        [most @ .., last] => format!("are {} and {last}", most.join(", ")),
    }
}

/// A resource of a GPU of which a kernel may use a limited amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuResource {
    /// Threads of a block.
    BlockThreads,
    /// Bytes of memory that the threads of a thread block share.
    SharedBytes,
    /// Bytes of memory that are private to a thread.
    ThreadBytes,
}

impl fmt::Display for GpuResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GpuResource::BlockThreads => "threads in a block",
            GpuResource::SharedBytes => "bytes of shared memory",
            GpuResource::ThreadBytes => "bytes of memory for each thread",
        })
    }
}
