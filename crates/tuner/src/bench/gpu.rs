//! Runs kernels on a device and times them by the device's clock with an empty cache, as
//! `tilewright bench` does.
//!
//! Tensors stay on the device between candidates. The results of a candidate's first call are
//! compared on the device (`device_comparison.rs`). If the device cannot compare them or does not
//! accept them, all results are copied to the host and compared there.

use tilewright_ir::Number;
use tilewright_runtime::gpu::{DeviceBuffer, GpuBound, GpuExecutable, Stopwatch};
use tilewright_runtime::{Buffer, RunError};
use tilewright_target::GpuApi;

use super::conditioning::Perturbation;
use super::device_comparison::Comparisons;
use super::{ExpectedResult, Plan, Runner};
use crate::fixture::gpu::GpuBuilder;

/// The factor by which a first call may be slower than later calls, because of one-time work.
const FIRST_CALL_SLACK: f64 = 2.0;
/// The resolution of a device's clock, in seconds.
const CLOCK_RESOLUTION: f64 = 1e-9;

/// The parts of a fixture that are in use while kernels run.
pub(crate) struct GpuRunner<'s> {
    pub builder: &'s GpuBuilder,
    pub watch: &'s mut Stopwatch,
    pub constants: Vec<&'s DeviceBuffer>,
    pub inputs: &'s mut [DeviceBuffer],
    pub scalars: &'s [Number],
    /// The contents of results before a call.
    pub initial_results: &'s mut [DeviceBuffer],
    pub results: Vec<&'s mut DeviceBuffer>,
    /// The host buffers that results are copied to.
    pub host_results: &'s mut [Buffer],
    /// The comparisons that run on the device, made at their first use.
    pub comparisons: &'s mut Option<Comparisons>,
}

impl Runner for GpuRunner<'_> {
    type Executable = GpuExecutable;
    type Kernel = GpuBound;

    const SHORTEST_CONCLUSIVE_CALL: f64 = 5e-6;
    const SINGLE_CALL_SLACK: f64 = 1.0;
    const FURTHER_CALLS: usize = 1;
    const MOST_SAMPLES: usize = 200;
    const EMPTIES_CACHES: bool = true;

    fn bind(&self, executable: &GpuExecutable) -> Result<GpuBound, RunError> {
        executable.bind_on(&self.constants)
    }

    fn warm_up(&mut self, kernel: &GpuBound) -> Result<(), RunError> {
        self.time_call(kernel).map(|_| ())
    }

    fn first_call(&mut self, kernel: &GpuBound) -> Result<f64, RunError> {
        for (from, to) in self.initial_results.iter().zip(&mut self.results) {
            to.copy_from(from)?;
        }
        let seconds = self.time_call(kernel)?;
        kernel.wait()?;
        Ok(seconds)
    }

    /// OpenCL drivers may compile a kernel at its first call, so that call has no limit.
    fn longest_first_call(&self, _: f64, plan: &Plan) -> f64 {
        match self.builder.device().gpu().api {
            GpuApi::Cuda => FIRST_CALL_SLACK * plan.first_call_limit,
            GpuApi::OpenCl => f64::INFINITY,
        }
    }

    fn time_call(&mut self, kernel: &GpuBound) -> Result<f64, RunError> {
        let GpuRunner { watch, inputs, results, scalars, .. } = self;
        let inputs: Vec<&DeviceBuffer> = inputs.iter().collect();
        let seconds = watch.time(1, &mut || kernel.launch(&inputs, results, scalars))?;
        Ok(seconds.max(CLOCK_RESOLUTION))
    }

    fn sample(&mut self, kernel: &GpuBound) -> Result<f64, RunError> {
        self.time_call(kernel)
    }

    fn results_match(&mut self, wanted: &[ExpectedResult]) -> Result<bool, RunError> {
        let GpuRunner { builder, initial_results: before, results, comparisons, .. } = self;
        comparisons.get_or_insert_with(|| Comparisons::new(builder, wanted, before)).are_all_near(results)
    }

    fn perturb_inputs(&mut self, nudge: Perturbation) -> Result<bool, RunError> {
        let mut any = false;
        for buffer in self.inputs.iter_mut().chain(self.initial_results.iter_mut()) {
            if nudge.applies_to(buffer.layout().dtype()) {
                let mut copy = Buffer::zeros(buffer.layout().dtype(), buffer.layout().shape())?;
                buffer.download(&mut copy.view_mut())?;
                any |= nudge.apply(&mut copy);
                buffer.upload(&copy.view())?;
            }
        }
        Ok(any)
    }

    fn results(&mut self) -> Result<&[Buffer], RunError> {
        for (from, to) in self.results.iter().zip(self.host_results.iter_mut()) {
            from.download(&mut to.view_mut())?;
        }
        Ok(self.host_results)
    }
}
