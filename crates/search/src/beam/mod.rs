//! Schedules a whole program by beam search: decides about one stage after the other, and keeps the
//! partial schedules that a cost model finds fastest.
//!
//! Stages are decided from the last to the first, as by the Halide autoscheduler (Adams et al.
//! 2019, Anderson et al. 2021). Where a stage can be computed then depends only on decisions that
//! have been taken. Open decisions count as in the default schedule: a stage without a decision is
//! a nest of its own.
//!
//! A place that pays only together with others, such as a chain of filters that are all computed
//! within one value, loses to places that pay at once. So there are several passes, which lean
//! towards one kind of places each (`leaning.rs`).
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
//! | `leaning.rs` | which places a pass prefers |
//! | `sampler.rs` | schedules to measure: what the search finds, then changes of the fastest |
//! | `changes.rs` | random changes of a schedule's numbers |

mod changes;
mod costs;
mod decisions;
mod leaning;
mod sampler;

use std::collections::HashSet;

use tilewright_ir::Program;
use tilewright_schedule::partial::{Choice, PartialSchedule, StageId};
use tilewright_schedule::{Illegal, Schedule, apply, schedule_by_rules};
use tilewright_target::Target;

use crate::cost::CostModel;
use crate::parallel;
use costs::{NestCost, NestCosts};
use decisions::Decisions;
use leaning::Leaning;
pub use sampler::Sampler;

/// How much faster than the default schedule another one must be by the model to come before it.
/// Smaller differences are within the errors of the model, and the default schedule knows more than
/// the model about some programs.
const LEAST_GAIN: f64 = 1.1;

/// A pass ends when its best state is predicted to take so many times as long as the best one of
/// the first pass after the same decisions.
const MOST_BEHIND: f64 = 1.1;
/// The share of the first pass's partial schedules that a pass keeps which leans.
const LEANING_SHARE: f64 = 0.75;
/// A pass ends when its effort is greater than so many times that of the first one.
const MOST_EFFORT: f64 = 1.6;

/// The effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeamOptions {
    /// The most partial schedules that a pass keeps after a decision.
    pub widest: usize,
    /// The partial schedules that a pass keeps in all decisions together, about: programs of many
    /// stages get a narrower beam.
    pub kept: usize,
    /// Whether passes follow that lean towards one kind of places each.
    pub leans: bool,
    /// Whether these passes end when they fall behind the first pass, or take far more effort.
    pub gives_up: bool,
    /// Whether the cost of a nest is kept for other schedules that have the same nest. Without it,
    /// the outcome is the same, and the search takes longer.
    pub keeps_costs: bool,
}

