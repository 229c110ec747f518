//! Defines functions that map integer vectors to integers ([`Affine`]). They are piecewise affine,
//! with quotients and remainders.
//!
//! Most functions are linear: a sum of coordinates times coefficients, plus a constant. A linear
//! function is stored as its coefficients and passed to isl as a row of a matrix (`rows.rs`). isl
//! then builds a set or a relation of linear functions in one call.

use std::ffi::c_uint;

use crate::rows;
use crate::set::Set;
use crate::{Context, object, sys};

object! {
    /// A piecewise affine function in isl's representation.
    Pieces, PwAff, isl_pw_aff_copy, isl_pw_aff_free, isl_pw_aff_to_str
}

/// A function that maps each vector with a given number of coordinates to an integer.
#[derive(Clone, Debug)]
pub struct Affine {
    context: Context,
    form: Form,
}

#[derive(Clone, Debug)]
pub(crate) enum Form {
    Linear(Linear),
    Pieces(Pieces),
}

/// A linear function: the sum of the coordinates times their coefficients, plus a constant.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub coefficients: Vec<i64>,
    pub constant: i64,
}

impl Linear {
    /// Combines the coefficients and constants of two functions pairwise. Returns `None` when one
    /// result leaves the range of `i64`, or when `operation` has no result.
    fn combine(&self, other: &Linear, operation: fn(i64, i64) -> Option<i64>) -> Option<Linear> {
        let both = self.coefficients.iter().zip(&other.coefficients);
        Some(Linear {
            coefficients: both.map(|(own, other)| operation(*own, *other)).collect::<Option<_>>()?,
            constant: operation(self.constant, other.constant)?,
        })
    }

    fn map_numbers(&self, operation: impl Fn(i64) -> Option<i64>) -> Option<Linear> {
        let coefficients = self.coefficients.iter().map(|own| operation(*own)).collect::<Option<_>>()?;
        Some(Linear { coefficients, constant: operation(self.constant)? })
    }

    fn is_divisible_by(&self, divisor: i64) -> bool {
        divisor > 0 && self.coefficients.iter().all(|own| own % divisor == 0)
    }
}

impl Affine {
    /// The function whose value is the coordinate number `coordinate` of a vector with `dimensions`
    /// coordinates.
    pub fn variable(context: &Context, dimensions: usize, coordinate: usize) -> Affine {
        let mut coefficients = vec![0; dimensions];
        coefficients[coordinate] = 1;
        Affine::linear(context, Linear { coefficients, constant: 0 })
    }

    /// The function that maps every vector with `dimensions` coordinates to `value`.
    pub fn constant(context: &Context, dimensions: usize, value: i64) -> Affine {
        Affine::linear(context, Linear { coefficients: vec![0; dimensions], constant: value })
    }

    /// The sum.
    pub fn add(&self, other: &Affine) -> Affine {
        self.combine(other, i64::checked_add, sys::isl_pw_aff_add)
    }

    /// The difference.
    pub fn sub(&self, other: &Affine) -> Affine {
        self.combine(other, i64::checked_sub, sys::isl_pw_aff_sub)
    }

    /// The pointwise minimum of the two functions.
    pub fn minimum(&self, other: &Affine) -> Affine {
        self.combine(other, |_, _| None, sys::isl_pw_aff_min)
    }

    /// The pointwise maximum of the two functions.
    pub fn maximum(&self, other: &Affine) -> Affine {
        self.combine(other, |_, _| None, sys::isl_pw_aff_max)
    }

    /// The product with a number.
    pub fn scale(&self, by: i64) -> Affine {
        match self.as_linear().and_then(|own| own.map_numbers(|number| number.checked_mul(by))) {
            Some(linear) => Affine::linear(&self.context, linear),
            None => self.with_value(by, sys::isl_pw_aff_scale_val),
        }
    }

    /// The sum with a number.
    pub fn offset(&self, by: i64) -> Affine {
        if by == 0 {
            return self.clone();
        }
        self.add(&Affine::constant(&self.context, self.dimensions(), by))
    }

    /// The quotient by a positive number, rounded toward minus infinity.
    pub fn floor_div(&self, by: i64) -> Affine {
        match self.as_linear().filter(|own| own.is_divisible_by(by)) {
            Some(own) => {
                let coefficients = own.coefficients.iter().map(|own| own / by).collect();
                Affine::linear(&self.context, Linear { coefficients, constant: own.constant.div_euclid(by) })
            }
            None => {
                let exact = self.with_value(by, sys::isl_pw_aff_scale_down_val);
                exact.map_pieces(|pieces| unsafe { sys::isl_pw_aff_floor(pieces) })
            }
        }
    }

