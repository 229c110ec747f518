//! What can be asked of `tilewright strategies`.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use tilewright_target::Vectors;
use tilewright_tuner::tune::STARTS;

use super::{duration, size, threads, vectors};

/// `tilewright strategies`
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tilewright strategies\n  \
    tilewright strategies compare examples/flextensor/gemm.tw --sizes M=256,N=256,K=256 --strategies bandit,random --trials 50")]
pub struct StrategiesArgs {
    /// What to do; without, the strategies are listed.
    #[command(subcommand)]
    pub command: Option<StrategiesCommand>,
}

/// The commands about strategies.
#[derive(Debug, Subcommand)]
pub enum StrategiesCommand {
    /// Have strategies search the same programs under one budget, and say how good and how quick each is.
    Compare(CompareArgs),
}

/// `tilewright strategies compare`
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A schedule is measured once, whoever asks for it first; all others are told the same and are charged the same time. So \
    strategies differ in nothing but what they ask for. With --record, measurements are kept in a file as they are made; what it has \
    already is not measured again, so a comparison can be interrupted and go on. With --replay nothing is measured: the same options \
    give the same searches, on any machine.\n\n\
    The best known kernel is the best that anybody found. Where the space is small enough, all of it is tried, and the best known is the best.\n\n\
    docs/strategies.md has comparisons that were made like this, and what they say.\n\n\
    Examples:\n  tilewright strategies compare examples/flextensor/gemm.tw --sizes M=512,N=512,K=512 --trials 100 --seeds 5\n  \
    tilewright strategies compare gemm.tw@M=512,N=512,K=512 gemm.tw@M=64,N=2048,K=64 --strategies bandit,opevo,trees --time 20s\n  \
    tilewright strategies compare gemm.tw@M=1024,N=1024,K=1024 --template tvm.template --starts 0 --share 0.001 --out figures\n  \
    tilewright strategies compare gemm.tw@M=512,N=512,K=512 --trials 100 --record gemm.tape --out gemm\n  \
    tilewright strategies compare --replay gemm.tape --strategies gbfs,random --trials 100"
)]
pub struct CompareArgs {
    /// Programs, with their sizes: FILE, FILE:NAME or FILE@M=64,N=32. With --replay, those of the recording if none are given.
    #[arg(value_name = "FILE[:NAME][@SIZES]", required_unless_present = "replay")]
    pub programs: Vec<String>,
    /// Sizes and integer scalars of programs that come without.
    #[arg(long, value_name = "NAME=N,…", value_delimiter = ',', value_parser = size)]
    pub sizes: Vec<(String, i64)>,
    /// Strategies, in the order of the table; all but grid if not given. `tilewright strategies` lists them.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub strategies: Vec<String>,
    /// Every strategy searches so many times, from seeds 1, 2, …, or from each of a range, such as 6-10: with the same --record,
    /// those come on top of the ones before.
    #[arg(long, value_name = "N", default_value = "5", value_parser = seeds)]
    pub seeds: RangeInclusive<u64>,
    /// Candidates of a search, at most; 100 if no other limit is given.
    #[arg(long, value_name = "N")]
    pub trials: Option<usize>,
    /// Time of a search, at most, such as 30s, as if it had measured everything itself.
    #[arg(long, value_parser = duration)]
    pub time: Option<Duration>,
    /// Points that a search may propose, as a share of the space, such as 0.001.
    #[arg(long, value_name = "PART", value_parser = share)]
    pub share: Option<f64>,
    /// Points that the cost model gives to start from, at most; with 0 searches are blind: the model
    /// refuses nothing, and the default schedule does not count as found.
    #[arg(long, value_name = "N", default_value_t = STARTS)]
    pub starts: usize,
    /// Searches that go on at the same time: many cores then compile what all of them wait for, and a candidate takes
    /// less time than it would for one search alone.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub abreast: usize,
    /// Search the schedules of this template instead of those that the analysis finds; docs/strategies.md says how to write
    /// one.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub template: Option<PathBuf>,
    /// Try every point of spaces that have no more than this.
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub exhaustive: u64,
    /// Let models learn from what was measured for the programs before, in their order here.
    #[arg(long)]
    pub transfer: bool,
    /// Let trees see only the numbers of points themselves, not the loop nests that they stand for.
    #[arg(long, conflicts_with = "transfer")]
    pub own_features: bool,
    /// Where to run: cpu, or a device that `tilewright devices` lists.
    #[arg(long, default_value = "cpu", conflicts_with = "replay")]
    pub target: String,
    /// Threads for parallel loops; as many as there are cores if not given.
    #[arg(long, value_name = "N", value_parser = threads, conflicts_with = "replay")]
    pub threads: Option<usize>,
    /// Vector instructions to use, if not the widest that this machine has.
    #[arg(long, value_parser = vectors(), conflicts_with = "replay")]
    pub vectors: Option<Vectors>,
    /// Keep measurements in this file, and use those that are there.
    #[arg(long, value_name = "FILE", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Measure nothing: answer from this file. What it does not have counts as failed, and is counted.
    #[arg(long, value_name = "FILE")]
    pub replay: Option<PathBuf>,
    /// Write a page to look at, pictures and all numbers into this folder.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
}

/// The seeds of `5`, which are 1 to 5, or of `6-10`.
fn seeds(text: &str) -> Result<RangeInclusive<u64>, String> {
    const MOST: u64 = 1000;
    let (first, last) = text.split_once('-').unwrap_or(("1", text));
    let range = first.parse().ok().zip(last.parse().ok()).map(|(first, last): (u64, u64)| first..=last);
    range
        .filter(|range| *range.start() >= 1 && !range.is_empty() && range.end() - range.start() < MOST)
        .ok_or_else(|| {
            format!("write how many, from 1 to {MOST}, or the first and the last of them, such as 6-10")
        })
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share: &f64| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "write a part of the space, more than 0 and at most 1, such as 0.001".to_owned())
}
