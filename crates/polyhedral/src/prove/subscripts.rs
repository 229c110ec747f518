//! Checks whether two subscripts have the same value in all situations of a comparison
//! (`comparison.rs`).
//!
//! Both subscripts are rewritten over the coordinates of the comparison, and the comparison's
//! equations are substituted. Data in subscripts is compared like any other value
//! ([`super::values`]), and one variable stands for each datum that is the same on both sides. isl
//! then compares affine expressions. isl cannot represent products; they are compared as
//! polynomials.

use std::sync::Arc;

use tilewright_ir::ids::{Ids, InNest};
use tilewright_ir::{Atom, Data, IndexExpr, Term, VarId};
use tilewright_isl::Equation;

use super::comparison::{BoundSubscript, Comparison, Frame};
use super::values::{Proof, Side};
use super::{ProofResult, undecided};

/// The variable that stands for the first coordinate of a comparison. The following variables stand
/// for the other coordinates.
const FIRST_COORDINATE: u32 = u32::MAX / 2;

/// The variable that stands for the first datum.
const FIRST_PROGRAM_DATUM: u32 = u32::MAX / 4 * 3;

/// The variable that stands for the first datum of the nest until the matching datum of the program
/// is known.
const FIRST_NEST_DATUM: u32 = u32::MAX / 8 * 7;

/// The limit on how deeply subscripts are substituted into each other.
const MAX_SUBSTITUTION_DEPTH: usize = 16;

/// A datum that a variable stands for.
struct Datum {
    statement: usize,
    frame: Frame,
    data: Arc<Data>,
}

impl Datum {
    fn side(&self) -> Side<'_> {
        Side { owner: self.statement, frame: &self.frame, expr: &self.data.value }
    }
}

impl Proof<'_, '_, '_> {
    /// Checks whether two subscripts have the same value in all situations.
    pub fn is_same_index(
        &self,
        comparison: &Comparison,
        (program, own): (Side, &IndexExpr),
        (nest, other): (Side<InNest>, &IndexExpr<InNest>),
    ) -> ProofResult<bool> {
        let (left, right) = (program.frame.in_comparison(comparison), nest.frame.in_comparison(comparison));
        if let (Some(left), Some(right)) = (left.affine(own), right.affine(other)) {
            return Ok(comparison.set.is_subset(&left.sub(&right).zero_set())?);
        }
        let mut rewrite =
            SubscriptRewrite { comparison, equations: comparison.set.equations()?, data: Vec::new() };
        let left = rewrite.rewrite_program_index((program.owner, program.frame), own, 0)?;
        let others = data_in(other);
        let right = in_coordinates(other, nest.frame, |datum| {
            others.iter().position(|own| own == datum).map(nest_datum_var)
        })?;
        let mut right = rewrite.rewrite_without_data(right, 0)?;
        for (at, datum) in others.iter().enumerate() {
            let datum = Side { expr: &datum.value, ..nest };
            let same = match self.matching_datum(comparison, &rewrite.data, datum) {
                Ok(at) => program_datum_var(at),
                Err(stop) => coordinate_var(self.coordinate_of(comparison, datum).ok_or(stop)?),
            };
            right = with_variable(&right, nest_datum_var(at), same);
        }
        let right = rewrite.equations.iter().fold(right, |right, own| substitute_equation(&right, own));
        are_equal(comparison, rewrite.data.len(), &left, &right)
    }

    /// The coordinate that the comparison binds to exactly this datum of the nest, if there is one.
    fn coordinate_of(&self, comparison: &Comparison, datum: Side<InNest>) -> Option<usize> {
        let is_it = |bound: &&BoundSubscript| {
            as_datum(&bound.index).is_some_and(|data| {
                let own = Side { owner: bound.statement, frame: &bound.frame, expr: &data.value };
                self.check_equal(comparison, own, datum).is_ok()
            })
        };
        comparison.bound_subscripts().iter().find(is_it).map(|bound| bound.coordinate)
    }

    /// The datum of the program that is equal to a datum of the nest.
    fn matching_datum(
        &self,
        comparison: &Comparison,
        data: &[Datum],
        datum: Side<InNest>,
    ) -> ProofResult<usize> {
        let mut reason = None;
        for (at, own) in data.iter().enumerate() {
            match self.check_equal(comparison, own.side(), datum) {
                Ok(()) => return Ok(at),
                Err(stop) => reason = Some(stop),
            }
        }
        match reason {
            Some(stop) if data.len() == 1 => Err(stop),
            _ => undecided("the data in a subscript may differ from the data in the program"),
        }
    }
}

/// The rewriting of subscripts to expressions over the coordinates of a comparison, with a variable
/// for each datum of the program.
struct SubscriptRewrite<'a> {
    comparison: &'a Comparison,
    equations: Vec<Equation>,
    data: Vec<Datum>,
}

