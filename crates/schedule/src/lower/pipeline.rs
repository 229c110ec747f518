//! `pipeline C.ko stages 3`: copies operands into shared memory while the threads compute with
//! earlier ones.
//!
//! A loop that copies operands and then computes with them becomes one that computes with operands
//! copied some iterations ago. Each buffer gets one slot for each stage, and the iterations use the
//! slots in turn:
//!
//! ```text
//! for ko in 64                          copy 0, commit, copy 1, commit
//!   As = A[.. ko ..]                    for ko in 64
//!   compute with As               →       wait 1, barrier
//!                                         if ko + 2 < 64: As[(ko + 2) % 3] = A[.. ko + 2 ..]
//!                                         commit
//!                                         compute with As[ko % 3]
//! ```
//!
//! One barrier in each iteration is enough. It comes after the wait for the operands of this
//! iteration, and after the last use of the slot that is written next.

use tilewright_ir::nest::{
    Access, Allocate, Atom, Buffer, BufferId, Expr, ExprKind, For, If, IndexExpr, LoopKind, LoopVarId, Scope,
    Stmt, Store, Sync,
};
use tilewright_ir::walk::{edit_accesses, map_indices, visit_mut};
use tilewright_ir::{DType, LoopNest, Number};

/// Pipelines the marked loops, each given with its number of stages.
pub(super) fn pipeline(nest: &mut LoopNest, loops: &[(LoopVarId, i64)]) {
    let LoopNest { body, buffers, .. } = nest;
    for (var, stages) in loops {
        pipeline_in(body, *var, *stages, buffers);
    }
}

fn pipeline_in(stmts: &mut [Stmt], var: LoopVarId, stages: i64, buffers: &mut [Buffer]) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) if own.var == var => {
                if let Some(staged) = pipelined_loop(own, stages, buffers) {
                    *stmt = staged;
                }
            }
            other => other.bodies_mut().for_each(|body| pipeline_in(body, var, stages, buffers)),
        }
    }
}

/// The pipelined form of a loop; none if the loop does not begin with copies to shared memory.
fn pipelined_loop(own: &For, stages: i64, buffers: &mut [Buffer]) -> Option<Stmt> {
    let mut staged_buffers = Vec::new();
    let mut body = own.body.as_slice();
    while let [Stmt::Allocate(room)] = body {
        staged_buffers.push(room.buffer);
        body = &room.body;
    }
    staged_buffers.retain(|room| buffers[room.index()].scope == Scope::Shared);
    let copies = body.iter().take_while(|stmt| is_copy(stmt, &staged_buffers)).count();
    if copies == 0 || own.kind != LoopKind::Serial {
        return None;
    }
    for buffer in &staged_buffers {
        buffers[buffer.index()].shape.insert(0, stages);
    }
    let (copies, rest) = body.split_at(copies);
    let stage = PipelinedLoop { var: own.var, stages, staged_buffers: &staged_buffers, buffers };
    let ahead = stages - 1;
    let mut out = Vec::new();
    for first in 0..ahead {
        let fits = own.extent.offset(-first - 1);
        out.extend(if_nonnegative(fits, stage.copy(copies, &IndexExpr::constant(first))));
        out.push(Stmt::Sync(Sync::Commit));
    }
    let mut inside = vec![Stmt::Sync(Sync::Wait(ahead as u32 - 1)), Stmt::Sync(Sync::Barrier)];
    let next = IndexExpr::var(own.var).offset(ahead);
    inside.extend(if_nonnegative(own.extent.sub(&next).offset(-1), stage.copy(copies, &next)));
    inside.push(Stmt::Sync(Sync::Commit));
    inside.extend(stage.compute(rest));
    out.push(Stmt::For(For { body: inside, ..own.clone() }));
    for buffer in allocated(&own.body).into_iter().rev() {
        out = vec![Stmt::Allocate(Allocate { buffer, body: out })];
    }
    Some(match out.pop() {
        Some(only) if out.is_empty() => only,
        last => Stmt::If(If {
            conditions: Vec::new(),
            then: out.into_iter().chain(last).collect(),
            otherwise: Vec::new(),
        }),
    })
}

