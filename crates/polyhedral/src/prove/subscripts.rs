//! Whether two subscripts have the same value in all situations of a scene.
//!
//! Data in them is compared as any other value ([`super::values`]), and a number stands for each datum that is the same on
//! both sides. isl compares what is affine then. Products of coordinates are beyond isl: they are compared as polynomials, after
//! the equations between coordinates that hold in the scene have been put into both.

use std::sync::Arc;

use tilewright_ir::{Atom, Data, IndexExpr, VarId};
use tilewright_isl::Equation;

use super::scene::{Frame, Scene};
use super::values::{Proof, Side};
use super::{Step, undecided};

/// Stands for the first coordinate of a scene; its neighbours for the others.
const FIRST_COORDINATE: u32 = u32::MAX / 2;

/// Stands for the first datum.
const FIRST_DATUM: u32 = u32::MAX / 4 * 3;

impl Proof<'_, '_, '_> {
    /// Whether two subscripts have the same value in all situations.
    pub fn same_index(
        &self,
        scene: &Scene,
        (program, own): (Side, &IndexExpr),
        (nest, other): (Side, &IndexExpr),
    ) -> Step<bool> {
        let (left, right) = (program.frame.in_scene(scene), nest.frame.in_scene(scene));
        if let (Some(left), Some(right)) = (left.affine(own), right.affine(other)) {
            return Ok(scene.set.is_subset(&left.sub(&right).zero())?);
        }
        let (data, others) = (data_in(own), data_in(other));
        let mut named: Vec<(Atom, VarId)> = Vec::new();
        for datum in &others {
            let at = self.same_datum(scene, (program, &data), Side { expr: &datum.value, ..nest })?;
            named.push((Atom::Data(datum.clone()), number_of(at)));
        }
        let own_names: Vec<(Atom, VarId)> =
            data.iter().enumerate().map(|(at, own)| (Atom::Data(own.clone()), number_of(at))).collect();
        let left = in_coordinates(&renamed(own, &own_names), program.frame);
        let right = in_coordinates(&renamed(other, &named), nest.frame);
        are_equal(scene, data.len(), &left, &right)
    }

    /// The one of the program's data that a datum of the nest is.
    fn same_datum(&self, scene: &Scene, (program, data): (Side, &[Arc<Data>]), datum: Side) -> Step<usize> {
        let mut reason = None;
        for (at, own) in data.iter().enumerate() {
            match self.equal(scene, Side { expr: &own.value, ..program }, datum) {
                Ok(()) => return Ok(at),
                Err(stop) => reason = Some(stop),
            }
        }
        match reason {
            Some(stop) if data.len() == 1 => Err(stop),
            _ => undecided("data in a subscript is not what the program has there"),
        }
    }
}

/// Whether two expressions over the coordinates of a scene, and so many numbers of any value, are the same.
fn are_equal(scene: &Scene, numbers: usize, left: &IndexExpr, right: &IndexExpr) -> Step<bool> {
    if left == right {
        return Ok(true);
    }
    let wide = scene.with_numbers(numbers);
    let coordinates = wide.named(|at| match at.checked_sub(scene.dimensions) {
        None => coordinate(at),
        Some(datum) => number_of(datum),
    });
    if let (Some(left), Some(right)) = (coordinates.affine(left), coordinates.affine(right)) {
        return Ok(wide.set.is_subset(&left.sub(&right).zero())?);
    }
    let equations = scene.set.equations()?;
    let difference = equations.iter().fold(left.sub(right), |difference, own| put_in(&difference, own));
    match difference.as_constant() {
        Some(difference) => Ok(difference == 0),
        None => undecided("a subscript multiplies what it computes with"),
    }
}

/// An expression with the coordinate that an equation gives replaced by what it is.
fn put_in(expr: &IndexExpr, equation: &Equation) -> IndexExpr {
    let terms = equation.coefficients.iter().enumerate();
    let value = terms.fold(IndexExpr::constant(equation.constant), |sum, (at, by)| {
        sum.add(&IndexExpr::var(coordinate(at)).scale(*by))
    });
    let given = coordinate(equation.coordinate);
    expr.substitute(&mut |atom| (*atom == Atom::Var(given)).then(|| value.clone()))
}

/// An expression of a statement or a store, over the coordinates of the scene.
fn in_coordinates(expr: &IndexExpr, frame: &Frame) -> IndexExpr {
    expr.substitute(&mut |atom| match atom {
        Atom::Var(var) => {
            let at = frame.coordinates.position(*var)?;
            Some(IndexExpr::var(coordinate(frame.offset + at)))
        }
        _ => None,
    })
}

fn coordinate(at: usize) -> VarId {
    VarId(FIRST_COORDINATE + at as u32)
}

/// The data in a subscript, without the data inside of it.
fn data_in(index: &IndexExpr) -> Vec<Arc<Data>> {
    let mut found: Vec<Arc<Data>> = Vec::new();
    for factor in index.terms().iter().flat_map(|term| &term.factors) {
        let own = match factor {
            Atom::Data(data) => vec![data.clone()],
            Atom::FloorDiv(pair) | Atom::Mod(pair) | Atom::Min(pair) | Atom::Max(pair) => {
                [&pair.0, &pair.1].into_iter().flat_map(data_in).collect()
            }
            Atom::Var(_) | Atom::Symbol(_) | Atom::Extent(..) | Atom::Overflow => Vec::new(),
        };
        for datum in own {
            if !found.contains(&datum) {
                found.push(datum);
            }
        }
    }
    found
}

/// The variable that stands for a datum.
fn number_of(datum: usize) -> VarId {
    VarId(FIRST_DATUM + datum as u32)
}

/// A subscript with variables in the place of data.
fn renamed(index: &IndexExpr, names: &[(Atom, VarId)]) -> IndexExpr {
    index.substitute(&mut |atom| {
        names.iter().find(|(datum, _)| datum == atom).map(|(_, var)| IndexExpr::var(*var))
    })
}
