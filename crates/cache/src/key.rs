//! What a record is looked up by.

use std::fmt;

use tilewright_target::{Cpu, Gpu, Vectors, host_model};

/// A program at some sizes, on a machine, with some threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgramKey {
    /// The program without its names and for all sizes; data types are part of it.
    pub canonical: String,
    /// The values of its sizes, under their canonical names and in their order.
    pub sizes: Vec<(String, i64)>,
    /// The machine.
    pub target: TargetFingerprint,
    /// Threads that run parallel loops; on a device, its multiprocessors.
    pub threads: usize,
}

/// What of a machine makes a difference to which schedule is fast.
///
/// How many cores it has besides the threads that run is not part of it: a container or `taskset` would make another
/// machine of the same one. Nor is the driver of a device, or its number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TargetFingerprint {
    /// The kind of device: `cpu`, `cuda` or `opencl`.
    pub device: String,
    /// The processor or device, as it calls itself.
    pub model: String,
    /// The vector instructions that are used; the version of a GPU's instructions, such as `sm_90`.
    pub vectors: String,
    /// Bytes of the data caches, first level first; of a device, its shared memory and its cache.
    pub caches: Vec<u64>,
}

impl TargetFingerprint {
    /// Of a part of this machine.
    pub fn host(cpu: &Cpu) -> TargetFingerprint {
        TargetFingerprint::new(cpu, &host_model())
    }

    /// Of a machine that calls its processor so.
    pub fn new(cpu: &Cpu, model: &str) -> TargetFingerprint {
        TargetFingerprint {
            device: "cpu".to_owned(),
            model: model.to_owned(),
            vectors: cpu.vectors.name().to_owned(),
            caches: cpu.caches.iter().map(|bytes| *bytes as u64).collect(),
        }
    }

    /// Of a device.
    pub fn device(gpu: &Gpu) -> TargetFingerprint {
        TargetFingerprint {
            device: gpu.api.name().to_owned(),
            model: gpu.name.clone(),
            vectors: match gpu.architecture {
                0 => String::new(),
                version => format!("sm_{version}"),
            },
            caches: [gpu.processor_shared, gpu.cache].map(|bytes| bytes as u64).to_vec(),
        }
    }

    /// The machine as schedules see it, with as many cores as there are threads.
    pub fn cpu(&self, threads: usize) -> Option<Cpu> {
        let vectors = Vectors::ALL.into_iter().find(|vectors| vectors.name() == self.vectors)?;
        let caches =
            self.caches.iter().map(|bytes| usize::try_from(*bytes)).collect::<Result<_, _>>().ok()?;
        Some(Cpu { cores: threads, vectors, caches })
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
