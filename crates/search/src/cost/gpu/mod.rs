//! The time of kernels on a GPU.
//!
//! Every root-level statement is a kernel. Its loops tell how many blocks and threads there are,
//! and what a block does: instructions, accesses to shared memory with the conflicts of banks,
//! sectors of global memory that the lanes of a warp ask for together. A multiprocessor works on as
//! many blocks as threads, registers and shared memory allow, and takes as long as the busiest of
//! its parts, or as a single block that waits for memory at every step of its reduction.
//!
//! | file | what it says |
//! |---|---|
//! | `walk` | goes through a kernel and adds up what a block does |
//! | `lanes` | what the lanes of a warp touch with one access: sectors, and turns of the banks |
//! | `near` | what of that the cache of a multiprocessor does not have |
//! | `total` | from that the time: occupancy, waves of blocks, and what holds them up |
//!
//! Not modelled: how blocks share the second cache, instructions for addresses and conditions
//! beyond a constant share.

mod lanes;
mod near;
mod total;
mod walk;

#[cfg(test)]
mod tests;

use tilewright_ir::LoopNest;
use tilewright_target::Gpu;

use walk::Walk;

/// How long a call takes, and why.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The time of a call.
    pub seconds: f64,
    /// What it is made of, kernel by kernel.
    pub kernels: Vec<Parts>,
}

/// Where the time of a kernel goes, in seconds where it is not said otherwise. What overlaps is
/// there in full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The whole.
    pub seconds: f64,
    /// Blocks of how many threads.
    pub blocks: f64,
    /// Threads of a block.
    pub threads: f64,
    /// Blocks that run on a multiprocessor at a time.
    pub resident: f64,
    /// Arithmetic.
    pub compute: f64,
    /// Instructions of all kinds.
    pub issue: f64,
    /// Turns of the banks of shared memory.
    pub shared: f64,
    /// Sectors of global memory that the cache of a multiprocessor does not have.
    pub sectors: f64,
    /// Memory itself: every tensor once.
    pub memory: f64,
    /// Waiting for memory and for each other.
    pub latency: f64,
}

/// The time of a nest on a GPU.
pub fn estimate(nest: &LoopNest, gpu: &Gpu) -> Estimate {
    let kernels: Vec<Parts> =
        Walk::kernels(nest, gpu).iter().map(|kernel| total::parts(kernel, gpu)).collect();
    Estimate { seconds: kernels.iter().map(|kernel| kernel.seconds).sum(), kernels }
}
