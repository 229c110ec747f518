//! Applies the step `reorder C.jo, C.ko, C.io`: permutes nested loops, and refuses an order that a
//! dependence forbids.

use tilewright_ir::nest::{Atom, IndexExpr, LoopVarId};

use crate::draft::{Draft, Legal, LoopRole, Node};
use crate::illegal::Illegal;
use crate::step::LoopName;

/// Permutes the loops so that they are nested in the given order. Loops between them keep their
/// places.
pub(super) fn reorder(draft: &mut Draft, names: &[LoopName]) -> Legal<()> {
    let wanted = names.iter().map(|name| draft.find_loop(name)).collect::<Legal<Vec<LoopVarId>>>()?;
    if wanted.len() < 2 {
        return Err(Illegal::BadLoopList("`reorder` takes two loops or more".to_string()));
    }
    if let Some(at) = (1..wanted.len()).find(|at| wanted[..*at].contains(&wanted[*at])) {
        return Err(Illegal::BadLoopList(format!("`{}` is named twice", names[at])));
    }
    let chain = loops_between(draft, &wanted)?;
    let mut next = wanted.iter();
    let new: Vec<LoopVarId> = chain
        .iter()
        .map(
            |var| if wanted.contains(var) { *next.next().expect("every wanted loop is there") } else { *var },
        )
        .collect();
    swap_partial_tiles(draft, &new);
    check(draft, &chain, &new)?;

    let innermost = *chain.last().expect("the chain is not empty");
    let body = draft.body_of(innermost).to_vec();
    let (parent, at) = draft.detach(Node::Loop(chain[0]));
    let nest = draft.wrap_in_loops(&new, body);
    draft.insert(parent, at, nest);
    // Buffers that are allocated at the start of the innermost body stay there.
    let new_innermost = *new.last().expect("the chain is not empty");
    draft.move_allocations(innermost, new_innermost);
    // A guard moves to the innermost of the loops that it depends on. There it also skips code
    // before a loop further in, such as the reset of a reduction.
    let guards: Vec<IndexExpr> =
        new.iter().flat_map(|var| std::mem::take(&mut draft.loops[var.index()].guards)).collect();
    for guard in guards {
        let place = new.iter().rev().find(|var| guard.mentions(**var)).unwrap_or(&new_innermost);
        draft.loops[place.index()].guards.push(guard);
    }
    draft.mark_changed(&wanted);
    new.iter().try_for_each(|var| super::kind::check_nesting(draft, *var))?;
    if chain != new {
        check_joined(draft, &new)?;
        draft.check_private_recurrence(&new)?;
    }
    check_dependences(draft, new[0])
}

/// The loops from the outermost to the innermost of the wanted ones, which must be directly nested.
fn loops_between(draft: &Draft, wanted: &[LoopVarId]) -> Legal<Vec<LoopVarId>> {
    let depth = |var: &LoopVarId| draft.loops_around(*var).len();
    let outermost = *wanted.iter().min_by_key(|var| depth(var)).expect("two loops or more");
    let innermost = *wanted.iter().max_by_key(|var| depth(var)).expect("two loops or more");
    let path = draft.loops_up_to(innermost);
    if let Some(stray) = wanted.iter().find(|var| !path.contains(var)) {
        return Err(Illegal::NotNested {
            outer: draft.qualified_loop_name(*stray),
            inner: draft.qualified_loop_name(innermost),
            between: "neither loop is inside the other".to_string(),
        });
    }
    let from = path.iter().position(|var| *var == outermost).expect("the outermost loop is in the path");
    let chain = path[from..].to_vec();
    for pair in chain.windows(2) {
        check_directly_nested(draft, pair[0], pair[1])?;
    }
    Ok(chain)
}

/// Refuses two loops unless the body of the outer one is just the inner one.
pub(super) fn check_directly_nested(draft: &Draft, outer: LoopVarId, inner: LoopVarId) -> Legal<()> {
    let body = draft.body_of(outer);
    match body {
        [Node::Loop(var)] if *var == inner => Ok(()),
        _ => Err(Illegal::NotNested {
            outer: draft.qualified_loop_name(outer),
            inner: draft.qualified_loop_name(inner),
            between: node_between(draft, body, inner),
        }),
    }
}

