//! Selects the points that are worth measuring, and keeps the known costs of schedules.

use std::collections::{HashMap, HashSet};

use tilewright_schedule::{apply, default_schedule, effort, text};
use tilewright_search::knob::Point;
use tilewright_search::space::{Rejection, Rejections, Space};
use tilewright_search::strategy::{self, Start, TrialResult};

use super::machine_parameters::MachineParameters;
use crate::parallel;
use crate::schedule_features::ScheduleFeatures;
use crate::worker::Lost;

/// The number of points that the cost model ranks before anything is measured.
const LOOKED_AT: usize = 512;
/// The number of points that are ranked at a time, on all cores.
const TOGETHER: usize = 16;
/// The usual number of ranked points that the search starts from.
pub const STARTS: usize = 24;
/// A candidate is not tried if its predicted time is more than this many times the best predicted
/// one.
const TOO_SLOW: f64 = 3.0;
/// The limit without a cost model: no candidate is too slow.
const NEVER: f64 = f64::INFINITY;

/// The judgement of a point.
#[derive(Clone, Debug)]
pub(crate) enum Judged {
    /// The candidate is to be measured.
    Worth(Candidate),
    /// The point is not measured.
    Rejected,
}

/// A schedule that may be worth measuring.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub schedule: String,
    /// The predicted time, in seconds.
    expected: f64,
    /// The effort to compile the candidate, in comparison with others.
    pub effort: u64,
    /// The features for cost models.
    features: Vec<f32>,
}

/// The candidate of a point, or `None` if the point was refused.
type Look = Option<Candidate>;

/// The schedules that were tried, and the cost model that judges others.
#[derive(Clone)]
pub(crate) struct Candidates<'p> {
    schedule_features: ScheduleFeatures<'p>,
    space: &'p Space<'p>,
    /// The time of every schedule that was tried, in seconds; `None` if it failed.
    known: HashMap<String, Option<f64>>,
    /// The schedules whose cost the strategy knows.
    told: HashSet<String>,
    /// The features of the schedules that were worth trying, for cost models.
    features: HashMap<String, Vec<f32>>,
    /// The reasons for which points were refused before compilation, with counts.
    pub rejections: Rejections,
    /// The number of points that the cost model refused as too slow.
    pub too_slow: usize,
    /// The best predicted time so far, in seconds.
    expected: f64,
    /// The multiple of that time above which a candidate is too slow.
    limit: f64,
    /// The largest effort to compile a candidate.
    most_effort: u64,
}

impl<'p> Candidates<'p> {
    pub fn new(schedule_features: &ScheduleFeatures<'p>, space: &'p Space<'p>) -> Candidates<'p> {
        Candidates {
            schedule_features: schedule_features.clone(),
            space,
            known: HashMap::new(),
            told: HashSet::new(),
            features: HashMap::new(),
            rejections: Rejections::new(),
            too_slow: 0,
            expected: f64::INFINITY,
            limit: TOO_SLOW,
            most_effort: MachineParameters::on(schedule_features.target).most_effort,
        }
    }

    /// The same candidates, none of which the cost model refuses as too slow.
    pub fn without_model(self) -> Candidates<'p> {
        Candidates { limit: NEVER, ..self }
    }

    /// The text of the default schedule.
    pub fn default_schedule(&self) -> String {
        default_schedule(self.schedule_features.program, self.schedule_features.target).to_string()
    }

    /// Returns true if a schedule was tried.
    pub fn knows(&self, schedule: &str) -> bool {
        self.known.contains_key(schedule)
    }

    /// The time of a schedule that was tried and works, in seconds.
    pub fn cost(&self, schedule: &str) -> Option<f64> {
        self.known.get(schedule).copied().flatten()
    }

    /// The features of a schedule for cost models; empty if it was not worth trying.
    pub fn features(&self, schedule: &str) -> &[f32] {
        self.features.get(schedule).map_or(&[], Vec::as_slice)
    }

    /// The costs of points for the strategy. Each schedule reports its cost only once. Where knobs
    /// make no difference, a search would otherwise wander among equivalent points of equal cost.
    pub fn told(&mut self, points: Vec<Point>, judged: &[Judged]) -> Vec<TrialResult> {
        let mut cost = |judged: &Judged| match judged {
            Judged::Worth(own) if self.knows(&own.schedule) && self.told.insert(own.schedule.clone()) => {
                self.cost(&own.schedule)
            }
            Judged::Worth(_) | Judged::Rejected => None,
        };
        points
            .into_iter()
            .zip(judged)
            .map(|(point, judged)| TrialResult { point, cost: cost(judged) })
            .collect()
    }

    /// Records the time of a schedule that was tried.
    pub fn tried(&mut self, schedule: &str, seconds: Option<f64>) {
        self.known.insert(schedule.to_owned(), seconds);
    }

    /// Checks whether a schedule from elsewhere can be used here. Counts a refusal.
    pub fn accepts(&mut self, schedule: &str) -> bool {
        let parsed = text::parse(schedule);
        match apply(self.schedule_features.program, &parsed.schedule, self.schedule_features.target) {
            Ok(nest) => {
                self.features.insert(schedule.to_owned(), self.schedule_features.of_nest(&nest).1);
                !parsed.has_errors()
            }
            Err(refusal) => {
                *self.rejections.entry(Rejection::from(&refusal.reason)).or_default() += 1;
                false
            }
        }
    }

    /// Judges which points should be measured.
    pub fn judge(&mut self, points: &[Point]) -> Vec<Judged> {
        let looks = self.look(points);
        looks.into_iter().map(|look| self.judged(look)).collect()
    }

