//! Chooses horizontal positions: short segments, and straight ones where a chain of items or a long
//! link allows it.
//!
//! The objective is that of Gansner et al., section 4: the sum over all segments of the horizontal
//! distance, with a large weight for segments between virtual vertices. Three steps lead there:
//!
//! 1. Sweeps improve one rank at a time. With the neighbouring ranks fixed, a rank is an isotonic
//!    regression with absolute errors, which the pool-adjacent-violators algorithm solves.
//! 2. The network simplex method (`simplex.rs`) finds the minimum, unless the diagram is so large
//!    that this takes too long. Only this step straightens lines that others would have to give way
//!    for.
//! 3. More sweeps choose the middle where several positions are equally good: a reader of two
//!    tensors stands between them.

use super::level::{Layers, Segment};
use super::simplex::{Arc, minimise};

/// The free space between neighbours: two items, an item and a link, two links.
const ITEM_GAP: f64 = 22.0;
const LINK_GAP: f64 = 14.0;
const BETWEEN_LINKS: f64 = 10.0;

/// The number of sweeps down and up, before and after the network simplex method.
const FIRST_ROUNDS: usize = 6;
const LAST_ROUNDS: usize = 3;

/// The weight of the present position, where no segment asks for another.
const INERTIA: f64 = 1e-3;

/// The most that the width of the whole costs, in segments. The width costs a segment for each
/// rank: in a drawing of many ranks, straight lines alone would make it much too wide.
const MOST_WIDTH_WEIGHT: usize = 30;
/// The number of steps of a unit on which the network simplex method works.
const STEPS: f64 = 4.0;

/// Which neighbours a sweep looks at.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Above,
    Below,
    Both,
}

/// A vertex in the rank above or below another.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    /// The vertex.
    vertex: usize,
    /// How far right of the vertex the other one should be.
    shift: f64,
    /// The weight of the segment between both, a whole number.
    weight: f64,
}

/// A wanted position and its weight.
type Wish = (f64, f64);

/// The centre of each vertex. The leftmost vertex begins at 0.
pub fn centres(layers: &Layers) -> Vec<f64> {
    let mut search = Search::new(layers);
    for _ in 0..FIRST_ROUNDS {
        search.sweep(true, Side::Above);
        search.sweep(false, Side::Below);
    }
    search.minimise();
    for _ in 0..LAST_ROUNDS {
        search.sweep(true, Side::Both);
        search.sweep(false, Side::Both);
    }
    from_zero(search.centre, layers)
}

fn from_zero(mut centre: Vec<f64>, layers: &Layers) -> Vec<f64> {
    let left = (0..centre.len()).map(|at| centre[at] - layers.vertices[at].width / 2.0);
    let least = left.fold(f64::INFINITY, f64::min);
    centre.iter_mut().for_each(|centre| *centre -= least);
    centre
}

struct Search<'a> {
    layers: &'a Layers,
    centre: Vec<f64>,
    above: Vec<Vec<Neighbour>>,
    below: Vec<Vec<Neighbour>>,
}

