//! `tilewright generate`: writes a random pipeline.

use tilewright::pipelines::{PipelineOptions, Size, generate};

use crate::args::generate::GenerateArgs;
use crate::failure::Failure;
use crate::output::print;
use crate::pending_file::PendingFile;

/// Writes the pipeline of a seed.
pub fn run(args: &GenerateArgs) -> Result<(), Failure> {
    let size = if args.small { Size::Small } else { Size::Full };
    let options = PipelineOptions { seed: args.seed, stages: args.stages as usize, kind: args.kind, size };
    let pipeline = generate(&options);
    match PendingFile::new("--out", args.out.as_deref())? {
        Some(file) => file.write(&pipeline.source),
        None => print(&pipeline.source),
    }
}
