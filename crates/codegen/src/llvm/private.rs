//! Gives every lane of a vector loop its own copy of the buffers that are allocated inside the
//! loop.
//!
//! A buffer that is allocated inside a vector loop is a different buffer in each iteration, and the
//! iterations run at the same time. Before → after, with `v` the variable of a vector loop of 16
//! lanes:
//!
//! ```text
//! for v in 0:16 vector { allocate t(4) { t(1) = …; … = t(1) } }
//! for v in 0:16 vector { allocate t(4, 16) { t(1, v) = …; … = t(1, v) } }
//! ```

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, Expr, ExprKind, IndexExpr, LoopVarId, Stmt};

use super::loops::vector_lanes;
use crate::CodegenError;

/// Returns the nest with an additional last dimension, over the lanes, on every buffer that is
/// allocated inside a vector loop.
pub(super) fn with_private_lanes(nest: &LoopNest) -> Result<LoopNest, CodegenError> {
    let mut nest = nest.clone();
    let mut private_buffers = PrivateBuffers { lane_of: vec![None; nest.buffers.len()], extents: Vec::new() };
    let (mut setup, mut body) = (std::mem::take(&mut nest.setup), std::mem::take(&mut nest.body));
    private_buffers.stmts(&mut setup, None)?;
    private_buffers.stmts(&mut body, None)?;
    for (buffer, lanes) in private_buffers.extents {
        nest.buffers[buffer].shape.push(lanes as i64);
    }
    Ok(LoopNest { setup, body, ..nest })
}

struct PrivateBuffers {
    /// For each buffer, the variable of the vector loop that allocates it.
    lane_of: Vec<Option<LoopVarId>>,
    /// The buffers that get a lane dimension, with their lane counts.
    extents: Vec<(usize, u32)>,
}

impl PrivateBuffers {
    fn stmts(&mut self, stmts: &mut [Stmt], lane: Option<(LoopVarId, u32)>) -> Result<(), CodegenError> {
        stmts.iter_mut().try_for_each(|stmt| self.stmt(stmt, lane))
    }

    fn stmt(&mut self, stmt: &mut Stmt, lane: Option<(LoopVarId, u32)>) -> Result<(), CodegenError> {
        stmt.control_exprs().iter().try_for_each(|bound| self.reject_private_load(bound))?;
        let mut inside = lane;
        match stmt {
            Stmt::For(inner) => {
                inside = vector_lanes(inner).map(|lanes| (inner.var, lanes)).or(lane);
            }
            Stmt::Allocate(allocation) => {
                if let Some((var, lanes)) = lane {
                    self.lane_of[allocation.buffer.index()] = Some(var);
                    self.extents.push((allocation.buffer.index(), lanes));
                }
            }
            _ => {}
        }
        if let Some(element) = stmt.element_mut() {
            self.access(element)?;
        }
        if let Some(store) = stmt.store_mut() {
            self.expr(&mut store.value)?;
        }
        stmt.bodies_mut().try_for_each(|body| self.stmts(body, inside))
    }

    fn access(&self, access: &mut Access) -> Result<(), CodegenError> {
        access.indices.iter().try_for_each(|index| self.reject_private_load(index))?;
        if let Some(lane) = self.lane_of[access.tensor.index()] {
            access.indices.push(IndexExpr::var(lane));
        }
        Ok(())
    }

    fn expr(&self, expr: &mut Expr) -> Result<(), CodegenError> {
        match &mut expr.kind {
            ExprKind::Load(access) => self.access(access),
            ExprKind::Index(index) => self.reject_private_load(index),
            _ => expr.operands_mut().iter_mut().try_for_each(|operand| self.expr(operand)),
        }
    }

    /// Rejects a subscript that loads from a per-lane buffer. Subscripts are in normal form, so the
    /// lane cannot be added to such a load from outside.
    fn reject_private_load(&self, index: &IndexExpr) -> Result<(), CodegenError> {
        let mut found = false;
        index.visit_reads(&mut |access| found |= self.lane_of[access.tensor.index()].is_some());
        match found {
            true => {
                let what = "a subscript that loads from a buffer allocated inside a vector loop";
                Err(CodegenError::Unsupported(what.into()))
            }
            false => Ok(()),
        }
    }
}
