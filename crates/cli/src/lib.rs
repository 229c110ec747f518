//! The `tilewright` command as a function: `main.rs` and the Python package call [`run`].
//!
//! [`args`] defines the command line, and [`commands`] has a module for each command except
//! `worker`. The commands share these modules:
//!
//! | module | contents |
//! |---|---|
//! | [`problem`] | a program at given sizes, with its data |
//! | [`source`], [`text`] | reading programs, and drawing diagnostics under their text |
//! | [`inputs`], [`uniform`] | sizes, tensors and scalars from options, files and a seed |
//! | [`tensor_file`], [`npy`], [`picture`] | files with tensors: .npy, pictures, samples without a header |
//! | [`destination`] | the files and folders that results are written to |
//! | [`target`] | the `--target` option |
//! | [`interpret`] | running a program in the interpreter, and comparing results with it |
//! | [`machine`] | the hardware of a target |
//! | [`schedule`] | the schedule of `--schedule`, of the cache, or the default one |
//! | [`template`] | search spaces that the user writes |
//! | [`compiler`] | compiling with a schedule |
//! | [`loaded`] | a compiled program with its data: calls, and their times |
//! | [`worker`] | this program as the process that tries candidates |
//! | [`memory`] | refusing programs that do not fit into memory |
//! | [`atomic_file`] | files that are written completely or not at all |
//! | [`failure`], [`output`] | exit statuses, and writing to standard output and standard error |

mod args;
mod atomic_file;
mod commands;
mod compiler;
mod destination;
mod failure;
mod inputs;
mod interpret;
mod loaded;
mod machine;
mod memory;
mod npy;
mod output;
mod pending_file;
mod picture;
mod problem;
mod schedule;
mod source;
mod target;
mod template;
mod tensor_file;
mod text;
mod uniform;
mod worker;

use std::ffi::OsString;
use std::io::{self, Write};
use std::iter::once;

use clap::Parser;
use tilewright::tuner::worker::WorkerCommand;

use args::{Args, Command};

/// Runs the command with these arguments, and returns its exit status. A process calls it once,
/// because it sets the panic hook and signal handlers.
///
/// `worker` says how `tune` and `strategies` start the processes that try candidates. Such a
/// process calls this function with the single argument `worker`. `None` is for a program that
/// passes its arguments on, and can start itself.
pub fn run(arguments: impl IntoIterator<Item = OsString>, worker: Option<WorkerCommand>) -> u8 {
    if let Some(launch) = worker {
        worker::set_launch(launch);
    }
    let arguments = once(OsString::from("tilewright")).chain(arguments);
    let status = match Args::try_parse_from(arguments) {
        Ok(args) => execute(args.command),
        Err(error) => {
            let _ = error.print();
            if error.use_stderr() { failure::USAGE } else { 0 }
        }
    };
    // The runtime of a Rust program would flush standard output at its end; that of Python does
    // not know of it.
    let _ = io::stdout().flush();
    status
}

/// Executes a command, and returns its exit status.
fn execute(command: Command) -> u8 {
    // A panic is a bug of Tilewright. The hook says so, and the command ends with the status that
    // scripts rely on.
    std::panic::set_hook(Box::new(|panic| {
        output::print_error_line(&format!(
            "tilewright: this is a bug in Tilewright, please report it: {panic}"
        ));
    }));
    match std::panic::catch_unwind(|| dispatch(&command)) {
        Ok(Ok(())) => 0,
        Ok(Err(failure)) => {
            failure.print();
            failure.status()
        }
        Err(_) => failure::BUG,
    }
}

fn dispatch(command: &Command) -> Result<(), failure::Failure> {
    match command {
        Command::Check(check) => commands::check::run(check),
        Command::Show(show) => commands::show::run(show),
        Command::Prove(prove) => commands::prove::run(prove),
        Command::Run(run) => commands::run::run(run),
        Command::Bench(bench) => commands::bench::run(bench),
        Command::Tune(tune) => commands::tune::run(tune),
        Command::Devices(devices) => commands::devices::run(devices),
        Command::Train(train) => commands::train::run(train),
        Command::Generate(generate) => commands::generate::run(generate),
        Command::Strategies(strategies) => commands::strategies::run(strategies),
        Command::Worker => worker::run(),
        Command::Cache(cache) => commands::cache::run(&cache.command),
    }
}
