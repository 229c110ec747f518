//! What can be asked of `tilewright cache`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use tilewright_target::Vectors;

use super::{RoundingArgs, size, threads, vectors};

/// `tilewright cache`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Every candidate that tuning tries is kept, with its times or why it failed. A program is found by what it computes, \
    its sizes, the machine and the threads; names, comments and layout do not matter. docs/cache.md says more.\n\n\
    Examples:\n  tilewright cache list\n  \
    tilewright cache explain examples/paper/mv.tw --sizes M=1024,K=1024\n  \
    tilewright cache export records.pb\n  tilewright cache import records.pb --cache shared.sqlite"
)]
pub struct CacheArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CacheCommand,
}

/// The commands about the cache.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// List the programs that were tuned: sizes, machine, trials and the best time.
    List(ListArgs),
    /// Show what is known of a program: its records, and its best schedule in the program's own names.
    Show(LookupArgs),
    /// Say whether a program is found, or in what the nearest records differ: sizes, threads, machine, program.
    Explain(LookupArgs),
    /// Write records to one portable file.
    Export(ExportArgs),
    /// Add the records of portable files; those that are there already are not doubled.
    Import(ImportArgs),
    /// Add the records of other caches; those that are there already are not doubled.
    Merge(MergeArgs),
    /// Remove records, and say how many.
    Clear(ClearArgs),
}

/// Which cache.
#[derive(Debug, clap::Args)]
pub struct CacheFile {
    /// The cache, if not that of the user's data folder.
    #[arg(long, value_name = "FILE")]
    pub cache: Option<PathBuf>,
}

/// `tilewright cache list`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tilewright cache list\n  tilewright cache list --cache shared.sqlite --json"
)]
pub struct ListArgs {
    /// Which cache.
    #[command(flatten)]
    pub file: CacheFile,
    /// Print one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// `tilewright cache show` and `explain`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Sizes, target, threads and vectors are those of `tilewright bench`: what is found here is what it would use.\n\n\
    Examples:\n  tilewright cache show examples/paper/mv.tw --sizes M=1024,K=1024\n  \
    tilewright cache explain examples/paper/mv.tw --sizes M=1024,K=1024 --threads 1"
)]
pub struct LookupArgs {
    /// Source file; FILE:NAME picks a function.
    #[arg(value_name = "FILE[:NAME]")]
    pub source: String,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// Where it runs: cpu, this machine; cuda:0 and opencl:0 are devices, which `tilewright devices` lists.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// Threads for parallel loops; as many as there are cores if not given.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Vector instructions to use, if not the widest that this machine has.
    #[arg(long, value_parser = vectors())]
    pub vectors: Option<Vectors>,
    /// How floats are rounded.
    #[command(flatten)]
    pub rounding: RoundingArgs,
    /// Which cache.
    #[command(flatten)]
    pub file: CacheFile,
    /// Print one JSON object, with every record.
    #[arg(long)]
    pub json: bool,
}

/// `tilewright cache export`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The file is a protobuf message, as crates/tuner/proto/tuning_records.proto says. It is written whole or not at all.\n\n\
    Examples:\n  tilewright cache export records.pb\n  tilewright cache export records.pb --cache shared.sqlite"
)]
pub struct ExportArgs {
    /// The file to write.
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    /// Which cache.
    #[command(flatten)]
    pub file: CacheFile,
}

/// `tilewright cache import`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A file is imported whole, or not at all if anything in it cannot be read. Nothing in it is run: schedules are \
    parsed, and checked for legality before they are used.\n\n\
    Examples:\n  tilewright cache import records.pb\n  tilewright cache import a.pb b.pb --cache shared.sqlite"
)]
pub struct ImportArgs {
    /// Files that `cache export` wrote.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Which cache.
    #[command(flatten)]
    pub file: CacheFile,
}

/// `tilewright cache merge`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tilewright cache merge shared.sqlite\n  tilewright cache merge a.sqlite b.sqlite --cache all.sqlite"
)]
pub struct MergeArgs {
    /// Other caches.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Which cache.
    #[command(flatten)]
    pub file: CacheFile,
}

/// `tilewright cache clear`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Conditions add up: a record is removed if it fits all of them. Without any, --yes must be given.\n\n\
    Examples:\n  tilewright cache clear --yes\n  tilewright cache clear --failed --older-than 30d\n  \
    tilewright cache clear examples/paper/mv.tw --sizes M=1024,K=1024"
)]
pub struct ClearArgs {
    /// Only records of this program, at any sizes unless --sizes is given; FILE:NAME picks a function.
    #[arg(value_name = "FILE[:NAME]")]
    pub source: Option<String>,
    /// Only at these sizes.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size, requires = "source")]
    pub sizes: Vec<(String, i64)>,
    /// The records of the program with --no-contract, instead of those without.
    #[arg(long, requires = "source")]
    pub no_contract: bool,
    /// Only with so many threads.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Only candidates that failed.
    #[arg(long)]
    pub failed: bool,
    /// Only records older than this, such as 30d or 12h.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub older_than: Option<Duration>,
    /// Only rows that no Tilewright wrote.
    #[arg(long, conflicts_with_all = ["source", "threads", "failed", "older_than"])]
    pub damaged: bool,
    /// Remove everything.
    #[arg(long)]
    pub yes: bool,
    /// Which cache.
    #[command(flatten)]
    pub file: CacheFile,
}
