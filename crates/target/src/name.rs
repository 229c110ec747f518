//! Reads and prints the names of targets, such as `cpu` and `cuda:1`, as users write them.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::GpuApi;

/// The name of a target: `cpu`, or a device such as `cuda:1` and `opencl:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TargetName {
    /// The CPU of this computer.
    Cpu,
    /// A device, by its API and its number among the devices of that API.
    Gpu(GpuApi, usize),
}

/// The error for a name that is not a target.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no target {name}; targets are: cpu, cuda:0, opencl:0")]
pub struct UnknownTarget {
    /// The name that was given.
    pub name: String,
}

impl FromStr for TargetName {
    type Err = UnknownTarget;

    /// Reads `cpu`, `cuda:1`, or `cuda` for the first CUDA device.
    fn from_str(name: &str) -> Result<TargetName, UnknownTarget> {
        let unknown = || UnknownTarget { name: name.to_owned() };
        if name == "cpu" {
            return Ok(TargetName::Cpu);
        }
        let (api, number) = name.split_once(':').unwrap_or((name, "0"));
        let api = GpuApi::ALL.into_iter().find(|known| known.name() == api).ok_or_else(unknown)?;
        Ok(TargetName::Gpu(api, number.parse().map_err(|_| unknown())?))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetName::Cpu => f.pad("cpu"),
            TargetName::Gpu(api, number) => f.pad(&format!("{}:{number}", api.name())),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

    use super::*;

    #[test]
    fn names_are_read_as_they_are_printed() {
        let names = [TargetName::Cpu, TargetName::Gpu(GpuApi::Cuda, 0), TargetName::Gpu(GpuApi::OpenCl, 12)];
        for name in names {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        assert_eq!("cuda".parse(), Ok(TargetName::Gpu(GpuApi::Cuda, 0)));
        assert_eq!(format!("{:<8}|", TargetName::Gpu(GpuApi::Cuda, 1)), "cuda:1  |");
        for wrong in ["", "gpu", "cpu:0", "cuda:", "cuda:-1", "cuda:x", "CUDA", "opencl:0:1"] {
            let error = wrong.parse::<TargetName>().unwrap_err();
            assert_eq!(error.name, wrong);
        }
    }
}
