//! Threads of a GPU that meet: two touch one element, at least one of them writes it, and no barrier is between.
//!
//! Blocks run in no order, so what one block writes no other may touch in the same kernel. Threads of a block may touch
//! what another has written once all have passed a barrier. What is outside of all thread loops is done by the first
//! thread of a block. What is in a register only the thread has that wrote it, unless threads were combined: then all along
//! their loop have it.

use std::collections::HashMap;

use tilewright_ir::TensorId;
use tilewright_ir::nest::{Axis, For, LoopKind, LoopNest, Scope, any_loop};

/// Where a kernel is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct At {
    kernel: u64,
    block: [i64; 3],
    thread: [i64; 3],
    /// How many barriers, of all blocks, there were before.
    epoch: u64,
}

impl At {
    /// Whether nothing keeps the two apart.
    fn meets(self, other: At) -> bool {
        let together = self.epoch == other.epoch && self.thread != other.thread;
        self.kernel == other.kernel && (self.block != other.block || together)
    }
}

/// Who has touched an element: the last to write it, and of those that read it since, the last two that differ by
/// their thread, and the last two that differ by their block. If anyone meets a new writer, one of these does.
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

/// Who has an element of a register buffer: the thread that wrote it, or all that differ from it along an axis only.
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

/// Two threads that meet.
pub(crate) struct Meeting {
    pub(crate) first: String,
    pub(crate) second: String,
}

/// Follows the accesses of the threads of a nest.
pub(crate) struct Watch {
    at: At,
    /// How many block and thread loops are open.
    open: usize,
    traces: Vec<HashMap<usize, Trace>>,
    /// Who has the elements of each register buffer.
    holders: Vec<HashMap<usize, Holder>>,
    /// Buffers that threads can share.
    shared: Vec<bool>,
}

impl Watch {
    /// For a nest, if it has threads of a GPU.
    pub(crate) fn of(nest: &LoopNest) -> Option<Watch> {
        let has_threads = [&nest.setup, &nest.body].into_iter().any(|stmts| any_loop(stmts, &For::is_spread));
        let shared = nest.buffers.iter().map(|buffer| buffer.scope != Scope::Register).collect();
        has_threads.then(|| Watch {
            at: At::default(),
            open: 0,
            traces: vec![HashMap::new(); nest.buffers.len()],
            holders: vec![HashMap::new(); nest.buffers.len()],
            shared,
        })
    }

    /// A loop over blocks or threads begins.
    pub(crate) fn enter(&mut self) {
        if self.open == 0 {
            self.at = At { kernel: self.at.kernel + 1, epoch: self.at.epoch + 1, ..At::default() };
        }
        self.open += 1;
    }

    /// Its next iteration.
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

    /// It has come to its end.
    pub(crate) fn leave(&mut self, kind: LoopKind) {
        self.open -= 1;
        if let LoopKind::Thread(axis) = kind {
            self.at.thread[axis as usize] = 0;
        }
    }

    pub(crate) fn barrier(&mut self) {
        self.at.epoch += 1;
    }

    /// A buffer gets new room, which nobody has touched.
    pub(crate) fn allocate(&mut self, buffer: TensorId) {
        self.traces[buffer.index()].clear();
        self.holders[buffer.index()].clear();
    }

    /// What this thread has just written in a register, all along an axis have.
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
