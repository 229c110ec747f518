//! Counts the instructions of statements, and assigns each instruction to the loop in which the
//! generated code executes it.
//!
//! Code generation eliminates common subexpressions and hoists loop-invariant code. Hence a value
//! is computed once for every iteration of the innermost serial loop that it depends on, times the
//! trip counts of the unrolled loops inside that it depends on too. Its instructions count for that
//! serial loop.

use std::collections::HashSet;

use tilewright_ir::nest::{Access, Atom, Buffer, BufferId, Expr, ExprKind, IndexExpr, Scope, Store};
use tilewright_ir::{BinaryOp, DType, LoopNest, ReduceOp};
use tilewright_target::Cpu;

use super::footprint::LINE_BYTES;
use super::frames::{Frame, FrameId, FrameKind, Frames};
use super::lanes::{LaneAccess, is_ragged, lanes, without_lanes};
use super::machine::Machine;
use super::operations::{is_free, operation_cost};
use super::shared::{Shares, shares};

/// A set of open frames, one bit each, for example the frames that a value depends on.
pub(super) type Frameset = u64;

/// The number of vector instructions to gather one lane of less than four bytes. No machine has a
/// gather instruction for that.
const NARROW_GATHER: f64 = 3.0;
/// The store-forwarding latency: cycles from a store until a load of the same element has the
/// value.
pub(super) const FORWARDING_LATENCY: f64 = 5.0;
/// The number of vector instructions of a vector whose subscript is clamped: the mask of the lanes
/// inside, and two selections of the edges.
const CLAMPING: f64 = 4.0;
/// The number of integer instructions of a data-dependent subscript: its conversion, its bounds
/// check, and the address.
const DATA_INDEX_INSTRUCTIONS: f64 = 6.0;
/// The number of instructions of an index division by a number, and of an index minimum.
const INDEX_DIVISION: f64 = 4.0;
const INDEX_MINIMUM: f64 = 2.0;
/// The latency of one step of a horizontal reduction of lanes: a shuffle and an addition.
const FOLD_LATENCY: f64 = 7.0;

/// The instructions that the iterations of one serial loop execute in a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Vector and floating-point instructions.
    pub vector: f64,
    pub loads: f64,
    pub stores: f64,
    /// Integer instructions, including jumps.
    pub scalar: f64,
    /// Cycles of the division unit, which is not pipelined: division, square roots.
    pub divide: f64,
    /// Cycles of the longest dependence chain.
    pub chain: f64,
    /// The number of values that are live in registers at the same time, and how many of them are
    /// written.
    pub live: f64,
    pub live_written: f64,
    /// Vector instructions with inactive lanes, weighted by the share of these lanes.
    pub masked: f64,
}

/// Counts instructions and assigns them to frames.
pub(super) struct Counter<'a> {
    pub nest: &'a LoopNest,
    pub cpu: &'a Cpu,
    pub machine: &'a Machine,
    /// One entry for every frame; only the entries of serial frames are used.
    pub counts: Vec<Counts>,
    /// The share of lanes that conditions switch off.
    pub off_lanes: f64,
    strides: Vec<Vec<i64>>,
    /// The values that unrolled iterations of the current statement share.
    shared: Shares,
    /// For every register buffer, the number of frames that were open around its allocation.
    pub allocation_depths: Vec<usize>,
    /// For every register buffer, the loop whose iterations form its dependence chain, and the
    /// cycles of this chain if no iterations overlap.
    chains: Vec<(FrameId, f64)>,
    /// The index divisions that a loop has already computed.
    counted_divisions: HashSet<(FrameId, &'a Atom)>,
}

/// A value: the frames it depends on, and its type.
#[derive(Clone, Copy)]
struct Value {
    deps: Frameset,
    dtype: DType,
}

/// The values that are live in one statement.
#[derive(Default)]
struct LiveValues {
    /// Accumulators, and loaded values that are used more than once.
    values: f64,
    written: f64,
    /// The largest loaded value that is used once, right after it is loaded.
    passing: f64,
}

impl LiveValues {
    fn registers(&self) -> f64 {
        self.values + self.passing
    }
}

