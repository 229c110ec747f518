//! `inline P`.

use std::collections::BTreeSet;

use tilewright_ir::nest::Scope;
use tilewright_ir::{Access, Expr, IndexExpr, TensorId, VarId, index::Atom};

use crate::draft::rewrite::size;
use crate::draft::{Draft, Legal, Parent, StatementId};
use crate::illegal::Illegal;

/// Nodes that one expression may grow to.
const MOST_NODES: usize = 20_000;

/// What a tensor's statement computes takes the place of every use.
pub(super) fn inline(draft: &mut Draft, name: &str) -> Legal<()> {
    let refuse = |why: String| Illegal::Inline { tensor: name.to_string(), why };
    if let Some(what) = draft.promoted(name) {
        return Err(refuse(format!("it is {what}; leave out the `promote` that makes it instead")));
    }
    let tensor = draft.find_tensor(name)?;
    let producer = only_producer(draft, tensor).map_err(refuse)?;
    let vars = plain_variables(draft, producer).map_err(refuse)?;
    let readers: Vec<StatementId> =
        draft.readers(Parent::Body, tensor).into_iter().map(|(id, _)| id).collect();
    if let Some(writer) = draft.overwritten_between(&[producer], &readers, None) {
        return Err(refuse(format!("`{writer}` changes what it reads before it is used")));
    }
    let (target, value) = (draft.statement(producer).target.clone(), draft.statement(producer).value.clone());
    let dtype = draft.buffers[tensor.index()].buffer.dtype;
    let mut replace = |access: &Access| {
        (access.tensor == tensor).then(|| at_element(&value, &target, &vars, access).cast(dtype))
    };
    for id in readers {
        draft.change(id, |statement| statement.replace_loads(&mut replace));
        let statement = draft.statement(id);
        if size(&statement.value) > MOST_NODES {
            return Err(refuse(format!("`{}` would grow too large", statement.name)));
        }
    }
    draft.remove(producer);
    draft.buffers[tensor.index()].gone = true;
    Ok(())
}

/// The value for the element that an access names: every variable is its subscript, less what is added to it.
fn at_element(value: &Expr, target: &Access, vars: &[VarId], access: &Access) -> Expr {
    let values: Vec<(VarId, IndexExpr)> = vars
        .iter()
        .zip(target.indices.iter().zip(&access.indices))
        .map(|(var, (own, wanted))| (*var, wanted.offset(-own.constant_part())))
        .collect();
    let mut new = value.clone();
    let mut replace = |atom: &Atom| match atom {
        Atom::Var(var) => values.iter().find(|(own, _)| own == var).map(|(_, value)| value.clone()),
        _ => None,
    };
    new.map_indices(&mut |index| index.substitute(&mut replace));
    new
}

fn only_producer(draft: &Draft, tensor: TensorId) -> Result<StatementId, String> {
    if draft.buffers[tensor.index()].buffer.scope != Scope::Scratch {
        return Err("it is given to or by the caller, so it must be in memory".to_string());
    }
    let writers = draft.writers(Parent::Body, tensor);
    let [producer] = writers.as_slice() else {
        return Err("several statements write it".to_string());
    };
    if draft.statement(*producer).reduction().is_some() {
        return Err("it is a reduction; `compute_at` can bring it near its use".to_string());
    }
    if draft.path(*producer) != draft.own_loops(*producer) {
        return Err("its statement is inside another loop".to_string());
    }
    Ok(*producer)
}

/// The variable of each dimension, if every subscript is a variable of its own, and something added.
fn plain_variables(draft: &Draft, producer: StatementId) -> Result<Vec<VarId>, String> {
    let own = draft.own_loops(producer);
    if own.iter().any(|var| !draft.loop_of(*var).pristine) {
        return Err("steps have changed its own loops: inline it first".to_string());
    }
    let indices = &draft.statement(producer).target.indices;
    let plain =
        |index: &IndexExpr| index.offset(-index.constant_part()).as_var().filter(|var| own.contains(var));
    let vars: Option<Vec<VarId>> = indices.iter().map(plain).collect();
    let each_once = |vars: &Vec<VarId>| {
        vars.len() == own.len() && (1..vars.len()).all(|at| !vars[..at].contains(&vars[at]))
    };
    vars.filter(each_once).ok_or_else(|| "its subscripts are not just its variables".to_string())
}

impl Draft<'_> {
    /// A statement that changes what `producers` read, other than `own`, and that comes after them and not after the last of
    /// `users`.
    pub fn overwritten_between(
        &self,
        producers: &[StatementId],
        users: &[StatementId],
        own: Option<TensorId>,
    ) -> Option<String> {
        let place = |id: &StatementId| self.place_in_order(*id);
        let (from, to) = (producers.iter().map(place).min()?, users.iter().map(place).max()?);
        let is_between = |id: &StatementId| !producers.contains(id) && (&from..=&to).contains(&&place(id));
        let read: BTreeSet<TensorId> =
            producers.iter().flat_map(|id| self.statement(*id).reads()).map(|access| access.tensor).collect();
        let others = read.into_iter().filter(|tensor| Some(*tensor) != own);
        let writers = others.flat_map(|tensor| self.writers(Parent::Body, tensor));
        let first = writers.filter(is_between).min_by_key(place)?;
        Some(self.statement(first).name.to_string())
    }
}
