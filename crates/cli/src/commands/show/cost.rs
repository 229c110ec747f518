//! What the model expects a schedule to take, and why.

use tilewright_ir::LoopNest;
use tilewright_search::cost::cpu::{Estimate, Machine, estimate};
use tilewright_target::Cpu;

use crate::time::seconds;

pub fn cost(nest: &LoopNest, cpu: &Cpu) -> String {
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
