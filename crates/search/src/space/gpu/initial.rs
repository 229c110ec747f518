//! Sets the knobs of a GPU's starting points: tiles of common shapes, how operands are read, and
//! the placement of producers.

use tilewright_schedule::analysis::Stride;
use tilewright_target::Gpu;

use super::operand::{Layout, Pad, Staging};
use super::tile::Tile;
use super::warp;
use crate::knob::{Domain, Knobs, Point, Value};
use crate::space::placement::{self, Placement};
use crate::space::stage::Stage;

/// The work of a block and of a thread. Columns run along the loop in which the result is
/// contiguous, and rows run along another loop.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileShape {
    /// The results of a thread along rows and columns: the number of groups that are apart, and the
    /// number of adjacent results in a group.
    rows: (i64, i64),
    columns: (i64, i64),
    /// The results of a thread along a third loop, if there is one. The windows of neighbours share
    /// operands.
    third: i64,
    /// The threads along rows and columns.
    threads: (i64, i64),
    /// The number of reduction steps whose operands are in shared memory.
    depth: i64,
    /// The number of pipeline stages: iterations whose operands are in shared memory at the same
    /// time.
    stages: i64,
    /// The number of blocks that share one reduction.
    shares: i64,
}

const fn shape(
    rows: (i64, i64),
    columns: (i64, i64),
    threads: (i64, i64),
    depth: i64,
    stages: i64,
    shares: i64,
) -> TileShape {
    TileShape { rows, columns, third: 1, threads, depth, stages, shares }
}

/// Returns the shape with several results along a third loop.
const fn with_third(third: i64, shape: TileShape) -> TileShape {
    TileShape { third, ..shape }
}

/// The shapes, from large tiles for large results to small ones.
pub(super) const SHAPES: [TileShape; 17] = [
    shape((1, 4), (1, 4), (16, 16), 16, 2, 1),
    shape((2, 4), (2, 4), (16, 16), 16, 3, 1),
    shape((2, 4), (2, 4), (8, 32), 16, 3, 1),
    shape((2, 4), (2, 4), (8, 16), 16, 2, 1),
    shape((2, 4), (2, 4), (8, 32), 16, 2, 4),
    shape((1, 8), (1, 4), (8, 16), 16, 3, 1),
    shape((1, 4), (1, 4), (8, 16), 16, 3, 1),
    shape((1, 4), (1, 2), (8, 16), 16, 3, 4),
    shape((1, 4), (1, 4), (8, 8), 16, 3, 8),
    shape((4, 4), (1, 2), (4, 8), 16, 2, 4),
    with_third(8, shape((2, 4), (1, 1), (4, 64), 16, 3, 1)),
    with_third(8, shape((1, 4), (1, 2), (4, 32), 16, 2, 1)),
    with_third(4, shape((2, 4), (1, 2), (16, 16), 16, 2, 4)),
    shape((1, 4), (1, 1), (4, 32), 16, 2, 1),
    shape((1, 2), (1, 1), (4, 32), 8, 1, 1),
    shape((1, 1), (1, 1), (4, 64), 4, 1, 1),
    shape((1, 1), (1, 1), (2, 32), 16, 1, 1),
];

/// The numbers of rows of a block that computes whole rows, together with all their producers.
pub(super) const ROWS: [i64; 2] = [1, 4];
/// The number of threads of such a block.
const ROW_THREADS: i64 = 256;

/// Sets the knobs of a statement so that blocks divide its first loop only.
pub(super) fn rows(tile: &Tile, stage: &Stage, all: &Knobs, rows: i64, point: &mut Point) {
    let mut threads = ROW_THREADS / rows;
    for (place, (at, knob)) in tile.cuts.spatial.iter().zip(&tile.cuts.knobs).enumerate().rev() {
        let (domain, trips) = (&all[knob.0].domain, stage.loops[*at].trips);
        let value = match place {
            0 => nearest_parts(domain, trips, &[1, rows, 1], Shrink::Largest),
            _ => {
                let thread = (1..=threads.min(trips)).rev().find(|thread| trips % thread == 0).unwrap_or(1);
                threads /= thread;
                Some(Value::Factors(vec![1, trips / thread, thread, 1]))
            }
        };
        if let Some(value) = value.filter(|value| domain.contains(value)) {
            point.0[knob.0] = value;
        }
    }
}

