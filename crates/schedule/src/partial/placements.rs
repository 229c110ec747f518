//! Lists where a stage of a program can be computed, given where the stages that read it are.
//!
//! Stages are decided from the last to the first, so all readers of a stage are in their places.
//! The candidates are: inside the readers' values, at the root, and at each loop around all
//! readers. At an inner loop, the rows that earlier iterations have computed can be kept in a ring.
//! Where the readers' nest has no strips of rows yet, splitting it into strips of several sizes is
//! part of the choice.

use tilewright_ir::nest::{BufferId, LoopKind, LoopVarId};

use super::PartialSchedule;
use crate::draft::value_size::count_nodes;
use crate::draft::{LoopRole, Parent, StatementId};
use crate::step::{LoopLevel, LoopName, Step, Storage};

/// The numbers of rows of a strip.
const STRIPS: [i64; 2] = [16, 64];
/// The fewest iterations of a loop that is worth splitting into strips.
const LEAST_ROWS: i64 = 16;
/// The numbers of rows of a ring.
const RINGS: [i64; 5] = [2, 4, 8, 16, 32];
/// The most times, on average, that a point may be computed.
const MOST_REPETITION: f64 = 8.0;
/// The least repetition at which it is worth keeping rows: each of them is needed in several
/// iterations. Iterations of a last, shorter strip count as whole ones, which adds a little.
const LEAST_KEPT_REPETITION: f64 = 1.5;
/// The most nodes of a value into which a stage is inlined.
const MOST_INLINED_NODES: usize = 1000;

/// A tensor that the program computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StageId(pub(super) BufferId);

/// Where a stage is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In a nest of its own.
    Root,
    /// In the values that read it.
    Inline,
    /// At a loop of its readers, as far as an iteration needs it.
    Piece,
    /// At a loop of its readers, as far as earlier iterations have not computed it.
    Sliding,
}

/// A decision about one stage.
#[derive(Clone, Debug)]
pub struct Choice<'a> {
    /// Where the stage is computed.
    pub placement: Placement,
    /// The schedule with this decision.
    pub next: PartialSchedule<'a>,
}

/// How much can be decided about a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freedom {
    /// No statement outside of the stage reads it, so it stays at the root.
    NoReaders,
    /// It is inside an ordered loop of the program with other stages, and stays there.
    InsideLoop,
    /// One access reads each of its points at most once: it is always inlined.
    ReadOnce,
    /// Several places are worth comparing.
    Open,
}

impl<'a> PartialSchedule<'a> {
    /// The stages, those that others read after those that read them.
    pub fn stages(&self) -> Vec<StageId> {
        let mut stages: Vec<StageId> = Vec::new();
        for id in self.draft.statements_in(&self.draft.body).into_iter().rev() {
            let stage = StageId(self.draft.statement(id).target.tensor);
            if !stages.contains(&stage) {
                stages.push(stage);
            }
        }
        stages
    }

    /// The name of the stage's tensor.
    pub fn name(&self, stage: StageId) -> &str {
        &self.draft.buffers[stage.0.index()].buffer.name
    }

    /// How much can be decided about a stage that is still at the root.
    pub fn freedom(&self, stage: StageId) -> Freedom {
        if self.has_no_readers(stage) {
            Freedom::NoReaders
        } else if self.is_inside_shared_loop(stage) {
            Freedom::InsideLoop
        } else if self.is_used_once(stage) && self.with(&[self.inline(stage)]).is_ok() {
            Freedom::ReadOnce
        } else {
            Freedom::Open
        }
    }

