//! Moves the independent recurrences of a statement out of its ordered loops, so that threads run
//! whole recurrences.
//!
//! In a scan down the columns of an image, every column is a recurrence of its own. Each thread
//! takes a strip of columns, and runs the ordered loop over vectors of the strip:
//!
//! ```text
//! for y: for x: O[y, x] = O[y-1, x] + I[y, x]
//!     →   parallel for strip: for y: vectors of x in the strip: O[y, x] = …
//! ```
//!
//! In a scan along the rows, no vector has neighbouring elements. A few rows are computed together,
//! so that the machine need not wait for the sum of one row before it begins with the next sum:
//!
//! ```text
//! for x: for y: O[y, x] = O[y, x-1] + I[y, x]
//!     →   parallel for rows: for x: unrolled for row in 8: O[…] = …
//! ```
//!
//! Where an iteration needs what others have computed before, the loops stay as they are, and
//! [`super::threads`] runs each iteration in parallel if it has enough work.

use tilewright_ir::nest::LoopVarId;
use tilewright_target::Cpu;

use super::threads::PARALLEL_POINTS;
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopName, Step};

/// The most elements of a strip. The rows of a strip that an iteration reads and writes stay in the
/// first-level cache.
const LONGEST_STRIP: i64 = 2048;
/// The number of strips for each core, so that all cores end at about the same time.
const STRIPS_PER_CORE: i64 = 2;
/// The number of recurrences that are computed together where they have no vectors: about as many
/// as operations begin before the first one ends.
const TOGETHER: i64 = 8;

impl Planner<'_, Cpu> {
    /// Moves the loops over independent recurrences to the outside of a statement's ordered loops.
    pub(super) fn split_into_recurrences(&mut self, statement: StatementId) {
        let path = self.draft.path(statement);
        let Some(outermost) = path.iter().copied().find(|var| self.is_ordered(*var)) else { return };
        let is_alone = self.draft.statements_in(self.draft.body_of(outermost)).len() == 1;
        if !is_alone {
            return;
        }
        let Some(vector) = self.vector_loop(statement) else {
            self.try_steps(|planner| planner.interleave_recurrences(statement));
            return;
        };
        if self.machine.cores < 2 || self.points(statement) < PARALLEL_POINTS {
            return;
        }
        let others = self.independent_loops(statement, Some(vector));
        let has_strips = self.try_steps(|planner| {
            let strips = planner.split_into_strips(vector, &others);
            strips.is_some_and(|strips| planner.move_outside(statement, &others, Some(strips)))
        });
        if !has_strips && !others.is_empty() {
            self.try_steps(|planner| planner.move_outside(statement, &others, None));
        }
    }

    /// Runs several independent recurrences together, in each iteration of the ordered loop.
    fn interleave_recurrences(&mut self, statement: StatementId) -> bool {
        let independent = self.independent_loops(statement, None);
        let Some(last) = independent.last().copied() else { return false };
        if !self.move_outside(statement, &independent, None) {
            return false;
        }
        if self.trips(last) < 2 * TOGETHER || !self.loops_with(statement, LoopRole::Reduction).is_empty() {
            return true;
        }
        let row = self.loop_name(last);
        let (Some(_), Some(inner)) = self.split_rows(&row, TOGETHER) else { return true };
        let mut order = self.names_of_path(statement);
        order.retain(|own| *own != inner);
        order.push(inner);
        self.try_step(Step::Reorder { loops: order })
    }

    /// The loops of a statement's results, other than the vector loop, whose iterations are
    /// recurrences of their own.
    fn independent_loops(&mut self, statement: StatementId, vector: Option<LoopVarId>) -> Vec<LoopVarId> {
        let mut found = Vec::new();
        for var in self.loops_with(statement, LoopRole::Spatial) {
            if Some(var) == vector {
                continue;
            }
            let moved: Vec<LoopVarId> = [&found[..], &[var]].concat();
            let mut is_independent = false;
            self.try_steps(|planner| {
                is_independent = planner.move_outside(statement, &moved, None);
                false
            });
            if is_independent {
                found = moved;
            }
        }
        found
    }

    /// Moves loops to the outside of all others. Returns false if the threads could not run each of
    /// them in parallel.
    fn move_outside(
        &mut self,
        statement: StatementId,
        loops: &[LoopVarId],
        strips: Option<LoopName>,
    ) -> bool {
        let own = self.name_of(statement);
        let name = |var: &LoopVarId| own.loop_named(self.draft.loop_of(*var).name.clone());
        let moved: Vec<LoopName> = loops.iter().map(name).chain(strips).collect();
        let path = self.names_of_path(statement);
        let inner = path.iter().filter(|own| !moved.contains(own));
        let order: Vec<LoopName> = moved.iter().chain(inner).cloned().collect();
        (order == path || self.try_step(Step::Reorder { loops: order }))
            && moved.into_iter().all(|name| self.can_be_parallel(name))
    }

    /// The loops around a statement that is alone in them, outermost first.
    fn names_of_path(&self, statement: StatementId) -> Vec<LoopName> {
        let own = self.name_of(statement);
        let path = self.draft.path(statement).into_iter();
        path.map(|var| own.loop_named(self.draft.loop_of(var).name.clone())).collect()
    }

    fn can_be_parallel(&mut self, name: LoopName) -> bool {
        let mut is_legal = false;
        self.try_steps(|planner| {
            is_legal = planner.try_step(Step::Parallel(name));
            false
        });
        is_legal
    }

    /// Splits the loop along the vectors into strips for the threads, where the other loops of the
    /// result have too few iterations for them.
    fn split_into_strips(&mut self, vector: LoopVarId, others: &[LoopVarId]) -> Option<LoopName> {
        let statement = self.draft.loop_of(vector).owner?;
        let wanted = STRIPS_PER_CORE * self.machine.cores as i64;
        let (trips, lanes) = (self.trips(vector), self.lanes(statement));
        let length = (trips + wanted - 1) / wanted;
        let whole_vectors = (length + lanes - 1) / lanes * lanes;
        let length = whole_vectors.clamp(4 * lanes, LONGEST_STRIP);
        if trips <= length || others.iter().any(|var| self.trips(*var) >= wanted) {
            return None;
        }
        let target = self.loop_name(vector);
        let (outer, inner) = (format!("{}s", target.name), target.name.clone());
        let strips = target.statement.loop_named(outer.clone());
        self.try_step(Step::Split { target, outer, inner: vec![(inner, length)] }).then_some(strips)
    }

    fn is_ordered(&self, var: LoopVarId) -> bool {
        self.draft.loop_of(var).role == LoopRole::Ordered
    }
}
