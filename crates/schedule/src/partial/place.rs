//! Tells where the statements of a program are computed, after the steps of a partial schedule.

use std::fmt::{self, Display, Formatter};

use super::{NestId, PartialSchedule};
use crate::draft::{LoopRole, Parent, StatementId};
use crate::step::{LoopName, StatementName};

/// Where a statement of the program is computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the values that read it.
    Inlined,
    /// In a nest of its own. Other statements may be computed inside that nest.
    Root,
    /// In each iteration of a loop of another statement.
    AtLoop {
        /// The loop.
        at: LoopName,
        /// Whether an iteration computes only what earlier ones have not.
        is_sliding: bool,
    },
    /// Once for given constant inputs, before any number of calls.
    Setup,
}

impl PartialSchedule<'_> {
    /// The name of a statement of the program, given its position in
    /// [`Program::statements`](tilewright_ir::Program::statements).
    pub fn statement_name(&self, statement: usize) -> Option<&StatementName> {
        self.statement_id(statement).map(|id| &self.draft.statement(id).name)
    }

    /// Where a statement of the program is computed, given its position in
    /// [`Program::statements`](tilewright_ir::Program::statements).
    pub fn place(&self, statement: usize) -> Option<Place> {
        let id = self.statement_id(statement)?;
        if !self.draft.is_present(id) {
            return Some(Place::Inlined);
        }
        if self.draft.statements_in(&self.draft.setup).contains(&id) {
            return Some(Place::Setup);
        }
        // An ordered loop of the program belongs to the statements inside, although none owns it.
        let is_foreign = |var: &_| {
            let own = self.draft.loop_of(*var);
            own.owner != Some(id) && own.role != LoopRole::Ordered && !own.name.is_empty()
        };
        let Some(at) = self.draft.path(id).into_iter().rev().find(is_foreign) else {
            return Some(Place::Root);
        };
        let tensor = self.draft.statement(id).target.tensor;
        let is_sliding = self.draft.kept_parts.iter().any(|kept| kept.tensor == tensor);
        Some(Place::AtLoop { at: self.draft.loop_name(at), is_sliding })
    }

    /// The nest at the root in which a statement is computed; none if it is inlined or runs in the
    /// setup.
    pub fn nest_of(&self, statement: usize) -> Option<NestId> {
        let id = self.statement_id(statement).filter(|id| self.draft.is_present(*id))?;
        self.draft.child_containing(Parent::Body, id).map(NestId)
    }

    /// The names of the statements in a nest, with the copies that steps have added.
    pub fn statements_in(&self, nest: NestId) -> Vec<StatementName> {
        let inside = self.draft.statements_in(&[nest.0]);
        inside.into_iter().map(|id| self.draft.statement(id).name.clone()).collect()
    }

    /// The statements of the program are the first ones of a draft.
    fn statement_id(&self, statement: usize) -> Option<StatementId> {
        (statement < self.program_statements).then_some(StatementId(statement))
    }
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Place::Inlined => f.write_str("inlined"),
            Place::Root => f.write_str("at root"),
            Place::AtLoop { at, is_sliding: false } => write!(f, "at {at}"),
            Place::AtLoop { at, is_sliding: true } => write!(f, "at {at}, sliding"),
            Place::Setup => f.write_str("in the setup"),
        }
    }
}
