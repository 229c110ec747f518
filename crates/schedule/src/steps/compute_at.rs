//! Applies the step `compute_at P, C.io`: moves the statements of a tensor into a loop of its
//! consumer, where they compute the part that one iteration needs. With `store_at`, they compute
//! only what earlier iterations have not, as [`mod@super::sliding`] determines.

use tilewright_ir::nest::{Access, Atom, BufferId, IndexExpr, LoopKind, LoopVarId, Scope};

use super::sliding::{self, Window};
use crate::draft::region::Interval;
use crate::draft::{Draft, KeptParts, Legal, LoopRole, Node, Parent, StatementId};
use crate::illegal::Illegal;
use crate::step::{LoopName, Storage};

/// Moves the statements of a tensor into a loop of its consumer, where they compute the part that
/// one iteration needs. A later statement of the same tensor can be the consumer (the host); then
/// the statements before it move.
pub(super) fn compute_at(
    draft: &mut Draft,
    name: &str,
    at: &LoopName,
    storage: Option<&Storage>,
) -> Legal<()> {
    let refuse = |why: String| Illegal::ComputeAt { tensor: name.to_string(), at: at.to_string(), why };
    if let Some(what) = draft.describe_promoted(name) {
        return Err(refuse(format!("it is {what}; the `promote` that makes it decides the loop")));
    }
    let tensor = draft.find_tensor(name)?;
    let place = draft.find_loop(at)?;
    let host = host(draft, tensor, place);
    let producers = producers(draft, tensor, place, host).map_err(refuse)?;
    let uses = match host {
        Some(host) => vec![use_of_host(draft, tensor, place, &producers, host).map_err(refuse)?],
        None => consumers(draft, tensor, place, &producers).map_err(refuse)?,
    };
    let users: Vec<StatementId> = uses.iter().map(|(id, _)| *id).collect();
    let needs_check = producers.iter().any(|id| draft.reads_tensor_changed_later(*id));
    let mut region = draft.footprint(tensor, &uses, Some(place));
    widen(draft, tensor, &producers, &mut region);
    // If there is a host, the tensor is used elsewhere after the host has changed it, so it must
    // stay whole in memory.
    let kept = host.is_some() || draft.buffers[tensor.index()].buffer.scope != Scope::Scratch;
    if kept && let Some(why) = resets_elsewhere(draft, place, &producers, host) {
        return Err(refuse(why));
    }
    if kept
        && !(covers_once(draft, tensor, place, &uses, &region) && regions_are_disjoint(draft, place, &region))
    {
        let what = if host.is_some() { "a later statement changes it" } else { "it is a result" };
        return Err(refuse(format!("{what}, and these loops would not compute each element just once")));
    }

    let window = match storage {
        Some(_) if kept => return Err(refuse("it stays whole in memory; leave out `store_at`".to_string())),
        Some(storage) => Some(sliding::window(draft, tensor, &uses, (place, &region), storage)?),
        None => None,
    };
    let part = window.as_ref().map_or(&region, |window| &window.new_part);
    for producer in &producers {
        restrict(draft, *producer, place, part);
    }
    match window {
        Some(window) => keep_parts(draft, tensor, &producers, window),
        None if kept => {}
        None => shrink_buffer(draft, tensor, Some(place), &region, None),
    }
    // The moved statements are attached to the current loops: the consumer can no longer move
    // elsewhere without them.
    draft.mark_changed(&draft.loops_up_to(place));
    let nests = roots(draft, &producers);
    for nest in &nests {
        draft.detach(*nest);
    }
    let inside = Parent::Loop(place);
    let using: Vec<Node> = users.iter().filter_map(|id| draft.child_containing(inside, *id)).collect();
    let first_user = draft.body_of(place).iter().position(|node| using.contains(node));
    draft.insert(inside, first_user.unwrap_or(0), nests);
    match needs_check.then(|| draft.violated_dependence(&producers)).flatten() {
        Some(broken) => Err(refuse(broken)),
        None => Ok(()),
    }
}

/// Returns the reason if the reset of a reduction would run at the wrong time. A scatter that
/// resets its whole tensor would do so again in every iteration. A host that resets outside the
/// loop would reset its elements before the moved statements write them.
fn resets_elsewhere(
    draft: &Draft,
    place: LoopVarId,
    producers: &[StatementId],
    host: Option<StatementId>,
) -> Option<String> {
    let resets = |id: &StatementId| matches!(draft.statement(*id).reduction(), Some((_, true)));
    let resets_whole = |id: &&StatementId| draft.is_scatter(**id) && !draft.resets_rows(**id);
    if let Some(scatter) = producers.iter().filter(|id| resets(id)).find(resets_whole) {
        let name = &draft.statement(*scatter).name;
        return Some(format!("`{name}` sets all of it to the neutral element, whichever part is needed"));
    }
    let host = host.filter(resets)?;
    let reset = draft.reset_loop(host)?;
    let inside = draft.loops_around(reset).contains(&place);
    let name = &draft.statement(host).name;
    (!inside).then(|| format!("`{name}` sets its elements to the neutral element outside of that loop"))
}

