//! Detects races of GPU threads: two threads touch one element, at least one of them writes it, and
//! no barrier is between the two accesses.
//!
//! Blocks run in no order. Therefore no block may touch an element that another block writes in the
//! same kernel. A thread of a block may touch an element that another thread of the block has
//! written once all of them have passed a barrier. The first thread of a block executes statements
//! outside all thread loops. Only the thread that wrote a register can read it, unless threads were
//! combined: then all threads along their loop have the value. Atomic updates of an element do not
//! conflict with each other.

use std::collections::HashMap;

use tilewright_ir::ids::Id;
use tilewright_ir::nest::{Axis, BufferId, For, LoopKind, LoopNest, Scope};
use tilewright_ir::walk::any_loop;

/// The point of execution of a kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ExecutionPoint {
    kernel: u64,
    block: [i64; 3],
    thread: [i64; 3],
    /// A counter that increases at every barrier, at the start of a kernel, and in every iteration
    /// of a block loop.
    epoch: u64,
}

impl ExecutionPoint {
    /// Checks whether accesses at the two points are unordered.
    fn conflicts_with(self, other: ExecutionPoint) -> bool {
        let together = self.epoch == other.epoch && self.thread != other.thread;
        self.kernel == other.kernel && (self.block != other.block || together)
    }
}

/// The accesses of an element so far: the last write, and some of the reads and of the atomic
/// updates since.
#[derive(Clone, Copy, Debug, Default)]
struct AccessHistory {
    writer: Option<ExecutionPoint>,
    reads: Witnesses,
    updates: Witnesses,
}

/// Some of the accesses of one kind: the last two by different threads and the last two by
/// different blocks. If a later access conflicts with any access of this kind, it conflicts with
/// one of these.
#[derive(Clone, Copy, Debug, Default)]
struct Witnesses {
    threads: [Option<ExecutionPoint>; 2],
    blocks: [Option<ExecutionPoint>; 2],
}

impl Witnesses {
    fn add(&mut self, at: ExecutionPoint) {
        let same = |own: Option<ExecutionPoint>, other: fn(ExecutionPoint) -> [i64; 3]| {
            own.is_some_and(|own| other(own) == other(at))
        };
        if !same(self.threads[0], |at| at.thread) {
            self.threads[1] = self.threads[0];
        }
        self.threads[0] = Some(at);
        if !same(self.blocks[0], |at| at.block) {
            self.blocks[1] = self.blocks[0];
        }
        self.blocks[0] = Some(at);
    }

    fn conflict_with(&self, at: ExecutionPoint) -> Option<ExecutionPoint> {
        let all = self.threads.iter().chain(&self.blocks).flatten();
        all.copied().find(|own| own.conflicts_with(at))
    }
}

/// The threads that have an element of a register buffer: the thread that wrote it, or all threads
/// that differ from the writer only along one axis.
#[derive(Clone, Copy, Debug)]
struct Holder {
    writer: ExecutionPoint,
    shared_axis: Option<Axis>,
}

impl Holder {
    fn includes(self, at: ExecutionPoint) -> bool {
        let same = |axis: &Axis| {
            self.shared_axis == Some(*axis) || self.writer.thread[*axis as usize] == at.thread[*axis as usize]
        };
        self.writer.kernel == at.kernel && self.writer.block == at.block && Axis::ALL.iter().all(same)
    }
}

/// The descriptions of two conflicting accesses.
pub(crate) struct Conflict {
    pub(crate) first: String,
    pub(crate) second: String,
}

/// Tracks the accesses of the threads of a nest.
pub(crate) struct RaceDetector {
    current: ExecutionPoint,
    /// The number of open loops over blocks and threads.
    open_loops: usize,
    histories: Vec<HashMap<usize, AccessHistory>>,
    /// The threads that have the elements of each register buffer.
    holders: Vec<HashMap<usize, Holder>>,
    /// Which buffers several threads can access.
    is_shared: Vec<bool>,
}

impl RaceDetector {
    /// A tracker for a nest, or `None` if the nest has no loops over blocks or threads.
    pub(crate) fn for_nest(nest: &LoopNest) -> Option<RaceDetector> {
        let has_threads =
            [&nest.setup, &nest.body].into_iter().any(|stmts| any_loop(stmts, For::is_block_or_thread_loop));
        let shared = nest.buffers.iter().map(|buffer| buffer.scope != Scope::Register).collect();
        has_threads.then(|| RaceDetector {
            current: ExecutionPoint::default(),
            open_loops: 0,
            histories: vec![HashMap::new(); nest.buffers.len()],
            holders: vec![HashMap::new(); nest.buffers.len()],
            is_shared: shared,
        })
    }

