//! Runs one search of a comparison ([`RunningSearch`]): asks the strategy for points, decides
//! which of them to measure, and reports to the strategy the costs that the landscape provides.

use std::collections::HashSet;
use std::time::Instant;

use tilewright_schedule::Schedule;
use tilewright_search::knob::Point;
use tilewright_search::strategy::{self, Features, Start, Strategy};

use super::landscape::KnownCost;
use super::results::{Contender, Improvement, SearchResult};
use super::{Budget, CompareError, ComparedProgram, ComparisonOptions, SearchStart};
use crate::tune::{Candidate, Candidates, Judgement, MOST_USELESS_BATCHES};

/// A schedule contends for the best if this factor times its time is below the best time. It may
/// turn out to be better when it is measured again.
const CONTENDER_FACTOR: f64 = 0.8;

/// A running search.
pub(super) struct RunningSearch<'s, 'p> {
    arena: &'s ComparedProgram<'p>,
    budget: Budget,
    strategy: Box<dyn Strategy + 's>,
    candidates: Candidates<'p>,
    search: SearchResult,
    /// The schedules that this search has measured, or would have without the recorded costs.
    tried: HashSet<String>,
    /// The points whose costs the search waits for, and the number of consecutive useless batches.
    pending: Option<PendingPoints>,
    useless_batches: usize,
}

/// The candidates that a strategy has proposed.
enum Proposed {
    Points(Vec<Point>),
    Schedules(Vec<Schedule>),
}

/// Points or schedules whose costs are not known yet.
struct PendingPoints {
    proposed: Proposed,
    judged: Vec<Judgement>,
    /// The schedules among them that are to be measured.
    untried: Vec<String>,
}

impl<'s, 'p> RunningSearch<'s, 'p> {
    /// Begins a search. A search that is not blind knows the default schedule.
    pub fn start(
        arena: &'s ComparedProgram<'p>,
        contest: &ComparisonOptions,
        beginning: &SearchStart<'p>,
        features: &'s dyn Features,
        (name, seed): (&str, u64),
    ) -> Result<RunningSearch<'s, 'p>, CompareError> {
        let begun = Instant::now();
        let start = Start {
            seed,
            points: beginning.points.clone(),
            // The searches of the papers see the results of a few points before they propose
            // others, however many cores are idle.
            parallel_trials: if contest.is_blind() { 1 } else { arena.machine_parameters.least_proposals },
            features: contest.uses_nest_features.then_some(features),
            experience: arena.experience,
            program: Some((arena.schedule_features.program, arena.schedule_features.target)),
        };
        // A strategy that learns from other programs does so here.
        let strategy = strategy::by_name(name, arena.space.knobs(), start)?;
        let thinking = begun.elapsed().as_secs_f64();
        let mut searching = RunningSearch {
            arena,
            budget: contest.budget,
            strategy,
            candidates: beginning.candidates.clone(),
            search: SearchResult {
                seed,
                seconds: beginning.seconds + thinking,
                strategy_seconds: thinking,
                ..SearchResult::default()
            },
            tried: HashSet::new(),
            pending: None,
            useless_batches: 0,
        };
        if let Some((schedule, known)) = &beginning.default {
            searching.record_cost(schedule, *known);
        }
        Ok(searching)
    }

    /// The schedules whose costs the search needs next, or `None` when the budget is spent or no
    /// points are left.
    pub fn ask(&mut self) -> Option<&[String]> {
        if self.used_share() >= 1.0 || self.useless_batches >= MOST_USELESS_BATCHES {
            return None;
        }
        let points = self.call_strategy(|strategy, most| strategy.propose(most));
        let proposed = match points.is_empty() {
            false => Proposed::Points(points),
            true => {
                Proposed::Schedules(self.call_strategy(|strategy, most| strategy.propose_schedules(most)))
            }
        };
        let begun = Instant::now();
        let judged = match &proposed {
            Proposed::Points(points) => self.candidates.judge(points),
            Proposed::Schedules(schedules) => self.candidates.judge_schedules(schedules),
        };
        if judged.is_empty() {
            return None;
        }
        self.search.proposals += judged.len();
        self.search.seconds += begun.elapsed().as_secs_f64();
        let fresh = self.untried_schedules(&judged);
        Some(&self.pending.insert(PendingPoints { proposed, judged, untried: fresh }).untried)
    }

