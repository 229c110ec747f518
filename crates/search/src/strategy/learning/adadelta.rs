//! AdaDelta (Zeiler 2012), the optimiser of FlexTensor's network.
//!
//! The size of a step is the ratio of the recent steps to the recent gradients. candle does not
//! provide this optimiser.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};

/// The decay of the running means, and the constant that keeps the first steps from being 0. Both
/// values are those of the paper.
const DECAY: f64 = 0.95;
const LEAST: f64 = 1e-6;

/// The optimiser of a set of variables.
pub(in crate::strategy) struct AdaDelta {
    all: Vec<Learned>,
}

struct Learned {
    var: Var,
    /// The running means of squared gradients and of squared steps.
    gradients: Tensor,
    steps: Tensor,
}

impl AdaDelta {
    pub fn new(vars: Vec<Var>) -> Result<AdaDelta> {
        let learned = |var: Var| {
            let zeros = || var.zeros_like();
            Ok(Learned { gradients: zeros()?, steps: zeros()?, var })
        };
        Ok(AdaDelta { all: vars.into_iter().map(learned).collect::<Result<_>>()? })
    }

    /// Performs one step against the gradient of `loss`.
    pub fn step(&mut self, loss: &Tensor) -> Result<()> {
        let slopes = loss.backward()?;
        self.all.iter_mut().try_for_each(|own| own.step(&slopes))
    }
}

impl Learned {
    fn step(&mut self, slopes: &GradStore) -> Result<()> {
        let Some(slope) = slopes.get(&self.var) else { return Ok(()) };
        let slope = slope.detach();
        self.gradients = decayed(&self.gradients, &slope.sqr()?)?;
        let size = ((&self.steps + LEAST)?.sqrt()? / (&self.gradients + LEAST)?.sqrt()?)?;
        let step = (size * &slope)?;
        self.steps = decayed(&self.steps, &step.sqr()?)?;
        self.var.set(&self.var.sub(&step)?)
    }
}

fn decayed(mean: &Tensor, new: &Tensor) -> Result<Tensor> {
    (mean * DECAY)? + (new * (1.0 - DECAY))?
}
