//! Compares the elements that two parts of a loop's body use in different iterations, so that loops
//! can be joined: all iterations of one nest ran before those of the other, and now they take
//! turns.
//!
//! The comparison looks at the elements in memory, not at the dependences of the program. So it
//! also covers values that were inlined, and buffers that hold a piece of a tensor.

use tilewright_ir::nest::{Access, BufferId, LoopVarId};
use tilewright_polyhedral::isl::{Affine, Context, Map};

use super::{MOST_OPERATIONS, coordinates};
use crate::draft::{Draft, StatementId};
use crate::illegal::Illegal;

/// How two parts of a loop's body meet in the elements that one of them changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meeting {
    /// They use different elements, or the same ones only in the same iteration.
    SameIteration,
    /// The second part uses elements that the first has used in earlier iterations.
    InOrder,
    /// The second part uses an element before the first part does. The sentence says why that
    /// matters.
    OutOfOrder(String),
}

impl Draft<'_> {
    /// How the statements of two parts of a loop's body meet. The first part stands before the
    /// second in the program.
    pub fn meeting(&self, first: &[StatementId], second: &[StatementId], shared: LoopVarId) -> Meeting {
        let context = Context::new();
        context.limit_operations(MOST_OPERATIONS);
        let depth = self.loops_around(shared).len();
        let mut found = Meeting::SameIteration;
        for (one, other) in first.iter().flat_map(|one| second.iter().map(move |other| (*one, *other))) {
            for (own, others) in self.conflicting_accesses(one, other) {
                let pairs = self.same_elements(&context, (one, &own), (other, &others), depth);
                let is_some = |pairs: Map| pairs.sample().map(|pair| pair.is_some());
                match (
                    is_some(pairs.reverse().where_less(depth, depth)),
                    is_some(pairs.where_less(depth, depth)),
                ) {
                    (Ok(false), Ok(false)) => {}
                    (Ok(false), Ok(true)) => found = Meeting::InOrder,
                    (Ok(true), _) => {
                        return Meeting::OutOfOrder(self.describe_meeting((one, other), own.tensor));
                    }
                    (Err(_), _) | (_, Err(_)) => {
                        return Meeting::OutOfOrder(
                            "the check of its dependences takes too long".to_string(),
                        );
                    }
                }
            }
        }
        found
    }

    /// The reason to refuse a change of a loop whose iterations keep their order.
    pub fn keeps_order(&self, var: LoopVarId) -> Illegal {
        let why = "later iterations use what earlier iterations have computed".to_string();
        Illegal::CarriedDependence { name: self.qualified_loop_name(var), why }
    }

    /// Returns true when one of two statements changes a tensor that the other uses.
    pub fn share_changed_tensor(&self, one: StatementId, other: StatementId) -> bool {
        let uses = |id: StatementId, tensor: BufferId| self.statement(id).uses(tensor);
        uses(one, self.statement(other).target.tensor) || uses(other, self.statement(one).target.tensor)
    }

    /// The pairs of accesses to the same tensor, at least one of which changes it.
    fn conflicting_accesses(&self, one: StatementId, other: StatementId) -> Vec<(Access, Access)> {
        let (one, other) = (self.statement(one), self.statement(other));
        let reads = |reads: Vec<Access>, tensor: BufferId| {
            reads.into_iter().filter(move |read| read.tensor == tensor)
        };
        let flow = reads(other.reads(), one.target.tensor).map(|read| (one.target.clone(), read));
        let anti = reads(one.reads(), other.target.tensor).map(|read| (read, other.target.clone()));
        let output =
            (one.target.tensor == other.target.tensor).then(|| (one.target.clone(), other.target.clone()));
        flow.chain(anti).chain(output).collect()
    }

    /// The pairs of iterations of two statements that use the same element, and that agree in the
    /// outermost loops up to `depth`.
    fn same_elements(
        &self,
        context: &Context,
        one: (StatementId, &Access),
        other: (StatementId, &Access),
        depth: usize,
    ) -> Map {
        let pairs = self.elements(context, one).apply_range(&self.elements(context, other).reverse());
        (0..depth).fold(pairs, |pairs, at| pairs.where_equal(at, at))
    }

    /// The map from the iterations of a statement to the element that it uses. An access whose
    /// subscript is not affine may use any element of its dimension.
    fn elements(&self, context: &Context, (id, access): (StatementId, &Access)) -> Map {
        let coordinates = coordinates(context, &self.path(id));
        // A superset is safe here: it can only add pairs of iterations that meet.
        let (iterations, _) = self.iterations(&coordinates);
        let start = Map::from_functions(context, coordinates.len(), &[]);
        let all = access.indices.iter().fold(start, |map, index| {
            let value: Option<Affine> = coordinates.affine(index);
            map.flat_range_product(&match value {
                Some(value) => Map::from_functions(context, coordinates.len(), &[value]),
                None => Map::universe(context, coordinates.len(), 1),
            })
        });
        all.intersect_domain(&iterations)
    }

    fn describe_meeting(&self, (one, other): (StatementId, StatementId), tensor: BufferId) -> String {
        format!(
            "an iteration of `{}` would use elements of `{}` before a later iteration of `{}` does",
            self.statement(other).name,
            self.buffers[tensor.index()].buffer.name,
            self.statement(one).name
        )
    }
}
