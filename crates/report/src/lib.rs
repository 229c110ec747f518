//! Shows the outcome of a search to people: an HTML page, and times as text.
//!
//! | module | contents |
//! |---|---|
//! | [`tuning_page`] | the page about one search |
//! | [`page`] | parts of pages: text, tables, axes, the style sheet |
//! | [`time`] | times and dates as text |

pub mod page;
pub mod time;
mod tuning;

pub use tuning::tuning_page;
