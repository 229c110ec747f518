//! The search for a good schedule, as far as it needs no hardware.
//!
//! - [`knob`]: one open choice, its values and which of them are neighbours; the product of all choices; points of it.
//! - [`strategy`]: which points to try next, given what became of those tried before.
//!
//! Nothing here compiles, measures or reads a clock. A strategy asks for points and is told costs; who measures them, and
//! when to stop, is the tuner's business. The same seed and the same told results give the same points.

pub mod cost;
pub mod knob;
pub mod space;
pub mod strategy;
