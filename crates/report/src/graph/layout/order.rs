//! Orders the vertices of each rank so that few segments cross.
//!
//! Sweeps down and up sort each rank by the mean position of the neighbours in the rank before, and
//! swap neighbours where that removes crossings. The order with the fewest crossings is kept.

use super::level::{Layers, Segment};

/// The number of sweeps, and of sweeps without progress after which the search ends.
const MOST_SWEEPS: usize = 24;
const MOST_IDLE_SWEEPS: usize = 6;
/// Diagrams with more segments than this get a single sweep in each direction.
const MANY_SEGMENTS: usize = 20_000;
/// The part of a position that tells the two ends of one vertex apart.
const OFFSET_SHARE: f64 = 1e-4;

/// The neighbours of a vertex in the rank above or below: where the segment ends there, and where
/// it begins at the vertex itself.
type Neighbours = Vec<Vec<(usize, f64, f64)>>;

/// Reorders the vertices of all ranks.
pub fn reduce_crossings(layers: &mut Layers) {
    let mut search = Search::new(layers);
    let sweeps = if search.segments > MANY_SEGMENTS { 2 } else { MOST_SWEEPS };
    let (mut best, mut fewest, mut idle) = (layers.layers.clone(), search.crossings(layers), 0);
    for sweep in 0..sweeps {
        if fewest == 0 || idle == MOST_IDLE_SWEEPS {
            break;
        }
        search.sweep(layers, sweep % 2 == 0);
        let crossings = search.crossings(layers);
        idle = if crossings < fewest { 0 } else { idle + 1 };
        if crossings < fewest {
            (best, fewest) = (layers.layers.clone(), crossings);
        }
    }
    layers.layers = best;
}

struct Search {
    above: Neighbours,
    below: Neighbours,
    /// The position of each vertex in its rank.
    position: Vec<f64>,
    segments: usize,
}

impl Search {
    fn new(layers: &Layers) -> Search {
        let count = layers.vertices.len();
        let (mut above, mut below) = (vec![Vec::new(); count], vec![Vec::new(); count]);
        let segments = layers.segments.iter().flatten();
        for &Segment { from, to, from_offset, to_offset } in segments.clone() {
            below[from].push((to, OFFSET_SHARE * to_offset, OFFSET_SHARE * from_offset));
            above[to].push((from, OFFSET_SHARE * from_offset, OFFSET_SHARE * to_offset));
        }
        let mut own = Search { above, below, position: vec![0.0; count], segments: segments.count() };
        layers.layers.iter().for_each(|layer| own.renumber(layer));
        own
    }

    fn renumber(&mut self, layer: &[usize]) {
        for (at, vertex) in layer.iter().enumerate() {
            self.position[*vertex] = at as f64;
        }
    }

    fn sweep(&mut self, layers: &mut Layers, down: bool) {
        let count = layers.layers.len();
        for step in 0..count {
            let rank = if down { step } else { count - 1 - step };
            let layer = &mut layers.layers[rank];
            let means: Vec<f64> = (0..self.position.len().min(layer.len()))
                .map(|at| self.mean(layer[at], down).unwrap_or(at as f64))
                .collect();
            let mut sorted: Vec<usize> = (0..layer.len()).collect();
            sorted.sort_by(|left, right| means[*left].total_cmp(&means[*right]));
            *layer = sorted.into_iter().map(|at| layer[at]).collect();
            self.renumber(layer);
            self.swap_neighbours(layer);
        }
    }

    fn mean(&self, vertex: usize, down: bool) -> Option<f64> {
        let neighbours = if down { &self.above[vertex] } else { &self.below[vertex] };
        let sum: f64 = neighbours.iter().map(|(other, offset, _)| self.position[*other] + offset).sum();
        (!neighbours.is_empty()).then(|| sum / neighbours.len() as f64)
    }

    /// Swaps neighbours while this removes crossings, from left to right.
    fn swap_neighbours(&mut self, layer: &mut [usize]) {
        for at in 1..layer.len() {
            let (left, right) = (layer[at - 1], layer[at]);
            let now = self.pair_crossings(left, right);
            if now > 0 && self.pair_crossings(right, left) < now {
                layer.swap(at - 1, at);
                self.position.swap(left, right);
            }
        }
    }

    /// The crossings between the segments of two vertices, the first of which is on the left.
    fn pair_crossings(&self, left: usize, right: usize) -> usize {
        let ends = |(other, offset, _): &(usize, f64, f64)| self.position[*other] + offset;
        let crossings = |all: &Neighbours| -> usize {
            let inverted = |from: f64| all[right].iter().filter(|to| ends(to) < from).count();
            all[left].iter().map(|from| inverted(ends(from))).sum()
        };
        crossings(&self.above) + crossings(&self.below)
    }

    /// The number of crossings in the whole diagram.
    fn crossings(&mut self, layers: &Layers) -> usize {
        layers.layers.iter().for_each(|layer| self.renumber(layer));
        layers.segments.iter().map(|segments| self.crossings_between(segments)).sum()
    }

    /// The number of crossings between two ranks: the inversions of the lower ends, once the
    /// segments are sorted by their upper ends.
    fn crossings_between(&self, segments: &[Segment]) -> usize {
        let upper = |at: &Segment| self.position[at.from] + OFFSET_SHARE * at.from_offset;
        let lower = |at: &Segment| self.position[at.to] + OFFSET_SHARE * at.to_offset;
        let mut sorted: Vec<&Segment> = segments.iter().collect();
        sorted.sort_by(|one, two| upper(one).total_cmp(&upper(two)).then(lower(one).total_cmp(&lower(two))));
        let mut ends: Vec<f64> = sorted.into_iter().map(lower).collect();
        inversions(&mut ends)
    }
}

/// Sorts numbers by merging, and counts the pairs in the wrong order.
fn inversions(numbers: &mut [f64]) -> usize {
    let count = numbers.len();
    if count < 2 {
        return 0;
    }
    let (left, right) = numbers.split_at_mut(count / 2);
    let inside = inversions(left) + inversions(right);
    let (left, right) = (left.to_vec(), right.to_vec());
    let (mut from_left, mut from_right, mut between) = (0, 0, 0);
    for slot in numbers {
        let takes_left =
            from_right == right.len() || from_left < left.len() && left[from_left] <= right[from_right];
        if takes_left {
            *slot = left[from_left];
            from_left += 1;
        } else {
            *slot = right[from_right];
            from_right += 1;
            between += left.len() - from_left;
        }
    }
    inside + between
}

#[cfg(test)]
mod tests {
    use super::inversions;

    #[test]
    fn every_pair_in_the_wrong_order_counts() {
        assert_eq!(inversions(&mut [3.0, 1.0, 2.0, 2.0]), 3);
        assert_eq!(inversions(&mut [1.0, 1.0, 2.0]), 0);
        assert_eq!(inversions(&mut [4.0, 3.0, 2.0, 1.0, 0.0]), 10);
    }
}