impl<'a> Counter<'a> {
    pub fn new(nest: &'a LoopNest, cpu: &'a Cpu, machine: &'a Machine) -> Counter<'a> {
        let strides = nest.buffers.iter().map(Buffer::strides).collect();
        let counts = vec![Counts::default()];
        let (rooms, chains) = (vec![0; nest.buffers.len()], vec![(0, 0.0); nest.buffers.len()]);
        let (shared, divided) = (Shares::new(), HashSet::new());
        Counter {
            nest,
            cpu,
            machine,
            counts,
            off_lanes: 0.0,
            strides,
            shared,
            allocation_depths: rooms,
            chains,
            counted_divisions: divided,
        }
    }

    /// Counts the instructions of one statement.
    pub fn store(&mut self, frames: &Frames, store: &'a Store) {
        self.counts.resize(frames.all.len(), Counts::default());
        let inner = innermost_serial(frames);
        self.shared = shares(&store.value, &|var| match frames.depth(var) {
            Some(place) if place > inner && frames.frame_at(place).kind == FrameKind::Unrolled => {
                frames.frame_at(place).trips
            }
            _ => 1.0,
        });
        let mut alive = LiveValues::default();
        let value = self.value(frames, &store.value, store.reduce == Some(ReduceOp::Add), &mut alive);
        let target = dependencies(frames, &store.target.indices);
        let buffer = self.nest.buffer(store.target.tensor);
        let slot = buffer.scope == Scope::Register;
        let all = value.deps | target;
        let lanes = lanes(frames);
        let folds =
            lanes.is_some_and(|(place, _)| contains_frame(all, place) && !contains_frame(target, place));
        if store.reduce.is_some() {
            self.reduce(frames, store.target.tensor, value, target, folds);
        }
        if slot {
            let vectors = self.vectors(frames, target, buffer.dtype);
            let copies = self.live_registers(frames, target, vectors);
            alive.values += copies;
            alive.written += if store.reduce.is_some() { copies } else { 0.0 };
        } else {
            self.write(frames, store, target);
            self.chain_through_memory(frames, store, target);
            self.scatter_chain(frames, store);
            self.recurrence(frames, store);
        }
        let counts = &mut self.counts[frames.stack[inner]];
        counts.live = counts.live.max(alive.registers());
        counts.live_written = counts.live_written.max(alive.written);
    }

    /// Counts the operator of a reduction and its dependence chain.
    fn reduce(&mut self, frames: &Frames, result: BufferId, value: Value, target: Frameset, folds: bool) {
        let all = value.deps | target;
        self.vector_ops(frames, all, value.dtype, 1.0);
        let mut latency = self.machine.latency;
        if folds && let Some((_, count)) = lanes(frames) {
            // Whole vectors are combined first, then the lanes of the last vector.
            let steps = count.min(self.cpu.lanes(value.dtype.bytes()) as f64).max(2.0).log2().ceil();
            latency += steps * FOLD_LATENCY;
            self.vector_ops(frames, without_lanes(frames, all), value.dtype, 2.0 * steps);
        }
        self.chain(frames, result, target, latency);
    }

    /// Counts the cycles of a dependence chain. Unrolled iterations with the same result wait for
    /// each other. So do iterations of the innermost loop, unless each iteration has its own
    /// results. In that case, as many iterations overlap as the out-of-order window allows.
    pub(super) fn chain(&mut self, frames: &Frames, result: BufferId, target: Frameset, latency: f64) {
        let inner = innermost_serial(frames);
        if inner == 0 {
            return;
        }
        let (mut chained, mut copies) = (1.0, 1.0);
        for place in inner + 1..frames.stack.len() {
            if frames.frame_at(place).kind == FrameKind::Unrolled {
                copies *= frames.frame_at(place).trips;
                chained *= if contains_frame(target, place) { 1.0 } else { frames.frame_at(place).trips };
            }
        }
        let cycles = frames.frame_at(inner).runs * branches(frames, inner) * chained * latency;
        let carried = !contains_frame(target, inner) && inner >= self.allocation_depths[result.index()];
        let overlap = if carried { 1.0 } else { (self.machine.window / copies).max(1.0) };
        self.chains[result.index()] = (frames.stack[inner], cycles);
        let counts = &mut self.counts[frames.stack[inner]];
        counts.chain = counts.chain.max(cycles / overlap);
    }

    /// Counts a chain through memory: every iteration stores to the same element, and the next
    /// iteration loads it again.
    fn chain_through_memory(&mut self, frames: &Frames, store: &Store, target: Frameset) {
        let inner = innermost_serial(frames);
        if let ExprKind::Load(access) = &store.value.kind
            && self.nest.buffer(access.tensor).scope == Scope::Register
            && inner > 0
            && !contains_frame(target, inner)
        {
            let (of, waiting) = self.chains[access.tensor.index()];
            let own = if of == frames.stack[inner] { waiting } else { 0.0 };
            let cycles = own + frames.frame_at(inner).runs * FORWARDING_LATENCY;
            let counts = &mut self.counts[frames.stack[inner]];
            counts.chain = counts.chain.max(cycles);
        }
    }

    /// Counts the chain of updates of elements that data chooses: neighbouring iterations often
    /// choose the same element, so each update waits for the one before.
    fn scatter_chain(&mut self, frames: &Frames, store: &Store) {
        if store.reduce.is_none() || !store.target.indices.iter().any(IndexExpr::has_data) {
            return;
        }
        let inner = innermost_serial(frames);
        let updates = frames.frame_at(inner).runs
            * branches(frames, inner)
            * lanes(frames).map_or(1.0, |(_, count)| count);
        let counts = &mut self.counts[frames.stack[inner]];
        counts.chain = counts.chain.max(updates * (FORWARDING_LATENCY + self.machine.latency));
    }

    /// Counts a store to memory, and for a reduction the load before it.
    fn write(&mut self, frames: &Frames, store: &'a Store, target: Frameset) {
        let buffer = self.nest.buffer(store.target.tensor);
        let kind = LaneAccess::of(frames, &store.target, &self.strides[store.target.tensor.index()]);
        self.address(frames, &store.target, kind);
        let vectors = self.vectors(frames, target, buffer.dtype);
        let split = self.split_lines(frames, &store.target, kind);
        let (stores, extra) = match (lanes(frames), kind) {
            (Some((_, count)), LaneAccess::Adjacent) if is_ragged(count) => (2.0 * vectors * split, vectors),
            (None, _) | (_, LaneAccess::Same | LaneAccess::Adjacent) => (vectors * split, 0.0),
            (Some((_, count)), _) => (count * self.machine.gather, count),
        };
        let narrow = if buffer.dtype.compute_type() == buffer.dtype { 0.0 } else { 2.0 * vectors };
        let loads = if store.reduce.is_some() { stores } else { 0.0 };
        let off = self.off_lanes;
        let (counts, runs) = self.counts_at(frames, target);
        counts.stores += runs * stores;
        counts.loads += runs * loads;
        counts.vector += runs * (extra + narrow);
        counts.masked += runs * off * stores;
    }

    /// Counts a value and its operands. `added` says that the value is a summand, so that a product
    /// becomes part of a multiply-add.
    fn value(&mut self, frames: &Frames, expr: &'a Expr, added: bool, alive: &mut LiveValues) -> Value {
        let dtype = expr.dtype;
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Scalar(_) => Value { deps: 0, dtype },
            ExprKind::Index(index) => {
                let deps = dependencies(frames, std::slice::from_ref(&**index));
                self.indices(frames, std::slice::from_ref(&**index), true);
                // Scalar indices are available already. A vector of indices is computed from the
                // index of the first lane.
                if lanes(frames).is_some_and(|(place, _)| contains_frame(deps, place)) {
                    self.vector_ops(frames, deps, dtype, 1.0);
                }
                Value { deps, dtype }
            }
            ExprKind::Load(access) => {
                Value { deps: self.load(frames, access, self.distinct(expr), alive), dtype }
            }
            _ => {
                let is_sum = matches!(&expr.kind, ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, _));
                let mut deps = 0;
                let mut widest = dtype;
                for operand in expr.operands() {
                    let own = self.value(frames, operand, is_sum && dtype.is_float(), alive);
                    deps |= own.deps;
                    if own.dtype.bytes() > widest.bytes() {
                        widest = own.dtype;
                    }
                }
                let fused =
                    added && dtype.is_float() && matches!(&expr.kind, ExprKind::Binary(BinaryOp::Mul, _));
                if !fused {
                    self.operation(frames, expr, deps, widest);
                }
                Value { deps, dtype }
            }
        }
    }

    /// The share of a value's unrolled copies that remain after common subexpression elimination.
    fn distinct(&self, expr: &Expr) -> f64 {
        self.shared.get(&std::ptr::from_ref(expr)).copied().unwrap_or(1.0)
    }

    fn operation(&mut self, frames: &Frames, expr: &Expr, deps: Frameset, dtype: DType) {
        let wide = lanes(frames).is_some_and(|(place, _)| contains_frame(deps, place));
        if !wide && is_free(expr) {
            return;
        }
        let (cost, distinct) = (operation_cost(expr), self.distinct(expr));
        self.vector_ops(frames, deps, dtype, distinct * cost.instructions);
        if cost.divisions > 0.0 {
            let vectors = self.vectors(frames, deps, dtype);
            // Scalar divisions are faster than those of whole vectors.
            let cycles = if wide { self.machine.divide } else { self.machine.divide.min(4.0) };
            let (counts, runs) = self.counts_at(frames, deps);
            counts.divide += runs * distinct * vectors * cycles * cost.divisions;
        }
    }

    /// Counts a load from memory or a register. Returns the frames that the load depends on.
    fn load(
        &mut self,
        frames: &Frames,
        access: &'a Access,
        distinct: f64,
        alive: &mut LiveValues,
    ) -> Frameset {
        let deps = dependencies(frames, &access.indices);
        let buffer = self.nest.buffer(access.tensor);
        let vectors = self.vectors(frames, deps, buffer.dtype);
        if buffer.scope == Scope::Register {
            alive.values += self.live_registers(frames, deps, vectors);
            return deps;
        }
        let kind = LaneAccess::of(frames, access, &self.strides[access.tensor.index()]);
        self.address(frames, access, kind);
        let split = self.split_lines(frames, access, kind);
        let gather = 2.0 * self.machine.gather;
        let masked = self.off_lanes > 0.0;
        let count = lanes(frames).map_or(1.0, |(_, count)| count);
        let (loads, picks) = match kind {
            LaneAccess::Same => (1.0, 0.0),
            LaneAccess::Adjacent if is_ragged(count) => (2.0 * vectors * split, vectors),
            LaneAccess::Adjacent => (vectors * split, 0.0),
            LaneAccess::Pattern { span } if !masked => {
                let loads = vectors * span / count;
                (loads.max(1.0) * split, vectors.max(loads))
            }
            LaneAccess::Clamped => (vectors * split + 2.0, CLAMPING * vectors),
            _ if buffer.dtype.bytes() < 4 => (count, count * NARROW_GATHER),
            _ => (count * gather, count * 0.5),
        };
        let widening = if buffer.dtype.compute_type() == buffer.dtype { 0.0 } else { vectors };
        let (counts, runs) = self.counts_at(frames, deps);
        counts.loads += runs * distinct * loads;
        counts.vector += runs * distinct * (picks + widening);
        let copies = self.live_registers(frames, deps, vectors);
        let is_invariant = !contains_frame(deps, innermost_serial(frames));
        match is_invariant || copies > vectors || distinct < 1.0 {
            true => alive.values += distinct * copies,
            false => alive.passing = alive.passing.max(copies),
        }
        deps
    }

    /// The average number of cache-line accesses of a vector access that may cross a line boundary.
    fn split_lines(&self, frames: &Frames, access: &Access, kind: LaneAccess) -> f64 {
        let width = self.cpu.vectors.bytes() as f64;
        let Some((lane, count)) = lanes(frames) else { return 1.0 };
        let buffer = self.nest.buffer(access.tensor);
        let element = buffer.dtype.bytes() as f64;
        if kind != LaneAccess::Adjacent || count * element < width {
            return 1.0;
        }
        let aligned = access.indices.iter().zip(&self.strides[access.tensor.index()]).all(|(index, stride)| {
            let bytes = *stride as f64 * element;
            let on_lane = |term: &tilewright_ir::nest::Term| {
                matches!(term.factors.as_slice(), [Atom::Var(var)] if frames.depth(*var) == Some(lane))
            };
            let fits = |by: i64| (by as f64 * bytes) % width == 0.0;
            fits(index.constant_part()) && index.terms().iter().all(|term| on_lane(term) || fits(term.coefficient))
        });
        if aligned { 1.0 } else { 1.0 + width / LINE_BYTES * 0.9 }
    }

    /// Counts the integer instructions for the subscripts of an access.
    fn address(&mut self, frames: &Frames, access: &'a Access, kind: LaneAccess) {
        self.indices(frames, &access.indices, kind == LaneAccess::Scattered);
        let deps = dependencies(frames, &access.indices);
        // The increment of a pointer, which unrolled copies of the access share.
        let serial = serial_frames(frames, deps);
        let (counts, runs) = self.counts_at(frames, serial);
        counts.scalar += 0.5 * runs;
    }

    /// Counts divisions, minima and data-dependent values in subscripts. Where the distances of the
    /// lanes are constants, only the subscript of the first lane is computed.
    fn indices(&mut self, frames: &Frames, indices: &'a [IndexExpr], in_lanes: bool) {
        for factor in indices.iter().flat_map(IndexExpr::terms).flat_map(|term| &term.factors) {
            match factor {
                Atom::FloorDiv(pair) | Atom::Mod(pair) => {
                    self.division(frames, factor, pair, (INDEX_DIVISION, in_lanes));
                }
                Atom::Min(pair) | Atom::Max(pair) => {
                    self.division(frames, factor, pair, (INDEX_MINIMUM, in_lanes));
                }
                Atom::Data(data) => {
                    // A bounds check can end the call, so nothing is hoisted across it and every
                    // iteration repeats it.
                    let inner = bit(innermost_serial(frames));
                    let value = self.value(frames, &data.value, false, &mut LiveValues::default());
                    self.index_ops(frames, value.deps | inner, DATA_INDEX_INSTRUCTIONS);
                }
                _ => {}
            }
        }
    }

    /// Counts an index division, once for all its uses.
    fn division(
        &mut self,
        frames: &Frames,
        atom: &'a Atom,
        pair: &'a (IndexExpr, IndexExpr),
        (count, in_lanes): (f64, bool),
    ) {
        let all = dependencies(frames, std::slice::from_ref(&pair.0));
        let deps = if in_lanes { all } else { without_lanes(frames, all) };
        if self.counted_divisions.insert((frames.stack[deepest_serial(frames, deps)], atom)) {
            self.index_ops(frames, deps, count);
            self.indices(frames, std::slice::from_ref(&pair.0), in_lanes);
            self.indices(frames, std::slice::from_ref(&pair.1), in_lanes);
        }
    }

    /// Counts instructions on indices. They are vector instructions if the lanes have different
    /// indices.
    fn index_ops(&mut self, frames: &Frames, deps: Frameset, count: f64) {
        if lanes(frames).is_some_and(|(place, _)| contains_frame(deps, place)) {
            return self.vector_ops(frames, deps, DType::Int64, count);
        }
        let (counts, runs) = self.counts_at(frames, deps);
        counts.scalar += runs * count;
    }

    fn vector_ops(&mut self, frames: &Frames, deps: Frameset, dtype: DType, count: f64) {
        let vectors = self.vectors(frames, deps, dtype);
        let off = self.off_lanes;
        let wide = lanes(frames).is_some_and(|(place, _)| contains_frame(deps, place));
        let (counts, runs) = self.counts_at(frames, deps);
        if !wide && !dtype.is_float() {
            counts.scalar += runs * count;
            return;
        }
        counts.vector += runs * vectors * count;
        counts.masked += runs * vectors * count * off;
    }

    /// Returns the counts of the loop in which a value is computed, and how often it is computed.
    fn counts_at(&mut self, frames: &Frames, deps: Frameset) -> (&mut Counts, f64) {
        let serial = deepest_serial(frames, deps);
        let mut runs = frames.frame_at(serial).runs;
        for place in serial + 1..frames.stack.len() {
            let Frame { kind, trips, .. } = frames.frame_at(place);
            match kind {
                FrameKind::Unrolled if contains_frame(deps, place) => runs *= trips,
                FrameKind::Branch => runs *= trips,
                _ => {}
            }
        }
        let id: FrameId = frames.stack[serial];
        (&mut self.counts[id], runs)
    }

    /// The number of registers that a value occupies over all lanes.
    fn vectors(&self, frames: &Frames, deps: Frameset, dtype: DType) -> f64 {
        match lanes(frames) {
            Some((place, count)) if contains_frame(deps, place) => {
                let count = if is_ragged(count) { count.log2().ceil().exp2() } else { count };
                (count * dtype.bytes() as f64 / self.cpu.vectors.bytes() as f64).ceil().max(1.0)
            }
            _ => 1.0,
        }
    }

    /// The number of registers that the copies of a value occupy in the innermost serial loop. If
    /// the value does not change in this loop, all copies count. Otherwise only the copies count
    /// that later unrolled iterations reuse.
    fn live_registers(&self, frames: &Frames, deps: Frameset, vectors: f64) -> f64 {
        let inner = innermost_serial(frames);
        let mut copies = 1.0;
        let mut most: f64 = 1.0;
        for place in (inner + 1..frames.stack.len()).rev() {
            let Frame { kind, trips, .. } = frames.frame_at(place);
            match (kind, contains_frame(deps, place)) {
                (FrameKind::Unrolled, true) => copies *= trips,
                (FrameKind::Unrolled, false) => most = most.max(copies),
                _ => {}
            }
        }
        vectors * if contains_frame(deps, inner) { most } else { copies }
    }
}

