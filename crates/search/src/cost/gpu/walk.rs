//! Traverses a loop nest and adds up, for each of its kernels, the work of one thread block
//! ([`Block`]).

use std::collections::{BTreeSet, HashMap};

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{
    Access, Axis, BufferId, For, If, IndexExpr, LoopKind, LoopVarId, Scope, Stmt, Sync,
};
use tilewright_ir::walk::{any_loop, visit};
use tilewright_target::Gpu;

use super::branches::{Iterations, Path};
use super::cache;
use super::statement::AccessKind;

/// The assumed probability of the unlikely side of a branch of the host.
const UNLIKELY: f64 = 0.05;
/// The number of instructions for counting and branching in an iteration of a loop that is not
/// written out. Compilers write out some iterations of long loops.
const PER_ITERATION: f64 = 2.0;
/// The number of instructions of one round in which threads pass on their partial results.
const COMBINE_INSTRUCTIONS: f64 = 2.0;
/// The most iterations of a loop that a compiler writes out by itself, and the most statements that
/// it makes of one loop.
const MOST_UNROLLED_TRIPS: f64 = 16.0;
const MOST_COPIES: f64 = 320.0;
/// The work of a block, in warp instructions and similar units.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    /// The number of blocks of the grid.
    pub blocks: f64,
    pub threads: f64,
    /// The bytes of shared memory.
    pub shared_bytes: f64,
    /// The number of 32-bit registers of all register buffers, for all threads of the block.
    pub registers: f64,
    /// The number of arithmetic instructions, and of all instructions.
    pub arithmetic: f64,
    pub instructions: f64,
    /// The number of accesses to the banks of shared memory, including bank conflicts.
    pub bank_accesses: f64,
    /// The transfers between the block and global memory.
    pub transfers: Vec<Transfer>,
    /// How often a block waits for memory or for all its threads.
    pub waits: f64,
    /// How many of these waits are for data that was prefetched.
    pub prefetched_waits: f64,
    /// The number of instructions that one thread executes one after another.
    pub chain: f64,
    /// The bytes of the tensors that the kernel touches.
    pub bytes: f64,
    /// How often the whole kernel is launched.
    pub launches: f64,
}

/// Sectors of global memory that a block moves in some number of rounds: in each, its threads wait
/// for what they asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub rounds: f64,
    pub sectors: f64,
}

/// A loop around a statement.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnclosingLoop {
    pub var: LoopVarId,
    pub kind: LoopKind,
    pub trips: f64,
    /// Whether the number of iterations is a constant.
    is_fixed: bool,
}

/// Traverses the statements of one kernel.
pub(super) struct Walk<'a> {
    pub nest: &'a LoopNest,
    pub gpu: &'a Gpu,
    pub loops: Vec<EnclosingLoop>,
    path: Path<'a>,
    /// The share of the warps and iterations that take the branches of the path.
    pub share: f64,
    is_prefetched: bool,
    pub block: Block,
    /// The buffers that the kernel writes.
    pub written: BTreeSet<BufferId>,
    /// The bytes of each tensor that the kernel touches.
    touched: HashMap<BufferId, f64>,
}

impl<'a> Walk<'a> {
    /// Returns the work of the kernels of a statement outside of loops.
    pub fn kernels(nest: &'a LoopNest, root: &'a Stmt, gpu: &'a Gpu) -> Vec<Block> {
        let mut found = Vec::new();
        collect(nest, gpu, std::slice::from_ref(root), 1.0, &mut found);
        found
    }

