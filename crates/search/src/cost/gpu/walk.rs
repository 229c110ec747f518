//! Traverses a loop nest and adds up, for each of its kernels, the work of one thread block
//! ([`Block`]).

use std::collections::{BTreeSet, HashMap};

use tilewright_ir::nest::{
    Access, Atom, Axis, BufferId, Expr, ExprKind, For, IndexExpr, LoopKind, LoopVarId, Scope, Stmt, Store,
    Sync,
};
use tilewright_ir::walk::any_loop;
use tilewright_ir::{BinaryOp, LoopNest};
use tilewright_target::Gpu;

use super::cache;
use super::lanes::{AccessCost, Pattern};
use crate::cost::cpu::{Shares, operation_cost, shares};

/// The assumed probability of the unlikely side of a branch.
const UNLIKELY: f64 = 0.05;
/// The number of instructions for counting and branching in an iteration of a loop that is not
/// unrolled.
const PER_ITERATION: f64 = 4.0;
/// The number of instructions for the address of an access.
const PER_ADDRESS: f64 = 1.0;
/// The number of instructions of an index division by a number, and of an index minimum.
const INDEX_DIVISION: f64 = 5.0;
const INDEX_MINIMUM: f64 = 1.0;

/// The number of instructions of one round in which threads pass on their partial results.
const COMBINE_INSTRUCTIONS: f64 = 2.0;
/// The most iterations of a loop that a compiler writes out by itself.
const MOST_UNROLLED_TRIPS: f64 = 16.0;
/// An access to a register buffer that is in memory, as a number of dependent instructions.
const LOCAL_MEMORY_STEPS: f64 = 8.0;

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
struct EnclosingLoop {
    var: LoopVarId,
    kind: LoopKind,
    trips: f64,
    /// Whether the number of iterations is a constant.
    is_fixed: bool,
}

/// How an element is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccessKind {
    Load,
    /// A load under a condition that differs between the lanes of a vector, so that each lane loads
    /// separately.
    GuardedLoad,
    Store,
}

/// Traverses the statements of one kernel.
pub(super) struct Walk<'a> {
    nest: &'a LoopNest,
    gpu: &'a Gpu,
    loops: Vec<EnclosingLoop>,
    /// The probability that the enclosing branches are taken.
    share: f64,
    is_prefetched: bool,
    block: Block,
    tensors: HashMap<BufferId, f64>,
}

impl<'a> Walk<'a> {
    /// Returns the work of the kernels of a statement outside of loops.
    pub fn kernels(nest: &'a LoopNest, root: &'a Stmt, gpu: &'a Gpu) -> Vec<Block> {
        let mut found = Vec::new();
        collect(nest, gpu, std::slice::from_ref(root), 1.0, &mut found);
        found
    }

