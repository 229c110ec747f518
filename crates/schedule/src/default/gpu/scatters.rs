//! Distributes a scatter with few rows, such as a histogram, over all threads. A loop over its rows
//! alone would keep few threads busy.
//!
//! Where the order of the updates does not matter, threads update elements atomically:
//!
//! ```text
//! for i: h[x[i]] += 1   →   block, thread over i: atomic h[x[i]] += 1
//! ```
//!
//! Where it does, as in sums of floats, each part of the iterations gets a table of its own, which
//! it updates in order. A second statement adds up the tables.

use tilewright_ir::nest::LoopVarId;
use tilewright_target::Gpu;

use super::THREADS;
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::step::LoopName;

/// The most elements of the tables of all parts together.
const MOST_ELEMENTS: i64 = 1 << 23;
/// The fewest terms of a scatter that are worth dividing.
const LEAST_TERMS: f64 = 16384.0;
/// A thread for each row keeps a GPU busy enough if rows are this fraction of the threads that it
/// runs: updates wait for memory, but rows of one thread each need no tables of parts.
const WORTH_ROWS: f64 = 2.0;

impl Planner<'_, Gpu> {
    /// Distributes all iterations of a scatter over threads.
    pub(super) fn spread_scatter(&mut self, statement: StatementId) -> bool {
        let [rows, reduced] =
            [LoopRole::Spatial, LoopRole::Reduction].map(|role| self.loops_with(statement, role));
        let count = |loops: &[LoopVarId]| loops.iter().map(|var| self.trips(*var) as f64).product::<f64>();
        let few_rows = count(&rows) * WORTH_ROWS < self.enough_threads() as f64;
        let is_worth_it = few_rows && count(&rows) * count(&reduced) >= LEAST_TERMS && !reduced.is_empty();
        if !self.draft.is_scatter(statement) || !is_worth_it {
            return false;
        }
        let all = [rows, reduced].concat();
        self.try_steps(|planner| planner.spread_over(statement, &all, THREADS).is_some())
            || self.try_steps(|planner| planner.spread_scatter_in_parts(statement))
    }

    /// Gives each part of a scatter's iterations a table of its own, if there is room for several.
    fn spread_scatter_in_parts(&mut self, statement: StatementId) -> bool {
        let own = self.name_of(statement);
        let target = self.draft.statement(statement).target.tensor;
        let table = self.draft.buffers[target.index()].buffer.elements();
        let parts = (MOST_ELEMENTS / table.max(1)).min(self.machine.processors as i64);
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let Some(along) = reduced.into_iter().max_by_key(|var| self.trips(*var)) else { return false };
        let trips = self.trips(along);
        if parts < 2 || trips < 4 {
            return false;
        }
        let length = ((trips + parts - 1) / parts).max(2);
        let rows = self.loops_with(statement, LoopRole::Spatial);
        let results: Vec<LoopName> = rows.into_iter().map(|var| self.loop_name(var)).collect();
        let parts = self.split_into_parts(&own, self.loop_name(along), &results, length);
        let Some(parts) = parts else { return false };
        // Totals in registers could not be proved, and the compiler finds them by itself.
        let elements = self.loops_with(parts.sum, LoopRole::Spatial);
        self.spread_evenly(parts.totals) && self.spread_over(parts.sum, &elements, THREADS).is_some()
    }
}
