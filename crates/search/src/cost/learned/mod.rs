//! Predicts times by models that were trained with measured schedules.
//!
//! A learned model corrects the analytical model of its target. For each statement outside of
//! loops it computes features of the stages inside ([`StageFeatures`]) and predicts a time. The
//! times add up, so a beam search can predict nests one by one.
//!
//! | file | what it has |
//! |---|---|
//! | `stages` | the stages of a nest: stores with their loops and conditions |
//! | `operations`, `shape`, `memory`, `parallelism` | one group of features each |
//! | `features` | all features of a stage, and of a statement outside of loops |
//! | `terms` | hand-written terms of the time of a stage |
//! | `network` | coefficients of the terms, by a network |
//! | `trees` | corrections of the analytical time, by boosted trees |
//! | `shipped` | the weights that come with Tilewright |
//! | `weights` | a trained model as data, and its file |
//! | `model` | the [`CostModel`](crate::cost::CostModel) |
//!
//! Training is in the crate `train`. `docs/cost-model.md` has the measurements.

mod features;
mod memory;
mod model;
pub mod network;
mod operations;
mod parallelism;
mod shape;
mod shipped;
mod stages;
mod terms;
pub mod trees;
mod weights;

pub use features::{RootFeatures, Speeds, StageFeatures, StageInput};
pub use memory::Memory;
pub use model::{LearnedModel, features_of};
pub use operations::Operations;
pub use parallelism::Parallelism;
pub use shape::Shape;
pub use shipped::shipped_weights;
pub use terms::{TERM_NAMES, TERMS};
pub use weights::{Weights, WeightsError};
