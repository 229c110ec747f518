//! Defines the options of `tilewright generate`.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tilewright::pipelines::Kind;

/// `tilewright generate`
#[derive(Debug, clap::Args)]
#[command(after_help = "A pipeline is a program whose stages read images and write images. The same \
    options give the same text. All sizes are numbers in the text, chosen so that a call takes some \
    0.1 to 10 ms; --small gives sizes at which the interpreter takes a moment. The pipelines are \
    those that `tilewright train` measures.\n\n\
    Kinds: stencils read windows of neighbours; pointwise stages join several images; pyramids have \
    images of half the size and of twice the size; reductions are sums of rows, columns and images, \
    and products of matrices; scatters are histograms, tables and look-ups by data; scans are \
    recursive filters and running sums; mixed has all of these.\n\n\
    Examples:\n  tilewright generate --seed 7 --stages 12\n  \
    tilewright generate --seed 7 --stages 40 --kind pyramids --out p.tw && tilewright bench p.tw\n  \
    tilewright generate --seed 1 --stages 8 --kind scans --small --out s.tw && tilewright run s.tw --check")]
pub struct GenerateArgs {
    /// The seed of all choices.
    #[arg(long, value_name = "N")]
    pub seed: u64,
    /// The number of stages, from 3 to 200.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(3..=200))]
    pub stages: u64,
    /// The kind of most stages.
    #[arg(long, value_name = "KIND", default_value = "mixed", value_parser = kind())]
    pub kind: Kind,
    /// Small images, for the interpreter.
    #[arg(long)]
    pub small: bool,
    /// The file to write. Without it, the text is printed.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// A kind of pipelines by its name.
pub(super) fn kind() -> impl TypedValueParser<Value = Kind> {
    PossibleValuesParser::new(Kind::ALL.map(Kind::name)).map(|name| {
        let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        found.expect("the parser accepts only these names")
    })
}
