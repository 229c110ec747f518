//! Computes the features from which cost models learn: takes the text of a schedule, a loop
//! nest or a point of the space, and returns a vector of numbers.

use std::sync::Arc;

use tilewright_ir::{LoopNest, Program};
use tilewright_schedule::{apply, text};
use tilewright_search::cost::CostModel;
use tilewright_search::default_schedule;
use tilewright_search::kind::cost_model;
use tilewright_search::knob::Point;
use tilewright_search::space::Space;
use tilewright_search::strategy::Features;
use tilewright_target::Target;
use xxhash_rust::xxh3::xxh3_64;

use crate::parallel;

/// Computes the features of a program's schedules on a machine.
#[derive(Clone)]
pub struct ScheduleFeatures<'p> {
    pub(crate) program: &'p Program,
    pub(crate) target: Target<'p>,
    model: Arc<dyn CostModel + 'p>,
    /// The time in seconds that the cost model predicts for the default schedule. Features are
    /// relative to it.
    default_seconds: f64,
}

impl<'p> ScheduleFeatures<'p> {
    /// The features of a program's schedules.
    pub fn new(program: &'p Program, target: impl Into<Target<'p>>) -> ScheduleFeatures<'p> {
        let target = target.into();
        let mut schedule_features =
            ScheduleFeatures { program, target, model: cost_model(target), default_seconds: 1.0 };
        let default = apply(program, &default_schedule(program, target), target);
        schedule_features.default_seconds =
            default.map_or(1.0, |nest| schedule_features.model.estimate(&nest).seconds);
        schedule_features
    }

    /// The predicted time of a nest in seconds, and its features.
    pub(crate) fn estimate_nest(&self, nest: &LoopNest) -> (f64, Vec<f32>) {
        let look = self.model.estimate(nest);
        (look.seconds, look.features(self.default_seconds))
    }

    /// The features of a schedule, or `None` if it is refused.
    pub fn features_of_schedule(&self, schedule: &str) -> Option<Vec<f32>> {
        let parsed = text::parse(schedule);
        let nest = apply(self.program, &parsed.schedule, self.target).ok().filter(|_| !parsed.has_errors());
        nest.map(|nest| self.estimate_nest(&nest).1)
    }

    /// The features of the points of a space.
    pub fn features_of_points<'s>(&'s self, space: &'s Space<'s>) -> PointFeatures<'s> {
        PointFeatures { schedule_features: self, space }
    }
}

/// Computes the features of the points of a space.
pub struct PointFeatures<'s> {
    schedule_features: &'s ScheduleFeatures<'s>,
    space: &'s Space<'s>,
}

impl Features for PointFeatures<'_> {
    fn compute(&self, points: &[Point]) -> Vec<Option<Vec<f32>>> {
        let ScheduleFeatures { program, target, .. } = self.schedule_features;
        parallel::map(points, |point| {
            let nest = apply(program, &self.space.decode(point).ok()?, *target).ok()?;
            Some(self.schedule_features.estimate_nest(&nest).1)
        })
    }

    fn schedule_id(&self, point: &Point) -> Option<u64> {
        self.space.decode(point).ok().map(|schedule| xxh3_64(schedule.to_string().as_bytes()))
    }
}
