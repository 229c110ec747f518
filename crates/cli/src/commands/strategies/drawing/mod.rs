//! The drawings of a comparison, as SVG.
//!
//! Each is 860 wide, stands for itself under its own heading, and takes its colours from the style of the page.
//!
//! | file | is |
//! |---|---|
//! | `curves.rs` | how good the best so far was, and when |
//! | `boxes.rs` | how good the best was in the end, and how long strategies think |
//! | `steps.rs` | what a curve is made of |
//! | `spread.rs` | qualities, and how far they lie apart |
//! | `legend.rs`, `text.rs`, `colours.rs` | names, numbers and colours |

pub mod boxes;
mod colours;
pub mod curves;
mod legend;
mod spread;
mod steps;
mod text;

/// How wide a drawing is.
const WIDTH: f64 = 860.0;
/// What a search should reach, in percent of the best known.
const GOAL: f64 = 95.0;
