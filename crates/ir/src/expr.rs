//! Defines [`Expr`], the value that a statement computes at one point of the box of its variables,
//! and [`Origin`], the piece of the source text that it came from.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use serde::{Deserialize, Serialize};

use crate::dtype::DType;
use crate::ids::{Ids, InProgram};
use crate::index::{Atom, IndexExpr};
use crate::number::Number;
use crate::operators::{BinaryOp, Builtin, UnaryOp};
use crate::program::ScalarId;

/// The byte range of the source text that a piece of the program came from.
///
/// Only messages use origins: two expressions that differ in nothing else are equal.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Origin {
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Origin {}
impl Hash for Origin {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}
impl PartialOrd for Origin {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Origin {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

/// A typed value expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Expr<I: Ids = InProgram> {
    /// The type of the value.
    pub dtype: DType,
    /// How the value is computed.
    pub kind: ExprKind<I>,
}

/// The kinds of value expression. Operands have the type of the result unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub enum ExprKind<I: Ids = InProgram> {
    /// A constant.
    Literal(Number),
    /// An index expression used as a value: evaluated exactly, then converted to the node's type.
    Index(Box<IndexExpr<I>>),
    /// A scalar parameter.
    Scalar(ScalarId),
    /// One element of a tensor.
    Load(Access<I>),
    /// A unary operation.
    Unary(UnaryOp, Box<Expr<I>>),
    /// A binary operation. Comparisons take two operands of one type and return `bool`; `&&` and
    /// `||` are lazy.
    Binary(BinaryOp, Box<[Expr<I>; 2]>),
    /// `condition ? then : otherwise`; only the chosen side is evaluated.
    Select(Box<[Expr<I>; 3]>),
    /// A mathematical function. Its arguments have the type of the result, except for the
    /// predicates such as `isnan`.
    Call(Builtin, Vec<Expr<I>>),
    /// A conversion to the node's type from another type.
    Cast(Box<Expr<I>>),
}

/// A tensor with one subscript per dimension.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Access<I: Ids = InProgram> {
    /// The tensor.
    pub tensor: I::Tensor,
    /// One subscript per dimension.
    pub indices: Vec<IndexExpr<I>>,
    /// Where the access was written.
    pub origin: Origin,
}

impl<I: Ids> Access<I> {
    /// The subscripts in the first lane of a vector loop over `lane`: a last subscript `e + lane`
    /// becomes `e`. All other subscripts stay as they are, also those that mention `lane`.
    pub fn subscripts_of_first_lane(&self, lane: I::Var) -> Vec<IndexExpr<I>> {
        let mut subscripts = self.indices.clone();
        if let Some(last) = subscripts.last_mut()
            && let Some((coefficient, rest)) = last.split_on(&Atom::Var(lane))
            && coefficient.as_constant() == Some(1)
        {
            *last = rest;
        }
        subscripts
    }
}

impl<I: Ids> Expr<I> {
    /// A constant of the given type.
    pub fn literal(dtype: DType, number: Number) -> Expr<I> {
        Expr { dtype, kind: ExprKind::Literal(number.convert(dtype)) }
    }

    /// `lhs op rhs`, with the result type of the operator.
    pub fn binary(op: BinaryOp, lhs: Expr<I>, rhs: Expr<I>) -> Expr<I> {
        let dtype = if op.is_comparison() || op.is_logical() { DType::Bool } else { lhs.dtype };
        Expr { dtype, kind: ExprKind::Binary(op, Box::new([lhs, rhs])) }
    }

    /// Converts the value to `dtype`, unless it already has that type.
    pub fn cast(self, dtype: DType) -> Expr<I> {
        if self.dtype == dtype {
            return self;
        }
        match self.kind {
            ExprKind::Literal(number) => Expr::literal(dtype, number),
            // An index value is an exact int64, so one conversion straight to the wanted type
            // suffices. A narrower type wraps.
            ExprKind::Index(index) if self.dtype == DType::Int64 => {
                Expr { dtype, kind: ExprKind::Index(index) }
            }
            kind => Expr { dtype, kind: ExprKind::Cast(Box::new(Expr { dtype: self.dtype, kind })) },
        }
    }

    /// The operands, in order.
    pub fn operands(&self) -> &[Expr<I>] {
        match &self.kind {
            ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Load(_) => &[],
            ExprKind::Unary(_, operand) | ExprKind::Cast(operand) => std::slice::from_ref(operand),
            ExprKind::Binary(_, operands) => operands.as_slice(),
            ExprKind::Select(operands) => operands.as_slice(),
            ExprKind::Call(_, operands) => operands,
        }
    }

    /// The operands, in order, for modification.
    pub fn operands_mut(&mut self) -> &mut [Expr<I>] {
        match &mut self.kind {
            ExprKind::Literal(_) | ExprKind::Index(_) | ExprKind::Scalar(_) | ExprKind::Load(_) => &mut [],
            ExprKind::Unary(_, operand) | ExprKind::Cast(operand) => std::slice::from_mut(operand),
            ExprKind::Binary(_, operands) => operands.as_mut_slice(),
            ExprKind::Select(operands) => operands.as_mut_slice(),
            ExprKind::Call(_, operands) => operands,
        }
    }

    /// The elements that every evaluation loads, whichever way the conditions inside evaluate, each
    /// once. Loads inside subscripts are not included.
    pub fn certain_loads(&self) -> Vec<&Access<I>> {
        let mut found = Vec::new();
        self.add_certain_loads(&mut found);
        found
    }

