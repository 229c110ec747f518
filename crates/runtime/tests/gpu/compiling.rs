//! Errors of compiling code for devices, and the compiler for CUDA without a GPU.

use tilewright_codegen::c_family::{Argument, Command, Dialect, GpuCode, ScratchBlock};
use tilewright_ir::ScalarId;
use tilewright_ir::nest::BufferId;
use tilewright_runtime::BuildError;
use tilewright_runtime::gpu::{Device, GpuError, LaunchResource, compile_cuda};

use crate::case::{ADD, LENGTH, adding_with, buffers, code, launch, on_every_device, skip};
use crate::dialect::text;

/// The error that refuses code for `c(i) = a(i) + b(i)`.
fn refusal(device: &Device, code: GpuCode) -> GpuError {
    match adding_with(device, code) {
        Err(BuildError::Gpu(error)) => error,
        Err(other) => panic!("expected an error of the device, but got: {other}"),
        Ok(_) => panic!("expected an error, but the code compiled"),
    }
}

fn adding_code(device: &Device) -> GpuCode {
    code(device, ADD, vec![launch("add", LENGTH, &buffers(&[0, 1, 2]))])
}

#[test]
fn errors_of_the_compiler_come_with_its_log() {
    on_every_device(|device| {
        let mut code = adding_code(device);
        code.text.push_str("\nKERNEL broken(GLOBAL float *a) { a[0] = no_such_name; }\n");
        let GpuError::Compile { log } = refusal(device, code) else { panic!("another error") };
        assert!(log.contains("no_such_name"), "{log}");
    });
}

#[test]
fn code_that_contradicts_itself_is_refused() {
    on_every_device(|device| {
        let with = |change: &dyn Fn(&mut GpuCode)| {
            let mut code = adding_code(device);
            change(&mut code);
            refusal(device, code)
        };
        let call = |kernel: &str, arguments: &[Argument]| vec![launch(kernel, LENGTH, arguments)];
        let error = with(&|code| code.body = call("subtract", &buffers(&[0, 1, 2])));
        assert_eq!(error, GpuError::NoKernel("subtract".into()));
        let error = with(&|code| code.body = call("add\0", &buffers(&[0, 1, 2])));
        assert_eq!(error, GpuError::NoKernel("add\0".into()));
        let error = with(&|code| code.body = call("add", &buffers(&[0, 1])));
        assert_eq!(error, GpuError::ParameterMismatch("add".into()));
        let error = with(&|code| code.body.extend(call("add", &buffers(&[0, 1]))));
        assert_eq!(error, GpuError::ParameterMismatch("add".into()));
        let error = with(&|code| code.body = call("add", &buffers(&[0, 1, 9])));
        assert_eq!(error, GpuError::MissingOnHost("a buffer".into()));
        let error = with(&|code| code.body = call("add", &[Argument::Scalar(ScalarId(4))]));
        assert_eq!(error, GpuError::MissingOnHost("a scalar".into()));
        let error = with(&|code| code.scratch = vec![ScratchBlock { bytes: 8, buffers: vec![BufferId(1)] }]);
        assert_eq!(error, GpuError::MissingOnHost("a scratch buffer".into()));
        let error = with(&|code| code.checks = vec![crate::case::check_of(9)]);
        assert_eq!(error, GpuError::MissingOnHost("the buffer of a check".into()));
    });
}

#[test]
fn launches_beyond_the_device_are_refused() {
    on_every_device(|device| {
        let mut code = adding_code(device);
        let Command::Launch(launch) = &mut code.body[0] else { unreachable!() };
        launch.shared_bytes = device.gpu().block_shared as u32 + 4;
        let error = refusal(device, code);
        assert!(
            matches!(error, GpuError::LimitExceeded { what: LaunchResource::SharedBytes, .. }),
            "{error}"
        );
    });
}

#[test]
fn code_for_another_kind_of_device_is_refused() {
    on_every_device(|device| {
        let mut code = adding_code(device);
        code.dialect = match code.dialect {
            Dialect::Cuda => Dialect::OpenCl,
            Dialect::OpenCl => Dialect::Cuda,
        };
        let (dialect, name) = (code.dialect, device.name());
        assert_eq!(refusal(device, code), GpuError::WrongDialect { dialect, device: name });
    });
}

/// The result of the compiler for CUDA; `None` if there is no compiler.
fn compiled(text: &str) -> Option<Result<tilewright_runtime::gpu::Cubin, GpuError>> {
    match compile_cuda(text, 90) {
        Err(GpuError::NoCompiler) => {
            skip("nvrtc", "there is no NVRTC to compile CUDA with");
            None
        }
        result => Some(result),
    }
}

#[test]
fn cuda_compiles_without_a_gpu() {
    let Some(cubin) = compiled(&text(Dialect::Cuda, ADD)) else { return };
    let cubin = cubin.unwrap_or_else(|error| panic!("{error}"));
    assert!(cubin.bytes.starts_with(b"\x7fELF"));
    assert!(cubin.log.contains("registers"), "{}", cubin.log);
}

#[test]
fn refused_cuda_comes_with_the_log() {
    let Some(refused) = compiled("extern \"C\" __global__ void k(float *a) { a[0] = no_such_name; }") else {
        return;
    };
    let says = refused.unwrap_err().to_string();
    assert!(says.contains("NVRTC_ERROR_COMPILATION") && says.contains("no_such_name"), "{says}");
    let Some(refused) = compiled("a\0b") else { return };
    assert!(matches!(refused, Err(GpuError::Compile { .. })));
}

#[test]
fn cuda_has_its_headers_for_half_precision() {
    let halves = "#include <cuda_fp16.h>
        extern \"C\" __global__ void k(__half *a, float *b) { b[threadIdx.x] = __half2float(a[threadIdx.x]); }";
    match compiled(halves) {
        None => {}
        Some(Err(error)) if error.to_string().contains("could not open source file") => {
            skip("cuda-headers", "there is no cuda_fp16.h");
        }
        Some(result) => assert!(result.is_ok(), "{}", result.unwrap_err()),
    }
}
