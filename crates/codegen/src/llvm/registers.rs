//! Allocates, loads and stores register buffers. Each value of such a buffer gets a stack slot,
//! which LLVM promotes to a register.
//!
//! A slot holds one element, or one element for each lane of a vector loop. [`choose_storage`]
//! chooses between the two from all accesses to the buffer, before any code is emitted. A buffer
//! whose accesses suit neither becomes an array on the stack.

use std::collections::BTreeMap;

use inkwell::values::{BasicValueEnum, PointerValue};
use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Access, Atom, BufferId, IndexExpr, LoopVarId, Scope, Stmt};

use super::function::Emitter;
use super::loops::{is_unrolled, vector_lanes};
use super::ops::{BUILT, Value};

/// The storage of a register buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// One slot for each element.
    Elements,
    /// One slot for this many neighbouring elements along the last dimension.
    Vectors(u32),
    /// An array on the stack.
    Array,
}

/// One element of a slot, or the whole slot.
pub(super) struct Slot<'ctx> {
    pointer: PointerValue<'ctx>,
    /// The lane of the element within a vector slot; `None` for the whole slot.
    lane: Option<u32>,
}

/// Chooses the storage of each register buffer of a nest.
pub(super) fn choose_storage(nest: &LoopNest) -> BTreeMap<BufferId, Storage> {
    let ids = (0..nest.buffers.len()).map(|at| BufferId(at as u32));
    let registers = ids.filter(|id| nest.buffer(*id).scope == Scope::Register);
    let mut survey = Survey {
        storage: registers.map(|id| (id, Storage::Elements)).collect(),
        constant_vars: Vec::new(),
        lane: None,
    };
    survey.stmts(&nest.setup);
    survey.stmts(&nest.body);
    survey.storage
}

struct Survey {
    storage: BTreeMap<BufferId, Storage>,
    /// Variables that are constants in the emitted code, because their loops are unrolled.
    constant_vars: Vec<LoopVarId>,
    lane: Option<(LoopVarId, u32)>,
}

impl Survey {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            stmt.visit_own_accesses(&mut |access| self.access(access));
            let (outer, outer_constants) = (self.lane, self.constant_vars.len());
            if let Stmt::For(inner) = stmt {
                if let Some(lanes) = vector_lanes(inner) {
                    self.lane = Some((inner.var, lanes));
                } else if is_unrolled(inner) {
                    self.constant_vars.push(inner.var);
                }
            }
            stmt.bodies().for_each(|body| self.stmts(body));
            self.constant_vars.truncate(outer_constants);
            self.lane = outer;
        }
    }

    fn access(&mut self, access: &Access) {
        let Some(current) = self.storage.get(&access.tensor).copied() else { return };
        let wanted = self.storage_for(access);
        let joint = match (current, wanted) {
            (Storage::Elements, wanted) => wanted,
            (room, Storage::Elements) => room,
            (room, wanted) if room == wanted => room,
            _ => Storage::Array,
        };
        self.storage.insert(access.tensor, joint);
    }

    /// The storage that suits one access.
    fn storage_for(&self, access: &Access) -> Storage {
        let Some((last, others)) = access.indices.split_last() else { return Storage::Elements };
        if !others.iter().all(|index| self.is_constant(index)) {
            return Storage::Array;
        }
        if self.is_constant(last) {
            return Storage::Elements;
        }
        match self.lane {
            Some((lane, lanes)) if self.is_aligned(last, lane, lanes as i64) => Storage::Vectors(lanes),
            _ => Storage::Array,
        }
    }

    fn is_constant(&self, index: &IndexExpr) -> bool {
        !index.has_data() && index.vars().iter().all(|var| self.constant_vars.contains(var))
    }

    /// Whether a subscript is a multiple of the lane count plus the lane.
    fn is_aligned(&self, index: &IndexExpr, lane: LoopVarId, lanes: i64) -> bool {
        let Some((step, rest)) = index.split_on(&Atom::Var(lane)) else { return false };
        step.as_constant() == Some(1)
            && self.is_constant(&rest)
            && rest.constant_part() % lanes == 0
            && rest.terms().iter().all(|term| term.coefficient % lanes == 0)
    }
}

