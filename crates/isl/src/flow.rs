//! The last write before each read.

use std::ffi::{CStr, c_int, c_void};

use crate::map::Map;
use crate::{Answer, Context, GaveUp, sys};

/// Accesses of arrays, each with the time at which its instances happen.
///
/// An access relates instances to elements: the coordinates of an array begin with whatever tells arrays of one number of
/// dimensions apart. Times are compared in lexicographic order, and all have the same number of coordinates.
pub struct Accesses {
    context: Context,
    reads: UnionMap,
    writes: UnionMap,
    times: UnionMap,
    counts: [usize; 2],
}

/// What was found: which instances of a write give which instances of a read their value.
pub struct Flow {
    /// The read and the write, by their numbers, and instances of the write with those of the read that see them.
    pub sources: Vec<(usize, usize, Map)>,
    /// Instances of reads, with elements that nothing has written before.
    pub without_source: Vec<(usize, Map)>,
}

impl Accesses {
    /// None yet.
    pub fn new(context: &Context) -> Accesses {
        let none = || UnionMap::empty(context);
        Accesses { context: context.clone(), reads: none(), writes: none(), times: none(), counts: [0, 0] }
    }

    /// Adds a read of an array, and gives its number.
    pub fn read(&mut self, array: usize, elements: &Map, times: &Map) -> usize {
        let number = self.counts[0];
        self.counts[0] += 1;
        self.reads.add(elements.named(&format!("r{number}"), &format!("a{array}")));
        self.times.add(times.named(&format!("r{number}"), "t"));
        number
    }

    /// Adds a write of an array, and gives its number.
    pub fn write(&mut self, array: usize, elements: &Map, times: &Map) -> usize {
        let number = self.counts[1];
        self.counts[1] += 1;
        self.writes.add(elements.named(&format!("w{number}"), &format!("a{array}")));
        self.times.add(times.named(&format!("w{number}"), "t"));
        number
    }

    /// The last write before each read.
    pub fn flow(&self) -> Answer<Flow> {
        let flow = unsafe {
            let info = sys::isl_union_access_info_from_sink(self.reads.taken());
            let info = sys::isl_union_access_info_set_must_source(info, self.writes.taken());
            let info = sys::isl_union_access_info_set_schedule_map(info, self.times.taken());
            sys::isl_union_access_info_compute_flow(info)
        };
        if flow.is_null() {
            return Err(GaveUp);
        }
        let context = &self.context;
        let [sources, without] =
            [sys::isl_union_flow_get_must_dependence, sys::isl_union_flow_get_must_no_source]
                .map(|get| UnionMap { raw: unsafe { get(flow) } });
        unsafe { sys::isl_union_flow_free(flow) };
        let sources =
            sources.maps(context)?.into_iter().map(|(from, to, map)| (number(&to), number(&from), map));
        let without = without.maps(context)?.into_iter().map(|(from, _, map)| (number(&from), map));
        Ok(Flow { sources: sources.collect(), without_source: without.collect() })
    }
}

/// The number in a name such as `w12`.
fn number(name: &str) -> usize {
    name[1..].parse().expect("names are made by `Accesses`")
}

struct UnionMap {
    raw: *mut sys::UnionMap,
}

impl Drop for UnionMap {
    fn drop(&mut self) {
        unsafe { sys::isl_union_map_free(self.raw) };
    }
}

impl UnionMap {
    fn empty(context: &Context) -> UnionMap {
        let space = unsafe { sys::isl_space_alloc(context.raw(), 0, 0, 0) };
        UnionMap { raw: unsafe { sys::isl_union_map_empty(space) } }
    }

    fn taken(&self) -> *mut sys::UnionMap {
        unsafe { sys::isl_union_map_copy(self.raw) }
    }

    fn add(&mut self, map: *mut sys::Map) {
        self.raw = unsafe { sys::isl_union_map_union(self.raw, sys::isl_union_map_from_map(map)) };
    }

    /// Its parts, with the names of both sides.
    fn maps(&self, context: &Context) -> Answer<Vec<(String, String, Map)>> {
        if self.raw.is_null() {
            return Err(GaveUp);
        }
        let mut found = Found { context, maps: Vec::new() };
        let user: *mut c_void = (&raw mut found).cast();
        match unsafe { sys::isl_union_map_foreach_map(self.raw, collect, user) } {
            0 => Ok(found.maps),
            _ => Err(GaveUp),
        }
    }
}

struct Found<'a> {
    context: &'a Context,
    maps: Vec<(String, String, Map)>,
}

/// Takes a part of a union over, without its names.
unsafe extern "C" fn collect(map: *mut sys::Map, user: *mut c_void) -> c_int {
    let found = unsafe { &mut *user.cast::<Found>() };
    let name = |kind| {
        let name = unsafe { sys::isl_map_get_tuple_name(map, kind) };
        if name.is_null() {
            return String::new();
        }
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    };
    let names = (name(sys::DIM_IN), name(sys::DIM_OUT));
    let plain = unsafe {
        let map = sys::isl_map_reset_tuple_id(map, sys::DIM_IN);
        sys::isl_map_reset_tuple_id(map, sys::DIM_OUT)
    };
    found.maps.push((names.0, names.1, Map::from_raw(found.context, plain)));
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Affine;

    #[test]
    fn a_read_sees_the_last_write() {
        // for i in 0..10 { w0: a[i] }  for i in 0..5 { w1: a[i] }  for i in 0..11 { r0: a[i] }
        let context = Context::new();
        let i = Affine::variable(&context, 1, 0);
        let below = |extent: i64| i.nonnegative().intersect(&i.scale(-1).offset(extent - 1).nonnegative());
        let element = Map::from_functions(&context, 1, std::slice::from_ref(&i));
        let time =
            |order| Map::from_functions(&context, 1, &[Affine::constant(&context, 1, order), i.clone()]);
        let mut accesses = Accesses::new(&context);
        accesses.write(0, &element.of(&below(10)), &time(0).of(&below(10)));
        accesses.write(0, &element.of(&below(5)), &time(1).of(&below(5)));
        accesses.read(0, &element.of(&below(11)), &time(2).of(&below(11)));
        let flow = accesses.flow().expect("this is easy");
        let source =
            |write| flow.sources.iter().find(|(_, own, _)| *own == write).map(|(_, _, map)| map.clone());
        let (first, second) = (source(0).expect("it is seen"), source(1).expect("it is seen"));
        assert_eq!(second.range().is_equal(&below(5)), Ok(true));
        assert_eq!(first.range().is_equal(&below(10).subtract(&below(5))), Ok(true));
        let [(0, without)] = flow.without_source.as_slice() else { panic!("one element has no source") };
        assert_eq!(without.domain().sample(), Ok(Some(vec![10])));
    }
}
