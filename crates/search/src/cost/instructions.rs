//! The instructions of statements, counted where code generation leaves them.
//!
//! Code generation joins equal values and moves what a loop does not change out of it. So a value is computed once for
//! every iteration of the innermost serial loop that it depends on, times the iterations of those written-out loops
//! inside that it depends on too. Its instructions count for that serial loop.

use tilewright_ir::nest::{Buffer, Scope, Store};
use tilewright_ir::{
    Access, Atom, BinaryOp, Builtin, DType, Expr, ExprKind, IndexExpr, LoopNest, Number, ReduceOp, TensorId,
    VarId,
};
use tilewright_target::Cpu;

use super::footprint::{LINE, Region};
use super::frames::{Frame, FrameId, Frames, Kind};
use super::machine::Machine;

/// Open frames that something depends on, one bit each.
pub(super) type Frameset = u64;

/// Up to this distance, code generation loads everything between the elements and picks those it needs.
const SMALL_STEP: f64 = 4.0;
/// Integer instructions of a check that a subscript from data is in bounds.
const CHECK: f64 = 3.0;
/// Instructions of a division of indices by a number.
const INDEX_DIVISION: f64 = 4.0;
/// Steps of adding up neighbouring lanes: a shuffle and an addition, with their latencies.
const FOLD_LATENCY: f64 = 7.0;

/// What the iterations of one serial loop execute in a call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Vector and floating-point instructions.
    pub vector: f64,
    pub loads: f64,
    pub stores: f64,
    /// Integer instructions, jumps among them.
    pub scalar: f64,
    /// Cycles of a unit that does one thing at a time: division, square roots.
    pub divide: f64,
    /// Cycles of the longest chain of results that wait for each other.
    pub chain: f64,
    /// Values that should be in registers at the same time, and how many of them are written.
    pub live: f64,
    pub live_written: f64,
    /// Vector instructions whose lanes are not all needed, times the share of those.
    pub masked: f64,
}

/// Counts instructions into the frames they belong to.
pub(super) struct Counter<'a> {
    pub nest: &'a LoopNest,
    pub cpu: &'a Cpu,
    pub machine: &'a Machine,
    /// One for every frame; only serial ones are used.
    pub counts: Vec<Counts>,
    /// Share of lanes that conditions switch off.
    pub off_lanes: f64,
    strides: Vec<Vec<i64>>,
    /// For buffers that the statement at hand loads from at several places: the share of loads that are left when
    /// written-out iterations share them.
    shared: Vec<(TensorId, f64)>,
}

/// A value: what it depends on, and which type it has.
#[derive(Clone, Copy)]
struct Value {
    deps: Frameset,
    dtype: DType,
    /// The share of its copies that others are not equal to.
    distinct: f64,
}

/// Values that are alive in one statement.
#[derive(Default)]
struct Alive {
    values: f64,
    written: f64,
}

