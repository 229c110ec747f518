//! Compiles and runs kernels on a device. Constants, inputs and the initial contents of results are
//! copied to the device once and stay there.

use tilewright_driver::code::gpu_code;
use tilewright_ir::{LoopNest, Number, Program};
use tilewright_runtime::gpu::{Device, DeviceBuffer, GpuExecutable, KernelResources, Stopwatch};
use tilewright_runtime::{Buffer, BuildError, RunError};
use tilewright_schedule::Schedule;
use tilewright_target::{Gpu, GpuApi, Target};

use super::{Builder, Data, RigError, Site, Source};
use crate::bench::gpu::GpuRunner;
use crate::bench::on_device::Comparisons;
use crate::task::TaskError;

/// The largest number of kernels whose resources are listed one by one.
const MOST_TOLD: usize = 16;

/// Compiles for a device.
#[derive(Clone)]
pub(crate) struct GpuBuilder {
    device: Device,
}

impl GpuBuilder {
    /// Opens a device, which must be equal to the expected one.
    pub fn open(ordinal: usize, gpu: &Gpu) -> Result<GpuBuilder, TaskError> {
        let device = Device::open(gpu.api, ordinal).map_err(|error| TaskError(error.to_string()))?;
        match device.gpu() == gpu {
            true => Ok(GpuBuilder { device }),
            false => Err(TaskError(format!("{} is another device than before", device.name()))),
        }
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl Builder for GpuBuilder {
    type Executable = GpuExecutable;

    fn target(&self) -> Target<'_> {
        Target::from(self.device.gpu())
    }

    fn compile(
        &self,
        program: &Program,
        nest: &LoopNest,
        schedule: &Schedule,
    ) -> Result<GpuExecutable, BuildError> {
        gpu_code(program, nest, schedule, &self.device)
    }

    fn resources(&self, executable: &GpuExecutable) -> String {
        told(executable.resources())
    }

    /// An OpenCL device may be the CPU itself, which should do nothing else while kernels are
    /// measured.
    fn is_apart(&self) -> bool {
        self.device.gpu().api == GpuApi::Cuda
    }
}

/// The resources that kernels use on a device, as text for people.
fn told(kernels: &[KernelResources]) -> String {
    let one = |kernel: &KernelResources| {
        let KernelResources { kernel, registers, local_bytes, shared_bytes, .. } = kernel;
        // A driver that does not report registers does not report spills either.
        let own = match registers {
            Some(registers) => format!("{registers} registers, {local_bytes} bytes spilled"),
            None => format!("{local_bytes} bytes private"),
        };
        format!("{kernel}: {own}, {shared_bytes} bytes shared")
    };
    let mut all: Vec<String> = kernels.iter().take(MOST_TOLD).map(one).collect();
    if let Some(more) = kernels.len().checked_sub(MOST_TOLD).filter(|more| *more > 0) {
        all.push(format!("and {more} more"));
    }
    all.join("; ")
}

/// A device with the data of a rig.
pub(crate) struct GpuSite {
    builder: GpuBuilder,
    watch: Stopwatch,
    constants: Vec<DeviceBuffer>,
    inputs: Vec<DeviceBuffer>,
    before: Vec<DeviceBuffer>,
    results: Vec<DeviceBuffer>,
    scalars: Vec<Number>,
    /// The host buffers that results are copied to.
    computed: Vec<Buffer>,
    /// The comparisons that run on the device, made at their first use.
    comparisons: Option<Comparisons>,
}

impl Site for GpuSite {
    type Builder = GpuBuilder;
    type Runner<'s> = GpuRunner<'s>;

    fn new(builder: &GpuBuilder, data: Data<'_>) -> Result<GpuSite, RigError> {
        let device = &builder.device;
        let there = |source: Source<'_>| match source {
            Source::There(tensor) => DeviceBuffer::from_tensor(device, &tensor),
            Source::Made(elements, shape) => {
                let make = |begin: usize, bytes: &mut [u8]| elements.overwrite(begin, bytes);
                DeviceBuffer::from_parts(device, elements.dtype(), &shape, make)
            }
        };
        let upload = |sources: Vec<Source<'_>>| {
            let each = sources.into_iter().map(there);
            each.collect::<Result<Vec<_>, RunError>>().map_err(RigError::Device)
        };
        let copy = |from: &DeviceBuffer| {
            let (dtype, shape) = (from.layout().dtype(), from.layout().shape());
            let mut copy = DeviceBuffer::zeros(&builder.device, dtype, shape)?;
            copy.copy_from(from)?;
            Ok(copy)
        };
        let before = upload(data.before)?;
        let results = before.iter().map(copy).collect::<Result<_, RunError>>().map_err(RigError::Device)?;
        Ok(GpuSite {
            builder: builder.clone(),
            watch: Stopwatch::new(&builder.device, true).map_err(RigError::Device)?,
            constants: upload(data.constants)?,
            inputs: upload(data.inputs)?,
            before,
            results,
            scalars: data.scalars,
            computed: data.results,
            comparisons: None,
        })
    }

    fn parts(&mut self) -> (&GpuBuilder, GpuRunner<'_>) {
        let runner = GpuRunner {
            builder: &self.builder,
            watch: &mut self.watch,
            constants: self.constants.iter().collect(),
            inputs: &mut self.inputs,
            scalars: &self.scalars,
            before: &mut self.before,
            results: self.results.iter_mut().collect(),
            computed: &mut self.computed,
            comparisons: &mut self.comparisons,
        };
        (&self.builder, runner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kernels_take_is_told() {
        let kernel = |kernel: &str, registers| KernelResources {
            kernel: kernel.to_owned(),
            registers,
            local_bytes: 8,
            shared_bytes: 4096,
            threads: 256,
        };
        let one = "C: 96 registers, 8 bytes spilled, 4096 bytes shared";
        assert_eq!(told(&[kernel("C", Some(96))]), one);
        let both = format!("{one}; D: 8 bytes private, 4096 bytes shared");
        assert_eq!(told(&[kernel("C", Some(96)), kernel("D", None)]), both);
        let many: Vec<_> = (0..MOST_TOLD + 2).map(|_| kernel("C", Some(1))).collect();
        assert!(told(&many).ends_with("; and 2 more"));
        assert_eq!(told(&[]), "");
    }
}
