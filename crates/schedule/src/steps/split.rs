//! Applies the step `split C.i -> io, ii:12`: replaces a loop by nested loops that together run its
//! iterations.

use tilewright_ir::nest::{Atom, IndexExpr, LoopKind};

use crate::draft::{Draft, Legal, Loop, LoopRole, Node};
use crate::illegal::Illegal;
use crate::step::LoopName;

/// The most loops around one statement. More make no sense, and each makes subscripts longer.
pub(crate) const MOST_LOOPS: usize = 64;
/// The most iterations that all inner parts together may have.
const LARGEST_TILE: i64 = 1 << 40;

/// Splits one loop into several. Where the numbers do not divide, an inner loop has fewer
/// iterations in the last iteration of the loop around it. On a target with fixed trip counts, an
/// inner loop has all iterations, and a guard skips those past the end.
pub(super) fn split(draft: &mut Draft, target: &LoopName, outer: &str, inner: &[(String, i64)]) -> Legal<()> {
    let var = draft.find_loop(target)?;
    let old = draft.loop_of(var).clone();
    check(draft, target, &old, outer, inner)?;
    let ranges = draft.ranges_of(&draft.loops_around(var));

    // From the outside in: `rest` is the number of iterations left for the parts inside the last
    // one.
    let mut rest = old.extent.clone();
    let mut inside_ranges = ranges;
    let mut value = IndexExpr::constant(0);
    let mut parts = Vec::new();
    let mut guards = Vec::new();
    let always_whole = draft.capabilities.fixed_trip_counts;
    let names = std::iter::once(outer).chain(inner.iter().map(|(name, _)| name.as_str()));
    for (at, name) in names.enumerate() {
        let below: i64 = inner[at..].iter().map(|(_, factor)| factor).product();
        let extent = inside_ranges.simplify(&rest.offset(below - 1).floor_div(&IndexExpr::constant(below)));
        let new = draft.add_loop(Loop {
            name: name.to_string(),
            extent: extent.clone(),
            is_unchanged: false,
            slides: false,
            guards: Vec::new(),
            ..old.clone()
        });
        inside_ranges.add_loop(new, &extent);
        let done = IndexExpr::var(new).scale(below);
        rest = inside_ranges.simplify(&rest.sub(&done).minimum(&IndexExpr::constant(below)));
        value = value.add(&done);
        parts.push(new);
        if always_whole && parts.len() == 1 && rest != IndexExpr::constant(below) {
            // The guard compares the offset within this tile, which the inner parts give, with the
            // iterations that the tile has left.
            guards.push((rest.clone(), value.clone()));
            rest = IndexExpr::constant(below);
        }
    }
    let mut guards: Vec<IndexExpr> =
        guards.into_iter().map(|(rest, before)| rest.sub(&value.sub(&before)).offset(-1)).collect();

    let body = draft.body_of(var).to_vec();
    draft.substitute(&body, var, &value);
    let (parent, at) = draft.detach(Node::Loop(var));
    let nest = draft.wrap_in_loops(&parts, body);
    draft.insert(parent, at, nest);
    let innermost = *parts.last().expect("there is at least the outer part");
    let moved =
        |guard: &IndexExpr| guard.substitute(&mut |atom| (*atom == Atom::Var(var)).then(|| value.clone()));
    guards.extend(draft.loop_of(var).guards.iter().map(moved));
    draft.loops[innermost.index()].guards = guards;
    draft.move_attachments(var, innermost);
    draft.replaced_loops.push((target.to_string(), format!("split {target}")));
    Ok(())
}

fn check(draft: &Draft, target: &LoopName, old: &Loop, outer: &str, inner: &[(String, i64)]) -> Legal<()> {
    if old.kind != LoopKind::Serial {
        return Err(Illegal::LoopKind(format!(
            "`{target}` is already {}: split it before that step",
            super::kind::adjective(old.kind)
        )));
    }
    let reduced_outer = old.extent.vars().into_iter().find(|var| {
        let outer = draft.loop_of(*var);
        old.role == LoopRole::Spatial && outer.role == LoopRole::Reduction && outer.owner == old.owner
    });
    if let Some(outer) = reduced_outer {
        return Err(Illegal::DependentExtent {
            outer: draft.qualified_loop_name(outer),
            inner: target.to_string(),
            problem: "the latter is a reduction loop; split before `rfactor`".to_string(),
        });
    }
    if let Some((name, factor)) = inner.iter().find(|(_, factor)| *factor < 1) {
        return Err(Illegal::BadFactor { name: name.clone(), factor: *factor });
    }
    let product = inner.iter().try_fold(1i64, |product, (_, factor)| product.checked_mul(*factor));
    if product.is_none_or(|product| product > LARGEST_TILE) {
        return Err(Illegal::BadLoopList(format!(
            "the inner parts of `{target}` would have more than {LARGEST_TILE} iterations together"
        )));
    }
    let around = draft.path(draft.find_statement(&target.statement)?).len();
    if around + inner.len() > MOST_LOOPS {
        return Err(Illegal::BadLoopList(format!(
            "there would be more than {MOST_LOOPS} loops around `{}`",
            target.statement
        )));
    }
    let names: Vec<&str> =
        std::iter::once(outer).chain(inner.iter().map(|(name, _)| name.as_str())).collect();
    for (at, name) in names.iter().enumerate() {
        if names[..at].contains(name) {
            return Err(Illegal::NameTaken(name.to_string()));
        }
        draft.expect_unused_loop_name(target, name)?;
    }
    Ok(())
}
