//! Walks and rewrites the statements of a loop nest.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Buffer, Combine, LoopKind, Scope, Stmt};
use tilewright_ir::{Access, DType, Expr, ExprKind, IndexExpr, LoopNest, TensorId};

use crate::draft::rewrite::{replace_loads, replace_loads_in_index};

/// Rewrites every index expression: subscripts, index values, extents and conditions.
pub(crate) fn map_indices(stmts: &mut [Stmt], map: &mut impl FnMut(&IndexExpr) -> IndexExpr) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) => {
                own.extent = map(&own.extent);
                map_indices(&mut own.body, map);
            }
            Stmt::If(own) => {
                own.conditions.iter_mut().for_each(|condition| *condition = map(condition));
                map_indices(&mut own.then, map);
                map_indices(&mut own.otherwise, map);
            }
            Stmt::Allocate(own) => map_indices(&mut own.body, map),
            Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => {
                own.target.indices.iter_mut().for_each(|index| *index = map(index));
                own.value.map_indices(map);
                if let Some(claim) = &mut own.claim {
                    let point = claim.point.iter_mut().flatten();
                    point.chain(&mut claim.run).for_each(|index| *index = map(index));
                }
            }
            Stmt::Prefetch(own) => own.element.indices.iter_mut().for_each(|index| *index = map(index)),
            Stmt::Sync(_) => {}
        }
    }
}

/// Copies statements and replaces every buffer that is allocated inside by a new one, so that each
/// version of a tile has its own registers.
pub(crate) fn duplicate(stmts: &[Stmt], buffers: &mut Vec<Buffer>) -> Vec<Stmt> {
    let mut copy = stmts.to_vec();
    let mut renamed = BTreeMap::new();
    rename_rooms(&mut copy, buffers, &mut renamed);
    if !renamed.is_empty() {
        rename_accesses(&mut copy, buffers, &renamed);
    }
    copy
}

fn rename_rooms(stmts: &mut [Stmt], buffers: &mut Vec<Buffer>, renamed: &mut BTreeMap<TensorId, TensorId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Allocate(own) => {
                buffers.push(buffers[own.buffer.index()].clone());
                let new = TensorId(buffers.len() as u32 - 1);
                renamed.insert(own.buffer, new);
                own.buffer = new;
                rename_rooms(&mut own.body, buffers, renamed);
            }
            Stmt::For(own) => rename_rooms(&mut own.body, buffers, renamed),
            Stmt::If(own) => {
                rename_rooms(&mut own.then, buffers, renamed);
                rename_rooms(&mut own.otherwise, buffers, renamed);
            }
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {}
        }
    }
}

fn rename_accesses(stmts: &mut [Stmt], buffers: &[Buffer], renamed: &BTreeMap<TensorId, TensorId>) {
    let new = |tensor: TensorId| renamed.get(&tensor).copied();
    let mut replace = |access: &Access| {
        let tensor = new(access.tensor)?;
        let dtype = buffers[tensor.index()].dtype;
        Some(Expr { dtype, kind: ExprKind::Load(Access { tensor, ..access.clone() }) })
    };
    for stmt in stmts {
        match stmt {
            Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => {
                own.target.tensor = new(own.target.tensor).unwrap_or(own.target.tensor);
                replace_loads(&mut own.value, &mut replace);
                for index in &mut own.target.indices {
                    *index = replace_loads_in_index(index, &mut replace);
                }
            }
            Stmt::Prefetch(own) => {
                own.element.tensor = new(own.element.tensor).unwrap_or(own.element.tensor);
            }
            Stmt::Sync(_) => {}
            Stmt::For(own) => rename_accesses(&mut own.body, buffers, renamed),
            Stmt::Allocate(own) => rename_accesses(&mut own.body, buffers, renamed),
            Stmt::If(own) => {
                rename_accesses(&mut own.then, buffers, renamed);
                rename_accesses(&mut own.otherwise, buffers, renamed);
            }
        }
    }
}

