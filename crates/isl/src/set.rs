//! Sets of integer vectors.

use std::ffi::{c_int, c_uint};

use crate::affine::Affine;
use crate::map::Map;
use crate::rows;
use crate::{Answer, Context, GaveUp, answer, object, sys};

object! {
    /// A set of integer vectors with so many coordinates.
    Set, Set, isl_set_copy, isl_set_free, isl_set_to_str
}

impl Set {
    /// All vectors with so many coordinates.
    pub fn universe(context: &Context, dimensions: usize) -> Set {
        Set::from_raw(context, unsafe { sys::isl_set_universe(space(context, dimensions)) })
    }

    /// None of them.
    pub fn empty(context: &Context, dimensions: usize) -> Set {
        Set::from_raw(context, unsafe { sys::isl_set_empty(space(context, dimensions)) })
    }

    /// The vectors with so many coordinates at which all these functions are at least 0.
    pub fn where_nonnegative(context: &Context, dimensions: usize, functions: &[Affine]) -> Set {
        let linear: Vec<_> = functions.iter().filter_map(Affine::as_linear).collect();
        let others = functions.iter().filter(|own| own.as_linear().is_none());
        others
            .fold(rows::set(context, dimensions, &[], &linear), |set, own| set.intersect(&own.nonnegative()))
    }

    /// What is in both.
    pub fn intersect(&self, other: &Set) -> Set {
        self.with(other, sys::isl_set_intersect)
    }

    /// What is in one of them.
    pub fn union(&self, other: &Set) -> Set {
        self.with(other, sys::isl_set_union)
    }

    /// What is in this one only.
    pub fn subtract(&self, other: &Set) -> Set {
        self.with(other, sys::isl_set_subtract)
    }

    /// The vectors whose first coordinates are in this set and whose others are in the other.
    pub fn product(&self, other: &Set) -> Set {
        self.with(other, sys::isl_set_flat_product)
    }

    /// What a relation makes of its vectors.
    pub fn apply(&self, map: &Map) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_set_apply(self.taken(), map.taken()) })
    }

    /// The same set in fewer pieces, where isl finds that.
    pub fn coalesce(&self) -> Set {
        let found = Set::from_raw(&self.context, unsafe { sys::isl_set_coalesce(self.taken()) });
        // isl does not get all of them right, and says so. The pieces will do as they are.
        match found.is_lost() && !self.is_lost() && self.context.forgive() {
            true => self.clone(),
            false => found,
        }
    }

    /// The vectors without `count` coordinates from `first` on.
    pub fn without(&self, first: usize, count: usize) -> Set {
        let raw =
            unsafe { sys::isl_set_project_out(self.taken(), sys::DIM_SET, first as c_uint, count as c_uint) };
        Set::from_raw(&self.context, raw)
    }

    /// The vectors with `count` more coordinates at `at`, of any value.
    pub fn widened(&self, at: usize, count: usize) -> Set {
        let raw =
            unsafe { sys::isl_set_insert_dims(self.taken(), sys::DIM_SET, at as c_uint, count as c_uint) };
        Set::from_raw(&self.context, raw)
    }

    /// Every vector of it, related to itself.
    pub fn identity(&self) -> Map {
        Map::from_raw(&self.context, unsafe { sys::isl_set_identity(self.taken()) })
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> Answer<bool> {
        answer(unsafe { sys::isl_set_is_empty(self.raw) })
    }

    /// Whether all of it is in the other.
    pub fn is_subset(&self, other: &Set) -> Answer<bool> {
        answer(unsafe { sys::isl_set_is_subset(self.raw, other.raw) })
    }

    /// Whether both have the same vectors.
    pub fn is_equal(&self, other: &Set) -> Answer<bool> {
        answer(unsafe { sys::isl_set_is_equal(self.raw, other.raw) })
    }

    /// How many coordinates its vectors have.
    pub fn dimensions(&self) -> Answer<usize> {
        usize::try_from(unsafe { sys::isl_set_dim(self.raw, sys::DIM_SET) }).map_err(|_| GaveUp)
    }

    /// One of its vectors, if there is any.
    pub fn sample(&self) -> Answer<Option<Vec<i64>>> {
        let dimensions = self.dimensions()?;
        let point = Point(unsafe { sys::isl_set_sample_point(self.taken()) });
        if answer(unsafe { sys::isl_point_is_void(point.0) })? {
            return Ok(None);
        }
        (0..dimensions).map(|at| point.coordinate(at)).collect::<Answer<Vec<i64>>>().map(Some)
    }

    /// The least and the greatest value of a coordinate, if both exist.
    pub fn bounds(&self, at: usize) -> Answer<Option<(i64, i64)>> {
        let least = integer(unsafe { sys::isl_set_dim_min_val(self.taken(), at as c_int) })?;
        let greatest = integer(unsafe { sys::isl_set_dim_max_val(self.taken(), at as c_int) })?;
        Ok(least.zip(greatest))
    }

    /// Coordinates that are sums of others times numbers, in all vectors of the set. None of them is in the sum of another.
    pub fn equations(&self) -> Answer<Vec<Equation>> {
        let dimensions = self.dimensions()?;
        let rows = rows::of_equations(self, dimensions)?;
        let solved = rows.into_iter().filter_map(|row| {
            let divided = &row[dimensions..row.len() - 1];
            let coordinate = row[..dimensions].iter().rposition(|own| *own != 0)?;
            // The row is 0: what is not this coordinate, with the other sign, is the coordinate.
            let sign = -row[coordinate];
            let is_solved = sign.abs() == 1 && divided.iter().all(|own| *own == 0);
            let mut coefficients: Vec<i64> = row[..dimensions].iter().map(|own| own * sign).collect();
            coefficients[coordinate] = 0;
            is_solved.then(|| Equation { coordinate, coefficients, constant: row[row.len() - 1] * sign })
        });
        Ok(solved.collect())
    }

    fn with(
        &self,
        other: &Set,
        operation: unsafe extern "C" fn(*mut sys::Set, *mut sys::Set) -> *mut sys::Set,
    ) -> Set {
        Set::from_raw(&self.context, unsafe { operation(self.taken(), other.taken()) })
    }
}

/// A coordinate, as the sum of others times numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Equation {
    /// The coordinate that is given.
    pub coordinate: usize,
    /// The factor of each coordinate; 0 for the one that is given.
    pub coefficients: Vec<i64>,
    /// The number that is added.
    pub constant: i64,
}

struct Point(*mut sys::Point);

impl Point {
    fn coordinate(&self, at: usize) -> Answer<i64> {
        let value = unsafe { sys::isl_point_get_coordinate_val(self.0, sys::DIM_SET, at as c_int) };
        integer(value)?.ok_or(GaveUp)
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        unsafe { sys::isl_point_free(self.0) };
    }
}

/// The value, if it is an integer and not infinite; frees it.
pub(crate) fn integer(value: *mut sys::Val) -> Answer<Option<i64>> {
    let is_integer = answer(unsafe { sys::isl_val_is_int(value) });
    let number = unsafe { sys::isl_val_get_num_si(value) };
    unsafe { sys::isl_val_free(value) };
    Ok(is_integer?.then_some(number))
}

pub(crate) fn space(context: &Context, dimensions: usize) -> *mut sys::Space {
    unsafe { sys::isl_space_set_alloc(context.raw(), 0, dimensions as c_uint) }
}
