//! Splits reductions into parts. Each part has its own partial totals, which a second statement
//! combines:
//!
//! ```text
//! for i, for k: C[i] += e   →   for part, for i, for rest: C_parts[part, i] += e
//!                               for i, for part: C[i] += C_parts[part, i]
//! ```
//!
//! The parts can then be computed at the same time: by blocks or threads of a GPU
//! ([`mod@super::combined`]), by blocks ([`mod@super::outer_product`]), or by threads of one block
//! ([`mod@super::block`]).

use tilewright_target::Gpu;

use crate::default::{Planner, without_dots};
use crate::draft::StatementId;
use crate::step::{LoopName, StatementName, Step};

/// A reduction that was split into parts.
pub(super) struct ReductionParts {
    /// The statement that computes the partial totals.
    pub totals: StatementId,
    /// The statement that adds them up.
    pub sum: StatementId,
    /// The loop of `totals` over parts; `rest` is the one within a part.
    pub part: LoopName,
    pub rest: LoopName,
}

impl Planner<'_, Gpu> {
    /// Splits a reduction along a loop into parts of this length, with the loop over parts outside
    /// the loops over the results.
    pub(super) fn split_into_parts(
        &mut self,
        own: &StatementName,
        along: LoopName,
        results: &[LoopName],
        length: i64,
    ) -> Option<ReductionParts> {
        let [part, rest] = ["part", "rest"].map(|what| self.unused_name(what));
        let totals = StatementName::first(self.unused_name(&format!("{}_parts", without_dots(&own.tensor))));
        let split = Step::Split { target: along, outer: part.clone(), inner: vec![(rest.clone(), length)] };
        // The loop over parts is outermost, so that the buffer of totals is allocated outside all
        // loops.
        let order = [&[own.loop_named(part.clone())], results].concat();
        let is_split = self.try_step(split)
            && (results.is_empty() || self.try_step(Step::Reorder { loops: order }))
            && self.try_step(Step::Rfactor {
                target: own.loop_named(part.clone()),
                name: totals.tensor.clone(),
            });
        is_split.then_some(ReductionParts {
            sum: self.draft.find_statement(own).ok()?,
            part: totals.loop_named(part),
            rest: totals.loop_named(rest),
            totals: self.draft.find_statement(&totals).ok()?,
        })
    }
}
