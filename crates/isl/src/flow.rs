//! Dataflow analysis: finds the last write before each read.
//!
//! In: reads and writes of arrays (`Accesses`), each with its elements and its times. Out: the
//! instances of writes whose values each read sees (`Flow`). isl's dataflow analysis does the
//! search; reads of elements that are written only once need no search.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CStr, c_int, c_uint, c_void};

use crate::map::Map;
use crate::set::Set;
use crate::{Answer, Context, GaveUp, sys};

/// Array accesses, each with the times at which its instances run.
///
/// An access maps instances to elements. Times are vectors that are compared lexicographically; all
/// of them have the same number of coordinates.
pub struct Accesses {
    context: Context,
    reads: Vec<Access>,
    writes: Vec<Access>,
}

/// Instances that read or write elements of one array, with the times at which they run.
struct Access {
    array: usize,
    elements: Map,
    times: Map,
    /// All elements that the access touches.
    touched: Set,
    /// The coordinates of the times that are plainly constants.
    constant_times: Vec<Option<i64>>,
}

/// The result of the analysis: which instances of a write give which instances of a read their
/// value.
#[derive(Default)]
pub struct Flow {
    /// The numbers of the read and the write, and a map from instances of the write to the
    /// instances of the read that see their value.
    pub sources: Vec<(usize, usize, Map)>,
    /// The number of a read, and a map from its instances to the elements that no write reaches
    /// before.
    pub without_source: Vec<(usize, Map)>,
}

impl Access {
    fn new(array: usize, elements: &Map, times: &Map) -> Access {
        let dimensions = times.dimensions().map_or(0, |(_, results)| results);
        let known = (0..dimensions).map(|at| times.constant_output(at)).collect();
        Access {
            array,
            elements: elements.clone(),
            times: times.clone(),
            touched: elements.range(),
            constant_times: known,
        }
    }

    /// Checks whether every instance of this access runs before every instance of `other`, as far
    /// as the constant coordinates of their times show it.
    fn is_certainly_before(&self, other: &Access) -> bool {
        let mut both = self.constant_times.iter().zip(&other.constant_times);
        let differ = both.find(|(own, other)| own.is_none() || own != other);
        matches!(differ, Some((Some(own), Some(other))) if own < other)
    }

    fn overlaps(&self, other: &Access) -> Answer<bool> {
        Ok(self.array == other.array && !self.touched.intersect(&other.touched).is_empty()?)
    }
}

impl Accesses {
    /// A collection without accesses.
    pub fn new(context: &Context) -> Accesses {
        Accesses { context: context.clone(), reads: Vec::new(), writes: Vec::new() }
    }

    /// Adds a read of an array, and returns the read's number.
    pub fn add_read(&mut self, array: usize, elements: &Map, times: &Map) -> usize {
        self.reads.push(Access::new(array, elements, times));
        self.reads.len() - 1
    }

    /// Adds a write of an array, and returns the write's number.
    pub fn add_write(&mut self, array: usize, elements: &Map, times: &Map) -> usize {
        self.writes.push(Access::new(array, elements, times));
        self.writes.len() - 1
    }

    /// Finds the last write before each read.
    ///
    /// A read needs no search if each of its elements is written at most once, before the read. The
    /// other reads are searched in groups whose writes have no element in common, because the time
    /// of isl's search grows faster than the number of accesses.
    pub fn flow(&self) -> Answer<Flow> {
        let mut found = Flow::default();
        let mut once = HashMap::new();
        let mut groups: Vec<Group> = Vec::new();
        for (number, read) in self.reads.iter().enumerate() {
            let mut writes = BTreeSet::new();
            for (at, write) in self.writes.iter().enumerate() {
                if write.overlaps(read)? {
                    writes.insert(at);
                }
            }
            if self.is_written_once(&writes, read, &mut once)? {
                self.record_all_sources(number, &writes, &mut found)?;
            } else {
                let (joined, separate) = groups.into_iter().partition(|own| !own.writes.is_disjoint(&writes));
                let own = Group { reads: vec![number], writes };
                groups = separate;
                groups.push(Vec::into_iter(joined).fold(own, Group::merge));
            }
        }
        groups.iter().try_for_each(|group| self.search_group(group, &mut found))?;
        Ok(found)
    }

