//! Inserts barriers between the statements of a GPU's thread block, only where they are needed.
//!
//! The walk goes through the statements of a block in the order in which its threads run them, and
//! remembers the accesses since the last barrier. A statement needs a barrier before it if it
//! accesses an element of the same buffer from another thread and one of the two accesses writes.
//! The body of a loop is walked twice, the second time with the accesses that its own end leaves,
//! because the next iteration meets those.
//!
//! No barrier is needed between two accesses if their subscripts are the same expression of the
//! thread indices and of loops of the same length: each element is then touched by one thread only,
//! because no two threads write the same element. Nor is one needed if the accesses provably touch
//! different rows of the buffer, or different slots of a pipeline.

use std::collections::BTreeSet;

use tilewright_ir::nest::{Axis, For, LoopKind, Scope, Stmt, Sync};
use tilewright_ir::walk::any_loop;
use tilewright_ir::{Access, Atom, IndexExpr, LoopNest, TensorId, VarId};

/// Inserts barriers into all kernels.
pub(super) fn synchronise(nest: &mut LoopNest) {
    let shareable: Vec<bool> = nest.buffers.iter().map(|buffer| buffer.scope != Scope::Register).collect();
    for stmts in [&mut nest.setup, &mut nest.body] {
        each_kernel(stmts, &mut |kernel| {
            let mut walk = Walk { shareable: &shareable };
            kernel.body = walk.body(std::mem::take(&mut kernel.body), &mut Touched::default());
        });
    }
}

/// Calls `visit` on the outermost block loops.
fn each_kernel(stmts: &mut [Stmt], visit: &mut dyn FnMut(&mut For)) {
    for stmt in stmts {
        match stmt {
            Stmt::For(own) if matches!(own.kind, LoopKind::Block(_)) => visit(own),
            other => other.bodies_mut().for_each(|body| each_kernel(body, visit)),
        }
    }
}

/// One access of the threads of a block, in a form that does not depend on its place in the code.
#[derive(Clone, Debug, PartialEq)]
struct Touch {
    tensor: TensorId,
    writes: bool,
    /// The subscripts, with the variables of thread loops and of loops inside them replaced by
    /// numbered variables. `None` where the subscripts depend on data, or do not mention all thread
    /// axes around the access.
    place: Option<Vec<IndexExpr>>,
    /// The loops that the subscripts mention: the role of each, and its number of iterations.
    loops: Vec<(Part, i64)>,
    /// The original subscripts.
    indices: Vec<IndexExpr>,
    /// The loops of which an earlier iteration made this access.
    earlier: Vec<VarId>,
    /// The slot in a pipeline: the dividend and the divisor of the first subscript, if it is a
    /// remainder.
    stage: Option<(IndexExpr, i64)>,
}

/// The role of a loop around an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Thread(Axis),
    /// A loop inside a thread loop, at this depth.
    Inside(usize),
}

impl Touch {
    /// Returns true when different threads may touch the same element in the two accesses, so that
    /// their order counts.
    fn meets(&self, other: &Touch) -> bool {
        let same_threads = self.place.is_some() && self.place == other.place && self.loops == other.loops;
        let same_stage = match (&self.stage, &other.stage) {
            (Some((own, by)), Some((other, stages))) if by == stages => {
                own.sub(other).as_constant().is_none_or(|distance| distance % by == 0)
            }
            _ => true,
        };
        // A dimension whose subscript is the loop's own variable differs between iterations.
        let own_row = |var: &VarId| {
            let rows = self.indices.iter().zip(&other.indices);
            rows.into_iter().any(|(one, other)| one == other && one.as_var() == Some(*var))
        };
        let numbers = self.indices.iter().zip(&other.indices);
        let differ = numbers.into_iter().any(|(one, other)| match (one.as_constant(), other.as_constant()) {
            (Some(one), Some(other)) => one != other,
            _ => false,
        });
        let other_row = differ || self.earlier.iter().any(own_row);
        let together = same_stage && !same_threads && !other_row;
        self.tensor == other.tensor && (self.writes || other.writes) && together
    }
}

/// The accesses since the last barrier.
#[derive(Clone, Debug, Default)]
struct Touched(Vec<Touch>);

impl Touched {
    /// Returns true when one of these accesses meets an earlier one from another thread.
    fn meet(&self, touches: &[Touch]) -> bool {
        touches.iter().any(|touch| self.0.iter().any(|before| before.meets(touch)))
    }

    fn add(&mut self, touches: &[Touch]) {
        for touch in touches {
            if !self.0.contains(touch) {
                self.0.push(touch.clone());
            }
        }
    }
}

struct Walk<'a> {
    shareable: &'a [bool],
}

