//! Declares the C functions of isl, as its headers do.
//!
//! The callee takes ownership of its pointer arguments, except contexts and arguments whose comment
//! says that the function keeps them. `*_copy` and `*_to_str` keep their argument, too. "Keeps"
//! means that the argument still belongs to the caller. Results belong to the caller.

use std::ffi::{c_char, c_int, c_long, c_uint, c_ulong, c_void};

macro_rules! opaque {
    ($($name:ident),*) => { $(#[repr(C)] pub struct $name { _private: [u8; 0] })* };
}
opaque!(
    Ctx,
    Space,
    LocalSpace,
    Aff,
    PwAff,
    Val,
    Set,
    Map,
    UnionMap,
    UnionAccessInfo,
    UnionFlow,
    Point,
    Mat,
    BasicSet,
    BasicMap
);

/// The callback of `isl_union_map_foreach_map`. The callback takes ownership of the map, and
/// returns 0 to continue.
pub type MapVisitor = unsafe extern "C" fn(map: *mut Map, user: *mut c_void) -> c_int;

/// The kinds of dimensions, which are also the kinds of columns in constraint matrices.
pub const DIM_CONSTANT: c_int = 0;
pub const DIM_PARAMETER: c_int = 1;
pub const DIM_DIV: c_int = 4;
pub const DIM_IN: c_int = 2;
pub const DIM_OUT: c_int = 3;
/// A set has one tuple, which isl treats as an output tuple.
pub const DIM_SET: c_int = DIM_OUT;

pub const ON_ERROR_CONTINUE: c_int = 1;

/// The code of an error inside isl itself.
pub const ERROR_INTERNAL: c_int = 4;

unsafe extern "C" {
    pub fn isl_ctx_alloc() -> *mut Ctx;
    pub fn isl_ctx_free(ctx: *mut Ctx);
    pub fn isl_options_set_on_error(ctx: *mut Ctx, value: c_int) -> c_int;
    pub fn isl_ctx_set_max_operations(ctx: *mut Ctx, most: c_ulong);
    pub fn isl_ctx_reset_operations(ctx: *mut Ctx);
    pub fn isl_ctx_reset_error(ctx: *mut Ctx);
    pub fn isl_ctx_last_error(ctx: *mut Ctx) -> c_int;

    pub fn isl_space_set_alloc(ctx: *mut Ctx, params: c_uint, dims: c_uint) -> *mut Space;
    pub fn isl_space_alloc(ctx: *mut Ctx, params: c_uint, inputs: c_uint, outputs: c_uint) -> *mut Space;
    pub fn isl_local_space_from_space(space: *mut Space) -> *mut LocalSpace;

    pub fn isl_aff_val_on_domain(space: *mut LocalSpace, value: *mut Val) -> *mut Aff;
    pub fn isl_aff_set_coefficient_val(aff: *mut Aff, kind: c_int, at: c_int, value: *mut Val) -> *mut Aff;
    pub fn isl_pw_aff_from_aff(aff: *mut Aff) -> *mut PwAff;
    pub fn isl_pw_aff_copy(aff: *mut PwAff) -> *mut PwAff;
    pub fn isl_pw_aff_free(aff: *mut PwAff) -> *mut PwAff;
    /// Keeps `aff`.
    pub fn isl_pw_aff_dim(aff: *mut PwAff, kind: c_int) -> c_int;
    pub fn isl_pw_aff_to_str(aff: *mut PwAff) -> *mut c_char;
    pub fn isl_pw_aff_add(left: *mut PwAff, right: *mut PwAff) -> *mut PwAff;
    pub fn isl_pw_aff_sub(left: *mut PwAff, right: *mut PwAff) -> *mut PwAff;
    pub fn isl_pw_aff_min(left: *mut PwAff, right: *mut PwAff) -> *mut PwAff;
    pub fn isl_pw_aff_max(left: *mut PwAff, right: *mut PwAff) -> *mut PwAff;
    pub fn isl_pw_aff_scale_val(aff: *mut PwAff, by: *mut Val) -> *mut PwAff;
    pub fn isl_pw_aff_scale_down_val(aff: *mut PwAff, by: *mut Val) -> *mut PwAff;
    pub fn isl_pw_aff_mod_val(aff: *mut PwAff, by: *mut Val) -> *mut PwAff;
    pub fn isl_pw_aff_floor(aff: *mut PwAff) -> *mut PwAff;
    pub fn isl_pw_aff_nonneg_set(aff: *mut PwAff) -> *mut Set;
    pub fn isl_pw_aff_zero_set(aff: *mut PwAff) -> *mut Set;
    pub fn isl_map_from_pw_aff(aff: *mut PwAff) -> *mut Map;

    pub fn isl_mat_alloc(ctx: *mut Ctx, rows: c_uint, columns: c_uint) -> *mut Mat;
    pub fn isl_mat_free(mat: *mut Mat) -> *mut Mat;
    /// This and the next two functions keep the matrix.
    pub fn isl_mat_rows(mat: *mut Mat) -> c_int;
    pub fn isl_mat_cols(mat: *mut Mat) -> c_int;
    pub fn isl_mat_get_element_val(mat: *mut Mat, row: c_int, column: c_int) -> *mut Val;
    pub fn isl_mat_set_element_si(mat: *mut Mat, row: c_int, column: c_int, value: c_int) -> *mut Mat;
    pub fn isl_mat_set_element_val(mat: *mut Mat, row: c_int, column: c_int, value: *mut Val) -> *mut Mat;
    /// The arguments `c1` to `c4` are the kinds of dimensions in the order of the matrix columns.
    pub fn isl_basic_set_from_constraint_matrices(
        space: *mut Space,
        zero: *mut Mat,
        nonnegative: *mut Mat,
        c1: c_int,
        c2: c_int,
        c3: c_int,
        c4: c_int,
    ) -> *mut BasicSet;
    pub fn isl_basic_map_from_constraint_matrices(
        space: *mut Space,
        zero: *mut Mat,
        nonnegative: *mut Mat,
        c1: c_int,
        c2: c_int,
        c3: c_int,
        c4: c_int,
        c5: c_int,
    ) -> *mut BasicMap;
    /// Keeps the set.
    pub fn isl_basic_set_equalities_matrix(
        set: *mut BasicSet,
        c1: c_int,
        c2: c_int,
        c3: c_int,
        c4: c_int,
    ) -> *mut Mat;
    pub fn isl_basic_set_free(set: *mut BasicSet) -> *mut BasicSet;
    pub fn isl_set_affine_hull(set: *mut Set) -> *mut BasicSet;
    pub fn isl_set_from_basic_set(set: *mut BasicSet) -> *mut Set;
    pub fn isl_map_from_basic_map(map: *mut BasicMap) -> *mut Map;

    pub fn isl_val_int_from_si(ctx: *mut Ctx, value: c_long) -> *mut Val;
    pub fn isl_val_free(value: *mut Val) -> *mut Val;
    /// Keeps `value`.
    pub fn isl_val_get_num_si(value: *mut Val) -> c_long;

    pub fn isl_set_universe(space: *mut Space) -> *mut Set;
    pub fn isl_set_empty(space: *mut Space) -> *mut Set;
    pub fn isl_set_copy(set: *mut Set) -> *mut Set;
    pub fn isl_set_free(set: *mut Set) -> *mut Set;
    pub fn isl_set_to_str(set: *mut Set) -> *mut c_char;
    pub fn isl_set_intersect(left: *mut Set, right: *mut Set) -> *mut Set;
    pub fn isl_set_union(left: *mut Set, right: *mut Set) -> *mut Set;
    pub fn isl_set_subtract(left: *mut Set, right: *mut Set) -> *mut Set;
    pub fn isl_set_apply(set: *mut Set, map: *mut Map) -> *mut Set;
    pub fn isl_set_coalesce(set: *mut Set) -> *mut Set;
    pub fn isl_set_project_out(set: *mut Set, kind: c_int, first: c_uint, count: c_uint) -> *mut Set;
    pub fn isl_set_insert_dims(set: *mut Set, kind: c_int, at: c_uint, count: c_uint) -> *mut Set;
    pub fn isl_set_sample_point(set: *mut Set) -> *mut Point;
    pub fn isl_set_identity(set: *mut Set) -> *mut Map;
    /// These four functions keep the set.
    pub fn isl_set_is_empty(set: *mut Set) -> c_int;
    pub fn isl_set_is_subset(left: *mut Set, right: *mut Set) -> c_int;
    pub fn isl_set_is_equal(left: *mut Set, right: *mut Set) -> c_int;
    pub fn isl_set_dim(set: *mut Set, kind: c_int) -> c_int;

    pub fn isl_point_free(point: *mut Point) -> *mut Point;
    /// These two functions keep the point.
    pub fn isl_point_is_void(point: *mut Point) -> c_int;
    pub fn isl_point_get_coordinate_val(point: *mut Point, kind: c_int, at: c_int) -> *mut Val;

    pub fn isl_map_universe(space: *mut Space) -> *mut Map;
    pub fn isl_map_empty(space: *mut Space) -> *mut Map;
    pub fn isl_map_lex_lt(space: *mut Space) -> *mut Map;
    pub fn isl_map_copy(map: *mut Map) -> *mut Map;
    pub fn isl_map_free(map: *mut Map) -> *mut Map;
    pub fn isl_map_to_str(map: *mut Map) -> *mut c_char;
    pub fn isl_map_from_domain_and_range(domain: *mut Set, range: *mut Set) -> *mut Map;
    pub fn isl_map_intersect(left: *mut Map, right: *mut Map) -> *mut Map;
    pub fn isl_map_intersect_domain(map: *mut Map, set: *mut Set) -> *mut Map;
    pub fn isl_map_intersect_range(map: *mut Map, set: *mut Set) -> *mut Map;
    pub fn isl_map_union(left: *mut Map, right: *mut Map) -> *mut Map;
    pub fn isl_map_subtract(left: *mut Map, right: *mut Map) -> *mut Map;
    pub fn isl_map_apply_range(left: *mut Map, right: *mut Map) -> *mut Map;
    pub fn isl_map_reverse(map: *mut Map) -> *mut Map;
    pub fn isl_map_domain(map: *mut Map) -> *mut Set;
    pub fn isl_map_range(map: *mut Map) -> *mut Set;
    pub fn isl_map_wrap(map: *mut Map) -> *mut Set;
    pub fn isl_map_deltas(map: *mut Map) -> *mut Set;
    pub fn isl_map_coalesce(map: *mut Map) -> *mut Map;
    pub fn isl_map_lexmax(map: *mut Map) -> *mut Map;
    pub fn isl_map_flat_range_product(left: *mut Map, right: *mut Map) -> *mut Map;
    pub fn isl_map_insert_dims(map: *mut Map, kind: c_int, at: c_uint, count: c_uint) -> *mut Map;
    pub fn isl_map_project_out(map: *mut Map, kind: c_int, first: c_uint, count: c_uint) -> *mut Map;
    pub fn isl_map_move_dims(
        map: *mut Map,
        to: c_int,
        at: c_uint,
        from: c_int,
        first: c_uint,
        count: c_uint,
    ) -> *mut Map;
    pub fn isl_map_set_dim_name(map: *mut Map, kind: c_int, at: c_uint, name: *const c_char) -> *mut Map;
    pub fn isl_map_set_tuple_name(map: *mut Map, kind: c_int, name: *const c_char) -> *mut Map;
    pub fn isl_map_equate(map: *mut Map, left: c_int, at: c_int, right: c_int, other: c_int) -> *mut Map;
    pub fn isl_map_order_lt(map: *mut Map, left: c_int, at: c_int, right: c_int, other: c_int) -> *mut Map;
    /// These six functions keep the map.
    pub fn isl_map_is_empty(map: *mut Map) -> c_int;
    pub fn isl_map_is_subset(left: *mut Map, right: *mut Map) -> c_int;
    pub fn isl_map_is_equal(left: *mut Map, right: *mut Map) -> c_int;
    pub fn isl_map_is_single_valued(map: *mut Map) -> c_int;
    pub fn isl_map_is_injective(map: *mut Map) -> c_int;
    pub fn isl_map_dim(map: *mut Map, kind: c_int) -> c_int;

    pub fn isl_set_flatten(set: *mut Set) -> *mut Set;
    pub fn isl_set_flat_product(left: *mut Set, right: *mut Set) -> *mut Set;
    pub fn isl_set_dim_min_val(set: *mut Set, at: c_int) -> *mut Val;
    pub fn isl_set_dim_max_val(set: *mut Set, at: c_int) -> *mut Val;
    /// Keeps `value`.
    pub fn isl_val_is_int(value: *mut Val) -> c_int;

    pub fn isl_union_map_from_map(map: *mut Map) -> *mut UnionMap;
    pub fn isl_union_map_empty(space: *mut Space) -> *mut UnionMap;
    pub fn isl_union_map_union(left: *mut UnionMap, right: *mut UnionMap) -> *mut UnionMap;
    pub fn isl_union_map_copy(map: *mut UnionMap) -> *mut UnionMap;
    pub fn isl_union_map_free(map: *mut UnionMap) -> *mut UnionMap;
    /// Keeps the map.
    pub fn isl_union_map_foreach_map(map: *mut UnionMap, visit: MapVisitor, user: *mut c_void) -> c_int;
    /// Keeps the map.
    pub fn isl_map_plain_get_val_if_fixed(map: *mut Map, kind: c_int, at: c_uint) -> *mut Val;
    /// Keeps the map, which owns the returned name.
    pub fn isl_map_get_tuple_name(map: *mut Map, kind: c_int) -> *const c_char;
    pub fn isl_map_reset_tuple_id(map: *mut Map, kind: c_int) -> *mut Map;

    pub fn isl_union_access_info_from_sink(sink: *mut UnionMap) -> *mut UnionAccessInfo;
    pub fn isl_union_access_info_set_must_source(
        info: *mut UnionAccessInfo,
        source: *mut UnionMap,
    ) -> *mut UnionAccessInfo;
    pub fn isl_union_access_info_set_schedule_map(
        info: *mut UnionAccessInfo,
        schedule: *mut UnionMap,
    ) -> *mut UnionAccessInfo;
    pub fn isl_union_access_info_compute_flow(info: *mut UnionAccessInfo) -> *mut UnionFlow;
    /// These two functions keep the flow.
    pub fn isl_union_flow_get_must_dependence(flow: *mut UnionFlow) -> *mut UnionMap;
    pub fn isl_union_flow_get_must_no_source(flow: *mut UnionFlow) -> *mut UnionMap;
    pub fn isl_union_flow_free(flow: *mut UnionFlow) -> *mut UnionFlow;

    pub fn free(pointer: *mut c_void);
}
