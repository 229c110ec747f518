//! Describes and opens the hardware that the options `--target`, `--threads` and `--vectors`
//! select.

use tilewright::driver::target::{CpuLimits, machine as machine_of, machine_or_typical as typical_machine};
use tilewright::driver::{OpenTarget, TargetName};
use tilewright::target::{Cpu, Machine};

use crate::args::CompileArgs;
use crate::failure::Failure;

/// Describes the hardware that kernels are compiled for, without opening it.
pub fn machine(name: TargetName, args: &CompileArgs) -> Result<Machine, Failure> {
    match name {
        TargetName::Cpu => Ok(Machine::Cpu(selected_cpu(args)?)),
        _ => {
            refuse_cpu_options(args)?;
            machine_of(name).map_err(Failure::from_gpu)
        }
    }
}

/// Like `machine`, but a typical device replaces one that is not present.
pub fn machine_or_typical(name: TargetName, args: &CompileArgs) -> Result<Machine, Failure> {
    match name {
        TargetName::Cpu => machine(name, args),
        _ => {
            refuse_cpu_options(args)?;
            Ok(typical_machine(name))
        }
    }
}

/// Opens the target that kernels run on.
pub fn open(name: TargetName, args: &CompileArgs) -> Result<OpenTarget, Failure> {
    match name {
        TargetName::Cpu => selected_cpu(args).map(OpenTarget::Cpu),
        _ => {
            refuse_cpu_options(args)?;
            OpenTarget::open(name).map_err(Failure::from_gpu)
        }
    }
}

/// The part of this computer's CPU that the options select.
fn selected_cpu(args: &CompileArgs) -> Result<Cpu, Failure> {
    let host = Cpu::host();
    let widest = host.vectors.name();
    CpuLimits { threads: args.threads, vectors: args.vectors }.apply_to(host).map_err(|vectors| {
        Failure::Machine(format!("this machine has no {} vectors; its widest are {widest}", vectors.name()))
    })
}

/// Refuses the options `--threads` and `--vectors`, which only a CPU has.
pub fn refuse_cpu_options(args: &CompileArgs) -> Result<(), Failure> {
    let options = [("--threads", args.threads.is_some()), ("--vectors", args.vectors.is_some())];
    match options.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!("{option} is for --target cpu"))),
        None => Ok(()),
    }
}
