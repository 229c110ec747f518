//! Substitutes numbers for the symbols of a [`Program`], which are its sizes and integer scalars.
//! The resulting program is not checked.

use crate::index::{Atom, IndexExpr};
use crate::program::{Node, Program};

impl Program {
    /// Returns the program with a value for each of its symbols, in their order. The program need
    /// not be meaningful at these values: shapes may be negative, and accesses out of bounds.
    pub fn substitute_sizes(&self, values: &[i64]) -> Program {
        let mut program = self.clone();
        for (symbol, value) in program.symbols.iter_mut().zip(values) {
            symbol.value = Some(*value);
        }
        let mut map = |index: &IndexExpr| {
            index.substitute(&mut |atom| match atom {
                Atom::Symbol(symbol) => values.get(symbol.index()).copied().map(IndexExpr::constant),
                _ => None,
            })
        };
        for extent in program.tensors.iter_mut().flat_map(|tensor| &mut tensor.shape) {
            *extent = map(extent);
        }
        for var in &mut program.vars {
            var.range.from = map(&var.range.from);
            var.range.to = map(&var.range.to);
        }
        for stage in &mut program.stages {
            map_node_indices(&mut stage.body, &mut map);
        }
        program
    }
}

fn map_node_indices(nodes: &mut [Node], map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
    for node in nodes {
        match node {
            Node::For(inner) => map_node_indices(&mut inner.body, map),
            Node::Statement(statement) => {
                statement.indices.iter_mut().for_each(|index| *index = map(index));
                statement.value.map_indices(map);
            }
        }
    }
}
