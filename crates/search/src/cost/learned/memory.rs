//! Computes which memory a stage touches: in a call, in a piece of its parallel work, and in an
//! iteration of its innermost serial loop; and how neighbouring lanes or threads access it.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, Atom, Axis, LoopKind, LoopVarId, Scope};

use super::stages::{EnclosingLoop, Stage};
use crate::cost::cpu::Reach;

/// The memory of a stage. Bytes are those of different elements, unless stated otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Memory {
    /// The bytes that a call stores, counting each store.
    pub stored: f64,
    /// The bytes that a call loads, counting each load.
    pub loaded: f64,
    /// The bytes that a call reads.
    pub call: f64,
    /// The bytes that an iteration of the parallel loops or a block reads.
    pub piece: f64,
    /// The bytes that an iteration of the innermost serial loop reads.
    pub iteration: f64,
    /// The bytes of the buffer of the result.
    pub result: f64,
    /// The loads of one point whose neighbours are adjacent.
    pub adjacent: f64,
    /// The loads of one point that all neighbours share.
    pub shared: f64,
    /// The loads of one point whose neighbours are apart, or anywhere.
    pub apart: f64,
    /// The loads of one point from buffers that exist for a part of a call.
    pub local: f64,
    /// The bytes of the register buffers around the stage.
    pub register_bytes: f64,
    /// The bytes of the shared memory around the stage.
    pub block_bytes: f64,
}

impl Memory {
    /// The number of features.
    pub const COUNT: usize = 12;
    /// The name of each feature, for people.
    pub const NAMES: [&'static str; Self::COUNT] = [
        "stored bytes",
        "loaded bytes",
        "bytes of a call",
        "bytes of a piece",
        "bytes of an iteration",
        "bytes of the result",
        "adjacent loads",
        "shared loads",
        "loads apart",
        "local loads",
        "bytes of registers",
        "bytes of a block",
    ];

    pub(super) fn of(nest: &LoopNest, stage: &Stage) -> Memory {
        let points = stage.points();
        let result = nest.buffer(stage.store.target.tensor);
        let mut memory = Memory {
            stored: points * result.dtype.bytes() as f64,
            result: result.bytes() as f64,
            register_bytes: stage.register_bytes,
            block_bytes: stage.shared_bytes,
            ..Memory::default()
        };
        let is_parallel = |kind| matches!(kind, LoopKind::Parallel | LoopKind::Block(_));
        let outer = stage.loops.iter().rposition(|own| is_parallel(own.kind)).map_or(0, |at| at + 1);
        let inner = stage.loops.iter().rposition(|own| own.kind == LoopKind::Serial).map_or(0, |at| at + 1);
        let neighbours = neighbours(&stage.loops);
        stage.store.value.visit_reads(&mut |access| {
            let buffer = nest.buffer(access.tensor);
            let bytes = |first: usize| footprint(nest, access, &stage.loops[first.min(stage.loops.len())..]);
            memory.loaded += points * buffer.dtype.bytes() as f64;
            memory.call += bytes(0);
            memory.piece += bytes(outer);
            memory.iteration += bytes(inner);
            match distance(nest, access, neighbours) {
                Some(0) => memory.shared += 1.0,
                Some(1) => memory.adjacent += 1.0,
                _ => memory.apart += 1.0,
            }
            memory.local +=
                f64::from(u8::from(!matches!(buffer.scope, Scope::Argument(_) | Scope::Constant)));
        });
        memory
    }

    pub(super) fn values(&self) -> [f64; Self::COUNT] {
        [
            self.stored,
            self.loaded,
            self.call,
            self.piece,
            self.iteration,
            self.result,
            self.adjacent,
            self.shared,
            self.apart,
            self.local,
            self.register_bytes,
            self.block_bytes,
        ]
    }
}

/// The bytes of the elements that an access touches while some loops run.
fn footprint(nest: &LoopNest, access: &Access, loops: &[EnclosingLoop]) -> f64 {
    let buffer = nest.buffer(access.tensor);
    let trips = |var: LoopVarId| loops.iter().find(|own| own.var == var).map_or(1.0, |own| own.trips);
    let values = access.indices.iter().zip(&buffer.shape);
    let values = values.map(|(index, extent)| Reach::of(index, &trips).values.clamp(1.0, *extent as f64));
    values.product::<f64>() * buffer.dtype.bytes() as f64
}

/// The variable of the loop whose iterations run side by side: lanes, or threads along x.
fn neighbours(loops: &[EnclosingLoop]) -> Option<LoopVarId> {
    let is_beside = |own: &&EnclosingLoop| matches!(own.kind, LoopKind::Vector | LoopKind::Thread(Axis::X));
    loops.iter().rev().find(is_beside).map(|own| own.var)
}

/// How far apart the elements of neighbours are; nothing if that is not constant.
fn distance(nest: &LoopNest, access: &Access, neighbours: Option<LoopVarId>) -> Option<i64> {
    let Some(var) = neighbours else { return Some(0) };
    let strides = nest.buffer(access.tensor).strides();
    let at = |number: i64| {
        let mut value = |atom: &Atom| match atom {
            Atom::Var(own) => Some(if *own == var { number } else { 0 }),
            Atom::Data(_) => None,
            _ => Some(0),
        };
        let places = access.indices.iter().zip(&strides);
        places.map(|(index, stride)| Some(index.eval(&mut value)? * stride)).sum::<Option<i64>>()
    };
    // Near the beginning, a clamp may hold the first elements back.
    Some((at(5)? - at(4)?).abs())
}
