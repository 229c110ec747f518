//! Functions of integer vectors: affine ones with quotients and remainders, by pieces.

use std::ffi::c_uint;

use crate::set::Set;
use crate::{Context, object, sys};

object! {
    /// A number for every vector of so many coordinates.
    Affine, PwAff, isl_pw_aff_copy, isl_pw_aff_free, isl_pw_aff_to_str
}

impl Affine {
    /// The coordinate at a place, of vectors with so many.
    pub fn variable(context: &Context, dimensions: usize, at: usize) -> Affine {
        let space = local_space(context, dimensions);
        let variable = unsafe { sys::isl_aff_var_on_domain(space, sys::DIM_SET, at as c_uint) };
        Affine::from_raw(context, unsafe { sys::isl_pw_aff_from_aff(variable) })
    }

    /// The same number for every vector of so many coordinates.
    pub fn constant(context: &Context, dimensions: usize, value: i64) -> Affine {
        let space = local_space(context, dimensions);
        let value = unsafe { sys::isl_aff_val_on_domain(space, context.value(value)) };
        Affine::from_raw(context, unsafe { sys::isl_pw_aff_from_aff(value) })
    }

    /// The sum.
    pub fn add(&self, other: &Affine) -> Affine {
        self.with(other, sys::isl_pw_aff_add)
    }

    /// The difference.
    pub fn sub(&self, other: &Affine) -> Affine {
        self.with(other, sys::isl_pw_aff_sub)
    }

    /// The smaller of the two.
    pub fn minimum(&self, other: &Affine) -> Affine {
        self.with(other, sys::isl_pw_aff_min)
    }

    /// The larger of the two.
    pub fn maximum(&self, other: &Affine) -> Affine {
        self.with(other, sys::isl_pw_aff_max)
    }

    /// The product with a number.
    pub fn scale(&self, by: i64) -> Affine {
        self.by_value(by, sys::isl_pw_aff_scale_val)
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
        let exact = self.by_value(by, sys::isl_pw_aff_scale_down_val);
        Affine::from_raw(&self.context, unsafe { sys::isl_pw_aff_floor(exact.taken()) })
    }

    /// The remainder that belongs to [`Affine::floor_div`].
    pub fn modulo(&self, by: i64) -> Affine {
        self.by_value(by, sys::isl_pw_aff_mod_val)
    }

    /// The vectors at which it is at least 0.
    pub fn nonnegative(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_pw_aff_nonneg_set(self.taken()) })
    }

    /// The vectors at which it is 0.
    pub fn zero(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_pw_aff_zero_set(self.taken()) })
    }

    /// How many coordinates its vectors have; 0 if it was given up.
    pub fn dimensions(&self) -> usize {
        usize::try_from(unsafe { sys::isl_pw_aff_dim(self.raw, sys::DIM_IN) }).unwrap_or(0)
    }

    fn with(
        &self,
        other: &Affine,
        operation: unsafe extern "C" fn(*mut sys::PwAff, *mut sys::PwAff) -> *mut sys::PwAff,
    ) -> Affine {
        Affine::from_raw(&self.context, unsafe { operation(self.taken(), other.taken()) })
    }

    fn by_value(
        &self,
        by: i64,
        operation: unsafe extern "C" fn(*mut sys::PwAff, *mut sys::Val) -> *mut sys::PwAff,
    ) -> Affine {
        Affine::from_raw(&self.context, unsafe { operation(self.taken(), self.context.value(by)) })
    }
}

fn local_space(context: &Context, dimensions: usize) -> *mut sys::LocalSpace {
    unsafe {
        sys::isl_local_space_from_space(sys::isl_space_set_alloc(context.raw(), 0, dimensions as c_uint))
    }
}
