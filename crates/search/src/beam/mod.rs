//! Schedules a whole program by beam search: decides about one stage after the other, and keeps the
//! partial schedules that a cost model finds fastest.
//!
//! Stages are decided from the last to the first, as by the Halide autoscheduler (Adams et al.
//! 2019, Anderson et al. 2021). Where a stage can be computed then depends only on decisions that
//! have been taken. Open decisions count as in the default schedule: a stage without a decision is
//! a nest of its own.
//!
//! Nothing is compiled or measured. The cost of a partial schedule is the sum of the costs of its
//! nests, and a decision changes few nests: only those are lowered and estimated anew
//! (`costs.rs`).
//!
//! | file | contents |
//! |---|---|
//! | `mod.rs` | [`search()`], its options and its result |
//! | `decisions.rs` | the decisions that lead to a partial schedule, to be taken again with others |
//! | `costs.rs` | the costs of nests |
//! | `sampler.rs` | schedules to measure: what the search finds, then changes of the fastest |
//! | `changes.rs` | random changes of a schedule's numbers |

mod changes;
mod costs;
mod decisions;
mod sampler;

use std::collections::HashSet;

use tilewright_ir::Program;
use tilewright_schedule::partial::{NestId, PartialSchedule, StageId};
use tilewright_schedule::{Illegal, Schedule, apply, schedule_by_rules};
use tilewright_target::Target;

use crate::cost::CostModel;
use crate::parallel;
use costs::NestCosts;
use decisions::Decisions;
pub use sampler::Sampler;

/// How much faster than the default schedule another one must be by the model to come before it.
/// Smaller differences are within the errors of the model, and the default schedule knows more than
/// the model about some programs.
const LEAST_GAIN: f64 = 1.1;

/// The effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeamOptions {
    /// The most partial schedules that are kept after a decision.
    pub widest: usize,
    /// The partial schedules that are kept in all decisions together, about: programs of many
    /// stages get a narrower beam.
    pub kept: usize,
    /// Whether the cost of a nest is kept for other schedules that have the same nest. Without it,
    /// the outcome is the same, and the search takes longer.
    pub keeps_costs: bool,
}

impl BeamOptions {
    /// The effort for a default schedule: about a second.
    pub const DEFAULT: BeamOptions = BeamOptions { widest: 8, kept: 96, keeps_costs: true };
    /// The effort where a user asks for a search without trials: seconds.
    pub const ONE_SHOT: BeamOptions = BeamOptions { widest: 16, kept: 192, keeps_costs: true };
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct BeamResult {
    /// Complete schedules, each with the time that the cost model predicts, in seconds, best first.
    /// The default schedule is among them, and is the first if no other one is clearly faster.
    pub ranked: Vec<(Schedule, f64)>,
    /// The number of partial schedules whose cost was computed.
    pub states: usize,
}

/// Searches for the schedules that a cost model finds fastest.
pub fn search<'t>(
    program: &'t Program,
    target: impl Into<Target<'t>>,
    model: &dyn CostModel,
    options: &BeamOptions,
) -> Result<BeamResult, Illegal> {
    let target = target.into();
    let start = PartialSchedule::new(program, target)?;
    let (beam, states) = find(start, model, options);
    // Whole programs are compared in the end: nests share caches, and the default schedule may
    // know better.
    let mut found = parallel::map(&beam, |state| state.partial.complete());
    let default = schedule_by_rules(program, target);
    found.push(default.clone());
    let mut seen = HashSet::new();
    found.retain(|schedule| seen.insert(schedule.clone()));
    let seconds = parallel::map(&found, |schedule| {
        let nest = apply(program, schedule, target).ok()?;
        Some(model.estimate(&nest).seconds)
    });
    let both = found.into_iter().zip(seconds);
    let mut ranked: Vec<(Schedule, f64)> =
        both.filter_map(|(schedule, seconds)| Some((schedule, seconds?))).collect();
    let rank = |(schedule, seconds): &(Schedule, f64)| match *schedule == default {
        true => seconds / LEAST_GAIN,
        false => *seconds,
    };
    ranked.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    Ok(BeamResult { ranked, states })
}

/// Decides about all stages. Returns the last states, best first, and the number of all states.
fn find<'a>(
    start: PartialSchedule<'a>,
    model: &dyn CostModel,
    options: &BeamOptions,
) -> (Vec<State<'a>>, usize) {
    let stages = start.stages();
    let width = (options.kept / stages.len().max(1)).min(options.widest).max(1);
    let costs = NestCosts::new(model, options.keeps_costs);
    let mut beam = vec![State::new(start, Decisions::default(), None, &costs)];
    let mut states = 1;
    for stage in stages {
        let mut found = decide(&beam, stage, &costs);
        states += found.len();
        found.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        found.truncate(width);
        beam = found;
    }
    (beam, states)
}

/// Takes all decisions about a stage in all of these states.
fn decide<'a>(beam: &[State<'a>], stage: StageId, costs: &NestCosts) -> Vec<State<'a>> {
    let choices = parallel::map(beam, |state| state.partial.choices(stage));
    let choices = beam.iter().zip(choices);
    let all: Vec<_> =
        choices.flat_map(|(state, choices)| choices.into_iter().map(move |own| (state, own.next))).collect();
    parallel::map(&all, |(state, next)| {
        let decisions = state.decisions.and(&state.partial, next);
        State::new(next.clone(), decisions, Some(state), costs)
    })
}

/// A partial schedule with its cost.
struct State<'a> {
    partial: PartialSchedule<'a>,
    decisions: Decisions,
    /// The predicted seconds of each nest, and of all together.
    costs: Vec<(NestId, f64)>,
    seconds: f64,
}

impl<'a> State<'a> {
    /// The state of a partial schedule, which a decision has made from `before`.
    fn new(
        partial: PartialSchedule<'a>,
        decisions: Decisions,
        before: Option<&State<'a>>,
        costs: &NestCosts,
    ) -> State<'a> {
        let before = before.map(|state| (&state.partial, state.costs.as_slice()));
        let costs = costs.of_nests(&partial, before);
        let seconds = costs.iter().map(|(_, cost)| cost).sum();
        State { partial, decisions, costs, seconds }
    }
}
