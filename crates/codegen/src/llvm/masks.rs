//! Finds register buffers whose masked-out lanes are never read. A lane is masked out where a
//! condition excludes it.
//!
//! A masked store must preserve the other lanes of its slot, which costs one instruction each time.
//! Where all stores that may reach a slot run in the same lanes, the other lanes never hold a value
//! that matters, so overwriting them is harmless. The accumulators of a loop's last tile are such a
//! case.

use std::collections::{BTreeMap, BTreeSet};

use tilewright_ir::nest::{Atom, BufferId, IndexExpr, LoopNest, LoopVarId, Scope, Stmt};

use super::loops::vector_lanes;

/// The number that replaces the lane variable in masks. The numbers after it replace the variables
/// of subscripts, so masks from different loops can be compared.
const LANE_VAR: u32 = u32::MAX / 2;

/// Returns the register buffers that are always stored to in the same lanes.
pub(super) fn buffers_with_overwritable_lanes(nest: &LoopNest) -> BTreeSet<BufferId> {
    let mut survey = Survey {
        nest,
        lane: None,
        loop_vars: Vec::new(),
        allocation_depths: BTreeMap::new(),
        conditions: Vec::new(),
        stores: Vec::new(),
    };
    survey.stmts(&nest.setup);
    survey.stmts(&nest.body);
    let clash = |tensor: BufferId| {
        let own: Vec<&MaskedStore> = survey.stores.iter().filter(|store| store.tensor == tensor).collect();
        own.iter().any(|store| store.mask_varies)
            || own.iter().any(|left| own.iter().any(|right| left.may_alias(right) && left.mask != right.mask))
    };
    let ids = (0..nest.buffers.len()).map(|at| BufferId(at as u32));
    ids.filter(|id| nest.buffer(*id).scope == Scope::Register && !clash(*id)).collect()
}

/// A store to a register buffer: its elements and its lanes.
struct MaskedStore {
    tensor: BufferId,
    /// The subscripts that do not mention the lane.
    subscripts: Vec<IndexExpr>,
    /// The conditions on the lane, each with whether it holds or fails, sorted.
    mask: Vec<(bool, IndexExpr)>,
    /// Whether the lanes differ between iterations of a loop inside the buffer's allocation.
    mask_varies: bool,
}

impl MaskedStore {
    /// Whether two stores may access one slot: false if some subscripts are different constants.
    fn may_alias(&self, other: &MaskedStore) -> bool {
        let differ = |(left, right): (&IndexExpr, &IndexExpr)| matches!((left.as_constant(), right.as_constant()), (Some(left), Some(right)) if left != right);
        !self.subscripts.iter().zip(&other.subscripts).any(differ)
    }
}

struct Survey<'a> {
    nest: &'a LoopNest,
    lane: Option<LoopVarId>,
    /// The variables of the enclosing loops. `allocation_depths` holds the number of enclosing
    /// loops of each buffer's allocation.
    loop_vars: Vec<LoopVarId>,
    allocation_depths: BTreeMap<BufferId, usize>,
    /// The enclosing conditions that mention the lane.
    conditions: Vec<(bool, IndexExpr)>,
    stores: Vec<MaskedStore>,
}

impl Survey<'_> {
    fn stmts(&mut self, stmts: &[Stmt]) {
        for stmt in stmts {
            match stmt {
                Stmt::For(inner) if vector_lanes(inner).is_some() => {
                    self.lane = Some(inner.var);
                    self.stmts(&inner.body);
                    self.lane = None;
                }
                Stmt::For(inner) => {
                    self.loop_vars.push(inner.var);
                    self.stmts(&inner.body);
                    self.loop_vars.pop();
                }
                Stmt::Allocate(allocation) => {
                    self.allocation_depths.insert(allocation.buffer, self.loop_vars.len());
                    self.stmts(&allocation.body);
                }
                Stmt::If(conditional) => {
                    self.conditional_stmts(&conditional.conditions, true, &conditional.then);
                    self.conditional_stmts(&conditional.conditions, false, &conditional.otherwise);
                }
                Stmt::Store(store) => {
                    if self.nest.buffer(store.target.tensor).scope == Scope::Register {
                        self.store(store.target.tensor, &store.target.indices);
                    }
                }
                other => other.bodies().for_each(|body| self.stmts(body)),
            }
        }
    }

    fn conditional_stmts(&mut self, conditions: &[IndexExpr], hold: bool, stmts: &[Stmt]) {
        let outside = self.conditions.len();
        let on_lane = |condition: &&IndexExpr| self.lane.is_some_and(|lane| condition.mentions(lane));
        let new: Vec<_> =
            conditions.iter().filter(on_lane).map(|condition| (hold, condition.clone())).collect();
        self.conditions.extend(new);
        self.stmts(stmts);
        self.conditions.truncate(outside);
    }

    fn store(&mut self, tensor: BufferId, indices: &[IndexExpr]) {
        let named = |var: LoopVarId| {
            let at = indices.iter().position(|index| index.as_var() == Some(var));
            match self.lane {
                Some(lane) if lane == var => Some(LoopVarId(LANE_VAR)),
                _ => at.map(|at| LoopVarId(LANE_VAR + 1 + at as u32)),
            }
        };
        let renamed = |index: &IndexExpr| {
            index.substitute(&mut |atom| match atom {
                Atom::Var(var) => named(*var).map(IndexExpr::var),
                _ => None,
            })
        };
        let mut mask: Vec<(bool, IndexExpr)> =
            self.conditions.iter().map(|(hold, condition)| (*hold, renamed(condition))).collect();
        mask.sort();
        mask.dedup();
        let on_lane = |index: &IndexExpr| self.lane.is_some_and(|lane| index.mentions(lane));
        let subscripts = indices.iter().filter(|index| !on_lane(index)).cloned().collect();
        let outside = self.allocation_depths.get(&tensor).copied().unwrap_or(0);
        let mask_varies = mask.iter().any(|(_, condition)| {
            self.loop_vars[outside..].iter().any(|var| condition.mentions(*var)) || condition.has_data()
        });
        self.stores.push(MaskedStore { tensor, subscripts, mask, mask_varies });
    }
}
