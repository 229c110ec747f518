//! Plans CPU statements in which no loop of the result gives vectors. A reduction loop that is
//! contiguous in memory is vectorised, with one total for each lane. Otherwise the reduction is
//! innermost, with its total in a register.

use tilewright_ir::nest::LoopVarId;
use tilewright_target::Cpu;

use crate::analysis::Stride;
use crate::default::{Planner, without_dots};
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopLevel, LoopName, PromoteScope, StatementName, Step};

impl Planner<'_, Cpu> {
    /// Vectorises a reduction that is contiguous in memory: each lane has its own total, and the
    /// totals are added up at the end.
    pub(super) fn vectorize_reduction(&mut self, statement: StatementId) -> bool {
        // A scatter would need a whole table for each lane.
        if self.draft.is_scatter(statement) {
            return false;
        }
        let name = self.name_of(statement);
        let reads = self.draft.statement(statement).reads();
        let contiguous = |var: &LoopVarId| {
            !reads.is_empty()
                && reads.iter().all(|read| matches!(self.stride(read, *var), Stride::Elements(0 | 1)))
                && reads.iter().any(|read| self.stride(read, *var) == Stride::Elements(1))
        };
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let lanes = self.lanes(statement);
        let Some(along) = reduced.iter().copied().filter(|var| self.trips(*var) >= lanes).find(contiguous)
        else {
            return false;
        };
        let several = self.trips(along) >= 4 * lanes && self.most_vectors(statement) >= 4;
        let width = if several { 4 * lanes } else { lanes };
        let old = self.loop_name(along);
        let (outer, lane) = (format!("{}o", old.name), format!("{}v", old.name));
        let partial = buffer_of(&name, "lanes");
        let inside: Vec<LoopName> =
            reduced.iter().map(|var| self.loop_name(*var)).filter(|other| *other != old).collect();
        let split =
            Step::Split { target: old.clone(), outer: outer.clone(), inner: vec![(lane.clone(), width)] };
        let rfactor = Step::Rfactor { target: name.loop_named(lane.clone()), name: partial.clone() };
        let partial_name = StatementName::first(partial.clone());
        if !self.try_step(split) || !self.try_step(rfactor) {
            return false;
        }
        let mut order: Vec<LoopName> =
            inside.iter().map(|other| partial_name.loop_named(other.name.clone())).collect();
        order.extend([partial_name.loop_named(outer), partial_name.loop_named(lane.clone())]);
        if !inside.is_empty() {
            self.try_steps(|planner| planner.try_step(Step::Reorder { loops: order }));
        }
        if !self.try_step(Step::Vectorize(partial_name.loop_named(lane.clone()))) {
            return false;
        }
        self.try_step(Step::Vectorize(name.loop_named(lane)));
        let around = self.loop_around_reduction(statement);
        self.keep_in_registers(&partial_name, around.as_ref())
    }

    /// The loop just outside a statement's reduction, named by the statement itself.
    pub(super) fn loop_around_reduction(&self, statement: StatementId) -> Option<LoopName> {
        let path = self.draft.path(statement);
        let reduced = self.draft.outermost_reduction(statement)?;
        let at = path.iter().position(|var| *var == reduced)?;
        let around = path[..at].last()?;
        Some(self.name_of(statement).loop_named(self.draft.loop_of(*around).name.clone()))
    }

    /// Handles a statement without vectors: the reduction loops are innermost, and one total is in
    /// a register.
    pub(super) fn accumulate(&mut self, statement: StatementId) -> bool {
        let reduced = self.loops_with(statement, LoopRole::Reduction);
        let Some(last) = self.loops_with(statement, LoopRole::Spatial).last().copied() else { return true };
        if reduced.is_empty() {
            return true;
        }
        let name = self.name_of(statement);
        let at = self.loop_name(last);
        self.keep_in_registers(&name, Some(&at))
    }

    /// Keeps the results of one iteration of the loop in registers.
    pub(super) fn keep_in_registers(&mut self, name: &StatementName, at: Option<&LoopName>) -> bool {
        let Some(at) = at else { return true };
        let (at, buffer) = (LoopLevel::Loop(at.clone()), buffer_of(name, "tile"));
        let step = Step::promote(&name.tensor, at, buffer, PromoteScope::Registers, Vec::new());
        self.try_steps(|planner| planner.try_step(step));
        true
    }
}

/// The name of a buffer of a statement: `O_tile`, or `O_tile2` for the second statement that writes
/// `O`.
fn buffer_of(name: &StatementName, what: &str) -> String {
    let ordinal = if name.ordinal > 1 { name.ordinal.to_string() } else { String::new() };
    format!("{}_{what}{ordinal}", without_dots(&name.tensor))
}
