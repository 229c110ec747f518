//! The serpentine order of a thread's results: the order in the text, and that all results are
//! right.

use tilewright_codegen::c_family::gpu_code;
use tilewright_ir::verify_nest;
use tilewright_target::Gpu;

use crate::case::on_every_device;
use crate::scheduled::{Case, agrees, nest_of};

/// Tiles with an odd number of rows, an even number of columns in two loops, and an operand in
/// shared memory.
const TILES: Case = Case {
    source: "def gemm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }",
    sizes: &[("M", 12), ("N", 32), ("K", 6)],
    steps: "split C.i -> ib, it:2, ii:3
        split C.j -> jw, jt:4, ji:4
        split C.k -> ko, ki:2
        reorder C.ib, C.ko, C.it, C.jt, C.ki, C.ii, C.jw, C.ji
        bind C.ib -> block.x
        fuse C.it, C.jt -> t
        bind C.t -> thread.x
        unroll C.ki
        unroll C.ii
        unroll C.jw
        vectorize C.ji
        promote C at C.ib -> tile registers
        promote B at C.ko -> Bs shared
        bind Bs.l1 -> thread.x",
};

#[test]
fn results_in_turns_come_out_right() {
    on_every_device(|device| agrees(device, &TILES));
}

#[test]
fn from_one_result_to_the_next_one_loop_moves_by_one() {
    let gpu = Gpu::h200();
    let (_, nest) = nest_of(&TILES, &gpu);
    let text = gpu_code(verify_nest(&nest).unwrap(), &gpu, "a test").unwrap().text;
    assert!(text.contains("const int ii = ki % 2 == 0 ? ii_count : 2 - ii_count;"), "{text}");
    // The number of rows is odd, so the direction along a row depends on the step `ki` too.
    let backward = "const int jw = (ki + ii_count) % 2 == 0 ? jw_count : 1 - jw_count;";
    assert!(text.contains(backward), "{text}");
    assert!(text.contains("const int ji = jw_count % 2 == 0 ? ji_count : 3 - ji_count;"), "{text}");
}
