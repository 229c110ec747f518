//! Explains a schedule: where each stage of the program is computed, why, and how long it takes by
//! the cost model.
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | [`explain()`] and its result, an [`Explanation`] |
//! | `alternatives.rs` | other places for a stage, and the predicted time with each of them |
//! | `times.rs` | the predicted time of each statement |
//!
//! The schedule may come from anywhere. The alternatives are the choices of
//! [`PartialSchedule::choices`] at the moment at which the schedule decides about the stage. These
//! are what [`beam`](crate::beam) compares, where a beam search has found the schedule. All other
//! steps of the schedule stay as they are, as far as they can be applied.
//!
//! Nothing is measured. All times are those of the cost model.

mod alternatives;
mod times;

use std::fmt::{self, Display, Formatter};

use tilewright_ir::nest::BufferId;
use tilewright_ir::{LoopNest, Program};
use tilewright_schedule::partial::{Freedom, PartialSchedule, Place};
use tilewright_schedule::{Illegal, Schedule, Step, Storage, schedule_by_rules};
use tilewright_target::Target;

use crate::cost::CostModel;
use alternatives::Replay;

/// Why the stages of a program are where they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The predicted seconds of a call.
    pub seconds: f64,
    /// The predicted seconds of each statement outside of loops: [`LoopNest::roots`].
    pub roots: Vec<f64>,
    /// Whether the schedule is the one that the rules of the default schedule give.
    pub is_by_rules: bool,
    /// The stages, in the order of the program.
    pub stages: Vec<StageExplanation>,
}

/// Why a stage is where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct StageExplanation {
    /// The tensor that the stage defines.
    pub tensor: String,
    /// The statements of the stage, in the order of the program.
    pub statements: Vec<ComputedStatement>,
    /// The reason for the place.
    pub decision: Decision,
}

/// Where a statement is computed, and its time.
#[derive(Clone, Debug, PartialEq)]
pub struct ComputedStatement {
    /// The position in [`Program::statements`].
    pub statement: usize,
    /// The name in schedules.
    pub name: String,
    /// Where the statement is computed.
    pub place: Place,
    /// The buffers of the loop nest that its stores write.
    pub buffers: Vec<BufferId>,
    /// The predicted seconds. None for an inlined statement, whose time is a part of the time of
    /// its readers.
    pub seconds: Option<f64>,
}

/// The reason for the place of a stage.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// There was nothing to decide.
    Forced(Freedom),
    /// There are other places.
    Compared {
        /// Other places, by predicted time.
        alternatives: Vec<Alternative>,
        /// Places that the stage cannot have.
        refused: Vec<RefusedPlace>,
    },
}

/// Another place for a stage, or its own place with other loops.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// The place.
    pub place: Place,
    /// Whether this is the place of the schedule, with the loops that the stage has there in the
    /// default schedule.
    pub is_own_place: bool,
    /// The steps that put the stage there.
    pub steps: Vec<Step>,
    /// Other tensors that are then computed at the root, because they cannot stay where they are.
    pub displaced: Vec<String>,
    /// The predicted seconds of a call of the whole program.
    pub seconds: f64,
}

/// A place that a stage cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPlace {
    /// The place.
    pub place: Place,
    /// The reason.
    pub why: Illegal,
}

/// Explains a schedule. `nest` is the result of applying it to the program.
pub fn explain<'t>(
    program: &'t Program,
    schedule: &Schedule,
    nest: &LoopNest,
    target: impl Into<Target<'t>>,
    model: &dyn CostModel,
) -> Result<Explanation, Illegal> {
    let target = target.into();
    let open = PartialSchedule::new(program, target)?;
    let seconds = model.estimate(nest).seconds;
    let roots = model.root_seconds(nest);
    let by_statement = times::statement_seconds(nest, &roots, model);
    let replay = Replay::new(program, open.clone(), &schedule.steps, model)?;
    let mut stages = Vec::new();
    for stage in open.stages().into_iter().rev() {
        let tensor = open.name(stage).to_owned();
        let own = replay.statements_of(&tensor).into_iter();
        let statements = own.map(|statement| ComputedStatement {
            statement,
            name: open.statement_name(statement).map(ToString::to_string).unwrap_or_default(),
            place: replay.place(statement),
            buffers: times::buffers_of(nest, statement),
            seconds: by_statement.get(&statement).copied(),
        });
        let statements = statements.collect();
        stages.push(StageExplanation { tensor, statements, decision: replay.decision(stage, seconds)? });
    }
    let is_by_rules = *schedule == schedule_by_rules(program, target);
    Ok(Explanation { seconds, roots, is_by_rules, stages })
}

/// Smaller relative differences of predicted times mean nothing.
pub const NOTABLE_DIFFERENCE: f64 = 0.005;

impl Alternative {
    /// Whether the program is notably faster with the alternative than in so many seconds.
    pub fn is_faster_than(&self, seconds: f64) -> bool {
        self.seconds < (1.0 - NOTABLE_DIFFERENCE) * seconds
    }

    /// The place, and the stages that move with it.
    pub fn in_short(&self) -> String {
        if self.is_own_place {
            return format!("here with default loops{}", self.displaced_text());
        }
        format!("{}{}", self.place, self.displaced_text())
    }

    fn displaced_text(&self) -> String {
        let place = if self.place == Place::Root { "" } else { " at root" };
        match self.displaced.as_slice() {
            [] => String::new(),
            [one] => format!(" with {one}{place}"),
            several => format!(" with {} others{place}", several.len()),
        }
    }
}

impl Display for Alternative {
    /// The place, with the loops that are divided and the rows that are kept for it.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.is_own_place {
            return f.write_str(&self.in_short());
        }
        write!(f, "{}", self.place)?;
        let is_divided = self.steps.iter().any(|step| matches!(step, Step::Split { .. }));
        for step in &self.steps {
            match step {
                Step::Split { target, inner, .. } => {
                    let parts: Vec<String> = inner.iter().map(|(_, trips)| trips.to_string()).collect();
                    write!(f, ", {target} split by {}", parts.join(" x "))?;
                }
                Step::Reorder { loops } if !is_divided => write!(f, ", {} outermost", loops[0])?,
                Step::ComputeAt { storage: Some(Storage { fold: Some(rows), .. }), .. } => {
                    write!(f, ", {rows} rows kept")?;
                }
                _ => {}
            }
        }
        f.write_str(&self.displaced_text())
    }
}
