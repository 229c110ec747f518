//! Compares the results of kernels with the expected results.
//!
//! Integers of a program without floats must be equal. Floats may differ by rounding: a schedule
//! changes the order of a sum, vector code fuses multiplications with additions, and the
//! interpreter accumulates in double precision. [`expect`](crate::expect) computes a bound for each
//! element, and the element may be off by its bound times [`SLACK`]. An element without a bound
//! depends on a condition or a sign that rounding decides. Such an element is counted instead of
//! compared ([`NotCompared`]).
//!
//! If a program is too large for the interpreter, kernels are compared with another kernel, and
//! there are no bounds. Then all elements have the same tolerance
//! ([`Expected::with_scale_tolerance`]). A rounding error is proportional to the numbers that were
//! added, not to their sum, which may be small by cancellation. The tolerance is therefore relative
//! to the largest element of the tensor, and grows with the number of additions. A caller that
//! knows of worse-conditioned elements raises their tolerance by [`Expected::raise_tolerance`].

use std::fmt;

use tilewright_ir::{DType, Number, Program, Tensor, VarKind};

/// The factor by which an element may exceed its bound. It covers effects that the bound leaves
/// out: device libraries that are less accurate than they promise, numbers that are rounded twice
/// on their way from double to half precision, and the rounding of the bounds themselves.
pub const SLACK: f64 = 2.0;

/// The number of roundings that any program may have if there are no bounds.
const ROUNDINGS: f64 = 64.0;

/// The expected content of a result, with tolerances.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The expected elements.
    pub tensor: Tensor,
    tolerance: Tolerance,
}

/// How far elements may be off; infinite for elements that are not compared.
#[derive(Clone, Debug, PartialEq)]
enum Tolerance {
    /// One tolerance for all elements.
    Same(f64),
    /// One tolerance for each element.
    Each(Vec<f64>),
}

/// A borrowed view of how far elements may be off; infinite for elements that are not compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerances<'e> {
    /// One tolerance for all elements.
    Same(f64),
    /// One tolerance for each element.
    Each(&'e [f64]),
}

/// The number of elements of a tensor that were not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared {
    /// The name of the tensor.
    pub name: String,
    /// The number of elements that were not compared.
    pub undecided: usize,
    /// The number of all elements of the tensor.
    pub elements: usize,
}

impl NotCompared {
    /// Returns true when no element was compared.
    pub fn is_whole_tensor(&self) -> bool {
        self.undecided == self.elements
    }
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotCompared { name, undecided, elements } = self;
        if self.is_whole_tensor() {
            return write!(
                f,
                "no element of {name} was compared: with these inputs, the values of all \
                 {elements} elements depend on the rounding of floats"
            );
        }
        write!(
            f,
            "{undecided} of {elements} elements of {name} were not compared: their values depend \
             on the rounding of floats"
        )
    }
}

/// Elements that differ by more than rounding allows.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The name of the tensor.
    pub name: String,
    /// The number of wrong elements.
    pub wrong: usize,
    /// The number of all elements of the tensor.
    pub elements: usize,
    /// The number of elements that were not compared.
    pub undecided: usize,
    /// The subscripts of the first wrong element.
    pub element: Vec<usize>,
    /// The computed value of that element.
    pub found: Number,
    /// The expected value of that element.
    pub expected: Number,
    /// The tolerance of that element.
    pub tolerance: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { name, wrong, elements, undecided, tolerance: limit, .. } = self;
        let place: Vec<String> = self.element.iter().map(usize::to_string).collect();
        write!(
            f,
            "{wrong} of {elements} elements of {name} are wrong: {name}({}) is {}, expected {}",
            place.join(", "),
            format_number(self.found),
            format_number(self.expected)
        )?;
        if *limit > 0.0 {
            write!(f, ", with a tolerance of {limit:.1e}")?;
        }
        if *undecided > 0 {
            write!(f, "; {undecided} elements were not compared")?;
        }
        Ok(())
    }
}

