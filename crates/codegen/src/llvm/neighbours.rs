//! Emits the loads of neighbouring elements that data chooses, several elements at a time.
//!
//! A statement that interpolates in a table reads several elements for each lane that lie side by
//! side: `t(z, 0)`, `t(z, 1)`, `t(z + 1, 0)` and `t(z + 1, 1)`. One load for each lane brings a
//! whole window of them, and shuffles transpose the windows, so that each element of the windows
//! becomes a vector of lanes.
//!
//! Only accesses that the statement certainly performs are loaded this way, at the start of the
//! statement. The first and the last element of a window are accesses too, so a window is inside
//! its buffer where their checks hold. In all other lanes, the window at the start of the buffer is
//! loaded instead.

use std::collections::BTreeMap;

use inkwell::types::{BasicTypeEnum, VectorType};
use inkwell::values::PointerValue;
use tilewright_ir::nest::{Access, BufferId, IndexExpr, LoopVarId, Store};

use super::bounds::{Bounds, certain_reads};
use super::function::{Emit, Emitter};
use super::location::{Address, Location};
use super::ops::{BUILT, Value, vector_of};

/// The numbers of elements in a window, and how many of them must be read for the window to pay.
const WINDOWS: [(u32, usize); 2] = [(4, 3), (2, 2)];

/// The most bytes in a window.
const MOST_BYTES: u32 = 32;

/// The fewest bits of a window that are moved as a vector. Narrower windows are integers.
const VECTOR_BITS: u32 = 128;

/// Accesses whose elements are at constant distances from each other: each with its distance from
/// the first access that was found.
type Neighbours<'e> = Vec<(i64, &'e Access)>;

/// The accesses to one window of elements, with their positions in it.
struct Window<'e> {
    elements: u32,
    accesses: Vec<(usize, &'e Access)>,
}

