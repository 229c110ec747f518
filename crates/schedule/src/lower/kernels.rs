//! Decides which memory the buffers of GPU blocks are in, and refuses kernels that exceed the
//! limits of the target.
//!
//! Inside a block and outside its thread loops, scratch memory becomes shared memory, or the
//! registers of the threads ([`assign_scopes`]). The threads of a block run one statement after the
//! other without waiting for each other. So barriers are inserted where a statement accesses
//! elements that another statement has accessed before from other threads
//! ([`mod@super::barriers`]). The resources of a kernel are limited ([`check`]).

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Buffer, For, LoopKind, Scope, Stmt};
use tilewright_ir::walk::{self, any_loop};
use tilewright_target::Capabilities;

use super::thread_registers::fits_thread_registers;
use crate::draft::{Draft, Legal};
use crate::illegal::{GpuResource, Illegal, KernelFault};

/// Makes scratch memory of blocks shared, unless it can be private to the threads. Buffers that a
/// `promote` stages are always shared.
pub(super) fn assign_scopes(nest: &mut LoopNest, draft: &Draft) {
    let LoopNest { setup, body, buffers, .. } = nest;
    let staged = draft.buffers.iter().map(|buffer| buffer.is_staged).collect::<Vec<_>>();
    for stmts in [setup, body] {
        assign_scopes_in(stmts, ExecutionLevel::Host, buffers, &staged);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ExecutionLevel {
    Host,
    Block,
    Thread,
}

impl ExecutionLevel {
    fn inside(self, kind: LoopKind) -> ExecutionLevel {
        match (kind, self) {
            (LoopKind::Thread(_), _) | (_, ExecutionLevel::Thread) => ExecutionLevel::Thread,
            (LoopKind::Block(_), _) | (_, ExecutionLevel::Block) => ExecutionLevel::Block,
            _ => ExecutionLevel::Host,
        }
    }
}

fn assign_scopes_in(stmts: &[Stmt], place: ExecutionLevel, buffers: &mut [Buffer], staged: &[bool]) {
    for stmt in stmts {
        if let Stmt::Allocate(own) = stmt {
            let at = own.buffer.index();
            if place == ExecutionLevel::Block && buffers[at].scope == Scope::Scratch {
                let private = staged.get(at) == Some(&false)
                    && fits_thread_registers(own.buffer, &buffers[at], &own.body);
                buffers[at].scope = if private { Scope::Register } else { Scope::Shared };
            }
        }
        let inside = match stmt {
            Stmt::For(own) => place.inside(own.kind),
            _ => place,
        };
        stmt.bodies().for_each(|body| assign_scopes_in(body, inside, buffers, staged));
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
        Stmt::For(own) if own.is_block_or_thread_loop() => Ok(()),
        Stmt::Allocate(own)
            if nest.buffer(own.buffer).scope == Scope::Register
                && any_loop(&own.body, For::is_block_or_thread_loop) =>
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
    walk::try_visit(stmts, &mut |stmt| match stmt {
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
            let beside = stmts.first().map_or_else(|| nest.name.clone(), |stmt| kernel_label(stmt, nest));
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
        Stmt::For(own)
            if own.is_block_or_thread_loop() || !any_loop(&own.body, For::is_block_or_thread_loop) =>
        {
            KernelResources::of_statement(stmt, nest).check(nest, target, stmt)
        }
        other => other.bodies().flatten().try_for_each(|stmt| check_kernels(stmt, nest, target)),
    }
}

/// The resources that a kernel needs.
#[derive(Clone, Copy, Default)]
struct KernelResources {
    threads: [i64; 3],
    shared_bytes: i64,
    /// Bytes for each thread, while threads are combined.
    combined_bytes: i64,
    /// Bytes for each thread, in its own buffers.
    thread_bytes: i64,
    /// Bytes for all threads together, in buffers that are distributed over them.
    distributed_bytes: i64,
}

impl KernelResources {
    fn of_statement(stmt: &Stmt, nest: &LoopNest) -> KernelResources {
        let inside = stmt.bodies().map(|body| KernelResources::of_statements(body, nest));
        let mut resources = inside.fold(KernelResources::default(), KernelResources::max);
        match stmt {
            Stmt::For(own) => {
                if let Some(axis) = own.thread_axis() {
                    let extent = own.extent.as_constant().unwrap_or(1);
                    resources.threads[axis as usize] = resources.threads[axis as usize].max(extent);
                }
            }
            Stmt::Allocate(own) => {
                let buffer = nest.buffer(own.buffer);
                let has_threads = any_loop(&own.body, |own| own.thread_axis().is_some());
                match buffer.scope {
                    Scope::Shared => resources.shared_bytes += buffer.bytes(),
                    Scope::Register if has_threads => resources.distributed_bytes += buffer.bytes(),
                    Scope::Register | Scope::Scratch => resources.thread_bytes += buffer.bytes(),
                    Scope::Argument(_) | Scope::Constant => {}
                }
            }
            Stmt::Combine(own) => resources.combined_bytes = own.store.value.dtype.bytes() as i64,
            _ => {}
        }
        resources
    }

    /// The needs of statements that run one after the other: each buffer has its own memory.
    fn of_statements(stmts: &[Stmt], nest: &LoopNest) -> KernelResources {
        stmts.iter().map(|stmt| KernelResources::of_statement(stmt, nest)).fold(
            KernelResources::default(),
            |one, other| KernelResources {
                shared_bytes: one.shared_bytes + other.shared_bytes,
                thread_bytes: one.thread_bytes + other.thread_bytes,
                distributed_bytes: one.distributed_bytes + other.distributed_bytes,
                ..one.max(other)
            },
        )
    }

    /// The needs of statements of which only one runs.
    fn max(self, other: KernelResources) -> KernelResources {
        let threads = [0, 1, 2].map(|at| self.threads[at].max(other.threads[at]));
        KernelResources {
            threads,
            shared_bytes: self.shared_bytes.max(other.shared_bytes),
            combined_bytes: self.combined_bytes.max(other.combined_bytes),
            thread_bytes: self.thread_bytes.max(other.thread_bytes),
            distributed_bytes: self.distributed_bytes.max(other.distributed_bytes),
        }
    }

    fn check(self, nest: &LoopNest, target: &Capabilities, stmt: &Stmt) -> Legal<()> {
        let threads: i64 = self.threads.iter().map(|extent| (*extent).max(1)).product();
        let block_threads = target.grid.map_or(1, |grid| grid.block_threads);
        let shared_bytes = target.shared_bytes.unwrap_or(0);
        let limits = [
            (GpuResource::BlockThreads, threads, block_threads),
            (GpuResource::SharedBytes, self.shared_bytes + threads * self.combined_bytes, shared_bytes),
            (GpuResource::ThreadBytes, self.thread_bytes + self.distributed_bytes / threads, THREAD_BYTES),
        ];
        for (what, needed, available) in limits {
            let available = i64::try_from(available).unwrap_or(i64::MAX);
            if needed > available {
                let statement = kernel_label(stmt, nest);
                return Err(Illegal::GpuLimit { statement, what, needed, available });
            }
        }
        Ok(())
    }
}

/// The name of a tensor that the kernel writes, to identify the kernel in messages.
fn kernel_label(stmt: &Stmt, nest: &LoopNest) -> String {
    fn find(stmts: &[Stmt], nest: &LoopNest) -> Option<String> {
        stmts.iter().rev().find_map(|stmt| match stmt.store() {
            Some(store) => Some(nest.buffer(store.target.tensor).name.clone()),
            None => stmt.bodies().find_map(|body| find(body, nest)),
        })
    }
    find(std::slice::from_ref(stmt), nest).unwrap_or_else(|| nest.name.clone())
}
