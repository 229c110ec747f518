//! Chooses the space, the cost model and the default strategy for each kind of target. No other
//! file of this crate matches on [`Target`].

use std::sync::Arc;

use tilewright_ir::Program;
use tilewright_target::Target;

use crate::cost::learned::{LearnedModel, Speeds, Weights};
use crate::cost::{self, CostModel};
use crate::knob::Knobs;
use crate::space::{self, Plan};
use crate::strategy::{Entry, beam, gbfs, guided};

/// The knobs of a program on a target, and their meaning.
pub(crate) fn plan<'a>(program: &'a Program, target: Target<'a>) -> (Knobs, Arc<dyn Plan + 'a>) {
    match target {
        Target::Cpu(cpu) => {
            let (knobs, plan) = space::cpu::Plan::new(program, cpu);
            (knobs, Arc::new(plan))
        }
        Target::Gpu(gpu) => {
            let (knobs, plan) = space::gpu::Plan::new(program, gpu);
            (knobs, Arc::new(plan))
        }
    }
}

/// The limits by which the space of a target rejects points, for people.
pub fn limit_names(target: Target<'_>) -> &'static str {
    match target {
        Target::Cpu(_) => "vectors, registers, code size and cores",
        Target::Gpu(_) => "warps, registers, shared memory, code size and multiprocessors",
    }
}

/// The name of the kind of machines that a learned model is for: the vectors of a CPU, or the
/// instruction set of a GPU.
pub fn family(target: Target<'_>) -> String {
    match target {
        Target::Cpu(cpu) => cpu.vectors.name().to_owned(),
        Target::Gpu(gpu) if gpu.architecture > 0 => format!("sm_{}", gpu.architecture),
        Target::Gpu(gpu) => gpu.api.name().to_owned(),
    }
}

/// The effort of a kernel from which the time to compile it counts, if it does: that of about two
/// seconds. Compilers for GPUs take ten times as long as LLVM for the same code.
pub(crate) fn most_kernel_effort(target: Target<'_>) -> Option<f64> {
    match target {
        Target::Cpu(_) => None,
        Target::Gpu(_) => Some(5000.0),
    }
}

/// The speeds of a target that learned models need.
pub fn speeds(target: Target<'_>) -> Speeds {
    match target {
        Target::Cpu(cpu) => {
            let machine = cost::cpu::Machine::typical(cpu);
            let lanes = cpu.vectors.bytes() as f64 / 4.0;
            Speeds {
                units: cpu.cores.max(1) as f64,
                warp: 1.0,
                operations: machine.hertz * machine.vector_ports * lanes,
                bandwidth: machine.hertz * machine.shared_bandwidth / 2.0,
                start: machine.start_threads,
            }
        }
        Target::Gpu(gpu) => Speeds {
            units: gpu.processors.max(1) as f64,
            warp: gpu.warp.max(1) as f64,
            operations: f64::from(gpu.clock_mhz.max(1)) * 1e6 * gpu.lanes.max(1) as f64,
            bandwidth: gpu.bandwidth_mb.max(1) as f64 * 1e6,
            start: 3e-6,
        },
    }
}

/// The cost model of a target.
pub fn cost_model<'a>(target: Target<'a>) -> Arc<dyn CostModel + 'a> {
    match target {
        Target::Cpu(cpu) => Arc::new(cost::cpu::Model::typical(cpu)),
        Target::Gpu(gpu) => Arc::new(cost::gpu::Model(gpu)),
    }
}

/// The default strategy for a program on a target. docs/strategies.md has the measurements behind
/// the choice.
pub fn default_strategy(program: &Program, target: Target<'_>) -> Entry {
    match program.statements().len() {
        0 | 1 => point_strategy(target),
        _ => beam::ENTRY,
    }
}

/// The learned model of a target with these weights.
pub fn learned_model<'a>(target: Target<'a>, weights: Arc<Weights>) -> Arc<dyn CostModel + 'a> {
    Arc::new(LearnedModel::new(cost_model(target), speeds(target), weights))
}

/// The default strategy for the points of a space.
pub(crate) fn point_strategy(target: Target<'_>) -> Entry {
    match target {
        Target::Cpu(_) => gbfs::ENTRY,
        Target::Gpu(_) => guided::ENTRY,
    }
}
