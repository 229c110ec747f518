//! Measures how far each element of a result moves when the last bits of the inputs change.
//!
//! This is for programs whose kernels are compared with another kernel instead of the interpreter.
//! There no error bounds of single elements are known, and all elements have the same tolerance
//! ([`Expected::with_scale_tolerance`]). But a program that divides by nearly zero has some
//! elements that rounding moves much further.
//!
//! [`widen_tolerances`] runs the reference kernel on inputs that are changed by a few units in
//! the last place, as in Monte Carlo arithmetic (D. S. Parker, 1997). Such a perturbation has
//! the size of a kernel's rounding errors and propagates to the results in the same way. Every
//! element may then be off by a multiple of the distance that it moved. An element that became
//! infinite or NaN is not compared.

use tilewright_interp::Expected;
use tilewright_ir::{DType, Tensor};
use tilewright_runtime::{Buffer, RunError};

use super::Runner;

/// The number of times that inputs are perturbed, each time in another way.
const ROUNDS: u64 = 3;
/// An element may be off by this many times the longest distance that it moved.
const DISTANCE_FACTOR: f64 = 32.0;
/// The largest change of a number's bits.
const LARGEST_BIT_CHANGE: u64 = 3;

/// A change of the last bits of all floats of one type. Applying it twice restores the floats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Perturbation {
    dtype: DType,
    round: u64,
}

impl Perturbation {
    /// Returns true if the perturbation changes floats of this type.
    pub fn applies_to(self, dtype: DType) -> bool {
        self.dtype == dtype
    }

    /// Changes the elements of a tensor. Returns true if they have the type that the perturbation
    /// changes.
    pub fn apply(self, buffer: &mut Buffer) -> bool {
        if !self.applies_to(buffer.layout().dtype()) {
            return false;
        }
        if let Some(floats) = buffer.as_mut_slice::<f32>() {
            for (at, float) in floats.iter_mut().enumerate() {
                let bits = float.to_bits();
                if float.is_finite() && u64::from(bits & !(1 << 31)) > LARGEST_BIT_CHANGE {
                    *float = f32::from_bits(bits ^ self.flipped_bits(at) as u32);
                }
            }
        }
        if let Some(floats) = buffer.as_mut_slice::<f64>() {
            for (at, float) in floats.iter_mut().enumerate() {
                let bits = float.to_bits();
                if float.is_finite() && bits & !(1 << 63) > LARGEST_BIT_CHANGE {
                    *float = f64::from_bits(bits ^ self.flipped_bits(at));
                }
            }
        }
        true
    }

    /// The bits to flip in the element at this index: a hash of the index and the round.
    fn flipped_bits(self, at: usize) -> u64 {
        let mixed = (at as u64 ^ (self.round << 48)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 62
    }
}

/// Raises the tolerance of each element by the distance that the element moves when inputs are
/// perturbed. `expected` holds the results of `kernel`.
pub(crate) fn widen_tolerances<R: Runner>(
    runner: &mut R,
    kernel: &R::Kernel,
    expected: &mut [Expected],
) -> Result<(), RunError> {
    // Perturbing single-precision inputs would move double-precision results by more than rounding
    // does.
    let is_double = expected.iter().any(|own| own.tensor.dtype() == DType::Float64);
    let dtype = if is_double { DType::Float64 } else { DType::Float32 };
    let mut moved: Vec<Vec<f64>> = expected.iter().map(|own| vec![0.0; own.tensor.len()]).collect();
    for round in 0..ROUNDS {
        let nudge = Perturbation { dtype, round };
        if !runner.perturb_inputs(nudge)? {
            return Ok(());
        }
        let called = runner.first_call(kernel);
        runner.perturb_inputs(nudge)?;
        // An index that depends on floats may now leave its tensor. That says nothing about the
        // elements.
        if let Err(RunError::OutOfBounds(_)) = called {
            continue;
        }
        called?;
        for ((found, expected), moved) in runner.results()?.iter().zip(expected.iter()).zip(&mut moved) {
            raise_distances(found, &expected.tensor, moved)?;
        }
    }
    for (expected, moved) in expected.iter_mut().zip(moved) {
        expected.raise_tolerance(|at| DISTANCE_FACTOR * moved[at]);
    }
    Ok(())
}

/// Raises `moved` to the distances between two results where they are longer.
fn raise_distances(found: &Buffer, usual: &Tensor, moved: &mut [f64]) -> Result<(), RunError> {
    if let Some(found) = found.as_slice::<f32>() {
        // A fast path without conversion to numbers of any type: most data is `f32`, and there may
        // be much.
        let usual = usual
            .bytes()
            .chunks_exact(4)
            .map(|four| f32::from_le_bytes([four[0], four[1], four[2], four[3]]));
        for ((found, usual), moved) in found.iter().zip(usual).zip(moved) {
            *moved = moved.max(distance(f64::from(*found), f64::from(usual)));
        }
        return Ok(());
    }
    let found = found.to_tensor()?;
    for (at, moved) in moved.iter_mut().enumerate() {
        *moved = moved.max(distance(found.get(at).as_f64(), usual.get(at).as_f64()));
    }
    Ok(())
}

/// The distance between two numbers; infinite if only one is finite.
fn distance(one: f64, other: f64) -> f64 {
    if one == other || (one.is_nan() && other.is_nan()) {
        return 0.0;
    }
    let apart = (one - other).abs();
    if apart.is_nan() { f64::INFINITY } else { apart }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nudge_is_small_and_undone_by_another() {
        let before: Vec<f32> = (0..1000)
            .map(|at| (at as f32 - 500.0) * 0.37)
            .chain([f32::INFINITY, f32::NAN, -0.0, 1e-45])
            .collect();
        let mut buffer = Buffer::from_slice(&before, &[before.len()]).unwrap();
        let nudge = Perturbation { dtype: DType::Float32, round: 2 };
        assert!(nudge.apply(&mut buffer));
        let nudged = buffer.as_slice::<f32>().unwrap().to_vec();
        let near =
            |(old, new): (&f32, &f32)| old == new || (old - new).abs() <= 4e-7 * old.abs() || old.is_nan();
        assert!(before.iter().zip(&nudged).all(near));
        assert!(before.iter().zip(&nudged).filter(|(old, new)| old != new).count() > 600);
        assert!(nudge.apply(&mut buffer));
        let bits = |floats: &[f32]| floats.iter().map(|float| float.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(buffer.as_slice::<f32>().unwrap()), bits(&before));
        assert!(!Perturbation { dtype: DType::Float64, ..nudge }.apply(&mut buffer));
    }
}