    /// All that can be decided about a stage that is still at the root. All stages that read it
    /// must have been decided.
    pub fn choices(&self, stage: StageId) -> Vec<Choice<'a>> {
        let root = Choice { placement: Placement::Root, next: self.clone() };
        let inlined = || {
            let next = self.with(&[self.inline(stage)]).ok()?;
            Some(Choice { placement: Placement::Inline, next })
        };
        match self.freedom(stage) {
            Freedom::NoReaders | Freedom::InsideLoop => vec![root],
            Freedom::ReadOnce => inlined().into_iter().collect(),
            Freedom::Open => {
                let inlined = inlined().filter(|choice| choice.next.has_moderate_readers(self, stage));
                [root].into_iter().chain(inlined).chain(self.fused_choices(stage)).collect()
            }
        }
    }

    /// The places inside the nests of the readers.
    fn fused_choices(&self, stage: StageId) -> Vec<Choice<'a>> {
        let writers = self.draft.writers(Parent::Body, stage.0);
        let mut readers: Vec<StatementId> =
            self.draft.readers(Parent::Body, stage.0).into_iter().map(|(id, _)| id).collect();
        // A recurrence reads its own values.
        readers.retain(|reader| !writers.contains(reader));
        match self.draft.capabilities.grid {
            Some(_) => self.in_blocks(stage, &readers),
            None => self.in_loops(stage, &readers),
        }
    }

    /// The step that inlines a stage.
    pub fn inline(&self, stage: StageId) -> Step {
        Step::Inline { tensor: self.name(stage).to_owned() }
    }

    /// Whether the values of the statements that read a stage in `before` are small enough to be
    /// compiled, and to be estimated again and again.
    fn has_moderate_readers(&self, before: &PartialSchedule, stage: StageId) -> bool {
        let mut readers = before.draft.readers(Parent::Body, stage.0).into_iter();
        readers.all(|(id, _)| count_nodes(&self.draft.statement(id).value) <= MOST_INLINED_NODES)
    }

    /// The loops of the readers at which a stage can be computed.
    fn in_loops(&self, stage: StageId, readers: &[StatementId]) -> Vec<Choice<'a>> {
        let mut choices = Vec::new();
        let around = self.common_loops(readers);
        for (depth, var) in around.iter().enumerate() {
            let at = self.draft.loop_name(*var);
            choices.extend(self.piece(stage, &at));
            if depth > 0 {
                choices.extend(self.sliding(stage, &at, &self.draft.loop_name(around[0])));
            }
        }
        if let Some(host) = around.first().and_then(|outermost| self.draft.loop_of(*outermost).owner) {
            for row in self.rows_to_split(host) {
                choices.extend(self.in_rows(stage, host, row));
            }
        }
        choices
    }

    /// A stage that each iteration of a loop computes as far as it needs it.
    pub(super) fn piece(&self, stage: StageId, at: &LoopName) -> Option<Choice<'a>> {
        if self.repetition(stage, at)? > MOST_REPETITION {
            return None;
        }
        let next = self.with(&[self.compute_at(stage, at, None)]).ok()?;
        Some(Choice { placement: Placement::Piece, next })
    }

    /// A stage of which each iteration of a loop computes what is new, with the smallest ring that
    /// is large enough.
    fn sliding(&self, stage: StageId, at: &LoopName, kept_at: &LoopName) -> Option<Choice<'a>> {
        if self.repetition(stage, at)? <= LEAST_KEPT_REPETITION || self.is_recurrence(stage) {
            return None;
        }
        let in_ring = |rows: i64| {
            let storage = Storage { at: LoopLevel::Loop(kept_at.clone()), fold: Some(rows) };
            self.with(&[self.compute_at(stage, at, Some(storage))]).ok()
        };
        let next = RINGS.into_iter().find_map(in_ring)?;
        Some(Choice { placement: Placement::Sliding, next })
    }

    /// The average number of times that each point of a stage would be computed at a loop.
    fn repetition(&self, stage: StageId, at: &LoopName) -> Option<f64> {
        Some(self.draft.repetition(stage.0, self.draft.find_loop(at).ok()?))
    }

    /// Whether no statement outside of the stage reads it.
    fn has_no_readers(&self, stage: StageId) -> bool {
        let writers = self.draft.writers(Parent::Body, stage.0);
        let readers = self.draft.readers(Parent::Body, stage.0);
        readers.iter().all(|(reader, _)| writers.contains(reader))
    }

    /// Whether an ordered loop of the program computes the stage.
    fn is_recurrence(&self, stage: StageId) -> bool {
        let is_ordered = |var: &LoopVarId| self.draft.loop_of(*var).role == LoopRole::Ordered;
        let writers = self.draft.writers(Parent::Body, stage.0);
        writers.iter().any(|id| self.draft.path(*id).iter().any(is_ordered))
    }

    /// Whether one access reads the stage, and each of its points at most once.
    fn is_used_once(&self, stage: StageId) -> bool {
        let reads = self.draft.readers(Parent::Body, stage.0);
        let [(reader, _)] = reads.as_slice() else { return false };
        let writers = self.draft.writers(Parent::Body, stage.0).into_iter();
        self.draft.points(*reader) <= writers.map(|id| self.draft.points(id)).sum()
    }

    fn compute_at(&self, stage: StageId, at: &LoopName, storage: Option<Storage>) -> Step {
        Step::ComputeAt { tensor: self.name(stage).to_owned(), at: at.clone(), storage }
    }

    /// The stage in rows or strips of rows of a nest that has none yet.
    fn in_rows(&self, stage: StageId, host: StatementId, row: LoopVarId) -> Vec<Choice<'a>> {
        let target = self.draft.loop_name(row);
        let own = self.draft.loops_owned_by(host).into_iter();
        let others: Vec<LoopName> =
            own.take_while(|var| *var != row).map(|var| self.draft.loop_name(var)).collect();
        let mut found = Vec::new();
        if !others.is_empty() {
            let loops = [vec![target.clone()], others.clone()].concat();
            let outermost = self.with(&[Step::Reorder { loops }]).ok();
            found.extend(outermost.and_then(|next| next.piece(stage, &target)));
        }
        let part = |suffix: &str| target.statement.loop_named(format!("{}_{suffix}", target.name));
        let (strip, inner) = (part("strip"), part("row"));
        let extent = self.draft.loop_of(row).extent.as_constant().unwrap_or(0);
        for rows in STRIPS.into_iter().filter(|rows| 2 * rows <= extent) {
            let parts = vec![(inner.name.clone(), rows)];
            let mut steps =
                vec![Step::Split { target: target.clone(), outer: strip.name.clone(), inner: parts }];
            if !others.is_empty() {
                let loops = [vec![strip.clone(), inner.clone()], others.clone()].concat();
                steps.push(Step::Reorder { loops });
            }
            let Ok(split) = self.with(&steps) else { continue };
            found.extend(split.piece(stage, &strip));
            found.extend(split.sliding(stage, &inner, &strip));
        }
        found
    }

    /// Whether an ordered loop around the stage has other stages inside.
    fn is_inside_shared_loop(&self, stage: StageId) -> bool {
        let writers = self.draft.writers(Parent::Body, stage.0);
        let shares = |id: &StatementId| {
            let inside = |var: LoopVarId| self.draft.statements_in(self.draft.body_of(var));
            let around = self.draft.path(*id).first().copied().map(inside).unwrap_or_default();
            around.iter().any(|other| !writers.contains(other))
        };
        writers.iter().any(shares)
    }

    /// The loops around all of these statements in which something can be computed for them,
    /// outermost first. The loop along which a statement has vectors is left out.
    fn common_loops(&self, statements: &[StatementId]) -> Vec<LoopVarId> {
        let mut common = self.loops_around_all(statements);
        common.retain(|var| !self.is_along_vectors(*var));
        common
    }

    /// The loops around all of these statements, outermost first.
    pub(super) fn loops_around_all(&self, statements: &[StatementId]) -> Vec<LoopVarId> {
        let paths: Vec<Vec<LoopVarId>> = statements.iter().map(|id| self.draft.path(*id)).collect();
        let is_common = |at: &usize| paths.iter().all(|path| path.get(*at) == paths[0].get(*at));
        (0..paths[0].len()).take_while(is_common).map(|at| paths[0][at]).collect()
    }

    /// Whether a loop is the innermost of the result's dimensions of its statement.
    pub(super) fn is_along_vectors(&self, var: LoopVarId) -> bool {
        let Some(owner) = self.draft.loop_of(var).owner else { return false };
        let target = &self.draft.statement(owner).target;
        target.indices.last().is_some_and(|index| index.mentions(var))
    }

    /// The loops of a nest's statement that can be split into strips; none if a step has split one
    /// already.
    fn rows_to_split(&self, host: StatementId) -> Vec<LoopVarId> {
        let own = self.draft.loops_owned_by(host);
        let is_serial = |var: &LoopVarId| self.draft.loop_of(*var).kind == LoopKind::Serial;
        let indices = &self.draft.statement(host).target.indices;
        let is_whole = |var: &LoopVarId| indices.iter().any(|index| index.as_var() == Some(*var));
        if !own.iter().all(is_serial) {
            return Vec::new();
        }
        let is_row = |var: &LoopVarId| {
            let own = self.draft.loop_of(*var);
            own.role == LoopRole::Spatial
                && is_whole(var)
                && !self.is_along_vectors(*var)
                && own.extent.as_constant().is_some_and(|rows| rows >= LEAST_ROWS)
        };
        own.into_iter().filter(is_row).collect()
    }
}
