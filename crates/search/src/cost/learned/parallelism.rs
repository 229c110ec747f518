//! Describes how the work of a stage is spread over a machine: cores and their threads, or
//! multiprocessors with blocks and threads.

use tilewright_ir::nest::LoopKind;

use super::Speeds;
use super::stages::Stage;

/// The spread of a stage over a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Parallelism {
    /// The iterations of parallel loops, or the blocks, each time that they are started.
    pub pieces: f64,
    /// The threads of a block; 1 on a CPU.
    pub threads: f64,
    /// How often the pieces are started: the iterations of the loops around them.
    pub starts: f64,
    /// The share of the units (cores, multiprocessors) that have work, on average until the last
    /// has finished.
    pub busy: f64,
    /// The share of the lanes of a warp that have work.
    pub warp_use: f64,
}

impl Parallelism {
    /// The number of features.
    pub const COUNT: usize = 5;
    /// The name of each feature, for people.
    pub const NAMES: [&'static str; Self::COUNT] =
        ["pieces", "threads of a block", "starts", "busy units", "busy lanes of a warp"];

    pub(super) fn of(stage: &Stage, speeds: &Speeds) -> Parallelism {
        let is_piece = |kind| matches!(kind, LoopKind::Parallel | LoopKind::Block(_));
        let pieces = stage.trips_of(is_piece);
        let threads = stage.trips_of(|kind| matches!(kind, LoopKind::Thread(_)));
        let outermost = stage.loops.iter().position(|own| is_piece(own.kind));
        let starts = outermost.map_or(1.0, |at| stage.loops[..at].iter().map(|own| own.trips).product());
        Parallelism {
            pieces,
            threads,
            starts,
            busy: pieces / ((pieces / speeds.units).ceil().max(1.0) * speeds.units),
            warp_use: threads / ((threads / speeds.warp).ceil().max(1.0) * speeds.warp),
        }
    }

    pub(super) fn values(&self) -> [f64; Self::COUNT] {
        [self.pieces, self.threads, self.starts, self.busy, self.warp_use]
    }
}
