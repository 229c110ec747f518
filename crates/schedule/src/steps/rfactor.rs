//! Applies the step `rfactor C.ki -> Cp`: splits a reduction into a statement that computes one
//! partial total for each iteration of a loop, and a statement that sums them.
//!
//! Where data chooses the elements, each iteration gets a table of its own: the totals have a whole
//! dimension for each subscript that depends on data, and the sum has a loop over it.

use tilewright_ir::Update;
use tilewright_ir::nest::{Buffer, BufferId, Expr, ExprKind, IndexExpr, LoopKind, LoopVarId, Scope};

use crate::draft::scan::ScanRole;
use crate::draft::{Draft, Legal, Loop, LoopRole, Node, Statement, StatementId, access};
use crate::illegal::Illegal;
use crate::step::{LoopName, StatementName};

/// Gives every iteration of a reduction loop its own partial total, and adds a new statement that
/// sums them.
pub(super) fn rfactor(draft: &mut Draft, target: &LoopName, name: &str) -> Legal<()> {
    let var = draft.find_loop(target)?;
    let id = draft.find_statement(&target.statement)?;
    draft.expect_unused_name(name)?;
    let refuse = |why: &str| Illegal::Rfactor { name: target.to_string(), why: why.to_string() };
    check(draft, id, var).map_err(refuse)?;
    let own = draft.loops_owned_by(id);
    let outermost = own.iter().position(|var| draft.loop_of(*var).role == LoopRole::Reduction);
    let outermost = outermost.expect("the loop itself is a reduction");
    let old = draft.statement(id).clone();
    let inner: Vec<LoopVarId> = own[outermost..]
        .iter()
        .copied()
        .filter(|var| old.target.indices.iter().any(|index| !index.has_data() && index.mentions(*var)))
        .collect();
    let tables = tables(draft, &old);
    let is_taken = |table: &&Table| draft.path(id).iter().any(|var| draft.loop_of(*var).name == table.name);
    if let Some(taken) = tables.iter().find(is_taken) {
        return Err(Illegal::NameTaken(taken.name.clone()));
    }

    // The dimensions of the totals: the factored loop first, then the loops of the result that are
    // inside the reduction, then those in which data chooses.
    let ranges = draft.ranges(id);
    let extent_of = |var: &LoopVarId| ranges.greatest_value(&draft.loop_of(*var).extent).unwrap_or(1).max(1);
    let count = extent_of(&var);
    let whole = tables.iter().map(|table| table.extent);
    let shape = std::iter::once(count).chain(inner.iter().map(extent_of)).chain(whole).collect();
    let dtype = draft.buffers[old.target.tensor.index()].buffer.dtype.compute_type();
    let allocated_at = draft.loops_around(own[outermost]).last().copied();
    let totals = draft
        .add_buffer(Buffer { name: name.to_string(), dtype, shape, scope: Scope::Scratch }, allocated_at)?;

    let last = build_sum(draft, &old, (var, count), (&inner, &tables), totals);
    draft.buffers[totals.index()].may_be_partial =
        inner.iter().any(|var| !draft.loop_of(*var).guards.is_empty());
    let (op, _) = old.reduction().expect("the statement is a reduction");
    let chosen = tables.iter().map(|table| old.target.indices[table.dimension].clone());
    let indices = std::iter::once(var).chain(inner).map(IndexExpr::var).chain(chosen).collect();
    draft.change(id, |partial| {
        partial.name = StatementName::first(name);
        partial.update = Update::Reduce { op, reset: true };
        partial.is_partial = true;
        partial.target = access(totals, indices);
    });
    draft.loops[var.index()].role = LoopRole::Spatial;
    let outermost = Node::Loop(own[outermost]);
    let (parent, at) = draft.detach(outermost);
    draft.insert(parent, at, [vec![outermost], last].concat());
    Ok(())
}

fn check(draft: &Draft, id: StatementId, var: LoopVarId) -> Result<(), &'static str> {
    let statement = draft.statement(id);
    if draft.loop_of(var).role != LoopRole::Reduction || draft.loop_of(var).owner != Some(id) {
        return Err("it is not a loop of the statement's reduction");
    }
    if draft.loop_of(var).kind != LoopKind::Serial {
        return Err("it is no longer serial: apply `rfactor` before the step that changed it");
    }
    if statement.accumulator.is_some() {
        return Err("the result is promoted already: apply `rfactor` before `promote`");
    }
    if statement.reduction().is_some_and(|(_, reset)| reset) && draft.is_scatter(id) && !draft.resets_rows(id)
    {
        return Err("its loops do not reach all elements that it sets to the neutral element");
    }
    let own = draft.loops_owned_by(id);
    let shared = own.iter().any(|var| {
        draft.loop_of(*var).role == LoopRole::Reduction
            && statement.target.indices.iter().any(|index| !index.has_data() && index.mentions(*var))
    });
    if shared {
        return Err("the subscripts of the result contain a reduction loop");
    }
    Ok(())
}

