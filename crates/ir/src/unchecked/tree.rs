//! Builds the tree of statements and ordered loops from the flat list of statements in an
//! [`UncheckedProgram`], where each statement has the list of the loops around it.

use super::UncheckedProgram;
use crate::program::VarId;

/// A statement by its position in the unchecked program, or a loop around statements.
pub(crate) enum Tree {
    Statement(usize),
    For(VarId, Vec<Tree>),
}

/// The tree of the statements at these positions, and of their loops.
pub(crate) fn build_tree(unchecked: &UncheckedProgram, statements: &[usize]) -> Vec<Tree> {
    build_tree_at(unchecked, statements, 0)
}

fn build_tree_at(unchecked: &UncheckedProgram, statements: &[usize], depth: usize) -> Vec<Tree> {
    let loop_of = |at: usize| unchecked.statements[at].loops.get(depth).copied();
    let mut nodes = Vec::new();
    for run in
        statements.chunk_by(|left, right| loop_of(*left).is_some() && loop_of(*left) == loop_of(*right))
    {
        match loop_of(run[0]) {
            Some(var) => nodes.push(Tree::For(var, build_tree_at(unchecked, run, depth + 1))),
            None => nodes.extend(run.iter().map(|at| Tree::Statement(*at))),
        }
    }
    nodes
}
