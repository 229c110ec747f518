//! Emits loads and stores whose lanes access elements at constant distances from each other, such
//! as every second pixel, or each pixel twice.
//!
//! The elements between the first and the last are loaded as whole vectors, and a shuffle moves
//! each element to the lanes that read it. Both ends of the span are elements that some lane reads,
//! so nothing outside the tensor is read. A mask of lanes becomes a mask of elements. A store works
//! the other way round: its vectors have the lanes' values at their elements, and a mask keeps the
//! elements in between.

use inkwell::types::VectorType;
use inkwell::values::PointerValue;

use super::function::Emitter;
use super::location::Location;
use super::ops::Value;

/// The largest span of elements, in vectors of as many elements as there are lanes, for which
/// loading all of them is cheaper than gathering.
const MAX_VECTORS: i64 = 4;

/// The largest number of lanes that read one element, for which a mask of elements is computed.
const MAX_READERS: usize = 4;

/// The vectors that together cover the span of a pattern.
struct Cover {
    /// The distance of the first element of the span from that of lane 0.
    least: i64,
    /// The elements of each vector.
    elements: i64,
    /// Where the vectors begin, counted from the first element of the span. The last vector ends
    /// with the span, so it may overlap the one before.
    starts: Vec<i64>,
}

impl Cover {
    fn new(offsets: &[i64]) -> Option<Cover> {
        let (least, most) = (*offsets.iter().min()?, *offsets.iter().max()?);
        let (span, lanes) = (most.checked_sub(least)?.checked_add(1)?, offsets.len() as i64);
        if span > MAX_VECTORS * lanes {
            return None;
        }
        // A span shorter than a vector is covered by two vectors of a power of two.
        let elements = if span >= lanes { lanes } else { 1 << span.ilog2() };
        let count = (span + elements - 1) / elements;
        let starts = (0..count).map(|part| (part * elements).min(span - elements)).collect();
        Some(Cover { least, elements, starts })
    }

    /// The vector that holds an element, and the element's position in it.
    fn place(&self, offset: i64) -> (usize, i64) {
        let at = offset - self.least;
        let part = ((at / self.elements) as usize).min(self.starts.len() - 1);
        (part, at - self.starts[part])
    }
}

impl<'ctx> Emitter<'ctx, '_> {
    /// Loads one element for each lane, at the given distances from `first`.
    pub(super) fn load_pattern(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        offsets: &[i64],
        mask: Option<Value<'ctx>>,
    ) -> Value<'ctx> {
        let cover = Cover::new(offsets).filter(|cover| mask.is_none() || cover.can_be_masked(offsets));
        let Some(cover) = cover else {
            let distances = self.lane_offsets_of(offsets);
            return self.gather(place, first, distances, mask, offsets.len() as u32);
        };
        let element = self.ops.memory_type(place.dtype);
        let kind = self.ops.widen(element, Some(cover.elements as u32)).into_vector_type();
        let parts = cover.starts.iter().enumerate().map(|(part, start)| {
            let pointer = self.ops.element_ptr(element, first, self.ops.int(cover.least + start));
            let mask = mask.map(|mask| self.element_mask(&cover, part, offsets, mask));
            self.load_vector(kind, pointer, mask, place.dtype.bytes() as u32)
        });
        let parts: Vec<Value<'ctx>> = parts.collect();
        self.arranged(&cover, &parts, offsets)
    }

    /// Stores one element for each lane, at the given distances from `first`, all different.
    /// Returns false, and emits nothing, where storing lane by lane is cheaper.
    pub(super) fn store_pattern(
        &self,
        place: &Location<'ctx>,
        first: PointerValue<'ctx>,
        offsets: &[i64],
        raw: Value<'ctx>,
        mask: Option<Value<'ctx>>,
    ) -> bool {
        if !self.machine.has_masks_for(place.dtype.bytes()) {
            return false;
        }
        let Some(cover) = Cover::new(offsets) else { return false };
        let element = self.ops.memory_type(place.dtype);
        for (part, start) in cover.starts.iter().enumerate() {
            let writers = cover.readers(part, offsets);
            let lanes = writers.iter().map(|own| own.first().map_or(0, |lane| *lane as u64));
            let vector = self.ops.shuffle(raw, raw, lanes);
            let is_written: Vec<_> =
                writers.iter().map(|own| self.ops.bit(!own.is_empty()).into_int_value()).collect();
            let written = match mask {
                Some(mask) => self.element_mask(&cover, part, offsets, mask),
                None => VectorType::const_vector(&is_written).into(),
            };
            let pointer = self.ops.element_ptr(element, first, self.ops.int(cover.least + start));
            self.masked_store(pointer, vector, written, place.dtype.bytes() as u32);
        }
        true
    }

    /// Moves each element of the vectors to the lanes that read it.
    fn arranged(&self, cover: &Cover, parts: &[Value<'ctx>], offsets: &[i64]) -> Value<'ctx> {
        let elements = cover.elements as u64;
        let of_two = |right: usize| {
            offsets.iter().map(move |offset| {
                let (part, at) = cover.place(*offset);
                if part == right { elements + at as u64 } else { at as u64 }
            })
        };
        let Some(second) = parts.get(1) else { return self.ops.shuffle(parts[0], parts[0], of_two(1)) };
        let mut whole = self.ops.shuffle(parts[0], *second, of_two(1));
        for (part, vector) in parts.iter().enumerate().skip(2) {
            // Lanes of later vectors have arbitrary values until then.
            let lanes = offsets.iter().enumerate().map(|(lane, offset)| match cover.place(*offset) {
                (own, at) if own == part => elements + at as u64,
                _ => lane as u64,
            });
            whole = self.ops.shuffle(whole, *vector, lanes);
        }
        whole
    }

    /// The elements of one vector that active lanes read.
    fn element_mask(&self, cover: &Cover, part: usize, offsets: &[i64], mask: Value<'ctx>) -> Value<'ctx> {
        let readers = cover.readers(part, offsets);
        let rounds = readers.iter().map(Vec::len).max().unwrap_or(0);
        let nobody = mask.into_vector_value().get_type().const_zero().into();
        let lanes = offsets.len() as u64;
        let masks = (0..rounds).map(|round| {
            let places = readers.iter().map(|own| own.get(round).map_or(lanes, |lane| *lane as u64));
            self.ops.shuffle(mask, nobody, places)
        });
        let none = VectorType::const_vector(&vec![self.ops.context.bool_type().const_zero(); readers.len()]);
        masks.reduce(|left, right| self.ops.or(left, right)).unwrap_or(none.into())
    }
}

impl Cover {
    /// For each element of one vector, the lanes that read it there.
    fn readers(&self, part: usize, offsets: &[i64]) -> Vec<Vec<usize>> {
        let mut readers = vec![Vec::new(); self.elements as usize];
        for (lane, offset) in offsets.iter().enumerate() {
            if let (own, at) = self.place(*offset)
                && own == part
            {
                readers[at as usize].push(lane);
            }
        }
        readers
    }

    fn can_be_masked(&self, offsets: &[i64]) -> bool {
        let few = |part| self.readers(part, offsets).iter().all(|lanes| lanes.len() <= MAX_READERS);
        (0..self.starts.len()).all(few)
    }
}