/// A dimension of the result in which data chooses the element.
struct Table {
    dimension: usize,
    /// The name of the loop that adds up the totals of the dimension.
    name: String,
    extent: i64,
}

fn tables(draft: &Draft, statement: &Statement) -> Vec<Table> {
    let shape = &draft.buffers[statement.target.tensor.index()].buffer.shape;
    let subscripts = statement.target.indices.iter().zip(shape).enumerate();
    let chosen = subscripts.filter(|(_, (index, _))| index.has_data());
    let table = |(dimension, (_, extent)): (usize, (&IndexExpr, &i64))| Table {
        dimension,
        name: format!("d{dimension}"),
        extent: *extent,
    };
    chosen.map(table).collect()
}

/// Builds `for ki: C += Cp[ki]`, inside copies of the loops of the result and loops over the
/// dimensions in which data chose.
fn build_sum(
    draft: &mut Draft,
    old: &Statement,
    (var, count): (LoopVarId, i64),
    (inner, tables): (&[LoopVarId], &[Table]),
    totals: BufferId,
) -> Vec<Node> {
    let id = StatementId(draft.statements.len());
    let mut copies: Vec<(LoopVarId, LoopVarId)> = Vec::new();
    let mut target = old.target.clone();
    let factored = draft.loop_of(var).name.clone();
    for original in inner {
        let mut copy = Loop { kind: LoopKind::Serial, owner: Some(id), ..draft.loop_of(*original).clone() };
        let renamed = |index: &IndexExpr, copies: &[(LoopVarId, LoopVarId)]| {
            copies
                .iter()
                .fold(index.clone(), |index, (from, to)| crate::draft::replace_var(&index, *from, *to))
        };
        copy.extent = renamed(&draft.copied_extent(*original, inner), &copies);
        let guards = std::mem::take(&mut copy.guards);
        let new = draft.add_loop(copy);
        copies.push((*original, new));
        // A guard that depends on a reduction loop skips iterations of the reduction, but not the
        // sum of its totals.
        let owner = draft.loop_of(var).owner;
        let reduced = |var: LoopVarId| {
            draft.loop_of(var).role == LoopRole::Reduction && draft.loop_of(var).owner == owner
        };
        let of_elements = guards.iter().filter(|guard| !guard.vars().into_iter().any(reduced));
        draft.loops[new.index()].guards = of_elements.map(|guard| renamed(guard, &copies)).collect();
        target.indices = target.indices.iter().map(|index| renamed(index, &copies)).collect();
    }
    let mut new_loop = |name: String, extent: i64, role: LoopRole| {
        draft.add_loop(Loop {
            name,
            extent: IndexExpr::constant(extent),
            kind: LoopKind::Serial,
            role,
            owner: Some(id),
            is_unchanged: false,
            slides: false,
            keeps_order: false,
            guards: Vec::new(),
        })
    };
    let mut over_tables = Vec::new();
    for table in tables {
        let element = new_loop(table.name.clone(), table.extent, LoopRole::Spatial);
        target.indices[table.dimension] = IndexExpr::var(element);
        over_tables.push(element);
    }
    let sum_loop = new_loop(factored, count, LoopRole::Reduction);
    let own = draft.loop_of(var).owner.map(|id| draft.loops_owned_by(id)).unwrap_or_default();
    let reduced = own.into_iter().skip_while(|var| draft.loop_of(*var).role != LoopRole::Reduction);
    let reduced: Vec<LoopVarId> = reduced.collect();
    let instances =
        old.instances.iter().map(|instance| instance.as_sum_of_partials(&copies, &reduced)).collect();
    let mut scan = old.scan.clone();
    if let Some(ScanRole::Part { instance, .. }) = &mut scan {
        *instance = instance.as_sum_of_partials(&copies, &reduced);
    }
    let of_result = copies.iter().map(|(_, new)| *new).chain(over_tables);
    let vars: Vec<LoopVarId> = of_result.clone().chain([sum_loop]).collect();
    let dtype = draft.buffers[totals.index()].buffer.dtype;
    let indices = std::iter::once(sum_loop).chain(of_result).map(IndexExpr::var);
    draft.add_statement(Statement {
        name: old.name.clone(),
        target,
        update: old.update,
        value: Expr { dtype, kind: ExprKind::Load(access(totals, indices.collect())) },
        accumulator: None,
        is_partial: old.is_partial,
        vars: Vec::new(),
        is_narrowed: old.is_narrowed,
        instances,
        scan,
    });
    draft.wrap_in_loops(&vars, vec![Node::Statement(id)])
}
