//! Where each stage is computed: inside its consumers' expressions, at a loop of its last consumer, or on its own.

use tilewright_ir::{Access, TensorId, VarId};

use super::Planner;
use crate::analysis::operations;
use crate::draft::{LoopRole, StatementId, statements_in};
use crate::step::Step;

/// An expression no dearer than this is repeated rather than stored.
const TRIVIAL: usize = 3;
/// How many more points may be computed for having a producer near its consumer, in percent.
const MOST_REPEATED: f64 = 1.25;
/// Rows of a strip of an image.
const STRIP: i64 = 32;

impl Planner<'_> {
    /// Inlines what is cheap, then brings producers to the loops of their consumers.
    pub(super) fn place_stages(&mut self) {
        for at in 0..self.draft.program.tensors.len() {
            let tensor = TensorId(at as u32);
            if self.is_cheap_to_repeat(tensor) {
                let tensor = self.draft.program.tensor(tensor).name.clone();
                self.guarded(|planner| planner.take(Step::Inline { tensor }));
            }
        }
        // From the last stage back, so that a producer of a producer finds both in place.
        let mut seen = Vec::new();
        while let Some(last) = self.last_root(&seen) {
            seen.push(last);
            self.gather_producers(last);
        }
    }

    /// Whether a pointwise stage costs less inside its consumers than in memory.
    fn is_cheap_to_repeat(&self, tensor: TensorId) -> bool {
        let producers = self.draft.writers(&self.draft.body, tensor);
        let [producer] = producers.as_slice() else { return false };
        let reads = self.draft.readers(&self.draft.body, tensor);
        let own = self.points(*producer);
        let used: f64 = reads.iter().map(|(reader, _)| self.points(*reader)).sum();
        let cost = operations(&self.draft.statement(*producer).value);
        cost <= TRIVIAL || (reads.len() == 1 && used <= own)
    }

    /// The last statement at the root, of those not seen, that reads something computed.
    fn last_root(&self, seen: &[StatementId]) -> Option<StatementId> {
        let roots = self.draft.body.iter().filter_map(|node| {
            let inside = statements_in(std::slice::from_ref(node));
            inside.last().copied()
        });
        roots.rev().find(|id| !seen.contains(id))
    }

    /// Computes producers at the outermost loop of a consumer, as far as that repeats little.
    fn gather_producers(&mut self, consumer: StatementId) {
        let Some(row) = self.loops_with(consumer, LoopRole::Spatial).first().copied() else { return };
        if self.draft.path(consumer).first() != Some(&row) {
            return;
        }
        let moved = self.producers_near(row, 1.0 + 1e-9);
        if moved > 0 || self.trips(row) < 2 * STRIP || !self.reads_computed(row) {
            return;
        }
        // In strips, so that the rows that neighbouring strips share are few.
        let name = self.loop_name(row);
        let (outer, inner) = (format!("{}_strip", name.name), format!("{}_row", name.name));
        self.guarded(|planner| {
            let split =
                Step::Split { target: name.clone(), outer: outer.clone(), inner: vec![(inner, STRIP)] };
            let strip = planner
                .take(split)
                .then(|| planner.draft.find_loop(&name.statement.at(outer)).ok())
                .flatten();
            strip.is_some_and(|strip| planner.producers_near(strip, MOST_REPEATED) > 0)
        });
    }

    fn reads_computed(&self, at: VarId) -> bool {
        let inside = statements_in(self.draft.body_of(at));
        let reads = inside.iter().flat_map(|id| self.draft.statement(*id).reads());
        let mut computed = reads.filter(|read| self.is_movable(read.tensor, at));
        computed.next().is_some()
    }

    /// Moves every producer that can be, and that computes no more than `most` times its points there.
    fn producers_near(&mut self, at: VarId, most: f64) -> usize {
        let mut moved = 0;
        while let Some(tensor) = self.next_producer(at, most) {
            let step = Step::ComputeAt {
                tensor: self.draft.buffers[tensor.index()].buffer.name.clone(),
                at: self.loop_name(at),
            };
            if !self.guarded(|planner| planner.take(step)) {
                break;
            }
            moved += 1;
        }
        moved
    }

    fn next_producer(&self, at: VarId, most: f64) -> Option<TensorId> {
        let inside = statements_in(self.draft.body_of(at));
        let mut tensors: Vec<TensorId> =
            inside.iter().flat_map(|id| self.draft.statement(*id).reads()).map(|read| read.tensor).collect();
        tensors.sort();
        tensors.dedup();
        // The last that was computed first: what it needs comes after it.
        tensors.into_iter().rev().find(|tensor| {
            self.is_movable(*tensor, at)
                && self.repetition(*tensor, at) <= most
                && self.would_move(*tensor, at)
        })
    }

    fn is_movable(&self, tensor: TensorId, at: VarId) -> bool {
        let inside = statements_in(self.draft.body_of(at));
        let writers = self.draft.writers(&self.draft.body, tensor);
        !writers.is_empty() && writers.iter().all(|writer| !inside.contains(writer))
    }

    fn would_move(&self, tensor: TensorId, at: VarId) -> bool {
        let step = Step::ComputeAt {
            tensor: self.draft.buffers[tensor.index()].buffer.name.clone(),
            at: self.loop_name(at),
        };
        crate::steps::apply(&mut self.draft.clone(), &step).is_ok()
    }

    /// How many times the points of a tensor would be computed at a loop, on average.
    fn repetition(&self, tensor: TensorId, at: VarId) -> f64 {
        let inside = statements_in(self.draft.body_of(at));
        let reads: Vec<(StatementId, Access)> = self
            .draft
            .readers(&self.draft.body, tensor)
            .into_iter()
            .filter(|(id, _)| inside.contains(id))
            .collect();
        let buffer = &self.draft.buffers[tensor.index()].buffer;
        let region = self.draft.footprint(tensor, &reads, Some(at));
        let rounds: f64 = self.draft.loops_up_to(at).iter().map(|var| self.trips(*var) as f64).product();
        let part: f64 = region.iter().map(|interval| interval.extent as f64).product();
        rounds * part / (buffer.elements() as f64)
    }
}
