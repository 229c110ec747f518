//! Describes hardware as data: the properties of a machine that scheduling and code generation
//! need.
//!
//! A [`Cpu`] is either written down by hand, for another machine, or detected on this machine by
//! [`Cpu::host`]. A [`Machine`] owns its description; a [`Target`] borrows it. Each kind of target
//! has its own file, which implements [`Hardware`]. A [`TargetName`] is the name that users give to
//! a target.
//!
//! Steps, legality and lowering never ask which kind of target they work for. They ask its
//! [`Capabilities`]. Only the places that ARCHITECTURE.md lists under "Add a target" match on
//! [`Target`].

mod capabilities;
mod cpu;
mod gpu;
mod hardware;
mod machine;
mod name;

pub use capabilities::{Capabilities, Grid, Registers};
pub use cpu::{Cpu, VectorInstructions, host_model};
pub use gpu::{Gpu, GpuApi};
pub use hardware::Hardware;
pub use machine::{Machine, Target};
pub use name::{TargetName, UnknownTarget};
