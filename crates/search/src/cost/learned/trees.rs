//! Predicts by boosted regression trees: the logarithm of the ratio of the time of a statement
//! outside of loops to the time that the analytical model predicts.

use serde::{Deserialize, Serialize};

/// A regression tree as a list of nodes, the root first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tree(pub Vec<Node>);

/// A node of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Node {
    /// Values below `cut` go to the node at `below`, all others to the one after it.
    #[serde(rename = "s")]
    Split(u16, f32, u16),
    /// The value of a leaf.
    #[serde(rename = "l")]
    Leaf(f32),
}

impl Tree {
    /// The value of the leaf that the features lead to. A tree of a file may be nonsense; then it
    /// has no say.
    pub fn value(&self, features: &[f32]) -> f32 {
        let mut at = 0;
        // A path is no longer than the tree.
        for _ in 0..self.0.len() {
            match self.0.get(at) {
                Some(Node::Leaf(value)) => return *value,
                Some(Node::Split(feature, cut, below)) => {
                    let Some(value) = features.get(usize::from(*feature)) else { return 0.0 };
                    at = usize::from(*below) + usize::from(value >= cut);
                }
                None => return 0.0,
            }
        }
        0.0
    }
}

/// The sum of the values of all trees.
pub fn value(trees: &[Tree], features: &[f32]) -> f32 {
    trees.iter().map(|tree| tree.value(features)).sum()
}
