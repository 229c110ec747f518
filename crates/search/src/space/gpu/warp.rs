//! How the lanes of a warp lie along the loops of a block's threads.
//!
//! In order, a warp is as many threads along the last loop as it has lanes, or a few whole rows of it. Lanes can also be a
//! rectangle: of 4 rows of 8 threads each. A warp then needs the operands of 4 rows and 8 columns, where 32 threads in a
//! row need those of 1 and 32, and the banks of shared memory give them in fewer turns. Large matrix products were 6 % faster
//! for it on an H200.

use tilewright_ir::index::greatest_common_divisor;
use tilewright_target::Gpu;

use super::tile::Tile;
use crate::knob::{Knob, Point};
use crate::space::{Builder, KnobId};

/// Lanes along the last loop, if they are a rectangle.
const ALONG: [i64; 3] = [4, 8, 16];
/// The rectangle to begin with.
pub(super) const USUAL: i64 = 8;
/// No rectangle.
pub(super) const IN_ORDER: i64 = 0;

/// The knob of a block's warps.
#[derive(Clone, Debug)]
pub(super) struct Warp {
    /// Lanes along the last loop with several threads, from few to as many as a warp has, which means that threads are in
    /// order.
    along: Vec<i64>,
    knob: KnobId,
}

impl Warp {
    /// Adds the knob. `is_shared`: threads along different loops have operands in common.
    pub fn new(name: String, gpu: &Gpu, is_shared: bool, builder: &mut Builder) -> Warp {
        let size = gpu.warp.max(1) as i64;
        let rectangles = ALONG.into_iter().filter(|along| is_shared && *along < size);
        let along: Vec<i64> = rectangles.chain([size]).collect();
        let knob = builder.add(Knob::ordinal(name, along.iter().copied()));
        Warp { along, knob }
    }

    /// Sets the lanes along the last loop; in order, if there is no such rectangle.
    pub fn set(&self, along: i64, point: &mut Point) {
        let choice = self.along.iter().position(|own| *own == along);
        point.set_choice(self.knob.0, choice.unwrap_or(self.along.len() - 1));
    }

    /// How many of the threads along each of the tile's loops are lanes of one warp; nothing where threads are in order.
    pub fn lanes(&self, tile: &Tile, point: &Point) -> Option<Vec<i64>> {
        Some(self.rectangle(tile, point)?.lanes)
    }

    /// Whether the rectangle is one of whole warps, and another than that of threads in order.
    pub fn is_told_apart(&self, tile: &Tile, point: &Point) -> bool {
        self.rectangle(tile, point).is_none_or(|own| own.left == 1 && own.differs)
    }

    fn rectangle(&self, tile: &Tile, point: &Point) -> Option<Rectangle> {
        let (size, along) = (*self.along.last()?, self.along[point.choice(self.knob.0)]);
        if along == size {
            return None;
        }
        let mut own = Rectangle { lanes: vec![1; tile.spatial.len()], left: size, differs: false };
        let threads = |place: usize| tile.parts(point, tile.spatial[place]).thread;
        let several = point.order(tile.order_threads.0).iter().rev().filter(|place| threads(**place) > 1);
        for (nth, place) in several.enumerate() {
            let threads = threads(*place);
            let wanted = if nth == 0 { along } else { own.left };
            own.lanes[*place] = greatest_common_divisor(threads, wanted);
            own.left /= own.lanes[*place];
            own.differs |= nth == 0 && own.lanes[*place] == along && threads > along;
        }
        Some(own)
    }
}

/// Lanes of a warp along loops.
struct Rectangle {
    lanes: Vec<i64>,
    /// Lanes that would be along loops that there are not.
    left: i64,
    /// Whether it is cut out of the last loop.
    differs: bool,
}
