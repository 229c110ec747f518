//! Numbers the directions of steps from a point to its neighbours.
//!
//! A direction has the same number at every point. Hence a strategy can apply its experience with a
//! direction at some points to other points.
//!
//! | domain | directions |
//! |---|---|
//! | factorisation | from one factor to another; the direction does not say which prime moves if several can |
//! | permutation | two positions that are exchanged |
//! | ordinal | down, up |
//! | categorical | the name that is chosen |

use super::{Domain, Knobs, Move, Point, Value};

impl Domain {
    /// The number of directions of this domain.
    pub fn directions(&self) -> usize {
        let pairs = |count: usize| count * count.saturating_sub(1);
        match self {
            Domain::Factorisation(it) => pairs(it.parts()),
            Domain::Permutation(it) => pairs(it.0) / 2,
            Domain::Ordinal(_) => 2,
            Domain::Categorical(it) => it.size() as usize,
        }
    }

    /// Returns the number of the direction from a value to one of its neighbours, which is less
    /// than [`directions`](Domain::directions).
    fn direction(&self, from: &Value, to: &Value) -> usize {
        match (self, from, to) {
            (Domain::Factorisation(_), Value::Factors(from), Value::Factors(to)) => {
                factor_direction(from, to)
            }
            (Domain::Permutation(_), Value::Order(from), Value::Order(to)) => exchange_direction(from, to),
            (Domain::Ordinal(_), Value::Choice(from), Value::Choice(to)) => usize::from(to > from),
            (Domain::Categorical(_), _, Value::Choice(to)) => *to,
            _ => 0,
        }
    }
}

/// Encodes the position whose factor shrank most and the position whose factor grew most as one
/// number.
fn factor_direction(from: &[i64], to: &[i64]) -> usize {
    let growth = |at: usize| to[at] as f64 / from[at].max(1) as f64;
    let places = || 0..from.len().min(to.len());
    let (mut shrunk, mut grown) = (0, 0);
    for at in places() {
        if growth(at) < growth(shrunk) {
            shrunk = at;
        }
        if growth(at) > growth(grown) {
            grown = at;
        }
    }
    // Only one factor changed. Any unchanged position can stand for the other end of the move.
    if shrunk == grown {
        let other = places().find(|at| *at != grown).unwrap_or(0);
        match growth(grown) < 1.0 {
            true => grown = other,
            false => shrunk = other,
        }
    }
    shrunk * from.len().saturating_sub(1) + if grown > shrunk { grown - 1 } else { grown }
}

/// Encodes the two positions that differ as one number.
fn exchange_direction(from: &[usize], to: &[usize]) -> usize {
    let mut differ = (0..from.len().min(to.len())).filter(|at| from[*at] != to[*at]);
    let (Some(first), Some(second)) = (differ.next(), differ.next()) else { return 0 };
    // The pairs are numbered in lexicographic order: all pairs with a smaller first position come
    // before.
    first * (2 * from.len() - first - 1) / 2 + second - first - 1
}

impl Knobs {
    /// The number of directions, which is the same at every point.
    pub fn directions(&self) -> usize {
        self.iter().map(|knob| knob.domain.directions()).sum()
    }

    /// Returns the steps to all neighbours of `point` that satisfy the rules, each with its
    /// direction.
    pub fn directed_moves(&self, point: &Point) -> Vec<(usize, Move)> {
        let firsts: Vec<usize> = self
            .iter()
            .scan(0, |next, knob| {
                let first = *next;
                *next += knob.domain.directions();
                Some(first)
            })
            .collect();
        let directed = |step: Move| {
            let own = self[step.knob].domain.direction(&point.0[step.knob], &step.value);
            (firsts[step.knob] + own, step)
        };
        self.moves(point).into_iter().map(directed).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::super::{Divisors, Knob};
    use super::*;

    fn knobs() -> Knobs {
        Knobs::new(vec![
            Knob::factorisation("powers", 1024, 4, Divisors::Exact),
            Knob::permutation("order", 4),
            Knob::ordinal("unroll", [1, 2, 8]),
            Knob::categorical("layout", ["rows", "columns", "packed"]),
            Knob::factorisation("near", 13, 3, Divisors::Near { most_waste_percent: 20 }),
            Knob::factorisation("several", 180, 2, Divisors::Exact),
            Knob::factorisation("whole", 7, 1, Divisors::Exact),
        ])
    }

    #[test]
    fn every_step_has_a_direction_of_its_knob() {
        let (knobs, mut rng) = (knobs(), Pcg64Mcg::seed_from_u64(1));
        assert_eq!(knobs.directions(), 12 + 6 + 2 + 3 + 6 + 2);
        let ends = [12, 18, 20, 23, 29, 31, 31];
        for _ in 0..200 {
            let point = knobs.sample(&mut rng).unwrap_or_default();
            for (direction, step) in knobs.directed_moves(&point) {
                let first = if step.knob == 0 { 0 } else { ends[step.knob - 1] };
                assert!((first..ends[step.knob]).contains(&direction), "{direction} {step:?}");
            }
        }
    }

    #[test]
    fn directions_tell_neighbours_apart_unless_several_primes_can_move() {
        let (knobs, mut rng) = (knobs(), Pcg64Mcg::seed_from_u64(2));
        for _ in 0..200 {
            let point = knobs.sample(&mut rng).unwrap_or_default();
            let moves = knobs.directed_moves(&point);
            let alone: Vec<usize> =
                moves.iter().filter(|(_, step)| step.knob < 4).map(|(direction, _)| *direction).collect();
            assert_eq!(alone.iter().collect::<HashSet<_>>().len(), alone.len(), "{point:?}");
        }
        // The step back has another direction, except for an exchange in a permutation.
        let point = knobs.nth(0).unwrap_or_default();
        for (direction, step) in knobs.directed_moves(&point) {
            let (knob, next) = (step.knob, point.with_move(step));
            let back = knobs
                .directed_moves(&next)
                .into_iter()
                .find(|(_, step)| point.0[knob] == step.value && step.knob == knob);
            let permutes = matches!(knobs[knob].domain, Domain::Permutation(_));
            assert_eq!(back.map(|(back, _)| back == direction), Some(permutes));
        }
    }
}