    /// The remainder that belongs to the quotient of [`Affine::floor_div`].
    pub fn modulo(&self, by: i64) -> Affine {
        match self.as_linear().filter(|own| own.is_divisible_by(by)) {
            Some(own) => Affine::constant(&self.context, self.dimensions(), own.constant.rem_euclid(by)),
            None => self.with_value(by, sys::isl_pw_aff_mod_val),
        }
    }

    /// The vectors at which the function is at least 0.
    pub fn nonnegative_set(&self) -> Set {
        match &self.form {
            Form::Linear(own) => rows::set(&self.context, own.coefficients.len(), &[], &[own]),
            Form::Pieces(own) => {
                Set::from_raw(&self.context, unsafe { sys::isl_pw_aff_nonneg_set(own.taken()) })
            }
        }
    }

    /// The vectors at which the function is 0.
    pub fn zero_set(&self) -> Set {
        match &self.form {
            Form::Linear(own) => rows::set(&self.context, own.coefficients.len(), &[own], &[]),
            Form::Pieces(own) => {
                Set::from_raw(&self.context, unsafe { sys::isl_pw_aff_zero_set(own.taken()) })
            }
        }
    }

    /// The number of coordinates of the function's vectors; 0 if isl gave up on the function.
    pub fn dimensions(&self) -> usize {
        match &self.form {
            Form::Linear(own) => own.coefficients.len(),
            Form::Pieces(own) => {
                usize::try_from(unsafe { sys::isl_pw_aff_dim(own.raw, sys::DIM_IN) }).unwrap_or(0)
            }
        }
    }

    /// The coefficients, if the function is stored in linear form.
    pub(crate) fn as_linear(&self) -> Option<&Linear> {
        match &self.form {
            Form::Linear(own) => Some(own),
            Form::Pieces(_) => None,
        }
    }

    /// isl's representation of the function, for an isl call that takes ownership of its argument.
    pub(crate) fn raw_pieces(&self) -> *mut sys::PwAff {
        match &self.form {
            Form::Pieces(own) => own.taken(),
            Form::Linear(own) => unsafe {
                let space = local_space(&self.context, own.coefficients.len());
                let mut sum = sys::isl_aff_val_on_domain(space, self.context.value(own.constant));
                for (at, number) in own.coefficients.iter().enumerate().filter(|(_, number)| **number != 0) {
                    let number = self.context.value(*number);
                    sum = sys::isl_aff_set_coefficient_val(sum, sys::DIM_IN, at as i32, number);
                }
                sys::isl_pw_aff_from_aff(sum)
            },
        }
    }

    fn linear(context: &Context, linear: Linear) -> Affine {
        Affine { context: context.clone(), form: Form::Linear(linear) }
    }

    fn map_pieces(&self, operation: impl Fn(*mut sys::PwAff) -> *mut sys::PwAff) -> Affine {
        let pieces = Pieces::from_raw(&self.context, operation(self.raw_pieces()));
        Affine { context: self.context.clone(), form: Form::Pieces(pieces) }
    }

    fn combine(
        &self,
        other: &Affine,
        by_number: fn(i64, i64) -> Option<i64>,
        operation: unsafe extern "C" fn(*mut sys::PwAff, *mut sys::PwAff) -> *mut sys::PwAff,
    ) -> Affine {
        let both = self.as_linear().zip(other.as_linear());
        match both.and_then(|(own, other)| own.combine(other, by_number)) {
            Some(linear) => Affine::linear(&self.context, linear),
            None => self.map_pieces(|pieces| unsafe { operation(pieces, other.raw_pieces()) }),
        }
    }

    fn with_value(
        &self,
        by: i64,
        operation: unsafe extern "C" fn(*mut sys::PwAff, *mut sys::Val) -> *mut sys::PwAff,
    ) -> Affine {
        self.map_pieces(|pieces| unsafe { operation(pieces, self.context.value(by)) })
    }
}

fn local_space(context: &Context, dimensions: usize) -> *mut sys::LocalSpace {
    unsafe {
        sys::isl_local_space_from_space(sys::isl_space_set_alloc(context.raw(), 0, dimensions as c_uint))
    }
}
