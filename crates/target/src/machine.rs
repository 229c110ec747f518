//! Defines the kinds of targets, CPU and GPU: a [`Machine`] owns the description of the hardware,
//! and a [`Target`] borrows it.

use crate::{Cpu, Gpu, Hardware};

/// The description of the hardware that a program is compiled for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A CPU.
    Cpu(Cpu),
    /// A GPU, or a device that is programmed like one.
    Gpu(Gpu),
}

/// A borrowed [`Machine`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// A CPU.
    Cpu(&'a Cpu),
    /// A GPU, or a device that is programmed like one.
    Gpu(&'a Gpu),
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

impl<'a> Target<'a> {
    /// The description, as far as every kind of target has it.
    pub fn hardware(self) -> &'a dyn Hardware {
        match self {
            Target::Cpu(cpu) => cpu,
            Target::Gpu(gpu) => gpu,
        }
    }

    /// Copies the description.
    pub fn to_machine(self) -> Machine {
        match self {
            Target::Cpu(cpu) => Machine::Cpu(cpu.clone()),
            Target::Gpu(gpu) => Machine::Gpu(gpu.clone()),
        }
    }
}

impl<'a> From<&'a Machine> for Target<'a> {
    fn from(machine: &'a Machine) -> Target<'a> {
        machine.target()
    }
}

impl<'a> From<&'a Cpu> for Target<'a> {
    fn from(cpu: &'a Cpu) -> Target<'a> {
        Target::Cpu(cpu)
    }
}

impl<'a> From<&'a Gpu> for Target<'a> {
    fn from(gpu: &'a Gpu) -> Target<'a> {
        Target::Gpu(gpu)
    }
}
