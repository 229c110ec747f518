//! Estimates the time of a kernel from its loops and the machine alone, without training and
//! without a run.
//!
//! The models rank the schedules of one program, so that only promising ones are compiled. The
//! heads of `cpu/` and `gpu/` describe their parts. `features.rs` turns an estimate into features
//! for other models.

pub mod cpu;
mod features;
pub mod gpu;

use tilewright_target::{Cpu, Gpu, Target};

pub use features::EstimateFeatures;

/// The cost model of a machine.
#[derive(Clone, Debug)]
pub enum Model<'a> {
    /// A CPU, with the speeds of its parts.
    Cpu(&'a Cpu, cpu::Machine),
    /// A GPU.
    Gpu(&'a Gpu),
}

impl<'a> Model<'a> {
    /// Returns the model of a machine.
    pub fn of(target: impl Into<Target<'a>>) -> Model<'a> {
        match target.into() {
            Target::Cpu(cpu) => Model::Cpu(cpu, cpu::Machine::typical(cpu)),
            Target::Gpu(gpu) => Model::Gpu(gpu),
        }
    }
}