    /// Records the beginning of a loop over blocks or threads.
    pub(crate) fn enter(&mut self) {
        if self.open_loops == 0 {
            self.current = ExecutionPoint {
                kernel: self.current.kernel + 1,
                epoch: self.current.epoch + 1,
                ..ExecutionPoint::default()
            };
        }
        self.open_loops += 1;
    }

    /// Records the next iteration of such a loop.
    pub(crate) fn next_iteration(&mut self, kind: LoopKind, value: i64) {
        match kind {
            LoopKind::Block(axis) => {
                self.current.block[axis as usize] = value;
                self.current.epoch += 1;
            }
            LoopKind::Thread(axis) => self.current.thread[axis as usize] = value,
            _ => {}
        }
    }

    /// Records the end of such a loop.
    pub(crate) fn leave(&mut self, kind: LoopKind) {
        self.open_loops -= 1;
        if let LoopKind::Thread(axis) = kind {
            self.current.thread[axis as usize] = 0;
        }
    }

    pub(crate) fn barrier(&mut self) {
        self.current.epoch += 1;
    }

    /// Records a new allocation of a buffer, which no thread has touched.
    pub(crate) fn allocate(&mut self, buffer: BufferId) {
        self.histories[buffer.index()].clear();
        self.holders[buffer.index()].clear();
    }

    /// Records that all threads along an axis have the value that this thread has just written to a
    /// register.
    pub(crate) fn share_along(&mut self, buffer: BufferId, index: usize, axis: Axis) {
        if let Some(holder) = self.holders[buffer.index()].get_mut(&index) {
            holder.shared_axis = Some(axis);
        }
    }

    /// Records a read. The evaluation of expressions, which calls this, is the same for programs
    /// and nests, but only nests have a detector: the id is always that of a buffer.
    pub(crate) fn read(&mut self, buffer: impl Id, index: usize) -> Result<(), Conflict> {
        if self.open_loops == 0 {
            return Ok(());
        }
        if !self.is_shared[buffer.index()] {
            let holder = self.holders[buffer.index()].get(&index);
            let other = holder.filter(|holder| !holder.includes(self.current));
            return other
                .map_or(Ok(()), |other| Err(conflict("writes", other.writer, "reads", self.current)));
        }
        let current = self.current;
        let trace = self.histories[buffer.index()].entry(index).or_default();
        trace.reads.add(current);
        let writer = trace.writer.filter(|writer| writer.conflicts_with(current));
        match writer.or_else(|| trace.updates.conflict_with(current)) {
            Some(writer) => Err(conflict("writes", writer, "reads", current)),
            None => Ok(()),
        }
    }

    /// Records an atomic update of an element in memory. It is ordered with plain accesses only by
    /// barriers.
    pub(crate) fn update(&mut self, buffer: impl Id, index: usize) -> Result<(), Conflict> {
        if self.open_loops == 0 {
            return Ok(());
        }
        let current = self.current;
        let trace = self.histories[buffer.index()].entry(index).or_default();
        trace.updates.add(current);
        if let Some(writer) = trace.writer.filter(|writer| writer.conflicts_with(current)) {
            return Err(conflict("writes", writer, "updates", current));
        }
        match trace.reads.conflict_with(current) {
            Some(reader) => Err(conflict("reads", reader, "updates", current)),
            None => Ok(()),
        }
    }

    /// Records a write; the id is that of a buffer, as for a read.
    pub(crate) fn write(&mut self, buffer: impl Id, index: usize) -> Result<(), Conflict> {
        if self.open_loops == 0 {
            return Ok(());
        }
        if !self.is_shared[buffer.index()] {
            let holder = Holder { writer: self.current, shared_axis: None };
            self.holders[buffer.index()].insert(index, holder);
            return Ok(());
        }
        let trace = self.histories[buffer.index()].entry(index).or_default();
        let before = std::mem::replace(
            trace,
            AccessHistory { writer: Some(self.current), ..AccessHistory::default() },
        );
        let current = self.current;
        if let Some(writer) = before.writer.filter(|writer| writer.conflicts_with(current)) {
            return Err(conflict("writes", writer, "writes", current));
        }
        if let Some(updater) = before.updates.conflict_with(current) {
            return Err(conflict("updates", updater, "writes", current));
        }
        match before.reads.conflict_with(current) {
            Some(reader) => Err(conflict("reads", reader, "writes", current)),
            None => Ok(()),
        }
    }
}

fn conflict(before: &str, first: ExecutionPoint, now: &str, second: ExecutionPoint) -> Conflict {
    let text =
        |what: &str, at: ExecutionPoint| format!("thread {:?} of block {:?} {what}", at.thread, at.block);
    Conflict { first: text(before, first), second: text(now, second) }
}