/// Prepends subscripts to those of a buffer, wherever statements use it.
pub(crate) fn prepend_indices(stmts: &mut [Stmt], buffer: (TensorId, DType), indices: &[IndexExpr]) {
    let (tensor, dtype) = buffer;
    let longer = |access: &Access| Access {
        indices: indices.iter().chain(&access.indices).cloned().collect(),
        ..access.clone()
    };
    let mut replace = |access: &Access| {
        (access.tensor == tensor).then(|| Expr { dtype, kind: ExprKind::Load(longer(access)) })
    };
    for stmt in stmts {
        match stmt {
            Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => {
                replace_loads(&mut own.value, &mut replace);
                for index in &mut own.target.indices {
                    *index = replace_loads_in_index(index, &mut replace);
                }
                if own.target.tensor == tensor {
                    own.target = longer(&own.target);
                }
            }
            Stmt::For(own) => {
                own.extent = replace_loads_in_index(&own.extent, &mut replace);
                prepend_indices(&mut own.body, buffer, indices);
            }
            Stmt::Allocate(own) => prepend_indices(&mut own.body, buffer, indices),
            Stmt::If(own) => {
                for condition in &mut own.conditions {
                    *condition = replace_loads_in_index(condition, &mut replace);
                }
                prepend_indices(&mut own.then, buffer, indices);
                prepend_indices(&mut own.otherwise, buffer, indices);
            }
            Stmt::Prefetch(own) if own.element.tensor == tensor => own.element = longer(&own.element),
            Stmt::Prefetch(_) | Stmt::Sync(_) => {}
        }
    }
}

/// Drops the buffers that are no longer allocated, and renumbers the others.
pub(crate) fn drop_unused_buffers(nest: &mut LoopNest) {
    let mut allocated = BTreeSet::new();
    rooms(&nest.setup, &mut allocated);
    rooms(&nest.body, &mut allocated);
    let mut renamed = BTreeMap::new();
    let mut kept = Vec::new();
    for (at, buffer) in nest.buffers.drain(..).enumerate() {
        let old = TensorId(at as u32);
        let lives = matches!(buffer.scope, Scope::Argument(_) | Scope::Constant) || allocated.contains(&old);
        if lives {
            renamed.insert(old, TensorId(kept.len() as u32));
            kept.push(buffer);
        }
    }
    nest.buffers = kept;
    for stmts in [&mut nest.setup, &mut nest.body] {
        renumber_rooms(stmts, &renamed);
        rename_accesses(stmts, &nest.buffers, &renamed);
    }
}

fn rooms(stmts: &[Stmt], found: &mut BTreeSet<TensorId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Allocate(own) => {
                found.insert(own.buffer);
                rooms(&own.body, found);
            }
            Stmt::For(own) => rooms(&own.body, found),
            Stmt::If(own) => {
                rooms(&own.then, found);
                rooms(&own.otherwise, found);
            }
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {}
        }
    }
}

fn renumber_rooms(stmts: &mut [Stmt], renamed: &BTreeMap<TensorId, TensorId>) {
    for stmt in stmts {
        match stmt {
            Stmt::Allocate(own) => {
                own.buffer = *renamed.get(&own.buffer).expect("a buffer with room is kept");
                renumber_rooms(&mut own.body, renamed);
            }
            Stmt::For(own) => renumber_rooms(&mut own.body, renamed),
            Stmt::If(own) => {
                renumber_rooms(&mut own.then, renamed);
                renumber_rooms(&mut own.otherwise, renamed);
            }
            Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {}
        }
    }
}

