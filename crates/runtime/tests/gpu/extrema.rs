//! Minima and maxima of three integers of which one is negated. Before version 13.4, CUDA's
//! assembler computes them without the negation, so the generated text prevents one instruction for
//! all three.

use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::verify_nest;
use tilewright_target::{Gpu, GpuApi};

use crate::case::on_every_device;
use crate::scheduled::{Case, agrees, compiles_as_cuda, nest_of};

const CASES: [Case; 5] = [
    Case {
        source: "def words(int32(8) a, int32(8) b, int32(8) c) -> (x) {
            x(i) = max(max(a(i), -b(i)), c(i)) }",
        sizes: &[],
        steps: "bind x.i -> thread.x",
    },
    Case {
        source: "def shorts(int16(8) a, int16(8) b, int16(8) c) -> (x) {
            x(i) = min(min(a(i), -b(i)), c(i)) }",
        sizes: &[],
        steps: "bind x.i -> thread.x",
    },
    Case {
        source: "def largest(int32(12) a) -> (x) {
            x(i, j, k) = a(max(max(0 - i, j - 3), k - 3) + 3) where i in 0:4, j in 0:5, k in 0:6 }",
        sizes: &[],
        steps: "bind x.i -> thread.x\nbind x.j -> thread.y\nbind x.k -> thread.z",
    },
    Case {
        source: "def smallest(int32(12) a) -> (x) {
            x(i, j, k) = a(min(min(0 - i, j - 3), k - 3) + 3) where i in 0:4, j in 0:5, k in 0:6 }",
        sizes: &[],
        steps: "bind x.i -> thread.x\nbind x.j -> thread.y\nbind x.k -> thread.z",
    },
    Case {
        source: "def data(int32(12) a, int32(4) b) -> (x) {
            x(i, j, k) = a(clamp(max(max(int32(-b(i)), j - 3), k - 3), 0, 11)) where j in 0:5, k in 0:6 }",
        sizes: &[],
        steps: "bind x.i -> thread.x\nbind x.j -> thread.y\nbind x.k -> thread.z",
    },
];

#[test]
fn extrema_with_a_negated_operand_are_pairwise_in_cuda() {
    let gpu = Gpu { api: GpuApi::Cuda, ..Gpu::h200() };
    for case in &CASES {
        let text = gpu_code(verify_nest(&nest_of(case, &gpu).1).unwrap(), &gpu, "").unwrap().text;
        assert!(text.contains("tw_pairwise_m"), "{text}");
    }
}

#[test]
fn extrema_with_a_negated_operand_agree() {
    CASES.iter().for_each(compiles_as_cuda);
    on_every_device(|device| CASES.iter().for_each(|case| agrees(device, case)));
}
