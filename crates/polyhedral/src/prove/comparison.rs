//! Defines [`Comparison`], the set of situations in which an expression of the program is compared
//! with one of the nest.
//!
//! A situation is a vector. It holds the iteration of a store, the instance that the store claims,
//! and the coordinates that each copy or inlined tensor on the way has added.

use std::rc::Rc;

use tilewright_ir::ids::{Ids, InProgram};
use tilewright_ir::{IndexExpr, VarId};
use tilewright_isl::{Affine, Map, Set};

use super::{ProofResult, undecided};
use crate::coordinates::Coordinates;

/// The limit on copies that a value goes through plus tensors that are inlined into each other.
const MAX_STEPS: usize = 64;

/// All situations in which two expressions are compared.
#[derive(Clone)]
pub struct Comparison {
    /// The situations.
    pub set: Set,
    /// The number of coordinates of each situation.
    pub dimensions: usize,
    /// The number of copies and inlined tensors that the comparison has followed.
    steps: usize,
    /// The coordinates that are known to be data-dependent subscripts of the program.
    bound_subscripts: Rc<Vec<BoundSubscript>>,
}

/// A coordinate whose value is a subscript of an instance of the program.
#[derive(Clone)]
pub struct BoundSubscript {
    /// The coordinate.
    pub coordinate: usize,
    /// The statement.
    pub statement: usize,
    /// The position of the instance's coordinates in the vectors.
    pub frame: Frame,
    /// The subscript.
    pub index: IndexExpr,
}

impl BoundSubscript {
    /// Checks whether both are the same subscript of the same instance.
    fn is_same(&self, other: &BoundSubscript) -> bool {
        self.statement == other.statement
            && self.frame.offset == other.frame.offset
            && self.index == other.index
    }
}

impl Comparison {
    /// A comparison of these situations, which have `dimensions` coordinates.
    pub fn of(set: &Set, dimensions: usize) -> Comparison {
        Comparison { set: set.clone(), dimensions, steps: 0, bound_subscripts: Rc::default() }
    }

    /// The situations that are in a set.
    pub fn within(&self, set: &Set) -> Comparison {
        Comparison { set: self.set.intersect(set), ..self.clone() }
    }

    /// The situations that are not in a set.
    pub fn without(&self, set: &Set) -> Comparison {
        Comparison { set: self.set.subtract(set), ..self.clone() }
    }

    /// The situations with `count` more coordinates at the end, which may have any value.
    pub fn with_free_coordinates(&self, count: usize) -> Comparison {
        let set = self.set.insert_dims(self.dimensions, count);
        Comparison { set, dimensions: self.dimensions + count, ..self.clone() }
    }

    /// Gives a variable to each coordinate.
    pub fn to_coordinates(&self, name: impl Fn(usize) -> VarId) -> Coordinates {
        let mut coordinates = Coordinates::new(self.set.context());
        (0..self.dimensions).for_each(|at| coordinates.add(name(at), None));
        coordinates
    }

    /// Maps situations to some of their coordinates.
    pub fn projection(&self, positions: &[usize]) -> Map {
        let context = self.set.context();
        let functions: Vec<Affine> =
            positions.iter().map(|at| Affine::variable(context, self.dimensions, *at)).collect();
        Map::from_functions(context, self.dimensions, &functions).intersect_domain(&self.set)
    }

    /// Applies a relation to some coordinates of each situation, and appends the results to the
    /// situation.
    pub fn extend(&self, positions: &[usize], relation: &Map) -> Comparison {
        let added = relation.dimensions().map_or(0, |(_, results)| results);
        let set = self.projection(positions).apply_range(relation).pairs().coalesce();
        Comparison { set, dimensions: self.dimensions + added, ..self.clone() }
    }

    /// Adds coordinates that are known to be subscripts. Two coordinates that are the same
    /// subscript are constrained to be equal.
    pub fn with_bound_subscripts(mut self, bound: Vec<BoundSubscript>) -> Comparison {
        for own in bound {
            if let Some(other) = self.bound_subscripts.iter().find(|other| other.is_same(&own)) {
                let context = self.set.context();
                let [one, other] =
                    [&own, other].map(|own| Affine::variable(context, self.dimensions, own.coordinate));
                self.set = self.set.intersect(&one.sub(&other).zero_set());
            }
            Rc::make_mut(&mut self.bound_subscripts).push(own);
        }
        self
    }

    /// All coordinates that are known to be subscripts.
    pub fn bound_subscripts(&self) -> &[BoundSubscript] {
        &self.bound_subscripts
    }

    /// The subscript that a coordinate is known to be, if any.
    pub fn bound_subscript(&self, coordinate: usize) -> Option<&BoundSubscript> {
        self.bound_subscripts.iter().find(|own| own.coordinate == coordinate)
    }

    /// Checks whether the comparison has followed no copy and no inlined tensor yet.
    pub fn has_no_steps(&self) -> bool {
        self.steps == 0
    }

    /// The same situations after one more copy or inlined tensor, or `Undecided` beyond the limit.
    pub fn count_step(mut self) -> ProofResult<Comparison> {
        self.steps += 1;
        match self.steps <= MAX_STEPS {
            true => Ok(self),
            false => undecided("a value goes through too many copies"),
        }
    }
}

/// The position of an instance's or an iteration's coordinates in the vectors of a comparison.
#[derive(Clone)]
pub struct Frame<I: Ids = InProgram> {
    /// The position of the first coordinate.
    pub offset: usize,
    /// The variables of the coordinates.
    pub coordinates: Coordinates<I>,
}

impl<I: Ids> Frame<I> {
    /// The positions of the coordinates.
    pub fn positions(&self) -> Vec<usize> {
        (self.offset..self.offset + self.coordinates.len()).collect()
    }

    /// The same variables as coordinates of the comparison's vectors.
    pub fn in_comparison(&self, comparison: &Comparison) -> Coordinates<I> {
        self.coordinates.embedded(self.offset, comparison.dimensions)
    }
}