pub(super) fn contains_frame(set: Frameset, place: usize) -> bool {
    set & bit(place) != 0
}

/// All frames beyond the last bit share that bit.
pub(super) fn bit(place: usize) -> Frameset {
    1 << place.min(63)
}

/// The open frames whose variables occur in the subscripts.
pub(super) fn dependencies(frames: &Frames, indices: &[IndexExpr]) -> Frameset {
    let mut deps = 0;
    for index in indices {
        index.visit_atoms(&mut |atom| {
            if let Atom::Var(var) = atom
                && let Some(place) = frames.depth(*var)
            {
                deps |= bit(place);
            }
        });
    }
    deps
}

fn is_serial(frame: &Frame) -> bool {
    matches!(frame.kind, FrameKind::Serial | FrameKind::Parallel)
}

pub(super) fn innermost_serial(frames: &Frames) -> usize {
    (0..frames.stack.len()).rev().find(|place| is_serial(frames.frame_at(*place))).unwrap_or(0)
}

/// The position of the innermost serial loop in `deps`; 0, the whole body, if there is none.
pub(super) fn deepest_serial(frames: &Frames, deps: Frameset) -> usize {
    (1..frames.stack.len())
        .rev()
        .find(|place| contains_frame(deps, *place) && is_serial(frames.frame_at(*place)))
        .unwrap_or(0)
}

fn serial_frames(frames: &Frames, deps: Frameset) -> Frameset {
    let serial = (0..frames.stack.len()).filter(|place| is_serial(frames.frame_at(*place)));
    serial.fold(0, |set, place| set | (deps & bit(place)))
}

/// The probability that the branches inside of position `outside` are all taken.
fn branches(frames: &Frames, outside: usize) -> f64 {
    let inside = (outside + 1..frames.stack.len()).map(|place| frames.frame_at(place));
    inside.filter(|frame| frame.kind == FrameKind::Branch).map(|frame| frame.trips).product()
}

/// Calls `visit` for every access of an expression, including those in subscripts.
pub(super) fn visit_loads<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Access)) {
    if let ExprKind::Load(access) = &expr.kind {
        visit(access);
        for factor in access.indices.iter().flat_map(|index| index.terms()).flat_map(|term| &term.factors) {
            if let Atom::Data(data) = factor {
                visit_loads(&data.value, visit);
            }
        }
    }
    expr.operands().iter().for_each(|operand| visit_loads(operand, visit));
}