fn node_between(draft: &Draft, body: &[Node], inner: LoopVarId) -> String {
    let text = |node: &Node| match node {
        Node::Loop(var) => format!("`{}` is between them", draft.qualified_loop_name(*var)),
        Node::Statement(id) => format!("`{}` is between them", draft.statement(*id).name),
    };
    let other = body.iter().find(|node| **node != Node::Loop(inner));
    other.map_or_else(|| "the body of the outer loop is empty".to_string(), text)
}

/// Lets the two parts of a split that does not divide change places. Before, the last tile is
/// short. After, the first positions in a tile have one tile more than the last positions.
///
/// `for o in 3, for i in min(4, 10 - 4*o)` → `for i in 4, for o in (10 - i + 3) / 4`
fn swap_partial_tiles(draft: &mut Draft, new: &[LoopVarId]) {
    for (at, inner) in new.iter().enumerate() {
        for outer in &new[at + 1..] {
            let Some((tile, rest)) = as_partial_tile(&draft.loop_of(*inner).extent, *outer) else { continue };
            let mut around = draft.ranges_of(&draft.loops_around(new[0]));
            let first = around.simplify(&IndexExpr::constant(tile).minimum(&rest));
            around.add_loop(*inner, &first);
            let tiles =
                rest.sub(&IndexExpr::var(*inner)).offset(tile - 1).floor_div(&IndexExpr::constant(tile));
            draft.loops[inner.index()].extent = first;
            // A part of a part ends where its own part ends, however many iterations are left.
            let own = draft.loop_of(*outer).extent.clone();
            let ends_first = !around.never_negative(&own.sub(&tiles));
            let tiles = if ends_first { own.minimum(&tiles) } else { tiles };
            draft.loops[outer.index()].extent = around.simplify(&tiles);
        }
    }
}

/// Matches the extent `min(tile, rest - tile*outer)` and returns `tile` and `rest`, where `rest`
/// does not depend on the outer loop.
fn as_partial_tile(extent: &IndexExpr, outer: LoopVarId) -> Option<(i64, IndexExpr)> {
    let [term] = extent.terms() else { return None };
    let ([Atom::Min(pair)], 1, 0) = (term.factors.as_slice(), term.coefficient, extent.constant_part())
    else {
        return None;
    };
    let (tile, left) = match (pair.0.as_constant(), pair.1.as_constant()) {
        (Some(tile), None) => (tile, &pair.1),
        (None, Some(tile)) => (tile, &pair.0),
        _ => return None,
    };
    let rest = left.add(&IndexExpr::var(outer).scale(tile));
    (left.mentions(outer) && !rest.mentions(outer)).then_some((tile, rest))
}

/// Checks extents and reductions. `old` and `new` are the loops in their order before and after.
fn check(draft: &Draft, old: &[LoopVarId], new: &[LoopVarId]) -> Legal<()> {
    for (at, var) in new.iter().enumerate() {
        let extent = &draft.loop_of(*var).extent;
        if let Some(outer) = new[at..].iter().find(|outer| extent.mentions(**outer)) {
            return Err(Illegal::DependentExtent {
                outer: draft.qualified_loop_name(*outer),
                inner: draft.qualified_loop_name(*var),
                problem: "the first loop must stay inside the second".to_string(),
            });
        }
    }
    let role = |var: &LoopVarId| draft.loop_of(*var).role;
    let reduced = new.iter().position(|var| role(var) == LoopRole::Reduction).unwrap_or(new.len());
    let inside = new[reduced..].iter().find(|var| role(var) == LoopRole::Ordered);
    match inside {
        Some(ordered) if old != new => Err(Illegal::CarriedDependence {
            name: draft.qualified_loop_name(*ordered),
            why: format!(
                "`{}` must be reduced again in each of its iterations",
                draft.qualified_loop_name(new[reduced])
            ),
        }),
        _ => Ok(()),
    }
}

/// Refuses to move a loop whose iterations keep their order.
fn check_joined(draft: &Draft, loops: &[LoopVarId]) -> Legal<()> {
    match loops.iter().find(|var| draft.loop_of(**var).keeps_order) {
        Some(var) => Err(draft.keeps_order(*var)),
        None => Ok(()),
    }
}

/// Refuses an order that reverses two instances which depend on each other.
fn check_dependences(draft: &Draft, outermost: LoopVarId) -> Legal<()> {
    if !draft.may_carry_dependence(outermost) {
        return Ok(());
    }
    match draft.violated_dependence(&draft.statements_in(draft.body_of(outermost))) {
        Some(why) => Err(Illegal::CarriedDependence { name: draft.qualified_loop_name(outermost), why }),
        None => Ok(()),
    }
}
