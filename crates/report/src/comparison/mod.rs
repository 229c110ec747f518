//! Shows a comparison of strategies as text, as JSON, as an HTML page, and as drawings.
//!
//! | file | contents |
//! |---|---|
//! | `table.rs` | tables for text and for the page, and all numbers as JSON |
//! | `page.rs`, `style.rs` | the page, and its style sheet |
//! | `drawing/` | the drawings of the page, as SVG |
//! | `png.rs`, `letters.rs` | drawings as PNG, with the feature `png` |

pub mod drawing;
#[cfg(test)]
mod examples;
#[cfg(feature = "png")]
mod letters;
mod page;
#[cfg(feature = "png")]
pub mod png;
mod style;
mod table;

use tilewright_tuner::compare::Comparison;

pub use table::{json, text};

/// Formats a comparison as an HTML page: one file that refers to nothing outside itself.
pub fn comparison_page(title: &str, comparison: &Comparison) -> String {
    let tables: Vec<table::Table> = comparison.programs.iter().map(table::program_table).collect();
    page::html(title, comparison, &tables)
}
