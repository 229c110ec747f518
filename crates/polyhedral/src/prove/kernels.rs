//! Finds the kernel, the block and the thread of a GPU that run an iteration of a store.
//!
//! The outermost loop over blocks or threads is a kernel; it is launched once for every iteration
//! of the loops around it. Kernels run one after the other. The first thread of a block executes
//! statements outside thread loops.

use tilewright_ir::nest::{Axis, For, LoopKind};
use tilewright_isl::{Affine, Context, Map};

use super::nest::Site;

/// The position of the kernel's loop among the loops around a store, or `None` on the host.
pub fn kernel_loop(site: &Site) -> Option<usize> {
    site.loops.iter().position(|own| own.is_block_or_thread_loop())
}

/// Checks whether two stores belong to kernels of the same loop.
pub fn are_in_one_kernel(first: &Site, second: &Site) -> bool {
    match (kernel_loop(first), kernel_loop(second)) {
        (Some(one), Some(other)) => std::ptr::eq(first.loops[one], second.loops[other]),
        _ => false,
    }
}

/// Checks whether a loop over threads is around a store.
pub fn is_in_thread(site: &Site) -> bool {
    site.loops.iter().any(|own| own.thread_axis().is_some())
}

/// The block coordinates, as functions of vectors with `all` coordinates that begin with an
/// iteration of a store.
pub fn blocks(context: &Context, site: &Site, all: usize) -> Vec<Affine> {
    Axis::ALL.map(|axis| coordinate(context, site, all, |own| own.kind == LoopKind::Block(axis))).to_vec()
}

/// The coordinates of the thread that runs the iteration, as functions of such vectors.
pub fn threads(context: &Context, site: &Site, all: usize) -> Vec<Affine> {
    Axis::ALL.map(|axis| coordinate(context, site, all, |own| own.thread_axis() == Some(axis))).to_vec()
}

/// The coordinates of the thread that stores, as functions of such vectors. Of combined threads
/// this is the first.
pub fn storing_threads(context: &Context, site: &Site, all: usize) -> Vec<Affine> {
    let mut threads = threads(context, site, all);
    if site.combines {
        threads[Axis::X as usize] = Affine::constant(context, all, 0);
    }
    threads
}

/// The combined index of all loops that pass the test, with the innermost loop as the last digit.
fn coordinate(context: &Context, site: &Site, all: usize, test: impl Fn(&For) -> bool) -> Affine {
    let loops = site.loops.iter().enumerate().filter(|(_, own)| test(own));
    loops.fold(Affine::constant(context, all, 0), |number, (at, own)| {
        let count = own.extent.as_constant().unwrap_or(1);
        number.scale(count).add(&Affine::variable(context, all, at))
    })
}

/// Pairs of vectors with `dimensions` coordinates that differ.
pub fn different_vectors(context: &Context, dimensions: usize) -> Map {
    let earlier = Map::lex_less(context, dimensions);
    earlier.union(&earlier.reverse())
}
