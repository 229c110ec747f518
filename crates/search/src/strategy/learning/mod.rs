//! The components of strategies that learn: points as inputs of networks ([`Inputs`]), small
//! networks with their optimisers, and boosted trees as a cost model ([`RankModel`]).
//!
//! - Networks: `matrix.rs`, `sigmoid.rs` and `softmax.rs` have the arithmetic, `network.rs` fully
//!   connected layers, `recurrent.rs` an LSTM, and `adam.rs` and `adadelta.rs` the optimisers.
//! - Trees: `trees.rs` trains them, `pairwise.rs` has their objective, `bins.rs` the features, and
//!   `tree.rs` one tree. `experience.rs` converts the trials of other programs to training data,
//!   and `transfer.rs` makes training data for networks with trees that learned from these trials.
//!
//! All numbers are `f32` in plain vectors. The same inputs give the same results.

mod adadelta;
mod adam;
mod bins;
mod experience;
mod inputs;
mod matrix;
mod network;
mod pairwise;
mod rank_model;
mod recurrent;
mod sigmoid;
mod softmax;
mod transfer;
mod tree;
mod trees;

pub(super) use adadelta::AdaDelta;
pub(super) use adam::Adam;
pub(super) use experience::{Group, experience_groups};
pub(super) use inputs::Inputs;
pub(super) use matrix::Matrix;
pub(super) use network::Network;
pub(super) use rank_model::{FeatureSet, RankModel, ScheduleId};
pub(super) use recurrent::{PositionState, Recurrent};
pub(super) use softmax::log_softmax;
pub(super) use transfer::{PredictedStep, predicted_steps};
pub(super) use trees::Trees;
