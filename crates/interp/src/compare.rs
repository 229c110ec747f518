//! Whether a kernel computed what it should.
//!
//! Integers of a program without floats must be the same. Floats may differ by rounding: a schedule changes the order
//! of a sum, vectors fuse multiplications with additions, and the interpreter accumulates in double precision. An
//! error of rounding is in proportion to the numbers that were added, not to what is left of them, so it is judged by
//! the largest element of the tensor, and the more is added up the more it may be.

use std::fmt;

use tilewright_ir::{DType, Number, Program, Tensor, VarKind};

/// Roundings that any program is allowed.
const ROUNDINGS: f64 = 64.0;

/// Elements that differ by more than rounding.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The tensor.
    pub name: String,
    /// How many of its elements.
    pub wrong: usize,
    /// How many it has.
    pub elements: usize,
    /// The subscripts of the first.
    pub place: Vec<usize>,
    /// What it is.
    pub found: Number,
    /// What it should be.
    pub wanted: Number,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { name, wrong, elements, .. } = self;
        let place: Vec<String> = self.place.iter().map(usize::to_string).collect();
        write!(
            f,
            "{wrong} of {elements} elements of {name} are wrong: {name}({}) is {}, and should be {}",
            place.join(", "),
            shown(self.found),
            shown(self.wanted)
        )
    }
}

/// The first tensor, if any, whose elements differ from what is wanted by more than rounding.
pub fn compare(
    program: &Program,
    name: &str,
    found: &Tensor,
    wanted: &Tensor,
) -> Result<(), Box<Difference>> {
    let limit = tolerance(program, wanted);
    let differs = |at: &usize| !close(found.get(*at), wanted.get(*at), limit);
    let mut places = (0..wanted.len()).filter(differs);
    let Some(first) = places.next() else { return Ok(()) };
    Err(Box::new(Difference {
        name: name.to_owned(),
        wrong: 1 + places.count(),
        elements: wanted.len(),
        place: subscripts(wanted.shape(), first),
        found: found.get(first),
        wanted: wanted.get(first),
    }))
}

/// How far elements of a result may be apart.
pub fn tolerance(program: &Program, wanted: &Tensor) -> f64 {
    let has_floats = program.tensors.iter().any(|tensor| tensor.dtype.is_float())
        || program.scalars.iter().any(|scalar| scalar.dtype.is_float());
    if !has_floats {
        return 0.0;
    }
    if !wanted.dtype().is_float() {
        // A float close to the middle between two integers goes to either.
        return 1.0;
    }
    let finite = (0..wanted.len()).map(|at| wanted.get(at).as_f64().abs()).filter(|value| value.is_finite());
    let scale = finite.fold(0.0, f64::max);
    let stored = program.tensors.iter().filter(|tensor| tensor.dtype.is_float());
    let stored = stored.map(|tensor| epsilon(tensor.dtype)).fold(0.0, f64::max);
    let computed = epsilon(wanted.dtype().compute_type());
    scale * (4.0 * stored + computed * (ROUNDINGS + additions(program)))
}

/// How many numbers are added up, at most, to an element.
fn additions(program: &Program) -> f64 {
    let reduced = |var: &&tilewright_ir::Var| var.kind != VarKind::Spatial;
    let lengths = program.statements().into_iter().map(|(statement, loops)| {
        let vars = loops.iter().chain(&statement.vars).map(|var| program.var(*var));
        let extents = vars.filter(reduced).map(|var| var.range.extent().as_constant().unwrap_or(1));
        extents.map(|extent| extent as f64).product::<f64>()
    });
    lengths.sum()
}

/// The distance from 1 to the next number of a float type.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::Float16 => 2f64.powi(-10),
        DType::BFloat16 => 2f64.powi(-7),
        DType::Float64 => f64::EPSILON,
        _ => f32::EPSILON.into(),
    }
}

fn close(found: Number, wanted: Number, limit: f64) -> bool {
    if found == wanted {
        return true;
    }
    let (found, wanted) = (found.as_f64(), wanted.as_f64());
    found == wanted || (found.is_nan() && wanted.is_nan()) || (found - wanted).abs() <= limit
}

/// The subscripts of a place in row-major order.
fn subscripts(shape: &[usize], place: usize) -> Vec<usize> {
    let mut rest = place;
    let mut subscripts: Vec<usize> = Vec::new();
    for extent in shape.iter().rev() {
        subscripts.push(rest % extent);
        rest /= extent;
    }
    subscripts.reverse();
    subscripts
}

fn shown(number: Number) -> String {
    match number {
        Number::Int(value) => value.to_string(),
        Number::Float(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_syntax::{Bindings, check, parse};

    fn program(text: &str) -> Program {
        let parsed = parse(text);
        let name = parsed.ast.functions[0].name.text.clone();
        let sizes: Bindings = [("N", 4)].into_iter().collect();
        check(&parsed.ast, &name, &sizes).program.unwrap()
    }

    fn results(dtype: DType, values: [f64; 4]) -> Tensor {
        let mut tensor = Tensor::zeros(dtype, &[2, 2]).unwrap();
        values.iter().enumerate().for_each(|(at, value)| tensor.set(at, Number::Float(*value)));
        tensor
    }

    #[test]
    fn rounding_is_fine_and_anything_else_is_a_bug() {
        let program = program("def f(float(N) x) -> (y) { y(i, j) = x(i) * x(j) }");
        let wanted = results(DType::Float32, [1.0, f64::NAN, f64::INFINITY, 100.0]);
        let judge = |values| compare(&program, "y", &results(DType::Float32, values), &wanted);
        assert!(judge([1.0 + 1e-6, f64::NAN, f64::INFINITY, 100.0 + 1e-5]).is_ok());
        // Rounding is judged by the largest element.
        assert!(judge([1.0 + 1e-4, f64::NAN, f64::INFINITY, 100.0]).is_ok());
        let message = judge([1.0, f64::NAN, f64::INFINITY, 100.5]).unwrap_err().to_string();
        assert_eq!(message, "1 of 4 elements of y are wrong: y(1, 1) is 100.5, and should be 100");
        assert!(judge([1.0, 0.0, f64::INFINITY, 100.0]).is_err());
        assert!(judge([1.0, f64::NAN, f64::NEG_INFINITY, 100.0]).is_err());
    }

    #[test]
    fn integers_are_the_same_unless_they_come_from_floats() {
        let judge = |text: &str| {
            let (found, wanted) = ([1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 4.0]);
            compare(&program(text), "y", &results(DType::Int32, found), &results(DType::Int32, wanted))
                .is_ok()
        };
        assert!(!judge("def f(int(N) x) -> (y) { y(i, j) = x(i) + x(j) }"));
        assert!(judge("def f(float(N) x) -> (y) { y(i, j) = int(x(i) + x(j)) }"));
    }
}
