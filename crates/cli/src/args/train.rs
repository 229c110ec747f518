//! Defines the options of `tilewright train`.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use tilewright::train::judge::ModelKind;

use super::cpu::CpuArgs;
use super::duration;

/// `tilewright train`
#[derive(Debug, clap::Args)]
#[command(after_help = "The phases, in order; without one, all run:\n\n  \
    collect  measures random schedules of random pipelines on this machine, for --time. Each \
    candidate is compared with the interpreter or with the default schedule, and measured in turn \
    with the default schedule. Records are appended to --data one program at a time: the phase can \
    be killed and started again, and continues where it was.\n  \
    judge    trains models without one kind of pipelines and predicts that kind, for each kind in \
    turn, and prints how well each model ranks the schedules of programs that it has not seen.\n  \
    fit      trains the model that is judged best with all of --data, and writes --weights. Searches on \
    machines of this kind then use it.\n\n\
    `tilewright generate` prints the pipelines. --program adds programs of your own, which count as \
    a kind of their own: --group names it.\n\n\
    Examples:\n  tilewright train --time 20m\n  \
    tilewright train collect --target cuda --time 10m --data h200.gz\n  \
    tilewright train collect --program examples/pipelines/harris.tw:harris@H=1024,W=768 --group harris\n  \
    tilewright train judge --data h200.gz --report models.html")]
pub struct TrainArgs {
    /// The phase to run.
    #[arg(value_enum)]
    pub phase: Option<Phase>,
    /// The machine to train for: cpu is this machine, cuda and opencl are GPUs.
    #[arg(long, default_value = "cpu")]
    pub target: String,
    /// The part of the CPU to use.
    #[command(flatten)]
    pub cpu: CpuArgs,
    /// The time to measure for. A program that has begun is completed.
    #[arg(long, default_value = "20m", value_parser = duration)]
    pub time: Duration,
    /// The most schedules to measure of each program.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u64).range(2..=1000))]
    pub schedules: u64,
    /// The seed of the first random pipeline.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Measure this program instead of random pipelines. May be repeated.
    #[arg(long = "program", value_name = "FILE[:NAME][@SIZES]")]
    pub programs: Vec<String>,
    /// A scalar that sizes of the programs of --program are computed from, such as r_sigma=0.1.
    #[arg(long = "in", value_name = "NAME=NUMBER")]
    pub inputs: Vec<String>,
    /// The kind of the programs of --program.
    #[arg(long, value_name = "NAME", default_value = "given")]
    pub group: String,
    /// The files of measured schedules; `collect` appends to the first. The default is a file for
    /// this kind of machine in the user's data folder.
    #[arg(long, value_name = "FILE")]
    pub data: Vec<PathBuf>,
    /// The file of the trained model. The default is where searches look for it, in the user's data
    /// folder.
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// The kind of model to fit: analytical, network, trees or ensemble. The default is the one
    /// that is judged best; with this option, `fit` judges nothing.
    #[arg(long, value_name = "KIND", value_parser = model())]
    pub model: Option<ModelKind>,
    /// Write an HTML page with predicted against measured times to this file.
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
}

/// A kind of models by its name.
fn model() -> impl TypedValueParser<Value = ModelKind> {
    PossibleValuesParser::new(ModelKind::ALL.map(ModelKind::name)).map(|name| {
        let found = ModelKind::ALL.into_iter().find(|kind| kind.name() == name);
        found.expect("the parser accepts only these names")
    })
}

/// The phases of `tilewright train`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Phase {
    /// Measure random schedules.
    Collect,
    /// Compare models on kinds of pipelines that they have not seen.
    Judge,
    /// Train the model that searches use.
    Fit,
}
