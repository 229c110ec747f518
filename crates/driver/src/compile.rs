//! Lowers a program with its schedule to loops, and compiles the loops to code.

use std::time::{Duration, Instant};

use thiserror::Error;
use tilewright_ir::{LoopNest, Program};
use tilewright_runtime::BuildError;
use tilewright_schedule::{Refusal, Schedule, apply, blame};
use tilewright_target::Target;

use crate::code::Code;
use crate::target::OpenTarget;

/// Why a program was not compiled.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum CompileError {
    /// The schedule is illegal for this program on this target.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Code could not be generated, or does not run on this computer.
    #[error(transparent)]
    Build(#[from] BuildError),
}

/// A compiled program, with the loops that it was compiled from.
pub struct Compiled {
    /// The code.
    pub code: Code,
    /// The loops.
    pub nest: LoopNest,
    /// The time to apply the schedule.
    pub apply_time: Duration,
    /// The time to generate code.
    pub codegen_time: Duration,
}

/// Applies a schedule. A refusal names the step at fault if there is one. Finding that step takes
/// longer than [`apply`] alone.
pub fn lower<'t>(
    program: &'t Program,
    schedule: &Schedule,
    target: impl Into<Target<'t>>,
) -> Result<LoopNest, Refusal> {
    let target = target.into();
    apply(program, schedule, target).map_err(|refusal| blame(program, schedule, target, refusal))
}

/// Compiles a program for an open target.
pub fn compile(
    program: &Program,
    schedule: &Schedule,
    target: &OpenTarget,
) -> Result<Compiled, CompileError> {
    let begun = Instant::now();
    let nest = lower(program, schedule, target)?;
    let apply_time = begun.elapsed();
    let begun = Instant::now();
    let code = Code::new(program, &nest, schedule, target)?;
    Ok(Compiled { code, nest, apply_time, codegen_time: begun.elapsed() })
}
