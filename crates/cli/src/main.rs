//! The `tilewright` command.
//!
//! [`args`] says what can be asked for; [`commands`] has one file for each command; [`source`] reads programs and
//! draws diagnostics, [`inputs`] gathers sizes, tensors and scalars, and [`npy`] reads and writes NumPy files.

mod args;
mod commands;
mod failure;
mod inputs;
mod npy;
mod output;
mod seed;
mod source;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

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
        Command::Run(run) => commands::run::run(&run),
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
