//! The parts of lowering for blocks of threads: shared memory and limits.
//!
//! Inside a block and outside its thread loops, scratch memory becomes shared memory, or the
//! registers of the threads ([`share`]). The threads of a block run one statement after the other
//! without waiting for each other. So barriers are inserted where a statement accesses elements
//! that another statement has accessed before from other threads ([`mod@super::barriers`]). The
//! resources of a kernel are limited ([`check`]).

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Buffer, For, LoopKind, Scope, Stmt};
use tilewright_ir::walk::{self, any_loop};
use tilewright_target::Capabilities;

use super::private::is_private;
use crate::draft::{Draft, Legal};
use crate::illegal::{GpuResource, Illegal, KernelFault};

/// Makes scratch memory of blocks shared, unless it can be private to the threads. Buffers that a
/// `promote` stages are always shared.
pub(super) fn share(nest: &mut LoopNest, draft: &Draft) {
    let LoopNest { setup, body, buffers, .. } = nest;
    let staged = draft.buffers.iter().map(|buffer| buffer.staged).collect::<Vec<_>>();
    for stmts in [setup, body] {
        share_in(stmts, Place::Host, buffers, &staged);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Host,
    Block,
    Thread,
}

impl Place {
    fn inside(self, kind: LoopKind) -> Place {
        match (kind, self) {
            (LoopKind::Thread(_), _) | (_, Place::Thread) => Place::Thread,
            (LoopKind::Block(_), _) | (_, Place::Block) => Place::Block,
            _ => Place::Host,
        }
    }
}

fn share_in(stmts: &[Stmt], place: Place, buffers: &mut [Buffer], staged: &[bool]) {
    for stmt in stmts {
        if let Stmt::Allocate(own) = stmt {
            let at = own.buffer.index();
            if place == Place::Block && buffers[at].scope == Scope::Scratch {
                let private =
                    staged.get(at) == Some(&false) && is_private(own.buffer, &buffers[at], &own.body);
                buffers[at].scope = if private { Scope::Register } else { Scope::Shared };
            }
        }
        let inside = match stmt {
            Stmt::For(own) => place.inside(own.kind),
            _ => place,
        };
        stmt.bodies().for_each(|body| share_in(body, inside, buffers, staged));
    }
}

/// Refuses kernels that need more resources than the target has.
pub(super) fn check(nest: &LoopNest, target: &Capabilities) -> Legal<()> {
    for stmts in [&nest.setup, &nest.body] {
        check_registers(stmts, nest)?;
        check_grid(stmts, nest)?;
    }
    nest.setup.iter().chain(&nest.body).try_for_each(|stmt| check_kernels(stmt, nest, target))
}

/// Refuses registers that would have to outlive a kernel.
fn check_registers(stmts: &[Stmt], nest: &LoopNest) -> Legal<()> {
    stmts.iter().try_for_each(|stmt| match stmt {
        Stmt::For(own) if own.is_spread() => Ok(()),
        Stmt::Allocate(own)
            if nest.buffer(own.buffer).scope == Scope::Register && any_loop(&own.body, For::is_spread) =>
        {
            let name = &nest.buffer(own.buffer).name;
            Err(Illegal::Kernel(KernelFault::RegistersOutsideKernel { buffer: name.clone() }))
        }
        other => other.bodies().try_for_each(|body| check_registers(body, nest)),
    })
}

/// Refuses statements between two nested loops over blocks: each block of the inner loop would
/// repeat them.
fn check_grid(stmts: &[Stmt], nest: &LoopNest) -> Legal<()> {
    walk::check(stmts, &mut |stmt| match stmt {
        Stmt::For(own) if is_over_blocks(own) && any_loop(&own.body, is_over_blocks) => {
            expect_alone(&own.body, nest)
        }
        _ => Ok(()),
    })
}

/// Checks that the statements hold nothing but one loop over blocks, down to that loop.
fn expect_alone(stmts: &[Stmt], nest: &LoopNest) -> Legal<()> {
    match stmts {
        [Stmt::For(own)] if is_over_blocks(own) => Ok(()),
        [Stmt::For(own)] => expect_alone(&own.body, nest),
        [Stmt::If(own)] if own.otherwise.is_empty() => expect_alone(&own.then, nest),
        _ => {
            let beside = stmts.first().map_or_else(|| nest.name.clone(), |stmt| written_first(stmt, nest));
            Err(Illegal::Kernel(KernelFault::BetweenBlocks { beside }))
        }
    }
}

fn is_over_blocks(own: &For) -> bool {
    matches!(own.kind, LoopKind::Block(_))
}

/// The bytes that a thread may use beside its registers. Devices allow more, and reserve it for as
/// many threads as they can run at a time.
const THREAD_BYTES: usize = 64 << 10;

/// Checks the kernels inside: the outermost loops over blocks or threads.
fn check_kernels(stmt: &Stmt, nest: &LoopNest, target: &Capabilities) -> Legal<()> {
    match stmt {
        // Loops without any loop over blocks or threads are a kernel of one thread.
        Stmt::For(own) if own.is_spread() || !any_loop(&own.body, For::is_spread) => {
            Shape::of(stmt, nest).check(nest, target, stmt)
        }
        other => other.bodies().flatten().try_for_each(|stmt| check_kernels(stmt, nest, target)),
    }
}

/// The resources that a kernel needs.
#[derive(Clone, Copy, Default)]
struct Shape {
    threads: [i64; 3],
    shared_bytes: i64,
    /// Bytes for each thread, while threads are combined.
    combined_bytes: i64,
    /// Bytes for each thread, in its own buffers.
    own_bytes: i64,
    /// Bytes for all threads together, in buffers that are distributed over them.
    spread_bytes: i64,
}

impl Shape {
    fn of(stmt: &Stmt, nest: &LoopNest) -> Shape {
        let inside = stmt.bodies().map(|body| Shape::all(body, nest));
        let mut shape = inside.fold(Shape::default(), Shape::either);
        match stmt {
            Stmt::For(own) => {
                if let Some(axis) = own.thread_axis() {
                    let extent = own.extent.as_constant().unwrap_or(1);
                    shape.threads[axis as usize] = shape.threads[axis as usize].max(extent);
                }
            }
            Stmt::Allocate(own) => {
                let buffer = nest.buffer(own.buffer);
                let has_threads = any_loop(&own.body, |own| own.thread_axis().is_some());
                match buffer.scope {
                    Scope::Shared => shape.shared_bytes += buffer.bytes(),
                    Scope::Register if has_threads => shape.spread_bytes += buffer.bytes(),
                    Scope::Register | Scope::Scratch => shape.own_bytes += buffer.bytes(),
                    Scope::Argument(_) | Scope::Constant => {}
                }
            }
            Stmt::Combine(own) => shape.combined_bytes = own.store.value.dtype.bytes() as i64,
            _ => {}
        }
        shape
    }

    /// The needs of statements that run one after the other: each buffer has its own memory.
    fn all(stmts: &[Stmt], nest: &LoopNest) -> Shape {
        stmts.iter().map(|stmt| Shape::of(stmt, nest)).fold(Shape::default(), |one, other| Shape {
            shared_bytes: one.shared_bytes + other.shared_bytes,
            own_bytes: one.own_bytes + other.own_bytes,
            spread_bytes: one.spread_bytes + other.spread_bytes,
            ..one.either(other)
        })
    }

    /// The needs of statements of which only one runs.
    fn either(self, other: Shape) -> Shape {
        let threads = [0, 1, 2].map(|at| self.threads[at].max(other.threads[at]));
        Shape {
            threads,
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
            combined_bytes: self.combined_bytes.max(other.combined_bytes),
            own_bytes: self.own_bytes.max(other.own_bytes),
            spread_bytes: self.spread_bytes.max(other.spread_bytes),
        }
    }

    fn check(self, nest: &LoopNest, target: &Capabilities, stmt: &Stmt) -> Legal<()> {
        let threads: i64 = self.threads.iter().map(|extent| (*extent).max(1)).product();
        let block_threads = target.grid.map_or(1, |grid| grid.block_threads);
        let shared_bytes = target.shared_bytes.unwrap_or(0);
        let limits = [
            (GpuResource::BlockThreads, threads, block_threads),
            (GpuResource::SharedBytes, self.shared_bytes + threads * self.combined_bytes, shared_bytes),
            (GpuResource::ThreadBytes, self.own_bytes + self.spread_bytes / threads, THREAD_BYTES),
        ];
        for (what, needed, available) in limits {
            let available = i64::try_from(available).unwrap_or(i64::MAX);
            if needed > available {
                let statement = written_first(stmt, nest);
                return Err(Illegal::GpuLimit { statement, what, needed, available });
            }
        }
        Ok(())
    }
}

/// The name of a tensor that the kernel writes, to identify the kernel in messages.
fn written_first(stmt: &Stmt, nest: &LoopNest) -> String {
    fn find(stmts: &[Stmt], nest: &LoopNest) -> Option<String> {
        stmts.iter().rev().find_map(|stmt| match stmt.store() {
            Some(store) => Some(nest.buffer(store.target.tensor).name.clone()),
            None => stmt.bodies().find_map(|body| find(body, nest)),
        })
    }
    find(std::slice::from_ref(stmt), nest).unwrap_or_else(|| nest.name.clone())
}
