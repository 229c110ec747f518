//! Computes the hand-written terms of a stage's time, in seconds. A network finds the coefficients
//! whose sum of products with the terms is the time (Adams et al. 2019; Anderson et al. 2021,
//! appendix B).

use super::features::{Speeds, StageFeatures};

/// The number of terms.
pub const TERMS: usize = 7;
/// The name of each term, for people.
pub const TERM_NAMES: [&str; TERMS] =
    ["compute", "load", "store", "working set", "idle units", "starts", "analytical"];

/// The terms of a stage, of whose nest the analytical model gives it a share of the time.
pub(super) fn terms(stage: &StageFeatures, analytical: f64, speeds: &Speeds) -> [f32; TERMS] {
    let spread = stage.parallelism.pieces.min(speeds.units).max(1.0);
    let lanes = (stage.shape.lanes * stage.parallelism.threads.min(speeds.warp)).max(1.0);
    let instructions = stage.shape.points * stage.operations.instructions();
    // Without lanes, one operation at a time: an eighth of what a unit can do.
    let compute = instructions / (speeds.operations * (lanes / 8.0).clamp(0.125, 1.0)) / spread;
    let pieces = stage.parallelism.pieces * stage.parallelism.starts;
    let terms = [
        compute,
        stage.memory.piece * pieces / speeds.bandwidth,
        stage.memory.stored / speeds.bandwidth,
        (stage.memory.call + stage.memory.result) / speeds.bandwidth,
        compute * (1.0 - stage.parallelism.busy),
        stage.parallelism.starts * speeds.start,
        analytical,
    ];
    terms.map(|term| term as f32)
}
