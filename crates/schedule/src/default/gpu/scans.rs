//! Computes long recurrences in parts, where there are fewer independent recurrences than the
//! threads that keep a GPU busy.
//!
//! Where neighbouring threads can have neighbouring recurrences, each thread runs a part of one:
//!
//! ```text
//! for t: for i: y[t, i] = y[t-1, i] + x[t, i]   →   thread (part, i): for t in part: y[t, i] = …
//! ```
//!
//! Where there are fewer recurrences than threads in a warp, a block has a part of a recurrence,
//! and its threads have parts of that part. So only few values before parts are computed one after
//! the other.
//!
//! Recurrences along the rows of a tensor, as in `y[i, t] = y[i, t-1] + x[i, t]`, are computed in
//! parts however many there are. If a thread ran a whole row, neighbouring threads would access
//! elements that are far from each other. A block has a row, and its threads have parts of it.
//!
//! Recurrences that multiply floats stay whole, unless the factor is a number of at most 1: the
//! product of many factors may be infinite where the recurrence itself is 0.

use tilewright_ir::nest::{Axis, ExprKind, LoopVarId};
use tilewright_ir::{ReduceOp, Update};
use tilewright_target::Gpu;

use super::THREADS;
use crate::analysis::Stride;
use crate::default::{Planner, without_dots};
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopName, ParallelUnit, StatementName, Step};

/// The shortest recurrence that is computed in parts.
const LEAST_ITERATIONS: i64 = 4096;
/// The fewest threads that must run at the same time. A device with few threads, such as a CPU that
/// offers OpenCL, computes one long chain sooner than three passes over the operands.
const LEAST_THREADS: i64 = 1 << 14;
/// The fewest iterations of a part that a thread runs.
const LEAST_STEPS: i64 = 64;
/// The most parts of a recurrence, whose values before are computed one after the other.
const MOST_PARTS: i64 = 4096;
/// The numbers of iterations that a thread of a block runs, in order of preference.
const STEPS_OF_THREAD: [i64; 3] = [16, 8, 4];
/// A recurrence is computed in parts if there are this many times fewer recurrences than threads
/// that keep the GPU busy.
const FEW: i64 = 32;
/// The shortest recurrence along a row that the threads of a block share.
const LEAST_ROW: i64 = 128;
/// The numbers of unrolled iterations over the parts, in order of preference.
const UNROLLED_PARTS: [i64; 2] = [32, 8];

