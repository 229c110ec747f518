//! Runs kernels on a device and times them by the device's clock with an empty cache, as
//! `tilewright bench` does.
//!
//! Only results are copied, once for every candidate, to compare them. Large results are compared
//! on the device instead (`on_device.rs`).

use tilewright_ir::Number;
use tilewright_runtime::gpu::{DeviceBuffer, GpuBound, GpuExecutable, Stopwatch};
use tilewright_runtime::{Buffer, RunError};
use tilewright_target::GpuApi;

use super::conditioning::Nudge;
use super::on_device::Comparisons;
use super::{Plan, Runner, Wanted};
use crate::rig::gpu::GpuBuilder;

/// The factor by which a first call may be slower than later calls, because of one-time work.
const FIRST: f64 = 2.0;
/// The resolution of a device's clock, in seconds.
const RESOLUTION: f64 = 1e-9;

/// The parts of a rig that are in use while kernels run.
pub(crate) struct GpuRunner<'s> {
    pub builder: &'s GpuBuilder,
    pub watch: &'s mut Stopwatch,
    pub constants: Vec<&'s DeviceBuffer>,
    pub inputs: &'s mut [DeviceBuffer],
    pub scalars: &'s [Number],
    /// The contents of results before a call.
    pub before: &'s mut [DeviceBuffer],
    pub results: Vec<&'s mut DeviceBuffer>,
    /// The host buffers that results are copied to.
    pub computed: &'s mut [Buffer],
    /// The comparisons that run on the device, made at their first use.
    pub comparisons: &'s mut Option<Comparisons>,
}

impl Runner for GpuRunner<'_> {
    type Executable = GpuExecutable;
    type Kernel = GpuBound;

    const SHORT: f64 = 5e-6;
    const DOUBT: f64 = 1.0;
    const CHANCES: usize = 1;
    const MOST_SAMPLES: usize = 200;
    const EMPTIES_CACHES: bool = true;

    fn bind(&self, executable: &GpuExecutable) -> Result<GpuBound, RunError> {
        executable.bind_on(&self.constants)
    }

    fn settle(&mut self, kernel: &GpuBound) -> Result<(), RunError> {
        self.timed(kernel).map(|_| ())
    }

    fn first_call(&mut self, kernel: &GpuBound) -> Result<f64, RunError> {
        for (from, to) in self.before.iter().zip(&mut self.results) {
            to.copy_from(from)?;
        }
        let seconds = self.timed(kernel)?;
        kernel.wait()?;
        Ok(seconds)
    }

    /// OpenCL drivers may compile a kernel at its first call, so that call has no limit.
    fn longest_first_call(&self, _: f64, plan: &Plan) -> f64 {
        match self.builder.device().gpu().api {
            GpuApi::Cuda => FIRST * plan.hopeless,
            GpuApi::OpenCl => f64::INFINITY,
        }
    }

    fn timed(&mut self, kernel: &GpuBound) -> Result<f64, RunError> {
        let GpuRunner { watch, inputs, results, scalars, .. } = self;
        let inputs: Vec<&DeviceBuffer> = inputs.iter().collect();
        let seconds = watch.time(1, &mut || kernel.launch(&inputs, results, scalars))?;
        Ok(seconds.max(RESOLUTION))
    }

    fn sample(&mut self, kernel: &GpuBound) -> Result<f64, RunError> {
        self.timed(kernel)
    }

    fn agrees(&mut self, wanted: &[Wanted]) -> Result<bool, RunError> {
        let GpuRunner { builder, before, results, comparisons, .. } = self;
        comparisons.get_or_insert_with(|| Comparisons::new(builder, wanted, before)).agree(results)
    }

    fn nudge(&mut self, nudge: Nudge) -> Result<bool, RunError> {
        let mut any = false;
        for buffer in self.inputs.iter_mut().chain(self.before.iter_mut()) {
            if nudge.is_for(buffer.layout().dtype()) {
                let mut copy = Buffer::zeros(buffer.layout().dtype(), buffer.layout().shape())?;
                buffer.download(&mut copy.view_mut())?;
                any |= nudge.apply(&mut copy);
                buffer.upload(&copy.view())?;
            }
        }
        Ok(any)
    }

    fn results(&mut self) -> Result<&[Buffer], RunError> {
        for (from, to) in self.results.iter().zip(self.computed.iter_mut()) {
            from.download(&mut to.view_mut())?;
        }
        Ok(self.computed)
    }
}
