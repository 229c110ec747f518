//! An owned description of a CPU or a GPU, for callers that must store it.

use crate::{Cpu, Gpu, Target};

/// A CPU, or a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A CPU.
    Cpu(Cpu),
    /// A GPU, or a device that is programmed like one.
    Gpu(Gpu),
}

impl Machine {
    /// Borrows the description as the target of a compilation.
    pub fn target(&self) -> Target<'_> {
        match self {
            Machine::Cpu(cpu) => Target::Cpu(cpu),
            Machine::Gpu(gpu) => Target::Gpu(gpu),
        }
    }
}

impl<'a> From<&'a Machine> for Target<'a> {
    fn from(machine: &'a Machine) -> Target<'a> {
        machine.target()
    }
}
