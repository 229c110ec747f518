//! Scenes: the situations in which an expression of the program is compared with one of the nest.
//!
//! A situation is a vector that holds the iteration of a store, the instance that it claims, and whatever the comparison has
//! come through since.

use std::rc::Rc;

use tilewright_ir::{IndexExpr, VarId};
use tilewright_isl::{Affine, Map, Set};

use super::{Step, undecided};
use crate::coordinates::Coordinates;

/// Copies that a value may go through, and tensors that may be inlined into each other.
const MOST_STEPS: usize = 64;

/// All situations in which two expressions are compared.
#[derive(Clone)]
pub struct Scene {
    /// The situations.
    pub set: Set,
    /// How many coordinates each has.
    pub dimensions: usize,
    /// Copies and inlined tensors that the walk has come through.
    steps: usize,
    /// Coordinates that are subscripts of the program's which data decides.
    bound: Rc<Vec<Bound>>,
}

/// A coordinate that is a subscript of an instance of the program.
#[derive(Clone)]
pub struct Bound {
    /// The coordinate.
    pub coordinate: usize,
    /// The statement.
    pub of: usize,
    /// Where the instance is.
    pub frame: Frame,
    /// The subscript.
    pub index: IndexExpr,
}

impl Bound {
    /// Whether both are one subscript of one instance.
    fn is_same(&self, other: &Bound) -> bool {
        self.of == other.of && self.frame.offset == other.frame.offset && self.index == other.index
    }
}

impl Scene {
    /// These situations, each with so many coordinates.
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

    /// The situations, with so many numbers of any value at the end.
    pub fn with_numbers(&self, count: usize) -> Scene {
        let set = self.set.widened(self.dimensions, count);
        Scene { set, dimensions: self.dimensions + count, ..self.clone() }
    }

    /// The coordinates with a variable for each.
    pub fn named(&self, name: impl Fn(usize) -> VarId) -> Coordinates {
        let mut coordinates = Coordinates::new(self.set.context());
        (0..self.dimensions).for_each(|at| coordinates.add(name(at), None));
        coordinates
    }

    /// From situations to some of their coordinates.
    pub fn pick(&self, picks: &[usize]) -> Map {
        let context = self.set.context();
        let functions: Vec<Affine> =
            picks.iter().map(|at| Affine::variable(context, self.dimensions, *at)).collect();
        Map::from_functions(context, self.dimensions, &functions).of(&self.set)
    }

    /// The situations, each with what a relation makes of some of its coordinates at the end.
    pub fn extend(&self, picks: &[usize], relation: &Map) -> Scene {
        let added = relation.dimensions().map_or(0, |(_, results)| results);
        let set = self.pick(picks).then(relation).pairs().coalesce();
        Scene { set, dimensions: self.dimensions + added, ..self.clone() }
    }

    /// The situations, in which coordinates are known to be subscripts. Two that are the same subscript are the same.
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

    /// The subscript that a coordinate is, if it is known to be one.
    pub fn bound(&self, coordinate: usize) -> Option<&Bound> {
        self.bound.iter().find(|own| own.coordinate == coordinate)
    }

    /// Whether the walk has come through no copy and no inlined tensor.
    pub fn is_direct(&self) -> bool {
        self.steps == 0
    }

    /// The situations behind one more copy or inlined tensor.
    pub fn deeper(mut self) -> Step<Scene> {
        self.steps += 1;
        match self.steps <= MOST_STEPS {
            true => Ok(self),
            false => undecided("a value goes through too many copies"),
        }
    }
}

/// Where in the vectors of a scene the coordinates of an instance or of an iteration are.
#[derive(Clone)]
pub struct Frame {
    /// Where they begin.
    pub offset: usize,
    /// Their variables.
    pub coordinates: Coordinates,
}

impl Frame {
    /// Their places.
    pub fn picks(&self) -> Vec<usize> {
        (self.offset..self.offset + self.coordinates.len()).collect()
    }

    /// The coordinates as those of the scene's vectors.
    pub fn in_scene(&self, scene: &Scene) -> Coordinates {
        self.coordinates.placed(self.offset, scene.dimensions)
    }
}
