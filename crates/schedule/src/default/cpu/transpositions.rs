//! Tiles pointwise statements that write along one dimension and read along another, such as the
//! transposition of a matrix.
//!
//! ```text
//! for x: for y: T[x, y] = I[y, x]   →   for xo: for yo: for xi in 32: vector yi in 32: T[…] = I[…]
//! ```
//!
//! Taken literally, each element that is read comes from another cache line, which has left the
//! cache before its next element is needed. A tile uses whole cache lines of both tensors.

use tilewright_ir::nest::{Access, LoopVarId};
use tilewright_target::Cpu;

use crate::analysis::Stride;
use crate::default::Planner;
use crate::draft::{LoopRole, StatementId};
use crate::step::{LoopName, Step};

/// The rows and columns of a tile.
const TILE: i64 = 32;
/// The fewest points for which tiles pay. Smaller tensors stay in the first-level cache.
const LEAST_POINTS: f64 = 8192.0;

/// The fewest rows of a tile.
const LEAST_ROWS: i64 = 8;

impl Planner<'_, Cpu> {
    /// Tiles the two loops of a transposition, and vectorises the one along which it writes.
    /// Returns false where the statement is none.
    pub(super) fn tile_transposition(&mut self, statement: StatementId) -> bool {
        let Some((written, read)) = self.transposed_loops(statement) else { return false };
        let read_trips = self.trips(read);
        let (written, read) = (self.loop_name(written), self.loop_name(read));
        let own: Vec<LoopName> =
            self.draft.loops_owned_by(statement).into_iter().map(|var| self.loop_name(var)).collect();
        let others = own.iter().filter(|name| **name != written && **name != read).cloned();
        let part =
            |name: &LoopName, suffix: &str| name.statement.loop_named(format!("{}{suffix}", name.name));
        let split = |name: &LoopName| Step::Split {
            target: name.clone(),
            outer: part(name, "o").name,
            inner: vec![(part(name, "i").name, TILE)],
        };
        // A strip of another loop may be as short as a tile already.
        let (rows_outside, rows) = match read_trips > TILE {
            true => (Some(part(&read, "o")), part(&read, "i")),
            false => (None, read.clone()),
        };
        let tile = [part(&written, "o"), rows, part(&written, "i")];
        let order: Vec<LoopName> = others.chain(rows_outside).chain(tile).collect();
        self.try_step(split(&written))
            && (read_trips <= TILE || self.try_step(split(&read)))
            && self.arrange(statement, order)
            && self.try_step(Step::Vectorize(part(&written, "i")))
    }

    /// The loop along which a pointwise statement writes neighbouring elements, and the loop along
    /// which it reads them.
    fn transposed_loops(&self, statement: StatementId) -> Option<(LoopVarId, LoopVarId)> {
        let own = self.draft.statement(statement);
        let spatial = self.loops_with(statement, LoopRole::Spatial);
        if self.draft.path(statement) != spatial || self.points(statement) < LEAST_POINTS {
            return None;
        }
        let is_contiguous =
            |access: &Access, var: &LoopVarId| self.stride(access, *var) == Stride::Elements(1);
        let written = |var: &LoopVarId| self.trips(*var) > TILE && is_contiguous(&own.target, var);
        let written = spatial.iter().copied().find(written)?;
        let reads = own.reads();
        let read = |var: &LoopVarId| {
            *var != written
                && self.trips(*var) >= LEAST_ROWS
                && reads.iter().any(|read| is_contiguous(read, var))
        };
        let read = spatial.into_iter().find(read)?;
        Some((written, read))
    }

    /// Returns true when a recurrence reads neighbouring elements of a stage, and would read
    /// elements far from each other if the stage were inlined. A transposition is such a stage.
    /// Outside of the recurrence its loops can be tiled, so that it reads whole cache lines.
    pub(super) fn strides_recurrence(
        &self,
        producer: StatementId,
        reader: StatementId,
        read: &Access,
    ) -> bool {
        let is_ordered = |var: &LoopVarId| self.draft.loop_of(*var).role == LoopRole::Ordered;
        let is_contiguous =
            |access: &Access, var: &LoopVarId| self.stride(access, *var) == Stride::Elements(1);
        let own = |id: StatementId| {
            let target = &self.draft.statement(id).target;
            self.draft.loops_owned_by(id).into_iter().find(|var| is_contiguous(target, var))
        };
        let is_near = |access: &Access, var: LoopVarId| match self.stride(access, var) {
            Stride::Elements(step) => step.abs() <= 1,
            Stride::Irregular => false,
        };
        let is_read_along = own(reader).is_some_and(|var| is_contiguous(read, &var));
        let is_transposed = || {
            let reads = self.draft.statement(producer).reads();
            own(producer).is_some_and(|var| reads.iter().any(|access| !is_near(access, var)))
        };
        self.draft.path(reader).iter().any(is_ordered) && is_read_along && is_transposed()
    }
}