    fn new(nest: &'a LoopNest, gpu: &'a Gpu, launches: f64) -> Walk<'a> {
        let block = Block { blocks: 1.0, threads: 1.0, launches, ..Block::default() };
        Walk {
            nest,
            gpu,
            loops: Vec::new(),
            share: 1.0,
            is_prefetched: false,
            block,
            tensors: HashMap::new(),
        }
    }

    fn finish(mut self) -> Block {
        self.block.bytes = self.tensors.values().sum();
        self.block
    }

    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(own) => self.run_loop(own),
                Stmt::If(own) => {
                    let (before, registers) = (self.share, self.block.registers);
                    let conditions = own.conditions.len() as f64;
                    self.block.instructions += conditions * self.runs() * self.warps();
                    self.stmts(&own.then);
                    if !own.otherwise.is_empty() {
                        self.share = before * UNLIKELY;
                        // A thread that runs one side has its registers for that side alone.
                        let then = std::mem::replace(&mut self.block.registers, registers);
                        self.stmts(&own.otherwise);
                        self.block.registers = self.block.registers.max(then);
                    }
                    self.share = before;
                }
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

    fn run_loop(&mut self, own: &For) {
        let trips = own.extent.as_constant().unwrap_or(1).max(0) as f64;
        match own.kind {
            LoopKind::Block(_) => self.block.blocks *= trips,
            LoopKind::Thread(_) => {
                self.block.threads = self.block.threads.max(trips * self.enclosing_threads());
            }
            LoopKind::Serial | LoopKind::Parallel => {
                let instructions = PER_ITERATION * trips * self.runs() * self.warps();
                self.block.instructions += instructions;
            }
            LoopKind::Vector | LoopKind::Unrolled => {}
        }
        let is_fixed = own.extent.as_constant().is_some();
        self.loops.push(EnclosingLoop { var: own.var, kind: own.kind, trips, is_fixed });
        self.stmts(&own.body);
        self.loops.pop();
    }

    /// How often one thread of a block runs the current statement.
    fn runs(&self) -> f64 {
        let spread = |own: &&EnclosingLoop| !matches!(own.kind, LoopKind::Block(_) | LoopKind::Thread(_));
        self.share * self.loops.iter().filter(spread).map(|own| own.trips).product::<f64>()
    }

    /// The number of warps of a block that run the current statement.
    fn warps(&self) -> f64 {
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

    fn store(&mut self, store: &Store) {
        let warps = self.warps();
        let together = self.uniform_select_lanes(&store.value);
        let runs = self.runs() / together.unwrap_or(1.0);
        let shared = self.shared_values(&store.value);
        let operations = arithmetic(&store.value, &shared) + f64::from(u8::from(store.reduce.is_some()));
        // A product that is added is one multiply-add instruction.
        let fused = store.reduce.is_some() && matches!(&store.value.kind, ExprKind::Binary(BinaryOp::Mul, _));
        let operations = if fused { operations - 1.0 } else { operations };
        self.block.arithmetic += operations * runs * warps;
        self.block.instructions += operations * runs * warps;
        self.block.chain += operations * runs;
        let mut loads = Vec::new();
        visit_loads(&store.value, &mut |load, access| {
            loads.push((access, shared.get(&load).copied().unwrap_or(1.0)));
        });
        self.address_operations(loads.iter().map(|(access, _)| *access).chain([&store.target]), warps);
        let certain = store.value.certain_loads();
        for (access, distinct) in loads {
            let kind = if together.is_some() || certain.contains(&access) {
                AccessKind::Load
            } else {
                AccessKind::GuardedLoad
            };
            self.access(access, warps, kind, distinct);
        }
        self.access(&store.target, warps, AccessKind::Store, 1.0);
    }

    /// The values that the innermost unrolled iterations of a statement share.
    fn shared_values(&self, value: &Expr) -> Shares {
        let written_out = self.loops.iter().rev().take_while(|own| own.kind == LoopKind::Unrolled);
        let trips: HashMap<LoopVarId, f64> = written_out.map(|own| (own.var, own.trips)).collect();
        shares(value, &|var| trips.get(&var).copied().unwrap_or(1.0))
    }

    /// Counts the divisions, minima and data-dependent values in the subscripts of a statement.
    /// Each is computed once for all its uses, in the loops that it depends on.
    fn address_operations<'e>(&mut self, accesses: impl Iterator<Item = &'e Access>, warps: f64) {
        let mut counted: BTreeSet<&Atom> = BTreeSet::new();
        for index in accesses.flat_map(|access| &access.indices) {
            index.visit_atoms(&mut |atom| {
                counted.insert(atom);
            });
        }
        for atom in counted {
            let instructions = match atom {
                Atom::FloorDiv(pair) | Atom::Mod(pair) => division(&pair.1),
                Atom::Min(_) | Atom::Max(_) => INDEX_MINIMUM,
                Atom::Data(data) => arithmetic(&data.value, &Shares::default()),
                _ => continue,
            };
            let index = IndexExpr::atom(atom.clone());
            let runs: f64 = self
                .loops
                .iter()
                .filter(|own| !matches!(own.kind, LoopKind::Block(_) | LoopKind::Thread(_)))
                .filter(|own| index.mentions(own.var))
                .map(|own| own.trips)
                .product();
            self.block.instructions += instructions * runs * self.share * warps;
            self.block.chain += instructions * runs * self.share;
        }
    }

    /// The number of lanes of the vector, if the value is a selection whose condition is the same
    /// for all lanes. The condition is then evaluated once.
    fn uniform_select_lanes(&self, value: &Expr) -> Option<f64> {
        let vector = self.loops.last().filter(|own| own.kind == LoopKind::Vector)?;
        let ExprKind::Select(arms) = &value.kind else { return None };
        (!arms[0].mentions(vector.var)).then_some(vector.trips)
    }

    /// Counts an access. It executes in the loops that it depends on and in the loops around them.
    /// Values that unrolled iterations share are loaded once: `distinct` is the share of the loads
    /// that remain.
    fn access(&mut self, access: &Access, warps: f64, kind: AccessKind, distinct: f64) {
        let buffer = self.nest.buffer(access.tensor);
        if buffer.scope == Scope::Register && self.is_known_register(access) {
            return;
        }
        let mentioned = |var: LoopVarId| access.indices.iter().any(|index| index.mentions(var));
        let innermost = self.loops.iter().rposition(|own| mentioned(own.var)).unwrap_or(0);
        let mut runs = self.share * distinct;
        for (at, own) in self.loops.iter().enumerate() {
            let written_out = matches!(own.kind, LoopKind::Unrolled | LoopKind::Vector);
            let counts = match own.kind {
                LoopKind::Block(_) | LoopKind::Thread(_) => false,
                _ if written_out => mentioned(own.var) || self.has_loop_between(at, innermost),
                _ => at <= innermost || kind == AccessKind::Store,
            };
            runs *= if counts { own.trips } else { 1.0 };
        }
        let pattern =
            Pattern::of(self.nest, access, &self.thread_loops(), &self.widenable_loops(access, kind));
        let AccessCost { width, bank_cycles: turns, sectors, lines } =
            pattern.cost(self.gpu.warp.max(1) as i64);
        let instructions = runs / width;
        self.block.instructions += instructions * warps * (1.0 + PER_ADDRESS / width);
        self.block.chain += instructions;
        match buffer.scope {
            Scope::Shared => self.block.bank_accesses += instructions * warps * turns,
            Scope::Register => {
                self.block.bank_accesses += instructions * warps;
                self.block.chain += instructions * LOCAL_MEMORY_STEPS;
            }
            _ => {
                self.block.bank_accesses += instructions * warps * lines.max(1.0);
                let requested = instructions * warps * sectors;
                let fetched = self.share * cache::fetched_sectors(self.nest, access, &self.loops_of_block());
                // Rounds that find everything in the cache of the multiprocessor do not wait.
                let missing = (fetched / requested.max(1.0)).min(1.0);
                match kind {
                    AccessKind::Store => self.transfer(1.0, requested),
                    _ => self.transfer(self.rounds(innermost) * missing, requested * missing),
                }
                let bytes = buffer.bytes() as f64;
                self.tensors.insert(access.tensor, bytes);
            }
        }
    }

    /// Whether the compiler knows which register an access means: its subscripts are numbers once
    /// short loops are written out. Otherwise the buffer is in memory.
    fn is_known_register(&self, access: &Access) -> bool {
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

    /// Adds sectors to those that are moved in as many rounds.
    fn transfer(&mut self, rounds: f64, sectors: f64) {
        match self.block.transfers.iter_mut().find(|own| own.rounds == rounds) {
            Some(own) => own.sectors += sectors,
            None => self.block.transfers.push(Transfer { rounds, sectors }),
        }
    }

    /// The number of times that a thread comes to an access inside these loops, one after another.
    fn rounds(&self, innermost: usize) -> f64 {
        let inside = self.loops.iter().take(innermost + 1);
        let serial = inside.filter(|own| matches!(own.kind, LoopKind::Serial | LoopKind::Parallel));
        serial.map(|own| own.trips).product::<f64>()
    }

    /// Whether a loop that is not written out is inside the one at a position, up to another one.
    /// The values that a thread loads there in one copy are gone in the next.
    fn has_loop_between(&self, at: usize, innermost: usize) -> bool {
        let inside = self.loops.get(at + 1..=innermost).unwrap_or_default();
        inside.iter().any(|own| matches!(own.kind, LoopKind::Serial | LoopKind::Parallel))
    }

    /// The loops of the block around the current statement, outermost first.
    fn loops_of_block(&self) -> Vec<cache::Loop> {
        let inside = self.loops.iter().filter(|own| !matches!(own.kind, LoopKind::Block(_)));
        let of = |own: &EnclosingLoop| cache::Loop {
            var: own.var,
            trips: own.trips,
            is_thread_loop: matches!(own.kind, LoopKind::Thread(_)),
        };
        inside.map(of).collect()
    }

    /// The thread loops around the current statement, first dimension first.
    fn thread_loops(&self) -> Vec<(LoopVarId, i64)> {
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
    fn widenable_loops(&self, access: &Access, kind: AccessKind) -> Vec<(LoopVarId, i64)> {
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

/// Collects the kernels: statements at root level, and inside the loops and branches of the host.
fn collect(nest: &LoopNest, gpu: &Gpu, stmts: &[Stmt], launches: f64, found: &mut Vec<Block>) {
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
                let mut walk = Walk::new(nest, gpu, launches);
                walk.stmts(std::slice::from_ref(stmt));
                found.push(walk.finish());
            }
        }
    }
}