    /// Checks whether each element that `writes` touch is written only once, and before `read`.
    /// `written_once` caches the answers for single writes and for pairs of writes.
    fn is_written_once(
        &self,
        writes: &BTreeSet<usize>,
        read: &Access,
        written_once: &mut HashMap<(usize, usize), bool>,
    ) -> Answer<bool> {
        if !writes.iter().all(|at| self.writes[*at].is_certainly_before(read)) {
            return Ok(false);
        }
        for at in writes {
            for other in writes.range(..=at) {
                let is_once = match written_once.get(&(*at, *other)) {
                    Some(known) => *known,
                    None if at == other => self.writes[*at].elements.is_injective()?,
                    None => !self.writes[*at].overlaps(&self.writes[*other])?,
                };
                written_once.insert((*at, *other), is_once);
                if !is_once {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Records that a read sees every write to its elements.
    fn record_all_sources(&self, number: usize, writes: &BTreeSet<usize>, found: &mut Flow) -> Answer<()> {
        let read = &self.reads[number];
        let mut rest = read.touched.clone();
        for at in writes {
            let write = &self.writes[*at];
            found.sources.push((number, *at, write.elements.apply_range(&read.elements.reverse())));
            rest = rest.subtract(&write.touched);
        }
        if !rest.is_empty()? {
            found.without_source.push((number, read.elements.intersect_range(&rest)));
        }
        Ok(())
    }

    fn search_group(&self, group: &Group, found: &mut Flow) -> Answer<()> {
        let reads = group.reads.iter().map(|at| (format!("r{at}"), false, &self.reads[*at]));
        let writes = group.writes.iter().map(|at| (format!("w{at}"), true, &self.writes[*at]));
        let all: Vec<(String, bool, &Access)> = reads.chain(writes).collect();
        // A time coordinate that is the same constant in all accesses does not affect the order.
        let first = &all[0].2.constant_times;
        let differ = |at: usize| {
            first[at].is_none() || all.iter().any(|(_, _, own)| own.constant_times[at] != first[at])
        };
        let kept: Vec<usize> = (0..first.len()).filter(|at| differ(*at)).collect();
        let partly_constant = partly_constant_coordinates(&all, &kept);
        let [mut reads, mut writes, mut times] = std::array::from_fn(|_| UnionMap::empty(&self.context));
        for (name, is_write, own) in all {
            let accesses = if is_write { &mut writes } else { &mut reads };
            accesses.add(own.elements.with_tuple_names(&name, "a"));
            let own = own.times.keep_outputs(&kept);
            let own = if partly_constant.is_empty() { own } else { own.shift_outputs(&partly_constant) };
            times.add(own.with_tuple_names(&name, "t"));
        }
        let flow = unsafe {
            let info = sys::isl_union_access_info_from_sink(reads.taken());
            let info = sys::isl_union_access_info_set_must_source(info, writes.taken());
            let info = sys::isl_union_access_info_set_schedule_map(info, times.taken());
            sys::isl_union_access_info_compute_flow(info)
        };
        if flow.is_null() {
            return Err(GaveUp);
        }
        let [sources, without] =
            [sys::isl_union_flow_get_must_dependence, sys::isl_union_flow_get_must_no_source]
                .map(|get| UnionMap { raw: unsafe { get(flow) } });
        unsafe { sys::isl_union_flow_free(flow) };
        let sources = sources.maps(&self.context)?.into_iter();
        found.sources.extend(sources.map(|(from, to, map)| (parse_number(&to), parse_number(&from), map)));
        let without = without.maps(&self.context)?.into_iter();
        found.without_source.extend(without.map(|(from, _, map)| (parse_number(&from), map)));
        Ok(())
    }
}

/// The time coordinates, as positions in `kept`, that are constant in some of the accesses but not
/// in all of them.
///
/// isl takes a coordinate that is constant in two accesses for a position in the text. The writes
/// of an earlier position then count as further away than the earlier iterations of a loop at that
/// coordinate, although they may be later. So isl finds a wrong last write where some accesses are
/// in one iteration of a loop only, and others in several. An unknown number that is added to this
/// coordinate of all accesses hides the constants, and does not change the order.
fn partly_constant_coordinates(accesses: &[(String, bool, &Access)], kept: &[usize]) -> Vec<usize> {
    let is_partly_constant = |at: usize| {
        let mut known = accesses.iter().map(|(_, _, own)| own.constant_times[at].is_some());
        let first = known.next();
        known.any(|own| Some(own) != first)
    };
    (0..kept.len()).filter(|place| is_partly_constant(kept[*place])).collect()
}

/// Reads that are searched together, and the writes that may reach them.
struct Group {
    reads: Vec<usize>,
    writes: BTreeSet<usize>,
}

impl Group {
    fn merge(mut self, other: Group) -> Group {
        self.reads.extend(other.reads);
        self.writes.extend(other.writes);
        self
    }
}

/// The number in a name such as `w12`.
fn parse_number(name: &str) -> usize {
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

    /// The maps of the union, each with the names of its input and output tuples.
    fn maps(&self, context: &Context) -> Answer<Vec<(String, String, Map)>> {
        if self.raw.is_null() {
            return Err(GaveUp);
        }
        let mut found = CollectedMaps { context, maps: Vec::new() };
        let user: *mut c_void = (&raw mut found).cast();
        match unsafe { sys::isl_union_map_foreach_map(self.raw, collect_map, user) } {
            0 => Ok(found.maps),
            _ => Err(GaveUp),
        }
    }
}

struct CollectedMaps<'a> {
    context: &'a Context,
    maps: Vec<(String, String, Map)>,
}

/// Takes ownership of one map of a union, removes its tuple names and its parameters, and stores
/// the map with its names.
unsafe extern "C" fn collect_map(map: *mut sys::Map, user: *mut c_void) -> c_int {
    let found = unsafe { &mut *user.cast::<CollectedMaps>() };
    let name = |kind| {
        let name = unsafe { sys::isl_map_get_tuple_name(map, kind) };
        if name.is_null() {
            return String::new();
        }
        unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned()
    };
    let names = (name(sys::DIM_IN), name(sys::DIM_OUT));
    let plain = unsafe {
        let parameters = sys::isl_map_dim(map, sys::DIM_PARAMETER).max(0) as c_uint;
        let map = sys::isl_map_project_out(map, sys::DIM_PARAMETER, 0, parameters);
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
        let below =
            |extent: i64| i.nonnegative_set().intersect(&i.scale(-1).offset(extent - 1).nonnegative_set());
        let element = Map::from_functions(&context, 1, std::slice::from_ref(&i));
        let time =
            |order| Map::from_functions(&context, 1, &[Affine::constant(&context, 1, order), i.clone()]);
        let mut accesses = Accesses::new(&context);
        accesses.add_write(0, &element.intersect_domain(&below(10)), &time(0).intersect_domain(&below(10)));
        accesses.add_write(0, &element.intersect_domain(&below(5)), &time(1).intersect_domain(&below(5)));
        accesses.add_read(0, &element.intersect_domain(&below(11)), &time(2).intersect_domain(&below(11)));
        let flow = accesses.flow().expect("this is easy");
        let source =
            |write| flow.sources.iter().find(|(_, own, _)| *own == write).map(|(_, _, map)| map.clone());
        let (first, second) = (source(0).expect("it is seen"), source(1).expect("it is seen"));
        assert_eq!(second.range().is_equal(&below(5)), Ok(true));
        assert_eq!(first.range().is_equal(&below(10).subtract(&below(5))), Ok(true));
        let [(0, without)] = flow.without_source.as_slice() else { panic!("one element has no source") };
        assert_eq!(without.domain().sample(), Ok(Some(vec![10])));
    }
    #[test]
    fn a_write_in_one_iteration_of_a_loop_may_be_the_last() {
        // for i in 0..2 { w0: a[i];  if i == 0 { w1: a[i] };  if i == 1 { r0: a[i - 1] } }
        let context = Context::new();
        let i = Affine::variable(&context, 1, 0);
        let both = i.nonnegative_set().intersect(&i.scale(-1).offset(1).nonnegative_set());
        let (zero, one) = (i.zero_set(), i.offset(-1).zero_set());
        let access = |offset, position, domain: &Set| {
            let element = Map::from_functions(&context, 1, &[i.offset(offset)]);
            let position = Affine::constant(&context, 1, position);
            let times = Map::from_functions(&context, 1, &[i.clone(), position]);
            (element.intersect_domain(domain), times.intersect_domain(domain))
        };
        let mut accesses = Accesses::new(&context);
        for (element, times) in [access(0, 0, &both), access(0, 1, &zero)] {
            accesses.add_write(0, &element, &times);
        }
        let (element, times) = access(-1, 2, &one);
        accesses.add_read(0, &element, &times);
        let flow = accesses.flow().expect("this is easy");
        let [(0, 1, source)] = flow.sources.as_slice() else { panic!("{:?}", flow.sources) };
        assert_eq!(source.sample(), Ok(Some((vec![0], vec![1]))));
        assert!(flow.without_source.iter().all(|(_, map)| map.is_empty() == Ok(true)));
    }
}
