//! Describes the accesses of a thread block, and decides whether two of them need a barrier between
//! them.
//!
//! An access is a function from the variables of the loops around it to an element. For two
//! accesses without a barrier between them, there are three kinds of loops:
//!
//! - Thread loops and the loops inside them: each thread runs on its own, so the values of their
//!   variables in the two accesses are independent.
//! - Loops around the thread loops that have started another iteration or run since the first
//!   access: [`Iteration`] says how the values of their variables in the two accesses are related.
//! - All other loops around the thread loops: their variables have the same value in both accesses.
//!
//! No barrier is needed if both accesses read. Nor is one needed if the two accesses never touch
//! the same element ([`BlockAccess::is_disjoint`]), or if only accesses of one and the same thread
//! touch a common element ([`BlockAccess::is_by_same_thread`]). Atomic updates by one operator may
//! run in any order, so they need none either. The schedule is assumed to be
//! legal: within one iteration of the loops around the thread loops, a statement does not write the
//! same element from two threads.

use std::collections::BTreeSet;

use tilewright_ir::ReduceOp;
use tilewright_ir::nest::{Access, Atom, Axis, BufferId, IndexExpr, LoopKind, LoopVarId, Stmt};

/// How the iteration of an access relates to the current iteration of the same loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Iteration {
    /// The iteration just before.
    Previous,
    /// One of the iterations before.
    Earlier,
    /// Any iteration, perhaps the same one in an earlier run of the loop.
    Any,
}

/// A loop around the threads that has gone on since an access.
#[derive(Clone, Debug, PartialEq)]
struct Advanced {
    var: LoopVarId,
    extent: Option<i64>,
    iteration: Iteration,
}

/// The role of a loop around an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Thread(Axis),
    /// A loop inside a thread loop.
    Inside,
}

/// One access of the threads of a block.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BlockAccess {
    tensor: BufferId,
    writes: bool,
    /// The operator of an atomic update.
    update: Option<ReduceOp>,
    indices: Vec<IndexExpr>,
    /// The thread loops and the loops inside them that the subscripts mention, outermost first,
    /// with their trip counts.
    loops: Vec<(LoopVarId, Role, Option<i64>)>,
    /// The subscripts with the variables of `loops` replaced by numbered variables, so that equal
    /// functions have equal forms everywhere. `None` where the subscripts depend on data, or do not
    /// mention all thread axes around the access.
    canonical: Option<Vec<IndexExpr>>,
    advanced: Vec<Advanced>,
}

impl BlockAccess {
    /// Returns true when different threads may touch the same element in this access and in the
    /// `later` one, so that their order counts.
    pub(super) fn conflicts_with(&self, later: &BlockAccess) -> bool {
        let are_updates = self.update.is_some() && self.update == later.update;
        let ordered = self.tensor == later.tensor && (self.writes || later.writes) && !are_updates;
        ordered && !self.is_disjoint(later) && !self.is_by_same_thread(later)
    }

    /// Marks the access as one of an earlier iteration of the loop over `var`.
    pub(super) fn leave_iteration(&mut self, var: LoopVarId, extent: Option<i64>, iteration: Iteration) {
        match self.advanced.iter_mut().find(|advanced| advanced.var == var) {
            // An access of an earlier run of the loop stays one of any iteration.
            Some(advanced) if advanced.iteration == Iteration::Any => {}
            Some(advanced) => advanced.iteration = iteration,
            None if self.indices.iter().any(|index| index.mentions(var)) => {
                self.advanced.push(Advanced { var, extent, iteration });
            }
            None => {}
        }
    }

    /// Returns true when the accesses differ in one subscript at all times.
    fn is_disjoint(&self, later: &BlockAccess) -> bool {
        let subscripts = self.indices.iter().zip(&later.indices);
        subscripts.into_iter().any(|(before, after)| {
            let is_uniform = !self.is_local(before) && !later.is_local(after);
            is_uniform && (self.moves_on(before, after) || self.has_other_value(before, after))
        })
    }

    /// Returns true when a subscript differs between the threads, or depends on data.
    fn is_local(&self, index: &IndexExpr) -> bool {
        index.has_data() || self.loops.iter().any(|(var, ..)| index.mentions(*var))
    }

    /// Returns true for a subscript such as `4*t + 1` that is the same in both accesses, when the
    /// second is in a later iteration of the loop over `t`.
    fn moves_on(&self, before: &IndexExpr, after: &IndexExpr) -> bool {
        let mut mentioned = self.advanced.iter().filter(|advanced| before.mentions(advanced.var));
        let (Some(only), None) = (mentioned.next(), mentioned.next()) else { return false };
        let slope = before.split_on(&Atom::Var(only.var)).and_then(|(slope, _)| slope.as_constant());
        before == after && only.iteration != Iteration::Any && slope.is_some_and(|slope| slope != 0)
    }

