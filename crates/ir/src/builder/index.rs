//! Defines [`Index`], a subscript, bound or extent that the user of a builder writes with
//! operators.

use std::ops::{Add, Div, Mul, Rem, Sub};
use std::sync::Arc;

use super::error::TypeError;
use super::value::Value;
use crate::index::{Atom, Data, IndexExpr};
use crate::program::{SymbolId, VarId};

/// A size, or an integer scalar that indices may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size(pub(super) SymbolId);

/// An index variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Var(pub(super) VarId);

/// A subscript, bound or extent: arithmetic of variables, sizes and integers. Division and
/// remainder round toward minus infinity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index(pub(super) Result<IndexExpr, TypeError>);

impl Index {
    /// An index that is read or computed from data. Kernels check it when they run.
    pub fn data(value: impl Into<Value>) -> Index {
        Index(value.into().into_integer().map(|value| data_expr(Data { value, declared: None })))
    }

    /// An index that is read or computed from data, and that the caller keeps between `from` and
    /// `to`, which is not included. Kernels check the index when they run.
    pub fn data_in(value: impl Into<Value>, from: impl Into<Index>, to: impl Into<Index>) -> Index {
        let parts = || {
            let declared = Some((from.into().0?, to.into().0?));
            Ok(data_expr(Data { value: value.into().into_integer()?, declared }))
        };
        Index(parts())
    }

    /// The smaller of two indices.
    pub fn min(self, other: impl Into<Index>) -> Index {
        self.with(other.into(), IndexExpr::minimum)
    }

    /// The larger of two indices.
    pub fn max(self, other: impl Into<Index>) -> Index {
        self.with(other.into(), IndexExpr::maximum)
    }

    pub(super) fn with(self, other: Index, join: fn(&IndexExpr, &IndexExpr) -> IndexExpr) -> Index {
        let join = || Ok(join(&self.0?, &other.0?));
        Index(join())
    }
}

fn data_expr(data: Data) -> IndexExpr {
    IndexExpr::atom(Atom::Data(Arc::new(data)))
}

impl From<i64> for Index {
    fn from(number: i64) -> Index {
        Index(Ok(IndexExpr::constant(number)))
    }
}

impl From<Size> for Index {
    fn from(size: Size) -> Index {
        Index(Ok(IndexExpr::symbol(size.0)))
    }
}

impl From<Var> for Index {
    fn from(var: Var) -> Index {
        Index(Ok(IndexExpr::var(var.0)))
    }
}

macro_rules! operator {
    ($trait:ident $method:ident $join:ident: $($left:ty, $right:ty;)*) => {
        $(impl $trait<$right> for $left {
            type Output = Index;
            fn $method(self, other: $right) -> Index {
                Index::from(self).with(Index::from(other), IndexExpr::$join)
            }
        })*
    };
}

macro_rules! operators {
    ($($trait:ident $method:ident $join:ident;)*) => {
        $(operator! { $trait $method $join:
            Index, Index; Index, Var; Index, Size; Index, i64;
            Var, Index; Var, Var; Var, Size; Var, i64;
            Size, Index; Size, Var; Size, Size; Size, i64;
            i64, Index; i64, Var; i64, Size;
        })*
    };
}

operators! {
    Add add add;
    Sub sub sub;
    Mul mul mul;
    Div div floor_div;
    Rem rem modulo;
}

/// Indices of every dimension of a tensor: one index, an array of them, or a tuple of up to six.
pub trait Indices {
    /// The indices, outermost dimension first.
    fn indices(self) -> Vec<Index>;
}

impl<I: Into<Index>, const N: usize> Indices for [I; N] {
    fn indices(self) -> Vec<Index> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Indices for Vec<Index> {
    fn indices(self) -> Vec<Index> {
        self
    }
}

macro_rules! single {
    ($($single:ty)*) => {
        $(impl Indices for $single {
            fn indices(self) -> Vec<Index> {
                vec![self.into()]
            }
        })*
    };
}

single! { Index Var Size i64 }

macro_rules! tuple {
    ($($part:ident)*) => {
        impl<$($part: Into<Index>),*> Indices for ($($part,)*) {
            #[allow(non_snake_case, reason = "the parts are called like their types")]
            fn indices(self) -> Vec<Index> {
                let ($($part,)*) = self;
                vec![$($part.into()),*]
            }
        }
    };
}

tuple! {}
tuple! { A }
tuple! { A B }
tuple! { A B C }
tuple! { A B C D }
tuple! { A B C D E }
tuple! { A B C D E F }
