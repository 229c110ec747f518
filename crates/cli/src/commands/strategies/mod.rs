//! `tilewright strategies`: lists the strategies, or compares them.
//!
//! | file | contents |
//! |---|---|
//! | `compare.rs` | the command `strategies compare` |
//! | `programs.rs` | the programs to search, from the command line or from a recording |
//! | `watch.rs` | the progress display |
//! | `table.rs` | the outcome as text tables and JSON |
//! | `files.rs`, `page.rs`, `drawing/`, `style.rs` | the outcome as a page |
//! | `png.rs`, `letters.rs` | its drawings as pictures |

mod compare;
mod drawing;
mod files;
mod letters;
#[cfg(test)]
mod made_up;
mod page;
mod png;
mod programs;
mod style;
mod table;
mod watch;

use tilewright_search::strategy::{ALL, gbfs, guided};

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
    let usual = format!("\n`tune` takes {cpu} on a CPU and {gpu} on a GPU if nothing is said.\n");
    print(&(lines.collect::<String>() + &usual))
}