    /// Returns true when the difference of the subscripts is a number other than 0, or not a
    /// multiple of the divisor if both are remainders by the same number.
    fn has_other_value(&self, before: &IndexExpr, after: &IndexExpr) -> bool {
        let Some(before) = self.in_current_iteration(before) else { return false };
        if let Some(distance) = before.sub(after).as_constant() {
            return distance != 0;
        }
        match (remainder(&before), remainder(after)) {
            (Some((before, by)), Some((after, same))) if by == same => {
                before.sub(&after).as_constant().is_some_and(|distance| distance % by != 0)
            }
            _ => false,
        }
    }

    /// A subscript of this access in terms of the variables of the current iteration.
    fn in_current_iteration(&self, index: &IndexExpr) -> Option<IndexExpr> {
        let is_previous = |advanced: &Advanced| advanced.iteration == Iteration::Previous;
        let mut mentioned = self.advanced.iter().filter(|advanced| index.mentions(advanced.var));
        mentioned.all(is_previous).then(|| {
            index.substitute(&mut |atom| match atom {
                Atom::Var(var) if self.advanced.iter().any(|advanced| advanced.var == *var) => {
                    Some(IndexExpr::var(*var).add(&IndexExpr::constant(-1)))
                }
                _ => None,
            })
        })
    }

    /// Returns true when one thread makes both accesses whenever they touch the same element. That
    /// is so if both are the same function of the thread indices within one iteration of the loops
    /// around them, or if the subscripts that they have in common determine the thread.
    fn is_by_same_thread(&self, later: &BlockAccess) -> bool {
        let roles = |access: &BlockAccess| -> Vec<(Role, Option<i64>)> {
            access.loops.iter().map(|(_, role, extent)| (*role, *extent)).collect()
        };
        match (&self.canonical, &later.canonical) {
            (Some(before), Some(after)) if roles(self) == roles(later) => {
                let same_function = before == after && self.advanced.is_empty();
                same_function || self.determine_threads(before.iter().zip(after))
            }
            _ => false,
        }
    }

    /// Returns true when the subscripts that are equal in both accesses determine the thread,
    /// whatever the iterations of the loops that have gone on are. The variables of such a
    /// subscript are the digits of a number in mixed radix, as in `8*t + i` with `i` below 8. A
    /// quotient and a remainder of the same number, as in `[e/8, e%8]`, determine the number.
    fn determine_threads<'e>(
        &self,
        subscripts: impl Iterator<Item = (&'e IndexExpr, &'e IndexExpr)>,
    ) -> bool {
        let numbered = self.loops.iter().enumerate().map(|(at, (_, _, extent))| (numbered_var(at), *extent));
        let advanced = self.advanced.iter().map(|advanced| (advanced.var, advanced.extent));
        let variables: Vec<(LoopVarId, Option<i64>)> = numbered.chain(advanced).collect();
        let common = subscripts.filter(|(before, after)| before == after);
        let common = with_dividends(common.map(|(index, _)| index.clone()).collect());
        let determined: BTreeSet<LoopVarId> =
            common.iter().filter_map(|index| digits(index, &variables)).flatten().collect();
        let is_thread = |role: &Role| matches!(role, Role::Thread(_));
        let mut threads = self.loops.iter().enumerate().filter(|(_, (_, role, _))| is_thread(role));
        threads.all(|(at, _)| determined.contains(&numbered_var(at)))
    }
}

/// Adds to some numbers those that they determine: `e` where both `e/n` and `e%n` are among them.
fn with_dividends(mut known: Vec<IndexExpr>) -> Vec<IndexExpr> {
    loop {
        let dividend = known.iter().filter_map(remainder).find_map(|(whole, by)| {
            let quotient = whole.floor_div(&IndexExpr::constant(by));
            (known.contains(&quotient) && !known.contains(&whole)).then_some(whole)
        });
        match dividend {
            Some(whole) => known.push(whole),
            None => return known,
        }
    }
}

/// The variables of an index whose value determines all of them; `None` if it does not.
fn digits(index: &IndexExpr, variables: &[(LoopVarId, Option<i64>)]) -> Option<Vec<LoopVarId>> {
    let mut weights = Vec::new();
    let mut rest = index.clone();
    for (var, extent) in variables.iter().filter(|(var, _)| index.mentions(*var)) {
        let (weight, others) = rest.split_on(&Atom::Var(*var))?;
        weights.push((weight.as_constant()?.checked_abs()?, *var, (*extent)?));
        rest = others;
    }
    if variables.iter().any(|(var, _)| rest.mentions(*var)) {
        return None;
    }
    weights.sort_unstable();
    let mut reach = 0i64;
    for (weight, _, extent) in &weights {
        if *weight <= reach {
            return None;
        }
        reach = reach.checked_add(weight.checked_mul((extent - 1).max(0))?)?;
    }
    Some(weights.into_iter().map(|(_, var, _)| var).collect())
}

