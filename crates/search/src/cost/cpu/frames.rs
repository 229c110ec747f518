//! Records the loops and branches around a statement, and how often each of them runs.
//!
//! A frame is a loop or one side of a branch. A side of a branch runs less than once each time it
//! is reached. The count of a parallel loop is that of the busiest thread, so all times derived
//! from it are those of that thread.

use tilewright_ir::LoopNest;
use tilewright_ir::nest::{Atom, For, IndexExpr, LoopKind, LoopVarId};

/// The number of samples for an expression of several variables.
const SAMPLES: usize = 32;
/// An expression of one variable is evaluated at all values if there are at most this many.
const ALL_VALUES: i64 = 64;

/// A function that returns the values of atoms.
type Leaf<'l> = dyn FnMut(&Atom) -> Option<i64> + 'l;

/// The index of a frame; 0 is the whole body.
pub(super) type FrameId = usize;

/// How a frame runs its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    /// The whole body, or a loop whose iterations run one after another.
    Serial,
    /// A loop whose iterations are spread over threads.
    Parallel,
    /// A loop whose iterations are vector lanes.
    Vector,
    /// An unrolled loop.
    Unrolled,
    /// One side of a branch.
    Branch,
}

/// A loop or one side of a branch.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    pub kind: FrameKind,
    /// The enclosing frame; the whole body is its own parent.
    pub parent: FrameId,
    /// How often the frame runs its contents each time it is reached. Below 1 for a branch.
    pub trips: f64,
    /// How often the contents run in a call, where all lanes of a vector count once.
    pub runs: f64,
    /// The root-level statement that contains the frame.
    pub root_statement: usize,
}

/// All frames of a nest, and those that are open during the traversal.
pub(super) struct Frames {
    pub all: Vec<Frame>,
    /// The open frames, outermost first.
    pub stack: Vec<FrameId>,
    /// The position in `stack` of each variable's open frame, and the variable of each open frame.
    depths: Vec<Option<usize>>,
    open_vars: Vec<Option<LoopVarId>>,
    /// The range of each variable: its first value, and one past its last.
    ranges: Vec<(i64, i64)>,
    pub root_statement: usize,
}

impl Frames {
    pub fn new(nest: &LoopNest) -> Frames {
        let root = Frame { kind: FrameKind::Serial, parent: 0, trips: 1.0, runs: 1.0, root_statement: 0 };
        let vars = nest.vars.len();
        Frames {
            all: vec![root],
            stack: vec![0],
            open_vars: vec![None],
            depths: vec![None; vars],
            ranges: vec![(0, 1); vars],
            root_statement: 0,
        }
    }

    /// The innermost open frame.
    pub fn innermost(&self) -> FrameId {
        self.stack[self.stack.len() - 1]
    }

    /// The open frame at a position.
    pub fn frame_at(&self, depth: usize) -> &Frame {
        &self.all[self.stack[depth]]
    }

    /// The position of the open frame of a variable.
    pub fn depth(&self, var: LoopVarId) -> Option<usize> {
        self.depths.get(var.index()).copied().flatten()
    }

    fn push(&mut self, kind: FrameKind, trips: f64, var: Option<LoopVarId>) {
        let copies = if kind == FrameKind::Vector { 1.0 } else { trips };
        let parent = self.innermost();
        let runs = self.all[parent].runs * copies;
        self.all.push(Frame { kind, parent, trips, runs, root_statement: self.root_statement });
        self.stack.push(self.all.len() - 1);
        self.open_vars.push(var);
    }

    /// Opens a loop. Returns `None` if the loop has no iterations.
    pub fn open(&mut self, inner: &For, cores: usize) -> Option<()> {
        let (trips, most) = self.trips(&inner.extent);
        if trips <= 0.0 {
            return None;
        }
        let kind = match inner.kind {
            // This is the model of a CPU, whose nests have no block and thread loops.
            LoopKind::Serial | LoopKind::Block(_) | LoopKind::Thread(_) => FrameKind::Serial,
            LoopKind::Parallel => FrameKind::Parallel,
            LoopKind::Vector => FrameKind::Vector,
            LoopKind::Unrolled => FrameKind::Unrolled,
        };
        let busiest = if kind == FrameKind::Parallel { (trips / cores.max(1) as f64).ceil() } else { trips };
        self.push(kind, busiest, Some(inner.var));
        let own = inner.var.index();
        self.depths[own] = Some(self.stack.len() - 1);
        self.ranges[own] = (0, most.max(1));
        Some(())
    }

