//! Adds the knob that arranges the lanes of a warp along the loops of a block's threads.
//!
//! In order, the lanes of a warp are consecutive threads along the last loop, or a few whole rows
//! of it. Lanes can also form a rectangle, for example 4 rows of 8 threads. The warp then needs the
//! operands of 4 rows and 8 columns, whereas 32 threads in a row need those of 1 row and 32
//! columns. The banks of shared memory deliver the former in fewer cycles. This made large matrix
//! products 6 % faster on an H200.

use tilewright_ir::index::greatest_common_divisor;
use tilewright_target::Gpu;

use super::tile::Tile;
use crate::knob::{Knob, Point};
use crate::space::{Builder, KnobId};

/// The numbers of lanes along the last loop that form a rectangle.
const RECTANGLE_WIDTHS: [i64; 3] = [4, 8, 16];
/// The rectangle of the starting points.
pub(super) const INITIAL_WIDTH: i64 = 8;
/// No rectangle.
pub(super) const IN_ORDER: i64 = 0;

/// The knob that arranges the lanes of a block's warps.
#[derive(Clone, Debug)]
pub(super) struct Warp {
    /// The numbers of lanes along the last loop that has several threads, smallest first. The last
    /// number is the size of a warp, and means that threads are in order.
    lane_counts: Vec<i64>,
    knob: KnobId,
}

impl Warp {
    /// Adds the knob. `is_shared` says that threads along different loops share operands.
    pub fn new(name: String, gpu: &Gpu, is_shared: bool, builder: &mut Builder) -> Warp {
        let size = gpu.warp.max(1) as i64;
        let rectangles = RECTANGLE_WIDTHS.into_iter().filter(|along| is_shared && *along < size);
        let along: Vec<i64> = rectangles.chain([size]).collect();
        let knob = builder.add(Knob::ordinal(name, along.iter().copied()));
        Warp { lane_counts: along, knob }
    }

    /// Sets the number of lanes along the last loop. Threads are in order if there is no such
    /// rectangle.
    pub fn set(&self, along: i64, point: &mut Point) {
        let choice = self.lane_counts.iter().position(|own| *own == along);
        point.set_choice(self.knob.0, choice.unwrap_or(self.lane_counts.len() - 1));
    }

    /// For each loop of the tile, the number of its threads that are lanes of one warp. `None` if
    /// threads are in order.
    pub fn lanes(&self, tile: &Tile, point: &Point) -> Option<Vec<i64>> {
        Some(self.rectangle(tile, point)?.lanes)
    }

    /// Returns true when threads are in order, or when the rectangle has the lanes of a whole warp
    /// and differs from threads in order.
    pub fn is_valid_rectangle(&self, tile: &Tile, point: &Point) -> bool {
        self.rectangle(tile, point).is_none_or(|own| own.remaining_rows == 1 && own.is_distinct)
    }

    fn rectangle(&self, tile: &Tile, point: &Point) -> Option<Rectangle> {
        let (size, along) = (*self.lane_counts.last()?, self.lane_counts[point.choice(self.knob.0)]);
        if along == size {
            return None;
        }
        let mut own =
            Rectangle { lanes: vec![1; tile.cuts.spatial.len()], remaining_rows: size, is_distinct: false };
        let threads = |place: usize| tile.parts(point, tile.cuts.spatial[place]).thread;
        let several = point.order(tile.order_threads.0).iter().rev().filter(|place| threads(**place) > 1);
        for (nth, place) in several.enumerate() {
            let threads = threads(*place);
            let wanted = if nth == 0 { along } else { own.remaining_rows };
            own.lanes[*place] = greatest_common_divisor(threads, wanted);
            own.remaining_rows /= own.lanes[*place];
            own.is_distinct |= nth == 0 && own.lanes[*place] == along && threads > along;
        }
        Some(own)
    }
}

/// The lanes of a warp along each loop.
struct Rectangle {
    lanes: Vec<i64>,
    /// The number of rows of lanes that do not fit into any loop; 1 if all lanes fit.
    remaining_rows: i64,
    /// True if the rectangle covers only a part of the threads along the last loop.
    is_distinct: bool,
}