    fn add_certain_loads<'e>(&'e self, found: &mut Vec<&'e Access<I>>) {
        match &self.kind {
            ExprKind::Load(access) if !found.contains(&access) => found.push(access),
            ExprKind::Select(parts) => parts[0].add_certain_loads(found),
            // The right operand is evaluated only where the left operand does not decide the
            // result.
            ExprKind::Binary(op, pair) if op.is_logical() => pair[0].add_certain_loads(found),
            _ => self.operands().iter().for_each(|operand| operand.add_certain_loads(found)),
        }
    }

    /// Calls `each` on the loads of the value, without those inside subscripts.
    pub fn visit_loads<'e>(&'e self, each: &mut dyn FnMut(&'e Access<I>)) {
        match &self.kind {
            ExprKind::Load(access) => each(access),
            _ => self.operands().iter().for_each(|operand| operand.visit_loads(each)),
        }
    }

    /// Changes the loads of the value, but none inside subscripts.
    pub fn edit_loads(&mut self, edit: &mut dyn FnMut(&mut Access<I>)) {
        match &mut self.kind {
            ExprKind::Load(access) => edit(access),
            _ => self.operands_mut().iter_mut().for_each(|operand| operand.edit_loads(edit)),
        }
    }

    /// Calls `each` on every access that the value depends on, those inside a load's subscripts
    /// before the load.
    pub fn visit_reads<'e>(&'e self, each: &mut dyn FnMut(&'e Access<I>)) {
        match &self.kind {
            ExprKind::Load(access) => {
                access.indices.iter().for_each(|index| index.visit_reads(each));
                each(access);
            }
            ExprKind::Index(index) => index.visit_reads(each),
            _ => self.operands().iter().for_each(|operand| operand.visit_reads(each)),
        }
    }

    /// Changes every access that the value depends on, those inside a load's subscripts before the
    /// load.
    pub fn edit_reads(&mut self, edit: &mut dyn FnMut(&mut Access<I>)) {
        match &mut self.kind {
            ExprKind::Load(access) => {
                access.indices.iter_mut().for_each(|index| index.edit_reads(edit));
                edit(access);
            }
            ExprKind::Index(index) => index.edit_reads(edit),
            _ => self.operands_mut().iter_mut().for_each(|operand| operand.edit_reads(edit)),
        }
    }

    /// Calls `each` on every subscript and index value. The method does not descend into the
    /// data-dependent parts of subscripts.
    pub fn visit_indices<'e>(&'e self, each: &mut dyn FnMut(&'e IndexExpr<I>)) {
        match &self.kind {
            ExprKind::Index(index) => each(index),
            ExprKind::Load(access) => access.indices.iter().for_each(each),
            _ => self.operands().iter().for_each(|operand| operand.visit_indices(each)),
        }
    }

    /// Returns true when some subscript or index value satisfies the predicate.
    pub fn any_index(&self, test: &mut dyn FnMut(&IndexExpr<I>) -> bool) -> bool {
        match &self.kind {
            ExprKind::Index(index) => test(index),
            ExprKind::Load(access) => access.indices.iter().any(test),
            _ => self.operands().iter().any(|operand| operand.any_index(test)),
        }
    }

    /// Returns true when the variable occurs in any subscript or index value.
    pub fn mentions(&self, var: I::Var) -> bool {
        self.any_index(&mut |index| index.mentions(var))
    }

    /// Replaces every subscript and index value by the result of `map`. The method does not descend
    /// into the data-dependent parts of subscripts.
    pub fn map_indices(&mut self, map: &mut impl FnMut(&IndexExpr<I>) -> IndexExpr<I>) {
        match &mut self.kind {
            ExprKind::Index(index) => **index = map(index),
            ExprKind::Load(access) => {
                for index in &mut access.indices {
                    *index = map(index);
                }
            }
            _ => {
                for operand in self.operands_mut() {
                    operand.map_indices(map);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::TensorId;

    #[test]
    fn guarded_loads_are_not_certain() {
        let access =
            |tensor| Access { tensor: TensorId(tensor), indices: Vec::new(), origin: Origin::default() };
        let load = |tensor| -> Expr { Expr { dtype: DType::Bool, kind: ExprKind::Load(access(tensor)) } };
        let both = |op, left, right| Expr::binary(op, left, right);
        let chosen = Expr {
            dtype: DType::Bool,
            kind: ExprKind::Select(Box::new([both(BinaryOp::And, load(0), load(1)), load(2), load(3)])),
        };
        let all = both(
            BinaryOp::Equal,
            both(BinaryOp::Or, load(4), load(5)),
            both(BinaryOp::Equal, chosen, load(4)),
        );
        let tensors: Vec<u32> = all.certain_loads().iter().map(|load| load.tensor.0).collect();
        assert_eq!(tensors, [4, 0]);
    }

    #[test]
    fn a_narrow_index_stays_narrow() {
        let large = Box::new(<IndexExpr>::constant(1 << 40));
        let index = |dtype| Expr { dtype, kind: ExprKind::Index(large.clone()) };
        assert_eq!(index(DType::Int64).cast(DType::Float32), index(DType::Float32));
        let widened = index(DType::Int32).cast(DType::Int64);
        assert_eq!(widened.kind, ExprKind::Cast(Box::new(index(DType::Int32))));
    }
}
