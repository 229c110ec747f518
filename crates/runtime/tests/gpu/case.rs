//! Devices to test on, and hand-written stand-ins for the output of code generation.

use tilewright_codegen::Check;
use tilewright_codegen::c_family::{Argument, Command, Dialect, GpuCode, Launch};
use tilewright_ir::nest::{Buffer, BufferId, LoopNest, LoopVar, Scope};
use tilewright_ir::{DType, Origin, Program};
use tilewright_runtime::gpu::{Device, GpuExecutable, devices};
use tilewright_runtime::{BuildError, RunError};
use tilewright_syntax::{Bindings, check, parse};
use tilewright_target::GpuApi;

use crate::dialect::text;

/// Threads per block in every test.
pub const THREADS: u32 = 64;

/// Runs a test on every device.
pub fn on_every_device(test: impl Fn(&Device)) {
    let devices = devices();
    for api in [GpuApi::Cuda, GpuApi::OpenCl] {
        if devices.iter().all(|device| device.gpu.api != api) {
            skip(api.name(), &format!("there is no device of {}", api.name()));
        }
    }
    for device in devices {
        eprintln!("on {}: {}", device.name, device.gpu.name);
        test(&Device::open(device.gpu.api, device.ordinal).unwrap());
    }
}

/// Reports that something is not tested, or fails if `TILEWRIGHT_REQUIRE` lists it.
pub fn skip(what: &str, why: &str) {
    let required = std::env::var("TILEWRIGHT_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|name| name == what), "{what} is required: {why}");
    eprintln!("skipped: {why}");
}

pub fn program(source: &str, sizes: &[(&str, i64)]) -> Program {
    let parsed = parse(source);
    let bindings: Bindings = sizes.iter().copied().collect();
    let checked = check(&parsed.ast, &parsed.ast.functions[0].name.text, &bindings);
    checked.program.unwrap_or_else(|| panic!("{source}\n{:?}", checked.diagnostics))
}

/// A nest without statements: the runtime of a device needs only its tables.
pub fn nest(program: &Program, arguments: &[&str], others: &[Buffer]) -> LoopNest {
    let mut buffers: Vec<Buffer> = arguments.iter().map(|name| argument(program, name)).collect();
    buffers.extend_from_slice(others);
    LoopNest {
        name: program.name.clone(),
        contract: true,
        scalars: program.scalars.clone(),
        buffers,
        vars: ["s", "t"].map(|name| LoopVar { name: name.into() }).to_vec(),
        setup: Vec::new(),
        body: Vec::new(),
    }
}

fn argument(program: &Program, name: &str) -> Buffer {
    let id = program.find_tensor(name).unwrap();
    let shape = program.shape(id).unwrap().iter().map(|extent| *extent as i64).collect();
    Buffer { name: name.into(), dtype: program.tensor(id).dtype, shape, scope: Scope::Argument(id) }
}

pub fn buffer(name: &str, shape: &[i64], scope: Scope) -> Buffer {
    Buffer { name: name.into(), dtype: DType::Float32, shape: shape.to_vec(), scope }
}

/// A launch with as many blocks as this number of threads needs.
pub fn launch(kernel: &str, threads: usize, arguments: &[Argument]) -> Command {
    Command::Launch(Launch {
        kernel: kernel.to_owned(),
        grid: [threads.div_ceil(THREADS as usize) as u32, 1, 1],
        block: [THREADS, 1, 1],
        shared_bytes: 0,
        arguments: arguments.to_vec(),
    })
}

/// Buffers as arguments, by their indices in the nest.
pub fn buffers(places: &[u32]) -> Vec<Argument> {
    places.iter().map(|place| Argument::Buffer(BufferId(*place))).collect()
}

pub fn code(device: &Device, kernels: &str, body: Vec<Command>) -> GpuCode {
    let dialect = Dialect::from(device.gpu().api);
    GpuCode {
        dialect,
        text: text(dialect, kernels),
        setup: Vec::new(),
        body,
        scratch: Vec::new(),
        checks: Vec::new(),
    }
}

/// A check of dimension 0 of a buffer.
pub fn check_of(index: u32) -> Check {
    Check { buffer: BufferId(index), dimension: 0, is_declared: false, origin: Origin::default() }
}

pub const ADD: &str = "
KERNEL add(const GLOBAL float *a, const GLOBAL float *b, GLOBAL float *c) {
    INT i = 64 * BLOCK + THREAD;
    if (i < 1000) c[i] = a[i] + b[i];
}";

/// The number of elements of the vectors of [`adding`].
pub const LENGTH: usize = 1000;

/// Compiles `c(i) = a(i) + b(i)` with this code.
pub fn adding_with(device: &Device, code: GpuCode) -> Result<GpuExecutable, BuildError> {
    let program =
        program("def add(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }", &[("N", LENGTH as i64)]);
    GpuExecutable::new(&program, &nest(&program, &["a", "b", "c"], &[]), code, device)
}

pub fn adding(device: &Device) -> GpuExecutable {
    let body = vec![launch("add", LENGTH, &buffers(&[0, 1, 2]))];
    adding_with(device, code(device, ADD, body)).unwrap()
}

/// The message of a call's error.
pub fn error_message<T>(result: Result<T, RunError>) -> String {
    match result {
        Ok(_) => panic!("expected an error, but the call succeeded"),
        Err(error) => error.to_string(),
    }
}
