//! Which kernel, block and thread of a GPU an iteration of a store belongs to.
//!
//! The outermost loop over blocks or threads is a kernel, once for every iteration of the loops around it, and kernels run
//! one after the other. What is outside of thread loops is done by the first thread of a block.

use tilewright_ir::nest::{Axis, For, LoopKind};
use tilewright_isl::{Affine, Context, Map};

use super::nest::Site;

/// The place of the kernel's loop among the loops around a store; none on the host.
pub fn kernel(site: &Site) -> Option<usize> {
    site.loops.iter().position(|own| own.is_spread())
}

/// Whether one loop makes the kernels that two stores belong to.
pub fn in_one_kernel(first: &Site, second: &Site) -> bool {
    match (kernel(first), kernel(second)) {
        (Some(one), Some(other)) => std::ptr::eq(first.loops[one], second.loops[other]),
        _ => false,
    }
}

/// Whether the threads of blocks have a loop around a store.
pub fn in_thread(site: &Site) -> bool {
    site.loops.iter().any(|own| own.thread_axis().is_some())
}

/// From vectors of `all` coordinates, which begin with an iteration of a store, to its block.
pub fn blocks(context: &Context, site: &Site, all: usize) -> Vec<Affine> {
    Axis::ALL.map(|axis| coordinate(context, site, all, |own| own.kind == LoopKind::Block(axis))).to_vec()
}

/// From such vectors to the thread that runs the iteration.
pub fn threads(context: &Context, site: &Site, all: usize) -> Vec<Affine> {
    Axis::ALL.map(|axis| coordinate(context, site, all, |own| own.thread_axis() == Some(axis))).to_vec()
}

/// From such vectors to the thread that stores: the first of those that are combined.
pub fn storing_threads(context: &Context, site: &Site, all: usize) -> Vec<Affine> {
    let mut threads = threads(context, site, all);
    if site.combines {
        threads[Axis::X as usize] = Affine::constant(context, all, 0);
    }
    threads
}

/// The number that loops of a kind count together, the innermost as the last digit.
fn coordinate(context: &Context, site: &Site, all: usize, test: impl Fn(&For) -> bool) -> Affine {
    let loops = site.loops.iter().enumerate().filter(|(_, own)| test(own));
    loops.fold(Affine::constant(context, all, 0), |number, (at, own)| {
        let count = own.extent.as_constant().unwrap_or(1);
        number.scale(count).add(&Affine::variable(context, all, at))
    })
}

/// Pairs of vectors with so many coordinates that differ.
pub fn different(context: &Context, dimensions: usize) -> Map {
    let earlier = Map::earlier(context, dimensions);
    earlier.union(&earlier.reverse())
}
