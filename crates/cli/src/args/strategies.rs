//! Defines the subcommands and options of `tilewright strategies`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use tilewright::tuner::tune::DEFAULT_STARTS;

use super::cpu::CpuArgs;
use super::{duration, size};

/// `tilewright strategies`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tilewright strategies\n  \
    tilewright strategies compare examples/flextensor/gemm.tw --sizes M=256,N=256,K=256 --strategies bandit,random --trials 50")]
pub struct StrategiesArgs {
    /// The command to execute. Without one, the strategies are listed.
    #[command(subcommand)]
    pub command: Option<StrategiesCommand>,
}

/// The subcommands of `tilewright strategies`.
#[derive(Debug, Subcommand)]
pub enum StrategiesCommand {
    /// Run several strategies on the same programs under one budget, and report how good and how
    /// fast each is.
    Compare(CompareArgs),
}

/// `tilewright strategies compare`
#[derive(Debug, clap::Args)]
#[command(after_help = "A schedule is measured once, when the first strategy proposes it. All other \
    strategies get the same result and are charged the same time, so strategies differ only in the \
    points that they propose. With --record, each measurement is appended to a file and never \
    repeated, so an interrupted comparison can be continued. With --replay nothing is measured: \
    the same options give the same searches, on any machine.\n\n\
    The best known kernel is the fastest that any search found. A space of at most --exhaustive \
    points is tried completely, and then the best known kernel is the optimum.\n\n\
    docs/strategies.md shows and discusses such comparisons.\n\n\
    Examples:\n  tilewright strategies compare examples/flextensor/gemm.tw --sizes M=512,N=512,K=512 --trials 100 --seeds 5\n  \
    tilewright strategies compare gemm.tw@M=512,N=512,K=512 gemm.tw@M=64,N=2048,K=64 --strategies bandit,opevo,trees --time 20s\n  \
    tilewright strategies compare gemm.tw@M=1024,N=1024,K=1024 --template tvm.template --starts 0 --share 0.001 --out figures\n  \
    tilewright strategies compare gemm.tw@M=512,N=512,K=512 --trials 100 --record gemm.recording --out gemm\n  \
    tilewright strategies compare --replay gemm.recording --strategies gbfs,random --trials 100")]
pub struct CompareArgs {
    /// Programs with their sizes: FILE, FILE:NAME or FILE@M=64,N=32. With --replay, the default is
    /// every recorded program.
    #[arg(value_name = "FILE[:NAME][@SIZES]", required_unless_present = "replay")]
    pub programs: Vec<String>,
    /// Sizes and integer scalars of the programs that have no @SIZES.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// Strategies to compare; the table lists them in the given order. The default is all but grid.
    /// `tilewright strategies` lists all names.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub strategies: Vec<String>,
    /// The number of searches per strategy, with the seeds 1, 2, …, or a range of seeds such as
    /// 6-10. With the same --record, new seeds add to the recorded ones.
    #[arg(long, value_name = "N", default_value = "5", value_parser = seeds)]
    pub seeds: RangeInclusive<u64>,
    /// Maximum number of candidates per search. The default is 100 if no other limit is given.
    #[arg(long, value_name = "N")]
    pub trials: Option<usize>,
    /// Maximum time per search, such as 30s. A recorded measurement counts with the time that it
    /// took.
    #[arg(long, value_parser = duration)]
    pub time: Option<Duration>,
    /// Maximum number of points that a search may propose, as a share of all points of the space,
    /// such as 0.001.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub share: Option<f64>,
    /// Maximum number of starting points that the cost model proposes. With 0, searches run
    /// without the model: it rejects no candidate, and the default schedule does not count as
    /// found.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_STARTS)]
    pub starts: usize,
    /// The number of searches that run at the same time. More searches keep more cores busy with
    /// compiling, and each candidate costs less time than in a single search.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub parallel_searches: usize,
    /// Search the schedules of this template instead of those that the analysis finds.
    /// docs/strategies.md explains templates.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub template: Option<PathBuf>,
    /// Try every point of each space that has at most this many points.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub exhaustive: u64,
    /// Let cost models learn from the measurements of the preceding programs of this list.
    #[arg(long)]
    pub transfer: bool,
    /// Train boosted trees only on the knob values of points, not on features of their loop nests.
    #[arg(long, conflicts_with = "transfer")]
    pub knob_features_only: bool,
    /// Where to run: cpu, or a device that `tilewright devices` lists.
    #[arg(long, default_value = "cpu", conflicts_with = "replay")]
    pub target: String,
    /// The part of the CPU to use.
    #[command(flatten)]
    pub cpu: CpuArgs,
    /// Write measurements to this file, and reuse those that it already has.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Take every measurement from this file and measure nothing. A candidate without a
    /// measurement counts as failed, and a warning gives the number of such candidates.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["threads", "vectors"])]
    pub replay: Option<PathBuf>,
    /// Write an HTML page, pictures and all numbers into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// Parses `5` as the seeds 1 to 5, and `6-10` as the seeds 6 to 10.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    const MAX_SEEDS: u64 = 1000;
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    let range = first.parse().ok().zip(last.parse().ok()).map(|(first, last): (u64, u64)| first..=last);
    range
        .filter(|range| *range.start() >= 1 && !range.is_empty() && range.end() - range.start() < MAX_SEEDS)
        .ok_or_else(|| format!("write a number of seeds from 1 to {MAX_SEEDS}, or a range such as 6-10"))
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a share of the space, more than 0 and at most 1, such as 0.001".to_owned())
}
