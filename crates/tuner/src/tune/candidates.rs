//! Which points are worth measuring, and what is known of those that were.

use std::collections::{HashMap, HashSet};

use tilewright_schedule::{apply, default_schedule, effort, text};
use tilewright_search::knob::Point;
use tilewright_search::space::{Rejection, Rejections, Space};
use tilewright_search::strategy::{self, Start, Told};
use tilewright_target::Target;

use crate::lessons::Lessons;
use crate::parallel;
use crate::worker::Lost;

/// Points that the cost model looks at before anything is measured.
const LOOKED_AT: usize = 512;
/// So many at a time, on all cores.
const TOGETHER: usize = 16;
/// Of these, so many are where the search usually starts.
pub const STARTS: usize = 24;
/// A candidate that should take so many times as long as the best known is not tried.
const TOO_SLOW: f64 = 3.0;
/// Where the model has no say, everything is.
const NEVER: f64 = f64::INFINITY;

/// The effort of compiling a candidate for a GPU, at most: others are waited for by all, for seconds each.
const MOST_EFFORT: u64 = 8000;

/// What is to be done with a point.
#[derive(Clone, Debug)]
pub(crate) enum Judged {
    /// It is to be measured.
    Worth(Candidate),
    /// Nothing.
    Rejected,
}

/// A schedule that may be worth measuring.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub schedule: String,
    /// The seconds that the model expects it to take.
    expected: f64,
    /// What compiling it takes, in comparison with others.
    pub effort: u64,
    /// What models learn from.
    features: Vec<f32>,
}

/// What a point stands for, unless it was refused.
type Look = Option<Candidate>;

/// The schedules that were tried, and the means to judge others.
#[derive(Clone)]
pub(crate) struct Candidates<'p> {
    lessons: Lessons<'p>,
    space: &'p Space<'p>,
    /// Seconds of everything that was tried; none for what failed.
    known: HashMap<String, Option<f64>>,
    /// Schedules that the strategy knows the cost of.
    told: HashSet<String>,
    /// What models learn from the schedules that were worth trying.
    features: HashMap<String, Vec<f32>>,
    /// Why points were refused before anything was compiled.
    pub rejections: Rejections,
    /// Points that the cost model has refused.
    pub too_slow: usize,
    /// The best time that the model expects of anything that was tried.
    expected: f64,
    /// How many times that is not worth trying.
    limit: f64,
}

impl<'p> Candidates<'p> {
    pub fn new(lessons: &Lessons<'p>, space: &'p Space<'p>) -> Candidates<'p> {
        Candidates {
            lessons: lessons.clone(),
            space,
            known: HashMap::new(),
            told: HashSet::new(),
            features: HashMap::new(),
            rejections: Rejections::new(),
            too_slow: 0,
            expected: f64::INFINITY,
            limit: TOO_SLOW,
        }
    }

    /// The same where nothing is refused for being slow by the model's estimate.
    pub fn without_model(self) -> Candidates<'p> {
        Candidates { limit: NEVER, ..self }
    }

    /// The text of the default schedule.
    pub fn default_schedule(&self) -> String {
        default_schedule(self.lessons.program, self.lessons.target).to_string()
    }

    /// Whether a schedule was tried.
    pub fn knows(&self, schedule: &str) -> bool {
        self.known.contains_key(schedule)
    }

    /// The seconds of a schedule that was tried.
    pub fn cost(&self, schedule: &str) -> Option<f64> {
        self.known.get(schedule).copied().flatten()
    }

    /// What models learn from a schedule; nothing where it was not worth trying.
    pub fn features(&self, schedule: &str) -> &[f32] {
        self.features.get(schedule).map_or(&[], Vec::as_slice)
    }

    /// What became of points, for the strategy. A schedule has its cost only once: where knobs make no difference, searches
    /// would go round among points that are all the same, and all equally good.
    pub fn told(&mut self, points: Vec<Point>, judged: &[Judged]) -> Vec<Told> {
        let mut cost = |judged: &Judged| match judged {
            Judged::Worth(own) if self.knows(&own.schedule) && self.told.insert(own.schedule.clone()) => {
                self.cost(&own.schedule)
            }
            Judged::Worth(_) | Judged::Rejected => None,
        };
        points.into_iter().zip(judged).map(|(point, judged)| Told { point, cost: cost(judged) }).collect()
    }

    /// Notes what became of a schedule.
    pub fn tried(&mut self, schedule: &str, seconds: Option<f64>) {
        self.known.insert(schedule.to_owned(), seconds);
    }

    /// Whether a schedule from elsewhere can be used here. A refusal is counted.
    pub fn accepts(&mut self, schedule: &str) -> bool {
        let parsed = text::parse(schedule);
        match apply(self.lessons.program, &parsed.schedule, self.lessons.target) {
            Ok(nest) => {
                self.features.insert(schedule.to_owned(), self.lessons.of_nest(&nest).1);
                !parsed.has_errors()
            }
            Err(refusal) => {
                *self.rejections.entry(Rejection::from(&refusal.reason)).or_default() += 1;
                false
            }
        }
    }

    /// Which points should be measured.
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

    /// The schedules of points, without those that are refused.
    pub fn schedules(&mut self, points: &[Point]) -> Vec<String> {
        self.look(points).into_iter().flatten().map(|own| own.schedule).collect()
    }

    /// What the space and the model say about points. Refusals are counted.
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
        let Lessons { program, target, .. } = self.lessons;
        let nest = apply(program, &schedule, target).map_err(|refusal| Rejection::from(&refusal.reason))?;
        let effort = effort(&nest, target);
        if matches!(target, Target::Gpu(_)) && effort > MOST_EFFORT {
            return Err(Rejection::CodeSize);
        }
        let (expected, features) = self.lessons.of_nest(&nest);
        Ok(Candidate { schedule: schedule.to_string(), expected, effort, features })
    }

    /// The points that the model likes best, from different corners of the space: a greedy search with the model in the
    /// place of the machine from each of the points to begin at, until it is `over`. Those themselves are second in their
    /// corners, whatever the model thinks of them.
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
        // The best of each corner first, then the second best, and so on.
        let places = 0..STARTS;
        let in_turn = places.flat_map(|place| corners.iter().filter_map(move |corner| corner.get(place)));
        let worth = in_turn.filter(|(expected, _)| *expected <= TOO_SLOW * self.expected);
        Ok(worth.take(STARTS).map(|(_, point)| point.clone()).collect())
    }

    /// What the model expects of points around one, the best first.
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
                told.push(Told { point, cost });
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
        let mut candidates = Candidates::new(&Lessons::new(&program, &cpu), &space);
        let points = vec![first, other];
        let judged = candidates.judge(&points);
        candidates.tried(&schedule.to_string(), Some(0.5));
        let costs: Vec<Option<f64>> =
            candidates.told(points, &judged).into_iter().map(|told| told.cost).collect();
        assert_eq!(costs, [Some(0.5), None]);
    }
}
