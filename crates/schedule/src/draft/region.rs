//! Computes the region of a tensor that statements touch while one iteration of a loop runs (its
//! footprint).
//!
//! The region is a box: in each dimension, an interval whose low end is an expression in the loops
//! around it and whose extent is a number. Interval analysis of the subscripts over the loops
//! inside finds it. A subscript without a bound, because it depends on data, takes the whole
//! dimension.

use tilewright_ir::interval::{End, lower_bound, upper_bound};
use tilewright_ir::nest::{Access, Atom, BufferId, IndexExpr, LoopVarId};

use super::multiples::round_up_quotients;
use super::simplify::{Ranges, split_clamp};
use super::{Draft, Parent, StatementId};

/// At most `extent` integers from `low` on, inside the tensor unless the dimension is padded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub low: IndexExpr,
    /// The largest number of integers.
    pub extent: i64,
    /// The number of integers in the current iteration: the extent, or less at the tensor's end.
    pub available: IndexExpr,
}

impl Interval {
    /// A whole dimension.
    pub fn whole(extent: i64) -> Interval {
        Interval { low: IndexExpr::constant(0), extent, available: IndexExpr::constant(extent) }
    }

    /// Returns true when some iterations have fewer integers.
    pub fn is_clipped(&self) -> bool {
        self.available != IndexExpr::constant(self.extent)
    }

    pub fn is_whole(&self, extent: i64) -> bool {
        self.extent == extent && self.low == IndexExpr::constant(0)
    }
}

impl Draft<'_> {
    /// The ranges of all loops around a statement.
    pub fn ranges(&self, statement: StatementId) -> Ranges {
        self.ranges_of(&self.path(statement))
    }

    /// The ranges of loops, outermost first.
    pub fn ranges_of(&self, path: &[LoopVarId]) -> Ranges {
        let mut ranges = Ranges::default();
        for var in path {
            ranges.add_loop(*var, &self.loop_of(*var).extent);
            self.loop_of(*var).guards.iter().for_each(|guard| ranges.assume_nonnegative(guard));
        }
        ranges
    }

    /// The region of a tensor that these accesses touch in one iteration of the loop `at`, or in
    /// the whole program if `at` is none.
    pub fn footprint(
        &self,
        tensor: BufferId,
        accesses: &[(StatementId, Access)],
        at: Option<LoopVarId>,
    ) -> Vec<Interval> {
        let accesses: Vec<(StatementId, Vec<IndexExpr>)> =
            accesses.iter().map(|(id, access)| (*id, access.indices.clone())).collect();
        self.footprint_in(&self.buffers[tensor.index()].buffer.shape, &accesses, at, &[])
    }

    /// The footprint as above, for anything of this shape. In the `padded` dimensions the region is
    /// not clipped to the shape.
    pub fn footprint_in(
        &self,
        shape: &[i64],
        accesses: &[(StatementId, Vec<IndexExpr>)],
        at: Option<LoopVarId>,
        padded: &[usize],
    ) -> Vec<Interval> {
        let around = at.map(|at| self.loops_up_to(at)).unwrap_or_default();
        let outer = self.ranges_of(&around);
        let dimension = |(at, extent): (usize, &i64)| {
            let bounds = accesses
                .iter()
                .map(|(statement, indices)| self.bounds_inside(*statement, &indices[at], &around));
            let interval = join(bounds).and_then(|(low, high)| match padded.contains(&at) {
                true => unclipped(low, &high, &outer),
                false => clip(&low, &high, *extent, &outer),
            });
            interval.unwrap_or_else(|| Interval::whole(*extent))
        };
        shape.iter().enumerate().map(dimension).collect()
    }

    /// The least and the greatest subscript of these accesses in one dimension, in one iteration
    /// of the loop `at`. The bounds leave out that subscripts are clamped to a constant, so they
    /// may be outside of the tensor.
    pub fn bounds_without_clamps(
        &self,
        accesses: &[(StatementId, Access)],
        dimension: usize,
        at: LoopVarId,
    ) -> Option<(IndexExpr, IndexExpr)> {
        let around = self.loops_up_to(at);
        let outer = self.ranges_of(&around);
        let bounds = accesses.iter().map(|(statement, access)| {
            let (low, high) = self.bounds_inside(*statement, &access.indices[dimension], &around)?;
            Some((without_clamps(&low, End::Low, &outer), without_clamps(&high, End::High, &outer)))
        });
        join(bounds).map(|(low, high)| (outer.simplify(&low), outer.simplify(&high)))
    }

    /// The largest number of iterations of a loop.
    pub fn trips(&self, var: LoopVarId) -> i64 {
        let around = self.ranges_of(&self.loops_around(var));
        around.greatest_value(&self.loop_of(var).extent).unwrap_or(1).max(1)
    }

    /// The number of points that a statement computes.
    pub fn points(&self, statement: StatementId) -> f64 {
        self.path(statement).iter().map(|var| self.trips(*var) as f64).product()
    }

    /// The average number of times that each point of a tensor would be computed at a loop.
    pub fn repetition(&self, tensor: BufferId, at: LoopVarId) -> f64 {
        let rounds: f64 = self.loops_up_to(at).iter().map(|var| self.trips(*var) as f64).product();
        // A loop that computes a scatter visits all points, whichever elements are needed.
        if self.writers(Parent::Body, tensor).into_iter().any(|id| self.is_scatter(id)) {
            return rounds;
        }
        let reads = self.readers(Parent::Loop(at), tensor);
        let region = self.footprint(tensor, &reads, Some(at));
        let part: f64 = region.iter().map(|interval| interval.extent as f64).product();
        rounds * part / self.buffers[tensor.index()].buffer.elements() as f64
    }

    /// The loop and all loops around it, outermost first.
    pub fn loops_up_to(&self, at: LoopVarId) -> Vec<LoopVarId> {
        let mut path = self.loops_around(at);
        path.push(at);
        path
    }

    /// The least and the greatest value of a subscript over the loops that are not in `around`.
    fn bounds_inside(
        &self,
        statement: StatementId,
        index: &IndexExpr,
        around: &[LoopVarId],
    ) -> Option<(IndexExpr, IndexExpr)> {
        let path = self.path(statement);
        let everywhere = self.ranges_of(&path);
        let mut inside = Ranges::default();
        for var in path.iter().filter(|var| !around.contains(var)) {
            let own = self.loop_of(*var);
            inside.set_extent(*var, everywhere.greatest_value(&own.extent)?);
            if own.slides && own.extent.vars().iter().all(|var| around.contains(var)) {
                inside.set_exact_extent(*var, own.extent.clone());
            }
        }
        let multiples = self.statement(statement).required_multiples(&everywhere);
        let bounds =
            (lower_bound(&round_up_quotients(index, &multiples), &inside)?, upper_bound(index, &inside)?);
        let fixed =
            |bound: &IndexExpr| !bound.has_data() && bound.vars().iter().all(|var| around.contains(var));
        (fixed(&bounds.0) && fixed(&bounds.1)).then_some(bounds)
    }
}

