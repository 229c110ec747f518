//! Encodes a point as a sequence of decisions, each of which selects one of a few tokens, and
//! decodes such sequences. A recurrent policy emits them (`controller.rs`).
//!
//! A factorisation has one decision for each factor except the first, which follows from the
//! others. A permutation has one decision for each position. Every other knob is one decision. The
//! tokens that can follow, and the number of points that begin with each of them, depend on the
//! tokens before. Drawing tokens in proportion to these numbers gives all points equal probability.

use std::cell::RefCell;
use std::collections::HashMap;

use crate::knob::{Domain, Factorisation, Knobs, Point, Value};

/// The decisions that make up a point.
pub(super) struct Decisions {
    knobs: Knobs,
    /// The tokens of each decision.
    vocabularies: Vec<Vec<i64>>,
    /// The index of the first decision of each knob, and the total number of decisions.
    firsts: Vec<usize>,
    /// The number of ways to choose the last factors of a knob. The key is the knob, the number of
    /// these factors, and the product of the factors before them.
    completions: RefCell<HashMap<(usize, usize, i64), f64>>,
}

impl Decisions {
    pub fn new(knobs: &Knobs) -> Decisions {
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
        Decisions { knobs: knobs.clone(), vocabularies: words, firsts, completions: RefCell::default() }
    }

    /// The number of tokens of each decision.
    pub fn vocabulary_sizes(&self) -> impl ExactSizeIterator<Item = usize> {
        self.vocabularies.iter().map(Vec::len)
    }

    /// For each token of the next decision, the logarithm of the number of completions of this knob
    /// that begin with it, up to a constant. It is -∞ for tokens that cannot follow. The rules of
    /// the space are ignored.
    pub fn log_completions(&self, tokens: &[usize]) -> Vec<f32> {
        let knob = self.firsts.partition_point(|first| *first <= tokens.len()) - 1;
        let before: Vec<i64> =
            (self.firsts[knob]..tokens.len()).map(|at| self.vocabularies[at][tokens[at]]).collect();
        let words = self.vocabularies[tokens.len()].iter();
        match self.knobs.get(knob).map(|knob| &knob.domain) {
            Some(Domain::Factorisation(own)) => {
                let (after, product) = (self.firsts[knob + 1] - tokens.len() - 1, before.iter().product());
                let possible = own.inner_factors(product);
                let ways = |word: &i64| match possible.binary_search(word) {
                    Ok(_) => self.completions(own, knob, after, product * word),
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

    /// The number of ways to choose the last `factors` factors of a knob, given the product of the
    /// factors before them.
    fn completions(&self, own: &Factorisation, knob: usize, factors: usize, product: i64) -> f64 {
        if factors == 0 {
            return 1.0;
        }
        let key = (knob, factors, product);
        if let Some(known) = self.completions.borrow().get(&key) {
            return *known;
        }
        let each = own.inner_factors(product).into_iter();
        let ways = each.map(|factor| self.completions(own, knob, factors - 1, product * factor)).sum();
        self.completions.borrow_mut().insert(key, ways);
        ways
    }

    /// Decodes a sequence of tokens into a point.
    pub fn decode(&self, tokens: &[usize]) -> Option<Point> {
        let values = self.knobs.iter().zip(self.firsts.windows(2)).map(|(knob, ends)| {
            let words: Vec<i64> = (ends[0]..ends[1])
                .map(|at| Some(*self.vocabularies[at].get(*tokens.get(at)?)?))
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

    /// Encodes a point as a sequence of tokens. Returns `None` if the point does not belong to the
    /// space.
    pub fn encode(&self, point: &Point) -> Option<Vec<usize>> {
        if !self.knobs.contains(point) {
            return None;
        }
        let said = point.0.iter().flat_map(|value| match value {
            Value::Factors(factors) => factors.iter().skip(1).copied().collect::<Vec<i64>>(),
            Value::Order(order) => order.iter().map(|at| *at as i64).collect(),
            Value::Choice(at) => vec![*at as i64],
        });
        said.zip(&self.vocabularies).map(|(word, words)| words.binary_search(&word).ok()).collect()
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
    fn points_are_encoded_and_decoded() {
        let (decisions, mut rng) = (Decisions::new(&knobs()), Pcg64Mcg::seed_from_u64(1));
        for _ in 0..500 {
            let point = knobs().sample(&mut rng).unwrap();
            let said = decisions.encode(&point).unwrap();
            assert!(
                (0..said.len()).all(|at| decisions.log_completions(&said[..at])[said[at]] >= 0.0),
                "{point:?}"
            );
            assert_eq!(decisions.decode(&said), Some(point));
        }
        assert_eq!(decisions.encode(&Point::default()), None);
    }

    #[test]
    fn every_token_sequence_is_a_point() {
        let (decisions, mut rng) = (Decisions::new(&knobs()), Pcg64Mcg::seed_from_u64(2));
        for _ in 0..500 {
            let mut said = Vec::new();
            for words in decisions.vocabulary_sizes() {
                let open = decisions.log_completions(&said);
                assert_eq!(open.len(), words);
                let open: Vec<usize> = (0..words).filter(|word| open[*word] >= 0.0).collect();
                said.push(*open.choose(&mut rng).unwrap());
            }
            assert!(decisions.decode(&said).is_some(), "{said:?}");
        }
    }

    /// The numbers of completions of the first tokens add up to the size of the space. Those of the
    /// second tokens add up to the number of their first token.
    #[test]
    fn token_weights_count_completions() {
        let knob = Knob::factorisation("tile", 72, 3, Divisors::Exact);
        let (size, decisions) = (knob.domain.size(), Decisions::new(&Knobs::new(vec![knob])));
        let ways = |said: &[usize]| {
            decisions.log_completions(said).iter().map(|log| log.exp()).collect::<Vec<f32>>()
        };
        let first = ways(&[]);
        assert_eq!(first.iter().sum::<f32>().round() as u128, size);
        for (word, own) in first.iter().enumerate() {
            assert_eq!(ways(&[word]).iter().sum::<f32>().round(), own.round());
        }
    }
}
