//! Defines the [`Capabilities`] of a target that schedules may use: parallel units, memory scopes,
//! registers, vectors, and the loops that code for the target can have.
//!
//! A step means the same on every target. Where targets differ, the step asks the capabilities. A
//! kind of target states its capabilities once, in [`Hardware::capabilities`](crate::Hardware).

/// The capabilities of a target that schedules may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The noun for this kind of target in messages, such as `CPU`.
    pub kind: &'static str,
    /// The number of threads of the pool that runs `parallel` loops; none if there is no pool.
    pub pool_threads: Option<usize>,
    /// The blocks and threads to which `bind` binds loops; none if there are none. A target with a
    /// grid runs kernels: barriers order the threads of a block, and the host runs the loops around
    /// a kernel.
    pub grid: Option<Grid>,
    /// The bytes of memory that the threads of a block share; none if there is no such memory.
    pub shared_bytes: Option<usize>,
    /// The registers that `promote … registers` fills.
    pub registers: Registers,
    /// The largest number of bytes that one instruction of a vector loop handles.
    pub vector_bytes: usize,
    /// The sizes in bytes of the integers into which several threads can reduce values at once, by
    /// atomic operations.
    pub atomic_bytes: &'static [usize],
    /// Whether splits and fusions must give loops with constant trip counts, because parallel units
    /// are always all there. Guards then skip the iterations past the end.
    pub fixed_trip_counts: bool,
    /// Whether a condition costs no branch. Conditions then stay in inner loops, and the code needs
    /// no versions without them.
    pub predicated: bool,
}

/// Blocks of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// The maximum number of blocks along each axis.
    pub blocks: [usize; 3],
    /// The maximum number of threads of a block along each axis.
    pub block_shape: [usize; 3],
    /// The maximum number of threads of a block.
    pub block_threads: usize,
}

/// The registers that a schedule can fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registers {
    /// Vector registers, with an element in each lane. They hold results; instructions load their
    /// operands themselves.
    Vector {
        /// The bytes of one register.
        bytes: usize,
        /// The number of registers.
        count: usize,
    },
    /// The 32-bit registers of a thread, with an element in one or more of them. They hold results
    /// and operands.
    Thread {
        /// The number of registers.
        count: usize,
    },
}
