//! Compares results on the device that computed them.
//!
//! Copying large results from a device and comparing them on the host takes longer than all calls
//! of a kernel. So a small generated program checks on the device whether every element is within
//! its tolerance, and only its answer is copied. The tolerance is one number, or a tensor with a
//! number for each element.
//!
//! The comparison is used only if it passes a test. It must distinguish the expected result from
//! the contents before a call, and from the expected result with another last element. A result
//! that it does not accept is compared on the host, carefully, with a message about the difference.

use tilewright_interp::Expected;
use tilewright_interp::compare::Tolerances;
use tilewright_ir::{DType, Number, Program, Tensor};
use tilewright_runtime::gpu::{DeviceBuffer, GpuBound};
use tilewright_runtime::{Buffer, RunError};
use tilewright_schedule::apply;
use tilewright_search::default_schedule;
use tilewright_syntax::{Bindings, check, parse};

use super::ExpectedResult;
use crate::fixture::Builder;
use crate::fixture::gpu::GpuBuilder;

/// The numbers of elements for which results are compared on the device. Smaller results are
/// compared on the host. So are larger ones, which would be on the device twice.
const COMPARED_ELEMENT_COUNTS: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 28;

/// One comparison for each result, or `None` for results that are compared on the host.
pub(crate) struct Comparisons(Vec<Option<Comparison>>);

impl Comparisons {
    /// Makes comparisons with the expected results. `before` holds the contents of results before a
    /// call.
    pub fn new(builder: &GpuBuilder, wanted: &[ExpectedResult], before: &[DeviceBuffer]) -> Comparisons {
        let each = wanted.iter().zip(before);
        Comparisons(
            each.map(|(wanted, before)| Comparison::new_if_reliable(builder, wanted, before)).collect(),
        )
    }

    /// Returns true if all results are known to be right.
    pub fn are_all_near(&mut self, found: &[&mut DeviceBuffer]) -> Result<bool, RunError> {
        if self.0.len() != found.len() || self.0.iter().any(Option::is_none) {
            return Ok(false);
        }
        let mut all = self.0.iter_mut().flatten().zip(found);
        all.try_fold(true, |near, (own, found)| Ok(near && own.is_near(found)?))
    }
}

/// The tolerance of elements.
enum Tolerance {
    /// The same tolerance for all elements.
    Same(f64),
    /// One tolerance for each element, negative for elements that are not compared.
    Each(DeviceBuffer),
}

/// A comparison with one tensor.
struct Comparison {
    kernel: GpuBound,
    wanted: DeviceBuffer,
    tolerance: Tolerance,
    /// The answer of the kernel, on the device and on the host.
    mismatch: DeviceBuffer,
    host_mismatch: Buffer,
}

impl Comparison {
    /// Makes a comparison, or returns `None` if that fails or the comparison does not pass its
    /// test.
    fn new_if_reliable(
        builder: &GpuBuilder,
        wanted: &ExpectedResult,
        before: &DeviceBuffer,
    ) -> Option<Comparison> {
        let expected = &wanted.expected;
        let tensor = &expected.tensor;
        if tensor.dtype() != DType::Float32 || !COMPARED_ELEMENT_COUNTS.contains(&tensor.len()) {
            return None;
        }
        let mut own = Comparison::new(builder, expected)?;
        let same = DeviceBuffer::from_tensor(builder.device(), tensor).ok()?;
        let other = DeviceBuffer::from_tensor(builder.device(), &with_wrong_last_element(expected)?).ok()?;
        let told_apart =
            own.is_near(&same).ok()? && !own.is_near(before).ok()? && !own.is_near(&other).ok()?;
        told_apart.then_some(own)
    }

    fn new(builder: &GpuBuilder, expected: &Expected) -> Option<Comparison> {
        let tensor = &expected.tensor;
        let limit = match expected.tolerances() {
            Tolerances::Same(limit) => Tolerance::Same(limit),
            Tolerances::Each(each) => {
                let each = tolerance_tensor(tensor.shape(), each)?;
                Tolerance::Each(DeviceBuffer::from_tensor(builder.device(), &each).ok()?)
            }
        };
        let program = comparison_program(tensor.shape(), matches!(limit, Tolerance::Each(_)))?;
        let schedule = default_schedule(&program, builder.target());
        let nest = apply(&program, &schedule, builder.target()).ok()?;
        let kernel = builder.compile(&program, &nest, &schedule).ok()?.bind_on(&[]).ok()?;
        let wanted = DeviceBuffer::from_tensor(builder.device(), tensor).ok()?;
        let far = DeviceBuffer::zeros(builder.device(), DType::Int32, &[]).ok()?;
        let answer = Buffer::zeros(DType::Int32, &[]).ok()?;
        Some(Comparison { kernel, wanted, tolerance: limit, mismatch: far, host_mismatch: answer })
    }

    fn is_near(&mut self, found: &DeviceBuffer) -> Result<bool, RunError> {
        let Comparison { kernel, wanted, tolerance: limit, mismatch: far, host_mismatch: answer } = self;
        match limit {
            Tolerance::Same(limit) => {
                kernel.launch(&[found, wanted], &mut [far], &[Number::Float(*limit)])?
            }
            Tolerance::Each(limits) => kernel.launch(&[found, wanted, limits], &mut [far], &[])?,
        }
        kernel.wait()?;
        far.download(&mut answer.view_mut())?;
        Ok(answer.as_slice::<i32>() == Some(&[0]))
    }
}