/// The bounds that contain all of the given ones; none if one of them is not known.
fn join(mut bounds: impl Iterator<Item = Option<(IndexExpr, IndexExpr)>>) -> Option<(IndexExpr, IndexExpr)> {
    let first = bounds.next()??;
    bounds.try_fold(first, |(low, high), other| {
        let (other_low, other_high) = other?;
        Some((low.minimum(&other_low), high.maximum(&other_high)))
    })
}

/// The interval from `low` to `high`.
fn unclipped(low: IndexExpr, high: &IndexExpr, outer: &Ranges) -> Option<Interval> {
    let extent = outer.greatest_value(&high.sub(&low).offset(1)).filter(|extent| *extent >= 1)?;
    Some(Interval { low, extent, available: IndexExpr::constant(extent) })
}

/// The interval from `low` to `high`, clipped to `0..extent`.
pub(crate) fn clip(low: &IndexExpr, high: &IndexExpr, extent: i64, outer: &Ranges) -> Option<Interval> {
    let (low, high) = (&without_clamps(low, End::Low, outer), &without_clamps(high, End::High, outer));
    let size = outer.greatest_value(&high.sub(low).offset(1))?;
    if size >= extent || size < 1 {
        return None;
    }
    let low = outer.simplify(&low.maximum(&IndexExpr::constant(0)));
    let after = IndexExpr::constant(extent).sub(&low);
    let available = outer.simplify(&after.minimum(&IndexExpr::constant(size)));
    Some(Interval { low, extent: size, available })
}

/// Removes from a bound the constant that a subscript was clamped to, which can only enlarge the
/// interval. Without the clamp, the distance between the two ends is most often a constant.
/// Clipping to the tensor removes the added part again.
fn without_clamps(bound: &IndexExpr, end: End, outer: &Ranges) -> IndexExpr {
    if !grows_with_clamps(bound) {
        return bound.clone();
    }
    outer.simplify(&bound.substitute(&mut |atom| match (atom, end) {
        (Atom::Max(pair), End::Low) | (Atom::Min(pair), End::High) => {
            split_clamp(pair).map(|(free, _)| free.clone())
        }
        _ => None,
    }))
}

/// Returns true when an expression never decreases while a `min` or `max` in it increases.
fn grows_with_clamps(expr: &IndexExpr) -> bool {
    expr.terms().iter().all(|term| match term.factors.as_slice() {
        [Atom::Min(pair) | Atom::Max(pair)] => {
            term.coefficient > 0 && grows_with_clamps(&pair.0) && grows_with_clamps(&pair.1)
        }
        [Atom::FloorDiv(pair)] if term.coefficient > 0 && pair.1.as_constant().is_some_and(|by| by > 0) => {
            grows_with_clamps(&pair.0)
        }
        _ => !IndexExpr::from(term).any_atom(&mut |atom| matches!(atom, Atom::Min(_) | Atom::Max(_))),
    })
}
