//! `tilewright strategies`: lists the strategies, or compares them.
//!
//! | file | contents |
//! |---|---|
//! | `compare.rs` | the command `strategies compare` |
//! | `programs.rs` | the programs to search, from the command line or from a recording |
//! | `progress.rs` | the progress display |
//! | `files.rs` | the folder with the outcome as a page and pictures |

mod compare;
mod files;
mod programs;
mod progress;

use tilewright::strategy::{ALL, gbfs, guided};

use crate::args::strategies::{StrategiesArgs, StrategiesCommand};
use crate::failure::Failure;
use crate::output::print;

/// Executes a subcommand, or lists the strategies.
pub fn run(args: &StrategiesArgs) -> Result<(), Failure> {
    match &args.command {
        Some(StrategiesCommand::Compare(args)) => compare::run(args),
        None => list(),
    }
}

fn list() -> Result<(), Failure> {
    let lines = ALL.iter().map(|entry| format!("{:<8}  {}\n", entry.name, entry.description));
    let (cpu, gpu) = (gbfs::ENTRY.name, guided::ENTRY.name);
    let usual = format!("\nThe default of `tune` is {cpu} on a CPU and {gpu} on a GPU.\n");
    print(&(lines.collect::<String>() + &usual))
}
