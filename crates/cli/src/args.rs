//! What can be asked for on the command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// What can be asked for.
#[derive(Debug, Parser)]
#[command(
    name = "tilewright",
    version,
    max_term_width = 110,
    about = "Tensor and image programs, written as mathematics, to exact results.",
    long_about = "Tensor and image programs, written as mathematics, to exact results.\n\n\
        A program is a file of functions such as\n\n    \
        def mv(float(M,K) A, float(K) x) -> (y) {\n      \
          y(i) +=! A(i,k) * x(k)\n    \
        }\n\n\
        Index variables are implicit, and their ranges follow from what they index. docs/language.md teaches the language; examples/ has programs to start from."
)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check programs: names, types, ranges, bounds. Says all that is wrong, at the place where it is.
    Check(CheckArgs),
    /// Show what a program becomes on its way: its ranges, or the whole checked program.
    Show(ShowArgs),
    /// Run a program and print or write its results.
    Run(RunArgs),
}

/// `tilewright check`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A program is proved for every size of at least 1. With --sizes the proof is for these sizes.\n\n\
    Examples:\n  tilewright check examples/paper/mv.tw\n  tilewright check examples/*/*.tw"
)]
pub struct CheckArgs {
    /// Source files.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
}

/// `tilewright show`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tilewright show examples/paper/sconv2d.tw --stage ranges\n  \
    tilewright show examples/paper/conv2d.tw --stage program --sizes B=1,IP=3,OP=8,H=32,W=32,KH=3,KW=3")]
pub struct ShowArgs {
    /// Source file; FILE:NAME picks a function.
    #[arg(value_name = "FILE[:NAME]")]
    pub file: String,
    /// What to show.
    #[arg(long, value_enum)]
    pub stage: Stage,
    /// Sizes and integer scalars, such as M=64,N=32; those not given stay symbols.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
}

/// What `show` can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Stage {
    /// Every statement with the range of each variable and where it comes from, and the shape of each tensor.
    Ranges,
    /// The checked program: tensors with types and shapes, and stages with their statements.
    Program,
}

/// `tilewright run`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Sizes that are not given are taken from the .npy inputs. Inputs that are not given are filled from the seed: \
    floats between -1 and 1, integers that are used as an index within what they index, uint8 from 0 to 255, other integers from 0 to 9.\n\n\
    Examples:\n  tilewright run examples/paper/mv.tw --sizes M=8,K=5\n  \
    tilewright run examples/paper/mv.tw --in A=a.npy --in x=x.npy --out results\n  \
    tilewright run examples/paper/sgemm.tw --in inputs.npz --in a=2.0 --in b=0.5"
)]
pub struct RunArgs {
    /// Source file; FILE:NAME picks a function.
    #[arg(value_name = "FILE[:NAME]")]
    pub file: String,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// An input: A=a.npy for a tensor, a=2.5 for a scalar, or inputs.npz for several by name.
    #[arg(long = "in", value_name = "NAME=FILE")]
    pub inputs: Vec<String>,
    /// Write each result as NAME.npy into this folder, which is made if need be.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Where to run: interp, the reference interpreter.
    #[arg(long, default_value = "interp")]
    pub target: String,
    /// Seed for inputs that are not given.
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
}

/// `NAME=N`
fn size(text: &str) -> Result<(String, i64), String> {
    let (name, value) = text.split_once('=').ok_or("write NAME=N, such as M=64")?;
    let name = name.trim();
    if name.is_empty() {
        return Err("write NAME=N, such as M=64".to_owned());
    }
    let value = value.trim();
    let number = value.parse::<i64>().map_err(|_| format!("`{value}` is not a 64-bit integer"))?;
    Ok((name.to_owned(), number))
}
