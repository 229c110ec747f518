//! Pages to look at: what `tune --report` and `strategies compare --out` share.
//!
//! A page needs nothing but itself: its style is inside, its drawings are SVG that is written here, and nothing in it refers to
//! anything elsewhere. All that comes from the user goes through [`html::escape`].

pub mod html;
pub mod scale;

/// Colours by light and by dark, and how tables and drawings look.
pub const STYLE: &str = include_str!("style.css");