/// Sets the knobs of a statement to a shape, as far as its loops allow.
pub(super) fn tile(tile: &Tile, stage: &Stage, gpu: &Gpu, all: &Knobs, shape: &TileShape, point: &mut Point) {
    let column = column(tile, stage);
    set_spatial(tile, stage, gpu, all, shape, point);
    set_reduced(tile, stage, all, shape, point);
    set_operands(tile, stage, column, point);
    point.set_choice(tile.unrolled.0, 3);
    // A reduction uses the operand of one row for all columns before that of the next row.
    point.set_choice(tile.result_order.0, usize::from(!tile.cuts.reduced.is_empty()));
    let stages = match &all[tile.pipeline_depth.0].domain {
        Domain::Ordinal(own) => own.values().iter().position(|own| *own == shape.stages).unwrap_or(0),
        _ => 0,
    };
    point.set_choice(tile.pipeline_depth.0, stages);
    // Threads along columns are adjacent. Threads that differ in a remainder use different
    // operands.
    let mut order: Vec<usize> = (0..tile.cuts.spatial.len()).collect();
    order.sort_by_key(|place| {
        (
            !stage.loops[tile.cuts.spatial[*place]].is_over_remainders,
            Some(tile.cuts.spatial[*place]) == column,
        )
    });
    point.0[tile.order_threads.0] = Value::Order(order);
    tile.warp.set(warp::INITIAL_WIDTH, point);
    if !tile.warp.is_valid_rectangle(tile, point) {
        tile.warp.set(warp::IN_ORDER, point);
    }
}

/// The role of a result loop in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Column,
    Row,
    Third,
    Other,
    Remainder,
}

/// The indices of a tile's loops with their roles, in the order in which the loops get threads.
fn roles(tile: &Tile, stage: &Stage) -> Vec<(usize, Role)> {
    let column = column(tile, stage);
    let is_remainder = |at: usize| stage.loops[at].is_over_remainders;
    let beside = tile.cuts.spatial.iter().copied().filter(|at| Some(*at) != column && !is_remainder(*at));
    let row = beside.max_by_key(|at| (shared_operand_count(stage, column, *at), stage.loops[*at].trips));
    let place = |at: Option<usize>| tile.cuts.spatial.iter().position(|own| Some(*own) == at);
    let (column, row) = (place(column), place(row));
    let places = || (0..tile.cuts.spatial.len()).rev().filter(|place| ![column, row].contains(&Some(*place)));
    let (remainders, others): (Vec<usize>, Vec<usize>) =
        places().partition(|place| is_remainder(tile.cuts.spatial[*place]));
    let mut others = others.into_iter();
    let named = [(column, Role::Column), (row, Role::Row), (others.next(), Role::Third)];
    let named = named.into_iter().filter_map(|(place, role)| Some((place?, role)));
    let first = remainders.into_iter().map(|place| (place, Role::Remainder));
    first.chain(named).chain(others.map(|place| (place, Role::Other))).collect()
}

/// Sets how result loops are cut. Threads that a short loop cannot use go to other loops.
fn set_spatial(tile: &Tile, stage: &Stage, gpu: &Gpu, all: &Knobs, shape: &TileShape, point: &mut Point) {
    let roles = roles(tile, stage);
    let mut left = shape.threads.0 * shape.threads.1.min(gpu.block_threads as i64);
    for (nth, (place, role)) in roles.iter().enumerate() {
        let (knob, at) = (tile.cuts.knobs[*place], tile.cuts.spatial[*place]);
        let is_last = nth + 1 == roles.len();
        let (parts, shrink) = match tile.cuts.reduced.is_empty() {
            true => shape.pointwise(*role, left, is_last),
            false => shape.parts(*role, left, is_last),
        };
        if let Some(value) = nearest_parts(&all[knob.0].domain, stage.loops[at].trips, &parts, shrink) {
            point.0[knob.0] = value;
            left = (left / tile.parts(point, at).thread.max(1)).max(1);
        }
    }
}

