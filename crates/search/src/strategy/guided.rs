//! Evolution whose children boosted trees look at before they are tried.
//!
//! From OpEvo it has children of the best points that change in a few knobs, by steps among
//! neighbouring values; from AutoTVM the trees that learn to rank what was tried. Several times as
//! many children are bred as are tried, and the trees choose. So it stays near what is good, as
//! walks among neighbours do, and passes over most of what is not, as a model can.
//!
//! 1. Parents are drawn from the best twelve, by rank: the best is drawn most often.
//! 2. A child takes its values from one parent, or each from one of two; then it goes some steps to
//!    neighbours.
//! 3. A child that stands for the same schedule as another, tried or bred, is dropped. So are
//!    refused ones.
//! 4. Of the others the batch is those that the trees like best, and a few that chance likes.
//!
//! Trees see loop nests and the points' own numbers: the first say what is known of every program,
//! the second what was found out in this one. Other trees have learned from what was tried for
//! other programs, where that is given; what they think of a point is one of its numbers, and is
//! added to its score, less with every trial. Until there are parents, the batch is chosen from
//! random points, and where nothing is known at all by chance.

use std::collections::HashSet;

use rand::RngExt;
use rand::seq::{IndexedRandom, IteratorRandom};

use super::explored::{Explored, Planner};
use super::learning::{Judge, Meaning, Sight};
use super::ranking::Ranking;
use super::{Start, Strategy, Told};
use crate::knob::{Knobs, Point};

pub(super) const NAME: &str = "guided";

/// However likely a further step is, there is an end.
const FURTHEST: f64 = 0.95;

/// The parameters of [`Guided`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// Points that are tried between lessons.
    pub batch: usize,
    /// Children that are bred for each that is tried.
    pub bred: usize,
    /// How many of the best are parents.
    pub parents: usize,
    /// How likely a child has two.
    pub crossover: f64,
    /// How likely it goes one step further.
    pub further: f64,
    /// The share of a batch that the trees have no say in.
    pub chance: f64,
}

impl Default for Parameters {
    fn default() -> Parameters {
        Parameters { batch: 8, bred: 4, parents: 12, crossover: 0.3, further: 0.4, chance: 0.1 }
    }
}

/// Evolution that trees guide.
pub struct Guided<'a> {
    parameters: Parameters,
    explored: Explored,
    judge: Judge<'a>,
    ranking: Ranking,
    /// What was tried.
    tried: HashSet<Meaning>,
}

impl<'a> Guided<'a> {
    /// A search of `knobs`.
    pub fn new(knobs: &Knobs, start: Start<'a>, parameters: Parameters) -> Guided<'a> {
        let batch = parameters.batch.max(start.together).max(1);
        Guided {
            parameters: Parameters { batch, ..parameters },
            judge: Judge::new(knobs, &start, Sight::Everything),
            explored: Explored::new(knobs, start),
            ranking: Ranking::default(),
            tried: HashSet::new(),
        }
    }

    /// Children that are new.
    fn breed(&mut self) -> Vec<Point> {
        let Parameters { batch, bred, parents, .. } = self.parameters;
        let parents: Vec<Point> =
            self.ranking.iter().take(parents.max(1)).map(|(point, _)| point.clone()).collect();
        let mut children: Vec<Point> = Vec::new();
        let mut born = HashSet::new();
        for _ in 0..2 * batch * bred {
            if children.len() >= batch * bred {
                break;
            }
            let child = self.child(&parents);
            if !self.explored.is_visited(&child)
                && self.explored.knobs.allows(&child)
                && born.insert(child.clone())
            {
                children.push(child);
            }
        }
        children
    }

    /// Random points that are new, as there are no parents yet.
    fn strangers(&mut self) -> Vec<Point> {
        let Parameters { batch, bred, .. } = self.parameters;
        let Explored { knobs, rng, .. } = &mut self.explored;
        let drawn: Vec<Point> = (0..batch * bred).map_while(|_| knobs.sample(rng)).collect();
        drawn.into_iter().filter(|point| !self.explored.is_visited(point)).collect()
    }

    /// Those that stand for something new, each once.
    fn different(&mut self, mut children: Vec<Point>) -> Vec<Point> {
        let Guided { judge, tried, .. } = self;
        let mut others = HashSet::new();
        children.retain(|child| {
            let meaning = judge.meaning(child);
            !tried.contains(&meaning) && others.insert(meaning)
        });
        judge.look(&children);
        children.retain(|child| judge.score(child).is_finite());
        children
    }

    fn child(&mut self, parents: &[Point]) -> Point {
        let Parameters { crossover, further, .. } = self.parameters;
        let mut child = self.parent(parents).clone();
        if self.explored.chance(crossover) {
            let other = self.parent(parents);
            for (own, other) in child.0.iter_mut().zip(&other.0) {
                if self.explored.chance(0.5) {
                    own.clone_from(other);
                }
            }
        }
        loop {
            let Explored { knobs, rng, .. } = &mut self.explored;
            let busy = (0..knobs.len()).filter(|knob| knobs[*knob].domain.size() > 1);
            let Some(knob) = busy.choose(rng) else { return child };
            if let Some(value) = knobs[knob].domain.neighbours(&child.0[knob]).choose(rng) {
                child.0[knob].clone_from(value);
            }
            if !self.explored.chance(further.min(FURTHEST)) {
                return child;
            }
        }
    }

    /// One of the parents: the best of two that are drawn.
    fn parent<'p>(&mut self, parents: &'p [Point]) -> &'p Point {
        let rng = &mut self.explored.rng;
        let (one, other) = (rng.random_range(0..parents.len()), rng.random_range(0..parents.len()));
        &parents[one.min(other)]
    }

    /// The batch: those that the trees like best, and a few that chance likes.
    fn choose(&mut self, children: Vec<Point>) {
        let score = |child: &Point| self.judge.score(child);
        let mut liked: Vec<(f32, Point)> = children.into_iter().map(|child| (score(&child), child)).collect();
        liked.sort_by(|left, right| right.0.total_cmp(&left.0).then_with(|| left.1.cmp(&right.1)));
        while self.explored.drawn() < self.parameters.batch && !liked.is_empty() {
            let any = self.explored.chance(self.parameters.chance);
            let at = if any { self.explored.rng.random_range(0..liked.len()) } else { 0 };
            let (_, point) = liked.remove(at);
            self.explored.draw(&point);
        }
    }
}

impl Planner for Guided<'_> {
    fn explored(&mut self) -> &mut Explored {
        &mut self.explored
    }

    fn plan(&mut self) {
        // What was only refused teaches nothing.
        let knows = !self.ranking.is_empty() || self.judge.knows_others();
        if knows && self.judge.learn() {
            let children = if self.ranking.is_empty() { self.strangers() } else { self.breed() };
            let children = self.different(children);
            self.choose(children);
        }
        if self.explored.drawn() == 0 {
            while self.explored.drawn() < self.parameters.batch && self.explored.draw_any() {}
        }
    }
}

impl Strategy for Guided<'_> {
    fn name(&self) -> &'static str {
        NAME
    }

    fn ask(&mut self, count: usize) -> Vec<Point> {
        std::iter::from_fn(|| self.next()).take(count).collect()
    }

    fn tell(&mut self, results: &[Told]) {
        for told in results {
            let cost = self.explored.told(told);
            if let Some(cost) = cost {
                self.ranking.insert(told.point.clone(), cost);
            }
            if self.explored.is_visited(&told.point) {
                self.judge.tell(&told.point, cost);
                self.tried.insert(self.judge.meaning(&told.point));
            }
        }
    }
}