impl Planner<'_, Gpu> {
    /// Computes the recurrence of a statement in parts, if that gives the GPU more work at a time.
    pub(super) fn scan_recurrence(&mut self, statement: StatementId) -> bool {
        let [ordered] = self.ordered_loops(statement)[..] else { return false };
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let recurrences = spatial.iter().fold(1i64, |all, var| all.saturating_mul(self.trips(*var)));
        let length = self.trips(ordered);
        if self.enough_threads() < LEAST_THREADS {
            return false;
        }
        let is_long = length >= LEAST_ITERATIONS;
        if self.is_along_rows(statement, ordered) && length >= LEAST_ROW {
            let in_blocks = |planner: &mut Self| planner.scan_in_blocks(statement, ordered, recurrences);
            return is_long && self.try_steps(in_blocks)
                || self.try_steps(|planner| planner.scan_rows(statement, ordered));
        }
        if !is_long || recurrences.saturating_mul(FEW) > self.enough_threads() {
            return false;
        }
        match recurrences < self.machine.warp as i64 {
            true => self.try_steps(|planner| planner.scan_in_blocks(statement, ordered, recurrences)),
            false => self.try_steps(|planner| planner.scan_in_threads(statement, ordered, recurrences)),
        }
    }

    /// Returns true when a recurrence runs along neighbouring elements.
    fn is_along_rows(&self, statement: StatementId, ordered: LoopVarId) -> bool {
        self.stride(&self.draft.statement(statement).target, ordered) == Stride::Elements(1)
    }

    /// Gives each block a recurrence, and each of its threads a part of it.
    fn scan_rows(&mut self, statement: StatementId, ordered: LoopVarId) -> bool {
        let length = self.trips(ordered);
        let threads = THREADS.min(self.machine.block_threads as i64);
        let fits = |steps: &i64| length <= threads * steps;
        let steps = STEPS_OF_THREAD.into_iter().rev().find(fits);
        let steps = steps.unwrap_or((length + threads - 1) / threads);
        let [thread, step] = ["thread", "step"].map(|name| self.unused_name(name));
        let target = self.loop_name(ordered);
        let own = self.name_of(statement);
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        let spatial: Vec<LoopName> = spatial.iter().map(|var| self.loop_name(*var)).collect();
        let inner = vec![(step.clone(), steps)];
        let order = [&spatial[..], &[own.loop_named(&thread), own.loop_named(&step)]].concat();
        if !self.try_step(Step::Split { target, outer: thread.clone(), inner })
            || !self.try_step(Step::Reorder { loops: order })
        {
            return false;
        }
        let rows = self.fuse_nested(&own, spatial, "t");
        rows.is_some_and(|rows| self.bind(rows, ParallelUnit::Block(Axis::X)))
            && self.share_recurrence(&own, &thread, &step, steps)
    }

    /// Lets each thread of a block run one iteration of the loop `thread`, which has `steps`
    /// iterations of the recurrence.
    fn share_recurrence(&mut self, own: &StatementName, thread: &str, step: &str, steps: i64) -> bool {
        let Some(inner) = self.scan_parts(own.loop_named(thread), "thread_carry") else { return false };
        for name in inner.totals.iter().chain([own]) {
            if !self.bind(name.loop_named(thread), ParallelUnit::Thread(Axis::X)) {
                return false;
            }
            self.unroll_steps(name.loop_named(step), steps);
            if name != own {
                self.try_steps(|planner| planner.keep_in_registers(name, name.loop_named(thread)));
            }
        }
        self.unroll_parts(&inner.carry, thread);
        true
    }

    /// Lets each thread run a part of a recurrence.
    fn scan_in_threads(&mut self, statement: StatementId, ordered: LoopVarId, recurrences: i64) -> bool {
        let length = self.trips(ordered);
        let parts = (self.enough_threads() / recurrences).min(MOST_PARTS).min(length / LEAST_STEPS).max(1);
        let steps = (length + parts - 1) / parts;
        let [part, step] = ["part", "step"].map(|name| self.unused_name(name));
        let target = self.loop_name(ordered);
        let own = target.statement.clone();
        if !self.try_step(Step::Split { target, outer: part.clone(), inner: vec![(step, steps)] }) {
            return false;
        }
        let Some(values) = self.scan_parts(own.loop_named(part), "carry") else { return false };
        self.spread_values(&values);
        self.spread_statement(statement);
        true
    }

    /// Gives each block a part of a recurrence, and each of its threads a part of that part.
    fn scan_in_blocks(&mut self, statement: StatementId, ordered: LoopVarId, recurrences: i64) -> bool {
        let length = self.trips(ordered);
        let threads = THREADS.min(self.machine.block_threads as i64);
        let busy = 2 * self.machine.processors as i64;
        let fills = |steps: &i64| length / (threads * steps) * recurrences >= busy;
        let steps = STEPS_OF_THREAD.into_iter().find(fills).unwrap_or(STEPS_OF_THREAD[2]);
        let steps = steps.max((length + threads * MOST_PARTS - 1) / (threads * MOST_PARTS));
        let [block, thread, step] = ["block", "thread", "step"].map(|name| self.unused_name(name));
        let target = self.loop_name(ordered);
        let own = target.statement.clone();
        let inner = vec![(thread.clone(), threads), (step.clone(), steps)];
        if !self.try_step(Step::Split { target, outer: block.clone(), inner }) {
            return false;
        }
        let Some(outer) = self.scan_parts(own.loop_named(block.clone()), "carry") else { return false };
        let spatial: Vec<LoopName> =
            self.loops_with(statement, LoopRole::Spatial).iter().map(|var| self.loop_name(*var)).collect();
        let spatial: Vec<LoopName> = spatial.into_iter().filter(|name| name.name != block).collect();
        let order =
            [&[own.loop_named(&block)][..], &spatial, &[own.loop_named(&thread), own.loop_named(&step)]];
        if !spatial.is_empty() {
            let moved = self.try_step(Step::Reorder { loops: order.concat() });
            let all = if moved { self.fuse_nested(&own, spatial, "t") } else { None };
            if !all.is_some_and(|all| self.bind(all, ParallelUnit::Block(Axis::Y))) {
                return false;
            }
        }
        if !self.share_recurrence(&own, &thread, &step, steps)
            || !self.bind(own.loop_named(block), ParallelUnit::Block(Axis::X))
        {
            return false;
        }
        self.spread_values(&outer);
        true
    }

    /// Scans a loop. Returns none if the values of the parts may overflow where the recurrence does
    /// not.
    fn scan_parts(&mut self, target: LoopName, like: &str) -> Option<PartValues> {
        let tensor = without_dots(&target.statement.tensor);
        let name = self.unused_name(&format!("{tensor}_{like}"));
        let part = target.name.clone();
        if !self.try_step(Step::Scan { target, name: name.clone() }) {
            return None;
        }
        let named = |name: &str| StatementName::first(name);
        let totals = [format!("{name}_factors"), format!("{name}_parts")].map(|name| named(&name));
        let totals = totals.into_iter().filter(|name| self.draft.find_statement(name).is_ok()).collect();
        let values = PartValues { totals, carry: named(&name), part };
        self.has_small_products(&values).then_some(values)
    }

    /// Returns true when no product of floats can overflow.
    fn has_small_products(&self, values: &PartValues) -> bool {
        values.totals.iter().filter_map(|name| self.draft.find_statement(name).ok()).all(|id| {
            let statement = self.draft.statement(id);
            let is_product = matches!(statement.update, Update::Reduce { op: ReduceOp::Mul, .. });
            let is_small = match &statement.value.kind {
                ExprKind::Literal(number) => number.as_f64().abs() <= 1.0,
                _ => false,
            };
            !is_product || !statement.value.dtype.is_float() || is_small
        })
    }

    /// Distributes the statements of the values of parts.
    fn spread_values(&mut self, values: &PartValues) {
        for name in &values.totals {
            if let Ok(id) = self.draft.find_statement(name) {
                self.spread_statement(id);
            }
        }
        if let Ok(id) = self.draft.find_statement(&values.carry)
            && !self.spread_recurrence(id)
        {
            self.unroll_parts(&values.carry, &values.part);
        }
    }

    fn unroll_steps(&mut self, target: LoopName, steps: i64) {
        if steps > STEPS_OF_THREAD[0] {
            self.try_steps(|planner| planner.unroll_recurrence(&target, STEPS_OF_THREAD[0]));
        } else {
            self.try_steps(|planner| planner.try_step(Step::Unroll(target)));
        }
    }

    /// Unrolls the loop over the parts, so that values go from one part to the next in registers.
    fn unroll_parts(&mut self, carry: &StatementName, part: &str) {
        let _ = UNROLLED_PARTS
            .into_iter()
            .any(|count| self.try_steps(|planner| planner.unroll_recurrence(&carry.loop_named(part), count)));
    }
}

/// The statements that a `scan` has added.
struct PartValues {
    /// The totals of the parts, and their factors if there are any.
    totals: Vec<StatementName>,
    /// The values before the parts.
    carry: StatementName,
    /// The name of the loop over the parts.
    part: String,
}