/// The statement that owns the loop, if it writes the tensor after other statements do.
fn host(draft: &Draft, tensor: BufferId, place: LoopVarId) -> Option<StatementId> {
    let owner = draft.loop_of(place).owner?;
    let writers = draft.writers(Parent::Body, tensor);
    writers.into_iter().skip(1).find(|writer| *writer == owner)
}

/// The statements that define the tensor, or those of them before the host. Steps must not have
/// changed their loops yet.
fn producers(
    draft: &Draft,
    tensor: BufferId,
    place: LoopVarId,
    host: Option<StatementId>,
) -> Result<Vec<StatementId>, String> {
    let buffer = &draft.buffers[tensor.index()].buffer;
    let mut producers = draft.writers(Parent::Body, tensor);
    if producers.is_empty() {
        return Err("it is an input: use `promote` to stage it".to_string());
    }
    if let Some(end) = producers.iter().position(|writer| Some(*writer) == host) {
        producers.truncate(end);
    }
    if let Scope::Argument(id) = buffer.scope
        && draft.program.tensor(id).role.is_supplied()
    {
        return Err("the caller supplies its initial values, so it cannot be recomputed".to_string());
    }
    if draft.statements_in(&roots(draft, &producers)).len() > producers.len() {
        return Err("another statement is inside its loops".to_string());
    }
    for producer in &producers {
        let own = draft.loops_owned_by(*producer);
        let path = draft.path(*producer);
        // An ordered loop moves with the statements inside, all of which define the tensor.
        let moves = |var: &LoopVarId| own.contains(var) || draft.loop_of(*var).role == LoopRole::Ordered;
        if !path.iter().all(moves) {
            return Err("its statement is inside another loop".to_string());
        }
        if path.contains(&place) {
            return Err("that loop belongs to its own statement".to_string());
        }
        let touched = path.iter().any(|var| !draft.loop_of(*var).is_unchanged)
            || draft.statement(*producer).accumulator.is_some();
        if touched || path.iter().any(|var| draft.loop_of(*var).kind != LoopKind::Serial) {
            return Err("earlier steps have changed its own loops: move it first".to_string());
        }
    }
    Ok(producers)
}

/// The elements of the tensor that the host uses, which must be just those that it changes. No
/// other statement may use the tensor before the host; statements after it see the same values as
/// before.
fn use_of_host(
    draft: &Draft,
    tensor: BufferId,
    place: LoopVarId,
    producers: &[StatementId],
    host: StatementId,
) -> Result<(StatementId, Access), String> {
    let statement = draft.statement(host);
    let own = &statement.target;
    if statement.reads().iter().any(|read| read.tensor == tensor && read.indices != own.indices) {
        return Err(format!("`{}` uses other elements of it than it changes", statement.name));
    }
    if draft.accumulates_at(host).is_some_and(|gathered| draft.loops_around(place).contains(&gathered)) {
        return Err(format!("the result of `{}` is promoted outside of that loop", statement.name));
    }
    let last = draft.execution_position(host);
    let mut others = draft.readers(Parent::Body, tensor).into_iter().map(|(id, _)| id);
    let needs_it = |id: &StatementId| !producers.contains(id) && draft.execution_position(*id) < last;
    match others.find(needs_it) {
        Some(other) => {
            Err(format!("`{}` uses it before `{}` does", draft.statement(other).name, statement.name))
        }
        None => Ok((host, own.clone())),
    }
}

/// The reads of the tensor, all of which must be inside the loop.
fn consumers(
    draft: &Draft,
    tensor: BufferId,
    place: LoopVarId,
    producers: &[StatementId],
) -> Result<Vec<(StatementId, Access)>, String> {
    let reads: Vec<(StatementId, Access)> =
        draft.readers(Parent::Body, tensor).into_iter().filter(|(id, _)| !producers.contains(id)).collect();
    let is_outside = |id: &StatementId| draft.child_containing(Parent::Loop(place), *id).is_none();
    if let Some((other, _)) = reads.iter().find(|(id, _)| is_outside(id)) {
        return Err(format!("`{}` uses it too, and is not inside that loop", draft.statement(*other).name));
    }
    if reads.is_empty() {
        return Err("no statement inside that loop uses it".to_string());
    }
    let place_of = |id: &StatementId| draft.execution_position(*id);
    let last = producers.iter().map(place_of).max();
    if reads.iter().any(|(id, _)| Some(place_of(id)) < last) {
        return Err("it is used before its last statement".to_string());
    }
    Ok(reads)
}

