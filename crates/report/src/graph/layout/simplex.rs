//! Minimises the weighted sum of differences of integers, subject to least differences, with the
//! network simplex method: Gansner et al., section 2.3.
//!
//! A spanning tree of tight arcs (whose difference is the least one) determines all values. The cut
//! value of a tree arc says how the sum changes if the arc's head and all behind it move away from
//! its tail. While an arc has a negative cut value, it leaves the tree, and the values of one side
//! move until another arc becomes tight. The sum of a node's outgoing weights less its incoming
//! ones makes cut values simple: the cut value of an arc is the total over the nodes of one side.

/// Two nodes, the least difference between them, and what a difference of one costs.
#[derive(Clone, Copy, Debug)]
pub struct Arc {
    /// The node with the lower value.
    pub tail: usize,
    /// The node whose value is at least that of the tail plus `least`.
    pub head: usize,
    /// The least difference.
    pub least: i64,
    /// The cost of the difference.
    pub weight: i64,
}

/// The number of steps (nodes and arcs that are looked at) after which the search ends.
const MOST_STEPS: usize = 50_000_000;

/// The number of exchanges in a row that move nothing before the rule changes.
const MOST_IDLE_PIVOTS: usize = 20;

/// Which arc with a negative cut value leaves the tree.
#[derive(Clone, Copy)]
enum Rule {
    /// The arc with the least cut value, which is most often fast.
    LeastCut,
    /// The first arc. With this rule of Bland's, exchanges that move nothing do not go round in
    /// circles.
    FirstCut,
}

/// Improves values that satisfy all arcs, up to the minimum if that takes few enough steps. The
/// arcs must connect all nodes.
pub fn minimise(arcs: &[Arc], values: Vec<i64>) -> Vec<i64> {
    debug_assert!(arcs.iter().all(|arc| values[arc.head] - values[arc.tail] >= arc.least));
    let size = arcs.len() + values.len();
    if size * values.len() > MOST_STEPS {
        return values;
    }
    let mut simplex = Simplex::new(arcs, values);
    let mut idle = 0;
    for _ in 0..MOST_STEPS / size.max(1) {
        let rule = if idle < MOST_IDLE_PIVOTS { Rule::LeastCut } else { Rule::FirstCut };
        match simplex.pivot(rule) {
            Some(0) => idle += 1,
            Some(_) => idle = 0,
            None => break,
        }
    }
    simplex.values
}

struct Simplex<'a> {
    arcs: &'a [Arc],
    values: Vec<i64>,
    in_tree: Vec<bool>,
    /// The outgoing weights of each node less the incoming ones.
    balance: Vec<i64>,
    /// The arcs of each node.
    around: Vec<Vec<usize>>,
}

/// The tree from node 0: each node after its parent, with the arc to the parent and the end of its
/// subtree in the order.
struct Walk {
    order: Vec<usize>,
    place: Vec<usize>,
    end: Vec<usize>,
    arc: Vec<Option<usize>>,
}