    /// Reports the costs of the requested schedules, in their order.
    pub fn tell(&mut self, known: &[KnownCost]) {
        let Some(PendingPoints { proposed, judged, untried: fresh }) = self.pending.take() else { return };
        for (schedule, known) in fresh.iter().zip(known) {
            if self.exhausts_time(known.trial_seconds) {
                break;
            }
            self.search.trials += 1;
            self.record_cost(schedule, *known);
        }
        let is_useful = match proposed {
            Proposed::Points(points) => {
                let told = self.candidates.costs_for_strategy(points, &judged);
                self.call_strategy(|strategy, _| strategy.report(&told));
                told.iter().any(|told| told.cost.is_some())
            }
            Proposed::Schedules(schedules) => {
                let told = self.candidates.times_for_strategy(schedules);
                self.call_strategy(|strategy, _| strategy.report_schedules(&told));
                told.iter().any(|(_, seconds)| seconds.is_some())
            }
        };
        self.useless_batches = if is_useful { 0 } else { self.useless_batches + 1 };
    }

    /// Ends the search and returns its result.
    pub fn end(self) -> SearchResult {
        self.search
    }

    /// Records the cost of a schedule.
    fn record_cost(&mut self, schedule: &str, known: KnownCost) {
        self.search.seconds += known.trial_seconds;
        self.candidates.record_time(schedule, known.seconds);
        let Some(seconds) = known.seconds else { return };
        let best = self.best().unwrap_or(f64::INFINITY);
        let (trial, after) = (self.search.trials, self.search.seconds);
        if seconds < best {
            self.search.bests.push(Improvement { trial, after, seconds });
        }
        if seconds * CONTENDER_FACTOR < best {
            self.search.contenders.push(Contender { trial, after, schedule: schedule.to_owned() });
        }
    }

    /// Calls the strategy and adds the time that it takes. `work` gets the largest number of points
    /// to propose.
    fn call_strategy<T>(&mut self, work: impl FnOnce(&mut dyn Strategy, usize) -> T) -> T {
        let most = self.most_proposals();
        let begun = Instant::now();
        let made = work(self.strategy.as_mut(), most);
        let took = begun.elapsed().as_secs_f64();
        self.search.strategy_seconds += took;
        self.search.seconds += took;
        made
    }

    fn most_proposals(&self) -> usize {
        let left = self.allowed_proposals().map_or(usize::MAX, |most| most - self.search.proposals.min(most));
        self.arena.machine_parameters.batch.min(left)
    }

    fn allowed_proposals(&self) -> Option<usize> {
        let size = self.arena.space.knobs().size() as f64;
        self.budget.share.map(|share| (share * size).ceil() as usize)
    }

    fn trials_left(&self) -> usize {
        self.budget.trials.map_or(usize::MAX, |trials| trials - self.search.trials.min(trials))
    }

    /// The used share of the budget, 1 being all of it.
    pub fn used_share(&self) -> f64 {
        let part = |used: f64, of: f64| if of > 0.0 { used / of } else { 1.0 };
        let trials = self.budget.trials.map(|most| part(self.search.trials as f64, most as f64));
        let time = self.budget.time.map(|most| part(self.search.seconds, most.as_secs_f64()));
        let share = self.allowed_proposals().map(|most| part(self.search.proposals as f64, most as f64));
        [trials, time, share].into_iter().flatten().fold(0.0, f64::max)
    }

    /// Returns true if the budget has no time for a candidate that takes `took` seconds. Then the
    /// rest of the budget counts as spent.
    fn exhausts_time(&mut self, took: f64) -> bool {
        let late = self.budget.time.is_some_and(|time| self.search.seconds + took > time.as_secs_f64());
        if late {
            self.search.seconds = self.search.seconds.max(self.budget.time.unwrap_or_default().as_secs_f64());
        }
        late
    }

    /// The time of one call of the best candidate so far, in seconds.
    pub fn best(&self) -> Option<f64> {
        self.search.bests.last().map(|best| best.seconds)
    }

    /// The schedules that this search has not tried yet.
    fn untried_schedules(&mut self, judged: &[Judgement]) -> Vec<String> {
        let most = self.trials_left();
        let mut fresh = Vec::new();
        for judged in judged {
            if let Judgement::Measure(Candidate { schedule, .. }) = judged
                && fresh.len() < most
                && !self.candidates.was_tried(schedule)
                && self.tried.insert(schedule.clone())
            {
                fresh.push(schedule.clone());
            }
        }
        fresh
    }
}
