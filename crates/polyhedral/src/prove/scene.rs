//! Scenes: the sets of situations in which an expression of the program is compared with one of the
//! nest.
//!
//! A situation is a vector. It holds the iteration of a store, the instance that the store claims,
//! and the coordinates that each copy or inlined tensor on the way has added.

use std::rc::Rc;

use tilewright_ir::{IndexExpr, VarId};
use tilewright_isl::{Affine, Map, Set};

use super::{Step, undecided};
use crate::coordinates::Coordinates;

/// The limit on copies that a value goes through plus tensors that are inlined into each other.
const MOST_STEPS: usize = 64;

/// All situations in which two expressions are compared.
#[derive(Clone)]
pub struct Scene {
    /// The situations.
    pub set: Set,
    /// The number of coordinates of each situation.
    pub dimensions: usize,
    /// The number of copies and inlined tensors that the comparison has followed.
    steps: usize,
    /// The coordinates that are known to be data-dependent subscripts of the program.
    bound: Rc<Vec<Bound>>,
}

/// A coordinate whose value is a subscript of an instance of the program.
#[derive(Clone)]
pub struct Bound {
    /// The coordinate.
    pub coordinate: usize,
    /// The statement.
    pub of: usize,
    /// The position of the instance's coordinates in the vectors.
    pub frame: Frame,
    /// The subscript.
    pub index: IndexExpr,
}

impl Bound {
    /// Checks whether both are the same subscript of the same instance.
    fn is_same(&self, other: &Bound) -> bool {
        self.of == other.of && self.frame.offset == other.frame.offset && self.index == other.index
    }
}

impl Scene {
    /// A scene of these situations, which have `dimensions` coordinates.
    pub fn of(set: &Set, dimensions: usize) -> Scene {
        Scene { set: set.clone(), dimensions, steps: 0, bound: Rc::default() }
    }

    /// The situations that are in a set.
    pub fn within(&self, set: &Set) -> Scene {
        Scene { set: self.set.intersect(set), ..self.clone() }
    }

    /// The situations that are not in a set.
    pub fn without(&self, set: &Set) -> Scene {
        Scene { set: self.set.subtract(set), ..self.clone() }
    }

    /// The situations with `count` more coordinates at the end, which may have any value.
    pub fn with_numbers(&self, count: usize) -> Scene {
        let set = self.set.widened(self.dimensions, count);
        Scene { set, dimensions: self.dimensions + count, ..self.clone() }
    }

    /// Gives a variable to each coordinate.
    pub fn named(&self, name: impl Fn(usize) -> VarId) -> Coordinates {
        let mut coordinates = Coordinates::new(self.set.context());
        (0..self.dimensions).for_each(|at| coordinates.add(name(at), None));
        coordinates
    }

    /// Maps situations to some of their coordinates.
    pub fn pick(&self, picks: &[usize]) -> Map {
        let context = self.set.context();
        let functions: Vec<Affine> =
            picks.iter().map(|at| Affine::variable(context, self.dimensions, *at)).collect();
        Map::from_functions(context, self.dimensions, &functions).of(&self.set)
    }

    /// Applies a relation to some coordinates of each situation, and appends the results to the
    /// situation.
    pub fn extend(&self, picks: &[usize], relation: &Map) -> Scene {
        let added = relation.dimensions().map_or(0, |(_, results)| results);
        let set = self.pick(picks).then(relation).pairs().coalesce();
        Scene { set, dimensions: self.dimensions + added, ..self.clone() }
    }

    /// Adds coordinates that are known to be subscripts. Two coordinates that are the same
    /// subscript are constrained to be equal.
    pub fn binding(mut self, bound: Vec<Bound>) -> Scene {
        for own in &bound {
            if let Some(other) = self.bound.iter().find(|other| other.is_same(own)) {
                let context = self.set.context();
                let [one, other] =
                    [own, other].map(|own| Affine::variable(context, self.dimensions, own.coordinate));
                self.set = self.set.intersect(&one.sub(&other).zero());
            }
        }
        if !bound.is_empty() {
            self.bound = Rc::new(self.bound.iter().cloned().chain(bound).collect());
        }
        self
    }

    /// All coordinates that are known to be subscripts.
    pub fn all_bound(&self) -> &[Bound] {
        &self.bound
    }

    /// The subscript that a coordinate is known to be, if any.
    pub fn bound(&self, coordinate: usize) -> Option<&Bound> {
        self.bound.iter().find(|own| own.coordinate == coordinate)
    }

    /// Checks whether the comparison has followed no copy and no inlined tensor yet.
    pub fn is_direct(&self) -> bool {
        self.steps == 0
    }

    /// The same situations after one more copy or inlined tensor, or `Undecided` beyond the limit.
    pub fn deeper(mut self) -> Step<Scene> {
        self.steps += 1;
        match self.steps <= MOST_STEPS {
            true => Ok(self),
            false => undecided("a value goes through too many copies"),
        }
    }
}

/// The position of an instance's or an iteration's coordinates in the vectors of a scene.
#[derive(Clone)]
pub struct Frame {
    /// The position of the first coordinate.
    pub offset: usize,
    /// The variables of the coordinates.
    pub coordinates: Coordinates,
}

impl Frame {
    /// The positions of the coordinates.
    pub fn picks(&self) -> Vec<usize> {
        (self.offset..self.offset + self.coordinates.len()).collect()
    }

    /// The same variables as coordinates of the scene's vectors.
    pub fn in_scene(&self, scene: &Scene) -> Coordinates {
        self.coordinates.placed(self.offset, scene.dimensions)
    }
}
