//! Applies the step `inline P`: replaces every use of a tensor by the value that its statement
//! computes, and removes the statement.

use tilewright_ir::nest::{Access, Atom, BufferId, Expr, IndexExpr, LoopVarId, Scope};

use crate::draft::value_size::nodes_with_loads_replaced;
use crate::draft::{Draft, Instance, Legal, Parent, Statement, StatementId};
use crate::illegal::Illegal;

/// The most nodes that one value may grow to, with those of its subscripts.
const MOST_NODES: usize = 30_000;

/// Replaces every use of a tensor by the value that its statement computes.
pub(super) fn inline(draft: &mut Draft, name: &str) -> Legal<()> {
    let refuse = |why: String| Illegal::Inline { tensor: name.to_string(), why };
    if let Some(what) = draft.describe_promoted(name) {
        return Err(refuse(format!("it is {what}; leave out the `promote` that makes it instead")));
    }
    let tensor = draft.find_tensor(name)?;
    let producer = only_producer(draft, tensor).map_err(refuse)?;
    let vars = plain_variables(draft, producer).map_err(refuse)?;
    let readers: Vec<StatementId> =
        draft.readers(Parent::Body, tensor).into_iter().map(|(id, _)| id).collect();
    let needs_check = draft.reads_tensor_changed_later(producer);
    let (target, value) = (draft.statement(producer).target.clone(), draft.statement(producer).value.clone());
    let dtype = draft.buffers[tensor.index()].buffer.dtype;
    let sizes =
        |id: &&StatementId| nodes_with_loads_replaced(&draft.statement(**id).value, tensor, &value, &vars);
    if let Some(large) = readers.iter().find(|id| sizes(id) > MOST_NODES) {
        let name = &draft.statement(*large).name;
        return Err(refuse(format!("the value of `{name}` would have more than {MOST_NODES} nodes")));
    }
    let mut replace = |access: &Access| {
        (access.tensor == tensor).then(|| value_at_element(&value, &target, &vars, access).cast(dtype))
    };
    for id in readers.iter().copied() {
        if needs_check {
            record_instances(draft, id, tensor, (producer, &vars));
        }
        draft.change(id, |statement| statement.replace_loads(&mut replace));
    }
    draft.remove_statement(producer);
    draft.buffers[tensor.index()].is_removed = true;
    match needs_check.then(|| draft.violated_dependence(&readers)).flatten() {
        Some(broken) => Err(refuse(broken)),
        None => Ok(()),
    }
}

/// Records that a statement executes, for each of its reads of the tensor, the producer instances
/// that compute the element.
fn record_instances(
    draft: &mut Draft,
    id: StatementId,
    tensor: BufferId,
    (producer, vars): (StatementId, &[LoopVarId]),
) {
    let Statement { target, instances, .. } = draft.statement(producer).clone();
    let reads = draft.statement(id).reads().into_iter().filter(|read| read.tensor == tensor);
    let mut new: Vec<Instance> = Vec::new();
    for read in reads {
        let values = values_at(&target, vars, &read);
        for mut instance in instances.iter().cloned() {
            instance.map_indices(&mut |index| index.substitute(&mut |atom| value_of(&values, atom)));
            if !new.contains(&instance) {
                new.push(instance);
            }
        }
    }
    draft.change(id, |statement| {
        for instance in new {
            if !statement.instances.contains(&instance) {
                statement.instances.push(instance);
            }
        }
    });
}

/// The producer's value for the element that an access names.
fn value_at_element(value: &Expr, target: &Access, vars: &[LoopVarId], access: &Access) -> Expr {
    let values = values_at(target, vars, access);
    let mut new = value.clone();
    new.map_indices(&mut |index| index.substitute(&mut |atom| value_of(&values, atom)));
    new
}

/// The values of a producer's variables for the element that an access names. Each is the access's
/// subscript minus the constant that the producer's own subscript adds.
fn values_at(target: &Access, vars: &[LoopVarId], access: &Access) -> Vec<(LoopVarId, IndexExpr)> {
    let subscripts = target.indices.iter().zip(&access.indices);
    let value = |(own, wanted): (&IndexExpr, &IndexExpr)| wanted.offset(-own.constant_part());
    vars.iter().copied().zip(subscripts.map(value)).collect()
}

fn value_of(values: &[(LoopVarId, IndexExpr)], atom: &Atom) -> Option<IndexExpr> {
    match atom {
        Atom::Var(var) => values.iter().find(|(own, _)| own == var).map(|(_, value)| value.clone()),
        _ => None,
    }
}

fn only_producer(draft: &Draft, tensor: BufferId) -> Result<StatementId, String> {
    if draft.buffers[tensor.index()].buffer.scope != Scope::Scratch {
        return Err("it is an argument of the program, so it must be in memory".to_string());
    }
    let writers = draft.writers(Parent::Body, tensor);
    let [producer] = writers.as_slice() else {
        return Err("several statements write it".to_string());
    };
    if draft.statement(*producer).reduction().is_some() {
        return Err("a reduction computes it: use `compute_at` instead".to_string());
    }
    if draft.path(*producer) != draft.loops_owned_by(*producer) {
        return Err("its statement is inside another loop".to_string());
    }
    Ok(*producer)
}

/// The variable of each dimension, if every subscript is a variable of its own plus a constant.
fn plain_variables(draft: &Draft, producer: StatementId) -> Result<Vec<LoopVarId>, String> {
    let own = draft.loops_owned_by(producer);
    if own.iter().any(|var| !draft.loop_of(*var).is_unchanged) {
        return Err("earlier steps have changed its own loops: inline it first".to_string());
    }
    let indices = &draft.statement(producer).target.indices;
    let plain =
        |index: &IndexExpr| index.offset(-index.constant_part()).as_var().filter(|var| own.contains(var));
    let vars: Option<Vec<LoopVarId>> = indices.iter().map(plain).collect();
    let each_once = |vars: &Vec<LoopVarId>| {
        vars.len() == own.len() && (1..vars.len()).all(|at| !vars[..at].contains(&vars[at]))
    };
    vars.filter(each_once).ok_or_else(|| {
        "the subscripts of its statement are not different variables plus constants".to_string()
    })
}
