//! Shows a stage of compilation as text for people: the program, its schedule, the loops, or
//! the generated code ([`Stage`]).

use thiserror::Error;
use tilewright_codegen::c_family::{Dialect, gpu_code};
use tilewright_codegen::{CodegenError, assembly, llvm_ir};
use tilewright_ir::verify_nest::InvalidNest;
use tilewright_ir::{LoopNest, Program, print, verify_nest};
use tilewright_schedule::Schedule;
use tilewright_target::Target;

use crate::code::header_comment;

/// A stage of compilation that can be shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The checked program.
    Program,
    /// The steps of the schedule.
    Schedule,
    /// The loops.
    Loops,
    /// LLVM IR, for a CPU.
    Llvm,
    /// Assembly, for a CPU.
    Assembly,
    /// CUDA C++, for a CUDA device.
    Cuda,
    /// OpenCL C, for an OpenCL device.
    OpenCl,
}

/// Why a stage cannot be shown.
#[derive(Debug, Error)]
pub enum StageError {
    /// Code for this target does not go through the stage.
    #[error("there is no stage `{}` for this target", .0.name())]
    NoSuchStage(Stage),
    /// The code generator refused the loops.
    #[error(transparent)]
    Codegen(#[from] CodegenError),
    /// The loops break an invariant, which is a bug in lowering.
    #[error(transparent)]
    InvalidNest(#[from] InvalidNest),
}

impl Stage {
    /// The name of the stage for users.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Program => "program",
            Stage::Schedule => "schedule",
            Stage::Loops => "loops",
            Stage::Llvm => "llvm",
            Stage::Assembly => "asm",
            Stage::Cuda => "cuda",
            Stage::OpenCl => "opencl",
        }
    }

    /// The stages that code for a target goes through, in order.
    pub fn all_for(target: Target<'_>) -> &'static [Stage] {
        match target {
            Target::Cpu(_) => &[Stage::Program, Stage::Schedule, Stage::Loops, Stage::Llvm, Stage::Assembly],
            Target::Gpu(gpu) => match Dialect::from(gpu.api) {
                Dialect::Cuda => &[Stage::Program, Stage::Schedule, Stage::Loops, Stage::Cuda],
                Dialect::OpenCl => &[Stage::Program, Stage::Schedule, Stage::Loops, Stage::OpenCl],
            },
        }
    }

    /// The stage as text. `nest` is the result of applying `schedule` to `program`.
    pub fn text(
        self,
        program: &Program,
        schedule: &Schedule,
        nest: &LoopNest,
        target: Target<'_>,
    ) -> Result<String, StageError> {
        if !Stage::all_for(target).contains(&self) {
            return Err(StageError::NoSuchStage(self));
        }
        let text = match (self, target) {
            (Stage::Program, _) => print::program(program),
            (Stage::Schedule, _) => schedule.to_string(),
            (Stage::Llvm, Target::Cpu(cpu)) => llvm_ir(verify_nest(nest)?, cpu)?,
            (Stage::Assembly, Target::Cpu(cpu)) => assembly(verify_nest(nest)?, cpu)?,
            (Stage::Cuda | Stage::OpenCl, Target::Gpu(gpu)) => {
                gpu_code(verify_nest(nest)?, gpu, &header_comment(program, schedule))?.text
            }
            _ => print::nest(nest),
        };
        Ok(text)
    }
}
