//! Writes random pipelines of images as source text: programs to train cost models with, and to
//! test schedulers and compilers with.
//!
//! A seed, a number of stages and a [`Kind`] go in, and the text of a legal program comes out. The
//! same options give the same text. All sizes are numbers in the text, so that a pipeline can be
//! run, tuned and measured as it is. They are chosen so that a call takes some 0.1 to 10 ms.
//!
//! | file | what it writes |
//! |---|---|
//! | `sketch` | the text so far and its tensors; reads of tensors of other sizes |
//! | `element` | the types of elements, and their conversions |
//! | `pointwise` | values of one to three operands; joins of several images; colours |
//! | `stencil` | weighted sums and extremes over windows: along one axis, separable, two-dimensional |
//! | `pyramid` | levels of half the size, and back up |
//! | `reduction` | sums of rows and columns, normalisations, matrix products, convolutions |
//! | `scatter` | histograms, equalisations, tables, look-ups at places that data chooses |
//! | `scan` | recursive filters and running sums, forwards and backwards |
//!
//! Each file adds one group of stages to a `Sketch`. [`generate`] adds groups until the pipeline
//! has the stages that it should have, and joins what nobody has read.

mod element;
mod pointwise;
mod pyramid;
mod reduction;
mod scan;
mod scatter;
mod sketch;
mod stencil;

use std::fmt::{self, Display, Formatter};

use rand::RngExt;
use sketch::Sketch;

/// The kind of stages that most of a pipeline consists of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Windows of neighbours.
    Stencils,
    /// Elements of several images at the same place.
    Pointwise,
    /// Images of half the size, and of twice the size.
    Pyramids,
    /// Sums and extremes of whole rows, columns and images, and products of matrices.
    Reductions,
    /// Histograms, tables, and elements at places that data chooses.
    Scatters,
    /// Recurrences along rows and columns.
    Scans,
    /// All of these.
    Mixed,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 7] = [
        Kind::Stencils,
        Kind::Pointwise,
        Kind::Pyramids,
        Kind::Reductions,
        Kind::Scatters,
        Kind::Scans,
        Kind::Mixed,
    ];

    /// The name, as in `--kind`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Stencils => "stencils",
            Kind::Pointwise => "pointwise",
            Kind::Pyramids => "pyramids",
            Kind::Reductions => "reductions",
            Kind::Scatters => "scatters",
            Kind::Scans => "scans",
            Kind::Mixed => "mixed",
        }
    }

    /// How many times as long a stage of this kind takes as a pointwise stage, about.
    fn weight(self) -> f64 {
        match self {
            Kind::Pointwise => 1.0,
            Kind::Stencils | Kind::Mixed => 2.0,
            Kind::Pyramids => 0.7,
            Kind::Reductions | Kind::Scans => 2.0,
            Kind::Scatters => 3.0,
        }
    }
}

impl Display for Kind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How large the images of a pipeline are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// A call takes some 0.1 to 10 ms on a few cores.
    Full,
    /// Some dozens of rows and columns, which the interpreter runs in a moment.
    Small,
}

/// Which pipeline to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PipelineOptions {
    /// The seed of all choices.
    pub seed: u64,
    /// The number of stages: 3 to [`MOST_STAGES`]. Numbers outside are clamped.
    pub stages: usize,
    /// The kind of most stages.
    pub kind: Kind,
    /// The size of the images.
    pub size: Size,
}

/// The largest number of stages of a pipeline.
pub const MOST_STAGES: usize = 200;
const LEAST_STAGES: usize = 3;

/// A pipeline as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The name of its function, such as `stencils_7_12`: kind, seed, stages.
    pub name: String,
    /// The source text of the function.
    pub source: String,
    /// The number of tensors that it computes.
    pub stages: usize,
}

/// The share of the groups in a pipeline that are of other kinds than its own.
const OTHER_KINDS: f64 = 0.25;

/// Writes the pipeline of a seed.
pub fn generate(options: &PipelineOptions) -> Pipeline {
    let stages = options.stages.clamp(LEAST_STAGES, MOST_STAGES);
    let options = PipelineOptions { stages, ..*options };
    let mut sketch = Sketch::new(&options);
    while sketch.stages + sketch.open_joins(0) < stages {
        // A group may leave one more image that nobody has read.
        match stages.saturating_sub(sketch.stages + sketch.open_joins(1)) {
            0 => pointwise::add_to_unread(&mut sketch),
            left => add_group(&mut sketch, options.kind, left),
        }
    }
    pointwise::join_unread(&mut sketch);
    let name = format!("{}_{}_{}", options.kind, options.seed, stages);
    Pipeline { source: sketch.text(&name, &options), stages: sketch.stages, name }
}

/// Adds a group of at most `left` stages.
fn add_group(sketch: &mut Sketch, kind: Kind, left: usize) {
    let kinds =
        [Kind::Stencils, Kind::Pointwise, Kind::Pyramids, Kind::Reductions, Kind::Scatters, Kind::Scans];
    let is_other = kind == Kind::Mixed || sketch.rng.random_bool(OTHER_KINDS);
    let kind = match is_other {
        true if kind == Kind::Mixed => kinds[sketch.rng.random_range(0..kinds.len())],
        true => [Kind::Stencils, Kind::Pointwise][sketch.rng.random_range(0..2)],
        false => kind,
    };
    match kind {
        Kind::Stencils => stencil::add(sketch, left),
        Kind::Pyramids => pyramid::add(sketch, left),
        Kind::Reductions => reduction::add(sketch, left),
        Kind::Scatters => scatter::add(sketch, left),
        Kind::Scans => scan::add(sketch, left),
        Kind::Pointwise | Kind::Mixed => pointwise::add(sketch),
    }
}
