//! The components of strategies that learn: points as inputs of networks ([`Inputs`]), small
//! networks with their optimisers, and boosted trees as a cost model.

mod adadelta;
mod inputs;
mod network;
mod rank_model;
mod recurrent;
mod teacher;
mod trees;

pub(super) use adadelta::AdaDelta;
pub(super) use inputs::Inputs;
pub(super) use network::{Network, rows, sure};
pub(super) use rank_model::{FeatureSet, Meaning, RankModel};
pub(super) use recurrent::Recurrent;
pub(super) use teacher::{Imagined, imagined};
pub(super) use trees::{Group, Trees, experience};
