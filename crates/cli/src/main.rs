//! The binary `tilewright`: passes its arguments to the library of this crate.

use std::env::args_os;
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(tilewright_cli::run(args_os().skip(1), None))
}
