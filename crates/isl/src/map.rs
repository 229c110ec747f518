//! Defines relations between integer vectors ([`Map`]): sets of pairs of an input and an output
//! vector.

use std::ffi::{CString, c_int, c_uint};

use crate::affine::Affine;
use crate::rows;
use crate::set::{Set, set_space, to_integer};
use crate::{Answer, Context, GaveUp, bool_answer, object, sys};

object! {
    /// A relation: a set of pairs of integer vectors, each with an input and an output.
    Map, Map, isl_map_copy, isl_map_free, isl_map_to_str
}

impl Map {
    /// All pairs of vectors with `inputs` and `outputs` coordinates.
    pub fn universe(context: &Context, inputs: usize, outputs: usize) -> Map {
        Map::from_raw(context, unsafe { sys::isl_map_universe(map_space(context, inputs, outputs)) })
    }

    /// The empty relation between vectors with `inputs` and `outputs` coordinates.
    pub fn empty(context: &Context, inputs: usize, outputs: usize) -> Map {
        Map::from_raw(context, unsafe { sys::isl_map_empty(map_space(context, inputs, outputs)) })
    }

    /// Relates every vector to the vector of the values that `functions` have at it.
    pub fn from_functions(context: &Context, inputs: usize, functions: &[Affine]) -> Map {
        // Consecutive linear functions become one relation.
        let parts = functions.chunk_by(|one, other| one.as_linear().is_some() && other.as_linear().is_some());
        let maps = parts.map(|part| match part.iter().map(Affine::as_linear).collect::<Option<Vec<_>>>() {
            Some(linear) => rows::map(context, inputs, &linear),
            None => Map::from_raw(context, unsafe { sys::isl_map_from_pw_aff(part[0].raw_pieces()) }),
        });
        let none = || rows::map(context, inputs, &[]);
        maps.reduce(|all, own| all.flat_range_product(&own)).unwrap_or_else(none)
    }

    /// Relates every vector of `domain` to every vector of `range`.
    pub fn from_domain_and_range(domain: &Set, range: &Set) -> Map {
        let raw = unsafe { sys::isl_map_from_domain_and_range(domain.taken(), range.taken()) };
        Map::from_raw(domain.context(), raw)
    }

    /// All pairs of vectors with `dimensions` coordinates whose input is lexicographically smaller
    /// than their output.
    pub fn lex_less(context: &Context, dimensions: usize) -> Map {
        Map::from_raw(context, unsafe { sys::isl_map_lex_lt(set_space(context, dimensions)) })
    }

    /// The pairs that are in both relations.
    pub fn intersect(&self, other: &Map) -> Map {
        self.combine(other, sys::isl_map_intersect)
    }

    /// The pairs that are in at least one of the relations.
    pub fn union(&self, other: &Map) -> Map {
        self.combine(other, sys::isl_map_union)
    }

    /// The pairs that are in this relation but not in `other`.
    pub fn subtract(&self, other: &Map) -> Map {
        self.combine(other, sys::isl_map_subtract)
    }

    /// The composition: applies this relation first and `other` to its outputs.
    pub fn apply_range(&self, other: &Map) -> Map {
        self.combine(other, sys::isl_map_apply_range)
    }

    /// Relates each input that both relations have to an output of this relation, followed by an
    /// output of `other`.
    pub fn flat_range_product(&self, other: &Map) -> Map {
        self.combine(other, sys::isl_map_flat_range_product)
    }

    /// The inverse relation: every pair with input and output exchanged.
    pub fn reverse(&self) -> Map {
        Map::from_raw(&self.context, unsafe { sys::isl_map_reverse(self.taken()) })
    }

