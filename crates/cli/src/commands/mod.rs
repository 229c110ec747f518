//! One file for each command.

pub mod bench;
pub mod check;
pub mod run;
pub mod show;
