//! Whether a kernel computed what it should.
//!
//! Integers of a program without floats must be the same. Floats may differ by rounding: a schedule changes the order
//! of a sum, vectors fuse multiplications with additions, and the interpreter accumulates in double precision. How far an
//! element may be off, [`expect`](crate::expect) knows of each: its bound, times [`SLACK`]. An element of which it knows nothing,
//! because rounding decides a condition or a sign that it depends on, is not compared, but counted ([`Doubt`]).
//!
//! Where a program is too large for the interpreter, kernels are compared with a kernel, and there are no bounds. There
//! the tolerance is the same for all elements ([`Expected::by_scale`]). An error of rounding is in proportion to the numbers that were
//! added, not to what is left of them, so it is judged by the largest element of the tensor, and the more is added up the more it
//! may be. Whoever knows elements that are worse conditioned says so by [`Expected::widen`].

use std::fmt;

use tilewright_ir::{DType, Number, Program, Tensor, VarKind};

/// An element may be so many times its bound off: for what the bound leaves out, such as libraries of devices that are less accurate than they say, numbers that are
/// rounded twice on their way from double to half precision, and the rounding of bounds.
pub const SLACK: f64 = 2.0;

/// Roundings that any program is allowed where there are no bounds.
const ROUNDINGS: f64 = 64.0;

/// What a result should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// The elements.
    pub tensor: Tensor,
    tolerance: Tolerance,
}

/// How far elements may be off; infinite for those that are not compared.
#[derive(Clone, Debug, PartialEq)]
enum Tolerance {
    /// All the same.
    Same(f64),
    /// One for each element.
    Each(Vec<f64>),
}

/// How far elements may be off; infinite for those that are not compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limits<'e> {
    /// All the same.
    Same(f64),
    /// One for each element.
    Each(&'e [f64]),
}

/// Elements of a tensor that were not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doubt {
    /// The tensor.
    pub name: String,
    /// How many of its elements.
    pub undecided: usize,
    /// How many it has.
    pub elements: usize,
}

impl Doubt {
    /// Whether nothing at all was compared.
    pub fn is_total(&self) -> bool {
        self.undecided == self.elements
    }
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Doubt { name, undecided, elements } = self;
        if self.is_total() {
            return write!(
                f,
                "nothing of {name} was compared: with these inputs, the rounding of floats decides what each of its \
                 {elements} elements is"
            );
        }
        write!(
            f,
            "{undecided} of {elements} elements of {name} were not compared: the rounding of floats decides what \
             they are"
        )
    }
}

/// Elements that differ by more than rounding.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The tensor.
    pub name: String,
    /// How many of its elements.
    pub wrong: usize,
    /// How many it has.
    pub elements: usize,
    /// How many of these were not compared.
    pub undecided: usize,
    /// The subscripts of the first.
    pub place: Vec<usize>,
    /// What it is.
    pub found: Number,
    /// What it should be.
    pub wanted: Number,
    /// How far it may be off.
    pub limit: f64,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { name, wrong, elements, undecided, limit, .. } = self;
        let place: Vec<String> = self.place.iter().map(usize::to_string).collect();
        write!(
            f,
            "{wrong} of {elements} elements of {name} are wrong: {name}({}) is {}, and should be {}",
            place.join(", "),
            shown(self.found),
            shown(self.wanted)
        )?;
        if *limit > 0.0 {
            write!(f, ", give or take {limit:.1e}")?;
        }
        if *undecided > 0 {
            write!(f, "; {undecided} could not be compared")?;
        }
        Ok(())
    }
}

impl Expected {
    /// What the interpreter computes, and how far the elements of a kernel's result may be off; no distances where all are exact.
    pub(crate) fn bounded(tensor: Tensor, errors: Vec<f64>) -> Expected {
        let tolerance = match errors.is_empty() {
            true => Tolerance::Same(0.0),
            false => Tolerance::Each(errors.into_iter().map(|error| SLACK * error).collect()),
        };
        Expected { tensor, tolerance }
    }

    /// What a kernel has computed of a program, of whose elements nothing more is known.
    pub fn by_scale(program: &Program, tensor: Tensor) -> Expected {
        let limit = tolerance(program, &tensor);
        Expected::with_limit(tensor, limit)
    }

    /// A result whose elements may all be equally far off.
    pub fn with_limit(tensor: Tensor, limit: f64) -> Expected {
        Expected { tensor, tolerance: Tolerance::Same(limit) }
    }

    /// How far elements might be off if nothing more were known of them, as [`Expected::by_scale`] says.
    pub fn usual_limit(&self, program: &Program) -> f64 {
        tolerance(program, &self.tensor)
    }

