//! The ids in expressions: one set of ids for programs, another one for loop nests.
//!
//! The expressions of a program refer to tensors ([`TensorId`]) and index variables ([`VarId`]).
//! The expressions of a loop nest refer to buffers ([`BufferId`]) and loop variables
//! ([`LoopVarId`]). Both use the same expression types, with the set of ids as a type parameter:
//! [`InProgram`], which is the default, or [`InNest`]. The type checker therefore rejects a mixture
//! of the two. [`crate::nest`] has short names for the expression types of loop nests.
//! [`IndexExpr::map_ids`] and [`Expr::map_ids`] translate an expression to other ids.
//!
//! ```compile_fail,E0308
//! use tilewright_ir::{IndexExpr, VarId, nest};
//!
//! let variable = IndexExpr::var(VarId(0));
//! let sum = nest::IndexExpr::constant(1).add(&variable); // does not compile: two sets of ids
//! ```
//!
//! Scalars have the same ids in both sets, because a loop nest has the scalars of its program.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::expr::{Access, Expr, ExprKind};
use crate::index::{Atom, Data, IndexExpr};
use crate::nest::{BufferId, LoopVarId};
use crate::program::{TensorId, VarId};

/// An id: the position of an entry in a table.
pub trait Id: Copy + Debug + Eq + Ord + Hash + Serialize + DeserializeOwned + 'static {
    /// The position in the table that the id points into.
    fn index(self) -> usize;
}

/// A set of ids. The supertraits let types with a set as their parameter derive these traits.
pub trait Ids: sealed::Sealed + Copy + Debug + Eq + Ord + Hash + Default + 'static {
    /// The id of the tensor or buffer that an access names.
    type Tensor: Id;
    /// The id of a variable in a subscript.
    type Var: Id;
}

/// The ids of a [`Program`](crate::Program).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct InProgram;

/// The ids of a [`LoopNest`](crate::LoopNest).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct InNest;

impl Ids for InProgram {
    type Tensor = TensorId;
    type Var = VarId;
}

impl Ids for InNest {
    type Tensor = BufferId;
    type Var = LoopVarId;
}

mod sealed {
    /// Only this module names sets of ids.
    pub trait Sealed {}
    impl Sealed for super::InProgram {}
    impl Sealed for super::InNest {}
}

impl<I: Ids> IndexExpr<I> {
    /// The same expression with other ids, in normal form. `tensor` maps what accesses name, and
    /// `var` returns the value of a variable. Returns `None` where one of them does.
    pub fn map_ids<J: Ids>(
        &self,
        tensor: &impl Fn(I::Tensor) -> Option<J::Tensor>,
        var: &impl Fn(I::Var) -> Option<IndexExpr<J>>,
    ) -> Option<IndexExpr<J>> {
        self.map_leaves(&|atom| match atom {
            Atom::Var(own) => var(*own),
            Atom::Extent(of, dimension) => Some(IndexExpr::atom(Atom::Extent(tensor(*of)?, *dimension))),
            Atom::Data(data) => {
                let value = data.value.map_ids(tensor, var)?;
                let declared = match &data.declared {
                    Some((from, to)) => Some((from.map_ids(tensor, var)?, to.map_ids(tensor, var)?)),
                    None => None,
                };
                Some(IndexExpr::atom(Atom::Data(Arc::new(Data { value, declared }))))
            }
            _ => None,
        })
    }

    /// The same expression in other ids, in normal form, given the values of its variables, extents
    /// and data. Returns `None` where a value is missing.
    pub fn map_leaves<J: Ids>(
        &self,
        leaf: &impl Fn(&Atom<I>) -> Option<IndexExpr<J>>,
    ) -> Option<IndexExpr<J>> {
        let mut sum = IndexExpr::constant(self.constant_part());
        for term in self.terms() {
            let mut product = IndexExpr::constant(1);
            for factor in &term.factors {
                product = product.mul(&factor.map_leaves(leaf)?);
            }
            sum = sum.add(&product.scale(term.coefficient));
        }
        Some(sum)
    }
}

impl<I: Ids> Atom<I> {
    fn map_leaves<J: Ids>(&self, leaf: &impl Fn(&Atom<I>) -> Option<IndexExpr<J>>) -> Option<IndexExpr<J>> {
        let map = |index: &IndexExpr<I>| index.map_leaves(leaf);
        match self {
            Atom::Var(_) | Atom::Extent(..) | Atom::Data(_) => leaf(self),
            Atom::Symbol(symbol) => Some(IndexExpr::symbol(*symbol)),
            Atom::FloorDiv(pair) => Some(map(&pair.0)?.floor_div(&map(&pair.1)?)),
            Atom::Mod(pair) => Some(map(&pair.0)?.modulo(&map(&pair.1)?)),
            Atom::Min(pair) => Some(map(&pair.0)?.minimum(&map(&pair.1)?)),
            Atom::Max(pair) => Some(map(&pair.0)?.maximum(&map(&pair.1)?)),
            Atom::Overflow => Some(IndexExpr::atom(Atom::Overflow)),
        }
    }
}

impl<I: Ids> Access<I> {
    /// The same access with other ids; see [`IndexExpr::map_ids`].
    pub fn map_ids<J: Ids>(
        &self,
        tensor: &impl Fn(I::Tensor) -> Option<J::Tensor>,
        var: &impl Fn(I::Var) -> Option<IndexExpr<J>>,
    ) -> Option<Access<J>> {
        let indices = self.indices.iter().map(|index| index.map_ids(tensor, var)).collect::<Option<_>>()?;
        Some(Access { tensor: tensor(self.tensor)?, indices, origin: self.origin })
    }
}

