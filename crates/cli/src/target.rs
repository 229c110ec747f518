//! Reads the `--target` option: the interpreter, or a target that code is compiled for.

use std::fmt;

use tilewright::driver::TargetName;

use crate::failure::Failure;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The reference interpreter.
    Interp,
    /// Compiled code, on this computer's CPU or on a device.
    Compiled(TargetName),
}

impl Target {
    /// Reads a name, such as `cuda:1`, or `cuda` for the first CUDA device.
    pub fn find(name: &str) -> Result<Target, Failure> {
        if name == "interp" {
            return Ok(Target::Interp);
        }
        name.parse().map(Target::Compiled).map_err(|_| {
            let known = "interp, cpu, cuda:0, opencl:0; `tilewright devices` lists the devices";
            Failure::Usage(format!("there is no target {name}; targets are: {known}"))
        })
    }

    /// Returns the target that code is compiled for. For the interpreter, returns the usage error
    /// `why`.
    pub fn compiled(self, why: &str) -> Result<TargetName, Failure> {
        match self {
            Target::Compiled(name) => Ok(name),
            Target::Interp => Err(Failure::Usage(why.to_owned())),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Interp => f.write_str("interp"),
            Target::Compiled(name) => name.fmt(f),
        }
    }
}
