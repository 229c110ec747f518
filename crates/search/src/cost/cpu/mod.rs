//! Estimates the time of a kernel from its loops and the machine alone.
//!
//! [`estimate`] needs no training and no run. It ranks thousands of candidates a second, so that
//! only promising ones are compiled. Its purpose is to rank the schedules of one program. The
//! estimated seconds are those of an otherwise idle machine, and are right within a factor of two
//! or three.
//!
//! The time is that of the busiest thread. For each root-level statement of the body it is the
//! larger of two times, as in the execution-cache-memory model (Hager, Treibig, Habich, Wellein).
//! One is the time of the instructions with all data in the first-level cache. The other is the
//! time of the loads, the stores and the transfers between caches.
//!
//! | file | what it computes |
//! |---|---|
//! | `flat` | the nest with simpler subscripts: some buffers are flattened to one dimension |
//! | `frames` | how often loops and branches run; the work of the busiest core |
//! | `instructions` | instructions of each loop, after common subexpression elimination and hoisting; dependence chains; spills |
//! | `lanes` | how the lanes of a vector access memory: adjacent, in a pattern, clamped, scattered |
//! | `recurrence` | dependence chains of statements that read what the iteration before has stored |
//! | `operations` | the costs of single operations and functions |
//! | `shared` | values that unrolled copies of a stencil share |
//! | `footprint` | cache lines that an access touches while loops run; conflicts in few sets of a cache |
//! | `traffic` | cache lines that move between caches: once for data that stays between iterations, otherwise every time |
//! | `total` | the time, from the counts of all other files |
//! | `machine` | the speeds of the parts of a CPU |
//! | `model` | the estimate as features and with named parts |
//!
//! Read this file first: it traverses the nest.
//!
//! Not modelled: address translation, overlap of the latencies of single misses, loads that wait
//! for stores to nearby addresses, data-dependent branches, and other load on the machine. Explicit
//! prefetches cost nothing. `setup` costs nothing, because it runs once.

mod flat;
mod footprint;
mod frames;
mod instructions;
mod lanes;
mod machine;
mod model;
mod operations;
mod recurrence;
mod shared;
mod total;
mod traffic;

#[cfg(test)]
mod tests;

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Atom, For, If, IndexExpr, Stmt, Store};
use tilewright_target::Cpu;

pub(in crate::cost) use footprint::Reach;
pub(super) use footprint::Region;
use frames::{FrameKind, Frames};
use instructions::Counter;
pub use machine::Machine;
pub use model::Model;
pub(super) use operations::operation_cost;
pub(super) use shared::{Shares, shares};
use traffic::Traffic;

/// The number of pieces that a thread takes from a parallel loop each time that the remaining work
/// shrinks by a factor of e.
const PIECES_PER_FOLD: f64 = 4.0;

/// The estimated time of a call and its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The time of a call.
    pub seconds: f64,
    /// The time of each statement outside of loops: [`LoopNest::roots`].
    pub roots: Vec<f64>,
    /// The parts of the time of each of these statements. The shares are those of the whole nest.
    pub root_parts: Vec<Parts>,
    /// The parts of the whole time.
    pub parts: Parts,
}

/// The parts of the time, in seconds unless stated otherwise. Overlapping parts count in full, so
/// their sum exceeds the total.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// The time of the instructions with all data in the first-level cache.
    pub compute: f64,
    /// The time of the load and store instructions alone.
    pub memory_instructions: f64,
    /// The time of line transfers into each cache, first level first.
    pub transfers: Vec<f64>,
    /// The time to start, end and count loops.
    pub loops: f64,
    /// The time to wake threads and to hand out pieces of parallel loops.
    pub threads: f64,
    /// The time to spill values from registers and reload them.
    pub spills: f64,
    /// The share of lanes whose results vector instructions discard.
    pub masked_lanes: f64,
    /// The share of the cores' time in parallel loops that is spent waiting for the busiest core.
    pub idle_cores: f64,
}

/// Estimates the time of a nest on a machine.
pub fn estimate(nest: &LoopNest, target: &Cpu, machine: &Machine) -> Estimate {
    let nest = &*flat::flatten_buffers(nest);
    let counter = Counter::new(nest, target, machine);
    let traffic = Traffic::new(nest, target, machine);
    let mut walk = Walk {
        target,
        frames: Frames::new(nest),
        counter,
        traffic,
        threads: vec![(0.0, 0.0)],
        idle: (0.0, 0.0),
    };
    walk.roots(nest);
    walk.result(machine)
}

