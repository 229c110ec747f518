//! A first point: what static analysis would choose.

use tilewright_ir::Program;
use tilewright_schedule::analysis::Stride;
use tilewright_target::Cpu;

use super::tile::Tile;
use crate::knob::{Domain, Knobs, Point, Value};
use crate::space::placement::{Choice, Placement};
use crate::space::stage::{Operand, Stage, reads};

/// Vectors of a register tile.
const TILE_VECTORS: i64 = 24;
/// Vectors side by side in it.
const TILE_WIDTH: i64 = 2;

/// Sets the knobs of a statement: a vector, along the loop at this place of `vector_loops` or the best, a register tile,
/// and threads.
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
    let row = row(tile, stage, along);
    let loops = tile.spatial.iter().chain(&tile.reduced);
    for (at, knob) in loops.zip(&tile.cuts) {
        let trips = stage.loops[*at].trips;
        let width = if along == Some(*at) {
            vector_width(stage, trips, lanes, *at)
        } else if row == Some(*at) {
            rows(target, along, stage)
        } else {
            1
        };
        let step = if along == Some(*at) && width >= lanes { lanes } else { 1 };
        if let Some(value) = cut(&all[knob.0].domain, trips, width, step, stage.loops[*at].reduced) {
            point.0[knob.0] = value;
        }
    }
    if tile.check_lanes(stage, target, point).is_err() {
        point.set_choice(tile.vector.0, tile.vector_loops.len());
    }
}

/// How many rows a tile has: as many as leave registers for operands.
fn rows(target: &Cpu, vector: Option<usize>, stage: &Stage) -> i64 {
    let available = (target.vectors.registers() as i64 * 3 / 4).min(TILE_VECTORS);
    let wide = if vector.is_some_and(|at| stage.loops[at].reduced) { 4 } else { TILE_WIDTH };
    available / wide
}

/// How many iterations of the vector's loop a tile has.
fn vector_width(stage: &Stage, trips: i64, lanes: i64, at: usize) -> i64 {
    let registers = if stage.loops[at].reduced || stage.busy(true).is_empty() { 4 } else { TILE_WIDTH };
    if trips >= registers * lanes { registers * lanes } else { lanes.min(trips) }
}

/// A tile of this width, or less by some steps, and the rest in one piece: of a result outside, of a reduction inside.
fn cut(domain: &Domain, trips: i64, width: i64, step: i64, reduced: bool) -> Option<Value> {
    let widths = (0..).map(|steps| width.min(trips) - steps * step).take_while(|width| *width >= 1);
    let values = widths.map(|width| {
        let rest = (trips + width - 1) / width;
        Value::Factors(if reduced { vec![1, rest, width] } else { vec![rest, 1, width] })
    });
    values.into_iter().find(|value| domain.contains(value))
}

/// The loop along which most accesses are side by side.
fn best_vector(tile: &Tile, stage: &Stage) -> Option<(usize, usize)> {
    let score = |at: usize| -> i64 {
        let operands: i64 = stage
            .operands
            .iter()
            .map(|operand| match operand.strides[at] {
                Stride::Elements(1) => 2,
                Stride::Elements(0) => 1,
                _ if operand.constant => 1,
                _ => -6,
            })
            .sum();
        let result = match stage.result[at] {
            Stride::Elements(1) => 3,
            _ if stage.loops[at].reduced => -2,
            _ => -1,
        };
        operands + result
    };
    let places = tile.vector_loops.iter().enumerate();
    places.map(|(place, at)| (place, *at)).max_by_key(|(_, at)| score(*at))
}

/// The result loop whose iterations share most of what is read: of a tile of so many rows and vectors, an operand that
/// moves with both is the dearest.
fn row(tile: &Tile, stage: &Stage, vector: Option<usize>) -> Option<usize> {
    if stage.busy(true).is_empty() {
        return None;
    }
    let others = tile.spatial.iter().copied().filter(|at| Some(*at) != vector);
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
    for (count, at) in tile.spatial.iter().enumerate() {
        if iterations >= 2 * target.cores as i64 {
            return count;
        }
        iterations *= stage.loops[*at].trips;
    }
    tile.spatial.len()
}

/// Cheap stages are repeated, others are computed before their consumer, or in its loops.
pub(super) fn place(
    placement: &Placement,
    program: &Program,
    stages: &[Stage],
    near: bool,
    point: &mut Point,
) {
    let uses = program.find_tensor(&placement.tensor).map_or(0, |tensor| {
        let statements = program.statements();
        statements.iter().filter(|(statement, _)| reads(&statement.value, tensor)).count()
    });
    let pointwise = stages
        .iter()
        .filter(|stage| stage.name.tensor == placement.tensor)
        .all(|stage| stage.busy(true).is_empty());
    let choice = match () {
        () if uses == 1 && pointwise && placement.allows(Choice::Inline) => Choice::Inline,
        () if near => Choice::Once,
        () => Choice::Root,
    };
    placement.set(choice, point);
}
