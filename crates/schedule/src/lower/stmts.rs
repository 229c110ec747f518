//! Operations on statements that several lowering passes share: copying statements with buffers of
//! their own, dropping unused buffers, counting stores as a measure of code size, and wrapping a
//! choice between versions around the statements that it concerns.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Access, Buffer, BufferId, LoopKind, Scope, Stmt};
use tilewright_ir::{LoopNest, walk};

/// Copies statements and replaces every buffer that is allocated inside by a new one, so that each
/// version of a tile has its own registers.
pub(crate) fn duplicate(stmts: &[Stmt], buffers: &mut Vec<Buffer>) -> Vec<Stmt> {
    let mut copy = stmts.to_vec();
    let mut renamed = BTreeMap::new();
    // The walk meets an allocation before the statements that use its buffer.
    walk::visit_mut(&mut copy, &mut |stmt| {
        if let Stmt::Allocate(own) = stmt {
            buffers.push(buffers[own.buffer.index()].clone());
            let new = BufferId(buffers.len() as u32 - 1);
            renamed.insert(own.buffer, new);
            own.buffer = new;
        }
        if !renamed.is_empty() {
            rename_accesses(stmt, &renamed);
        }
    });
    copy
}

fn rename_accesses(stmt: &mut Stmt, renamed: &BTreeMap<BufferId, BufferId>) {
    stmt.edit_own_accesses(&mut |access: &mut Access| {
        access.tensor = renamed.get(&access.tensor).copied().unwrap_or(access.tensor);
    });
}

/// Drops the buffers that are no longer allocated, and renumbers the others.
pub(crate) fn drop_unused_buffers(nest: &mut LoopNest) {
    let mut allocated = BTreeSet::new();
    for stmts in [&nest.setup, &nest.body] {
        walk::visit(stmts, &mut |stmt| {
            if let Stmt::Allocate(own) = stmt {
                allocated.insert(own.buffer);
            }
        });
    }
    let mut renamed = BTreeMap::new();
    let mut kept = Vec::new();
    for (at, buffer) in nest.buffers.drain(..).enumerate() {
        let old = BufferId(at as u32);
        let lives = matches!(buffer.scope, Scope::Argument(_) | Scope::Constant) || allocated.contains(&old);
        if lives {
            renamed.insert(old, BufferId(kept.len() as u32));
            kept.push(buffer);
        }
    }
    nest.buffers = kept;
    for stmts in [&mut nest.setup, &mut nest.body] {
        walk::visit_mut(stmts, &mut |stmt| {
            if let Stmt::Allocate(own) = stmt {
                own.buffer = *renamed.get(&own.buffer).expect("an allocated buffer is kept");
            }
            rename_accesses(stmt, &renamed);
        });
    }
}

/// The number of stores once unrolled loops are written out. It is the measure of code size.
pub(crate) fn count_stores(stmts: &[Stmt]) -> usize {
    stmts.iter().map(count_stores_of).fold(0, usize::saturating_add)
}

fn count_stores_of(stmt: &Stmt) -> usize {
    if stmt.is_leaf() {
        return 1;
    }
    let inside = stmt.bodies().map(count_stores).fold(0, usize::saturating_add);
    match stmt {
        Stmt::For(own) if own.kind == LoopKind::Unrolled => {
            let times = own.extent.as_constant().map_or(1, |extent| extent.max(1) as usize);
            inside.saturating_mul(times)
        }
        _ => inside,
    }
}

/// Wraps a choice around the statements that it concerns. Where these are a small part of one loop
/// or allocation, the choice goes further in, so that the other statements are not duplicated.
pub(crate) fn insert_choice(
    mut stmts: Vec<Stmt>,
    concerns: &dyn Fn(&Stmt) -> bool,
    choice: &mut dyn FnMut(Vec<Stmt>) -> Stmt,
) -> Vec<Stmt> {
    let Some(first) = stmts.iter().position(concerns) else { return stmts };
    let last = stmts.iter().rposition(concerns).unwrap_or(first);
    if first == last && is_minor_part(&stmts[first], concerns) {
        for body in stmts[first].bodies_mut() {
            *body = insert_choice(std::mem::take(body), concerns, choice);
        }
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
            _ => count_stores_of(stmt),
        };
        body.iter().map(part).sum()
    }
    2 * concerned(body, concerns) <= count_stores(body)
}