    fn new(nest: &'a LoopNest, gpu: &'a Gpu, launches: f64, kernel: &'a [Stmt]) -> Walk<'a> {
        let mut written = BTreeSet::new();
        visit(kernel, &mut |stmt| written.extend(stmt.store().map(|store| store.target.tensor)));
        let block = Block { blocks: 1.0, threads: 1.0, launches, ..Block::default() };
        Walk {
            nest,
            gpu,
            loops: Vec::new(),
            path: Path::default(),
            share: 1.0,
            is_prefetched: false,
            block,
            written,
            touched: HashMap::new(),
        }
    }

    fn finish(mut self) -> Block {
        self.block.bytes = self.touched.values().sum();
        self.block
    }

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(own) => self.run_loop(own),
                Stmt::If(own) => self.branch(own),
                Stmt::Allocate(own) => {
                    self.allocate(own.buffer);
                    self.stmts(&own.body);
                }
                Stmt::Store(own) => self.store(own),
                Stmt::Sync(Sync::Barrier) => self.wait(),
                Stmt::Sync(Sync::Wait(_)) => self.is_prefetched = true,
                Stmt::Combine(_) => self.combine(),
                Stmt::Sync(Sync::Commit) | Stmt::Prefetch(_) => {}
            }
        }
    }

    fn branch(&mut self, own: &'a If) {
        let (before, registers) = (self.share, self.block.registers);
        let conditions = own.conditions.len() as f64;
        self.block.instructions += conditions * self.runs() * self.warps();
        self.branch_side(&own.conditions, true, &own.then);
        // A thread that runs one side has its registers for that side alone.
        let then = std::mem::replace(&mut self.block.registers, registers);
        self.branch_side(&own.conditions, false, &own.otherwise);
        self.block.registers = self.block.registers.max(then);
        self.share = before;
    }

    fn branch_side(&mut self, conditions: &'a [IndexExpr], hold: bool, stmts: &'a [Stmt]) {
        if stmts.is_empty() {
            return;
        }
        self.path.push(conditions, hold);
        let is_thread = |own: &EnclosingLoop| matches!(own.kind, LoopKind::Thread(_));
        let others = self.loops.iter().filter(|own| !is_thread(own));
        let others: Vec<(LoopVarId, i64)> = others.map(|own| (own.var, own.trips as i64)).collect();
        let (threads, warp) = (self.thread_loops(), self.gpu.warp.max(1) as i64);
        self.share = self.path.share(&Iterations { others: &others, threads: &threads, warp });
        self.stmts(stmts);
        self.path.pop();
    }

    fn run_loop(&mut self, own: &'a For) {
        let trips = own.extent.as_constant().unwrap_or(1).max(0) as f64;
        let is_written_out = self.is_written_out(own);
        match own.kind {
            LoopKind::Block(_) => self.block.blocks *= trips,
            LoopKind::Thread(_) => {
                self.block.threads = self.block.threads.max(trips * self.enclosing_threads());
            }
            LoopKind::Serial | LoopKind::Parallel if !is_written_out => {
                let instructions = PER_ITERATION * trips * self.runs() * self.warps();
                self.block.instructions += instructions;
            }
            _ => {}
        }
        let is_fixed = own.extent.as_constant().is_some();
        let kind = if is_written_out { LoopKind::Unrolled } else { own.kind };
        self.loops.push(EnclosingLoop { var: own.var, kind, trips, is_fixed });
        self.stmts(&own.body);
        self.loops.pop();
    }

    /// Whether a compiler writes out a serial loop: all iterations of a short one, unless the loops
    /// around it already make many copies.
    fn is_written_out(&self, own: &For) -> bool {
        let trips = own.extent.as_constant().map_or(f64::INFINITY, |trips| trips as f64);
        let outer = self.loops.iter().filter(|own| own.kind == LoopKind::Unrolled);
        let all = outer.map(|own| own.trips).product::<f64>() * trips * copies(&own.body);
        own.kind == LoopKind::Serial && trips <= MOST_UNROLLED_TRIPS && all <= MOST_COPIES
    }

    /// How often one thread of a block runs the current statement.
    fn runs(&self) -> f64 {
        let spread = |own: &&EnclosingLoop| !matches!(own.kind, LoopKind::Block(_) | LoopKind::Thread(_));
        self.share * self.loops.iter().filter(spread).map(|own| own.trips).product::<f64>()
    }

    /// The number of warps of a block that run the current statement.
    pub(super) fn warps(&self) -> f64 {
        (self.enclosing_threads() / self.gpu.warp.max(1) as f64).ceil()
    }

    /// The number of threads of a block that run the current statement.
    fn enclosing_threads(&self) -> f64 {
        let threads = self.loops.iter().filter(|own| matches!(own.kind, LoopKind::Thread(_)));
        threads.map(|own| own.trips).product()
    }

    /// Counts a buffer. Outside of thread loops, a register buffer holds the elements of all
    /// threads; inside, each thread has a buffer of its own.
    fn allocate(&mut self, buffer: BufferId) {
        let own = self.nest.buffer(buffer);
        match own.scope {
            Scope::Shared => self.block.shared_bytes += own.bytes() as f64,
            Scope::Register => self.block.registers += own.bytes() as f64 / 4.0 * self.enclosing_threads(),
            _ => {}
        }
    }

    fn wait(&mut self) {
        let runs = self.runs();
        self.block.waits += runs;
        if std::mem::take(&mut self.is_prefetched) {
            self.block.prefetched_waits += runs;
        }
    }

    /// Counts a reduction over threads: a warp takes as many rounds as it can be halved, and the
    /// warps are then combined once.
    fn combine(&mut self) {
        let rounds = (self.gpu.warp.max(2) as f64).log2();
        let runs = self.runs();
        self.block.instructions +=
            COMBINE_INSTRUCTIONS * rounds * runs * (self.block.threads / self.gpu.warp.max(1) as f64);
        self.block.chain += 4.0 * COMBINE_INSTRUCTIONS * rounds * runs;
        self.block.waits += 2.0 * runs;
        self.block.prefetched_waits += 2.0 * runs;
    }

    /// Whether the compiler knows which register an access means: its subscripts are numbers once
    /// short loops are written out. Otherwise the buffer is in memory.
    pub(super) fn is_known_register(&self, access: &Access) -> bool {
        let is_written_out = |var: &LoopVarId| {
            let own = self.loops.iter().find(|own| own.var == *var);
            own.is_some_and(|own| match own.kind {
                LoopKind::Serial | LoopKind::Parallel => own.is_fixed && own.trips <= MOST_UNROLLED_TRIPS,
                // Each thread has registers of its own.
                _ => true,
            })
        };
        access.indices.iter().all(|index| !index.has_data() && index.vars().iter().all(is_written_out))
    }

    /// Notes which part of a tensor the whole kernel touches, in bytes.
    pub(super) fn touch(&mut self, access: &Access, spans: &[i64]) -> f64 {
        let bytes = cache::touched_bytes(self.nest, access, spans, &self.all_loops());
        let known = self.touched.entry(access.tensor).or_default();
        *known = known.max(bytes);
        bytes
    }

    /// Adds sectors to those that are moved in as many rounds.
    pub(super) fn transfer(&mut self, rounds: f64, sectors: f64) {
        match self.block.transfers.iter_mut().find(|own| own.rounds == rounds) {
            Some(own) => own.sectors += sectors,
            None => self.block.transfers.push(Transfer { rounds, sectors }),
        }
    }

    /// The number of times that a thread comes to an access inside these loops, one after another.
    pub(super) fn rounds(&self, innermost: usize) -> f64 {
        let inside = self.loops.iter().take(innermost + 1);
        let serial = inside.filter(|own| matches!(own.kind, LoopKind::Serial | LoopKind::Parallel));
        serial.map(|own| own.trips).product::<f64>()
    }

    /// Whether a loop that is not written out is inside the one at a position, up to another one.
    /// The values that a thread loads there in one copy are gone in the next.
    pub(super) fn has_loop_between(&self, at: usize, innermost: usize) -> bool {
        let inside = self.loops.get(at + 1..=innermost).unwrap_or_default();
        inside.iter().any(|own| matches!(own.kind, LoopKind::Serial | LoopKind::Parallel))
    }

    /// The loops of the block around the current statement, outermost first.
    pub(super) fn loops_of_block(&self) -> Vec<cache::Loop> {
        self.loops.iter().filter(|own| !matches!(own.kind, LoopKind::Block(_))).map(cached).collect()
    }

    /// All loops of the kernel around the current statement, outermost first.
    fn all_loops(&self) -> Vec<cache::Loop> {
        self.loops.iter().map(cached).collect()
    }

    /// The thread loops around the current statement, first dimension first.
    pub(super) fn thread_loops(&self) -> Vec<(LoopVarId, i64)> {
        let axis = |own: &EnclosingLoop| match own.kind {
            LoopKind::Thread(axis) => Some((axis, own.var, own.trips as i64)),
            _ => None,
        };
        let mut found: Vec<(Axis, LoopVarId, i64)> = self.loops.iter().filter_map(axis).collect();
        found.sort_by_key(|(axis, ..)| *axis);
        found.into_iter().map(|(_, var, trips)| (var, trips)).collect()
    }

    /// The unrolled loops whose iterations can become one wide access. Only for shared memory does
    /// the compiler find wide accesses in loops without vectorisation.
    pub(super) fn widenable_loops(&self, access: &Access, kind: AccessKind) -> Vec<(LoopVarId, i64)> {
        let written_out = |own: &&EnclosingLoop| {
            matches!(own.kind, LoopKind::Unrolled | LoopKind::Vector)
                && access.indices.last().is_some_and(|index: &IndexExpr| index.mentions(own.var))
        };
        let vector_only = !matches!(self.nest.buffer(access.tensor).scope, Scope::Shared);
        let found = self.loops.iter().filter(written_out);
        let wide = |own: &&EnclosingLoop| own.kind == LoopKind::Vector && kind != AccessKind::GuardedLoad;
        let found = found.filter(|own| !vector_only || wide(own));
        found.map(|own| (own.var, own.trips as i64)).collect()
    }
}