/// The buffers that are allocated around the whole body.
fn allocated(mut body: &[Stmt]) -> Vec<BufferId> {
    let mut found = Vec::new();
    while let [Stmt::Allocate(room)] = body {
        found.push(room.buffer);
        body = &room.body;
    }
    found
}

fn if_nonnegative(condition: IndexExpr, then: Vec<Stmt>) -> Vec<Stmt> {
    match condition.as_constant() {
        Some(0..) => then,
        Some(_) => Vec::new(),
        None => vec![Stmt::If(If { conditions: vec![condition], then, otherwise: Vec::new() })],
    }
}

/// Returns true when a statement writes only to these buffers and does not read them.
fn is_copy(stmt: &Stmt, staged_buffers: &[BufferId]) -> bool {
    match stmt {
        Stmt::For(own) => own.body.iter().all(|stmt| is_copy(stmt, staged_buffers)),
        Stmt::If(own) => own.then.iter().chain(&own.otherwise).all(|stmt| is_copy(stmt, staged_buffers)),
        Stmt::Store(own) => {
            let mut reads = false;
            stmt.visit_own_reads(&mut |access| reads |= staged_buffers.contains(&access.tensor));
            staged_buffers.contains(&own.target.tensor) && !reads
        }
        _ => false,
    }
}

struct PipelinedLoop<'a> {
    var: LoopVarId,
    stages: i64,
    staged_buffers: &'a [BufferId],
    buffers: &'a [Buffer],
}

impl PipelinedLoop<'_> {
    /// The copies for an iteration, into its slot.
    fn copy(&self, copies: &[Stmt], iteration: &IndexExpr) -> Vec<Stmt> {
        let mut copies = copies.to_vec();
        map_indices(&mut copies, &mut |index| {
            index.substitute(&mut |atom| (*atom == Atom::Var(self.var)).then(|| iteration.clone()))
        });
        self.redirect(&mut copies, &self.slot(iteration));
        mark_asynchronous(&mut copies, self.buffers);
        copies
    }

    /// The computation of the current iteration, with its slot.
    fn compute(&self, stmts: &[Stmt]) -> Vec<Stmt> {
        let mut stmts = stmts.to_vec();
        self.redirect(&mut stmts, &self.slot(&IndexExpr::var(self.var)));
        stmts
    }

    fn slot(&self, iteration: &IndexExpr) -> IndexExpr {
        iteration.modulo(&IndexExpr::constant(self.stages))
    }

    fn redirect(&self, stmts: &mut [Stmt], place: &IndexExpr) {
        edit_accesses(stmts, &mut |access: &mut Access| {
            if self.staged_buffers.contains(&access.tensor) {
                access.indices.insert(0, place.clone());
            }
        });
    }
}

/// Marks copies from memory as asynchronous: copies of an element, or of 0 where there is none.
fn mark_asynchronous(stmts: &mut [Stmt], buffers: &[Buffer]) {
    visit_mut(stmts, &mut |stmt| {
        if let Stmt::Store(own) = stmt {
            own.is_asynchronous = can_be_asynchronous(own, buffers);
        }
    });
}

fn can_be_asynchronous(store: &Store, buffers: &[Buffer]) -> bool {
    let dtype = buffers[store.target.tensor.index()].dtype;
    let from_memory = |value: &Expr| match &value.kind {
        ExprKind::Load(access) => {
            let source = &buffers[access.tensor.index()];
            source.dtype == dtype
                && matches!(source.scope, Scope::Argument(_) | Scope::Constant | Scope::Scratch)
        }
        _ => false,
    };
    let is_zero = |value: &Expr| match value.kind {
        ExprKind::Literal(Number::Float(zero)) => zero.to_bits() == 0,
        ExprKind::Literal(Number::Int(zero)) => zero == 0,
        _ => false,
    };
    let copies = match &store.value.kind {
        ExprKind::Select(parts) => from_memory(&parts[1]) && is_zero(&parts[2]),
        _ => from_memory(&store.value),
    };
    let sized = matches!(
        dtype,
        DType::Float32 | DType::Int32 | DType::UInt32 | DType::Float64 | DType::Int64 | DType::UInt64
    );
    store.reduce.is_none() && sized && copies
}
