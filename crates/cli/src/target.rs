//! Where a program runs.

use std::fmt;

use crate::failure::Failure;

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// The reference interpreter.
    Interp,
    /// Machine code on this computer.
    Cpu,
}

impl Target {
    /// The target of a name.
    pub fn find(name: &str) -> Result<Target, Failure> {
        let device = name.split(':').next().unwrap_or_default();
        match (name, device) {
            ("interp", _) => Ok(Target::Interp),
            ("cpu", _) => Ok(Target::Cpu),
            (_, "cuda" | "opencl") => {
                Err(Failure::Machine(format!("this build has no target {name} yet; it has: interp, cpu")))
            }
            _ => Err(Failure::Usage(format!("there is no target {name}; targets are: interp, cpu"))),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Target::Interp => "interp",
            Target::Cpu => "cpu",
        })
    }
}
