//! Defines [`Leaning`]: which kind of places a pass of the search prefers.

use tilewright_schedule::partial::{PartialSchedule, Placement};

/// The factor of the predicted time for a stage that is computed in its readers' values. Chains of
/// such stages often cost a little more until the last one is decided.
const INLINE_FACTOR: f64 = 0.95;
/// The factor of a stage that is computed at a loop of its readers.
const FUSED_FACTOR: f64 = 0.98;

/// A preference for one kind of places. States compete by their predicted time, times a factor for
/// each stage in such a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaning {
    preferred: Option<Placement>,
    factor: f64,
}

impl Leaning {
    /// No preference.
    pub const NONE: Leaning = Leaning { preferred: None, factor: 1.0 };

    /// The leanings of the passes that follow one without. Rows are kept in rings on targets
    /// without grids alone.
    pub fn all(start: &PartialSchedule) -> Vec<Leaning> {
        let fused = if start.has_grid() { Placement::Piece } else { Placement::Sliding };
        let lean = |placement, factor| Leaning { preferred: Some(placement), factor };
        vec![lean(Placement::Inline, INLINE_FACTOR), lean(fused, FUSED_FACTOR)]
    }

    /// The factor of a stage in such a place.
    pub fn factor(self, placement: Placement) -> f64 {
        if self.preferred == Some(placement) { self.factor } else { 1.0 }
    }
}
