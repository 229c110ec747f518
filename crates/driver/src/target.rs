//! Finds the hardware behind a target's name, such as `cuda:1`, and opens it, ready to compile
//! for and to run on ([`OpenTarget`]).

use tilewright_runtime::gpu::{Device, DeviceInfo, GpuError, devices};
use tilewright_target::{Cpu, Gpu, GpuApi, Machine, Target, VectorInstructions};

pub use tilewright_target::{TargetName, UnknownTarget};

/// The part of this computer's CPU that kernels may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuLimits {
    /// The number of threads for parallel loops; `None` means the number of cores.
    pub threads: Option<usize>,
    /// The widest vector instructions; `None` means those of the CPU.
    pub vectors: Option<VectorInstructions>,
}

impl CpuLimits {
    /// The CPU that kernels are compiled for, or the vectors that `host` does not have.
    pub fn apply_to(self, host: Cpu) -> Result<Cpu, VectorInstructions> {
        let vectors = self.vectors.unwrap_or(host.vectors);
        if vectors > host.vectors {
            return Err(vectors);
        }
        Ok(Cpu { cores: self.threads.unwrap_or(host.cores).max(1), vectors, ..host })
    }
}

/// A target that is ready to compile for and to run on.
#[derive(Clone)]
pub enum OpenTarget {
    /// A part of this computer's CPU. `cores` is the number of threads that kernels use.
    Cpu(Cpu),
    /// An open device.
    Gpu(Device),
}

impl OpenTarget {
    /// The whole CPU of this computer.
    pub fn host() -> OpenTarget {
        OpenTarget::Cpu(Cpu::host())
    }

    /// Opens a target by its name. The CPU is used with all of its cores.
    pub fn open(name: TargetName) -> Result<OpenTarget, GpuError> {
        match name {
            TargetName::Cpu => Ok(OpenTarget::host()),
            TargetName::Gpu(api, number) => Device::open(api, number).map(OpenTarget::Gpu),
        }
    }

    /// The name of the target.
    pub fn name(&self) -> TargetName {
        match self {
            OpenTarget::Cpu(_) => TargetName::Cpu,
            OpenTarget::Gpu(device) => device.name(),
        }
    }

    /// The hardware, as a value of its own.
    pub fn machine(&self) -> Machine {
        self.target().to_machine()
    }

    /// The device that runs kernels; none if the host's CPU does.
    pub fn device(&self) -> Option<&Device> {
        match self {
            OpenTarget::Cpu(_) => None,
            OpenTarget::Gpu(device) => Some(device),
        }
    }

    /// The number of threads of the pool that calls of kernels need.
    pub fn threads(&self) -> usize {
        self.target().hardware().capabilities().pool_threads.unwrap_or(1)
    }

    /// The hardware as schedules and code generation see it.
    pub fn target(&self) -> Target<'_> {
        match self {
            OpenTarget::Cpu(cpu) => Target::Cpu(cpu),
            OpenTarget::Gpu(device) => Target::Gpu(device.gpu()),
        }
    }
}

impl<'t> From<&'t OpenTarget> for Target<'t> {
    fn from(target: &'t OpenTarget) -> Target<'t> {
        target.target()
    }
}

/// The hardware behind a name, without opening it.
pub fn machine(name: TargetName) -> Result<Machine, GpuError> {
    match name {
        TargetName::Cpu => Ok(Machine::Cpu(Cpu::host())),
        TargetName::Gpu(api, number) => Ok(Machine::Gpu(DeviceInfo::find(api, number)?.gpu)),
    }
}

/// The hardware behind a name, or typical hardware of its kind if this computer has none.
pub fn machine_or_typical(name: TargetName) -> Machine {
    match name {
        TargetName::Cpu => Machine::Cpu(Cpu::host()),
        TargetName::Gpu(api, number) => Machine::Gpu(gpu_or_typical(api, number)),
    }
}

/// The device with this number, or a typical device of the same API if this computer has no such
/// device. Generating text and proving need no device to be present.
pub fn gpu_or_typical(api: GpuApi, number: usize) -> Gpu {
    let found = devices().into_iter().find(|device| device.gpu.api == api && device.ordinal == number);
    found.map_or_else(|| Gpu::typical(api), |device| device.gpu)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn vectors_may_be_narrower_but_not_wider_than_those_of_the_machine() {
        let host = Cpu { cores: 4, vectors: VectorInstructions::Avx2, caches: vec![32 << 10] };
        let limits = |vectors| CpuLimits { threads: Some(7), vectors };
        assert_eq!(limits(None).apply_to(host.clone()), Ok(Cpu { cores: 7, ..host.clone() }));
        assert_eq!(
            limits(Some(VectorInstructions::Baseline)).apply_to(host.clone()).unwrap().vectors,
            VectorInstructions::Baseline
        );
        assert_eq!(limits(Some(VectorInstructions::Avx512)).apply_to(host), Err(VectorInstructions::Avx512));
    }
}
