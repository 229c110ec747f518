//! Selects the points of the space that are worth measuring, and keeps the known costs of their
//! schedules ([`Candidates`]).

use std::collections::{HashMap, HashSet};

use tilewright_schedule::{Schedule, apply, compilation_effort, text};
use tilewright_search::beam::{self, BeamOptions};
use tilewright_search::default_schedule;
use tilewright_search::kind::cost_model;
use tilewright_search::knob::Point;
use tilewright_search::space::{Rejection, Rejections, Space};
use tilewright_search::strategy::{self, Start, TrialResult};

use super::machine_parameters::MachineParameters;
use crate::parallel;
use crate::schedule_features::ScheduleFeatures;
use crate::worker::WorkerError;

/// The number of points that the cost model ranks before anything is measured.
const RANKED_POINTS: usize = 512;
/// The number of points that are ranked at a time, on all cores.
const RANKING_BATCH: usize = 16;
/// The usual number of ranked points that the search starts from.
pub const DEFAULT_STARTS: usize = 24;
/// A candidate is not tried if its predicted time is more than this many times the best predicted
/// one.
const TOO_SLOW_FACTOR: f64 = 3.0;
/// The limit without a cost model: no candidate is too slow.
const NO_LIMIT: f64 = f64::INFINITY;

/// The judgement of a point.
#[derive(Clone, Debug)]
pub(crate) enum Judgement {
    /// The candidate is to be measured.
    Measure(Candidate),
    /// The point is not measured.
    Rejected,
}

/// A schedule that may be worth measuring.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub schedule: String,
    /// The predicted time, in seconds.
    predicted_seconds: f64,
    /// The effort to compile the candidate, in comparison with others.
    pub effort: u64,
    /// The features for cost models.
    features: Vec<f32>,
}

/// The candidate of a point, or `None` if the point was refused.
type AcceptedCandidate = Option<Candidate>;

/// The schedules that were tried, and the cost model that judges others.
#[derive(Clone)]
pub(crate) struct Candidates<'p> {
    schedule_features: ScheduleFeatures<'p>,
    space: &'p Space<'p>,
    /// The time of every schedule that was tried, in seconds; `None` if it failed.
    times: HashMap<String, Option<f64>>,
    /// The schedules whose cost the strategy knows.
    reported: HashSet<String>,
    /// The features of the schedules that were worth trying, for cost models.
    features: HashMap<String, Vec<f32>>,
    /// The reasons for which points were refused before compilation, with counts.
    pub rejections: Rejections,
    /// The number of points that the cost model refused as too slow.
    pub too_slow: usize,
    /// The best predicted time so far, in seconds.
    best_predicted_seconds: f64,
    /// The multiple of that time above which a candidate is too slow.
    too_slow_factor: f64,
    /// The largest effort to compile a candidate.
    largest_compile_effort: u64,
}

impl<'p> Candidates<'p> {
    pub fn new(schedule_features: &ScheduleFeatures<'p>, space: &'p Space<'p>) -> Candidates<'p> {
        Candidates {
            schedule_features: schedule_features.clone(),
            space,
            times: HashMap::new(),
            reported: HashSet::new(),
            features: HashMap::new(),
            rejections: Rejections::new(),
            too_slow: 0,
            best_predicted_seconds: f64::INFINITY,
            too_slow_factor: TOO_SLOW_FACTOR,
            largest_compile_effort: MachineParameters::for_target(schedule_features.target)
                .largest_compile_effort,
        }
    }

    /// The same candidates, none of which the cost model refuses as too slow.
    pub fn without_slowness_limit(self) -> Candidates<'p> {
        Candidates { too_slow_factor: NO_LIMIT, ..self }
    }

    /// The text of the default schedule.
    pub fn default_schedule(&self) -> String {
        default_schedule(self.schedule_features.program, self.schedule_features.target).to_string()
    }

    /// The schedules that a beam search finds for a program of several stages, best first.
    pub fn beam_schedules(&self) -> Vec<String> {
        let ScheduleFeatures { program, target, .. } = self.schedule_features;
        if program.statements().len() < 2 {
            return Vec::new();
        }
        let found = beam::search(program, target, &*cost_model(target), &BeamOptions::ONE_SHOT);
        found.map_or_else(
            |_| Vec::new(),
            |found| found.ranked.iter().map(|(own, _)| own.to_string()).collect(),
        )
    }

    /// Returns true if a schedule was tried.
    pub fn was_tried(&self, schedule: &str) -> bool {
        self.times.contains_key(schedule)
    }

