//! Checks that NVRTC accepts the CUDA of the examples. NVRTC needs no GPU; `make setup-nvrtc`
//! installs it.

use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::verify_nest;
use tilewright_runtime::gpu::{GpuError, compile_cuda};
use tilewright_schedule::{apply, schedule_by_rules};
use tilewright_target::Gpu;

use crate::case::skip;

#[path = "../../../../tests/examples.rs"]
mod corpus;
#[path = "../../../../tests/example_lines.rs"]
mod example_lines;

use corpus as examples;
use example_lines::{Line, own_lines};

/// Sizes that are large enough for tiles, shared memory and pipelines, unlike those in the
/// examples' own texts. There are cases with and without remainders, with padding, and with several
/// statements.
const LARGE: &[&str] = &[
    "examples/flextensor/gemm.tw --sizes M=1024,K=1024,N=1024",
    "examples/flextensor/gemm.tw --sizes M=130,K=33,N=257",
    "examples/benchmarks/bmm.tw --sizes B=60,N=32,K=32,M=32",
    "examples/flextensor/conv2d.tw --sizes N=1,C=64,H=56,W=56,K=128,KH=3,KW=3,stride=1,pad=1",
    "examples/flextensor/conv_transpose2d.tw --sizes N=1,C=64,H=28,W=28,K=32,KH=4,KW=4,stride=2,pad=1",
    "examples/flextensor/depthwise_conv2d.tw --sizes N=1,C=32,H=112,W=112,M=1,KH=3,KW=3,stride=1,pad=1",
    "examples/benchmarks/group_convolution.tw --sizes N=32,G=32,C=4,F=4,H=56,W=56,KH=3,KW=3",
    "examples/benchmarks/mlp3.tw --sizes B=128,N=128,O=64,P=32,Q=2",
    "examples/benchmarks/softmax.tw --sizes N=1024,D=1024",
];

/// Compiles a program with the default schedule for an H200.
fn compiled(line: &str) -> Result<(), GpuError> {
    let gpu = Gpu::h200();
    let program = Line::new(line).program(1).unwrap_or_else(|why| panic!("{line}\n{why}"));
    let schedule = schedule_by_rules(&program, &gpu);
    let nest = apply(&program, &schedule, &gpu).unwrap_or_else(|refusal| panic!("{line}: {refusal}"));
    let code =
        gpu_code(verify_nest(&nest).unwrap(), &gpu, line).unwrap_or_else(|error| panic!("{line}: {error}"));
    match compile_cuda(&code.text, gpu.architecture) {
        Err(GpuError::Compile { log }) => panic!("{line}\n{log}\n{}", code.text),
        other => other.map(|cubin| assert!(cubin.bytes.starts_with(b"\x7fELF"), "{line}")),
    }
}

#[test]
fn the_cuda_of_every_example_compiles() {
    let lines: Vec<String> = own_lines().into_iter().chain(LARGE.iter().map(ToString::to_string)).collect();
    if compiled(&lines[0]) == Err(GpuError::NoCompiler) {
        return skip("nvrtc", "there is no NVRTC to compile the examples with");
    }
    for line in &lines {
        compiled(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}
