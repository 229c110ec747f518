//! Refuses programs that do not fit into memory, before they allocate anything.

use std::fs;

use tilewright::ir::print::tensor_type;
use tilewright::ir::tensor::byte_size;
use tilewright::ir::{Program, TensorId};

use crate::failure::Failure;

/// The number of bytes that running a compiled kernel takes, without the kernel's own buffers.
pub fn kernel_bytes(program: &Program) -> Option<u128> {
    let sizes = sizes(program)?;
    let size = |id: TensorId| sizes[id.index()] as u128;
    // Inputs are copied one after the other, so at most one of them exists twice. Results are
    // copied back together.
    let copied_in = program.tensors_with(|role| role.is_supplied()).map(|(id, _)| size(id)).max();
    let copied_back: u128 = program.tensors_with(|role| role.is_result()).map(|(id, _)| size(id)).sum();
    let tensors: u128 = sizes.iter().map(|size| *size as u128).sum();
    Some(tensors + copied_back.max(copied_in.unwrap_or(0)))
}

/// The size of each tensor in bytes, or `None` if a tensor is larger than any memory.
fn sizes(program: &Program) -> Option<Vec<usize>> {
    let size = |(at, tensor): (usize, &tilewright::ir::TensorDecl)| {
        byte_size(tensor.dtype, &program.shape(TensorId(at as u32))?)
    };
    program.tensors.iter().enumerate().map(size).collect()
}

/// Refuses tensors that are larger than any memory, and a run that exceeds the free memory.
pub fn refuse_too_large(program: &Program, needed: Option<u128>) -> Result<(), Failure> {
    let oversized = program.tensors.iter().enumerate().find(|(at, tensor)| {
        let shape = program.shape(TensorId(*at as u32));
        shape.is_none_or(|shape| byte_size(tensor.dtype, &shape).is_none())
    });
    if let Some((at, tensor)) = oversized {
        let kind = tensor_type(program, TensorId(at as u32));
        return Err(Failure::Input(format!(
            "`{}` would be {kind}, which is larger than any memory",
            tensor.name
        )));
    }
    refuse(&format!("running `{}`", program.name), needed.unwrap_or(u128::MAX))
}

/// Refuses an operation that takes more memory than is free.
pub fn refuse_more_than_free(operation: &str, bytes: usize) -> Result<(), Failure> {
    refuse(operation, bytes as u128)
}

fn refuse(operation: &str, needed: u128) -> Result<(), Failure> {
    match available() {
        Some(available) if needed > available as u128 => Err(Failure::Input(format!(
            "{operation} takes {}, and {} of memory are free; give smaller sizes",
            format_bytes(needed),
            format_bytes(available as u128)
        ))),
        _ => Ok(()),
    }
}

/// The number of bytes that can be allocated without swapping, on this machine or in this
/// container. `None` if the system does not tell.
pub fn available() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let limit = number("/sys/fs/cgroup/memory.max");
    let used = number("/sys/fs/cgroup/memory.current").unwrap_or(0);
    let contained = limit.map_or(u64::MAX, |limit| limit.saturating_sub(used));
    Some((kib * 1024).min(contained))
}

fn format_bytes(bytes: u128) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} bytes") } else { format!("{value:.1} {}", units[unit]) }
}