impl SubscriptRewrite<'_> {
    /// Rewrites a subscript of the program.
    fn rewrite_program_index(
        &mut self,
        (statement, frame): (usize, &Frame),
        index: &IndexExpr,
        depth: usize,
    ) -> ProofResult<IndexExpr> {
        let (first, data) = (self.data.len(), data_in(index));
        let index = in_coordinates(index, frame, |datum| {
            data.iter().position(|own| own == datum).map(|at| program_datum_var(first + at))
        })?;
        self.data.extend(data.into_iter().map(|data| Datum { statement, frame: frame.clone(), data }));
        self.rewrite_without_data(index, depth)
    }

    /// Rewrites a subscript over the coordinates of the comparison: replaces those that are defined
    /// by equations or known to be subscripts of the program.
    fn rewrite_without_data(&mut self, index: IndexExpr, depth: usize) -> ProofResult<IndexExpr> {
        let index = self.equations.iter().fold(index, |index, own| substitute_equation(&index, own));
        if depth >= MAX_SUBSTITUTION_DEPTH {
            return Ok(index);
        }
        let mut result = Ok(());
        let index = index.substitute(&mut |atom| {
            let Atom::Var(VarId(var)) = atom else { return None };
            let bound = self
                .comparison
                .bound_subscript((*var as usize).checked_sub(FIRST_COORDINATE as usize)?)?
                .clone();
            let own = (bound.statement, &bound.frame);
            self.rewrite_program_index(own, &bound.index, depth + 1).map_err(|stop| result = Err(stop)).ok()
        });
        result.map(|()| index)
    }
}

/// Checks whether two expressions are equal. They are over the coordinates of a comparison and
/// `numbers` more variables of any value.
fn are_equal(
    comparison: &Comparison,
    numbers: usize,
    left: &IndexExpr,
    right: &IndexExpr,
) -> ProofResult<bool> {
    if left == right {
        return Ok(true);
    }
    let wide = comparison.with_free_coordinates(numbers);
    let coordinates = wide.to_coordinates(|at| match at.checked_sub(comparison.dimensions) {
        None => coordinate_var(at),
        Some(datum) => program_datum_var(datum),
    });
    match (coordinates.affine(left), coordinates.affine(right)) {
        (Some(left), Some(right)) => Ok(wide.set.is_subset(&left.sub(&right).zero_set())?),
        _ => match left.sub(right).as_constant() {
            Some(difference) => Ok(difference == 0),
            None => undecided("a subscript multiplies variables, and cannot be compared"),
        },
    }
}

/// Replaces the coordinate that an equation defines by its value.
fn substitute_equation(expr: &IndexExpr, equation: &Equation) -> IndexExpr {
    let terms = equation.coefficients.iter().enumerate();
    let value = terms.fold(IndexExpr::constant(equation.constant), |sum, (at, by)| {
        sum.add(&IndexExpr::var(coordinate_var(at)).scale(*by))
    });
    let given = coordinate_var(equation.coordinate);
    expr.substitute(&mut |atom| (*atom == Atom::Var(given)).then(|| value.clone()))
}

/// Rewrites an expression of a statement or a store over the coordinates of the comparison, with a
/// variable for each datum. The result has ids of programs, but all of its variables are beyond
/// those of any program.
fn in_coordinates<I: Ids>(
    expr: &IndexExpr<I>,
    frame: &Frame<I>,
    datum: impl Fn(&Arc<Data<I>>) -> Option<VarId>,
) -> ProofResult<IndexExpr> {
    let rewritten = expr.map_leaves(&|atom| match atom {
        Atom::Var(var) => {
            let at = frame.coordinates.position(*var)?;
            Some(IndexExpr::var(coordinate_var(frame.offset + at)))
        }
        Atom::Data(data) => datum(data).map(IndexExpr::var),
        _ => None,
    });
    rewritten.map_or_else(|| undecided("a subscript has a variable that no loop around it has"), Ok)
}

fn coordinate_var(at: usize) -> VarId {
    VarId(FIRST_COORDINATE + at as u32)
}

/// The datum of a subscript that consists of one datum only.
fn as_datum(index: &IndexExpr) -> Option<&Arc<Data>> {
    match (index.terms(), index.constant_part()) {
        ([Term { factors, coefficient: 1 }], 0) => match factors.as_slice() {
            [Atom::Data(data)] => Some(data),
            _ => None,
        },
        _ => None,
    }
}

/// The data in a subscript, without data that is nested inside data.
fn data_in<I: Ids>(index: &IndexExpr<I>) -> Vec<Arc<Data<I>>> {
    let mut found: Vec<Arc<Data<I>>> = Vec::new();
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

/// The variable that stands for a datum of the nest.
fn nest_datum_var(datum: usize) -> VarId {
    VarId(FIRST_NEST_DATUM + datum as u32)
}

/// The variable that stands for a datum of the program.
fn program_datum_var(datum: usize) -> VarId {
    VarId(FIRST_PROGRAM_DATUM + datum as u32)
}

/// Replaces one variable of a subscript by another.
fn with_variable(index: &IndexExpr, from: VarId, to: VarId) -> IndexExpr {
    index.substitute(&mut |atom| (*atom == Atom::Var(from)).then(|| IndexExpr::var(to)))
}