impl<'a> Counter<'a> {
    pub fn new(nest: &'a LoopNest, cpu: &'a Cpu, machine: &'a Machine) -> Counter<'a> {
        let strides = nest.buffers.iter().map(Buffer::strides).collect();
        let counts = vec![Counts::default()];
        Counter { nest, cpu, machine, counts, off_lanes: 0.0, strides, shared: Vec::new() }
    }

    /// One statement. Returns nothing: everything is counted into frames.
    pub fn store(&mut self, frames: &Frames, store: &Store) {
        self.counts.resize(frames.all.len(), Counts::default());
        self.shared = shared_loads(frames, &store.value);
        let mut alive = Alive::default();
        let value = self.value(frames, &store.value, store.reduce == Some(ReduceOp::Add), &mut alive);
        let target = dependencies(frames, &store.target.indices);
        let buffer = self.nest.buffer(store.target.tensor);
        let slot = buffer.scope == Scope::Register;
        let all = value.deps | target;
        let lanes = lanes(frames);
        let folds = lanes.is_some_and(|(place, _)| has(all, place) && !has(target, place));
        if store.reduce.is_some() {
            self.reduce(frames, value, target, folds);
        }
        if slot {
            let vectors = self.vectors(frames, target, buffer.dtype);
            let copies = self.kept(frames, target, vectors);
            alive.values += copies;
            alive.written += if store.reduce.is_some() { copies } else { 0.0 };
        } else {
            self.write(frames, store, target);
        }
        let inner = innermost_serial(frames);
        let counts = &mut self.counts[frames.stack[inner]];
        counts.live = counts.live.max(alive.values);
        counts.live_written = counts.live_written.max(alive.written);
    }

    /// The operator of a reduction, and the chain of results that it makes.
    fn reduce(&mut self, frames: &Frames, value: Value, target: Frameset, folds: bool) {
        let all = value.deps | target;
        self.vector_ops(frames, all, value.dtype, 1.0);
        let mut latency = self.machine.latency;
        if folds && let Some((_, count)) = lanes(frames) {
            // Whole vectors are joined first, then the lanes of the last.
            let steps = count.min(self.cpu.lanes(value.dtype.bytes()) as f64).max(2.0).log2().ceil();
            latency += steps * FOLD_LATENCY;
            self.vector_ops(frames, clear_lanes(frames, all), value.dtype, 2.0 * steps);
        }
        let inner = innermost_serial(frames);
        if has(target, inner) || inner == 0 {
            return;
        }
        let inside = (inner + 1..frames.stack.len()).filter(|place| frames.at(*place).kind == Kind::Unrolled);
        let chained: f64 =
            inside.filter(|place| !has(target, *place)).map(|place| frames.at(place).trips).product();
        let runs = frames.at(inner).runs * branches(frames, inner);
        let counts = &mut self.counts[frames.stack[inner]];
        counts.chain = counts.chain.max(runs * chained * latency);
    }

    /// What a store to memory takes, and for a reduction the load before it.
    fn write(&mut self, frames: &Frames, store: &Store, target: Frameset) {
        self.address(frames, &store.target);
        let buffer = self.nest.buffer(store.target.tensor);
        let step = lane_step(frames, &store.target, &self.strides[store.target.tensor.index()]);
        let vectors = self.vectors(frames, target, buffer.dtype);
        let split = self.split_lines(frames, &store.target, step);
        let (stores, extra) = match (lanes(frames), step) {
            (Some((_, count)), Some(step)) if step != 0.0 && step != 1.0 => {
                (count * self.machine.gather, count)
            }
            (Some((_, count)), None) => (count * self.machine.gather, count),
            _ => (vectors * split, 0.0),
        };
        let narrow = if buffer.dtype.compute_type() == buffer.dtype { 0.0 } else { 2.0 * vectors };
        let loads = if store.reduce.is_some() { stores } else { 0.0 };
        let off = self.off_lanes;
        let (counts, runs) = self.place(frames, target);
        counts.stores += runs * stores;
        counts.loads += runs * loads;
        counts.vector += runs * (extra + narrow);
        counts.masked += runs * off * stores;
    }

    /// A value and all that it is made of. `added`: a product is part of a multiply-add.
    fn value(&mut self, frames: &Frames, expr: &Expr, added: bool, alive: &mut Alive) -> Value {
        let dtype = expr.dtype;
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Scalar(_) => Value { deps: 0, dtype, distinct: 1.0 },
            ExprKind::Index(index) => {
                let deps = dependencies(frames, std::slice::from_ref(&**index));
                self.indices(frames, std::slice::from_ref(&**index));
                self.vector_ops(frames, deps, dtype, 1.0);
                Value { deps, dtype, distinct: 1.0 }
            }
            ExprKind::Load(access) => {
                let shared = self.shared.iter().find(|(tensor, _)| *tensor == access.tensor);
                let distinct = shared.map_or(1.0, |(_, share)| *share);
                Value { deps: self.load(frames, access, distinct, alive), dtype, distinct }
            }
            _ => {
                let is_sum = matches!(&expr.kind, ExprKind::Binary(BinaryOp::Add | BinaryOp::Sub, _));
                let mut deps = 0;
                let mut widest = dtype;
                let (mut varying, mut distinct) = (0, 1.0);
                for operand in expr.operands() {
                    let own = self.value(frames, operand, is_sum && dtype.is_float(), alive);
                    deps |= own.deps;
                    if own.deps != 0 {
                        varying += 1;
                        distinct = own.distinct;
                    }
                    if own.dtype.bytes() > widest.bytes() {
                        widest = own.dtype;
                    }
                }
                let fused =
                    added && dtype.is_float() && matches!(&expr.kind, ExprKind::Binary(BinaryOp::Mul, _));
                // What is made of one shared load only is shared as well.
                let distinct = if varying == 1 { distinct } else { 1.0 };
                if !fused {
                    self.operation(frames, expr, deps, widest, distinct);
                }
                Value { deps, dtype, distinct }
            }
        }
    }

