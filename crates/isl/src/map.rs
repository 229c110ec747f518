//! Relations between integer vectors.

use std::ffi::{CString, c_int, c_uint};

use crate::affine::Affine;
use crate::rows;
use crate::set::{Set, integer, space};
use crate::{Answer, Context, GaveUp, answer, object, sys};

object! {
    /// Pairs of integer vectors.
    Map, Map, isl_map_copy, isl_map_free, isl_map_to_str
}

impl Map {
    /// All pairs of vectors with so many coordinates.
    pub fn universe(context: &Context, inputs: usize, outputs: usize) -> Map {
        Map::from_raw(context, unsafe { sys::isl_map_universe(map_space(context, inputs, outputs)) })
    }

    /// None of them.
    pub fn empty(context: &Context, inputs: usize, outputs: usize) -> Map {
        Map::from_raw(context, unsafe { sys::isl_map_empty(map_space(context, inputs, outputs)) })
    }

    /// Every vector, related to the vector of what functions make of it.
    pub fn from_functions(context: &Context, inputs: usize, functions: &[Affine]) -> Map {
        // Neighbours without pieces are one relation.
        let parts = functions.chunk_by(|one, other| one.as_linear().is_some() && other.as_linear().is_some());
        let maps = parts.map(|part| match part.iter().map(Affine::as_linear).collect::<Option<Vec<_>>>() {
            Some(linear) => rows::map(context, inputs, &linear),
            None => Map::from_raw(context, unsafe { sys::isl_map_from_pw_aff(part[0].pieces()) }),
        });
        let none = || rows::map(context, inputs, &[]);
        maps.reduce(|all, own| all.beside(&own)).unwrap_or_else(none)
    }

    /// Every vector of one set, related to every vector of the other.
    pub fn between(domain: &Set, range: &Set) -> Map {
        let raw = unsafe { sys::isl_map_from_domain_and_range(domain.taken(), range.taken()) };
        Map::from_raw(domain.context(), raw)
    }

    /// Pairs of vectors with so many coordinates of which the first comes earlier in lexicographic order.
    pub fn earlier(context: &Context, dimensions: usize) -> Map {
        Map::from_raw(context, unsafe { sys::isl_map_lex_lt(space(context, dimensions)) })
    }

    /// The pairs that are in both.
    pub fn intersect(&self, other: &Map) -> Map {
        self.with(other, sys::isl_map_intersect)
    }

    /// The pairs that are in one of them.
    pub fn union(&self, other: &Map) -> Map {
        self.with(other, sys::isl_map_union)
    }

    /// The pairs that are in this one only.
    pub fn subtract(&self, other: &Map) -> Map {
        self.with(other, sys::isl_map_subtract)
    }

    /// From what this one takes to what the other makes of its results.
    pub fn then(&self, other: &Map) -> Map {
        self.with(other, sys::isl_map_apply_range)
    }

    /// From what both take to the results of this one, followed by those of the other.
    pub fn beside(&self, other: &Map) -> Map {
        self.with(other, sys::isl_map_flat_range_product)
    }

    /// The pairs the other way round.
    pub fn reverse(&self) -> Map {
        Map::from_raw(&self.context, unsafe { sys::isl_map_reverse(self.taken()) })
    }

