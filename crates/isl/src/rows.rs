//! Converts between linear functions and the rows of isl's constraint matrices.

use std::ffi::{c_int, c_uint};

use crate::affine::Linear;
use crate::map::{Map, map_space};
use crate::set::{Set, set_space, to_integer};
use crate::{Answer, Context, GaveUp, sys};

/// The vectors at which the functions in `zero` are 0 and those in `nonnegative` are at least 0.
pub(crate) fn set(context: &Context, dimensions: usize, zero: &[&Linear], nonnegative: &[&Linear]) -> Set {
    let [zero, nonnegative] = [zero, nonnegative].map(|functions| {
        let matrix = Matrix::new(context, functions.len(), dimensions + 1);
        functions.iter().enumerate().fold(matrix, |matrix, (row, own)| {
            matrix.with_elements(row, 0, &own.coefficients).with_elements(row, dimensions, &[own.constant])
        })
    });
    Set::from_raw(context, unsafe {
        sys::isl_set_from_basic_set(sys::isl_basic_set_from_constraint_matrices(
            set_space(context, dimensions),
            zero.raw,
            nonnegative.raw,
            sys::DIM_SET,
            sys::DIM_DIV,
            sys::DIM_CONSTANT,
            sys::DIM_PARAMETER,
        ))
    })
}

/// Relates every vector to the vector of the values that `functions` have at it.
pub(crate) fn map(context: &Context, inputs: usize, functions: &[&Linear]) -> Map {
    let outputs = functions.len();
    let matrix = Matrix::new(context, outputs, inputs + outputs + 1);
    let zero = functions.iter().enumerate().fold(matrix, |matrix, (row, own)| {
        let constant = [own.constant];
        matrix.with_elements(row, 0, &own.coefficients).with_elements(row, inputs + row, &[-1]).with_elements(
            row,
            inputs + outputs,
            &constant,
        )
    });
    let nonnegative = Matrix::new(context, 0, inputs + outputs + 1);
    Map::from_raw(context, unsafe {
        sys::isl_map_from_basic_map(sys::isl_basic_map_from_constraint_matrices(
            map_space(context, inputs, outputs),
            zero.raw,
            nonnegative.raw,
            sys::DIM_IN,
            sys::DIM_OUT,
            sys::DIM_DIV,
            sys::DIM_CONSTANT,
            sys::DIM_PARAMETER,
        ))
    })
}

/// The equations that hold in a set. Each is a row whose sum is 0: the coefficients of the
/// coordinates, the coefficients of isl's divisions, and a constant. isl has solved each for its
/// last coordinate.
pub(crate) fn equation_rows(set: &Set, dimensions: usize) -> Answer<Vec<Vec<i64>>> {
    let hull = unsafe { sys::isl_set_affine_hull(set.taken()) };
    if hull.is_null() {
        return Err(GaveUp);
    }
    let raw = unsafe {
        let kinds = [sys::DIM_SET, sys::DIM_DIV, sys::DIM_CONSTANT, sys::DIM_PARAMETER];
        let raw = sys::isl_basic_set_equalities_matrix(hull, kinds[0], kinds[1], kinds[2], kinds[3]);
        sys::isl_basic_set_free(hull);
        raw
    };
    let size = |count: c_int| usize::try_from(count).map_err(|_| GaveUp);
    let read = || {
        let (rows, columns) = unsafe { (size(sys::isl_mat_rows(raw))?, size(sys::isl_mat_cols(raw))?) };
        debug_assert!(columns > dimensions);
        let element = |row: usize, column: usize| {
            let value = unsafe { sys::isl_mat_get_element_val(raw, row as c_int, column as c_int) };
            to_integer(value)?.ok_or(GaveUp)
        };
        let row = |row: usize| (0..columns).map(|column| element(row, column)).collect();
        (0..rows).map(row).collect()
    };
    let found = read();
    unsafe { sys::isl_mat_free(raw) };
    found
}

/// A matrix of isl's. The isl call that uses the matrix takes ownership of it.
struct Matrix<'c> {
    context: &'c Context,
    raw: *mut sys::Mat,
}

impl<'c> Matrix<'c> {
    fn new(context: &'c Context, rows: usize, columns: usize) -> Matrix<'c> {
        let raw = unsafe { sys::isl_mat_alloc(context.raw(), rows as c_uint, columns as c_uint) };
        // isl does not initialise a new matrix.
        let numbers = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
        numbers.fold(Matrix { context, raw }, |matrix, (row, column)| matrix.with_elements(row, column, &[0]))
    }

    /// Sets consecutive elements of `row`, starting at `column`.
    fn with_elements(self, row: usize, column: usize, numbers: &[i64]) -> Matrix<'c> {
        let raw = numbers.iter().enumerate().fold(self.raw, |raw, (at, number)| {
            let (row, column) = (row as c_int, (column + at) as c_int);
            match c_int::try_from(*number) {
                Ok(number) => unsafe { sys::isl_mat_set_element_si(raw, row, column, number) },
                Err(_) => unsafe {
                    sys::isl_mat_set_element_val(raw, row, column, self.context.value(*number))
                },
            }
        });
        Matrix { raw, ..self }
    }
}