    fn operation(&mut self, frames: &Frames, expr: &Expr, deps: Frameset, dtype: DType, distinct: f64) {
        let cost = operation_cost(expr);
        self.vector_ops(frames, deps, dtype, distinct * cost.instructions);
        if cost.divisions > 0.0 {
            let vectors = self.vectors(frames, deps, dtype);
            // Single elements are quicker than whole vectors.
            let wide = lanes(frames).is_some_and(|(place, _)| has(deps, place));
            let cycles = if wide { self.machine.divide } else { self.machine.divide.min(4.0) };
            let (counts, runs) = self.place(frames, deps);
            counts.divide += runs * distinct * vectors * cycles * cost.divisions;
        }
    }

    /// A load, from memory or from a register; what it depends on.
    fn load(&mut self, frames: &Frames, access: &Access, distinct: f64, alive: &mut Alive) -> Frameset {
        let deps = dependencies(frames, &access.indices);
        let buffer = self.nest.buffer(access.tensor);
        let vectors = self.vectors(frames, deps, buffer.dtype);
        if buffer.scope == Scope::Register {
            alive.values += self.kept(frames, deps, vectors);
            return deps;
        }
        self.address(frames, access);
        let step = lane_step(frames, access, &self.strides[access.tensor.index()]);
        let wide = lanes(frames).filter(|(place, _)| has(deps, *place));
        let split = self.split_lines(frames, access, step);
        let gather = 2.0 * self.machine.gather;
        let masked = self.off_lanes > 0.0;
        let (loads, picks) = match (wide, step) {
            (None, _) => (1.0, 0.0),
            (Some(_), Some(1.0)) => (vectors * split, 0.0),
            (Some(_), Some(step)) if step.abs() <= SMALL_STEP && !masked => {
                (vectors * step.abs() * split, vectors * step.abs())
            }
            (Some((_, count)), _) => (count * gather, count * 0.5),
        };
        let widening = if buffer.dtype.compute_type() == buffer.dtype { 0.0 } else { vectors };
        let (counts, runs) = self.place(frames, deps);
        counts.loads += runs * distinct * loads;
        counts.vector += runs * distinct * (picks + widening);
        alive.values += self.kept(frames, deps, vectors);
        deps
    }

    /// How many accesses a vector takes that may lie across two lines.
    fn split_lines(&self, frames: &Frames, access: &Access, step: Option<f64>) -> f64 {
        let width = self.cpu.vectors.bytes() as f64;
        let Some((lane, count)) = lanes(frames) else { return 1.0 };
        let buffer = self.nest.buffer(access.tensor);
        let element = buffer.dtype.bytes() as f64;
        if step != Some(1.0) || count * element < width {
            return 1.0;
        }
        let aligned = access.indices.iter().zip(&self.strides[access.tensor.index()]).all(|(index, stride)| {
            let bytes = *stride as f64 * element;
            let on_lane = |term: &tilewright_ir::Term| {
                matches!(term.factors.as_slice(), [Atom::Var(var)] if frames.place(*var) == Some(lane))
            };
            let fits = |by: i64| (by as f64 * bytes) % width == 0.0;
            fits(index.constant_part()) && index.terms().iter().all(|term| on_lane(term) || fits(term.coefficient))
        });
        if aligned { 1.0 } else { 1.0 + width / LINE * 0.9 }
    }

