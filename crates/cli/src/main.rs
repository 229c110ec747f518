//! The `tilewright` command.
//!
//! [`args`] defines the command line, and [`commands`] has one file for each command. The commands
//! share these modules:
//!
//! | module | contents |
//! |---|---|
//! | [`problem`] | a program at given sizes, with its data |
//! | [`source`], [`text`] | reading programs, and drawing diagnostics under their text |
//! | [`inputs`], [`npy`] | sizes, tensors and scalars from the command line, from files and from a seed |
//! | [`target`] | the `--target` option |
//! | [`interpret`] | running a program in the interpreter, and comparing results with it |
//! | [`machine`] | the hardware of a target |
//! | [`schedule`] | the schedule of `--schedule`, of the cache, or the default one |
//! | [`template`] | search spaces that the user writes |
//! | [`compiler`] | compiling with a schedule |
//! | [`loaded`] | a compiled program with its data: calls, and their times |
//! | [`worker`] | this program as the process that tries candidates |
//! | [`memory`] | refusing programs that do not fit into memory |
//! | [`whole_file`] | files that are written completely or not at all |
//! | [`failure`], [`output`] | exit statuses, and writing to standard output and standard error |

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
mod problem;
mod schedule;
mod source;
mod target;
mod template;
mod text;
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
    // A panic is a bug of Tilewright. The hook says so, and the command ends with the status that
    // scripts rely on.
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