impl TileShape {
    /// Returns the second, third and fourth part of a result loop: results apart, threads, and
    /// adjacent results. Also returns which of them decreases if they are too large. `left` is the
    /// number of remaining threads.
    fn parts(&self, role: Role, left: i64, is_last: bool) -> ([i64; 3], Shrink) {
        let TileShape { rows, columns, third, threads, .. } = *self;
        match role {
            Role::Column => ([columns.0, threads.1.min(left), columns.1], Shrink::Largest),
            Role::Row if is_last => ([rows.0, left, rows.1], Shrink::Threads),
            Role::Row => ([rows.0, threads.0.min(left), rows.1], Shrink::Threads),
            Role::Third => ([1, left, third], Shrink::Threads),
            Role::Other | Role::Remainder => ([1, left, 1], Shrink::Threads),
        }
    }

    /// The same for statements without a reduction. Their results share no operands, but adjacent
    /// results are stored together.
    fn pointwise(&self, role: Role, left: i64, is_last: bool) -> ([i64; 3], Shrink) {
        let ([_, threads, inner], _) = self.parts(role, left, is_last);
        match role {
            Role::Column if is_last => ([1, left, inner], Shrink::Largest),
            Role::Column => ([1, threads, inner], Shrink::Largest),
            Role::Row => ([1, threads, 1], Shrink::Threads),
            Role::Third | Role::Other | Role::Remainder => ([1, left, 1], Shrink::Threads),
        }
    }
}

fn set_reduced(tile: &Tile, stage: &Stage, all: &Knobs, shape: &TileShape, point: &mut Point) {
    let mut depth = shape.depth;
    let knobs = tile.cuts.reduced.iter().zip(&tile.cuts.knobs[tile.cuts.spatial.len()..]);
    // Windows are taken whole. The longest loop gets the rest of the depth.
    let mut order: Vec<(&usize, &crate::space::KnobId)> = knobs.collect();
    order.sort_by_key(|(at, _)| Some(**at) == tile.shared_reduction);
    for (at, knob) in order {
        let trips = stage.loops[*at].trips;
        let inner = depth.min(trips).max(1);
        let value = match Some(*at) == tile.shared_reduction {
            true => shared_parts(&all[knob.0].domain, trips, shape.shares, inner),
            false => nearest_parts(&all[knob.0].domain, trips, &[inner], Shrink::Largest),
        };
        if let Some(value) = value {
            if let Value::Factors(factors) = &value {
                depth /= factors.last().copied().unwrap_or(1).max(1);
            }
            point.0[knob.0] = value;
        }
    }
}

/// Returns the parts of a loop with `inner` as the parts after the first, or with smaller ones if
/// the domain does not contain those. Parts that divide the loop are preferred unless their product
/// is less than three quarters of the other product.
fn nearest_parts(domain: &Domain, trips: i64, inner: &[i64], shrink: Shrink) -> Option<Value> {
    let smaller = std::iter::successors(Some(inner.to_vec()), |inner| shrink.smaller(inner));
    let whole = |inner: &Vec<i64>| trips % inner.iter().product::<i64>() == 0;
    let valued = |inner: Vec<i64>| {
        let product: i64 = inner.iter().product();
        let first = (trips + product - 1) / product;
        let value = Value::Factors(std::iter::once(first).chain(inner).collect());
        domain.contains(&value).then_some((product, value))
    };
    let (product, value) = smaller.clone().find_map(valued)?;
    let exact = smaller.filter(whole).find_map(valued).filter(|(exact, _)| exact * 4 >= product * 3);
    Some(exact.map_or(value, |(_, exact)| exact))
}

