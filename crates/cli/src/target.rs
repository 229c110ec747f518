//! Where a program runs.

use std::fmt;

use tilewright_target::GpuApi;

use crate::failure::Failure;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The reference interpreter.
    Interp,
    /// Machine code on this computer.
    Cpu,
    /// A GPU, or what is programmed like one, by its number.
    Gpu(GpuApi, usize),
}

impl Target {
    /// The target of a name: `cuda:1`, or `cuda` for the first.
    pub fn find(name: &str) -> Result<Target, Failure> {
        let (device, number) = name.split_once(':').unwrap_or((name, "0"));
        let unknown = || {
            let known = "interp, cpu, cuda:0, opencl:0; `tilewright devices` lists what is there";
            Failure::Usage(format!("there is no target {name}; targets are: {known}"))
        };
        let gpu = |api| number.parse().map(|number| Target::Gpu(api, number)).map_err(|_| unknown());
        match (name, device) {
            ("interp", _) => Ok(Target::Interp),
            ("cpu", _) => Ok(Target::Cpu),
            (_, "cuda") => gpu(GpuApi::Cuda),
            (_, "opencl") => gpu(GpuApi::OpenCl),
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Interp => f.write_str("interp"),
            Target::Cpu => f.write_str("cpu"),
            Target::Gpu(api, number) => write!(f, "{}:{number}", api.name()),
        }
    }
}