/// The number of stores once unrolled loops are written out. It is the measure of code size.
pub(crate) fn stores(stmts: &[Stmt]) -> usize {
    let count = |stmt: &Stmt| match stmt {
        Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => 1,
        Stmt::For(own) => {
            let times = match (own.kind, own.extent.as_constant()) {
                (LoopKind::Unrolled, Some(extent)) => extent.max(1) as usize,
                _ => 1,
            };
            times.saturating_mul(stores(&own.body))
        }
        Stmt::Allocate(own) => stores(&own.body),
        Stmt::If(own) => stores(&own.then).saturating_add(stores(&own.otherwise)),
    };
    stmts.iter().map(count).fold(0, usize::saturating_add)
}

/// Wraps a choice around the statements that it concerns. Where these are a small part of one loop
/// or allocation, the choice goes further in, so that the other statements are not duplicated.
pub(crate) fn choose_around(
    mut stmts: Vec<Stmt>,
    concerns: &dyn Fn(&Stmt) -> bool,
    choice: &mut dyn FnMut(Vec<Stmt>) -> Stmt,
) -> Vec<Stmt> {
    let Some(first) = stmts.iter().position(concerns) else { return stmts };
    let last = stmts.iter().rposition(concerns).unwrap_or(first);
    if first == last && is_minor_part(&stmts[first], concerns) {
        let body = match &mut stmts[first] {
            Stmt::For(own) => &mut own.body,
            Stmt::Allocate(own) => &mut own.body,
            Stmt::If(_) | Stmt::Store(_) | Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {
                unreachable!("these have no part of their own")
            }
        };
        *body = choose_around(std::mem::take(body), concerns, choice);
        return stmts;
    }
    let concerned: Vec<Stmt> = stmts.drain(first..=last).collect();
    stmts.insert(first, choice(concerned));
    stmts
}

/// Returns true when at most half of the stores inside a statement are concerned.
fn is_minor_part(stmt: &Stmt, concerns: &dyn Fn(&Stmt) -> bool) -> bool {
    let body = match stmt {
        Stmt::For(own) if matches!(own.kind, LoopKind::Serial | LoopKind::Parallel) => &own.body,
        Stmt::Allocate(own) => &own.body,
        _ => return false,
    };
    fn concerned(body: &[Stmt], concerns: &dyn Fn(&Stmt) -> bool) -> usize {
        let part = |stmt: &Stmt| match stmt {
            _ if !concerns(stmt) => 0,
            Stmt::For(own) if own.kind == LoopKind::Serial => concerned(&own.body, concerns),
            Stmt::Allocate(own) => concerned(&own.body, concerns),
            _ => stores(std::slice::from_ref(stmt)),
        };
        body.iter().map(part).sum()
    }
    2 * concerned(body, concerns) <= stores(body)
}

/// Returns true when some index expression inside satisfies the predicate.
pub(crate) fn any_index(stmt: &Stmt, test: &mut dyn FnMut(&IndexExpr) -> bool) -> bool {
    match stmt {
        Stmt::For(own) => test(&own.extent) || own.body.iter().any(|stmt| any_index(stmt, test)),
        Stmt::Allocate(own) => own.body.iter().any(|stmt| any_index(stmt, test)),
        Stmt::If(own) => {
            own.conditions.iter().any(&mut *test)
                || own.then.iter().chain(&own.otherwise).any(|stmt| any_index(stmt, test))
        }
        Stmt::Store(own) | Stmt::Combine(Combine { store: own, .. }) => {
            own.target.indices.iter().any(&mut *test) || any_index_in(&own.value, test)
        }
        Stmt::Prefetch(own) => own.element.indices.iter().any(&mut *test),
        Stmt::Sync(_) => false,
    }
}

/// Returns true when some index expression of a value satisfies the predicate.
pub(crate) fn any_index_in(expr: &Expr, test: &mut dyn FnMut(&IndexExpr) -> bool) -> bool {
    match &expr.kind {
        ExprKind::Index(index) => test(index),
        ExprKind::Load(access) => access.indices.iter().any(&mut *test),
        _ => expr.operands().iter().any(|operand| any_index_in(operand, test)),
    }
}
