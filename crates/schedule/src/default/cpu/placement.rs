//! Places the stages of a program for the CPU: inlines cheap stages, then moves producers into the
//! outermost loop of their last consumer, or into strips of it, where that repeats little or
//! nothing.

use std::collections::BTreeSet;

use tilewright_ir::nest::{BufferId, LoopVarId};
use tilewright_target::Cpu;

use crate::default::Planner;
use crate::draft::{LoopRole, Parent, StatementId};
use crate::step::Step;

/// The most times, on average, that a point may be computed so that a producer is near its
/// consumer.
const MOST_REPETITION: f64 = 1.25;
/// The number of rows in a strip of an image.
const STRIP_ROWS: i64 = 32;

impl Planner<'_, Cpu> {
    /// Inlines cheap stages, then moves producers into the loops of their consumers.
    pub(super) fn place_stages(&mut self) {
        self.inline_stages(Self::strides_recurrence);
        // From the last stage back, so that a producer of a producer finds both in place.
        let mut last = self.draft.body.len();
        while last > 0 {
            let after = self.draft.body.len() - last;
            if let Some(consumer) = self.draft.last_statement(&self.draft.body[last - 1..last]) {
                self.move_producers(consumer);
            }
            // The nodes that have moved into the consumer were before it.
            last = self.draft.body.len() - after - 1;
        }
    }

    /// Computes producers at the outermost loop of a consumer, as far as that repeats little.
    fn move_producers(&mut self, consumer: StatementId) {
        let Some(row) = self.loops_with(consumer, LoopRole::Spatial).first().copied() else { return };
        if self.draft.path(consumer).first() != Some(&row) || self.shares_operand_along(consumer, row) {
            return;
        }
        let moved = self.move_producers_to(row, 1.0 + 1e-9);
        let inside = self.draft.statements_in(self.draft.body_of(row));
        if moved > 0 || self.trips(row) < 2 * STRIP_ROWS || self.computed_outside(row, &inside).is_empty() {
            return;
        }
        // Strips keep the number of rows that neighbouring strips share small.
        let name = self.loop_name(row);
        let (outer, inner) = (format!("{}_strip", name.name), format!("{}_row", name.name));
        self.try_steps(|planner| {
            let split =
                Step::Split { target: name.clone(), outer: outer.clone(), inner: vec![(inner, STRIP_ROWS)] };
            let strip = planner
                .try_step(split)
                .then(|| planner.draft.find_loop(&name.statement.loop_named(outer)).ok())
                .flatten();
            strip.is_some_and(|strip| planner.move_producers_to(strip, MOST_REPETITION) > 0)
        });
    }

    /// Moves every producer that can be moved and that computes each of its points at most `most`
    /// times on average there.
    fn move_producers_to(&mut self, at: LoopVarId, most: f64) -> usize {
        let mut needed = self.computed_outside(at, &self.draft.statements_in(self.draft.body_of(at)));
        let mut moved = 0;
        // The last-computed tensor moves first; the tensors that it needs are tried after it.
        while let Some(tensor) = needed.iter().rev().copied().find(|tensor| self.try_move(*tensor, at, most))
        {
            needed.remove(&tensor);
            needed.extend(self.computed_outside(at, &self.draft.writers(Parent::Loop(at), tensor)));
            moved += 1;
        }
        moved
    }

    /// The tensors that these statements read and that statements outside the loop compute.
    fn computed_outside(&self, at: LoopVarId, statements: &[StatementId]) -> BTreeSet<BufferId> {
        let is_inside =
            |writer: &StatementId| self.draft.child_containing(Parent::Loop(at), *writer).is_some();
        let is_computed_outside = |tensor: &BufferId| {
            let writers = self.draft.writers(Parent::Body, *tensor);
            !writers.is_empty() && !writers.iter().any(is_inside)
        };
        let reads = statements.iter().flat_map(|id| self.draft.statement(*id).reads());
        let tensors: BTreeSet<BufferId> = reads.map(|read| read.tensor).collect();
        tensors.into_iter().filter(is_computed_outside).collect()
    }

    /// Moves a producer into the loop, if that is legal and repeats little.
    fn try_move(&mut self, tensor: BufferId, at: LoopVarId, most: f64) -> bool {
        let step = Step::ComputeAt {
            tensor: self.draft.buffers[tensor.index()].buffer.name.clone(),
            at: self.loop_name(at),
            storage: None,
        };
        // The loops around a recurrence are better chosen for it alone: its own loops run in
        // parallel and as vectors only where they are outermost and innermost.
        !self.is_recurrent(tensor)
            && !self.splits_operand_uses(tensor, at)
            && self.draft.repetition(tensor, at) <= most
            && self.try_step(step)
    }

    /// Returns true when the rows of a tensor are computed together from a packed operand, as in a
    /// matrix product, and a loop needs only some of the rows at a time. The operand would be
    /// packed and read again in each iteration.
    fn splits_operand_uses(&self, tensor: BufferId, at: LoopVarId) -> bool {
        let needs_all = |dimension: usize| {
            let reads = self.draft.readers(Parent::Loop(at), tensor);
            let needed = self.draft.footprint(tensor, &reads, Some(at))[dimension].extent;
            needed >= self.draft.buffers[tensor.index()].buffer.shape[dimension]
        };
        self.draft.writers(Parent::Body, tensor).into_iter().any(|writer| {
            let Some(row) = self.rows_of_packed_operand(writer) else { return false };
            let indices = self.draft.statement(writer).target.indices.iter().enumerate();
            indices.filter(|(_, index)| index.mentions(row)).any(|(dimension, _)| !needs_all(dimension))
        })
    }

    /// Returns true when all iterations of a loop of a statement use one packed operand, as the
    /// rows of a matrix product do.
    fn shares_operand_along(&self, statement: StatementId, row: LoopVarId) -> bool {
        self.rows_of_packed_operand(statement) == Some(row)
    }

    /// The loop over the rows of a reduction that use one packed operand.
    fn rows_of_packed_operand(&self, statement: StatementId) -> Option<LoopVarId> {
        let vector = self.vector_loop(statement)?;
        let is_packed = !self.operands_to_pack(statement, vector).is_empty();
        if is_packed { self.row_loop(statement, vector) } else { None }
    }

    /// Returns true when an ordered loop computes some of the tensor.
    fn is_recurrent(&self, tensor: BufferId) -> bool {
        let is_ordered = |var: &LoopVarId| self.draft.loop_of(*var).role == LoopRole::Ordered;
        let writers = self.draft.writers(Parent::Body, tensor);
        writers.iter().any(|id| self.draft.path(*id).iter().any(is_ordered))
    }
}
