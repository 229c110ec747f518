//! `tilewright devices`: lists the targets that programs can run on.

use serde_json::json;
use tilewright::runtime::gpu::{DeviceInfo, devices};
use tilewright::target::Cpu;

use crate::args::DevicesArgs;
use crate::failure::Failure;
use crate::output::print;

/// Lists the CPU and all devices by the names that `--target` takes.
pub fn run(args: &DevicesArgs) -> Result<(), Failure> {
    let cpu = Cpu::host();
    let found = devices();
    if args.json {
        let own = json!({ "target": "cpu", "cores": cpu.cores, "vectors": cpu.vectors.name() });
        let others = found.iter().map(object);
        return print(
            &std::iter::once(own).chain(others).map(|object| format!("{object}\n")).collect::<String>(),
        );
    }
    let mut text = format!("cpu        this machine: {} cores, {} vectors\n", cpu.cores, cpu.vectors.name());
    found.iter().for_each(|device| text.push_str(&line(device)));
    if found.is_empty() {
        text.push_str("There are no GPUs: neither a CUDA driver nor an OpenCL platform was found.\n");
    }
    print(&text)
}

fn line(device: &DeviceInfo) -> String {
    let gpu = &device.gpu;
    format!(
        "{:<10} {}: {} multiprocessors, {:.1} GiB of memory, {} KiB of shared memory per block\n",
        device.name,
        gpu.name,
        gpu.processors,
        gpu.memory as f64 / f64::from(1 << 30),
        gpu.block_shared >> 10
    )
}

fn object(device: &DeviceInfo) -> serde_json::Value {
    let gpu = &device.gpu;
    json!({
        "target": device.name.to_string(),
        "device": gpu.name,
        "architecture": gpu.architecture,
        "multiprocessors": gpu.processors,
        "memory_bytes": gpu.memory,
        "shared_bytes": gpu.block_shared,
        "cache_bytes": gpu.cache,
    })
}
