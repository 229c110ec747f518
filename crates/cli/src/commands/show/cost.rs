//! `tilewright show --stage cost`: the time that the cost model predicts for a schedule, and the
//! parts of that time.

use tilewright::cost::cpu::{Estimate, Machine, estimate};
use tilewright::cost::gpu;
use tilewright::ir::LoopNest;
use tilewright::target::{Cpu, Gpu, Target};

use tilewright::report::time::seconds;

/// Formats the predicted time of a loop nest and its parts.
pub fn cost(nest: &LoopNest, target: Target<'_>) -> String {
    match target {
        Target::Cpu(cpu) => on_cpu(nest, cpu),
        Target::Gpu(gpu) => on_gpu(nest, gpu),
    }
}

fn on_cpu(nest: &LoopNest, cpu: &Cpu) -> String {
    let Estimate { seconds: whole, parts } = estimate(nest, cpu, &Machine::typical(cpu));
    let mut out = format!("{:<20} {}\n\n", "expected", seconds(whole));
    let mut row = |name: &str, value: String| out += &format!("{name:<20} {value}\n");
    row("instructions", seconds(parts.compute));
    row("loads and stores", seconds(parts.memory_instructions));
    for (level, transfer) in parts.transfers.iter().enumerate() {
        row(&format!("into cache {}", level + 1), seconds(*transfer));
    }
    row("loops", seconds(parts.loops));
    row("threads", seconds(parts.threads));
    row("spills", seconds(parts.spills));
    row("lanes in vain", format!("{:.0} %", 100.0 * parts.masked_lanes));
    row("idle cores", format!("{:.0} %", 100.0 * parts.idle_cores));
    out + "\nParts overlap, and add up to more than the whole.\n"
}

/// Formats the predicted time on a GPU, kernel by kernel.
fn on_gpu(nest: &LoopNest, gpu: &Gpu) -> String {
    let expected = gpu::estimate(nest, gpu);
    let mut out = format!("{:<20} {}\n", "expected", seconds(expected.seconds));
    for (at, parts) in expected.kernels.iter().enumerate() {
        out += &format!("\n{:<20} {}\n", format!("kernel {}", at + 1), seconds(parts.seconds));
        let mut row = |name: &str, value: String| out += &format!("  {name:<18} {value}\n");
        row("blocks", format!("{:.0} of {:.0} threads", parts.blocks, parts.threads));
        row("at a time", format!("{:.0} on a multiprocessor", parts.resident));
        row("arithmetic", seconds(parts.compute));
        row("instructions", seconds(parts.issue));
        row("shared memory", seconds(parts.shared));
        row("sectors", seconds(parts.sectors));
        row("memory", seconds(parts.memory));
        row("waiting", seconds(parts.latency));
    }
    out + "\nParts overlap, and add up to more than the whole.\n"
}
