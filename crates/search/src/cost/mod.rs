//! The time of a kernel, estimated from its loops and the machine alone: no training, and no run.
//!
//! The models are made to rank the schedules of one program, so that only promising ones are
//! compiled. `cpu/` and `gpu/` begin with what each is made of. `features.rs` says the same in
//! numbers that other models learn from.

pub mod cpu;
mod features;
pub mod gpu;

use tilewright_target::{Cpu, Gpu, Target};

pub use features::Look;

/// What to expect of nests on a machine.
#[derive(Clone, Debug)]
pub enum Model<'a> {
    /// A CPU, with the speeds of its parts.
    Cpu(&'a Cpu, cpu::Machine),
    /// A GPU.
    Gpu(&'a Gpu),
}

impl<'a> Model<'a> {
    /// The model of a machine.
    pub fn of(target: impl Into<Target<'a>>) -> Model<'a> {
        match target.into() {
            Target::Cpu(cpu) => Model::Cpu(cpu, cpu::Machine::typical(cpu)),
            Target::Gpu(gpu) => Model::Gpu(gpu),
        }
    }
}
