//! Collects the buffers, accesses and nested statements of statements.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Combine, For, LoopKind, Stmt};
use tilewright_ir::{Access, Atom, Expr, ExprKind, IndexExpr, TensorId};

/// The maximum number of lanes of one vector. A longer vector loop runs serially.
const MOST_LANES: i64 = 64;

/// The lane count of a loop that is emitted as vectors; `None` for any other loop.
pub(super) fn vector_lanes(inner: &For) -> Option<u32> {
    match (inner.kind, inner.extent.as_constant()) {
        (LoopKind::Vector, Some(extent @ 2..=MOST_LANES)) => Some(extent as u32),
        _ => None,
    }
}

/// Whether the loop is unrolled, so that its variable is a constant in every copy of the body.
pub(super) fn is_written_out(inner: &For) -> bool {
    let extent = inner.extent.as_constant();
    matches!((inner.kind, extent), (LoopKind::Unrolled, Some(_)) | (_, Some(..=1)))
}

/// Calls `visit` on every access of an expression, including accesses inside subscripts.
pub(super) fn accesses<'a>(expr: &'a Expr, visit: &mut dyn FnMut(&Access)) {
    match &expr.kind {
        ExprKind::Load(access) => {
            visit(access);
            access.indices.iter().for_each(|index| index_accesses(index, visit));
        }
        ExprKind::Index(index) => index_accesses(index, visit),
        _ => expr.operands().iter().for_each(|operand| accesses(operand, visit)),
    }
}

/// Calls `visit` on every access that a subscript's value depends on.
pub(super) fn index_accesses(index: &IndexExpr, visit: &mut dyn FnMut(&Access)) {
    // `IndexExpr::visit` itself visits the atoms inside the data, so this only needs to find the
    // loads.
    index.visit(&mut |atom| {
        if let Atom::Data(data) = atom {
            loads(&data.value, visit);
        }
    });
}

fn loads(expr: &Expr, visit: &mut dyn FnMut(&Access)) {
    match &expr.kind {
        ExprKind::Load(access) => visit(access),
        _ => expr.operands().iter().for_each(|operand| loads(operand, visit)),
    }
}

/// Calls `visit` on every access of a statement, except those of nested statements.
pub(super) fn own_accesses(stmt: &Stmt, visit: &mut dyn FnMut(&Access)) {
    match stmt {
        Stmt::For(inner) => index_accesses(&inner.extent, visit),
        Stmt::If(choice) => choice.conditions.iter().for_each(|index| index_accesses(index, visit)),
        Stmt::Allocate(_) => {}
        Stmt::Store(store) | Stmt::Combine(Combine { store, .. }) => {
            visit(&store.target);
            store.target.indices.iter().for_each(|index| index_accesses(index, visit));
            accesses(&store.value, visit);
        }
        Stmt::Prefetch(ahead) => visit(&ahead.element),
        Stmt::Sync(_) => {}
    }
}

/// The statements inside a statement.
pub(super) fn bodies(stmt: &Stmt) -> [&[Stmt]; 2] {
    match stmt {
        Stmt::For(inner) => [&inner.body, &[]],
        Stmt::If(choice) => [&choice.then, &choice.otherwise],
        Stmt::Allocate(room) => [&room.body, &[]],
        Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => [&[], &[]],
    }
}

/// Returns every buffer that the statements load from or store to.
pub(super) fn buffers_used(stmts: &[Stmt]) -> BTreeSet<TensorId> {
    fn collect(stmts: &[Stmt], used: &mut BTreeSet<TensorId>) {
        for stmt in stmts {
            own_accesses(stmt, &mut |access| {
                used.insert(access.tensor);
            });
            bodies(stmt).iter().for_each(|body| collect(body, used));
        }
    }
    let mut used = BTreeSet::new();
    collect(stmts, &mut used);
    used
}