    /// The time of a schedule that was tried and works, in seconds.
    pub fn cost(&self, schedule: &str) -> Option<f64> {
        self.times.get(schedule).copied().flatten()
    }

    /// The features of a schedule for cost models; empty if it was not worth trying.
    pub fn features(&self, schedule: &str) -> &[f32] {
        self.features.get(schedule).map_or(&[], Vec::as_slice)
    }

    /// The costs of points for the strategy. Each schedule reports its cost only once. Where knobs
    /// make no difference, a search would otherwise wander among equivalent points of equal cost.
    pub fn costs_for_strategy(&mut self, points: Vec<Point>, judged: &[Judgement]) -> Vec<TrialResult> {
        let mut cost = |judged: &Judgement| match judged {
            Judgement::Measure(own)
                if self.was_tried(&own.schedule) && self.reported.insert(own.schedule.clone()) =>
            {
                self.cost(&own.schedule)
            }
            Judgement::Measure(_) | Judgement::Rejected => None,
        };
        points
            .into_iter()
            .zip(judged)
            .map(|(point, judged)| TrialResult { point, cost: cost(judged) })
            .collect()
    }

    /// The times of whole schedules, for the strategy.
    pub fn times_for_strategy(&self, schedules: Vec<Schedule>) -> Vec<(Schedule, Option<f64>)> {
        let with_time = |schedule: Schedule| {
            let seconds = self.cost(&schedule.to_string());
            (schedule, seconds)
        };
        schedules.into_iter().map(with_time).collect()
    }

    /// Records the time of a schedule that was tried.
    pub fn record_time(&mut self, schedule: &str, seconds: Option<f64>) {
        self.times.insert(schedule.to_owned(), seconds);
    }

    /// Checks whether a schedule from elsewhere can be used here. Counts a refusal.
    pub fn accepts(&mut self, schedule: &str) -> bool {
        let parsed = text::parse(schedule);
        match apply(self.schedule_features.program, &parsed.schedule, self.schedule_features.target) {
            Ok(nest) => {
                self.features.insert(schedule.to_owned(), self.schedule_features.estimate_nest(&nest).1);
                !parsed.has_errors()
            }
            Err(refusal) => {
                *self.rejections.entry(Rejection::from(&refusal.reason)).or_default() += 1;
                false
            }
        }
    }

    /// Judges which points should be measured.
    pub fn judge(&mut self, points: &[Point]) -> Vec<Judgement> {
        let looks = self.make_candidates(points);
        looks.into_iter().map(|look| self.judge_candidate(look)).collect()
    }

    /// Judges which whole schedules should be measured.
    pub fn judge_schedules(&mut self, schedules: &[Schedule]) -> Vec<Judgement> {
        let found = parallel::map(schedules, |schedule| self.candidate_of(schedule.clone()));
        let looks = self.count_rejections(found);
        looks.into_iter().map(|look| self.judge_candidate(look)).collect()
    }

    fn judge_candidate(&mut self, look: AcceptedCandidate) -> Judgement {
        match look {
            Some(own) if own.predicted_seconds > self.too_slow_factor * self.best_predicted_seconds => {
                self.too_slow += 1;
                Judgement::Rejected
            }
            Some(own) => {
                self.best_predicted_seconds = self.best_predicted_seconds.min(own.predicted_seconds);
                self.features.insert(own.schedule.clone(), own.features.clone());
                Judgement::Measure(own)
            }
            None => Judgement::Rejected,
        }
    }

    /// The schedules of points, without the refused ones.
    pub fn schedules(&mut self, points: &[Point]) -> Vec<String> {
        self.make_candidates(points).into_iter().flatten().map(|own| own.schedule).collect()
    }

    /// The candidates of points. Counts refusals.
    fn make_candidates(&mut self, points: &[Point]) -> Vec<AcceptedCandidate> {
        let found = parallel::map(points, |point| self.make_candidate(point));
        self.count_rejections(found)
    }

    fn count_rejections(&mut self, found: Vec<Result<Candidate, Rejection>>) -> Vec<AcceptedCandidate> {
        let counted = found.into_iter().map(|look| match look {
            Ok(look) => Some(look),
            Err(rejection) => {
                *self.rejections.entry(rejection).or_default() += 1;
                None
            }
        });
        counted.collect()
    }

    fn make_candidate(&self, point: &Point) -> Result<Candidate, Rejection> {
        self.candidate_of(self.space.decode(point)?)
    }

