//! Values that written-out iterations of a statement have in common.
//!
//! Copies of a stencil read the same neighbours, and compute the same sums of them. Code generation
//! joins those, so they are counted once: values of one shape, that is equal but for the numbers in
//! their subscripts, are as many as there are different places that they are computed for.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use tilewright_ir::{Access, Expr, ExprKind, VarId};

use super::footprint::Region;

/// The share of copies of values that are left, by the place of the expression in memory; 1 for all
/// others.
pub(super) type Shares = HashMap<*const Expr, f64>;

/// A value that depends on data, without where its first load is.
struct Shape<'e> {
    hash: u64,
    anchor: &'e Access,
}

/// Values of one shape.
struct Group {
    members: Vec<*const Expr>,
    region: Region,
    elements: f64,
}

/// The shares of all values in an expression. `trips`: how often written-out loops run.
pub(super) fn shares(value: &Expr, trips: &dyn Fn(VarId) -> f64) -> Shares {
    if !repeats(value) {
        return Shares::new();
    }
    let mut groups: HashMap<u64, Group> = HashMap::new();
    collect(value, trips, &mut groups);
    let mut shares = Shares::new();
    for group in groups.into_values().filter(|group| group.members.len() > 1) {
        let share = (group.region.elements() / group.elements).min(1.0);
        shares.extend(group.members.into_iter().map(|member| (member, share)));
    }
    shares
}

/// Whether some buffer is loaded from twice.
fn repeats(value: &Expr) -> bool {
    let mut tensors = Vec::new();
    super::instructions::loads(value, &mut |access| tensors.push(access.tensor));
    tensors.sort_unstable();
    tensors.windows(2).any(|pair| pair[0] == pair[1])
}

/// Puts a value and all that it is made of into groups; `None` if no load is in it.
fn collect<'e>(
    expr: &'e Expr,
    trips: &dyn Fn(VarId) -> f64,
    groups: &mut HashMap<u64, Group>,
) -> Option<Shape<'e>> {
    let shape = match &expr.kind {
        ExprKind::Load(access) => Shape { hash: hash_load(access), anchor: access },
        _ => {
            let operands: Vec<_> =
                expr.operands().iter().map(|own| (own, collect(own, trips, groups))).collect();
            let anchor = operands.iter().find_map(|(_, shape)| shape.as_ref())?.anchor;
            let mut hasher = DefaultHasher::new();
            hash_operator(expr, &mut hasher);
            for (operand, shape) in &operands {
                match shape {
                    Some(shape) => (shape.hash, distance(anchor, shape.anchor)).hash(&mut hasher),
                    None => operand.hash(&mut hasher),
                }
            }
            Shape { hash: hasher.finish(), anchor }
        }
    };
    let region = Region::of(shape.anchor, trips);
    let elements = region.elements();
    groups
        .entry(shape.hash)
        .and_modify(|group| {
            group.members.push(expr);
            group.region.join(&region);
            group.elements += elements;
        })
        .or_insert_with(|| Group { members: vec![expr], region, elements });
    Some(shape)
}

fn hash_load(access: &Access) -> u64 {
    let mut hasher = DefaultHasher::new();
    access.tensor.hash(&mut hasher);
    access.indices.iter().for_each(|index| index.terms().hash(&mut hasher));
    hasher.finish()
}

fn hash_operator(expr: &Expr, hasher: &mut DefaultHasher) {
    expr.dtype.hash(hasher);
    std::mem::discriminant(&expr.kind).hash(hasher);
    match &expr.kind {
        ExprKind::Unary(op, _) => op.hash(hasher),
        ExprKind::Binary(op, _) => op.hash(hasher),
        ExprKind::Call(function, _) => function.hash(hasher),
        _ => {}
    }
}

/// How far apart the subscripts of two loads are, as numbers.
fn distance(from: &Access, to: &Access) -> Vec<i64> {
    let from = from.indices.iter().map(|index| index.constant_part());
    let to = to.indices.iter().map(|index| index.constant_part());
    to.zip(from).map(|(to, from)| to.wrapping_sub(from)).collect()
}
