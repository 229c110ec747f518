//! Loops over fused variables whose quotients are bounded. NVIDIA's assembler miscompiles such
//! loops if it unrolls them, so the generated text asks for loops.

use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::verify_nest;
use tilewright_target::{Gpu, GpuApi};

use crate::case::on_every_device;
use crate::scheduled::{Case, agrees, compiles_as_cuda, nest_of};

/// One thread runs both loops as one, and reads the row above.
const ABOVE: Case = Case {
    source: "def above(int64(4, 4) a) -> (x) {
        x(i, j) +=! a(k, 0) * a(clamp(i - 1, 0, 3), 3 - i) where i in 0:4, j in 0:5 }",
    sizes: &[],
    steps: "fuse x.i, x.j -> t",
};

/// The same as a value instead of a subscript.
const VALUE: Case = Case {
    source: "def value(int64(4, 4) a) -> (x) {
        x(i, j) +=! a(k, 0) * max(0, int32(i) - 1) where i in 0:4, j in 0:5 }",
    sizes: &[],
    steps: "fuse x.i, x.j -> t",
};

fn text(case: &Case, api: GpuApi) -> String {
    let gpu = Gpu { api, ..Gpu::h200() };
    gpu_code(verify_nest(&nest_of(case, &gpu).1).unwrap(), &gpu, "").unwrap().text
}

#[test]
fn loops_with_bounded_quotients_are_not_unrolled() {
    for case in [ABOVE, VALUE] {
        for (api, hint) in
            [(GpuApi::Cuda, "#pragma unroll 1"), (GpuApi::OpenCl, "__attribute__((opencl_unroll_hint(1)))")]
        {
            let hinted = format!("{hint}\n  for (int t = 0;");
            let fused = text(&case, api);
            assert!(fused.contains(&hinted), "{fused}");
            let apart = text(&Case { steps: "reorder x.i, x.j", ..case }, api);
            assert!(!apart.contains(hint), "{apart}");
        }
    }
}

#[test]
fn bounded_quotients_agree() {
    [ABOVE, VALUE].iter().for_each(compiles_as_cuda);
    on_every_device(|device| [ABOVE, VALUE].iter().for_each(|case| agrees(device, case)));
}
