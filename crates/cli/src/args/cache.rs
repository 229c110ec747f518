//! Defines the subcommands and options of `tilewright cache`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;

use super::cpu::CpuArgs;
use super::{RoundingArgs, size, threads};

/// `tilewright cache`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "The cache holds every candidate that tuning has tried, with its times or the reason of its failure. A lookup compares the computation of the program, \
    its sizes, the machine and the number of threads; names, comments and white space do not matter. docs/cache.md says more.\n\n\
    Examples:\n  tilewright cache list\n  \
    tilewright cache explain examples/paper/mv.tw --sizes M=1024,K=1024\n  \
    tilewright cache export records.pb\n  tilewright cache import records.pb --cache shared.sqlite"
)]
pub struct CacheArgs {
    /// The command to execute.
    #[command(subcommand)]
    pub command: CacheCommand,
}

/// The subcommands of `tilewright cache`.
#[derive(Debug, Subcommand)]
pub enum CacheCommand {
    /// List the tuned programs with their sizes, machine, number of trials and best time.
    List(ListArgs),
    /// Show the records of a program, and its best schedule in the names of the program.
    Show(LookupArgs),
    /// Say whether the cache has records of a program; if not, how the nearest records differ in
    /// sizes, threads, machine or program.
    Explain(LookupArgs),
    /// Write records to one portable file.
    Export(ExportArgs),
    /// Add the records of portable files. Records that the cache already has are skipped.
    Import(ImportArgs),
    /// Add the records of other caches. Records that the cache already has are skipped.
    Merge(MergeArgs),
    /// Remove records, and print how many were removed.
    Clear(ClearArgs),
}

/// The option that selects the cache.
#[derive(Debug, clap::Args)]
pub struct CacheOption {
    /// The cache file. The default is the cache in the user's data folder.
    #[arg(long, value_name = "FILE")]
    pub cache: Option<PathBuf>,
}

/// `tilewright cache list`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tilewright cache list\n  tilewright cache list --cache shared.sqlite --json"
)]
pub struct ListArgs {
    /// The cache to list.
    #[command(flatten)]
    pub cache: CacheOption,
    /// Print one JSON array.
    #[arg(long)]
    pub json: bool,
}

/// `tilewright cache show` and `explain`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Sizes, target, threads and vectors have the same meaning as for `tilewright bench`, which uses the record that is found here.\n\n\
    Examples:\n  tilewright cache show examples/paper/mv.tw --sizes M=1024,K=1024\n  \
    tilewright cache explain examples/paper/mv.tw --sizes M=1024,K=1024 --threads 1"
)]
pub struct LookupArgs {
    /// Source file. FILE:NAME picks a function.
    #[arg(value_name = "FILE[:NAME]")]
    pub source: String,
    /// Sizes and integer scalars, such as M=64,N=32.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// Where the program runs: cpu is this machine, cuda:0 or opencl:0 is a device that `tilewright
    /// devices` lists.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// The part of the CPU to use.
    #[command(flatten)]
    pub cpu: CpuArgs,
    /// How floats are rounded.
    #[command(flatten)]
    pub rounding: RoundingArgs,
    /// The cache to search.
    #[command(flatten)]
    pub cache: CacheOption,
    /// Print one JSON object, with every record.
    #[arg(long)]
    pub json: bool,
}

/// `tilewright cache export`
#[derive(Debug, clap::Args)]
#[command(after_help = "The file is a protobuf message; crates/cache/proto/tuning_records.proto defines \
    it. It is written whole or not at all.\n\n\
    Examples:\n  tilewright cache export records.pb\n  tilewright cache export records.pb --cache shared.sqlite")]
pub struct ExportArgs {
    /// The file to write.
    #[arg(value_name = "OUT")]
    pub out: PathBuf,
    /// The cache to export.
    #[command(flatten)]
    pub cache: CacheOption,
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
    /// The cache that receives the records.
    #[command(flatten)]
    pub cache: CacheOption,
}

/// `tilewright cache merge`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tilewright cache merge shared.sqlite\n  tilewright cache merge a.sqlite b.sqlite --cache all.sqlite"
)]
pub struct MergeArgs {
    /// The caches to read from.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// The cache that receives the records.
    #[command(flatten)]
    pub cache: CacheOption,
}

/// `tilewright cache clear`
#[derive(Debug, clap::Args)]
#[command(after_help = "A record is removed if it meets all the given conditions. Without any condition, \
    --yes must be given.\n\n\
    Examples:\n  tilewright cache clear --yes\n  tilewright cache clear --failed --older-than 30d\n  \
    tilewright cache clear examples/paper/mv.tw --sizes M=1024,K=1024")]
pub struct ClearArgs {
    /// Remove only records of this program, at all sizes unless --sizes is given. FILE:NAME picks a
    /// function.
    #[arg(value_name = "FILE[:NAME]")]
    pub source: Option<String>,
    /// Remove only records of these sizes.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size, requires = "source")]
    pub sizes: Vec<(String, i64)>,
    /// Remove the records that were tuned with --no-contract, instead of those that were tuned
    /// without it.
    #[arg(long, requires = "source")]
    pub no_contract: bool,
    /// Remove only records of this number of threads.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Remove only candidates that failed.
    #[arg(long)]
    pub failed: bool,
    /// Remove only records older than this, such as 30d or 12h.
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub older_than: Option<Duration>,
    /// Remove only damaged rows: those that cannot be read as a valid record.
    #[arg(long, conflicts_with_all = ["source", "threads", "failed", "older_than"])]
    pub damaged: bool,
    /// Confirm that every record is to be removed. Needed only if no condition is given.
    #[arg(long)]
    pub yes: bool,
    /// The cache to clear.
    #[command(flatten)]
    pub cache: CacheOption,
}
