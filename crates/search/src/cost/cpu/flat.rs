//! Flattens buffers to one dimension where this simplifies their subscripts.
//!
//! Fused loops have quotients and remainders in their subscripts. Where these cancel in the linear
//! offset of an element, the model uses the offset, which moves as in a plain loop.

use std::borrow::Cow;

use tilewright_ir::nest::{Buffer, Combine, Stmt};
use tilewright_ir::{Access, Atom, Expr, ExprKind, IndexExpr, LoopNest, TensorId};

/// Returns the nest with such buffers flattened to one dimension.
pub(super) fn flattened(nest: &LoopNest) -> Cow<'_, LoopNest> {
    let mut gains = vec![Gain::Unknown; nest.buffers.len()];
    for stmt in &nest.body {
        visit(stmt, &mut |access| {
            let own = Gain::of(access, nest.buffer(access.tensor));
            let gain = &mut gains[access.tensor.index()];
            *gain = (*gain).and(own);
        });
    }
    if !gains.contains(&Gain::Yes) {
        return Cow::Borrowed(nest);
    }
    let mut flat = nest.clone();
    let wanted = |tensor: TensorId| gains[tensor.index()] == Gain::Yes;
    flat.body.iter_mut().for_each(|stmt| {
        flatten(stmt, &|access| wanted(access.tensor).then(|| place(access, nest.buffer(access.tensor))))
    });
    for (buffer, _) in flat.buffers.iter_mut().zip(&gains).filter(|(_, gain)| **gain == Gain::Yes) {
        buffer.shape = vec![buffer.elements()];
    }
    Cow::Owned(flat)
}

/// Whether flattening a buffer simplifies its subscripts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gain {
    Unknown,
    Yes,
    No,
}

impl Gain {
    fn of(access: &Access, buffer: &Buffer) -> Gain {
        let before = access.indices.iter().any(is_cut);
        match (before, is_cut(&place(access, buffer))) {
            (_, true) => Gain::No,
            (true, false) => Gain::Yes,
            (false, false) => Gain::Unknown,
        }
    }

    fn and(self, other: Gain) -> Gain {
        match (self, other) {
            (Gain::No, _) | (_, Gain::No) => Gain::No,
            (Gain::Yes, _) | (_, Gain::Yes) => Gain::Yes,
            (Gain::Unknown, Gain::Unknown) => Gain::Unknown,
        }
    }
}

fn is_cut(index: &IndexExpr) -> bool {
    index.any(&mut |atom| matches!(atom, Atom::FloorDiv(_) | Atom::Mod(_) | Atom::Data(_)))
}

fn place(access: &Access, buffer: &Buffer) -> IndexExpr {
    let parts = access.indices.iter().zip(buffer.strides());
    parts.fold(IndexExpr::constant(0), |sum, (index, stride)| sum.add(&index.scale(stride))).joined()
}

fn visit(stmt: &Stmt, each: &mut dyn FnMut(&Access)) {
    match stmt {
        Stmt::For(own) => own.body.iter().for_each(|stmt| visit(stmt, each)),
        Stmt::If(own) => own.then.iter().chain(&own.otherwise).for_each(|stmt| visit(stmt, each)),
        Stmt::Allocate(own) => own.body.iter().for_each(|stmt| visit(stmt, each)),
        Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => {
            each(&own.target);
            visit_value(&own.value, each);
        }
        Stmt::Prefetch(own) => each(&own.element),
        Stmt::Sync(_) => {}
    }
}

fn visit_value(expr: &Expr, each: &mut dyn FnMut(&Access)) {
    match &expr.kind {
        ExprKind::Load(access) => each(access),
        _ => expr.operands().iter().for_each(|operand| visit_value(operand, each)),
    }
}

fn flatten(stmt: &mut Stmt, flat: &dyn Fn(&Access) -> Option<IndexExpr>) {
    let put = |access: &mut Access| {
        if let Some(place) = flat(access) {
            access.indices = vec![place];
        }
    };
    match stmt {
        Stmt::For(own) => own.body.iter_mut().for_each(|stmt| flatten(stmt, flat)),
        Stmt::If(own) => own.then.iter_mut().chain(&mut own.otherwise).for_each(|stmt| flatten(stmt, flat)),
        Stmt::Allocate(own) => own.body.iter_mut().for_each(|stmt| flatten(stmt, flat)),
        Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => {
            put(&mut own.target);
            flatten_value(&mut own.value, &put);
        }
        Stmt::Prefetch(own) => put(&mut own.element),
        Stmt::Sync(_) => {}
    }
}

fn flatten_value(expr: &mut Expr, put: &dyn Fn(&mut Access)) {
    match &mut expr.kind {
        ExprKind::Load(access) => put(access),
        _ => expr.operands_mut().iter_mut().for_each(|operand| flatten_value(operand, put)),
    }
}