/// The number of statements that are left if all loops are written out; infinite if a loop or a
/// barrier is in the way.
fn copies(stmts: &[Stmt]) -> f64 {
    let of = |stmt: &Stmt| match stmt {
        Stmt::For(own) => {
            own.extent.as_constant().map_or(f64::INFINITY, |trips| trips as f64 * copies(&own.body))
        }
        Stmt::If(own) => copies(&own.then) + copies(&own.otherwise),
        Stmt::Allocate(own) => copies(&own.body),
        Stmt::Store(_) => 1.0,
        _ => f64::INFINITY,
    };
    stmts.iter().map(of).sum()
}

fn cached(own: &EnclosingLoop) -> cache::Loop {
    cache::Loop { var: own.var, trips: own.trips, is_thread_loop: matches!(own.kind, LoopKind::Thread(_)) }
}

/// Collects the kernels: statements at root level, and inside the loops and branches of the host.
fn collect<'a>(nest: &'a LoopNest, gpu: &'a Gpu, stmts: &'a [Stmt], launches: f64, found: &mut Vec<Block>) {
    for stmt in stmts {
        let is_spread = any_loop(std::slice::from_ref(stmt), For::is_block_or_thread_loop);
        match stmt {
            Stmt::For(own) if is_spread && !own.is_block_or_thread_loop() => {
                let trips = own.extent.as_constant().unwrap_or(1).max(0) as f64;
                collect(nest, gpu, &own.body, launches * trips, found);
            }
            Stmt::If(own) if is_spread => {
                collect(nest, gpu, &own.then, launches, found);
                collect(nest, gpu, &own.otherwise, launches * UNLIKELY, found);
            }
            Stmt::Allocate(own) if nest.buffer(own.buffer).scope == Scope::Scratch => {
                collect(nest, gpu, &own.body, launches, found);
            }
            Stmt::Sync(_) | Stmt::Prefetch(_) => {}
            _ => {
                let kernel = std::slice::from_ref(stmt);
                let mut walk = Walk::new(nest, gpu, launches, kernel);
                walk.stmts(kernel);
                found.push(walk.finish());
            }
        }
    }
}
