//! Defines sets of integer vectors ([`Set`]), the operations on them, and questions about them.

use std::ffi::{c_int, c_uint};

use crate::affine::Affine;
use crate::map::Map;
use crate::rows;
use crate::{Answer, Context, GaveUp, bool_answer, object, sys};

object! {
    /// A set of integer vectors, all with the same number of coordinates.
    Set, Set, isl_set_copy, isl_set_free, isl_set_to_str
}

impl Set {
    /// All vectors with `dimensions` coordinates.
    pub fn universe(context: &Context, dimensions: usize) -> Set {
        Set::from_raw(context, unsafe { sys::isl_set_universe(set_space(context, dimensions)) })
    }

    /// The empty set of vectors with `dimensions` coordinates.
    pub fn empty(context: &Context, dimensions: usize) -> Set {
        Set::from_raw(context, unsafe { sys::isl_set_empty(set_space(context, dimensions)) })
    }

    /// The vectors with `dimensions` coordinates at which all `functions` are at least 0.
    pub fn where_nonnegative(context: &Context, dimensions: usize, functions: &[Affine]) -> Set {
        let linear: Vec<_> = functions.iter().filter_map(Affine::as_linear).collect();
        let others = functions.iter().filter(|own| own.as_linear().is_none());
        others.fold(rows::set(context, dimensions, &[], &linear), |set, own| {
            set.intersect(&own.nonnegative_set())
        })
    }

    /// The vectors that are in both sets.
    pub fn intersect(&self, other: &Set) -> Set {
        self.combine(other, sys::isl_set_intersect)
    }

    /// The vectors that are in at least one of the sets.
    pub fn union(&self, other: &Set) -> Set {
        self.combine(other, sys::isl_set_union)
    }

    /// The vectors that are in this set but not in `other`.
    pub fn subtract(&self, other: &Set) -> Set {
        self.combine(other, sys::isl_set_subtract)
    }

    /// The product: a vector of this set, followed by the coordinates of a vector of `other`.
    pub fn product(&self, other: &Set) -> Set {
        self.combine(other, sys::isl_set_flat_product)
    }

