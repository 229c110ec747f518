//! Measures the peak rates of the machine: arithmetic in registers, and reading memory. A kernel's
//! distance from the peaks bounds the possible improvement.
//!
//! Both rates are measured with generated kernels, each from a program and a schedule. So they use
//! the requested vectors and threads, on every processor that code is generated for. The best of
//! several samples counts, since other work on the machine can only make a kernel slower.
//!
//! Measuring takes some tenths of a second. `peak_file.rs` keeps the result.

mod peak_file;

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tilewright_driver::code::cpu_code;
use tilewright_driver::source::{ProgramError, Source};
use tilewright_ir::tensor::TensorError;
use tilewright_runtime::{Buffer, BuildError, Pool, RunError, Signature};
use tilewright_schedule::{apply, text};
use tilewright_target::{Cpu, Hardware};

pub use peak_file::PeakFile;

/// The sampling time of each of the two rates.
const SAMPLING_TIME: Duration = Duration::from_millis(150);
/// The least number of samples.
const LEAST_SAMPLES: usize = 4;
/// The array for reading memory has `CACHE_MULTIPLE` times the size of the last cache, within these
/// bounds.
const CACHE_MULTIPLE: usize = 2;
const LEAST_BYTES: usize = 64 << 20;
const MOST_BYTES: usize = 768 << 20;

/// The peak rates of a machine, with some threads and vectors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peaks {
    /// Single-precision operations per second, in 10⁹: multiplications and additions, fused if the
    /// machine supports it.
    pub gflops: f64,
    /// Bytes read from memory per second, in 10⁹.
    pub gbs: f64,
}

/// Why the peaks were not measured.
#[derive(Debug, Error)]
pub enum PeakError {
    /// The program is invalid here.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The schedule does not fit this machine.
    #[error("the schedule that measures the peak is refused: {0}")]
    Refused(String),
    /// No code can be generated for this machine.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// There is not enough memory.
    #[error(transparent)]
    Memory(#[from] TensorError),
    /// The kernel failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl Peaks {
    /// Measures the peaks with at most `memory` bytes. Nothing else should be running.
    pub fn measure(cpu: &Cpu, memory: usize) -> Result<Peaks, PeakError> {
        let pool = Pool::new(cpu.cores);
        Ok(Peaks {
            gflops: measure_arithmetic_rate(cpu, &pool)?,
            gbs: measure_memory_rate(cpu, &pool, memory)?,
        })
    }

    /// The peaks that hardware reports. Nothing is measured.
    pub fn reported(hardware: &dyn Hardware) -> Option<Peaks> {
        hardware.peak_rates().map(|(flops, bytes)| Peaks { gflops: flops / 1e9, gbs: bytes / 1e9 })
    }

    /// Checks whether the values are possible.
    fn are_plausible(&self) -> bool {
        [self.gflops, self.gbs].iter().all(|rate| rate.is_finite() && *rate > 0.0)
    }
}

/// The arithmetic rate: products in registers, with operands that stay in the first-level cache.
/// The accumulator has 6 × 2 vectors. With the operands, that is as many as 16 registers hold, and
/// more than enough to hide the latency of an operation. The reduction over `r` repeats the one
/// over `k`.
fn measure_arithmetic_rate(cpu: &Cpu, pool: &Pool) -> Result<f64, PeakError> {
    const ROWS: usize = 6;
    const DEPTH: usize = 64;
    const REPEATED: usize = 64;
    let (parts, columns) = (16 * cpu.cores, 2 * cpu.lanes(4));
    let program = format!(
        "def arithmetic(float({DEPTH},{ROWS}) A, float({DEPTH},{columns}) B) -> (C) {{
           C(t,i,j) +=! A(k,i) * B(k,j) where t in 0:{parts}, r in 0:{REPEATED}
         }}"
    );
    let schedule = format!(
        "split C.j -> ju, jv:{}
         split C.k -> ko, ki:4
         reorder C.t, C.r, C.ko, C.ki, C.i, C.ju, C.jv
         promote C at C.t -> acc registers
         vectorize C.jv
         unroll C.ju
         unroll C.i
         unroll C.ki
         parallel C.t",
        cpu.lanes(4)
    );
    let operations = (2 * parts * REPEATED * DEPTH * ROWS * columns) as f64;
    Ok(operations / time_fastest_call(cpu, pool, &program, &schedule)? / 1e9)
}

/// The memory rate: sums over an array that is far larger than the caches, eight vectors at a time.
fn measure_memory_rate(cpu: &Cpu, pool: &Pool, memory: usize) -> Result<f64, PeakError> {
    const DEPTH: usize = 64;
    let columns = 8 * cpu.lanes(4);
    let part = 4 * DEPTH * columns;
    let last = cpu.caches.last().copied().unwrap_or(0);
    let bytes = (CACHE_MULTIPLE * last).clamp(LEAST_BYTES, MOST_BYTES).min(memory);
    let parts = (bytes / part).max(1);
    let program = format!("def reading(float({parts},{DEPTH},{columns}) x) -> (s) {{ s(t,j) +=! x(t,i,j) }}");
    let schedule = format!(
        "split s.j -> ju, jv:{}
         reorder s.t, s.i, s.ju, s.jv
         promote s at s.t -> acc registers
         vectorize s.jv
         unroll s.ju
         parallel s.t",
        cpu.lanes(4)
    );
    Ok((parts * part) as f64 / time_fastest_call(cpu, pool, &program, &schedule)? / 1e9)
}

/// The time of the fastest of many calls, in seconds.
fn time_fastest_call(cpu: &Cpu, pool: &Pool, program: &str, schedule: &str) -> Result<f64, PeakError> {
    let name = program.trim_start_matches("def ").split('(').next().unwrap_or_default();
    let program = Source::new(program).program(name, &Default::default(), true).program?;
    let nest = apply(&program, &text::parse(schedule).schedule, cpu)
        .map_err(|refusal| PeakError::Refused(refusal.to_string()))?;
    let executable = cpu_code(&program, &nest, cpu)?;
    let bound = executable.bind(pool, &[])?;
    // `Buffer::zeros` writes every page, so each has physical memory of its own.
    let inputs = zeros(executable.signature())?;
    let inputs: Vec<_> = inputs.iter().map(Buffer::view).collect();
    let mut results = executable.signature().zero_results()?;
    let mut results: Vec<_> = results.iter_mut().map(Buffer::view_mut).collect();
    let mut best = f64::INFINITY;
    let (begun, mut samples) = (Instant::now(), 0);
    while samples < LEAST_SAMPLES || begun.elapsed() < SAMPLING_TIME {
        let started = Instant::now();
        bound.run(pool, &inputs, &mut results, &[])?;
        best = best.min(started.elapsed().as_secs_f64());
        samples += 1;
    }
    Ok(best)
}

fn zeros(signature: &Signature) -> Result<Vec<Buffer>, TensorError> {
    let layouts = signature.inputs.iter().map(|input| &input.layout);
    layouts.map(|layout| Buffer::zeros(layout.dtype(), layout.shape())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_target::VectorInstructions;

    #[test]
    fn every_kind_of_vectors_and_several_threads_have_peaks() {
        let host = Cpu::host();
        for vectors in VectorInstructions::ALL.into_iter().filter(|vectors| *vectors <= host.vectors) {
            for cores in [1, 2] {
                let cpu = Cpu { cores, vectors, caches: vec![32 << 10] };
                let peaks = Peaks::measure(&cpu, 1 << 20).unwrap();
                assert!(peaks.are_plausible(), "{vectors:?}: {peaks:?}");
            }
        }
    }
}
