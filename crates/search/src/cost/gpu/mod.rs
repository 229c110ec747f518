//! Estimates the time of kernels on a GPU.
//!
//! Every statement at root level, or inside loops and branches of the host, is a kernel. Its loops
//! determine the numbers of blocks and threads and the work of a block: instructions, accesses to
//! shared memory with bank conflicts, and sectors of global memory that the lanes of a warp request
//! together. A multiprocessor runs as many blocks as threads, registers and shared memory allow.
//! Its time is that of its busiest unit, or that of a single block that waits for memory in every
//! step of its reduction.
//!
//! | file | what it computes |
//! |---|---|
//! | `walk` | traverses a kernel and adds up the work of a block |
//! | `statement` | the work of one statement |
//! | `branches` | how many warps take a branch |
//! | `lanes` | the memory that the lanes of a warp touch with one access: sectors and bank conflicts |
//! | `cache` | the loads that miss the cache of a multiprocessor |
//! | `total` | the resulting time: occupancy, waves of blocks, and bottlenecks |
//! | `model` | the estimate as features and with named parts |
//!
//! Not modelled: how blocks share the second-level cache, and atomic updates that collide.

mod branches;
mod cache;
mod lanes;
mod model;
mod statement;
mod total;
mod walk;

#[cfg(test)]
mod tests;

use tilewright_ir::LoopNest;
use tilewright_ir::nest::Stmt;
use tilewright_target::Gpu;

pub use model::Model;
use walk::Walk;

/// The estimated time of a call and its parts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The time of a call.
    pub seconds: f64,
    /// The time of each statement outside of loops: [`LoopNest::roots`]. A loop of the host has
    /// several kernels.
    pub roots: Vec<f64>,
    /// The parts of this time, one entry for each kernel.
    pub kernels: Vec<Parts>,
}

/// The parts of a kernel's time, in seconds unless stated otherwise. Overlapping parts count in
/// full.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The total time.
    pub seconds: f64,
    /// The number of blocks.
    pub blocks: f64,
    /// The number of threads of a block.
    pub threads: f64,
    /// The number of blocks that run on a multiprocessor at the same time.
    pub resident: f64,
    /// The time of arithmetic.
    pub compute: f64,
    /// The time to issue instructions of all kinds.
    pub issue: f64,
    /// The time of accesses to the banks of shared memory.
    pub shared: f64,
    /// The time of the sectors of global memory that miss the cache of a multiprocessor.
    pub sectors: f64,
    /// The time of memory itself, which transfers every tensor once.
    pub memory: f64,
    /// The time of waiting for memory and at barriers.
    pub latency: f64,
}

/// Estimates the time of a nest on a GPU.
pub fn estimate(nest: &LoopNest, gpu: &Gpu) -> Estimate {
    let by_root = estimate_roots(nest, gpu);
    let roots: Vec<f64> = by_root.iter().map(|root| root.seconds).collect();
    let kernels = by_root.into_iter().flat_map(|root| root.kernels).collect();
    Estimate { seconds: roots.iter().sum(), roots, kernels }
}

/// Estimates the time of each statement outside of loops.
fn estimate_roots(nest: &LoopNest, gpu: &Gpu) -> Vec<Estimate> {
    let estimate = |root: &Stmt| {
        let kernels: Vec<Parts> =
            Walk::kernels(nest, root, gpu).iter().map(|kernel| total::parts(kernel, gpu)).collect();
        let seconds = kernels.iter().map(|kernel| kernel.seconds).sum();
        Estimate { seconds, roots: vec![seconds], kernels }
    };
    nest.roots().into_iter().map(estimate).collect()
}
