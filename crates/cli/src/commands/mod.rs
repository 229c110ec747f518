//! The commands of the command line. Each module has the `run` function of one command; the command
//! `worker` is in `worker.rs`.

pub mod bench;
pub mod cache;
pub mod check;
pub mod devices;
pub mod generate;
pub mod prove;
pub mod run;
pub mod show;
pub mod strategies;
pub mod train;
pub mod tune;