    /// Integer instructions for the subscripts of an access.
    fn address(&mut self, frames: &Frames, access: &Access) {
        self.indices(frames, &access.indices);
        let deps = dependencies(frames, &access.indices);
        // Advancing a pointer, shared with the copies of the access in written-out loops.
        let serial = keep_serial(frames, deps);
        let (counts, runs) = self.place(frames, serial);
        counts.scalar += 0.5 * runs;
    }

    /// Divisions, and what is read from data, in subscripts.
    fn indices(&mut self, frames: &Frames, indices: &[IndexExpr]) {
        for index in indices {
            let mut data: Vec<&tilewright_ir::Data> = Vec::new();
            let mut divisions = 0.0;
            collect(index, &mut data, &mut divisions);
            if divisions > 0.0 {
                let deps = dependencies(frames, std::slice::from_ref(index));
                self.index_ops(frames, deps, divisions * INDEX_DIVISION);
            }
            for own in data {
                let value = self.value(frames, &own.value, false, &mut Alive::default());
                self.index_ops(frames, value.deps, CHECK);
            }
        }
    }

    /// Instructions on indices: of vectors, if lanes have different ones.
    fn index_ops(&mut self, frames: &Frames, deps: Frameset, count: f64) {
        if lanes(frames).is_some_and(|(place, _)| has(deps, place)) {
            return self.vector_ops(frames, deps, DType::Int64, count);
        }
        let (counts, runs) = self.place(frames, deps);
        counts.scalar += runs * count;
    }

    fn vector_ops(&mut self, frames: &Frames, deps: Frameset, dtype: DType, count: f64) {
        let vectors = self.vectors(frames, deps, dtype);
        let off = self.off_lanes;
        let wide = lanes(frames).is_some_and(|(place, _)| has(deps, place));
        let (counts, runs) = self.place(frames, deps);
        if !wide && !dtype.is_float() {
            counts.scalar += runs * count;
            return;
        }
        counts.vector += runs * vectors * count;
        counts.masked += runs * vectors * count * off;
    }

    /// The counts of the loop that a value is computed in, and how often it is.
    fn place(&mut self, frames: &Frames, deps: Frameset) -> (&mut Counts, f64) {
        let serial = deepest_serial(frames, deps);
        let mut runs = frames.at(serial).runs;
        for place in serial + 1..frames.stack.len() {
            let Frame { kind, trips, .. } = frames.at(place);
            match kind {
                Kind::Unrolled if has(deps, place) => runs *= trips,
                Kind::Branch => runs *= trips,
                _ => {}
            }
        }
        let id: FrameId = frames.stack[serial];
        (&mut self.counts[id], runs)
    }

    /// Registers of a value in all lanes.
    fn vectors(&self, frames: &Frames, deps: Frameset, dtype: DType) -> f64 {
        match lanes(frames) {
            Some((place, count)) if has(deps, place) => {
                (count * dtype.bytes() as f64 / self.cpu.vectors.bytes() as f64).ceil().max(1.0)
            }
            _ => 1.0,
        }
    }

    /// Registers that copies of a value keep busy in the innermost serial loop: all of them if they stay while it runs,
    /// otherwise those that written-out iterations come back to.
    fn kept(&self, frames: &Frames, deps: Frameset, vectors: f64) -> f64 {
        let inner = innermost_serial(frames);
        let mut copies = 1.0;
        let mut most: f64 = 1.0;
        for place in (inner + 1..frames.stack.len()).rev() {
            let Frame { kind, trips, .. } = frames.at(place);
            match (kind, has(deps, place)) {
                (Kind::Unrolled, true) => copies *= trips,
                (Kind::Unrolled, false) => most = most.max(copies),
                _ => {}
            }
        }
        vectors * if has(deps, inner) { most } else { copies }
    }
}

pub(super) fn has(set: Frameset, place: usize) -> bool {
    set & bit(place) != 0
}

/// Frames beyond the last bit share it.
fn bit(place: usize) -> Frameset {
    1 << place.min(63)
}

