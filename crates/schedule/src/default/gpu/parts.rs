//! Splits reductions into parts. Each part has its own partial totals, which a second statement
//! adds up:
//!
//! ```text
//! for i, for k: C[i] += e   →   for part, for i, for rest: C_parts[part, i] += e
//!                               for i, for part: C[i] += C_parts[part, i]
//! ```
//!
//! The parts can then be computed at the same time: by blocks of a GPU ([`mod@super::combined`],
//! [`mod@super::outer_product`]) or by threads of one block ([`mod@super::block`]).

use tilewright_target::Gpu;

use crate::default::{Planner, one_word};
use crate::draft::StatementId;
use crate::step::{LoopName, StatementName, Step};

/// A reduction that was split into parts.
pub(super) struct Parts {
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
    pub(super) fn cut_in_parts(
        &mut self,
        own: &StatementName,
        along: LoopName,
        results: &[LoopName],
        length: i64,
    ) -> Option<Parts> {
        let [part, rest] = ["part", "rest"].map(|what| self.new_name(what));
        let totals = StatementName::first(self.new_name(&format!("{}_parts", one_word(&own.tensor))));
        let split = Step::Split { target: along, outer: part.clone(), inner: vec![(rest.clone(), length)] };
        // The loop over parts is outermost, so that the buffer of totals is allocated outside all
        // loops.
        let order = [&[own.at(part.clone())], results].concat();
        let cut = self.take(split)
            && (results.is_empty() || self.take(Step::Reorder { loops: order }))
            && self.take(Step::Rfactor { target: own.at(part.clone()), name: totals.tensor.clone() });
        cut.then_some(Parts {
            sum: self.draft.find_statement(own).ok()?,
            part: totals.at(part),
            rest: totals.at(rest),
            totals: self.draft.find_statement(&totals).ok()?,
        })
    }
}
