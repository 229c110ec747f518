//! Finds the stages of a loop nest: its stores, with the loops and conditions around them.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Atom, IndexExpr, LoopKind, LoopVarId, Scope, Stmt, Store};

/// The values of the loops at which extents and conditions are evaluated, as shares of the loops.
const SAMPLES: [f64; 5] = [0.03, 0.35, 0.55, 0.75, 0.97];

/// A loop around a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct EnclosingLoop {
    pub var: LoopVarId,
    pub kind: LoopKind,
    /// The iterations each time that the loop is reached, on average.
    pub trips: f64,
}

/// A store of a nest.
#[derive(Clone, Debug)]
pub(super) struct Stage<'n> {
    pub store: &'n Store,
    /// The loops around it, outermost first.
    pub loops: Vec<EnclosingLoop>,
    /// The share of the iterations in which the conditions around it hold.
    pub share: f64,
    /// The elements of the buffers in shared memory and in registers that exist around it, in
    /// bytes.
    pub shared_bytes: f64,
    pub register_bytes: f64,
}

impl Stage<'_> {
    /// The iterations of all loops of some kinds together.
    pub fn trips_of(&self, is_counted: impl Fn(LoopKind) -> bool) -> f64 {
        self.loops.iter().filter(|own| is_counted(own.kind)).map(|own| own.trips).product()
    }

    /// How often the store runs in a call, counting each lane.
    pub fn points(&self) -> f64 {
        self.share * self.trips_of(|_| true)
    }
}

/// The stages inside a statement outside of loops.
pub(super) fn stages<'n>(nest: &'n LoopNest, root: &'n Stmt) -> Vec<Stage<'n>> {
    let mut walk = Walk {
        nest,
        loops: Vec::new(),
        share: 1.0,
        shared_bytes: 0.0,
        register_bytes: 0.0,
        found: Vec::new(),
    };
    walk.stmts(std::slice::from_ref(root));
    walk.found
}

struct Walk<'n> {
    nest: &'n LoopNest,
    loops: Vec<EnclosingLoop>,
    share: f64,
    shared_bytes: f64,
    register_bytes: f64,
    found: Vec<Stage<'n>>,
}

impl<'n> Walk<'n> {
    fn stmts(&mut self, stmts: &'n [Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(own) => {
                    let trips = self.mean(|value| own.extent.eval(value).unwrap_or(1).max(0) as f64);
                    self.loops.push(EnclosingLoop { var: own.var, kind: own.kind, trips });
                    self.stmts(&own.body);
                    self.loops.pop();
                }
                Stmt::If(own) => self.branch(&own.conditions, &own.then, &own.otherwise),
                Stmt::Allocate(own) => {
                    let buffer = self.nest.buffer(own.buffer);
                    let before = (self.shared_bytes, self.register_bytes);
                    match buffer.scope {
                        Scope::Shared => self.shared_bytes += buffer.bytes() as f64,
                        Scope::Register => self.register_bytes += buffer.bytes() as f64,
                        _ => {}
                    }
                    self.stmts(&own.body);
                    (self.shared_bytes, self.register_bytes) = before;
                }
                Stmt::Store(own) => self.add(own),
                Stmt::Combine(own) => self.add(&own.store),
                Stmt::Prefetch(_) | Stmt::Sync(_) => {}
            }
        }
    }

    fn branch(&mut self, conditions: &'n [IndexExpr], then: &'n [Stmt], otherwise: &'n [Stmt]) {
        let holds = self.mean(|value| {
            let mut all = conditions.iter();
            f64::from(u8::from(all.all(|own| own.eval(&mut *value).is_none_or(|value| value >= 0))))
        });
        let before = self.share;
        // Samples are few: neither side is impossible.
        let holds = holds.clamp(0.05, 0.95);
        self.share = before * holds;
        self.stmts(then);
        self.share = before * (1.0 - holds);
        self.stmts(otherwise);
        self.share = before;
    }

    fn add(&mut self, store: &'n Store) {
        let (loops, share) = (self.loops.clone(), self.share);
        let (shared_bytes, register_bytes) = (self.shared_bytes, self.register_bytes);
        self.found.push(Stage { store, loops, share, shared_bytes, register_bytes });
    }

    /// The mean of a number over iterations of the loops.
    fn mean(&self, mut number: impl FnMut(&mut dyn FnMut(&Atom) -> Option<i64>) -> f64) -> f64 {
        let sum: f64 = SAMPLES
            .iter()
            .enumerate()
            .map(|(at, share)| {
                let mut value = |atom: &Atom| match atom {
                    Atom::Var(var) => {
                        let place = self.loops.iter().position(|own| own.var == *var)?;
                        // Loops are at different shares of their iterations.
                        let share =
                            if place % 2 == 0 { *share } else { SAMPLES[(2 * at + place) % SAMPLES.len()] };
                        Some((share * self.loops[place].trips) as i64)
                    }
                    _ => Some(0),
                };
                number(&mut value)
            })
            .sum();
        sum / SAMPLES.len() as f64
    }
}
