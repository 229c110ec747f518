//! Creates LLVM's target machine for a [`Cpu`], with which object code is generated, and sets
//! LLVM's global options. Also collects the processor's properties that the emitters need.

use inkwell::OptimizationLevel;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::targets::{CodeModel, InitializationConfig, RelocMode, Target, TargetMachine, TargetTriple};
use tilewright_target::{Cpu, VectorInstructions};

use crate::CodegenError;

/// The properties of the processor that code generation needs.
pub(super) struct Machine {
    pub(super) target_machine: TargetMachine,
    /// LLVM's name of the processor.
    pub(super) cpu: String,
    /// Features in addition to those that the processor's name implies.
    pub(super) features: String,
    /// Whether the processor has instructions that convert 16-bit floats.
    pub(super) converts_half: bool,
    /// Whether the processor has fused multiply-add.
    pub(super) has_fma: bool,
    /// The vector width in bits for LLVM's `prefer-vector-width`, if LLVM would prefer less by
    /// default.
    pub(super) vector_bits: Option<u32>,
    /// The number of vector registers.
    pub(super) registers: usize,
}

impl Machine {
    pub(super) fn new(target: &Cpu) -> Result<Machine, CodegenError> {
        let failed = |what: &dyn ToString| CodegenError::Target(what.to_string());
        static OPTIONS: std::sync::Once = std::sync::Once::new();
        OPTIONS.call_once(set_options);
        Target::initialize_native(&InitializationConfig::default()).map_err(|what| failed(&what))?;
        let triple: TargetTriple = TargetMachine::get_default_triple();
        let (cpu, features) = cpu_and_features(target.vectors);
        let target_machine = Target::from_triple(&triple)
            .map_err(|what| failed(&what))?
            .create_target_machine(
                &triple,
                &cpu,
                &features,
                OptimizationLevel::Default,
                RelocMode::PIC,
                CodeModel::Small,
            )
            .ok_or_else(|| failed(&"LLVM has no target machine for this processor"))?;
        // The first vector set of x86 above the baseline has both.
        let is_modern = target.vectors > VectorInstructions::Baseline || cfg!(not(target_arch = "x86_64"));
        Ok(Machine {
            target_machine,
            cpu,
            features,
            converts_half: is_modern,
            has_fma: is_modern,
            vector_bits: (target.vectors == VectorInstructions::Avx512).then_some(512),
            registers: target.vectors.registers(),
        })
    }
}

impl Machine {
    /// Whether one instruction loads or stores a vector of elements of this many bytes under a
    /// mask.
    pub(super) fn has_masks_for(&self, bytes: usize) -> bool {
        cfg!(target_arch = "x86_64") && (self.vector_bits == Some(512) || self.has_fma && bytes >= 4)
    }
}

/// Sets the options that LLVM takes only from its command line. [`super::pointers`] replaces LLVM's
/// strength reduction.
fn set_options() {
    let options = [c"tilewright".as_ptr(), c"-disable-lsr".as_ptr()];
    // SAFETY: both strings end with a NUL byte, and the null pointer means no overview text.
    unsafe {
        LLVMParseCommandLineOptions(options.len() as i32, options.as_ptr(), std::ptr::null());
    }
}

/// The processor's name: that of this machine for AVX-512, if this machine has it, and otherwise a
/// generic name, so that no wider instruction is used.
#[cfg(target_arch = "x86_64")]
fn cpu_and_features(vectors: VectorInstructions) -> (String, String) {
    let generic = match vectors {
        VectorInstructions::Baseline => "x86-64",
        VectorInstructions::Avx2 => "x86-64-v3",
        VectorInstructions::Avx512 => match host_with_avx512() {
            Some(host) => return host.clone(),
            None => "x86-64-v4",
        },
    };
    (generic.to_owned(), String::new())
}

/// The name and features of this machine, detected only once: on a virtual machine this takes
/// milliseconds. The features are needed too, since a virtual machine may lack some that its
/// processor's name implies.
#[cfg(target_arch = "x86_64")]
fn host_with_avx512() -> Option<&'static (String, String)> {
    static HOST: std::sync::OnceLock<Option<(String, String)>> = std::sync::OnceLock::new();
    let ask = || {
        let name = TargetMachine::get_host_cpu_name().to_string();
        let features = TargetMachine::get_host_cpu_features().to_string();
        (Cpu::host().vectors == VectorInstructions::Avx512).then_some((name, features))
    };
    HOST.get_or_init(ask).as_ref()
}

#[cfg(not(target_arch = "x86_64"))]
fn cpu_and_features(_: VectorInstructions) -> (String, String) {
    ("generic".to_owned(), String::new())
}
