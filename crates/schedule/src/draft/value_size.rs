//! The size of values, with everything that their subscripts compute. Where data is indexed by
//! data, a value that replaces a load is copied wherever the subscript is used, so sizes can
//! explode.

use tilewright_ir::nest::{Access, Atom, BufferId, Expr, IndexExpr, LoopVarId};

/// The number of nodes of a value and of its subscripts.
pub(crate) fn count_nodes(expr: &Expr) -> usize {
    let mut nodes = operations(expr);
    expr.visit_indices(&mut |index| nodes = nodes.saturating_add(nodes_of_index(index)));
    nodes
}

/// About the number of nodes of `reader` once the loads of a tensor are replaced by a value of
/// these variables, one for each dimension. No copy is made to find out.
pub(crate) fn nodes_with_loads_replaced(
    reader: &Expr,
    tensor: BufferId,
    value: &Expr,
    vars: &[LoopVarId],
) -> usize {
    let own = count_nodes(value);
    let uses: Vec<usize> = vars.iter().map(|var| mentions(value, *var)).collect();
    let mut nodes = count_nodes(reader);
    reader.visit_reads(&mut |read: &Access| {
        if read.tensor == tensor {
            let subscripts = read.indices.iter().zip(&uses);
            let copied = subscripts.map(|(index, uses)| nodes_of_index(index).saturating_mul(*uses));
            nodes = copied.fold(nodes.saturating_add(own), usize::saturating_add);
        }
    });
    nodes
}

/// The operations and operands of a value, without its subscripts.
fn operations(expr: &Expr) -> usize {
    1 + expr.operands().iter().map(operations).sum::<usize>()
}

fn nodes_of_index(index: &IndexExpr) -> usize {
    let mut nodes = 1usize;
    index.visit_atoms(&mut |atom| {
        let own = match atom {
            Atom::Data(data) => operations(&data.value),
            _ => 1,
        };
        nodes = nodes.saturating_add(own);
    });
    nodes
}

/// How often a variable occurs in the subscripts of a value.
fn mentions(value: &Expr, var: LoopVarId) -> usize {
    let mut count = 0;
    value.visit_indices(&mut |index| {
        index.visit_atoms(&mut |atom| count += usize::from(*atom == Atom::Var(var)));
    });
    count
}