/// Widens the region to a whole dimension where a producer's subscript is not a variable of its
/// own, or where a producer reads the tensor at another subscript.
fn widen(draft: &Draft, tensor: BufferId, producers: &[StatementId], region: &mut [Interval]) {
    let shape = &draft.buffers[tensor.index()].buffer.shape;
    for producer in producers {
        let statement = draft.statement(*producer);
        let own = draft.loops_owned_by(*producer);
        let reads: Vec<Access> = statement.reads().into_iter().filter(|read| read.tensor == tensor).collect();
        for (at, index) in statement.target.indices.iter().enumerate() {
            let var = plain_variable(index).filter(|var| own.contains(var));
            // Where data chooses the element, the dimension stays whole, whatever the data's place.
            let subscripts = || statement.target.indices.iter().filter(|other| !other.has_data());
            let alone = var.is_some_and(|var| {
                subscripts().filter(|other| other.mentions(var)).count() == 1
                    && draft.loop_of(var).role == LoopRole::Spatial
            });
            let elsewhere = reads.iter().any(|read| read.indices[at] != *index);
            if !alone || elsewhere {
                region[at] = Interval::whole(shape[at]);
            }
        }
    }
}

fn plain_variable(index: &IndexExpr) -> Option<LoopVarId> {
    index.offset(-index.constant_part()).as_var()
}

/// Returns true when the loops compute the whole tensor and every element once, as needed for a
/// tensor that the caller receives. One of the uses must need all of the tensor and each element in
/// one iteration only, and no other use may need more.
fn covers_once(
    draft: &Draft,
    tensor: BufferId,
    place: LoopVarId,
    reads: &[(StatementId, Access)],
    region: &[Interval],
) -> bool {
    let shape = &draft.buffers[tensor.index()].buffer.shape;
    let decides = |read: &(StatementId, Access)| {
        let alone = draft.footprint(tensor, std::slice::from_ref(read), Some(place));
        let mut dimensions = alone.iter().zip(region).zip(shape);
        dimensions.all(|((own, all), extent)| own == all || all.is_whole(*extent))
            && uses_once(draft, tensor, place, read, region)
    };
    reads.iter().any(decides)
}

/// Returns true when a use needs every element in one iteration only: every loop around the place
/// must belong to a variable that indexes the tensor.
fn uses_once(
    draft: &Draft,
    tensor: BufferId,
    place: LoopVarId,
    (consumer, read): &(StatementId, Access),
    region: &[Interval],
) -> bool {
    let mut around = draft.loops_up_to(place);
    // A loop with a single iteration repeats nothing. A reduction loop still counts, because
    // statements in it run after its reset.
    let one = IndexExpr::constant(1);
    around.retain(|var| draft.loop_of(*var).extent != one || draft.loop_of(*var).role != LoopRole::Spatial);
    let shape = &draft.buffers[tensor.index()].buffer.shape;
    let mut used: Vec<LoopVarId> = Vec::new();
    let mut decided: Vec<(&IndexExpr, i64)> = Vec::new();
    for ((index, extent), interval) in read.indices.iter().zip(shape).zip(region) {
        if interval.is_whole(*extent) {
            continue;
        }
        let is_whole_variable = |(value, count): &(IndexExpr, IndexExpr)| {
            value == index && *count == IndexExpr::constant(*extent)
        };
        if is_among(&decided, index) || !draft.statement(*consumer).vars.iter().any(is_whole_variable) {
            return false;
        }
        used.extend(index.vars());
        decided.push((index, *extent));
    }
    if draft.statement(*consumer).is_narrowed && !draft.takes_all_values(*consumer, &decided) {
        return false;
    }
    // A fused loop belongs to several variables, all of which must index the tensor.
    let is_around = |value: &IndexExpr| around.iter().any(|var| value.mentions(*var));
    let other = |(value, _): &(IndexExpr, IndexExpr)| is_around(value) && !is_among(&decided, value);
    around.iter().all(|var| used.contains(var)) && !draft.statement(*consumer).vars.iter().any(other)
}

fn is_among(decided: &[(&IndexExpr, i64)], value: &IndexExpr) -> bool {
    decided.iter().any(|(own, _)| *own == value)
}

/// Returns true when no element is in the regions of two iterations. In every dimension in which
/// iterations differ, the next region in the order of the loops around must begin at or after the
/// end of the previous one.
fn regions_are_disjoint(draft: &Draft, place: LoopVarId, region: &[Interval]) -> bool {
    let around = draft.loops_up_to(place);
    let ranges = draft.ranges_of(&around);
    region.iter().all(|Interval { low, available, .. }| {
        let rises = low
            .terms()
            .iter()
            .all(|term| term.coefficient > 0 && matches!(term.factors.as_slice(), [Atom::Var(_)]));
        let end = low.add(available);
        let named: Vec<LoopVarId> = around.iter().copied().filter(|var| low.mentions(*var)).collect();
        let follows = |at: usize| {
            let next = low.substitute(&mut |atom| match atom {
                Atom::Var(var) if *var == named[at] => Some(IndexExpr::var(*var).offset(1)),
                Atom::Var(var) if named[at + 1..].contains(var) => Some(IndexExpr::constant(0)),
                _ => None,
            });
            ranges.never_negative(&next.sub(&end))
        };
        rises && (0..named.len()).all(follows)
    })
}

