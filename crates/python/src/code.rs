//! Holds compiled code for a CPU or a GPU, binds its constants, and runs it.

use smallvec::SmallVec;
use tilewright::driver::BoundCode;
use tilewright::ir::Number;
use tilewright::runtime::gpu::{Device, DeviceBuffer, GpuBound};
use tilewright::runtime::{Bound as Callable, Pool, RunError, Signature, View, ViewMut};

/// Compiled code, and the callable function once its constants are bound.
pub struct Code {
    /// The number of threads that run the code on the CPU; `None` for a GPU.
    threads: Option<usize>,
    code: tilewright::driver::Code,
    bound: Option<BoundCode<'static>>,
}

impl Code {
    /// Makes code whose constants are not bound.
    pub fn new(code: tilewright::driver::Code, threads: Option<usize>) -> Code {
        Code { threads, code, bound: None }
    }

    /// The parameters and results of the program.
    pub fn signature(&self) -> &Signature {
        self.code.signature()
    }

    /// The same code without its constants.
    pub fn unbound(&self) -> Code {
        Code::new(self.code.clone(), self.threads)
    }

    /// Binds the constants, and keeps copies of them.
    pub fn bind(&mut self, constants: &[View<'_>]) -> Result<(), RunError> {
        // Binding happens once and is short: a pool of many threads would not pay off.
        let threads = if constants.is_empty() { 1 } else { self.threads.unwrap_or(1) };
        self.bound = Some(self.code.bind(&Pool::new(threads), constants)?.into_owned()?);
        Ok(())
    }

    /// Runs the code on tensors in the host's memory. Code for the CPU needs the threads of a pool.
    pub fn run(
        &self,
        pool: Option<&Pool>,
        constants: &[View<'_>],
        inputs: &[View<'_>],
        results: &mut [ViewMut<'_>],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let alone;
        let pool = match pool {
            Some(pool) => pool,
            None => {
                alone = Pool::new(1);
                &alone
            }
        };
        match &self.bound {
            Some(bound) => bound.run(pool, inputs, results, scalars),
            None => self.code.bind(pool, constants)?.run(pool, inputs, results, scalars),
        }
    }

    /// The number of threads that run the code on the CPU; `None` for a GPU.
    pub fn threads(&self) -> Option<usize> {
        self.threads
    }

    /// Returns the CPU code and its number of threads, if this is CPU code with bound constants.
    pub fn on_cpu(&self) -> Option<(&Callable<'static>, usize)> {
        match (&self.bound, self.threads) {
            (Some(BoundCode::Cpu(bound)), Some(threads)) => Some((bound, threads)),
            _ => None,
        }
    }

    /// Returns the GPU code, if this is GPU code with bound constants.
    pub fn on_gpu(&self) -> Option<OnGpu<'_>> {
        match &self.bound {
            Some(BoundCode::Gpu(bound)) => Some(OnGpu { bound }),
            _ => None,
        }
    }
}

/// Code for a GPU with bound constants.
#[derive(Clone, Copy)]
pub struct OnGpu<'c> {
    bound: &'c GpuBound,
}

impl<'c> OnGpu<'c> {
    /// The GPU that the code runs on.
    pub fn device(self) -> &'c Device {
        self.bound.device()
    }

    /// Queues the code on a stream. Waits for its end only if the code can fail.
    ///
    /// # Safety
    ///
    /// `stream` is a stream of this GPU, on which the tensors may be used.
    pub unsafe fn queue(
        self,
        stream: u64,
        inputs: &[DeviceBuffer],
        results: &mut [DeviceBuffer],
        scalars: &[Number],
    ) -> Result<(), RunError> {
        let inputs: SmallVec<[&DeviceBuffer; 6]> = inputs.iter().collect();
        let mut results: SmallVec<[&mut DeviceBuffer; 2]> = results.iter_mut().collect();
        // SAFETY: the caller guarantees it.
        unsafe { self.bound.launch_on(stream, &inputs, &mut results, scalars) }
    }
}
