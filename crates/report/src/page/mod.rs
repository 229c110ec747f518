//! Provides parts of HTML pages and of drawings, for the report of a search, for the comparison of
//! strategies and for the graph of a program.
//!
//! A page is one file that refers to nothing outside itself: it embeds its style, and its drawings
//! are SVG that is written here. All text that comes from the user goes through [`html::escape`].

pub mod colours;
pub mod html;
pub mod scale;
pub mod text;

/// The style sheet: light and dark colours, tables and drawings.
pub const STYLE: &str = include_str!("style.css");