/// Which part of a loop decreases if the parts are too large together.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shrink {
    /// The largest part.
    Largest,
    /// The threads, because they can go to other loops. The results of one thread along this loop
    /// stay.
    Threads,
}

impl Shrink {
    fn smaller(self, inner: &[i64]) -> Option<Vec<i64>> {
        let largest = (0..inner.len()).max_by_key(|at| inner[*at])?;
        let threads = (self == Shrink::Threads).then_some(1).filter(|at| inner.get(*at) > Some(&1));
        let at = threads.unwrap_or(largest);
        let mut smaller = inner.to_vec();
        smaller[at] -= 1;
        (smaller[at] > 0).then_some(smaller)
    }
}

/// The parts of a reduced loop that at most `shares` blocks share.
fn shared_parts(domain: &Domain, trips: i64, shares: i64, inner: i64) -> Option<Value> {
    for share in (1..=shares).rev() {
        for inner in (1..=inner).rev() {
            let value = Value::Factors(vec![share, trips / (share * inner).max(1), inner]);
            if domain.contains(&value) {
                return Some(value);
            }
        }
    }
    None
}

/// The loop along which results are adjacent, or the nearest to this if the iterations of that loop
/// are remainders.
fn column(tile: &Tile, stage: &Stage) -> Option<usize> {
    let distance = |at: &usize| match stage.result[*at] {
        Stride::Elements(distance) if distance > 0 && !stage.loops[*at].is_over_remainders => {
            Some((distance, *at))
        }
        _ => None,
    };
    let nearest = tile.cuts.spatial.iter().filter_map(distance).min();
    nearest.map(|(_, at)| at).or(tile.cuts.spatial.last().copied())
}

/// The number of operands that move with the column but not with this loop, so that the rows of a
/// tile share them.
fn shared_operand_count(stage: &Stage, column: Option<usize>, at: usize) -> usize {
    let moves = |strides: &[Stride], at: usize| strides[at] != Stride::Elements(0);
    let with_column = |strides: &[Stride]| column.is_some_and(|column| moves(strides, column));
    let shared = stage.operands.iter().filter(|own| !moves(&own.strides, at) && with_column(&own.strides));
    shared.count()
}

/// Sets how operands are read. Operands of a reduction go through shared memory, transposed ones
/// with padded rows. Gathered operands are read in place, because each element is looked up once.
fn set_operands(tile: &Tile, stage: &Stage, column: Option<usize>, point: &mut Point) {
    for knob in &tile.operand_knobs {
        let operand = &knob.operand;
        let walks = column.is_some_and(|at| operand.strides[at] == Stride::Elements(1));
        let wanted = match () {
            () if tile.cuts.reduced.is_empty() || knob.gathered => vec![Staging::InPlace],
            () if walks && knob.group_size(tile, stage, point).is_some() => {
                vec![Staging::Groups, Staging::Shared(Layout::Plain, Pad::No)]
            }
            () if walks => vec![Staging::Shared(Layout::Plain, Pad::No)],
            () => vec![
                Staging::Packed,
                Staging::Shared(Layout::ResultLast, Pad::Yes),
                Staging::Shared(Layout::Plain, Pad::No),
            ],
        };
        knob.set(&wanted, point);
    }
}

/// Inlines pointwise temporaries. Other tensors are computed before their consumers, or in the
/// consumers' blocks if `inside_consumers` is set.
pub(super) fn place(placement: &Placement, inside_consumers: bool, point: &mut Point) {
    let choice = match () {
        () if placement.allows(placement::ProducerLocation::Inline) => placement::ProducerLocation::Inline,
        () if inside_consumers => placement::ProducerLocation::AtOuter,
        () => placement::ProducerLocation::Root,
    };
    placement.set(choice, point);
}