impl<'ctx> Emitter<'ctx, '_> {
    /// Creates the slots of a register buffer, with undefined content.
    pub(super) fn allocate_registers(&mut self, id: BufferId) {
        let buffer = self.nest.buffer(id);
        let element = self.ops.compute_type(buffer.dtype);
        let (count, kind) = match self.register_storage[&id] {
            Storage::Array => {
                let elements = u32::try_from(buffer.elements()).expect("registers hold few elements");
                let array = self.stack_array(self.ops.memory_type(buffer.dtype), elements);
                self.frame.buffers.insert(id, array);
                return;
            }
            Storage::Elements => (buffer.elements(), element),
            Storage::Vectors(lanes) => {
                let (last, others) = split_shape(&buffer.shape);
                (others * slots_along(last, lanes), self.ops.widen(element, Some(lanes)))
            }
        };
        let slots: Vec<_> = (0..count).map(|_| self.stack_slot(kind)).collect();
        for slot in &slots {
            // The content from the previous iteration of an enclosing loop is dead.
            let nothing: BasicValueEnum<'ctx> = match kind {
                inkwell::types::BasicTypeEnum::VectorType(kind) => kind.get_undef().into(),
                inkwell::types::BasicTypeEnum::FloatType(kind) => kind.get_undef().into(),
                kind => kind.into_int_type().get_undef().into(),
            };
            self.ops.builder.build_store(*slot, nothing).expect(BUILT);
        }
        self.frame.slots.insert(id, slots);
    }

    /// The slot of an access; `None` for buffers in memory.
    pub(super) fn slot(&self, access: &Access) -> Option<Slot<'ctx>> {
        let slots = self.frame.slots.get(&access.tensor)?;
        let shape = &self.nest.buffer(access.tensor).shape;
        let lane = self.frame.lanes.map(|lanes| lanes.var);
        let mut whole = false;
        let mut indices = Vec::with_capacity(access.indices.len());
        for index in &access.indices {
            let index = self.resolve(index);
            let number = index.as_constant().or_else(|| {
                whole = true;
                let (_, rest) = index.split_on(&Atom::Var(lane?))?;
                rest.as_constant()
            });
            indices.push(number.expect("classified accesses are numbers plus the lane"));
        }
        let lanes = match self.register_storage[&access.tensor] {
            Storage::Vectors(lanes) => lanes as i64,
            _ => 1,
        };
        let (last, _) = split_shape(shape);
        let (at, row) = match indices.split_last() {
            Some((at, others)) => {
                let row = others.iter().zip(shape).fold(0, |row, (index, extent)| row * extent + index);
                (*at, row)
            }
            None => (0, 0),
        };
        let slot = row * slots_along(last, lanes as u32) + at / lanes;
        let pointer = *slots.get(usize::try_from(slot).ok()?)?;
        let lane = (lanes > 1 && !whole).then_some((at % lanes) as u32);
        Some(Slot { pointer, lane })
    }

    pub(super) fn load_slot(&self, access: &Access, slot: &Slot<'ctx>) -> Value<'ctx> {
        let whole = self.load_whole_slot(access, slot);
        match slot.lane {
            Some(lane) => self.ops.extract(whole, lane),
            None => whole,
        }
    }

    fn load_whole_slot(&self, access: &Access, slot: &Slot<'ctx>) -> Value<'ctx> {
        let element = self.ops.compute_type(self.nest.buffer(access.tensor).dtype);
        let lanes = match self.register_storage[&access.tensor] {
            Storage::Vectors(lanes) => Some(lanes),
            _ => None,
        };
        self.ops.builder.build_load(self.ops.widen(element, lanes), slot.pointer, "").expect(BUILT)
    }

    pub(super) fn store_slot(&self, access: &Access, slot: &Slot<'ctx>, value: Value<'ctx>) {
        let value = match (slot.lane, self.register_storage[&access.tensor]) {
            (Some(lane), _) => {
                let whole = self.load_whole_slot(access, slot);
                self.ops.insert(whole, value, lane)
            }
            (None, Storage::Vectors(lanes)) => self.ops.splat(value, lanes),
            (None, _) => value,
        };
        self.ops.builder.build_store(slot.pointer, value).expect(BUILT);
    }
}

impl Slot<'_> {
    /// Whether the slot holds one element for each lane of the accessing loop.
    pub(super) fn has_lanes(&self, storage: Storage) -> bool {
        self.lane.is_none() && matches!(storage, Storage::Vectors(_))
    }
}

/// The last extent, and the product of the other extents.
fn split_shape(shape: &[i64]) -> (i64, i64) {
    match shape.split_last() {
        Some((last, others)) => (*last, others.iter().product()),
        None => (1, 1),
    }
}

fn slots_along(extent: i64, lanes: u32) -> i64 {
    (extent + lanes as i64 - 1) / lanes as i64
}
