//! Functions of integer vectors: affine ones with quotients and remainders, by pieces.
//!
//! Most functions are sums of coordinates times numbers. These are kept as their coefficients, and isl sees them as rows of
//! a matrix (`rows.rs`): building a set or a relation from them takes one call.

use std::ffi::c_uint;

use crate::rows;
use crate::set::Set;
use crate::{Context, object, sys};

object! {
    /// A function by pieces, as isl has it.
    Pieces, PwAff, isl_pw_aff_copy, isl_pw_aff_free, isl_pw_aff_to_str
}

/// A number for every vector of so many coordinates.
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

/// The sum of coordinates times numbers, and a number.
#[derive(Clone, Debug)]
pub(crate) struct Linear {
    pub coefficients: Vec<i64>,
    pub constant: i64,
}

impl Linear {
    /// Both, number by number; none where one leaves its range.
    fn with(&self, other: &Linear, operation: fn(i64, i64) -> Option<i64>) -> Option<Linear> {
        let both = self.coefficients.iter().zip(&other.coefficients);
        Some(Linear {
            coefficients: both.map(|(own, other)| operation(*own, *other)).collect::<Option<_>>()?,
            constant: operation(self.constant, other.constant)?,
        })
    }

    fn each(&self, operation: impl Fn(i64) -> Option<i64>) -> Option<Linear> {
        let coefficients = self.coefficients.iter().map(|own| operation(*own)).collect::<Option<_>>()?;
        Some(Linear { coefficients, constant: operation(self.constant)? })
    }

    fn is_multiple(&self, of: i64) -> bool {
        of > 0 && self.coefficients.iter().all(|own| own % of == 0)
    }
}

impl Affine {
    /// The coordinate at a place, of vectors with so many.
    pub fn variable(context: &Context, dimensions: usize, at: usize) -> Affine {
        let mut coefficients = vec![0; dimensions];
        coefficients[at] = 1;
        Affine::linear(context, Linear { coefficients, constant: 0 })
    }

    /// The same number for every vector of so many coordinates.
    pub fn constant(context: &Context, dimensions: usize, value: i64) -> Affine {
        Affine::linear(context, Linear { coefficients: vec![0; dimensions], constant: value })
    }

    /// The sum.
    pub fn add(&self, other: &Affine) -> Affine {
        self.with(other, i64::checked_add, sys::isl_pw_aff_add)
    }

    /// The difference.
    pub fn sub(&self, other: &Affine) -> Affine {
        self.with(other, i64::checked_sub, sys::isl_pw_aff_sub)
    }

    /// The smaller of the two.
    pub fn minimum(&self, other: &Affine) -> Affine {
        self.with(other, |_, _| None, sys::isl_pw_aff_min)
    }

    /// The larger of the two.
    pub fn maximum(&self, other: &Affine) -> Affine {
        self.with(other, |_, _| None, sys::isl_pw_aff_max)
    }

    /// The product with a number.
    pub fn scale(&self, by: i64) -> Affine {
        match self.as_linear().and_then(|own| own.each(|number| number.checked_mul(by))) {
            Some(linear) => Affine::linear(&self.context, linear),
            None => self.by_value(by, sys::isl_pw_aff_scale_val),
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
        match self.as_linear().filter(|own| own.is_multiple(by)) {
            Some(own) => {
                let coefficients = own.coefficients.iter().map(|own| own / by).collect();
                Affine::linear(&self.context, Linear { coefficients, constant: own.constant.div_euclid(by) })
            }
            None => {
                let exact = self.by_value(by, sys::isl_pw_aff_scale_down_val);
                exact.in_pieces(|pieces| unsafe { sys::isl_pw_aff_floor(pieces) })
            }
        }
    }

    /// The remainder that belongs to [`Affine::floor_div`].
    pub fn modulo(&self, by: i64) -> Affine {
        match self.as_linear().filter(|own| own.is_multiple(by)) {
            Some(own) => Affine::constant(&self.context, self.dimensions(), own.constant.rem_euclid(by)),
            None => self.by_value(by, sys::isl_pw_aff_mod_val),
        }
    }

    /// The vectors at which it is at least 0.
    pub fn nonnegative(&self) -> Set {
        match &self.form {
            Form::Linear(own) => rows::set(&self.context, own.coefficients.len(), &[], &[own]),
            Form::Pieces(own) => {
                Set::from_raw(&self.context, unsafe { sys::isl_pw_aff_nonneg_set(own.taken()) })
            }
        }
    }

    /// The vectors at which it is 0.
    pub fn zero(&self) -> Set {
        match &self.form {
            Form::Linear(own) => rows::set(&self.context, own.coefficients.len(), &[own], &[]),
            Form::Pieces(own) => {
                Set::from_raw(&self.context, unsafe { sys::isl_pw_aff_zero_set(own.taken()) })
            }
        }
    }

    /// How many coordinates its vectors have; 0 if it was given up.
    pub fn dimensions(&self) -> usize {
        match &self.form {
            Form::Linear(own) => own.coefficients.len(),
            Form::Pieces(own) => {
                usize::try_from(unsafe { sys::isl_pw_aff_dim(own.raw, sys::DIM_IN) }).unwrap_or(0)
            }
        }
    }

    /// Its coefficients, if it has no pieces and no quotients.
    pub(crate) fn as_linear(&self) -> Option<&Linear> {
        match &self.form {
            Form::Linear(own) => Some(own),
            Form::Pieces(_) => None,
        }
    }

    /// As isl has it, for a function that takes its argument over.
    pub(crate) fn pieces(&self) -> *mut sys::PwAff {
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

    fn in_pieces(&self, operation: impl Fn(*mut sys::PwAff) -> *mut sys::PwAff) -> Affine {
        let pieces = Pieces::from_raw(&self.context, operation(self.pieces()));
        Affine { context: self.context.clone(), form: Form::Pieces(pieces) }
    }

    fn with(
        &self,
        other: &Affine,
        by_number: fn(i64, i64) -> Option<i64>,
        operation: unsafe extern "C" fn(*mut sys::PwAff, *mut sys::PwAff) -> *mut sys::PwAff,
    ) -> Affine {
        let both = self.as_linear().zip(other.as_linear());
        match both.and_then(|(own, other)| own.with(other, by_number)) {
            Some(linear) => Affine::linear(&self.context, linear),
            None => self.in_pieces(|pieces| unsafe { operation(pieces, other.pieces()) }),
        }
    }

    fn by_value(
        &self,
        by: i64,
        operation: unsafe extern "C" fn(*mut sys::PwAff, *mut sys::Val) -> *mut sys::PwAff,
    ) -> Affine {
        self.in_pieces(|pieces| unsafe { operation(pieces, self.context.value(by)) })
    }
}

fn local_space(context: &Context, dimensions: usize) -> *mut sys::LocalSpace {
    unsafe {
        sys::isl_local_space_from_space(sys::isl_space_set_alloc(context.raw(), 0, dimensions as c_uint))
    }
}
