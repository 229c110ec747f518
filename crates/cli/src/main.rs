//! The `tilewright` command.
//!
//! [`args`] says what can be asked for, and [`commands`] has one file for each command. What they share:
//!
//! | module | is |
//! |---|---|
//! | [`problem`] | a program at given sizes, with its data |
//! | [`source`], [`text`] | reading programs, and drawing diagnostics under a text |
//! | [`inputs`], [`npy`] | sizes, tensors and scalars from the command line, from files and from a seed |
//! | [`target`] | where a program runs |
//! | [`interpret`] | running it in the interpreter, and whether others agree with that |
//! | [`machine`] | the machine behind that |
//! | [`schedule`] | the schedule that was asked for, or that tuning has found |
//! | [`template`] | schedules to search that the user writes |
//! | [`compiler`] | compiling by a schedule |
//! | [`loaded`] | a compiled program with its data: calls, and their times |
//! | [`worker`] | this program as the process that tries candidates |
//! | [`memory`] | refusing what does not fit |
//! | [`page`] | pages to look at |
//! | [`whole_file`] | files that appear whole or not at all |
//! | [`time`] | times and dates, for people |
//! | [`failure`], [`output`] | how a command ends, and how it speaks |

mod args;
mod commands;
mod compiler;
mod failure;
mod inputs;
mod interpret;
mod loaded;
mod machine;
mod memory;
mod npy;
mod output;
mod page;
mod problem;
mod schedule;
mod source;
mod target;
mod template;
mod text;
mod time;
mod uniform;
mod whole_file;
mod worker;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    // A panic is a bug of ours; say so, with the status that scripts rely on.
    std::panic::set_hook(Box::new(|panic| {
        output::complain(&format!("tilewright: this is a bug in Tilewright, please report it: {panic}"));
    }));
    let result = std::panic::catch_unwind(|| match args.command {
        Command::Check(check) => commands::check::run(&check),
        Command::Show(show) => commands::show::run(&show),
        Command::Prove(prove) => commands::prove::run(&prove),
        Command::Run(run) => commands::run::run(&run),
        Command::Bench(bench) => commands::bench::run(&bench),
        Command::Tune(tune) => commands::tune::run(&tune),
        Command::Devices(devices) => commands::devices::run(&devices),
        Command::Strategies(strategies) => commands::strategies::run(&strategies),
        Command::Worker => worker::run(),
        Command::Cache(cache) => commands::cache::run(&cache.command),
    });
    match result {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(failure)) => {
            failure.print();
            ExitCode::from(failure.status())
        }
        Err(_) => ExitCode::from(failure::BUG),
    }
}