impl<I: Ids> Expr<I> {
    /// The same value with other ids; see [`IndexExpr::map_ids`].
    pub fn map_ids<J: Ids>(
        &self,
        tensor: &impl Fn(I::Tensor) -> Option<J::Tensor>,
        var: &impl Fn(I::Var) -> Option<IndexExpr<J>>,
    ) -> Option<Expr<J>> {
        let map = |operand: &Expr<I>| operand.map_ids(tensor, var);
        let kind = match &self.kind {
            ExprKind::Literal(number) => ExprKind::Literal(*number),
            ExprKind::Index(index) => ExprKind::Index(Box::new(index.map_ids(tensor, var)?)),
            ExprKind::Scalar(scalar) => ExprKind::Scalar(*scalar),
            ExprKind::Load(access) => ExprKind::Load(access.map_ids(tensor, var)?),
            ExprKind::Unary(op, operand) => ExprKind::Unary(*op, Box::new(map(operand)?)),
            ExprKind::Binary(op, operands) => {
                let [left, right] = operands.as_ref();
                ExprKind::Binary(*op, Box::new([map(left)?, map(right)?]))
            }
            ExprKind::Select(operands) => {
                let [condition, then, otherwise] = operands.as_ref();
                ExprKind::Select(Box::new([map(condition)?, map(then)?, map(otherwise)?]))
            }
            ExprKind::Call(builtin, operands) => {
                ExprKind::Call(*builtin, operands.iter().map(map).collect::<Option<_>>()?)
            }
            ExprKind::Cast(operand) => ExprKind::Cast(Box::new(map(operand)?)),
        };
        Some(Expr { dtype: self.dtype, kind })
    }
}

/// Defines an id.
macro_rules! id {
    ($name:ident, $what:literal) => {
        #[doc = concat!("Points at ", $what, ".")]
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
        )]
        pub struct $name(pub u32);

        impl $name {
            /// The position in the table that the id points into.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl $crate::ids::Id for $name {
            fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

pub(crate) use id;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Origin;
    use crate::nest;
    use crate::number::Number;
    use crate::operators::{BinaryOp, UnaryOp};

    #[test]
    fn a_mapped_expression_is_in_normal_form() {
        let var = |id: u32| IndexExpr::var(VarId(id));
        let at = |id: u32| nest::IndexExpr::var(LoopVarId(id));
        // The variables change their order, and multiples of the divisor leave the quotient.
        let value = |own: VarId| (own.0 < 2).then(|| at(9 - own.0).offset(1));
        let buffer = |tensor: TensorId| Some(BufferId(tensor.0 + 3));
        let map = |index: &IndexExpr| index.map_ids(&buffer, &value).expect("each variable has a value");
        let (two, sum) = (IndexExpr::constant(2), var(0).sub(&var(1)).scale(3));
        assert_eq!(map(&sum.add(&var(0).mul(&var(1)))), {
            let product = at(9).offset(1).mul(&at(8).offset(1));
            at(9).sub(&at(8)).scale(3).add(&product)
        });
        let halves = var(0).offset(1).floor_div(&two).add(&var(1).modulo(&two));
        let two = nest::IndexExpr::constant(2);
        assert_eq!(map(&halves), at(9).floor_div(&two).offset(1).add(&at(8).offset(1).modulo(&two)));
        let (low, high) = (var(0).minimum(&var(1)), var(0).maximum(&var(1)));
        assert_eq!(map(&low), at(8).offset(1).minimum(&at(9).offset(1)));
        assert_eq!(map(&high), at(8).offset(1).maximum(&at(9).offset(1)));
        assert_eq!(var(2).floor_div(&low).map_ids(&buffer, &value), None);
    }

    #[test]
    fn a_mapped_value_has_the_same_operations() {
        fn load<I: Ids>(tensor: I::Tensor, index: IndexExpr<I>) -> Expr<I> {
            let access = Access { tensor, indices: vec![index], origin: Origin::default() };
            Expr { dtype: DType::Int32, kind: ExprKind::Load(access) }
        }
        fn chosen<I: Ids>([table, values]: [I::Tensor; 2], at: IndexExpr<I>) -> Expr<I> {
            let value = load(table, at.clone());
            let data = Data { value: value.clone(), declared: Some((IndexExpr::constant(0), at)) };
            let read = load(values, IndexExpr::atom(Atom::Data(Arc::new(data))));
            let zero = Expr::literal(DType::Int32, Number::Int(0));
            let is_less = Expr::binary(BinaryOp::Less, value.clone(), zero);
            let negated = Expr { dtype: DType::Int32, kind: ExprKind::Unary(UnaryOp::Neg, Box::new(value)) };
            Expr { dtype: DType::Int32, kind: ExprKind::Select(Box::new([is_less, negated, read])) }
        }
        let own = chosen::<InProgram>([TensorId(0), TensorId(1)], IndexExpr::var(VarId(4)));
        let at = |_: VarId| Some(nest::IndexExpr::var(LoopVarId(7)));
        let mapped = own.map_ids(&|tensor: TensorId| Some(BufferId(5 - tensor.0)), &at);
        let wanted = chosen::<InNest>([BufferId(5), BufferId(4)], nest::IndexExpr::var(LoopVarId(7)));
        assert_eq!(mapped, Some(wanted));
        assert_eq!(own.map_ids(&|tensor: TensorId| (tensor.0 == 0).then_some(BufferId(5)), &at), None);
    }
}
