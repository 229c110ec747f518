//! Calls from programs that XLA has compiled for `jax.jit`. XLA passes its memory, and no Python
//! code runs.
//!
//! [`handle_on_cpu`] and [`handle_on_cuda`] are handlers of XLA's foreign function interface, whose
//! structures are in [`frame`](crate::frame). An attribute of the call holds the number of an
//! [`Operation`], which says which function to run. The operation is compiled when it first runs,
//! because its device is known only then.

use std::collections::HashMap;
use std::ffi::c_void;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use smallvec::SmallVec;
use tilewright::ir::{Number, Program, Role, TensorDecl, TensorId, print};
use tilewright::runtime::gpu::DeviceBuffer;
use tilewright::runtime::{Pool, RunError, ViewMut};

use crate::arguments::{Parameter, Value};
use crate::compiled::{Compiled, ScheduleChoice};
use crate::error;
use crate::frame::{CallFrame, Failure, XlaBuffer};
use crate::function::Function;
use crate::place::Place;
use crate::pools;
use crate::source::Source;
use crate::stack::with_stack;

/// The attribute with the number of the operation.
const OPERATION: &str = "operation";
/// The attribute with the digest of the program. An exported JAX program may run in another
/// process, where the number belongs to another operation.
const PROGRAM: &str = "program";

/// A function at given sizes, as a compiled JAX program calls it. Operations live until the process
/// ends, because nothing reports when the last such program is gone.
struct Operation {
    source: Arc<Source>,
    parameters: Arc<[Parameter]>,
    program: Program,
    digest: i64,
    /// For each number among the parameters its value, if it was known when JAX traced the call.
    /// The other numbers are passed as tensors without dimensions.
    numbers: Vec<Option<Number>>,
    threads: usize,
    pool: Arc<Pool>,
    kernels: Mutex<HashMap<Place, Arc<Compiled>>>,
}

static OPERATIONS: Mutex<Vec<Arc<Operation>>> = Mutex::new(Vec::new());

fn operations() -> MutexGuard<'static, Vec<Arc<Operation>>> {
    OPERATIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

type Buffers<'b> = SmallVec<[&'b XlaBuffer; 6]>;
type Numbers = SmallVec<[Number; 4]>;

/// The type and shape of a result.
type ResultType = (&'static str, Vec<usize>);

/// Makes an operation of a function for tensors like these. Returns its number, the digest of its
/// program, and its results. `passed` says which parameters are numbers that every call passes.
#[pyfunction]
pub fn xla_operation<'py>(
    py: Python<'py>,
    function: &Bound<'py, Function>,
    args: &Bound<'py, PyTuple>,
    passed: Vec<bool>,
) -> PyResult<(i64, i64, Vec<ResultType>)> {
    let function = function.get();
    let request = function.request(args, Some(&PyDict::new(py)), None, Some("cpu"))?;
    let program = function.program(&request, None)?;
    let numbers = request.values.iter().zip(passed).filter_map(|(value, passed)| match value {
        Value::Scalar(number) => Some((!passed).then_some(*number)),
        Value::Tensor(_) => None,
    });
    let threads = pools::threads();
    let mut digest = DefaultHasher::new();
    print::program(&program).hash(&mut digest);
    let digest = digest.finish().cast_signed();
    let operation = Operation {
        source: Arc::clone(&function.source),
        parameters: Arc::clone(&function.parameters),
        program,
        digest,
        numbers: numbers.collect(),
        threads,
        pool: pools::pool(py, threads),
        kernels: Mutex::default(),
    };
    let results = operation.program.tensors_with(|role| role == Role::Output);
    let made = |(id, own): (TensorId, &TensorDecl)| {
        (own.dtype.name(), operation.program.shape(id).unwrap_or_default())
    };
    let results = results.map(made).collect();
    let mut operations = operations();
    operations.push(Arc::new(operation));
    Ok((operations.len() as i64 - 1, digest, results))
}

/// The handlers, by XLA's names of platforms.
#[pyfunction]
pub fn xla_handlers(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let handlers = PyDict::new(py);
    for (platform, handler) in [("cpu", handle_on_cpu as Handler), ("CUDA", handle_on_cuda as Handler)] {
        // SAFETY: the capsule has no name, and its pointer is a function.
        let capsule = unsafe {
            let pointer = handler as *mut c_void;
            Bound::from_owned_ptr_or_err(py, ffi::PyCapsule_New(pointer, std::ptr::null(), None))?
        };
        handlers.set_item(platform, capsule)?;
    }
    Ok(handlers)
}

impl Operation {
    /// Returns the kernel for a place, and compiles it if it is missing.
    fn kernel(&self, place: Place) -> Result<Arc<Compiled>, Failure> {
        // The lock is held while compiling: a second caller would have to wait for the compiler
        // anyway.
        let mut kernels = self.kernels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = kernels.get(&place) {
            return Ok(Arc::clone(found));
        }
        let Operation { source, parameters, program, .. } = self;
        // No Python frame could receive the warning here.
        let made = with_stack(|| {
            Compiled::compile(source, parameters, program.clone(), place, ScheduleChoice::Best)
        });
        let (made, _) = made.map_err(|error| text_of(&error))?;
        let made = Arc::new(made);
        kernels.insert(place, Arc::clone(&made));
        Ok(made)
    }

