//! One search of a comparison. It asks the strategy for points, judges them, and reports costs that
//! the landscape provides.

use std::collections::HashSet;
use std::time::Instant;

use tilewright_search::knob::Point;
use tilewright_search::strategy::{self, Features, Start, Strategy};

use super::found::{Best, Contender, Search};
use super::landscape::Known;
use super::{Arena, Beginning, Budget, CompareError, Contest};
use crate::tune::{Candidate, Candidates, Judged, MOST_IN_VAIN};

/// A schedule contends for the best if this factor times its time is below the best time. It may
/// turn out to be better when it is measured again.
const CONTENDS: f64 = 0.8;

/// A running search.
pub(super) struct Searching<'s, 'p> {
    arena: &'s Arena<'p>,
    budget: Budget,
    strategy: Box<dyn Strategy + 's>,
    candidates: Candidates<'p>,
    search: Search,
    /// The schedules that this search has measured, or would have without the recorded costs.
    tried: HashSet<String>,
    /// The points whose costs the search waits for, and the number of consecutive useless batches.
    asked: Option<Asked>,
    in_vain: usize,
}

/// Points whose costs are not known yet.
struct Asked {
    points: Vec<Point>,
    judged: Vec<Judged>,
    /// The schedules among them that are to be measured.
    fresh: Vec<String>,
}

impl<'s, 'p> Searching<'s, 'p> {
    /// Begins a search. A search that is not blind knows the default schedule.
    pub fn begin(
        arena: &'s Arena<'p>,
        contest: &Contest,
        beginning: &Beginning<'p>,
        features: &'s dyn Features,
        (name, seed): (&str, u64),
    ) -> Result<Searching<'s, 'p>, CompareError> {
        let begun = Instant::now();
        let start = Start {
            seed,
            points: beginning.points.clone(),
            // The searches of the papers see the results of a few points before they propose
            // others, however many cores are idle.
            together: if contest.is_blind() { 1 } else { arena.machine_parameters.together },
            features: contest.sees_nests.then_some(features),
            experience: arena.experience,
        };
        // A strategy that learns from other programs does so here.
        let strategy = strategy::by_name(name, arena.space.knobs(), start)?;
        let thinking = begun.elapsed().as_secs_f64();
        let mut searching = Searching {
            arena,
            budget: contest.budget,
            strategy,
            candidates: beginning.candidates.clone(),
            search: Search { seed, seconds: beginning.seconds + thinking, thinking, ..Search::default() },
            tried: HashSet::new(),
            asked: None,
            in_vain: 0,
        };
        if let Some((schedule, known)) = &beginning.default {
            searching.notice(schedule, *known);
        }
        Ok(searching)
    }

    /// The schedules whose costs the search needs next, or `None` when the budget is spent or no
    /// points are left.
    pub fn ask(&mut self) -> Option<&[String]> {
        if self.part() >= 1.0 || self.in_vain >= MOST_IN_VAIN {
            return None;
        }
        let points = self.thinking(|strategy, most| strategy.ask(most));
        if points.is_empty() {
            return None;
        }
        self.search.proposals += points.len();
        let begun = Instant::now();
        let judged = self.candidates.judge(&points);
        self.search.seconds += begun.elapsed().as_secs_f64();
        let fresh = self.fresh(&judged);
        Some(&self.asked.insert(Asked { points, judged, fresh }).fresh)
    }

    /// Reports the costs of the requested schedules, in their order.
    pub fn tell(&mut self, known: &[Known]) {
        let Some(Asked { points, judged, fresh }) = self.asked.take() else { return };
        for (schedule, known) in fresh.iter().zip(known) {
            if self.is_late(known.took) {
                break;
            }
            self.search.trials += 1;
            self.notice(schedule, *known);
        }
        let told = self.candidates.told(points, &judged);
        self.in_vain = if told.iter().any(|told| told.cost.is_some()) { 0 } else { self.in_vain + 1 };
        self.thinking(|strategy, _| strategy.tell(&told));
    }

    /// Ends the search and returns its result.
    pub fn end(self) -> Search {
        self.search
    }

    /// Records the cost of a schedule.
    fn notice(&mut self, schedule: &str, known: Known) {
        self.search.seconds += known.took;
        self.candidates.tried(schedule, known.seconds);
        let Some(seconds) = known.seconds else { return };
        let best = self.best().unwrap_or(f64::INFINITY);
        let (trial, after) = (self.search.trials, self.search.seconds);
        if seconds < best {
            self.search.bests.push(Best { trial, after, seconds });
        }
        if seconds * CONTENDS < best {
            self.search.contenders.push(Contender { trial, after, schedule: schedule.to_owned() });
        }
    }

    /// Calls the strategy and adds the time that it takes. `work` gets the largest number of points
    /// to propose.
    fn thinking<T>(&mut self, work: impl FnOnce(&mut dyn Strategy, usize) -> T) -> T {
        let most = self.most_proposals();
        let begun = Instant::now();
        let made = work(self.strategy.as_mut(), most);
        let took = begun.elapsed().as_secs_f64();
        self.search.thinking += took;
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
    pub fn part(&self) -> f64 {
        let part = |used: f64, of: f64| if of > 0.0 { used / of } else { 1.0 };
        let trials = self.budget.trials.map(|most| part(self.search.trials as f64, most as f64));
        let time = self.budget.time.map(|most| part(self.search.seconds, most.as_secs_f64()));
        let share = self.allowed_proposals().map(|most| part(self.search.proposals as f64, most as f64));
        [trials, time, share].into_iter().flatten().fold(0.0, f64::max)
    }

    /// Returns true if the budget has no time for a candidate that takes `took` seconds. Then the
    /// rest of the budget counts as spent.
    fn is_late(&mut self, took: f64) -> bool {
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
    fn fresh(&mut self, judged: &[Judged]) -> Vec<String> {
        let most = self.trials_left();
        let mut fresh = Vec::new();
        for judged in judged {
            if let Judged::Worth(Candidate { schedule, .. }) = judged
                && fresh.len() < most
                && !self.candidates.knows(schedule)
                && self.tried.insert(schedule.clone())
            {
                fresh.push(schedule.clone());
            }
        }
        fresh
    }
}