    fn judged(&mut self, look: Look) -> Judged {
        match look {
            Some(own) if own.expected > self.limit * self.expected => {
                self.too_slow += 1;
                Judged::Rejected
            }
            Some(own) => {
                self.expected = self.expected.min(own.expected);
                self.features.insert(own.schedule.clone(), own.features.clone());
                Judged::Worth(own)
            }
            None => Judged::Rejected,
        }
    }

    /// The schedules of points, without the refused ones.
    pub fn schedules(&mut self, points: &[Point]) -> Vec<String> {
        self.look(points).into_iter().flatten().map(|own| own.schedule).collect()
    }

    /// The candidates of points. Counts refusals.
    fn look(&mut self, points: &[Point]) -> Vec<Look> {
        let found = parallel::map(points, |point| self.expectation(point));
        let counted = found.into_iter().map(|look| match look {
            Ok(look) => Some(look),
            Err(rejection) => {
                *self.rejections.entry(rejection).or_default() += 1;
                None
            }
        });
        counted.collect()
    }

    fn expectation(&self, point: &Point) -> Result<Candidate, Rejection> {
        let schedule = self.space.decode(point)?;
        let ScheduleFeatures { program, target, .. } = self.schedule_features;
        let nest = apply(program, &schedule, target).map_err(|refusal| Rejection::from(&refusal.reason))?;
        let effort = effort(&nest, target);
        if effort > self.most_effort {
            return Err(Rejection::CodeSize);
        }
        let (expected, features) = self.schedule_features.of_nest(&nest);
        Ok(Candidate { schedule: schedule.to_string(), expected, effort, features })
    }

    /// The points that the cost model prefers, from different regions of the space. From each
    /// starting point of the space, a greedy search runs with the cost model in place of the
    /// machine, until `over`. The starting point itself is at least second in its region, whatever
    /// its predicted time.
    pub fn ranked(
        &mut self,
        seed: u64,
        over: &mut dyn FnMut() -> Result<bool, Lost>,
    ) -> Result<Vec<Point>, Lost> {
        let beginnings = self.space.beginnings();
        let share = LOOKED_AT / beginnings.len().max(1);
        let mut corners: Vec<Vec<(f64, Point)>> = Vec::new();
        for beginning in beginnings {
            let start = Start { seed, points: vec![beginning.clone()], ..Start::default() };
            let mut corner = self.corner(start, share, over)?;
            if let Some(at) = corner.iter().position(|(_, point)| *point == beginning).filter(|at| *at > 1) {
                corner[1..=at].rotate_right(1);
            }
            corners.push(corner);
        }
        corners.retain(|corner| !corner.is_empty());
        corners.sort_by(|left, right| left[0].0.total_cmp(&right[0].0));
        self.expected = corners.first().map_or(f64::INFINITY, |corner| corner[0].0);
        // The best of each region come first, then the second best, and so on.
        let places = 0..STARTS;
        let in_turn = places.flat_map(|place| corners.iter().filter_map(move |corner| corner.get(place)));
        let worth = in_turn.filter(|(expected, _)| *expected <= TOO_SLOW * self.expected);
        Ok(worth.take(STARTS).map(|(_, point)| point.clone()).collect())
    }

    /// The predicted times of points around a starting point, best first.
    fn corner(
        &mut self,
        start: Start,
        most: usize,
        over: &mut dyn FnMut() -> Result<bool, Lost>,
    ) -> Result<Vec<(f64, Point)>, Lost> {
        let Ok(mut search) = strategy::by_name("gbfs", self.space.knobs(), start) else {
            return Ok(Vec::new());
        };
        let mut liked: Vec<(f64, Point)> = Vec::new();
        let mut looked_at = 0;
        while looked_at < most && !over()? {
            let points = search.ask(TOGETHER);
            if points.is_empty() {
                break;
            }
            looked_at += points.len();
            let mut told = Vec::new();
            let looks = self.look(&points);
            for (point, look) in points.into_iter().zip(looks) {
                let cost = look.map(|own| own.expected);
                liked.extend(cost.map(|cost| (cost, point.clone())));
                told.push(TrialResult { point, cost });
            }
            search.tell(&told);
        }
        liked.sort_by(|left, right| left.0.total_cmp(&right.0));
        Ok(liked)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use tilewright_target::{Cpu, Vectors};

    use super::*;

    #[test]
    fn a_schedule_has_its_cost_once() {
        let source = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) }";
        let sizes = [("M", 16), ("K", 1), ("N", 16)].into_iter().collect();
        let program =
            tilewright_syntax::check(&tilewright_syntax::parse(source).ast, "mm", &sizes).program.unwrap();
        let cpu = Cpu { cores: 2, vectors: Vectors::Avx2, caches: vec![32 << 10, 1 << 20] };
        let space = Space::new(&program, &cpu);
        let first = space.initial();
        let schedule = space.decode(&first).unwrap();
        let stands_for_it = |point: &Point| space.decode(point).is_ok_and(|own| own == schedule);
        let other = space.knobs().neighbours(&first).into_iter().find(stands_for_it).unwrap();
        let mut candidates = Candidates::new(&ScheduleFeatures::new(&program, &cpu), &space);
        let points = vec![first, other];
        let judged = candidates.judge(&points);
        candidates.tried(&schedule.to_string(), Some(0.5));
        let costs: Vec<Option<f64>> =
            candidates.told(points, &judged).into_iter().map(|told| told.cost).collect();
        assert_eq!(costs, [Some(0.5), None]);
    }
}
