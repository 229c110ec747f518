//! Applies the step `compute_with A.y, B.y`: joins two loops, so that an iteration of the one
//! follows each iteration of the other.
//!
//! The loops are siblings: no loop is around one of them and not around the other. The joined loop
//! has enough iterations for both, and a part that does not run in all of them gets a guard.

use tilewright_ir::nest::{Atom, IndexExpr, LoopKind, LoopVarId};

use super::kind::adjective;
use crate::draft::{Draft, Legal, Loop, LoopRole, Node, Parent, StatementId};
use crate::illegal::Illegal;
use crate::legality::Meeting;
use crate::step::LoopName;

/// One of the two loops that are joined.
struct Part {
    var: LoopVarId,
    /// The iteration of the joined loop in which this loop begins.
    start: i64,
    statements: Vec<StatementId>,
}

/// Joins the loop `target` with the loop `with`, whose place and name the joined loop has. The
/// iterations of `target` run `ahead` iterations before those of `with`.
pub(super) fn compute_with(draft: &mut Draft, target: &LoopName, with: &LoopName, ahead: i64) -> Legal<()> {
    let refuse =
        |why: String| Illegal::ComputeWith { target: target.to_string(), with: with.to_string(), why };
    let (moved, host) = (draft.find_loop(target)?, draft.find_loop(with)?);
    let parent = siblings(draft, moved, host).map_err(refuse)?;
    for var in [moved, host] {
        check(draft, var).map_err(refuse)?;
    }
    if ahead < 0 {
        return Err(refuse("the number of iterations ahead is negative".to_string()));
    }
    let position = |var: LoopVarId| {
        draft.children(parent).iter().position(|node| *node == Node::Loop(var)).expect("siblings have places")
    };
    let is_first = position(moved) < position(host);
    check_between(draft, parent, moved, (position(moved), position(host))).map_err(refuse)?;

    let part = |var: LoopVarId, start: i64| {
        let statements = draft.statements_in(draft.body_of(var));
        Part { var, start, statements }
    };
    let mut parts = [part(moved, 0), part(host, ahead)];
    if !is_first {
        parts.reverse();
    }
    let joined = join(draft, parent, host, &parts);
    draft.replaced_loops.push((target.to_string(), format!("compute_with {target}, {with}")));
    let resets_all = |id: &&StatementId| resets_whole_tensor(draft, **id);
    if let Some(id) = parts.iter().flat_map(|part| &part.statements).find(resets_all) {
        let name = &draft.statement(*id).name;
        return Err(refuse(format!(
            "`{name}` sets all of its tensor to the neutral element in each iteration"
        )));
    }
    match draft.meeting(&parts[0].statements, &parts[1].statements, joined) {
        Meeting::SameIteration => Ok(()),
        Meeting::InOrder => {
            draft.loops[joined.index()].keeps_order = true;
            Ok(())
        }
        Meeting::OutOfOrder(why) => Err(refuse(why)),
    }
}

/// The parent of both loops.
fn siblings(draft: &Draft, moved: LoopVarId, host: LoopVarId) -> Result<Parent, String> {
    if moved == host {
        return Err("they are one loop already".to_string());
    }
    let parent = draft.parent(Node::Loop(host));
    if draft.parent(Node::Loop(moved)) != parent || parent == Parent::Setup {
        let why = "they are not directly in the same loop: join the loops around them first. Where those \
                   have different numbers of iterations, a condition is around one of the two";
        return Err(why.to_string());
    }
    Ok(parent)
}

/// Checks that the iterations of a loop can take turns with those of another.
fn check(draft: &Draft, var: LoopVarId) -> Result<(), String> {
    let own = draft.loop_of(var);
    let name = draft.qualified_loop_name(var);
    if own.kind != LoopKind::Serial {
        return Err(format!("`{name}` is already {}: join it before that step", adjective(own.kind)));
    }
    let statements = draft.statements_in(draft.body_of(var));
    let is_reduced = |id: &StatementId| draft.is_reduced_by(var, *id);
    if own.role == LoopRole::Reduction || statements.iter().any(is_reduced) {
        return Err(format!("`{name}` is a loop of a reduction"));
    }
    let is_kept = draft.kept_parts.iter().any(|kept| kept.loops.contains(&var));
    let is_pipelined = draft.pipelines.iter().any(|(own, _)| *own == var);
    if own.slides || is_kept || is_pipelined {
        return Err(format!(
            "the iterations of `{name}` already follow each other: join it before that step"
        ));
    }
    let around = draft.loops_around(var);
    let is_promoted_outside =
        |id: &&StatementId| draft.accumulates_at(**id).is_some_and(|at| around.contains(&at));
    match statements.iter().find(is_promoted_outside) {
        Some(id) => {
            Err(format!("the result of `{}` is promoted outside of that loop", draft.statement(*id).name))
        }
        None => Ok(()),
    }
}