/// The open frames whose variables occur in subscripts.
pub(super) fn dependencies(frames: &Frames, indices: &[IndexExpr]) -> Frameset {
    let mut deps = 0;
    for index in indices {
        index.visit(&mut |atom| {
            if let Atom::Var(var) = atom
                && let Some(place) = frames.place(*var)
            {
                deps |= bit(place);
            }
        });
    }
    deps
}

/// The vector loop that is open, and its lanes.
fn lanes(frames: &Frames) -> Option<(usize, f64)> {
    let place = (0..frames.stack.len()).rev().find(|place| frames.at(*place).kind == Kind::Vector)?;
    Some((place, frames.at(place).trips))
}

fn clear_lanes(frames: &Frames, deps: Frameset) -> Frameset {
    lanes(frames).map_or(deps, |(place, _)| deps & !bit(place))
}

fn is_serial(frame: &Frame) -> bool {
    matches!(frame.kind, Kind::Serial | Kind::Parallel)
}

fn innermost_serial(frames: &Frames) -> usize {
    (0..frames.stack.len()).rev().find(|place| is_serial(frames.at(*place))).unwrap_or(0)
}

/// The innermost serial loop among frames; the whole body if there is none.
pub(super) fn deepest_serial(frames: &Frames, deps: Frameset) -> usize {
    (1..frames.stack.len()).rev().find(|place| has(deps, *place) && is_serial(frames.at(*place))).unwrap_or(0)
}

fn keep_serial(frames: &Frames, deps: Frameset) -> Frameset {
    let serial = (0..frames.stack.len()).filter(|place| is_serial(frames.at(*place)));
    serial.fold(0, |set, place| set | (deps & bit(place)))
}

/// The share of times that what is inside of a place is reached, by choices.
fn branches(frames: &Frames, outside: usize) -> f64 {
    let inside = (outside + 1..frames.stack.len()).map(|place| frames.at(place));
    inside.filter(|frame| frame.kind == Kind::Branch).map(|frame| frame.trips).product()
}

/// How far apart neighbouring lanes are, in elements; `None` if that is not always the same.
fn lane_step(frames: &Frames, access: &Access, strides: &[i64]) -> Option<f64> {
    let Some((lane, _)) = lanes(frames) else { return Some(0.0) };
    let mut total = 0.0;
    for (index, stride) in access.indices.iter().zip(strides) {
        for term in index.terms() {
            let of_lane = |var: &VarId| frames.place(*var) == Some(lane);
            match term.factors.as_slice() {
                [Atom::Var(var)] if of_lane(var) => total += (term.coefficient * stride) as f64,
                factors => {
                    let moves = |atom: &Atom| {
                        IndexExpr::atom(atom.clone())
                            .any(&mut |own| matches!(own, Atom::Var(var) if of_lane(var)))
                    };
                    if factors
                        .iter()
                        .any(|factor| !matches!(factor, Atom::Var(var) if !of_lane(var)) && moves(factor))
                    {
                        return None;
                    }
                }
            }
        }
    }
    Some(total)
}

/// Data that an index depends on, and divisions in it.
fn collect<'e>(index: &'e IndexExpr, data: &mut Vec<&'e tilewright_ir::Data>, divisions: &mut f64) {
    for factor in index.terms().iter().flat_map(|term| &term.factors) {
        match factor {
            Atom::FloorDiv(pair) | Atom::Mod(pair) => {
                *divisions += 1.0;
                collect(&pair.0, data, divisions);
                collect(&pair.1, data, divisions);
            }
            Atom::Min(pair) | Atom::Max(pair) => {
                *divisions += 0.5;
                collect(&pair.0, data, divisions);
                collect(&pair.1, data, divisions);
            }
            Atom::Data(own) => data.push(own),
            _ => {}
        }
    }
}