/// The tolerances of elements, in single precision.
fn tolerance_tensor(shape: &[usize], each: &[f64]) -> Option<Tensor> {
    let single = |limit: &f64| if *limit == f64::INFINITY { -1.0 } else { *limit as f32 };
    let bytes = each.iter().flat_map(|limit| single(limit).to_le_bytes()).collect();
    Tensor::from_bytes(DType::Float32, shape, bytes).ok()
}

/// The expected tensor with NaN in place of the last element that is compared.
fn with_wrong_last_element(expected: &Expected) -> Option<Tensor> {
    let mut other = expected.tensor.clone();
    let last = (0..other.len()).rev().find(|at| expected.tolerance_at(*at) < f64::INFINITY)?;
    other.set(last, Number::Float(f64::NAN));
    Some(other)
}

/// The program that compares tensors of a shape. Its result is 1 if any element is too far off or
/// NaN, and 0 otherwise. The tolerance is a number, or a tensor if `each` is set.
fn comparison_program(shape: &[usize], each: bool) -> Option<Program> {
    let names =
        |letter: &str| (0..shape.len()).map(|at| format!("{letter}{at}")).collect::<Vec<_>>().join(", ");
    let (sizes, at) = (names("N"), names("i"));
    let (kind, limit, skipped) = match each {
        false => ("float".to_owned(), "limit".to_owned(), String::new()),
        true => (format!("float({sizes})"), format!("limit({at})"), format!("limit({at}) < 0 || ")),
    };
    let source = format!(
        "def compare(float({sizes}) found, float({sizes}) wanted, {kind} limit) -> (far) {{
           far() max=! ({skipped}abs(found({at}) - wanted({at})) <= {limit}) ? 0 : 1
         }}"
    );
    let mut bindings = Bindings::default();
    shape.iter().enumerate().for_each(|(at, extent)| bindings.set(format!("N{at}"), *extent as i64));
    check(&parse(&source).ast, "compare", &bindings).program.filter(Program::is_concrete)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use tilewright_runtime::gpu::DeviceInfo;
    use tilewright_target::GpuApi;

    use super::*;

    /// A tensor of consecutive numbers, with `other` in one place.
    fn counted(shape: &[usize], at: usize, other: f32) -> Tensor {
        let number = |own: usize| if own == at { other } else { own as f32 };
        let bytes = (0..shape.iter().product()).flat_map(|own| number(own).to_le_bytes()).collect();
        Tensor::from_bytes(DType::Float32, shape, bytes).unwrap()
    }

    #[test]
    fn elements_that_are_too_far_off_are_found_where_they_are() {
        let found = DeviceInfo::find(GpuApi::OpenCl, 0);
        if let Err(error) = &found {
            let required = std::env::var("TILEWRIGHT_REQUIRE").unwrap_or_default();
            assert!(!required.split(',').any(|name| name == "opencl"), "opencl is required: {error}");
            eprintln!("skipped: {error}; `make setup-opencl` installs a device that needs no GPU");
        }
        let Ok(found) = found else { return };
        let builder = GpuBuilder::open(0, &found.gpu).unwrap();
        let shape = [3, 150, 200];
        let there = |tensor: &Tensor| DeviceBuffer::from_tensor(builder.device(), tensor).unwrap();
        let wanted = |shape: &[usize]| ExpectedResult {
            name: "x".to_owned(),
            expected: Expected::with_tolerance(counted(shape, 0, 0.0), 0.5),
        };
        let mut own = Comparisons::new(&builder, &[wanted(&shape)], &[there(&counted(&shape, 7, -1.0))]);
        let mut agrees = |at, other| own.are_all_near(&[&mut there(&counted(&shape, at, other))]).unwrap();
        assert!(agrees(0, 0.0) && agrees(89_999, 89_999.25));
        assert!(!agrees(0, 0.75) && !agrees(89_999, 0.0) && !agrees(45_000, f32::NAN));
        // The same with a tolerance for each element, where some elements are not compared.
        let mut each = wanted(&shape);
        each.expected.raise_tolerance(|at| [0.0, 1.0, f64::INFINITY][at % 3]);
        let mut own = Comparisons::new(&builder, &[each], &[there(&counted(&shape, 7, -1.0))]);
        let mut agrees = |at, other| own.are_all_near(&[&mut there(&counted(&shape, at, other))]).unwrap();
        assert!(agrees(0, 0.25) && agrees(1, 2.25) && agrees(2, f32::NAN) && agrees(89_999, 89_999.0));
        assert!(!agrees(0, 0.75) && !agrees(1, 2.75) && !agrees(89_998, f32::NAN));
        // Results that the comparison cannot distinguish and small results are not compared on the
        // device.
        let mut vain = Comparisons::new(&builder, &[wanted(&shape)], &[there(&counted(&shape, 0, 0.0))]);
        assert!(!vain.are_all_near(&[&mut there(&counted(&shape, 0, 0.0))]).unwrap());
        let mut small = Comparisons::new(&builder, &[wanted(&[9])], &[there(&counted(&[9], 7, -1.0))]);
        assert!(!small.are_all_near(&[&mut there(&counted(&[9], 0, 0.0))]).unwrap());
    }
}
