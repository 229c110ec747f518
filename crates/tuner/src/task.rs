//! Describes the task of a tuning run: a program at given sizes, on some threads of this
//! machine or on one of its devices. A worker receives a [`Task`], and files keep a
//! [`RecordedTask`].

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tilewright_driver::target::CpuLimits;
use tilewright_driver::{Source, TargetName};
use tilewright_ir::{Program, verify};
use tilewright_target::{Cpu, Gpu, Machine, VectorInstructions};

/// A program to tune, in the form that a worker receives.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The program, all of whose sizes are known.
    pub program: Program,
    /// The place where kernels run.
    pub target: ExecutionTarget,
    /// The seed of the inputs that are not given.
    pub seed: u64,
    /// The files of the given inputs by name, as
    /// [`InputFiles::write`](crate::input_files::InputFiles::write) makes them.
    pub inputs: Vec<(String, PathBuf)>,
}

/// A task in the form that files keep. A file may come from anywhere, so it holds source text,
/// which the checker accepts or refuses, and no data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedTask {
    /// The source text.
    pub source: String,
    /// The name of the function.
    pub function: String,
    /// The sizes, and the integer scalars that sizes depend on.
    pub sizes: Vec<(String, i64)>,
    /// The place where kernels run.
    #[serde(rename = "place")]
    pub target: ExecutionTarget,
    /// The seed of the inputs.
    pub seed: u64,
    /// Whether products may be rounded together with sums: [`Program::contract`].
    #[serde(default = "contracts")]
    pub contract: bool,
}

/// The default for recorded tasks that do not have this field.
fn contracts() -> bool {
    true
}

/// The place where kernels run: a target by its name, with the hardware that kernels may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExecutionTarget {
    /// The CPU of this machine.
    Cpu {
        /// The number of threads that a kernel may use.
        threads: usize,
        /// The name of the vector instructions that a kernel may use.
        vectors: String,
    },
    /// A device.
    Device {
        /// The number of the device among those of the same API.
        ordinal: usize,
        /// The properties of the device. The space depends on them, so a recording holds all of
        /// them.
        gpu: Gpu,
    },
}

impl ExecutionTarget {
    /// The place for a part of this machine's CPU.
    pub fn cpu(cpu: &Cpu) -> ExecutionTarget {
        ExecutionTarget::Cpu { threads: cpu.cores, vectors: cpu.vectors.name().to_owned() }
    }

    /// The place of a target by its name, with its hardware.
    pub fn for_target(name: TargetName, machine: &Machine) -> ExecutionTarget {
        match machine {
            Machine::Cpu(cpu) => ExecutionTarget::cpu(cpu),
            Machine::Gpu(gpu) => {
                let ordinal = if let TargetName::Gpu(_, ordinal) = name { ordinal } else { 0 };
                ExecutionTarget::Device { ordinal, gpu: gpu.clone() }
            }
        }
    }

    /// The name of the target.
    pub fn target_name(&self) -> TargetName {
        match self {
            ExecutionTarget::Cpu { .. } => TargetName::Cpu,
            ExecutionTarget::Device { ordinal, gpu } => TargetName::Gpu(gpu.api, *ordinal),
        }
    }

    /// The device; none if the host's CPU runs kernels.
    pub fn device(&self) -> Option<&Gpu> {
        match self {
            ExecutionTarget::Cpu { .. } => None,
            ExecutionTarget::Device { gpu, .. } => Some(gpu),
        }
    }

    /// The options that select a part of the hardware, with their values.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        match self {
            ExecutionTarget::Cpu { threads, vectors } => {
                vec![("threads", threads.to_string()), ("vectors", vectors.clone())]
            }
            ExecutionTarget::Device { .. } => Vec::new(),
        }
    }

    /// The hardware that was recorded, with caches of these sizes. It may differ from this machine,
    /// if nothing runs on it.
    pub fn recorded_machine(&self, caches: &[usize]) -> Result<Machine, TaskError> {
        match self {
            ExecutionTarget::Cpu { threads, vectors } => {
                let missing = || TaskError(format!("`{vectors}` is not a kind of vectors"));
                let vectors = vectors_by_name(vectors).ok_or_else(missing)?;
                Ok(Machine::Cpu(Cpu { cores: *threads, vectors, caches: caches.to_vec() }))
            }
            ExecutionTarget::Device { gpu, .. } => Ok(Machine::Gpu(gpu.clone())),
        }
    }

    /// The hardware as kernels may use it.
    pub fn machine(&self) -> Result<Machine, TaskError> {
        match self {
            ExecutionTarget::Cpu { threads, vectors } => Ok(Machine::Cpu(host_cpu(*threads, vectors)?)),
            ExecutionTarget::Device { gpu, .. } => Ok(Machine::Gpu(gpu.clone())),
        }
    }
}

/// The part of this machine's CPU with this many threads and these vectors.
pub(crate) fn host_cpu(threads: usize, vectors: &str) -> Result<Cpu, TaskError> {
    let missing = || TaskError(format!("this CPU has no {vectors} vectors"));
    let found = vectors_by_name(vectors).ok_or_else(missing)?;
    let limits = CpuLimits { threads: Some(threads), vectors: Some(found) };
    limits.apply_to(Cpu::host()).map_err(|_| missing())
}

fn vectors_by_name(name: &str) -> Option<VectorInstructions> {
    VectorInstructions::ALL.into_iter().find(|own| own.name() == name)
}

/// Why a task cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct TaskError(pub String);

impl Task {
    /// Refuses a program that breaks an invariant or has unknown sizes.
    pub fn check(&self) -> Result<(), TaskError> {
        verify(&self.program).map_err(|error| TaskError(error.to_string()))?;
        match self.program.is_concrete() {
            true => Ok(()),
            false => {
                let name = &self.program.name;
                Err(TaskError(format!("a size of the program {name} is not known")))
            }
        }
    }

    /// The hardware as kernels may use it.
    pub fn machine(&self) -> Result<Machine, TaskError> {
        self.target.machine()
    }

    /// The values of the sizes, and of the integer scalars that sizes depend on.
    pub(crate) fn sizes(&self) -> Vec<(String, i64)> {
        let known = self.program.symbols.iter().filter_map(|own| Some((own.name.clone(), own.value?)));
        known.collect()
    }

    /// The same task with other values of the program's symbols, without its inputs. `None` if the
    /// program is not correct at these sizes.
    pub(crate) fn at_sizes(&self, values: &[i64]) -> Option<Task> {
        let program = self.program.at_sizes(values).ok()?;
        Some(Task { program, target: self.target.clone(), seed: self.seed, inputs: Vec::new() })
    }
}

impl RecordedTask {
    /// The task, without inputs, if the checker accepts its program.
    pub fn task(&self) -> Result<Task, TaskError> {
        let sizes = self.sizes.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        let checked = Source::new(&self.source).program(&self.function, &sizes, self.contract);
        let program = checked.program.map_err(|error| TaskError(error.to_string()))?;
        Ok(Task { program, target: self.target.clone(), seed: self.seed, inputs: Vec::new() })
    }
}
