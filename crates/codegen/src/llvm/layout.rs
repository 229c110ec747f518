//! Assigns offsets to scratch buffers.
//!
//! Memory is assigned as on a stack: a buffer comes after the buffers of the enclosing
//! [`Allocate`]s, so buffers of disjoint [`Allocate`]s share memory. A parallel loop starts a new
//! stack, and every thread has its own copy of this stack.
//!
//! [`Allocate`]: tilewright_ir::nest::Allocate

use std::collections::BTreeMap;

use tilewright_ir::nest::{LoopKind, Scope, Stmt};
use tilewright_ir::{LoopNest, TensorId, VarId};

use super::loops::is_written_out;

/// The alignment of scratch buffers, and of the stacks, in bytes.
pub(super) const ALIGNMENT: i64 = 64;

/// The offsets of all scratch buffers.
#[derive(Default)]
pub(super) struct Layout {
    offsets: BTreeMap<TensorId, i64>,
    per_thread: BTreeMap<VarId, i64>,
    /// The size in bytes of the stack outside parallel loops.
    pub(super) bytes: i64,
}

impl Layout {
    pub(super) fn new(nest: &LoopNest) -> Layout {
        let mut layout = Layout::default();
        let setup = layout.place(nest, &nest.setup, 0);
        let body = layout.place(nest, &nest.body, 0);
        layout.bytes = setup.max(body);
        layout
    }

    /// The offset of a buffer in bytes from the start of its stack.
    pub(super) fn offset(&self, buffer: TensorId) -> i64 {
        self.offsets[&buffer]
    }

    /// The number of bytes that each thread of the parallel loop with this variable needs.
    pub(super) fn per_thread(&self, parallel: VarId) -> i64 {
        self.per_thread.get(&parallel).copied().unwrap_or(0)
    }

    /// Places the buffers of statements above `top`, and returns the highest end of the stack.
    fn place(&mut self, nest: &LoopNest, stmts: &[Stmt], top: i64) -> i64 {
        stmts.iter().map(|stmt| self.place_one(nest, stmt, top)).max().unwrap_or(top)
    }

    fn place_one(&mut self, nest: &LoopNest, stmt: &Stmt, top: i64) -> i64 {
        match stmt {
            Stmt::For(inner) if inner.kind == LoopKind::Parallel && !is_written_out(inner) => {
                let bytes = self.place(nest, &inner.body, 0);
                self.per_thread.insert(inner.var, bytes);
                top
            }
            Stmt::Allocate(room) if nest.buffer(room.buffer).scope == Scope::Scratch => {
                self.offsets.insert(room.buffer, top);
                let units = (nest.buffer(room.buffer).bytes() + ALIGNMENT - 1) / ALIGNMENT;
                self.place(nest, &room.body, top + units * ALIGNMENT)
            }
            other => other.bodies().map(|body| self.place(nest, body, top)).max().unwrap_or(top),
        }
    }
}
