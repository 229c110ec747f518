//! Runs the few LLVM passes that are worth their time.
//!
//! The emitter already writes vectors. The remaining tasks are to promote the slots of register
//! buffers, to merge equal addresses and loads, to hoist loop-invariant code, and to remove stores
//! that later ones overwrite: those of an unrolled reduction, whose sums then stay in registers.
//! The default pipelines take many times as long and improved nothing that was measured.

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;

use super::machine::Machine;
use crate::CodegenError;

const PASSES: &str = "function(mem2reg,early-cse<memssa>,loop-mssa(licm),dse)";

pub(super) fn run(module: &Module<'_>, machine: &Machine) -> Result<(), CodegenError> {
    let failed = |message: inkwell::support::LLVMString| CodegenError::Llvm(message.to_string());
    if cfg!(debug_assertions) {
        module.verify().map_err(failed)?;
    }
    module.run_passes(PASSES, &machine.target_machine, PassBuilderOptions::create()).map_err(failed)
}