    /// Opens one side of a branch, which is taken with this probability.
    pub fn open_branch(&mut self, share: f64) {
        self.push(FrameKind::Branch, share, None);
    }

    pub fn close(&mut self) {
        self.stack.pop();
        if let Some(var) = self.open_vars.pop().flatten() {
            self.depths[var.index()] = None;
        }
    }

    /// The average and the largest trip count of a loop with this extent.
    fn trips(&self, extent: &IndexExpr) -> (f64, i64) {
        if let Some(extent) = extent.as_constant() {
            return (extent.max(0) as f64, extent);
        }
        let (mut sum, mut most, mut count) = (0.0, 0, 0);
        self.sample(extent.vars().into_iter().collect(), |leaf| {
            let value = extent.eval(leaf).unwrap_or(1).max(0);
            sum += value as f64;
            most = most.max(value);
            count += 1;
        });
        (sum / f64::from(count.max(1)), most)
    }

    /// The share of iterations in which all conditions hold.
    pub fn share(&self, conditions: &[&IndexExpr]) -> f64 {
        let mut vars: Vec<LoopVarId> = conditions.iter().flat_map(|condition| condition.vars()).collect();
        vars.sort_unstable();
        vars.dedup();
        let (mut hold, mut count) = (0, 0);
        self.sample(vars, |leaf| {
            let holds =
                conditions.iter().all(|condition| condition.eval(leaf).is_some_and(|value| value >= 0));
            hold += i32::from(holds);
            count += 1;
        });
        f64::from(hold) / f64::from(count.max(1))
    }

    /// Calls `evaluate` with representative values of the variables.
    fn sample(&self, vars: Vec<LoopVarId>, mut evaluate: impl FnMut(&mut Leaf<'_>)) {
        let range = |var: &LoopVarId| self.ranges.get(var.index()).copied().unwrap_or((0, 1));
        let all = match vars.as_slice() {
            [] => 1,
            [one] if range(one).1 - range(one).0 <= ALL_VALUES => {
                (range(one).1 - range(one).0).max(1) as usize
            }
            _ => SAMPLES,
        };
        for at in 0..all {
            let value = |place: usize, (from, to): (i64, i64)| match vars.len() {
                1 => from + (at as i64 * (to - from)) / all as i64,
                _ => from + ((to - from) as f64 * low_discrepancy(at, place)) as i64,
            };
            evaluate(&mut |atom| match atom {
                Atom::Var(var) => {
                    let place = vars.iter().position(|own| own == var)?;
                    Some(value(place, range(var)))
                }
                _ => Some(0),
            });
        }
    }

    /// Assumes that a condition holds or fails, if that narrows the range of one variable. Returns
    /// the previous range, which `restore` takes.
    pub fn assume(&mut self, condition: &IndexExpr, holds: bool) -> Option<(LoopVarId, (i64, i64))> {
        let [term] = condition.terms() else { return None };
        let [Atom::Var(var)] = term.factors.as_slice() else { return None };
        let (by, rest) = (term.coefficient, condition.constant_part());
        let before = *self.ranges.get(var.index())?;
        let (mut from, mut to) = before;
        // The condition is `by*v + rest >= 0`, or its negation.
        match (by > 0, holds) {
            (true, true) => from = from.max(ceil_div(rest.saturating_neg(), by)),
            (true, false) => to = to.min(ceil_div(rest.saturating_neg(), by)),
            (false, true) => to = to.min(rest.div_euclid(by.saturating_neg()).saturating_add(1)),
            (false, false) => from = from.max(rest.div_euclid(by.saturating_neg()).saturating_add(1)),
        }
        self.ranges[var.index()] = if from < to { (from, to) } else { before };
        Some((*var, before))
    }

    pub fn restore(&mut self, (var, before): (LoopVarId, (i64, i64))) {
        self.ranges[var.index()] = before;
    }
}

fn ceil_div(value: i64, by: i64) -> i64 {
    value.saturating_neg().div_euclid(by).saturating_neg()
}

/// A low-discrepancy sequence: multiples of irrational numbers fill a box evenly.
fn low_discrepancy(at: usize, place: usize) -> f64 {
    const STEPS: [f64; 4] =
        [0.754_877_666_246_692_7, 0.569_840_290_998_053_3, 0.618_033_988_749_895, 0.414_213_562_373_095];
    let step = STEPS[place % STEPS.len()] / (1 + place / STEPS.len()) as f64;
    (0.5 + step * at as f64).fract()
}