/// The outermost nodes that contain these statements, in order.
fn roots(draft: &Draft, statements: &[StatementId]) -> Vec<Node> {
    let mut roots: Vec<Node> =
        statements.iter().filter_map(|id| draft.child_containing(Parent::Body, *id)).collect();
    roots.dedup();
    roots
}

/// Restricts the loops of a producer to the region.
fn restrict(draft: &mut Draft, producer: StatementId, place: LoopVarId, region: &[Interval]) {
    let shape = draft.buffers[draft.statement(producer).target.tensor.index()].buffer.shape.clone();
    let outer = draft.ranges_of(&draft.loops_up_to(place));
    for at in 0..region.len() {
        let Interval { low, available, .. } = &region[at];
        if region[at].is_whole(shape[at]) {
            continue;
        }
        let index = draft.statement(producer).target.indices[at].clone();
        let var = plain_variable(&index).expect("other dimensions were widened");
        // The subscript is `var + shift`; the loop keeps the elements from `low` on that the
        // statement defines.
        let shift = index.constant_part();
        let whole = draft.loop_of(var).extent.clone();
        let zero = IndexExpr::constant(0);
        let defines_all = shift == 0 && whole == IndexExpr::constant(shape[at]);
        let (from, extent) = if defines_all {
            (low.clone(), available.clone())
        } else {
            let from = outer.simplify(&low.offset(-shift).maximum(&zero));
            let to = outer.simplify(&low.add(available).offset(-shift).minimum(&whole));
            (from.clone(), outer.simplify(&to.sub(&from).maximum(&zero)))
        };
        draft.loops[var.index()].extent = extent;
        let moved = from.add(&IndexExpr::var(var));
        let mut replace = |atom: &Atom| (*atom == Atom::Var(var)).then(|| moved.clone());
        draft.change(producer, |own| {
            own.is_narrowed = true;
            own.map_indices(&mut |index| index.substitute(&mut replace));
        });
    }
}

/// Keeps the parts that iterations compute in a buffer that lives longer than one iteration.
fn keep_parts(draft: &mut Draft, tensor: BufferId, producers: &[StatementId], window: Window) {
    for producer in producers {
        let index = &draft.statement(*producer).target.indices[window.dimension];
        let own = draft.loops_owned_by(*producer);
        let sliding: Vec<LoopVarId> = own.into_iter().filter(|var| index.mentions(*var)).collect();
        sliding.iter().for_each(|var| draft.loops[var.index()].slides = true);
    }
    let fold = window.fold.map(|rows| (window.dimension, rows));
    shrink_buffer(draft, tensor, window.stored_at, &window.stored_part, fold);
    draft.kept_parts.push(KeptParts { tensor, loops: window.loops });
}

/// Shrinks the buffer to the region, and allocates it in each iteration of the loop. With `fold`,
/// the rows of one dimension replace each other in a ring of so many rows.
fn shrink_buffer(
    draft: &mut Draft,
    tensor: BufferId,
    at: Option<LoopVarId>,
    region: &[Interval],
    fold: Option<(usize, i64)>,
) {
    let users = draft.users(Parent::Body, tensor);
    let buffer = &mut draft.buffers[tensor.index()];
    buffer.allocated_at = at;
    buffer.may_be_partial = fold.is_some() || region.iter().any(Interval::is_clipped);
    buffer.buffer.shape = region.iter().map(|interval| interval.extent).collect();
    if let Some((dimension, rows)) = fold {
        buffer.buffer.shape[dimension] = rows;
    }
    let moved = |access: &Access| {
        let indices = access.indices.iter().zip(region).map(|(index, interval)| index.sub(&interval.low));
        let mut indices: Vec<IndexExpr> = indices.collect();
        if let Some((dimension, rows)) = fold {
            indices[dimension] = indices[dimension].modulo(&IndexExpr::constant(rows));
        }
        Access { indices, ..access.clone() }
    };
    let dtype = buffer.buffer.dtype;
    for id in users {
        draft.change(id, |statement| {
            statement.replace_loads(&mut |access| {
                (access.tensor == tensor).then(|| tilewright_ir::Expr {
                    dtype,
                    kind: tilewright_ir::ExprKind::Load(moved(access)),
                })
            });
            if statement.target.tensor == tensor {
                statement.target = moved(&statement.target);
            }
        });
    }
}
