//! Draws the statements of a program and what they read, as an SVG file.
//!
//! | file | contents |
//! |---|---|
//! | `model.rs` | nodes, edges and frames, as text and kinds |
//! | `program.rs`, `window.rs` | the model of a program, and the elements that a statement reads |
//! | `schedule.rs`, `sites.rs` | what a schedule adds: loop nests, and where values are stored |
//! | `staged.rs` | the buffers that a schedule adds |
//! | `layout/` | where boxes, frames and edges are |
//! | `svg.rs`, `graph.css` | the drawing as text, and its style |
//!
//! The drawing is one file that refers to nothing outside itself. It brings its own background, and
//! follows the viewer's choice of light or dark colours. Text can be selected, and the full text of
//! what is shortened is in the `<title>` of each element.

mod layout;
mod model;
mod program;
mod schedule;
mod sites;
mod staged;
mod svg;
mod window;

use tilewright_ir::{LoopNest, Program};

pub(crate) use schedule::buffer_text;
pub(crate) use svg::page_style;

/// Draws a program.
pub fn program_graph(program: &Program) -> String {
    svg::draw(&program::graph(program))
}

/// Draws a program with what a schedule has decided. The loop nest computes the program.
pub fn scheduled_graph(program: &Program, nest: &LoopNest) -> String {
    svg::draw(&schedule::graph(program, nest))
}

/// Draws a program with what a schedule has decided, for a page with [`page_style`].
pub(crate) fn inline_scheduled_graph(program: &Program, nest: &LoopNest) -> String {
    svg::draw_inline(&schedule::graph(program, nest))
}