/// Traverses a nest and records the work of every statement.
struct Walk<'a> {
    target: &'a Cpu,
    frames: Frames,
    counter: Counter<'a>,
    traffic: Traffic<'a>,
    /// How often threads start, and how often they take pieces of work, for every root-level
    /// statement.
    threads: Vec<(f64, f64)>,
    /// The number of iterations of parallel loops that all cores could run in the time, and the
    /// number that they did run.
    idle: (f64, f64),
}

impl<'a> Walk<'a> {
    /// Traverses the whole nest. Buffers that are allocated outside of all loops exist for all
    /// root-level statements.
    fn roots(&mut self, nest: &'a LoopNest) {
        self.counter.allocation_depths.fill(self.frames.stack.len());
        for root in nest.roots() {
            self.frames.root_statement += 1;
            self.threads.push((0.0, 0.0));
            self.stmts(std::slice::from_ref(root));
        }
    }

    fn stmts(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(inner) => self.run_loop(inner),
                Stmt::If(choice) => self.branch(choice),
                Stmt::Allocate(allocation) => {
                    self.counter.allocation_depths[allocation.buffer.index()] = self.frames.stack.len();
                    self.stmts(&allocation.body);
                }
                Stmt::Store(store) => self.store(store),
                // This is the model of a CPU, whose nests do not combine results of threads.
                Stmt::Prefetch(_) | Stmt::Sync(_) | Stmt::Combine(_) => {}
            }
        }
    }

    fn run_loop(&mut self, inner: &'a For) {
        let outside = self.frames.all[self.frames.innermost()].runs;
        if self.frames.open(inner, self.target.cores).is_none() {
            return;
        }
        let own = &self.frames.all[self.frames.innermost()];
        if own.kind == FrameKind::Parallel {
            let (starts, pieces) = &mut self.threads[own.root_statement];
            *starts += outside;
            // Each piece is a fraction of the remaining work.
            *pieces += outside * own.trips.min(PIECES_PER_FOLD * (1.0 + own.trips).ln());
            self.idle.0 += own.trips * self.target.cores as f64 * outside;
            self.idle.1 += inner.extent.as_constant().unwrap_or(1).max(1) as f64 * outside;
        }
        self.stmts(&inner.body);
        self.frames.close();
    }

    /// Counts a branch. Conditions on the lane switch lanes off; other conditions choose a side.
    fn branch(&mut self, choice: &'a If) {
        let lane = |condition: &&IndexExpr| self.depends_on_lane(condition);
        let (lanes, others): (Vec<&IndexExpr>, Vec<&IndexExpr>) = choice.conditions.iter().partition(lane);
        let (share, on) = (self.frames.share(&others), self.frames.share(&lanes));
        if lanes.is_empty() {
            self.branch_side(&choice.then, &others, true, share, 0.0);
            self.branch_side(&choice.otherwise, &others, false, 1.0 - share, 0.0);
        } else {
            self.branch_side(&choice.then, &others, true, share, 1.0 - on);
            self.branch_side(&choice.otherwise, &[], true, 1.0, on);
        }
    }

    fn branch_side(
        &mut self,
        stmts: &'a [Stmt],
        conditions: &[&IndexExpr],
        hold: bool,
        share: f64,
        off: f64,
    ) {
        if stmts.is_empty() || share <= 0.0 {
            return;
        }
        // If one of several conditions fails, nothing is known about each single condition.
        let known = if hold || conditions.len() == 1 { conditions } else { &[] };
        let before: Vec<_> = known.iter().filter_map(|own| self.frames.assume(own, hold)).collect();
        let on_before = self.counter.off_lanes;
        self.counter.off_lanes = 1.0 - (1.0 - on_before) * (1.0 - off);
        self.frames.open_branch(share);
        self.stmts(stmts);
        self.frames.close();
        self.counter.off_lanes = on_before;
        before.into_iter().rev().for_each(|range| self.frames.restore(range));
    }

    fn depends_on_lane(&self, condition: &IndexExpr) -> bool {
        condition.any_atom(&mut |atom| {
            let Atom::Var(var) = atom else { return false };
            self.frames.depth(*var).is_some_and(|place| self.frames.frame_at(place).kind == FrameKind::Vector)
        })
    }

    fn store(&mut self, store: &'a Store) {
        self.counter.store(&self.frames, store);
        self.traffic.record(&self.frames, &store.target, true);
        let Walk { frames, traffic, .. } = self;
        instructions::visit_loads(&store.value, &mut |access| traffic.record(frames, access, false));
    }
}
