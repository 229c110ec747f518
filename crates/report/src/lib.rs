//! Shows outcomes to people: the page about a search, comparisons of strategies, the graph of a
//! program, times as text.
//!
//! | module | contents |
//! |---|---|
//! | [`tuning_page`] | the page about one search |
//! | [`ProgramPage`] | the page about one scheduled program |
//! | [`comparison`] | a comparison of strategies as text, JSON, page and drawings |
//! | [`explanation`] | where the stages of a program are computed and why, as text |
//! | [`graph`] | the statements of a program and what they read, as a drawing |
//! | [`models`] | the page about judged cost models |
//! | [`page`] | parts of pages and drawings: text, tables, axes, the style sheet |
//! | [`time`] | times and dates as text |

pub mod comparison;
pub mod explanation;
pub mod graph;
pub mod models;
pub mod page;
mod program_page;
pub mod time;
mod tuning;

pub use program_page::{MeasuredTimes, ProgramPage};
pub use tuning::tuning_page;
