//! Why a step cannot be done: an expected answer, cheap to make and to count.

use std::fmt;

use thiserror::Error;

/// A schedule that was refused: which step, and why.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}", self.describe())]
pub struct Refusal {
    /// The step at fault, counted from 0; none where only all of them together are at fault;
    /// [`blame`](crate::blame()) finds the one that brought it about.
    pub step: Option<usize>,
    /// Why.
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
    OpenSize(String),
    /// Room that no machine has.
    #[error("`{name}` would take {bytes} bytes")]
    TooLarge {
        /// The buffer.
        name: String,
        /// Its size.
        bytes: u128,
    },
    /// No statement has this name.
    #[error("there is no statement `{name}`; there {are}", are = list(known))]
    UnknownStatement {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A loop that never was, or that an earlier step has replaced.
    #[error("`{statement}` has no loop `{name}`; around it there {are}", are = list(known))]
    UnknownLoop {
        /// The statement.
        statement: String,
        /// What was asked for.
        name: String,
        /// The loops around the statement, outermost first.
        known: Vec<String>,
    },
    /// An earlier step took this loop apart.
    #[error("the loop `{name}` is gone: `{by}` has replaced it")]
    GoneLoop {
        /// What was asked for.
        name: String,
        /// The step that replaced it.
        by: String,
    },
    /// No tensor or buffer has this name.
    #[error("there is no tensor `{name}`; there {are}", are = list(known))]
    UnknownTensor {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// A name that is in use already.
    #[error("the name `{0}` is taken")]
    NameTaken(String),
    /// A split into nothing, or by nothing.
    #[error("a part of `{name}` needs a positive number of iterations, not {factor}")]
    BadFactor {
        /// The loop.
        name: String,
        /// The number.
        factor: i64,
    },
    /// The same loop is named twice, or none is.
    #[error("{0}")]
    BadLoopList(String),
    /// Something else than one loop is between two loops.
    #[error("`{outer}` and `{inner}` are not directly nested: {between} is between them")]
    NotNested {
        /// The outer loop.
        outer: String,
        /// The inner loop.
        inner: String,
        /// What is between them.
        between: String,
    },
    /// The number of iterations of one loop depends on another, so they cannot change places or become one.
    #[error("how often `{inner}` runs depends on `{outer}`: {problem}")]
    DependentExtent {
        /// The outer loop.
        outer: String,
        /// The inner loop.
        inner: String,
        /// What cannot be done.
        problem: String,
    },
    /// The iterations of the loop depend on each other.
    #[error("`{name}` carries a dependence: {why}")]
    CarriedDependence {
        /// The loop.
        name: String,
        /// What depends on what, and what to do about it.
        why: String,
    },
    /// The kind of a loop was set before, or does not go with its neighbours.
    #[error("{0}")]
    LoopKind(String),
    /// A vector with too many lanes, or too much code.
    #[error("`{name}` runs {extent} times, and {what} takes at most {most}: split it first")]
    TooLong {
        /// The loop.
        name: String,
        /// How often it runs.
        extent: i64,
        /// What was asked for.
        what: &'static str,
        /// The most that goes.
        most: i64,
    },
    /// Unrolled loops inside each other, and versions of them.
    #[error(
        "the code would have {operations} operations with unrolled loops written out, and take too long to compile: unroll less, or take shorter vectors"
    )]
    TooMuchCode {
        /// Operations on vector registers that there would be.
        operations: u64,
    },
    /// The register tile does not fit.
    #[error(
        "`{name}` needs {needed} vector registers of {lanes} lanes, and the target has {available}: make the tile smaller"
    )]
    RegisterTile {
        /// The buffer.
        name: String,
        /// Registers that it takes.
        needed: usize,
        /// Lanes of each.
        lanes: usize,
        /// Registers that there are.
        available: usize,
    },
    /// The results of one thread of a GPU do not fit its registers.
    #[error(
        "`{name}` needs {needed} registers of each thread, and there are {available}: make the tile smaller"
    )]
    ThreadRegisters {
        /// The buffer.
        name: String,
        /// Registers that it takes.
        needed: usize,
        /// Registers that a thread can have.
        available: usize,
    },
    /// A kernel asks for more of something than a GPU's block, or its grid, has.
    #[error("the loops around `{statement}` take {needed} {what}, and the GPU has {available}")]
    GpuLimit {
        /// A statement of the kernel.
        statement: String,
        /// Of what.
        what: GpuResource,
        /// How many it takes.
        needed: i64,
        /// How many there are.
        available: i64,
    },
    /// Loops over blocks and threads that are not as a kernel has them.
    #[error("{0}")]
    Kernel(String),
    /// A register cannot be chosen while the code runs.
    #[error(
        "`{name}` is in registers, so `{loop_name}` must be unrolled or vectorised: registers cannot be indexed"
    )]
    RegisterIndex {
        /// The buffer.
        name: String,
        /// The loop.
        loop_name: String,
    },
    /// Data cannot choose a register.
    #[error("`{name}` is in registers, and data chooses among its elements: registers cannot be indexed")]
    RegisterData {
        /// The buffer.
        name: String,
    },
    /// Every lane of a vector would need a buffer of its own.
    #[error(
        "`{loop_name}` is vectorised, and `{name}` would be made inside it: make it outside, or vectorise a loop further in"
    )]
    VectorBuffer {
        /// The buffer.
        name: String,
        /// The loop.
        loop_name: String,
    },
    /// Every lane of a vector would need a place of its own for the total of a 16-bit reduction.
    #[error(
        "`{loop_name}` is vectorised outside of the reduced loop `{reduced}`, where the 16-bit elements of `{tensor}` have no room for wider totals: `reorder` `{loop_name}` inside of `{reduced}`"
    )]
    WideInVector {
        /// What is reduced.
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
    /// A tensor cannot be staged there.
    #[error("`{tensor}` cannot be promoted at `{at}`: {why}")]
    Promote {
        /// The tensor.
        tensor: String,
        /// The place.
        at: String,
        /// Why.
        why: String,
    },
    /// A tensor cannot be asked for there.
    #[error("`{tensor}` cannot be prefetched at `{at}`: {why}")]
    Prefetch {
        /// The tensor.
        tensor: String,
        /// The loop.
        at: String,
        /// Why.
        why: String,
    },
    /// A buffer cannot be arranged so.
    #[error("`{tensor}` cannot be promoted at `{at}`: {why}")]
    Layout {
        /// The tensor.
        tensor: String,
        /// The place.
        at: String,
        /// The part of the layout at fault, counted from 0; none if it is all of it.
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
    /// A reduction cannot be taken apart there.
    #[error("`{name}` cannot be factored out: {why}")]
    Rfactor {
        /// The loop.
        name: String,
        /// Why.
        why: String,
    },
}

/// "are `a`, `b` and `c`", or "is `a`".
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

/// A resource of a GPU that a kernel may take only so much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuResource {
    /// Threads of a block.
    BlockThreads,
    /// Bytes of memory that the threads of a block share.
    SharedBytes,
    /// Bytes of memory that are a thread's own.
    ThreadBytes,
}

impl fmt::Display for GpuResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GpuResource::BlockThreads => "threads of a block",
            GpuResource::SharedBytes => "bytes of shared memory",
            GpuResource::ThreadBytes => "bytes of memory for each thread",
        })
    }
}
