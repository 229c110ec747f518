//! Detects races of GPU threads: two threads touch one element, at least one of them writes it, and
//! no barrier is between the two accesses.
//!
//! Blocks run in no order. Therefore no block may touch an element that another block writes in the
//! same kernel. A thread of a block may touch an element that another thread of the block has
//! written once all of them have passed a barrier. The first thread of a block executes statements
//! outside all thread loops. Only the thread that wrote a register can read it, unless threads were
//! combined: then all threads along their loop have the value.

use std::collections::HashMap;

use tilewright_ir::TensorId;
use tilewright_ir::nest::{Axis, For, LoopKind, LoopNest, Scope};
use tilewright_ir::walk::any_loop;

/// The point of execution of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct At {
    kernel: u64,
    block: [i64; 3],
    thread: [i64; 3],
    /// A counter that increases at every barrier, at the start of a kernel, and in every iteration
    /// of a block loop.
    epoch: u64,
}

impl At {
    /// Checks whether accesses at the two points are unordered.
    fn meets(self, other: At) -> bool {
        let together = self.epoch == other.epoch && self.thread != other.thread;
        self.kernel == other.kernel && (self.block != other.block || together)
    }
}

/// The accesses of an element so far: the last write, and some of the reads since. Of the reads it
/// holds the last two by different threads and the last two by different blocks. If a new write
/// conflicts with any earlier access, it conflicts with one of these.
#[derive(Clone, Copy, Debug, Default)]
struct Trace {
    writer: Option<At>,
    threads: [Option<At>; 2],
    blocks: [Option<At>; 2],
}

impl Trace {
    fn read(&mut self, at: At) {
        let same =
            |own: Option<At>, other: fn(At) -> [i64; 3]| own.is_some_and(|own| other(own) == other(at));
        if !same(self.threads[0], |at| at.thread) {
            self.threads[1] = self.threads[0];
        }
        self.threads[0] = Some(at);
        if !same(self.blocks[0], |at| at.block) {
            self.blocks[1] = self.blocks[0];
        }
        self.blocks[0] = Some(at);
    }
}

/// The threads that have an element of a register buffer: the thread that wrote it, or all threads
/// that differ from the writer only along one axis.
#[derive(Clone, Copy, Debug)]
struct Holder {
    writer: At,
    all_along: Option<Axis>,
}

impl Holder {
    fn is(self, at: At) -> bool {
        let same = |axis: &Axis| {
            self.all_along == Some(*axis) || self.writer.thread[*axis as usize] == at.thread[*axis as usize]
        };
        self.writer.kernel == at.kernel && self.writer.block == at.block && Axis::ALL.iter().all(same)
    }
}

/// The descriptions of two conflicting accesses.
pub(crate) struct Meeting {
    pub(crate) first: String,
    pub(crate) second: String,
}

/// Tracks the accesses of the threads of a nest.
pub(crate) struct Watch {
    at: At,
    /// The number of open loops over blocks and threads.
    open: usize,
    traces: Vec<HashMap<usize, Trace>>,
    /// The threads that have the elements of each register buffer.
    holders: Vec<HashMap<usize, Holder>>,
    /// Which buffers several threads can access.
    shared: Vec<bool>,
}

impl Watch {
    /// A tracker for a nest, or `None` if the nest has no loops over blocks or threads.
    pub(crate) fn of(nest: &LoopNest) -> Option<Watch> {
        let has_threads = [&nest.setup, &nest.body].into_iter().any(|stmts| any_loop(stmts, For::is_spread));
        let shared = nest.buffers.iter().map(|buffer| buffer.scope != Scope::Register).collect();
        has_threads.then(|| Watch {
            at: At::default(),
            open: 0,
            traces: vec![HashMap::new(); nest.buffers.len()],
            holders: vec![HashMap::new(); nest.buffers.len()],
            shared,
        })
    }

    /// Records the beginning of a loop over blocks or threads.
    pub(crate) fn enter(&mut self) {
        if self.open == 0 {
            self.at = At { kernel: self.at.kernel + 1, epoch: self.at.epoch + 1, ..At::default() };
        }
        self.open += 1;
    }

    /// Records the next iteration of such a loop.
    pub(crate) fn turn(&mut self, kind: LoopKind, value: i64) {
        match kind {
            LoopKind::Block(axis) => {
                self.at.block[axis as usize] = value;
                self.at.epoch += 1;
            }
            LoopKind::Thread(axis) => self.at.thread[axis as usize] = value,
            _ => {}
        }
    }

    /// Records the end of such a loop.
    pub(crate) fn leave(&mut self, kind: LoopKind) {
        self.open -= 1;
        if let LoopKind::Thread(axis) = kind {
            self.at.thread[axis as usize] = 0;
        }
    }

    pub(crate) fn barrier(&mut self) {
        self.at.epoch += 1;
    }

    /// Records a new allocation of a buffer, which no thread has touched.
    pub(crate) fn allocate(&mut self, buffer: TensorId) {
        self.traces[buffer.index()].clear();
        self.holders[buffer.index()].clear();
    }

    /// Records that all threads along an axis have the value that this thread has just written to a
    /// register.
    pub(crate) fn give_to_all(&mut self, buffer: TensorId, place: usize, axis: Axis) {
        if let Some(holder) = self.holders[buffer.index()].get_mut(&place) {
            holder.all_along = Some(axis);
        }
    }

    pub(crate) fn read(&mut self, buffer: TensorId, place: usize) -> Result<(), Meeting> {
        if self.open == 0 {
            return Ok(());
        }
        if !self.shared[buffer.index()] {
            let holder = self.holders[buffer.index()].get(&place);
            let other = holder.filter(|holder| !holder.is(self.at));
            return other.map_or(Ok(()), |other| Err(meeting("writes", other.writer, "reads", self.at)));
        }
        let trace = self.traces[buffer.index()].entry(place).or_default();
        let writer = trace.writer.filter(|writer| writer.meets(self.at));
        trace.read(self.at);
        writer.map_or(Ok(()), |writer| Err(meeting("writes", writer, "reads", self.at)))
    }

    pub(crate) fn write(&mut self, buffer: TensorId, place: usize) -> Result<(), Meeting> {
        if self.open == 0 {
            return Ok(());
        }
        if !self.shared[buffer.index()] {
            let holder = Holder { writer: self.at, all_along: None };
            self.holders[buffer.index()].insert(place, holder);
            return Ok(());
        }
        let trace = self.traces[buffer.index()].entry(place).or_default();
        let before = std::mem::replace(trace, Trace { writer: Some(self.at), ..Trace::default() });
        let met = |own: &Option<At>| own.filter(|own| own.meets(self.at));
        if let Some(writer) = met(&before.writer) {
            return Err(meeting("writes", writer, "writes", self.at));
        }
        let reader = before.threads.iter().chain(&before.blocks).find_map(met);
        reader.map_or(Ok(()), |reader| Err(meeting("reads", reader, "writes", self.at)))
    }
}

fn meeting(before: &str, first: At, now: &str, second: At) -> Meeting {
    let text = |what: &str, at: At| format!("thread {:?} of block {:?} {what}", at.thread, at.block);
    Meeting { first: text(before, first), second: text(now, second) }
}
