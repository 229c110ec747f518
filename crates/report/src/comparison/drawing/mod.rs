//! Draws a comparison as SVG.
//!
//! Each drawing is 860 wide, has its own heading, and takes its colours from the style of the page.
//!
//! | file | contents |
//! |---|---|
//! | `curves.rs` | the quality of the best so far, over trials and over time |
//! | `boxes.rs` | the final quality of each strategy, and its time per proposal |
//! | `steps.rs` | the step functions that curves draw |
//! | `spread.rs` | quality in percent of the best known kernel, quartiles, the quality axis |
//! | `legend.rs`, `text.rs`, `colours.rs` | names, numbers and colours |

pub mod boxes;
mod colours;
pub mod curves;
mod legend;
mod spread;
mod steps;
mod text;

/// The width of a drawing.
const WIDTH: f64 = 860.0;
/// The quality that a search should reach, in percent of the best known kernel.
const GOAL: f64 = 95.0;
