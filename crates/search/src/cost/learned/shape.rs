//! Describes the loops around a stage: how many points it computes, and in which loops.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::LoopKind;

use super::stages::Stage;

/// The loops around a stage.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shape {
    /// The points that a call computes.
    pub points: f64,
    /// The points for each element of the result's buffer: more than 1 for a reduction, and where
    /// elements are computed again.
    pub points_of_element: f64,
    /// The iterations of all serial loops together.
    pub serial: f64,
    /// The iterations of the innermost serial loop.
    pub innermost: f64,
    /// The copies of unrolled loops.
    pub unrolled: f64,
    /// The lanes of the vector loop; 1 without one.
    pub lanes: f64,
    /// The share of the iterations in which the conditions hold.
    pub share: f64,
    /// The number of loops.
    pub depth: f64,
}

impl Shape {
    /// The number of features.
    pub const COUNT: usize = 8;
    /// The name of each feature, for people.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "points",
        "points of an element",
        "serial iterations",
        "innermost serial iterations",
        "unrolled copies",
        "lanes",
        "share of conditions",
        "loops",
    ];

    pub(super) fn of(nest: &LoopNest, stage: &Stage) -> Shape {
        let elements: i64 = nest.buffer(stage.store.target.tensor).shape.iter().product();
        let innermost = stage.loops.iter().rev().find(|own| own.kind == LoopKind::Serial);
        Shape {
            points: stage.points(),
            points_of_element: stage.points() / elements.max(1) as f64,
            serial: stage.trips_of(|kind| kind == LoopKind::Serial),
            innermost: innermost.map_or(1.0, |own| own.trips),
            unrolled: stage.trips_of(|kind| kind == LoopKind::Unrolled),
            lanes: stage.trips_of(|kind| kind == LoopKind::Vector),
            share: stage.share,
            depth: stage.loops.len() as f64,
        }
    }

    pub(super) fn values(&self) -> [f64; Self::COUNT] {
        [
            self.points,
            self.points_of_element,
            self.serial,
            self.innermost,
            self.unrolled,
            self.lanes,
            self.share,
            self.depth,
        ]
    }
}
