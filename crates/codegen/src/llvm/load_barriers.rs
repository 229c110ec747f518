//! Keeps LLVM from sharing loads between the unrolled copies of a register tile's code.
//!
//! An unrolled reduction around a register tile, such as over the columns of a convolution's
//! window, reads many operands several times, in different copies. LLVM would load each operand
//! once and keep it. Where the accumulators already take most of the registers, LLVM then spills
//! them, which costs far more than loading an operand again. So for large tiles, no loaded value is
//! kept from one copy to the next.

use inkwell::AtomicOrdering;
use tilewright_ir::nest::{For, Scope, Stmt, Store};

use super::function::Emitter;
use super::loops::{is_unrolled, vector_lanes};
use super::ops::BUILT;

impl Emitter<'_, '_> {
    /// Whether the copies of a loop's body must not share loads. This is so if they accumulate into
    /// the same tile, and the tile takes at least 5/8 of the vector registers.
    pub(super) fn needs_load_barrier(&self, inner: &For) -> bool {
        let registers = self.machine.registers as i64;
        let reduces_into_one_tile =
            |store: &Store| !store.target.indices.iter().any(|index| index.mentions(inner.var));
        8 * self.count_register_stores(&inner.body, &reduces_into_one_tile) >= 5 * registers
    }

    /// The number of register values that the statements store to.
    fn count_register_stores(&self, stmts: &[Stmt], counts: &dyn Fn(&Store) -> bool) -> i64 {
        let each = stmts.iter().map(|stmt| match stmt {
            Stmt::Store(store) => {
                let register = self.nest.buffer(store.target.tensor).scope == Scope::Register;
                (register && counts(store)) as i64
            }
            Stmt::For(inner) => {
                let copies = match (vector_lanes(inner), is_unrolled(inner)) {
                    (None, true) => inner.extent.as_constant().unwrap_or(1),
                    _ => 1,
                };
                copies * self.count_register_stores(&inner.body, counts)
            }
            other => other.bodies().map(|body| self.count_register_stores(body, counts)).max().unwrap_or(0),
        });
        each.fold(0, i64::saturating_add)
    }

    /// Emits a fence, after which LLVM must reload values from memory.
    pub(super) fn fence_loads(&self) {
        self.ops.builder.build_fence(AtomicOrdering::SequentiallyConsistent, true, "").expect(BUILT);
    }
}