impl Expected {
    /// The interpreter's result, with an error bound for each element of a kernel's result.
    /// `errors` is empty if all elements are exact.
    pub(crate) fn bounded(tensor: Tensor, errors: Vec<f64>) -> Expected {
        let tolerance = match errors.is_empty() {
            true => Tolerance::Same(0.0),
            false => Tolerance::Each(errors.into_iter().map(|error| SLACK * error).collect()),
        };
        Expected { tensor, tolerance }
    }

    /// The result of a reference kernel, whose elements have no bounds.
    pub fn with_scale_tolerance(program: &Program, tensor: Tensor) -> Expected {
        let limit = scale_tolerance(program, &tensor);
        Expected::with_tolerance(tensor, limit)
    }

    /// A result whose elements all have the same tolerance.
    pub fn with_tolerance(tensor: Tensor, limit: f64) -> Expected {
        Expected { tensor, tolerance: Tolerance::Same(limit) }
    }

    /// The tolerance of the elements without bounds, as in [`Expected::with_scale_tolerance`].
    pub fn scale_tolerance(&self, program: &Program) -> f64 {
        scale_tolerance(program, &self.tensor)
    }

    /// The tolerance of the element at an index in row-major order; infinite if it is not compared.
    pub fn tolerance_at(&self, at: usize) -> f64 {
        match &self.tolerance {
            Tolerance::Same(limit) => *limit,
            Tolerance::Each(limits) => limits[at],
        }
    }

    /// The tolerances of all elements.
    pub fn tolerances(&self) -> Tolerances<'_> {
        match &self.tolerance {
            Tolerance::Same(limit) => Tolerances::Same(*limit),
            Tolerance::Each(limits) => Tolerances::Each(limits),
        }
    }

    /// Raises the tolerance of each element by `by` of its index.
    pub fn raise_tolerance(&mut self, by: impl Fn(usize) -> f64) {
        let limits = (0..self.tensor.len()).map(|at| self.tolerance_at(at) + by(at)).collect();
        self.tolerance = Tolerance::Each(limits);
    }

    /// The elements of a result that are not compared, or `None` if all are. `name` is the result's
    /// name.
    pub fn not_compared(&self, name: &str) -> Option<NotCompared> {
        let (undecided, elements) = (self.undecided_count(), self.tensor.len());
        (undecided > 0).then(|| NotCompared { name: name.to_owned(), undecided, elements })
    }

    fn undecided_count(&self) -> usize {
        (0..self.tensor.len()).filter(|at| self.tolerance_at(*at) == f64::INFINITY).count()
    }

    /// Compares a kernel's result, whose name is `name`, with the expected one.
    pub fn compare(&self, name: &str, found: &Tensor) -> Result<(), Box<Difference>> {
        let wanted = &self.tensor;
        let differs = |at: &usize| !is_close(found.get(*at), wanted.get(*at), self.tolerance_at(*at));
        let mut places = (0..wanted.len()).filter(differs);
        let Some(first) = places.next() else { return Ok(()) };
        Err(Box::new(Difference {
            name: name.to_owned(),
            wrong: 1 + places.count(),
            elements: wanted.len(),
            undecided: self.undecided_count(),
            element: subscripts(wanted.shape(), first),
            found: found.get(first),
            expected: wanted.get(first),
            tolerance: self.tolerance_at(first),
        }))
    }
}

/// The tolerance of a result whose elements have no bounds.
fn scale_tolerance(program: &Program, wanted: &Tensor) -> f64 {
    let has_floats = program.tensors.iter().any(|tensor| tensor.dtype.is_float())
        || program.scalars.iter().any(|scalar| scalar.dtype.is_float());
    if !has_floats {
        return 0.0;
    }
    if !wanted.dtype().is_float() {
        // A float near the boundary between two integers may become either of them.
        return 1.0;
    }
    let finite = (0..wanted.len()).map(|at| wanted.get(at).as_f64().abs()).filter(|value| value.is_finite());
    let scale = finite.fold(0.0, f64::max);
    let stored = program.tensors.iter().filter(|tensor| tensor.dtype.is_float());
    let stored = stored.map(|tensor| epsilon(tensor.dtype)).fold(0.0, f64::max);
    let computed = epsilon(wanted.dtype().compute_type());
    scale * (4.0 * stored + computed * (ROUNDINGS + additions(program)))
}