impl BeamOptions {
    /// The effort for a default schedule: about a second.
    pub const DEFAULT: BeamOptions =
        BeamOptions { widest: 8, kept: 96, leans: true, gives_up: true, keeps_costs: true };
    /// The effort where a user asks for a search without trials: seconds.
    pub const ONE_SHOT: BeamOptions =
        BeamOptions { widest: 16, kept: 192, leans: true, gives_up: true, keeps_costs: true };
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
    let (beam, states) = find(start, model, target, options);
    // Whole programs are compared in the end: nests share caches, and the default schedule may
    // know better.
    let mut found = parallel::map(&beam, |state| state.partial.complete());
    let default = schedule_by_rules(program, target);
    found.push(default.clone());
    let mut seen = HashSet::new();
    found.retain(|schedule| seen.insert(schedule.clone()));
    let seconds = parallel::map(&found, |schedule| {
        let nest = apply(program, schedule, target).ok()?;
        Some(costs::seconds(&nest, model, target))
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

/// Decides about all stages, in all passes. Returns the last states, best first, and the number of
/// all states.
fn find<'a>(
    start: PartialSchedule<'a>,
    model: &dyn CostModel,
    target: Target<'_>,
    options: &BeamOptions,
) -> (Vec<State<'a>>, usize) {
    let costs = NestCosts::new(model, target, options.keeps_costs);
    let mut first = Pass::default();
    let mut found = first.run(&start, options, Leaning::NONE, &costs);
    let mut states = first.states;
    let leanings = if options.leans { Leaning::all(&start) } else { Vec::new() };
    for leaning in leanings {
        let mut next = Pass { earlier: Some(&first), ..Pass::default() };
        found.extend(next.run(&start, options, leaning, &costs));
        states += next.states;
    }
    found.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
    (found, states)
}

/// Decides about all stages once.
#[derive(Default)]
struct Pass<'p> {
    /// The first pass; none if this is the first.
    earlier: Option<&'p Pass<'p>>,
    /// The predicted seconds of the best state after each decision.
    bests: Vec<f64>,
    /// The number of states so far, and the effort for them.
    states: usize,
    effort: usize,
}

impl Pass<'_> {
    /// The last states; none if the pass gave up.
    fn run<'a>(
        &mut self,
        start: &PartialSchedule<'a>,
        options: &BeamOptions,
        leaning: Leaning,
        costs: &NestCosts,
    ) -> Vec<State<'a>> {
        let stages = start.stages();
        let share = if self.earlier.is_some() { LEANING_SHARE } else { 1.0 };
        let widest = (options.kept as f64 / stages.len().max(1) as f64).min(options.widest as f64);
        let width = (share * widest).max(1.0) as usize;
        let mut beam = vec![State::new(start.clone(), Decisions::default(), None, costs)];
        for stage in stages {
            let mut found = decide(&beam, stage, leaning, costs);
            self.states += found.len();
            self.effort += found.iter().map(|own| own.effort).sum::<usize>();
            found.sort_by(|one, other| one.rank().total_cmp(&other.rank()));
            found.truncate(width);
            self.bests.push(found.iter().map(|own| own.seconds).fold(f64::INFINITY, f64::min));
            beam = found;
            if options.gives_up && self.is_hopeless() {
                return Vec::new();
            }
        }
        beam
    }

    /// Whether the pass is far behind the first one, or takes far more effort.
    fn is_hopeless(&self) -> bool {
        let Some(first) = self.earlier else { return false };
        let at = self.bests.len() - 1;
        self.bests[at] > MOST_BEHIND * first.bests[at]
            || self.effort as f64 > MOST_EFFORT * first.effort as f64
    }
}

/// Takes all decisions about a stage in all of these states.
fn decide<'a>(beam: &[State<'a>], stage: StageId, leaning: Leaning, costs: &NestCosts) -> Vec<State<'a>> {
    let choices = parallel::map(beam, |state| state.partial.choices(stage));
    let choices = beam.iter().zip(choices);
    let all: Vec<(&State<'a>, Choice<'a>)> =
        choices.flat_map(|(state, choices)| choices.into_iter().map(move |own| (state, own))).collect();
    parallel::map(&all, |(state, Choice { placement, next })| {
        let decisions = state.decisions.and(&state.partial, next);
        let mut found = State::new(next.clone(), decisions, Some(state), costs);
        found.advantage = state.advantage * leaning.factor(*placement);
        found
    })
}

/// A partial schedule with its cost.
struct State<'a> {
    partial: PartialSchedule<'a>,
    decisions: Decisions,
    /// The predicted seconds of each nest, and of all together.
    costs: Vec<NestCost>,
    seconds: f64,
    /// The size of the nests that had to be lowered for this state.
    effort: usize,
    /// The product of the factors that a pass gives to the places of this state.
    advantage: f64,
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
        let (costs, effort) = costs.of_nests(&partial, before);
        let seconds = costs.iter().map(|own| own.seconds).sum();
        State { partial, decisions, costs, seconds, effort, advantage: 1.0 }
    }

    /// The seconds by which the states of a pass compete.
    fn rank(&self) -> f64 {
        self.seconds * self.advantage
    }
}
