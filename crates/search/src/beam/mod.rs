//! Schedules a whole program by beam search: decides about one stage after the other, and keeps the
//! partial schedules that a cost model finds fastest.
//!
//! Stages are decided from the last to the first, as by the Halide autoscheduler (Adams et al.
//! 2019, Anderson et al. 2021). Where a stage can be computed then depends only on decisions that
//! have been taken. What is still open counts as in the default schedule: a stage without a
//! decision is a nest of its own.
//!
//! Nothing is compiled or measured. The cost of a partial schedule is the sum of the costs of its
//! nests, and a decision changes few nests: only those are lowered and estimated anew.

use tilewright_ir::Program;
use tilewright_schedule::partial::{Choice, NestId, PartialSchedule, StageId};
use tilewright_schedule::{Illegal, Schedule, apply, schedule_by_rules};
use tilewright_target::Target;

use crate::cost::CostModel;

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
}

impl BeamOptions {
    /// The effort for a default schedule: about a second.
    pub const DEFAULT: BeamOptions = BeamOptions { widest: 4, kept: 64 };
    /// The effort where a user asks for a search without trials: seconds.
    pub const ONE_SHOT: BeamOptions = BeamOptions { widest: 8, kept: 128 };
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
    let start = State::new(PartialSchedule::new(program, target)?, model);
    let stages = start.partial.stages();
    let width = (options.kept / stages.len().max(1)).min(options.widest).max(1);
    let mut search = Search { model, states: 1 };
    let mut beam = vec![start];
    for stage in stages {
        beam = search.decide(&beam, stage, width);
    }
    // Whole programs are compared in the end: nests share caches, and the default schedule may
    // know better.
    let found = beam.iter().map(|state| state.partial.complete());
    let default = schedule_by_rules(program, target);
    let mut ranked: Vec<(Schedule, f64)> = Vec::new();
    for schedule in found.chain([default.clone()]) {
        let is_new = ranked.iter().all(|(other, _)| *other != schedule);
        if is_new && let Ok(nest) = apply(program, &schedule, target) {
            ranked.push((schedule, model.estimate(&nest).seconds));
        }
    }
    let rank = |(schedule, seconds): &(Schedule, f64)| match *schedule == default {
        true => seconds / LEAST_GAIN,
        false => *seconds,
    };
    ranked.sort_by(|one, other| rank(one).total_cmp(&rank(other)));
    Ok(BeamResult { ranked, states: search.states })
}

/// A partial schedule with the costs of its nests.
struct State<'a> {
    partial: PartialSchedule<'a>,
    costs: Vec<(NestId, f64)>,
    seconds: f64,
}

impl<'a> State<'a> {
    fn new(partial: PartialSchedule<'a>, model: &dyn CostModel) -> State<'a> {
        let costs = partial.nests().into_iter().map(|nest| (nest, cost(&partial, nest, model))).collect();
        State::with_costs(partial, costs)
    }

    /// The state after a decision. Nests that it leaves as they are keep their costs.
    fn after(&self, partial: PartialSchedule<'a>, model: &dyn CostModel) -> State<'a> {
        let changed = partial.changed_nests(&self.partial);
        let known = |nest: NestId| {
            let known = self.costs.iter().find(|(own, _)| *own == nest);
            known.filter(|_| !changed.contains(&nest)).map(|(_, cost)| *cost)
        };
        let nests = partial.nests().into_iter();
        let costs =
            nests.map(|nest| (nest, known(nest).unwrap_or_else(|| cost(&partial, nest, model)))).collect();
        State::with_costs(partial, costs)
    }

    fn with_costs(partial: PartialSchedule<'a>, costs: Vec<(NestId, f64)>) -> State<'a> {
        let seconds = costs.iter().map(|(_, cost)| cost).sum();
        State { partial, costs, seconds }
    }
}

/// The predicted seconds of a nest; infinite if it cannot be lowered.
fn cost(partial: &PartialSchedule, nest: NestId, model: &dyn CostModel) -> f64 {
    partial.lower_nest(nest).map_or(f64::INFINITY, |nest| model.estimate(&nest).seconds)
}

struct Search<'m> {
    model: &'m dyn CostModel,
    states: usize,
}

impl Search<'_> {
    /// Takes all decisions about a stage in all of these states, and keeps the best.
    fn decide<'a>(&mut self, beam: &[State<'a>], stage: StageId, width: usize) -> Vec<State<'a>> {
        let mut found: Vec<State<'a>> = Vec::new();
        for state in beam {
            for Choice { next, .. } in state.partial.choices(stage) {
                self.states += 1;
                found.push(state.after(next, self.model));
            }
        }
        found.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        found.truncate(width);
        found
    }
}
