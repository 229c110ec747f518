//! Defines [`Sampler`]: proposes whole schedules of a program to measure, and learns from their
//! times.
//!
//! First come the schedules that a search finds. Then come changes of the fastest ones: some stages
//! get other places, or a number such as the length of a strip changes. Many more schedules are
//! made than proposed. The cost model selects among them, corrected by what it said about their
//! parents: a child is expected to be as much faster than its parent as the model predicts, but
//! the parent's time is a measured one.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use tilewright_ir::Program;
use tilewright_schedule::partial::{Freedom, PartialSchedule, StageId};
use tilewright_schedule::{Schedule, apply};
use tilewright_target::Target;

use super::changes::change_number;
use super::costs::seconds;
use super::decisions::Decisions;
use super::{BeamOptions, find};
use crate::cost::CostModel;
use crate::kind::cost_model;
use crate::parallel;

/// The number of fastest schedules that are changed.
const PARENTS: usize = 12;
/// The number of new schedules that are made for each one that is proposed.
const MADE: usize = 4;
/// The least changes of a round, and the most rounds. Rounds are short, because most changes of few
/// choices were made before.
const LEAST_CHANGES: usize = 16;
const MOST_ROUNDS: usize = 16;
/// Where a round finds fewer new schedules than this share of its changes, hardly any are left.
const LEAST_NEW: f64 = 0.125;
/// The share of changes that move stages; the others change numbers.
const MOVES: f64 = 0.4;
/// The share of proposals that are drawn at random instead of selected.
const RANDOM: f64 = 0.15;

/// A source of schedules to measure.
pub struct Sampler<'a> {
    program: &'a Program,
    target: Target<'a>,
    model: Arc<dyn CostModel + 'a>,
    start: PartialSchedule<'a>,
    stages: Vec<StageId>,
    /// The schedules of the search that were not proposed yet.
    found: VecDeque<Candidate>,
    /// The proposed schedules whose times are not known yet.
    open: HashMap<Schedule, Candidate>,
    /// The measured schedules, fastest first.
    measured: Vec<(f64, Candidate)>,
    seen: HashSet<Schedule>,
    rng: Pcg64Mcg,
}

/// A schedule that may be measured.
#[derive(Clone)]
struct Candidate {
    schedule: Schedule,
    decisions: Decisions,
    /// The time that the model predicts, in seconds.
    predicted: f64,
    /// The expected time: the prediction, corrected by the measured time of the parent.
    expected: f64,
}

