//! Small fully connected networks.
//!
//! On candle, with weights that are drawn from the strategy's own generator: candle's cannot be
//! seeded on a CPU, and a run has to repeat. Beside burn it is the one that is well kept; a forward
//! pass of four layers takes 0.1 ms and a lesson of 64 rows 0.9 (release, one core), which comes to
//! 0.4 to 1.1 ms a proposal of `na2c` and `q-method`. burn was not timed: what there was did not
//! compile here.

use candle_core::{Device, Result, Tensor, Var};
use rand::{Rng, RngExt};

/// Layers with ReLU between them.
pub(in crate::strategy) struct Network {
    layers: Vec<Layer>,
}

struct Layer {
    weights: Var,
    biases: Var,
}

impl Network {
    /// Layers of these widths, the input's first, with weights of He's deviation.
    pub fn new<R: Rng + ?Sized>(widths: &[usize], rng: &mut R) -> Result<Network> {
        let layers = widths.windows(2).map(|pair| Layer::new(pair[0], pair[1], rng));
        Ok(Network { layers: layers.collect::<Result<_>>()? })
    }

    /// What a network makes of rows of inputs.
    pub fn forward(&self, rows: &Tensor) -> Result<Tensor> {
        let mut values = rows.clone();
        for (at, layer) in self.layers.iter().enumerate() {
            if at > 0 {
                values = values.relu()?;
            }
            values = values.matmul(&layer.weights)?.broadcast_add(&layer.biases)?;
        }
        Ok(values)
    }

    /// All that is learned.
    pub fn vars(&self) -> Vec<Var> {
        self.layers.iter().flat_map(|layer| [layer.weights.clone(), layer.biases.clone()]).collect()
    }

    /// Takes the weights of a network of the same widths.
    pub fn copy(&self, from: &Network) -> Result<()> {
        self.vars().iter().zip(from.vars()).try_for_each(|(own, other)| own.set(&other.as_tensor().copy()?))
    }
}

impl Layer {
    fn new<R: Rng + ?Sized>(inputs: usize, outputs: usize, rng: &mut R) -> Result<Layer> {
        let bound = (6.0 / inputs.max(1) as f32).sqrt();
        let weights = (0..inputs * outputs).map(|_| rng.random_range(-bound..bound)).collect();
        Ok(Layer {
            weights: Var::from_vec(weights, (inputs, outputs), &Device::Cpu)?,
            biases: Var::zeros(outputs, candle_core::DType::F32, &Device::Cpu)?,
        })
    }
}

/// Rows of numbers as one tensor.
pub(in crate::strategy) fn rows(all: &[Vec<f32>], width: usize) -> Result<Tensor> {
    Tensor::from_vec(all.concat(), (all.len(), width), &Device::Cpu)
}

/// The value of a computation whose tensors have the shapes of a network, which were fixed when it
/// was made.
#[track_caller]
pub(in crate::strategy) fn sure<T>(made: Result<T>) -> T {
    made.expect("tensors have the shapes of the layers")
}