impl<'a> Search<'a> {
    fn new(layers: &'a Layers) -> Search<'a> {
        let count = layers.vertices.len();
        let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        let (mut ins, mut outs) = (vec![0; count], vec![0; count]);
        for Segment { from, to, .. } in layers.segments.iter().flatten() {
            ins[*to] += 1;
            outs[*from] += 1;
        }
        for at in layers.segments.iter().flatten() {
            let shift = at.from_offset - at.to_offset;
            let weight = weight(layers, at, outs[at.from] == 1, ins[at.to] == 1);
            above[at.to].push(Neighbour { vertex: at.from, shift, weight });
            below[at.from].push(Neighbour { vertex: at.to, shift: -shift, weight });
        }
        let mut own = Search { layers, centre: vec![0.0; count], above, below };
        layers.layers.iter().for_each(|layer| own.pack(layer));
        own
    }

    /// Packs the vertices of a rank around the axis.
    fn pack(&mut self, layer: &[usize]) {
        let offsets = self.least_offsets(layer);
        let middle = offsets.last().copied().unwrap_or(0.0) / 2.0;
        for (vertex, offset) in layer.iter().zip(offsets) {
            self.centre[*vertex] = offset - middle;
        }
    }

    /// The least distance of each vertex of a rank from the first one.
    fn least_offsets(&self, layer: &[usize]) -> Vec<f64> {
        let mut offset = 0.0;
        let mut offsets = Vec::with_capacity(layer.len());
        for (at, vertex) in layer.iter().enumerate() {
            if at > 0 {
                offset += self.separation(layer[at - 1], *vertex);
            }
            offsets.push(offset);
        }
        offsets
    }

    fn separation(&self, left: usize, right: usize) -> f64 {
        let (left, right) = (self.layers.vertices[left], self.layers.vertices[right]);
        let gap = match (left.is_virtual, right.is_virtual) {
            (true, true) => BETWEEN_LINKS,
            (false, false) => ITEM_GAP,
            _ => LINK_GAP,
        };
        (left.width + right.width) / 2.0 + gap
    }

    /// Minimises the objective over all ranks. The nodes are the vertices, the two sides of the
    /// drawing, and one more for each segment: its arcs to both ends of the segment are together as
    /// long as the ends are apart.
    fn minimise(&mut self) {
        let mut values: Vec<i64> = self.centre.iter().map(|centre| (centre * STEPS).round() as i64).collect();
        let sides = values.len();
        let mut arcs = self.order_arcs(sides);
        // Rounding may have moved neighbours together.
        for arc in arcs.iter().filter(|arc| arc.tail < sides && arc.head < sides) {
            values[arc.head] = values[arc.head].max(values[arc.tail] + arc.least);
        }
        let left = arcs.iter().filter(|arc| arc.tail == sides && arc.head < sides);
        let left = left.map(|arc| values[arc.head] - arc.least).min();
        let right = arcs.iter().filter(|arc| arc.head == sides + 1 && arc.tail < sides);
        let right = right.map(|arc| values[arc.tail] + arc.least).max();
        values.extend([left.unwrap_or(0), right.unwrap_or(0)]);
        for at in self.above.iter().enumerate().flat_map(|(to, all)| all.iter().map(move |own| (to, own))) {
            let (to, Neighbour { vertex: from, shift, weight }) = at;
            let (node, shift) = (values.len(), (shift * STEPS).round() as i64);
            let ends = [(*from, (-shift).max(0)), (to, shift.max(0))];
            values.push(ends.iter().map(|(end, least)| values[*end] - least).min().unwrap_or(0));
            let arc = |(head, least)| Arc { tail: node, head, least, weight: *weight as i64 };
            arcs.extend(ends.map(arc));
        }
        let values = minimise(&arcs, values);
        for (centre, value) in self.centre.iter_mut().zip(values) {
            *centre = value as f64 / STEPS;
        }
    }

    /// The arcs that keep neighbours of a rank apart, from left to right, and those to the sides.
    fn order_arcs(&self, left: usize) -> Vec<Arc> {
        let right = left + 1;
        let weight = self.layers.layers.len().min(MOST_WIDTH_WEIGHT) as i64;
        let mut arcs = vec![Arc { tail: left, head: right, least: 0, weight }];
        for layer in &self.layers.layers {
            for pair in layer.windows(2) {
                let least = (self.separation(pair[0], pair[1]) * STEPS).ceil() as i64;
                arcs.push(Arc { tail: pair[0], head: pair[1], least, weight: 0 });
            }
            if let [first, .., last] | [first @ last] = layer[..] {
                let [first_half, last_half] =
                    [first, last].map(|end| (self.layers.vertices[end].width / 2.0 * STEPS).ceil() as i64);
                arcs.push(Arc { tail: left, head: first, least: first_half, weight: 0 });
                arcs.push(Arc { tail: last, head: right, least: last_half, weight: 0 });
            }
        }
        arcs
    }

    fn sweep(&mut self, down: bool, side: Side) {
        let layers: &Layers = self.layers;
        let count = layers.layers.len();
        for step in 0..count {
            let layer = &layers.layers[if down { step } else { count - 1 - step }];
            let offsets = self.least_offsets(layer);
            let wishes =
                layer.iter().zip(&offsets).map(|(vertex, offset)| self.wishes(*vertex, *offset, side));
            let places = isotonic(wishes.collect());
            for ((vertex, offset), place) in layer.iter().zip(offsets).zip(places) {
                self.centre[*vertex] = place + offset;
            }
        }
    }

    /// Where the neighbours want a vertex, less the offset.
    fn wishes(&self, vertex: usize, offset: f64, side: Side) -> Vec<Wish> {
        let above = self.above[vertex].iter().filter(|_| side != Side::Below);
        let below = self.below[vertex].iter().filter(|_| side != Side::Above);
        let wish = |own: &Neighbour| (self.centre[own.vertex] + own.shift - offset, own.weight);
        let mut wishes: Vec<Wish> = above.chain(below).map(wish).collect();
        if wishes.is_empty() {
            wishes.push((self.centre[vertex] - offset, INERTIA));
        }
        wishes.sort_by(|one, two| one.0.total_cmp(&two.0));
        wishes
    }
}

/// How much a segment should be straight. Long links matter most, then chains: the segment is the
/// only one that leaves its upper end, or the only one that enters its lower end.
fn weight(layers: &Layers, at: &Segment, leaves_alone: bool, enters_alone: bool) -> f64 {
    let ends = [at.from, at.to].map(|end| layers.vertices[end].is_virtual);
    match (ends, leaves_alone, enters_alone) {
        ([true, true], ..) => 16.0,
        ([true, false] | [false, true], ..) => 1.0,
        (_, true, true) => 8.0,
        (_, true, false) | (_, false, true) => 3.0,
        _ => 1.0,
    }
}

/// Returns numbers that do not decrease and are near the wishes of each: pool adjacent violators,
/// with weighted medians. Each list of wishes is sorted and not empty.
fn isotonic(wishes: Vec<Vec<Wish>>) -> Vec<f64> {
    let mut pools: Vec<(usize, f64, Vec<Wish>)> = Vec::new();
    for own in wishes {
        let mut pool = (1, median(&own), own);
        while let Some(last) = pools.pop_if(|last| last.1 > pool.1) {
            let all = merge(last.2, pool.2);
            pool = (last.0 + pool.0, median(&all), all);
        }
        pools.push(pool);
    }
    pools.into_iter().flat_map(|(count, place, _)| std::iter::repeat_n(place, count)).collect()
}

fn merge(mut left: Vec<Wish>, right: Vec<Wish>) -> Vec<Wish> {
    left.extend(right);
    left.sort_by(|one, two| one.0.total_cmp(&two.0));
    left
}

/// The weighted median of sorted wishes; the middle, where all between two of them are medians.
fn median(wishes: &[Wish]) -> f64 {
    let half = wishes.iter().map(|wish| wish.1).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    for (at, (place, weight)) in wishes.iter().enumerate() {
        sum += weight;
        if sum > half {
            return *place;
        }
        if sum == half
            && let Some((next, _)) = wishes.get(at + 1)
        {
            return (place + next) / 2.0;
        }
    }
    wishes.last().map_or(0.0, |wish| wish.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_is_in_the_middle_of_equals() {
        assert_eq!(median(&[(1.0, 1.0), (3.0, 1.0)]), 2.0);
        assert_eq!(median(&[(1.0, 1.0), (3.0, 2.0)]), 3.0);
        assert_eq!(median(&[(1.0, 1.0), (2.0, 1.0), (9.0, 1.0)]), 2.0);
    }

    #[test]
    fn violators_share_a_place() {
        let wishes = [5.0, 1.0, 3.0, 9.0].map(|place| vec![(place, 1.0)]);
        assert_eq!(isotonic(wishes.to_vec()), [3.0, 3.0, 3.0, 9.0]);
    }
}