/// Collects the accesses of a statement.
pub(super) struct Collector<'a> {
    /// The buffers that threads share, by their number.
    shareable: &'a [bool],
    /// The loops around the access, from the first thread loop on.
    loops: Vec<(LoopVarId, Role, Option<i64>)>,
    pub(super) found: Vec<BlockAccess>,
}

impl<'a> Collector<'a> {
    pub(super) fn new(shareable: &'a [bool]) -> Self {
        Collector { shareable, loops: Vec::new(), found: Vec::new() }
    }

    pub(super) fn stmt(&mut self, stmt: &Stmt) {
        let mut reads = Vec::new();
        stmt.visit_own_reads(&mut |access| reads.push(access));
        reads.into_iter().for_each(|access| self.access(access, false, None));
        if let Some(store) = stmt.store() {
            self.access(&store.target, true, store.reduce.filter(|_| store.is_atomic));
        }
        let outside = self.loops.len();
        if let Stmt::For(inner) = stmt {
            let role = match inner.kind {
                LoopKind::Thread(axis) => Role::Thread(axis),
                _ => Role::Inside,
            };
            self.loops.push((inner.var, role, inner.extent.as_constant()));
        }
        stmt.bodies().flatten().for_each(|stmt| self.stmt(stmt));
        self.loops.truncate(outside);
    }

    fn access(&mut self, access: &Access, writes: bool, update: Option<ReduceOp>) {
        if !self.shareable[access.tensor.index()] {
            return;
        }
        let loops = self.mentioned_loops(access);
        let access = BlockAccess {
            tensor: access.tensor,
            writes,
            update,
            indices: access.indices.clone(),
            canonical: self.canonical(access, &loops),
            loops,
            advanced: Vec::new(),
        };
        if !self.found.contains(&access) {
            self.found.push(access);
        }
    }

    /// The loops that the subscripts mention, outermost first.
    fn mentioned_loops(&self, access: &Access) -> Vec<(LoopVarId, Role, Option<i64>)> {
        let is_mentioned = |var: LoopVarId| access.indices.iter().any(|index| index.mentions(var));
        self.loops.iter().filter(|(var, ..)| is_mentioned(*var)).copied().collect()
    }

    fn canonical(&self, access: &Access, loops: &[(LoopVarId, Role, Option<i64>)]) -> Option<Vec<IndexExpr>> {
        let axes = |loops: &[(LoopVarId, Role, Option<i64>)]| -> BTreeSet<Axis> {
            loops.iter().filter_map(|(_, role, _)| axis(*role)).collect()
        };
        let known = axes(&self.loops) == axes(loops) && !access.indices.iter().any(IndexExpr::has_data);
        let number = |var: LoopVarId| loops.iter().position(|(inner, ..)| *inner == var);
        let in_numbers = |index: &IndexExpr| {
            index.substitute(&mut |atom| match atom {
                Atom::Var(var) => number(*var).map(|at| IndexExpr::var(numbered_var(at))),
                _ => None,
            })
        };
        known.then(|| access.indices.iter().map(in_numbers).collect())
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

/// The variable that stands for the loop of this number. No nest has so many variables of its own.
fn numbered_var(number: usize) -> LoopVarId {
    LoopVarId((1 << 30) + number as u32)
}

fn axis(role: Role) -> Option<Axis> {
    match role {
        Role::Thread(axis) => Some(axis),
        Role::Inside => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `weight * t + i` with `i` below `extent`.
    fn digits_of(weight: i64, extent: i64) -> Option<Vec<LoopVarId>> {
        let [t, i] = [numbered_var(0), numbered_var(1)];
        let index = IndexExpr::var(t).mul(&IndexExpr::constant(weight)).add(&IndexExpr::var(i));
        digits(&index, &[(t, Some(4)), (i, Some(extent))])
    }

    #[test]
    fn quotients_and_remainders_determine_their_dividend() {
        let number = IndexExpr::var(numbered_var(0));
        let by = |divisor: i64| IndexExpr::constant(divisor);
        let rows = number.floor_div(&by(5));
        let parts = [rows.floor_div(&by(8)), rows.modulo(&by(8)), number.modulo(&by(5))];
        assert!(with_dividends(parts.to_vec()).contains(&number));
        assert!(!with_dividends(parts[..2].to_vec()).contains(&number));
        assert!(!with_dividends(vec![number.floor_div(&by(6)), number.modulo(&by(5))]).contains(&number));
    }

    #[test]
    fn a_number_determines_its_digits_only_if_no_digit_overflows() {
        assert_eq!(digits_of(8, 8), Some(vec![numbered_var(1), numbered_var(0)]));
        assert_eq!(digits_of(8, 9), None);
        assert_eq!(digits_of(2, 3), None);
    }
}
