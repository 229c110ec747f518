//! Finds and opens the place where kernels run, a CPU or a device, and stores the path of the
//! cache.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tilewright::cache::{Cache, CacheError};
use tilewright::driver::target::machine;
use tilewright::driver::{OpenTarget, TargetName, UnknownTarget};
use tilewright::runtime::gpu::{Device, DeviceInfo, devices};
use tilewright::target::{Cpu, GpuApi, Machine};

use crate::error::{self, DeviceError};
use crate::pools;
use crate::tensor::Memory;

/// The place where a kernel runs: a target, and the threads that parallel loops use there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The target.
    pub target: TargetName,
    /// Threads for parallel loops on the CPU. A device has its own threads, and 1 here.
    threads: usize,
}

impl Place {
    /// Parses `cpu`, `cuda:1`, or `cuda` for the first CUDA device.
    pub fn find(name: &str) -> PyResult<Place> {
        name.parse().map(Place::of).map_err(|UnknownTarget { name }| {
            PyValueError::new_err(format!(
                "there is no target {name:?}; targets are \"cpu\", \"cuda:0\", \"opencl:0\"; tilewright.devices() lists the devices"
            ))
        })
    }

    /// The place of a target, with the current number of threads.
    fn of(target: TargetName) -> Place {
        match target {
            TargetName::Cpu => Place::cpu(pools::threads()),
            _ => Place { target, threads: 1 },
        }
    }

    /// This many threads of this machine's CPU.
    pub fn cpu(threads: usize) -> Place {
        Place { target: TargetName::Cpu, threads }
    }

    /// A CUDA device.
    pub fn cuda(ordinal: usize) -> Place {
        Place::of(TargetName::Gpu(GpuApi::Cuda, ordinal))
    }

    /// The place that computes on tensors in this memory.
    pub fn of_memory(memory: Memory) -> Place {
        match memory {
            Memory::Host => Place::cpu(pools::threads()),
            Memory::Cuda(ordinal) => Place::cuda(ordinal),
        }
    }

    /// Opens the target. A device is opened once for all kernels.
    pub fn open(self) -> PyResult<OpenTarget> {
        match self.target {
            TargetName::Cpu => Ok(OpenTarget::Cpu(self.host())),
            TargetName::Gpu(api, number) => open(api, number).map(OpenTarget::Gpu),
        }
    }

    /// The part of this machine's CPU with these threads.
    fn host(self) -> Cpu {
        Cpu { cores: self.threads, ..pools::host().clone() }
    }

    /// The machine, as the compiler describes it.
    pub fn machine(self) -> PyResult<Machine> {
        match self.target {
            TargetName::Cpu => Ok(Machine::Cpu(self.host())),
            name => machine(name).map_err(error::gpu),
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Place { target, threads } = self;
        match (target, threads) {
            (TargetName::Cpu, 1) => write!(f, "{target}, 1 thread"),
            (TargetName::Cpu, _) => write!(f, "{target}, {threads} threads"),
            _ => target.fmt(f),
        }
    }
}

/// Whether this process was forked from one that had opened a device. GPU drivers do not work in
/// such a process.
static FORKED: AtomicBool = AtomicBool::new(false);
static OPENED: Mutex<Vec<((GpuApi, usize), Device)>> = Mutex::new(Vec::new());

/// Opens a device once for all kernels.
pub fn open(api: GpuApi, number: usize) -> PyResult<Device> {
    refuse_forked()?;
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, device)) = opened.iter().find(|(own, _)| *own == (api, number)) {
        return Ok(device.clone());
    }
    let device = Device::open(api, number).map_err(error::gpu)?;
    opened.push(((api, number), device.clone()));
    Ok(device)
}

/// Refuses to use a device in a forked process, where a call would hang.
pub fn refuse_forked() -> PyResult<()> {
    if FORKED.load(Ordering::Relaxed) {
        return Err(DeviceError::new_err(
            "a device that was opened before a fork cannot be used in the forked process: use the start method \"spawn\" of multiprocessing",
        ));
    }
    Ok(())
}

/// Records that this process was forked. If another thread held the lock, it was just opening a
/// device.
pub fn mark_forked() {
    if OPENED.try_lock().map_or(true, |opened| !opened.is_empty()) {
        FORKED.store(true, Ordering::Relaxed);
    }
}

static CACHE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The path of the cache.
pub fn cache_path() -> Result<PathBuf, CacheError> {
    let chosen = CACHE.lock().unwrap_or_else(PoisonError::into_inner).clone();
    chosen.map_or_else(Cache::default_path, Ok)
}

/// Sets the path of the cache. Without one, it is the user's default cache.
pub fn set_cache_path(path: Option<PathBuf>) {
    *CACHE.lock().unwrap_or_else(PoisonError::into_inner) = path;
}

/// Lists the targets of this machine: for each its name, a description and its memory.
#[pyfunction]
pub fn list_devices(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let cpu = pools::host();
    let own = PyDict::new(py);
    own.set_item("target", "cpu")?;
    own.set_item("name", format!("{} cores with {} vectors", cpu.cores, cpu.vectors.name()))?;
    own.set_item("memory", py.None())?;
    let mut all = vec![own];
    for DeviceInfo { name, gpu, .. } in py.detach(devices) {
        let device = PyDict::new(py);
        device.set_item("target", name.to_string())?;
        device.set_item("name", gpu.name)?;
        device.set_item("memory", gpu.memory)?;
        all.push(device);
    }
    Ok(all)
}
