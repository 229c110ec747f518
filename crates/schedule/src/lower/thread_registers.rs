//! Finds the buffers of a thread block that can be in its threads' registers.
//!
//! Threads that are combined store their partial results in memory of the block at their thread
//! index, and read the total from there. Most often no thread reads an element of another, and the
//! buffer can then be in registers. For that, every dimension must be either a thread index or
//! known when code is generated, in the same way wherever the buffer is used, and
//! - every element is read by the thread that has written it;
//! - or all threads along an axis have the element, since it is their combined total.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Access, Axis, Buffer, BufferId, IndexExpr, LoopKind, LoopVarId, Stmt, Store};

/// The most elements of one buffer that a thread holds in registers.
const MOST_ELEMENTS: i64 = 16;

/// Returns true when a buffer that threads are combined from or to can be in registers, judged by
/// all its uses.
pub(super) fn fits_thread_registers(id: BufferId, buffer: &Buffer, uses: &[Stmt]) -> bool {
    let mut walk = Walk { tensor: id, loops: Vec::new(), found: Vec::new(), combined: false };
    walk.stmts(uses);
    // Registers hold values of the compute type, which are not rounded to 16 bits.
    if !walk.combined || buffer.dtype.compute_type() != buffer.dtype {
        return false;
    }
    let Some(dimensions) = common_dimensions(&walk.found, buffer.shape.len()) else { return false };
    let axes: BTreeSet<Axis> = dimensions.iter().filter_map(|dimension| dimension.axis()).collect();
    let axes_are_distinct =
        axes.len() == dimensions.iter().filter(|dimension| dimension.axis().is_some()).count();
    let own = dimensions.iter().zip(&buffer.shape).filter(|(dimension, _)| dimension.axis().is_none());
    let elements: i64 = own.map(|(_, extent)| *extent).product();
    axes_are_distinct && elements <= MOST_ELEMENTS && each_thread_reads_its_elements(&walk.found, &axes)
}

/// Returns true when every thread reads only elements that it holds. `axes` holds the axes of the
/// buffer's dimensions.
fn each_thread_reads_its_elements(uses: &[Use], axes: &BTreeSet<Axis>) -> bool {
    let is_total = |own: &Use| matches!(own.role, UseRole::Total);
    let totals_only = uses.iter().filter(|own| !matches!(own.role, UseRole::Read)).all(is_total);
    uses.iter().all(|own| match own.role {
        UseRole::Write => own.threads == *axes,
        UseRole::Read if totals_only => {
            own.threads.iter().all(|axis| axes.contains(axis) || *axis == Axis::X)
        }
        UseRole::Read => own.threads == *axes,
        UseRole::Total => {
            !axes.contains(&Axis::X) && own.threads.iter().all(|axis| axes.contains(axis) || *axis == Axis::X)
        }
    })
}

/// The kind of a subscript.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimension {
    Thread(Axis),
    /// Only constants and variables of unrolled loops.
    KnownAtCompileTime,
}

impl Dimension {
    fn axis(self) -> Option<Axis> {
        match self {
            Dimension::Thread(axis) => Some(axis),
            Dimension::KnownAtCompileTime => None,
        }
    }
}

/// The kinds of the dimensions, if they are the same in all uses.
fn common_dimensions(uses: &[Use], dimensions: usize) -> Option<Vec<Dimension>> {
    let first = uses.first()?.dimensions.clone()?;
    let same = uses.iter().all(|own| own.dimensions.as_ref() == Some(&first));
    (same && first.len() == dimensions).then_some(first)
}

#[derive(Clone, Copy)]
enum UseRole {
    Read,
    Write,
    /// Written by a statement that combines threads.
    Total,
}

/// One use of the buffer.
struct Use {
    role: UseRole,
    /// The axes of the thread loops around the use.
    threads: BTreeSet<Axis>,
    dimensions: Option<Vec<Dimension>>,
}

struct Walk {
    tensor: BufferId,
    /// The loops around the current statement, with their kinds.
    loops: Vec<(LoopVarId, LoopKind)>,
    found: Vec<Use>,
    /// Whether threads are combined from or to the buffer.
    combined: bool,
}

impl Walk {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            stmt.control_exprs().iter().for_each(|bound| self.index(bound));
            match stmt {
                Stmt::Store(own) => self.store(own, UseRole::Write),
                Stmt::Combine(own) => {
                    let before = self.found.len();
                    self.store(&own.store, UseRole::Total);
                    self.combined |= self.found.len() > before;
                }
                Stmt::Prefetch(own) if own.element.tensor == self.tensor => self.add(UseRole::Read, None),
                _ => {}
            }
            let outside = self.loops.len();
            if let Stmt::For(own) = stmt {
                self.loops.push((own.var, own.kind));
            }
            stmt.bodies().for_each(|body| self.stmts(body));
            self.loops.truncate(outside);
        }
    }

    fn store(&mut self, store: &Store, role: UseRole) {
        let mut reads = Vec::new();
        store.value.visit_reads(&mut |access| reads.push(access));
        reads.into_iter().for_each(|access| self.access(access, UseRole::Read));
        store.target.indices.iter().for_each(|index| self.index(index));
        if store.reduce.is_some() {
            self.access(&store.target, UseRole::Read);
        }
        self.access(&store.target, role);
    }

    fn access(&mut self, access: &Access, role: UseRole) {
        if access.tensor == self.tensor {
            let dimensions = access.indices.iter().map(|index| self.dimension(index)).collect();
            self.add(role, dimensions);
        }
    }

    /// Records a use that rules out registers if a subscript, extent or condition reads the buffer.
    fn index(&mut self, index: &IndexExpr) {
        let mut reads = false;
        index.visit_reads(&mut |access| reads |= access.tensor == self.tensor);
        if reads {
            self.add(UseRole::Read, None);
        }
    }

    fn add(&mut self, role: UseRole, dimensions: Option<Vec<Dimension>>) {
        let threads = self.loops.iter().filter_map(|(_, kind)| match kind {
            LoopKind::Thread(axis) => Some(*axis),
            _ => None,
        });
        self.found.push(Use { role, threads: threads.collect(), dimensions });
    }

    fn dimension(&self, index: &IndexExpr) -> Option<Dimension> {
        let kind = |var: LoopVarId| self.loops.iter().find(|(own, _)| *own == var).map(|(_, kind)| *kind);
        if let Some(LoopKind::Thread(axis)) = index.as_var().and_then(kind) {
            return Some(Dimension::Thread(axis));
        }
        let written_out =
            !index.has_data() && index.vars().into_iter().all(|var| kind(var) == Some(LoopKind::Unrolled));
        written_out.then_some(Dimension::KnownAtCompileTime)
    }
}
