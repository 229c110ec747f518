//! One file for each command.

pub mod bench;
pub mod cache;
pub mod check;
pub mod devices;
pub mod prove;
pub mod run;
pub mod show;
pub mod strategies;
pub mod tune;