impl<'a> Sampler<'a> {
    /// Searches for first schedules. Returns `None` if the program has no stages to place.
    pub fn new(program: &'a Program, target: Target<'a>, seed: u64) -> Option<Sampler<'a>> {
        let start = PartialSchedule::new(program, target).ok()?;
        let stages = start.stages();
        let is_open = |stage: &StageId| start.freedom(*stage) == Freedom::Open;
        if !stages.iter().any(is_open) {
            return None;
        }
        let model = cost_model(target);
        let (beam, _) = find(start.clone(), &*model, target, &BeamOptions::ONE_SHOT);
        let mut sampler = Sampler {
            program,
            target,
            model,
            start,
            stages,
            found: VecDeque::new(),
            open: HashMap::new(),
            measured: Vec::new(),
            seen: HashSet::new(),
            rng: Pcg64Mcg::seed_from_u64(seed),
        };
        for state in beam {
            let found = sampler.candidate(state.partial.complete(), state.decisions, 1.0);
            let found = found.filter(|own| sampler.seen.insert(own.schedule.clone()));
            sampler.found.extend(found);
        }
        Some(sampler)
    }

    /// Up to `count` schedules that were not proposed before.
    pub fn propose(&mut self, count: usize) -> Vec<Schedule> {
        let first = count.min(self.found.len());
        let mut chosen: Vec<Candidate> = self.found.drain(..first).collect();
        if chosen.is_empty() {
            chosen = self.select(count);
        }
        let schedules = chosen.iter().map(|own| own.schedule.clone()).collect();
        self.open.extend(chosen.into_iter().map(|own| (own.schedule.clone(), own)));
        schedules
    }

    /// Tells the time of a schedule in seconds; none if it cannot be used.
    pub fn report(&mut self, schedule: &Schedule, seconds: Option<f64>) {
        self.seen.insert(schedule.clone());
        if let (Some(own), Some(seconds)) = (self.open.remove(schedule), seconds) {
            let at = self.measured.partition_point(|(other, _)| *other <= seconds);
            self.measured.insert(at, (seconds, own));
        }
    }

    /// Makes many new schedules, and selects those that should be fastest.
    fn select(&mut self, count: usize) -> Vec<Candidate> {
        let mut made: Vec<Candidate> = Vec::new();
        for _ in 0..MOST_ROUNDS {
            let before = made.len();
            // Each change has random numbers of its own, so that the outcome does not depend on the
            // number of cores.
            let seeds: Vec<u64> = (0..count.max(LEAST_CHANGES)).map(|_| self.rng.random()).collect();
            let found = parallel::map(&seeds, |seed| self.change(&mut Pcg64Mcg::seed_from_u64(*seed)));
            for candidate in found.into_iter().flatten() {
                if self.seen.insert(candidate.schedule.clone()) {
                    made.push(candidate);
                }
            }
            let is_exhausted = ((made.len() - before) as f64) < LEAST_NEW * seeds.len() as f64;
            if made.len() >= MADE * count || is_exhausted {
                break;
            }
        }
        made.sort_by(|one, other| one.expected.total_cmp(&other.expected));
        let mut chosen = Vec::new();
        while chosen.len() < count && !made.is_empty() {
            let at = if self.rng.random_bool(RANDOM) { self.rng.random_range(0..made.len()) } else { 0 };
            chosen.push(made.remove(at));
        }
        // Schedules that were not chosen may be made again.
        made.iter().for_each(|own| {
            self.seen.remove(&own.schedule);
        });
        chosen
    }

    /// A change of one of the fastest schedules.
    fn change(&self, rng: &mut Pcg64Mcg) -> Option<Candidate> {
        let parents = self.measured.len().min(PARENTS);
        if parents == 0 {
            return None;
        }
        // The fastest are chosen most often.
        let at = rng.random_range(0..parents).min(rng.random_range(0..parents));
        let (seconds, parent) = self.measured[at].clone();
        let correction = seconds / parent.predicted.max(f64::MIN_POSITIVE);
        let (schedule, decisions) = match rng.random_bool(MOVES) {
            true => self.move_stage(&parent.decisions, rng)?,
            false => {
                let mut schedule = change_number(&parent.schedule, rng)?;
                if rng.random_bool(0.5) {
                    schedule = change_number(&schedule, rng).unwrap_or(schedule);
                }
                (schedule, parent.decisions)
            }
        };
        self.candidate(schedule, decisions, correction)
    }

    /// Computes a stage elsewhere.
    fn move_stage(&self, old: &Decisions, rng: &mut Pcg64Mcg) -> Option<(Schedule, Decisions)> {
        let moved = rng.random_range(0..self.stages.len());
        let (mut partial, mut decisions) = (self.start.clone(), Decisions::default());
        let dividing = old.dividing_steps(moved);
        for (at, stage) in self.stages.iter().enumerate() {
            let next = match at == moved {
                true => partial.choices(*stage).choose(rng)?.next.clone(),
                false => match old.take(at, *stage, &partial, if at > moved { &dividing } else { &[] }) {
                    Some(next) => next,
                    None => partial.choices(*stage).choose(rng)?.next.clone(),
                },
            };
            decisions = decisions.and(&partial, &next);
            partial = next;
        }
        (decisions != *old).then(|| (partial.complete(), decisions))
    }

    /// The candidate of a new schedule that can be applied.
    fn candidate(&self, schedule: Schedule, decisions: Decisions, correction: f64) -> Option<Candidate> {
        if self.seen.contains(&schedule) {
            return None;
        }
        let nest = apply(self.program, &schedule, self.target).ok()?;
        let predicted = seconds(&nest, &*self.model, self.target);
        Some(Candidate { schedule, decisions, predicted, expected: correction * predicted })
    }
}
