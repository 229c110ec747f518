//! Chooses the cost model for a target: the analytical one, or a learned one with the user's own
//! weights or those that come with Tilewright.

use std::fs;
use std::sync::Arc;

use tilewright_search::cost::CostModel;
use tilewright_search::cost::learned::{Weights, shipped_weights};
use tilewright_search::kind::{cost_model as analytical, family, learned_model};
use tilewright_target::Target;

use crate::folder::weights_file;

/// Which cost model to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ModelChoice {
    /// The learned model if the user has trained one for this kind of machines, otherwise the
    /// analytical one.
    #[default]
    Usual,
    /// The analytical model.
    Analytical,
    /// The learned model, with the user's weights or those that come with Tilewright. The
    /// analytical model where there are no weights.
    Learned,
}

/// The cost model for a target.
pub fn cost_model<'a>(target: Target<'a>, choice: ModelChoice) -> Arc<dyn CostModel + 'a> {
    let weights = match choice {
        ModelChoice::Analytical => None,
        ModelChoice::Usual => own_weights(target),
        ModelChoice::Learned => own_weights(target).or_else(|| shipped(target)),
    };
    match weights {
        Some(weights) => learned_model(target, Arc::new(weights)),
        None => analytical(target),
    }
}

/// The weights that the user has trained. A file of another version is as good as none.
fn own_weights(target: Target<'_>) -> Option<Weights> {
    let text = fs::read_to_string(weights_file(target)?).ok()?;
    Weights::parse(&text).ok().filter(|weights| weights.family == family(target))
}

fn shipped(target: Target<'_>) -> Option<Weights> {
    shipped_weights(&family(target)).and_then(|text| Weights::parse(text).ok())
}
