//! Describes a CPU as data ([`Cpu`]): cores, vector instructions and cache sizes. Detects those of
//! this machine.

use crate::capabilities::{Capabilities, Registers};
use crate::hardware::Hardware;

/// A CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// The number of cores that threads may use.
    pub cores: usize,
    /// The vector instructions of the CPU.
    pub vectors: VectorInstructions,
    /// The sizes of the data caches in bytes, first level first. A cache that cores share counts
    /// with its full size.
    pub caches: Vec<usize>,
}

/// The vector instructions of a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VectorInstructions {
    /// 128-bit vectors without fused multiply-add, which every 64-bit machine has.
    Baseline,
    /// 256-bit vectors with fused multiply-add and half-precision conversion (x86-64-v3).
    Avx2,
    /// 512-bit vectors with masks (x86-64-v4).
    Avx512,
}

impl VectorInstructions {
    /// Every variant, narrowest vectors first.
    pub const ALL: [VectorInstructions; 3] =
        [VectorInstructions::Baseline, VectorInstructions::Avx2, VectorInstructions::Avx512];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            VectorInstructions::Baseline => "baseline",
            VectorInstructions::Avx2 => "avx2",
            VectorInstructions::Avx512 => "avx512",
        }
    }

    /// The number of bytes of one vector register.
    pub fn bytes(self) -> usize {
        match self {
            VectorInstructions::Baseline => 16,
            VectorInstructions::Avx2 => 32,
            VectorInstructions::Avx512 => 64,
        }
    }

    /// The number of vector registers.
    pub fn registers(self) -> usize {
        match self {
            VectorInstructions::Baseline | VectorInstructions::Avx2 => 16,
            VectorInstructions::Avx512 => 32,
        }
    }
}

impl Cpu {
    /// Detects the CPU of this machine.
    pub fn host() -> Cpu {
        let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get());
        Cpu { cores, vectors: host_vector_instructions(), caches: host_caches() }
    }

    /// The number of elements of `bytes` bytes each that fit one vector register.
    pub fn lanes(&self, bytes: usize) -> usize {
        self.vectors.bytes() / bytes
    }
}

impl Hardware for Cpu {
    fn capabilities(&self) -> Capabilities {
        let (bytes, count) = (self.vectors.bytes(), self.vectors.registers());
        Capabilities {
            kind: "CPU",
            pool_threads: Some(self.cores),
            grid: None,
            shared_bytes: None,
            registers: Registers::Vector { bytes, count },
            vector_bytes: bytes,
            atomic_bytes: &[1, 2, 4, 8],
            fixed_trip_counts: false,
            predicated: false,
        }
    }

    fn interface(&self) -> &'static str {
        "cpu"
    }

    /// The model name of this machine's processor.
    fn model(&self) -> String {
        host_model()
    }

    fn instruction_set(&self) -> String {
        self.vectors.name().to_owned()
    }

    fn memory_sizes(&self) -> Vec<usize> {
        self.caches.clone()
    }

    fn warm_cache_sizes(&self) -> &[usize] {
        &self.caches
    }

    fn peak_rates(&self) -> Option<(f64, f64)> {
        None
    }

    fn parallel_units(&self) -> (usize, &'static str) {
        (self.cores, if self.cores == 1 { "thread" } else { "threads" })
    }
}

#[cfg(target_arch = "x86_64")]
fn host_vector_instructions() -> VectorInstructions {
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2");
    let avx512 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd");
    match (avx2, avx512) {
        (true, true) => VectorInstructions::Avx512,
        (true, false) => VectorInstructions::Avx2,
        _ => VectorInstructions::Baseline,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn host_vectors() -> VectorInstructions {
    VectorInstructions::Baseline
}

/// The cache sizes that the processor reports, or usual sizes where it reports none.
fn host_caches() -> Vec<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        let reported = x86_caches();
        if !reported.is_empty() {
            return reported;
        }
    }
    vec![32 << 10, 1 << 20, 8 << 20]
}

/// Reads the sizes of the data and unified caches from the processor's `cpuid` tables.
#[cfg(target_arch = "x86_64")]
fn x86_caches() -> Vec<usize> {
    use std::arch::x86_64::{__cpuid, __cpuid_count};
    /// The `cpuid` leaves with cache parameters: Intel's, and AMD's, which has the same layout.
    const TABLES: [u32; 2] = [4, 0x8000_001d];
    const INSTRUCTION_CACHE: u32 = 2;
    let present = |leaf: u32| __cpuid(leaf & 0x8000_0000).eax >= leaf;
    for table in TABLES.into_iter().filter(|leaf| present(*leaf)) {
        let mut sizes = Vec::new();
        for at in 0..16 {
            let registers = __cpuid_count(table, at);
            let kind = registers.eax & 0x1f;
            if kind == 0 {
                break;
            }
            if kind == INSTRUCTION_CACHE {
                continue;
            }
            let field = |shift: u32, bits: u32| ((registers.ebx >> shift) & ((1 << bits) - 1)) as usize + 1;
            sizes.push(field(22, 10) * field(12, 10) * field(0, 12) * (registers.ecx as usize + 1));
        }
        if !sizes.is_empty() {
            return sizes;
        }
    }
    Vec::new()
}

/// The brand name that the processor of this machine reports, or `unknown` if it reports none.
pub fn host_model() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let brand = x86_brand();
        if !brand.is_empty() {
            return brand;
        }
    }
    "unknown".to_owned()
}

/// Reads the brand string, of which three `cpuid` leaves hold 16 bytes each.
#[cfg(target_arch = "x86_64")]
fn x86_brand() -> String {
    use std::arch::x86_64::__cpuid;
    const LEAVES: std::ops::RangeInclusive<u32> = 0x8000_0002..=0x8000_0004;
    if __cpuid(0x8000_0000).eax < *LEAVES.end() {
        return String::new();
    }
    let registers = LEAVES.map(__cpuid).flat_map(|leaf| [leaf.eax, leaf.ebx, leaf.ecx, leaf.edx]);
    let bytes: Vec<u8> = registers.flat_map(u32::to_le_bytes).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_has_cores_and_growing_caches() {
        let host = Cpu::host();
        assert!(host.cores >= 1);
        assert!(host.caches.windows(2).all(|pair| pair[0] <= pair[1]), "{:?}", host.caches);
        assert!(host.caches[0] >= 8 << 10, "{:?}", host.caches);
    }

    #[test]
    fn the_processor_has_a_name() {
        let model = host_model();
        assert!(!model.is_empty() && model.trim() == model, "{model:?}");
        assert_eq!(model, host_model());
    }

    #[test]
    fn wider_vectors_hold_more_lanes() {
        let cpu = |vectors| Cpu { cores: 1, vectors, caches: vec![32 << 10] };
        assert_eq!(VectorInstructions::ALL.map(|vectors| cpu(vectors).lanes(4)), [4, 8, 16]);
    }
}