impl Walk<'_> {
    fn body(&mut self, stmts: Vec<Stmt>, touched: &mut Touched) -> Vec<Stmt> {
        let mut out = Vec::with_capacity(stmts.len());
        for stmt in stmts {
            match stmt {
                Stmt::Sync(Sync::Barrier) => {
                    touched.0.clear();
                    out.push(stmt);
                }
                // A loop over another dimension of the grid: every block starts without earlier
                // accesses.
                Stmt::For(mut own) if matches!(own.kind, LoopKind::Block(_)) => {
                    own.body = self.body(own.body, &mut Touched::default());
                    out.push(Stmt::For(own));
                }
                Stmt::For(own) if has_threads(&own.body) && !matches!(own.kind, LoopKind::Thread(_)) => {
                    // One barrier before the loop is better than one in every iteration.
                    let first = own.body.iter().take_while(|stmt| **stmt != Stmt::Sync(Sync::Barrier));
                    let inside: Vec<Touch> = first.flat_map(|stmt| self.touches(stmt)).collect();
                    if touched.meet(&inside) {
                        touched.0.clear();
                        out.push(Stmt::Sync(Sync::Barrier));
                    }
                    out.push(Stmt::For(self.uniform_loop(own, touched)));
                }
                Stmt::If(mut own) if has_threads(&own.then) || has_threads(&own.otherwise) => {
                    let mut other = touched.clone();
                    own.then = self.body(own.then, touched);
                    own.otherwise = self.body(own.otherwise, &mut other);
                    touched.add(&other.0);
                    out.push(Stmt::If(own));
                }
                Stmt::Allocate(mut own) => {
                    own.body = self.body(own.body, touched);
                    out.push(Stmt::Allocate(own));
                }
                leaf => {
                    let touches = self.touches(&leaf);
                    if touched.meet(&touches) {
                        touched.0.clear();
                        out.push(Stmt::Sync(Sync::Barrier));
                    }
                    touched.add(&touches);
                    out.push(leaf);
                }
            }
        }
        out
    }

    /// A loop that all threads run together.
    fn uniform_loop(&mut self, mut own: For, touched: &mut Touched) -> For {
        let before = touched.clone();
        own.body = self.body(own.body, touched);
        // The second walk sees the body as it follows another iteration. A third walk would leave
        // the same accesses.
        touched.0.iter_mut().for_each(|touch| touch.earlier.push(own.var));
        touched.add(&before.0);
        own.body = self.body(own.body, touched);
        // After the loop, nothing distinguishes its iterations: the next run of the loop has the
        // same iterations again.
        for mut touch in std::mem::replace(touched, before).0 {
            touch.earlier.retain(|var| *var != own.var);
            touched.add(&[touch]);
        }
        own
    }

    /// All accesses of a statement.
    fn touches(&self, leaf: &Stmt) -> Vec<Touch> {
        let mut collector = Collector { walk: self, loops: Vec::new(), found: Vec::new() };
        collector.stmt(leaf);
        collector.found
    }
}

struct Collector<'a> {
    walk: &'a Walk<'a>,
    /// The loops around the access, from the first thread loop on.
    loops: Vec<(VarId, Part, i64)>,
    found: Vec<Touch>,
}

impl Collector<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        let mut reads = Vec::new();
        stmt.own_reads(&mut |access| reads.push(access));
        reads.into_iter().for_each(|access| self.touch(access, false));
        if let Some(store) = stmt.store() {
            self.touch(&store.target, true);
        }
        let outside = self.loops.len();
        if let Stmt::For(own) = stmt {
            let part = match own.kind {
                LoopKind::Thread(axis) => Part::Thread(axis),
                _ => Part::Inside(outside),
            };
            self.loops.push((own.var, part, own.extent.as_constant().unwrap_or(-1)));
        }
        stmt.bodies().flatten().for_each(|stmt| self.stmt(stmt));
        self.loops.truncate(outside);
    }

    fn touch(&mut self, access: &Access, writes: bool) {
        if !self.walk.shareable[access.tensor.index()] {
            return;
        }
        let used: Vec<&(VarId, Part, i64)> = self
            .loops
            .iter()
            .filter(|(var, ..)| access.indices.iter().any(|index| index.mentions(*var)))
            .collect();
        let threads: BTreeSet<Axis> = self.loops.iter().filter_map(|(_, part, _)| axis(*part)).collect();
        let told_apart: BTreeSet<Axis> = used.iter().filter_map(|(_, part, _)| axis(*part)).collect();
        let known = threads == told_apart && !access.indices.iter().any(IndexExpr::has_data);
        // Loops are numbered by their nesting order among those that the subscripts mention, so
        // that equal expressions get equal forms everywhere.
        let numbered = |var: VarId| used.iter().position(|(own, ..)| *own == var);
        let place = known.then(|| {
            let put = |index: &IndexExpr| {
                index.substitute(&mut |atom| match atom {
                    Atom::Var(var) => numbered(*var).map(|at| IndexExpr::var(VarId(STANDS_FOR + at as u32))),
                    _ => None,
                })
            };
            access.indices.iter().map(put).collect()
        });
        let mut inside = 0;
        let loops = used.iter().map(|(_, part, extent)| match part {
            Part::Thread(_) => (*part, *extent),
            Part::Inside(_) => {
                inside += 1;
                (Part::Inside(inside), *extent)
            }
        });
        let stage = access.indices.first().and_then(remainder);
        let touch = Touch {
            tensor: access.tensor,
            writes,
            place,
            loops: loops.collect(),
            indices: access.indices.clone(),
            earlier: Vec::new(),
            stage,
        };
        if !self.found.contains(&touch) {
            self.found.push(touch);
        }
    }
}

/// The dividend and the divisor of an expression that is just one remainder.
fn remainder(index: &IndexExpr) -> Option<(IndexExpr, i64)> {
    match index.terms() {
        [term] if term.coefficient == 1 && index.constant_part() == 0 => match term.factors.as_slice() {
            [Atom::Mod(pair)] => Some((pair.0.clone(), pair.1.as_constant()?)),
            _ => None,
        },
        _ => None,
    }
}

/// The first id of the variables that stand for loops by their number. No nest has so many
/// variables.
const STANDS_FOR: u32 = 1 << 30;

fn axis(part: Part) -> Option<Axis> {
    match part {
        Part::Thread(axis) => Some(axis),
        Part::Inside(_) => None,
    }
}

fn has_threads(stmts: &[Stmt]) -> bool {
    any_loop(stmts, |own| matches!(own.kind, LoopKind::Thread(_)))
}
