//! A machine of either kind, for those that must keep it.

use crate::{Cpu, Gpu, Target};

/// A CPU, or a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A CPU.
    Cpu(Cpu),
    /// A GPU, or what is programmed like one.
    Gpu(Gpu),
}

impl Machine {
    /// The machine, for whoever compiles for it.
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