    /// How far the element at a place may be off; infinite if it is not compared.
    pub fn limit(&self, at: usize) -> f64 {
        match &self.tolerance {
            Tolerance::Same(limit) => *limit,
            Tolerance::Each(limits) => limits[at],
        }
    }

    /// How far elements may be off, for whoever compares all of them.
    pub fn limits(&self) -> Limits<'_> {
        match &self.tolerance {
            Tolerance::Same(limit) => Limits::Same(*limit),
            Tolerance::Each(limits) => Limits::Each(limits),
        }
    }

    /// Lets elements be further off, each by what is said of its place.
    pub fn widen(&mut self, by: impl Fn(usize) -> f64) {
        let limits = (0..self.tensor.len()).map(|at| self.limit(at) + by(at)).collect();
        self.tolerance = Tolerance::Each(limits);
    }

    /// What is not compared of a result with this name; nothing if everything is.
    pub fn doubt(&self, name: &str) -> Option<Doubt> {
        let (undecided, elements) = (self.undecided(), self.tensor.len());
        (undecided > 0).then(|| Doubt { name: name.to_owned(), undecided, elements })
    }

    fn undecided(&self) -> usize {
        (0..self.tensor.len()).filter(|at| self.limit(*at) == f64::INFINITY).count()
    }

    /// Compares what a kernel has computed of a result with this name.
    pub fn compare(&self, name: &str, found: &Tensor) -> Result<(), Box<Difference>> {
        let wanted = &self.tensor;
        let differs = |at: &usize| !close(found.get(*at), wanted.get(*at), self.limit(*at));
        let mut places = (0..wanted.len()).filter(differs);
        let Some(first) = places.next() else { return Ok(()) };
        Err(Box::new(Difference {
            name: name.to_owned(),
            wrong: 1 + places.count(),
            elements: wanted.len(),
            undecided: self.undecided(),
            place: subscripts(wanted.shape(), first),
            found: found.get(first),
            wanted: wanted.get(first),
            limit: self.limit(first),
        }))
    }
}

/// How far elements of a result may be apart of which nothing else is known.
fn tolerance(program: &Program, wanted: &Tensor) -> f64 {
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
    limit == f64::INFINITY
        || found == wanted
        || (found.is_nan() && wanted.is_nan())
        || (found - wanted).abs() <= limit
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
    fn without_bounds_rounding_is_judged_by_the_largest_element() {
        let program = program("def f(float(N) x) -> (y) { y(i, j) = x(i) * x(j) }");
        let wanted = results(DType::Float32, [1.0, f64::NAN, f64::INFINITY, 100.0]);
        let expected = Expected::by_scale(&program, wanted);
        let judge = |values| expected.compare("y", &results(DType::Float32, values));
        assert!(judge([1.0 + 1e-6, f64::NAN, f64::INFINITY, 100.0 + 1e-5]).is_ok());
        assert!(judge([1.0 + 1e-4, f64::NAN, f64::INFINITY, 100.0]).is_ok());
        let message = judge([1.0, f64::NAN, f64::INFINITY, 100.5]).unwrap_err().to_string();
        let wanted =
            "1 of 4 elements of y are wrong: y(1, 1) is 100.5, and should be 100, give or take 8.2e-4";
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
            "2 of 4 elements of y are wrong: y(0, 0) is 1.000002384185791, and should be 1, give or take 2.0e-6; \
             2 could not be compared"
        );
        let doubt = expected.doubt("y").unwrap();
        assert!(!doubt.is_total());
        assert_eq!(
            doubt.to_string(),
            "2 of 4 elements of y were not compared: the rounding of floats decides what they are"
        );
        expected.widen(|at| if at == 1 { 1.0 } else { 0.0 });
        assert!(judge(&expected, [1.0, 2.9, 3.0, f64::NAN]).is_ok());
        expected.widen(|_| f64::INFINITY);
        assert!(expected.doubt("y").unwrap().is_total());
    }

    #[test]
    fn integers_are_the_same_unless_they_come_from_floats() {
        let judge = |text: &str| {
            let (found, wanted) = ([1.0, 2.0, 3.0, 5.0], [1.0, 2.0, 3.0, 4.0]);
            let expected = Expected::by_scale(&program(text), results(DType::Int32, wanted));
            expected.compare("y", &results(DType::Int32, found)).is_ok()
        };
        assert!(!judge("def f(int(N) x) -> (y) { y(i, j) = x(i) + x(j) }"));
        assert!(judge("def f(float(N) x) -> (y) { y(i, j) = int(x(i) + x(j)) }"));
    }
}
