//! Replaces loads by other expressions, including loads inside data-dependent subscripts.

use std::sync::Arc;

use tilewright_ir::nest::{Access, Atom, Data, Expr, ExprKind, IndexExpr};

use super::Statement;

/// Returns the replacement of a load, if it has one.
pub(crate) type Replace<'a> = dyn FnMut(&Access) -> Option<Expr> + 'a;

impl Statement {
    /// Replaces loads in the value and in all subscripts.
    pub fn replace_loads(&mut self, replace: &mut Replace) {
        replace_loads(&mut self.value, replace);
        for index in &mut self.target.indices {
            *index = replace_loads_in_index(index, replace);
        }
    }
}

/// Replaces loads in a value.
pub(crate) fn replace_loads(expr: &mut Expr, replace: &mut Replace) {
    match &mut expr.kind {
        ExprKind::Load(access) => {
            for index in &mut access.indices {
                *index = replace_loads_in_index(index, replace);
            }
            if let Some(new) = replace(access) {
                *expr = new;
            }
        }
        ExprKind::Index(index) => **index = replace_loads_in_index(index, replace),
        _ => expr.operands_mut().iter_mut().for_each(|operand| replace_loads(operand, replace)),
    }
}

/// Replaces the parts of a value that have a replacement, the outermost ones first.
pub(crate) fn replace_exprs(expr: &mut Expr, replace: &mut dyn FnMut(&Expr) -> Option<Expr>) {
    match replace(expr) {
        Some(new) => *expr = new,
        None => expr.operands_mut().iter_mut().for_each(|operand| replace_exprs(operand, replace)),
    }
}

/// Replaces loads in the data that a subscript depends on.
pub(crate) fn replace_loads_in_index(index: &IndexExpr, replace: &mut Replace) -> IndexExpr {
    if !index.has_data() {
        return index.clone();
    }
    index.substitute(&mut |atom| match atom {
        Atom::Data(data) => {
            let mut value = data.value.clone();
            replace_own_loads(&mut value, replace);
            let declared = data.declared.clone();
            Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared }))))
        }
        _ => None,
    })
}

/// Replaces the loads of a value, but none inside their subscripts: `substitute` has already
/// replaced those.
fn replace_own_loads(expr: &mut Expr, replace: &mut Replace) {
    match &expr.kind {
        ExprKind::Load(access) => {
            if let Some(new) = replace(access) {
                *expr = new;
            }
        }
        _ => expr.operands_mut().iter_mut().for_each(|operand| replace_own_loads(operand, replace)),
    }
}
