//! Lists the words that begin a step in the text of a schedule, such as `split`, with an example of
//! each step for messages.

use crate::step::Step;

/// The word that begins a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keyword {
    Split,
    Fuse,
    Reorder,
    Unroll,
    Vectorize,
    Parallel,
    Bind,
    Inline,
    Clone,
    ComputeAt,
    ComputeWith,
    Promote,
    Rfactor,
    Scan,
    Pipeline,
    Prefetch,
}

impl Keyword {
    /// All keywords, in the order in which a reader meets them.
    pub(super) const ALL: [Keyword; 16] = [
        Keyword::Split,
        Keyword::Fuse,
        Keyword::Reorder,
        Keyword::Unroll,
        Keyword::Vectorize,
        Keyword::Parallel,
        Keyword::Bind,
        Keyword::Inline,
        Keyword::Clone,
        Keyword::ComputeAt,
        Keyword::ComputeWith,
        Keyword::Promote,
        Keyword::Rfactor,
        Keyword::Scan,
        Keyword::Pipeline,
        Keyword::Prefetch,
    ];

    /// The keyword of a step.
    pub(super) fn of_step(step: &Step) -> Keyword {
        match step {
            Step::Split { .. } => Keyword::Split,
            Step::Fuse { .. } => Keyword::Fuse,
            Step::Reorder { .. } => Keyword::Reorder,
            Step::Unroll(_) => Keyword::Unroll,
            Step::Vectorize(_) => Keyword::Vectorize,
            Step::Parallel(_) => Keyword::Parallel,
            Step::Bind { .. } => Keyword::Bind,
            Step::Inline { .. } => Keyword::Inline,
            Step::Clone { .. } => Keyword::Clone,
            Step::ComputeAt { .. } => Keyword::ComputeAt,
            Step::ComputeWith { .. } => Keyword::ComputeWith,
            Step::Promote { .. } => Keyword::Promote,
            Step::Rfactor { .. } => Keyword::Rfactor,
            Step::Scan { .. } => Keyword::Scan,
            Step::Pipeline { .. } => Keyword::Pipeline,
            Step::Prefetch { .. } => Keyword::Prefetch,
        }
    }

    /// The keyword that this word is, if any.
    pub(super) fn named(word: &str) -> Option<Keyword> {
        Keyword::ALL.into_iter().find(|keyword| keyword.name() == word)
    }

    /// The word as written in a schedule.
    pub(super) fn name(self) -> &'static str {
        match self {
            Keyword::Split => "split",
            Keyword::Fuse => "fuse",
            Keyword::Reorder => "reorder",
            Keyword::Unroll => "unroll",
            Keyword::Vectorize => "vectorize",
            Keyword::Parallel => "parallel",
            Keyword::Bind => "bind",
            Keyword::Inline => "inline",
            Keyword::Clone => "clone",
            Keyword::ComputeAt => "compute_at",
            Keyword::ComputeWith => "compute_with",
            Keyword::Promote => "promote",
            Keyword::Rfactor => "rfactor",
            Keyword::Scan => "scan",
            Keyword::Pipeline => "pipeline",
            Keyword::Prefetch => "prefetch",
        }
    }

    /// An example of the step, for messages.
    pub(super) fn example(self) -> &'static str {
        match self {
            Keyword::Split => "split C.i -> io, ii:12",
            Keyword::Fuse => "fuse C.io, C.jo -> t",
            Keyword::Reorder => "reorder C.jo, C.ko, C.io",
            Keyword::Unroll => "unroll C.ii",
            Keyword::Vectorize => "vectorize C.j",
            Keyword::Parallel => "parallel C.jo",
            Keyword::Bind => "bind C.io -> block.y",
            Keyword::Inline => "inline P",
            Keyword::Clone => "clone P -> Q for C",
            Keyword::ComputeAt => "compute_at P, C.io",
            Keyword::ComputeWith => "compute_with A.y, B.y",
            Keyword::Promote => "promote B at C.ko -> Bp packed (d1/32, d0, d1%32)",
            Keyword::Rfactor => "rfactor C.ki -> Cp",
            Keyword::Scan => "scan y[2].part -> carry",
            Keyword::Pipeline => "pipeline C.ko stages 3",
            Keyword::Prefetch => "prefetch B at C.ki ahead 4",
        }
    }
}
