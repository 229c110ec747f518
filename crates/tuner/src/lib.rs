//! Finding fast schedules on the real hardware, and keeping what was measured.
//!
//! [`cache`] keeps every candidate that was tried, so that no program is tuned twice and no measurement is lost.

pub mod cache;
