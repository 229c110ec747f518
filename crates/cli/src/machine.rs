//! Describes and opens the hardware that the options `--target`, `--threads` and `--vectors`
//! select.

use tilewright::driver::target::{CpuLimits, machine as machine_of, machine_or_typical as typical_machine};
use tilewright::driver::{OpenTarget, TargetName};
use tilewright::target::{Cpu, Machine};

use crate::args::cpu::CpuArgs;
use crate::failure::Failure;
use crate::output::print_error_line;

/// Describes the hardware that kernels are compiled for, without opening it.
pub fn machine(name: TargetName, args: &CpuArgs) -> Result<Machine, Failure> {
    match name {
        TargetName::Cpu => Ok(Machine::Cpu(selected_cpu(args)?)),
        _ => {
            refuse_cpu_options(args)?;
            machine_of(name).map_err(Failure::from_gpu)
        }
    }
}

/// Like `machine`, but a typical device replaces one that is not present, and a note says which.
pub fn machine_or_typical(name: TargetName, args: &CpuArgs) -> Result<Machine, Failure> {
    if name == TargetName::Cpu {
        return machine(name, args);
    }
    refuse_cpu_options(args)?;
    Ok(machine_of(name).unwrap_or_else(|_| {
        let typical = typical_machine(name);
        print_error_line(&format!(
            "there is no {name} on this machine: compiling for {}",
            described(&typical)
        ));
        typical
    }))
}

/// The name of a GPU, and the version of its instruction set if it has one.
fn described(machine: &Machine) -> String {
    match machine {
        Machine::Cpu(_) => "this CPU".to_owned(),
        Machine::Gpu(gpu) if gpu.architecture > 0 => format!("{} (sm_{})", gpu.name, gpu.architecture),
        Machine::Gpu(gpu) => gpu.name.clone(),
    }
}

/// Opens the target that kernels run on.
pub fn open(name: TargetName, args: &CpuArgs) -> Result<OpenTarget, Failure> {
    match name {
        TargetName::Cpu => selected_cpu(args).map(OpenTarget::Cpu),
        _ => {
            refuse_cpu_options(args)?;
            OpenTarget::open(name).map_err(Failure::from_gpu)
        }
    }
}

/// The part of this computer's CPU that the options select.
fn selected_cpu(args: &CpuArgs) -> Result<Cpu, Failure> {
    let host = Cpu::host();
    let widest = host.vectors.name();
    CpuLimits { threads: args.threads, vectors: args.vectors }.apply_to(host).map_err(|vectors| {
        Failure::Machine(format!("this machine has no {} vectors; its widest are {widest}", vectors.name()))
    })
}

/// Refuses the options `--threads` and `--vectors`, which only a CPU has.
pub fn refuse_cpu_options(args: &CpuArgs) -> Result<(), Failure> {
    let options = [("--threads", args.threads.is_some()), ("--vectors", args.vectors.is_some())];
    match options.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!("{option} is for --target cpu"))),
        None => Ok(()),
    }
}
