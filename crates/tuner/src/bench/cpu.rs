//! Runs kernels on the CPU and times them by the CPU's clock.

use std::time::Instant;

use tilewright_ir::Number;
use tilewright_runtime::{Bound, Buffer, Executable, Pool, RunError, View};

use super::conditioning::Perturbation;
use super::{Plan, Runner};

/// The least duration of a sample, in seconds, so that the cost of reading the clock does not
/// matter.
const SHORTEST_SAMPLE: f64 = 20e-6;
/// A call that takes longer than this, in seconds, fills the caches by itself.
const CACHE_FILLING_CALL: f64 = 1e-3;
/// A call that takes longer than this, in seconds, is rarely disturbed as a whole. Its first call
/// is as good as any other.
const RELIABLE_CALL: f64 = 4e-3;
/// The factor by which the first call of such a kernel may be slower than its later calls.
const FIRST_CALL_SLACK: f64 = 1.1;

/// The parts of a fixture that are in use while kernels run.
pub(crate) struct CpuRunner<'s> {
    pub pool: &'s Pool,
    pub constants: Vec<View<'s>>,
    pub inputs: &'s mut [Buffer],
    pub scalars: &'s [Number],
    /// The contents of results before a call: the caller's data, or values that no kernel computes.
    pub initial_results: &'s mut [Buffer],
    pub results: &'s mut [Buffer],
}

impl<'s> Runner for CpuRunner<'s> {
    type Executable = Executable;
    type Kernel = Bound<'s>;

    // The first call after compiling other kernels finds cold caches and sleeping threads.
    const SHORTEST_CONCLUSIVE_CALL: f64 = 500e-6;
    const SINGLE_CALL_SLACK: f64 = 1.15;
    const FURTHER_CALLS: usize = 3;
    const MOST_SAMPLES: usize = 1000;
    const EMPTIES_CACHES: bool = false;

    fn bind(&self, executable: &Executable) -> Result<Bound<'s>, RunError> {
        executable.bind(self.pool, &self.constants)
    }

    fn warm_up(&mut self, _: &Bound<'s>) -> Result<(), RunError> {
        Ok(())
    }

    fn first_call(&mut self, kernel: &Bound<'s>) -> Result<f64, RunError> {
        for (from, to) in self.initial_results.iter().zip(self.results.iter_mut()) {
            from.unpack(&mut to.view_mut()).expect("a result keeps its type and shape");
        }
        self.time_call(kernel)
    }

    fn longest_first_call(&self, first: f64, plan: &Plan) -> f64 {
        if first > RELIABLE_CALL { FIRST_CALL_SLACK * plan.call_limit } else { plan.first_call_limit }
    }

    fn time_call(&mut self, kernel: &Bound<'s>) -> Result<f64, RunError> {
        let started = Instant::now();
        self.call(kernel)?;
        Ok(started.elapsed().as_secs_f64())
    }

    /// The time of a call that follows another call of the same kernel, averaged over as many calls
    /// as the clock needs. The relevant case is a kernel that is called again and again, not one
    /// that finds another kernel's data in the caches. A long call fills the caches by itself.
    fn sample(&mut self, kernel: &Bound<'s>) -> Result<f64, RunError> {
        let first = self.time_call(kernel)?;
        if first > CACHE_FILLING_CALL {
            return Ok(first);
        }
        let calls = (SHORTEST_SAMPLE / first.max(1e-9)).ceil().clamp(1.0, 1000.0);
        let started = Instant::now();
        for _ in 0..calls as usize {
            self.call(kernel)?;
        }
        Ok(started.elapsed().as_secs_f64() / calls)
    }

    fn perturb_inputs(&mut self, nudge: Perturbation) -> Result<bool, RunError> {
        let mut any = false;
        for buffer in self.inputs.iter_mut().chain(self.initial_results.iter_mut()) {
            any |= nudge.apply(buffer);
        }
        Ok(any)
    }

    fn results(&mut self) -> Result<&[Buffer], RunError> {
        Ok(self.results)
    }
}

impl<'s> CpuRunner<'s> {
    fn call(&mut self, kernel: &Bound<'s>) -> Result<(), RunError> {
        let inputs: Vec<_> = self.inputs.iter().map(Buffer::view).collect();
        let mut results: Vec<_> = self.results.iter_mut().map(Buffer::view_mut).collect();
        kernel.run(self.pool, &inputs, &mut results, self.scalars)
    }
}