    /// The vectors that `map` relates vectors of this set to.
    pub fn apply(&self, map: &Map) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_set_apply(self.taken(), map.taken()) })
    }

    /// The same set in fewer pieces, if isl finds a simpler form.
    pub fn coalesce(&self) -> Set {
        let found = Set::from_raw(&self.context, unsafe { sys::isl_set_coalesce(self.taken()) });
        // Coalescing sometimes fails with an internal error of isl. The original pieces are still
        // correct.
        match found.is_lost() && !self.is_lost() && self.context.take_internal_error() {
            true => self.clone(),
            false => found,
        }
    }

    /// Projects `count` coordinates out, from `first` on.
    pub fn project_out(&self, first: usize, count: usize) -> Set {
        let raw =
            unsafe { sys::isl_set_project_out(self.taken(), sys::DIM_SET, first as c_uint, count as c_uint) };
        Set::from_raw(&self.context, raw)
    }

    /// Inserts `count` coordinates at `at` that may have any value.
    pub fn insert_dims(&self, at: usize, count: usize) -> Set {
        let raw =
            unsafe { sys::isl_set_insert_dims(self.taken(), sys::DIM_SET, at as c_uint, count as c_uint) };
        Set::from_raw(&self.context, raw)
    }

    /// The identity relation: relates every vector of the set to itself.
    pub fn identity(&self) -> Map {
        Map::from_raw(&self.context, unsafe { sys::isl_set_identity(self.taken()) })
    }

    /// Returns true when the set has no vectors.
    pub fn is_empty(&self) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_set_is_empty(self.raw) })
    }

    /// Checks whether all vectors of this set are in `other`.
    pub fn is_subset(&self, other: &Set) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_set_is_subset(self.raw, other.raw) })
    }

    /// Checks whether both sets have the same vectors.
    pub fn is_equal(&self, other: &Set) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_set_is_equal(self.raw, other.raw) })
    }

    /// The number of coordinates of the set's vectors.
    pub fn dimensions(&self) -> Answer<usize> {
        usize::try_from(unsafe { sys::isl_set_dim(self.raw, sys::DIM_SET) }).map_err(|_| GaveUp)
    }

    /// Any one vector of the set, or `None` if the set is empty.
    pub fn sample(&self) -> Answer<Option<Vec<i64>>> {
        let dimensions = self.dimensions()?;
        let point = Point(unsafe { sys::isl_set_sample_point(self.taken()) });
        if bool_answer(unsafe { sys::isl_point_is_void(point.0) })? {
            return Ok(None);
        }
        (0..dimensions).map(|at| point.coordinate(at)).collect::<Answer<Vec<i64>>>().map(Some)
    }

    /// The least and the greatest value of the coordinate `at`, if both exist.
    pub fn bounds(&self, at: usize) -> Answer<Option<(i64, i64)>> {
        let least = to_integer(unsafe { sys::isl_set_dim_min_val(self.taken(), at as c_int) })?;
        let greatest = to_integer(unsafe { sys::isl_set_dim_max_val(self.taken(), at as c_int) })?;
        Ok(least.zip(greatest))
    }

    /// The coordinates that are linear functions of other coordinates in all vectors of the set. No
    /// coordinate solved for appears in the equation of another.
    pub fn equations(&self) -> Answer<Vec<Equation>> {
        let dimensions = self.dimensions()?;
        let rows = rows::equation_rows(self, dimensions)?;
        let solved = rows.into_iter().filter_map(|row| {
            let divided = &row[dimensions..row.len() - 1];
            let coordinate = row[..dimensions].iter().rposition(|own| *own != 0)?;
            // The row sums to 0 and the coordinate's coefficient is 1 or -1. Multiplying the other
            // terms by `sign`, the negated coefficient, gives the coordinate.
            let sign = -row[coordinate];
            let is_solved = sign.abs() == 1 && divided.iter().all(|own| *own == 0);
            let mut coefficients: Vec<i64> = row[..dimensions].iter().map(|own| own * sign).collect();
            coefficients[coordinate] = 0;
            is_solved.then(|| Equation { coordinate, coefficients, constant: row[row.len() - 1] * sign })
        });
        Ok(solved.collect())
    }

    fn combine(
        &self,
        other: &Set,
        operation: unsafe extern "C" fn(*mut sys::Set, *mut sys::Set) -> *mut sys::Set,
    ) -> Set {
        Set::from_raw(&self.context, unsafe { operation(self.taken(), other.taken()) })
    }
}

/// A coordinate as a linear function of other coordinates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// The coordinate that the equation defines.
    pub coordinate: usize,
    /// The coefficient of each coordinate; 0 for the defined coordinate.
    pub coefficients: Vec<i64>,
    /// The constant of the linear function.
    pub constant: i64,
}

struct Point(*mut sys::Point);

impl Point {
    fn coordinate(&self, at: usize) -> Answer<i64> {
        let value = unsafe { sys::isl_point_get_coordinate_val(self.0, sys::DIM_SET, at as c_int) };
        to_integer(value)?.ok_or(GaveUp)
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        unsafe { sys::isl_point_free(self.0) };
    }
}

/// The value as a number, or `None` if the value is infinite or no integer. Frees the value.
pub(crate) fn to_integer(value: *mut sys::Val) -> Answer<Option<i64>> {
    let is_integer = bool_answer(unsafe { sys::isl_val_is_int(value) });
    let number = unsafe { sys::isl_val_get_num_si(value) };
    unsafe { sys::isl_val_free(value) };
    Ok(is_integer?.then_some(number))
}

pub(crate) fn set_space(context: &Context, dimensions: usize) -> *mut sys::Space {
    unsafe { sys::isl_space_set_alloc(context.raw(), 0, dimensions as c_uint) }
}
