//! Searches whole schedules of programs with several stages: the places of all stages, found by a
//! beam search and then changed one after the other, with the numbers of their loops.
//!
//! The schedules come from [`Sampler`]. Points of the space have knobs that schedules of the
//! sampler have not, such as the order of loops, and the other way round. So the usual strategy of
//! the target searches the points in turn: most batches go to the side that has found the fastest
//! schedule so far.

use super::{Entry, Start, Strategy, TrialResult};
use crate::beam::Sampler;
use crate::kind;
use crate::knob::Knobs;
use tilewright_schedule::Schedule;

pub(super) const NAME: &str = "beam";

/// The row of the strategy in [`ALL`](super::ALL).
pub const ENTRY: Entry = Entry {
    name: NAME,
    description: "whole schedules: a beam search over the places of all stages, then changes of the fastest",
    learns_from_others: false,
    make: |knobs, start| Ok(Box::new(Beam::new(knobs, start)?)),
};

/// Of so many batches, one goes to the side that is behind.
const TURNS: usize = 4;

/// A search of whole schedules, and of points.
pub struct Beam<'a> {
    /// None for programs whose stages have but one place.
    schedules: Option<Side<Sampler<'a>>>,
    points: Side<Box<dyn Strategy + 'a>>,
    batches: usize,
}

/// One of the two searches.
struct Side<S> {
    search: S,
    /// The least time that it has found, in seconds.
    best: f64,
    is_exhausted: bool,
}

impl<S> Side<S> {
    fn new(search: S) -> Side<S> {
        Side { search, best: f64::INFINITY, is_exhausted: false }
    }

    fn record(&mut self, seconds: Option<f64>) {
        self.best = self.best.min(seconds.unwrap_or(f64::INFINITY));
    }
}

impl<'a> Beam<'a> {
    /// Creates a search of a program, if the start names one, and of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'a>) -> Result<Beam<'a>, super::Unsuitable> {
        let schedules = start
            .program
            .and_then(|(program, target)| Sampler::new(program, target, start.seed))
            .map(Side::new);
        let usual = start.program.map_or(super::gbfs::ENTRY, |(_, target)| kind::point_strategy(target));
        let points = Side::new((usual.make)(knobs, start)?);
        Ok(Beam { schedules, points, batches: 0 })
    }

    /// Whether the next batch consists of points.
    fn takes_points(&self) -> bool {
        let Some(schedules) = self.schedules.as_ref().filter(|own| !own.is_exhausted) else { return true };
        let points_lead = self.points.best < schedules.best;
        !self.points.is_exhausted && (self.batches.is_multiple_of(TURNS) != points_lead)
    }
}

impl Strategy for Beam<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn propose(&mut self, count: usize) -> Vec<crate::knob::Point> {
        if !self.takes_points() {
            return Vec::new();
        }
        self.batches += 1;
        let points = self.points.search.propose(count);
        self.points.is_exhausted = points.is_empty();
        points
    }

    fn report(&mut self, results: &[TrialResult]) {
        results.iter().for_each(|result| self.points.record(result.cost));
        self.points.search.report(results);
    }

    fn propose_schedules(&mut self, count: usize) -> Vec<Schedule> {
        let Some(side) = &mut self.schedules else { return Vec::new() };
        self.batches += 1;
        let schedules = side.search.propose(count);
        side.is_exhausted = schedules.is_empty();
        schedules
    }

    fn report_schedules(&mut self, results: &[(Schedule, Option<f64>)]) {
        let Some(side) = &mut self.schedules else { return };
        for (schedule, seconds) in results {
            side.record(*seconds);
            side.search.report(schedule, *seconds);
        }
    }
}
