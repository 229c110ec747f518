//! Shows outcomes to people: the page about a search, comparisons of strategies, times as text.
//!
//! | module | contents |
//! |---|---|
//! | [`tuning_page`] | the page about one search |
//! | [`comparison`] | a comparison of strategies as text, JSON, page and drawings |
//! | [`page`] | parts of pages: text, tables, axes, the style sheet |
//! | [`time`] | times and dates as text |

pub mod comparison;
pub mod page;
pub mod time;
mod tuning;

pub use tuning::tuning_page;
