//! What is tuned: a function at given sizes, on this machine with so many threads, or on one of its devices.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tilewright_driver::target::CpuLimits;
use tilewright_driver::{Source, TargetName};
use tilewright_ir::Program;
use tilewright_target::{Cpu, Gpu, Machine, Vectors};

/// A program to tune, as it goes to a worker: text and numbers, and nothing that is executed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The source.
    pub source: String,
    /// The function.
    pub function: String,
    /// Sizes, and integer scalars that sizes depend on.
    pub sizes: Vec<(String, i64)>,
    /// Where kernels run.
    pub place: Place,
    /// What inputs are made from that are not given.
    pub seed: u64,
    /// Whether products may be rounded together with sums: [`Program::contract`].
    #[serde(default = "contracts")]
    pub contract: bool,
    /// Inputs that are given, by name: files, as [`Given::write`](crate::given::Given::write) makes them.
    pub inputs: Vec<(String, PathBuf)>,
}

/// What holds of tasks that were written down without a word about it.
fn contracts() -> bool {
    true
}

/// Where kernels run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On this machine itself.
    Cpu {
        /// Threads that a kernel may use.
        threads: usize,
        /// The name of the vector instructions that it may use.
        vectors: String,
    },
    /// On a device.
    Device {
        /// Its number among those that are programmed like it.
        ordinal: usize,
        /// What it has. The space depends on that, so a recording holds all of it.
        gpu: Gpu,
    },
}

impl Place {
    /// A part of this machine.
    pub fn cpu(cpu: &Cpu) -> Place {
        Place::Cpu { threads: cpu.cores, vectors: cpu.vectors.name().to_owned() }
    }

    /// A target by its name, and the hardware behind it.
    pub fn of(name: TargetName, machine: &Machine) -> Place {
        match machine {
            Machine::Cpu(cpu) => Place::cpu(cpu),
            Machine::Gpu(gpu) => {
                let ordinal = match name {
                    TargetName::Gpu(_, ordinal) => ordinal,
                    TargetName::Cpu => 0,
                };
                Place::Device { ordinal, gpu: gpu.clone() }
            }
        }
    }

    /// Its name on the command line.
    pub fn name(&self) -> String {
        match self {
            Place::Cpu { .. } => "cpu".to_owned(),
            Place::Device { ordinal, gpu } => format!("{}:{ordinal}", gpu.api.name()),
        }
    }

    /// The machine as kernels may use it.
    pub fn machine(&self) -> Result<Machine, TaskError> {
        match self {
            Place::Cpu { threads, vectors } => Ok(Machine::Cpu(host(*threads, vectors)?)),
            Place::Device { gpu, .. } => Ok(Machine::Gpu(gpu.clone())),
        }
    }
}

/// The part of this machine with so many threads and these vectors.
pub(crate) fn host(threads: usize, vectors: &str) -> Result<Cpu, TaskError> {
    let missing = || TaskError(format!("there are no {vectors} vectors here"));
    let found = Vectors::ALL.into_iter().find(|own| own.name() == vectors).ok_or_else(missing)?;
    let limits = CpuLimits { threads: Some(threads), vectors: Some(found) };
    limits.of(Cpu::host()).map_err(|_| missing())
}

/// A task that cannot be begun.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TaskError(pub String);

impl Task {
    /// The program, checked.
    pub fn program(&self) -> Result<Program, TaskError> {
        let sizes = self.sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let checked = Source::new(&self.source).program(&self.function, &sizes, self.contract);
        checked.program.map_err(|error| TaskError(error.to_string()))
    }

    /// The machine as kernels may use it.
    pub fn target(&self) -> Result<Machine, TaskError> {
        self.place.machine()
    }
}
