//! Defines [`ProgramKey`], by which records are looked up: the program, its sizes, the machine
//! and the number of threads.

use std::fmt;

use tilewright_target::{Cpu, Hardware, VectorInstructions};

/// The key of a program: the program, its sizes, the target and the number of threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramKey {
    /// The canonical text of the program, for all sizes. It includes data types.
    pub canonical: String,
    /// The values of the sizes under their canonical names, in the order of the names.
    pub sizes: Vec<(String, i64)>,
    /// The machine.
    pub target: TargetFingerprint,
    /// The number of threads that run parallel loops; on a device, the number of its
    /// multiprocessors.
    pub threads: usize,
}

/// The kind of device of a CPU, in records.
const CPU: &str = "cpu";

/// The properties of a target that influence which schedule is fast.
///
/// The total number of cores is not among them: a container or `taskset` would otherwise turn one
/// machine into another. Neither are a device's driver and its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetFingerprint {
    /// The kind of device: `cpu`, `cuda` or `opencl`.
    pub device: String,
    /// The model name that the processor or device reports.
    pub model: String,
    /// The vector instructions in use; for a GPU, the version of its instruction set, such as
    /// `sm_90`.
    pub vectors: String,
    /// The sizes of the data caches in bytes, first level first; for a device, its shared memory
    /// and its cache.
    pub caches: Vec<u64>,
}

impl TargetFingerprint {
    /// The fingerprint of hardware with this model name.
    pub fn of_hardware(hardware: &dyn Hardware, model: &str) -> TargetFingerprint {
        TargetFingerprint {
            device: hardware.interface().to_owned(),
            model: model.to_owned(),
            vectors: hardware.instruction_set(),
            caches: hardware.memory_sizes().iter().map(|bytes| *bytes as u64).collect(),
        }
    }

    /// The CPU as schedules see it, with as many cores as threads.
    pub fn to_cpu(&self, threads: usize) -> Option<Cpu> {
        let vectors = VectorInstructions::ALL.into_iter().find(|vectors| vectors.name() == self.vectors)?;
        let caches =
            self.caches.iter().map(|bytes| usize::try_from(*bytes)).collect::<Result<_, _>>().ok()?;
        Some(Cpu { cores: threads, vectors, caches })
    }

    /// Returns true when the target is a CPU, and no device.
    pub fn is_cpu(&self) -> bool {
        self.device == CPU
    }

    /// The caches as text: `32768,1048576`.
    pub(super) fn caches_text(&self) -> String {
        self.caches.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
    }

    pub(super) fn parse_caches(text: &str) -> Option<Vec<u64>> {
        parse_list(text, |part| part.parse().ok())
    }
}

impl fmt::Display for TargetFingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [&self.device, &self.vectors, &self.model].map(String::as_str);
        f.write_str(&parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" "))
    }
}

/// Sizes as text: `s0=64,s1=32`.
pub(super) fn sizes_text(sizes: &[(String, i64)]) -> String {
    sizes.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(",")
}

pub(super) fn parse_sizes(text: &str) -> Option<Vec<(String, i64)>> {
    parse_list(text, |part| {
        let (name, value) = part.split_once('=')?;
        Some((name.to_owned(), value.parse().ok()?))
    })
}

fn parse_list<T>(text: &str, part: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    if text.is_empty() { Some(Vec::new()) } else { text.split(',').map(part).collect() }
}
