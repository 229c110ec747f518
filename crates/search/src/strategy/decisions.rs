//! A point as a sequence of decisions, each for one of a few words: what a controller says one
//! after the other.
//!
//! A factorisation is a decision for each factor but the first, which is what is left; an order one
//! for each place; all else is one decision. Which words can follow depends on those before, and so
//! does how much each of them leaves open: who draws words by how many points begin with them draws
//! all points equally often.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::knob::{Domain, Factorisation, Knobs, Point, Value};

/// The decisions that points are made of.
pub(super) struct Decisions {
    knobs: Knobs,
    /// The words of each decision.
    words: Vec<Vec<i64>>,
    /// The first decision of each knob, and the end.
    firsts: Vec<usize>,
    /// In how many ways the last factors can be chosen: by the knob, how many they are, and the
    /// product of those before.
    ways: RefCell<HashMap<(usize, usize, i64), f64>>,
}

impl Decisions {
    pub fn of(knobs: &Knobs) -> Decisions {
        let (mut words, mut firsts) = (Vec::new(), vec![0]);
        for knob in knobs.iter() {
            match &knob.domain {
                Domain::Factorisation(own) => {
                    let each = own.inner_factors(1);
                    words.extend((1..own.parts()).map(|_| each.clone()));
                }
                Domain::Permutation(own) => {
                    words.extend((0..own.0).map(|_| (0..own.0 as i64).collect::<Vec<i64>>()));
                }
                other => words.push((0..other.size() as i64).collect()),
            }
            firsts.push(words.len());
        }
        Decisions { knobs: knobs.clone(), words, firsts, ways: RefCell::default() }
    }

    /// How many words each decision has.
    pub fn words(&self) -> impl ExactSizeIterator<Item = usize> {
        self.words.iter().map(Vec::len)
    }

    /// How many points there are for each word that can be said next, compared with the others: the
    /// logarithm, or -∞ where it cannot be said. The rules of the space do not count.
    pub fn open(&self, said: &[usize]) -> Vec<f32> {
        let knob = self.firsts.partition_point(|first| *first <= said.len()) - 1;
        let before: Vec<i64> = (self.firsts[knob]..said.len()).map(|at| self.words[at][said[at]]).collect();
        let words = self.words[said.len()].iter();
        match self.knobs.get(knob).map(|knob| &knob.domain) {
            Some(Domain::Factorisation(own)) => {
                let (after, product) = (self.firsts[knob + 1] - said.len() - 1, before.iter().product());
                let possible = own.inner_factors(product);
                let ways = |word: &i64| match possible.binary_search(word) {
                    Ok(_) => self.ways(own, knob, after, product * word),
                    Err(_) => 0.0,
                };
                words.map(|word| ways(word).ln() as f32).collect()
            }
            Some(Domain::Permutation(_)) => {
                words.map(|word| if before.contains(word) { f32::NEG_INFINITY } else { 0.0 }).collect()
            }
            _ => words.map(|_| 0.0).collect(),
        }
    }

    /// In how many ways the last factors of a knob can be chosen, beside others of this product.
    fn ways(&self, own: &Factorisation, knob: usize, factors: usize, product: i64) -> f64 {
        if factors == 0 {
            return 1.0;
        }
        let key = (knob, factors, product);
        if let Some(known) = self.ways.borrow().get(&key) {
            return *known;
        }
        let each = own.inner_factors(product).into_iter();
        let ways = each.map(|factor| self.ways(own, knob, factors - 1, product * factor)).sum();
        self.ways.borrow_mut().insert(key, ways);
        ways
    }

    /// The point that was said.
    pub fn point(&self, said: &[usize]) -> Option<Point> {
        let values = self.knobs.iter().zip(self.firsts.windows(2)).map(|(knob, ends)| {
            let words: Vec<i64> = (ends[0]..ends[1])
                .map(|at| Some(*self.words[at].get(*said.get(at)?)?))
                .collect::<Option<_>>()?;
            match &knob.domain {
                Domain::Factorisation(own) => own.with_inner(&words).map(Value::Factors),
                Domain::Permutation(_) => {
                    Some(Value::Order(words.iter().map(|word| *word as usize).collect()))
                }
                _ => words.first().map(|word| Value::Choice(*word as usize)),
            }
        });
        let point = Point(values.collect::<Option<_>>()?);
        self.knobs.contains(&point).then_some(point)
    }

    /// How a point is said; none where it is not of the space.
    pub fn said(&self, point: &Point) -> Option<Vec<usize>> {
        if !self.knobs.contains(point) {
            return None;
        }
        let said = point.0.iter().flat_map(|value| match value {
            Value::Factors(factors) => factors.iter().skip(1).copied().collect::<Vec<i64>>(),
            Value::Order(order) => order.iter().map(|at| *at as i64).collect(),
            Value::Choice(at) => vec![*at as i64],
        });
        said.zip(&self.words).map(|(word, words)| words.binary_search(&word).ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand::seq::IndexedRandom;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::knob::{Divisors, Knob};

    fn knobs() -> Knobs {
        Knobs::new(vec![
            Knob::factorisation("tile", 72, 3, Divisors::Exact),
            Knob::permutation("order", 4),
            Knob::factorisation("near", 13, 3, Divisors::Near { most_waste_percent: 20 }),
            Knob::ordinal("unroll", [0, 16, 64]),
            Knob::factorisation("whole", 7, 1, Divisors::Exact),
            Knob::categorical("layout", ["rows", "packed"]),
        ])
    }

    #[test]
    fn points_are_said_and_understood() {
        let (decisions, mut rng) = (Decisions::of(&knobs()), Pcg64Mcg::seed_from_u64(1));
        for _ in 0..500 {
            let point = knobs().sample(&mut rng).unwrap();
            let said = decisions.said(&point).unwrap();
            assert!((0..said.len()).all(|at| decisions.open(&said[..at])[said[at]] >= 0.0), "{point:?}");
            assert_eq!(decisions.point(&said), Some(point));
        }
        assert_eq!(decisions.said(&Point::default()), None);
    }

    #[test]
    fn whatever_can_be_said_is_a_point() {
        let (decisions, mut rng) = (Decisions::of(&knobs()), Pcg64Mcg::seed_from_u64(2));
        for _ in 0..500 {
            let mut said = Vec::new();
            for words in decisions.words() {
                let open = decisions.open(&said);
                assert_eq!(open.len(), words);
                let open: Vec<usize> = (0..words).filter(|word| open[*word] >= 0.0).collect();
                said.push(*open.choose(&mut rng).unwrap());
            }
            assert!(decisions.point(&said).is_some(), "{said:?}");
        }
    }

    /// What is open adds up to the whole space, and so does what is open after each of the words.
    #[test]
    fn words_weigh_what_they_leave_open() {
        let knob = Knob::factorisation("tile", 72, 3, Divisors::Exact);
        let (size, decisions) = (knob.domain.size(), Decisions::of(&Knobs::new(vec![knob])));
        let ways = |said: &[usize]| decisions.open(said).iter().map(|log| log.exp()).collect::<Vec<f32>>();
        let first = ways(&[]);
        assert_eq!(first.iter().sum::<f32>().round() as u128, size);
        for (word, own) in first.iter().enumerate() {
            assert_eq!(ways(&[word]).iter().sum::<f32>().round(), own.round());
        }
    }
}
