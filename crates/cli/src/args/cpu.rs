//! Defines [`CpuArgs`]: the options that select a part of this computer's CPU.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use tilewright::target::VectorInstructions;

use super::threads;

/// The part of the CPU to use.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct CpuArgs {
    /// Threads for parallel loops. The default is one per core.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Vector instructions to use. The default is the widest set that this machine has.
    #[arg(long, value_parser = vectors())]
    pub vectors: Option<VectorInstructions>,
}

fn vectors() -> impl TypedValueParser<Value = VectorInstructions> {
    PossibleValuesParser::new(VectorInstructions::ALL.map(VectorInstructions::name)).map(|name| {
        let named = |vectors: &VectorInstructions| vectors.name() == name;
        VectorInstructions::ALL.into_iter().find(named).expect("the parser accepts only these names")
    })
}