/// An upper bound on the number of values that are added up to one element.
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

fn is_close(found: Number, wanted: Number, limit: f64) -> bool {
    if found == wanted {
        return true;
    }
    let (found, wanted) = (found.as_f64(), wanted.as_f64());
    limit == f64::INFINITY
        || found == wanted
        || (found.is_nan() && wanted.is_nan())
        || (found - wanted).abs() <= limit
}

/// The subscripts of an index in row-major order.
fn subscripts(shape: &[usize], index: usize) -> Vec<usize> {
    let mut rest = index;
    let mut subscripts: Vec<usize> = Vec::new();
    for extent in shape.iter().rev() {
        subscripts.push(rest % extent);
        rest /= extent;
    }
    subscripts.reverse();
    subscripts
}

fn format_number(number: Number) -> String {
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
    fn without_bounds_rounding_is_judged_by_the_largest_element() {
        let program = program("def f(float(N) x) -> (y) { y(i, j) = x(i) * x(j) }");
        let wanted = results(DType::Float32, [1.0, f64::NAN, f64::INFINITY, 100.0]);
        let expected = Expected::with_scale_tolerance(&program, wanted);
        let judge = |values| expected.compare("y", &results(DType::Float32, values));
        assert!(judge([1.0 + 1e-6, f64::NAN, f64::INFINITY, 100.0 + 1e-5]).is_ok());
        assert!(judge([1.0 + 1e-4, f64::NAN, f64::INFINITY, 100.0]).is_ok());
        let message = judge([1.0, f64::NAN, f64::INFINITY, 100.5]).unwrap_err().to_string();
        let wanted =
            "1 of 4 elements of y are wrong: y(1, 1) is 100.5, expected 100, with a tolerance of 8.2e-4";
        assert_eq!(message, wanted);
        assert!(judge([1.0, 0.0, f64::INFINITY, 100.0]).is_err());
        assert!(judge([1.0, f64::NAN, f64::NEG_INFINITY, 100.0]).is_err());
    }

    #[test]
    fn every_element_has_its_own_bound() {
        let wanted = results(DType::Float32, [1.0, 2.0, f64::NAN, 4.0]);
        let mut expected = Expected::bounded(wanted, vec![1e-6, 0.0, f64::INFINITY, f64::INFINITY]);
        let judge = |expected: &Expected, values| expected.compare("y", &results(DType::Float32, values));
        assert!(judge(&expected, [1.0 + SLACK * 0.9e-6, 2.0, 3.0, f64::NAN]).is_ok());
        let message = judge(&expected, [1.0 + SLACK * 1.2e-6, 2.5, 0.0, 0.0]).unwrap_err().to_string();
        assert_eq!(
            message,
            "2 of 4 elements of y are wrong: y(0, 0) is 1.000002384185791, expected 1, \
             with a tolerance of 2.0e-6; 2 elements were not compared"
        );
        let doubt = expected.not_compared("y").unwrap();
        assert!(!doubt.is_whole_tensor());
        assert_eq!(
            doubt.to_string(),
            "2 of 4 elements of y were not compared: their values depend on the rounding of floats"
        );
        expected.raise_tolerance(|at| if at == 1 { 1.0 } else { 0.0 });
        assert!(judge(&expected, [1.0, 2.9, 3.0, f64::NAN]).is_ok());
        expected.raise_tolerance(|_| f64::INFINITY);
        assert!(expected.not_compared("y").unwrap().is_whole_tensor());
    }

    #[test]
    fn integers_are_the_same_unless_they_come_from_floats() {
        let judge = |text: &str| {
            let (found, wanted) = ([1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 4.0]);
            let expected = Expected::with_scale_tolerance(&program(text), results(DType::Int32, wanted));
            expected.compare("y", &results(DType::Int32, found)).is_ok()
        };
        assert!(!judge("def f(int(N) x) -> (y) { y(i, j) = x(i) + x(j) }"));
        assert!(judge("def f(float(N) x) -> (y) { y(i, j) = int(x(i) + x(j)) }"));
    }
}
