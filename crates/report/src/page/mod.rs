//! Provides parts of HTML pages, for the report of a search and for the comparison of
//! strategies.
//!
//! A page is one file that refers to nothing outside itself: it embeds its style, and its drawings
//! are SVG that is written here. All text that comes from the user goes through [`html::escape`].

pub mod html;
pub mod scale;

/// The style sheet: light and dark colours, tables and drawings.
pub const STYLE: &str = include_str!("style.css");
