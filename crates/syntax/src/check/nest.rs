//! The tree of statements inside their ordered loops.
//!
//! The model keeps statements in a flat list, each with the loops around it; this module builds the
//! tree from that list.

use super::model::{LoopId, Model};

/// A statement by its position in the model, or a loop around statements.
pub(super) enum Nest {
    Statement(usize),
    For(LoopId, Vec<Nest>),
}

/// The tree of all lowered statements and their loops.
pub(super) fn nest(model: &Model) -> Vec<Nest> {
    let lowered: Vec<usize> =
        (0..model.statements.len()).filter(|at| model.statements[*at].lowered.is_some()).collect();
    nest_at(model, &lowered, 0)
}

fn nest_at(model: &Model, statements: &[usize], depth: usize) -> Vec<Nest> {
    let loop_of = |at: usize| model.statements[at].loops.get(depth).copied();
    let mut nodes = Vec::new();
    for run in
        statements.chunk_by(|left, right| loop_of(*left).is_some() && loop_of(*left) == loop_of(*right))
    {
        match loop_of(run[0]) {
            Some(id) => nodes.push(Nest::For(id, nest_at(model, run, depth + 1))),
            None => nodes.extend(run.iter().map(|at| Nest::Statement(*at))),
        }
    }
    nodes
}