impl<'ctx> Emitter<'ctx, '_> {
    /// Emits a store after the loads of the neighbouring elements that it reads.
    pub(super) fn with_neighbours(
        &mut self,
        store: &Store,
        emit: impl FnOnce(&mut Self) -> Emit<()>,
    ) -> Emit<()> {
        let Some(lanes) = self.frame.lanes else { return emit(self) };
        let mut reads = Vec::new();
        certain_reads(&store.value, &mut reads);
        reads.retain(|access| {
            access.indices.iter().any(|index| has_lane_data(index, lanes.var)) && self.slot(access).is_none()
        });
        for neighbours in self.neighbours(&reads) {
            for window in self.windows(neighbours, lanes.count) {
                self.load_window(&window, lanes.count)?;
            }
        }
        let done = emit(self);
        self.frame.loaded.clear();
        done
    }

    /// The value of an access that is loaded already.
    pub(super) fn loaded(&self, access: &Access) -> Option<Value<'ctx>> {
        self.frame.loaded.iter().find(|(own, _)| own == access).map(|(_, value)| *value)
    }

    /// Groups accesses whose elements are at constant distances.
    fn neighbours<'e>(&self, reads: &[&'e Access]) -> Vec<Neighbours<'e>> {
        let mut groups: BTreeMap<BufferId, Vec<Neighbours<'e>>> = BTreeMap::new();
        for access in reads {
            let groups = groups.entry(access.tensor).or_default();
            let distance = |group: &Neighbours| self.distance(group[0].1, access);
            match groups.iter_mut().find_map(|group| Some((distance(group)?, group))) {
                Some((distance, group)) => group.push((distance, access)),
                None => groups.push(vec![(0, access)]),
            }
        }
        groups.into_values().flatten().filter(|group| group.len() > 1).collect()
    }

    /// The distance in elements from one access to another of the same buffer, if it is constant.
    fn distance(&self, from: &Access, to: &Access) -> Option<i64> {
        let strides = self.nest.buffer(from.tensor).strides();
        let mut dimensions = from.indices.iter().zip(&to.indices).zip(strides);
        dimensions.try_fold(0_i64, |sum, ((from, to), stride)| {
            let steps = self.resolve(to).sub(&self.resolve(from)).as_constant()?;
            sum.checked_add(steps.checked_mul(stride)?)
        })
    }

    /// The windows that pay, from the first element on.
    fn windows<'e>(&self, mut neighbours: Neighbours<'e>, lanes: u32) -> Vec<Window<'e>> {
        neighbours.sort_by_key(|(distance, _)| *distance);
        let buffer = self.nest.buffer(neighbours[0].1.tensor);
        let bytes = buffer.dtype.bytes() as u32;
        let mut windows = Vec::new();
        let mut rest = neighbours.as_slice();
        while let [(first, _), ..] = rest {
            let inside = |elements: u32| rest.partition_point(|(at, _)| at - first < i64::from(elements));
            let fits = |elements: u32| {
                elements * bytes <= MOST_BYTES
                    && i64::from(elements) <= buffer.elements()
                    && can_transpose(lanes, elements)
            };
            let is_closed = |elements| rest[inside(elements) - 1].0 - first == i64::from(elements) - 1;
            let read = |elements| {
                let mut places: Vec<i64> = rest[..inside(elements)].iter().map(|(at, _)| *at).collect();
                places.dedup();
                places.len()
            };
            let pays = |(elements, least): &&(u32, usize)| {
                fits(*elements) && is_closed(*elements) && read(*elements) >= *least
            };
            let Some((elements, _)) = WINDOWS.iter().find(pays) else {
                rest = &rest[inside(1)..];
                continue;
            };
            let (own, others) = rest.split_at(inside(*elements));
            let accesses = own.iter().map(|(at, access)| ((at - first) as usize, *access)).collect();
            windows.push(Window { elements: *elements, accesses });
            rest = others;
        }
        windows
    }

    /// Loads a window for each lane, and notes the values of its accesses.
    fn load_window(&mut self, window: &Window<'_>, lanes: u32) -> Emit<()> {
        let places: Vec<Location<'ctx>> =
            window.accesses.iter().map(|(_, access)| self.locate(access)).collect::<Emit<_>>()?;
        let Address::Scattered(first, offsets) = places[0].address else { return Ok(()) };
        let mask = self.window_mask(&places);
        let pointers = self.lane_addresses(&places[0], first, offsets, mask, lanes);
        let dtype = places[0].dtype;
        let columns = self.transposed(self.ops.memory_type(dtype), &pointers, window.elements, dtype.bytes());
        for (position, access) in &window.accesses {
            let value = self.decode(dtype, columns[*position]);
            self.frame.loaded.push(((*access).clone(), value));
        }
        Ok(())
    }

    /// The lanes in which all elements of a window are inside the buffer; `None` for all lanes.
    fn window_mask(&self, places: &[Location<'ctx>]) -> Option<Value<'ctx>> {
        let is_inside = places.iter().all(|place| place.bounds == Bounds::AllLanes);
        let lanes = self.frame.lanes.filter(|_| !is_inside);
        let checks = places.iter().filter_map(|place| place.checks_hold);
        checks.fold(lanes.and_then(|lanes| lanes.statement_mask), |mask, holds| {
            Some(self.ops.and_maybe(mask, holds))
        })
    }

    /// Loads `elements` elements from each address, and returns a vector over the lanes for each of
    /// them.
    fn transposed(
        &self,
        element: BasicTypeEnum<'ctx>,
        addresses: &[PointerValue<'ctx>],
        elements: u32,
        bytes: usize,
    ) -> Vec<Value<'ctx>> {
        let lanes = addresses.len() as u32;
        // Vector g has the windows of the lanes g, g + elements, g + 2 * elements, …
        let vectors = (0..elements).map(|group| {
            let own = addresses.iter().skip(group as usize).step_by(elements as usize);
            self.concatenated(element, own.copied(), (elements, lanes), bytes as u32)
        });
        let vectors: Vec<Value<'ctx>> = vectors.collect();
        let (elements, lanes) = (u64::from(elements), u64::from(lanes));
        // Takes some elements of every window of `left`, each before the same elements of `right`.
        let merged = |left: usize, right: usize, chosen: &[u64], places: &[Value<'ctx>]| {
            let windows = (0..lanes).step_by(elements as usize);
            let pattern = windows.flat_map(|window| {
                chosen
                    .iter()
                    .map(move |at| if *at < elements { window + at } else { lanes + window + at - elements })
            });
            self.ops.shuffle(places[left], places[right], pattern)
        };
        match elements {
            2 => vec![merged(0, 1, &[0, 2], &vectors), merged(0, 1, &[1, 3], &vectors)],
            _ => {
                let (low, high) = ([0, 4, 1, 5], [2, 6, 3, 7]);
                let halves = [
                    merged(0, 1, &low, &vectors),
                    merged(2, 3, &low, &vectors),
                    merged(0, 1, &high, &vectors),
                    merged(2, 3, &high, &vectors),
                ];
                let (first, second) = ([0, 1, 4, 5], [2, 3, 6, 7]);
                vec![
                    merged(0, 1, &first, &halves),
                    merged(0, 1, &second, &halves),
                    merged(2, 3, &first, &halves),
                    merged(2, 3, &second, &halves),
                ]
            }
        }
    }

    /// Loads the windows at some addresses as one vector.
    fn concatenated(
        &self,
        element: BasicTypeEnum<'ctx>,
        addresses: impl Iterator<Item = PointerValue<'ctx>>,
        (elements, lanes): (u32, u32),
        bytes: u32,
    ) -> Value<'ctx> {
        let bits = 8 * bytes * elements;
        if bits < VECTOR_BITS {
            let whole: BasicTypeEnum<'ctx> = self.ops.int_type(bits).into();
            let mut all: Value<'ctx> = vector_of(whole, lanes / elements).get_poison().into();
            for (at, address) in addresses.enumerate() {
                all = self.ops.insert(all, self.load_aligned(whole, address, bytes), at as u32);
            }
            let kind = vector_of(element, lanes);
            return self.ops.builder.build_bit_cast(all, kind, "").expect(BUILT);
        }
        let window: VectorType<'ctx> = vector_of(element, elements);
        let mut parts: Vec<Value<'ctx>> =
            addresses.map(|address| self.load_aligned(window.into(), address, bytes)).collect();
        let mut length = u64::from(elements);
        while parts.len() > 1 {
            parts = parts.chunks(2).map(|pair| self.ops.shuffle(pair[0], pair[1], 0..2 * length)).collect();
            length *= 2;
        }
        parts[0]
    }
}

/// Whether the windows of this many lanes fill vectors of a power of two.
fn can_transpose(lanes: u32, elements: u32) -> bool {
    lanes.is_power_of_two() && lanes >= elements
}

/// Whether a subscript contains data that differs between lanes.
fn has_lane_data(index: &IndexExpr, lane: LoopVarId) -> bool {
    index.has_data() && index.mentions(lane)
}
