//! One search of a comparison: ask, judge, look up or measure, tell.

use std::collections::HashSet;
use std::time::Instant;

use tilewright_search::knob::Point;
use tilewright_search::strategy::{self, Features, Start, Told};

use super::found::{Best, Search};
use super::landscape::Landscape;
use super::{Arena, Beginning, Budget, CompareError, Contest, Observer};
use crate::tune::{Candidate, Candidates, Judged, MOST_IN_VAIN, Stop};

/// A search that goes on.
pub(super) struct Searching<'s, 'p, 'm> {
    arena: &'s Arena<'p>,
    budget: Budget,
    landscape: &'s mut Landscape<'m>,
    candidates: Candidates<'p>,
    starts: Vec<Point>,
    is_blind: bool,
    /// Points that are tried together, at least.
    together: usize,
    sees_nests: bool,
    stop: &'s Stop,
    search: Search,
    /// Schedules that it has measured, or would have.
    tried: HashSet<String>,
}

impl<'s, 'p, 'm> Searching<'s, 'p, 'm> {
    pub fn new(
        arena: &'s Arena<'p>,
        contest: &Contest,
        landscape: &'s mut Landscape<'m>,
        beginning: &Beginning<'p>,
        stop: &'s Stop,
    ) -> Searching<'s, 'p, 'm> {
        Searching {
            arena,
            budget: contest.budget,
            landscape,
            candidates: beginning.candidates.clone(),
            starts: beginning.points.clone(),
            is_blind: contest.is_blind(),
            // The papers' searches see what became of a few points before they choose others, however many cores wait.
            together: if contest.is_blind() { 1 } else { arena.habits.together },
            sees_nests: contest.sees_nests,
            stop,
            search: Search { seconds: beginning.seconds, ..Search::default() },
            tried: HashSet::new(),
        }
    }

    /// Searches until the budget is used up, or nothing is left.
    pub fn run(mut self, name: &str, seed: u64, observer: &mut dyn Observer) -> Result<Search, CompareError> {
        self.search.seed = seed;
        if !self.is_blind {
            self.begin();
        }
        let features = self.arena.lessons.of_points(self.arena.space);
        let start = Start {
            seed,
            points: std::mem::take(&mut self.starts),
            together: self.together,
            features: self.sees_nests.then_some(&features as &dyn Features),
            experience: self.arena.experience,
        };
        let knobs = self.arena.space.knobs();
        // One that learns from other programs does so here.
        let mut strategy = self.thinking(|_| strategy::by_name(name, knobs, start))?;
        let mut in_vain = 0;
        while self.part() < 1.0 && in_vain < MOST_IN_VAIN {
            if self.stop.is_asked() {
                return Err(CompareError::Stopped);
            }
            let points = self.thinking(|most| strategy.ask(most));
            if points.is_empty() {
                break;
            }
            let told = self.try_points(points)?;
            in_vain = if told.iter().any(|told| told.cost.is_some()) { 0 } else { in_vain + 1 };
            self.thinking(|_| strategy.tell(&told));
            observer.goes_on(self.part().min(1.0), self.best());
        }
        Ok(self.search)
    }

    /// The default schedule is known to every search that is not blind.
    fn begin(&mut self) {
        let (schedule, known) = self.landscape.default();
        self.candidates.tried(schedule, known.seconds);
        self.search.seconds += known.took;
        if let Some(seconds) = known.seconds {
            self.search.bests.push(Best { trial: 0, after: self.search.seconds, seconds });
        }
    }

    /// What the strategy itself does, which is timed. It may propose as many points as given.
    fn thinking<T>(&mut self, work: impl FnOnce(usize) -> T) -> T {
        let most = self.most_proposals();
        let begun = Instant::now();
        let made = work(most);
        let took = begun.elapsed().as_secs_f64();
        self.search.thinking += took;
        self.search.seconds += took;
        made
    }

    fn most_proposals(&self) -> usize {
        let left = self.allowed_proposals().map_or(usize::MAX, |most| most - self.search.proposals.min(most));
        self.arena.habits.batch.min(left)
    }

    fn allowed_proposals(&self) -> Option<usize> {
        let size = self.arena.space.knobs().size() as f64;
        self.budget.share.map(|share| (share * size).ceil() as usize)
    }

    fn trials_left(&self) -> usize {
        self.budget.trials.map_or(usize::MAX, |trials| trials - self.search.trials.min(trials))
    }

    /// How much of the budget is used up, 1 being all.
    fn part(&self) -> f64 {
        let part = |used: f64, of: f64| if of > 0.0 { used / of } else { 1.0 };
        let trials = self.budget.trials.map(|most| part(self.search.trials as f64, most as f64));
        let time = self.budget.time.map(|most| part(self.search.seconds, most.as_secs_f64()));
        let share = self.allowed_proposals().map(|most| part(self.search.proposals as f64, most as f64));
        [trials, time, share].into_iter().flatten().fold(0.0, f64::max)
    }

    /// Whether there is no time for a candidate that takes so many seconds. Then there is none for others either.
    fn is_late(&mut self, took: f64) -> bool {
        let late = self.budget.time.is_some_and(|time| self.search.seconds + took > time.as_secs_f64());
        if late {
            self.search.seconds = self.search.seconds.max(self.budget.time.unwrap_or_default().as_secs_f64());
        }
        late
    }

    fn best(&self) -> Option<f64> {
        self.search.bests.last().map(|best| best.seconds)
    }

    /// What becomes of points. Those that are worth it are looked up or measured, as many as there are trials left.
    fn try_points(&mut self, points: Vec<Point>) -> Result<Vec<Told>, CompareError> {
        self.search.proposals += points.len();
        let begun = Instant::now();
        let judged = self.candidates.judge(&points);
        self.search.seconds += begun.elapsed().as_secs_f64();
        let fresh = self.fresh(&judged);
        let known = self.landscape.costs(&fresh, &self.arena.habits)?;
        for (schedule, known) in fresh.iter().zip(known) {
            if self.is_late(known.took) {
                break;
            }
            self.search.trials += 1;
            self.search.seconds += known.took;
            self.candidates.tried(schedule, known.seconds);
            if let Some(seconds) = known.seconds
                && self.best().is_none_or(|best| seconds < best)
            {
                let (trial, after) = (self.search.trials, self.search.seconds);
                self.search.bests.push(Best { trial, after, seconds });
            }
        }
        Ok(self.candidates.told(points, &judged))
    }

    /// Schedules that this search has not tried.
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
