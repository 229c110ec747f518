//! Applies the step `fuse C.io, C.jo -> t`: replaces directly nested loops by one loop.

use tilewright_ir::nest::{Atom, IndexExpr, LoopKind, LoopVarId};

use super::kind::adjective;
use crate::draft::{Draft, Legal, Loop, LoopRole, Node};
use crate::illegal::Illegal;
use crate::step::LoopName;

/// Fuses directly nested loops into one.
pub(super) fn fuse(draft: &mut Draft, names: &[LoopName], name: &str) -> Legal<()> {
    let loops = names.iter().map(|name| draft.find_loop(name)).collect::<Legal<Vec<LoopVarId>>>()?;
    let [first, .., last] = loops.as_slice() else {
        return Err(Illegal::BadLoopList("`fuse` takes two loops or more".to_string()));
    };
    let (first, last) = (*first, *last);
    for (at, inner) in loops.iter().enumerate().skip(1) {
        check_pair(draft, loops[at - 1], *inner)?;
        loops[..at].iter().try_for_each(|outer| check_extent(draft, *outer, *inner))?;
    }
    draft.expect_unused_loop_name(&names[0], name)?;

    let own: Vec<IndexExpr> = loops.iter().map(|var| draft.loop_of(*var).extent.clone()).collect();
    let extents = fixed_extents(draft, first, &own);
    let extent = extents.iter().fold(IndexExpr::constant(1), |product, extent| product.mul(extent));
    let role = fused_role(draft, &loops);
    let owner = draft.loop_of(first).owner;
    let new = draft.add_loop(Loop {
        name: name.to_string(),
        extent,
        kind: LoopKind::Serial,
        role,
        owner,
        is_unchanged: false,
        slides: false,
        keeps_order: loops.iter().any(|var| draft.loop_of(*var).keeps_order),
        guards: Vec::new(),
    });
    // The innermost loop is the remainder by its extent, the next one the remainder of the
    // quotient, and so on.
    let mut rest = IndexExpr::var(new);
    let mut values = Vec::new();
    let body = draft.body_of(last).to_vec();
    for (var, extent) in loops.iter().zip(&extents).rev() {
        let value = if *var == first { rest.clone() } else { rest.modulo(extent) };
        draft.substitute(&body, *var, &value);
        values.push(value);
        rest = rest.floor_div(extent);
    }
    values.reverse();
    // The new loop skips the iterations that an old loop would not reach or would skip.
    let short = own.iter().zip(&extents).zip(&values).filter(|((own, extent), _)| own != extent);
    let short = short.map(|((own, _), value)| own.sub(value).offset(-1));
    let in_terms_of_new = |guard: &IndexExpr| {
        guard.substitute(&mut |atom| match atom {
            Atom::Var(var) => loops.iter().position(|own| own == var).map(|at| values[at].clone()),
            _ => None,
        })
    };
    let kept = loops.iter().flat_map(|var| &draft.loop_of(*var).guards).map(in_terms_of_new);
    draft.loops[new.index()].guards = short.chain(kept).collect();
    let (parent, at) = draft.detach(Node::Loop(first));
    let nest = draft.wrap_in_loops(&[new], body);
    draft.insert(parent, at, nest);
    draft.move_attachments(last, new);
    for gone in names {
        draft.replaced_loops.push((gone.to_string(), format!("fuse … -> {name}")));
    }
    Ok(())
}

/// The extents to fuse. On a target with fixed trip counts, a loop that is shorter in the last
/// iteration counts with its largest extent.
fn fixed_extents(draft: &Draft, first: LoopVarId, extents: &[IndexExpr]) -> Vec<IndexExpr> {
    let ranges = draft.ranges_of(&draft.loops_around(first));
    let most = |extent: &IndexExpr| match draft.capabilities.fixed_trip_counts {
        true => ranges.greatest_value(extent).map(IndexExpr::constant),
        false => None,
    };
    extents.iter().map(|extent| most(extent).unwrap_or_else(|| extent.clone())).collect()
}

fn fused_role(draft: &Draft, loops: &[LoopVarId]) -> LoopRole {
    let has = |role| loops.iter().any(|var| draft.loop_of(*var).role == role);
    if has(LoopRole::Ordered) {
        LoopRole::Ordered
    } else if has(LoopRole::Reduction) {
        LoopRole::Reduction
    } else {
        LoopRole::Spatial
    }
}

fn check_extent(draft: &Draft, outer: LoopVarId, inner: LoopVarId) -> Legal<()> {
    if !draft.loop_of(inner).extent.mentions(outer) {
        return Ok(());
    }
    let problem = "they cannot be fused; fuse before the split, or split by a divisor";
    Err(Illegal::DependentExtent {
        outer: draft.qualified_loop_name(outer),
        inner: draft.qualified_loop_name(inner),
        problem: problem.to_string(),
    })
}

fn check_pair(draft: &Draft, outer: LoopVarId, inner: LoopVarId) -> Legal<()> {
    let (outer_text, inner_text) = (draft.qualified_loop_name(outer), draft.qualified_loop_name(inner));
    for var in [outer, inner] {
        if draft.loop_of(var).kind != LoopKind::Serial {
            let kind = adjective(draft.loop_of(var).kind);
            return Err(Illegal::LoopKind(format!(
                "`{}` is already {kind}: fuse it before that step",
                draft.qualified_loop_name(var)
            )));
        }
    }
    super::reorder::check_directly_nested(draft, outer, inner)?;
    let (role, other) = (draft.loop_of(outer).role, draft.loop_of(inner).role);
    if (role == LoopRole::Ordered) != (other == LoopRole::Ordered) {
        let name = if role == LoopRole::Ordered { outer_text } else { inner_text };
        let why = "an ordered loop can only be fused with another ordered loop".to_string();
        return Err(Illegal::CarriedDependence { name, why });
    }
    if draft.has_attachments(outer) {
        return Err(Illegal::LoopKind(format!(
            "a buffer, an accumulator or a prefetch is attached to `{outer_text}`: fuse before that step"
        )));
    }
    Ok(())
}
