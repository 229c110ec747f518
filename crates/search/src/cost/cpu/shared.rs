//! Finds values that unrolled iterations of a statement share.
//!
//! Unrolled copies of a stencil read the same neighbours and compute the same sums of them. Code
//! generation eliminates these duplicates, so they count once. Values have the same shape if they
//! are equal except for the constants in their subscripts. The number of distinct values of one
//! shape is the number of distinct positions for which they are computed.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use tilewright_ir::nest::{Access, Expr, ExprKind, LoopVarId};

use super::footprint::Region;

/// For an expression, identified by its address, the share of its copies that remain; 1 for
/// expressions without an entry.
pub(in crate::cost) type Shares = HashMap<*const Expr, f64>;

/// The shape of a value that depends on memory, without the position of its first load.
struct ValueShape<'e> {
    hash: u64,
    anchor: &'e Access,
}

/// The values of one shape.
struct ValueGroup {
    members: Vec<*const Expr>,
    region: Region,
    elements: f64,
}

/// The shares of all values in an expression. `trips` returns the trip counts of unrolled loops.
pub(in crate::cost) fn shares(value: &Expr, trips: &dyn Fn(LoopVarId) -> f64) -> Shares {
    if !loads_repeatedly(value) {
        return Shares::new();
    }
    let mut groups: HashMap<u64, ValueGroup> = HashMap::new();
    collect(value, trips, &mut groups);
    let mut shares = Shares::new();
    for group in groups.into_values().filter(|group| group.members.len() > 1) {
        let share = (group.region.elements() / group.elements).min(1.0);
        shares.extend(group.members.into_iter().map(|member| (member, share)));
    }
    shares
}

/// Returns true when the value loads from some buffer more than once.
fn loads_repeatedly(value: &Expr) -> bool {
    let mut tensors = Vec::new();
    super::instructions::visit_loads(value, &mut |access| tensors.push(access.tensor));
    tensors.sort_unstable();
    tensors.windows(2).any(|pair| pair[0] == pair[1])
}

/// Adds a value and its operands to groups. Returns `None` if the value contains no load.
fn collect<'e>(
    expr: &'e Expr,
    trips: &dyn Fn(LoopVarId) -> f64,
    groups: &mut HashMap<u64, ValueGroup>,
) -> Option<ValueShape<'e>> {
    let shape = match &expr.kind {
        ExprKind::Load(access) => ValueShape { hash: hash_load(access), anchor: access },
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
            ValueShape { hash: hasher.finish(), anchor }
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
        .or_insert_with(|| ValueGroup { members: vec![expr], region, elements });
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

/// The differences between the constant parts of the subscripts of two loads.
fn distance(from: &Access, to: &Access) -> Vec<i64> {
    let from = from.indices.iter().map(|index| index.constant_part());
    let to = to.indices.iter().map(|index| index.constant_part());
    to.zip(from).map(|(to, from)| to.wrapping_sub(from)).collect()
}