/// The share of loads from each buffer that is left where written-out iterations of a statement load the same elements.
/// Lanes do not share: vectors that overlap are different loads.
fn shared_loads(frames: &Frames, value: &Expr) -> Vec<(TensorId, f64)> {
    let mut all: Vec<(TensorId, Region, f64, usize)> = Vec::new();
    let inner = innermost_serial(frames);
    let trips = |var: VarId| match frames.place(var) {
        Some(place) if place > inner && frames.at(place).kind == Kind::Unrolled => frames.at(place).trips,
        _ => 1.0,
    };
    loads(value, &mut |access| {
        let region = Region::of(access, &trips);
        let elements = region.elements();
        match all.iter_mut().find(|(tensor, ..)| *tensor == access.tensor) {
            Some((_, joined, sum, count)) => {
                joined.join(&region);
                *sum += elements;
                *count += 1;
            }
            None => all.push((access.tensor, region, elements, 1)),
        }
    });
    let several = all.into_iter().filter(|(.., count)| *count > 1);
    several.map(|(tensor, joined, sum, _)| (tensor, (joined.elements() / sum).min(1.0))).collect()
}

/// Every access of an expression, those in subscripts included.
pub(super) fn loads<'e>(expr: &'e Expr, visit: &mut dyn FnMut(&'e Access)) {
    if let ExprKind::Load(access) = &expr.kind {
        visit(access);
        for factor in access.indices.iter().flat_map(|index| index.terms()).flat_map(|term| &term.factors) {
            if let Atom::Data(data) = factor {
                loads(&data.value, visit);
            }
        }
    }
    expr.operands().iter().for_each(|operand| loads(operand, visit));
}

/// What one operation takes: instructions, and times that the dividing unit is busy.
struct Cost {
    instructions: f64,
    divisions: f64,
}

fn operation_cost(expr: &Expr) -> Cost {
    let plain = |instructions| Cost { instructions, divisions: 0.0 };
    match &expr.kind {
        ExprKind::Binary(BinaryOp::Div | BinaryOp::Mod, operands) if expr.dtype.is_integer() => {
            match &operands[1].kind {
                ExprKind::Literal(Number::Int(by)) if by.count_ones() == 1 => plain(2.0),
                ExprKind::Literal(_) => plain(6.0),
                _ => plain(40.0),
            }
        }
        ExprKind::Binary(BinaryOp::Div, _) => Cost { instructions: 1.0, divisions: 1.0 },
        ExprKind::Binary(BinaryOp::Mod, _) => Cost { instructions: 6.0, divisions: 1.0 },
        // A float minimum looks after NaN.
        ExprKind::Binary(BinaryOp::Min | BinaryOp::Max, _) if expr.dtype.is_float() => plain(2.0),
        ExprKind::Call(function, _) => function_cost(*function),
        ExprKind::Cast(from) => plain(if from.dtype == expr.dtype { 0.0 } else { 1.5 }),
        _ => plain(1.0),
    }
}

fn function_cost(function: Builtin) -> Cost {
    let plain = |instructions| Cost { instructions, divisions: 0.0 };
    match function {
        Builtin::Abs | Builtin::Ceil | Builtin::Floor | Builtin::Rint | Builtin::Trunc | Builtin::Fma => {
            plain(1.0)
        }
        Builtin::Copysign | Builtin::IsFinite | Builtin::IsInf | Builtin::IsNan | Builtin::Round => {
            plain(3.0)
        }
        Builtin::Sqrt => Cost { instructions: 1.0, divisions: 1.2 },
        Builtin::Rsqrt => Cost { instructions: 2.0, divisions: 2.2 },
        Builtin::Exp | Builtin::Exp2 => plain(16.0),
        Builtin::Sigmoid => Cost { instructions: 20.0, divisions: 1.0 },
        Builtin::Log | Builtin::Log2 | Builtin::Log10 | Builtin::Log1p | Builtin::Expm1 => plain(24.0),
        Builtin::Tanh | Builtin::Sinh | Builtin::Cosh => Cost { instructions: 26.0, divisions: 1.0 },
        Builtin::Sin | Builtin::Cos => plain(30.0),
        Builtin::Tan => Cost { instructions: 40.0, divisions: 1.0 },
        Builtin::Hypot | Builtin::Cbrt => Cost { instructions: 20.0, divisions: 1.0 },
        Builtin::Erf | Builtin::Erfc | Builtin::Atan | Builtin::Atan2 | Builtin::Asin | Builtin::Acos => {
            plain(40.0)
        }
        _ => plain(80.0),
    }
}
