//! AdaDelta (Zeiler 2012), which trains FlexTensor's network: steps as large as the last ones were
//! for gradients as large as the last ones were. candle has no such optimiser.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};

/// How much of the past counts, and what keeps the first steps from being nothing: the paper's
/// values.
const DECAY: f64 = 0.95;
const LEAST: f64 = 1e-6;

/// The optimiser of some variables.
pub(in crate::strategy) struct AdaDelta {
    all: Vec<Learned>,
}

struct Learned {
    var: Var,
    /// Running means of squared gradients, and of squared steps.
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

    /// One step down the slope of `loss`.
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