impl<'a> Simplex<'a> {
    fn new(arcs: &'a [Arc], values: Vec<i64>) -> Simplex<'a> {
        let mut balance = vec![0; values.len()];
        let mut around = vec![Vec::new(); values.len()];
        for (at, arc) in arcs.iter().enumerate() {
            balance[arc.tail] += arc.weight;
            balance[arc.head] -= arc.weight;
            around[arc.tail].push(at);
            around[arc.head].push(at);
        }
        let mut own = Simplex { arcs, in_tree: vec![false; arcs.len()], values, balance, around };
        own.tighten();
        own
    }

    fn slack(&self, arc: &Arc) -> i64 {
        self.values[arc.head] - self.values[arc.tail] - arc.least
    }

    /// Finds a first spanning tree of tight arcs. Where tight arcs reach no further, all nodes
    /// that are reached move until another arc becomes tight.
    fn tighten(&mut self) {
        let mut reached = vec![false; self.values.len()];
        let mut next = vec![0];
        loop {
            while let Some(node) = next.pop() {
                if !std::mem::replace(&mut reached[node], true) {
                    self.follow_tight_arcs(node, &mut reached, &mut next);
                }
            }
            let border = self.arcs.iter().filter(|arc| reached[arc.tail] != reached[arc.head]);
            let Some(nearest) = border.min_by_key(|arc| self.slack(arc)) else { return };
            let by = self.slack(nearest);
            let (by, from) = if reached[nearest.tail] { (by, nearest.tail) } else { (-by, nearest.head) };
            let nodes = self.values.iter_mut().zip(&reached);
            nodes.filter(|(_, reached)| **reached).for_each(|(value, _)| *value += by);
            self.follow_tight_arcs(from, &mut reached, &mut next);
        }
    }

    /// Adds tight arcs from a reached node to nodes that are not reached yet.
    fn follow_tight_arcs(&mut self, node: usize, reached: &mut [bool], next: &mut Vec<usize>) {
        for at in self.around[node].clone() {
            let arc = &self.arcs[at];
            let other = if arc.tail == node { arc.head } else { arc.tail };
            if !reached[other] && !next.contains(&other) && self.slack(arc) == 0 {
                self.in_tree[at] = true;
                next.push(other);
            }
        }
    }

    fn walk(&self) -> Walk {
        let count = self.values.len();
        let mut walk = Walk {
            order: Vec::with_capacity(count),
            place: vec![0; count],
            end: vec![0; count],
            arc: vec![None; count],
        };
        let mut open = vec![(0, None)];
        let mut parents = vec![usize::MAX; count];
        while let Some((node, arc)) = open.pop() {
            walk.place[node] = walk.order.len();
            walk.arc[node] = arc;
            walk.order.push(node);
            for &at in self.around[node].iter().filter(|at| self.in_tree[**at] && Some(**at) != arc) {
                let other = if self.arcs[at].tail == node { self.arcs[at].head } else { self.arcs[at].tail };
                parents[other] = node;
                open.push((other, Some(at)));
            }
        }
        for &node in walk.order.iter().rev() {
            walk.end[node] = walk.end[node].max(walk.place[node] + 1);
            if let Some(parent) = parents.get(parents[node]).map(|_| parents[node]) {
                walk.end[parent] = walk.end[parent].max(walk.end[node]);
            }
        }
        walk
    }

    /// Exchanges one arc of the tree. Returns how far nodes have moved, or `None` at the minimum.
    fn pivot(&mut self, rule: Rule) -> Option<i64> {
        let walk = self.walk();
        let (leaves, child) = self.leaving(&walk, rule)?;
        let inside = walk.place[child]..walk.end[child];
        let is_inside = |node: usize| inside.contains(&walk.place[node]);
        // The side of the head moves away from the tail, until an arc from the head's side to the
        // tail's side is tight.
        let head_is_inside = is_inside(self.arcs[leaves].head);
        let enters = (0..self.arcs.len())
            .filter(|at| {
                let arc = &self.arcs[*at];
                is_inside(arc.tail) == head_is_inside && is_inside(arc.head) != head_is_inside
            })
            .min_by_key(|at| self.slack(&self.arcs[*at]))?;
        let distance = self.slack(&self.arcs[enters]);
        let by = if head_is_inside { distance } else { -distance };
        walk.order[inside.clone()].iter().for_each(|node| self.values[*node] += by);
        (self.in_tree[leaves], self.in_tree[enters]) = (false, true);
        Some(distance)
    }

    /// An arc of the tree with a negative cut value, if there is one, and its end further from the
    /// root.
    fn leaving(&self, walk: &Walk, rule: Rule) -> Option<(usize, usize)> {
        let mut totals = self.balance.clone();
        let mut found: Option<(i64, usize, usize)> = None;
        for &node in walk.order.iter().rev() {
            let Some(at) = walk.arc[node] else { continue };
            let arc = &self.arcs[at];
            let parent = if arc.tail == node { arc.head } else { arc.tail };
            let cut = if arc.tail == node { totals[node] } else { -totals[node] };
            let is_better = found.is_none_or(|(least, first, _)| match rule {
                Rule::LeastCut => cut < least,
                Rule::FirstCut => at < first,
            });
            if cut < 0 && is_better {
                found = Some((cut, at, node));
            }
            totals[parent] += totals[node];
        }
        found.map(|(_, at, node)| (at, node))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cost(arcs: &[Arc], values: &[i64]) -> i64 {
        arcs.iter().map(|arc| arc.weight * (values[arc.head] - values[arc.tail])).sum()
    }

    /// The least cost, by trying all values of up to `most`.
    fn least_cost(arcs: &[Arc], count: usize, most: i64) -> i64 {
        let all = (most + 1).pow(count as u32);
        let values = |code: i64| (0..count as u32).map(move |at| code / (most + 1).pow(at) % (most + 1));
        (0..all)
            .map(|code| values(code).collect::<Vec<_>>())
            .filter(|values| arcs.iter().all(|arc| values[arc.head] - values[arc.tail] >= arc.least))
            .map(|values| cost(arcs, &values))
            .min()
            .unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_other_values_cost_less(
            raw in prop::collection::vec((0..5usize, 0..5usize, 0..3i64, 0..4i64), 0..9),
            start in prop::collection::vec(0..2i64, 5),
        ) {
            // A chain connects all nodes; other arcs also lead from earlier to later nodes.
            let chain = (1..5).map(|head| Arc { tail: head - 1, head, least: 0, weight: 0 });
            let others = raw.into_iter().filter(|(one, other, ..)| one != other).map(
                |(one, other, least, weight)| Arc { tail: one.min(other), head: one.max(other), least, weight },
            );
            let arcs: Vec<Arc> = chain.chain(others).collect();
            // Two apart are enough for every arc.
            let first: Vec<i64> = (0..5).map(|at| 4 * at as i64 + start[at]).collect();
            let found = minimise(&arcs, first);
            prop_assert!(arcs.iter().all(|arc| found[arc.head] - found[arc.tail] >= arc.least));
            prop_assert_eq!(cost(&arcs, &found), least_cost(&arcs, 5, 8));
        }
    }
}
