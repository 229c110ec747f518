//! The time of a kernel, estimated from its loops and the machine alone.
//!
//! [`estimate`] needs no training and no run: it tells thousands of candidates a second apart, so
//! that only promising ones are compiled. It is made to rank the schedules of one program; the
//! seconds are those of a machine that does nothing else, and are right within a factor of two or
//! three.
//!
//! The time is that of the busiest thread. For each statement of the body at root level it is the
//! larger of two, as in the execution-cache-memory model (Hager, Treibig, Habich, Wellein): what
//! the instructions take with all data in the first cache, and what loads, stores and the way of
//! the data through the caches take.
//!
//! | file | what it says |
//! |---|---|
//! | `frames` | how often loops and sides of choices run; the work of the busiest core |
//! | `instructions` | instructions of each loop, after equal values are joined and fixed ones moved out; chains of results that wait for each other; values that do not fit the registers |
//! | `operations` | what single operations and functions take |
//! | `shared` | values that copies of a stencil have in common |
//! | `footprint` | lines that an access touches while loops run; rows that crowd few sets of a cache |
//! | `traffic` | lines that move between caches: once for what stays there between iterations, otherwise every time |
//! | `total` | the time of all of that together |
//! | `machine` | the speeds of the parts |
//!
//! Read this file first: it walks the nest.
//!
//! Not modelled: translation of addresses, how latencies of single misses hide behind each other,
//! loads that wait for stores to nearby addresses, jumps that depend on data, what else runs on the
//! machine. Explicit prefetches count nothing. `setup` counts nothing, since it runs once.

mod flat;
mod footprint;
mod frames;
mod instructions;
mod machine;
mod operations;
mod shared;
mod total;
mod traffic;

#[cfg(test)]
mod tests;

use tilewright_ir::index::Atom;
use tilewright_ir::nest::{For, If, Stmt, Store};
use tilewright_ir::{IndexExpr, LoopNest};
use tilewright_target::Cpu;

use frames::{Frames, Kind};
use instructions::Counter;
pub(super) use instructions::loads;
pub use machine::Machine;
pub(super) use operations::operation_cost;
use traffic::Traffic;

/// Pieces that a thread takes of a parallel loop, for each time that what is left is cut to a part
/// of it.
const PIECES: f64 = 4.0;

/// How long a call takes, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The time of a call.
    pub seconds: f64,
    /// What it is made of.
    pub parts: Parts,
}

/// Where the time goes, in seconds where it is not said otherwise. What overlaps is there in full,
/// so the sum is more than the whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Parts {
    /// Instructions, as if all data were in the first cache.
    pub compute: f64,
    /// The part of that in which nothing but loads and stores holds up the work.
    pub memory_instructions: f64,
    /// Lines on their way into each cache, first level first.
    pub transfers: Vec<f64>,
    /// Starting, ending and counting loops.
    pub loops: f64,
    /// Waking threads, and handing out pieces of parallel loops.
    pub threads: f64,
    /// Moving values out of registers and back.
    pub spills: f64,
    /// The share of lanes that vector instructions compute in vain.
    pub masked_lanes: f64,
    /// The share of cores' time in parallel loops that is spent waiting for the busiest.
    pub idle_cores: f64,
}

/// The time of a nest on a machine.
pub fn estimate(nest: &LoopNest, target: &Cpu, machine: &Machine) -> Estimate {
    let nest = &*flat::flattened(nest);
    let counter = Counter::new(nest, target, machine);
    let traffic = Traffic::new(nest, target, machine);
    let mut walk = Walk {
        target,
        frames: Frames::new(nest),
        counter,
        traffic,
        starts: 0.0,
        pieces: 0.0,
        idle: (0.0, 0.0),
    };
    walk.stmts(&nest.body);
    walk.result(machine)
}

/// Goes through a nest, and notes what every statement does.
struct Walk<'a> {
    target: &'a Cpu,
    frames: Frames,
    counter: Counter<'a>,
    traffic: Traffic<'a>,
    /// How often threads start, and take pieces of work.
    starts: f64,
    pieces: f64,
    /// Iterations of parallel loops that cores had time for, and that they did.
    idle: (f64, f64),
}

impl<'a> Walk<'a> {
    fn stmts(&mut self, stmts: &'a [Stmt]) {
        for stmt in stmts {
            if self.frames.stack.len() == 1 && !matches!(stmt, Stmt::Allocate(_)) {
                self.frames.unit += 1;
            }
            match stmt {
                Stmt::For(inner) => self.run_loop(inner),
                Stmt::If(choice) => self.choice(choice),
                Stmt::Allocate(room) => {
                    self.counter.rooms[room.buffer.index()] = self.frames.stack.len();
                    self.stmts(&room.body);
                }
                Stmt::Store(store) => self.store(store),
                // The model is of a CPU, whose nests combine no threads.
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
        if own.kind == Kind::Parallel {
            self.starts += outside;
            // Each piece is a share of what is left.
            self.pieces += outside * own.trips.min(PIECES * (1.0 + own.trips).ln());
            self.idle.0 += own.trips * self.target.cores as f64 * outside;
            self.idle.1 += inner.extent.as_constant().unwrap_or(1).max(1) as f64 * outside;
        }
        self.stmts(&inner.body);
        self.frames.close();
    }

    /// Conditions on lanes switch lanes off; others choose a side.
    fn choice(&mut self, choice: &'a If) {
        let lane = |condition: &&IndexExpr| self.on_lane(condition);
        let (lanes, others): (Vec<&IndexExpr>, Vec<&IndexExpr>) = choice.conditions.iter().partition(lane);
        let (share, on) = (self.frames.share(&others), self.frames.share(&lanes));
        if lanes.is_empty() {
            self.side(&choice.then, &others, true, share, 0.0);
            self.side(&choice.otherwise, &others, false, 1.0 - share, 0.0);
        } else {
            self.side(&choice.then, &others, true, share, 1.0 - on);
            self.side(&choice.otherwise, &[], true, 1.0, on);
        }
    }

    fn side(&mut self, stmts: &'a [Stmt], conditions: &[&IndexExpr], hold: bool, share: f64, off: f64) {
        if stmts.is_empty() || share <= 0.0 {
            return;
        }
        // That one of several fails says nothing of each.
        let known = if hold || conditions.len() == 1 { conditions } else { &[] };
        let before: Vec<_> = known.iter().filter_map(|own| self.frames.suppose(own, hold)).collect();
        let on_before = self.counter.off_lanes;
        self.counter.off_lanes = 1.0 - (1.0 - on_before) * (1.0 - off);
        self.frames.choose(share);
        self.stmts(stmts);
        self.frames.close();
        self.counter.off_lanes = on_before;
        before.into_iter().rev().for_each(|range| self.frames.restore(range));
    }

    fn on_lane(&self, condition: &IndexExpr) -> bool {
        condition.any(&mut |atom| {
            let Atom::Var(var) = atom else { return false };
            self.frames.place(*var).is_some_and(|place| self.frames.at(place).kind == Kind::Vector)
        })
    }

    fn store(&mut self, store: &'a Store) {
        self.counter.store(&self.frames, store);
        self.traffic.visit(&self.frames, &store.target, true);
        let Walk { frames, traffic, .. } = self;
        loads(&store.value, &mut |access| traffic.visit(frames, access, false));
    }
}