/// The number of instructions of an expression. Divisions and functions take several, and values
/// that are computed several times count once.
fn arithmetic(expr: &Expr, shared: &Shares) -> f64 {
    let own = match &expr.kind {
        ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Load(_) => 0.0,
        _ => {
            let cost = operation_cost(expr);
            let distinct = shared.get(&std::ptr::from_ref(expr)).copied().unwrap_or(1.0);
            distinct * (cost.instructions + 8.0 * cost.divisions)
        }
    };
    own + expr.operands().iter().map(|operand| arithmetic(operand, shared)).sum::<f64>()
}

/// Calls `visit` for every load of an expression, including those in subscripts.
fn visit_loads<'e>(expr: &'e Expr, visit: &mut dyn FnMut(*const Expr, &'e Access)) {
    if let ExprKind::Load(access) = &expr.kind {
        visit(expr, access);
        for factor in access.indices.iter().flat_map(|index| index.terms()).flat_map(|term| &term.factors) {
            if let Atom::Data(data) = factor {
                visit_loads(&data.value, visit);
            }
        }
    }
    expr.operands().iter().for_each(|operand| visit_loads(operand, visit));
}

/// The number of instructions of an index division. One by a power of two is a shift.
fn division(by: &IndexExpr) -> f64 {
    let is_shift = by.as_constant().is_some_and(|by| by > 0 && (by as u64).is_power_of_two());
    if is_shift { 1.0 } else { INDEX_DIVISION }
}
