//! Packs operands for the CPU: chooses the reads that are repeated often, and adds `promote` steps
//! that copy them to contiguous memory before they are used.

use tilewright_ir::nest::{Access, LoopVarId};
use tilewright_target::Cpu;

use crate::analysis::{Stride, iterations};
use crate::default::{Planner, without_dots};
use crate::draft::{LoopRole, Parent, StatementId};
use crate::step::{LayoutDim, LoopLevel, LoopName, PromoteScope, StatementName, Step};

/// The number of uses of an element for which packing it pays.
pub(super) const LEAST_PACKED_USES: i64 = 16;

impl Planner<'_, Cpu> {
    /// Returns true when a read is repeated over some loop of the result other than the vector
    /// loop, so that a packed copy would be used often.
    pub(super) fn is_worth_packing(&self, statement: StatementId, read: &Access, vector: LoopVarId) -> bool {
        let regular = |var: &LoopVarId| matches!(self.stride(read, *var), Stride::Elements(_));
        let repeats = |var: &LoopVarId| *var != vector && self.stride(read, *var) == Stride::Elements(0);
        let own = self.draft.loops_owned_by(statement);
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let uses = iterations(spatial.iter().filter(|var| repeats(var)).map(|var| self.trips(*var)));
        own.iter().all(regular)
            && uses >= LEAST_PACKED_USES
            && self.draft.writers(Parent::Body, read.tensor).is_empty()
            && self.reduction_trips(statement) >= LEAST_PACKED_USES
    }

    /// The reads along the vector that are used often enough to be packed first.
    pub(super) fn operands_to_pack(&self, statement: StatementId, vector: LoopVarId) -> Vec<Access> {
        let reads = self.draft.statement(statement).reads();
        let own = self.draft.loops_owned_by(statement);
        let far = |read: &Access| {
            let reduced = self.loops_with(statement, LoopRole::Reduction);
            reduced.iter().any(|var| !matches!(self.stride(read, *var), Stride::Elements(0)))
                && self.stride(read, vector) != Stride::Elements(0)
        };
        let once = |read: &Access| reads.iter().filter(|other| other.tensor == read.tensor).count() == 1;
        let simple = |read: &Access| {
            own.iter().all(|var| read.indices.iter().filter(|index| index.mentions(*var)).count() <= 1)
        };
        reads
            .iter()
            .filter(|read| {
                far(read) && once(read) && simple(read) && self.is_worth_packing(statement, read, vector)
            })
            .cloned()
            .collect()
    }

    pub(super) fn elements(&self, read: &Access) -> i64 {
        self.draft.buffers[read.tensor.index()].buffer.elements()
    }

    /// Packs an operand at a loop, or outside all loops, with the dimension along the vector last.
    /// Constants are packed once for all calls.
    pub(super) fn pack(
        &mut self,
        name: &StatementName,
        read: &Access,
        lane: &LoopName,
        at: Option<&LoopName>,
        width: i64,
    ) -> bool {
        let buffer = self.draft.buffers[read.tensor.index()].buffer.clone();
        let Some((along, tiled)) = self.dimension_along(name, read, lane) else { return false };
        let place = if self.draft.is_constant(read.tensor) { None } else { at };
        let part = |dimension, modulo, divide| LayoutDim { dimension, modulo, divide };
        let rest = (0..buffer.shape.len()).filter(|dimension| *dimension != along);
        let mut layout: Vec<LayoutDim> = rest.map(|dimension| part(dimension, None, None)).collect();
        // The whole operand is packed in tiles, if nothing but the vector's loops indexes the
        // dimension.
        if place.is_none() && tiled {
            layout.insert(0, part(along, None, Some(width)));
            layout.push(part(along, Some(width), None));
        } else {
            layout.push(part(along, None, None));
        }
        // Several statements may use the same operand.
        let staged =
            StatementName::first(self.unused_name(&format!("{}_packed", without_dots(&buffer.name))));
        let last = staged.loop_named(format!("l{}", layout.len() - 1));
        let at = place.map_or(LoopLevel::Root, |at| LoopLevel::Loop(at.clone()));
        let step = Step::promote(buffer.name, at, &staged.tensor, PromoteScope::Packed, layout);
        if !self.try_steps(|planner| planner.try_step(step)) {
            return false;
        }
        self.try_steps(|planner| planner.vectorize_copy(&last));
        self.try_steps(|planner| planner.run_in_parallel(&staged))
    }

    /// Vectorises the last loop of a copy.
    pub(super) fn vectorize_copy(&mut self, last: &LoopName) -> bool {
        let Ok(var) = self.draft.find_loop(last) else { return false };
        let lanes = self.machine.lanes(4) as i64;
        if self.trips(var) <= 3 * lanes {
            return self.try_step(Step::Vectorize(last.clone()));
        }
        self.split_vector(var, lanes, 1).is_some()
    }

    /// The dimension of an operand along the vector, and whether its subscript mentions no
    /// reduction loop.
    pub(super) fn dimension_along(
        &self,
        name: &StatementName,
        read: &Access,
        lane: &LoopName,
    ) -> Option<(usize, bool)> {
        let statement = self.draft.find_statement(name).ok()?;
        let lane = self.draft.find_loop(lane).ok()?;
        let reads = self.draft.statement(statement).reads();
        let current = reads.iter().find(|own| own.tensor == read.tensor)?;
        let along = current.indices.iter().position(|index| index.mentions(lane))?;
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let tiled = !reduced.iter().any(|var| current.indices[along].mentions(*var));
        Some((along, tiled))
    }
}
