//! Copies of a register tile's code that are kept apart.
//!
//! A reduction that is written out around a tile of results, such as the columns of a convolution's window, reads many
//! operands several times, in different copies. LLVM would load each once and keep it, and where the results already
//! take up most of the registers, it keeps those in memory then: far dearer than to load an operand again. So nothing
//! that is loaded is kept from one copy to the next, if the tile is large.

use inkwell::AtomicOrdering;
use tilewright_ir::nest::{For, Scope, Stmt, Store};

use super::function::Emitter;
use super::ops::BUILT;
use super::walk::{bodies, is_written_out, vector_lanes};

impl Emitter<'_, '_> {
    /// Whether the copies of a loop's body are to be kept apart: they add to the same, large tile.
    pub(super) fn is_kept_apart(&self, inner: &For) -> bool {
        let registers = self.machine.registers as i64;
        let own = |store: &Store| !store.target.indices.iter().any(|index| index.mentions(inner.var));
        8 * self.results(&inner.body, &own) >= 5 * registers
    }

    /// The results in registers that statements add to.
    fn results(&self, stmts: &[Stmt], counts: &dyn Fn(&Store) -> bool) -> i64 {
        let each = stmts.iter().map(|stmt| match stmt {
            Stmt::Store(store) => {
                let register = self.nest.buffer(store.target.tensor).scope == Scope::Register;
                (register && counts(store)) as i64
            }
            Stmt::For(inner) => {
                let copies = match (vector_lanes(inner), is_written_out(inner)) {
                    (None, true) => inner.extent.as_constant().unwrap_or(1),
                    _ => 1,
                };
                copies * self.results(&inner.body, counts)
            }
            other => bodies(other).iter().map(|body| self.results(body, counts)).max().unwrap_or(0),
        });
        each.fold(0, i64::saturating_add)
    }

    /// Nothing that was loaded before is known to be the same after.
    pub(super) fn forget_loads(&self) {
        self.ops.builder.build_fence(AtomicOrdering::SequentiallyConsistent, true, "").expect(BUILT);
    }
}
