//! Sets the knobs of a CPU's starting points: the vector, the register tile, the threads and the
//! placement of producers that static analysis suggests.

use tilewright_ir::Program;
use tilewright_schedule::analysis::Stride;
use tilewright_target::Cpu;

use super::tile::Tile;
use crate::knob::{Domain, Knobs, Point, Value};
use crate::space::placement::{Placement, ProducerLocation};
use crate::space::stage::{Operand, Stage, reads_tensor};

/// The number of vectors in a register tile.
const TILE_VECTORS: i64 = 24;
/// The number of adjacent vectors in one row of a register tile.
const TILE_WIDTH: i64 = 2;

/// Sets the knobs of a statement: vector, register tile and threads. The vector runs along the loop
/// at index `along` of `vector_loops`, or along the best loop if `along` is `None`.
pub(super) fn tile(
    tile: &Tile,
    stage: &Stage,
    target: &Cpu,
    all: &Knobs,
    along: Option<usize>,
    point: &mut Point,
) {
    let lanes = target.lanes(stage.dtype.compute_type().bytes()) as i64;
    let vector = along.map(|place| (place, tile.vector_loops[place])).or_else(|| best_vector(tile, stage));
    point.set_choice(tile.vector.0, vector.map_or(tile.vector_loops.len(), |(place, _)| place));
    point.set_choice(tile.threads.0, threads(tile, stage, target));
    let along = vector.map(|(_, at)| at);
    let row = row_loop(tile, stage, along);
    for (at, knob) in tile.cuts.all().zip(&tile.cuts.knobs) {
        let trips = stage.loops[at].trips;
        let width = if along == Some(at) {
            vector_width(stage, trips, lanes, at)
        } else if row == Some(at) {
            tile_rows(target, along, stage)
        } else {
            1
        };
        let step = if along == Some(at) && width >= lanes { lanes } else { 1 };
        if let Some(value) = split_value(&all[knob.0].domain, trips, width, step, stage.loops[at].is_reduced)
        {
            point.0[knob.0] = value;
        }
    }
    if tile.check_lanes(stage, target, point).is_err() {
        point.set_choice(tile.vector.0, tile.vector_loops.len());
    }
}

/// The number of rows of a register tile, such that registers for operands remain.
fn tile_rows(target: &Cpu, vector: Option<usize>, stage: &Stage) -> i64 {
    let available = (target.vectors.registers() as i64 * 3 / 4).min(TILE_VECTORS);
    let wide = if vector.is_some_and(|at| stage.loops[at].is_reduced) { 4 } else { TILE_WIDTH };
    available / wide
}

/// The number of iterations of the vectorised loop in one register tile.
fn vector_width(stage: &Stage, trips: i64, lanes: i64, at: usize) -> i64 {
    let registers =
        if stage.loops[at].is_reduced || stage.repeated_loops(true).is_empty() { 4 } else { TILE_WIDTH };
    if trips >= registers * lanes { registers * lanes } else { lanes.min(trips) }
}

/// Cuts a loop into a tile of at most `width` iterations and one other part that has the remaining
/// iterations. The width decreases by `step` until the domain contains the factors. The other part
/// is the outer one for a result loop and the inner one for a reduced loop.
fn split_value(domain: &Domain, trips: i64, width: i64, step: i64, reduced: bool) -> Option<Value> {
    let widths = (0..).map(|steps| width.min(trips) - steps * step).take_while(|width| *width >= 1);
    let values = widths.map(|width| {
        let rest = (trips + width - 1) / width;
        Value::Factors(if reduced { vec![1, rest, width] } else { vec![rest, 1, width] })
    });
    values.into_iter().find(|value| domain.contains(value))
}

/// The loop along which most accesses are contiguous, with its index in `vector_loops`.
fn best_vector(tile: &Tile, stage: &Stage) -> Option<(usize, usize)> {
    let score = |at: usize| -> i64 {
        let operands: i64 = stage
            .operands
            .iter()
            .map(|operand| match operand.strides[at] {
                Stride::Elements(1) => 2,
                Stride::Elements(0) => 1,
                _ if operand.is_constant => 1,
                _ => -6,
            })
            .sum();
        let result = match stage.result[at] {
            Stride::Elements(1) => 3,
            _ if stage.loops[at].is_reduced => -2,
            _ => -1,
        };
        operands + result
    };
    let places = tile.vector_loops.iter().enumerate();
    places.map(|(place, at)| (place, *at)).max_by_key(|(_, at)| score(*at))
}

/// The result loop whose iterations share most of the loaded data. Its score is the number of loads
/// of one register tile, where an operand that moves along both the rows and the vector costs most.
fn row_loop(tile: &Tile, stage: &Stage, vector: Option<usize>) -> Option<usize> {
    if stage.repeated_loops(true).is_empty() {
        return None;
    }
    let others = tile.cuts.spatial.iter().copied().filter(|at| Some(*at) != vector);
    let moves = |operand: &Operand, at: usize| operand.strides[at] != Stride::Elements(0);
    let loads = |at: usize| -> i64 {
        let each = stage.operands.iter().map(|operand| {
            let rows = if moves(operand, at) { TILE_VECTORS / TILE_WIDTH } else { 1 };
            let vectors = if vector.is_some_and(|along| moves(operand, along)) { TILE_WIDTH } else { 1 };
            rows * vectors
        });
        each.sum()
    };
    others.max_by_key(|at| (std::cmp::Reverse(loads(*at)), stage.loops[*at].trips))
}

fn threads(tile: &Tile, stage: &Stage, target: &Cpu) -> usize {
    let mut iterations = 1;
    for (count, at) in tile.cuts.spatial.iter().enumerate() {
        if iterations >= 2 * target.cores as i64 {
            return count;
        }
        iterations *= stage.loops[*at].trips;
    }
    tile.cuts.spatial.len()
}

/// Inlines a pointwise stage with a single use. Otherwise, the stage is computed before its
/// consumer, or in the consumer's loops if `inside_consumers` is set.
pub(super) fn place(
    placement: &Placement,
    program: &Program,
    stages: &[Stage],
    inside_consumers: bool,
    point: &mut Point,
) {
    let uses = program.find_tensor(&placement.tensor).map_or(0, |tensor| {
        let statements = program.statements();
        statements.iter().filter(|(statement, _)| reads_tensor(&statement.value, tensor)).count()
    });
    let pointwise = stages
        .iter()
        .filter(|stage| stage.name.tensor == placement.tensor)
        .all(|stage| stage.repeated_loops(true).is_empty());
    let choice = match () {
        () if uses == 1 && pointwise && placement.allows(ProducerLocation::Inline) => {
            ProducerLocation::Inline
        }
        () if inside_consumers => ProducerLocation::Once,
        () => ProducerLocation::Root,
    };
    placement.set(choice, point);
}
