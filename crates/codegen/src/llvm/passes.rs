//! The few passes that are worth their time.
//!
//! The emitter already writes vectors, so what is left is to promote the slots of register buffers, to join equal
//! addresses and loads, and to move what a loop does not change out of it. The default pipelines cost many times
//! as much and change nothing that was measured.

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;

use super::machine::Machine;
use crate::CodegenError;

const PASSES: &str = "function(mem2reg,early-cse<memssa>,loop-mssa(licm))";

pub(super) fn run(module: &Module<'_>, machine: &Machine) -> Result<(), CodegenError> {
    let failed = |message: inkwell::support::LLVMString| CodegenError::Llvm(message.to_string());
    if cfg!(debug_assertions) {
        module.verify().map_err(failed)?;
    }
    module.run_passes(PASSES, &machine.machine, PassBuilderOptions::create()).map_err(failed)
}
