//! The machine behind a target: this one, or a device of it.

use tilewright_runtime::gpu::{DeviceInfo, devices};
use tilewright_target::{Cpu, Gpu, GpuApi, Machine};

use crate::args::CompileArgs;
use crate::failure::Failure;
use crate::gpu::gpu_failure;
use crate::target::Target;

/// The machine that kernels are compiled for. Nothing is opened for that; the interpreter has none.
pub fn machine(target: Target, args: &CompileArgs) -> Result<Option<Machine>, Failure> {
    match target {
        Target::Interp => Ok(None),
        Target::Cpu => Ok(Some(Machine::Cpu(part_of_host(args, Cpu::host())?))),
        Target::Gpu(api, number) => {
            refuse_options_of_cpu(args)?;
            Ok(Some(Machine::Gpu(DeviceInfo::find(api, number).map_err(gpu_failure)?.gpu)))
        }
    }
}

/// A GPU for text and proofs, which need none to be there: that of a number, or else a common one of its kind.
pub fn gpu_or_stand_in(api: GpuApi, number: usize) -> Gpu {
    let found = devices().into_iter().find(|device| device.gpu.api == api && device.ordinal == number);
    found.map(|device| device.gpu).unwrap_or_else(|| match api {
        GpuApi::Cuda => Gpu::h200(),
        GpuApi::OpenCl => Gpu::opencl(),
    })
}

/// The part of this machine that was asked for.
pub fn part_of_host(args: &CompileArgs, host: Cpu) -> Result<Cpu, Failure> {
    let vectors = args.vectors.unwrap_or(host.vectors);
    if vectors > host.vectors {
        return Err(Failure::Machine(format!(
            "this machine has no {} vectors; its widest are {}",
            vectors.name(),
            host.vectors.name()
        )));
    }
    Ok(Cpu { cores: args.threads.unwrap_or(host.cores), vectors, ..host })
}

/// A device has its own threads.
pub fn refuse_options_of_cpu(args: &CompileArgs) -> Result<(), Failure> {
    let options = [("--threads", args.threads.is_some()), ("--vectors", args.vectors.is_some())];
    match options.into_iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(Failure::Usage(format!("{option} is for --target cpu"))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_target::Vectors;

    #[test]
    fn vectors_may_be_narrower_but_not_wider_than_those_of_the_machine() {
        let host = Cpu { cores: 4, vectors: Vectors::Avx2, caches: vec![32 << 10] };
        let asked = |vectors| CompileArgs { schedule: None, threads: Some(7), vectors };
        let chosen = |vectors| part_of_host(&asked(vectors), host.clone()).unwrap();
        assert_eq!(chosen(None), Cpu { cores: 7, ..host.clone() });
        assert_eq!(chosen(Some(Vectors::Baseline)).vectors, Vectors::Baseline);
        let failure = part_of_host(&asked(Some(Vectors::Avx512)), host.clone()).unwrap_err();
        assert_eq!(failure.status(), crate::failure::MACHINE);
        assert_eq!(failure.to_string(), "this machine has no avx512 vectors; its widest are avx2");
    }
}