/// Checks the statements between the places of the two loops, which the moved loop passes.
fn check_between(
    draft: &Draft,
    parent: Parent,
    moved: LoopVarId,
    (from, to): (usize, usize),
) -> Result<(), String> {
    let between = &draft.children(parent)[from.min(to) + 1..from.max(to)];
    let own = draft.statements_in(draft.body_of(moved));
    for other in draft.statements_in(between) {
        if let Some(own) = own.iter().find(|own| draft.share_changed_tensor(**own, other)) {
            let (own, other) = (&draft.statement(*own).name, &draft.statement(other).name);
            return Err(format!("`{other}` is between them, and it and `{own}` use the same tensor"));
        }
    }
    Ok(())
}

/// Returns true for a scatter that cannot set just the rows of one iteration to the neutral
/// element.
fn resets_whole_tensor(draft: &Draft, id: StatementId) -> bool {
    let resets = draft.statement(id).reduction().is_some_and(|(_, resets)| resets);
    resets && draft.is_scatter(id) && !draft.resets_rows(id)
}

/// Replaces both loops by one, at the place of the host.
fn join(draft: &mut Draft, parent: Parent, host: LoopVarId, parts: &[Part; 2]) -> LoopVarId {
    let ranges = draft.ranges_of(&draft.loops_around(host));
    let ends = parts.each_ref().map(|part| draft.loop_of(part.var).extent.offset(part.start));
    let extent = ranges.simplify(&ends[0].maximum(&ends[1]));
    let olds = parts.each_ref().map(|part| draft.loop_of(part.var).clone());
    let is_ordered = olds.iter().any(|old| old.role == LoopRole::Ordered);
    let joined = draft.add_loop(Loop {
        name: draft.loop_of(host).name.clone(),
        extent: extent.clone(),
        kind: LoopKind::Serial,
        role: if is_ordered { LoopRole::Ordered } else { LoopRole::Spatial },
        owner: if is_ordered { None } else { draft.loop_of(host).owner },
        is_unchanged: false,
        slides: false,
        keeps_order: olds.iter().any(|old| old.keeps_order),
        guards: Vec::new(),
    });
    let mut body = Vec::new();
    for (part, end) in parts.iter().zip(&ends) {
        let nodes = draft.body_of(part.var).to_vec();
        let iteration = IndexExpr::var(joined).offset(-part.start);
        draft.substitute(&nodes, part.var, &iteration);
        let mut guards: Vec<IndexExpr> = Vec::new();
        if part.start > 0 {
            guards.push(iteration.clone());
        }
        if !ranges.never_negative(&end.sub(&extent)) {
            guards.push(end.sub(&IndexExpr::var(joined)).offset(-1));
        }
        let kept = draft.loop_of(part.var).guards.iter().map(|guard| {
            guard.substitute(&mut |atom| (*atom == Atom::Var(part.var)).then(|| iteration.clone()))
        });
        guards.extend(kept);
        body.extend(guarded(draft, part, guards, nodes));
    }
    // The place of the host is still known once the moved loop has left.
    for part in parts.iter().filter(|part| part.var != host) {
        draft.detach(Node::Loop(part.var));
    }
    let (_, at) = draft.detach(Node::Loop(host));
    let nest = draft.wrap_in_loops(&[joined], body);
    draft.insert(parent, at, nest);
    let inside = draft.loops_in(draft.body_of(joined));
    draft.mark_changed(&inside);
    for part in parts {
        draft.move_attachments(part.var, joined);
    }
    joined
}

/// Puts nodes under guards, as a loop of one iteration. It has no name, so that no step changes it.
fn guarded(draft: &mut Draft, part: &Part, guards: Vec<IndexExpr>, nodes: Vec<Node>) -> Vec<Node> {
    if guards.is_empty() {
        return nodes;
    }
    let once = draft.add_loop(Loop {
        name: String::new(),
        extent: IndexExpr::constant(1),
        kind: LoopKind::Serial,
        role: LoopRole::Spatial,
        owner: part.statements.first().copied(),
        is_unchanged: false,
        slides: false,
        keeps_order: false,
        guards,
    });
    draft.wrap_in_loops(&[once], nodes)
}
