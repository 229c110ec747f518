//! The time of a kernel, estimated from its loops and the machine alone.
//!
//! todo
mod footprint;
mod frames;
mod instructions;
mod machine;
mod traffic;

use tilewright_ir::index::Atom;
use tilewright_ir::nest::{For, If, Stmt, Store};
use tilewright_ir::{IndexExpr, LoopNest};
use tilewright_target::Cpu;

use frames::{Frames, Kind};
use instructions::{Counter, Counts, loads};
pub use machine::Machine;
use traffic::Traffic;

/// Pieces that a thread takes of a parallel loop, for each time that what is left is cut to a part of it.
const PIECES: f64 = 4.0;

/// How long a call takes, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The time of a call.
    pub seconds: f64,
    /// What it is made of.
    pub parts: Parts,
}

/// Where the time goes, in seconds where it is not said otherwise. What overlaps is there in full, so the sum is more
/// than the whole.
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

impl Walk<'_> {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            if self.frames.stack.len() == 1 && !matches!(stmt, Stmt::Allocate(_)) {
                self.frames.unit += 1;
            }
            match stmt {
                Stmt::For(inner) => self.run_loop(inner),
                Stmt::If(choice) => self.choice(choice),
                Stmt::Allocate(room) => self.stmts(&room.body),
                Stmt::Store(store) => self.store(store),
                Stmt::Prefetch(_) => {}
            }
        }
    }

    fn run_loop(&mut self, inner: &For) {
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
    fn choice(&mut self, choice: &If) {
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

    fn side(&mut self, stmts: &[Stmt], conditions: &[&IndexExpr], hold: bool, share: f64, off: f64) {
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

    fn store(&mut self, store: &Store) {
        self.counter.store(&self.frames, store);
        self.traffic.visit(&self.frames, &store.target, true);
        let Walk { frames, traffic, .. } = self;
        loads(&store.value, &mut |access| traffic.visit(frames, access, false));
    }

    fn result(mut self, machine: &Machine) -> Estimate {
        let cycle = 1.0 / machine.hertz;
        let cores = self.target.cores;
        let levels = self.target.caches.len();
        let bytes = self.traffic.bytes(&self.frames);
        let mut parts = Parts { transfers: vec![0.0; levels], ..Parts::default() };
        let mut units = vec![(0.0, 0.0); self.frames.unit + 1];
        self.counter.counts.resize(self.frames.all.len(), Counts::default());
        let (mut vector, mut masked) = (0.0, 0.0);
        for (frame, counts) in self.frames.all.iter().zip(&self.counter.counts) {
            let in_loop = core(counts, frame.runs, self.target, machine);
            let overhead = match frame.kind {
                Kind::Serial | Kind::Parallel if frame.runs > 0.0 => loop_overhead(frame, machine),
                _ => 0.0,
            };
            parts.compute += cycle * in_loop.cycles;
            parts.memory_instructions += cycle * in_loop.memory;
            parts.spills += cycle * in_loop.spills;
            parts.loops += cycle * overhead;
            units[frame.unit].0 += in_loop.cycles + overhead;
            units[frame.unit].1 += in_loop.memory;
            vector += counts.vector + counts.stores;
            masked += counts.masked;
        }
        let mut cycles = 0.0;
        for ((busy, memory), bytes) in units.into_iter().zip(bytes) {
            let mut moving = 0.0;
            for (level, bytes) in bytes.into_iter().enumerate() {
                let own = bytes / machine.bandwidth(level, level + 1 == levels, cores);
                parts.transfers[level] += cycle * own;
                moving += own;
            }
            cycles += f64::max(busy, memory + moving);
        }
        if cores > 1 {
            parts.threads = self.starts * machine.start_threads + self.pieces * machine.take_piece;
        }
        parts.masked_lanes = if vector > 0.0 { masked / vector } else { 0.0 };
        parts.idle_cores = if self.idle.0 > 0.0 { (1.0 - self.idle.1 / self.idle.0).max(0.0) } else { 0.0 };
        Estimate { seconds: (cycles * cycle + parts.threads).max(cycle), parts }
    }
}

/// The cycles of the instructions of a loop.
struct Core {
    cycles: f64,
    memory: f64,
    spills: f64,
}

fn core(counts: &Counts, runs: f64, target: &Cpu, machine: &Machine) -> Core {
    let excess = (counts.live - (target.vectors.registers() as f64 - 1.0)).max(0.0);
    let written = excess.min(counts.live_written);
    let loads = counts.loads + runs * excess;
    let stores = counts.stores + runs * written;
    let all = counts.vector + 0.5 * loads + 2.0 * stores + counts.scalar;
    let issue = machine.issue(all / runs.max(1e-9));
    let memory = f64::max(loads / machine.load_ports, stores / machine.store_ports);
    let limits = [
        counts.vector / machine.vector_ports,
        memory,
        counts.scalar / machine.scalar_ports,
        all / issue,
        counts.divide,
        counts.chain,
    ];
    let cycles = limits.into_iter().fold(0.0, f64::max);
    Core { cycles, memory, spills: runs * (excess / machine.load_ports + written / machine.store_ports) }
}

/// Counting and jumping in each iteration, and a jump at the end that is foreseen only if the loop is short.
fn loop_overhead(frame: &frames::Frame, machine: &Machine) -> f64 {
    const FORESEEN: f64 = 32.0;
    let reached = frame.runs / frame.trips.max(1.0);
    let surprise = machine.mispredict * (frame.trips / FORESEEN).min(1.0);
    0.5 * frame.runs + reached * (3.0 + surprise)
}