    /// What it relates to something.
    pub fn domain(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_map_domain(self.taken()) })
    }

    /// What something is related to.
    pub fn range(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_map_range(self.taken()) })
    }

    /// The pairs whose first is in the set.
    pub fn of(&self, domain: &Set) -> Map {
        let raw = unsafe { sys::isl_map_intersect_domain(self.taken(), domain.taken()) };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs whose second is in the set.
    pub fn onto(&self, range: &Set) -> Map {
        let raw = unsafe { sys::isl_map_intersect_range(self.taken(), range.taken()) };
        Map::from_raw(&self.context, raw)
    }

    /// The vectors that are the coordinates of both, one after the other.
    pub fn pairs(&self) -> Set {
        let wrapped = unsafe { sys::isl_map_wrap(self.taken()) };
        Set::from_raw(&self.context, unsafe { sys::isl_set_flatten(wrapped) })
    }

    /// The differences: second less first.
    pub fn deltas(&self) -> Set {
        Set::from_raw(&self.context, unsafe { sys::isl_map_deltas(self.taken()) })
    }

    /// The same pairs in fewer pieces, where isl finds that.
    pub fn coalesce(&self) -> Map {
        let found = Map::from_raw(&self.context, unsafe { sys::isl_map_coalesce(self.taken()) });
        // isl does not get all of them right, and says so. The pieces will do as they are.
        match found.is_lost() && !self.is_lost() && self.context.forgive() {
            true => self.clone(),
            false => found,
        }
    }

    /// For every vector, the last in lexicographic order of those that it is related to.
    pub fn latest(&self) -> Map {
        Map::from_raw(&self.context, unsafe { sys::isl_map_lexmax(self.taken()) })
    }

    /// The pairs whose coordinates at these places are equal: `at` of the first, `other` of the second.
    pub fn where_equal(&self, at: usize, other: usize) -> Map {
        let raw = unsafe {
            sys::isl_map_equate(self.taken(), sys::DIM_IN, at as c_int, sys::DIM_OUT, other as c_int)
        };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs of which the first's coordinate at `at` is less than the second's at `other`.
    pub fn where_less(&self, at: usize, other: usize) -> Map {
        let raw = unsafe {
            sys::isl_map_order_lt(self.taken(), sys::DIM_IN, at as c_int, sys::DIM_OUT, other as c_int)
        };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs without some coordinates of the second.
    pub fn without_results(&self, first: usize, count: usize) -> Map {
        let raw =
            unsafe { sys::isl_map_project_out(self.taken(), sys::DIM_OUT, first as c_uint, count as c_uint) };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs with one more coordinate of the second at `at`, of any value.
    pub fn with_free_result(&self, at: usize) -> Map {
        let raw = unsafe { sys::isl_map_insert_dims(self.taken(), sys::DIM_OUT, at as c_uint, 1) };
        Map::from_raw(&self.context, raw)
    }

    /// The pairs with only some coordinates of the second, which are in ascending order.
    pub(crate) fn with_results(&self, kept: &[usize]) -> Map {
        let all = self.dimensions().map_or(0, |(_, results)| results);
        let dropped = (0..all).rev().filter(|at| !kept.contains(at));
        dropped.fold(self.clone(), |map, at| map.without_results(at, 1))
    }

    /// The number that a coordinate of the second is in all pairs, if that is plain to see.
    pub(crate) fn plain_number(&self, at: usize) -> Option<i64> {
        let value = unsafe { sys::isl_map_plain_get_val_if_fixed(self.raw, sys::DIM_OUT, at as c_uint) };
        integer(value).ok().flatten()
    }

    /// Whether there are no pairs.
    pub fn is_empty(&self) -> Answer<bool> {
        answer(unsafe { sys::isl_map_is_empty(self.raw) })
    }

    /// Whether all pairs are in the other.
    pub fn is_subset(&self, other: &Map) -> Answer<bool> {
        answer(unsafe { sys::isl_map_is_subset(self.raw, other.raw) })
    }

    /// Whether both have the same pairs.
    pub fn is_equal(&self, other: &Map) -> Answer<bool> {
        answer(unsafe { sys::isl_map_is_equal(self.raw, other.raw) })
    }

    /// Whether every vector is related to one at most.
    pub fn is_single_valued(&self) -> Answer<bool> {
        answer(unsafe { sys::isl_map_is_single_valued(self.raw) })
    }

    /// Whether to every vector one at most is related.
    pub fn is_injective(&self) -> Answer<bool> {
        answer(unsafe { sys::isl_map_is_injective(self.raw) })
    }

    /// How many coordinates the first and the second of a pair have.
    pub fn dimensions(&self) -> Answer<(usize, usize)> {
        let count = |kind| usize::try_from(unsafe { sys::isl_map_dim(self.raw, kind) }).map_err(|_| GaveUp);
        Ok((count(sys::DIM_IN)?, count(sys::DIM_OUT)?))
    }

    /// A pair, if there is any.
    pub fn sample(&self) -> Answer<Option<(Vec<i64>, Vec<i64>)>> {
        let (inputs, _) = self.dimensions()?;
        let split = |mut vector: Vec<i64>| {
            let second = vector.split_off(inputs);
            (vector, second)
        };
        Ok(self.pairs().sample()?.map(split))
    }

    /// The same pairs, of vectors that bear these names.
    pub(crate) fn named(&self, input: &str, output: &str) -> *mut sys::Map {
        let names = [(sys::DIM_IN, input), (sys::DIM_OUT, output)];
        names.into_iter().fold(self.taken(), |map, (kind, name)| {
            let name = CString::new(name).expect("names are made of letters and digits");
            unsafe { sys::isl_map_set_tuple_name(map, kind, name.as_ptr()) }
        })
    }

    fn with(
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