    /// The vectors that are the input of a pair.
    pub fn domain(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_map_domain(self.taken()) })
    }

    /// The vectors that are the output of a pair.
    pub fn range(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_map_range(self.taken()) })
    }

    /// The pairs whose input is in `domain`.
    pub fn intersect_domain(&self, domain: &Set) -> Map {
        let raw = unsafe { sys::isl_map_intersect_domain(self.taken(), domain.taken()) };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs whose output is in `range`.
    pub fn intersect_range(&self, range: &Set) -> Map {
        let raw = unsafe { sys::isl_map_intersect_range(self.taken(), range.taken()) };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs as vectors: the coordinates of the input, followed by those of the output.
    pub fn pairs(&self) -> Set {
        let wrapped = unsafe { sys::isl_map_wrap(self.taken()) };
        Set::from_raw(&self.context, unsafe { sys::isl_set_flatten(wrapped) })
    }

    /// The differences: output minus input.
    pub fn deltas(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_map_deltas(self.taken()) })
    }

    /// The same relation in fewer pieces, if isl finds a simpler form.
    pub fn coalesce(&self) -> Map {
        let found = Map::from_raw(&self.context, unsafe { sys::isl_map_coalesce(self.taken()) });
        // Coalescing sometimes fails with an internal error of isl. The original pieces are still
        // correct.
        match found.is_lost() && !self.is_lost() && self.context.take_internal_error() {
            true => self.clone(),
            false => found,
        }
    }

    /// Relates every input to the lexicographically largest of its outputs.
    pub fn lexmax(&self) -> Map {
        Map::from_raw(&self.context, unsafe { sys::isl_map_lexmax(self.taken()) })
    }

    /// The pairs whose input has at `at` the same coordinate as their output at `other`.
    pub fn where_equal(&self, at: usize, other: usize) -> Map {
        let raw = unsafe {
            sys::isl_map_equate(self.taken(), sys::DIM_IN, at as c_int, sys::DIM_OUT, other as c_int)
        };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs whose input has at `at` a smaller coordinate than their output at `other`.
    pub fn where_less(&self, at: usize, other: usize) -> Map {
        let raw = unsafe {
            sys::isl_map_order_lt(self.taken(), sys::DIM_IN, at as c_int, sys::DIM_OUT, other as c_int)
        };
        Map::from_raw(&self.context, raw)
    }

    /// Projects `count` coordinates of the outputs out, from `first` on.
    pub fn project_out_outputs(&self, first: usize, count: usize) -> Map {
        let raw =
            unsafe { sys::isl_map_project_out(self.taken(), sys::DIM_OUT, first as c_uint, count as c_uint) };
        Map::from_raw(&self.context, raw)
    }

    /// Inserts an output coordinate at `at` that may have any value.
    pub fn insert_output(&self, at: usize) -> Map {
        let raw = unsafe { sys::isl_map_insert_dims(self.taken(), sys::DIM_OUT, at as c_uint, 1) };
        Map::from_raw(&self.context, raw)
    }

    /// Projects out all output coordinates except those in `kept`, which must be in ascending
    /// order.
    pub(crate) fn keep_outputs(&self, kept: &[usize]) -> Map {
        let all = self.dimensions().map_or(0, |(_, results)| results);
        let dropped = (0..all).rev().filter(|at| !kept.contains(at));
        dropped.fold(self.clone(), |map, at| map.project_out_outputs(at, 1))
    }

    /// The constant that the output coordinate `at` has in all pairs, if isl's constraints show it
    /// directly.
    pub(crate) fn constant_output(&self, at: usize) -> Option<i64> {
        let value = unsafe { sys::isl_map_plain_get_val_if_fixed(self.raw, sys::DIM_OUT, at as c_uint) };
        to_integer(value).ok().flatten()
    }

    /// Adds one unknown number, the same in all relations, to each of the output coordinates in
    /// `shifted`. The number is a parameter of the result, and may have any value.
    pub(crate) fn shift_outputs(&self, shifted: &[usize]) -> Map {
        let all = self.dimensions().map_or(0, |(_, results)| results);
        let unknown = Affine::variable(&self.context, all + 1, all);
        let functions = (0..all).map(|at| {
            let own = Affine::variable(&self.context, all + 1, at);
            if shifted.contains(&at) { own.add(&unknown) } else { own }
        });
        let functions: Vec<Affine> = functions.collect();
        let shift = Map::from_functions(&self.context, all + 1, &functions).taken();
        let shift = unsafe {
            let shift = sys::isl_map_move_dims(shift, sys::DIM_PARAMETER, 0, sys::DIM_IN, all as c_uint, 1);
            sys::isl_map_set_dim_name(shift, sys::DIM_PARAMETER, 0, c"shift".as_ptr())
        };
        self.apply_range(&Map::from_raw(&self.context, shift))
    }

    /// Returns true when the relation has no pairs.
    pub fn is_empty(&self) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_map_is_empty(self.raw) })
    }

    /// Checks whether all pairs are in `other`.
    pub fn is_subset(&self, other: &Map) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_map_is_subset(self.raw, other.raw) })
    }

    /// Checks whether both relations have the same pairs.
    pub fn is_equal(&self, other: &Map) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_map_is_equal(self.raw, other.raw) })
    }

    /// Checks whether every input has at most one output.
    pub fn is_single_valued(&self) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_map_is_single_valued(self.raw) })
    }

    /// Checks whether every output has at most one input.
    pub fn is_injective(&self) -> Answer<bool> {
        bool_answer(unsafe { sys::isl_map_is_injective(self.raw) })
    }

    /// The numbers of coordinates of the inputs and of the outputs.
    pub fn dimensions(&self) -> Answer<(usize, usize)> {
        let count = |kind| usize::try_from(unsafe { sys::isl_map_dim(self.raw, kind) }).map_err(|_| GaveUp);
        Ok((count(sys::DIM_IN)?, count(sys::DIM_OUT)?))
    }

    /// Any one pair, or `None` if the relation is empty.
    pub fn sample(&self) -> Answer<Option<(Vec<i64>, Vec<i64>)>> {
        let (inputs, _) = self.dimensions()?;
        let split = |mut vector: Vec<i64>| {
            let second = vector.split_off(inputs);
            (vector, second)
        };
        Ok(self.pairs().sample()?.map(split))
    }

    /// The same relation, with names for its input and output tuples.
    pub(crate) fn with_tuple_names(&self, input: &str, output: &str) -> *mut sys::Map {
        let names = [(sys::DIM_IN, input), (sys::DIM_OUT, output)];
        names.into_iter().fold(self.taken(), |map, (kind, name)| {
            let name = CString::new(name).expect("names are made of letters and digits");
            unsafe { sys::isl_map_set_tuple_name(map, kind, name.as_ptr()) }
        })
    }

    fn combine(
        &self,
        other: &Map,
        operation: unsafe extern "C" fn(*mut sys::Map, *mut sys::Map) -> *mut sys::Map,
    ) -> Map {
        Map::from_raw(&self.context, unsafe { operation(self.taken(), other.taken()) })
    }
}

pub(crate) fn map_space(context: &Context, inputs: usize, outputs: usize) -> *mut sys::Space {
    unsafe { sys::isl_space_alloc(context.raw(), 0, inputs as c_uint, outputs as c_uint) }
}
