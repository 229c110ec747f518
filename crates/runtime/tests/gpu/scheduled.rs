//! Runs programs with schedules on a device, from their source texts, and compares the results with
//! those of the interpreter. Without a device, the generated CUDA is compiled.

use tilewright_codegen::c_family::gpu_code;
use tilewright_interp::{Inputs, seed};
use tilewright_ir::{LoopNest, Number, Program, Role, verify_nest};
use tilewright_runtime::Buffer;
use tilewright_runtime::gpu::{Device, GpuError, GpuExecutable, compile_cuda};
use tilewright_schedule::{apply, schedule_by_rules, text};
use tilewright_target::Gpu;

use crate::case::{program, skip};

/// A program at given sizes, with a schedule; without steps, the default schedule is used.
pub struct Case {
    pub source: &'static str,
    pub sizes: &'static [(&'static str, i64)],
    pub steps: &'static str,
}

pub fn nest_of(case: &Case, gpu: &Gpu) -> (Program, LoopNest) {
    let program = program(case.source, case.sizes);
    let parsed = text::parse(case.steps);
    assert!(parsed.diagnostics.is_empty(), "{:?}", parsed.diagnostics);
    let schedule = if case.steps.is_empty() { schedule_by_rules(&program, gpu) } else { parsed.schedule };
    let nest = apply(&program, &schedule, gpu).unwrap_or_else(|refusal| panic!("{refusal}"));
    verify_nest(&nest).unwrap();
    (program, nest)
}

/// Checks that a program has the same results on a device as in the interpreter.
pub fn agrees(device: &Device, case: &Case) {
    let (program, nest) = nest_of(case, device.gpu());
    nest_agrees(device, &program, &nest);
}

/// Like `agrees`, with a given loop nest.
pub fn nest_agrees(device: &Device, program: &Program, nest: &LoopNest) {
    nest_agrees_on(device, program, nest, seed::inputs(program, 7).unwrap());
}

/// Like `nest_agrees`, with given inputs.
pub fn nest_agrees_on(device: &Device, program: &Program, nest: &LoopNest, supplied: Inputs) {
    let code = gpu_code(verify_nest(nest).unwrap(), device.gpu(), "a test").unwrap();
    let text = code.text.clone();
    let executable = GpuExecutable::new(program, nest, code, device);
    let executable = executable.unwrap_or_else(|error| panic!("{error}\n{text}"));
    let wanted = tilewright_interp::expect(program, supplied.clone()).unwrap();
    let named = |test: fn(Role) -> bool| program.tensors_with(test).map(|(_, tensor)| tensor.name.clone());
    let given = |test: fn(Role) -> bool| -> Vec<Buffer> {
        named(test).map(|name| Buffer::from_tensor(&supplied.tensors[&name]).unwrap()).collect()
    };
    let constants = given(|role| role == Role::Input { constant: true });
    let constants: Vec<_> = constants.iter().map(Buffer::view).collect();
    let bound = executable.bind(&constants).unwrap();
    let inputs = given(|role| role == Role::Input { constant: false });
    let results: Vec<String> = named(|role| role.is_result()).collect();
    // Tensors that the program updates have old values.
    let room = |name: &String| match supplied.tensors.get(name) {
        Some(before) => Buffer::from_tensor(before).unwrap(),
        None => Buffer::zeros(wanted[name].tensor.dtype(), wanted[name].tensor.shape()).unwrap(),
    };
    let mut found: Vec<Buffer> = results.iter().map(room).collect();
    let scalars: Vec<Number> = program.scalars.iter().map(|scalar| supplied.scalars[&scalar.name]).collect();
    let inputs: Vec<_> = inputs.iter().map(Buffer::view).collect();
    let mut views: Vec<_> = found.iter_mut().map(Buffer::view_mut).collect();
    bound.run(&inputs, &mut views, &scalars).unwrap();
    drop(views);
    for (name, data) in results.iter().zip(found) {
        wanted[name]
            .compare(name, &data.to_tensor().unwrap())
            .unwrap_or_else(|difference| panic!("{difference}\n{text}"));
    }
}

/// Checks that the compiler for CUDA accepts the generated code of a program.
pub fn compiles_as_cuda(case: &Case) {
    let gpu = Gpu::h200();
    let (_, nest) = nest_of(case, &gpu);
    let code = gpu_code(verify_nest(&nest).unwrap(), &gpu, "a test").unwrap();
    match compile_cuda(&code.text, gpu.architecture) {
        Err(GpuError::NoCompiler) => skip("nvrtc", "there is no NVRTC"),
        Err(error) => panic!("{error}\n{}", code.text),
        Ok(cubin) => assert!(cubin.bytes.starts_with(b"\x7fELF")),
    }
}