    /// Splits the buffers of a call into tensors and numbers. The numbers that are passed come
    /// after the tensors.
    fn split_operands<'b>(
        &self,
        buffers: &[&'b XlaBuffer],
        read: impl Fn(&XlaBuffer) -> Result<Number, Failure>,
    ) -> Result<(Buffers<'b>, Numbers), Failure> {
        let tensors = self.parameters.iter().filter(|own| own.is_tensor).count();
        let passed = self.numbers.iter().filter(|number| number.is_none()).count();
        if buffers.len() != tensors + passed {
            return Err(format!("the call has {} tensors, and needs {}", buffers.len(), tensors + passed));
        }
        let mut passed = buffers[tensors..].iter();
        let mut numbers = SmallVec::new();
        for number in &self.numbers {
            numbers.push(match (number, number.is_none().then(|| passed.next()).flatten()) {
                (Some(number), _) => *number,
                (None, Some(buffer)) => read(buffer)?,
                (None, None) => return Err("a number is missing".to_owned()),
            });
        }
        Ok((buffers[..tensors].into(), numbers))
    }

    fn run_on_cpu(&self, frame: &CallFrame) -> Result<(), Failure> {
        let kernel = self.kernel(Place::cpu(self.threads))?;
        // SAFETY: XLA's arguments and results are valid while the handler runs.
        let (arguments, results) = unsafe { (frame.args.buffers(), frame.rets.buffers()) };
        // SAFETY: as above. The buffer has one element.
        let (tensors, numbers) = self.split_operands(&arguments, |buffer| unsafe { buffer.number() })?;
        let (mut constants, mut inputs) = (Vec::new(), Vec::new());
        for (at, buffer) in tensors.iter().enumerate() {
            let list = if kernel.is_constant_tensor(at) { &mut constants } else { &mut inputs };
            // SAFETY: XLA keeps its row-major buffers, and writes to none of them while the handler
            // runs.
            list.push(unsafe { buffer.view()? });
        }
        // SAFETY: as above. Only this call uses the results.
        let written = results.iter().map(|buffer| unsafe { buffer.view_mut() });
        let mut written = written.collect::<Result<SmallVec<[ViewMut<'_>; 2]>, Failure>>()?;
        let ran = kernel.code.run(Some(&self.pool), &constants, &inputs, &mut written, &numbers);
        ran.map_err(|error| self.text_of_run(error))
    }

    fn run_on_cuda(&self, frame: &CallFrame) -> Result<(), Failure> {
        // SAFETY: XLA made the frame and its functions.
        let (ordinal, stream) = unsafe { (frame.ordinal()?, frame.stream()?) };
        let kernel = self.kernel(Place::cuda(ordinal))?;
        // SAFETY: XLA's arguments and results are valid while the handler runs.
        let (arguments, results) = unsafe { (frame.args.buffers(), frame.rets.buffers()) };
        let unread = |_: &XlaBuffer| {
            Err("on a GPU, a number cannot be one that JAX computes: give it as a Python number, with static_argnums".to_owned())
        };
        let (tensors, numbers) = self.split_operands(&arguments, unread)?;
        let code = kernel.code.on_gpu().ok_or(
            "on a GPU, a program that JAX compiles cannot bind constants: declare them without `const`",
        )?;
        let foreign = |buffer: &&XlaBuffer| {
            let (dtype, shape) = (buffer.dtype()?, buffer.shape());
            // SAFETY: XLA keeps its buffers until all work of its stream is done, and the kernel is
            // a part of that work.
            let made = unsafe { DeviceBuffer::from_foreign(code.device(), dtype, &shape, buffer.address()) };
            made.map_err(|error| error.to_string())
        };
        let inputs = tensors.iter().map(foreign).collect::<Result<Vec<_>, Failure>>()?;
        let mut written = results.iter().map(foreign).collect::<Result<Vec<_>, Failure>>()?;
        // SAFETY: `stream` is the stream of this call.
        let queued = unsafe { code.queue(stream, &inputs, &mut written, &numbers) };
        queued.map_err(|error| self.text_of_run(error))
    }

    fn text_of_run(&self, error: RunError) -> Failure {
        text_of(&error::run(&self.source, error))
    }
}

fn text_of(error: &PyErr) -> Failure {
    Python::attach(|py| error.value(py).to_string())
}

type Handler = unsafe extern "C" fn(*mut CallFrame) -> *mut c_void;

unsafe extern "C" fn handle_on_cpu(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: the caller is XLA.
    unsafe { handle(frame, Operation::run_on_cpu) }
}

unsafe extern "C" fn handle_on_cuda(frame: *mut CallFrame) -> *mut c_void {
    // SAFETY: the caller is XLA.
    unsafe { handle(frame, Operation::run_on_cuda) }
}

/// Runs a call, and returns an XLA error if it fails.
unsafe fn handle(
    frame: *mut CallFrame,
    run: fn(&Operation, &CallFrame) -> Result<(), Failure>,
) -> *mut c_void {
    // SAFETY: XLA passes a frame that it made.
    let frame = unsafe { &*frame };
    // SAFETY: as above.
    if unsafe { frame.answer_version_query() } || !frame.is_execution() {
        return std::ptr::null_mut();
    }
    let ran = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: as above.
        let (number, digest) = unsafe { (frame.attrs.integer(OPERATION), frame.attrs.integer(PROGRAM)) };
        let number = number.and_then(|number| usize::try_from(number).ok());
        let operation = number.and_then(|number| operations().get(number).cloned());
        let operation = operation.filter(|operation| Some(operation.digest) == digest);
        run(
            &*operation.ok_or(
                "this JAX program was compiled in another process, and its kernels exist only there",
            )?,
            frame,
        )
    }));
    match ran {
        Ok(Ok(())) => std::ptr::null_mut(),
        // SAFETY: as above.
        Ok(Err(why)) => unsafe { frame.error(&why) },
        // SAFETY: as above.
        Err(_) => unsafe { frame.error("this is a bug in Tilewright, please report it: a panic") },
    }
}
