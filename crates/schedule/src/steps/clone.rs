//! Applies the step `clone P -> Q for C`: computes a temporary a second time, for some of the
//! statements that read it.
//!
//! The new statement follows the old one and computes the same values into a buffer of its own. So
//! it needs no check here. Steps that move or inline it check it as any statement.

use tilewright_ir::Update;
use tilewright_ir::nest::{Access, Buffer, BufferId, Expr, ExprKind, IndexExpr, LoopKind, LoopVarId, Scope};

use crate::draft::{Draft, Legal, Loop, Node, Parent, Statement, StatementId, replace_var};
use crate::illegal::Illegal;
use crate::step::StatementName;

/// Computes a tensor again in the buffer `name`, and lets these readers use the buffer.
pub(super) fn clone(draft: &mut Draft, name: &str, (new, readers): (&str, &[StatementName])) -> Legal<()> {
    let refuse = |why: String| Illegal::Clone { tensor: name.to_string(), why };
    if let Some(what) = draft.describe_promoted(name) {
        return Err(refuse(format!("it is {what}")));
    }
    let tensor = draft.find_tensor(name)?;
    draft.expect_unused_name(new)?;
    let producer = cloneable_producer(draft, tensor).map_err(refuse)?;
    let all: Vec<StatementId> = draft.readers(Parent::Body, tensor).into_iter().map(|(id, _)| id).collect();
    let readers =
        readers.iter().map(|reader| draft.find_statement(reader)).collect::<Legal<Vec<StatementId>>>()?;
    for id in &readers {
        if !all.contains(id) {
            return Err(refuse(format!("`{}` does not read it", draft.statement(*id).name)));
        }
    }
    if all.iter().all(|id| readers.contains(id)) {
        return Err(refuse("no statement would be left that reads the first one".to_string()));
    }
    let Buffer { dtype, shape, .. } = draft.buffers[tensor.index()].buffer.clone();
    let copy = Buffer { name: new.to_string(), dtype, shape, scope: Scope::Scratch };
    let copy = draft.add_buffer(copy, None)?;
    add_statement(draft, producer, copy);
    let mut from_copy = |read: &Access| {
        let access = Access { tensor: copy, ..read.clone() };
        (read.tensor == tensor).then_some(Expr { dtype, kind: ExprKind::Load(access) })
    };
    for id in readers {
        draft.change(id, |statement| statement.replace_loads(&mut from_copy));
    }
    Ok(())
}

/// The statement that computes a tensor, if it can be repeated as it is.
fn cloneable_producer(draft: &Draft, tensor: BufferId) -> Result<StatementId, String> {
    if draft.buffers[tensor.index()].buffer.scope != Scope::Scratch {
        return Err("it is an argument of the program, so it must be in memory".to_string());
    }
    let writers = draft.writers(Parent::Body, tensor);
    let [producer] = writers.as_slice() else {
        return Err("several statements write it".to_string());
    };
    let own = draft.loops_owned_by(*producer);
    if draft.path(*producer) != own {
        return Err("its statement is inside another loop".to_string());
    }
    let statement = draft.statement(*producer);
    let is_changed =
        |var: &LoopVarId| !draft.loop_of(*var).is_unchanged || draft.loop_of(*var).kind != LoopKind::Serial;
    if statement.accumulator.is_some() || own.iter().any(is_changed) {
        return Err("earlier steps have changed its own loops: clone it first".to_string());
    }
    let reads_itself = statement.reads().iter().any(|read| read.tensor == tensor);
    if reads_itself || matches!(statement.update, Update::Reduce { reset: false, .. }) {
        return Err("it begins with values that the caller supplies, or reads its own results".to_string());
    }
    Ok(*producer)
}

/// Adds, after a statement, one that computes the same into another buffer.
fn add_statement(draft: &mut Draft, producer: StatementId, target: BufferId) {
    let id = StatementId(draft.statements.len());
    let old_loops = draft.loops_owned_by(producer);
    let mut copies: Vec<(LoopVarId, LoopVarId)> = Vec::new();
    for old in old_loops {
        let own = draft.loop_of(old).clone();
        let extent = renamed(&own.extent, &copies);
        copies.push((old, draft.add_loop(Loop { owner: Some(id), extent, ..own })));
    }
    let mut statement: Statement = draft.statement(producer).clone();
    statement.name = StatementName::first(&draft.buffers[target.index()].buffer.name);
    statement.map_indices(&mut |index| renamed(index, &copies));
    statement.target.tensor = target;
    draft.add_statement(statement);
    let vars: Vec<LoopVarId> = copies.iter().map(|(_, new)| *new).collect();
    let nodes = draft.wrap_in_loops(&vars, vec![Node::Statement(id)]);
    let outermost = copies.first().map_or(Node::Statement(producer), |(old, _)| Node::Loop(*old));
    let (parent, at) = draft.detach(outermost);
    draft.insert(parent, at, [vec![outermost], nodes].concat());
}

fn renamed(index: &IndexExpr, copies: &[(LoopVarId, LoopVarId)]) -> IndexExpr {
    copies.iter().fold(index.clone(), |index, (from, to)| replace_var(&index, *from, *to))
}