    fn candidate_of(&self, schedule: Schedule) -> Result<Candidate, Rejection> {
        let ScheduleFeatures { program, target, .. } = self.schedule_features;
        let nest = apply(program, &schedule, target).map_err(|refusal| Rejection::from(&refusal.reason))?;
        let effort = compilation_effort(&nest, target);
        if effort > self.largest_compile_effort {
            return Err(Rejection::CodeSize);
        }
        let (expected, features) = self.schedule_features.estimate_nest(&nest);
        Ok(Candidate { schedule: schedule.to_string(), predicted_seconds: expected, effort, features })
    }

    /// The points that the cost model prefers, from different regions of the space. From each
    /// starting point of the space, a greedy search runs with the cost model in place of the
    /// machine, until `must_end` holds. The starting point itself is at least second in its region,
    /// whatever its predicted time.
    pub fn rank_starts(
        &mut self,
        seed: u64,
        must_end: &mut dyn FnMut() -> Result<bool, WorkerError>,
    ) -> Result<Vec<Point>, WorkerError> {
        let beginnings = self.space.starting_points();
        let share = RANKED_POINTS / beginnings.len().max(1);
        let mut regions: Vec<Vec<(f64, Point)>> = Vec::new();
        for beginning in beginnings {
            let start = Start { seed, points: vec![beginning.clone()], ..Start::default() };
            let mut region = self.rank_region(start, share, must_end)?;
            if let Some(at) = region.iter().position(|(_, point)| *point == beginning).filter(|at| *at > 1) {
                region[1..=at].rotate_right(1);
            }
            regions.push(region);
        }
        regions.retain(|corner| !corner.is_empty());
        regions.sort_by(|left, right| left[0].0.total_cmp(&right[0].0));
        self.best_predicted_seconds = regions.first().map_or(f64::INFINITY, |corner| corner[0].0);
        // The best of each region come first, then the second best, and so on.
        let places = 0..DEFAULT_STARTS;
        let in_turn = places.flat_map(|place| regions.iter().filter_map(move |corner| corner.get(place)));
        let worth =
            in_turn.filter(|(expected, _)| *expected <= TOO_SLOW_FACTOR * self.best_predicted_seconds);
        Ok(worth.take(DEFAULT_STARTS).map(|(_, point)| point.clone()).collect())
    }

    /// The predicted times of points around a starting point, best first.
    fn rank_region(
        &mut self,
        start: Start,
        most: usize,
        must_end: &mut dyn FnMut() -> Result<bool, WorkerError>,
    ) -> Result<Vec<(f64, Point)>, WorkerError> {
        let Ok(mut search) = strategy::by_name("gbfs", self.space.knobs(), start) else {
            return Ok(Vec::new());
        };
        let mut ranked: Vec<(f64, Point)> = Vec::new();
        let mut ranked_count = 0;
        while ranked_count < most && !must_end()? {
            let points = search.propose(RANKING_BATCH);
            if points.is_empty() {
                break;
            }
            ranked_count += points.len();
            let mut told = Vec::new();
            let looks = self.make_candidates(&points);
            for (point, look) in points.into_iter().zip(looks) {
                let cost = look.map(|own| own.predicted_seconds);
                ranked.extend(cost.map(|cost| (cost, point.clone())));
                told.push(TrialResult { point, cost });
            }
            search.report(&told);
        }
        ranked.sort_by(|left, right| left.0.total_cmp(&right.0));
        Ok(ranked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use tilewright_target::{Cpu, VectorInstructions};

    use super::*;

    #[test]
    fn a_schedule_has_its_cost_once() {
        let source = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
        let sizes = [("M", 16), ("K", 1), ("N", 16)].into_iter().collect();
        let program =
            tilewright_syntax::check(&tilewright_syntax::parse(source).ast, "mm", &sizes).program.unwrap();
        let cpu = Cpu { cores: 2, vectors: VectorInstructions::Avx2, caches: vec![32 << 10, 1 << 20] };
        let space = Space::new(&program, &cpu);
        let first = space.initial_point();
        let schedule = space.decode(&first).unwrap();
        let stands_for_it = |point: &Point| space.decode(point).is_ok_and(|own| own == schedule);
        let other = space.knobs().neighbours(&first).into_iter().find(stands_for_it).unwrap();
        let mut candidates = Candidates::new(&ScheduleFeatures::new(&program, &cpu), &space);
        let points = vec![first, other];
        let judged = candidates.judge(&points);
        candidates.record_time(&schedule.to_string(), Some(0.5));
        let costs: Vec<Option<f64>> =
            candidates.costs_for_strategy(points, &judged).into_iter().map(|told| told.cost).collect();
        assert_eq!(costs, [Some(0.5), None]);
    }
}
