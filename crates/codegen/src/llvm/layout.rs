//! Assigns offsets to scratch buffers.
//!
//! Memory is assigned as on a stack: a buffer comes after the buffers of the enclosing
//! [`Allocate`]s, so buffers of disjoint [`Allocate`]s share memory. Of the buffers of directly
//! nested [`Allocate`]s, those whose lifetimes are disjoint share memory too
//! ([`memory_plan`](crate::memory_plan)). A parallel loop starts a new stack, and every thread has
//! its own copy of this stack.
//!
//! [`Allocate`]: tilewright_ir::nest::Allocate

use std::collections::BTreeMap;

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Allocate, BufferId, LoopKind, LoopVarId, Scope, Stmt};

use super::loops::is_unrolled;
use crate::memory_plan;

/// The alignment of scratch buffers, and of the stacks, in bytes.
pub(super) const ALIGNMENT: i64 = 64;

/// The offsets of all scratch buffers.
#[derive(Default)]
pub(super) struct Layout {
    offsets: BTreeMap<BufferId, i64>,
    thread_bytes: BTreeMap<LoopVarId, i64>,
    /// The size in bytes of the stack outside parallel loops.
    pub(super) bytes: i64,
}

impl Layout {
    pub(super) fn new(nest: &LoopNest) -> Layout {
        let mut layout = Layout::default();
        let setup = layout.assign_offsets(nest, &nest.setup, 0);
        let body = layout.assign_offsets(nest, &nest.body, 0);
        layout.bytes = setup.max(body);
        layout
    }

    /// The offset of a buffer in bytes from the start of its stack.
    pub(super) fn offset(&self, buffer: BufferId) -> i64 {
        self.offsets[&buffer]
    }

    /// The number of bytes that each thread of the parallel loop with this variable needs.
    pub(super) fn thread_bytes(&self, parallel: LoopVarId) -> i64 {
        self.thread_bytes.get(&parallel).copied().unwrap_or(0)
    }

    /// The most bytes that a thread needs for any parallel loop.
    pub(super) fn most_thread_bytes(&self) -> i64 {
        self.thread_bytes.values().copied().max().unwrap_or(0)
    }

    /// Places the buffers of statements above `top`, and returns the highest end of the stack.
    fn assign_offsets(&mut self, nest: &LoopNest, stmts: &[Stmt], top: i64) -> i64 {
        stmts.iter().map(|stmt| self.assign_stmt_offsets(nest, stmt, top)).max().unwrap_or(top)
    }

    fn assign_stmt_offsets(&mut self, nest: &LoopNest, stmt: &Stmt, top: i64) -> i64 {
        match stmt {
            Stmt::For(inner) if inner.kind == LoopKind::Parallel && !is_unrolled(inner) => {
                let bytes = self.assign_offsets(nest, &inner.body, 0);
                self.thread_bytes.insert(inner.var, bytes);
                top
            }
            Stmt::Allocate(allocation) => self.assign_nested_allocations(nest, allocation, top),
            other => other.bodies().map(|body| self.assign_offsets(nest, body, top)).max().unwrap_or(top),
        }
    }

    /// Places the buffers of directly nested allocations above `top`.
    fn assign_nested_allocations(&mut self, nest: &LoopNest, outermost: &Allocate, top: i64) -> i64 {
        let nested = std::iter::successors(Some(outermost), |own| match own.body.as_slice() {
            [Stmt::Allocate(next)] => Some(next),
            _ => None,
        });
        let buffers = nested.map(|own| (own.buffer, nest.buffer(own.buffer)));
        let scratch = buffers.filter(|(_, buffer)| buffer.scope == Scope::Scratch);
        let sizes: Vec<(BufferId, i64)> = scratch.map(|(id, buffer)| (id, buffer.bytes())).collect();
        let body = memory_plan::allocated_body(&outermost.body);
        let mut end = top;
        for block in memory_plan::plan(&sizes, body) {
            block.buffers.iter().for_each(|buffer| _ = self.offsets.insert(*buffer, end));
            end += (block.bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        }
        self.assign_offsets(nest, body, end)
    }
}
